#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The symbols that libsluice.so and libsluice-client.so export are those that their public headers declare.

usage: symbol-map.py           say where lib/sluice.map and lib/client/client.map differ from the headers
       symbol-map.py --write   write both anew

A header says in its first comment how stable it is, and that decides the version node: doc/api.md.
"""
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NODES = {'stable': 'SLUICE_0', 'experimental': 'SLUICE_EXPERIMENTAL'}
MAPS = {'lib/client/client.map': ['client'],
        'lib/sluice.map': [os.path.basename(os.path.dirname(p)) for p in
                           sorted(glob.glob(f'{TOP}/lib/*/meson.build'))]}


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def stability(text, path):
    words = re.findall(r'^ \* Stability: (\w+) \(doc/api\.md\)\.$', text, re.M)
    if len(words) != 1 or words[0] not in NODES:
        sys.exit(f'{path}: its first comment needs one line " * Stability: {" | ".join(NODES)} (doc/api.md)."')
    return words[0]


def declared(text):
    """Functions and objects that other files define: not inline, not a macro, in column 0."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'^#(?:[^\n]*\\\n)*[^\n]*', '', text, flags=re.M)
    text = re.sub(r'^static inline\b.*?^}', '', text, flags=re.S | re.M)
    names = re.findall(r'^(?!typedef|struct \w+ \{)[a-z][\w \*]*?\b(sl_\w+)\(', text, re.M)
    return sorted(set(names + re.findall(r'^extern [\w \*]+?\b(sl_\w+);', text, re.M)))


def exports(libs):
    """{node: names} of the headers of some libraries."""
    nodes = {}
    for lib in libs:
        for path in glob.glob(f'{TOP}/lib/{lib}/include/*.h'):
            text = read(path)
            nodes.setdefault(NODES[stability(text, path)], set()).update(declared(text))
    return {node: sorted(names) for node, names in nodes.items() if names}


def as_text(nodes):
    """The map as the linker reads it; the last node hides all that is not named."""
    parts = []
    for node in [n for n in NODES.values() if n in nodes]:
        last = node == [n for n in NODES.values() if n in nodes][-1]
        parts.append(f'{node} {{\nglobal:\n' + ''.join(f'\t{name};\n' for name in nodes[node])
                     + ('local:\n\t*;\n' if last else '') + '};\n')
    return '\n'.join(parts)


def main():
    wrong = 0
    for path, libs in MAPS.items():
        wanted = as_text(exports(libs))
        there = read(f'{TOP}/{path}') if os.path.exists(f'{TOP}/{path}') else ''
        if wanted == there:
            continue
        if '--write' in sys.argv[1:]:
            with open(f'{TOP}/{path}', 'w', encoding='utf-8') as f:
                f.write(wanted)
            continue
        wrong += 1
        for what, names in (('not in', set(wanted.split()) - set(there.split())),
                            ('only in', set(there.split()) - set(wanted.split()))):
            print(f'{path}: {what} the map: {" ".join(sorted(names))}' if names else f'{path}: order')
    if wrong:
        print('config/symbol-map.py --write makes them right; doc/api.md says which changes are allowed')
    return wrong


if __name__ == '__main__':
    sys.exit(main())
