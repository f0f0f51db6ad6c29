#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The stock testpmd with the plugin, sluice-packet-tx and the client library as its clients, and the
host kernel behind it.

    sluice-packet-tx, ring_client.py      namespace B: testpmd (io)                namespace A
         shared memory  ---------------- net_pktring0 -- net_af_packet0 -- wb --veth-- wa: kernel
                                         net_pktring1 (a second ring) or net_tap0

usage: test_testpmd.py PLUGIN SLUICE_PACKET_TX LIBSLUICE_CLIENT
"""
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'tpacket'))
import ring_client  # noqa: E402  (the path comes first)
import rig as r  # noqa: E402

COUNT = 3000
HEADER = bytes.fromhex('ffffffffffff02000000000188b5')
SEED = random.randrange(1 << 32)


def frame_of(n, size):
    """What sluice-packet-tx sends as its frame n."""
    return HEADER + struct.pack('<Q', n) + bytes(i & 0xff for i in range(22, size))


def random_frames(count, most, rng):
    return [HEADER + rng.randbytes(rng.randrange(0, most - 13)) for _ in range(count)]


class Bench:
    """Folder, program and library, and one testpmd at a time."""

    def __init__(self, rig):
        self.rig = rig
        self.program, self.lib = sys.argv[2], ring_client.load(sys.argv[3])
        self.folder = tempfile.mkdtemp(prefix='sluice-pktring')
        self.path = f'{self.folder}/s0'
        self.a, self.b = rig.namespace('a'), rig.namespace('b')
        rig.veth(self.a, 'wa', self.b, 'wb')

    def testpmd(self, second, args='', mode='io', **options):
        pmd = self.rig.testpmd(self.b, f'net_pktring0,path={self.path}{args}', second, mode=mode,
                               memory=('--no-huge', '-m', '256'), **options)
        pmd.start()
        return pmd

    def packet_tx(self, *options, count=COUNT):
        ret = subprocess.run([self.program, '--server', self.path, '--json', '-c', str(count), *options],
                             capture_output=True, text=True, timeout=r.PATIENCE_S, check=False)
        assert ret.returncode == 0 and not ret.stderr, ret.stderr
        return json.loads(ret.stdout)

    def client(self, version=2, tx=0, rx=0, path=None):
        return ring_client.Client(self.lib, path or self.path, version, tx, rx)


def case_wire(bench, pmd, before, version, size):
    """Frames of sluice-packet-tx, seen by a packet socket of the kernel at the far end of the veth."""
    link = r.Link(bench.a, 'wa')
    row = bench.packet_tx('-s', str(size), '--version', str(version))
    assert row['sent'] == COUNT and row['version'] == version and row['size'] == size, row
    for n in range(COUNT):
        assert link.receive() == frame_of(n, size), f'frame {n}'
    link.close()
    pmd.settle()
    ring, wire = pmd.stats(0), pmd.stats(1)
    assert ring['RX-packets'] - before['RX-packets'] == COUNT, (before, ring)
    assert ring['RX-bytes'] - before['RX-bytes'] == COUNT * size, (before, ring)
    assert wire['TX-packets'] == ring['RX-packets'] and wire['TX-errors'] == 0, wire
    return ring


def run_wire(cases, bench):
    """Both ways of taking a slot, every version, several sizes; one testpmd for each way."""
    for copy in (0, 1):
        pmd = bench.testpmd('net_af_packet0,iface=wb', f',copy={copy}')
        before = pmd.stats(0)
        for version in (1, 2, 3):
            for size in (22, 60, 1514):
                with cases(f'packet-tx V{version}, {size} bytes, copy={copy}: to the wire unchanged, '
                           'in order, counters agree'):
                    before = case_wire(bench, pmd, before, version, size)
        with cases(f'no slot was bad, no mbuf missing, copy={copy}'):
            x = pmd.xstats(0)
            assert x['rx_bad_slots'] == 0 and x['rx_no_mbuf'] == 0, x
        for version in (1, 2, 3):
            with cases(f'from the wire into a V{version} ring, copy={copy}'):
                case_from_wire(bench, pmd, version)
        with cases(f'the port has its end, copy={copy}'):
            pmd.stop()
            assert pmd.quit() == 0 and not os.path.exists(bench.path)


def case_from_wire(bench, pmd, version):
    rng = random.Random(SEED + version)
    link = r.Link(bench.a, 'wa')
    client = bench.client(version, rx=2048)
    sent = [HEADER[:12] + b'\x88\xb5' + rng.randbytes(rng.randrange(46, 1501)) for _ in range(500)]
    before = pmd.stats(0)['TX-packets']
    for n, frame in enumerate(sent):
        link.send(frame)
        got = client.receive(r.PATIENCE_S)
        assert got == frame, f'frame {n} of seed {SEED + version}'
    pmd.settle()
    assert pmd.stats(0)['TX-packets'] - before == len(sent)
    assert pmd.xstats(0)['tx_client_ring_full'] == 0
    client.close()
    link.close()


def pcap_frames(path):
    with open(path, 'rb') as f:
        data = f.read()
    at, frames = 24, []
    while at + 16 <= len(data):
        size = struct.unpack_from('<I', data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def run_tap(cases, bench):
    """tcpdump on the kernel's end of a tap."""
    pmd = bench.testpmd('net_tap0,iface=tt0')
    with cases('tcpdump sees the frames on a tap, unchanged'):
        r.sh('ip', '-n', bench.b, 'link', 'set', 'tt0', 'up')
        out = f'{bench.folder}/capture'
        dump = bench.rig.run(bench.b, 'tcpdump', '-i', 'tt0', '-w', out, '-c', '1000', '-U', '-Z', 'root',
                             '-B', '16384', 'ether proto 0x88b5', stderr=subprocess.PIPE)
        while b'listening on' not in dump.stderr.readline():
            assert dump.poll() is None, 'tcpdump ended'
        row = bench.packet_tx('-s', '300', '--version', '3', '--dontwait', count=1000)
        assert row['sent'] == 1000, row
        dump.communicate(timeout=r.PATIENCE_S)
        assert pcap_frames(out) == [frame_of(n, 300) for n in range(1000)]
        assert pmd.stats(0)['RX-packets'] == 1000, pmd.stats(0)
    pmd.stop()
    assert pmd.quit() == 0


def exchange(near, far, frames):
    """Send at one end, receive at the other; a window keeps within the receive ring."""
    sent = got = 0
    while got < len(frames):
        while sent < len(frames) and sent - got < 64 and near.send(frames[sent]):
            sent += 1
        data = far.receive(r.PATIENCE_S)
        assert data == frames[got], f'frame {got}'
        got += 1


def run_two_rings(cases, bench):
    """Two ports, a client at each; macswap writes into the frames."""
    other = f'{bench.folder}/s1'
    for mode, args in (('io', ''), ('macswap', ''), ('macswap', ',copy=1')):
        pmd = bench.testpmd(f'net_pktring1,path={other}', args, mode)
        for version in (1, 2, 3):
            with cases(f'{mode} between two rings of V{version}{args}, both directions'):
                near = bench.client(version, 256, 256)
                far = bench.client(version, 256, 256, other)
                frames = random_frames(300, 1518, random.Random(SEED))
                if mode == 'io':
                    exchange(near, far, frames)
                    exchange(far, near, frames)
                else:
                    for f in frames:
                        assert near.send(f)
                        got = far.receive(r.PATIENCE_S)
                        assert got == f[6:12] + f[:6] + f[12:], f'seed {SEED}'
                assert near.settled(r.PATIENCE_S) and far.settled(r.PATIENCE_S)
                near.close()
                far.close()
        pmd.stop()
        assert pmd.quit() == 0


def run_ends(cases, bench):
    """What happens when one of the two goes."""
    pmd = bench.testpmd('net_null0')
    with cases('a generator is killed while it sends, ten times: the port serves the next one'):
        for _ in range(10):
            p = subprocess.Popen([bench.program, '--server', bench.path, '-c', '0'],
                                 stdout=subprocess.DEVNULL)
            before = pmd.stats(0)['RX-packets']
            pmd.until_stat('RX-packets', before + 1000)
            p.kill()
            p.wait()
        before = pmd.stats(0)['RX-packets']
        assert bench.packet_tx()['sent'] == COUNT
        # A killed one's last requests are gone with it.
        assert pmd.stats(0)['RX-packets'] - before >= COUNT
    with cases('SIGINT ends the generator with its row; every slot has come back'):
        p = subprocess.Popen([bench.program, '--server', bench.path, '-c', '0', '--json'], text=True,
                             stdout=subprocess.PIPE)
        pmd.until_stat('RX-packets', pmd.stats(0)['RX-packets'] + 1000)
        p.send_signal(signal.SIGINT)
        out = p.communicate(timeout=r.PATIENCE_S)[0]
        assert p.returncode == 0 and json.loads(out)['sent'] >= 1000, out
    with cases('frames that the port refuses: the generator says so'):
        client = bench.client(2, 32)
        assert client.send(bytes(13))
        end = time.monotonic() + r.PATIENCE_S
        while client.refused() == 0 and time.monotonic() < end:
            time.sleep(0.001)
        pmd.settle()
        assert client.refused() == 1 and pmd.xstats(0)['rx_bad_slots'] == 1
        client.close()
    with cases('the port goes while a generator sends: status 2 and a sentence'):
        p = subprocess.Popen([bench.program, '--server', bench.path, '-c', '0'], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        pmd.until_stat('RX-packets', pmd.stats(0)['RX-packets'] + 1000)
        pmd.stop()
        assert pmd.quit() == 0
        out, err = p.communicate(timeout=r.PATIENCE_S)
        assert p.returncode == 2 and out == '' and 'hung up' in err and err.count('\n') == 1, err


def telemetry(prefix, command):
    """What a program with that file prefix answers."""
    path = f'/var/run/dpdk/{prefix}/dpdk_telemetry.v2'
    end = time.monotonic() + r.PATIENCE_S
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.connect(path)
                s.recv(4096)  # what it says of itself
                s.send(command.encode())
                answer = json.loads(s.recv(1 << 16))[command]
            except (FileNotFoundError, ConnectionRefusedError):
                answer = None
        if answer:
            return answer
        assert time.monotonic() < end, f'no answer to {command}'
        time.sleep(0.05)


def run_telemetry(cases, bench):
    """A packet socket over a null port, and a port of net_pktring, in one process."""
    prefix = f'{bench.rig.tag}ntel'
    with cases('telemetry: /sluice/packet and /sluice/pktring'):
        p = bench.rig.run(bench.b, bench.program, '--no-huge', '-m', '256', '--no-pci', '-l', '0',
                          '--log-level=*:error', f'--file-prefix={prefix}', '-d', bench.rig.plugin,
                          '--vdev=net_null0', f'--vdev=net_pktring0,path={bench.path}', '--', '-c', '0',
                          '--version', '3', '--loss', stdout=subprocess.DEVNULL)
        end = time.monotonic() + r.PATIENCE_S
        (one,) = telemetry(prefix, '/sluice/packet').values()
        while not one.get('tx_packets') and time.monotonic() < end:
            (one,) = telemetry(prefix, '/sluice/packet').values()
        assert (one['type'], one['ifindex'], one['running'], one['loss']) == ('raw', 1, 0, 1), one
        assert one['tx_ring']['version'] == 3 and one['tx_ring']['frame_nr'] >= 1024, one
        assert 'rx_ring' not in one and one['tx_bad'] == 0 and one['tx_packets'] > 0, one
        (port,) = telemetry(prefix, '/sluice/pktring').values()
        assert (port['path'], port['queues'], port['copy'], port['clients']) == (bench.path, 1, 0, 0), port
        client = bench.client(2, rx=256)
        (port,) = telemetry(prefix, '/sluice/pktring').values()
        # The answer to a hello may be there a moment before the counters are.
        while port['clients'] == 0 and time.monotonic() < end:
            (port,) = telemetry(prefix, '/sluice/pktring').values()
        assert (port['clients'], port['accepted'], port['refused']) == (1, 1, 0), port
        client.close()
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=r.PATIENCE_S) == 0
        shutil.rmtree(f'/var/run/dpdk/{prefix}', ignore_errors=True)


def run(cases, rig):
    print(f'     seed {SEED}')
    bench = Bench(rig)
    try:
        run_wire(cases, bench)
        run_tap(cases, bench)
        run_two_rings(cases, bench)
        run_ends(cases, bench)
        run_telemetry(cases, bench)
    finally:
        shutil.rmtree(bench.folder)


if __name__ == '__main__':
    ring_client.main(run, r)
