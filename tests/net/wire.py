# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""What the net tests share: namespaces with a wire between them, the probe, and cases.

        namespace A                        namespace B
        [host kernel, Scapy]               [inet_probe; its kernel is silent]
               wa  <-------- veth -------->  wb

The kernel of B has no address, no IPv6 and forwards nothing, so all answers are the probe's.
"""
import atexit
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

ETH_P_ALL = 3
PACKET_IGNORE_OUTGOING = 23
SOL_PACKET = 263
SO_RCVBUFFORCE = 33
PATIENCE_S = 30  # only ever waited out when something is broken
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(*command, check=True):
    ret = subprocess.run(command, text=True, capture_output=True, check=False)
    if check and ret.returncode:
        raise RuntimeError(f'{" ".join(command)}: {ret.stderr.strip()} {ret.stdout.strip()}')
    return ret.stdout


def inside(ns, make):
    """What make() returns when it is called in namespace ns; a socket made there stays there."""
    home = os.open('/proc/self/ns/net', os.O_RDONLY)
    there = os.open(f'/run/netns/{ns}', os.O_RDONLY)
    try:
        if LIBC.setns(there, 0) != 0:
            raise OSError(ctypes.get_errno(), 'setns')
        return make()
    finally:
        if LIBC.setns(home, 0) != 0:
            os._exit(1)  # lost in a foreign namespace: nothing sensible can follow
        os.close(home)
        os.close(there)


def mac(ns, dev):
    return json.loads(sh('ip', '-j', '-n', ns, 'link', 'show', dev))[0]['address']


class Wire:
    """Two namespaces, and veth wa - wb between them. Taken down at exit, also after a signal."""

    def __init__(self, ipv6_a=False):
        self.a, self.b = f'slA{os.getpid()}', f'slB{os.getpid()}'
        self.probes = []
        atexit.register(self.close)
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(sig, lambda *_: sys.exit(130))
        for ns, ipv6 in ((self.a, ipv6_a), (self.b, False)):
            sh('ip', 'netns', 'add', ns)
            for scope in ('default', 'all', 'lo'):
                self.sysctl(ns, f'net.ipv6.conf.{scope}.disable_ipv6', 0 if ipv6 else 1)
            # Solicitations of routers would be frames that no test has sent.
            self.sysctl(ns, 'net.ipv6.conf.default.accept_ra', 0)
            sh('ip', '-n', ns, 'link', 'set', 'lo', 'up')
        sh('ip', '-n', self.a, 'link', 'add', 'wa', 'type', 'veth', 'peer', 'name', 'wb',
           'netns', self.b)
        sh('ip', '-n', self.b, 'link', 'set', 'wb', 'arp', 'off')
        sh('ip', '-n', self.b, 'link', 'set', 'wb', 'up')
        sh('ip', '-n', self.a, 'link', 'set', 'wa', 'up')
        # What waits for an answer to ARP from a program that has no processor is not to be lost: the
        # kernel's own bound is a few hundred datagrams, and what it drops is in no counter of theirs.
        for family in ('ipv4', 'ipv6'):
            self.sysctl(self.a, f'net.{family}.neigh.wa.unres_qlen_bytes', 64 << 20)

    @staticmethod
    def sysctl(ns, name, value):
        sh('ip', 'netns', 'exec', ns, 'sysctl', '-qw', f'{name}={value}')

    def close(self):
        for probe in self.probes:
            probe.kill()
        self.probes.clear()
        for ns in (self.a, self.b):
            sh('ip', 'netns', 'del', ns, check=False)

    @staticmethod
    def mac(ns, dev):
        return mac(ns, dev)

    def in_a(self, *command, check=True):
        return sh('ip', 'netns', 'exec', self.a, *command, check=check)

    @staticmethod
    def socket(ns, *args):
        """A socket of namespace ns; it stays there."""
        return inside(ns, lambda: socket.socket(*args))

    def link(self, ns, dev):
        return Link(self, ns, dev)


class Link:
    """Raw frames on one interface."""

    def __init__(self, wire, ns, dev):
        self.sock = wire.socket(ns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        self.sock.bind((dev, ETH_P_ALL))

    def send(self, frame):
        self.sock.send(frame)

    def drain(self):
        """What has come so far."""
        frames = []
        self.sock.setblocking(False)
        try:
            while True:
                frames.append(self.sock.recv(65536))
        except BlockingIOError:
            return frames

    def take(self, n, wanted):
        """The first n frames for which wanted(frame) is true, as far as they come, and what else is there."""
        frames = []
        while len(frames) < n and (frame := self.wait_for(wanted)) is not None:
            frames.append(frame)
        return frames + [frame for frame in self.drain() if wanted(frame)]

    def wait_for(self, wanted, patience=PATIENCE_S):
        """The first frame for which wanted(frame) is true, or None."""
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            if select.select([self.sock], [], [], left)[0]:
                frame = self.sock.recv(65536)
                if wanted(frame):
                    return frame
        return None


class Probe:
    """The program under test; ask() gives it a command and returns what it answers."""

    def __init__(self, wire, path, *options, ns=None):
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', ns or wire.b, path, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wire.probes.append(self)
        self.buffer = b''
        self.answer()

    def answer(self):
        end = time.monotonic() + PATIENCE_S
        while b'\n' not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError('the probe does not answer')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'the probe ended with status {self.process.wait()}')
            self.buffer += data
        line, self.buffer = self.buffer.split(b'\n', 1)
        return json.loads(line)

    def ask(self, command):
        self.process.stdin.write(command.encode() + b'\n')
        self.process.stdin.flush()
        return self.answer()

    def outcomes(self):
        return self.ask('outcomes')

    def until(self, done, command='outcomes'):
        """Ask again until done(answer); the last answer in any case."""
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask(command)
            if done(answer) or time.monotonic() > end:
                return answer
            time.sleep(0.002)

    def until_received(self, n):
        return self.until(lambda o: o['received'] >= n)

    def quit(self):
        """Take it down in order: (mbufs that did not come back, exit status)."""
        answer = self.ask('quit')
        return answer['mbufs_missing'], self.process.wait(timeout=PATIENCE_S)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        # What EAL leaves of a killed process.
        shutil.rmtree(f'/var/run/dpdk/probe-{self.process.pid}', ignore_errors=True)


class Cases:
    """Counts cases; use as `with cases('name'): assert ...`."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.name = None

    def __call__(self, name):
        self.name = name
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.passed += 1
            print('ok  ', self.name)
        elif issubclass(kind, (AssertionError, RuntimeError, OSError)):
            self.failed += 1
            print('FAIL', f'{self.name}: {value or "line %d" % trace.tb_lineno}')
        else:
            return False
        sys.stdout.flush()
        return True

    def skip(self, name, why):
        self.skipped += 1
        print('SKIP', f'{name}: {why}')

    def finish(self):
        print(f'{self.passed} passed, {self.failed} failed, {self.skipped} skipped', flush=True)
        return 1 if self.failed or not self.passed else 0


def main(run):
    """Run a script's tests with the probe that its first argument names."""
    cases = Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    with cases('the script runs to its end'):
        run(cases, sys.argv[1])
    sys.exit(cases.finish())


def check_sums(outcomes):
    """Every received packet has one outcome, or is a fragment that is held."""
    total = sum(outcomes['rx'].values()) + outcomes['held']
    assert total == outcomes['received'], f'{total} outcomes for {outcomes["received"]} packets'


def changed(before, after):
    """Outcomes that counted since: {name: n}."""
    return {name: after[half][name] - before[half][name] for half in ('rx', 'tx')
            for name in after[half] if after[half][name] != before[half][name]}
