#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The host kernel as peer: ARP, neighbour discovery, ping, datagrams and ICMP errors both ways.

usage: test_kernel.py INET_PROBE
"""
import errno
import json
import re
import select
import socket
import struct
import sys

import wire

US4, PEER4, AWAY4 = '198.18.0.2', '198.18.0.1', '203.0.113.5'
US6, PEER6, AWAY6 = '2001:db8::2', '2001:db8::1', '2001:db8:1::5'
OPEN, SHUT = 9, 10
IP_RECVERR, IPV6_RECVERR = 11, 25
SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6 = 2, 3
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def udp(net, version, ns=None):
    return net.socket(ns or net.a, FAMILY[version], socket.SOCK_DGRAM, 0)


def readable(sock):
    return bool(select.select([sock], [], [], wire.PATIENCE_S)[0])


def setup(net):
    net.in_a('ip', 'addr', 'add', PEER4 + '/24', 'dev', 'wa')
    for addr in (PEER6 + '/64', 'fe80::1/64'):
        net.in_a('ip', 'addr', 'add', addr, 'dev', 'wa', 'nodad')
    # Addresses behind the peer, and networks that it says are unreachable.
    net.in_a('ip', 'addr', 'add', AWAY4 + '/32', 'dev', 'lo')
    net.in_a('ip', 'addr', 'add', AWAY6 + '/128', 'dev', 'lo', 'nodad')
    net.in_a('ip', 'route', 'add', 'unreachable', '203.0.114.0/24')
    for name in ('net.ipv4.ip_forward', 'net.ipv6.conf.all.forwarding'):
        net.sysctl(net.a, name, 1)
    net.sysctl(net.a, 'net.ipv4.icmp_ratelimit', 0)


def run_ping(cases, net):
    for us in (US4, US6):
        for size in ('8', '56', '1400'):
            with cases(f'ping {us}, {size} bytes'):
                out = net.in_a('ping', '-c', '5', '-i', '0.05', '-s', size, us, check=False)
                assert re.search(r'\b5 received', out), out
    with cases('arping'):
        out = net.in_a('arping', '-c', '2', '-I', 'wa', US4, check=False)
        mac = net.mac(net.b, 'wb').upper()
        assert out.count(f'[{mac}]') == 2, out
    with cases('the kernel has learnt the MAC address of both addresses'):
        mac = net.mac(net.b, 'wb')
        known = json.loads(net.in_a('ip', '-j', 'neigh', 'show', 'dev', 'wa'))
        for us in (US4, US6):
            assert [n.get('lladdr') for n in known if n['dst'] == us] == [mac], known


def run_receive(cases, net, probe):
    for version, us in ((4, US4), (6, US6)):
        with cases(f'{us}: 500 datagrams of a kernel socket arrive'):
            before = probe.outcomes()
            sock = udp(net, version)
            for n in range(500):
                sock.sendto(b'x' * (n % 300), (us, OPEN))
            after = probe.until(lambda o, b=before: o['rx']['udp_queued'] >=
                                b['rx']['udp_queued'] + 500)
            assert after['rx']['udp_queued'] == before['rx']['udp_queued'] + 500
            got = after['payload_bytes'] - before['payload_bytes']
            assert got == sum(n % 300 for n in range(500)), got
        with cases(f'{us}: hop limit 1 arrives too'):
            before = probe.outcomes()
            sock = udp(net, version)
            if version == 4:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 1)
            sock.sendto(b'last hop', (us, OPEN))
            after = probe.until(lambda o, b=before: o['rx']['udp_queued'] > b['rx']['udp_queued'])
            assert after['rx']['udp_queued'] == before['rx']['udp_queued'] + 1


def run_partial_checksum(cases, net, probe):
    """With its offload on, a veth leaves the checksum to hardware that is not there."""
    net.in_a('ethtool', '-K', 'wa', 'tx', 'on')
    for version, us in ((4, US4), (6, US6)):
        with cases(f'{us}: checksums that the sender left out are named'):
            before = probe.outcomes()
            sock = udp(net, version)
            for _ in range(20):
                sock.sendto(b'no checksum here', (us, OPEN))
            after = probe.until(lambda o, b=before: o['rx']['udp_csum_partial'] >=
                                b['rx']['udp_csum_partial'] + 20)
            assert after['rx']['udp_csum_partial'] == before['rx']['udp_csum_partial'] + 20
            assert after['rx']['udp_csum'] == before['rx']['udp_csum']
    net.in_a('ethtool', '-K', 'wa', 'tx', 'off')


def run_refused(cases, net):
    for version, us in ((4, US4), (6, US6)):
        with cases(f'{us}: a closed port refuses a connected socket'):
            sock = udp(net, version)
            sock.connect((us, SHUT))
            sock.settimeout(wire.PATIENCE_S)
            sock.send(b'anybody?')
            try:
                data = sock.recv(100)
                raise AssertionError(f'received {data!r}')
            except ConnectionRefusedError:
                pass
        with cases(f'{us}: as traceroute sees it'):
            level, option, origin, size = (socket.IPPROTO_IP, IP_RECVERR, SO_EE_ORIGIN_ICMP, 16) \
                if version == 4 else (socket.IPPROTO_IPV6, IPV6_RECVERR, SO_EE_ORIGIN_ICMP6, 28)
            sock = udp(net, version)
            sock.setsockopt(level, option, 1)
            sock.sendto(b'probe 33434', (us, 33434))
            assert readable(sock), 'no ICMP error came'
            data, control, _, _ = sock.recvmsg(100, 512, socket.MSG_ERRQUEUE)
            assert data == b'probe 33434', data
            assert len(control) == 1 and control[0][:2] == (level, option), control
            number, came_from, kind, code = struct.unpack_from('=IBBB', control[0][2])
            assert (number, came_from) == (errno.ECONNREFUSED, origin), (number, came_from)
            assert (kind, code) == ((3, 3) if version == 4 else (1, 4)), (kind, code)
            offender = control[0][2][16:16 + size]
            addr = socket.inet_ntop(FAMILY[version],
                                    offender[4:8] if version == 4 else offender[8:24])
            assert addr == us, addr


def run_send(cases, net, probe):
    for version, peer, us in ((4, PEER4, US4), (6, PEER6, US6), (4, AWAY4, US4), (6, AWAY6, US6)):
        with cases(f'datagrams to {peer} reach a kernel socket'):
            sock = udp(net, version)
            sock.bind((peer, 5000))
            sock.settimeout(wire.PATIENCE_S)
            answer = probe.ask(f'send {peer} 5000 700 20')
            assert answer == {'result': 0, 'sent': 20}, answer
            for _ in range(20):
                data, sender = sock.recvfrom(2000)
                assert sender[:2] == (us, 4000), sender
                assert data == bytes((700 + i) & 0xff for i in range(700))
            sock.close()
    with cases('both peers are neighbours with the kernel\'s MAC address'):
        mac = net.mac(net.a, 'wa')
        for peer in (PEER4, PEER6):
            answer = probe.ask(f'neighbour {peer}')
            assert answer == {'result': 0, 'mac': mac}, answer


def run_errors(cases, probe):
    for peer in (PEER4, PEER6):
        with cases(f'a closed port of the kernel\'s is heard of from {peer}'):
            before = probe.ask('errors')
            probe.ask(f'send {peer} 5999 10 1')
            after = probe.until(lambda e, b=before: e['errors'] > b['errors'], 'errors')
            assert after == {'errors': before['errors'] + 1, 'hard': before['hard'] + 1,
                             'last': -errno.ECONNREFUSED}, after
    with cases('an unreachable network is heard of'):
        before = probe.ask('errors')

        def heard(now):
            # The kernel allows itself one such answer a second, whatever its ICMP rate.
            if now['errors'] == before['errors']:
                probe.ask('send 203.0.114.1 5000 10 1')
            return now['errors'] > before['errors']
        after = probe.until(heard, 'errors')
        assert (after['last'], after['hard']) == (-errno.EHOSTUNREACH, before['hard']), after
    for nobody in ('198.18.0.77', '2001:db8::77'):
        with cases(f'{nobody} does not answer'):
            before = probe.outcomes()
            answer = probe.ask(f'send {nobody} 5000 10 3')
            assert answer == {'result': 0, 'sent': 3}, answer
            after = probe.until(lambda o, b=before: o['tx']['tx_neigh_failed'] >=
                                b['tx']['tx_neigh_failed'] + 3)
            assert after['tx']['tx_neigh_failed'] == before['tx']['tx_neigh_failed'] + 3


def run(cases, path):
    net = wire.Wire(ipv6_a=True)
    setup(net)
    probe = wire.Probe(net, path, '--vdev', 'net_af_packet0,iface=wb', '--addr', US4 + '/24',
                       '--addr', US6 + '/64', '--gateway', PEER4, '--gateway', PEER6,
                       '--open', str(OPEN))
    with cases('duplicate detection finds nobody'):
        answer = probe.until(lambda a: a['local'], f'local {US6}')
        assert answer == {'local': True, 'duplicate': False}, answer
    run_partial_checksum(cases, net, probe)
    run_ping(cases, net)
    run_receive(cases, net, probe)
    run_refused(cases, net)
    run_send(cases, net, probe)
    run_errors(cases, probe)
    with cases('every received packet has one outcome'):
        net.in_a('ip', 'link', 'set', 'wa', 'down')
        last = probe.outcomes()
        wire.check_sums(last)
        assert last['received'] == last['port_received'], last
    with cases('no mbuf is lost, the probe ends well'):
        assert probe.quit() == (0, 0)


if __name__ == '__main__':
    sys.exit(wire.main(run))
