#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""net_pktring as a port of a stock Open vSwitch, and beside a secondary process.

usage: test_peers.py PLUGIN SLUICE_PACKET_TX LIBSLUICE_CLIENT
"""
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'tpacket'))
import ring_client  # noqa: E402  (the path comes first)
import rig as r  # noqa: E402
import test_defects  # noqa: E402
import test_environments as env  # noqa: E402

# The features of doc/pktring.ini, and what in the driver's code is there for each.
FEATURES = {
    'Link status': '.link_update =',
    'Link status event': 'RTE_ETH_EVENT_INTR_LSC',
    'Rx interrupt': '.rx_queue_intr_enable =',
    'Queue start/stop': '.rx_queue_start =',
    'MTU update': '.mtu_set =',
    'Scattered Rx': 'RX_OFFLOAD_SCATTER',
    'Promiscuous mode': '.promiscuous_enable =',
    'Allmulticast mode': '.allmulticast_enable =',
    'Basic stats': '.stats_get =',
    'Extended stats': '.xstats_get =',
    'Stats per queue': 'q_ipackets',
    'Multiprocess aware': 'secondary_ops',
    'Linux': 'sys/epoll.h',
}
SEED = random.randrange(1 << 32)
MACS = (bytes.fromhex('020000000a01'), bytes.fromhex('020000000a02'))


def frame(rng, to, source):
    return to + source + b'\x88\xb5' + rng.randbytes(rng.randrange(46, 1501))


def huge_pages():
    """As many as a test needs: those that are free, or else some more for as long as it takes."""
    with open('/proc/meminfo', encoding='ascii') as f:
        free = int(re.search(r'HugePages_Free:\s*(\d+)', f.read()).group(1))
    return contextlib.nullcontext(free) if free >= env.HUGE_PAGES else env.HugePages()


def ours(client):
    """The next frame that is not the host's own talk, or None."""
    data = client.receive(r.PATIENCE_S)
    while data is not None and data[12:14] != b'\x88\xb5':
        data = client.receive(r.PATIENCE_S)
    return data


def through(near, far, frames):
    """Keeps few in flight, so that no receive ring runs over."""
    sent = 0
    for got, wanted in enumerate(frames):
        while sent < len(frames) and sent - got < 32 and near.send(frames[sent]):
            sent += 1
        assert ours(far) == wanted, f'frame {got} of seed {SEED}'


def run_switch(cases, rig, lib):
    if not os.path.exists('/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk') and \
            not shutil.which('ovs-vswitchd-dpdk'):
        cases.skip('Open vSwitch', 'needs openvswitch-switch-dpdk')
        return
    ns = rig.namespace('s')
    with huge_pages() as pages:
        if pages < env.HUGE_PAGES:
            cases.skip('Open vSwitch', f'only {pages} of {env.HUGE_PAGES} huge pages to be had')
            return
        switch = env.Switch(rig, ns)
        switch.start(f'-d {rig.plugin} --no-pci --in-memory --single-file-segments --no-telemetry')
        paths = [f'{rig.home}/ring{i}' for i in range(2)]
        try:
            with cases('Open vSwitch takes two ports of net_pktring'):
                switch.ctl('add-br', 'br0', '--', 'set', 'bridge', 'br0', 'datapath_type=netdev')
                for i in range(2):
                    switch.ctl('add-port', 'br0', f'p{i}', '--', 'set', 'Interface', f'p{i}', 'type=dpdk',
                               f'options:dpdk-devargs="net_pktring{i},path={paths[i]}"')
                for i in range(2):
                    text = switch.ctl('get', 'Interface', f'p{i}', 'status', 'error')
                    assert 'driver_name=net_pktring' in text, text
            for version in (1, 2, 3):
                with cases(f'frames of a V{version} client cross the bridge to a second one, and back'):
                    rng = random.Random(SEED)
                    ends = [ring_client.Client(lib, path, version, 256, 256) for path in paths]
                    for near, far in ((0, 1), (1, 0)):
                        through(ends[near], ends[far],
                                [frame(rng, MACS[far], MACS[near]) for _ in range(300)])
                    assert all(e.settled(r.PATIENCE_S) for e in ends)
                    for e in ends:
                        e.close()
            with cases('sluice-packet-tx through the bridge: the counters of both ports agree'):
                end = ring_client.Client(lib, paths[1], 2, 0, 4096)
                subprocess.run([sys.argv[2], '--server', paths[0], '-c', '1000'], check=True,
                               capture_output=True, timeout=r.PATIENCE_S)
                for n in range(1000):
                    data = ours(end)
                    assert data is not None and data[14:22] == n.to_bytes(8, 'little'), \
                        (n, data and data[:22].hex())
                end.close()
                # The switch looks every five seconds. 300 frames of each version went before.
                limit = time.monotonic() + r.PATIENCE_S
                while counters(switch, 'p0', 'rx_packets') < 1900 and time.monotonic() < limit:
                    time.sleep(0.2)
                assert counters(switch, 'p0', 'rx_packets') == 1900
                assert counters(switch, 'p0', 'rx_errors') == 0
        finally:
            switch.end()


def counters(switch, port, name):
    return int(switch.ctl('get', 'Interface', port, f'statistics:{name}'))


def run_secondary(cases, rig, lib):
    os.makedirs('/var/run/dpdk', exist_ok=True)
    wrapper, folder = env.own_mounts(rig)
    ns, path = rig.namespace('p'), f'{rig.home}/ring'
    with huge_pages() as pages:
        if pages < env.HUGE_PAGES:
            cases.skip('secondary process', f'only {pages} of {env.HUGE_PAGES} huge pages to be had')
            return
        pmd = rig.testpmd(ns, f'net_pktring0,path={path}', mode='macswap', wrapper=wrapper, plugin=False,
                          prefix='rte', memory=('--huge-dir', folder, '-m', '256', '--proc-type=primary'))
        pmd.start()
        client = ring_client.Client(lib, path, 2, 64, 64)
        rng = random.Random(SEED)
        sent = frame(rng, MACS[0], MACS[1])

        def turn():
            assert client.send(sent)
            assert client.receive(r.PATIENCE_S) == sent[6:12] + sent[:6] + sent[12:]

        inside = ('nsenter', '-t', str(pmd.pid()), '-m', '-n')
        for _ in range(9):
            turn()
        with cases('a secondary process reads the counters'):
            text = r.sh(*inside, 'dpdk-proc-info', '--no-pci', '--file-prefix=rte', '--huge-dir',
                        folder, '--', '-p', '1', '--xstats')
            assert re.search(r'rx_good_packets: 9\b', text), text[-800:]
            assert re.search(r'tx_client_ring_full: 0\b', text), text[-800:]
        with cases('dpdk-dumpcap captures from the port'):
            # Its pool handlers must have the primary's numbers: see tests/drivers/tpacket.
            linked = re.findall(r'(librte_mempool_\w+\.so\.\d+) =>', r.sh('ldd', r.sh(
                'which', 'dpdk-testpmd').strip()))
            dump = subprocess.Popen(
                [*inside, 'env', f'LD_PRELOAD={" ".join(linked)}', 'dpdk-dumpcap', '-i', 'net_pktring0', '-c',
                 '8', '-P', '-w', '/var/run/dpdk/capture.pcap'], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            rig.processes.append(dump)
            end = time.monotonic() + r.PATIENCE_S
            while dump.poll() is None and time.monotonic() < end:
                turn()
                time.sleep(0.02)
            text = dump.communicate(timeout=5)[0]
            assert dump.returncode == 0, text[-800:]
            got = subprocess.run([*inside, 'cat', '/var/run/dpdk/capture.pcap'], check=True,
                                 capture_output=True).stdout
            assert got.count(sent[12:]) == 8, got.count(sent[12:])
        client.close()
        pmd.stop()
        assert pmd.quit() == 0


def run(cases, rig):
    print(f'     seed {SEED}')
    lib = ring_client.load(sys.argv[3])
    with cases('dpdk-pmdinfo.py prints the parameters'):
        tool = shutil.which('dpdk-pmdinfo.py')
        text = r.sh('/usr/bin/python3', tool, rig.plugin)
        assert 'net_pktring' in text and 'path=<string>' in text, text
    with cases('the feature table claims what the code has, and nothing more'):
        test_defects.check_features('pktring', FEATURES)
    run_secondary(cases, rig, lib)
    run_switch(cases, rig, lib)


if __name__ == '__main__':
    ring_client.main(run, r)
