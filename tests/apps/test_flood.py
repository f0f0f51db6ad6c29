#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluice-udp-flood from kernel sockets and from an lcore, received by kernel sockets and by the sink."""
import json
import signal
import socket
import subprocess
import time

import apps
from apps import ADDR4, ADDR6, V4, V6

HEADER = 16


def listen(bed, ns, family=socket.AF_INET, port=9):
    s = bed.socket(ns, family, socket.SOCK_DGRAM, 0)
    s.setsockopt(socket.SOL_SOCKET, apps.wire.SO_RCVBUFFORCE, 1 << 24)
    s.bind(('', port))
    s.settimeout(apps.PATIENCE_S)
    return s


def lcore(bed, *options):
    """Send from an lcore in B to the kernel of A."""
    out = bed.in_b(bed.flood_path, '--iface', 'wb', '--json', *options)
    return json.loads(out)


def numbers(data):
    assert data[:2] == b'\x51\xce', data
    flow, sequence = int.from_bytes(data[2:4], 'big'), int.from_bytes(data[4:8], 'big')
    assert data[HEADER:] == bytes((sequence + i) & 255 for i in range(HEADER, len(data))), data
    return flow, sequence


def expect(s, count, flows, size, first=0):
    """The next `count` datagrams: each flow from a port of its own, numbered from 0, in order."""
    ports, following = {}, {}
    for _ in range(count):
        data, peer = s.recvfrom(2048)
        assert len(data) == size, len(data)
        flow, sequence = numbers(data)
        assert ports.setdefault(flow, peer[1]) == peer[1]
        assert following.get(flow, 0) == sequence, (flow, sequence)
        following[flow] = sequence + 1
    assert sorted(ports) == list(range(first, first + flows)), ports
    assert len(set(ports.values())) == flows, ports
    s.setblocking(False)
    try:
        raise AssertionError(f'one more: {s.recv(2048)}')
    except BlockingIOError:
        s.settimeout(apps.PATIENCE_S)
    return sorted(ports.values())


def case_kernel(cases, bed):
    with cases('--kernel: exact counts, sizes, flows and numbers'):
        s = listen(bed, bed.a)
        row = bed.flood('--count', '1000', '--flows', '7', '--size', '100', '--check',
                        '--first-flow', '40', '--batch', '9', to='198.18.0.1')
        assert row['count'] == 1000 and row['payload'] == 100 and row['flows'] == 7, row
        expect(s, 1000, 7, 100, 40)
    with cases('--kernel --source-port --addr: the flows\' ports count up'):
        row = bed.flood('--count', '20', '--flows', '4', '--check', '--source-port', '5000',
                        '--addr', '198.18.0.1/24', '--batch', '1', to='198.18.0.1')
        assert expect(s, 20, 4, 18) == [5000, 5001, 5002, 5003]
    with cases('--kernel --rate --duration: in time'):
        row = bed.flood('--duration', '1', '--rate', '2000', '--check', to='198.18.0.1')
        assert 1000 < row['count'] <= 2100, row
        expect(s, row['count'], 1, 18)
        s.close()
    with cases('--kernel over IPv6, and --ipv6 to an IPv4 address'):
        s = listen(bed, bed.a, socket.AF_INET6)
        bed.flood('--count', '50', '--check', to='2001:db8::1')
        expect(s, 50, 1, 18)
        bed.flood('--count', '50', '--check', '--ipv6', to='198.18.0.1')
        expect(s, 50, 1, 18)
        s.close()
    with cases('--kernel: a closed port is reported, and the count is still exact'):
        row = bed.flood('--count', '100', '--rate', '500', '--batch', '1', to='198.18.0.1')
        assert row['count'] == 100 and row['unreachable'] > 0, row


def case_lcore(cases, bed):
    with cases('from an lcore to a kernel socket: exact, also the first one, which waits for ARP'):
        s = listen(bed, bed.a)
        bed.in_a('ip', 'neigh', 'flush', 'dev', 'wa')
        row = lcore(bed, *ADDR4, '--to', '198.18.0.1', '--count', '5000', '--flows', '5', '--check',
                    '--size', '64')
        assert row['count'] == 5000 and row['drops'] == {}, row
        expect(s, 5000, 5, 64)
        s.close()
    with cases('from an lcore over IPv6'):
        s = listen(bed, bed.a, socket.AF_INET6)
        row = lcore(bed, *ADDR6, '--to', '2001:db8::1', '--count', '1000', '--check', '--size',
                    '1452')
        assert row['count'] == 1000 and row['drops'] == {}, row
        expect(s, 1000, 1, 1452)
        s.close()
    with cases('from an lcore through a gateway'):
        bed.in_a('ip', 'addr', 'add', '203.0.113.1/32', 'dev', 'lo')
        s = listen(bed, bed.a)
        lcore(bed, *ADDR4, '--to', '203.0.113.1', '--gateway', '198.18.0.1', '--count', '10',
              '--check')
        expect(s, 10, 1, 18)
        s.close()
    with cases('from an lcore, --rate --duration: in time'):
        s = listen(bed, bed.a)
        row = lcore(bed, *ADDR4, '--to', '198.18.0.1', '--duration', '1', '--rate', '2000',
                    '--check')
        assert 1000 < row['count'] <= 2100, row
        expect(s, row['count'], 1, 18)
        s.close()


def case_both(cases, bed):
    for to, addr, own in ((V4, ADDR4, ['--addr', '198.18.0.9/24']),
                          (V6, ADDR6, ['--addr', '2001:db8::9/64'])):
        with cases(f'lcore to lcore: {to}'):
            sink = bed.sink('--ipv6', '--check', '--recvmmsg', '--count', '20000', '--duration', '20',
                            addr=ADDR4 + ADDR6)
            # The kernel of A has an address of its own on wa; the sender takes another one.
            row = json.loads(bed.in_a(bed.flood_path, '--iface', 'wa', *own, '--to', to, '--json',
                                      '--count', '20000', '--flows', '8', '--check', '--rate',
                                      '20000'))
            assert row['count'] == 20000 and row['drops'] == {}, row
            got = sink.row()
            assert got['count'] == 20000, got
            check = got['check']
            assert (check['flows'], check['lost'], check['reordered']) == (8, 0, 0), check


def wire_packets(bed):
    link = json.loads(apps.wire.sh('ip', '-j', '-s', '-n', bed.a, 'link', 'show', 'wa'))[0]
    return link['stats64']['tx']['packets']


def case_signal(cases, bed):
    with cases('SIGINT ends the run and prints the row'):
        for where in (['--kernel'], ['--iface', 'wa', '--addr', '198.18.0.9/24']):
            sink = bed.sink('--count', '100M', '--recvmmsg')
            before = wire_packets(bed)
            process = subprocess.Popen(['ip', 'netns', 'exec', bed.a, bed.flood_path, *where, '--to',
                                        V4, '--json', '--duration', '600', '--rate', '1000'],
                                       stdout=subprocess.PIPE)
            while wire_packets(bed) < before + 200:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            row = json.loads(process.communicate(timeout=apps.PATIENCE_S)[0])
            assert process.returncode == 0 and row['count'] > 0, row
            sink.interrupt()
            sink.finish()


def run(cases, bed):
    case_kernel(cases, bed)
    case_lcore(cases, bed)
    case_both(cases, bed)
    case_signal(cases, bed)
    with cases('nothing is left in the file system'):
        assert apps.leftovers() == [], apps.leftovers()


if __name__ == '__main__':
    apps.main(run)
