#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""An unmodified dpdk-testpmd on virtio-user at the other end of a vhost-user port: what it says that
it sent is what the stack accounts for, and what it is sent is what it counts.

        testpmd [net_virtio_user0] ---- vhost-user socket ---- [net_vhost0] inet_probe

usage: test_testpmd.py INET_PROBE
"""
import os
import re
import sys
import tempfile
import time

import testpmd
import wire

US4, PEER4 = '198.18.0.2', '198.18.0.1'  # testpmd's txonly sends from PEER4 port 9 to US4 port 9
ENOUGH = 30000


class Pair:
    """A probe and a testpmd; the probe outlives its peer."""

    def __init__(self, net, path, folder, mode, *options):
        socket_path = os.path.join(folder, f'vhost{len(os.listdir(folder))}')
        self.probe = wire.Probe(net, path, '--vdev', f'net_vhost0,iface={socket_path}', '--addr',
                                US4 + '/24', '--open', '9', '--promiscuous')
        self.testpmd = testpmd.Testpmd(f'net_virtio_user0,path={socket_path}', mode, *options)

    def finish(self):
        self.testpmd.end()
        return self.probe.quit()


def run_txonly(cases, net, path, folder, name, *options):
    with cases(f'txonly, {name}: every packet is accounted for'):
        pair = Pair(net, path, folder, 'txonly', *options)
        try:
            pair.testpmd.start()
            pair.probe.until(lambda o: o['received'] >= ENOUGH)
            pair.testpmd.stop()
            sent = pair.testpmd.count('TX-packets')
            assert sent >= ENOUGH, f'only {sent} sent'
            o = pair.probe.until(lambda o: o['received'] + o['port_missed'] + o['port_nombuf'] >= sent)
            wire.check_sums(o)
            assert o['received'] + o['port_missed'] + o['port_nombuf'] == sent, (o, sent)
            assert o['rx']['udp_queued'] == o['received'], o
            size = sum(int(n) for n in re.findall(r'\d+', ''.join(options[:1]))) or 64
            assert o['payload_bytes'] == o['received'] * (size - 42), o
        finally:
            ended = pair.finish()
        assert ended == (0, 0), f'mbufs missing, exit status: {ended}'


def run_icmpecho(cases, net, path, folder):
    with cases('icmpecho: testpmd answers ARP, and counts what it is sent'):
        pair = Pair(net, path, folder, 'icmpecho')
        try:
            pair.testpmd.start()
            # What was sent before the wire was there, such as announcements, is port_full.
            before = pair.probe.outcomes()
            answer = pair.probe.ask(f'send {PEER4} 5000 100 8')
            assert answer == {'result': 0, 'sent': 8}, answer
            mac = pair.probe.until(lambda a: a['result'] == 0, f'neighbour {PEER4}')
            assert mac['result'] == 0, mac
            for _ in range(4):
                answer = pair.probe.ask(f'send {PEER4} 5000 100 50')
                assert answer == {'result': 0, 'sent': 50}, answer
                time.sleep(0.05)  # testpmd's ring is not ours to overrun
            o = pair.probe.until(lambda o: o['tx']['tx_sent'] >= 208)
            assert o['tx']['tx_port_full'] == before['tx']['tx_port_full'], o
            end = time.monotonic() + wire.PATIENCE_S
            while (got := pair.testpmd.count('RX-packets')) < o['port_sent'] and time.monotonic() < end:
                time.sleep(0.01)
            o = pair.probe.outcomes()
            got = pair.testpmd.count('RX-packets')
            assert got == o['port_sent'] == o['tx']['tx_sent'], (got, o)
            wire.check_sums(o)
        finally:
            ended = pair.finish()
        assert ended == (0, 0), f'mbufs missing, exit status: {ended}'


def run(cases, path):
    net = wire.Wire()
    with tempfile.TemporaryDirectory() as folder:
        run_txonly(cases, net, path, folder, '64 bytes', '--txpkts=64')
        run_txonly(cases, net, path, folder, '1514 bytes', '--txpkts=1514')
        run_txonly(cases, net, path, folder, 'three segments', '--txpkts=64,500,36')
        run_txonly(cases, net, path, folder, 'many flows', '--txpkts=64', '--txonly-multi-flow')
        run_icmpecho(cases, net, path, folder)


if __name__ == '__main__':
    sys.exit(wire.main(run))
