#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Let Scapy's STAMP layers make the requests and read the answers of the reflector.

usage: test_stamp_reference.py STAMP_DUMP
"""
import logging
import struct
import subprocess
import sys
from fractions import Fraction

logging.getLogger('scapy').setLevel(logging.ERROR)
try:
    from scapy.contrib.stamp import (ErrorEstimate, STAMPSessionReflectorTestUnauthenticated,
                                     STAMPSessionSenderTestUnauthenticated, STAMPTestTLV)
    from scapy.layers.inet import UDP
except ImportError as e:
    print(f'SKIP all: no Scapy with STAMP: {e}')
    print('0 passed, 0 failed, 1 skipped')
    sys.exit(0)

T1_NS = 1796083199250000000
T2_NS = 1796083200123456789
T3_NS = 1796083200123499999
NTP_1970 = 2208988800
TAI = 37


def ntp(ns):
    return (ns // 10**9 + NTP_1970) % 2**32 << 32 | (ns % 10**9 << 32) // 10**9


def ptp(ns):
    return (ns // 10**9 + TAI) % 2**32 << 32 | ns % 10**9


def ask(dump, how, requests, sport=50000, ttl=254):
    """The answers to requests (UDP payloads), as (outcome, payload)."""
    lines = ''.join(f'{sport} {ttl} {T2_NS} {T3_NS} {r.hex()}\n' for r in requests)
    out = subprocess.run([dump] + [str(h) for h in how], input=lines, check=True,
                         capture_output=True, text=True).stdout.split('\n')
    return [(o.split(' ')[0], bytes.fromhex(o.split(' ')[1])) for o in out if o]


def request(seq=1, ssid=0, z=0, tlvs=(), padding=b''):
    p = STAMPSessionSenderTestUnauthenticated(
        seq=seq, err_estimate=ErrorEstimate(S=1, Z=z, scale=3, multiplier=200), ssid=ssid,
        tlv_objects=list(tlvs))
    raw = bytes(p)
    # Scapy takes times as fractions of seconds; the exact 64 bits are of interest here.
    return raw[:4] + struct.pack('!Q', ptp(T1_NS) if z else ntp(T1_NS)) + raw[12:] + padding


def parse(payload):
    """The answer as Scapy reads it from a datagram out of port 862, without options: Scapy 2.5 takes
    their length from a parent that a dissected datagram does not have."""
    base = payload[:44]
    p = UDP(bytes(UDP(sport=862, dport=50000, len=8 + len(base))) + base)
    assert STAMPSessionReflectorTestUnauthenticated in p
    assert bytes(p[STAMPSessionReflectorTestUnauthenticated]) == base
    return p[STAMPSessionReflectorTestUnauthenticated]


def options(data):
    found = []
    while data:
        t = STAMPTestTLV(data)
        found.append((int(t.flags), t.type, bytes(t.value)))
        data = data[4 + t.len:]
    return found


def check_answer(answer, form, z_sender, seq, ssid, synchronised, error_ns):
    p = parse(answer)
    z = {'ntp': 0, 'ptp': 1, 'sender': z_sender}[form]
    encode = ptp if z else ntp
    assert p.seq == seq and p.seq_sender == seq
    assert p.err_estimate.S == synchronised and p.err_estimate.Z == z
    error = Fraction(p.err_estimate.multiplier * 2**p.err_estimate.scale, 2**32)
    assert Fraction(error_ns, 10**9) <= error <= Fraction(error_ns, 10**9) * Fraction(102, 100)
    e = p.err_estimate_sender
    assert (e.S, e.Z, e.scale, e.multiplier) == (1, z_sender, 3, 200)
    assert p.ssid == ssid and p.mbz1 == 0 and p.mbz2 == 0 and p.ttl_sender == 254
    assert struct.unpack('!Q', answer[4:12])[0] == encode(T3_NS)
    assert struct.unpack('!Q', answer[16:24])[0] == encode(T2_NS)
    assert struct.unpack('!Q', answer[28:36])[0] == (ptp(T1_NS) if z_sender else ntp(T1_NS))
    return p


def case_formats(dump):
    for form in ('ntp', 'ptp', 'sender'):
        for z in (0, 1):
            for synchronised, error_ns in ((0, 16 * 10**9), (1, 1500), (1, 2000000)):
                requests = [request(seq=s, z=z) for s in (0, 1, 2**32 - 1)]
                answers = ask(dump, (form, 0, synchronised, error_ns, TAI), requests)
                for seq, (outcome, answer) in zip((0, 1, 2**32 - 1), answers):
                    assert outcome == 'answered' and len(answer) == 44
                    check_answer(answer, form, z, seq, 0, synchronised, error_ns)


def case_session_ids(dump):
    for on in (0, 1):
        [(_, answer)] = ask(dump, ('ntp', on, 1, 1500, TAI), [request(ssid=0xabcd)])
        check_answer(answer, 'ntp', 0, 1, 0xabcd if on else 0, 1, 1500)


def case_options_come_back(dump):
    """Options that we do not know: back as they came, with the flag U that the sender has set."""
    tlvs = [STAMPTestTLV(flags='U', type=1, len=8, value=b'\0' * 8),
            STAMPTestTLV(flags='U', type=200, len=3, value=b'abc')]
    r = request(tlvs=tlvs)
    [(outcome, answer)] = ask(dump, ('ntp', 1, 1, 1500, TAI), [r])
    assert outcome == 'answered' and answer[44:] == r[44:]
    check_answer(answer, 'ntp', 0, 1, 0, 1, 1500)
    assert options(answer[44:]) == [(int(t.flags), t.type, bytes(t.value)) for t in tlvs]


def case_sizes(dump):
    requests = [(request(padding=b'\xa5' * 1500))[:n] for n in range(1, 1473, 1)]
    answers = ask(dump, ('ntp', 0, 1, 1500, TAI), requests)
    assert len(answers) == len(requests)
    for r, (outcome, answer) in zip(requests, answers):
        assert len(answer) == len(r)
        assert (outcome == 'answered') == (len(r) >= 41), len(r)
        assert answer[44:] == r[44:]
        if outcome != 'answered':
            assert answer == r


def case_an_answer_gets_none(dump):
    how = ('ntp', 0, 1, 1500, TAI)
    [(_, answer)] = ask(dump, how, [request()])
    [(outcome, again)] = ask(dump, how, [answer])
    assert outcome == 'reflected' and again == answer


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = [(n[5:], f) for n, f in globals().items() if n.startswith('case_')]
    failed = 0
    for name, case in cases:
        try:
            case(sys.argv[1])
            print(f'ok   {name}')
        except (AssertionError, subprocess.CalledProcessError) as e:
            failed += 1
            line = e.__traceback__
            while line.tb_next is not None:
                line = line.tb_next
            print(f'FAIL {name}: line {line.tb_lineno}: {e}')
    print(f'{len(cases) - failed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
