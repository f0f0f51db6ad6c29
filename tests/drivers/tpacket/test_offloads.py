#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Checksums and segmentation, with the host kernel on both sides of a stock testpmd. Nobody runs
ethtool.

    [kernel A] wa --veth-- wb [net_tpacket0]  testpmd  [net_tpacket1] wc --veth-- wd [kernel D]
    [packets ] wa --veth-- wb [net_tpacket0]  testpmd  [net_tpacket1] tap: what a wire would carry

usage: test_offloads.py PLUGIN [--full]
"""
import hashlib
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

import rig as r

A4, D4, A6, D6 = '198.18.1.1', '198.18.1.2', '2001:db8:1::1', '2001:db8:1::2'
UDP_SEGMENT = 103
TRANSFER = (24 if r.FULL else 8) << 20
RELAY = ['--enable-lro', '--enable-rx-cksum', '--tx-offloads=0x802e']  # TSO, checksums, segments


def checksum(data):
    data += b'\0' * (len(data) & 1)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def transport_ok(frame):
    """Is the TCP or UDP checksum of an IPv4 or IPv6 frame right? None: it has none."""
    at = 14
    kind = frame[12:14]
    if kind == b'\x81\x00':
        kind, at = frame[16:18], 18
    ip = frame[at:]
    if kind == b'\x08\x00':
        size, head, proto = struct.unpack('!H', ip[2:4])[0], (ip[0] & 15) * 4, ip[9]
        assert checksum(ip[:head]) == 0xffff, 'IPv4 header checksum'
        addresses, l4 = ip[12:20], ip[head:size]
    elif kind == b'\x86\xdd':
        proto, addresses = ip[6], ip[8:40]
        l4 = ip[40:40 + struct.unpack('!H', ip[4:6])[0]]
    else:
        return None
    if proto not in (6, 17):
        return None
    return checksum(addresses + struct.pack('!IBBBB', len(l4), 0, 0, 0, proto) + l4) == 0xffff


class Forwarder:
    """Two kernels and a testpmd between them."""

    def __init__(self, rig, args='', options=(), mtu=1500):
        self.a, self.b, self.d = (rig.namespace(x, ipv6=x != 'b') for x in 'abd')
        rig.veth(self.a, 'wa', self.b, 'wb', mtu=mtu)
        rig.veth(self.b, 'wc', self.d, 'wd', mtu=mtu)
        for ns, dev, four, six in ((self.a, 'wa', A4, A6), (self.d, 'wd', D4, D6)):
            r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'on')
            r.sh('ip', '-n', ns, 'addr', 'add', f'{four}/24', 'dev', dev)
            r.sh('ip', '-n', ns, 'addr', 'add', f'{six}/64', 'dev', dev, 'nodad')
        self.pmd = rig.testpmd(self.b, f'net_tpacket0,iface=wb{args}',
                               f'net_tpacket1,iface=wc{args}', options=options, mbufs=16384)
        self.pmd.start()

    def end(self):
        self.pmd.stop()
        assert self.pmd.quit() == 0

    def udp(self, family=socket.AF_INET, sizes=(0, 1, 2, 17, 100, 1000, 1001, 1452)):
        """Datagrams of an ordinary socket are accepted by the other kernel."""
        to = D4 if family == socket.AF_INET else D6
        receiver = rig_socket(self.d, family, socket.SOCK_DGRAM)
        receiver.bind((to, 7000))
        receiver.settimeout(r.PATIENCE_S)
        sender = rig_socket(self.a, family, socket.SOCK_DGRAM)
        for size in sizes:
            data = random.randbytes(size)
            sender.sendto(data, (to, 7000))
            assert receiver.recv(65536) == data, f'{size} bytes'

    def tcp(self, family=socket.AF_INET, reverse=False, size=TRANSFER):
        """A stream arrives unchanged."""
        to = D4 if family == socket.AF_INET else D6
        listener = rig_socket(self.d, family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((to, 7001))
        listener.listen(1)
        client = rig_socket(self.a, family, socket.SOCK_STREAM)
        client.settimeout(r.PATIENCE_S)
        client.connect((to, 7001))
        server, _ = listener.accept()
        server.settimeout(r.PATIENCE_S)
        source, sink = (server, client) if reverse else (client, server)
        data = random.randbytes(size)

        def send():
            source.sendall(data)
            source.shutdown(socket.SHUT_WR)
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        digest, got = hashlib.sha256(), 0
        while chunk := sink.recv(1 << 20):
            digest.update(chunk)
            got += len(chunk)
        thread.join()
        assert got == size and digest.digest() == hashlib.sha256(data).digest(), f'{got} of {size}'

    def udp_segments(self, family=socket.AF_INET):
        """One datagram-segmentation super-frame comes out as the datagrams it stands for."""
        to = D4 if family == socket.AF_INET else D6
        receiver = rig_socket(self.d, family, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, r.SO_RCVBUFFORCE, 1 << 22)
        receiver.bind((to, 7002))
        receiver.settimeout(r.PATIENCE_S)
        sender = rig_socket(self.a, family, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        for total in (2000, 2001, 20999, 40000):
            data = random.randbytes(total)
            sender.sendto(data, (to, 7002))
            for at in range(0, total, 1000):
                assert receiver.recv(2000) == data[at:at + 1000], f'{total} at {at}'


def rig_socket(ns, *args):
    return r.Rig.inside(ns, *args)


def no_drops(pmd, allowed=()):
    for port in (0, 1):
        bad = {k: v for k, v in pmd.xstats(port).items()
               if v and ('drop' in k or 'tx_kernel_error' in k) and k not in allowed}
        assert not bad, f'port {port}: {bad}'


def run_kernels(cases, rig):
    kinds = [('defaults', '', []), ('super-frames', '', RELAY),
             ('version 3, super-frames', ',tpver=3', RELAY)]
    if r.FULL:
        kinds += [('checksum flags', '', ['--enable-rx-cksum']), ('version 3', ',tpver=3', [])]
    for name, args, options in kinds:
        path = Forwarder(rig, args, options)
        for family in (socket.AF_INET, socket.AF_INET6):
            with cases(f'{name}: kernel to kernel, UDP, {family.name}'):
                path.udp(family)
            with cases(f'{name}: kernel to kernel, UDP segmentation, {family.name}'):
                path.udp_segments(family)
            for reverse in (False, True):
                with cases(f'{name}: kernel to kernel, TCP, {family.name}, '
                           f'{"back" if reverse else "forth"}'):
                    path.tcp(family, reverse)
        with cases(f'{name}: super-frames came and nothing was refused'):
            x = path.pmd.xstats(0)
            no_drops(path.pmd)
            if options == RELAY:
                assert x['rx_super_frame_lro'] > 0, x
                assert path.pmd.xstats(1)['tx_super_frames_relayed'] > 0
            else:
                assert x['rx_super_frame_segmented'] > 0, x
        if name in ('defaults', 'super-frames'):
            run_speed(cases, rig, path, name)
        if name == 'defaults':
            run_wire(cases, rig, path)
        path.end()
    with cases('without a vnet header: UDP is accepted, checksums completed by status bits'):
        path = Forwarder(rig, ',vnet_hdr=0')
        path.udp()
        path.udp(socket.AF_INET6)
        assert path.pmd.xstats(0)['rx_checksum_completed'] > 0
        path.end()
    with cases('jumbo: TCP and UDP over MTU 9000'):
        path = Forwarder(rig, '', ['--enable-scatter'], mtu=9000)
        path.udp(sizes=(1, 3000, 8972))
        path.tcp()
        path.tcp(reverse=True)
        no_drops(path.pmd)
        path.end()


def run_wire(cases, rig, path):
    """Every frame that leaves has the checksum that a wire needs, and tcpdump agrees."""
    with cases('no wrong checksum leaves a forwarder with default offloads'):
        link = r.Link(path.d, 'wd')
        path.udp(sizes=(1, 2, 99, 1400))
        path.tcp(size=1 << 20)
        seen = wrong = 0
        while (frame := link.receive(0)) is not None:
            ok = transport_ok(frame)
            seen += ok is not None
            wrong += ok is False
        link.close()
        assert seen > 700 and wrong == 0, f'{wrong} of {seen}'
    if not shutil.which('tcpdump'):
        cases.skip('tcpdump sees no wrong checksum', 'needs tcpdump')
    else:
        with cases('tcpdump sees no wrong checksum'):
            dump = rig.run(path.d, 'tcpdump', '-i', 'wd', '-Q', 'in', '-nvv', '-c', '300', 'ip',
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            dump.stderr.readline()
            path.tcp(size=4 << 20)
            text, _ = dump.communicate(timeout=r.PATIENCE_S)
            assert text.count('cksum') >= 300 and 'incorrect' not in text, text[-500:]


def run_speed(cases, rig, path, name):
    """The figure is printed, not judged."""
    if not shutil.which('iperf3'):
        cases.skip(f'{name}: iperf3', 'needs iperf3')
        return
    with cases(f'{name}: iperf3 runs to its end'):
        server = rig.run(path.d, 'iperf3', '-s', '-1', '--forceflush', stdout=subprocess.PIPE,
                         text=True)
        while 'listening' not in (line := server.stdout.readline()):
            assert line, 'no server'
        text = r.sh('ip', 'netns', 'exec', path.a, 'iperf3', '-c', D4, '-t', '1')
        rate = re.findall(r'([\d.]+ \w+/sec)', text)[-1]
        server.wait(timeout=r.PATIENCE_S)
        print(f'     iperf3, {name}: {rate}')


# ---- transmit offloads, seen on a tap ------------------------------------------------------------


def ipv4(proto, payload, source='198.18.2.1', target='198.18.2.2', ident=7):
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), ident, 0, 64, proto, 0,
                       socket.inet_aton(source), socket.inet_aton(target))
    return head[:10] + struct.pack('!H', 0xffff - checksum(head)) + head[12:] + payload


def ipv6(proto, payload):
    return struct.pack('!IHBB', 6 << 28, len(payload), proto, 64) + \
        socket.inet_pton(socket.AF_INET6, A6) + socket.inet_pton(socket.AF_INET6, D6) + payload


def udp(size, wrong=0xbad):
    return struct.pack('!HHHH', 1000, 2000, 8 + size, wrong) + random.randbytes(size)


def tcp(size, flags=0x18):
    return struct.pack('!HHIIBBHHH', 1000, 2000, 0x01020304, 5, 0x50, flags, 999, 0xbad, 0) + \
        random.randbytes(size)


ETHER4 = bytes.fromhex('020000000002' '020000000001' '0800')
ETHER6 = ETHER4[:12] + b'\x86\xdd'


class Csum:
    """testpmd's csum mode: it clears checksums and asks the driver for them."""

    def __init__(self, rig, args, commands, options=()):
        self.a, self.b = (rig.namespace(x) for x in 'ab')
        rig.veth(self.a, 'wa', self.b, 'wb')
        self.tap = r.Tap(self.b, 'wt')
        self.pmd = rig.testpmd(self.b, 'net_tpacket0,iface=wb', f'net_tpacket1,iface=wt{args}',
                               mode='csum', options=options)
        self.link = r.Link(self.a, 'wa')
        self.pmd.start()
        self.configure(commands)

    def configure(self, commands):
        self.pmd.stop()
        self.pmd.ask('port stop all')
        for command in commands:
            self.pmd.ask(command)
        self.pmd.ask('port start all')
        self.pmd.start()

    def send(self, frame, answers=1):
        self.tap.flush()
        self.link.send(frame)
        got = []
        while len(got) < answers:
            frame = self.tap.wait_for(lambda f: f[6:12] != b'' and f[12:14] in (
                b'\x08\x00', b'\x86\xdd', b'\x81\x00'))
            assert frame is not None, f'{len(got)} frames of {answers}'
            got.append(frame)
        return got

    def end(self):
        self.pmd.stop()
        assert self.pmd.quit() == 0
        self.link.close()
        self.tap.close()


HARDWARE = ['csum set ip hw 1', 'csum set udp hw 1', 'csum set tcp hw 1']


def run_transmit(cases, rig):
    for args in (',vnet_hdr=0', ',qdisc_bypass=0', '') if r.FULL else (',vnet_hdr=0', ''):
        path = Csum(rig, args, HARDWARE)
        for name, ether, ip in (('IPv4', ETHER4, ipv4), ('IPv6', ETHER6, ipv6)):
            for kind, proto, make in (('UDP', 17, udp), ('TCP', 6, tcp)):
                with cases(f'transmit checksum, {name} {kind}, {args[1:] or "defaults"}'):
                    for size in (0, 1, 2, 31, 200, 1001, 1400):
                        sent = ether + ip(proto, make(size))
                        frame = path.send(sent)[0]
                        assert transport_ok(frame), f'{size} bytes of payload'
                        assert len(frame) == len(sent)
                        assert frame[len(sent) - size:] == sent[len(sent) - size:]
        with cases(f'transmit checksum of a padded frame, {args[1:] or "defaults"}'):
            frame = path.send(ETHER4 + ipv4(17, udp(3)) + b'\x55' * 20)[0]
            assert transport_ok(frame) and frame.endswith(b'\x55' * 20)
        if args == '':
            run_segmentation(cases, path)
        path.end()


def run_segmentation(cases, path):
    path.configure(['tso set 400 1'])
    for name, ether, ip in (('IPv4', ETHER4, ipv4), ('IPv6', ETHER6, ipv6)):
        with cases(f'transmit segmentation, {name}'):
            sent = ether + ip(6, tcp(1350))
            got = path.send(sent, 4)
            payload, offset = b'', 0
            for frame in got:
                assert transport_ok(frame), len(frame)
                l4 = frame[14 + (20 if ip is ipv4 else 40):]
                assert struct.unpack('!I', l4[4:8])[0] == 0x01020304 + offset
                assert bool(l4[13] & 8) == (frame is got[-1])  # PSH on the last alone
                payload += l4[20:]
                offset += len(l4) - 20
            assert payload == sent[-1350:]
            path.pmd.settle()
            assert path.pmd.xstats(1)['tx_super_frames'] > 0
    with cases('segmentation of what fits one segment is an ordinary frame'):
        assert transport_ok(path.send(ETHER4 + ipv4(6, tcp(400)))[0])


def tagged(frame, *tags):
    return frame[:12] + b''.join(struct.pack('!HH', *tag) for tag in tags) + frame[12:]


ARGS = ('', ',framesz=128', ',tpver=3', ',vnet_hdr=0')


class Taps:
    """tap --> testpmd --> tap: tags are in the bytes on both sides."""

    def __init__(self, rig, args='', vnet=False):
        self.ns = rig.namespace('v')
        self.vnet = vnet
        self.source, self.sink = r.Tap(self.ns, 'ta', vnet), r.Tap(self.ns, 'tb')
        self.pmd = rig.testpmd(self.ns, f'net_tpacket0,iface=ta{args}',
                               f'net_tpacket1,iface=tb{args}')
        self.pmd.start()

    def pass_on(self, frame, header=b''):
        self.source.send((header or bytes(10 if self.vnet else 0)) + frame)
        got = self.sink.wait_for(lambda f: f[12:14] not in (b'\x88\xcc',))
        assert got is not None, 'lost'
        return got

    def end(self):
        self.pmd.stop()
        assert self.pmd.quit() == 0
        self.source.close()
        self.sink.close()


def run_vlan(cases, rig):
    plain = ETHER4 + ipv4(17, udp(100))
    for args in ARGS if r.FULL else ARGS[:2]:
        name = args[1:] or 'defaults'
        path = Taps(rig, args, vnet='vnet_hdr=0' not in args)
        with cases(f'tags come through as they were, {name}'):
            for tags in ((), ((0x8100, 5),), ((0x88a8, 5),), ((0x8100, 0xefff),), ((0x8100, 0),),
                         ((0x88a8, 7), (0x8100, 9)), ((0x8100, 7), (0x8100, 9))):
                frame = tagged(plain, *tags)
                assert path.pass_on(frame) == frame, tags
            assert path.pmd.xstats(0)['rx_vlan_reinserted'] >= (6 if 'framesz' not in args else 0)
        if path.vnet:
            run_tagged_offloads(cases, path, name)
        if args == '':
            run_tag_offloads(cases, path, plain)
        path.end()


def run_tagged_offloads(cases, path, name):
    with cases(f'partial checksum behind a tag, {name}'):
        for size in (1, 2, 333, 1400):
            frame = ETHER4 + ipv4(17, udp(size))
            pseudo = checksum(frame[26:34] + struct.pack('!HH', 17, 8 + size))
            frame = tagged(frame[:40] + struct.pack('!H', pseudo) + frame[42:], (0x8100, 5))
            got = path.pass_on(frame, struct.pack('=BBHHHH', 1, 0, 0, 0, 38, 6))
            assert transport_ok(got) and got[:18] == frame[:18], size
    with cases(f'super-frame behind a tag is cut, {name}'):
        frame = ETHER4 + ipv4(6, tcp(3500, 0x19))
        pseudo = checksum(frame[26:34] + struct.pack('!HH', 6, 3520))
        frame = frame[:50] + struct.pack('!H', pseudo) + frame[52:]
        tag = tagged(frame, (0x8100, 5))
        got = [path.pass_on(tag, struct.pack('=BBHHHH', 1, 1, 58, 1000, 38, 16))]
        while len(got) < 4:
            got.append(path.sink.receive())
        assert all(transport_ok(f) and f[12:16] == tag[12:16] for f in got)
        assert b''.join(f[58:] for f in got) == frame[54:]
        assert [f[51] & 9 for f in got] == [0, 0, 0, 9]  # FIN and PSH on the last alone


def run_tag_offloads(cases, path, plain):
    with cases('a tag is stripped when asked'):
        path.pmd.ask('vlan set strip on 0')
        assert path.pass_on(tagged(plain, (0x8100, 5))) == plain
        assert path.pass_on(plain) == plain
    with cases('a tag is inserted on transmit'):
        path.pmd.stop()
        for command in ('set fwd mac', 'port stop all', 'tx_vlan set 1 77', 'port start all'):
            path.pmd.ask(command)
        path.pmd.start()
        for size in (1, 500, 1472):
            frame = ETHER4 + ipv4(17, udp(size))
            got = path.pass_on(frame)
            assert got[12:] == tagged(frame, (0x8100, 77))[12:], size


def run(cases, rig):
    seed = int(os.environ.get('SEED', '0')) or random.randrange(1 << 30)
    print('seed', seed)
    random.seed(seed)
    run_kernels(cases, rig)
    run_transmit(cases, rig)
    run_vlan(cases, rig)


if __name__ == '__main__':
    r.main(run)
