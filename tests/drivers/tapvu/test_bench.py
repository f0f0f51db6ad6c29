#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""A short run of sluice-bench tap and frag: every row is there, and no frame is missing.

The bench ends with status 1 when a frame does not arrive or the allocator's sums do not add up, so
status 0 is an assertion. Numbers are not looked at.

usage: test_bench.py SLUICE_BENCH PLUGIN
"""
import json
import os
import shutil
import subprocess
import sys

SIDES = {'receive': ('net_vhost', 'lock', 'lcore', 'page'), 'to-kernel': ('net_tap', 'bridge', 'bridge-calls')}


def run(*args):
    ret = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
    if ret.returncode != 0:
        print(ret.stderr, file=sys.stderr)
    return ret.returncode, {row['case']: row['value'] for row in map(json.loads, ret.stdout.splitlines())}


def tap(bench, plugin):
    prefix = f'sltbench{os.getpid()}'
    status, rows = run(bench, '-d', plugin, '--no-pci', '--no-huge', '-m', '256', '--no-telemetry',
                       f'--file-prefix={prefix}', '-l', str(min(os.sched_getaffinity(0))),
                       '--log-level=*:error', '--', 'tap', '--json', '--seconds', '2')
    shutil.rmtree(f'/var/run/dpdk/{prefix}', ignore_errors=True)
    wanted = {f'{group}/{size}/{side}' for group, sides in SIDES.items() for size in (64, 256, 1500)
              for side in sides}
    return status == 0 and wanted <= rows.keys() and all(value > 0 for value in rows.values())


def frag(bench, _):
    status, rows = run(bench, 'frag', '--json', '--seconds', '2', '--filter', '/64')
    return status == 0 and '1-feeder/64/lock-over-page' in rows and all(v > 0 for v in rows.values())


def main(bench, plugin):
    if os.geteuid() != 0 or not os.path.exists('/dev/net/tun'):
        print('SKIP bench tap: needs root and /dev/net/tun\n0 passed, 0 failed, 1 skipped')
        return 0
    failed = 0
    for case in (tap, frag):
        good = case(bench, os.path.abspath(plugin))
        failed += not good
        print(f'{"ok  " if good else "FAIL"} bench {case.__name__}', flush=True)
    print(f'{2 - failed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
