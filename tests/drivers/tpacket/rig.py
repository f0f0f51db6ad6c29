# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""What the tests of net_tpacket share: namespaces and wires, a stock testpmd with the plugin, cases.

The plugin is loaded from an installed copy, because DPDK refuses plugins below folders that others
may write to.
"""
import atexit
import fcntl
import glob
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
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'net'))
import wire  # noqa: E402  (the path comes first)
from wire import ETH_P_ALL, PACKET_IGNORE_OUTGOING, PATIENCE_S, SO_RCVBUFFORCE, SOL_PACKET, sh  # noqa: E402

PACKET_AUXDATA = 8
PROMPT = 'testpmd> '
# What other threads of testpmd print at any time. The prompt and the echo of a command are written
# letter by letter, so such a line may stand in the middle of either.
NOISE = re.compile(r'(?:Port \d+: [\w ]+ event|TPACKET: [^\n]*)\n')
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


# Without it, a choice of arguments that between them take every path.
FULL = '--full' in sys.argv


class Rig:
    """Owns everything that has to go away again: namespaces, processes, the installed plugin."""

    def __init__(self, plugin):
        self.tag = f'tp{os.getpid()}'
        self.namespaces, self.processes = [], []
        self.count = self.made = 0
        self.home = None
        atexit.register(self.close)
        for sig in SIGNALS:
            signal.signal(sig, self.interrupted)
        self.plugin = self.install(plugin)
        self.runtime = self.sanitizer()

    def install(self, plugin):
        """A copy in a folder that only we may write to, as `meson install` would put it."""
        self.home = f'/opt/sluice-test-{os.getpid()}'
        os.makedirs(self.home, mode=0o755)
        return shutil.copy(plugin, self.home)

    def sanitizer(self):
        """What a stock program needs to load an instrumented plugin: its runtime, first of all. The
        program's own leaks are not looked for."""
        with open(self.plugin, 'rb') as f:
            if b'__asan_init' not in f.read():
                return ()
        return (sh('clang', f'-print-file-name=libclang_rt.asan-{os.uname().machine}.so').strip(), )

    def preload(self, *libraries):
        """A command's prefix for a program that loads the plugin."""
        libraries = (*self.runtime, *libraries)
        return ('env', f'LD_PRELOAD={" ".join(libraries)}', 'ASAN_OPTIONS=detect_leaks=0',
                'UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1') if libraries else ()

    @staticmethod
    def deaf():
        # A second signal must not end the cleaning up half way.
        for sig in SIGNALS:
            signal.signal(sig, signal.SIG_IGN)

    def interrupted(self, *_):
        self.deaf()
        sys.exit(130)  # close() comes with it

    def close(self):
        self.deaf()
        self.clear()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)

    def clear(self):
        """Take everything away but the plugin; True if some process was still there."""
        alive = [p for p in self.processes if p.poll() is None]
        for process in alive:
            process.kill()
            process.wait()
        self.processes.clear()
        for ns in self.namespaces:
            sh('ip', 'netns', 'del', ns, check=False)
        self.namespaces.clear()
        for path in glob.glob(f'/var/run/dpdk/{self.tag}n*'):
            shutil.rmtree(path, ignore_errors=True)
        return bool(alive)

    def namespace(self, name, ipv6=False):
        self.made += 1
        ns = f'{self.tag}{name}{self.made}'
        sh('ip', 'netns', 'add', ns)
        self.namespaces.append(ns)
        sh('ip', 'netns', 'exec', ns, 'sysctl', '-qw',
           *(f'net.ipv6.conf.{scope}.disable_ipv6={0 if ipv6 else 1}'
             for scope in ('default', 'all', 'lo')))
        sh('ip', '-n', ns, 'link', 'set', 'lo', 'up')
        return ns

    @staticmethod
    def veth(ns_a, a, ns_b, b, queues=1, mtu=1500):
        sh('ip', '-n', ns_a, 'link', 'add', a, 'mtu', str(mtu), 'numtxqueues', str(queues),
           'numrxqueues', str(queues), 'type', 'veth', 'peer', 'name', b, 'netns', ns_b, 'mtu',
           str(mtu), 'numtxqueues', str(queues), 'numrxqueues', str(queues))
        for ns, dev in ((ns_a, a), (ns_b, b)):
            sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'off', 'up')
        # The first one came up without a carrier. Until a worker of the kernel has seen that it has one
        # now, its queueing discipline is "noop", which drops what is sent and reports success.
        end = time.monotonic() + PATIENCE_S
        while Rig.details(ns_a, a)['qdisc'] == 'noop':
            assert time.monotonic() < end, 'the wire does not come up'

    def run(self, ns, *command, **options):
        process = subprocess.Popen(['ip', 'netns', 'exec', ns, *command], **options)
        self.processes.append(process)
        return process

    def testpmd(self, ns, *vdevs, **options):
        self.count += 1
        prefix = options.pop('prefix', f'{self.tag}n{self.count}')
        return Testpmd(self, ns, prefix, vdevs, **options)

    @staticmethod
    def inside(ns, *args):
        """A socket of namespace ns; it stays there."""
        return wire.inside(ns, lambda: socket.socket(*args))

    there = staticmethod(wire.inside)
    mac = staticmethod(wire.mac)

    @staticmethod
    def details(ns, dev):
        return json.loads(sh('ip', '-j', '-d', '-n', ns, 'link', 'show', dev))[0]

    def leftovers(self):
        """Processes that no case has ended, and packet sockets that are there without one."""
        left = [' '.join(p.args) for p in self.processes if p.poll() is None]
        for ns in self.namespaces:
            left += sh('ip', 'netns', 'exec', ns, 'ss', '-0', '-n', '-H').split('\n')
        return [line for line in left if line]


class Link:
    """Raw frames on one interface, as a plain packet socket sees them."""

    def __init__(self, ns, dev):
        self.sock = Rig.inside(ns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self.sock.bind((dev, ETH_P_ALL))

    def send(self, frame):
        self.sock.send(frame)

    def flush(self):
        self.sock.setblocking(False)
        try:
            while True:
                self.sock.recv(1 << 17)
        except BlockingIOError:
            pass

    def receive(self, patience=PATIENCE_S):
        if not select.select([self.sock], [], [], patience)[0]:
            return None
        return self.sock.recv(1 << 17)

    def wait_for(self, wanted, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            frame = self.receive(left)
            if frame is not None and wanted(frame):
                return frame
        return None

    def close(self):
        self.sock.close()


class Tap(Link):
    """The user's end of a tap interface: what its kernel end transmits comes out complete."""

    def __init__(self, ns, dev, vnet=False):
        self.fd = Rig.there(ns, lambda: os.open('/dev/net/tun', os.O_RDWR))
        iff_tap, iff_no_pi, iff_vnet_hdr, tunsetiff = 2, 0x1000, 0x4000, 0x400454ca
        flags = iff_tap | iff_no_pi | (iff_vnet_hdr if vnet else 0)
        fcntl.ioctl(self.fd, tunsetiff, struct.pack('16sH22x', dev.encode(), flags))
        sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'off')
        sh('ip', '-n', ns, 'link', 'set', dev, 'up')

    def send(self, frame):
        os.write(self.fd, frame)

    def receive(self, patience=PATIENCE_S):
        if not select.select([self.fd], [], [], patience)[0]:
            return None
        return os.read(self.fd, 1 << 17)

    def flush(self):
        while self.receive(0) is not None:
            pass

    def close(self):
        os.close(self.fd)


class Testpmd:
    """A stock dpdk-testpmd, driven over its standard input."""

    def __init__(self, rig, ns, prefix, vdevs, mode='io', options=(), plugin=True, log=None,
                 wrapper=(), lcores=None, mbufs=8192, memory=('--no-huge', '-m', '128'),
                 expect_failure=False):
        cpus = sorted(os.sched_getaffinity(0))
        self.prefix = prefix
        lcores = lcores or f'0@{cpus[0]},1@{cpus[-1]}'
        command = [*wrapper, *rig.preload(), 'stdbuf', '-oL', 'dpdk-testpmd', '--lcores', lcores, *memory,
                   '--no-pci', '--no-telemetry', f'--file-prefix={prefix}']
        if plugin:
            command += ['-d', rig.plugin]
        command += [f'--vdev={v}' for v in vdevs]
        command += [f'--log-level={log}'] if log else []
        # Locking all of its memory would take it longer than everything else here.
        command += ['--', '-i', f'--forward-mode={mode}', f'--total-num-mbufs={mbufs}',
                    '--no-mlockall', *options]
        self.process = rig.run(ns, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, cwd='/')
        self.pending, self.log = '', ''
        if not expect_failure:
            self.log = self.until(lambda text: PROMPT in self.flat(text))

    @staticmethod
    def flat(text):
        return NOISE.sub('', text).replace('\n', '')

    def until(self, done):
        end = time.monotonic() + PATIENCE_S
        while not done(self.pending):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'testpmd is silent: {self.pending[-800:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'testpmd ended: {(self.log + self.pending)[-800:]}')
            self.pending += data.decode(errors='replace').replace('\r', '')
        text, self.pending = self.pending, ''
        return text

    def ask(self, line):
        """Give a command; returns what it printed."""
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

        def answered(text):
            """The line comes back as an echo, then the answer, then a prompt."""
            _, echo, answer = self.flat(text).partition(line)
            return echo and PROMPT in answer
        text = self.until(answered)
        self.log += text
        return text

    def forward(self, mode):
        self.stop()
        self.ask(f'set fwd {mode}')
        self.start()

    def start(self, tx_first=False):
        return self.ask('start tx_first' if tx_first else 'start')

    def stop(self):
        return self.ask('stop')

    def settle(self):
        """Until the transmit counters have all that a receiver has seen. An lcore counts a burst after its
        frames have left, and may lose its processor in between; what it receives it counts before."""
        self.stop()
        self.start()

    def stats(self, port=0):
        text = self.ask(f'show port stats {port}')
        return {name: int(n) for name, n in
                re.findall(r'([RT]X-(?:packets|bytes|missed|errors|nombuf)):\s*(\d+)', text)}

    def xstats(self, port=0):
        text = self.ask(f'show port xstats {port}')
        return {name: int(n) for name, n in re.findall(r'^(\w+): (\d+)$', text, flags=re.M)}

    def until_stat(self, name, least, port=0):
        end = time.monotonic() + PATIENCE_S
        while (got := self.stats(port))[name] < least and time.monotonic() < end:
            time.sleep(0.01)
        return got

    def cpu_seconds(self, name='rte-worker-1'):
        """Time that the forwarding lcore has had on a processor."""
        for task in os.listdir(f'/proc/{self.pid()}/task'):
            folder = f'/proc/{self.pid()}/task/{task}'
            with open(f'{folder}/comm', encoding='ascii') as f:
                if f.read().strip() != name:
                    continue
            with open(f'{folder}/schedstat', encoding='ascii') as f:
                return int(f.read().split()[0]) / 1e9
        raise RuntimeError(f'no thread {name}')

    def pid(self):
        return self.process.pid

    def quit(self):
        """Ends it in order; returns the exit status and remembers the output."""
        self.process.stdin.write(b'quit\n')
        self.process.stdin.flush()
        text, _ = self.process.communicate(timeout=PATIENCE_S)
        self.log += text.decode(errors='replace')
        shutil.rmtree(f'/var/run/dpdk/{self.prefix}', ignore_errors=True)
        return self.process.returncode

    def wait(self):
        """For a testpmd that must refuse to start: its output, after its end."""
        text, _ = self.process.communicate(timeout=PATIENCE_S)
        shutil.rmtree(f'/var/run/dpdk/{self.prefix}', ignore_errors=True)
        return self.process.returncode, self.pending + text.decode(errors='replace')


class Case:
    def __init__(self, cases, name):
        self.cases, self.name = cases, name

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.cases.passed += 1
            print('ok  ', self.name)
        elif issubclass(kind, Exception):
            self.cases.failed += 1
            self.cases.rig.clear()  # it may have left anything
            while trace.tb_next is not None:
                trace = trace.tb_next
            where = f'{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}'
            print('FAIL', f'{self.name}: {where}: {value or kind.__name__}')
        else:
            return False
        sys.stdout.flush()
        return True


class Cases(wire.Cases):
    """The same with cases that clear up when they fail."""

    def __init__(self, rig=None):
        super().__init__()
        self.rig = rig

    def __call__(self, name):
        return Case(self, name)


def main(run):
    """Run a script's tests with the plugin that its first argument names."""
    cases = Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(77)
    if not shutil.which('dpdk-testpmd'):
        cases.skip('all', 'needs dpdk-testpmd')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(77)
    rig = cases.rig = Rig(sys.argv[1])
    with cases('the script runs to its end'):
        run(cases, rig)
    if not cases.failed:  # a case that failed has not come to its end
        with cases('nothing is left behind'):
            left = rig.leftovers()
            assert not left, left
    sys.exit(cases.finish())
