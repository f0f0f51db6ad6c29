# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""An installation in an empty folder, as a stranger would use it."""
import glob
import os
import re
import subprocess


def run(command, **kwargs):
    return subprocess.run(command, check=True, capture_output=True, text=True, **kwargs).stdout


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


class Install:
    def __init__(self, build, root):
        run(['meson', 'install', '-C', build, '--no-rebuild', '--destdir', root])
        pc = glob.glob(root + '/**/sluice.pc', recursive=True)
        assert len(pc) == 1, f'{len(pc)} sluice.pc files'
        prefix = self.move(pc[0], root)
        self.move(pc[0].replace('sluice.pc', 'sluice-client.pc'), root)
        self.prefix = root + prefix
        self.headers = sorted(glob.glob(self.prefix + '/include/sluice/*.h'))
        self.lib = glob.glob(self.prefix + '/lib/**/libsluice.so', recursive=True)[0]
        self.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]),
                        LD_LIBRARY_PATH=os.path.dirname(self.lib))
        self.root = root

    @staticmethod
    def move(pc, root):
        """The file names where it would be installed: here that is below `root`."""
        text = read(pc)
        prefix = re.search(r'^prefix=(.*)$', text, re.M).group(1)
        with open(pc, 'w', encoding='utf-8') as f:
            f.write(text.replace(f'prefix={prefix}', f'prefix={root}{prefix}'))
        return prefix

    def pkg_config(self, *args, package='sluice'):
        return run(['pkg-config', *args, package], env=self.env).split()
