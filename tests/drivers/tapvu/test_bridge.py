#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The bridge to a kernel tap, and frontends that come and go, with unmodified testpmds.

   namespace B                                             namespace A
   kernel -- tt0 -- testpmd [net_tap, net_virtio_user] == [net_tapvu,tap=st0] testpmd -- st0 -- kernel
             (io)                                          (rxonly polls the bridge)

KILLS frontends are killed (6); both directions at once take SECONDS (2).

usage: test_bridge.py PLUGIN [KILLS [SECONDS]]
"""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 120
CPUS = sorted(os.sched_getaffinity(0))
ID = os.getpid() & 0xffff
A, B = f'sltva{ID}', f'sltvb{ID}'
passed, failed = 0, 0


def run(*args, check=True, **kw):
    return subprocess.run(args, check=check, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kw)


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise RuntimeError(f'{what} does not come')


class Testpmd:
    processes = []  # all that were ever started

    def __init__(self, namespace, core, name, *options):
        core = CPUS[core % len(CPUS)]
        self.prefix = f'--file-prefix=slt{name}{os.getpid()}'
        eal, app = options[:options.index('--')], options[options.index('--') + 1:]
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', namespace, 'stdbuf', '-oL', 'dpdk-testpmd', '--lcores', f'0@{core},1@{core}',
             '--no-huge', '-m', '128', '--no-pci', '--log-level=lib.vhost.config:4', self.prefix,
             *([] if '--telemetry' in eal else ['--no-telemetry']), *eal, '--', '-i', '--total-num-mbufs=8192',
             # Another thread would print events into the middle of a prompt, which is written letter by letter.
             '--mask-event=all', *app], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        Testpmd.processes.append(self.process)
        self.output = ''
        self.read_until(r'testpmd> ')

    def read_until(self, pattern):
        end = time.monotonic() + PATIENCE_S
        while not (match := re.search(pattern, self.output, re.S)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'testpmd does not print {pattern}: {self.output[-800:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'testpmd ended: {self.output[-800:]}')
            self.output += data.decode(errors='replace')
        self.output = self.output[match.end():]
        return match

    def say(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def ask(self, line, pattern):
        self.say(line)
        return self.read_until(pattern)

    def xstats(self):
        # The prompt comes only after all of it, so a marker that is known to be last is awaited.
        text = self.ask('show port xstats 0', r'extended statistics for port 0(.*?ring_broken: \d+)')
        return {k: int(v) for k, v in re.findall(r'(\w+): (\d+)', text.group(1))}

    def quit(self):
        try:
            self.say('quit')
            self.process.wait(PATIENCE_S)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()

    def kill(self):
        # The process itself, not the wrapper: ip execs it, so it is the same one.
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


FOLDERS = []


def socket_path():
    FOLDERS.append(tempfile.mkdtemp(prefix='sltv'))
    return os.path.join(FOLDERS[-1], 's')


def backend(plugin, path, options):
    return Testpmd(A, 0, 'back', '-d', plugin, f'--vdev=net_tapvu0,path={path}{options}', '--',
                   '--forward-mode=rxonly', '--auto-start')


def frontend(path, options, tap=True):
    if tap:
        return Testpmd(B, 1, 'front', f'--vdev=net_virtio_user0,path={path},{options}',
                       '--vdev=net_tap0,iface=tt0', '--', '--forward-mode=io', '--auto-start')
    return Testpmd(B, 1, 'front', f'--vdev=net_virtio_user0,path={path},{options}', '--',
                   '--forward-mode=txonly', '--auto-start')


def setup():
    for ns in (A, B):
        run('ip', 'netns', 'add', ns)
        run('ip', '-n', ns, 'link', 'set', 'lo', 'up')
        run('ip', 'netns', 'exec', ns, 'sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1')


def cleanup():
    for process in Testpmd.processes:  # what a case that failed half-way has left
        process.kill()
        process.wait()
    for ns in (A, B):
        run('ip', 'netns', 'del', ns, check=False)
    while FOLDERS:
        shutil.rmtree(FOLDERS.pop())


def address(ns, interface, cidr):
    run('ip', '-n', ns, 'addr', 'replace', cidr, 'dev', interface)
    run('ip', '-n', ns, 'link', 'set', interface, 'up')


def ping(count=3, size=56):
    r = run('ip', 'netns', 'exec', B, 'ping', '-c', str(count), '-i', '0.1', '-w', '30',
            '-s', str(size), '198.18.7.1', check=False)
    return int(re.search(r'(\d+) received', r.stdout).group(1)), r.stdout


RECEIVER = '''
import socket, hashlib
s = socket.create_server(("198.18.7.1", 5001))
print("ready", flush=True)
c, _ = s.accept()
h = hashlib.sha256(); n = 0
while d := c.recv(1 << 16):
    h.update(d); n += len(d)
c.sendall(h.hexdigest().encode())
print(n)
'''
SENDER = '''
import socket, hashlib, random
data = random.Random(1).randbytes(1 << 20) * 2
c = socket.create_connection(("198.18.7.1", 5001))
c.sendall(data); c.shutdown(socket.SHUT_WR)
got = b""
while d := c.recv(100):
    got += d
print(got.decode() == hashlib.sha256(data).hexdigest())
'''
ECHO = '''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("198.18.7.1", 5002))
print("ready", flush=True)
while True:
    d, a = s.recvfrom(70000)
    s.sendto(d, a)
'''
ASK = '''
import socket
good = 0
for flow in range(8):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    for size in (0, 1, 100, 1472, 1473, 5000):
        data = bytes([flow]) * size
        s.sendto(data, ("198.18.7.1", 5002))
        good += s.recvfrom(70000)[0] == data
print(good)
'''

# The same at both ends of one connection: it sends until its time is over, and receives meanwhile.
DUPLEX = '''
import hashlib, json, random, socket, sys, threading, time
seconds, serves = float(sys.argv[1]), sys.argv[2] == "serves"
if serves:
    s = socket.create_server(("198.18.7.1", 5003))
    print("ready", flush=True)
    c, _ = s.accept()
else:
    c = socket.create_connection(("198.18.7.1", 5003))
data, did = memoryview(random.randbytes(1 << 20)), {}
def send():
    h, n, end = hashlib.sha256(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        at = random.randrange(1 << 19)
        part = data[at:at + random.randrange(1, 1 << 18)]
        c.sendall(part); h.update(part); n += len(part)
    c.shutdown(socket.SHUT_WR)
    did["sent"] = n, h.hexdigest()
def receive():
    h, n = hashlib.sha256(), 0
    while d := c.recv(1 << 16):
        h.update(d); n += len(d)
    did["received"] = n, h.hexdigest()
threads = [threading.Thread(target=f) for f in (send, receive)]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(did))
'''


def python_in(ns, program, *arguments):
    p = subprocess.Popen(['ip', 'netns', 'exec', ns, sys.executable, '-c', program, *arguments],
                         stdout=subprocess.PIPE, text=True)
    return p


def answers(server, client):
    s = python_in(A, server)
    try:
        assert s.stdout.readline() == 'ready\n'
        c = python_in(B, client)
        return c.communicate(timeout=PATIENCE_S)[0].strip()
    finally:
        s.kill()
        s.wait()


def both_at_once(seconds):
    """As much TCP as goes, both ways at the same time; all of it arrives as it was sent."""
    ends = [python_in(A, DUPLEX, str(seconds), 'serves')]
    try:
        assert ends[0].stdout.readline() == 'ready\n'
        ends.append(python_in(B, DUPLEX, str(seconds), 'connects'))
        did = [json.loads(e.communicate(timeout=PATIENCE_S + seconds)[0]) for e in ends]
    finally:
        for e in ends:
            e.kill()
            e.wait()
    assert did[0]['sent'] == did[1]['received'] and did[1]['sent'] == did[0]['received'], did
    out, back = did[1]['sent'][0], did[0]['sent'][0]
    assert out > 0 and back > 0, did
    print(f'     {seconds} s both ways at once: {out >> 20} MB to the kernel, {back >> 20} MB from it, '
          'every byte as it was sent')


def read_number(path):
    try:
        with open(path, encoding='ascii') as f:
            return int(f.read())
    except FileNotFoundError:  # older kernels cannot switch it off
        return 0


def descriptors(process):
    """What they are of. Without those of epoll: EAL's interrupt thread closes its own and opens
    another at moments of its choice."""
    found = []
    folder = f'/proc/{process.pid}/fd'
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f'{folder}/{fd}'))
    return [of for of in found if 'eventpoll' not in of]


def urings(process):
    return sum('io_uring' in of for of in descriptors(process))


def bridge(plugin, options, seconds=0, calls=''):
    path = socket_path()
    back = backend(plugin, path, f',tap=st0{calls}')
    try:
        assert urings(back.process) == (0 if calls or not URING else 2)
        front = frontend(path, options)
        try:
            address(A, 'st0', '198.18.7.1/24')
            address(B, 'tt0', '198.18.7.2/24')
            wait_for('the first ping', lambda: ping(1)[0] >= 1)
            for size in (56, 1400, 4000):
                got, text = ping(5, size)
                assert got >= 5, text
            assert answers(RECEIVER, SENDER) == 'True'
            assert answers(ECHO, ASK) == '48'
            if seconds:
                both_at_once(seconds)
            x = back.xstats()
            assert x['bridge_to_kernel_frames'] > 50 and x['bridge_to_peer_frames'] > 50, x
            for bad in ('bad_frame', 'bad_chain', 'no_header', 'failed'):
                assert x['bridge_to_kernel_' + bad] == 0, x
            assert x['bridge_to_peer_too_big'] == 0 and x['ring_bad_address'] == 0, x
            if seconds:
                print(f'     {x["bridge_to_kernel_frames"]} frames to the kernel, {x["bridge_to_peer_frames"]} from it')
        finally:
            front.quit()
    finally:
        back.quit()
    assert 'st0' not in run('ip', '-n', A, 'link').stdout


def mappings(process):
    with open(f'/proc/{process.pid}/maps', encoding='ascii') as f:
        return sum('nohuge' in line or 'memfd' in line for line in f)


def killed_frontends(plugin, kills):
    """A frontend that is killed under traffic leaves nothing, and the next one is served."""
    path = socket_path()
    back = backend(plugin, path, ',frag=lcore')
    try:
        before = len(descriptors(back.process)), mappings(back.process)
        for i in range(kills):
            start = back.xstats()['rx_chain_built']
            front = frontend(path, 'packed_vq=%d' % (i % 2), tap=False)
            wait_for('traffic', lambda: back.xstats()['rx_chain_built'] > start + 1000)
            front.kill()
            wait_for('the end of what the dead had open',
                     lambda: (len(descriptors(back.process)), mappings(back.process)) == before)
        x = back.xstats()
        assert all(x['ring_' + k] == 0 for k in ('bad_index', 'bad_head', 'bad_id', 'loop')), x
    finally:
        back.quit()


def restarted_backend(plugin, restarts):
    """The frontend is the server and stays; backends come, are killed, and come again."""
    path = socket_path()
    front_options = 'server=1,packed_vq=0'
    front = None
    try:
        for i in range(restarts):
            if front is None:
                # A server frontend waits for its first backend before it is ready.
                made = {}
                t = threading.Thread(
                    target=lambda: made.update(f=frontend(path, front_options, tap=False)))
                t.start()
                wait_for('the socket', lambda: os.path.exists(path))
                back = backend(plugin, path, ',client=1')
                t.join()
                front = made['f']
            else:
                back = backend(plugin, path, ',client=1')
            wait_for('traffic', lambda: back.xstats()['rx_chain_built'] > 1000)
            back.kill()
    finally:
        if front is not None:
            front.quit()


def telemetry(prefix, command):
    """What the distribution's own client prints for a command."""
    text = run('dpdk-telemetry.py', prefix, input=f'{command}\n').stdout
    at = re.search(r'\{\s*"' + command.split(',')[0], text)
    if at is None:
        raise RuntimeError(f'no answer to {command}: {text[-400:]}')
    return json.JSONDecoder().raw_decode(text[at.start():])[0][command.split(',')[0]]


def seen_by_telemetry(plugin):
    """Ports, frontends, rings and counters, as they are."""
    path = socket_path()
    back = Testpmd(A, 0, 'back', '--telemetry', '-d', plugin, f'--vdev=net_tapvu0,path={path},queues=2,frag=page',
                   '--', '--forward-mode=rxonly', '--auto-start')
    try:
        (name, port), = telemetry(back.prefix, '/sluice/tapvu').items()
        assert name == 'net_tapvu0' and port['port_id'] == 0 and port['path'] == path, port
        assert (port['queues'], port['taps'], port['frag'], port['client']) == (2, 1, 'page', 0), port
        assert port['link'] == 0 and 'frontend_0' not in port and 'tap' not in port, port
        front = frontend(path, 'packed_vq=1', tap=False)
        wait_for('traffic', lambda: back.xstats()['rx_chain_built'] > 1000)
        port = telemetry(back.prefix, '/sluice/tapvu')[name]
        assert port['link'] == 1 and port['started'] == 1 and port['counters']['rx_chain_built'] > 1000, port
        assert port['frontend_0']['running'] == 1 and 'ring_0' not in port['frontend_0'], port
        port = telemetry(back.prefix, '/sluice/tapvu,0')[name]
        peer = port['frontend_0']
        version_1, packed = 1 << 32, 1 << 34
        assert int(peer['features'], 16) & (version_1 | packed) == version_1 | packed, peer
        assert peer['regions'] >= 1 and sorted(k for k in peer if k.startswith('ring_')) == [
            'ring_0', 'ring_1', 'ring_2', 'ring_3'], peer
        one, unused = peer['ring_1'], peer['ring_3']
        assert (one['index'], one['up'], one['enabled'], one['broken'], one['layout'], one['size']) == (
            1, 1, 1, 0, 'packed', 256), one
        assert one['way'] == 'from the frontend' and peer['ring_0']['way'] == 'to the frontend', peer
        # The rings were looked at after the port's own sum was made.
        assert one['chains_returned'] > 1000 and one['counters']['ring_ok'] > 1000, one
        assert (unused['up'], unused['counters']) == (0, {}), unused
        assert 'ring_bad_index' not in one['counters'], one
        peer = telemetry(back.prefix, '/sluice/tapvu,0,0,1')[name]['frontend_0']
        assert 'ring_1' in peer and 'ring_0' not in peer, peer
        for wrong in ('7', 'x', '0,0,1,2', '0;1'):
            assert telemetry(back.prefix, f'/sluice/tapvu,{wrong}') is None, wrong
        front.quit()
        wait_for('the link to go', lambda: telemetry(back.prefix, '/sluice/tapvu')[name]['link'] == 0)
        port = telemetry(back.prefix, '/sluice/tapvu')[name]
        assert 'frontend_0' not in port or port['frontend_0']['running'] == 0, port
        x = back.xstats()
        assert {k: v for k, v in x.items() if v and k in port['counters']} == port['counters'], (x, port)
    finally:
        back.quit()


def end_in_order():
    """A signal to end is an exception, so that what was made is removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('ended by a signal'))


def case(name, function, *args):
    global passed, failed
    if ONLY not in name:
        return
    try:
        function(*args)
        passed += 1
        print(f'ok   {name}', flush=True)
    except Exception as error:  # one case's trouble must not hide the others
        failed += 1
        print(f'FAIL {name}: {error!r}', flush=True)


# As the kernel has it for everybody, or for root alone.
URING = read_number('/proc/sys/kernel/io_uring_disabled') < 2
ONLY = os.environ.get('TAPVU_CASE', '')  # part of a case's name: run that one alone


def main():
    if len(sys.argv) < 2:
        print('usage: test_bridge.py PLUGIN [KILLS [SECONDS]]', file=sys.stderr)
        return 2
    plugin = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    if os.geteuid() != 0 or not os.path.exists('/dev/net/tun'):
        print('SKIP bridge: needs root and /dev/net/tun\n0 passed, 0 failed, 1 skipped')
        return 0
    end_in_order()
    cleanup()
    try:
        setup()
        case(f'ping, TCP and UDP over a split ring, {seconds} s of TCP both ways at once', bridge, plugin,
             'packed_vq=0', seconds)
        case('ping, TCP and UDP over a packed ring', bridge, plugin, 'packed_vq=1')
        case('ping, TCP and UDP without merged buffers, plain calls', bridge, plugin,
             'mrg_rxbuf=0,in_order=0', 0, ',uring=0')
        case(f'{kills} frontends killed under traffic', killed_frontends, plugin, kills)
        case('telemetry', seen_by_telemetry, plugin)
        case('backends killed under a running frontend', restarted_backend, plugin, 3)
    finally:
        cleanup()
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
