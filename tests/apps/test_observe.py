#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""What can be seen of a running sluiced: metrics by a strict parser and by Prometheus, top on a
terminal, traces, captures, and DPDK's own tools as secondary processes.

        namespace A                            namespace B
        kernel sockets                         sluiced over net_tpacket, Prometheus
        198.18.0.1               wa <-> wb     198.18.0.2
"""
import contextlib
import fcntl
import http.client
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import follow  # noqa: E402  (the path comes first)
import test_sluiced  # noqa: E402
import wire  # noqa: E402
from scrape import TYPE, UnixHTTP, samples  # noqa: E402

V4, NAME, SERVICES = test_sluiced.V4, test_sluiced.NAME, test_sluiced.SERVICES
# Without an IPv6 address it is ready at once.
BASE = test_sluiced.BASE.replace(f', {test_sluiced.V6}/64', '')
PORT = 9111  # in a namespace of our own
CLONE_NEWNS = 0x20000
MEMORY_MB = 256
PAGES = '/sys/kernel/mm/hugepages/hugepages-2048kB'


def get(bed, path=None, url='/metrics', method='GET'):
    """(status, type, text), over TCP in the daemon's namespace or over a unix socket."""
    if path is not None:
        c = UnixHTTP(path)
    else:
        c = http.client.HTTPConnection('127.0.0.1', PORT, timeout=wire.PATIENCE_S)
        c.sock = bed.socket(bed.b, socket.AF_INET, socket.SOCK_STREAM)
        c.sock.settimeout(wire.PATIENCE_S)
        c.sock.connect(('127.0.0.1', PORT))
    with contextlib.closing(c):
        c.request(method, url)
        r = c.getresponse()
        return r.status, r.headers['Content-Type'], r.read().decode()


def echo(bed, n=1, payload=b'x' * 50, port=7):
    with bed.udp() as s:
        for _ in range(n):
            s.sendto(payload, (V4, port))
            if port == 7:
                assert s.recv(2000) == payload


def ctl(bed, *options, **kwargs):
    """A running sluicectl."""
    return subprocess.Popen([bed.sluicectl, '--name', NAME, *options], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **kwargs)


def check_metrics(cases, bed, daemon):
    echo(bed, 5)
    with cases('a strict parser takes the metrics, and they are the counters'):
        status, kind, text = get(bed)
        assert (status, kind) == (200, TYPE), (status, kind)
        got = samples(text)
        assert got['sluice_service_received_datagrams_total', 'echo'] == 5, text
        assert got['sluice_service_datagrams_total', 'echo', 'echoed', 'no'] == 5, text
        assert got['sluice_stack_packets_total', 'no', 'receive', 'udp_queued'] == 5, text
        assert got['sluice_port_up', 'wan'] == 1
        lcore = str(test_sluiced.CPU)
        assert got['sluice_lcore_served_datagrams_total', lcore] == 5
        for state in ('busy', 'idle', 'asleep'):
            assert got['sluice_lcore_cycles_total', *sorted((lcore, state))] > 0, state
        for where in ('stack', 'port wan', 'sockets', 'transmit', 'service echo'):
            entered = got['sluice_audit_entered_packets_total', where]
            assert entered == got['sluice_audit_outcomes_packets_total', where] + \
                got['sluice_audit_held_packets', where], where
    with cases('other requests are told apart'):
        assert get(bed, url='/')[0] == 404
        assert get(bed, method='POST')[0] == 405
        status, kind, text = get(bed, method='HEAD')
        assert (status, kind, text) == (200, TYPE, ''), text
    with cases('clients that read slowly hold nobody up, and are not unlimited'):
        slow = []
        for _ in range(40):
            s = bed.socket(bed.b, socket.AF_INET, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.settimeout(wire.PATIENCE_S)
            s.connect(('127.0.0.1', PORT))
            s.send(b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
            slow.append(s)
        echo(bed, 5)
        daemon.ctl('reload')
        held = len([f for f in os.listdir(f'/proc/{daemon.process.pid}/fd')])
        assert held < 80, held
        for s in slow:
            s.close()
        assert get(bed)[0] == 200


class Prometheus:
    """A server that scrapes the daemon, in the daemon's namespace."""

    def __init__(self, bed):
        self.folder = tempfile.mkdtemp(prefix='sluice-prometheus-')
        bed.probes.append(self)
        with open(f'{self.folder}/p.yml', 'w', encoding='utf-8') as f:
            f.write('scrape_configs:\n- job_name: sluiced\n  scrape_interval: 200ms\n'
                    f'  scrape_timeout: 200ms\n  static_configs: [{{targets: ["127.0.0.1:{PORT}"]}}]\n')
        with open(f'{self.folder}/log', 'wb') as log:
            self.process = subprocess.Popen(
                ['ip', 'netns', 'exec', bed.b, 'prometheus', f'--config.file={self.folder}/p.yml',
                 f'--storage.tsdb.path={self.folder}/data', '--web.listen-address=127.0.0.1:9090',
                 '--log.level=error'], stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def check_prometheus(cases, bed, prometheus):
    """It has scraped all this time; its answer may be a scrape old."""
    with cases('Prometheus scrapes them'):
        query = prometheus_query(bed, prometheus, 'up')
        assert query['value'][1] == '1' and query['metric']['job'] == 'sluiced', query
        query = prometheus_query(bed, prometheus,
                                 'sluice_service_datagrams_total{outcome="echoed",service="echo"}')
        assert int(query['value'][1]) >= 5, query


def prometheus_query(bed, prometheus, query):
    end = time.monotonic() + wire.PATIENCE_S
    answer = None
    while time.monotonic() < end and prometheus.process.poll() is None:
        with contextlib.suppress(OSError, ValueError), \
                bed.socket(bed.b, socket.AF_INET, socket.SOCK_STREAM) as s:
            s.connect(('127.0.0.1', 9090))
            c = http.client.HTTPConnection('127.0.0.1')
            c.sock = s
            c.request('POST', '/api/v1/query', f'query={query}',
                      {'Content-Type': 'application/x-www-form-urlencoded'})
            answer = json.loads(c.getresponse().read())
            result = answer.get('data', {}).get('result')
            if result and not (query == 'up' and result[0]['value'][1] == '0'):
                return result[0]
        time.sleep(0.05)
    with open(f'{prometheus.folder}/log', encoding='utf-8') as log:
        raise RuntimeError(f'Prometheus does not say {query}: {answer} {log.read()}')


class Terminal:
    """sluicectl top on a terminal of its own."""

    def __init__(self, bed, *options):
        self.main, self.side = pty.openpty()
        termios.tcsetwinsize(self.side, (24, 80))
        self.before = termios.tcgetattr(self.side)
        self.process = subprocess.Popen([bed.sluicectl, '--name', NAME, 'top', *options],
                                        stdin=self.side, stdout=self.side, stderr=self.side,
                                        preexec_fn=self.control)
        bed.probes.append(self)
        self.text = b''

    @staticmethod
    def control():
        """The terminal controls the process, as from a shell, so that Ctrl-C is a signal."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def wait_for(self, text, times=1):
        end = time.monotonic() + wire.PATIENCE_S
        while self.text.count(text) < times:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.main], [], [], left)[0]:
                raise RuntimeError(f'top does not show {text}: {self.text}')
            self.text += os.read(self.main, 65536)

    def finish(self, status=0):
        """It has ended, and the terminal is as it was."""
        assert self.process.wait(timeout=wire.PATIENCE_S) == status
        while select.select([self.main], [], [], 0)[0]:
            self.text += os.read(self.main, 65536)
        assert self.text.rfind(b'\x1b[?1049l') > self.text.rfind(b'\x1b[?1049h') >= 0
        assert b'\x1b[?25h' in self.text
        assert termios.tcgetattr(self.side) == self.before
        os.close(self.main)
        os.close(self.side)


def check_top(cases, bed, daemon):
    stop = threading.Event()

    def load():
        while not stop.is_set():
            echo(bed, 3)
            echo(bed, 1, port=4444)
            time.sleep(0.005)
    sender = threading.Thread(target=load)
    sender.start()
    try:
        with cases('top --json has rates'):
            r = daemon.ctl('top', '--once', '--interval', '0.3')
            lcore, port, = r['lcores'][0], r['ports'][0]
            assert lcore['rx_pps'] > 0 and lcore['cycles_per_packet'] > 0, r
            assert abs(lcore['busy'] + lcore['idle'] + lcore['asleep'] - 100) < 0.01, r
            assert port['name'] == 'wan' and port['rx_pps'] > 0 and port['ring'] == 8192, r
            assert port['ring_used'] is not None, r
            assert [s['name'] for s in r['services']] == ['echo', 'sink', 'drop'], r
            assert r['services'][0]['pps'] > 0, r
            drop = next(d for d in r['drops'] if d['cause'] == 'udp_no_socket')
            assert drop['what'] == 'lcore' and drop['pps'] > 0, r
        with cases('without a terminal it is plain text of 80 columns'):
            text = daemon.ctl('top', '--once', '--interval', '0.1', as_json=False)
            assert '\x1b' not in text and 'CYC/PKT' in text and 'udp_no_socket' in text, text
            assert all(len(line) <= 80 for line in text.splitlines()), text
        with cases('on a terminal it refreshes, and q ends it with the terminal restored'):
            t = Terminal(bed, '--interval', '0.1')
            t.wait_for(b'CYC/PKT', 2)
            os.write(t.main, b'q')
            t.finish()
        with cases('so does Ctrl-C'):
            t = Terminal(bed, '--interval', '0.1')
            t.wait_for(b'CYC/PKT')
            os.write(t.main, b'\x03')
            t.finish()
    finally:
        stop.set()
        sender.join()
    with cases('mistakes in its options are told'):
        for options in (['--interval', 'x'], ['--interval', '0'], ['now'], ['--what']):
            assert daemon.ctl('top', *options, status=2)['error'] == 'usage', options


def traced(bed, *options, send, packets):
    return follow.traced(bed.sluicectl, NAME, test_sluiced.RUNTIME, *options, send=send, packets=packets)


def daemon_ready(what):
    follow.wait(test_sluiced.RUNTIME, what)


def check_trace(cases, bed, daemon):
    with cases('a trace tells every step of an echo, and of nothing else'):
        steps = traced(bed, 'udp port 7', packets=2,
                       send=lambda: (echo(bed, 1, port=9), echo(bed, 2, b'y' * 77)))
        assert [(s['packet'], s['step']) for s in steps] == [
            (n, step) for n in (1, 2) for step in ('received', 'stack', 'service')], steps
        first, stack, service = steps[:3]
        assert first['port'] == 'wan' and first['queue'] == 0, first
        assert first['lcore'] == test_sluiced.CPU and first['length'] == 14 + 28 + 77, first
        assert first['protocol'] == 'UDP' and first['destination'] == f'{V4}:7', first
        assert first['source'].startswith('198.18.0.1:'), first
        assert stack['stack'] == {'udp_queued': 1} and stack['service'] == 'echo', stack
        assert service['outcome'] == 'echoed' and service['stack'] == {'tx_sent': 1}, service
    with cases('and of packets that no service gets'):
        steps = traced(bed, 'udp', 'port', '4444', packets=1, send=lambda: echo(bed, port=4444))
        assert steps[1]['stack'] == {'udp_no_socket': 1, 'tx_sent': 1}, steps
    with cases('and of fragments'):
        steps = traced(bed, 'ip[6:2] & 0x3fff != 0', packets=2,
                       send=lambda: echo(bed, 1, b'z' * 2000, port=9))
        assert steps[1].get('held') is True and steps[1]['stack'] == {}, steps
        assert steps[3]['stack']['udp_queued'] == 1, steps
    with cases('a filter with a mistake is told'):
        answer = daemon.ctl('trace', 'udp', 'prt', status=2)
        assert answer['error'] == 'usage' and 'udp prt' in answer['message'], answer
    with cases('there is one trace at a time, and one whose client is killed ends'):
        first = ctl(bed, 'trace')
        daemon_ready('trace')
        assert daemon.ctl('trace', '-c', '1', status=2)['error'] == 'busy'
        first.kill()
        first.communicate()
        steps = traced_when_free(bed)
        assert steps[-1]['step'] == 'service', steps
    with cases('Ctrl-C ends a trace in order'):
        process = ctl(bed, 'trace', 'udp port 7')
        daemon_ready('trace')
        echo(bed, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=wire.PATIENCE_S)
        assert process.returncode == 0 and '3 packets followed, 0 steps lost' in out, (out, err)
        assert 'service echo lcore' in out and ': echoed; stack: tx_sent' in out, out


def traced_when_free(bed):
    """The killed one's session is found to be dead within a moment."""
    end = time.monotonic() + wire.PATIENCE_S
    while True:
        try:
            return traced(bed, 'udp port 7', packets=1, send=lambda: echo(bed))
        except AssertionError:
            if time.monotonic() > end:
                raise


def blocks(path):
    """Types of the file's blocks, and [(direction, seconds, frame)] of its packets."""
    with open(path, 'rb') as f:
        data = f.read()
    at, kinds, packets = 0, [], []
    while at < len(data):
        kind, size = struct.unpack_from('<II', data, at)
        assert size >= 12 and at + size <= len(data), 'a block that is cut off'
        assert struct.unpack_from('<I', data, at + size - 4)[0] == size
        kinds.append(kind)
        if kind == 6:
            _, high, low, length, _ = struct.unpack_from('<5I', data, at + 8)
            options = data[at + 28 + (length + 3) // 4 * 4:at + size - 4]
            # Option 2 is the flags, whose lowest two bits are the direction.
            number, n, flags = struct.unpack_from('<HHI', options)
            assert (number, n) == (2, 4), options
            packets.append((flags & 3, ((high << 32) + low) / 1e9,
                            data[at + 28:at + 28 + length]))
        at += size
    return kinds, packets


def check_capture(cases, bed, daemon):
    path = f'{bed.folder}/c.pcapng'
    with cases('a capture has what passed in both directions, and when'):
        process = ctl(bed, 'capture', '-w', path, '-c', '20', '--port', 'wan', 'udp port 7')
        daemon_ready('capture')
        before = time.time()
        echo(bed, 5, port=9)
        echo(bed, 10, b'captured')
        out, err = process.communicate(timeout=wire.PATIENCE_S)
        assert process.returncode == 0 and '20 packets captured, 0 lost' in err, (out, err)
        kinds, packets = blocks(path)
        assert kinds == [0x0a0d0d0a, 1] + [6] * 20 + [5], kinds
        assert [p[0] for p in packets] == [1, 2] * 10, packets
        assert all(before <= p[1] <= time.time() and b'captured' in p[2] for p in packets)
        assert 'UDP, length 8' in wire.sh('tcpdump', '-nr', path, 'src host 198.18.0.2')
    with cases('it goes on while it is read from standard output, and Ctrl-C ends it in order'):
        with open(path, 'wb') as f:
            process = subprocess.Popen([bed.sluicectl, '--name', NAME, 'capture', '-w', '-', 'udp'],
                                       stdout=f, stderr=subprocess.PIPE, text=True)
            daemon_ready('capture')
            echo(bed, 1500)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=wire.PATIENCE_S)
        assert process.returncode == 0 and '3000 packets captured, 0 lost' in err, err
        assert len(blocks(path)[1]) == 3000
    with cases('the next one may begin as soon as one has ended; filters look where the packet says'):
        for n in range(8):
            text = f'udp port 7 and udp[8] = {ord("a") + n}'
            process = ctl(bed, 'capture', '-w', path, '-c', '2', text)
            daemon_ready('capture')
            echo(bed, 2, b'other')
            echo(bed, 1, b'abcdefgh'[n:])
            _, err = process.communicate(timeout=wire.PATIENCE_S)
            assert process.returncode == 0 and '2 packets captured, 0 lost' in err, (n, err)
            steps = traced(bed, text, packets=1, send=lambda at=n: echo(bed, 1, b'abcdefgh'[at:]))
            assert steps[0]['length'] == 14 + 28 + 8 - n, steps
    with cases('mistakes of a capture are told'):
        for options in (['udp'], ['-w', path, '--port', 'nope'], ['-w', path, '-c', '0'],
                        ['-w', path, 'udp', 'prt']):
            assert daemon.ctl('capture', *options, status=2)['error'] == 'usage', options


def check_unix(cases, bed):
    path = f'{bed.folder}/metrics'
    with cases('metrics over a unix socket, also where a killed daemon left one'):
        for end in (signal.SIGKILL, signal.SIGTERM):
            daemon = test_sluiced.Daemon(bed, BASE + SERVICES + f'[metrics]\nlisten = unix:{path}\n')
            assert os.stat(path).st_mode & 0o777 == 0o660
            assert samples(get(bed, path)[2])['sluice_port_up', 'wan'] == 1
            if end == signal.SIGKILL:
                daemon.kill()
            else:
                daemon.end()
        assert not os.path.exists(path)
    with cases('a place that is taken is told'), socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        status, _, err = bed.run(bed.path)
        assert status == 2 and '[metrics] listen: cannot be served' in err, err


def reserve(wanted_mb):
    """Set as many huge pages aside as are lacking; how many, or -1 when that cannot be."""
    with open(f'{PAGES}/free_hugepages', encoding='ascii') as f:
        lacking = wanted_mb // 2 + 8 - int(f.read())
    if lacking <= 0:
        return 0
    with open(f'{PAGES}/nr_hugepages', 'r+', encoding='ascii') as f:
        total = int(f.read())
        f.seek(0)
        f.write(str(total + lacking))
        f.flush()
        f.seek(0)
        if int(f.read()) == total + lacking:
            return lacking
        f.seek(0)
        f.write(str(total))
    return -1


def give_back(pages):
    if pages > 0:
        with open(f'{PAGES}/nr_hugepages', 'r+', encoding='ascii') as f:
            total = int(f.read())
            f.seek(0)
            f.write(str(total - pages))


def check_secondary(cases, bed, plugin):
    added = reserve(MEMORY_MB)
    if added < 0:
        cases.skip('secondary processes', f'{MEMORY_MB} MB of huge pages cannot be had')
        return
    try:
        secondary_tools(cases, bed, plugin)
    finally:
        give_back(added)


def secondary_tools(cases, bed, plugin):
    huge = f'{bed.folder}/huge'
    os.mkdir(huge)
    wire.sh('mount', '-t', 'hugetlbfs', 'none', huge)
    daemon = test_sluiced.Daemon(bed, BASE.replace('hugepages = no', 'secondary = yes') + SERVICES)
    env = dict(os.environ, LD_PRELOAD=plugin)
    path = f'{bed.folder}/s.pcapng'
    with cases('dpdk-dumpcap captures from the running daemon'):
        process = subprocess.Popen(['dpdk-dumpcap', f'--file-prefix=sluiced-{NAME}', '-i', '0', '-c',
                                    '10', '-w', path, '-f', 'udp port 7'], env=env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None:
            echo(bed, 4, b'dumpcap')
            time.sleep(0.01)
        out, err = process.communicate()
        assert process.returncode == 0, (out, err)
        packets = blocks(path)[1]
        assert len(packets) >= 10 and all(b'dumpcap' in p[2] for p in packets), len(packets)
    with cases('dpdk-proc-info reads its ports'):
        ret = subprocess.run(['dpdk-proc-info', f'--file-prefix=sluiced-{NAME}', '--', '--stats'],
                             env=env, text=True, capture_output=True, check=False)
        rx = daemon.ctl('ports')[0]['rx_packets']
        assert ret.returncode == 0 and 'RX-packets: ' in ret.stdout, (ret.stdout, ret.stderr)
        told = int(ret.stdout.split('RX-packets:')[1].split()[0])
        assert 0 < told <= rx, (told, rx)
    with cases('it ends with all huge pages given back'):
        daemon.audit()
        daemon.end()
        assert os.listdir(huge) == [], os.listdir(huge)


def run(cases, plugin):
    # Mounts of ours are nobody else's, and go when we do.
    if wire.LIBC.unshare(CLONE_NEWNS) != 0:
        raise RuntimeError('no namespace for mounts')
    wire.sh('mount', '--make-rprivate', '/')
    bed = test_sluiced.Bed(*sys.argv[1:3])
    daemon = test_sluiced.Daemon(
        bed, BASE + SERVICES + f'[metrics]\nlisten = 127.0.0.1:{PORT}\n')
    prometheus = Prometheus(bed)
    check_metrics(cases, bed, daemon)
    check_top(cases, bed, daemon)
    check_trace(cases, bed, daemon)
    check_capture(cases, bed, daemon)
    check_prometheus(cases, bed, prometheus)
    prometheus.kill()
    with cases('everything that entered is accounted for, and nothing is left behind'):
        daemon.audit()
        daemon.end()
        assert not os.path.exists(test_sluiced.RUNTIME), os.listdir(test_sluiced.RUNTIME)
    check_unix(cases, bed)
    check_secondary(cases, bed, plugin)


def main():
    cases = wire.Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    with cases('the script runs to its end'):
        run(cases, sys.argv[3])
    sys.exit(cases.finish())


main()
