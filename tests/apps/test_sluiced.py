#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluiced on one end of a wire, kernel sockets on the other, sluicectl and dpdk-telemetry.py beside it.

        namespace A                            namespace B
        kernel sockets                         sluiced over net_tpacket
        198.18.0.1, 2001:db8::1  wa <-> wb     198.18.0.2, 2001:db8::2
"""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'net'))
import wire  # noqa: E402  (the path comes first)

V4, V6 = '198.18.0.2', '2001:db8::2'
NAME = f'test{os.getpid()}'
RUNTIME = f'/var/run/dpdk/sluiced-{NAME}'
CPU = max(os.sched_getaffinity(0))
BASE = f"""[sluiced]
name = {NAME}
lcores = {CPU}
hugepages = no
idle = backoff
[port wan]
devargs = net_tpacket0,iface=wb
address = {V4}/24, {V6}/64
"""
SERVICES = """[service echo]
kind = echo
udp-port = 7
[service sink]
kind = sink
udp-port = 9
[service drop]
kind = drop
udp-port = 10
"""
REFLECT = """[service stamp]
kind = reflect
udp-port = 862
[service counts]
kind = reflect
udp-port = 8620
sequence = stateful
format = ptp
"""
RELOADS = 100
RELOADS_KB = 8192  # that they may leave behind: packets touched for the first time, when the machine is busy


class Daemon:
    """A running sluiced with its configuration, its control program and its notify socket."""

    def __init__(self, bed, text=BASE + SERVICES, watchdog_us=0, prefix=()):
        self.bed = bed
        bed.conf(text)
        bed.forget_notify()
        self.log = tempfile.TemporaryFile()
        env = dict(os.environ, NOTIFY_SOCKET=bed.notify_path)
        if watchdog_us:
            env['WATCHDOG_USEC'] = str(watchdog_us)
        # Killed with us, if we are: "ip netns exec" becomes the program, so this is its process.
        self.process = subprocess.Popen(['ip', 'netns', 'exec', bed.b, *prefix, bed.sluiced, bed.path],
                                        stdout=self.log, stderr=self.log, env=env)
        bed.probes.append(self)
        bed.wait_notify('READY=1', self)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode()

    def ctl(self, *command, status=0, as_json=True):
        ret = subprocess.run([self.bed.sluicectl, '--name', NAME, *(['--json'] if as_json else []),
                              *command], text=True, capture_output=True, check=False,
                             timeout=wire.PATIENCE_S)
        assert ret.returncode == status, f'{command}: {ret.returncode} {ret.stdout} {ret.stderr}'
        return json.loads(ret.stdout) if as_json else ret.stdout

    def service(self, name):
        return next(s for s in self.ctl('services') if s['name'] == name)

    def until(self, done, *command):
        end = time.monotonic() + wire.PATIENCE_S
        while not done(answer := self.ctl(*command)) and time.monotonic() < end:
            time.sleep(0.02)
        return answer

    def audit(self):
        answer = self.ctl('audit')
        assert answer['balanced'] is True, answer
        assert all(a['difference'] == 0 for a in answer['lines']), answer
        return {a['name']: a for a in answer['lines']}

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        status = self.process.wait(timeout=wire.PATIENCE_S)
        said = self.said()
        assert status == 0, f'exit status {status}: {said}'
        assert 'did not come back' not in said, said

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Bed(wire.Wire):
    def __init__(self, sluiced, sluicectl):
        super().__init__(ipv6_a=True)
        self.sluiced, self.sluicectl = sluiced, sluicectl
        self.folder = tempfile.mkdtemp(prefix='sluiced-test-')
        self.path = f'{self.folder}/t.conf'
        self.notify_path = f'{self.folder}/notify'
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        wire.sh('ip', '-n', self.a, 'addr', 'add', '198.18.0.1/24', 'dev', 'wa')
        wire.sh('ip', '-n', self.a, 'addr', 'add', '2001:db8::1/64', 'dev', 'wa', 'nodad')

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(RUNTIME, ignore_errors=True)

    def conf(self, text):
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write(text)

    def forget_notify(self):
        """Pass over the messages that have come so far."""
        while select.select([self.notify], [], [], 0)[0]:
            self.notify.recv(4096)

    def wait_notify(self, text, daemon=None):
        """The first message that has the text."""
        end = time.monotonic() + wire.PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.notify], [], [], 0.1)[0]:
                got = self.notify.recv(4096).decode()
                if text in got.splitlines():
                    return got
            elif daemon is not None and daemon.process.poll() is not None:
                raise RuntimeError(f'sluiced ended: {daemon.said()}')
        raise RuntimeError(f'no {text} at the notify socket')

    def udp(self, family=socket.AF_INET, port=0, host=''):
        s = self.socket(self.a, family, socket.SOCK_DGRAM)
        s.settimeout(5)
        s.bind((host, port))
        return s

    def run(self, *options, prefix=()):
        ret = subprocess.run(['ip', 'netns', 'exec', self.b, *prefix, self.sluiced, *options],
                             text=True, capture_output=True, timeout=wire.PATIENCE_S, check=False)
        return ret.returncode, ret.stdout, ret.stderr


def check_echo(cases, bed, daemon):
    for family, host, most in ((socket.AF_INET, V4, 1472), (socket.AF_INET6, V6, 1452)):
        for size in (0, 1, 13, 43, 44, most):
            with cases(f'echo of {size} bytes to {host}'), bed.udp(family) as s:
                data = os.urandom(size)
                s.sendto(data, (host, 7))
                got, peer = s.recvfrom(65535)
                assert got == data and peer[:2] == (host, 7), f'{len(got)} bytes from {peer}'
    with cases('echo of a request with IP options'), bed.udp() as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b'\x07\x07\x04\0\0\0\0\0')
        s.sendto(b'options', (V4, 7))
        assert s.recv(100) == b'options'
    with cases('an own echo port and well-known reflectors are not answered, nor groups'):
        before = daemon.service('echo')['outcomes']
        for port in (7, 19, 53, 123, 862):
            with bed.udp(port=port) as s:
                s.sendto(b'loop?', (V4, 7))
        with bed.udp() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(b'amplify?', ('198.18.0.255', 7))
            # Behind them in the queue: once it is answered, they have been looked at.
            s.sendto(b'last', (V4, 7))
            assert s.recv(100) == b'last'
        after = daemon.service('echo')['outcomes']
        assert after['echo_reflector'] - before['echo_reflector'] == 5, after
        assert after['echo_group'] - before['echo_group'] == 1, after
        assert after['echoed'] - before['echoed'] == 1, after


def check_counts(cases, bed, daemon):
    with cases('sink and drop count what comes'), bed.udp() as s:
        for i in range(100):
            s.sendto(bytes(i), (V4, 9))
            s.sendto(bytes(2), (V4, 10))
        daemon.until(lambda a: sum(x['received'] for x in a if x['name'] != 'echo') >= 200, 'services')
        sink, drop = daemon.service('sink'), daemon.service('drop')
        assert (sink['received'], sink['bytes'], sink['outcomes']['sunk']) == (100, 4950, 100), sink
        assert (drop['received'], drop['bytes'], drop['outcomes']['dropped']) == (100, 200, 100), drop
        assert daemon.ctl('drops')['dropped'] == 100
    with cases('a burst right after idle loses nothing'), bed.udp() as s:
        before, sleeps = daemon.service('sink')['received'], daemon.ctl('lcores')[0]['sleeps']
        daemon.until(lambda a: a[0]['sleeps'] > sleeps, 'lcores')
        for _ in range(2000):
            s.sendto(b'burst', (V4, 9))
        answer = daemon.until(lambda a: a[1]['received'] >= before + 2000, 'services')
        assert answer[1]['received'] == before + 2000, answer
        assert daemon.ctl('ports')[0]['rx_missed'] == 0
    with cases('a port without a service is told to the sender'), bed.udp() as s:
        s.connect((V4, 11))
        s.send(b'x')
        try:
            s.recv(10)
            raise AssertionError('an answer')
        except ConnectionRefusedError:
            pass
        assert daemon.ctl('drops')['udp_no_socket'] == 1


def check_control(cases, bed, daemon):
    with cases('every table has its rows, and every command its JSON'):
        for command, words in (('info', [NAME, 'backoff']), ('ports', ['wan', 'wb', 'net_tpacket0', V6][::2]),
                               ('services', ['echo', 'echoed:']), ('sockets', ['sink', 'any']),
                               ('lcores', [str(CPU), 'SLEEPS']), ('drops', ['udp_no_socket']),
                               ('outcomes', ['udp_queued']), ('audit', ['stack', 'service sink'])):
            text = daemon.ctl(command, as_json=False)
            missing = [w for w in words if w not in text and w != NAME]
            assert not missing, f'{command} lacks {missing}: {text}'
            assert command != 'lcores' or max(map(len, text.split('\n'))) <= 80, text
            assert daemon.ctl(command), command
    with cases('lcores sleep, and never longer than the ring takes to fill'):
        lcore = daemon.ctl('lcores')[0]
        # net_tpacket's default ring at the 10 Gb/s of a veth.
        assert lcore['sleeps'] > 0 and lcore['sleep_limit_us'] == 275, lcore
    with cases('failures have a stable code'):
        for options, code in ((['nonsense'], 'usage'), ([], 'usage'), (['--nonsense', 'info'], 'usage'),
                              (['--socket', f'{bed.folder}/none', 'info'], 'no_daemon'),
                              (['--socket', 'x' * 300, 'info'], 'usage')):
            ret = subprocess.run([bed.sluicectl, '--json', *options], text=True, capture_output=True,
                                 check=False, timeout=wire.PATIENCE_S)
            assert ret.returncode == 2 and json.loads(ret.stdout)['error'] == code, ret
    with cases('another server on the socket, or bad answers, are told'):
        check_impostors(bed)
    with cases('stock dpdk-telemetry.py shows the endpoints'):
        asked = '/sluice/services\n/sluice/service,echo\n/sluice/audit\n/sluice/service,none\n'
        out = subprocess.run(['dpdk-telemetry.py', '-f', f'sluiced-{NAME}'], input=asked, text=True,
                             capture_output=True, timeout=wire.PATIENCE_S, check=True).stdout
        answers = [json.loads(line) for line in out.splitlines() if line.startswith('{"/')]
        assert answers[0]['/sluice/services'] == ['echo', 'sink', 'drop'], out
        assert answers[1]['/sluice/service']['outcomes']['echoed'] > 0, out
        assert answers[2]['/sluice/audit']['line_00']['name'] == 'port wan', out
        assert answers[3]['/sluice/service'] is None, out


def check_impostors(bed):
    # One that closes at once is as a daemon with as many clients as it serves.
    hello = b'{"version":"x","pid":1,"max_output_len":16384}'
    for replies, code in (([hello, b'{"/sluice/info":null}'], 'protocol'),
                          ([hello, b'{"/sluice/info":{"protocol":2}}'], 'protocol'),
                          ([hello, b'{"/sluice/info":{"protocol":1}}', b'{"/sluice/ports":7}'], 'bad_answer'),
                          ([hello, b'{"/sluice/info":{"protocol":1}}', b'{"/sluice/ports":[{}]}'],
                           'bad_answer'),
                          ([hello, b'\xff\0not json'], 'bad_answer'), ([b'[]'], 'bad_answer'),
                          ([b'{' * 70000], 'bad_answer'), ([], 'busy')):
        path = f'{bed.folder}/impostor'
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(path)
            s.listen(1)

            def serve(listener=s, todo=replies):
                peer, _ = listener.accept()
                with peer, contextlib.suppress(OSError):
                    for reply in todo[:1]:
                        peer.send(reply)
                    for reply in todo[1:]:
                        peer.recv(4096)
                        peer.send(reply)
            thread = threading.Thread(target=serve)
            thread.start()
            ret = subprocess.run([bed.sluicectl, '--json', '--socket', path, 'ports'], text=True,
                                 capture_output=True, check=False, timeout=wire.PATIENCE_S)
            thread.join()
        os.unlink(path)
        assert ret.returncode == 2 and json.loads(ret.stdout)['error'] == code, (replies, code, ret)


def sender(bed, stop, count):
    """Datagrams to all services, present and future ones, until told to stop."""
    with bed.udp() as s:
        s.setblocking(False)
        while not stop.is_set():
            for port in (7, 9, 10, 20, 21):
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    s.sendto(b'under way', (V4, port))
                    count[0] += 1
            time.sleep(0.0005)


BALANCE = f"""[service lb]
kind = forward
udp-port = 20
address = {V4}
backends = b*
slots = 251
flows = 1000
check = udp
check-send = x
check-interval = 20ms
[backend b1]
address = 198.18.0.1
udp-port = 9999
[backend b2]
address = 198.18.0.77
udp-port = 9999
"""
VARIANTS = (
    SERVICES,
    SERVICES + BALANCE,
    SERVICES.replace('= 9', '= 22') + BALANCE.replace('udp-port = 20', 'udp-port = 9') + 'weight = 3\n',
    SERVICES.replace('udp-port = 9', 'udp-port = 20') + REFLECT.replace('= 862\n', '= 21\n'),
    SERVICES.replace('kind = drop', 'kind = reflect\nsequence = stateful'),
    SERVICES.replace('kind = sink', 'kind = echo') + '[service more]\nkind = sink\nudp-port = 21\n',
    SERVICES.replace('= 9', '= x').replace('= 10', '= 9').replace('= x', '= 10'),
    SERVICES + f'[service more]\nkind = drop\nudp-port = 21\naddress = {V4}\nrcvbuf = 100k\n',
    '[service sink]\nkind = sink\nudp-port = 9\nport = wan\n',
    '',
)


def resident_kb(daemon):
    with open(f'/proc/{daemon.process.pid}/status', encoding='ascii') as f:
        return int(re.search(r'VmRSS:\s+(\d+)', f.read()).group(1))


def check_reloads(cases, bed, daemon):
    with cases(f'{RELOADS} reloads under traffic: nothing is lost that is not counted, nothing leaks'):
        stop, count = threading.Event(), [0]
        thread = threading.Thread(target=sender, args=(bed, stop, count))
        thread.start()
        fds = f'/proc/{daemon.process.pid}/fd'
        with open(sys.argv[1], 'rb') as f:
            instrumented = b'__asan_init' in f.read()  # its allocator keeps what is free; it looks for leaks itself
        try:
            before = None
            for i in range(RELOADS):
                bed.conf(BASE + VARIANTS[i % len(VARIANTS)])
                answer = daemon.ctl('reload')
                assert answer['result'] == 'applied' and answer['mistakes'] == 0, answer
                if i % 10 == len(VARIANTS) - 1:
                    daemon.audit()
                    now = len(os.listdir(fds))
                    if before is None:
                        before, memory = now, resident_kb(daemon)
                    assert now <= before + 1, f'{before} descriptors became {now}'
            grown = resident_kb(daemon) - memory
            assert instrumented or grown < RELOADS_KB, f'{memory} KB became {grown} more'
        finally:
            stop.set()
            thread.join()
        assert daemon.ctl('info')['reloads'] == RELOADS
        bed.conf(BASE + SERVICES)
        daemon.ctl('reload')
        with bed.udp() as s:
            s.sendto(b'still there?', (V4, 7))
            assert s.recv(100) == b'still there?'
        lines = daemon.audit()
        outcomes = daemon.ctl('outcomes')
        counted = outcomes['udp_queued'] + outcomes['udp_no_socket'] + outcomes['udp_rcvbuf'] + \
            outcomes['udp_slots'] + outcomes['claimed'] + outcomes['port_missed']
        assert outcomes['claimed'] > 0, outcomes
        # Besides the sender's there are the few of the cases before.
        assert counted >= count[0], f'{counted} counted of {count[0]} sent: {outcomes} {lines}'
    with cases('a reload on SIGHUP is told to the init system'):
        bed.conf(BASE + SERVICES.replace('= 10', '= 12'))
        bed.forget_notify()
        daemon.process.send_signal(signal.SIGHUP)
        assert re.search('^MONOTONIC_USEC=[0-9]+$', bed.wait_notify('RELOADING=1'), re.M)
        bed.wait_notify('READY=1')
        assert daemon.service('drop')['udp_port'] == 12
    with cases('a bad file is refused whole, and what needs a restart is named'):
        check_refused(bed, daemon)


def check_refused(bed, daemon):
    good = BASE + SERVICES
    for text, said in ((good.replace('= 7', '= 8').replace('= sink', '= sunk'),
                        ['kind = sunk', 'write sink, echo, drop']),
                       (good.replace('= 7', '= 8') + '[port lan]\ndevargs = net_null0\naddress = 10.0.0.1/8\n',
                        ['[port lan]', 'restart']),
                       (good.replace(f'{V4}/24', f'{V4}/25'), ['[port wan]', 'restart']),
                       (good + 'rcvbuf = 900M\n', ['restart', 'rcvbuf']),
                       (good + '\n'.join(['junk'] * 300), ['neither', 'more'])):
        bed.conf(text)
        answer = daemon.ctl('reload', status=2)
        assert answer['error'] == 'refused' and answer['result'] == 'refused', answer
        assert all(word in answer['report'] for word in said), answer
    os.unlink(bed.path)
    assert 'No such file' in daemon.ctl('reload', status=2)['report']
    assert daemon.service('echo')['udp_port'] == 7
    bed.conf(good)
    assert daemon.ctl('reload')['result'] == 'applied'


def request(sequence, size, error=0x8301):
    """A sender's: T1 is an hour ago, so that nobody takes it for a time of the reflector's. Padding that has no such
    time either."""
    t1 = (int(time.time()) + 2208988800 - 3600) << 32 | sequence
    return (struct.pack('!IQH', sequence, t1, error) + b'\0' * 30 + os.urandom(256))[:size]


def seconds(stamp, ptp=False):
    return (stamp >> 32) + (stamp & 0xffffffff) / (10**9 if ptp else 2**32) - (0 if ptp else 2208988800)


def check_answer(answer, asked, ttl, sequence, ptp=False):
    """All fields of an answer; the times are ours, for it is one machine."""
    number, t3, error, zero, t2, sender = struct.unpack('!IQHHQI', answer[:28])
    now = time.time()
    assert len(answer) == len(asked) and number == sequence and zero == 0, answer.hex()
    assert sender == struct.unpack('!I', asked[:4])[0] and answer[28:38] == asked[4:14], answer.hex()
    assert answer[38:44] == bytes((0, 0, ttl, 0, 0, 0)) and answer[44:] == asked[44:], answer.hex()
    assert t2 <= t3 and error & 0xff != 0 and bool(error & 0x4000) == ptp, answer.hex()
    # TAI is ahead of UTC by 37 s, where the kernel knows. Patience for a slow machine, as elsewhere.
    for stamp in (t2, t3):
        assert -wire.PATIENCE_S < now - seconds(stamp, ptp) + (40 if ptp else 0) < wire.PATIENCE_S + 40, answer.hex()


def check_reflect(cases, bed, daemon):
    bed.conf(BASE + SERVICES + REFLECT)
    assert daemon.ctl('reload')['added'] == 2
    for family, host, option in ((socket.AF_INET, V4, (socket.IPPROTO_IP, socket.IP_TTL)),
                                 (socket.AF_INET6, V6, (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS))):
        for size in (41, 44, 300):
            with cases(f'reflector: a request of {size} octets to {host}'), bed.udp(family) as s:
                s.setsockopt(*option, 77)
                asked = request(1000 + size, size)
                s.sendto(asked, (host, 862))
                got, peer = s.recvfrom(65535)
                assert peer[:2] == (host, 862), peer
                check_answer(got.ljust(44, b'\0')[:max(size, 44)], asked.ljust(44, b'\0'), 77, 1000 + size)
                assert len(got) == size
    with cases('reflector: what is too short, an answer, from a service or for a group gets none, and is counted'):
        before = daemon.service('stamp')['outcomes']
        with bed.udp(port=123) as s:
            s.sendto(request(1, 44), (V4, 862))
        with bed.udp() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(request(2, 13), (V4, 862))
            s.sendto(request(3, 40), (V4, 862))
            s.sendto(request(4, 44), ('198.18.0.255', 862))
            s.sendto(request(5, 44), (V4, 862))
            answer = s.recv(100)
            assert answer[:4] == struct.pack('!I', 5), answer.hex()
            s.sendto(answer, (V4, 862))
            s.sendto(request(6, 44), (V4, 862))
            assert s.recv(100)[:4] == struct.pack('!I', 6)
        after = daemon.service('stamp')['outcomes']
        counted = {k: after[k] - before[k] for k in after if after[k] != before[k]}
        assert counted == {'stamp_answered': 2, 'stamp_short': 1, 'stamp_unpadded': 1, 'stamp_group': 1,
                           'stamp_reflected': 1, 'stamp_source_port': 1}, counted
    check_sessions(cases, bed, daemon)
    with cases('reflector: everything is accounted for'):
        lines = daemon.audit()
        assert lines['service stamp']['entered'] == 13 and lines['service counts']['entered'] >= 1, lines
        assert daemon.ctl('drops')['stamp_unpadded'] == 1


def check_sessions(cases, bed, daemon):
    with bed.udp() as one, bed.udp() as two:
        def numbers(s, n, port=8620):
            for i in range(n):
                asked = request(500 + 10 * i, 44)
                s.sendto(asked, (V4, port))
                got = s.recv(100)
                number = struct.unpack('!I', got[:4])[0]
                check_answer(got, asked, 64, number, True)
                yield number
        with cases('reflector: stateful answers are numbered by session'):
            assert list(numbers(one, 3)) == [0, 1, 2] and list(numbers(two, 2)) == [0, 1]
        with cases('reflector: a reload that leaves it what it is keeps its sessions'):
            bed.conf(BASE + SERVICES.replace('= 10', '= 12') + REFLECT + 'rcvbuf = 1M\n')
            assert daemon.ctl('reload')['changed'] == 2
            assert list(numbers(one, 2)) == [3, 4] and list(numbers(two, 1)) == [2]
        with cases('reflector: one that makes it another begins them anew, or leaves the numbers to the sender'):
            bed.conf(BASE + SERVICES + REFLECT.replace('= 8620', '= 8621'))
            assert daemon.ctl('reload')['changed'] == 2
            assert list(numbers(one, 2, 8621)) == [0, 1]
            bed.conf(BASE + SERVICES + REFLECT.replace('stateful', 'stateless'))
            daemon.ctl('reload')
            assert list(numbers(one, 2)) == [500, 510]


TWO_PORTS = f"""[sluiced]
name = {NAME}
lcores = {{first}},{{last}}
hugepages = no
[port wan]
devargs = net_tpacket0,iface=wb
address = {V4}/24
lcores = {{first}}
[port lan]
devargs = net_tpacket1,iface=wd
address = 198.19.0.2/24
lcores = {{last}}
[service one]
kind = echo
udp-port = 7
[service two]
kind = echo
udp-port = 8
[service three]
kind = echo
udp-port = 9
port = lan
[service four]
kind = reflect
udp-port = 9862
"""


def check_two_ports(cases, bed):
    """Each port has an lcore of its own, and each service another one than one of the ports."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        cases.skip('two ports on two lcores', 'needs two processors')
        return
    wire.sh('ip', '-n', bed.a, 'link', 'add', 'wc', 'type', 'veth', 'peer', 'name', 'wd', 'netns', bed.b)
    wire.sh('ip', '-n', bed.a, 'addr', 'add', '198.19.0.1/24', 'dev', 'wc')
    for ns, dev in ((bed.a, 'wc'), (bed.b, 'wd')):
        wire.sh('ip', '-n', ns, 'link', 'set', dev, 'up')
    with cases('two ports on two lcores: each service answers on each port'):
        # Without privileges but the one that it names, and with no more than that.
        daemon = Daemon(bed, TWO_PORTS.format(first=cpus[0], last=cpus[1]),
                        prefix=('setpriv', '--bounding-set=-all,+net_raw'))
        try:
            with bed.udp() as s:
                for host in (V4, '198.19.0.2'):
                    for port in (7, 8):
                        s.sendto(f'{host} {port}'.encode(), (host, port))
                        assert s.recvfrom(100) == (f'{host} {port}'.encode(), (host, port))
                    asked = request(port, 60)
                    s.sendto(asked, (host, 9862))
                    check_answer(s.recv(100), asked, 64, port)
                s.sendto(b'lan alone', ('198.19.0.2', 9))
                assert s.recv(100) == b'lan alone'
                s.connect((V4, 9))
                s.send(b'not here')
                with contextlib.suppress(ConnectionRefusedError):
                    raise AssertionError(s.recv(100))
            assert len({x['lcore'] for x in daemon.ctl('services')}) == 2
            assert [p['tx_queues'] for p in daemon.ctl('ports')] == [2, 2]
            lines = daemon.audit()
            assert lines['port lan']['entered'] > 0 and lines['port wan']['entered'] > 0, lines
            bed.conf(TWO_PORTS.format(first=cpus[0], last=cpus[1]).replace('= 8', '= 10'))
            assert daemon.ctl('reload')['changed'] == 1
            daemon.audit()
            daemon.end(signal.SIGINT)
        finally:
            daemon.kill()


def check_words(cases):
    with cases('help, completion and man page have the same commands'):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
        text = wire.sh(sys.argv[2], '--help')
        commands = re.findall('^  ([a-z]+) ', text, re.M)
        assert 'audit' in commands and len(commands) >= 10, text
        with open(f'{top}/doc/sluicectl.1', encoding='utf-8') as f:
            assert re.findall('^[.]TP\n[.]B ([a-z]+)$', f.read(), re.M) == commands
        script = f'. {top}/config/sluicectl.bash; COMP_WORDS=(sluicectl "$1"); COMP_CWORD=1;' \
                 '_sluicectl; echo ${COMPREPLY[@]}'
        assert wire.sh('bash', '-c', script, 'x', '').split()[:len(commands)] == commands
        assert wire.sh('bash', '-c', script, 'x', 're').split() == ['reload']


def check_machine(cases, bed):
    """What --check finds that the file alone does not show."""
    good = BASE + SERVICES
    wire.sh('ip', '-n', bed.b, 'link', 'add', 'down0', 'type', 'veth', 'peer', 'name', 'down1')
    nobody = ('setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw')
    for name, text, prefix, said in (
            ('no interface', good.replace('iface=wb', 'iface=nope0'), (), 'interface nope0: there is no'),
            ('down', good.replace('iface=wb', 'iface=down0'), (), 'ip link set down0 up'),
            ('no Ethernet', good.replace('iface=wb', 'iface=lo'), (), 'does not carry Ethernet'),
            ('no processor', good.replace(f'lcores = {CPU}', 'lcores = 1023'), (), 'processor 1023'),
            ('no hugepages', good.replace('= no', '= yes').replace('idle', 'memory = 65000\nidle'), (),
             'vm.nr_hugepages'),
            ('no plugin', good.replace('idle', 'driver = /nope.so\nidle'), (), 'driver = /nope.so'),
            ('no privilege', good, nobody, 'CAP_NET_RAW')):
        with cases(f'--check: {name}'):
            bed.conf(text)
            status, _, err = bed.run('--check', bed.path, prefix=prefix)
            assert status == 2 and said in err and re.match(f'{bed.path}:[0-9]+: ', err), err
    with cases('--check: an address that the kernel has'):
        wire.sh('ip', '-n', bed.b, 'addr', 'add', f'{V4}/24', 'dev', 'lo')
        bed.conf(good)
        status, _, err = bed.run('--check', bed.path)
        wire.sh('ip', '-n', bed.b, 'addr', 'del', f'{V4}/24', 'dev', 'lo')
        assert status == 2 and f'the kernel has {V4} too' in err, err
    with cases('--check: nothing'):
        status, out, err = bed.run('--check', bed.path)
        assert (status, err) == (0, '') and 'no mistake' in out, err
    with cases('a device that is not there ends the start with line and key'):
        bed.conf(good.replace('net_tpacket0,iface=wb', 'net_none0'))
        status, _, err = bed.run(bed.path)
        last = err.splitlines()[-1]
        assert status == 2 and f'{bed.path}:7: [port wan] devargs = net_none0' in last, err
    with cases('options'):
        assert bed.run()[0] == 2 and bed.run('--nope')[0] == 2 and bed.run('--help')[0] == 0
    with cases('no program has left anything behind'):
        assert not os.path.exists(RUNTIME), os.listdir(RUNTIME)


def check_memory(cases, bed):
    """What the packets of many services need is computed from the file, also without hugepages."""
    text = BASE.replace(f', {V6}/64', '')
    for i in range(40):
        text += f'[service s{i}]\nkind = sink\nudp-port = {1000 + i}\n'
    with cases('the memory that is taken by default is enough for many services'):
        daemon = Daemon(bed, text)
        try:
            assert len(daemon.ctl('services')) == 40
            daemon.end()
        finally:
            daemon.kill()


def run(cases):
    bed = Bed(*sys.argv[1:3])
    check_words(cases)
    check_machine(cases, bed)
    check_memory(cases, bed)
    check_two_ports(cases, bed)
    daemon = Daemon(bed, watchdog_us=400000)
    with cases('the init system hears of readiness and life'):
        bed.wait_notify('WATCHDOG=1', daemon)
    check_echo(cases, bed, daemon)
    check_counts(cases, bed, daemon)
    check_control(cases, bed, daemon)
    with cases('everything that entered is accounted for'):
        lines = daemon.audit()
        assert lines['stack']['entered'] == lines['port wan']['entered'] > 200, lines
        assert lines['sockets']['entered'] > 200, lines
    check_reloads(cases, bed, daemon)
    with cases('a second daemon of the name is refused, and harms nothing'):
        status, _, err = bed.run(bed.path)
        assert status == 2 and 'another sluiced of that name' in err, err
        assert daemon.ctl('info')['pid'] == daemon.process.pid
    with cases('killed, it starts again'):
        daemon.process.kill()
        daemon.process.wait()
        daemon = Daemon(bed)
        with bed.udp(socket.AF_INET6) as s:
            s.sendto(b'again', (V6, 7))
            assert s.recv(100) == b'again'
        daemon.audit()
    check_reflect(cases, bed, daemon)
    with cases('SIGTERM ends it with all packets back, and nothing left behind'):
        bed.forget_notify()
        daemon.process.send_signal(signal.SIGTERM)
        bed.wait_notify('STOPPING=1', daemon)
        daemon.end()
        assert not os.path.exists(RUNTIME), os.listdir(RUNTIME)
        assert 'ready, control socket' in daemon.said() and 'service echo: echo' in daemon.said()


def main():
    cases = wire.Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    run(cases)
    sys.exit(cases.finish())


if __name__ == '__main__':
    main()
