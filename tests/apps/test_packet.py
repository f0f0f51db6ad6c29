#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluice-packet-tx: its options and its mistakes, on the kernel's ring over a veth pair and over DPDK
ports in its own process. Its third place, a net_pktring port, is in tests/drivers/pktring.

usage: test_packet.py SLUICE_PACKET_TX
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'net'))
import wire  # noqa: E402  (the path comes first)

ON = ['--iface', 'wb']
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry', '--log-level=*:error']
HEADER = bytes.fromhex('ffffffffffff02000000000188b5')

# options, and the parts that the sentence must have
MISTAKES = [
    ([], ['--server SOCKET', '--iface NAME', 'EAL']),
    (['--server', '/nonexistent/s'], ['--server /nonexistent/s', 'No such file']),
    (['--server', '/etc/passwd'], ['--server /etc/passwd', 'refused']),
    (['--server', 'a' * 200], ['--server', 'too long']),
    (['--server', 'x', *ON], ['--server', '--iface', 'exclude']),
    (['--server'], ['--server', 'needs a value']),
    (['--iface', 'nope0'], ['--iface nope0', 'no such interface']),
    (['--iface', 'a-name-that-is-too-long'], ['--iface', 'no such interface']),
    (['-s', '21', *ON], ['--size', '21', '22 to 65000']),
    (['--size', '65001', *ON], ['--size', '65001', '22 to 65000']),
    (['-s', '60x', *ON], ['--size', '60x', 'whole number']),
    (['-s'], ['--size', 'needs a value']),
    (['-s', '1519', *ON], ['-s 1519', '--iface wb', 'too long']),
    (['-c', '-5', *ON], ['--count', '-5', 'whole number']),
    (['--count', '1T', *ON], ['--count', '1T', 'whole number']),
    (['--count', '99999999999999999999', *ON], ['--count', 'whole number']),
    (['--version', '0', *ON], ['--version', '0', '1 to 3']),
    (['--version', '4', *ON], ['--version', '4', '1 to 3']),
    (['--frames', '0', *ON], ['--frames', '0', '1 to 65536']),
    (['--frames', '65537', *ON], ['--frames', '65537', '1 to 65536']),
    (['--lo=1', *ON], ['--lo=1', '--help']),
    (['--json=1', *ON], ['--json=1', '--help']),
    (['--nonsense', *ON], ['--nonsense', '--help']),
    (['-x', *ON], ['-x', '--help']),
    ([*ON, 'stray'], ['stray', '--help']),
    ([*EAL, '--', *ON], ['EAL', '--iface']),
    ([*EAL, '--', '--server', 'x'], ['EAL', '--server']),
    (['--', '-c', '1'], ['--server SOCKET']),
    ([*EAL, '--'], ['EAL', 'no port', '--vdev']),
    ([*EAL, '--vdev=net_null0', '--', '-s', '1519'], ['-s 1519', 'port 0', 'too long']),
]


def frame_of(n, size):
    return HEADER + struct.pack('<Q', n) + bytes(i & 0xff for i in range(22, size))


class Bed(wire.Wire):
    def __init__(self, program):
        super().__init__()
        self.program = program
        self.runs = 0

    def run(self, *options, prefix=()):
        self.runs += 1
        own = f'--file-prefix=packet-tx-{os.getpid()}-{self.runs}'
        options = [own, *options] if '--' in options and options[0] != '--' else options
        ret = subprocess.run(['ip', 'netns', 'exec', self.b, *prefix, self.program, *options], text=True,
                             capture_output=True, timeout=wire.PATIENCE_S, check=False)
        shutil.rmtree(f'/var/run/dpdk/{own[14:]}', ignore_errors=True)
        return ret.returncode, ret.stdout, ret.stderr

    def row(self, *options):
        status, out, err = self.run(*options)
        assert status == 0, f'exit status {status}: {err}'
        return json.loads(out)


def run_mistakes(cases, bed):
    def check(options, parts, prefix=()):
        status, out, err = bed.run(*options, prefix=prefix)
        assert status == 2, f'exit status {status}: {out}{err}'
        assert out == '', out
        lines = [line for line in err.splitlines() if not line.startswith('EAL: ')]
        assert len(lines) == 1 and lines[0].startswith('sluice-packet-tx: '), err
        for part in parts:
            assert part in lines[0], f'"{part}" is not in: {lines[0]}'

    for options, parts in MISTAKES:
        with cases('packet-tx ' + ' '.join(o if len(o) < 60 else o[:8] + '...' for o in options)):
            check(options, parts)
    with cases('without CAP_NET_RAW it says so'):
        check(ON, ['CAP_NET_RAW'], ('setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw'))
    with cases('an interface that is down'):
        wire.sh('ip', '-n', bed.b, 'link', 'add', 'down0', 'type', 'veth', 'peer', 'name', 'down1')
        check(['--iface', 'down0'], ['--iface down0', 'down'])
    with cases('--help: every option, status 0'):
        status, out, err = bed.run('--help')
        assert status == 0 and err == '', err
        for option in ('--server', '--iface', '-s,', '-c,', '--version', '--frames', '--loss',
                       '--dontwait', '--json'):
            assert option in out, option
        assert max(len(line) for line in out.splitlines()) <= 100, out


def run_kernel(cases, bed):
    """The kernel's ring, as the yardstick: what arrives is what the options say."""
    for version in (1, 2, 3):
        for size, options in ((22, []), (60, ['--dontwait']), (1514, ['--frames', '7']), (300, ['--loss'])):
            with cases(f'kernel V{version}: {size} bytes {" ".join(options)}'):
                link = bed.link(bed.a, 'wa')
                row = bed.row(*ON, '--json', '-s', str(size), '-c', '2k', '--version', str(version), *options)
                assert (row['backend'], row['version'], row['size'], row['sent']) == \
                    ('kernel', version, size, 2000), row
                assert row['frames'] >= (7 if '--frames' in options else 1024), row
                frames = link.take(2000, lambda f: f[12:14] == HEADER[12:])
                assert frames == [frame_of(n, size) for n in range(2000)], len(frames)
    with cases('the table has what the JSON row has'):
        status, out, _ = bed.run(*ON, '-c', '100')
        lines = out.splitlines()
        assert status == 0 and len(lines) == 2, out
        table = dict(zip(lines[0].split(), lines[1].split()))
        assert (table['backend'], table['version'], table['size'], table['sent']) == \
            ('kernel', '2', '60', '100'), table


def pcap_frames(path):
    with open(path, 'rb') as f:
        data = f.read()
    at, frames = 24, []
    while at + 16 <= len(data):
        size = struct.unpack_from('<I', data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def run_port(cases, bed, folder):
    """A packet socket of our own over a DPDK port that writes what it sends into a file."""
    out = f'{folder}/sent.pcap'
    for version in (1, 2, 3):
        for size, options in ((60, []), (1514, ['--dontwait']), (300, ['--frames', '5', '--loss'])):
            with cases(f'port V{version}: {size} bytes {" ".join(options)}'):
                row = bed.row(*EAL, f'--vdev=net_pcap0,tx_pcap={out}', '--', '--json', '-s', str(size), '-c',
                              '2500', '--version', str(version), *options)
                assert (row['backend'], row['version'], row['sent']) == ('port', version, 2500), row
                frames = pcap_frames(out)
                assert frames == [frame_of(n, size) for n in range(2500)], len(frames)
    with cases('port: with --loss a size that the MTU refuses is passed over and not sent'):
        row = bed.row(*EAL, f'--vdev=net_pcap0,tx_pcap={out}', '--', '--json', '-s', '1519', '-c', '10',
                      '--loss')
        assert row['backend'] == 'port' and pcap_frames(out) == [], row


def main():
    cases = wire.Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    bed = Bed(sys.argv[1])
    folder = tempfile.mkdtemp(prefix='sluice-test')
    try:
        with cases('the script runs to its end'):
            run_mistakes(cases, bed)
            run_kernel(cases, bed)
            run_port(cases, bed, folder)
    finally:
        shutil.rmtree(folder)
    sys.exit(cases.finish())


if __name__ == '__main__':
    main()
