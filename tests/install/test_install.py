#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Install into an empty folder and use the library from there, as a stranger would.

usage: test_install.py BUILD SOURCE
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from package import Install, read, run

BUILD = sys.argv[1]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')

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


def use(i, compiler, suffix):
    source = f'{i.root}/use{suffix}'
    includes = '\n'.join(f'#include <{os.path.basename(h)}>' for h in i.headers)
    with open(source, 'w', encoding='utf-8') as f:
        f.write(PROGRAM % {'includes': includes})
    run([compiler, '-D_GNU_SOURCE', '-Wall', '-Werror', source, '-o', source + '.out',
         *i.pkg_config('--cflags', '--libs')], env=i.env)
    return run([source + '.out'], env=i.env)


def test_c_program(i):
    assert use(i, 'gcc', '.c') == '2\n'


def first_program(i):
    """The program in doc/udp.md."""
    source = i.root + '/first.c'
    with open(source, 'w', encoding='utf-8') as f:
        f.write(re.search(r'```c\n(.*?)```', read(SOURCE + '/doc/udp.md'), re.S).group(1))
    return source


def test_first_program(i):
    """As a reader would compile it, warnings being errors."""
    source = first_program(i)
    run(['gcc', '-Wall', '-Wextra', '-Werror', source, '-o', source + '.out',
         *i.pkg_config('--cflags', '--libs')], env=i.env)


def test_cxx_program(i):
    assert use(i, 'g++', '.cc') == '2\n'


def exported(path):
    """{name: version node} of a shared library, without the nodes themselves."""
    names = [line.split()[1:] for line in run(['nm', '-D', '--defined-only', path]).splitlines()]
    return dict(name.partition('@@')[::2] for kind, name in names if kind != 'A')


def mapped(path):
    """{name: version node} of a symbol map."""
    return {name: node for node, body in re.findall(r'^(\w+) \{(.*?)^\}', read(path), re.M | re.S)
            for name in re.findall(r'^\t(\w+);', body, re.M)}


def test_exports_are_what_the_maps_name(i):
    client = os.path.join(os.path.dirname(i.lib), 'libsluice-client.so')
    for lib, path in ((i.lib, 'lib/sluice.map'), (client, 'lib/client/client.map')):
        names, wanted = exported(lib), mapped(f'{SOURCE}/{path}')
        assert names and names == wanted, f'{path}: {set(names.items()) ^ set(wanted.items())}'


def test_maps_are_what_the_headers_declare(i):
    del i
    ret = subprocess.run([f'{SOURCE}/config/symbol-map.py'], capture_output=True, text=True, check=False)
    assert ret.returncode == 0, ret.stdout + ret.stderr


def test_every_installed_header_says_how_stable_it_is(i):
    for header in i.headers:
        assert len(re.findall(r'^ \* Stability: (?:stable|experimental) ', read(header), re.M)) == 1, header


def test_library_version_is_the_packages(i):
    version = i.pkg_config('--modversion')[0]
    soname = re.search(r'SONAME.*\[(.*)\]', run(['readelf', '-d', i.lib])).group(1)
    assert soname == 'libsluice.so.' + '.'.join(version.split('.')[:2]), soname


def test_static_program(i):
    """libsluice.a, and DPDK as the machine has it."""
    source = first_program(i)
    libs = ['-l:libsluice.a' if word == '-lsluice' else word for word in i.pkg_config('--libs')]
    run(['gcc', source, '-o', source + '.static', *i.pkg_config('--cflags'), *libs,
         *i.pkg_config('--libs', package='numa')], env=i.env)
    assert 'libsluice' not in run(['readelf', '-d', source + '.static'])
    wanted = i.pkg_config('--static', '--libs')
    assert '-lnuma' in wanted and any('rte_eal' in word for word in wanted), wanted


def test_tapvu_is_not_taken_for_tap(i):
    """net_tapvu0 is ours also where DPDK's own net_tap was loaded first, as a folder's order may have it."""
    ours = glob.glob(f'{BUILD}/drivers/librte_net_tapvu.so')
    if not ours:
        print('     the drivers are not built: nothing to load')
        return
    theirs = glob.glob('/usr/lib/*/dpdk/pmds-*/librte_net_tap.so')[0]
    prefix = f'inst{os.getpid()}'
    said = run(['dpdk-testpmd', '--no-huge', '-m', '128', '--no-pci', '--no-shconf', f'--file-prefix={prefix}',
                '--lcores=0@0,1@0', '-d', theirs, '-d', ours[0], f'--vdev=net_tapvu0,path={i.root}/tapvu', '--',
                '-i', '--total-num-mbufs=2048'], input='show port info 0\nquit\n')
    shutil.rmtree(f'/var/run/dpdk/{prefix}', ignore_errors=True)
    assert 'Driver name: net_tapvu' in said, said


def test_client_needs_no_dpdk(i):
    source = i.root + '/client.c'
    with open(source, 'w', encoding='utf-8') as f:
        f.write('#include <sl_client.h>\nint main(void) { sl_client_close(NULL); return 0; }\n')
    flags = i.pkg_config('--cflags', '--libs', package='sluice-client')
    assert not any('rte' in word or 'dpdk' in word for word in flags), flags
    run(['gcc', '-Wall', '-Werror', source, '-o', source + '.out', *flags], env=i.env)
    run([source + '.out'], env=i.env)


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
