#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Write the corpus of fuzz_inet_input: one file per case, named by what it is.

usage: make_inet_input.py FOLDER

A file is two bytes of flags, then frames with a 16-bit length each (see fuzz_inet_input.c).
"""
import socket
import struct
import sys
from pathlib import Path

US, PEER, ALL = b"\2\0\0\0\0\2", b"\2\0\0\0\0\1", b"\xff" * 6
GROUP6 = b"\x33\x33\xff\0\0\2"
US4, PEER4, US6, PEER6 = "198.18.0.2", "198.18.0.1", "2001:db8::2", "2001:db8::1"
VLAN, SVLAN, PROMISCUOUS, ANY_DST, NO_SOCKET, ASKING = 1, 2, 4, 8, 16, 32
SPLIT, EXACT, STRIPPED, L4_NONE, L4_BAD, IP_NONE = 1, 2, 4, 8, 16, 32


def a4(text):
    return socket.inet_pton(socket.AF_INET, text)


def a6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def fold(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s


def cksum(data):
    return ~fold(data) & 0xFFFF


def eth(body, kind, dst=US, src=PEER, tags=b""):
    return dst + src + tags + struct.pack("!H", kind) + body


def ip4(body, proto, src=PEER4, dst=US4, options=b"", frag=0, ttl=64):
    ihl = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH", 0x40 | ihl, 0, ihl * 4 + len(body), 1, frag, ttl, proto, 0)
    head += a4(src) + a4(dst) + options
    return head[:10] + struct.pack("!H", cksum(head)) + head[12:] + body


def ip6(body, nxt, src=PEER6, dst=US6, hlim=64):
    return struct.pack("!IHBB", 0x60000000, len(body), nxt, hlim) + a6(src) + a6(dst) + body


def pseudo(src, dst, proto, length):
    pack = a6 if ":" in src else a4
    return pack(src) + pack(dst) + struct.pack("!II", length, proto)


def udp(payload, src=PEER4, dst=US4, csum=None, length=None):
    size = 8 + len(payload) if length is None else length
    head = struct.pack("!HHHH", 4000, 9, size, 0)
    if csum is None:
        csum = cksum(pseudo(src, dst, 17, 8 + len(payload)) + head + payload) or 0xFFFF
    return head[:6] + struct.pack("!H", csum) + payload


def icmp4(kind, code, rest):
    body = struct.pack("!BBH", kind, code, 0) + rest
    return body[:2] + struct.pack("!H", cksum(body)) + body[4:]


def icmp6(kind, code, rest, src=PEER6, dst=US6):
    body = struct.pack("!BBH", kind, code, 0) + rest
    return body[:2] + struct.pack("!H", cksum(pseudo(src, dst, 58, len(body)) + body)) + body[4:]


def frame4(payload, **kw):
    return eth(ip4(udp(payload), 17, **kw), 0x0800)


def frame6(payload, ext=b"", nxt=17):
    return eth(ip6(ext + udp(payload, PEER6, US6), nxt), 0x86DD)


def cut(data, sizes):
    """(offset, bytes, more) of the parts of data, whose sizes are given; the last takes the rest."""
    at = 0
    for size in sizes:
        yield at, data[at:at + size], True
        at += size
    yield at, data[at:], False


def part4(at, data, more, proto=17, **kw):
    return eth(ip4(data, proto, frag=at // 8 | (0x2000 if more else 0), **kw), 0x0800)


def part6(at, data, more, nxt=17, ext=b"", first=44):
    head = struct.pack("!BBHI", nxt, 0, at | more, 9)
    return eth(ip6(ext + head + data, first), 0x86DD)


def parts4(data, *sizes, **kw):
    return [part4(*p, **kw) for p in cut(data, sizes)]


def parts6(data, *sizes, **kw):
    return [part6(*p, **kw) for p in cut(data, sizes)]


def arp(op, sender, target, dst=ALL):
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, op) + PEER + a4(sender) + bytes(6) + a4(target)
    return eth(body, 0x0806, dst) + bytes(18)


def nd(kind, flags, target, option=b"", src=PEER6, dst=US6, mac=US, hlim=255):
    body = icmp6(kind, 0, struct.pack("!I", flags << 24) + a6(target) + option, src, dst)
    return eth(ip6(body, 58, src, dst, hlim), 0x86DD, mac)


def cases():
    data = bytes(range(1, 23))
    lla = b"\2\1" + PEER
    quote4 = ip4(udp(b"abcd", US4, PEER4), 17, US4, PEER4)
    quote6 = ip6(udp(b"abcd", US6, PEER6), 17, US6, PEER6)
    tag7, tag9 = b"\x81\0\0\7", b"\x88\xa8\0\x09"
    yield "no_frame", 0, 0, []
    yield "empty_frame", 0, 0, [b""]
    yield "ethernet_header_cut", 0, EXACT, [frame4(data)[:13]]
    # Checksums: zero, wrong, computed zero, odd, partial, by hardware.
    yield "udp4", 0, 0, [frame4(data)]
    yield "udp4_exact_buffer", 0, EXACT, [frame4(data)]
    yield "udp4_split", 0, SPLIT, [frame4(data)]
    yield "udp4_split_exact", 0, SPLIT | EXACT, [frame4(data)]
    yield "udp4_odd_length", 0, EXACT, [frame4(b"x")]
    yield "udp4_zero_length", 0, EXACT, [frame4(b"")]
    yield "udp4_checksum_zero", 0, 0, [eth(ip4(udp(data, csum=0), 17), 0x0800)]
    yield "udp4_checksum_wrong", 0, 0, [eth(ip4(udp(data, csum=1), 17), 0x0800)]
    yield "udp4_checksum_by_hardware", 0, L4_NONE, [eth(ip4(udp(data, csum=1), 17), 0x0800)]
    yield "udp4_checksum_bad_by_hardware", 0, L4_BAD, [frame4(data)]
    partial = fold(pseudo(PEER4, US4, 17, 8 + len(data)))
    yield "udp4_checksum_partial", 0, 0, [eth(ip4(udp(data, csum=partial), 17), 0x0800)]
    # Two bytes of payload that bring the computed value to zero.
    rest = cksum(pseudo(PEER4, US4, 17, 10) + struct.pack("!HHHH", 4000, 9, 10, 0))
    yield "udp4_checksum_computes_to_zero", 0, 0, [frame4(struct.pack("!H", rest))]
    yield "udp6", 0, 0, [frame6(data)]
    yield "udp6_exact_split", 0, SPLIT | EXACT, [frame6(data)]
    yield "udp6_checksum_zero", 0, 0, [eth(ip6(udp(data, PEER6, US6, 0), 17), 0x86DD)]
    yield "udp6_checksum_wrong", 0, 0, [eth(ip6(udp(data, PEER6, US6, 3), 17), 0x86DD)]
    # Lengths.
    yield "udp4_length_7", 0, 0, [eth(ip4(udp(data, length=7), 17), 0x0800)]
    yield "udp4_length_beyond", 0, EXACT, [eth(ip4(udp(data, length=500), 17), 0x0800)]
    yield "ip4_total_beyond", 0, EXACT, [frame4(data)[:16] + b"\5\xdc" + frame4(data)[18:]]
    yield "ip4_header_15_words", 0, EXACT, [frame4(data)[:14] + b"\x4f" + frame4(data)[15:]]
    yield "ip4_checksum_by_hardware", 0, IP_NONE, [frame4(data)[:24] + b"\0\0" + frame4(data)[26:]]
    yield "ip6_payload_beyond", 0, EXACT, [frame6(data)[:18] + b"\xff\xff" + frame6(data)[20:]]
    yield "ip4_fragment", 0, 0, [frame4(data, frag=0x2000), frame4(data, frag=3)]
    # Fragments that make a datagram, and such as make none.
    long4, long6 = udp(data * 20), udp(data * 20, PEER6, US6)
    for name, parts in (("4", parts4(long4, 160, 160)), ("6", parts6(long6, 160, 160))):
        yield f"fragments{name}", 0, 0, parts
        yield f"fragments{name}_last_first", 0, EXACT, parts[::-1]
        yield f"fragments{name}_split", 0, SPLIT | EXACT, parts
        yield f"fragments{name}_no_socket", NO_SOCKET, EXACT, parts
        yield f"fragments{name}_twice", 0, 0, parts[:2] * 2 + parts[2:]
        yield f"fragments{name}_missing", 0, SPLIT, parts[:2] + parts[:1]
    for name, part, long in (("4", part4, long4), ("6", part6, long6)):
        yield f"fragments{name}_overlap", 0, EXACT, [
            part(0, long[:160], True), part(152, long[152:320], True), part(320, long[320:], False)]
        yield f"fragments{name}_two_ends", 0, 0, [
            part(320, long[320:], False), part(400, long[400:], False), part(0, long[:160], True)]
        yield f"fragments{name}_odd", 0, 0, [part(0, long[:15], True), part(16, b"", True)]
        yield f"fragments{name}_beyond_the_end", 0, 0, [part(65528, long[:16], False)]
        yield f"fragments{name}_nine", 0, 0, [part(*p) for p in cut(long, [40] * 8)]
    yield "fragments4_options", 0, EXACT, parts4(long4, 160, options=b"\1" * 40)
    yield "fragments4_echo", 0, 0, parts4(icmp4(8, 0, bytes(4) + data * 150), 1480, 800, proto=1)
    yield "fragments6_echo", 0, EXACT, parts6(icmp6(128, 0, bytes(4) + data * 150), 1448, 800, nxt=58)
    yield "fragments4_vlan", VLAN, STRIPPED, parts4(long4, 160)
    yield "fragments6_headers_before", 0, 0, parts6(
        long6, 160, ext=b"\x3c\0\1\4\0\0\0\0\x2c\0\1\4\0\0\0\0", first=0)
    yield "fragments6_headers_inside", 0, 0, parts6(b"\x11\0\1\4\0\0\0\0" + long6, 160, nxt=60)
    yield "fragments6_fragment_inside", 0, 0, parts6(b"\x11\0\0\1\0\0\0\1" + long6, 160, nxt=44)
    yield "fragments6_header_cut", 0, EXACT, [part6(0, b"", True)[:-4], part6(8, b"", True)]
    # Options and extension headers.
    yield "ip4_option_timestamp", 0, 0, [frame4(data, options=b"\x44\x08\5\0\0\0\0\0")]
    yield "ip4_option_source_route", 0, 0, [frame4(data, options=b"\x83\7\4\1\2\3\4\0")]
    yield "ip4_option_length_0", 0, 0, [frame4(data, options=b"\7\0\0\0")]
    yield "ip4_option_runs_out", 0, EXACT, [frame4(data, options=b"\1\1\1\7")]
    yield "ip6_hop_by_hop", 0, 0, [frame6(data, b"\x11\0\5\2\0\0\1\0", 0)]
    yield "ip6_unknown_option", 0, 0, [frame6(data, b"\x11\0\xbe\4\0\0\0\0", 0)]
    yield "ip6_extension_beyond", 0, EXACT, [frame6(b"", b"\x11\xff\1\4\0\0\0\0", 60)]
    yield "ip6_nine_extensions", 0, 0, [frame6(data, b"\x3c\0\1\4\0\0\0\0" * 8 + b"\x11\0\1\4\0\0\0\0", 60)]
    yield "ip6_routing", 0, 0, [frame6(data, b"\x11\0\0\1\0\0\0\0", 43)]
    yield "ip6_atomic_fragment", 0, 0, [frame6(data, b"\x11\0\0\0\0\0\0\1", 44)]
    # VLANs.
    yield "vlan", VLAN, 0, [eth(ip4(udp(data), 17), 0x0800, tags=tag7)]
    yield "vlan_cut", VLAN, EXACT, [eth(b"", 0x0800, tags=tag7)[:15]]
    yield "vlan_stripped", VLAN, STRIPPED, [frame4(data)]
    yield "vlan_two", VLAN | SVLAN, 0, [eth(ip4(udp(data), 17), 0x0800, tags=tag9 + tag7)]
    yield "vlan_stack", VLAN, 0, [eth(ip4(udp(data), 17), 0x0800, tags=b"\x81\0\0\0" * 12)]
    yield "any_destination", PROMISCUOUS | ANY_DST, 0, [
        eth(ip4(udp(data, PEER4, "192.0.2.9"), 17, dst="192.0.2.9"), 0x0800, b"\2\0\0\0\0\x77")]
    # Answers of ours.
    yield "no_socket4", NO_SOCKET, 0, [frame4(data)]
    yield "no_socket4_split", NO_SOCKET, SPLIT | EXACT, [frame4(data * 40)]
    yield "no_socket6", NO_SOCKET, 0, [frame6(data)]
    yield "no_socket6_extension", NO_SOCKET, SPLIT, [frame6(data, b"\x11\0\5\2\0\0\1\0", 0)]
    yield "no_socket_vlan", NO_SOCKET | VLAN, 0, [eth(ip4(udp(data), 17), 0x0800, tags=tag7)]
    yield "tcp4", 0, 0, [eth(ip4(bytes(20), 6), 0x0800)]
    yield "echo4", 0, 0, [eth(ip4(icmp4(8, 0, b"\0\1\0\1hello"), 1), 0x0800)]
    yield "echo4_options_exact", 0, EXACT, [
        eth(ip4(icmp4(8, 0, b"\0\1\0\1hello"), 1, options=b"\1\1\1\0"), 0x0800)]
    yield "echo4_cut", 0, EXACT, [eth(ip4(icmp4(8, 0, b"")[:4], 1), 0x0800)]
    yield "echo6", 0, 0, [eth(ip6(icmp6(128, 0, b"\0\1\0\1hello"), 58), 0x86DD)]
    yield "echo6_split_exact", 0, SPLIT | EXACT, [
        eth(ip6(icmp6(128, 0, b"\0\1\0\1hello"), 58), 0x86DD)]
    yield "unreachable4", 0, 0, [eth(ip4(icmp4(3, 3, bytes(4) + quote4), 1), 0x0800)]
    yield "unreachable4_quote_cut", 0, EXACT, [
        eth(ip4(icmp4(3, 3, bytes(4) + quote4[:20]), 1), 0x0800)]
    yield "unreachable4_quote_ihl_15", 0, EXACT, [
        eth(ip4(icmp4(3, 3, bytes(4) + b"\x4f" + quote4[1:]), 1), 0x0800)]
    yield "too_big6", 0, 0, [eth(ip6(icmp6(2, 0, struct.pack("!I", 1280) + quote6), 58), 0x86DD)]
    yield "unreachable6_quote_cut", 0, EXACT, [
        eth(ip6(icmp6(1, 4, bytes(4) + quote6[:40]), 58), 0x86DD)]
    # ARP and neighbour discovery.
    yield "arp_request", 0, 0, [arp(1, PEER4, US4)]
    yield "arp_reply_with_packet_waiting", ASKING, 0, [arp(2, PEER4, US4, US)]
    yield "arp_cut", 0, EXACT, [arp(1, PEER4, US4)[:41]]
    yield "arp_claims_our_address", 0, 0, [arp(1, US4, US4)]
    yield "nd_solicitation", 0, 0, [nd(135, 0, US6, b"\1\1" + PEER, dst="ff02::1:ff00:2", mac=GROUP6)]
    yield "nd_probe", 0, 0, [nd(135, 0, US6, src="::", dst="ff02::1:ff00:2", mac=GROUP6)]
    yield "nd_advertisement_with_packet_waiting", ASKING, 0, [nd(136, 0x60, PEER6, lla)]
    yield "nd_option_length_0", 0, 0, [nd(135, 0, US6, b"\1\0" + PEER)]
    yield "nd_option_beyond", 0, EXACT, [nd(135, 0, US6, b"\1\7" + PEER)]
    yield "nd_hop_limit_64", 0, 0, [nd(136, 0x60, PEER6, lla, hlim=64)]
    yield "router_advertisement", 0, 0, [
        eth(ip6(icmp6(134, 0, bytes(12) + b"\1\1" + PEER, "fe80::1", "ff02::1"), 58, "fe80::1",
                "ff02::1", 255), 0x86DD, b"\x33\x33\0\0\0\1")]
    # A burst: good ones, and bad ones behind them.
    yield "burst", 0, 0, [frame4(data), frame4(data)[:40], frame6(data), frame6(data)[:50],
                          frame4(b"x"), arp(1, PEER4, US4), frame4(data, frag=1), frame6(b"")]


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, flags, memory, frames in cases():
        data = bytes([flags, memory])
        for f in frames:
            data += struct.pack("!H", len(f)) + f
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
