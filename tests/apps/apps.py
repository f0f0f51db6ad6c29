# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""What the tests of the programs share: the sink on one end of a wire, kernel sockets on the other.

        namespace A                            namespace B
        kernel sockets: sluice-udp-flood       sluice-udp-sink
        --kernel, or Python's                  (its kernel has no address)
        198.18.0.1, 2001:db8::1  wa <-> wb     198.18.0.2, 2001:db8::2
"""
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'net'))
import wire  # noqa: E402  (the path comes first)

V4, V6 = '198.18.0.2', '2001:db8::2'
ADDR4, ADDR6 = ['--addr', V4 + '/24'], ['--addr', V6 + '/64']
PATIENCE_S = wire.PATIENCE_S
RUNTIME = '/var/run/dpdk'
NOISE = ('eth_otherhost', 'eth_type', 'ip_source', 'ip_proto', 'ip_not_local', 'nd_bad')


class Bed(wire.Wire):
    """The wire with addresses on the kernel's end, and the two programs."""

    def __init__(self, sink, flood):
        super().__init__(ipv6_a=True)
        self.sink_path, self.flood_path = sink, flood
        wire.sh('ip', '-n', self.a, 'addr', 'add', '198.18.0.1/24', 'dev', 'wa')
        wire.sh('ip', '-n', self.a, 'addr', 'add', '2001:db8::1/64', 'dev', 'wa', 'nodad')
        # Known from the start. What waits for an answer to ARP leaves at once when it comes, on the
        # processor that hears it: the kernel drops what exceeds its backlog there (1000 frames), and
        # the other senders' next datagrams overtake it. And a kernel that asks again under way has
        # sent a frame more than its datagrams.
        for address in (V4, V6):
            wire.sh('ip', '-n', self.a, 'neigh', 'add', address, 'lladdr', self.mac(self.b, 'wb'),
                    'dev', 'wa', 'nud', 'permanent')

    @contextlib.contextmanager
    def kernel_answers(self):
        """For once B's kernel has the address itself, and answers for it."""
        wire.sh('ip', '-n', self.b, 'link', 'set', 'wb', 'arp', 'on')
        wire.sh('ip', '-n', self.b, 'addr', 'add', V4 + '/24', 'dev', 'wb')
        try:
            yield
        finally:
            wire.sh('ip', '-n', self.b, 'addr', 'del', V4 + '/24', 'dev', 'wb')
            wire.sh('ip', '-n', self.b, 'link', 'set', 'wb', 'arp', 'off')

    def sink(self, *options, prefix=(), addr=None, ready=True):
        """A sink that is ready to receive."""
        return Sink(self, ['--iface', 'wb', *(ADDR4 if addr is None else addr), '--json', *options],
                    prefix, ready)

    def sender(self, nth=0, to=V4):
        """The command that sends from kernel sockets, on one processor: the kernel keeps a flow's
        order only while its sender stays on one. veth queues frames per processor, and a sender
        that is moved away overtakes what it left behind."""
        cpus = sorted(os.sched_getaffinity(0))
        return ['taskset', '-c', str(cpus[nth % len(cpus)]), self.flood_path, '--kernel', '--to', to,
                '--json']

    def flood(self, *options, to=V4):
        """Send from kernel sockets: the sender's row."""
        return json.loads(self.in_a(*self.sender(to=to), *options))

    def in_b(self, *command):
        return wire.sh('ip', 'netns', 'exec', self.b, *command)

    def fails(self, path, *options, prefix=()):
        """Run a program that finds a mistake: (status, standard output, standard error)."""
        ret = subprocess.run(['ip', 'netns', 'exec', self.b, *prefix, path, *options], text=True,
                             capture_output=True, timeout=PATIENCE_S, check=False)
        return ret.returncode, ret.stdout, ret.stderr


class Sink:
    """A running sink. finish() waits for its end and returns its rows."""

    def __init__(self, bed, options, prefix, ready, path=None):
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', bed.b, *prefix, path or bed.sink_path, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        bed.probes.append(self)
        self.err = b''
        self.out = None
        self.end = None
        if ready:
            self.wait_for(b'ready on port')

    def wait_for(self, text):
        """Until standard error has it."""
        limit = time.monotonic() + PATIENCE_S
        while text not in self.err:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                raise RuntimeError(f'the sink does not say {text}')
            data = os.read(self.process.stderr.fileno(), 65536)
            if not data:
                raise RuntimeError(f'the sink ended with {self.process.wait()}: {self.err.decode()}')
            self.err += data

    def interrupt(self, sig=signal.SIGINT):
        self.process.send_signal(sig)

    def finish(self, status=0):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        self.out, self.err = out.decode(), (self.err + err).decode()
        assert self.process.returncode == status, \
            f'exit status {self.process.returncode}: {self.err}'
        assert 'did not come back' not in self.err, self.err
        lines = [json.loads(line) for line in self.out.splitlines()]
        assert lines and lines[-1]['call'] == 'end', self.out
        self.end = lines[-1]
        return lines[:-1]

    def row(self):
        rows = self.finish()
        assert len(rows) == 1, self.out
        return rows[0]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(f'{RUNTIME}/sluice-udp-sink-{self.process.pid}', ignore_errors=True)


def runtime_dirs():
    try:
        return {d for d in os.listdir(RUNTIME) if d.startswith('sluice-udp-')}
    except FileNotFoundError:
        return set()


BEFORE = runtime_dirs()


def leftovers():
    """What programs that have ended since have left in the file system."""
    return [d for d in runtime_dirs() - BEFORE if not os.path.exists(f'/proc/{d.split("-")[-1]}')]


def session(pid):
    """The processes of a session. A zombie is over: it waits for an init that may be slow."""
    return [line for line in wire.sh('ps', '-e', '-o', 'sess=,stat=,cmd=').splitlines()
            if line.split()[0] == str(pid) and not line.split()[1].startswith('Z')]


def drops(row):
    """A row's drops, without what the other kernel says to groups that nobody here is in."""
    return {name: n for name, n in row['drops'].items() if name not in NOISE}


def conserve(rows, end, sent):
    """What was sent was handed over, or is counted as dropped, or is still queued."""
    taken = sum(row['count'] for row in rows)
    dropped = sum(n for row in rows for n in drops(row).values())
    total = taken + dropped + end['left_in_queue']
    assert total == sent, f'{taken} + {dropped} + {end["left_in_queue"]} of {sent}: {rows} {end}'


def run_parts(*parts):
    """Exit status of a script of parts that need root, each called with the cases."""
    cases = wire.Cases()
    if os.geteuid() != 0:
        cases.skip('all', 'needs root for network namespaces')
        print('0 passed, 0 failed, 1 skipped')
        return 0
    for part in parts:
        part(cases)
    return cases.finish()


def main(run):
    """Run a script's cases; its arguments are the paths of the sink and of the sender."""
    def part(cases):
        with cases('the script runs to its end'):
            run(cases, Bed(*sys.argv[1:3]))
    sys.exit(run_parts(part))
