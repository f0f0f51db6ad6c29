#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare whole Maglev tables with an implementation of their definition (doc/balancer.md).

usage: test_maglev_reference.py MAGLEV_DUMP
       test_maglev_reference.py --golden     prints the constants of test_maglev.c
"""
import random
import subprocess
import sys
from fractions import Fraction

NONE = 65535
WORD = 0xFFFFFFFF


def rotate(x, k):
    return ((x << k) | (x >> (32 - k))) & WORD


def lookup3(data, first, second):
    """Bob Jenkins' lookup3 over bytes: two 32-bit results from two seeds."""
    a = b = (0xDEADBEEF + len(data) + first) & WORD
    c = (a + second) & WORD
    if not data:
        return c, b
    blocks = [data[i:i + 12].ljust(12, b'\0') for i in range(0, len(data), 12)]
    for n, block in enumerate(blocks):
        x, y, z = (int.from_bytes(block[i:i + 4], 'little') for i in (0, 4, 8))
        a, b, c = (a + x) & WORD, (b + y) & WORD, (c + z) & WORD
        if n + 1 < len(blocks):
            v = {'a': a, 'b': b, 'c': c}
            for p, q, r, k in (('a', 'c', 'b', 4), ('b', 'a', 'c', 6), ('c', 'b', 'a', 8),
                               ('a', 'c', 'b', 16), ('b', 'a', 'c', 19), ('c', 'b', 'a', 4)):
                v[p] = ((v[p] - v[q]) & WORD) ^ rotate(v[q], k)
                v[q] = (v[q] + v[r]) & WORD
            a, b, c = v['a'], v['b'], v['c']
    v = {'a': a, 'b': b, 'c': c}
    for p, q, k in (('c', 'b', 14), ('a', 'c', 11), ('b', 'a', 25), ('c', 'b', 16), ('a', 'c', 4),
                    ('b', 'a', 14), ('c', 'b', 24)):
        v[p] = ((v[p] ^ v[q]) - rotate(v[q], k)) & WORD
    return v['c'], v['b']


def quotas(weights, slots):
    total = sum(weights.values())
    exact = {n: Fraction(slots * w, total) for n, w in weights.items()}
    given = {n: int(e) for n, e in exact.items()}
    left = slots - sum(given.values())
    for n in sorted(exact, key=lambda n: (given[n] - exact[n], n))[:left]:
        given[n] += 1
    for n in sorted(weights):
        if weights[n] and not given[n]:
            given[min(given, key=lambda k: (-given[k], k))] -= 1
            given[n] = 1
    return given


def permutation(offset, skip, slots):
    for j in range(slots):
        yield (offset + j * skip) % slots


def table(slots, seed, weights):
    """(slots, turns) as lists of names; None where there is nobody."""
    if not any(weights.values()):
        return [None] * slots, [None] * slots
    quota = quotas(weights, slots)
    most = max(quota.values())
    turns, order = [], {}
    for name in weights:
        first, second = lookup3(name.encode(), seed, 0)
        offset, skip = first % slots, second % (slots - 1) + 1
        order[name] = permutation(offset, skip, slots)
        phase = (second * most) >> 32
        # The k-th turn is in the first round r with (quota r + phase) / most >= k.
        turns += [(-((phase - k * most) // quota[name]), name) for k in range(1, quota[name] + 1)]
    taken = [None] * slots
    turns = [name for _, name in sorted(turns)]
    for name in turns:
        taken[next(s for s in order[name] if taken[s] is None)] = name
    return taken, turns


def fingerprint(values):
    h = 0xCBF29CE484222325  # FNV-1a over the values
    for v in values:
        h = ((h ^ v) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def by_index(names, lists):
    index = {n: i for i, n in enumerate(names)}
    return [[NONE if n is None else index[n] for n in values] for values in lists]


def compare(dump, slots, seed, weights):
    out = subprocess.run([dump, str(slots), str(seed)] + [f'{n}={w}' for n, w in weights.items()],
                         check=True, capture_output=True, text=True).stdout.splitlines()
    ours = [[int(w) for w in line.split()] for line in out]
    theirs = by_index(weights, table(slots, seed, weights))
    assert ours[0] == theirs[0], 'slots differ'
    assert ours[1] == theirs[1], 'turns differ'


def main():
    assert lookup3(b'', 0, 0) == (0xDEADBEEF, 0xDEADBEEF)  # published with lookup3
    assert lookup3(b'Four score and seven years ago', 0, 0)[0] == 0x17770551
    assert lookup3(b'Four score and seven years ago', 1, 0)[0] == 0xCD628161
    if sys.argv[1:] == ['--golden']:
        for slots, seed, weights in ((251, 0, {'a': 1, 'b': 1, 'c': 1}),
                                     (65537, 1, {'dns-1': 3, 'dns-2': 2, 'dns-3': 1, 'dns-4': 0})):
            s, t = by_index(weights, table(slots, seed, weights))
            print(slots, seed, s[:8], hex(fingerprint(s)), hex(fingerprint(t)))
        return 0
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = random.Random(7)
    cases = [('default_size', 65537, 0, {'one': 1, 'two': 1, 'three': 2}),
             ('nobody', 251, 0, {}), ('nobody_weighted', 251, 0, {'a': 0, 'b': 0}),
             ('one', 251, 5, {'a': 7}), ('extreme_weights', 1009, 5, {'a': 1000, 'b': 1, 'c': 1}),
             ('as_many_as_slots', 251, 9, {f'b{i}': 1 for i in range(251)}),
             ('hardly_weighted', 251, 9, {'big': 1000, **{f's{i}': 1 for i in range(200)}}),
             ('name_lengths', 1009, 3, {'x' * n: 1 for n in range(1, 64)})]
    for n in range(12):
        slots = rng.choice([251, 257, 1009, 4093])
        names = [f'{rng.choice("abc")}{rng.randrange(10**6)}' for _ in range(rng.randrange(2, 60))]
        cases.append((f'random_{n}', slots, rng.randrange(1 << 32),
                      {name: rng.choice([0, 1, 1, 2, 5, 100]) for name in names}))
    failed = 0
    for name, slots, seed, weights in cases:
        try:
            compare(sys.argv[1], slots, seed, weights)
            print(f'ok   {name}')
        except (AssertionError, subprocess.CalledProcessError) as e:
            failed += 1
            print(f'FAIL {name}: {e}')
    print(f'{len(cases) - failed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
