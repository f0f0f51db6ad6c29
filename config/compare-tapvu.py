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
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path.insert(0, os.path.join(TOP, 'tests', 'net'))
import testpmd  # noqa: E402  (the path comes first)

PLUGIN = os.path.abspath(os.path.join(TOP, 'build', 'drivers', 'librte_net_tapvu.so'))
HUGE = ('--in-memory', '--single-file-segments', '-m', '128')
HERE, THERE = testpmd.CPUS[0], testpmd.CPUS[-1]
TURN_S, SETTLE_S = 0.25, 0.1
PORTS = ('vhost', 'lock', 'lcore', 'page')


class Pair:
    """A receiver and the testpmd that feeds it; both hold still except in their turn."""

    def __init__(self, port, folder, size):
        path = f'{folder}/{port}'
        self.programs = []
        vdev = f'net_vhost0,iface={path}' if port == 'vhost' else f'net_tapvu0,path={path},frag={port}'
        eal = (*testpmd.lcores(HERE, HERE), *HUGE)
        try:
            self.receiver = testpmd.Testpmd(vdev, 'rxonly',
                                            eal=eal if port == 'vhost' else (*eal, '-d', PLUGIN))
            self.programs.append(self.receiver)
            self.receiver.start()
            self.sender = testpmd.Testpmd(f'net_virtio_user0,path={path}', 'txonly',
                                          f'--txpkts={size}',
                                          eal=(*testpmd.lcores(THERE, THERE), *HUGE))
            self.programs.append(self.sender)
            self.sender.start()
            time.sleep(SETTLE_S)
            self.signal(signal.SIGSTOP)
        except BaseException:
            self.kill()
            raise

    def signal(self, which):
        for program in self.programs:
            program.process.send_signal(which)

    def turn(self, seconds):
        """Packets per second that the sender got rid of: it drops what finds no room."""
        self.signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        counts, times = [], []
        for _ in range(2):
            counts.append(self.sender.count('TX-packets'))
            times.append(time.monotonic())
            time.sleep(seconds if len(times) == 1 else 0)
        self.signal(signal.SIGSTOP)
        return (counts[1] - counts[0]) / (times[1] - times[0])

    def kill(self):
        self.signal(signal.SIGCONT)
        for program in reversed(self.programs):
            program.kill()


def measure(ports, turns, size):
    folder = tempfile.mkdtemp(prefix='sluice-tapvu')
    pairs, rows = {}, {port: [] for port in ports}
    try:
        for port in ports:
            pairs[port] = Pair(port, folder, size)
        for _ in range(turns):
            for port, pair in pairs.items():
                rows[port].append(pair.turn(TURN_S))
    finally:
        for pair in pairs.values():
            pair.kill()
        shutil.rmtree(folder)
    return rows


def report(rows, as_json):
    for port, pps in rows.items():
        row = {'bench': 'tapvu', 'case': port, 'value': round(statistics.median(pps)), 'unit': 'pps',
               'min': round(min(pps)), 'max': round(max(pps)), 'turns': len(pps)}
        print(json.dumps(row) if as_json else
              f'{port:8} {row["value"]:>10} pps   (of {row["turns"]}: {row["min"]} .. {row["max"]})')
    first = next(iter(rows))
    for port in list(rows)[1:]:
        ratio = [a / b for a, b in zip(rows[port], rows[first])]
        row = {'bench': 'tapvu', 'case': f'{port}/{first}', 'value': round(statistics.median(ratio), 3),
               'unit': 'x', 'min': round(min(ratio), 3), 'max': round(max(ratio), 3)}
        print(json.dumps(row) if as_json else
              f'{row["case"]:16} {row["value"]:>6} x   ({row["min"]} .. {row["max"]})')


def main():
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
    report(measure(args.ports or PORTS, args.turns, args.size), args.json)


if __name__ == '__main__':
    main()
