#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Duplicate addresses: the kernel has ours, we have the kernel's; and what is announced at start.

usage: test_dad.py INET_PROBE
"""
import json
import sys

from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Ether

import wire

US4, US6 = '198.18.0.2', '2001:db8::2'


def start(net, path):
    return wire.Probe(net, path, '--vdev', 'net_af_packet0,iface=wb', '--addr', US4 + '/24',
                      '--addr', US6 + '/64')


def run_conflict(cases, path):
    net = wire.Wire(ipv6_a=True)
    net.in_a('ip', 'addr', 'add', US6 + '/64', 'dev', 'wa', 'nodad')
    probe = start(net, path)
    with cases('the kernel has the address: never used'):
        answer = probe.until(lambda a: a['duplicate'] or a['local'], f'local {US6}')
        assert answer == {'local': False, 'duplicate': True}, answer
    with cases('a duplicate is not answered for'):
        net.in_a('ip', 'addr', 'del', US6 + '/64', 'dev', 'wa')
        net.in_a('ip', 'addr', 'add', '2001:db8::1/64', 'dev', 'wa', 'nodad')
        out = net.in_a('ping', '-c', '1', '-W', '2', US6, check=False)
        assert ' 0 received' in out, out
    with cases('taken down in order'):
        assert probe.quit() == (0, 0)
    net.close()


def run_defend(cases, path):
    net = wire.Wire(ipv6_a=True)
    probe = start(net, path)
    with cases('nobody has the address: usable'):
        answer = probe.until(lambda a: a['local'] or a['duplicate'], f'local {US6}')
        assert answer == {'local': True, 'duplicate': False}, answer
    with cases('the kernel asks for our address and is told'):
        net.in_a('ip', 'addr', 'add', US6 + '/64', 'dev', 'wa')
        state = {}

        def settled(_):
            shown = json.loads(net.in_a('ip', '-j', '-6', 'addr', 'show', 'dev', 'wa'))
            state.update(next((a for i in shown for a in i.get('addr_info', [])
                               if a.get('local') == US6), {}))
            return state.get('dadfailed') or not state.get('tentative', False)
        probe.until(settled)
        assert state.get('dadfailed'), state
    with cases('taken down in order'):
        assert probe.quit() == (0, 0)
    net.close()


def run_announcements(cases, path):
    net = wire.Wire()
    link = net.link(net.a, 'wa')
    probe = start(net, path)
    mac = net.mac(net.b, 'wb')
    answer = probe.until(lambda a: a['local'], f'local {US6}')
    frames = [Ether(raw) for raw in link.drain()]
    with cases('usable when the probe has not been answered'):
        assert answer == {'local': True, 'duplicate': False}, answer
    with cases('the IPv4 address is announced'):
        arps = [p for p in frames if ARP in p]
        assert len(arps) == 1, frames
        assert (arps[0].dst, arps[0][ARP].hwsrc, arps[0][ARP].psrc, arps[0][ARP].pdst) == (
            'ff:ff:ff:ff:ff:ff', mac, US4, US4), arps[0].summary()
    with cases('one probe for each IPv6 address, link-local too'):
        targets = []
        for p in [p for p in frames if ICMPv6ND_NS in p]:
            assert (p[IPv6].src, p[IPv6].hlim) == ('::', 255), p.summary()
            assert p[IPv6].dst == 'ff02::1:ff' + solicited(p[ICMPv6ND_NS].tgt), p.summary()
            targets.append(p[ICMPv6ND_NS].tgt)
        assert sorted(t[:4] for t in targets) == ['2001', 'fe80'], targets
    with cases('taken down in order'):
        assert probe.quit() == (0, 0)


def solicited(addr):
    """Last 24 bits of an address as the group ff02::1:ffXX:XXXX writes them."""
    full = IPv6(dst=addr)
    low = bytes(full)[37:40]
    return f'{low[0]:02x}:{int.from_bytes(low[1:], "big"):x}'


def run(cases, path):
    run_conflict(cases, path)
    run_defend(cases, path)
    run_announcements(cases, path)


if __name__ == '__main__':
    sys.exit(wire.main(run))
