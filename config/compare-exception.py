#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare the exception path with net_tap: TCP in bulk to the kernel behind a DPDK port; root, iperf3.

    config/compare-exception.py [--turns N] [--seconds S] [--plain] [--json] [WAY ...]

    kernel of A - veth - net_tpacket, sluiced, exception = ker0 ----------- ker0 - kernel of B
    kernel of A - veth - net_tpacket, testpmd in io mode, net_tap --------- nt0  - the same kernel

`exception` is ours. `net_tap` is the stock way from a port to the kernel: testpmd copies between the port and
a net_tap, with the offloads that it has by itself. Both ports are over veth pairs from the same kernel, which sends
super-frames; they pass whole where a way can do that. With --plain the ports neither cut nor checksum, so that
all there is are frames of 1500 bytes. Both programs poll one processor, and only the one whose turn it is runs. Turns
alternate, each has S seconds to the kernel (`in`), then from it (`out`). A figure is the median of its turns, a
ratio the median of ratios of neighbours. Needs a build in build/.
"""
import argparse
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path.insert(0, os.path.join(TOP, 'tests', 'net'))
import turns  # noqa: E402  (the path comes first)
import wire  # noqa: E402

WAYS = ('exception', 'net_tap')
BUILD = os.path.abspath(os.path.join(TOP, 'build'))
CPU = max(os.sched_getaffinity(0))
A, B = f'slA{os.getpid()}', f'slB{os.getpid()}'
NAME = f'cmp{os.getpid()}'
SETTLE_S = 0.3
PORT = 5201


def veth(nth, plain):
    wire.sh('ip', '-n', A, 'link', 'add', f'wa{nth}', 'type', 'veth', 'peer', 'name', f'wb{nth}', 'netns', B)
    wire.sh('ip', 'netns', 'exec', B, 'sysctl', '-qw', f'net.ipv6.conf.wb{nth}.disable_ipv6=1',
            f'net.ipv4.conf.wb{nth}.rp_filter=1', f'net.ipv4.conf.wb{nth}.arp_ignore=8')
    wire.sh('ip', '-n', B, 'link', 'set', f'wb{nth}', 'up')
    if plain:
        wire.sh('ip', 'netns', 'exec', A, 'ethtool', '-K', f'wa{nth}', 'tso', 'off', 'gso', 'off', 'tx', 'off')
    wire.sh('ip', '-n', A, 'addr', 'add', f'198.18.{nth}.1/24', 'dev', f'wa{nth}')
    wire.sh('ip', '-n', A, 'link', 'set', f'wa{nth}', 'up')


def start(way, nth, folder, plain):
    """The program, with its way to the kernel ready."""
    port = f'net_tpacket0,iface=wb{nth}' + (',vnet_hdr=0' if plain else '')
    if way == 'exception':
        path = f'{folder}/t.conf'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(f'[sluiced]\nname = {NAME}\nlcores = {CPU}\nhugepages = no\n[port wan]\n'
                    f'devargs = {port}\naddress = 198.18.{nth}.2/24\nexception = ker0\n')
        process = subprocess.Popen(['ip', 'netns', 'exec', B, f'{BUILD}/apps/sluiced', path],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_for(process, 'ready')
        return process
    process = subprocess.Popen(
        ['ip', 'netns', 'exec', B, 'stdbuf', '-o0', 'dpdk-testpmd', '--lcores', f'0@{CPU},1@{CPU}', '--no-huge', '-m',
         '256', '--no-pci', '--no-telemetry', '--file-prefix', NAME, '-d',
         f'{BUILD}/drivers/librte_net_tpacket.so', f'--vdev={port}',
         '--vdev=net_tap0,iface=nt0', '--', '-i', '--forward-mode=io', '--total-num-mbufs=16384', '--auto-start'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(process, 'testpmd> $')
    wire.sh('ip', '-n', B, 'link', 'set', 'nt0', 'address', wire.mac(B, f'wb{nth}'))
    wire.sh('ip', '-n', B, 'addr', 'add', f'198.18.{nth}.2/24', 'dev', 'nt0')
    wire.sh('ip', '-n', B, 'link', 'set', 'nt0', 'up')
    return process


def wait_for(process, pattern):
    text, end = '', time.monotonic() + wire.PATIENCE_S
    while not re.search(pattern, text):
        left = end - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise RuntimeError(f'it does not say {pattern}: {text[-1000:]}')
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            raise RuntimeError(f'it ended: {text[-1000:]}')
        text += data.decode(errors='replace')


def iperf(nth, seconds, options):
    """Mbit/s that arrived. The server may still be busy with the end of the last run."""
    end = time.monotonic() + wire.PATIENCE_S
    while True:
        out = json.loads(wire.sh('ip', 'netns', 'exec', A, 'iperf3', '-c', f'198.18.{nth}.2', '-p', str(PORT + nth),
                                 '-t', str(seconds), '-i', '0', '-J', *options, check=False))
        if 'sum_received' in out['end']:
            return out['end']['sum_received']['bits_per_second'] / 1e6
        if 'busy' not in out.get('error', '') or time.monotonic() > end:
            raise RuntimeError(f'iperf3: {out.get("error", out)}')
        time.sleep(SETTLE_S)


def turn(process, nth, seconds):
    """{direction: Mbit/s that arrived}."""
    process.send_signal(signal.SIGCONT)
    time.sleep(SETTLE_S)
    rates = {}
    for direction, options in (('in', ()), ('out', ('-R',))):
        rates[direction] = iperf(nth, seconds, options)
    time.sleep(SETTLE_S)  # the server has still to hear of the end
    process.send_signal(signal.SIGSTOP)
    return rates


def measure(ways, count, seconds, plain):
    rates = {(way, direction): [] for direction in ('in', 'out') for way in ways}
    folder, programs, servers = tempfile.mkdtemp(prefix='sluice-exception'), {}, []
    try:
        for ns in (A, B):
            wire.sh('ip', 'netns', 'add', ns)
            wire.sh('ip', '-n', ns, 'link', 'set', 'lo', 'up')
        for nth, way in enumerate(ways):
            veth(nth, plain)
            programs[way] = start(way, nth, folder, plain)
            wire.sh('ip', 'netns', 'exec', A, 'ping', '-c', '1', '-W', '5', f'198.18.{nth}.2')
            programs[way].send_signal(signal.SIGSTOP)
        # One each: it may wait for the end of a run over a program that stands still.
        for nth in range(len(ways)):
            servers.append(subprocess.Popen(['ip', 'netns', 'exec', B, 'iperf3', '-s', '-p', str(PORT + nth)],
                                            stdout=subprocess.DEVNULL))
        time.sleep(SETTLE_S)
        for _ in range(count):
            for nth, way in enumerate(ways):
                for direction, rate in turn(programs[way], nth, seconds).items():
                    rates[way, direction].append(rate)
    finally:
        for process in (*programs.values(), *servers):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for ns in (A, B):
            wire.sh('ip', 'netns', 'del', ns, check=False)
        shutil.rmtree(folder)
        for left in (f'sluiced-{NAME}', NAME):
            shutil.rmtree(f'/var/run/dpdk/{left}', ignore_errors=True)
    return rates


def main():
    turns.unwind_on_term()
    parser = argparse.ArgumentParser(description='Compare ways from a DPDK port to the kernel: TCP in bulk.')
    parser.add_argument('ways', nargs='*', metavar='WAY', help=', '.join(WAYS))
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=1, help='of each direction of a turn')
    parser.add_argument('--plain', action='store_true', help='ports that neither cut super-frames nor make checksums')
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if wrong := set(args.ways) - set(WAYS):
        parser.error(f'no such way: {", ".join(sorted(wrong))}')
    if os.geteuid() != 0 or not os.path.exists(f'{BUILD}/apps/sluiced') or shutil.which('iperf3') is None:
        sys.exit('compare-exception.py needs root for namespaces, a build in build/, and iperf3')
    rates = measure(args.ways or WAYS, args.turns, args.seconds, args.plain)
    first = (args.ways or WAYS)[0]
    ratios = {f'{first}/{way} {direction}': [a / b for a, b in zip(rates[first, direction], row)]
              for (way, direction), row in rates.items() if way != first}
    turns.report('exception', {f'{way} {direction}': row for (way, direction), row in rates.items()}, ratios,
                 args.json, unit='Mbit/s')


if __name__ == '__main__':
    main()
