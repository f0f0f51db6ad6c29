#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""A virtio-user frontend of the stock testpmd and a packet-ring client at one daemon, with a UDP service for both.

        stock testpmd, net_virtio_user0,server=1 == [tapvu vm], client = yes   198.18.1.2 --+
        client of libsluice-client               == [pktring ring]             198.18.2.2 --+- service sink, echo
        kernel sockets             wa <-> wb     == [port wan]                 198.18.0.2 --+

The daemon is killed and started again: testpmd has the socket and is found again, the ring client sees that
its server is gone and connects anew.
"""
import os
import shutil
import socket
import struct
import sys
import time

import test_sluiced as base
import wire

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'drivers', 'pktring'))
import ring_client  # noqa: E402  (the path comes first)
import testpmd  # noqa: E402

OUR_MAC = bytes((2, 0, 0, 0, 2, 1))


def conf(bed):
    return base.BASE + f"""[tapvu vm]
path = {bed.folder}/vm
address = 198.18.1.2/24
client = yes
[pktring ring]
path = {bed.folder}/ring
address = 198.18.2.2/24
[service echo]
kind = echo
udp-port = 7
[service sink]
kind = sink
udp-port = 9
"""


def total(data):
    value = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while value >> 16:
        value = (value & 0xffff) + (value >> 16)
    return value ^ 0xffff


def datagram(mac, payload):
    """From 198.18.2.1 to the echo service, UDP checksum left out."""
    ends = socket.inet_aton('198.18.2.1') + socket.inet_aton('198.18.2.2')
    udp = struct.pack('!HHHH', 4000, 7, 8 + len(payload), 0) + payload
    head = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0) + ends
    head = head[:10] + struct.pack('!H', total(head)) + head[12:]
    return mac + OUR_MAC + b'\x08\0' + head + udp


class RingClient:
    """Connects again when its server is gone."""

    def __init__(self, lib, path):
        self.lib, self.path, self.client, self.connects = lib, path, None, 0

    def connected(self):
        end = time.monotonic() + wire.PATIENCE_S
        while self.client is None or self.lib.sl_client_gone(self.client.handle):
            assert time.monotonic() < end, 'no server'
            try:
                self.client = ring_client.Client(self.lib, self.path, 2, tx=64, rx=64, frame_size=2048)
                self.connects += 1
            except OSError:
                time.sleep(0.02)
        return self.client

    def echo(self, payload):
        """Send a datagram to the service until its answer comes: frames of a server that goes are lost."""
        end = time.monotonic() + wire.PATIENCE_S
        while time.monotonic() < end:
            client = self.connected()
            mac = bytes(client.info.mac)
            ask = struct.pack('!HHBBH', 1, 0x800, 6, 4, 1) + OUR_MAC + socket.inet_aton('198.18.2.1') + bytes(6)
            client.send(b'\xff' * 6 + OUR_MAC + b'\x08\x06' + ask + socket.inet_aton('198.18.2.2') + bytes(18))
            client.send(datagram(mac, payload))
            late = time.monotonic() + 0.3
            while (frame := client.receive(max(0, late - time.monotonic()))) is not None:
                if frame[12:14] == b'\x08\0' and frame[42:42 + len(payload)] == payload:
                    return frame
        raise AssertionError('no answer')


def check_all(cases, what, bed, daemon, ring):
    with cases(f'{what}: testpmd\'s datagrams arrive at the service'):
        before = daemon.service('sink')['received']
        answer = daemon.until(lambda a: a[1]['received'] > before + 1000, 'services')
        assert answer[1]['received'] > before + 1000, answer
    with cases(f'{what}: the ring client is answered, and so are kernel sockets'):
        for size in (1, 100, 1400):
            payload = os.urandom(size)
            frame = ring.echo(payload)
            assert frame[:6] == OUR_MAC and frame[26:34] == socket.inet_aton('198.18.2.2') + \
                socket.inet_aton('198.18.2.1'), frame.hex()
        with bed.udp() as s:
            s.sendto(b'kernel', (base.V4, 7))
            assert s.recv(100) == b'kernel'
    with cases(f'{what}: the ports are up, and everything is accounted for'):
        ports = {p['name']: p for p in daemon.ctl('ports')}
        assert ports['vm']['link'] == ports['ring']['link'] == ports['wan']['link'] == 'up', ports
        daemon.audit()


def run(cases, library):
    bed = base.Bed(*sys.argv[1:3])
    text = conf(bed)
    daemon = base.Daemon(bed, text)
    mac = next(p['mac'] for p in daemon.ctl('ports') if p['name'] == 'vm')
    ring = RingClient(ring_client.load(library), f'{bed.folder}/ring')
    # It waits for the daemon, which tries again and again. Slow enough for a machine with one processor.
    pmd = testpmd.Testpmd(f'net_virtio_user0,path={bed.folder}/vm,server=1', 'txonly', f'--eth-peer=0,{mac}',
                          '--tx-ip=198.18.1.1,198.18.1.2', '--tx-udp=4000,9')
    bed.probes.append(pmd)
    pmd.start()
    check_all(cases, 'at first', bed, daemon, ring)
    daemon.process.kill()
    daemon.process.wait()
    daemon = base.Daemon(bed, text)
    check_all(cases, 'killed and started again', bed, daemon, ring)
    with cases('the client connected twice, and testpmd was left alone'):
        assert ring.connects == 2 and pmd.process.poll() is None
    pmd.end()
    daemon.end()


def main():
    cases = wire.Cases()
    if os.geteuid() != 0 or shutil.which(testpmd.PROGRAM) is None:
        cases.skip('all', 'needs root for network namespaces, and dpdk-testpmd')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    with cases('the script runs to its end'):
        run(cases, sys.argv[3])
    sys.exit(cases.finish())


if __name__ == '__main__':
    main()
