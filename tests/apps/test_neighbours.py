#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The appliance beside real neighbours, each of which gets its datagrams back; then it is killed, and started
again with its service on another port: they find it by themselves.

   several ports   kernel -- wa - wb (net_tpacket)                                 \
                   kernel -- net_tap, stock testpmd, virtio-user == net_tapvu       > one sluiced
                   a host on a packet ring == net_pktring                          /
   a guest         Linux under QEMU, its own virtio_net == net_tapvu -- sluiced
   a switch        kernel -- net_tpacket \                  / net_tapvu == virtio-user             \
                   a host == net_pktring  > Open vSwitch <                                          > sluiced
                                                            \\ dpdkvhostuserclient == virtio-user    /

usage: test_neighbours.py TAPVU PKTRING TPACKET SLUICED SLUICECTL LIBSLUICE_CLIENT [--full]
"""
import os
import re
import select
import shutil
import subprocess
import sys
import time

import appliance as a
import test_environments as env
import test_guest as vm
from appliance import r

PLUGINS, PROGRAMS, LIBRARY = sys.argv[1:4], sys.argv[4:6], sys.argv[6]
HUGE_PAGES = 512  # the switch's own packets, and a port's buffers beside them
BEFORE, AFTER = 7, 8  # the echo's port of the first daemon, and of the one after it
ECHO = '[service echo]\nkind = echo\nudp-port = {}\n'
MACS = ('020000000e01', '020000000e02')


def plugins(rig):
    """Installed copies: DPDK refuses plugins below a folder that others may write to."""
    return [rig.plugin] + [shutil.copy(path, rig.home) for path in PLUGINS[1:]]


def host(ns, dev, *addresses):
    for address in addresses:
        r.sh('ip', '-n', ns, 'addr', 'add', address, 'dev', dev, *(['nodad'] if ':' in address else []))
    r.sh('ip', '-n', ns, 'link', 'set', dev, 'arp', 'on', 'up')


class Several:
    """A wire, a frontend and a ring, and the daemon that has all three."""

    def __init__(self, rig, drivers):
        self.rig, self.wire, self.front, self.ns = rig, *(rig.namespace(x, ipv6=True) for x in 'wfd')
        rig.veth(self.wire, 'wa', self.ns, 'wb')
        host(self.wire, 'wa', '198.18.0.1/24', '2001:db8::1/64')
        self.text = (f'driver = {" ".join(drivers[:2])}\n'
                     '[port wire]\ndevargs = net_tpacket0,iface=wb\naddress = 198.18.0.2/24, 2001:db8::2/64\n'
                     f'[port front]\ndevargs = net_tapvu0,path={rig.home}/front,client=1\n'
                     'address = 198.18.1.2/24, 2001:db8:1::2/64\n'
                     f'[port ring]\ndevargs = net_pktring0,path={rig.home}/ring\naddress = 198.18.2.2/24\n')
        self.daemon = self.start(BEFORE)
        # A frontend that is to outlive the backend must be the server.
        self.pmd = rig.testpmd(self.front, f'net_virtio_user0,path={rig.home}/front,server=1', 'net_tap0,iface=td',
                               plugin=False)
        host(self.front, 'td', '198.18.1.1/24', '2001:db8:1::1/64')
        self.pmd.start()
        self.ring = a.RingHost(LIBRARY, f'{rig.home}/ring', '198.18.2.1', MACS[0])

    def start(self, port):
        return a.Daemon(self.rig, self.ns, PROGRAMS, self.text + ECHO.format(port))

    def ask(self, port):
        for ns, addresses in ((self.wire, ('198.18.0.2', '2001:db8::2')), (self.front, ('198.18.1.2', '2001:db8:1::2'))):
            for address in addresses:
                assert a.echo(ns, address, port), f'no echo from {address}'
                a.ping(ns, address)
        self.ring.echo('198.18.2.2', port)
        assert self.daemon.echoed() >= 100, self.daemon.ctl('services')
        lines = self.daemon.audit()
        assert all(lines[f'port {name}']['entered'] >= 20 for name in ('wire', 'front', 'ring')), lines

    def close(self):
        self.ring.close()
        self.pmd.stop()
        assert self.pmd.quit() == 0
        self.daemon.end()
        self.daemon.remove()


def run_several(cases, rig, drivers):
    with cases('a kernel, a stock testpmd and a ring client are served by one daemon'):
        several = Several(rig, drivers)
        several.ask(BEFORE)
    if cases.failed:
        return
    with cases('killed and started again: all of them find it by themselves'):
        several.daemon.kill()
        assert os.path.exists(f'{rig.home}/ring'), 'nothing stale: the test shows nothing'
        several.daemon = several.start(AFTER)
        assert several.ring.client.gone()
        several.ring.connect()
        several.ask(AFTER)
        several.close()


GUEST_INIT = f'''#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in {' '.join(vm.MODULES)}; do insmod /$m.ko; done
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set eth0 up
ip addr add 198.18.3.1/24 dev eth0
ip addr add 2001:db8:3::1/64 dev eth0
cat > /echo << 'END'
exec 3<> /dev/udp/$1/$2 || exit 1
good=0
for ((i = 0; i < $3; i++)); do
	sent="datagram $i of $RANDOM"
	printf %s "$sent" >&3
	[ "$(timeout 1 dd bs=2000 count=1 <&3 2> /dev/null)" = "$sent" ] && good=$((good + 1))
done
echo $good
END
answers() {{ ping "$@" | sed -n 's/.* \\([0-9]*\\) packets received.*/\\1/p'; }}
# Where nobody listens the answer is there at once; the host's patience is what ends this.
find() {{ while [ "$(bash /echo 198.18.3.2 $1 1)" != 1 ]; do sleep 0.2; done; }}
find {BEFORE}
echo "RESULT ping $(answers -c 2 -i 0.1 198.18.3.2) ping6 $(answers -6 -c 2 -i 0.1 2001:db8:3::2)"
echo "RESULT echo $(bash /echo 198.18.3.2 {BEFORE} 4) echo6 $(bash /echo 2001:db8:3::2 {BEFORE} 4) ."
find {AFTER}
echo "RESULT again $(bash /echo 198.18.3.2 {AFTER} 4) again6 $(bash /echo 2001:db8:3::2 {AFTER} 4) ."
poweroff -f
'''


# name, the device's options, the end of QEMU's socket, that of ours
GUESTS = (('a split ring', '', ',server=on', ',client=1'), ('a packed ring', ',packed=on', ',reconnect=1', ''))


class Guest:
    """A guest that boots and asks while other cases run, and says what it finds on its console."""

    def __init__(self, rig, drivers, image, options, side, ours):
        self.rig, self.ns, self.said = rig, rig.namespace('g'), ''
        path = f'{rig.home}/guest{self.ns}'
        self.text = (f'driver = {drivers[0]}\n[port guest]\ndevargs = net_tapvu0,path={path}{ours}\n'
                     'address = 198.18.3.2/24, 2001:db8:3::2/64\n')
        self.daemon = self.start(BEFORE)
        self.process = rig.run(self.ns, *vm.machine(image, [(path + side, options)]), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def start(self, port):
        return a.Daemon(self.rig, self.ns, PROGRAMS, self.text + ECHO.format(port), name=f'{self.rig.tag}g')

    def result(self, words):
        """The rest of the line that begins so."""
        end = time.monotonic() + vm.PATIENCE_S
        while not (found := re.search(f'RESULT ({words} .*)\r?\n', self.said)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f'the guest does not say {words}: {self.said[-1500:]}')
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f'the guest ended: {self.said[-1500:]}')
            self.said += data.decode(errors='replace')
        return found.group(1).split()

    def check(self):
        assert self.result('ping') == ['ping', '2', 'ping6', '2'], self.said
        assert self.result('echo') == ['echo', '4', 'echo6', '4', '.'], self.said
        assert self.daemon.echoed() >= 8
        self.daemon.audit()

    def check_again(self):
        self.daemon.kill()
        self.daemon = self.start(AFTER)
        assert self.result('again') == ['again', '4', 'again6', '4', '.'], self.said
        self.daemon.audit()

    def end(self):
        self.process.stdout.close()
        self.process.wait(timeout=r.PATIENCE_S)
        self.daemon.end()
        self.daemon.remove()


def boot(cases, rig, drivers, image, options, side, ours):
    """A guest that boots; None if there cannot be one."""
    why = vm.missing() or (None if shutil.which('bash') else 'no bash')
    if why:
        cases.skip('a Linux guest', why)
        return None
    if not os.path.exists(image):
        vm.initramfs(os.path.dirname(image), vm.kernel()[1], GUEST_INIT, ('bash',))
    return Guest(rig, drivers, image, options, side, ours)


def check_guest(cases, guest, name):
    with cases(f'a Linux guest over {name}: ping and echo, IPv4 and IPv6'):
        guest.check()
    if cases.failed:
        return
    with cases(f'a Linux guest over {name}: again after a crash'):
        guest.check_again()
        guest.end()


class Chain:
    """The switch with ports of our drivers and of its own; the appliance behind two of them."""

    def __init__(self, rig, drivers):
        self.rig, self.client, self.ns = rig, rig.namespace('c', ipv6=True), rig.namespace('s')
        rig.veth(self.client, 'wa', self.ns, 'wb')
        # The kernel would leave checksums to the port; the switch does not tell its own ports that they are missing.
        r.sh('ip', 'netns', 'exec', self.client, 'ethtool', '-K', 'wa', 'tx', 'off')
        host(self.client, 'wa', '198.18.4.1/24', '198.18.5.1/24', '2001:db8:4::1/64', '2001:db8:5::1/64')
        self.switch = env.Switch(rig, self.ns)
        self.switch.start(f'{" ".join("-d " + d for d in drivers)} --no-pci --in-memory --single-file-segments '
                          '--no-telemetry')
        home = rig.home
        self.switch.ctl('add-br', 'br0', '--', 'set', 'bridge', 'br0', 'datapath_type=netdev')
        self.port('kernel', 'type=dpdk', 'options:dpdk-devargs=net_tpacket0,iface=wb')
        self.port('tapvu', 'type=dpdk', f'options:dpdk-devargs="net_tapvu0,path={home}/tapvu"')
        self.port('ring', 'type=dpdk', f'options:dpdk-devargs="net_pktring0,path={home}/swring"')
        self.port('vhost', 'type=dpdkvhostuserclient', f'options:vhost-server-path={home}/vhost')
        self.text = (f'[port chain]\ndevargs = net_virtio_user0,path={home}/tapvu\n'
                     'address = 198.18.4.2/24, 2001:db8:4::2/64\n'
                     f'[port uplink]\ndevargs = net_virtio_user1,path={home}/vhost,server=1\n'
                     'address = 198.18.5.2/24, 2001:db8:5::2/64\n')

    def port(self, name, *settings):
        self.switch.ctl('add-port', 'br0', name, '--', 'set', 'Interface', name, *settings)
        error = self.switch.ctl('get', 'Interface', name, 'error').strip()
        assert error == '[]', f'{name}: {error}'

    def start(self, port):
        self.daemon = a.Daemon(self.rig, self.ns, PROGRAMS, self.text + ECHO.format(port))

    def ask(self, port):
        for address in ('198.18.4.2', '198.18.5.2', '2001:db8:4::2', '2001:db8:5::2'):
            assert a.echo(self.client, address, port), f'no echo from {address}'
            a.ping(self.client, address)
        ring = a.RingHost(LIBRARY, f'{self.rig.home}/swring', '198.18.4.3', MACS[1])
        ring.echo('198.18.4.2', port)
        ring.close()
        lines = self.daemon.audit()
        assert all(lines[f'port {name}']['entered'] >= 40 for name in ('chain', 'uplink')), lines


def run_switch(cases, rig, drivers):
    if not os.path.exists('/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk') and \
            not shutil.which('ovs-vswitchd-dpdk'):
        cases.skip('Open vSwitch', 'needs openvswitch-switch-dpdk')
        return
    with env.HugePages(HUGE_PAGES) as pages:
        if pages < HUGE_PAGES:
            cases.skip('Open vSwitch', f'only {pages} of {HUGE_PAGES} huge pages to be had')
            return
        with cases('behind a stock Open vSwitch, by its own vhost-user and by our drivers in it: ping and echo'):
            chain = Chain(rig, drivers)
            chain.start(BEFORE)
            chain.ask(BEFORE)
        if cases.failed:
            return
        with cases('killed and started again behind the switch'):
            chain.daemon.kill()
            assert os.path.exists(f'{rig.home}/vhost'), 'nothing stale: the test shows nothing'
            chain.start(AFTER)
            chain.ask(AFTER)
            chain.daemon.end()
            chain.daemon.remove()
            chain.switch.end()


def run_waiting(cases, rig):
    """A driver that waits has the main thread of the daemon."""
    with cases('SIGTERM ends a daemon whose port still waits for its peer, and it starts again after SIGKILL'):
        path, ns = f'{rig.home}/wait', rig.namespace('t')
        text = f'[port wait]\ndevargs = net_virtio_user7,path={path},server=1\naddress = 198.18.6.2/24\n'
        for end in ('kill', 'end'):
            daemon = a.Daemon(rig, ns, PROGRAMS, text + ECHO.format(BEFORE), name=f'{rig.tag}w', ready=False)
            a.until(lambda said=daemon.said: f'waits until a vhost-user backend connects to {path}' in said(),
                    'a port that waits')
            a.until(lambda: listens(ns, path), 'a socket that waits')
            getattr(daemon, end)()
            assert os.path.exists(path) or end == 'end', 'nothing stale: the case shows nothing'
        assert not os.path.exists(f'/var/run/dpdk/sluiced-{daemon.name}')


def listens(ns, path):
    return path in r.sh('ip', 'netns', 'exec', ns, 'ss', '-Hxl')


def run(cases, rig):
    drivers = plugins(rig)
    # What goes into a guest lies in a folder of its own.
    image = f'{rig.home}/initramfs/image'
    os.makedirs(os.path.dirname(image))
    run_waiting(cases, rig)
    run_several(cases, rig, drivers)
    run_switch(cases, rig, drivers)
    # Too long for every run; and one at a time, because each takes a processor for itself.
    for name, *how in GUESTS if r.FULL else ():
        guest = None if cases.failed else boot(cases, rig, drivers, image, *how)
        if guest is None:
            return
        check_guest(cases, guest, name)


if __name__ == '__main__':
    r.main(run)
