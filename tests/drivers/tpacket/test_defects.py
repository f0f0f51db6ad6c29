#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Each known weak point of the distribution's net_af_packet: shown there where it can be, and shown
to be absent from net_tpacket by the same steps. A case "stock" that finds the stock driver sound
fails too: then the comparison says nothing any more. Numbers as in doc/tpacket.md.

usage: test_defects.py PLUGIN
"""
import configparser
import os
import random
import re
import socket
import sys
import time

import rig as r
from test_offloads import ETHER4, Forwarder, rig_socket
from test_modes import flows

STOCK, OURS = 'net_af_packet0', 'net_tpacket0'


def body(size):
    return ETHER4[:12] + b'\x88\xb5' + random.randbytes(size - 14)


class One:
    """A port of either driver on wb; a packet socket on wa at the other end. Several cases share one."""

    def __init__(self, rig, driver, args='', mode='rxonly', options=(), queues=1, **more):
        self.a, self.b = rig.namespace('a'), rig.namespace('b')
        rig.veth(self.a, 'wa', self.b, 'wb', queues=queues)
        self.link = r.Link(self.a, 'wa')
        self.pmd = rig.testpmd(self.b, f'{driver},iface=wb{args}', mode=mode, options=options, **more)

    def fresh(self):
        """The stock driver's lcore writes its counters in every poll, and may write old ones over a clear."""
        for port in (0, 1):
            end = time.monotonic() + r.PATIENCE_S
            while True:
                self.pmd.ask(f'clear port stats {port}')
                self.pmd.ask(f'clear port xstats {port}')
                if not any(self.pmd.stats(port).values()) or time.monotonic() > end:
                    break
        return self

    def end(self):
        self.pmd.stop()
        self.pmd.quit()
        self.link.close()


class Two(One):
    """A second port, net_tpacket, on wc: what the first one receives comes out at wd, and back. The
    far wire has an MTU of 1900."""

    def __init__(self, rig, driver, args=''):
        self.a, self.b, self.d = (rig.namespace(x) for x in 'abd')
        rig.veth(self.a, 'wa', self.b, 'wb')
        rig.veth(self.b, 'wc', self.d, 'wd', mtu=1900)
        self.link, self.far = r.Link(self.a, 'wa'), r.Link(self.d, 'wd')
        self.pmd = rig.testpmd(self.b, f'{driver},iface=wb{args}', 'net_tpacket1,iface=wc', mode='io')
        self.pmd.start()

    def end(self):
        super().end()
        self.far.close()


def counted(pmd, port=0, patience=0.6):
    """Statistics when they no longer change."""
    last, end = None, time.monotonic() + patience
    while time.monotonic() < end:
        now = pmd.stats(port)
        if now != last:
            last, end = now, time.monotonic() + patience
        time.sleep(0.02)
    return last


def truncated(t):
    for ns, dev in ((t.a, 'wa'), (t.b, 'wb')):
        r.sh('ip', '-n', ns, 'link', 'set', dev, 'mtu', '9000')
    t.link.send(body(4000))
    s = counted(t.pmd)
    for ns, dev in ((t.a, 'wa'), (t.b, 'wb')):
        r.sh('ip', '-n', ns, 'link', 'set', dev, 'mtu', '1500')
    return s['RX-packets'] == 1 and s['RX-bytes'] < 4000 and s['RX-errors'] == 0, \
        s['RX-packets'] == 0 and s['RX-errors'] == 1, s


def misaddressed(rig, driver):
    t = Two(rig, driver, ',framesz=1632,blocksz=4096,framecnt=64')
    sent = [body(400 + i) for i in range(12)]
    for frame in sent:
        t.link.send(frame)
    got = []
    while len(got) < len(sent) and (frame := t.far.wait_for(lambda f: f[12:14] == b'\x88\xb5', 2)):
        got.append(frame)
    t.pmd.process.kill()  # the stock driver may be reading nonsense
    t.pmd.process.wait()
    return got != sent, got == sent, f'{len(got)} of {len(sent)}'


def unseen_drops(rig, driver):
    t = One(rig, driver, ',framecnt=16,blocksz=4096,framesz=2048')
    for _ in range(500):
        t.link.send(body(60))
    t.pmd.start()
    s = counted(t.pmd)
    t.end()
    total = s['RX-packets'] + s['RX-missed']
    return total < 500, total == 500, s


def stuck(rig, driver):
    """A queueing discipline that refuses most frames."""
    t = One(rig, driver, ',qdisc_bypass=0', mode='txonly')
    r.sh('tc', '-n', t.b, 'qdisc', 'add', 'dev', 'wb', 'root', 'tbf', 'rate', '2mbit', 'burst',
         '2000', 'limit', '4000')
    t.pmd.start()
    t.pmd.until_stat('TX-packets', 200)
    t.pmd.stop()
    arrived, wanted = 0, t.pmd.stats()['TX-packets']
    while t.link.receive(0.6) is not None:
        arrived += 1
    t.end()
    return wanted != arrived, wanted == arrived, f'counted {wanted}, arrived {arrived}'


def sent_later(t):
    """What was reported as not sent while the link was down must not be sent, and must not stop what
    is sent when it is up again."""
    r.sh('ip', '-n', t.b, 'link', 'set', 'wb', 'down')
    for _ in range(5):
        t.far.send(body(100))
    counted(t.pmd, 1)
    before = t.pmd.stats()['TX-packets']
    r.sh('ip', '-n', t.b, 'link', 'set', 'wb', 'up')
    end = time.monotonic() + r.PATIENCE_S
    while 'LOWER_UP' not in r.Rig.details(t.b, 'wb')['flags'] and time.monotonic() < end:
        time.sleep(0.01)
    last = body(101)
    t.far.send(last)
    got = []
    while frame := t.link.wait_for(lambda f: f[12:14] == b'\x88\xb5', 0.5 if got else 5):
        got.append(frame)
    reported = t.pmd.stats()['TX-packets'] - before
    return before == 0 and got != [last], before == 0 and got == [last] and reported == 1, len(got)


def lost_but_sent(t):
    """A frame longer than the outgoing interface takes."""
    t.far.send(body(1800))
    s = counted(t.pmd)
    arrived = t.link.wait_for(lambda f: f[12:14] == b'\x88\xb5', 0.2)
    assert arrived is None
    return s['TX-packets'] == 1 and s['TX-errors'] == 0, \
        s['TX-packets'] == 0 and s['TX-errors'] == 1, s


def no_cause(t):
    """Which cause a refused frame had."""
    t.far.send(body(1800))
    counted(t.pmd)
    named = [k for k, v in t.pmd.xstats(0).items() if v == 1 and 'too_long' in k]
    return not named, named == ['tx_drop_too_long'], named


def stale(t):
    t.pmd.stop()
    t.pmd.ask('port stop all')
    for _ in range(20):
        t.link.send(body(60))
    t.pmd.ask('port start all')
    t.pmd.start()
    s = counted(t.pmd)
    return s['RX-packets'] > 0, s['RX-packets'] == 0, s


def black_hole(rig, driver):
    t = One(rig, driver, ',qpairs=4')
    t.pmd.start()
    for frame in flows(200):
        t.link.send(frame)
    s = counted(t.pmd)
    t.end()
    return s['RX-packets'] < 200, s['RX-packets'] == 200, s


def own_echo(t):
    own = r.Link(t.b, 'wb')
    for _ in range(5):
        own.send(body(60))
    s = counted(t.pmd)
    own.close()
    return s['RX-packets'] == 5, s['RX-packets'] == 0, s


def shared_group(rig, driver):
    """Two processes of the same number, each in a namespace of process numbers, on one interface."""
    a, b = rig.namespace('a'), rig.namespace('b')
    rig.veth(a, 'wa', b, 'wb')
    link = r.Link(a, 'wa')
    alone = ('unshare', '--pid', '--fork', '--kill-child')
    # The distribution's driver joins a group with one queue too.
    pmds = [rig.testpmd(b, f'{driver},iface=wb,qpairs=2', mode='rxonly', wrapper=alone,
                        options=['--rxq=2', '--txq=2']) for _ in range(2)]
    for pmd in pmds:
        pmd.start()
    for frame in flows(200):
        link.send(frame)
    got = [counted(pmd)['RX-packets'] for pmd in pmds]
    for pmd in pmds:
        pmd.stop()
        pmd.quit()
    link.close()
    return min(got) < 200, got == [200, 200], got


def sticky_promiscuity(t):
    """The last case of a port: this one kills it."""
    t.pmd.process.kill()
    t.pmd.process.wait()
    flag = 'PROMISC' in r.Rig.details(t.b, 'wb')['flags']
    end = time.monotonic() + r.PATIENCE_S
    while not flag and r.Rig.details(t.b, 'wb')['promiscuity'] and time.monotonic() < end:
        time.sleep(0.01)
    left = r.Rig.details(t.b, 'wb')['promiscuity']
    return flag, not flag and left == 0, left


def partial_checksums(rig, driver):
    """A datagram of an ordinary socket, passed on by a forwarder."""
    path = Forwarder.__new__(Forwarder)
    path.a, path.b, path.d = (rig.namespace(x) for x in 'abd')
    rig.veth(path.a, 'wa', path.b, 'wb')
    rig.veth(path.b, 'wc', path.d, 'wd')
    for ns, dev, address in ((path.a, 'wa', '198.18.1.1'), (path.d, 'wd', '198.18.1.2')):
        r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'on')
        r.sh('ip', '-n', ns, 'addr', 'add', f'{address}/24', 'dev', dev)
    path.pmd = rig.testpmd(path.b, f'{driver},iface=wb', f'{driver[:-1]}1,iface=wc')
    path.pmd.start()
    receiver = rig_socket(path.d, socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(('198.18.1.2', 7000))
    sender = rig_socket(path.a, socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b'to whom it may concern', ('198.18.1.2', 7000))
    receiver.settimeout(3)
    try:
        got = receiver.recv(100)
    except TimeoutError:
        got = None
    text = r.sh('ip', 'netns', 'exec', path.d, 'cat', '/proc/net/snmp')
    head, row = [line.split() for line in text.split('\n') if line.startswith('Udp:')]
    wrong = int(dict(zip(head, row))['InCsumErrors'])
    path.end()
    return got is None and wrong == 1, got is not None and wrong == 0, f'InCsumErrors {wrong}'


def unnamed(rig, driver):
    ns = rig.namespace('n')
    _, text = rig.testpmd(ns, f'{driver},qpairs=1', expect_failure=True).wait()
    said = re.search(r'iface=NAME must be given|no interface specified', text) is not None
    return not said, said, text[-300:]


def memory_limit(rig, driver):
    """64 KB of lockable memory, as many systems give, and no right to lock more."""
    a, b = rig.namespace('a'), rig.namespace('b')
    rig.veth(a, 'wa', b, 'wb')
    wrapper = ('prlimit', '--memlock=65536:65536', 'setpriv', '--bounding-set=-ipc_lock',
               '--inh-caps=-ipc_lock')
    pmd = rig.testpmd(b, f'{driver},iface=wb', mode='rxonly', wrapper=wrapper, expect_failure=True,
                      options=['--no-mlockall'])
    pmd.log = pmd.until(lambda text: text.endswith(r.PROMPT))
    refused = 'No probed ethernet devices' in pmd.log
    works = False
    if not refused:
        link = r.Link(a, 'wa')
        pmd.start()
        link.send(body(60))
        works = pmd.until_stat('RX-packets', 1)['RX-packets'] == 1
        pmd.stop()
        link.close()
    pmd.quit()
    return refused, works, pmd.log[-300:]


def fixed_speed(t):
    """The link is what the interface says, not a constant."""
    r.sh('ip', '-n', t.b, 'link', 'set', 'wb', 'down')
    end = time.monotonic() + 0.5
    while 'Link status: down' not in (text := t.pmd.ask('show port info 0')):
        if time.monotonic() > end:
            break
    down = 'Link status: down' in text
    r.sh('ip', '-n', t.b, 'link', 'set', 'wb', 'up')
    return not down, down, ''


# With a testpmd of their own.
DEFECTS = (('2: frames are mis-addressed when their size does not divide the block', misaddressed),
           ('3: drops in the kernel are not counted', unseen_drops),
           ('4: frames refused for want of room count as sent and stay in the ring', stuck),
           ('7: queues that nobody uses swallow their share', black_hole),
           ('9: two processes share a fan-out group', shared_group),
           ('11: partial checksums are passed on', partial_checksums),
           ('12: a missing interface is not reported', unnamed),
           ('13: a small limit of locked memory stops the driver', memory_limit))
# With one that receives; the last case ends it.
RECEIVING = (('1: a truncated frame is delivered as a good one', truncated),
             ('7: a stopped port goes on receiving', stale),
             ('8: what the host sends is received', own_echo),
             ('1.1: the link is always up', fixed_speed),
             ('10: promiscuity outlives a crash', sticky_promiscuity))
# With one that passes frames on.
FORWARDING = (('5: a frame that the kernel refuses counts as sent', lost_but_sent),
              ('6: a refused frame has no cause', no_cause),
              ('4: frames that were not sent while the link was down are in the way later', sent_later))


# The features of doc/tpacket.ini, and what in the driver's code is there for each.
FEATURES = {
    'Speed capabilities': 'speed_capa',
    'Link status': '.link_update =',
    'Link status event': 'RTE_ETH_EVENT_INTR_LSC',
    'Rx interrupt': '.rx_queue_intr_enable =',
    'Free Tx mbuf on demand': '.tx_done_cleanup =',
    'Runtime Rx queue setup': 'CAPA_RUNTIME_RX_QUEUE_SETUP',
    'Runtime Tx queue setup': 'CAPA_RUNTIME_TX_QUEUE_SETUP',
    'Queue start/stop': '.rx_queue_start =',
    'Burst mode info': '.rx_burst_mode_get =',
    'Power mgmt address monitor': '.get_monitor_addr =',
    'MTU update': '.mtu_set =',
    'Scattered Rx': 'RX_OFFLOAD_SCATTER',
    'LRO': 'RX_OFFLOAD_TCP_LRO',
    'TSO': 'TX_OFFLOAD_TCP_TSO',
    'Promiscuous mode': '.promiscuous_enable =',
    'Allmulticast mode': '.allmulticast_enable =',
    'Unicast MAC filter': '.mac_addr_add =',
    'Multicast MAC filter': '.set_mc_addr_list =',
    'RSS hash': 'flow_type_rss_offloads',
    'VLAN offload': '.vlan_offload_set =',
    'L3 checksum offload': 'TX_OFFLOAD_IPV4_CKSUM',
    'L4 checksum offload': 'TX_OFFLOAD_UDP_CKSUM',
    'Timestamp offload': 'RX_OFFLOAD_TIMESTAMP',
    'Packet type parsing': '.dev_supported_ptypes_get =',
    'Rx descriptor status': '->rx_descriptor_status =',
    'Tx descriptor status': '->tx_descriptor_status =',
    'Basic stats': '.stats_get =',
    'Extended stats': '.xstats_get =',
    'Stats per queue': 'q_ipackets',
    'Multiprocess aware': 'secondary_ops',
    'Linux': 'linux/if_packet.h',
}


def check_features(driver, features):
    """A driver's feature table has these rows, and for each row its code has that text."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
    code = ''
    for name in os.listdir(f'{top}/drivers/net/{driver}'):
        with open(f'{top}/drivers/net/{driver}/{name}', encoding='utf-8') as f:
            code += f.read()
    table = configparser.ConfigParser()
    table.optionxform = str
    table.read(f'{top}/doc/{driver}.ini')
    claimed = set(table['Features']) - {'Usage doc'}
    assert claimed == set(features), claimed ^ set(features)
    unfounded = [name for name, text in features.items() if text not in code]
    assert not unfounded, unfounded


def run_documents(cases):
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
    with cases('15: the page of the driver names every argument with its default'):
        with open(f'{top}/doc/tpacket.md', encoding='utf-8') as f:
            page = f.read()
        with open(f'{top}/drivers/net/tpacket/tpacket_args.c', encoding='utf-8') as f:
            keys = re.findall(r'NUMBER\(\s*"(\w+)"', f.read()) + ['iface', 'fanout_mode']
        assert len(keys) == 13, keys
        missing = [k for k in keys if not re.search(rf'^\| `{k}` \|[^|]+\|[^|]+\|', page, flags=re.M)]
        assert not missing, missing
    with cases('15: the feature table claims what the code has, and nothing more'):
        check_features('tpacket', FEATURES)


def judge(cases, driver, name, show, *args):
    """show returns: is the defect there, does it work as it should, what was seen."""
    with cases(f'{"stock has defect" if driver == STOCK else "absent here:"} {name}'):
        has, sound, seen = show(*args)
        assert has if driver == STOCK else sound, f'{driver}: {seen}'


def run(cases, rig):
    for name, show in DEFECTS:
        judge(cases, STOCK, name, show, rig, STOCK)
        judge(cases, OURS, name, show, rig, OURS)
    for driver in (STOCK, OURS):
        t = One(rig, driver)
        t.pmd.start()
        for name, show in RECEIVING:
            judge(cases, driver, name, lambda: show(t.fresh()))
        t.link.close()
        t = Two(rig, driver)
        for name, show in FORWARDING:
            judge(cases, driver, name, lambda: show(t.fresh()))
        t.end()
    nodes = [d for d in os.listdir('/sys/devices/system/node') if re.fullmatch(r'node\d+', d)]
    if len(nodes) < 2:
        cases.skip('14: rings lie on the node of their queue', 'this machine has one memory node')
    else:
        with cases('14: rings lie on the node of their queue'):
            t = One(rig, OURS, options=['--socket-num=1'])
            maps = [line for line in r.sh('sh', '-c', 'cat /proc/$(pgrep -f file-prefix='
                                          + t.pmd.prefix + ' | tail -1)/numa_maps').split('\n')
                    if 'socket:' in line]
            assert maps and all('N1=' in line for line in maps), maps
            t.end()
    run_documents(cases)


if __name__ == '__main__':
    r.main(run)
