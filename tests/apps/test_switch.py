#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluiced as a switch between three kernels, and as a host beside it.

        namespace 1, 2, 3                         namespace D
        10.7.0.1 .2 .3     c1 c2 c3 <-> d1 d2 d3  sluiced: [bridge lan] over d1 d2 d3
        198.18.0.1         c4 (in 1) <-> d4       sluiced: services on 198.18.0.2
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'net'))
import follow  # noqa: E402  (the path comes first)
import scrape  # noqa: E402
import wire  # noqa: E402

NAME = f'sw{os.getpid()}'
RUNTIME = f'/var/run/dpdk/sluiced-{NAME}'
CPUS = sorted(os.sched_getaffinity(0))
HOST = '198.18.0.2'


def conf(idle='backoff', lan='', services=''):
    """Two lcores, if there are, share the bridge's ports."""
    text = f'[sluiced]\nname = {NAME}\nlcores = {",".join(map(str, CPUS[:2]))}\nhugepages = no\nidle = {idle}\n'
    for i in (1, 2, 3):
        text += f'[port lan{i}]\ndevargs = net_tpacket{i},iface=d{i}\nlcores = {CPUS[i % len(CPUS[:2])]}\n'
    text += f'[port wan]\ndevargs = net_tpacket4,iface=d4\naddress = {HOST}/24\nqueues = 1\nlcores = {",".join(map(str, CPUS[:2]))}\n'
    return text + scrape.SECTION + f'[bridge lan]\nports = lan1 lan2 lan3\n{lan}' \
        f'[service echo]\nkind = echo\nudp-port = 7\n[service sink]\nkind = sink\nudp-port = 9\n{services}'


class Bed:
    def __init__(self, sluiced, sluicectl):
        self.sluiced, self.sluicectl = sluiced, sluicectl
        self.ns = [f'slS{i}x{os.getpid()}' for i in range(4)]
        self.folder = tempfile.mkdtemp(prefix='sluiced-switch-')
        self.path, self.process = f'{self.folder}/t.conf', None
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(sig, lambda *_: sys.exit(130))
        for ns in self.ns:
            wire.sh('ip', 'netns', 'add', ns)
            for scope in ('default', 'all'):
                wire.sh('ip', 'netns', 'exec', ns, 'sysctl', '-qw', f'net.ipv6.conf.{scope}.disable_ipv6=1')
        for i in (1, 2, 3, 4):
            ns = self.ns[i % 4 + i // 4]
            wire.sh('ip', '-n', ns, 'link', 'add', f'c{i}', 'type', 'veth', 'peer', 'name', f'd{i}',
                    'netns', self.ns[0])
            addr = '198.18.0.1/24' if i == 4 else f'10.7.0.{i}/24'
            wire.sh('ip', '-n', ns, 'addr', 'add', addr, 'dev', f'c{i}')
            wire.sh('ip', '-n', ns, 'link', 'set', f'c{i}', 'up')
            wire.sh('ip', '-n', self.ns[0], 'link', 'set', f'd{i}', 'arp', 'off', 'up')

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for ns in self.ns:
            wire.sh('ip', 'netns', 'del', ns, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(RUNTIME, ignore_errors=True)

    def write(self, text):
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write(text)

    def said(self):
        with open(f'{self.folder}/log', encoding='utf-8') as f:
            return f.read()

    def start(self, text):
        self.write(text)
        with open(f'{self.folder}/log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(['ip', 'netns', 'exec', self.ns[0], self.sluiced, self.path],
                                            stdout=log, stderr=log)
        end = time.monotonic() + wire.PATIENCE_S
        while ': ready' not in self.said():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f'sluiced does not start: {self.said()}')
            time.sleep(0.02)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=wire.PATIENCE_S)
        assert status == 0 and 'did not come back' not in self.said(), f'{status}: {self.said()}'

    def ctl(self, *command, status=0, as_json=True):
        ret = subprocess.run([self.sluicectl, '--name', NAME, *(['--json'] if as_json else []), *command],
                             text=True, capture_output=True, check=False, timeout=wire.PATIENCE_S)
        assert ret.returncode == status, f'{command}: {ret.returncode} {ret.stdout} {ret.stderr}'
        return json.loads(ret.stdout) if as_json else ret.stdout

    def audit(self):
        answer = self.ctl('audit')
        assert answer['balanced'] is True, answer
        return {a['name']: a for a in answer['lines']}

    def reload(self, text):
        self.write(text)
        answer = self.ctl('reload')
        assert answer['result'] == 'applied', answer

    def ping(self, i, addr, *options):
        """One after the other: once one was answered, ping waits for the last no longer than two round trips."""
        for _ in range(3):
            said = wire.sh('ip', 'netns', 'exec', self.ns[i], 'ping', '-c', '1', '-W', '5', *options, addr, check=False)
            assert '1 received' in said, said

    def bridge(self):
        """The bridge's counters, with all that a receiver has seen: an audit has every lcore end its turn."""
        self.audit()
        return self.ctl('bridge')[0]

    def stations(self):
        return {s['mac']: s['port'] for s in self.ctl('bridge', 'lan')}

    def raw(self, i):
        """Frames on a client's interface."""
        return wire.Link(self, self.ns[i], f'c{i}')

    @staticmethod
    def socket(ns, *args):
        return wire.inside(ns, lambda: socket.socket(*args))

    def bytes_of(self, i):
        return bytes.fromhex(wire.mac(self.ns[i], f'c{i}').replace(':', ''))

    def udp(self, i=1, port=0, host=''):
        s = wire.inside(self.ns[i], lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        s.settimeout(wire.PATIENCE_S)
        s.bind((host, port))
        return s

    def echo(self, data):
        with self.udp() as s:
            s.sendto(data, (HOST, 7))
            assert s.recv(65535) == data


def until(done):
    end = time.monotonic() + wire.PATIENCE_S
    while not done() and time.monotonic() < end:
        time.sleep(0.02)


def check_bridge(cases, bed):
    with cases('kernels reach each other through the bridge, small and large, and are known'):
        for i, to in ((1, 2), (2, 3), (3, 1)):
            bed.ping(i, f'10.7.0.{to}', '-s', '1400')
        stations = bed.stations()
        for i in (1, 2, 3):
            assert stations[wire.mac(bed.ns[i], f'c{i}')] == f'lan{i}', stations
        lan = bed.bridge()
        assert lan['outcomes']['bridge_forwarded'] >= 12 and lan['outcomes']['bridge_flooded'] >= 3, lan
        assert lan['stations'] == 3 and lan['sources']['learned'] == 3, lan
    with cases('a known station is not heard elsewhere'):
        link = bed.raw(3)
        bed.ping(1, '10.7.0.2')
        time.sleep(0.1)
        assert not [f for f in link.drain() if f[12:14] == b'\x08\0'], 'a frame for another'
    with cases('a trace says where a frame goes: to one port, or to all'):
        def trace(filter_text, send, **kwargs):
            return follow.traced(bed.sluicectl, NAME, RUNTIME, filter_text, send=send, packets=1, **kwargs)
        steps = trace('icmp and src host 10.7.0.1', lambda: bed.ping(1, '10.7.0.2'))
        assert [s['step'] for s in steps] == ['received', 'bridge'] and steps[0]['port'] == 'lan1', steps
        assert {k: steps[1][k] for k in ('bridge', 'outcome', 'to', 'source', 'copies')} == {
            'bridge': 'lan', 'outcome': 'bridge_forwarded', 'to': 'lan2', 'source': 'known',
            'copies': {'bridge_sent': 1}}, steps
        unknown = bed.bytes_of(1) + b'\x88\xb5' + bytes(46)
        steps = trace('ether proto 0x88b5', lambda: bed.raw(1).send(b'\x02\0\0\0\0\x55' + unknown))
        assert steps[1]['outcome'] == 'bridge_flooded' and 'to' not in steps[1], steps
        assert steps[1]['copies'] == {'bridge_sent': 2}, steps
        text = trace('icmp and src host 10.7.0.1', lambda: bed.ping(1, '10.7.0.3'), as_json=False)
        assert ': bridge_forwarded to port lan3; copies: bridge_sent; source known\n' in text, text
    with cases('checksums that the kernel left to the port are right at the other end'):
        with bed.udp(2, 5000) as far, bed.udp(1) as near:
            for size in (1, 2, 100, 1472):
                near.sendto(b'x' * size, ('10.7.0.2', 5000))
                assert far.recv(2000) == b'x' * size
        listener = wire.inside(bed.ns[2], socket.socket)
        listener.bind(('10.7.0.2', 5001))
        listener.listen(1)
        client = wire.inside(bed.ns[1], socket.socket)
        client.settimeout(wire.PATIENCE_S)
        client.connect(('10.7.0.2', 5001))
        server, _ = listener.accept()
        for _ in range(10):  # all at once may be more than both buffers hold
            client.sendall(b'y' * 30000)
            got = 0
            while got < 30000:
                got += len(server.recv(65536))
        for s in (listener, client, server):
            s.close()
    with cases('tags pass'):
        near, far = bed.raw(1), bed.raw(2)
        for tags in (b'\x81\0\x60\x4d', b'\x88\xa8\0\5\x81\0\0\6'):
            # The far kernel takes the outer tag off and says so beside the frame, so it is sent back by the bridge's count.
            frame = bed.bytes_of(2) + bed.bytes_of(1) + tags + b'\x88\xb5tagged' + bytes(1480)
            before = bed.bridge()['outcomes']['bridge_sent']
            near.send(frame)
            got = far.wait_for(lambda f: b'tagged' in f)
            assert got is not None and len(got) == len(frame) - 4, got
            assert bed.bridge()['outcomes']['bridge_sent'] == before + 1
    with cases('a station that moves is followed'):
        mac = wire.mac(bed.ns[1], 'c1')
        # Without its IP address first, so that nobody asks for it, and is told the other MAC address.
        wire.sh('ip', '-n', bed.ns[1], 'addr', 'flush', 'dev', 'c1')
        wire.sh('ip', '-n', bed.ns[1], 'link', 'set', 'c1', 'address', '02:00:00:00:00:99')
        wire.sh('ip', '-n', bed.ns[3], 'addr', 'flush', 'dev', 'c3')
        wire.sh('ip', '-n', bed.ns[3], 'link', 'set', 'c3', 'address', mac)
        wire.sh('ip', '-n', bed.ns[3], 'addr', 'add', '10.7.0.1/24', 'dev', 'c3')
        for i, to in ((3, 2), (2, 1)):
            bed.ping(i, f'10.7.0.{to}')
        stations, lan = bed.stations(), bed.bridge()
        assert stations.get(mac) == 'lan3' and lan['sources']['moved'] >= 1, f'{mac} {stations} {lan}'
    with cases('a flood of forged sources leaves the others alone'):
        flood = bed.raw(1)
        for i in range(3000):
            flood.send(b'\x02\0\0\0\0\x77' + b'\x06\0\0\0' + i.to_bytes(2, 'big') + b'\x88\xb5' + bytes(46))
        until(lambda: bed.ctl('bridge')[0]['sources']['learn_limit'] > 1000)
        lan = bed.ctl('bridge')[0]
        assert lan['sources']['learn_limit'] > 1000 and 'lan1:1365' in lan['ports'], lan
        assert len(bed.stations()) == lan['stations'] > 1365
        bed.ping(2, '10.7.0.1')
    with cases('an age that a reload shortens empties the table'):
        bed.reload(conf(lan='age = 1\n'))
        until(lambda: bed.ctl('bridge')[0]['stations'] < 1000)
        assert bed.ctl('bridge')[0]['stations'] < 1000
    with cases('everything is accounted for'):
        lines = bed.audit()
        assert lines['bridge lan']['entered'] > 3000, lines
        assert 'bridge_flooded' in bed.ctl('outcomes') and 'lan1' in bed.ctl('bridge', as_json=False)
        lan, got = bed.ctl('bridge')[0], scrape.scrape()
        assert got['sluice_bridge_received_frames_total', 'lan'] == lan['received'], lan
        for name, n in lan['outcomes'].items():
            lost = 'no' if name in ('bridge_forwarded', 'bridge_flooded', 'bridge_sent') else 'yes'
            found = [v for k, v in got.items() if sorted(k[1:]) == sorted(('lan', lost, name))]
            assert found == [n], (name, n, found)
        for name, n in lan['sources'].items():
            assert got['sluice_bridge_sources_total', *sorted(('lan', name))] == n, (name, lan)
        for port, held in (p.split(':') for p in lan['ports']):
            assert got['sluice_bridge_stations', 'lan', port] == int(held), lan
        assert bed.ctl('bridge', 'none', status=2)['error'] == 'usage'


def check_spread(cases, bed):
    if len(CPUS) < 2:
        cases.skip('flows of one queue are spread over lcores', 'needs two processors')
        return
    with cases('flows of one queue are spread over lcores, and said so at the start'):
        assert 'spreads flows over them in software' in bed.said(), bed.said()
        before = bed.audit()['spread wan']['entered']
        for _ in range(40):
            bed.echo(b'a flow of its own')
        lines = bed.audit()
        assert 2 < lines['spread wan']['entered'] - before < 43, lines
        assert lines['spread wan']['outcomes'] == lines['spread wan']['entered'], lines
        assert bed.ctl('drops')['spread_full'] == 0


def check_interrupts(cases, bed):
    def lcores(key):
        return [x[key] for x in bed.ctl('lcores')]
    with cases('with idle = interrupt lcores sleep until something comes'):
        until(lambda: min(lcores('timeouts')) > 0)
        assert min(lcores('timeouts')) > 0 and set(lcores('idle')) == {'interrupt'}
        before = sum(lcores('interrupts'))
        bed.echo(b'first after idle')
        assert sum(lcores('interrupts')) > before
        bed.ping(2, '10.7.0.1')
    with cases('a burst after idle loses nothing, and wakes the lcore that serves it'):
        for _ in range(3):
            before, slept = bed.ctl('services')[1]['received'], lcores('timeouts')
            until(lambda t=slept: all(a > b for a, b in zip(lcores('timeouts'), t)))
            with bed.udp() as s:
                for _ in range(1000):  # the service's lcore may find them all in its ring, which has 1024 places
                    s.sendto(b'burst', (HOST, 9))
            until(lambda n=before: bed.ctl('services')[1]['received'] >= n + 1000)
            assert bed.ctl('services')[1]['received'] == before + 1000, (before, bed.ctl('drops'), bed.ctl('ports'))
        if len(CPUS) > 1:
            # The service's lcore is not the port's.
            assert bed.ctl('services')[1]['lcore'] != CPUS[0] and lcores('wakes')[1] > 0, bed.ctl('lcores')
        assert sum(p['rx_missed'] for p in bed.ctl('ports')) == 0
        bed.audit()
    with cases('a reload changes it, but for what the processor or the ports cannot do'):
        for idle in ('poll', 'backoff', 'interrupt'):
            bed.reload(conf(idle))
            assert set(lcores('idle')) == {idle}
            bed.echo(idle.encode())
        with open('/proc/cpuinfo', encoding='utf-8') as f:
            able = 'waitpkg' in (text := f.read()) or 'monitorx' in text
        if able:
            cases.skip('idle = monitor is refused', 'this processor can watch memory')
            return
        bed.write(conf('monitor'))
        assert 'cannot watch memory' in bed.ctl('reload', status=2)['report']
        assert set(lcores('idle')) == {'interrupt'}


def captured(path):
    """Payload lengths of UDP datagrams that tcpdump finds in a file."""
    out = wire.sh('tcpdump', '-nr', path)
    return [int(line.rsplit(' ', 1)[1]) for line in out.splitlines() if 'UDP, length' in line]


def check_mirror(cases, bed):
    sizes, path = [1, 18, 700, 1472, 3000], f'{bed.folder}/m.pcapng'
    mirror = f'[service m]\nkind = mirror\nudp-port = 10\nfile = {path}\nfile-size = 66k\n'

    def send(n=1):
        with bed.udp() as s:
            for _ in range(n):
                for size in sizes:
                    s.sendto(b'm' * size, (HOST, 10))
            s.sendto(b'last', (HOST, 7))
            assert s.recv(10) == b'last'

    def outcome(name):
        return bed.ctl('outcomes').get(name, 0)
    with cases('a mirror writes what tcpdump reads, reassembled datagrams, too'):
        bed.reload(conf(services=mirror))
        send()
        until(lambda: outcome('mirror_written') == len(sizes))
        assert sorted(captured(path)) == sizes  # the one in pieces may come by another lcore
        lines = [x for x in wire.sh('tcpdump', '-nner', path).splitlines() if 'UDP' in x]
        assert all(wire.mac(bed.ns[1], 'c4') in line for line in lines), lines
        assert all('198.18.0.1' in line and f'{HOST}.10:' in line for line in lines), lines
    with cases('a file has its size, and what is beyond it is counted'):
        send(20)
        until(lambda: outcome('mirror_written') + outcome('mirror_file_full') == 21 * len(sizes))
        assert outcome('mirror_file_full') > 0 and os.path.getsize(path) <= 66000
        assert len(captured(path)) == outcome('mirror_written')
        assert bed.audit()['mirror m']['entered'] == 21 * len(sizes)
        got = scrape.scrape()
        for name, lost in (('mirror_written', 'no'), ('mirror_file_full', 'yes'), ('mirror_failed', 'yes')):
            assert got['sluice_mirror_packets_total', *sorted(('m', name, lost))] == outcome(name), got
        assert got['sluice_mirror_held_packets', 'm'] == 0, got
    with cases('a reload makes files of it'):
        bed.reload(conf(services=mirror + 'files = 4\n'))
        send(20)
        until(lambda: bed.audit()['mirror m']['outcomes'] == 20 * len(sizes))
        # What there was is the oldest.
        assert len(captured(path)) + len(captured(path + '.1')) == 20 * len(sizes)
        assert os.path.exists(path + '.2') and not os.path.exists(path + '.3')
    with cases('one that is refused in the end leaves files and mirror as they are'):
        before = sorted(os.listdir(bed.folder))
        bed.write(conf(services=mirror + f'[service n]\nkind = mirror\nudp-port = 11\nfile = {bed.folder}/none/n\n'))
        assert 'none/n: cannot be opened' in bed.ctl('reload', status=2)['report']
        assert sorted(os.listdir(bed.folder)) == before
        send()
        until(lambda: bed.audit()['mirror m']['outcomes'] == 21 * len(sizes))
        assert bed.audit()['mirror m']['outcomes'] == 21 * len(sizes)  # the one of before, which goes on
    with cases('a mirror into an interface'):
        wire.sh('ip', '-n', bed.ns[0], 'link', 'add', 'm0', 'type', 'veth', 'peer', 'name', 'm1', 'netns', bed.ns[2])
        for ns, dev in ((bed.ns[0], 'm0'), (bed.ns[2], 'm1')):
            wire.sh('ip', '-n', ns, 'link', 'set', dev, 'up')
        bed.reload(conf(services='[service m]\nkind = mirror\nudp-port = 10\ninterface = m0\n'))
        link = wire.Link(bed, bed.ns[2], 'm1')
        with bed.udp(port=4444) as s:
            s.sendto(b'over there', (HOST, 10))
        frame = link.wait_for(lambda f: b'over there' in f)
        assert frame is not None and frame[6:12] == bytes.fromhex(wire.mac(bed.ns[1], 'c4').replace(':', ''))
        bed.audit()
    with cases('what cannot be opened is told, and nothing changes'):
        bed.write(conf(services=mirror.replace('m.pcapng', 'none/m.pcapng')))
        assert 'cannot be opened: No such file or directory' in bed.ctl('reload', status=2)['report']
        bed.write(conf(services='[service m]\nkind = mirror\nudp-port = 10\ninterface = m9\n'))
        assert 'interface = m9' in bed.ctl('reload', status=2)['report']
        bed.reload(conf())
        bed.audit()


def run(cases):
    bed = Bed(*sys.argv[1:3])
    with contextlib.closing(bed):
        bed.start(conf())
        check_bridge(cases, bed)
        with cases('ports that were started without interrupts get none by a reload'):
            bed.write(conf('interrupt'))
            assert 'started without interrupts' in bed.ctl('reload', status=2)['report']
        check_mirror(cases, bed)
        check_spread(cases, bed)
        bed.end()
        bed.start(conf('interrupt'))
        check_interrupts(cases, bed)
        with cases('it ends with all packets back'):
            bed.end()
            assert not os.path.exists(RUNTIME)


def main():
    cases = wire.Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    with cases('the script runs to its end'):
        run(cases)
    sys.exit(cases.finish())


main()
