# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""An interactive, unmodified dpdk-testpmd at the other end of a port."""
import os
import re
import select
import shutil
import subprocess
import time

import wire

PROGRAM = 'dpdk-testpmd'
# A forwarding lcore beside the main one; with one CPU they share it.
CPUS = sorted(os.sched_getaffinity(0))
NO_HUGE = ('--no-huge', '-m', '256')


def lcores(main, other):
    return '--lcores', f'0@{main},1@{other}'


CORES = lcores(CPUS[0], CPUS[-1])


class Testpmd:
    """`vdev` is its port, `eal` says where it runs and from which memory."""
    serial = 0

    def __init__(self, vdev, mode, *options, eal=(*CORES, *NO_HUGE)):
        Testpmd.serial += 1
        self.prefix = f'testpmd{os.getpid()}-{Testpmd.serial}'
        self.process = subprocess.Popen(
            # Without buffer, or it says nothing into a pipe until it ends.
            ['stdbuf', '-o0', PROGRAM, *eal, '--no-pci', '--no-telemetry', '--file-prefix', self.prefix,
             '--vdev', vdev, '--', '-i', f'--forward-mode={mode}', '--no-mlockall',
             # Another thread would print events into the middle of a prompt, or behind it.
             '--total-num-mbufs=16384', '--mask-event=all', *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = self.log = ''
        self.read_until(r'testpmd> $')

    def read_until(self, pattern):
        """Wait for it; what was printed up to there is then forgotten."""
        end = time.monotonic() + wire.PATIENCE_S
        while not (match := re.search(pattern, self.output)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'testpmd does not print {pattern}: {self.log[-4000:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'testpmd ended: {self.log[-4000:]}')
            self.output += data.decode(errors='replace')
            self.log += data.decode(errors='replace')
        self.output = self.output[match.end():]
        return match

    def say(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def start(self):
        self.say('start')
        self.read_until(r'packets/burst')

    def stop(self):
        self.say('stop')
        self.read_until(r'Done\.')

    def count(self, which):
        """A counter of its port: RX-packets, TX-packets ..."""
        self.say('show port stats 0')
        found = self.read_until(r'NIC statistics for port 0[\s\S]*?' + which + r':\s*(\d+)')
        self.read_until(r'####\s')
        return int(found.group(1))

    def end(self):
        """Ask it to quit, and see that it does."""
        if self.process.poll() is None:
            self.say('quit')
            try:
                self.process.communicate(timeout=wire.PATIENCE_S)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        shutil.rmtree(f'/var/run/dpdk/{self.prefix}', ignore_errors=True)
