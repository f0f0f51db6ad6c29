# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Receivers on one virtio wire, compared in short turns; for compare-sinks.py and compare-tapvu.py.
Its report is compare-bridge.py's as well."""
import json
import os
import signal
import statistics
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path.insert(0, os.path.join(TOP, 'tests', 'net'))
import testpmd  # noqa: E402  (the path comes first)

HUGE = ('--in-memory', '--single-file-segments', '-m', '128')
HERE, THERE = testpmd.CPUS[0], testpmd.CPUS[-1]
TURN_S, SETTLE_S = 0.25, 0.1


def unwind_on_term():
    """Let SIGTERM end the program as Ctrl-C does: with what it started stopped, and what it made removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def rxonly(vdev, *eal):
    """testpmd that only receives, on this side of the wire."""
    receiver = testpmd.Testpmd(vdev, 'rxonly', eal=(*testpmd.lcores(HERE, HERE), *HUGE, *eal))
    try:
        receiver.start()
    except BaseException:
        receiver.kill()
        raise
    return receiver


class Pair:
    """A receiver and the testpmd that feeds it; both hold still except in their turn.

    The wire's speed changes within seconds, with what the machine's other tenants do, by a factor of
    three. So the receivers that are compared take short turns, and each ratio is one of neighbours.
    """

    def __init__(self, receiver, path, *options):
        self.programs = [receiver]
        try:
            self.sender = testpmd.Testpmd(f'net_virtio_user0,path={path}', 'txonly', *options,
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


def take(makers, turns):
    """{name: rates} of pairs that are all there at once; makers: {name: a function that makes one}."""
    pairs, rows = {}, {name: [] for name in makers}
    try:
        for name, make in makers.items():
            pairs[name] = make()
        for _ in range(turns):
            for name, pair in pairs.items():
                rows[name].append(pair.turn(TURN_S))
    finally:
        for pair in pairs.values():
            pair.kill()
    return rows


def report(bench, rates, ratios, as_json, unit='pps'):
    """Print both, {name: values}, by their medians."""
    wide = max(map(len, (*rates, *ratios)))
    for name, pps in rates.items():
        row = {'bench': bench, 'case': name, 'value': round(statistics.median(pps)), 'unit': unit,
               'min': round(min(pps)), 'max': round(max(pps)), 'rounds': len(pps)}
        print(json.dumps(row) if as_json else
              f'{name:{wide}} {row["value"]:>10} {unit}   (of {row["rounds"]}: {row["min"]} .. {row["max"]})')
    for name, ratio in ratios.items():
        row = {'bench': bench, 'case': name, 'value': round(statistics.median(ratio), 3), 'unit': 'x',
               'min': round(min(ratio), 3), 'max': round(max(ratio), 3)}
        print(json.dumps(row) if as_json else
              f'{name:{wide}} {row["value"]:>10} x     ({row["min"]} .. {row["max"]})')
