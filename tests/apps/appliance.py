# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""A sluiced beside real neighbours: the daemon, and hosts that ask its services for an echo."""
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ('net', 'drivers/tpacket', 'drivers/pktring', 'drivers/tapvu'):
    sys.path.insert(0, os.path.join(HERE, '..', folder))
import ring_client  # noqa: E402  (the paths come first)
import rig as r  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))
READY = 'ready, control socket'


def until(done, what):
    """What done() returns once that is true."""
    end = time.monotonic() + r.PATIENCE_S
    while not (found := done()):
        if time.monotonic() > end:
            raise RuntimeError(f'{what} does not come')
        time.sleep(0.02)
    return found


class Daemon:
    """A running sluiced; `text` are its sections behind [sluiced]."""

    def __init__(self, rig, ns, programs, text, name=None, options='hugepages = no', ready=True):
        self.rig, self.sluiced, self.sluicectl = rig, *programs
        self.name = name or f'{rig.tag}d'
        self.path = f'{rig.home}/{self.name}.conf'
        with open(self.path, 'w', encoding='ascii') as f:
            f.write(f'[sluiced]\nname = {self.name}\nlcores = {CPUS[-1]}\nidle = backoff\n{options}\n{text}')
        self.log = f'{rig.home}/{self.name}.log'
        with open(self.log, 'wb') as log:
            self.process = rig.run(ns, self.sluiced, self.path, stdout=log, stderr=log)
        if ready:
            until(self.started, 'a ready sluiced')

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()

    def started(self):
        if self.process.poll() is not None:
            raise RuntimeError(f'sluiced ended: {self.said()}')
        return READY in self.said()

    def ctl(self, *command):
        ret = subprocess.run([self.sluicectl, '--name', self.name, '--json', *command], text=True,
                             capture_output=True, check=False, timeout=r.PATIENCE_S)
        assert ret.returncode == 0, f'{command}: {ret.returncode} {ret.stdout} {ret.stderr}'
        return json.loads(ret.stdout)

    def audit(self):
        """Balances; {line: its counts}."""
        lines = {a['name']: a for a in self.ctl('audit')['lines']}
        assert all(a['difference'] == 0 for a in lines.values()), lines
        return lines

    def echoed(self):
        return sum(s['outcomes'].get('echoed', 0) for s in self.ctl('services'))

    def kill(self):
        """As a crash: nothing is taken down in order."""
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        status = self.process.wait(timeout=r.PATIENCE_S)
        said = self.said()
        assert status == 0 and 'did not come back' not in said, f'exit status {status}: {said}'

    def remove(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(f'/var/run/dpdk/sluiced-{self.name}', ignore_errors=True)


def echo(ns, host, port=7, count=20, patience=r.PATIENCE_S):
    """Each datagram of a kernel's socket comes back as it was, or is asked for again (others may share the
    wire and its queues); False if one never does."""
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with r.Rig.inside(ns, family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.2)
        s.connect((host, port))
        for _ in range(count):
            if not ask(s, os.urandom(200), patience):
                return False
    return True


def ask(s, data, patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with contextlib.suppress(OSError):  # nobody there yet, or no answer
            s.send(data)
            while (got := s.recv(2000)) != data:
                assert len(got) == len(data), 'an answer that nobody asked for'
            return True
        time.sleep(0.02)
    return False


def ping(ns, host, count=3):
    text = r.sh('ip', 'netns', 'exec', ns, 'ping', '-c', str(count), '-i', '0.1', '-W', '5', host, check=False)
    assert f' {count} received' in text, text


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class RingHost:
    """A host of IPv4 on a packet ring: it asks for the appliance's MAC address, answers for its own, and its
    datagrams carry no checksum. A client whose server is gone connects anew."""

    def __init__(self, library, path, address, mac, version=2):
        self.lib, self.path, self.version = ring_client.load(library), path, version
        self.mac, self.address = bytes.fromhex(mac), socket.inet_aton(address)
        self.client = None
        self.connect()

    def connect(self):
        def attempt():
            with contextlib.suppress(OSError):
                self.client = ring_client.Client(self.lib, self.path, self.version, 64, 64)
                return True
            return False
        self.close()
        until(attempt, f'a server at {self.path}')

    def close(self):
        if self.client is not None:
            self.client.close()
            self.client = None

    def arp(self, op, mac, address):
        body = struct.pack('!HHBBH', 1, 0x800, 6, 4, op) + self.mac + self.address + mac + address
        to = mac if any(mac) else b'\xff' * 6
        self.client.send((to + self.mac + b'\x08\x06' + body).ljust(60, b'\0'))

    def next(self, patience):
        """The next frame that is not a question after us, which is answered; None if none comes."""
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            frame = self.client.receive(left)
            if frame is None:
                return None
            if frame[12:14] == b'\x08\x06' and frame[20:22] == b'\0\1' and frame[38:42] == self.address:
                self.arp(2, frame[22:28], frame[28:32])
            else:
                return frame
        return None

    def find(self, wanted, patience):
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            frame = self.next(left)
            if frame is not None and wanted(frame):
                return frame
        return None

    def mac_of(self, address):
        self.arp(1, bytes(6), address)
        frame = self.find(lambda f: f[12:14] == b'\x08\x06' and f[20:22] == b'\0\2' and f[28:32] == address, 1)
        return frame[22:28] if frame else None

    def echo(self, host, port=7, count=20):
        to = socket.inet_aton(host)
        mac = until(lambda: self.mac_of(to), f'the MAC address of {host}')
        for _ in range(count):
            data = os.urandom(100)
            ip = struct.pack('!BBHHHBBH', 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0) + self.address + to
            ip = ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:]
            udp = struct.pack('!HHHH', 40000, port, 8 + len(data), 0)
            assert self.client.send(mac + self.mac + b'\x08\0' + ip + udp + data), 'no free slot'
            got = self.find(lambda f: f[12:14] == b'\x08\0' and f[23] == 17, r.PATIENCE_S)
            assert got is not None and got[26:34] == to + self.address and got[42:142] == data, got
