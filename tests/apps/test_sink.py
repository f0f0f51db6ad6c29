#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Each option of sluice-udp-sink does what it says, seen from kernel senders."""
import signal
import socket
import struct
import time

import apps
from apps import ADDR4, ADDR6, V4, V6

PORT = 9


def sender(bed, family=socket.AF_INET):
    return bed.socket(bed.a, family, socket.SOCK_DGRAM, 0)


def case_port(cases, bed):
    with cases('--port: that port alone receives, another one is unreachable'):
        sink = bed.sink('--port', '7777', '--recvmsg', '--count', '50')
        refused = bed.flood('--port', '7778', '--count', '100', '--rate', '200', '--batch', '1')
        bed.flood('--port', '7777', '--count', '50')
        row = sink.row()
        assert row['count'] == 50 and row['drops']['udp_no_socket'] == 100, row
        assert refused['unreachable'] > 0, refused


def case_ipv6(cases, bed):
    with cases('--ipv6: one socket receives IPv6 and IPv4'):
        sink = bed.sink('--ipv6', '--recvmmsg', '--count', '200', addr=ADDR4 + ADDR6)
        bed.flood('--count', '100')
        bed.flood('--count', '100', to=V6)
        assert sink.row()['count'] == 200
    with cases('without --ipv6 the socket is an IPv4 one'):
        sink = bed.sink('--recvmmsg', '--count', '100', addr=ADDR4 + ADDR6)
        bed.flood('--count', '30', to=V6)
        bed.flood('--count', '100')
        row = sink.row()
        assert row['count'] == 100 and row['drops']['udp_no_socket'] == 30, row


def case_connect(cases, bed):
    with cases('--connect=ADDR:PORT: that peer alone is received'):
        sink = bed.sink('--connect=198.18.0.1:5555', '--recvfrom', '--count', '40')
        bed.flood('--source-port', '6666', '--count', '15')
        bed.flood('--source-port', '5555', '--count', '40')
        row = sink.row()
        assert row['count'] == 40 and row['drops']['udp_no_socket'] == 15, row
    with cases('--connect=[ADDR]:PORT: likewise over IPv6'):
        sink = bed.sink('--ipv6', '--connect=[2001:db8::1]:5555', '--read', '--count', '40',
                        addr=ADDR6)
        bed.flood('--source-port', '6666', '--count', '15', to=V6)
        bed.flood('--source-port', '5555', '--count', '40', to=V6)
        row = sink.row()
        assert row['count'] == 40 and row['drops']['udp_no_socket'] == 15, row
    with cases('--connect: the first sender is the peer, and its first datagram is not lost'):
        sink = bed.sink('--connect', '--recvmsg', '--count', '40')
        first, second = sender(bed), sender(bed)
        first.sendto(b'hello', (V4, PORT))
        sink.wait_for(b'connected')
        for _ in range(39):
            second.sendto(b'other', (V4, PORT))
            first.sendto(b'hello', (V4, PORT))
        row = sink.row()
        assert row['count'] == 40 and row['drops']['udp_no_socket'] == 39, row
        assert row['payload'] == 5.0, row


def case_calls_taken(cases, bed):
    with cases('recvmmsg fills its batch'):
        sink = bed.sink('--recvmmsg', '--count', '64', '--batch', '16')
        sink.interrupt(signal.SIGSTOP)
        bed.flood('--count', '64')
        sink.interrupt(signal.SIGCONT)
        row = sink.row()
        assert row['count'] == 64 and row['batch'] == 16 and row['calls'] == 4, row
    with cases('--waitforone: it returns with what is there'):
        sink = bed.sink('--recvmmsg', '--count', '10', '--batch', '16', '--waitforone')
        s = sender(bed)
        for _ in range(9):
            s.sendto(b'one', (V4, PORT))
            # When this is answered, the datagram has been seen.
            bed.in_a('ping', '-c', '1', '-W', '5', V4)
        s.sendto(b'one', (V4, PORT))
        row = sink.row()
        assert row['count'] == 10 and row['calls'] == 10, row
    with cases('--timeout: each call ends when its time is over'):
        calls = []
        for options in (['--timeout', '5'], []):
            sink = bed.sink('--recvmmsg', '--count', '10', '--batch', '16', *options)
            s = sender(bed)
            for _ in range(10):
                s.sendto(b'one', (V4, PORT))
                time.sleep(0.03)  # more than that time, less than the 50 ms of SO_RCVTIMEO
            row = sink.row()
            assert row['count'] == 10, row
            calls.append(row['calls'])
        assert calls[0] > calls[1], calls
    with cases('--dontwait: calls come back empty-handed and the sink goes on'):
        sink = bed.sink('--recvmmsg', '--recvmsg', '--recvfrom', '--burst', '--dontwait', '--count',
                        '30')
        bed.flood('--count', '120', '--rate', '5000', '--batch', '1')
        rows = sink.finish()
        assert [r['count'] for r in rows] == [30] * 4, rows


def case_payload(cases, bed):
    with cases('--touch: every byte of every datagram is read'):
        for call in ('--recvmmsg', '--recvmsg', '--recvfrom', '--read', '--burst'):
            sink = bed.sink(call, '--touch', '--count', '10')
            s = sender(bed)
            for i in range(10):
                s.sendto(bytes([i] * 100), (V4, PORT))
            row = sink.row()
            assert row['touch_sum'] == 100 * sum(range(10)) and row['payload'] == 100.0, row
    with cases('payloads of 0, 1 and 1472 bytes'):
        sink = bed.sink('--recvmsg', '--touch', '--count', '3')
        s = sender(bed)
        for n in (0, 1, 1472):
            s.sendto(b'\1' * n, (V4, PORT))
        row = sink.row()
        assert row['touch_sum'] == 1473 and row['payload'] == 491.0, row


def case_fragments(cases, bed):
    with cases('datagrams of 9000 bytes come in fragments, and arrive as datagrams'):
        for call in ('--recvmmsg', '--recvmsg', '--read', '--burst'):
            sink = bed.sink(call, '--touch', '--ipv6', '--count', '4', addr=ADDR4 + ADDR6)
            for family, addr in ((socket.AF_INET, V4), (socket.AF_INET6, V6)):
                for _ in range(2):
                    sender(bed, family).sendto(b'\1' * 9000, (addr, PORT))
            row = sink.row()
            assert row['count'] == 4 and apps.drops(row) == {}, row
            assert row['touch_sum'] == 4 * 2048, row  # the sink's buffers end there
            parts = sink.end['outcomes']['ip_frag_merged']
            assert parts == 24 and sink.end['held'] == 0, sink.end
    with cases('a large ping is answered, in fragments as it came'):
        sink = bed.sink('--recvmsg', '--ipv6', addr=ADDR4 + ADDR6)
        said = [bed.in_a('ping', '-s', '4000', '-c', '3', '-i', '0.2', where, check=False)
                for where in (V4, V6)]
        sink.interrupt()
        sink.finish()
        assert all(' 3 received' in out for out in said), f'{said} {sink.end}'
        assert sink.end['outcomes']['echo'] == 6, sink.end
        assert sink.end['outcomes']['ip_frag_merged'] == 12, sink.end


def numbered(flow, sequence, size=30, filler=None):
    head = struct.pack('>HHIQ', 0x51ce, flow, sequence, 0)
    body = bytes((sequence + i) & 255 for i in range(16, size))
    return head + (filler if filler is not None else body)


def case_check(cases, bed):
    with cases('--check: lost, late, doubled, corrupt and foreign are told apart, flow by flow'):
        sent = ([numbered(3, n) for n in (0, 1, 3, 2, 2, 7)] + [numbered(5, n) for n in (2, 3)] +
                [numbered(9, 100000 + n) for n in range(3)] +
                [numbered(3, 8, filler=b'\0' * 14), b'not ours', b''])
        sink = bed.sink('--check', '--recvmmsg', '--count', str(len(sent)))
        s = sender(bed)
        for data in sent:
            s.sendto(data, (V4, PORT))
        check = sink.row()['check']
        uneven = check.pop('uneven')
        assert check == {'flows': 3, 'received': 10, 'lost': 5, 'reordered': 1, 'duplicated': 1,
                         'foreign': 2, 'corrupt': 1}, check
        assert uneven == [
            {'flow': 3, 'received': 5, 'lost': 3, 'reordered': 1, 'duplicated': 1},
            {'flow': 5, 'received': 2, 'lost': 2, 'reordered': 0, 'duplicated': 0}], uneven
    with cases('--check: numbers that wrap are in order'):
        sink = bed.sink('--check', '--recvmmsg', '--count', '4')
        s = sender(bed)
        for n in (0xfffffffe, 0xffffffff, 0, 1):
            s.sendto(numbered(1, n), (V4, PORT))
        check = sink.row()['check']
        assert (check['received'], check['lost'], check['reordered']) == (4, 0, 0), check


def case_control(cases, bed):
    with cases('--recv-ttl: what the datagrams had'):
        for call in ('--recvmmsg', '--recvmsg'):
            sink = bed.sink(call, '--recv-ttl', '--count', '20')
            for ttl in (33, 77):
                s = sender(bed)
                s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
                for _ in range(10):
                    s.sendto(b'x', (V4, PORT))
            row = sink.row()
            assert (row['with_ttl'], row['ttl_min'], row['ttl_max']) == (20, 33, 77), row
    with cases('--recv-ttl: hop limits'):
        sink = bed.sink('--ipv6', '--recvmsg', '--recv-ttl', '--count', '10', addr=ADDR6)
        s = sender(bed, socket.AF_INET6)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 44)
        for _ in range(10):
            s.sendto(b'x', (V6, PORT))
        row = sink.row()
        assert (row['with_ttl'], row['ttl_min'], row['ttl_max']) == (10, 44, 44), row
    with cases('--recv-pktinfo: a destination address with each datagram'):
        sink = bed.sink('--recvmmsg', '--recvmsg', '--recv-pktinfo', '--recv-ttl', '--count', '25')
        bed.flood('--count', '50')
        rows = sink.finish()
        assert [r['with_pktinfo'] for r in rows] == [25, 25], rows
        assert [r['with_ttl'] for r in rows] == [25, 25], rows


def case_bad_ptr(cases, bed):
    for call in ('--recvmmsg', '--recvmsg', '--recvfrom', '--read'):
        with cases(f'--use-bad-ptr {call}: every tenth datagram is lost to EFAULT, none after it'):
            sink = bed.sink(call, '--use-bad-ptr', '10', '--check', '--count', '1000')
            bed.flood('--count', '1000', '--check', '--rate', '50000')
            row = sink.row()
            # The last one's error is still to come when it ends a batch.
            assert row['count'] == 900 and apps.drops(row) == {'efault': 100}, row
            check = row['check']
            assert (check['received'], check['reordered'], check['duplicated']) == (900, 0, 0), row
            assert check['lost'] in (99, 100) and check['corrupt'] == 0, check
    with cases('--use-bad-ptr 1: nothing arrives, everything is counted'):
        sink = bed.sink('--recvmmsg', '--use-bad-ptr', '1', '--count', '50')
        bed.flood('--count', '50')
        row = sink.row()
        assert row['count'] == 0 and apps.drops(row) == {'efault': 50}, row


def case_reuse_port(cases, bed):
    with cases('--reuse-port=4: four sockets share the port and the sink reads them all'):
        sink = bed.sink('--reuse-port=4', '--recvmmsg', '--recvmsg', '--read', '--burst', '--check',
                        '--count', '1000')
        bed.flood('--count', '4000', '--flows', '32', '--check', '--rate', '50000')
        rows = sink.finish()
        assert [r['count'] for r in rows] == [1000] * 4, rows
        check = rows[-1]['check']
        assert (check['flows'], check['lost'], check['reordered']) == (32, 0, 0), check
    with cases('--reuse-port: a second sink may join on the interface'):
        one = bed.sink('--reuse-port', '--recvmsg', '--count', '10')
        two = bed.sink('--reuse-port', '--recvmsg', '--count', '10')
        bed.flood('--count', '10')
        assert one.row()['count'] == 10 and two.row()['count'] == 10


def case_foreign(cases, bed):
    neighbour = ('ip', 'neigh', 'replace', '198.18.0.77', 'dev', 'wa', 'lladdr')
    mac = bed.mac(bed.b, 'wb')
    with cases('--any-dst: a foreign address counts as ours, else it is counted'):
        bed.in_a(*neighbour, mac)
        sink = bed.sink('--recvmsg', '--count', '10')
        bed.flood('--count', '5', to='198.18.0.77')
        bed.flood('--count', '10')
        row = sink.row()
        assert row['count'] == 10 and row['drops']['ip_not_local'] >= 5, row
        sink = bed.sink('--recvmsg', '--count', '5', '--any-dst')
        bed.flood('--count', '5', to='198.18.0.77')
        assert sink.row()['count'] == 5
    with cases('--promiscuous: so does a foreign MAC address'):
        bed.in_a(*neighbour, '02:00:00:00:00:77')
        sink = bed.sink('--recvmsg', '--count', '10')
        bed.flood('--count', '5', to='198.18.0.77')
        bed.flood('--count', '10')
        row = sink.row()
        assert row['count'] == 10 and 'eth_otherhost' not in row['drops'], row
        sink = bed.sink('--recvmsg', '--count', '5', '--any-dst', '--promiscuous')
        bed.flood('--count', '5', to='198.18.0.77')
        assert sink.row()['count'] == 5
        assert 'PROMISC' not in apps.wire.sh('ip', '-n', bed.b, 'link', 'show', 'wb')


def case_ping(cases, bed):
    with cases('ping is answered while the sink waits, to another network and through a gateway too'):
        bed.in_a('ip', 'addr', 'add', '203.0.113.1/32', 'dev', 'wa')
        sink = bed.sink('--recvmsg', '--gateway', '198.18.0.1', '--ipv6', addr=ADDR4 + ADDR6)
        for where in ([V4], ['-I', '203.0.113.1', V4], [V6]):
            assert ' 3 received' in bed.in_a('ping', '-c', '3', '-i', '0.2', *where)
        sink.interrupt()
        sink.finish()
        assert sink.end['outcomes']['echo'] == 9, sink.end


def case_rcvbuf(cases, bed):
    with cases('--rcvbuf: what has no room is counted'):
        sink = bed.sink('--rcvbuf', '10000', '--recvmsg', '--count', '500', '--duration', '1')
        # All at once, or a sink that is fast enough finds room for each.
        sink.interrupt(signal.SIGSTOP)
        bed.flood('--count', '500')
        sink.interrupt(signal.SIGCONT)
        rows = sink.finish()
        apps.conserve(rows, sink.end, 500)
        assert rows[0]['drops'].get('udp_rcvbuf', 0) > 0, rows


def case_partial(cases, bed):
    # Kernel A leaves checksums to hardware, and its veth has none.
    with cases('datagrams with unfinished checksums are received, and nothing is said'):
        sink = bed.sink('--recvmsg', '--count', '10')
        bed.flood('--count', '10')
        row = sink.row()
        assert row['count'] == 10 and apps.drops(row) == {}, row
        assert 'checksum' not in sink.err, sink.err
    with cases('a driver that does not tell: they are counted, and one line says what to do'):
        sink = apps.Sink(bed, ['--no-pci', '--no-huge', '-m', '256', '--no-telemetry', '--no-shconf',
                               '--vdev=net_af_packet0,iface=wb', '--', *ADDR4, '--json', '--recvmsg',
                               '--count', '10', '--duration', '1'], (), True)
        bed.flood('--count', '10')
        row = sink.row()
        assert row['count'] == 0 and row['drops']['udp_csum_partial'] == 10, row
        lines = [line for line in sink.err.splitlines() if 'checksum' in line]
        assert len(lines) == 1 and 'ethtool -K' in lines[0], sink.err


def run(cases, bed):
    case_port(cases, bed)
    case_ipv6(cases, bed)
    case_connect(cases, bed)
    case_calls_taken(cases, bed)
    case_payload(cases, bed)
    case_fragments(cases, bed)
    case_check(cases, bed)
    case_control(cases, bed)
    case_bad_ptr(cases, bed)
    case_reuse_port(cases, bed)
    case_foreign(cases, bed)
    case_ping(cases, bed)
    case_rcvbuf(cases, bed)
    case_partial(cases, bed)


if __name__ == '__main__':
    apps.main(run)
