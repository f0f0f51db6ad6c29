#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The kernel beside the daemon on the same addresses: TCP, ping, a routing daemon, and UDP services at once.

        namespace A                            namespace B
        kernel, bird                           sluiced over net_tpacket: UDP services
        198.18.0.1, 2001:db8::1  wa <-> wb     198.18.0.2, 2001:db8::2
        198.18.7.1 in VLAN 7, by hand          198.18.7.2
                                               its kernel, bird: the same, on the taps ker0 and ker7
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import follow
import scrape
import test_sluiced as base
import wire

V4, V6, VLAN4 = '198.18.0.2', '2001:db8::2', '198.18.7.2'
CONF = base.BASE + 'exception = ker0\n' + """[vlan lab]
port = wan
vlan = 7
address = 198.18.7.2/24
exception = ker7
[route far]
prefix = 198.51.100.0/24
via = 198.18.0.1
[service echo]
kind = echo
udp-port = 7
""" + scrape.SECTION
# Networks of A and of B, told by BGP and by OSPF.
NETS = (('203.0.113.0/24', '192.0.2.0/24'), ('10.1.0.0/16', '10.2.0.0/16'))
BIRD = """router id {own};
log stderr all;
protocol device {{ scan time 1; }}
protocol kernel {{ ipv4 {{ export all; import none; }}; }}
protocol static own_bgp {{ ipv4; route {net} blackhole; }}
protocol static own_ospf {{ ipv4; route {ospf_net} blackhole; }}
protocol bgp peer {{
    local {own} as {own_as};
    neighbor {peer} as {peer_as};
    hold time 9; keepalive time 3; connect delay time 0; error wait time 1,1;
    ipv4 {{ import all; export where proto = "own_bgp"; }};
}}
protocol ospf v2 near {{
    ipv4 {{ import all; export where proto = "own_ospf"; }};
    area 0 {{ interface "{dev}" {{ type ptp; hello 1; dead 9; retransmit 2; }}; }};
}}
"""


class Bird:
    """A routing daemon in a namespace, with a network of its own to tell of by BGP, and one by OSPF."""

    def __init__(self, bed, ns, dev, own, peer, nets):
        self.ns, self.control = ns, f'{bed.folder}/{own}.ctl'
        path = f'{bed.folder}/{own}.conf'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(BIRD.format(own=own, peer=peer, dev=dev, net=nets[0], ospf_net=nets[1],
                                own_as=64512 + int(own[-1]), peer_as=64512 + int(peer[-1])))
        self.process = subprocess.Popen(['ip', 'netns', 'exec', ns, 'bird', '-f', '-c', path, '-s', self.control],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bed.probes.append(self)

    def ask(self, *command):
        return wire.sh('ip', 'netns', 'exec', self.ns, 'birdc', '-s', self.control, *command, check=False)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def until(done, patience=wire.PATIENCE_S):
    end = time.monotonic() + patience
    while not (got := done()) and time.monotonic() < end:
        time.sleep(0.05)
    return got


class EchoServer:
    """A TCP service of B's kernel: whatever comes goes back."""

    def __init__(self, bed, family=socket.AF_INET, port=22):
        self.sock = bed.socket(bed.b, family, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(('', port))
        self.sock.listen(4)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.sock.accept()
                threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    @staticmethod
    def serve(peer):
        with peer, contextlib.suppress(OSError):
            while data := peer.recv(65536):
                peer.sendall(data)


def connect(bed, host, port, ns=None):
    s = bed.socket(ns or bed.a, socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_STREAM)
    s.settimeout(wire.PATIENCE_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.connect((host, port))
    return s


def exact(s, n):
    data = b''
    while len(data) < n:
        part = s.recv(n - len(data))
        assert part, f'closed after {len(data)} of {n} bytes'
        data += part
    return data


def session(bed, host, keys=200):
    """As somebody types over ssh: single bytes, each of which comes back; then a screenful."""
    with connect(bed, host, 22) as s:
        for i in range(keys):
            key = bytes((i % 256,))
            s.sendall(key)
            assert exact(s, 1) == key
        screen = os.urandom(50000)
        s.sendall(screen)
        assert exact(s, len(screen)) == screen


def ping(bed, host, count=5, lost=2):
    """Beside bulk TCP a full queue may cost one; it is counted, as everything is."""
    out = bed.in_a('ping', '-c', str(count), '-i', '0.05', '-W', '5', host)
    answers = int(re.search(r'(\d+) received', out)[1])
    assert answers >= count - lost and 'duplicates' not in out, out


def echo(bed, host, count=50, size=100):
    with bed.udp(socket.AF_INET6 if ':' in host else socket.AF_INET) as s:
        for _ in range(count):
            data = os.urandom(size)
            s.sendto(data, (host, 7))
            assert s.recv(65535) == data


def bulk(bed, host, *options):
    """A second of TCP; bits per second that arrived."""
    with subprocess.Popen(['ip', 'netns', 'exec', bed.b, 'iperf3', '-s', '-1', '-B', host],
                          stdout=subprocess.DEVNULL) as server:
        try:
            until(lambda: f'{host}:5201' in wire.sh('ip', 'netns', 'exec', bed.b, 'ss', '-Hltn'
                                                    ).replace('[', '').replace(']', ''))
            out = json.loads(bed.in_a('iperf3', '-c', host, '-t', '1', '-J', *options))
        finally:
            server.terminate()
    return out['end']['sum_received']['bits_per_second']


def all_at_once(*jobs):
    """Run jobs side by side; the first failure is raised."""
    failures = []

    def run(job):
        try:
            job()
        except Exception as e:  # pylint: disable=broad-except
            failures.append(e)
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def total(data):
    data += bytes(len(data) % 2)
    value = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while value >> 16:
        value = (value & 0xffff) + (value >> 16)
    return value ^ 0xffff


def tagged(bed, proto, payload):
    """A frame of 198.18.7.1 in VLAN 7 for the appliance."""
    ends = socket.inet_aton('198.18.7.1') + socket.inet_aton(VLAN4)
    at = 16 if proto == socket.IPPROTO_TCP else 6
    pseudo = ends + struct.pack('!HH', proto, len(payload))
    payload = payload[:at] + struct.pack('!H', total(pseudo + payload)) + payload[at + 2:]
    head = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(payload), 1, 0x4000, 64, proto, 0) + ends
    head = head[:10] + struct.pack('!H', total(head)) + head[12:]
    macs = bytes.fromhex((bed.mac(bed.b, 'wb') + bed.mac(bed.a, 'wa')).replace(':', ''))
    return macs + b'\x81\0\0\x07\x08\0' + head + payload


class Tags:
    """What comes to wa with its tag: the kernel takes that off and puts it beside the frame."""

    def __init__(self, bed):
        self.sock = bed.socket(bed.a, socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(wire.SOL_PACKET, wire.PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(wire.SOL_PACKET, 8, 1)  # PACKET_AUXDATA
        self.sock.bind(('wa', wire.ETH_P_ALL))
        self.sock.settimeout(wire.PATIENCE_S)

    def wait_for(self, wanted):
        """The first frame in VLAN 7 for which wanted(frame) is true."""
        while True:
            frame, more, _, _ = self.sock.recvmsg(65536, 256)
            vlan = struct.unpack('=IIIHHHH', more[0][2][:20])[5] & 0xfff if more else 0
            if vlan == 7 and wanted(frame):
                return frame


def check_vlan(bed):
    tags = Tags(bed)
    ours = bytes.fromhex(bed.mac(bed.a, 'wa').replace(':', ''))
    tags.sock.send(tagged(bed, socket.IPPROTO_UDP, struct.pack('!HHHH', 4000, 7, 13, 0) + b'hello'))
    arp = tags.wait_for(lambda f: f[12:14] == b'\x08\x06' and f[38:42] == socket.inet_aton('198.18.7.1'))

    def answer(arp):
        tags.sock.send(arp[6:12] + ours + b'\x81\0\0\x07' + arp[12:20] + b'\0\2' + ours + arp[38:42] +
                       arp[22:32])
    answer(arp)
    tags.wait_for(lambda f: f[23] == socket.IPPROTO_UDP and f[42:47] == b'hello')
    syn = struct.pack('!HHIIBBHHH', 5000, 22, 77, 0, 0x50, 2, 1000, 0, 0)
    tags.sock.send(tagged(bed, socket.IPPROTO_TCP, syn))
    # The kernel asks for itself.
    answer(tags.wait_for(lambda f: f[12:14] == b'\x08\x06' and f[38:42] == socket.inet_aton('198.18.7.1')))
    got = tags.wait_for(lambda f: f[12:14] == b'\x08\0' and f[23] == socket.IPPROTO_TCP)
    assert got[47] == 0x12 and struct.unpack('!I', got[42:46])[0] == 78, got.hex()
    tags.sock.close()


def check_kernel(cases, bed, daemon):
    with cases('the tap has the port\'s MAC address, MTU and addresses'):
        for tap, addrs in (('ker0', {V4, V6}), ('ker7', {VLAN4})):
            link = json.loads(wire.sh('ip', '-j', '-n', bed.b, 'addr', 'show', tap))[0]
            assert link['address'] == bed.mac(bed.b, 'wb') and link['mtu'] == 1500, link
            assert addrs <= {a['local'] for a in link['addr_info']}, link
    with cases('a datagram without a service reaches the kernel, which has a socket or says that it has none'):
        with bed.socket(bed.b, socket.AF_INET, socket.SOCK_DGRAM) as s, bed.udp() as peer:
            s.settimeout(wire.PATIENCE_S)
            s.bind(('', 5353))
            for size in (10, 1400, 4000):
                data = os.urandom(size)
                peer.sendto(data, (V4, 5353))
                got, sender = s.recvfrom(65535)
                assert got == data, f'{len(got)} of {size} bytes'
                s.sendto(got[::-1], sender)
                assert peer.recv(65535) == data[::-1]
        with bed.udp() as peer:
            peer.connect((V4, 5353))
            peer.send(b'x')
            try:
                peer.recv(10)
                raise AssertionError('an answer')
            except ConnectionRefusedError:
                pass
        assert daemon.ctl('drops')['udp_no_socket'] == 0
    with cases('groups that the kernel is in'), bed.socket(bed.b, socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wire.PATIENCE_S)
        s.bind(('239.1.2.3', 6000))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                     socket.inet_aton('239.1.2.3') + socket.inet_aton(V4))
        with bed.udp() as peer:
            peer.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('198.18.0.1'))
            peer.sendto(b'to all', ('239.1.2.3', 6000))
        assert s.recv(100) == b'to all'
    with cases('the kernel reaches out, too'):
        wire.sh('ip', 'netns', 'exec', bed.b, 'ping', '-c', '2', '-i', '0.05', '-W', '5', '198.18.0.1')
        with bed.socket(bed.a, socket.AF_INET, socket.SOCK_STREAM) as server:
            server.bind(('198.18.0.1', 2222))
            server.listen(1)
            with connect(bed, '198.18.0.1', 2222, bed.b) as client:
                peer, _ = server.accept()
                with peer:
                    client.sendall(b'from the appliance')
                    assert exact(peer, 18) == b'from the appliance'
    with cases('a VLAN of the port has services and a tap of its own'):
        check_vlan(bed)


def check_together(cases, bed, daemon):
    rates = {}

    def measure(host, *options):
        rates[host, options] = bulk(bed, host, *options)
    with cases('bulk TCP, an interactive session, ping and a UDP service at once, IPv4 and IPv6'):
        all_at_once(lambda: measure(V4), lambda: session(bed, V4), lambda: session(bed, V6),
                    lambda: ping(bed, V4), lambda: ping(bed, V6), lambda: echo(bed, V4), lambda: echo(bed, V6))
        measure(V6, '-R')
        assert all(rate > 1e6 for rate in rates.values()), rates
    print('     ' + ', '.join(f'{host} {" ".join(options)} {rate / 1e6:.0f} Mbit/s'
                              for (host, options), rate in rates.items()))


def check_lists(cases, bed, daemon):
    with cases('neighbours and routes are listed, and a reload changes routes'):
        neigh = {n['address']: n for n in daemon.ctl('neigh')}
        assert neigh['198.18.0.1']['mac'].lower() == bed.mac(bed.a, 'wa'), neigh
        routes = {r['prefix']: r for r in daemon.ctl('routes')}
        assert routes['198.18.0.0/24']['kind'] == 'connected', routes
        assert routes['198.51.100.0/24']['via'] == '198.18.0.1', routes
        assert routes['198.18.7.0/24']['port'] == 'lab', routes
        # More than one page.
        many = ''.join(f'[route r{i}]\nprefix = 10.{i}.0.0/16\nvia = 198.18.0.{i % 200 + 3}\n' for i in range(80))
        bed.conf(CONF.replace('via = 198.18.0.1', 'via = 198.18.0.9') + many)
        rows = {r['name']: (r['what'], r['change'], r['detail']) for r in daemon.ctl('diff', bed.path, status=1)}
        assert rows['far'] == ('route', 'changed', 'via 198.18.0.1 -> 198.18.0.9'), rows
        assert rows['r79'] == ('route', 'added', 'prefix 10.79.0.0/16, via 198.18.0.82, port wan, metric 100'), rows
        assert len(rows) == 81 and daemon.ctl('reload')['result'] == 'applied', rows
        routes = {r['prefix']: r for r in daemon.ctl('routes')}
        assert routes['198.51.100.0/24']['via'] == '198.18.0.9', routes
        assert sum(p.startswith('10.') for p in routes) == 80, routes
        assert 'PREFIX' in daemon.ctl('routes', as_json=False)
        got = scrape.scrape()
        assert got['sluice_routes', 'best', 'wan'] >= 81, got
        assert got['sluice_addresses', 'ready', 'wan'] == 3, got  # its link-local one, too
        assert sum(got['sluice_neighbours', *sorted((state, port))] for port in ('wan', 'lab')
                   for state in ('incomplete', 'reachable', 'stale', 'probe')) == len(daemon.ctl('neigh')), got
        bed.conf(CONF)
        assert daemon.ctl('reload')['result'] == 'applied'
        routes = {r['prefix']: r for r in daemon.ctl('routes')}
        assert routes['198.51.100.0/24']['via'] == '198.18.0.1' and '10.3.0.0/16' not in routes, routes
    with cases('explain says that the kernel has what no service claims'):
        for dst, tap in (('198.18.0.2', 'ker0'), ('198.18.7.2', 'ker7')):
            said = daemon.ctl('explain', 'udp', '198.18.0.1', '4000', dst, '99')
            assert (said['verdict'], said.get('interface')) == ('kernel', tap), said
    with cases('an exception path changes with a restart only'):
        bed.conf(CONF.replace('ker0', 'ker1'))
        answer = daemon.ctl('reload', status=2)
        assert '[port wan] exception: changes with a restart only' in answer['report'], answer
        bed.conf(CONF)


def check_trace(cases, bed):
    with cases('a trace says what the kernel took, and what it was only shown'):
        def trace(filter_text, send, **kwargs):
            return follow.traced(bed.sluicectl, base.NAME, base.RUNTIME, filter_text, send=send, packets=1, **kwargs)
        steps = trace('tcp port 22', lambda: session(bed, V4, 1))
        assert [s['step'] for s in steps] == ['received', 'stack', 'kernel'], steps
        assert steps[1]['stack'] == {'punted': 1}, steps
        assert (steps[2]['interface'], steps[2]['outcome']) == ('ker0', 'taken'), steps
        text = trace('tcp port 22', lambda: session(bed, V4, 1), as_json=False)
        assert "kernel's ker0 lcore" in text and ': taken\n' in text, text


def check_bird(cases, bed):
    if shutil.which('bird') is None:
        cases.skip('routing sessions', 'needs bird2')
        return ()
    here = Bird(bed, bed.a, 'wa', '198.18.0.1', V4, [nets[0] for nets in NETS])
    there = Bird(bed, bed.b, 'ker0', V4, '198.18.0.1', [nets[1] for nets in NETS])
    with cases('routing daemons find each other by BGP over the exception path, and learn routes'):
        check_routes(bed, 0)
    return here, there


def check_routes(bed, i):
    assert until(lambda: has_route(bed.b, NETS[i][0], '198.18.0.1')), f'B does not know {NETS[i][0]}'
    assert until(lambda: has_route(bed.a, NETS[i][1], V4)), f'A does not know {NETS[i][1]}'


def check_ospf(cases, bed, birds):
    """OSPF speaks to the group 224.0.0.5, beside TCP and UDP. Its first routes take five seconds, in which other
    cases run."""
    with cases('by OSPF, too, which is neither TCP nor UDP, and goes to a group'):
        check_routes(bed, 1)
        for bird in birds:
            assert 'Full/PtP' in bird.ask('show', 'ospf', 'neighbors'), bird.ask('show', 'ospf', 'neighbors')


def has_route(ns, net, via):
    return f'via {via}' in wire.sh('ip', '-n', ns, 'route', 'show', net)


def established(bird):
    """Since when the session of BGP stands."""
    lines = [line.split() for line in bird.ask('show', 'protocols').splitlines() if line.startswith('peer')]
    assert lines and 'Established' in lines[0], lines
    return lines[0][4]


def run(cases):
    bed = base.Bed(*sys.argv[1:3])
    bed.sysctl(bed.b, 'net.ipv6.conf.default.disable_ipv6', 0)
    daemon = base.Daemon(bed, CONF)
    server = EchoServer(bed, socket.AF_INET6)
    birds = check_bird(cases, bed)
    since = established(birds[1]) if birds else None
    check_kernel(cases, bed, daemon)
    check_together(cases, bed, daemon)
    check_lists(cases, bed, daemon)
    check_trace(cases, bed)
    if birds:
        check_ospf(cases, bed, birds)
        with cases('the routing session stood all the time'):
            assert established(birds[1]) == since
    with cases('everything is accounted for, on the kernel\'s side, too'):
        lines = daemon.audit()
        assert lines['exception wan']['entered'] > 100 and lines['kernel wan']['entered'] > 100, lines
        taps = {e['name']: e for e in daemon.ctl('exceptions')}
        assert taps['wan']['down'] == taps['wan']['refused'] == taps['wan']['bad'] == taps['wan']['no_mbuf'] == 0, taps
        assert taps['wan']['shown'] > 0 and taps['lab']['taken'] > 0, taps
        got = scrape.scrape()
        for port, tap in taps.items():
            assert got['sluice_exception_up', port] == 1, got
            assert got['sluice_exception_frames_total', *sorted((port, 'to_kernel', 'down', 'yes'))] == 0, got
            assert got['sluice_exception_offered_frames_total', port] >= tap['offered'], (got, tap)
            assert got['sluice_exception_frames_total', *sorted((port, 'from_kernel', 'sent', 'no'))] >= tap['sent']
    with cases('a link that goes down takes the tap\'s carrier along'):
        wire.sh('ip', '-n', bed.a, 'link', 'set', 'wa', 'down')
        daemon.until(lambda a: a[0]['carrier'] == 'off', 'exceptions')
        flags = json.loads(wire.sh('ip', '-j', '-n', bed.b, 'link', 'show', 'ker0'))[0]['flags']
        assert 'NO-CARRIER' in flags, flags
        wire.sh('ip', '-n', bed.a, 'link', 'set', 'wa', 'up')
        daemon.until(lambda a: a[0]['carrier'] == 'on', 'exceptions')
    with cases('killed, it starts again, and so does TCP'):
        daemon.process.kill()
        daemon.process.wait()
        daemon = base.Daemon(bed, CONF)
        session(bed, V4, 20)
        daemon.audit()
    with cases('at the end the tap is gone, and the interface as it was'):
        daemon.end()
        assert 'ker0' not in wire.sh('ip', '-n', bed.b, 'link')
        value = wire.sh('ip', 'netns', 'exec', bed.b, 'sysctl', '-n', 'net.ipv4.conf.wb.arp_ignore')
        assert value.strip() == '8', value  # what the killed one left
    server.sock.close()


def main():
    cases = wire.Cases()
    if os.geteuid() != 0 or not os.path.exists('/dev/net/tun'):
        cases.skip('all', 'needs root for network namespaces, and /dev/net/tun')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with cases('the script runs to its end'):
        run(cases)
    sys.exit(cases.finish())


if __name__ == '__main__':
    main()
