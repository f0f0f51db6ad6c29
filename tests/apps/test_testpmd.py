#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluice-udp-sink fed by an unmodified testpmd: virtio-user there, vhost-user here, no hugepages."""
import os
import shutil
import tempfile
import time

import apps
import testpmd

# What testpmd makes of a packet of its own differs by forwarding mode.
TXONLY_PAYLOAD = 22


def fed(bed, folder, mode, *options, enough=3000):
    """Let testpmd send enough; (packets it sent, the sink's rows, the sink)."""
    prefix = f'sltest{os.getpid()}'
    path = f'{folder}/{mode}{len(os.listdir(folder))}'
    sink = apps.Sink(bed, [*testpmd.CORES, *testpmd.NO_HUGE, '--no-pci', '--no-telemetry',
                           '--file-prefix', prefix + 's', '--log-level=*:error',
                           f'--vdev=net_vhost0,iface={path}', '--', '--addr', '198.18.0.2/24',
                           '--json', '--count', '100G', '--recvmmsg', *options], (), True)
    sender = None
    try:
        sender = testpmd.Testpmd(f'net_virtio_user0,path={path}', mode)
        sender.start()
        end = time.monotonic() + apps.PATIENCE_S
        while sender.count('TX-packets') < enough and time.monotonic() < end:
            time.sleep(0.05)
        sender.stop()
        sent = sender.count('TX-packets')
        # The sink empties the ring in microseconds when it has a core to itself; here it may not.
        time.sleep(1)
        sink.interrupt()
        return sent, sink.finish(), sink
    finally:
        if sender is not None:
            sender.kill()
        sink.kill()
        shutil.rmtree(f'{apps.RUNTIME}/{prefix}s', ignore_errors=True)


def total(rows, end):
    return sum(r['count'] for r in rows) + end['left_in_queue'] + sum(
        n for r in rows for name, n in r['drops'].items() if not name.startswith('tx_'))


def run(cases, bed):
    if shutil.which(testpmd.PROGRAM) is None:
        cases.skip('all', f'{testpmd.PROGRAM} is not installed')
        return
    folder = tempfile.mkdtemp(prefix='sluice-test')
    try:
        for options in ([], ['--split'], ['--touch', '--waitforone']):
            with cases(f'testpmd txonly: all that it sends is received {" ".join(options)}'):
                sent, rows, sink = fed(bed, folder, 'txonly', '--promiscuous', *options)
                assert sent > 1000 and total(rows, sink.end) == sent, (sent, rows, sink.end)
                assert rows[0]['count'] > 1000 and rows[0]['payload'] == TXONLY_PAYLOAD, rows
        with cases('testpmd txonly without --promiscuous: another MAC address, counted'):
            sent, rows, sink = fed(bed, folder, 'txonly', enough=500)
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
