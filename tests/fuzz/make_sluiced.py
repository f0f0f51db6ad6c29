#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Write the corpora of fuzz_spread, fuzz_bridge_frame, fuzz_mirror_frame and fuzz_exception.

usage: make_sluiced.py FOLDER

FOLDER gets a folder for each; a file is one case, named by what it is.
"""
import struct
import sys
from pathlib import Path

from make_inet_input import (EXACT, L4_NONE, PEER4, PEER6, SPLIT, STRIPPED, US4, US6, a4, a6, cut, eth, fold, frame4,
                             frame6, ip4, ip6, part4, part6, pseudo, udp)

DATA = bytes(range(1, 23))
TAG, TAGS = b"\x81\0\0\5", b"\x88\xa8\0\5\x81\0\0\6"


def partial(segment, proto, src, dst):
    """With the sum of the pseudo header in the checksum's field."""
    at = 16 if proto == 6 else 6
    return segment[:at] + struct.pack("!H", fold(pseudo(src, dst, proto, len(segment)))) + segment[at + 2:]


def tcp(payload, options=b""):
    return struct.pack("!HHIIBBHHH", 4000, 80, 7, 9, (5 + len(options) // 4) << 4, 0x18, 512, 0, 0) + options + payload


def tcp4(payload, tags=b"", options=b""):
    return eth(ip4(partial(tcp(payload, options), 6, PEER4, US4), 6), 0x0800, tags=tags)


def tcp6(payload, tags=b""):
    return eth(ip6(partial(tcp(payload), 6, PEER6, US6), 6), 0x86DD, tags=tags)


def udp4(payload, tags=b""):
    return eth(ip4(partial(udp(payload), 17, PEER4, US4), 17), 0x0800, tags=tags)


def udp6(payload, tags=b""):
    return eth(ip6(partial(udp(payload, PEER6, US6), 17, PEER6, US6), 17), 0x86DD, tags=tags)


def frames():
    for name, frame in (("udp4", udp4), ("udp6", udp6), ("tcp4", tcp4), ("tcp6", tcp6)):
        yield name, frame(DATA)
        yield name + "_tag", frame(DATA, TAG)
        yield name + "_tags", frame(DATA, TAGS)
    yield "options", frame4(DATA, options=b"\1" * 40)
    yield "extension", frame6(DATA, bytes([17, 0, 1, 4]) + bytes(4), 0)
    yield "padded", udp4(b"x") + bytes(17)
    yield "arp", eth(bytes(28), 0x0806)
    yield "no_ip", eth(b"\x45", 0x0800)


def spread():
    for name, frame in frames():
        yield name, bytes([EXACT]) + frame
    for at, data, more in cut(udp(bytes(64)), (32,)):
        yield f"fragment4_{at}", bytes([SPLIT]) + part4(at, data, more)
        yield f"fragment6_{at}", bytes([SPLIT]) + part6(at, data, more)
    yield "short", bytes([0]) + frame4(DATA)[:36]


def bridge_frame():
    can = {"nothing": 0, "all": 7}
    for name, frame in frames():
        for port, flags in can.items():
            yield f"{name}_{port}", bytes([L4_NONE, flags]) + frame
    udp_frame = udp4(bytes(1000))
    yield "split", bytes([L4_NONE | SPLIT, 0]) + udp_frame
    yield "split_exact", bytes([L4_NONE | SPLIT | EXACT, 3]) + udp_frame
    yield "stripped", bytes([STRIPPED, 0]) + udp_frame
    yield "stripped_exact", bytes([STRIPPED | EXACT | L4_NONE, 0]) + udp_frame
    yield "shared", bytes([L4_NONE, 8]) + udp_frame
    yield "shared_stripped", bytes([STRIPPED | SPLIT, 8 | 4]) + udp_frame
    yield "joined", bytes([0, 16]) + udp_frame
    yield "looped", bytes([0, 32]) + udp_frame
    ones = b"\xff" * 97  # pieces that begin at odd octets, with carries
    for memory in (SPLIT, SPLIT | EXACT, SPLIT | STRIPPED):
        yield f"odd_{memory}", bytes([L4_NONE | memory, 4]) + udp4(ones + ones)
        yield f"odd6_{memory}", bytes([L4_NONE | memory, 4]) + tcp6(ones + ones)
    yield "no_version", bytes([L4_NONE, 0]) + udp4(DATA).replace(b"\x08\0\x45", b"\x08\0\0", 1)


def mirror_frame():
    v4 = struct.pack("!BBHH", 0, 64, 4000, 9) + a4(PEER4) + a4(US4)
    v6 = struct.pack("!BBHH", 0, 64, 4000, 9) + a6(PEER6) + a6(US6)
    for name, frame in frames():
        flags, addrs = (1, v6) if "6" in name or name == "extension" else (0, v4)
        front = frame[:-len(DATA)]
        yield name, bytes([flags, len(front)]) + addrs + front + DATA
        yield name + "_split", bytes([flags | 2, len(front)]) + addrs + front + DATA
    yield "in_room", bytes([0, 200]) + v4 + bytes(158) + frame4(DATA)
    yield "part", bytes([0, 30]) + v4 + frame4(DATA)[12:]
    yield "odd", bytes([3, 40]) + v6 + bytes(40) + b"\xff" * 79
    yield "nothing4", bytes([0, 0]) + v4
    yield "nothing6", bytes([1, 0]) + v6 + DATA


def vnet(flags=0, gso=0, hdr_len=0, size=0, start=0, offset=0):
    return struct.pack("<BBHHHHH", flags, gso, hdr_len, size, start, offset, 0)


def exception():
    can = {"plain": 0, "sums": 3, "cuts": 7}
    data = bytes(range(256)) * 16
    for name, flags in can.items():
        yield f"as_it_is_{name}", bytes([flags]) + vnet() + frame4(DATA)
        yield f"udp4_{name}", bytes([flags]) + vnet(1, 0, 0, 0, 34, 6) + udp4(DATA)
        yield f"udp6_{name}", bytes([flags]) + vnet(1, 0, 0, 0, 54, 6) + udp6(DATA)
        yield f"tcp4_{name}", bytes([flags]) + vnet(1, 1, 54, 1400, 34, 16) + tcp4(data)
        yield f"tcp6_{name}", bytes([flags]) + vnet(1, 4, 74, 1400, 54, 16) + tcp6(data)
        yield f"ecn_{name}", bytes([flags]) + vnet(1, 0x81, 66, 500, 34, 16) + tcp4(data, options=b"\1" * 12)
        yield f"no_sum_{name}", bytes([flags]) + vnet(0, 1, 54, 1400) + tcp4(data)
        yield f"datagrams_{name}", bytes([flags]) + vnet(1, 5, 42, 512, 34, 6) + udp4(data)
        yield f"elsewhere_{name}", bytes([flags]) + vnet(1, 0, 0, 0, 30, 9) + tcp4(DATA)
    for name, frame, tags in (("udp4", udp4(DATA), 0), ("udp6", udp6(DATA), 0), ("tcp4", tcp4(data[:900], TAG), 1),
                              ("tcp6", tcp6(data[:900], TAGS), 2), ("arp", eth(bytes(28), 0x0806), 0)):
        for said, flags in (("good", 16), ("none", 32), ("joined", 32 | 64), ("joined_good", 16 | 64)):
            yield f"in_{name}_{said}", bytes([8 | flags, tags]) + struct.pack("<H", 400) + frame
    yield "in_short", bytes([8 | 32, 0, 0, 0]) + udp4(DATA)[:41]


def main():
    for make in (spread, bridge_frame, mirror_frame, exception):
        folder = Path(sys.argv[1]) / make.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in make():
            (folder / name).write_bytes(data)


main()
