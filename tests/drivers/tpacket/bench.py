#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Paired runs of the distribution's net_af_packet and net_tpacket on the same veth, in turn.

Packets are counted against the time that the forwarding lcores had on their processors, so that other
work on the machine does not decide. "Both ways" lets packets go round between the two ends of the
veth, each sent and received by the driver on one lcore. "Receive" counts against the time of the
sender, because the kernel fills the receiver's ring there; it says something only when the receiver
has a processor to itself. TCP counts bits per second through a forwarder between
two kernels; net_af_packet gets `ethtool -K tx off` there, as nothing passes without it. Each pair
gives a ratio; their median is printed.

usage: bench.py PLUGIN [PAIRS [SECONDS]]
"""
import json
import os
import statistics
import sys
import time

import rig as r
from test_offloads import RELAY, Forwarder, D4

STOCK, OURS = 'net_af_packet', 'net_tpacket'


def spread(queues):
    cpus = sorted(os.sched_getaffinity(0))
    workers = [f'{i + 1}@{cpus[-1 - i % len(cpus)]}' for i in range(queues)]
    return ','.join([f'0@{cpus[0]}', *workers])


def measure(pmd, counter, busy, seconds):
    def look():
        return (pmd.stats()[f'{counter}-packets'], sum(busy()))
    n, cpu = look()
    time.sleep(seconds)
    n_after, cpu_after = look()
    return (n_after - n) / (cpu_after - cpu) / 1e6


def transmit(rig, ns, driver, size, queues, seconds):
    pmd = rig.testpmd(ns, f'{driver}0,iface=b0,qpairs={queues}', mode='txonly',
                      lcores=spread(queues),
                      options=[f'--txpkts={size}', f'--rxq={queues}', f'--txq={queues}',
                               f'--nb-cores={queues}'])
    pmd.start()
    time.sleep(0.3)
    result = measure(pmd, 'TX', lambda: [pmd.cpu_seconds(f'rte-worker-{i + 1}')
                                         for i in range(queues)], seconds)
    pmd.stop()
    pmd.quit()
    return result


def both_ways(rig, ns, driver, size, queues, seconds):
    pmd = rig.testpmd(ns, f'{driver}0,iface=b0,qpairs={queues}', f'{driver}1,iface=b1,qpairs={queues}',
                      mode='io', lcores=spread(queues), mbufs=16384,
                      options=[f'--txpkts={size}', f'--rxq={queues}', f'--txq={queues}',
                               f'--nb-cores={queues}'])
    pmd.start(tx_first=True)
    time.sleep(0.3)
    result = measure(pmd, 'RX', lambda: [pmd.cpu_seconds(f'rte-worker-{i + 1}')
                                         for i in range(queues)], seconds)
    pmd.stop()
    pmd.quit()
    return result


def receive(rig, ns, driver, size, queues, seconds):
    cpus = sorted(os.sched_getaffinity(0))
    sender = rig.testpmd(ns, 'net_tpacket0,iface=b0', mode='txonly',
                         lcores=f'0@{cpus[-1]},1@{cpus[0]}',
                         options=[f'--txpkts={size}', '--txonly-multi-flow'])
    pmd = rig.testpmd(ns, f'{driver}0,iface=b1,qpairs={queues}', mode='rxonly',
                      lcores=f'0@{cpus[0]},1@{cpus[-1]}',
                      options=[f'--rxq={queues}', f'--txq={queues}'])
    pmd.start()
    sender.start()
    time.sleep(0.3)
    result = measure(pmd, 'RX', lambda: [sender.cpu_seconds()], seconds)
    for process in (sender, pmd):
        process.stop()
        process.quit()
    return result


def stream(rig, driver, seconds):
    path = Forwarder.__new__(Forwarder)
    path.a, path.b, path.d = (rig.namespace(x) for x in 'abd')
    rig.veth(path.a, 'wa', path.b, 'wb')
    rig.veth(path.b, 'wc', path.d, 'wd')
    for ns, dev, address in ((path.a, 'wa', '198.18.1.1'), (path.d, 'wd', D4)):
        r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'on')
        r.sh('ip', '-n', ns, 'addr', 'add', f'{address}/24', 'dev', dev)
        if driver == STOCK:
            r.sh('ip', 'netns', 'exec', ns, 'ethtool', '-K', dev, 'tx', 'off')
    pmd = rig.testpmd(path.b, f'{driver}0,iface=wb', f'{driver}1,iface=wc', mbufs=16384,
                      options=RELAY if driver == OURS else [])
    pmd.start()
    server = rig.run(path.d, 'iperf3', '-s', '-1', stdout=-3)
    time.sleep(0.5)
    text = r.sh('ip', 'netns', 'exec', path.a, 'iperf3', '-c', D4, '-J', '-t', str(max(1, seconds)))
    server.wait(timeout=r.PATIENCE_S)
    pmd.stop()
    pmd.quit()
    return json.loads(text)['end']['sum_received']['bits_per_second'] / 1e9


def pairs_of(name, unit, run, pairs):
    ratios, stock, ours = [], [], []
    for _ in range(pairs):
        stock.append(run(STOCK))
        ours.append(run(OURS))
        ratios.append(ours[-1] / stock[-1])
    print(f'{name}: {STOCK} {statistics.median(stock):.3f} {OURS} {statistics.median(ours):.3f} '
          f'{unit}, ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})',
          flush=True)


def main():
    rig = r.Rig(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    ns = rig.namespace('x')
    rig.veth(ns, 'b0', ns, 'b1', queues=2)
    for name, run in (('transmit', transmit), ('both ways', both_ways), ('receive', receive)):
        for size in (64, 1500):
            for queues in (1, 2):
                pairs_of(f'{name} {size} bytes, {queues} queue(s)', 'Mpps per processor second',
                         lambda d: run(rig, ns, d, size, queues, seconds), pairs)
    pairs_of('TCP between kernels', 'Gbit/s', lambda d: stream(rig, d, seconds), pairs)


if __name__ == '__main__':
    main()
