#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Install into an empty folder and use the library from there, as a stranger would.

usage: test_install.py BUILD SOURCE
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = '''
#include <stdio.h>
%(includes)s
int main(void)
{
	struct sl_lcount *c = NULL;
	if (sl_lcount_create(2, -1, &c) != 0)
		return 1;
	sl_lcount_take(c, 0, 3);
	sl_lcount_give(c, 1, 1);
	printf("%%u\\n", (unsigned)sl_lcount_sum(c));
	sl_lcount_destroy(c);
	return 0;
}
'''


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
        with open(pc[0], encoding='utf-8') as f:
            text = f.read()
        # The file names where it would be installed: here that is below `root`.
        prefix = re.search(r'^prefix=(.*)$', text, re.M).group(1)
        with open(pc[0], 'w', encoding='utf-8') as f:
            f.write(text.replace(f'prefix={prefix}', f'prefix={root}{prefix}'))
        self.prefix = root + prefix
        self.headers = sorted(glob.glob(self.prefix + '/include/sluice/*.h'))
        self.lib = glob.glob(self.prefix + '/lib/**/libsluice.so', recursive=True)[0]
        self.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]),
                        LD_LIBRARY_PATH=os.path.dirname(self.lib))
        self.root = root

    def pkg_config(self, *args):
        return run(['pkg-config', *args, 'sluice'], env=self.env).split()

    def use(self, compiler, suffix):
        source = f'{self.root}/use{suffix}'
        includes = '\n'.join(f'#include <{os.path.basename(h)}>' for h in self.headers)
        with open(source, 'w', encoding='utf-8') as f:
            f.write(PROGRAM % {'includes': includes})
        run([compiler, '-D_GNU_SOURCE', '-Wall', '-Werror', source, '-o', source + '.out',
             *self.pkg_config('--cflags', '--libs')], env=self.env)
        return run([source + '.out'], env=self.env)


def test_c_program(i):
    assert i.use('gcc', '.c') == '2\n'


def test_first_program(i):
    """The program in doc/udp.md, as a reader would compile it, warnings being errors."""
    page = read(os.path.join(os.path.dirname(__file__), '../../doc/udp.md'))
    source = i.root + '/first.c'
    with open(source, 'w', encoding='utf-8') as f:
        f.write(re.search(r'```c\n(.*?)```', page, re.S).group(1))
    run(['gcc', '-Wall', '-Wextra', '-Werror', source, '-o', source + '.out',
         *i.pkg_config('--cflags', '--libs')], env=i.env)


def test_cxx_program(i):
    assert i.use('g++', '.cc') == '2\n'


def test_exports_are_ours(i):
    names = [line.split()[-1] for line in
             run(['nm', '-D', '--defined-only', i.lib]).splitlines()]
    # SLUICE_0 and the like are the version nodes of the symbol map.
    foreign = [n for n in names if not re.match(r'sl_\w+(@@\w+)?$|SLUICE_', n)]
    assert names and not foreign, f'exported: {foreign}'


def test_every_declared_call_is_exported(i):
    client = os.path.join(os.path.dirname(i.lib), 'libsluice-client.so')
    exported = {line.split()[-1].split('@')[0] for lib in (i.lib, client) for line in
                run(['nm', '-D', '--defined-only', lib]).splitlines()}
    for header in i.headers:
        text = re.sub(r'/\*.*?\*/', '', read(header), flags=re.S)
        # A declaration starts in column 0 and is neither inline nor a macro.
        for name in re.findall(r'^(?!static|#|\t|typedef)[\w \*]+?\b(sl_\w+)\(', text, re.M):
            inline = re.search(r'static inline [\w \*]+\n' + name + r'\(', text)
            assert inline or name in exported, f'{os.path.basename(header)}: {name} is missing'


def test_private_headers_stay_home(i):
    assert i.headers and all(os.path.basename(h).startswith('sl_') for h in i.headers)


def main(build, source):
    del source
    passed = failed = 0
    with tempfile.TemporaryDirectory() as root:
        try:
            install = Install(build, root)
        except (subprocess.CalledProcessError, AssertionError) as e:
            print(getattr(e, 'stderr', ''), e, '\nFAIL install\n0 passed, 1 failed, 0 skipped')
            return 1
        for name, test in sorted(globals().items()):
            if not name.startswith('test_'):
                continue
            try:
                test(install)
                passed += 1
                print('ok  ', name)
            except (subprocess.CalledProcessError, AssertionError) as e:
                failed += 1
                print(getattr(e, 'stderr', ''), e)
                print('FAIL', name)
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
