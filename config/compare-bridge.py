#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Compare the ways of a virtual machine to the host's kernel: TCP in bulk; root, QEMU, iperf3.

    config/compare-bridge.py [--turns N] [--seconds S] [--json] [WAY ...]

    guest: eth0 (virtio_net) == net_tapvu,tap=st0 in testpmd --------- st0 -- kernel of a namespace
           eth1 (virtio_net) == net_vhost, net_tap in testpmd io ----- nt0 -- the same kernel

One Linux guest under QEMU, without KVM, has a port on each; its driver negotiates what each backend
offers. `bridge` is ours. `net_tap` is the stock way: net_vhost as it comes, with checksum offload, and
net_tap, which takes no frame that is longer than the MTU. Both backends poll on the same core, the guest
has the other one; only the backend whose turn it is runs. Turns alternate, each sends for S seconds from
the guest (`out`), then to it (`in`). A figure is the median of its turns, a ratio the median of ratios of
neighbours. Needs a build in build/.
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
sys.path.insert(0, os.path.join(TOP, 'tests', 'drivers', 'tapvu'))
import test_bridge as bed  # noqa: E402  (the path comes first)
import test_guest as vm  # noqa: E402
import turns  # noqa: E402

PLUGIN = os.path.abspath(os.path.join(TOP, 'build', 'drivers', 'librte_net_tapvu.so'))
WAYS = ('bridge', 'net_tap')
MODULES = ' '.join(vm.MODULES)
SETTLE_S = 0.3

# The guest does what it is told on its console, one line at a time.
INIT = f'''#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in {MODULES}; do insmod /$m.ko; done
ip link set lo up
stty -echo
echo "READY"
while read -r line; do eval "$line"; done
'''


class Guest:
    def __init__(self, image, ports):
        self.process = subprocess.Popen(vm.machine(image, [(p, '') for p in ports]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.sched_setaffinity(self.process.pid, {bed.CPUS[-1]})
        self.output = ''
        self.read_until('READY')

    def read_until(self, mark):
        end = time.monotonic() + vm.PATIENCE_S
        while mark not in self.output:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'the guest does not say {mark}: {self.output[-800:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'the guest ended: {self.output[-800:]}')
            self.output += data.decode(errors='replace')
        text, self.output = self.output.split(mark, 1)
        return text

    def ask(self, command):
        self.process.stdin.write(f'{command}; echo "DO""NE"\n'.encode())
        self.process.stdin.flush()
        return self.read_until('DONE')


def backend(way, path):
    """A backend, and its interface."""
    if way == 'bridge':
        return bed.backend(PLUGIN, path, ',tap=st0'), 'st0'
    return bed.Testpmd(bed.A, 0, 'stock', f'--vdev=net_vhost0,iface={path}', '--vdev=net_tap0,iface=nt0', '--',
                       '--forward-mode=io', '--auto-start'), 'nt0'


class Rig:
    """All backends, one guest, and servers in the host's namespace."""

    def __init__(self, ways):
        self.ways = list(ways)
        self.back, self.guest, self.servers = {}, None, []

    def start(self, folder):
        ways = self.ways
        paths = [f'{folder}/{way}' for way in ways]
        for i, (way, path) in enumerate(zip(ways, paths)):
            self.back[way], interface = backend(way, path)
            bed.address(bed.A, interface, f'198.18.{20 + i}.1/24')
        for i in range(len(ways)):
            self.servers.append(subprocess.Popen(
                ['ip', 'netns', 'exec', bed.A, 'iperf3', '-s', '-B', f'198.18.{20 + i}.1'],
                stdout=subprocess.DEVNULL))
        image = vm.initramfs(folder, vm.kernel()[1], INIT, ['iperf3'])
        self.guest = Guest(image, paths)
        for i, way in enumerate(ways):
            self.guest.ask(f'ip addr add 198.18.{20 + i}.2/24 dev eth{i}; ip link set eth{i} up')
            text = self.guest.ask(f'for i in $(seq 50); do ping -c 1 -W 1 198.18.{20 + i}.1 && break; done')
            if '1 packets received' not in text:
                raise RuntimeError(f'{way}: no answer: {text[-500:]}')
        for pmd in self.back.values():
            pmd.process.send_signal(signal.SIGSTOP)

    def turn(self, way, seconds):
        """{direction: Mbit/s that arrived}."""
        pmd, address = self.back[way].process, f'198.18.{20 + self.ways.index(way)}.1'
        pmd.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        rates = {}
        for direction, option in (('out', ''), ('in', '-R')):
            text = self.guest.ask(f'iperf3 -c {address} -t {seconds} -f m -i 0 {option}')
            found = re.search(r'([\d.]+) Mbits/sec\s+receiver', text)
            if found is None:
                raise RuntimeError(f'{way} {direction}: {text[-800:]}')
            rates[direction] = float(found.group(1))
        pmd.send_signal(signal.SIGSTOP)
        return rates

    def close(self):
        if self.guest is not None:
            self.guest.process.kill()
            self.guest.process.wait()
        for server in self.servers:
            server.kill()
            server.wait()
        for pmd in self.back.values():
            pmd.process.send_signal(signal.SIGCONT)
            pmd.quit()


def measure(ways, count, seconds):
    folder = tempfile.mkdtemp(prefix='sluice-bridge')
    rates = {(way, direction): [] for direction in ('out', 'in') for way in ways}
    rig = Rig(ways)
    bed.cleanup()
    try:
        bed.setup()
        rig.start(folder)
        for _ in range(count):
            for way in ways:
                for direction, rate in rig.turn(way, seconds).items():
                    rates[way, direction].append(rate)
    finally:
        rig.close()
        bed.cleanup()
        shutil.rmtree(folder)
    return rates


def main():
    turns.unwind_on_term()
    parser = argparse.ArgumentParser(description='Compare ways from a guest to the kernel: TCP in bulk.')
    parser.add_argument('ways', nargs='*', metavar='WAY', help=', '.join(WAYS))
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=1, help='of each direction of a turn')
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if wrong := set(args.ways) - set(WAYS):
        parser.error(f'no such way: {", ".join(sorted(wrong))}')
    if os.geteuid() != 0 or not os.path.exists(PLUGIN):
        sys.exit('compare-bridge.py needs root for namespaces, and a build in build/')
    if why := vm.missing() or (None if shutil.which('iperf3') else 'no iperf3'):
        sys.exit(f'compare-bridge.py: {why}')
    bed.end_in_order()
    rates = measure(args.ways or WAYS, args.turns, args.seconds)
    first = (args.ways or WAYS)[0]
    ratios = {f'{first}/{way} {direction}': [a / b for a, b in zip(rates[first, direction], row)]
              for (way, direction), row in rates.items() if way != first}
    turns.report('bridge', {f'{way} {direction}': row for (way, direction), row in rates.items()}, ratios,
                 args.json, unit='Mbit/s')


if __name__ == '__main__':
    main()
