#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The rows of sluice-udp-sink: their number, their sums, how they are printed, how runs start and end,
with and without hugepages, on one core and split over several."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import apps
from apps import ADDR4, ADDR6, V6

CALLS = ['recvmmsg', 'recvmsg', 'recvfrom', 'read', 'burst']
HUGE = '/sys/kernel/mm/hugepages/hugepages-2048kB'


def case_rows(cases, bed):
    with cases('without options: every receive call in turn, a row each'):
        sink = bed.sink('--count', '500')
        bed.flood('--count', '2500')
        rows = sink.finish()
        assert [r['call'] for r in rows] == CALLS, rows
        assert [r['count'] for r in rows] == [500] * 5, rows
        assert [r['batch'] for r in rows] == [32, 1, 1, 1, 32], rows
        apps.conserve(rows, sink.end, 2500)
    for call in CALLS:
        with cases(f'--{call} --repeat 3: three rows of that call'):
            sink = bed.sink(f'--{call}', '--repeat', '3', '--count', '100')
            bed.flood('--count', '300')
            rows = sink.finish()
            assert [(r['call'], r['run'], r['count']) for r in rows] == \
                [(call, n, 100) for n in (1, 2, 3)], rows
    with cases('a row has the fixed keys, and its figures fit together'):
        sink = bed.sink('--recvmmsg', '--count', '5000', '--batch', '8')
        bed.flood('--count', '5000', '--size', '100', '--rate', '100000')
        row = sink.row()
        for key in ('call', 'batch', 'run', 'count', 'ns_per_packet', 'pps', 'cycles_per_packet',
                    'payload', 'drops'):
            assert key in row, row
        assert row['payload'] == 100.0 and row['batch'] == 8 and apps.drops(row) == {}, row
        assert row['ns_per_packet'] > 0 and row['cycles_per_packet'] > 0, row
        assert abs(row['pps'] * row['ns_per_packet'] / 1e9 - 1) < 0.01, row
    with cases('a rate is that of the timed part: from the first datagram to the last'):
        sink = bed.sink('--recvmsg', '--count', '2000')
        time.sleep(1.5)  # not part of it: with it the rate would be a quarter
        sent = bed.flood('--count', '2000', '--rate', '4000', '--batch', '1')
        row = sink.row()
        assert 0.5 * sent['pps'] < row['pps'] < 2 * sent['pps'], (sent, row)


def case_ends(cases, bed):
    with cases('--duration: a row ends without any datagram'):
        start = time.monotonic()
        sink = bed.sink('--recvmsg', '--duration', '1')
        row = sink.row()
        assert row['count'] == 0 and apps.drops(row) == {} and row['ns_per_packet'] == 0, row
        assert time.monotonic() - start >= 1
    with cases('--duration: a row ends under way'):
        sink = bed.sink('--recvmmsg', '--duration', '1')
        bed.flood('--duration', '2', '--rate', '2000')
        row = sink.row()
        assert 0 < row['count'] < 4000, row
    for sig in (signal.SIGINT, signal.SIGTERM):
        with cases(f'{sig.name} ends the run, its table is printed, the status is 0'):
            sink = bed.sink('--repeat', '100')
            bed.flood('--count', '1000')
            # What was sent has arrived when an echo sent later has.
            bed.in_a('ping', '-c', '1', apps.V4)
            sink.interrupt(sig)
            rows = sink.finish()
            assert len(rows) == 1 and rows[0]['count'] == 1000, rows
    with cases('a signal before the first datagram: still a row'):
        for split in ([], ['--split']):
            sink = bed.sink(*split)
            sink.interrupt()
            assert sink.row()['count'] == 0
    with cases('nothing is left in the file system'):
        assert apps.leftovers() == [], apps.leftovers()


def text(bed, *options):
    """Run a sink without --json, send to it, and give its standard output."""
    process = subprocess.Popen(
        ['ip', 'netns', 'exec', bed.b, bed.sink_path, '--iface', 'wb', *ADDR4, *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while 'ready' not in process.stderr.readline():
        assert process.poll() is None
    bed.flood('--count', '200', '--port', '7')
    bed.flood('--count', '1000', '--check')
    out, err = process.communicate(timeout=apps.PATIENCE_S)
    assert process.returncode == 0, err
    return out, err


def case_text(cases, bed):
    with cases('the table: headings, one line a row, drops by cause, nothing on standard error'):
        out, err = text(bed, '--recvmmsg', '--read', '--count', '500')
        lines = out.splitlines()
        assert lines[0].split() == ['call/batch', 'run', 'count', 'ns/pkt', 'pps', 'cycles',
                                    'payload', 'drops'], out
        assert re.match(r'recvmmsg/32 +1 +500 +[\d.]+ +\d+ +[\d.]+ +18.0  .*udp_no_socket:200',
                        lines[1]), out
        assert re.match(r'read +1 +500 +[\d.]+ +\d+ +[\d.]+ +18.0  ', lines[2]), out
        assert lines[3].startswith('entered the stack: '), out
        assert err == '', err
    with cases('--check --recv-ttl --recv-pktinfo in the table'):
        out, _ = text(bed, '--recvmmsg', '--count', '1000', '--check', '--recv-ttl',
                      '--recv-pktinfo')
        assert 'TTL of 1000 datagrams: 64 to 64' in out, out
        assert 'destination address of 1000 datagrams' in out, out
        assert '1 flows, 1000 received, 0 lost, 0 reordered' in out, out


def case_progress(cases, bed):
    with cases('progress is shown on a terminal'):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', bed.b, bed.sink_path, '--iface', 'wb', *ADDR4, '--recvmsg',
             '--duration', '2', '--json'], stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        seen = b''
        while b'ready' not in seen:
            seen += os.read(master, 4096)
        bed.flood('--duration', '1', '--rate', '2000')
        out, _ = process.communicate(timeout=apps.PATIENCE_S)
        seen += os.read(master, 65536)
        os.close(master)
        assert b'recvmsg, run 1: ' in seen, seen
        assert b'Mpps' not in out, out
        json.loads(out.splitlines()[0])
    with cases('and none into a pipe'):
        sink = bed.sink('--recvmsg', '--duration', '2')
        bed.flood('--duration', '1', '--rate', '2000')
        sink.finish()
        assert 'Mpps' not in sink.err and '\r' not in sink.err, sink.err


def overload(bed, sink, n):
    """As fast as two kernel senders can, then everything must be accounted for."""
    options = ['--check', '--count', str(n), '--flows', '8']
    other = subprocess.Popen(['ip', 'netns', 'exec', bed.a, *bed.sender(1), *options,
                              '--first-flow', '8'], stdout=subprocess.PIPE)
    sent = bed.flood(*options)['count'] + json.loads(other.communicate()[0])['count']
    # The echo's answer proves that all before it has been seen.
    bed.in_a('ping', '-c', '1', '-W', '5', apps.V4)
    sink.interrupt()
    rows = sink.finish()
    apps.conserve(rows, sink.end, sent)
    check = rows[-1]['check']
    assert check['duplicated'] == check['corrupt'] == check['reordered'] == 0, check
    outcomes = sum(v for k, v in sink.end['outcomes'].items() if not k.startswith('tx_'))
    assert outcomes == sink.end['entered'], sink.end
    return rows


def case_sums(cases, bed):
    ways = {
        'polling and reading on one lcore': [],
        '--split': ['--split'],
        '--split --busy': ['--split', '--busy'],
        '--split=2': ['--split=2'],
        '--split=2 --reuse-port=3': ['--split=2', '--reuse-port=3'],
    }
    for name, options in ways.items():
        with cases(f'under overload all are received or counted: {name}'):
            sink = bed.sink('--recvmmsg', '--check', '--count', '100M', *options)
            overload(bed, sink, 50000)
        with cases(f'less than a ring holds: all are received, in order: {name}'):
            sink = bed.sink('--recvmmsg', '--check', '--count', '5000', *options)
            bed.flood('--count', '5000', '--flows', '16', '--check')
            check = sink.row()['check']
            assert (check['received'], check['lost'], check['reordered']) == (5000, 0, 0), check
    for name, options in ways.items():
        with cases(f'on one core: {name}'):
            sink = bed.sink('--recvmmsg', '--check', '--count', '100M', *options,
                            prefix=('taskset', '-c', '0'))
            overload(bed, sink, 20000)
            assert ('lcores poll in turns' in sink.err) == ('--split' in name), sink.err
    with cases('every call counts exactly under overload, split'):
        sink = bed.sink('--check', '--count', '20000', '--split', '--repeat', '100')
        overload(bed, sink, 60000)


def case_memory(cases, bed):
    hide = ('unshare', '-m', 'sh', '-c',
            'mount -t tmpfs none /sys/kernel/mm/hugepages && exec "$@"', 'sh')
    with cases('without hugepages'):
        sink = bed.sink('--ipv6', '--count', '100', prefix=hide, addr=ADDR4 + ADDR6)
        bed.flood('--count', '500', to=V6)
        assert [r['count'] for r in sink.finish()] == [100] * 5
    name = 'with hugepages'
    try:
        with open(f'{HUGE}/nr_hugepages', encoding='ascii') as f:
            before = f.read()
        with open(f'{HUGE}/nr_hugepages', 'w', encoding='ascii') as f:
            f.write(str(int(before) + 200))
        with open(f'{HUGE}/free_hugepages', encoding='ascii') as f:
            free = int(f.read())
    except OSError as e:
        cases.skip(name, str(e))
        return
    if free < 128:
        cases.skip(name, f'no more than {free} of 128 hugepages can be had')
    else:
        with cases(name):
            sink = bed.sink('--count', '100')
            with open(f'/proc/{sink.process.pid}/smaps', encoding='ascii') as f:
                assert re.search(r'KernelPageSize: +2048 kB', f.read()), 'none is used'
            bed.flood('--count', '500')
            assert [r['count'] for r in sink.finish()] == [100] * 5
    with open(f'{HUGE}/nr_hugepages', 'w', encoding='ascii') as f:
        f.write(before)


def case_kernel(cases, bed):
    """The same rows from the host kernel's socket, which has the address for once."""
    with bed.kernel_answers():
        with cases('--kernel: a row for each call that the kernel has'):
            sink = apps.Sink(bed, ['--kernel', *ADDR4, '--json', '--count', '500'], (), True)
            bed.flood('--count', '2000', '--size', '100')
            out, err = sink.process.communicate(timeout=apps.PATIENCE_S)
            rows = [json.loads(line) for line in out.splitlines()]
            assert sink.process.returncode == 0, err
            assert [(r['call'], r['count'], r['payload'], r['drops']) for r in rows] == \
                [(call, 500, 100.0, {}) for call in CALLS[:4]], rows
        with cases('--kernel: what does not fit the buffer is counted'):
            sink = apps.Sink(bed, ['--kernel', *ADDR4, '--json', '--recvmsg', '--rcvbuf', '1',
                                   '--duration', '1'], (), True)
            sink.process.send_signal(signal.SIGSTOP)
            bed.flood('--count', '1000')
            sink.process.send_signal(signal.SIGCONT)
            out, _ = sink.process.communicate(timeout=apps.PATIENCE_S)
            row = json.loads(out)
            assert row['count'] > 0 and row['count'] + row['drops']['kernel'] == 1000, row


def run(cases, bed):
    case_rows(cases, bed)
    case_ends(cases, bed)
    case_text(cases, bed)
    case_progress(cases, bed)
    case_sums(cases, bed)
    case_memory(cases, bed)
    case_kernel(cases, bed)
    with cases('still nothing is left in the file system'):
        assert apps.leftovers() == [], apps.leftovers()
    sys.stdout.flush()


if __name__ == '__main__':
    apps.main(run)
