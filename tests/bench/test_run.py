#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Short runs of sluice-bench: every line is a row, every case is there, the counts fit.

The bench itself ends with status 1 when a datagram is lost, doubled or out of its flow's order, or
when a packet buffer does not come back; so status 0 is the assertion. Numbers are not looked at.

usage: test_run.py SLUICE_BENCH
"""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

PREFIX = f'bench-run-{os.getpid()}'

passed = failed = skipped = 0


def check(name, good, why=''):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f'{"ok  " if good else "FAIL"} {name}{"" if good else ": " + str(why)}')


def run(bench, *args):
    ret = subprocess.run([bench, *args], capture_output=True, text=True, timeout=200, check=False)
    return ret.returncode, ret.stdout, ret.stderr


def rows_of(text):
    return [json.loads(line) for line in text.split('\n') if line]


def cases():
    found = []
    for kind in ('many', 'fewest', 'one'):
        for where in ('other-core', 'same-core'):
            found.append(f'{kind}/{where}/queue-only/64/no-touch')
            found += [f'{kind}/{where}/{lookup}/{size}/{touch}' for lookup in ('unconnected', 'connected')
                      for size in (64, 1472) for touch in ('no-touch', 'copy')]
    return found


def check_side(name, row):
    check(f'{name} {row["side"]}', row['bench'] == 'udpq' and row['unit'] == 'pps'
          and row['value'] >= 0 and row['read'] == row['appended']
          and set(row['drops']) == {'rcvbuf', 'slots'} and row['cycles_per_packet'] > 0
          and row['p50_ns'] <= row['p99_ns'] <= row['p999_ns'] and row['flows'] >= row['producers']
          and ('more producers' in row['note']) == (row['producers'] > len_cores(name)), row)


def len_cores(name):
    return min(8, len(os.sched_getaffinity(0))) - ('other-core' in name)


def check_case(name, rows):
    global skipped
    if any(r['unit'] == 'skipped' for r in rows):
        skipped += 1
        print(f'SKIP {name}: {rows[0]["note"]}')
        return
    sides = [r for r in rows if 'side' in r]
    check(f'{name} sides', [r['side'] for r in sides] == ['batched', 'one-at-a-time'], rows)
    for row in sides:
        check_side(name, row)
    ratios = [r for r in rows if r['unit'] == 'x']
    check(f'{name} ratio', len(ratios) == 1 and ratios[0]['min'] <= ratios[0]['value']
          <= ratios[0]['max'] and ratios[0]['slices'] >= 3, rows)


def check_memory(rows):
    global skipped
    if any(r['unit'] == 'skipped' for r in rows):
        skipped += 1
        print(f'SKIP memory: {rows[0]["note"]}')
        return
    for side in ('bare', 'loop', 'stack'):
        found = [r for r in rows if r.get('side') == side]
        check(f'memory {side}', len(found) == 1 and found[0]['unit'] == 'pps'
              and found[0]['min'] <= found[0]['value'] <= found[0]['max'], rows)
    check('memory ratios', [r['ratio'] for r in rows if r['unit'] == 'x']
          == ['loop/bare', 'stack/loop'], rows)


def test_all(bench):
    status, out, err = run(bench, 'udpq', '--json', '--seconds', '2')
    check('status', status == 0, err)
    rows = rows_of(out)
    for row in rows:
        check('members', list(row)[:4] == ['bench', 'case', 'value', 'unit'], row)
    for name in cases():
        check_case(name, [r for r in rows if r['case'] == name])
    check_memory([r for r in rows if r['case'].startswith('memory/')])
    # A single case may have got no time on a busy machine.
    check('something was read', sum(r.get('read', 0) for r in rows) > 0, rows)
    check('no other cases', {r['case'] for r in rows if not r['case'].startswith('memory/')}
          == set(cases()), rows)
    check('no capture file left', not glob.glob(f'{tempfile.gettempdir()}/sluice-bench-*'))


def packet_cases(cores):
    """Of pending, bind and txring: {case: sides}; kernel_ring needs rights."""
    two = ['per-lcore', 'atomic']
    found = {'pending': {'counter_1_lcore': [*two, 'none'], 'ring_1_lcore': two},
             'bind': {}}
    if cores > 1:
        found['bind']['under_traffic'] = ['changed', 'unchanged', 'from_protocol_0']
        found['pending'].update({'counter_2_lcores': [*two, 'none'], 'ring_2_lcores': two})
    sides = ['ring', 'mbuf_copy'] + (['kernel_ring'] if os.geteuid() == 0 else [])
    found['txring'] = {f'{size}{how}': sides for size in (64, 1500, 9000) for how in ('', '/in-place')}
    return found


def test_packet(bench):
    """The benches of packet sockets: the bench ends with status 1 when a count does not come out."""
    global skipped
    for command, wanted in packet_cases(len(os.sched_getaffinity(0))).items():
        status, out, err = run(bench, command, '--json', '--seconds', '0.6')
        rows = rows_of(out)
        check(f'{command} status', status == 0, err)
        for row in (r for r in rows if r['unit'] == 'skipped'):
            skipped += 1
            print(f'SKIP {command} {row["case"]}: {row["note"]}')
        for case, sides in wanted.items():
            found = [r for r in rows if r['case'] == case]
            values = [r for r in found if 'side' in r]
            check(f'{command} {case}', [r['side'] for r in values] == sides
                  and all(r['bench'] == command and r['min'] <= r['value'] <= r['max']
                          for r in values), found)
            check(f'{command} {case} ratios', [r['ratio'] for r in found if r['unit'] == 'x']
                  == [f'{sides[0]}/{other}' for other in sides[1:]], found)
        status, _, err = run(bench, command, 'more')
        check(f'{command} refuses more', status == 2 and 'more' in err, err)


def test_options(bench):
    status, out, err = run(bench, 'udpq', '--json', '--seconds', '0.2', '--filter', 'one/same-core/connected/64/c',
                           '--flood')
    check('filter', status == 0 and {r['case'] for r in rows_of(out)} == {'one/same-core/connected/64/copy'}, err)
    status, out, err = run(bench, 'udpq', '--seconds', '0.2', '--filter', 'zzz')
    check('a filter that takes no case', status == 2 and '--filter zzz' in err, (status, out, err))
    status, out, _ = run(bench, 'udpq', '--seconds', '0.2', '--filter', 'one/same-core/connected/64/c')
    check('table', status == 0 and out.startswith('case ') and '{' not in out, out)
    for bad, word in ((['udpq', '--seconds', 'x'], 'x'), (['udpq', '--seconds', '0'], '0'),
                      (['udpq', 'more'], 'more'), (['nothing'], 'nothing'), (['udpq', '--no'], '--no'),
                      ([], 'missing'), (['-l', '0', 'udpq'], 'EAL arguments')):
        status, out, err = run(bench, *bad)
        check(f'refuses {bad}', status == 2 and word in err and out == '', err)
    status, out, _ = run(bench, '--help')
    check('help', status == 0 and 'udpq' in out)


def test_eal_arguments(bench):
    """EAL's own arguments; one lcore: rows that need another core say so."""
    status, out, err = run(bench, '-l', '0', '--no-huge', '-m', '256', '--no-pci', '--no-telemetry',
                           f'--file-prefix={PREFIX}', '--', 'udpq', '--json', '--seconds',
                           '0.3', '--filter', 'one/')
    rows = rows_of(out)
    check('one lcore', status == 0 and len(rows) == 9 + 9 * 3, err or rows)
    check('one lcore, other core', all(r['unit'] == 'skipped' and 'one lcore' in r['note']
          for r in rows if 'other-core' in r['case']), rows)


def datagram(port, payload):
    udp = struct.pack('!HHHH', 1000, port, 8 + len(payload), 0) + payload
    ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes((198, 18, 0, 1)),
                     bytes((198, 18, 0, 2)))
    total = sum(struct.unpack('!10H', ip))
    total = ~((total & 0xffff) + (total >> 16)) & 0xffff
    return bytes(12) + b'\x08\x00' + ip[:10] + struct.pack('!H', total) + ip[12:] + udp


def test_wire(bench):
    """The hand-written loop on a port of the user's: takes what is UDP to port 9, counts the rest."""
    eal = ('-l', '0', '--no-huge', '-m', '128', '--no-pci', '--no-telemetry', f'--file-prefix={PREFIX}')
    frames = [datagram(port, b'x' * 22) for port in (9, 8, 9, 9)] + [bytes(60)]
    with tempfile.NamedTemporaryFile(suffix='.pcap') as f:
        f.write(struct.pack('=IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            f.write(struct.pack('=IIII', 0, 0, len(frame), len(frame)) + frame)
        f.flush()
        status, out, err = run(bench, *eal, f'--vdev=net_pcap0,rx_pcap={f.name}', '--', 'wire', '--json',
                               '--seconds', '0.3')
    rows = rows_of(out)
    check('wire', status == 0 and len(rows) == 1 and rows[0]['bench'] == 'wire'
          and (rows[0]['received'], rows[0]['taken']) == (5, 3), err or rows)
    status, out, err = run(bench, *eal, '--', 'wire', '--seconds', '0.3')
    check('wire without a port', status == 1 and '--vdev' in err and out == '', (status, out, err))


def test_interrupt(bench):
    """SIGINT ends the run with the rows of what was measured."""
    with subprocess.Popen([bench, 'udpq', '--json', '--seconds', '20'], text=True,
                          stdout=subprocess.PIPE) as p:
        first = p.stdout.readline()
        p.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = p.communicate(timeout=100)[0]
        check('interrupt', p.returncode == 0 and json.loads(first) and rows_of(rest) is not None,
              p.returncode)
        print(f'     ended {time.monotonic() - began:.1f} s after the signal')


def main(bench):
    test_all(bench)
    test_packet(bench)
    test_options(bench)
    test_eal_arguments(bench)
    test_wire(bench)
    test_interrupt(bench)
    shutil.rmtree(f'/var/run/dpdk/{PREFIX}', ignore_errors=True)  # EAL leaves it to whoever chose the prefix
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
