#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Byte-exact round trips through two ports of a stock testpmd.

    [packet socket] wa --veth-- wb [net_tpacket0]  io  [net_tpacket1] wc --veth-- wd [packet socket]

usage: test_sizes.py PLUGIN [--full]
"""
import os
import random
import sys

import rig as r

HEAD = bytes.fromhex('020000000002' '020000000001' '88b5')  # a type that nobody parses
ARGS = ('', ',tpver=3,vnet_hdr=0', ',framesz=256', ',framesz=1616,framecnt=33,blocksz=8192',
        ',tpver=3', ',vnet_hdr=0', ',framecnt=32,framesz=1600', ',qdisc_bypass=0')
BATCH = 24  # frames on their way at once; below every ring here


class Path:
    def __init__(self, rig, args='', mtu=1500, options=(), mbufs=4096):
        self.a, self.b, self.d = (rig.namespace(x) for x in 'abd')
        rig.veth(self.a, 'wa', self.b, 'wb', mtu=mtu)
        rig.veth(self.b, 'wc', self.d, 'wd', mtu=mtu)
        self.pmd = rig.testpmd(self.b, f'net_tpacket0,iface=wb{args}',
                               f'net_tpacket1,iface=wc{args}', options=options, mbufs=mbufs)
        self.pmd.start()
        self.left, self.right = r.Link(self.a, 'wa'), r.Link(self.d, 'wd')

    def trip(self, frames, source=None, target=None):
        """Every frame arrives, in order, unchanged."""
        source, target = source or self.left, target or self.right
        for i in range(0, len(frames), BATCH):
            for frame in frames[i:i + BATCH]:
                source.send(frame)
            for sent in frames[i:i + BATCH]:
                got = target.wait_for(lambda f: f[12:14] == sent[12:14])
                assert got is not None, f'a frame of {len(sent)} bytes is lost'
                assert got == sent, f'sent {len(sent)} bytes, got {len(got)}; first difference ' \
                    f'at {next((k for k in range(min(len(sent), len(got))) if sent[k] != got[k]), -1)}'

    def both(self, frames):
        self.trip(frames)
        self.trip(frames, self.right, self.left)

    def change_mtu(self, mtu):
        for ns, dev in ((self.a, 'wa'), (self.d, 'wd')):
            r.sh('ip', '-n', ns, 'link', 'set', dev, 'mtu', str(mtu))
        for port in (0, 1):
            text = self.pmd.ask(f'port config mtu {port} {mtu}')
            assert 'ail' not in text, text

    def clean(self):
        """No drop on either port, for whatever cause."""
        for port in (0, 1):
            bad = {k: v for k, v in self.pmd.xstats(port).items() if v and
                   ('drop' in k or 'missed' in k or 'error' in k)}
            assert not bad, f'port {port}: {bad}'

    def end(self):
        self.pmd.stop()
        status = self.pmd.quit()
        self.left.close()
        self.right.close()
        assert status == 0, status


def frame(size):
    return (HEAD + random.randbytes(max(0, size - len(HEAD))))[:max(size, len(HEAD))]


def edges(mtu):
    near = {14, 15, 16, 17, 33, 59, 60, 61, 63, 64, 65, 66, 100, 127, 128, 129, 255, 256, 257, 511,
            512, 513, 1023, 1024, 1025, 1499, 1500, 1501, 1513, 1514, 2047, 2048, 2049, 4095, 4096,
            4097, 6143, 6144, 6145, 8191, 8192, 8193}
    top = mtu + 14
    near |= set(range(top - 3, top + 1))
    return sorted(s for s in near if 14 <= s <= top)


def run(cases, rig):
    seed = int(os.environ.get('SEED', '0')) or random.randrange(1 << 30)
    print('seed', seed)
    random.seed(seed)
    for args in (ARGS if r.FULL else ARGS[:4]):
        with cases(f'sizes to MTU 1500, both ways, {args[1:] or "defaults"}'):
            path = Path(rig, args)
            path.both([frame(s) for s in edges(1500) for _ in range(2)])
            # Around the ring more than once.
            path.trip([frame(random.choice((60, 64, 700, 1514))) for _ in range(2500)])
            path.clean()
            path.end()
    for args in ('', ',tpver=3'):
        path = Path(rig, args, options=['--enable-scatter'])
        for mtu in (68, 128, 576, 1280, 2000, 4000, 9000):
            with cases(f'MTU {mtu}, scattered, {args[1:] or "defaults"}'):
                path.change_mtu(mtu)
                path.both([frame(s) for s in edges(mtu) for _ in range(2)])
                path.clean()
        path.end()


if __name__ == '__main__':
    r.main(run)
