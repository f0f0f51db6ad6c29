#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare UDP sinks on one machine, in one run; root.

    config/compare-sinks.py [--rounds N] [--seconds S] [--turns N] [--json]

    kernel        recvmmsg on the host kernel's socket, fed over veth by kernel sockets
    sink-veth     sluice-udp-sink on the same veth, same senders
    sink-virtio   sluice-udp-sink on one core, fed over virtio-user by testpmd txonly on another
    sink-tapvu    the same over net_tapvu, our driver, in place of net_vhost
    burst-virtio  sink-virtio with the mbufs handed out (--burst) in place of payloads copied (--recvmmsg)
    burst-tapvu   the same over net_tapvu
    loop-virtio   a hand-written loop that parses, verifies and copies, and does nothing else a stack does
    rxonly        testpmd rxonly on net_vhost in the sink's place

The first two take turns, round by round; the others as well, in turns of a quarter of a second. Each
figure is the median of its rounds or turns, each ratio the median of their ratios; "faster
half" takes the turns in which rxonly was not below its median, where the wire limits least. Needs what config/install-deps.sh installs, and a build in build/.
"""
import argparse
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import turns
from turns import HERE, THERE, TOP

sys.path.insert(0, os.path.join(TOP, 'tests', 'apps'))
import apps  # noqa: E402  (the path comes first)

SINK, FLOOD, BENCH = (os.path.join(TOP, 'build', 'apps', name)
                      for name in ('sluice-udp-sink', 'sluice-udp-flood', 'sluice-bench'))
HUGEPAGES = '/proc/sys/vm/nr_hugepages'
TAPVU = os.path.join(TOP, 'build', 'drivers', 'librte_net_tapvu.so')
ONE_ROW = ('--json', '--recvmmsg', '--count', '100G')
VHOST, TAPVU_PORT = 'net_vhost0,iface=%s', 'net_tapvu0,path=%s'
WIRE = {'sink-virtio': (VHOST, '--recvmmsg'), 'sink-tapvu': (TAPVU_PORT, '--recvmmsg'),
        'burst-virtio': (VHOST, '--burst'), 'burst-tapvu': (TAPVU_PORT, '--burst')}
RATIOS = (*((row, 'rxonly') for row in (*WIRE, 'loop-virtio')), ('sink-virtio', 'loop-virtio'),
          ('sink-virtio', 'kernel'), ('sink-veth', 'kernel'))


def huge_reserve(pages):
    """Have that many free hugepages; what the setting was before."""
    with open(HUGEPAGES, encoding='ascii') as f:
        before = f.read()
    if int(before) < pages:
        huge_set(str(pages))
    return before


def huge_set(text):
    with open(HUGEPAGES, 'w', encoding='ascii') as f:
        f.write(text)


def rate(sink, seconds):
    """Let it receive, end it, and take the rate from its first datagram to its last."""
    time.sleep(seconds + 0.5)  # the sender starts meanwhile
    sink.interrupt()
    out, err = sink.process.communicate(timeout=apps.PATIENCE_S)
    row = json.loads(out.splitlines()[0])
    if row['count'] == 0:
        sys.exit(f'no datagram came in {seconds} s: {err.decode()}')
    return row['pps']


def veth_row(bed, seconds, *options):
    """Rate of a sink on the veth while kernel sockets send as fast as they can."""
    sink = apps.Sink(bed, [*options, *ONE_ROW], ('taskset', '-c', str(HERE)), True)
    flood = subprocess.Popen(
        ['ip', 'netns', 'exec', bed.a, 'taskset', '-c', str(THERE), FLOOD, '--kernel', '--to', apps.V4,
         '--flows', '8', '--duration', str(seconds + 30)], stdout=subprocess.DEVNULL)
    try:
        return rate(sink, seconds)
    finally:
        flood.kill()
        flood.wait()
        sink.kill()


def kernel_row(bed, seconds):
    with bed.kernel_answers():
        return veth_row(bed, seconds, '--kernel')


def eal(prefix, row, vdev):
    return ('--lcores', f'0@{HERE}', '--no-pci', *turns.HUGE, '--no-telemetry', '--file-prefix', prefix + row,
            '--log-level=*:error', '-d', TAPVU, '--vdev=' + vdev)


def sink_pair(bed, folder, prefix, row):
    vdev, call = WIRE[row]
    path = f'{folder}/{row}'
    return turns.Pair(apps.Sink(bed, [*eal(prefix, row, vdev % path), '--', *apps.ADDR4, '--promiscuous',
                                      '--batch', '64', '--json', call, '--count', '100G'], (), True), path)


class Loop:
    """sluice-bench wire, to be signalled and ended as the other receivers are."""

    def __init__(self, arguments):
        self.process = subprocess.Popen([BENCH, *arguments], stdout=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()


def loop_pair(folder, prefix):
    path = f'{folder}/loop'
    loop = Loop([*eal(prefix, 'loop', VHOST % path), '--', 'wire', '--seconds', '86400'])
    end = time.monotonic() + apps.PATIENCE_S
    while not os.path.exists(path):
        if loop.process.poll() is not None or time.monotonic() > end:
            sys.exit('sluice-bench wire did not start')
        time.sleep(0.05)
    return turns.Pair(loop, path)


def rxonly_pair(folder):
    path = f'{folder}/rxonly'
    return turns.Pair(turns.rxonly(f'net_vhost0,iface={path}'), path)


def virtio_rows(bed, folder, count):
    prefix = f'slcmp{os.getpid()}s'
    makers = {row: functools.partial(sink_pair, bed, folder, prefix, row) for row in WIRE}
    makers['loop-virtio'] = functools.partial(loop_pair, folder, prefix)
    makers['rxonly'] = functools.partial(rxonly_pair, folder)
    try:
        return turns.take(makers, count)
    finally:
        for row in (*WIRE, 'loop'):
            shutil.rmtree(f'{apps.RUNTIME}/{prefix}{row}', ignore_errors=True)


def main():
    turns.unwind_on_term()
    parser = argparse.ArgumentParser(description='Compare UDP sinks on one machine.')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=2)
    parser.add_argument('--turns', type=int, default=40)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit('compare-sinks.py needs root for network namespaces and hugepages')
    before = huge_reserve(1536)
    folder = tempfile.mkdtemp(prefix='sluice-compare')
    bed = apps.Bed(SINK, FLOOD)
    rows = {name: [] for name in ('kernel', 'sink-veth')}
    try:
        for _ in range(args.rounds):
            rows['kernel'].append(kernel_row(bed, args.seconds))
            rows['sink-veth'].append(
                veth_row(bed, args.seconds, '--iface', 'wb', *apps.ADDR4))
        rows |= virtio_rows(bed, folder, args.turns)
    finally:
        bed.close()
        shutil.rmtree(folder)
        huge_set(before)
    report(rows, args.json)


def ratios(one, other):
    """Of neighbours where both took the same turns, else of each to the other's median."""
    if len(one) == len(other):
        return [a / b for a, b in zip(one, other)]
    return [a / statistics.median(other) for a in one]


def report(rows, as_json):
    middle = statistics.median(rows['rxonly'])
    named = {f'{one}/{other}': ratios(rows[one], rows[other]) for one, other in RATIOS}
    for row in (*WIRE, 'loop-virtio'):
        named[f'{row}/rxonly, faster half'] = [
            a / b for a, b in zip(rows[row], rows['rxonly']) if b >= middle]
    turns.report('sinks', rows, named, as_json)


if __name__ == '__main__':
    main()
