#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare net_tapvu with net_vhost as the port that receives from the same frontend; root, hugepages.

    config/compare-tapvu.py [--turns N] [--size BYTES] [--json] [PORT ...]

Each port is `testpmd rxonly` on one core, fed over virtio-user by `testpmd txonly` on another. All
pairs are there at once and take short turns, while the others are stopped: the wire's speed changes
within seconds with what else the machine does, so only neighbours can be compared. A figure is the
median of its turns, a ratio the median of the ratios of neighbours. PORT is vhost, lock, lcore or
page; all of them if none is named. Needs a build in build/.
"""
import argparse
import os
import shutil
import sys
import tempfile

import turns

PLUGIN = os.path.abspath(os.path.join(turns.TOP, 'build', 'drivers', 'librte_net_tapvu.so'))
PORTS = ('vhost', 'lock', 'lcore', 'page')


def pair(port, folder, size):
    path = f'{folder}/{port}'
    receiver = turns.rxonly(f'net_vhost0,iface={path}') if port == 'vhost' else \
        turns.rxonly(f'net_tapvu0,path={path},frag={port}', '-d', PLUGIN)
    return turns.Pair(receiver, path, f'--txpkts={size}')


def measure(ports, count, size):
    folder = tempfile.mkdtemp(prefix='sluice-tapvu')
    try:
        return turns.take({port: lambda port=port: pair(port, folder, size) for port in ports}, count)
    finally:
        shutil.rmtree(folder)


def main():
    turns.unwind_on_term()
    parser = argparse.ArgumentParser(description='Compare net_tapvu with net_vhost.')
    parser.add_argument('ports', nargs='*', metavar='PORT', help=', '.join(PORTS))
    parser.add_argument('--turns', type=int, default=20)
    parser.add_argument('--size', type=int, default=64, help='bytes of a frame')
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if wrong := set(args.ports) - set(PORTS):
        parser.error(f'no such port: {", ".join(sorted(wrong))}')
    if os.geteuid() != 0 or not os.path.exists(PLUGIN):
        sys.exit('compare-tapvu.py needs root for hugepages, and a build in build/')
    rates = measure(args.ports or PORTS, args.turns, args.size)
    first = next(iter(rates))
    ratios = {f'{port}/{first}': [a / b for a, b in zip(rates[port], rates[first])] for port in list(rates)[1:]}
    turns.report('tapvu', rates, ratios, args.json)


if __name__ == '__main__':
    main()
