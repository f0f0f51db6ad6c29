#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The example of an integrator's program: built by its own Makefile against an installation alone, run on
one end of a veth pair, and asked by the resolver of the other end's namespace and with queries made by hand.

usage: test_example.py BUILD SOURCE
"""
import glob
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from package import Install

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'net'))
import wire  # noqa: E402  (the path comes first)

V4, V6 = '198.18.0.2', '2001:db8::2'
QUERY_MAX, GROWTH, HEADER = 512, 28, 12
A, TXT, AAAA, ANY = 1, 16, 28, 255
NOERROR, FORMERR, NXDOMAIN, NOTIMP, REFUSED = 0, 1, 3, 4, 5
WWW = ('www', 'example', 'test')
EDNS = b'\0' + struct.pack('>HHIH', 41, 1232, 0, 0)


def query(labels, what, in_class=1, flags=0x0100, counts=(1, 0, 0, 0), tail=b'', ident=0x1234):
    name = b''.join(bytes([len(x)]) + x.encode() for x in labels) + b'\0'
    return struct.pack('>6H', ident, flags, *counts) + name + struct.pack('>2H', what, in_class) + tail


# query, code, whether the question comes back, address
GOOD = [
    (query(WWW, A), NOERROR, True, '192.0.2.80'),
    (query(WWW, AAAA), NOERROR, True, '2001:db8::80'),
    (query(('wWw', 'EXAMPLE', 'tesT'), A), NOERROR, True, '192.0.2.80'),
    (query(WWW, AAAA, counts=(1, 0, 0, 1), tail=EDNS), NOERROR, True, '2001:db8::80'),
    (query(WWW, TXT), NOERROR, True, None),
    (query(WWW, ANY), NOERROR, True, None),
    (query(('mail', 'example', 'test'), A), NXDOMAIN, True, None),
    (query(('www.example', 'test'), A), REFUSED, True, None),
    (query(('example', 'org'), A), REFUSED, True, None),
    (query((), 2), REFUSED, True, None),
    (query(WWW, TXT, in_class=3), REFUSED, True, None),
]
HOSTILE = [
    (query(WWW, A, flags=0x2900), NOTIMP, False, None),
    (query(WWW, A, counts=(2, 0, 0, 0)), FORMERR, False, None),
    (query(WWW, A, counts=(1, 1, 0, 0)), FORMERR, False, None),
    (query(WWW, A, tail=b'x'), FORMERR, False, None),
    (query(WWW, A)[:-1], FORMERR, False, None),
    (query(WWW, A)[:HEADER], FORMERR, False, None),
    (query(WWW, A)[:HEADER] + b'\xc0\x0c\0\1\0\1', FORMERR, False, None),
    (query(('x' * 63,) * 4, A), FORMERR, False, None),
]
UNANSWERED = [
    query(WWW, A)[:HEADER - 1],
    query(WWW, A, flags=0x8180),
    query(WWW, A, counts=(1, 0, 0, 1), tail=b'\0' * (QUERY_MAX + 1)),
    b'',
]


class Vnf:
    """The program, answering on B's end of the wire."""

    def __init__(self, install, bed, path):
        plugin = glob.glob(install.root + '/**/librte_net_tpacket.so', recursive=True)[0]
        self.prefix = f'vnf{os.getpid()}'
        self.bed = bed
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', bed.b, path, '--no-huge', '-m', '256', '--no-pci', '--no-shconf',
             f'--file-prefix={self.prefix}', '-l', ','.join(self.cpus()), '-d', plugin,
             f'--vdev=net_tpacket0,iface=wb,qpairs={len(self.cpus())}', '--', V4 + '/24', V6 + '/64'],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=install.env)
        bed.probes.append(self)
        for line in self.process.stdout:
            if line == 'answering\n':
                return
        raise RuntimeError(f'it ended with {self.process.wait()}: {self.process.stderr.read()}')

    @staticmethod
    def cpus():
        return [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]

    def finish(self):
        self.process.terminate()
        _, err = self.process.communicate(timeout=wire.PATIENCE_S)
        assert self.process.returncode == 0, err

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(f'/var/run/dpdk/{self.prefix}', ignore_errors=True)


def ask(sock, octets):
    sock.send(octets)
    return sock.recv(65536)


def check_answer(octets, answer, code, question, address):
    ident, flags, *counts = struct.unpack('>6H', answer[:HEADER])
    assert ident == 0x1234 and flags & 0x8000 and flags & 15 == code, hex(flags)
    assert counts == [int(question), int(address is not None), 0, 0], counts
    assert bool(flags & 0x0400) == (code in (NOERROR, NXDOMAIN)), 'authoritative'
    assert len(answer) <= len(octets) + GROWTH, len(answer)
    if not question:
        assert len(answer) == HEADER, answer
        return
    family = socket.AF_INET6 if address and ':' in address else socket.AF_INET
    data = socket.inet_pton(family, address) if address else b''
    end = len(answer) - (12 + len(data) if address else 0)
    assert answer[HEADER:end] == octets[HEADER:end], 'the question came back changed'
    if address:
        what = AAAA if family == socket.AF_INET6 else A
        assert answer[end:] == struct.pack('>HHHIH', 0xc00c, what, 1, 300, len(data)) + data, answer[end:]


def check_table(sock, table):
    for octets, code, question, address in table:
        check_answer(octets, ask(sock, octets), code, question, address)


def check_unanswered(sock):
    """What gets no answer: the next answer is that of the next query."""
    for octets in UNANSWERED:
        sock.send(octets)
        mark = random.randrange(1 << 16)
        assert ask(sock, query(WWW, A, ident=mark))[:2] == struct.pack('>H', mark), octets


def spoilt(rng):
    octets = bytearray(rng.choice(GOOD + HOSTILE)[0])
    for _ in range(rng.randrange(1, 4)):
        octets[rng.randrange(len(octets))] = rng.randrange(256)
    return bytes(octets[:rng.randrange(len(octets) + 1)] if rng.randrange(4) == 0 else octets)


def spoilt_answers(sock, seed):
    """{query's number: answer} of spoilt queries that bear their numbers, and the queries."""
    rng = random.Random(seed)
    queries = [struct.pack('>H', n) + spoilt(rng)[2:] for n in range(200)]
    answers = {}
    for n in range(0, len(queries), 20):
        for octets in queries[n:n + 20]:
            sock.send(octets)
        # A flow stays on one lcore and keeps its order, so this answer is the last.
        sock.send(query(WWW, A, ident=0xffff))
        while (answer := sock.recv(65536))[:2] != b'\xff\xff':
            answers[answer[:2]] = answer
    return answers, queries


def spoilt_stay_small(answers, queries):
    assert len(answers) > len(queries) / 2, 'hardly any spoilt query was answered'
    for octets in queries:
        answer = answers.get(octets[:2])
        assert answer is None or HEADER <= len(answer) <= len(octets) + GROWTH, (octets, answer)


def resolver_finds(bed):
    """The C library's resolver in A, which reads the namespace's own resolv.conf."""
    found = bed.in_a('getent', 'ahosts', 'www.example.test').split('\n')
    assert {line.split()[0] for line in found if line} == {'192.0.2.80', '2001:db8::80'}, found
    assert bed.in_a('getent', 'ahosts', 'nope.example.test', check=False) == ''


def client(bed, address):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    sock = bed.socket(bed.a, family, socket.SOCK_DGRAM)
    sock.settimeout(wire.PATIENCE_S)
    sock.connect((address, 53))
    return sock


def wait_for_answer(bed, address):
    """An IPv6 address is usable after a second of duplicate detection; until then queries are lost."""
    end = time.monotonic() + wire.PATIENCE_S
    while time.monotonic() < end:
        sock = client(bed, address)
        sock.settimeout(0.2)
        try:
            return ask(sock, query(WWW, A))
        except OSError:
            pass
    raise RuntimeError(f'{address} does not answer')


def run_program(cases, install, bed, name):
    vnf = Vnf(install, bed, f'{install.root}/example/{name}')
    v4, v6 = client(bed, V4), client(bed, V6)
    with cases(f'{name}: answers'):
        check_table(v4, GOOD)
    with cases(f'{name}: hostile queries'):
        check_table(v4, HOSTILE)
        check_unanswered(v4)
    with cases(f'{name}: the resolver of the C library'):
        resolver_finds(bed)
    with cases(f'{name}: over IPv6'):
        wait_for_answer(bed, V6)
        check_table(v6, GOOD)
    with cases(f'{name}: spoilt queries'):
        answers, queries = spoilt_answers(v4, 1)
        spoilt_stay_small(answers, queries)
    with cases(f'{name}: comes to its end'):
        vnf.finish()
    return answers


def make(install, source):
    """Outside of the tree, and with warnings as errors."""
    folder = install.root + '/example'
    shutil.copytree(f'{source}/apps/example-vnf', folder)
    made = subprocess.run(['make', '-C', folder, 'CFLAGS=-Wall -Wextra -Werror', 'CXXFLAGS=-Wall -Wextra -Werror'],
                          env=install.env, text=True, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


def run(cases, build, source, root):
    with cases('it builds against the installation alone'):
        install = Install(build, root)
        make(install, source)
    if os.geteuid() != 0:
        cases.skip('answers', 'needs root for network namespaces')
        return
    bed = wire.Wire(ipv6_a=True)
    wire.sh('ip', '-n', bed.a, 'addr', 'add', '198.18.0.1/24', 'dev', 'wa')
    wire.sh('ip', '-n', bed.a, 'addr', 'add', '2001:db8::1/64', 'dev', 'wa', 'nodad')
    settings = f'/etc/netns/{bed.a}'
    os.makedirs(settings)
    try:
        with open(settings + '/resolv.conf', 'w', encoding='utf-8') as f:
            f.write(f'nameserver {V4}\n')
        in_c = run_program(cases, install, bed, 'example-vnf')
        in_cxx = run_program(cases, install, bed, 'example-vnf++')
        with cases('both answer spoilt queries alike'):
            assert in_c == in_cxx
    finally:
        shutil.rmtree(settings)


def main(build, source):
    cases = wire.Cases()
    # Below the build folder: DPDK loads no plugin from below a folder that all may write to.
    with tempfile.TemporaryDirectory(dir=build) as root:
        with cases('the script runs to its end'):
            run(cases, build, source, root)
    return cases.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
