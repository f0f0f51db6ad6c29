#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Good and bad frames over a veth (net_af_packet) and over a tap: each ends in its outcome, sums are
exact, answers are what they should be, nothing leaks.

usage: test_frames.py INET_PROBE
"""
import random
import sys

from scapy.layers.inet import ICMP, IP, UDP, ICMPerror, IPerror, UDPerror
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA,
                                ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6,
                                IPv6ExtHdrFragment)
from scapy.layers.l2 import ARP, Ether

import frames
import wire

SEED = 20261201


class Stack:
    """A probe on one kind of port, and the link on which frames reach it."""

    def __init__(self, net, path, port, *options):
        addrs = ['--addr', frames.US4 + '/24', '--addr', frames.US6 + '/64', '--open',
                 str(frames.OPEN)]
        if port == 'veth':
            vdev = 'net_af_packet0,iface=wb'
        else:
            vdev = 'net_tap0,iface=tp0'
        self.probe = wire.Probe(net, path, '--vdev', vdev, *addrs, *options)
        if port == 'veth':
            self.mac, self.link = net.mac(net.b, 'wb'), net.link(net.a, 'wa')
        else:
            wire.sh('ip', '-n', net.b, 'link', 'set', 'tp0', 'arp', 'off')
            self.mac, self.link = net.mac(net.b, 'tp0'), net.link(net.b, 'tp0')
        self.frames = frames.Frames(self.mac)
        self.sent = 0
        ready = self.probe.until(lambda a: a['local'], 'local ' + frames.US6)
        assert ready['local'], 'the IPv6 address does not become usable'

    def send(self, frame):
        self.link.send(bytes(frame))
        self.sent += 1

    def outcome_of(self, frame):
        """Receive outcomes that one frame, sent alone, ends in."""
        before = self.probe.outcomes()
        self.send(frame)
        after = self.probe.until_received(before['received'] + 1)
        return {k: v for k, v in wire.changed(before, after).items() if k in after['rx']}

    def answer(self, frame, wanted):
        self.link.drain()
        self.send(frame)
        reply = self.link.wait_for(lambda raw: wanted(Ether(raw)))
        assert reply is not None, 'no answer'
        return Ether(reply)

    def make_known(self):
        """Let the stack learn the peer's MAC address."""
        f = self.frames
        self.send(Ether(src=frames.PEER_MAC, dst='ff:ff:ff:ff:ff:ff') / ARP(
            op=1, hwsrc=frames.PEER_MAC, psrc=frames.PEER4, pdst=frames.US4))
        self.send(f.eth() / IPv6(src=frames.PEER6, dst=frames.US6, hlim=255) / ICMPv6ND_NS(
            tgt=frames.US6) / ICMPv6NDOptSrcLLAddr(lladdr=frames.PEER_MAC))
        self.probe.until_received(self.sent)

    def finish(self, cases, name):
        with cases(f'{name}: every frame has one outcome'):
            last = self.probe.until_received(self.sent)
            assert last['received'] == self.sent, f"{last['received']} of {self.sent} received"
            wire.check_sums(last)
        with cases(f'{name}: no mbuf is lost, the probe ends well'):
            missing, status = self.probe.quit()
            assert missing == 0, f'{missing} mbufs missing'
            assert status == 0, f'exit status {status}'


def run_table(cases, stack, name, groups):
    for group in groups:
        for title, frame, wanted in group(stack.frames):
            with cases(f'{name}, {group.__name__}: {title}'):
                got = stack.outcome_of(frame)
                assert got == {wanted: 1}, f'{got}, not {wanted}'


def run_bursts(cases, stack, name, groups):
    """The same frames, back to back and in random order: the totals are the same."""
    table = [(bytes(frame), wanted) for group in groups for _, frame, wanted in group(stack.frames)]
    shuffle = random.Random(SEED)
    for turn in range(3):
        with cases(f'{name}: all in bursts, turn {turn}, seed {SEED}'):
            shuffle.shuffle(table)
            before = stack.probe.outcomes()
            for frame, _ in table:
                stack.send(frame)
            after = stack.probe.until_received(before['received'] + len(table))
            for outcome in after['rx']:
                wanted = sum(1 for _, w in table if w == outcome)
                got = after['rx'][outcome] - before['rx'][outcome]
                assert got == wanted, f'{outcome}: {got}, not {wanted}'


def run_answers(cases, s, name):
    f = s.frames
    with cases(f'{name}: ARP request is answered'):
        r = s.answer(Ether(src=frames.PEER_MAC, dst='ff:ff:ff:ff:ff:ff') / ARP(
            op=1, hwsrc=frames.PEER_MAC, psrc=frames.PEER4, pdst=frames.US4), lambda p: ARP in p)
        assert (r.dst, r[ARP].op, r[ARP].hwsrc, r[ARP].psrc, r[ARP].hwdst, r[ARP].pdst) == (
            frames.PEER_MAC, 2, s.mac, frames.US4, frames.PEER_MAC, frames.PEER4), r.summary()
    with cases(f'{name}: IPv4 echo'):
        r = s.answer(f.ip() / ICMP(id=77, seq=3) / frames.PAYLOAD, lambda p: ICMP in p)
        check_sum4(r)
        assert (r[IP].src, r[IP].dst, r[ICMP].type, r[ICMP].id, r[ICMP].seq) == (
            frames.US4, frames.PEER4, 0, 77, 3), r.summary()
        assert bytes(r[ICMP].payload)[:len(frames.PAYLOAD)] == frames.PAYLOAD
    with cases(f'{name}: IPv6 echo'):
        r = s.answer(f.ip6() / ICMPv6EchoRequest(id=77, seq=3, data=frames.PAYLOAD),
                     lambda p: ICMPv6EchoReply in p)
        check_sum6(r, ICMPv6EchoReply)
        assert (r[IPv6].src, r[IPv6].dst) == (frames.US6, frames.PEER6), r.summary()
        assert (r[ICMPv6EchoReply].id, r[ICMPv6EchoReply].seq, r[ICMPv6EchoReply].data) == (
            77, 3, frames.PAYLOAD), r.summary()
    with cases(f'{name}: large echo'):
        data = bytes(range(256)) * 5
        r = s.answer(f.ip() / ICMP(id=78) / data, lambda p: ICMP in p and p[ICMP].id == 78)
        assert bytes(r[ICMP].payload) == data
        check_sum4(r)
    with cases(f'{name}: neighbour solicitation is answered'):
        r = s.answer(f.eth(dst='33:33:ff:00:00:02') / IPv6(
            src=frames.PEER6, dst='ff02::1:ff00:2', hlim=255) / ICMPv6ND_NS(
                tgt=frames.US6) / ICMPv6NDOptSrcLLAddr(lladdr=frames.PEER_MAC),
                     lambda p: ICMPv6ND_NA in p)
        check_sum6(r, ICMPv6ND_NA)
        na = r[ICMPv6ND_NA]
        assert (r.dst, r[IPv6].dst, r[IPv6].hlim, na.tgt, na.S, na.R) == (
            frames.PEER_MAC, frames.PEER6, 255, frames.US6, 1, 0), r.show(dump=True)
        assert r[ICMPv6NDOptDstLLAddr].lladdr == s.mac
    with cases(f'{name}: probe for our address is answered to all nodes'):
        r = s.answer(f.eth(dst='33:33:ff:00:00:02') / IPv6(
            src='::', dst='ff02::1:ff00:2', hlim=255) / ICMPv6ND_NS(tgt=frames.US6),
                     lambda p: ICMPv6ND_NA in p)
        assert (r[IPv6].dst, r[ICMPv6ND_NA].S, r[ICMPv6ND_NA].O) == ('ff02::1', 0, 1), r.summary()


def run_unreachables(cases, s, name):
    f = s.frames
    with cases(f'{name}: IPv4 port unreachable quotes the datagram'):
        sent = f.udp4(dport=frames.SHUT, sport=4321)
        r = s.answer(sent, lambda p: ICMP in p and p[ICMP].type == 3)
        check_sum4(r)
        assert (r[IP].src, r[IP].dst, r[ICMP].code) == (frames.US4, frames.PEER4, 3), r.summary()
        assert ICMPerror not in r and r[IPerror].src == frames.PEER4
        assert (r[UDPerror].sport, r[UDPerror].dport) == (4321, frames.SHUT)
        # The quote is the start of the packet as it came.
        quote = bytes(r[ICMP])[8:]
        assert len(quote) >= 28 and bytes(sent[IP]).startswith(quote), quote.hex()
    with cases(f'{name}: IPv6 port unreachable quotes the datagram'):
        sent = f.udp6(dport=frames.SHUT, sport=4321)
        r = s.answer(sent, lambda p: ICMPv6DestUnreach in p)
        check_sum6(r, ICMPv6DestUnreach)
        assert r[ICMPv6DestUnreach].code == 4, r.summary()
        assert (r[IPv6].src, r[IPv6].dst) == (frames.US6, frames.PEER6), r.summary()
        assert bytes(sent[IPv6]) == bytes(r[ICMPv6DestUnreach])[8:], 'not the whole datagram'
    with cases(f'{name}: no unreachable for a datagram to a broadcast MAC address'):
        before = s.probe.outcomes()
        s.send(f.eth(dst='ff:ff:ff:ff:ff:ff') / f.udp4(dport=frames.SHUT)[IP])
        # An echo behind it: its answer is the only thing sent.
        s.answer(f.ip() / ICMP(id=79), lambda p: ICMP in p)
        after = s.probe.until(lambda o: o['tx']['tx_sent'] > before['tx']['tx_sent'])
        assert after['tx']['tx_sent'] == before['tx']['tx_sent'] + 1, wire.changed(before, after)


def run_fragments(cases, s, name, versions):
    """Scapy's fragments. IPv4 not over veth: net_af_packet's fanout joins them in the kernel."""
    f, payload = s.frames, bytes(range(256)) * 20
    for version in versions:
        def parts(ident, v=version):
            whole = frames.fragment4(payload, 1000, id=ident) if v == 4 else \
                frames.fragment6(payload, 1000, ident)
            assert len(whole) > 4
            return [f.eth() / p for p in whole]

        def feed(packets):
            before = s.probe.outcomes()
            for p in packets:
                s.send(p)
            after = s.probe.until_received(before['received'] + len(packets))
            wire.check_sums(after)
            got = {k: v for k, v in wire.changed(before, after).items() if k in after['rx']}
            return got, after['held'] - before['held'], after['payload_bytes'] - before['payload_bytes']
        for order in ('in order', 'backwards', 'shuffled'):
            with cases(f'{name}: IPv{version} datagram in fragments, {order}'):
                p = parts(len(order))
                if order == 'backwards':
                    p.reverse()
                if order == 'shuffled':
                    random.Random(SEED).shuffle(p)
                got = feed(p)
                assert got == ({'udp_queued': 1, 'ip_frag_merged': len(p) - 1}, 0, len(payload)), got
        with cases(f'{name}: IPv{version} fragments, one of them twice'):
            p = parts(77)
            got = feed(p[:2] + p[1:2] + p[2:])
            assert got == ({'udp_queued': 1, 'ip_frag_merged': len(p) - 1, 'ip_frag_duplicate': 1},
                           0, len(payload)), got
        with cases(f'{name}: IPv{version} fragments without the last one are held'):
            p = parts(78)
            got = feed(p[:-1])
            assert got == ({}, len(p) - 1, 0), got
        with cases(f'{name}: IPv{version} fragments that overlap'):
            p = parts(78)
            got = feed([overlapping(p[1]), p[-1]])
            assert got == ({'ip_frag_overlap': len(p) + 1}, 1 - len(p), 0), got


def overlapping(packet):
    """The same fragment, 8 bytes further to the front."""
    packet = packet.copy()
    if IP in packet:
        packet[IP].frag -= 1
        del packet[IP].chksum
    else:
        packet[IPv6ExtHdrFragment].offset -= 1
    return packet


def run_send(cases, s, name):
    """What the stack sends, checksum and all, is what Scapy thinks it should be."""
    for peer, low in ((frames.PEER4, IP), (frames.PEER6, IPv6)):
        for n in (0, 1, 18, 1452):
            with cases(f'{name}: sends {n} bytes to {peer}'):
                s.link.drain()
                answer = s.probe.ask(f'send {peer} 5000 {n} 1')
                assert answer == {'result': 0, 'sent': 1}, answer
                raw = s.link.wait_for(lambda raw, low=low: UDP in Ether(raw) and low in Ether(raw))
                assert raw is not None, 'nothing came'
                p = Ether(raw)
                assert (p.src, p.dst, p[low].dst, p[UDP].sport, p[UDP].dport) == (
                    s.mac, frames.PEER_MAC, peer, 4000, 5000), p.summary()
                data = bytes(p[UDP].payload)[:n]
                assert data == bytes((n + i) & 0xff for i in range(n)), data.hex()
                assert p[UDP].len == 8 + n
                check_sum(p, UDP, 'chksum')


def check_sum(packet, layer, field):
    """Scapy computes the same checksum."""
    there = getattr(packet[layer], field)
    again = packet.copy()
    delattr(again[layer], field)
    assert getattr(Ether(bytes(again))[layer], field) == there, f'{layer.__name__} checksum is wrong'


def check_sum4(packet):
    check_sum(packet, IP, 'chksum')
    check_sum(packet, ICMP, 'chksum')


def check_sum6(packet, layer):
    check_sum(packet, layer, 'cksum')


def run(cases, path):
    net = wire.Wire()
    for port in ('veth', 'tap'):
        stack = Stack(net, path, port)
        groups = frames.UNTAGGED
        stack.make_known()
        run_table(cases, stack, port, groups)
        run_answers(cases, stack, port)
        run_unreachables(cases, stack, port)
        run_send(cases, stack, port)
        run_bursts(cases, stack, port, groups)
        run_fragments(cases, stack, port, (4, 6) if port == 'tap' else (6,))
        stack.finish(cases, port)
    tagged = [('veth', frames.tagged_port, ('--vlan', '5')), ('tap', frames.tagged_port, ('--vlan', '5')),
              ('tap', frames.qinq_port, ('--svlan', '7', '--vlan', '5'))]
    for port, group, options in tagged:
        stack = Stack(net, path, port, *options)
        run_table(cases, stack, f'{port} {" ".join(options)}', [group])
        stack.finish(cases, f'{port} {" ".join(options)}')


if __name__ == '__main__':
    sys.exit(wire.main(run))
