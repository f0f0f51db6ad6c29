#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Write the corpus of fuzz_forward: one file per case, named by what it is.

usage: make_forward.py FOLDER
"""
import struct
import sys
from pathlib import Path

from make_inet_input import (EXACT, L4_NONE, PEER4, PEER6, SPLIT, US4, US6, eth, frame4, frame6, icmp4, icmp6,
                             ip4, ip6, part4, parts4, parts6, udp)

VLAN, NONE, DOWN, KNOWN, TWICE = 1, 2, 4, 8, 16
FAR4, FAR6 = "203.0.113.7", "2001:db8:9::7"


def answer4(payload):
    return eth(ip4(udp(payload, PEER4, FAR4), 17, PEER4, FAR4), 0x0800)


def answer6(payload):
    return eth(ip6(udp(payload, PEER6, FAR6), 17, PEER6, FAR6), 0x86DD)


def tagged(frame, tci=7):
    return frame[:12] + struct.pack("!HH", 0x8100, tci) + frame[12:]


def ports(datagram, sport, dport):
    """The same with other ports; the checksum no longer fits."""
    return struct.pack("!HH", sport, dport) + datagram[4:]


def error4(src, dst, quote, kind=3, code=3):
    return eth(ip4(icmp4(kind, code, bytes(4) + quote), 1, src, dst), 0x0800)


def error6(src, dst, quote, kind=1, code=4):
    return eth(ip6(icmp6(kind, code, bytes(4) + quote, src, dst), 58, src, dst), 0x86DD)


def cases():
    data = bytes(range(1, 23))
    on4 = ip4(ports(udp(data, FAR4, PEER4), 5000, 4000), 17, FAR4, PEER4)
    on6 = ip6(ports(udp(data, FAR6, PEER6), 5000, 4000), 17, FAR6, PEER6)
    back4 = ip4(ports(udp(data, US4, PEER4), 9, 4000), 17, US4, PEER4)
    back6 = ip6(ports(udp(data, US6, PEER6), 9, 4000), 17, US6, PEER6)
    long = bytes(range(256)) * 8
    both = [frame4(data), frame6(data), answer4(data), answer6(data)]
    yield "both", KNOWN, 0, both
    yield "both_exact", KNOWN, EXACT, both
    yield "both_split", 0, SPLIT, both
    yield "both_partial", KNOWN, L4_NONE, both
    yield "both_twice", KNOWN | TWICE, 0, both
    tags = [tagged(f) for f in both]
    yield "tagged", VLAN | KNOWN, 0, tags * 3
    yield "tagged_exact", VLAN | KNOWN | TWICE, EXACT, tags
    yield "tagged_mixed", VLAN | KNOWN, 0, [tags[0], both[0], tagged(both[0], 0x6007), tagged(both[0], 8),
                                            tagged(tags[0]), tags[1], tags[1][:64], tags[1]]
    yield "six_short", KNOWN, EXACT, [frame6(b""), frame6(b""), frame6(b"")[:61], frame6(b"")]
    mapped = "::ffff:" + US4
    yield "six_mapped", KNOWN, 0, [eth(ip6(udp(data, PEER6, mapped), 17, PEER6, mapped), 0x86DD)] * 2
    yield "turns", NONE | KNOWN, 0, both
    yield "nobody", DOWN | KNOWN, 0, both
    yield "hop_limit", KNOWN, 0, [eth(ip4(udp(data), 17, ttl=1), 0x0800),
                                  eth(ip6(udp(data, PEER6, US6), 17, hlim=1), 0x86DD)]
    yield "too_big", KNOWN, 0, [frame4(long[:1600]), frame6(long[:1600]),
                                eth(ip4(udp(long[:1600]), 17, frag=0x4000), 0x0800)]
    yield "options", KNOWN, EXACT, [frame4(data, options=bytes([1]) * 40), frame4(long[:1700], options=bytes(4))]
    yield "checksum_zero", KNOWN, 0, [eth(ip4(udp(data, csum=0), 17), 0x0800)]
    for name, parts in (("fragments4", parts4(udp(long), 800, 800)),
                        ("fragments6", parts6(udp(long, PEER6, US6), 800, 800))):
        yield name, KNOWN, 0, parts
        yield name + "_backwards", KNOWN, 0, parts[::-1]
        yield name + "_nobody", KNOWN | DOWN, SPLIT, parts[1:] + parts[:1]
        yield name + "_twice", KNOWN | TWICE | NONE, EXACT, parts
        yield name + "_no_first", KNOWN, 0, parts[1:]
    yield "fragment_cut_again", KNOWN, 0, [part4(0, udp(long)[:1600], True)]
    yield "fragment_beyond", KNOWN, 0, [part4(65528, data, False), part4(65520, data[:8], True)]
    known4, known6 = frame4(data), frame6(data)
    for name, quote in (("error_on", on4), ("error_back", back4)):
        dst = FAR4 if quote is on4 else US4
        for size in (19, 20, 27, 28, len(quote)):
            yield f"{name}4_{size}", KNOWN, EXACT, [known4, error4(PEER4, dst, quote[:size])]
    for name, quote in (("error_on", on6), ("error_back", back6)):
        dst = FAR6 if quote is on6 else US6
        for size in (39, 47, 48, len(quote)):
            yield f"{name}6_{size}", KNOWN, EXACT, [known6, error6(PEER6, dst, quote[:size])]
    yield "error_too_big", KNOWN, 0, [known4, error4("198.18.0.77", US4, back4, 3, 4), error6(PEER6, US6, back6, 2, 0)]
    yield "error_turns", KNOWN | NONE, 0, [error4(PEER4, US4, back4), error6(PEER6, US6, back6)]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, flags, memory, frames in cases():
        data = bytes([flags, memory]) + b"".join(struct.pack("!H", len(f)) + f for f in frames)
        (folder / name).write_bytes(data)


main()
