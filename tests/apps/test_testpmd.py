#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluice-udp-sink fed by an unmodified testpmd: virtio-user there, vhost-user here, no hugepages."""
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

import apps

TESTPMD = 'dpdk-testpmd'
# What testpmd makes of a packet of its own differs by forwarding mode.
TXONLY_PAYLOAD = 22
CORES = ['--lcores', '0@0,1@1'] if (os.cpu_count() or 1) > 1 else ['--lcores', '0@0,1@0']


class Testpmd:
    """An interactive testpmd whose port is the frontend of the sink's."""

    def __init__(self, path, prefix, mode):
        self.prefix = prefix
        self.process = subprocess.Popen(
            ['stdbuf', '-o0', TESTPMD, *CORES, '--no-pci', '--no-huge', '-m', '256', '--no-telemetry',
             '--file-prefix', prefix, f'--vdev=net_virtio_user0,path={path}', '--', '-i',
             f'--forward-mode={mode}', '--no-mlockall', '--total-num-mbufs=16384'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.out = ''
        self.wait_for('testpmd> ')

    def wait_for(self, text, start=0):
        end = time.monotonic() + apps.PATIENCE_S
        while text not in self.out[start:]:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'testpmd does not say {text}: {self.out[-2000:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'testpmd ended: {self.out[-2000:]}')
            self.out += data.decode(errors='replace')

    def tell(self, command, until='testpmd> '):
        start = len(self.out)
        self.process.stdin.write(command.encode() + b'\n')
        self.process.stdin.flush()
        self.wait_for(until, start)
        return self.out[start:]

    def stop(self):
        """Stop forwarding; the number of packets that the port took."""
        text = self.tell('stop', 'Accumulated')
        return int(re.search(r'TX-packets: (\d+)', text).group(1))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        shutil.rmtree(f'{apps.RUNTIME}/{self.prefix}', ignore_errors=True)


def fed(bed, folder, mode, *options, seconds=1.0):
    """Let testpmd send for a while; (packets it sent, the sink's rows, the sink)."""
    prefix = f'sltest{os.getpid()}'
    path = f'{folder}/{mode}{len(os.listdir(folder))}'
    sink = apps.Sink(bed, [*CORES, '--no-pci', '--no-huge', '-m', '256', '--no-telemetry',
                           '--file-prefix', prefix + 's', '--log-level=*:error',
                           f'--vdev=net_vhost0,iface={path}', '--', '--addr', '198.18.0.2/24',
                           '--json', '--count', '100G', '--recvmmsg', *options], (), True)
    testpmd = None
    try:
        testpmd = Testpmd(path, prefix + 't', mode)
        testpmd.tell('start')
        time.sleep(seconds)
        sent = testpmd.stop()
        # The sink empties the ring in microseconds when it has a core to itself; here it may not.
        time.sleep(1)
        sink.interrupt()
        return sent, sink.finish(), sink
    finally:
        if testpmd is not None:
            testpmd.close()
        sink.kill()
        shutil.rmtree(f'{apps.RUNTIME}/{prefix}s', ignore_errors=True)


def total(rows, end):
    return sum(r['count'] for r in rows) + end['left_in_queue'] + sum(
        n for r in rows for name, n in r['drops'].items() if not name.startswith('tx_'))


def run(cases, bed):
    if shutil.which(TESTPMD) is None:
        cases.skip('all', f'{TESTPMD} is not installed')
        return
    folder = tempfile.mkdtemp(prefix='sluice-test')
    try:
        for options in ([], ['--split'], ['--touch', '--waitforone']):
            with cases(f'testpmd txonly: all that it sends is received {" ".join(options)}'):
                sent, rows, sink = fed(bed, folder, 'txonly', '--promiscuous', *options)
                assert sent > 1000 and total(rows, sink.end) == sent, (sent, rows, sink.end)
                assert rows[0]['count'] > 1000 and rows[0]['payload'] == TXONLY_PAYLOAD, rows
        with cases('testpmd txonly without --promiscuous: another MAC address, counted'):
            sent, rows, sink = fed(bed, folder, 'txonly', seconds=0.3)
            assert rows[0]['count'] == 0 and sink.end['outcomes']['eth_otherhost'] == sent, sink.end
        with cases('testpmd flowgen: other addresses and ports'):
            sent, rows, sink = fed(bed, folder, 'flowgen', '--promiscuous', '--any-dst', '--port',
                                   '1001')
            assert sent > 1000 and total(rows, sink.end) == sent, (sent, rows, sink.end)
            assert rows[0]['count'] > 1000, rows
    finally:
        shutil.rmtree(folder)


if __name__ == '__main__':
    apps.main(run)
