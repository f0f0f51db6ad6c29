#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Paired runs of the distribution's net_af_packet and net_tpacket on the same veth, in turn.

A run counts packets against the time that the forwarding lcore had on its processor, so that other
work on the machine does not decide; the ratio of each pair is taken, and their median printed.

usage: bench.py PLUGIN [PAIRS [SECONDS]]
"""
import statistics
import sys
import time

import rig as r


def measure(pmd, port, counter, seconds):
    before, cpu = pmd.stats(port), pmd.cpu_seconds()
    began = time.monotonic()
    time.sleep(seconds)
    after, cpu_after = pmd.stats(port), pmd.cpu_seconds()
    wall = time.monotonic() - began
    n = after[f'{counter}-packets'] - before[f'{counter}-packets']
    return n / (cpu_after - cpu) / 1e6, n / wall / 1e6


def transmit(rig, ns, driver, size, queues, seconds):
    pmd = rig.testpmd(ns, driver, mode='txonly',
                      options=[f'--txpkts={size}', f'--rxq={queues}', f'--txq={queues}'])
    pmd.start()
    time.sleep(0.3)
    result = measure(pmd, 0, 'TX', seconds)
    pmd.stop()
    pmd.quit()
    return result


def receive(rig, ns, driver, size, queues, seconds):
    """Both in one process: the same sender for both, and its time counts, as the kernel puts frames
    into the receiver's ring on the sender's processor."""
    pmd = rig.testpmd(ns, 'net_tpacket9,iface=b0', driver, mode='txonly',
                      options=[f'--txpkts={size}', '--txonly-multi-flow',
                               f'--rxq={queues}', f'--txq={queues}'])
    pmd.start()
    time.sleep(0.3)
    result = measure(pmd, 1, 'RX', seconds)
    pmd.stop()
    pmd.quit()
    return result


def main():
    rig = r.Rig(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    ns = rig.namespace('x')
    rig.veth(ns, 'b0', ns, 'b1', queues=2)
    for size in (64, 1500):
        ratios, ours, stock = [], [], []
        for _ in range(pairs):
            stock.append(transmit(rig, ns, 'net_af_packet0,iface=b0', size, 1, seconds))
            ours.append(transmit(rig, ns, 'net_tpacket0,iface=b0', size, 1, seconds))
            ratios.append(ours[-1][0] / stock[-1][0])
        print(f'transmit {size} bytes: net_af_packet {statistics.median(x[0] for x in stock):.3f} '
              f'net_tpacket {statistics.median(x[0] for x in ours):.3f} Mpps per processor second, '
              f'ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})',
              flush=True)


if __name__ == '__main__':
    main()
