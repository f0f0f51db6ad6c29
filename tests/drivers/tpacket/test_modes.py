#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""A stock testpmd over net_tpacket: its forwarding modes, and everything that changes under traffic.

    [testpmd txonly: net_tpacket0] wa --veth-- wb [net_tpacket0: testpmd under test]

usage: test_modes.py PLUGIN [--full]
"""
import json
import os
import random
import re
import socket
import struct
import sys
import time

import rig as r
from test_offloads import ETHER4, checksum, ipv4, udp

ENOUGH = 20000


class Load:
    """A txonly testpmd that keeps the wire busy."""

    def __init__(self, rig, ns, dev, args=''):
        self.pmd = rig.testpmd(ns, f'net_tpacket0,iface={dev}{args}', mode='txonly',
                               options=['--txonly-multi-flow'])

    def burst(self):
        """Send some; how many."""
        self.pmd.ask('clear port stats 0')
        self.pmd.start()
        self.pmd.until_stat('TX-packets', ENOUGH)
        return self.stop()

    def stop(self):
        self.pmd.stop()
        return self.pmd.stats()['TX-packets']

    def end(self):
        assert self.pmd.quit() == 0


class Pair:
    def __init__(self, rig, args='', mode='rxonly', options=(), queues=1, mtu=1500, **more):
        self.rig = rig
        self.a, self.b = rig.namespace('a'), rig.namespace('b')
        rig.veth(self.a, 'wa', self.b, 'wb', queues=queues, mtu=mtu)
        self.options = [*options, f'--rxq={queues}', f'--txq={queues}']
        self.pmd = rig.testpmd(self.b, f'net_tpacket0,iface=wb,qpairs={queues}{args}', mode=mode,
                               options=self.options, **more)

    def settled(self, sent):
        """Counters once all that was sent has an outcome."""
        end = time.monotonic() + r.PATIENCE_S
        while True:
            s = self.pmd.stats()
            if s['RX-packets'] + s['RX-missed'] >= sent or time.monotonic() > end:
                return s
            time.sleep(0.01)

    def fresh(self):
        self.pmd.ask('clear port stats 0')

    def end(self):
        self.pmd.stop()
        assert self.pmd.quit() == 0


def run_counts(cases, rig):
    every = ('', ',tpver=3', ',vnet_hdr=0', ',framesz=256')
    for args in every if r.FULL else every[:2]:
        name = args[1:] or 'defaults'
        pair = Pair(rig, args)
        load = Load(rig, pair.a, 'wa', args)
        pair.pmd.start()
        with cases(f'txonly to rxonly: every packet has an outcome, {name}'):
            sent = load.burst()
            s = pair.settled(sent)
            assert s['RX-packets'] + s['RX-missed'] == sent, (s, sent)
            assert s['RX-bytes'] == 64 * s['RX-packets'], s
        if args == '':
            run_more_counts(cases, pair, load)
        load.end()
        with cases(f'macswap, {name}'):
            link = r.Link(pair.a, 'wa')
            pair.pmd.forward('macswap')
            for size in (64, 1514):
                frame = ETHER4 + random.randbytes(size - 14)
                link.send(frame)
                assert link.receive() == frame[6:12] + frame[:6] + frame[12:]
            link.close()
        with cases(f'icmpecho answers ARP and ping, {name}'):
            pair.pmd.forward('icmpecho')
            r.sh('ip', '-n', pair.a, 'link', 'set', 'wa', 'arp', 'on')
            r.sh('ip', '-n', pair.a, 'addr', 'add', '198.18.3.1/24', 'dev', 'wa')
            text = r.sh('ip', 'netns', 'exec', pair.a, 'ping', '-c', '5', '-i', '0.05', '-s', '1000',
                        '198.18.3.2')
            assert ' 0% packet loss' in text, text
        pair.end()


def run_more_counts(cases, pair, load):
    with cases('several segments a packet are sent as one frame'):
        load.pmd.ask('set txpkts 64,500,36,700')
        pair.fresh()
        s = pair.settled(load.burst())
        assert s['RX-bytes'] == 1300 * s['RX-packets'] > 0, s
    with cases('a slow reader: what the ring cannot take is in RX-missed'):
        pair.pmd.stop()
        pair.fresh()
        sent = load.burst()  # nobody reads yet
        pair.pmd.start()
        s = pair.settled(sent)
        assert s['RX-packets'] + s['RX-missed'] == sent and s['RX-missed'] > 0, (s, sent)
    with cases('statistics are cleared, and count on from nothing'):
        pair.fresh()
        s = pair.pmd.stats()
        assert (s['RX-packets'], s['RX-missed']) == (0, 0), s
        link = r.Link(pair.a, 'wa')
        for _ in range(7):
            link.send(ETHER4 + bytes(50))
        assert pair.pmd.until_stat('RX-packets', 7)['RX-packets'] == 7
        link.close()


def flows(n):
    """UDP frames of n flows."""
    return [ETHER4 + ipv4(17, struct.pack('!HHHH', 1000 + i, 9, 26, 0) + bytes(18)) for i in range(n)]


def run_queues(cases, rig):
    pair = Pair(rig, queues=2)
    link = r.Link(pair.a, 'wa')
    pair.pmd.start()
    with cases('two queues by flow: both receive, each packet once'):
        for frame in flows(200):
            link.send(frame)
        assert pair.pmd.until_stat('RX-packets', 200)['RX-packets'] == 200
        x = pair.pmd.xstats()
        assert x['rx_q0_packets'] > 20 and x['rx_q1_packets'] > 20, x
    with cases('a queue that stops leaves the fan-out, and joins it again'):
        for round_ in range(3):
            for step, queues in (('stop', 1), ('start', 2)):
                pair.pmd.stop()
                pair.pmd.ask(f'port 0 rxq 1 {step}')
                pair.fresh()
                pair.pmd.start()
                for frame in flows(200):
                    link.send(frame)
                s = pair.pmd.until_stat('RX-packets', 200)
                assert s['RX-packets'] == 200, (round_, step, s)
                x = pair.pmd.xstats()
                assert (x['rx_q1_packets'] > 0) == (queues == 2), (round_, step, x)
    with cases('a flow stays on its queue, in order'):
        pair.pmd.forward('macswap')
        sent = [flows(8)[i % 8] + struct.pack('!I', i) for i in range(800)]
        last = {}
        for at in range(0, len(sent), 40):
            for frame in sent[at:at + 40]:
                link.send(frame)
            for _ in range(40):
                frame = link.receive()
                flow, n = frame[34:36], struct.unpack('!I', frame[-4:])[0]
                assert n > last.get(flow, -1)
                last[flow] = n
    link.close()
    pair.end()
    modes = ('lb', 'cpu', 'rollover', 'rnd', 'qm')
    a, b = rig.namespace('a'), rig.namespace('b')
    for mode in modes:
        rig.veth(a, f'a{mode}', b, f'b{mode}', queues=2)
    pmd = rig.testpmd(b, *(f'net_tpacket{i},iface=b{mode},qpairs=2,fanout_mode={mode}'
                           for i, mode in enumerate(modes)), mode='rxonly',
                      options=['--rxq=2', '--txq=2', '--port-topology=loop'])
    pmd.start()
    for port, mode in enumerate(modes):
        with cases(f'fan-out mode {mode}: each packet once'):
            link = r.Link(a, f'a{mode}')
            for frame in flows(100):
                link.send(frame)
            assert pmd.until_stat('RX-packets', 100, port)['RX-packets'] == 100
            link.close()
    pmd.stop()
    assert pmd.quit() == 0
    with cases('fewer queues used than made: nothing goes into a hole'):
        a, b = rig.namespace('a'), rig.namespace('b')
        rig.veth(a, 'wa', b, 'wb')
        pmd = rig.testpmd(b, 'net_tpacket0,iface=wb,qpairs=4', mode='rxonly', options=['--rxq=1'])
        link = r.Link(a, 'wa')
        pmd.start()
        for frame in flows(200):
            link.send(frame)
        assert pmd.until_stat('RX-packets', 200)['RX-packets'] == 200
        pmd.stop()
        assert pmd.quit() == 0
        link.close()
    with cases('a transmit queue stops and starts'):
        pair = Pair(rig, mode='txonly')
        link = r.Link(pair.a, 'wa')
        pair.pmd.start()
        assert link.receive() is not None
        for _ in range(3):
            pair.pmd.stop()
            pair.pmd.ask('port 0 txq 0 stop')
            link.flush()
            before = pair.pmd.stats()['TX-packets']
            pair.pmd.start()
            time.sleep(0.05)
            pair.pmd.stop()
            assert pair.pmd.stats()['TX-packets'] == before, 'a stopped queue sends'
            assert link.receive(0) is None
            pair.pmd.ask('port 0 txq 0 start')
            pair.pmd.start()
            assert link.receive() is not None
        link.close()
        pair.end()


def mapped(pmd):
    """Packet sockets that the process has mapped: its rings."""
    task = r.sh('pgrep', '-f', f'file-prefix={pmd.prefix}').split()
    lines = []
    for pid in task:
        try:
            with open(f'/proc/{pid}/maps', encoding='ascii') as f:
                lines += [line for line in f if 'socket:' in line]
        except FileNotFoundError:
            pass
    return lines


def run_stale(cases, rig):
    with cases('nothing that came while the port was stopped is delivered'):
        pair = Pair(rig)
        link = r.Link(pair.a, 'wa')
        pair.pmd.ask('port stop all')
        for _ in range(50):
            link.send(ETHER4 + bytes(50))
        for _ in range(3):
            pair.pmd.ask('port start all')
            pair.pmd.ask('port stop all')
        pair.pmd.ask('clear port stats 0')
        pair.pmd.ask('port start all')
        pair.pmd.start()
        link.send(ETHER4 + bytes(50))
        assert pair.pmd.until_stat('RX-packets', 1)['RX-packets'] == 1
        assert len(mapped(pair.pmd)) == 2, 'a started port has a ring each way'
        pair.pmd.stop()
        pair.pmd.ask('port stop all')
        assert not mapped(pair.pmd), mapped(pair.pmd)
        pair.pmd.ask('port start all')
        link.close()
        pair.end()


def run_changes(cases, rig):
    with cases('a larger MTU that is configured is the interface\'s'):
        pair = Pair(rig, options=['--max-pkt-len=4018', '--enable-scatter'])
        assert r.Rig.details(pair.b, 'wb')['mtu'] == 4018 - 22  # link header and two tags
        pair.end()
    every = ((',tpver=3', 1), ('', 2), ('', 1))
    for args, queues in every if r.FULL else every[:2]:
        name = f'{args[1:] or "defaults"}, {queues} queue(s)'
        pair = Pair(rig, args, mode='macswap', options=['--enable-scatter'], queues=queues, mtu=9000)
        load = Load(rig, pair.a, 'wa')
        pair.pmd.start()
        load.pmd.start()
        with cases(f'MTU changes under traffic, {name}'):
            change_mtu(pair)
        with cases(f'link down and up under traffic, {name}'):
            change_link(pair)
        load.stop()
        load.end()
        with cases(f'a jumbo frame after all that, {name}'):
            link = r.Link(pair.a, 'wa')
            pair.pmd.ask('port config mtu 0 4000')
            frame = ETHER4 + random.randbytes(4000)
            link.send(frame)
            assert link.wait_for(lambda f: len(f) == 4014)[12:] == frame[12:]
            link.close()
        with cases(f'the interface is deleted and made again, {name}'):
            change_interface(pair, queues)
        pair.end()


def change_mtu(pair):
    for mtu in (68, 9000, 1500, 4000, 1280, 1500):
        text = pair.pmd.ask(f'port config mtu 0 {mtu}')
        assert 'ail' not in text, text
        assert r.Rig.details(pair.b, 'wb')['mtu'] == mtu
        before = pair.pmd.stats()['RX-packets']
        assert pair.pmd.until_stat('RX-packets', before + 100)['RX-packets'] >= before + 100, mtu


def wait_for_link(pair, status):
    end = time.monotonic() + r.PATIENCE_S
    while f'Link status: {status}' not in pair.pmd.ask('show port info 0'):
        assert time.monotonic() < end, f'the link is not {status}'


def change_link(pair):
    for _ in range(3):
        r.sh('ip', '-n', pair.b, 'link', 'set', 'wb', 'down')
        wait_for_link(pair, 'down')
        r.sh('ip', '-n', pair.b, 'link', 'set', 'wb', 'up')
        wait_for_link(pair, 'up')
        before = pair.pmd.stats()
        for name, more in (('RX-packets', 100), ('TX-packets', 1)):
            assert pair.pmd.until_stat(name, before[name] + more)[name] >= before[name] + more


def change_interface(pair, queues):
    link = r.Link(pair.a, 'wa')
    before = pair.pmd.xstats()['ring_remakes']
    for round_ in range(3):
        link.send(flows(1)[0])
        assert link.receive() is not None, round_
        link.close()
        r.sh('ip', '-n', pair.b, 'link', 'del', 'wb')
        wait_for_link(pair, 'down')
        pair.rig.veth(pair.a, 'wa', pair.b, 'wb', queues=queues)
        end = time.monotonic() + r.PATIENCE_S
        while pair.pmd.xstats()['ring_remakes'] <= before + round_:
            assert time.monotonic() < end, 'the rings are not made again'
        link = r.Link(pair.a, 'wa')
        for frame in flows(40):
            link.send(frame)
        for _ in range(40):
            assert link.receive() is not None
    assert r.Rig.details(pair.b, 'wb')['promiscuity'] == 1
    link.close()


def run_filters(cases, rig):
    pair = Pair(rig)
    link = r.Link(pair.a, 'wa')
    pair.pmd.start()
    with cases('not promiscuous: unicast for others is filtered and counted, the rest comes'):
        mac = bytes.fromhex(r.Rig.mac(pair.b, 'wb').replace(':', ''))
        pair.pmd.ask('set promisc 0 off')
        assert r.Rig.details(pair.b, 'wb')['promiscuity'] == 0
        other, extra = bytes.fromhex('020000000099'), bytes.fromhex('020000000077')
        pair.pmd.ask('mac_addr add 0 02:00:00:00:00:77')
        for target in (other, mac, other, b'\xff' * 6, extra, bytes.fromhex('01005e000001')):
            link.send(target + ETHER4[6:] + bytes(46))
        s = pair.pmd.until_stat('RX-packets', 4)
        x = pair.pmd.xstats()
        assert (s['RX-packets'], x['rx_filtered_other_host']) == (4, 2), (s, x)
        pair.pmd.ask('mac_addr remove 0 02:00:00:00:00:77')
        link.send(extra + ETHER4[6:] + bytes(46))
        link.send(mac + ETHER4[6:] + bytes(46))
        assert pair.pmd.until_stat('RX-packets', 5)['RX-packets'] == 5
        assert pair.pmd.xstats()['rx_filtered_other_host'] == 3
    with cases('all-multicast, multicast list and address reach the interface'):
        pair.pmd.ask('set allmulti 0 on')
        assert r.Rig.details(pair.b, 'wb')['allmulti'] == 1
        pair.pmd.ask('set allmulti 0 off')
        assert r.Rig.details(pair.b, 'wb')['allmulti'] == 0
        pair.pmd.ask('mcast_addr add 0 01:00:5e:01:02:03')
        assert '01:00:5e:01:02:03' in r.sh('ip', '-n', pair.b, 'maddr', 'show', 'dev', 'wb')
        pair.pmd.ask('mac_addr set 0 02:11:22:33:44:55')
        assert r.Rig.mac(pair.b, 'wb') == '02:11:22:33:44:55'
    with cases('link up and down by the application'):
        pair.pmd.stop()
        pair.pmd.ask('set link-down port 0')
        assert 'UP' not in r.Rig.details(pair.b, 'wb')['flags']
        pair.pmd.ask('set link-up port 0')
        assert 'UP' in r.Rig.details(pair.b, 'wb')['flags']
    with cases('promiscuity is a membership: no flag, and gone after a crash'):
        pair.pmd.ask('set promisc 0 on')
        assert r.Rig.details(pair.b, 'wb')['promiscuity'] == 1
        assert 'PROMISC' not in r.Rig.details(pair.b, 'wb')['flags']
        pair.pmd.process.kill()
        pair.pmd.process.wait()
        end = time.monotonic() + r.PATIENCE_S
        while r.Rig.details(pair.b, 'wb')['promiscuity'] and time.monotonic() < end:
            time.sleep(0.01)
        assert r.Rig.details(pair.b, 'wb')['promiscuity'] == 0
        assert '01:00:5e:01:02:03' not in r.sh('ip', '-n', pair.b, 'maddr', 'show', 'dev', 'wb')
    link.close()
    with cases('what this host sends itself is not received, unless asked for'):
        pair = Pair(rig, ',ignore_outgoing=0')
        link, far = r.Link(pair.b, 'wb'), r.Link(pair.a, 'wa')
        pair.pmd.start()
        for _ in range(5):
            link.send(ETHER4 + bytes(50))
        far.send(ETHER4 + bytes(50))
        s = pair.pmd.until_stat('RX-packets', 6)
        assert s['RX-packets'] == 6, s
        pair.pmd.stop()
        for command in ('port stop 0', 'port detach 0', 'port attach net_tpacket1,iface=wb',
                        'port start 0', 'start'):
            pair.pmd.ask(command)
        for _ in range(5):
            link.send(ETHER4 + bytes(50))
        far.send(ETHER4 + bytes(50))
        s = pair.pmd.until_stat('RX-packets', 1)
        assert s['RX-packets'] == 1, s
        link.close()
        far.close()
        pair.end()


def run_arguments(cases, rig):
    """A port is attached with each, in one testpmd that goes on."""
    ns = rig.namespace('args')
    r.sh('ip', '-n', ns, 'link', 'add', 'w0', 'type', 'veth', 'peer', 'name', 'w1')
    pmd = rig.testpmd(ns, 'net_tpacket0,iface=w0,framesz=1700,blocksz=5000,framecnt=101')
    with cases('a geometry that has to be rounded is told'):
        assert 'rounded' in pmd.log, pmd.log
    for args, said in (('', 'iface=NAME must be given'), ('iface=', 'interface name'),
                       ('iface=w9', 'iface=w9: No such device'),
                       ('iface=w0123456789abcdef', 'interface name of 1 to 15'),
                       ('iface=w0,qpairs=0', 'qpairs=0: must be a number from 1 to 64'),
                       ('iface=w0,qpairs=x', 'qpairs=x: must be'),
                       ('iface=w0,qpairs=2k', 'qpairs=2k: must be'),
                       ('iface=w0,tpver=1', 'tpver=1: must be a number from 2 to 3'),
                       ('iface=w0,framesz=-1', 'framesz=-1: must be'),
                       ('iface=w0,framecnt=1', 'framecnt=1: must be'),
                       ('iface=w0,vnet_hdr=2', 'vnet_hdr=2: must be'),
                       ('iface=w0,fanout_mode=best', 'fanout_mode=best: must be hash'),
                       ('iface=w0,nosuch=1', 'cannot read the arguments'),
                       ('iface=w0,iface=w1', 'must be given, once')):
        with cases(f'refused with a sentence: {args or "no arguments"}'):
            text = pmd.ask(f'port attach net_tpacket1,{args}' if args else 'port attach net_tpacket1')
            assert said in text and 'is attached' not in text, text
            assert 'Total number of ports is 1' not in text, text
    with cases('a geometry that cannot be is refused when the port starts'):
        text = pmd.ask('port attach net_tpacket1,iface=w1,blocksz=4194304,framecnt=1048576')
        assert 'is attached' in text, text
        text = pmd.ask('port start 1')
        assert 'can be made' in text and 'Fail to start port 1' in text, text
    assert pmd.quit() == 0


def run_information(cases, rig):
    with cases('dpdk-pmdinfo lists the driver and its arguments'):
        text = r.sh('dpdk-pmdinfo.py', rig.plugin)
        info = [d for d in json.loads(text) if d['name'] == 'net_tpacket']
        assert len(info) == 1 and 'iface=<string>' in info[0]['params'], text
    with cases('descriptor counts, burst mode and speed are what is used'):
        pair = Pair(rig, options=['--rxd=200', '--txd=100'])
        text = pair.pmd.ask('show rxq info 0 0')
        assert int(re.search(r'Number of RXDs: (\d+)', text).group(1)) >= 200, text
        assert 'Kernel Ring V2 VnetHdr' in text, text
        text = pair.pmd.ask('show txq info 0 0')
        assert int(re.search(r'Number of TXDs: (\d+)', text).group(1)) >= 100, text
        wait_for_link(pair, 'up')  # the kernel tells a moment after the interface is set up
        text = pair.pmd.ask('show port info 0')
        assert 'Link speed: 10 Gbps' in text and 'Driver name: net_tpacket' in text, text
        assert 'done' in pair.pmd.ask('show port 0 txq 0 desc 0 status').lower()
        pair.end()
    with cases('packet types'):
        pair = Pair(rig, options=['--port-topology=loop'])
        link = r.Link(pair.a, 'wa')
        pair.pmd.ask('set verbose 1')
        pair.pmd.ask('set port 0 ptype_mask 0xfff')
        pair.pmd.start()
        link.send(ETHER4 + ipv4(17, udp(30)))
        text = pair.pmd.until(lambda t: 'sw ptype' in t)
        assert 'hw ptype: L2_ETHER L3_IPV4 L4_UDP' in text, text
        link.close()
        pair.end()


def run_tap(cases, rig):
    ns = rig.namespace('tap')
    one, two = r.Tap(ns, 'ta'), r.Tap(ns, 'tb')
    pmd = rig.testpmd(ns, 'net_tpacket0,iface=ta', 'net_tpacket1,iface=tb', options=['--enable-scatter'])
    pmd.start()

    def there_and_back(*sizes):
        for size in sizes:
            frame = ETHER4 + random.randbytes(size - 14)
            one.send(frame)
            assert two.receive() == frame, size
            two.send(frame)
            assert one.receive() == frame, size
    with cases('on a tap: io with every size'):
        there_and_back(14, 15, 60, 64, 1000, 1514)
    with cases('on a tap: jumbo frames, scattered'):
        for mtu, sizes in ((9000, (1515, 2048, 2049, 9014)), (68, (14, 60, 82)), (1500, (60, 1514))):
            for port in (0, 1):
                assert 'ail' not in pmd.ask(f'port config mtu {port} {mtu}')
            there_and_back(*sizes)
    with cases('on a tap: macswap'):
        pmd.forward('macswap')
        frame = ETHER4 + bytes(100)
        one.send(frame)
        assert two.receive() == frame[6:12] + frame[:6] + frame[12:]
    with cases('on a tap: stopped and started'):
        pmd.stop()
        pmd.ask('port stop all')
        one.send(ETHER4 + bytes(46))
        pmd.ask('port start all')
        pmd.ask('set fwd io')
        pmd.start()
        there_and_back(64)
    with cases('on a tap: rxonly and txonly'):
        pmd.forward('rxonly')
        pmd.ask('clear port stats all')
        for _ in range(5):
            one.send(ETHER4 + bytes(46))
        assert pmd.until_stat('RX-packets', 5)['RX-packets'] == 5
        pmd.stop()
        pmd.ask('set fwd txonly')
        pmd.ask('start')
        assert len(one.receive()) == len(two.receive()) == 64
        pmd.stop()
        one.flush()
        two.flush()
    with cases('on a tap: the kernel side gone, and there again'):
        pmd.ask('set fwd io')
        pmd.start()
        one.close()
        end = time.monotonic() + r.PATIENCE_S
        while 'Link status: down' not in pmd.ask('show port info 0'):
            assert time.monotonic() < end, 'the link is still up'
        two.send(ETHER4 + bytes(50))
        remakes = pmd.xstats()['ring_remakes']
        one = r.Tap(ns, 'ta')
        while pmd.xstats()['ring_remakes'] == remakes:
            assert time.monotonic() < end, 'the rings are not made again'
        there_and_back(60, 1514)
    pmd.stop()
    assert pmd.quit() == 0
    one.close()
    two.close()


def run(cases, rig):
    seed = int(os.environ.get('SEED', '0')) or random.randrange(1 << 30)
    print('seed', seed)
    random.seed(seed)
    for part in (run_counts, run_queues, run_stale, run_changes, run_filters,
                 run_arguments, run_information, run_tap):
        part(cases, rig)


if __name__ == '__main__':
    r.main(run)
