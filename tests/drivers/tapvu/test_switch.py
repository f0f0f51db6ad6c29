#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""net_tapvu as one port of a stock Open vSwitch with DPDK, whose other port is its own vhost-user.

   namespace A                            the switch's                        namespace D
   kernel - ta - testpmd [net_tap,        br0: p0 net_tapvu (serves)          testpmd [net_tap, - td - kernel
                 virtio_user] ==========>      p1 dpdkvhostuserclient ======> virtio_user server]

   With --full also over split rings, and with a Linux guest under QEMU in the place of A.

usage: test_switch.py PLUGIN [--full]
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'tpacket'))
import rig as r  # noqa: E402  (the path comes first)
import test_defects  # noqa: E402
import test_environments as env  # noqa: E402
import test_guest as vm  # noqa: E402

SEED = random.randrange(1 << 32)
FRAMES, IN_FLIGHT = 400, 32
HUGE_PAGES = 512  # the switch's own packets, and a port's buffers beside them
KIND = b'\x88\xb5'  # for experiments: nobody else sends it
MACS = (bytes.fromhex('020000000b01'), bytes.fromhex('020000000b02'))
# The rows of doc/tapvu.ini, and what in the driver's code is there for each.
FEATURES = {
    'Speed capabilities': 'speed_capa',
    'Link status': '.link_update =',
    'Link status event': 'RTE_ETH_EVENT_INTR_LSC',
    'Rx interrupt': '.rx_queue_intr_enable =',
    'Lock-free Tx queue': 'TX_OFFLOAD_MT_LOCKFREE',
    'Queue status event': 'RTE_ETH_EVENT_QUEUE_STATE',
    'MTU update': '.mtu_set =',
    'Scattered Rx': 'RX_OFFLOAD_SCATTER',
    'TSO': 'TX_OFFLOAD_TCP_TSO',
    'Promiscuous mode': '.promiscuous_enable =',
    'Allmulticast mode': '.allmulticast_enable =',
    'L3 checksum offload': 'TX_OFFLOAD_IPV4_CKSUM',
    'L4 checksum offload': 'RX_OFFLOAD_UDP_CKSUM',
    'Basic stats': '.stats_get =',
    'Extended stats': '.xstats_get =',
    'Multiprocess aware': 'secondary_ops',
    'Linux': 'linux/virtio_net.h',
}
LAYOUTS = (('a packed ring', ',packed_vq=1'), ('a split ring', ''))


def frames(rng, to, source):
    return [to + source + KIND + rng.randbytes(rng.randrange(46, 1501)) for _ in range(FRAMES)]


def through(near, far, wanted):
    """All of them arrive as they were sent, and in order; few are in flight, so that no queue runs over."""
    sent = 0
    for got, frame in enumerate(wanted):
        while sent < len(wanted) and sent - got < IN_FLIGHT:
            near.send(wanted[sent])
            sent += 1
        assert far.wait_for(lambda data: data[12:14] == KIND) == frame, f'frame {got} of seed {SEED}'


def counted(switch):
    """{port: (received, sent, what went wrong)} as the datapath counts now."""
    text = subprocess.run(['ovs-appctl', '-t', f'{switch.home}/ctl', 'dpctl/show', '-s'], env=switch.env,
                          check=True, text=True, capture_output=True, timeout=r.PATIENCE_S).stdout
    found = re.findall(r'port \d+: (\w+) .*?\n\s+RX packets:(\d+) errors:(\S+) .*?\n\s+TX packets:(\d+) errors:(\S+)',
                       text)
    # A vhost-user port does not know its errors.
    return {name: (int(rx), int(tx), sum(int(n) for n in errors if n != '?'))
            for name, rx, bad, tx, worse in found for errors in [(bad, worse)]}


class Ends:
    """Two kernels with a testpmd each between their tap and the switch."""

    def __init__(self, rig, paths, options):
        self.names = rig.namespace('a'), rig.namespace('d')
        # The switch looks for a server once a second; a server waits for the switch.
        self.pmds = [rig.testpmd(ns, f'net_virtio_user0,path={path}{options}{more}', f'net_tap0,iface={dev}', plugin=False)
                     for ns, path, more, dev in zip(self.names, paths, ('', ',server=1'), ('ta', 'td'))]
        for ns, dev in zip(self.names, ('ta', 'td')):
            r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'off', 'up')
        for pmd in self.pmds:
            pmd.start()
        self.links = [r.Link(ns, dev) for ns, dev in zip(self.names, ('ta', 'td'))]

    def close(self):
        for link in self.links:
            link.close()
        for pmd in self.pmds:
            pmd.stop()
            assert pmd.quit() == 0


def link_is_up(switch, port):
    end = time.monotonic() + r.PATIENCE_S
    while switch.ctl('get', 'Interface', port, 'link_state').strip() != 'up':
        assert time.monotonic() < end, f'{port} has no link'
        time.sleep(0.05)


def run_frames(cases, rig, switch, paths):
    for name, options in LAYOUTS if r.FULL else LAYOUTS[:1]:
        with cases(f'frames cross the switch both ways over {name}, whole and counted'):
            rng = random.Random(SEED)
            ends = Ends(rig, paths, options)
            for port in ('p0', 'p1'):
                link_is_up(switch, port)
            before = counted(switch)
            for near, far in ((0, 1), (1, 0)):
                through(ends.links[near], ends.links[far], frames(rng, MACS[far], MACS[near]))
            after = counted(switch)
            for port in ('p0', 'p1'):
                moved = tuple(b - a for a, b in zip(before[port], after[port]))
                assert moved == (FRAMES, FRAMES, 0), (port, before, after)
            ends.close()


def run_guest(cases, rig, switch, paths):
    """The guest's own test, with the switch in the place of the bridge to a kernel tap."""
    why = vm.missing()
    if why:
        cases.skip('a guest behind the switch', why)
        return
    ns, folder = rig.namespace('g'), tempfile.mkdtemp(prefix='sltg')
    try:
        with cases('a Linux guest reaches a kernel behind the switch: ping, UDP and TCP both ways'):
            image = vm.initramfs(folder, vm.kernel()[1])
            pmd = rig.testpmd(ns, f'net_virtio_user0,path={paths[1]},server=1', 'net_tap0,iface=td', plugin=False)
            r.sh('ip', '-n', ns, 'addr', 'add', f'{vm.HOST}/24', 'dev', 'td')
            r.sh('ip', '-n', ns, 'link', 'set', 'td', 'up')
            pmd.start()
            servers = rig.run(ns, sys.executable, '-c', vm.SERVERS, stdout=subprocess.PIPE, text=True)
            assert servers.stdout.readline() == 'ready\n'
            found = vm.guest(image, paths[0], '', 1)
            vm.check(found, [servers.stdout.readline().split()[1] for _ in range(2)], 1)
            servers.kill()
            servers.wait()
            assert counted(switch)['p0'][2] == 0
            pmd.stop()
            assert pmd.quit() == 0
    finally:
        shutil.rmtree(folder)


def missing():
    if not shutil.which('ovs-vswitchd-dpdk') and \
            not os.path.exists('/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk'):
        return 'needs openvswitch-switch-dpdk'
    return None


def run(cases, rig):
    print(f'     seed {SEED}')
    with cases('the feature table claims what the code has, and nothing more'):
        test_defects.check_features('tapvu', FEATURES)
    if missing():
        cases.skip('Open vSwitch', missing())
        return
    with env.HugePages(HUGE_PAGES) as pages:
        if pages < HUGE_PAGES:
            cases.skip('Open vSwitch', f'only {pages} of {HUGE_PAGES} huge pages to be had')
            return
        switch = env.Switch(rig, rig.namespace('s'))
        switch.start(f'-d {rig.plugin} --no-pci --in-memory --single-file-segments --no-telemetry')
        paths = [f'{rig.home}/vhost{i}' for i in range(2)]
        try:
            with cases('Open vSwitch takes a port of net_tapvu beside one of its own'):
                switch.ctl('add-br', 'br0', '--', 'set', 'bridge', 'br0', 'datapath_type=netdev')
                switch.ctl('add-port', 'br0', 'p0', '--', 'set', 'Interface', 'p0', 'type=dpdk',
                           f'options:dpdk-devargs="net_tapvu0,path={paths[0]}"')
                switch.ctl('add-port', 'br0', 'p1', '--', 'set', 'Interface', 'p1', 'type=dpdkvhostuserclient',
                           f'options:vhost-server-path={paths[1]}')
                text = switch.ctl('get', 'Interface', 'p0', 'status', 'error')
                assert 'driver_name=net_tapvu' in text and os.path.exists(paths[0]), text
            run_frames(cases, rig, switch, paths)
            if r.FULL:
                run_guest(cases, rig, switch, paths)
        finally:
            switch.end()


if __name__ == '__main__':
    r.main(run)
