#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The build enforces that includes go downward only: with the flags that a library is compiled with,
its own headers and those of its deps are found, and no other library's.

usage: test_includes.py BUILD SOURCE
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys


def allowed(source, lib):
    text = open(f'{source}/lib/{lib}/meson.build', encoding='utf-8').read()
    deps = re.search(r"^deps = \[([^\]]*)\]", text, re.M)
    return {lib} | set(re.findall(r"'(\w+)'", deps.group(1)) if deps else [])


def flags(build, source):
    """Compiler command of one source file of each library, without input and output."""
    found = {}
    for entry in json.load(open(f'{build}/compile_commands.json', encoding='utf-8')):
        path = os.path.relpath(os.path.join(entry['directory'], entry['file']), source)
        match = re.match(r'lib/(\w+)/\w+\.c$', path)
        if match and match.group(1) not in found:
            words = shlex.split(entry['command'])
            words = words[:words.index('-o')] if '-o' in words else words
            found[match.group(1)] = [w for w in words if w not in ('-MD', '-MQ', '-MF', '-c')
                                     and not w.endswith(('.o', '.d'))]
    return found


def compiles(command, build, header):
    ret = subprocess.run(command + ['-fsyntax-only', '-x', 'c', '-'], cwd=build, text=True,
                         input=f'#include "{header}"\n', capture_output=True, check=False)
    return ret.returncode == 0, ret.stderr


def main(build, source):
    passed = failed = 0
    headers = {}
    for path in glob.glob(f'{source}/lib/*/include/*.h'):
        headers.setdefault(path.split('/')[-3], []).append(os.path.basename(path))
    for lib, command in sorted(flags(build, source).items()):
        if not os.path.exists(f'{source}/lib/{lib}/meson.build'):
            continue  # built on its own, without DPDK
        for other in sorted(headers):
            if not os.path.exists(f'{source}/lib/{other}/meson.build'):
                continue
            header = sorted(headers[other])[0]
            found, stderr = compiles(command, build, header)
            if found == (other in allowed(source, lib)):
                passed += 1
            else:
                failed += 1
                print(stderr)
                print(f'FAIL lib/{lib} {"sees" if found else "does not see"} {header} of {other}')
    if passed == 0:
        failed += 1
        print('FAIL no library found')
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
