#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare the load balancer with testpmd that only forwards, on one core each; root, hugepages.

    config/compare-forward.py [--flows N] [--ipv6] [--vlan] [--turns N] [--json] [ROW ...]

    macswap         testpmd macswap on net_vhost: what a port can do when packets are hardly looked at
    5tswap          testpmd 5tswap: it also reads the headers, and writes addresses and ports
    forward         sluiced with a service of kind = forward and three back ends, affinity = flow
    forward-none    the same with affinity = none: no flow table

A stock testpmd on another core plays a capture of UDP datagrams (forward_flows.py) into virtio-user and
takes what comes back by the same port; that is what is counted. So each receives, decides, rewrites, and
sends every datagram. All are there at once and take short turns, while the others are stopped: the wire's
speed changes within seconds with what else the machine does, so only neighbours can be compared. A figure
is the median of its turns, a ratio the median of the ratios of neighbours. Needs a build in build/.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import forward_flows as flows
import turns
from turns import testpmd

SLUICED = os.path.join(turns.TOP, 'build', 'apps', 'sluiced')
ROWS = ('macswap', '5tswap', 'forward', 'forward-none')
CONF = '''[sluiced]
name = {name}
lcores = {cpu}
memory = 256
hugepages = yes
idle = poll
[port wire]
devargs = net_vhost0,iface={path}
address = {address}/{prefix}
promiscuous = yes
{vlan}
[service lb]
kind = forward
address = {address}
udp-port = {port}
backends = a b c
affinity = {affinity}
check = none
'''
BACKEND = '''[backend {name}]
address = {address}
udp-port = {port}
'''


def conf(args, row, name, path):
    return CONF.format(
        name=name, cpu=turns.HERE, path=path, address=flows.service(args.ipv6), prefix=flows.prefix(args.ipv6),
        port=flows.SERVICE_PORT, vlan=f'vlan = {flows.VLAN}' if args.vlan else '',
        affinity='none' if row == 'forward-none' else 'flow') + ''.join(
            BACKEND.format(name=name, address=address, port=flows.BACKEND_PORT)
            for name, address in zip('abc', flows.backends(args.ipv6)))


class Daemon:
    """sluiced on this side of the wire."""

    def __init__(self, folder, row, path, args):
        self.name = f'slcmp{os.getpid()}{row}'
        file = f'{folder}/{row}.conf'
        with open(file, 'w', encoding='ascii') as f:
            f.write(conf(args, row, self.name, path))
        self.log = open(f'{folder}/{row}.log', 'w+', encoding='utf-8')
        self.process = subprocess.Popen([SLUICED, file], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        while not os.path.exists(path):
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                sys.exit(f'sluiced does not start: {self.log.read()}')
            time.sleep(0.05)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(f'/var/run/dpdk/sluiced-{self.name}', ignore_errors=True)


def swapper(mode, path):
    peer = testpmd.Testpmd(f'net_vhost0,iface={path}', mode,
                           eal=(*testpmd.lcores(turns.HERE, turns.HERE), *turns.HUGE))
    peer.start()
    return peer


class Pair:
    """One that forwards, and the testpmd that sends and counts; both hold still except in their turn."""

    def __init__(self, row, folder, args):
        path = f'{folder}/{row}'
        forwards = row.startswith('forward')
        self.programs = [Daemon(folder, row, path, args) if forwards else swapper(row, path)]
        try:
            if forwards:
                time.sleep(2.5)  # its addresses are checked for duplicates
            self.sender = testpmd.Testpmd(
                f'net_pcap0,rx_pcap={folder}/flows,infinite_rx=1', 'io',
                eal=(*testpmd.lcores(turns.THERE, turns.THERE), *turns.HUGE,
                     '--vdev', f'net_virtio_user0,path={path}'))
            self.programs.append(self.sender)
            self.sender.start()
            time.sleep(turns.SETTLE_S)
            self.signal(signal.SIGSTOP)
        except BaseException:
            self.kill()
            raise

    def signal(self, which):
        for program in self.programs:
            program.process.send_signal(which)

    def turn(self, seconds):
        """Packets per second that came back."""
        self.signal(signal.SIGCONT)
        time.sleep(turns.SETTLE_S)
        counts, times = [], []
        for _ in range(2):
            counts.append(self.sender.count('RX-packets'))
            times.append(time.monotonic())
            time.sleep(seconds if len(times) == 1 else 0)
        self.signal(signal.SIGSTOP)
        return (counts[1] - counts[0]) / (times[1] - times[0])

    def kill(self):
        self.signal(signal.SIGCONT)
        for program in reversed(self.programs):
            program.kill()


def main():
    turns.unwind_on_term()
    parser = argparse.ArgumentParser(description='Compare the load balancer with testpmd.')
    parser.add_argument('rows', nargs='*', metavar='ROW', help=', '.join(ROWS))
    parser.add_argument('--flows', type=int, default=1, help='flows, one datagram of each in turn (1)')
    parser.add_argument('--ipv6', action='store_true')
    parser.add_argument('--vlan', action='store_true', help='frames have a tag')
    parser.add_argument('--turns', type=int, default=10)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if wrong := set(args.rows) - set(ROWS):
        parser.error(f'no such row: {", ".join(sorted(wrong))}')
    if not 1 <= args.flows <= flows.FRAMES:
        parser.error(f'1 to {flows.FRAMES} flows')
    if os.geteuid() != 0 or not os.path.exists(SLUICED):
        sys.exit('compare-forward.py needs root for hugepages, and a build in build/')
    folder = tempfile.mkdtemp(prefix='sluice-forward')
    try:
        flows.write(f'{folder}/flows', args.flows, args.ipv6, args.vlan)
        rates = turns.take({row: lambda row=row: Pair(row, folder, args) for row in args.rows or ROWS},
                           args.turns)
    finally:
        shutil.rmtree(folder)
    first = next(iter(rates))
    ratios = {f'{row}/{first}': [a / b for a, b in zip(rates[row], rates[first])] for row in list(rates)[1:]}
    turns.report('forward', rates, ratios, args.json)


if __name__ == '__main__':
    main()
