#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare the load balancer with testpmd that only forwards, on one core each; root, hugepages.

    config/compare-forward.py [--turns N] [--json] [ROW ...]

    macswap         testpmd macswap on net_vhost: what a port can do when packets are hardly looked at
    5tswap          testpmd 5tswap: it also reads the headers, and writes addresses and ports
    forward         sluiced with a service of kind = forward and three back ends, affinity = flow
    forward-none    the same with affinity = none: no flow table

A stock testpmd on another core sends UDP of 64 octets over virtio-user (flowgen, one flow) and takes
what comes back by the same port; that is what is counted. So each receives, decides, rewrites, and sends
every datagram. All are there at once and take short turns, while the others are stopped: the wire's speed
changes within seconds with what else the machine does, so only neighbours can be compared. A figure is
the median of its turns, a ratio the median of the ratios of neighbours. Needs a build in build/.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import turns
from turns import testpmd

SLUICED = os.path.join(turns.TOP, 'build', 'apps', 'sluiced')
ROWS = ('macswap', '5tswap', 'forward', 'forward-none')
# Where flowgen's only flow goes to; on the same prefix as its source and the back ends.
CONF = '''[sluiced]
name = {name}
lcores = {cpu}
memory = 256
hugepages = yes
idle = poll
[port wire]
devargs = net_vhost0,iface={path}
address = 10.253.0.0/8
promiscuous = yes
[backend a]
address = 10.1.0.1
udp-port = 2000
[backend b]
address = 10.1.0.2
udp-port = 2000
[backend c]
address = 10.1.0.3
udp-port = 2000
[service lb]
kind = forward
address = 10.253.0.0
udp-port = 1001
backends = a b c
affinity = {affinity}
check = none
'''


class Daemon:
    """sluiced on this side of the wire."""

    def __init__(self, folder, row, path):
        self.name = f'slcmp{os.getpid()}{row}'
        conf = f'{folder}/{row}.conf'
        with open(conf, 'w', encoding='ascii') as f:
            f.write(CONF.format(name=self.name, cpu=turns.HERE, path=path,
                                affinity='none' if row == 'forward-none' else 'flow'))
        self.log = open(f'{folder}/{row}.log', 'w+', encoding='utf-8')
        self.process = subprocess.Popen([SLUICED, conf], stdout=self.log, stderr=self.log)
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

    def __init__(self, row, folder):
        path = f'{folder}/{row}'
        forwards = row.startswith('forward')
        self.programs = [Daemon(folder, row, path) if forwards else swapper(row, path)]
        try:
            self.sender = testpmd.Testpmd(
                f'net_virtio_user0,path={path}', 'flowgen', '--flowgen-flows=1', '--txpkts=64',
                '--port-topology=loop', eal=(*testpmd.lcores(turns.THERE, turns.THERE), *turns.HUGE))
            self.programs.append(self.sender)
            if forwards:
                self.meet()
            self.sender.start()
            time.sleep(turns.SETTLE_S)
            self.signal(signal.SIGSTOP)
        except BaseException:
            self.kill()
            raise

    def meet(self):
        """The daemon asks for its back ends when it has something for them; flowgen does not answer."""
        time.sleep(2.5)  # its addresses are checked for duplicates
        for mode, seconds in (('flowgen', 0.3), ('icmpecho', 1.5), ('flowgen', 0)):
            self.sender.say(f'set fwd {mode}')
            if seconds:
                self.sender.start()
                time.sleep(seconds)
                self.sender.stop()

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
    # A neighbour that was heard of is good for half a minute: all turns are over by then.
    parser.add_argument('--turns', type=int, default=10)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if wrong := set(args.rows) - set(ROWS):
        parser.error(f'no such row: {", ".join(sorted(wrong))}')
    if os.geteuid() != 0 or not os.path.exists(SLUICED):
        sys.exit('compare-forward.py needs root for hugepages, and a build in build/')
    folder = tempfile.mkdtemp(prefix='sluice-forward')
    try:
        rates = turns.take({row: lambda row=row: Pair(row, folder) for row in args.rows or ROWS},
                           args.turns)
    finally:
        shutil.rmtree(folder)
    first = next(iter(rates))
    ratios = {f'{row}/{first}': [a / b for a, b in zip(rates[row], rates[first])] for row in list(rates)[1:]}
    turns.report('forward', rates, ratios, args.json)


if __name__ == '__main__':
    main()
