# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Good and bad frames, and the outcome that each must end in: (name, frame, outcome) by function.

The stack under test is US, its peer is PEER; UDP port OPEN takes datagrams, SHUT does not exist.
"""
import struct

from scapy.layers.inet import (ICMP, IP, UDP, IPOption_LSRR, IPOption_NOP, IPOption_RR, IPOption_SSRR,
                               fragment)
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6MLQuery, ICMPv6ND_NA,
                                ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, HBHOptUnknown, PadN)
from scapy.layers.inet6 import fragment6 as fragment6_scapy
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import checksum

US4, PEER4 = '198.18.0.2', '198.18.0.1'
US6, PEER6 = '2001:db8::2', '2001:db8::1'
PEER_MAC = '02:00:00:00:00:01'
OPEN, SHUT = 9, 10
PAYLOAD = b'payload-of-23-bytes-odd'


class Frames:
    def __init__(self, us_mac):
        self.mac = us_mac

    def eth(self, **kw):
        return Ether(src=PEER_MAC, dst=kw.pop('dst', self.mac), **kw)

    def ip(self, **kw):
        return self.eth() / IP(**{'src': PEER4, 'dst': US4, **kw})

    def ip6(self, **kw):
        return self.eth() / IPv6(**{'src': PEER6, 'dst': US6, **kw})

    @staticmethod
    def udp(**kw):
        return UDP(**{'sport': 1000, 'dport': OPEN, **kw})

    def udp4(self, **kw):
        return self.ip() / self.udp(**kw) / PAYLOAD

    def udp6(self, **kw):
        return self.ip6() / self.udp(**kw) / PAYLOAD


def pseudo_sum(packet):
    """What a sender that leaves the UDP checksum to hardware puts into the field."""
    if IP in packet:
        ip = packet[IP]
        length = len(bytes(ip.payload))
        head = bytes(ip)[12:20] + struct.pack('!BBH', 0, 17, length)
    else:
        ip = packet[IPv6]
        length = len(bytes(ip.payload))
        head = bytes(ip)[8:40] + struct.pack('!II', length, 17)
    return ~checksum(head) & 0xffff


def partial(packet):
    packet[UDP].chksum = pseudo_sum(packet)
    return packet


def sums_to_zero(packet):
    """Payload chosen so that the checksum comes out as zero, which is sent as 0xffff."""
    packet[Raw].load = b'\0\0' + PAYLOAD[:20]
    packet[UDP].chksum = None
    there = bytes(packet)
    at = there.index(b'\0\0' + PAYLOAD[:20])
    now = struct.unpack_from('!H', there, at - 2)[0]
    packet[Raw].load = struct.pack('!H', now) + PAYLOAD[:20]
    whole = bytes(packet)
    assert whole[at - 2:at] == b'\xff\xff', 'the payload does not do what it should'
    return packet


def short(packet, n):
    """The first n bytes of the packet."""
    return bytes(packet)[:n]


def ethernet(f):
    udp4 = bytes(f.udp4())
    yield 'unicast to us', udp4, 'udp_queued'
    yield 'to another MAC address', b'\x02\0\0\0\0\x77' + udp4[6:], 'eth_otherhost'
    yield 'unknown ethertype', f.eth(type=0x88cc) / (b'\0' * 46), 'eth_type'
    yield '802.3 length in place of a type', f.eth(type=46) / (b'\0' * 46), 'eth_type'
    yield 'padding behind the packet', udp4 + b'\xaa' * 9, 'udp_queued'


def untagged_port(f):
    udp4 = f.udp4()
    yield 'tag on an untagged port', f.eth() / Dot1Q(vlan=5) / udp4[IP], 'vlan_other'
    yield 'priority tag on an untagged port', f.eth() / Dot1Q(vlan=0, prio=3) / udp4[IP], 'udp_queued'


def tagged_port(f):
    udp4, udp6 = f.udp4(), f.udp6()
    yield 'right tag, IPv4', f.eth() / Dot1Q(vlan=5) / udp4[IP], 'udp_queued'
    yield 'right tag, IPv6', f.eth() / Dot1Q(vlan=5) / udp6[IPv6], 'udp_queued'
    yield 'right tag with a priority', f.eth() / Dot1Q(vlan=5, prio=7) / udp4[IP], 'udp_queued'
    yield 'wrong tag', f.eth() / Dot1Q(vlan=6) / udp4[IP], 'vlan_other'
    yield 'no tag', udp4, 'vlan_other'
    yield 'two tags', f.eth() / Dot1Q(vlan=5) / Dot1Q(vlan=5) / udp4[IP], 'vlan_other'


def qinq_port(f):
    """svlan 7, vlan 5: only a wire that leaves tags alone can carry these."""
    udp4 = f.udp4()
    outer = f.eth(type=0x88a8)
    yield 'both tags', outer / Dot1Q(vlan=7) / Dot1Q(vlan=5) / udp4[IP], 'udp_queued'
    yield 'outer tag wrong', outer / Dot1Q(vlan=8) / Dot1Q(vlan=5) / udp4[IP], 'vlan_other'
    yield 'inner tag wrong', outer / Dot1Q(vlan=7) / Dot1Q(vlan=6) / udp4[IP], 'vlan_other'
    yield 'outer tag alone', outer / Dot1Q(vlan=7) / udp4[IP], 'vlan_other'
    whole = bytes(outer / Dot1Q(vlan=7) / Dot1Q(vlan=5) / udp4[IP])
    yield 'ends inside the outer tag', whole[:16], 'eth_short'
    yield 'ends inside the inner tag', whole[:20], 'eth_short'


def ipv4(f):
    u = f.udp() / PAYLOAD
    yield 'version 6 under ethertype IPv4', f.ip(version=6) / u, 'ip_version'
    yield 'version 0', f.ip(version=0) / u, 'ip_version'
    yield 'header length 4', f.ip(ihl=4) / u, 'ip_length'
    yield 'header length beyond the packet', short(f.ip(ihl=15, len=40) / u, 14 + 40), 'ip_length'
    yield 'total length beyond the frame', f.ip(len=1000) / u, 'ip_length'
    yield 'total length one beyond', f.ip(len=20 + 8 + len(PAYLOAD) + 1) / u, 'ip_length'
    yield 'total length below the header', f.ip(len=19) / u, 'ip_length'
    yield 'ends inside the header', short(f.ip() / u, 14 + 12), 'ip_length'
    yield 'one byte of header', short(f.ip() / u, 15), 'ip_length'
    yield 'no header at all', short(f.ip() / u, 14), 'ip_length'
    yield 'header checksum wrong', f.ip(chksum=0x1234) / u, 'ip_csum'
    yield 'reserved flag and DF', f.ip(flags='DF') / u, 'udp_queued'
    yield 'TTL 1', f.ip(ttl=1) / u, 'udp_queued'
    yield 'protocol TCP', f.ip(proto=6) / (b'\0' * 20), 'ip_proto'
    yield 'protocol 253', f.ip(proto=253) / (b'\0' * 20), 'ip_proto'
    for name, src in (('a group', '224.0.0.5'), ('broadcast', '255.255.255.255'),
                      ('loopback', '127.0.0.1'), ('of network 0', '0.0.0.1'),
                      ('our own', US4), ('our broadcast address', '198.18.0.255')):
        yield f'source is {name}', f.ip(src=src) / u, 'ip_source'
    yield 'to an address next to ours', f.ip(dst='198.18.0.3') / u, 'ip_not_local'
    yield 'to an unjoined group', f.ip(dst='239.1.2.3') / u, 'ip_not_local'


def ipv4_options(f):
    u = f.udp() / PAYLOAD
    nop = IPOption_NOP()
    yield 'no-operations', f.ip(options=[nop] * 4) / u, 'udp_queued'
    yield '40 bytes of options', f.ip(options=[nop] * 40) / u, 'udp_queued'
    yield 'record route', f.ip(options=[IPOption_RR(routers=['0.0.0.0'] * 3)]) / u, 'udp_queued'
    yield 'loose source route', f.ip(options=[IPOption_LSRR(routers=['1.2.3.4'])]) / u, 'ip_option'
    yield 'strict source route', f.ip(options=[IPOption_SSRR(routers=['1.2.3.4'])]) / u, 'ip_option'

    def fixed(options):
        # The checksum covers the options: Scapy computes it over 20 bytes, so redo it here.
        packet = bytearray(bytes(f.ip(ihl=5 + len(options) // 4, proto=17, chksum=0) / Raw(options + bytes(
            f.udp(chksum=0) / PAYLOAD))))
        struct.pack_into('!H', packet, 24, checksum(bytes(packet[14:34 + len(options)])))
        return bytes(packet)
    yield 'option longer than the header', fixed(b'\x07\x10\x04\0'), 'ip_option'
    yield 'option of length 0', fixed(b'\x07\x00\x04\0'), 'ip_option'
    yield 'option of length 1', fixed(b'\x07\x01\x04\0'), 'ip_option'
    yield 'option without its length', fixed(b'\x01\x01\x01\x07'), 'ip_option'
    yield 'bytes behind end-of-options', fixed(b'\x00\x07\x99\x99'), 'udp_queued'
    yield 'unknown option, well-formed', fixed(b'\x5e\x04\x12\x34'), 'udp_queued'


def lone_fragments6(f):
    u = f.udp() / (b'x' * 64)
    yield 'atomic fragment', f.ip6() / IPv6ExtHdrFragment(id=7) / u, 'udp_queued'
    yield 'fragment of an odd length', f.ip6() / IPv6ExtHdrFragment(m=1, id=7, nh=17) / (b'x' * 65), \
        'ip_frag_bad'


def fragment4(payload, size, **kw):
    """Scapy's fragments of an IPv4 datagram with this payload."""
    return fragment(IP(src=PEER4, dst=US4, **kw) / UDP(sport=1000, dport=OPEN) / payload, size)


def fragment6(payload, size, ident):
    whole = IPv6(src=PEER6, dst=US6) / IPv6ExtHdrFragment(id=ident) / UDP(
        sport=1000, dport=OPEN) / payload
    return fragment6_scapy(whole, size)


def udp_both(f):
    for name, make in (('IPv4', f.udp4), ('IPv6', f.udp6)):
        base = f.ip if name == 'IPv4' else f.ip6
        yield f'{name}: good', make(), 'udp_queued'
        yield f'{name}: empty payload', base() / f.udp(), 'udp_queued'
        for n in (1, 2, 3, 17, 1024, 1452):
            yield f'{name}: {n} bytes', base() / f.udp() / (b'z' * n), 'udp_queued'
        yield f'{name}: source port 0', make(sport=0), 'udp_queued'
        yield f'{name}: checksum that comes out as zero', sums_to_zero(make()), 'udp_queued'
        yield f'{name}: checksum wrong', make(chksum=0x1234), 'udp_csum'
        broken = bytearray(bytes(make()))
        broken[-1] ^= 1
        yield f'{name}: last byte changed', bytes(broken), 'udp_csum'
        yield f'{name}: checksum left to hardware', partial(make()), 'udp_csum_partial'
        yield f'{name}: length 7', make(len=7), 'udp_length'
        yield f'{name}: length 0', make(len=0), 'udp_length'
        yield f'{name}: length beyond the packet', make(len=8 + len(PAYLOAD) + 1), 'udp_length'
        yield f'{name}: no socket', make(dport=SHUT), 'udp_no_socket'
        yield f'{name}: port 0', make(dport=0), 'udp_no_socket'
    yield 'IPv4: no checksum', f.udp4(chksum=0), 'udp_queued'
    yield 'IPv6: no checksum', f.udp6(chksum=0), 'udp_csum_zero6'
    yield 'IPv4: ends inside the UDP header', f.ip(proto=17) / (b'\0' * 7), 'udp_length'
    yield 'IPv6: ends inside the UDP header', f.ip6(nh=17) / (b'\0' * 7), 'udp_length'
    yield 'IPv4: no UDP header', f.ip(proto=17), 'udp_length'


def udp_short_length(f):
    """UDP length below what IP carries: the rest is padding, and not part of the checksum."""
    for name, base in (('IPv4', f.ip), ('IPv6', f.ip6)):
        inner = bytes(base() / f.udp() / b'abcd')
        at = 14 + (20 if name == 'IPv4' else 40)
        yield f'{name}: bytes behind the datagram', \
            base(**({'proto': 17} if name == 'IPv4' else {'nh': 17})) / (inner[at:] + b'trailer'), \
            'udp_queued'


def icmp4(f):
    yield 'echo request', f.ip() / ICMP(id=5, seq=6) / PAYLOAD, 'echo'
    yield 'echo request without data', f.ip() / ICMP(id=5, seq=6), 'echo'
    yield 'echo, checksum wrong', f.ip() / ICMP(chksum=1) / PAYLOAD, 'icmp_bad'
    yield 'ends inside the header', f.ip(proto=1) / b'\x08\x00\x00', 'icmp_bad'
    yield 'echo reply nobody asked for', f.ip() / ICMP(type=0, id=1) / PAYLOAD, 'icmp_ignored'
    yield 'timestamp request', f.ip() / ICMP(type=13), 'icmp_ignored'
    yield 'unknown type', f.ip() / ICMP(type=200) / PAYLOAD, 'icmp_ignored'
    quote = IP(src=US4, dst=PEER4) / UDP(sport=OPEN, dport=7) / PAYLOAD
    yield 'port unreachable about our datagram', f.ip() / ICMP(type=3, code=3) / quote, 'icmp_error'
    yield 'unreachable with a cut quote', f.ip() / ICMP(type=3, code=3) / bytes(quote)[:16], 'icmp_bad'


def icmp6(f):
    yield 'echo request', f.ip6() / ICMPv6EchoRequest(id=5, seq=6, data=PAYLOAD), 'echo'
    yield 'echo, checksum wrong', f.ip6() / ICMPv6EchoRequest(cksum=1, data=PAYLOAD), 'icmp_bad'
    yield 'ends inside the header', f.ip6(nh=58) / b'\x80\x00\x00', 'icmp_bad'
    yield 'echo reply nobody asked for', f.ip6() / ICMPv6EchoReply(data=PAYLOAD), 'icmp_ignored'


def arp(f):
    bcast = Ether(src=PEER_MAC, dst='ff:ff:ff:ff:ff:ff')
    good = {'hwsrc': PEER_MAC, 'psrc': PEER4, 'pdst': US4}
    yield 'request for us', bcast / ARP(op=1, **good), 'arp'
    yield 'reply to us', f.eth() / ARP(op=2, hwdst=f.mac, **good), 'arp'
    yield 'request for another', bcast / ARP(op=1, hwsrc=PEER_MAC, psrc=PEER4, pdst='198.18.0.9'), 'arp'
    yield 'hardware type 6', bcast / ARP(op=1, hwtype=6, **good), 'arp_bad'
    yield 'protocol type IPv6', bcast / ARP(op=1, ptype=0x86dd, **good), 'arp_bad'
    yield 'ends inside the addresses', short(bcast / ARP(op=1, **good), 14 + 20), 'arp_bad'
    yield 'operation 9', bcast / ARP(op=9, **good), 'arp_bad'
    yield 'sender MAC is a group', bcast / ARP(op=1, hwsrc='ff:ff:ff:ff:ff:ff', psrc=PEER4,
                                             pdst=US4), 'arp_bad'
    wrong = bytearray(bytes(bcast / ARP(op=1, **good)))
    wrong[18] = 8
    yield 'hardware length 8', bytes(wrong), 'arp_bad'


def ipv6(f):
    u = f.udp() / PAYLOAD
    yield 'version 4 under ethertype IPv6', f.ip6(version=4) / u, 'ip_version'
    yield 'payload length beyond the frame', f.ip6(plen=500) / u, 'ip_length'
    yield 'payload length one beyond', f.ip6(plen=8 + len(PAYLOAD) + 1) / u, 'ip_length'
    yield 'ends inside the header', short(f.ip6() / u, 14 + 30), 'ip_length'
    yield 'hop limit 1', f.ip6(hlim=1) / u, 'udp_queued'
    yield 'next header TCP', f.ip6(nh=6) / (b'\0' * 20), 'ip_proto'
    yield 'source is a group', f.ip6(src='ff02::1') / u, 'ip_source'
    yield 'source is loopback', f.ip6(src='::1') / u, 'ip_source'
    yield 'to an address next to ours', f.ip6(dst='2001:db8::3') / u, 'ip_not_local'
    yield 'to an unjoined group', f.ip6(dst='ff05::1234') / u, 'ip_not_local'


def ipv6_extensions(f):
    u = f.udp() / PAYLOAD
    yield 'hop-by-hop, padding', f.ip6() / IPv6ExtHdrHopByHop(options=[PadN(optdata=b'\0' * 4)]) / u, \
        'udp_queued'
    yield 'destination options', f.ip6() / IPv6ExtHdrDestOpt(options=[PadN(optdata=b'\0' * 12)]) / u, \
        'udp_queued'
    yield 'three headers', f.ip6() / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / \
        IPv6ExtHdrRouting(segleft=0, addresses=[]) / u, 'udp_queued'
    yield 'unknown option to be skipped', f.ip6() / IPv6ExtHdrDestOpt(
        options=[HBHOptUnknown(otype=0x1e, optdata=b'ab')]) / u, 'udp_queued'
    yield 'unknown option, discard', f.ip6() / IPv6ExtHdrDestOpt(
        options=[HBHOptUnknown(otype=0x5e, optdata=b'ab')]) / u, 'ip_extension'
    yield 'routing header with segments left', f.ip6() / IPv6ExtHdrRouting(
        segleft=1, addresses=['2001:db8::7']) / u, 'ip_extension'
    yield 'hop-by-hop not first', f.ip6() / IPv6ExtHdrDestOpt() / IPv6ExtHdrHopByHop() / u, \
        'ip_extension'
    yield 'UDP behind more headers than are looked at', f.ip6() / IPv6ExtHdrDestOpt(
        options=[PadN(optdata=b'\0' * 68)]) / u, 'ip_extension'
    yield 'header longer than the packet', f.ip6(nh=60) / (b'\x11\xff' + b'\0' * 14), 'ip_extension'
    yield 'header cut after one byte', f.ip6(nh=60) / b'\x11', 'ip_extension'
    yield 'option longer than its header', f.ip6(nh=60) / (b'\x11\x00\x1e\x40' + b'\0' * 4 + bytes(
        f.udp(chksum=0) / PAYLOAD)), 'ip_extension'
    chain = (b'\x3c\x00\x01\x04\0\0\0\0' * 40)[:-8] + b'\x11\x00\x01\x04\0\0\0\0'
    yield 'forty headers', f.ip6(nh=60) / (chain + bytes(f.udp(chksum=1) / PAYLOAD)), 'ip_extension'


def neighbour_discovery(f):
    us_group = 'ff02::1:ff00:2'
    group_mac = '33:33:ff:00:00:02'

    def ns(hlim=255, src=PEER6, dst=us_group, tgt=US6, option=ICMPv6NDOptSrcLLAddr(lladdr=PEER_MAC)):
        packet = f.eth(dst=group_mac) / IPv6(src=src, dst=dst, hlim=hlim) / ICMPv6ND_NS(tgt=tgt)
        return packet / option if option is not None else packet

    def na(dst=US6, **kw):
        return f.eth() / IPv6(src=PEER6, dst=dst, hlim=255) / ICMPv6ND_NA(tgt=PEER6, **kw) / \
            ICMPv6NDOptDstLLAddr(lladdr=PEER_MAC)
    yield 'solicitation', ns(), 'nd'
    yield 'solicitation to our address', ns(dst=US6), 'nd'
    yield 'advertisement', na(S=1, R=0, O=1), 'nd'
    yield 'solicitation, hop limit 254', ns(hlim=254), 'nd_bad'
    yield 'solicitation for a group', ns(tgt='ff02::1'), 'nd_bad'
    yield 'probe with a link address', ns(src='::'), 'nd_bad'
    yield 'probe not to a solicited-node group', ns(src='::', dst=US6, option=None), 'nd_bad'
    yield 'option of length 0', ns(option=ICMPv6NDOptSrcLLAddr(len=0, lladdr=PEER_MAC)), 'nd_bad'
    yield 'option beyond the packet', ns(option=ICMPv6NDOptSrcLLAddr(len=9, lladdr=PEER_MAC)), 'nd_bad'
    yield 'code 1', f.eth(dst=group_mac) / IPv6(src=PEER6, dst=us_group, hlim=255) / ICMPv6ND_NS(
        tgt=US6, code=1), 'nd_bad'
    yield 'solicited advertisement to all', f.eth(dst='33:33:00:00:00:01') / IPv6(
        src=PEER6, dst='ff02::1', hlim=255) / ICMPv6ND_NA(tgt=PEER6, S=1), 'nd_bad'
    yield 'target cut off', f.eth(dst=group_mac) / IPv6(src=PEER6, dst=us_group, hlim=255, nh=58) / \
        cut_ns(us_group), 'nd_bad'
    bad = ns()
    bad[ICMPv6ND_NS].cksum = 1
    yield 'checksum wrong', bad, 'icmp_bad'
    yield 'router advertisement', f.eth(dst='33:33:00:00:00:01') / IPv6(
        src='fe80::1', dst='ff02::1', hlim=255) / ICMPv6ND_RA(), 'icmp_ignored'
    yield 'multicast listener query', f.eth(dst='33:33:00:00:00:01') / IPv6(
        src='fe80::1', dst='ff02::1', hlim=1) / ICMPv6MLQuery(), 'icmp_ignored'


def cut_ns(group):
    """A solicitation of 12 bytes with a right checksum."""
    body = b'\x87\0\0\0\0\0\0\0\x20\x01\x0d\xb8'
    whole = IPv6(src=PEER6, dst=group, nh=58, plen=len(body))
    head = bytes(whole)[8:40] + struct.pack('!II', len(body), 58)
    return body[:2] + struct.pack('!H', checksum(head + body)) + body[4:]


UNTAGGED = (ethernet, untagged_port, ipv4, ipv4_options, lone_fragments6, udp_both, udp_short_length, icmp4,
            icmp6, arp, ipv6, ipv6_extensions, neighbour_discovery)
