#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""net_tpacket with few rights, in a secondary process, and as a port of Open vSwitch.

usage: test_environments.py PLUGIN
"""
import os
import re
import shutil
import subprocess
import sys
import time

import rig as r
from test_offloads import ETHER4

HUGE_PAGES = 192
FRAME = ETHER4 + bytes(50)
RAW_ONLY = ('setpriv', '--bounding-set=-all,+net_raw', '--inh-caps=-all')


def run_rights(cases, rig):
    a, b = rig.namespace('a'), rig.namespace('b')
    rig.veth(a, 'wa', b, 'wb')
    link = r.Link(a, 'wa')
    with cases('CAP_NET_RAW alone is enough to receive and to send'):
        pmd = rig.testpmd(b, 'net_tpacket0,iface=wb', mode='macswap', wrapper=RAW_ONLY,
                          options=['--no-mlockall'])
        pmd.start()
        for size in (60, 1514):
            frame = ETHER4 + bytes(size - 14)
            link.send(frame)
            assert link.receive() == frame[6:12] + frame[:6] + frame[12:]
        assert pmd.log.count("socket buffers stay within the system's limit") == 1, pmd.log
    with cases('what needs more is refused, and the port goes on'):
        text = pmd.ask('port config mtu 0 2000')
        assert 'Operation not permitted' in text, text
        assert r.Rig.details(b, 'wb')['mtu'] == 1500
        text = pmd.ask('mac_addr set 0 02:00:00:00:00:55')
        assert r.Rig.mac(b, 'wb') != '02:00:00:00:00:55'
        link.send(FRAME)
        assert link.receive() is not None
        assert 'keeps its MTU' in pmd.ask('port config mtu 0 1400')
        pmd.stop()
        assert pmd.quit() == 0
    with cases('without CAP_NET_RAW it says so'):
        _, text = rig.testpmd(b, 'net_tpacket0,iface=wb', expect_failure=True, wrapper=(
            'setpriv', '--bounding-set=-all', '--inh-caps=-all'), options=['--no-mlockall']).wait()
        assert 'CAP_NET_RAW is needed' in text, text[-500:]
    with cases('a limit of 64 KB of locked memory and CAP_NET_RAW alone'):
        pmd = rig.testpmd(b, 'net_tpacket0,iface=wb', mode='macswap', options=['--no-mlockall'],
                          wrapper=('prlimit', '--memlock=65536:65536', *RAW_ONLY))
        pmd.start()
        link.send(FRAME)
        assert link.receive() is not None
        pmd.stop()
        assert pmd.quit() == 0
    with cases('an interface without Ethernet headers is refused'):
        ns = rig.namespace('n')
        r.sh('ip', '-n', ns, 'tuntap', 'add', 'mode', 'tun', 'name', 'tun0')
        _, text = rig.testpmd(ns, 'net_tpacket0,iface=tun0', expect_failure=True).wait()
        assert 'not an Ethernet interface' in text, text[-500:]
    link.close()


class HugePages:
    """Some for two processes that share memory: those that are free, or more until the end."""

    def __init__(self, pages=HUGE_PAGES):
        self.wanted = pages
        self.added = 0

    @staticmethod
    def read(name):
        with open('/proc/meminfo', encoding='ascii') as f:
            return int(re.search(rf'{name}:\s+(\d+)', f.read()).group(1))

    def __enter__(self):
        total, free = self.read('HugePages_Total'), self.read('HugePages_Free')
        if free < self.wanted:
            r.sh('sysctl', '-qw', f'vm.nr_hugepages={total + self.wanted - free}')
            self.added = self.read('HugePages_Total') - total
        return self.read('HugePages_Free')

    def __exit__(self, *_):
        if self.added:
            total = self.read('HugePages_Total')
            r.sh('sysctl', '-qw', f'vm.nr_hugepages={max(0, total - self.added)}')


def own_mounts(rig):
    """A shell prefix: run directory, huge pages and driver folder of our own, so that dumpcap, which
    takes neither a prefix nor a plugin, finds this primary and this driver."""
    pmds = r.sh('sh', '-c', 'ls -d /usr/lib/*/dpdk/pmds-*').split()[0]
    home = f'{rig.home}/mounts'
    os.makedirs(f'{home}/huge')
    shutil.copytree(pmds, f'{home}/pmds', symlinks=True)
    shutil.copy(rig.plugin, f'{home}/pmds/')
    script = ('mount -t tmpfs none /var/run/dpdk && mount --bind {0}/pmds {1} && '
              'mount -t hugetlbfs none {0}/huge && exec "$0" "$@"').format(home, pmds)
    return ('unshare', '--mount', 'sh', '-c', script), f'{home}/huge'


def run_secondary(cases, rig):
    os.makedirs('/var/run/dpdk', exist_ok=True)
    wrapper, folder = own_mounts(rig)
    a, b = rig.namespace('a'), rig.namespace('b')
    rig.veth(a, 'wa', b, 'wb')
    with HugePages() as pages:
        if pages < HUGE_PAGES:
            cases.skip('secondary process', f'only {pages} of {HUGE_PAGES} huge pages to be had')
            return
        pmd = rig.testpmd(b, 'net_tpacket0,iface=wb', mode='macswap', wrapper=wrapper,
                          plugin=False, prefix='rte',
                          memory=('--huge-dir', folder, '-m', '256', '--proc-type=primary'))
        pmd.start()
        link = r.Link(a, 'wa')
        # stdbuf and the mounts are execs in place, so this is testpmd itself.
        inside = ('nsenter', '-t', str(pmd.pid()), '-m', '-n')
        for _ in range(9):
            link.send(FRAME)
            assert link.receive() is not None
        with cases('a secondary process reads counters, and is told that it has no data path'):
            text = r.sh(*inside, *rig.preload(), 'dpdk-proc-info', '--no-pci', '--file-prefix=rte',
                        '--huge-dir', folder, '--', '-p', '1', '--xstats')
            assert re.search(r'rx_delivered_packets: 9\b', text), text[-800:]
        with cases('dpdk-dumpcap captures from the port'):
            # Packet pools are shared by the number of their handler, which is the order in which a
            # process loaded them; the distribution's testpmd links some, its dumpcap none.
            linked = re.findall(r'(librte_mempool_\w+\.so\.\d+) =>', r.sh('ldd', r.sh(
                'which', 'dpdk-testpmd').strip()))
            dump = subprocess.Popen(
                [*inside, *rig.preload(*linked), 'dpdk-dumpcap', '-i', 'net_tpacket0', '-c', '8', '-P',
                 '-w', '/var/run/dpdk/capture.pcap'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True)
            rig.processes.append(dump)
            end = time.monotonic() + r.PATIENCE_S
            while dump.poll() is None and time.monotonic() < end:
                link.send(FRAME)
                time.sleep(0.02)
            text = dump.communicate(timeout=5)[0]
            assert dump.returncode == 0, text[-800:]
            got = subprocess.run([*inside, 'cat', '/var/run/dpdk/capture.pcap'], check=True,
                                 capture_output=True).stdout
            assert got.count(FRAME[12:]) >= 1 and len(got) >= 24 + 8 * (16 + 64), len(got)
        link.close()
        pmd.stop()
        assert pmd.quit() == 0


class Switch:
    """An Open vSwitch with DPDK of our own, in a namespace."""

    def __init__(self, rig, ns):
        self.home = f'{rig.home}/ovs'
        os.makedirs(self.home)
        self.rig, self.ns = rig, ns
        self.env = {**os.environ, 'OVS_RUNDIR': self.home, 'OVS_LOGDIR': self.home,
                    'OVS_DBDIR': self.home, 'OVS_SYSCONFDIR': self.home}
        self.db = f'unix:{self.home}/db.sock'
        r.sh('ovsdb-tool', 'create', f'{self.home}/conf.db',
             '/usr/share/openvswitch/vswitch.ovsschema')
        self.database = rig.run(
            ns, 'ovsdb-server', f'{self.home}/conf.db', f'--remote=p{self.db}', env=self.env,
            stderr=subprocess.DEVNULL)
        self.wait_for(f'{self.home}/db.sock')

    @staticmethod
    def wait_for(path):
        end = time.monotonic() + r.PATIENCE_S
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise RuntimeError(f'no {path}')
            time.sleep(0.02)

    def ctl(self, *command):
        ret = subprocess.run(['ip', 'netns', 'exec', self.ns, 'ovs-vsctl', f'--db={self.db}',
                              *command], env=self.env, text=True, capture_output=True,
                             timeout=r.PATIENCE_S, check=False)
        if ret.returncode:
            raise RuntimeError(ret.stderr)
        return ret.stdout

    def start(self, extra):
        cpus = sorted(os.sched_getaffinity(0))
        self.ctl('--no-wait', 'init', '--', 'set', 'Open_vSwitch', '.',
                 'other_config:dpdk-init=true', 'other_config:dpdk-socket-mem=256',
                 f'other_config:dpdk-lcore-mask={1 << cpus[0]:#x}',
                 f'other_config:pmd-cpu-mask={1 << cpus[-1]:#x}', f'other_config:dpdk-extra={extra}')
        self.daemon = self.rig.run(
            self.ns, *self.rig.preload(), shutil.which('ovs-vswitchd-dpdk') or '/usr/lib/openvswitch-switch-dpdk/'
            'ovs-vswitchd-dpdk', self.db, f'--unixctl={self.home}/ctl', '--log-file='
            f'{self.home}/log', env=self.env, stderr=subprocess.DEVNULL)

    def end(self):
        subprocess.run(['ovs-appctl', '-t', f'{self.home}/ctl', 'exit'], env=self.env, check=False,
                       capture_output=True, timeout=r.PATIENCE_S)
        self.daemon.wait(timeout=r.PATIENCE_S)
        self.database.terminate()
        self.database.wait(timeout=r.PATIENCE_S)


def run_switch(cases, rig):
    if not os.path.exists('/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk') and \
            not shutil.which('ovs-vswitchd-dpdk'):
        cases.skip('Open vSwitch', 'needs openvswitch-switch-dpdk')
        return
    a, b, d = (rig.namespace(x) for x in 'abd')
    rig.veth(a, 'wa', b, 'wb')
    rig.veth(b, 'wc', d, 'wd')
    for ns, dev, address in ((a, 'wa', '198.18.9.1'), (d, 'wd', '198.18.9.2')):
        r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'on')
        r.sh('ip', '-n', ns, 'addr', 'add', f'{address}/24', 'dev', dev)
    with HugePages() as pages:
        if pages < HUGE_PAGES:
            cases.skip('Open vSwitch', f'only {pages} of {HUGE_PAGES} huge pages to be had')
            return
        switch = Switch(rig, b)
        switch.start(f'-d {rig.plugin} --no-pci --in-memory --single-file-segments --no-telemetry')
        try:
            with cases('Open vSwitch takes two ports of net_tpacket'):
                switch.ctl('add-br', 'br0', '--', 'set', 'bridge', 'br0', 'datapath_type=netdev')
                for port, dev in (('p0', 'wb'), ('p1', 'wc')):
                    switch.ctl('add-port', 'br0', port, '--', 'set', 'Interface', port, 'type=dpdk',
                               f'options:dpdk-devargs=net_tpacket{port[1]},iface={dev}')
                for port in ('p0', 'p1'):
                    end = time.monotonic() + r.PATIENCE_S
                    text = ''  # the switch asks for the link from time to time
                    while text.split()[-1:] != ['up'] and time.monotonic() < end:
                        text = switch.ctl('get', 'Interface', port, 'status', 'error', 'link_state')
                    assert 'driver_name=net_tpacket' in text and text.split()[-1] == 'up', text
            with cases('hosts reach each other through the switch: ping, UDP and TCP'):
                text = r.sh('ip', 'netns', 'exec', a, 'ping', '-c', '3', '-i', '0.1', '198.18.9.2')
                assert ' 0% packet loss' in text, text
                from test_offloads import Forwarder
                path = Forwarder.__new__(Forwarder)
                path.a, path.d = a, d
                import test_offloads
                test_offloads.A4, test_offloads.D4 = '198.18.9.1', '198.18.9.2'
                path.udp()
                path.tcp(size=4 << 20)
                path.tcp(reverse=True, size=4 << 20)
            with cases('MTU through the switch'):
                for port in ('p0', 'p1'):
                    switch.ctl('set', 'Interface', port, 'mtu_request=3000')
                end = time.monotonic() + r.PATIENCE_S
                while r.Rig.details(b, 'wb')['mtu'] != 3000 and time.monotonic() < end:
                    time.sleep(0.05)
                assert r.Rig.details(b, 'wb')['mtu'] == 3000
                for ns, dev in ((a, 'wa'), (d, 'wd')):
                    r.sh('ip', '-n', ns, 'link', 'set', dev, 'mtu', '3000')
                text = ''  # the switch takes its ports down and up meanwhile
                while '1 received' not in text and time.monotonic() < end:
                    text = r.sh('ip', 'netns', 'exec', a, 'ping', '-c', '1', '-W', '0.2', '-M', 'do',
                                '-s', '2900', '198.18.9.2', check=False)
                assert '1 received' in text, text
        finally:
            switch.end()


def run(cases, rig):
    run_rights(cases, rig)
    run_secondary(cases, rig)
    run_switch(cases, rig)


if __name__ == '__main__':
    r.main(run)
