#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""A Linux guest under QEMU, with its own virtio-net driver, reaches the host's network through the port.

   guest: eth0 (virtio_net) == net_tapvu,tap=st0 in testpmd -- st0 -- kernel of a network namespace

usage: test_guest.py PLUGIN [all]       without "all" the first and the last case
"""
import glob
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import test_bridge as bed

MODULES = ('virtio_ring', 'virtio', 'virtio_pci_legacy_dev', 'virtio_pci_modern_dev', 'virtio_pci',
           'failover', 'net_failover', 'virtio_net')
HOST, GUEST, NAMED = '198.18.9.1', '198.18.9.2', '198.18.9.77'
BULK = 4 << 20
PATIENCE_S = 120
# name, options of the device, queues
CASES = (('a split ring', '', 1), ('a packed ring', ',packed=on', 1),
         ('split rings, two queues', ',mq=on', 2), ('packed rings, two queues', ',packed=on,mq=on', 2))

# What the guest does, once; what it finds goes to its console. The checks are made here.
INIT = f'''#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in {' '.join(MODULES)}; do insmod /$m.ko; done
ip link set eth0 up
ip addr add {GUEST}/24 dev eth0
for i in $(seq 50); do ping -c 1 -W 1 {HOST} > /dev/null && break; done
echo "RESULT queues $(ls -d /sys/class/net/eth0/queues/tx-* | wc -l)"
echo "RESULT ping $(ping -c 5 -i 0.2 {HOST} | sed -n 's/.* \\([0-9]*\\) packets received.*/\\1/p')"
echo "RESULT ping_large $(ping -c 5 -s 4000 {HOST} | sed -n 's/.* \\([0-9]*\\) packets received.*/\\1/p')"
echo "RESULT udp $(nslookup -type=a a.test {HOST} | grep -c {NAMED})"
dd if=/dev/urandom of=/data bs=1M count={BULK >> 20} 2> /dev/null
echo "RESULT sent $(sha256sum < /data)"
nc {HOST} 5001 < /data
echo "RESULT received $(nc {HOST} 5002 < /dev/null | sha256sum)"
nc {HOST} 5002 < /dev/null | sha256sum > /both &
nc {HOST} 5001 < /data
wait
echo "RESULT both $(cat /both)"
echo "RESULT end ."
poweroff -f
'''

# The host's side: a sink that says what came, a source, and a name server that knows one name.
SERVERS = f'''
import hashlib, random, socket, threading
def sink(s):
    while True:
        c, _ = s.accept()
        h = hashlib.sha256()
        while d := c.recv(1 << 16):
            h.update(d)
        print("sunk", h.hexdigest(), flush=True)
        c.close()
def source(s):
    data = random.Random(1).randbytes({BULK})
    while True:
        c, _ = s.accept()
        c.sendall(data)
        c.close()
def names(s):
    while True:
        q, a = s.recvfrom(2000)
        end = q.index(0, 12) + 5
        s.sendto(q[:2] + bytes.fromhex("8180000100010000 0000") + q[12:end]
                 + bytes.fromhex("c00c000100010000003c0004") + socket.inet_aton("{NAMED}"), a)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("{HOST}", 53))
for f, s in ((sink, socket.create_server(("{HOST}", 5001))),
             (source, socket.create_server(("{HOST}", 5002))), (names, udp)):
    threading.Thread(target=f, args=(s,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
'''


def missing():
    for program in ('qemu-system-x86_64', 'busybox', 'cpio'):
        if shutil.which(program) is None:
            return f'no {program}'
    if not kernel():
        return 'no kernel of linux-image-cloud-amd64 in /boot'
    return None


def kernel():
    """A kernel, and the folder of its modules."""
    for image in sorted(glob.glob('/boot/vmlinuz-*-cloud-*'), reverse=True):
        folder = '/lib/modules/' + image.split('vmlinuz-')[1]
        if os.path.isdir(folder):
            return image, folder
    return None


def initramfs(folder, modules, init=INIT, programs=()):
    """An image that runs `init`; `programs` are installed ones that it needs beside busybox."""
    root = f'{folder}/root'
    for name in ('bin', 'proc', 'sys', 'dev', 'tmp'):
        os.makedirs(f'{root}/{name}')
    shutil.copy(shutil.which('busybox'), f'{root}/bin/busybox')
    for program in programs:
        install(root, shutil.which(program))
    for name in MODULES:
        found = glob.glob(f'{modules}/**/{name}.ko', recursive=True)
        if not found:
            raise RuntimeError(f'{modules} has no {name}')
        shutil.copy(found[0], root)
    with open(f'{root}/init', 'w', encoding='ascii') as f:
        f.write(init)
    os.chmod(f'{root}/init', 0o755)
    names = subprocess.run(['find', '.'], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    with open(f'{folder}/image', 'wb') as f:
        subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], cwd=root, input=names, stdout=f, check=True)
    return f'{folder}/image'


def install(root, program):
    """A program with its libraries, where its loader looks for them."""
    libraries = subprocess.run(['ldd', program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in (program, *re.findall(r'(/\S+) \(0x', libraries)):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)


def machine(image, ports, queues=1):
    """QEMU's command line for a guest with a network device for each (path, options)."""
    memory = '256M'
    # Without vectors: this QEMU's MSI-X does not get on with vhost without KVM.
    devices = [word for i, (path, options) in enumerate(ports) for word in (
        '-chardev', f'socket,id=c{i},path={path}',
        '-netdev', f'vhost-user,id=n{i},chardev=c{i},queues={queues}',
        '-device', f'virtio-net-pci,netdev=n{i},romfile=,vectors=0{options}')]
    return ['qemu-system-x86_64', '-accel', 'tcg', '-m', memory, '-smp', str(queues), '-nodefaults',
            '-display', 'none', '-serial', 'stdio', '-no-reboot', '-kernel', kernel()[0], '-initrd', image,
            '-append', 'console=ttyS0 quiet panic=-1 rdinit=/init',
            '-object', f'memory-backend-memfd,id=m,size={memory},share=on', '-machine', 'memory-backend=m',
            *devices]


def guest(image, path, options, queues):
    """Run it until it ends; its results by name."""
    run = subprocess.run(machine(image, [(path, options)], queues), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    text = run.stdout.decode(errors='replace')
    found = dict(re.findall(r'RESULT (\w+) (\S*)', text))
    if 'end' not in found:
        raise RuntimeError(f'the guest did not come to its end: {text[-1500:]}')
    return found


def super_frame(way):
    """Ends well when a frame of more than the MTU passed the tap that way: one that segmentation offload
    left whole."""
    return subprocess.Popen(['ip', 'netns', 'exec', bed.A, 'tcpdump', '-i', 'st0', '-Q', way, '-c', '1', '-w',
                             '/dev/null', 'greater', '1600'], stderr=subprocess.DEVNULL)


def serve(plugin, image, options, queues):
    folder = tempfile.mkdtemp(prefix='sltg')
    path = f'{folder}/s'
    servers = back = None
    watchers = []
    try:
        back = bed.backend(plugin, path, f',tap=st0,queues={queues}')
        bed.address(bed.A, 'st0', f'{HOST}/24')
        servers = bed.python_in(bed.A, SERVERS)
        assert servers.stdout.readline() == 'ready\n'
        watchers = [super_frame(way) for way in ('in', 'out')]
        found = guest(image, path, options, queues)
        sunk = [servers.stdout.readline().split()[1] for _ in range(2)]
        check(found, sunk, queues)
        check_port(back.xstats())
        for watcher in watchers:
            assert watcher.wait(timeout=PATIENCE_S) == 0
    finally:
        for watcher in watchers:
            watcher.kill()
            watcher.wait()
        if servers is not None:
            servers.kill()
            servers.wait()
        if back is not None:
            back.quit()
        shutil.rmtree(folder)


def check(found, sunk, queues):
    data = hashlib.sha256(random.Random(1).randbytes(BULK)).hexdigest()
    assert found['ping'] == '5' and found['ping_large'] == '5', found
    assert found['udp'] == '1' and found['queues'] == str(queues), found
    assert sunk == [found['sent']] * 2, (found, sunk)
    assert found['received'] == data and found['both'] == data, found


def check_port(x):
    for bad in ('bad_frame', 'bad_chain', 'no_header', 'failed'):
        assert x['bridge_to_kernel_' + bad] == 0, x
    assert x['bridge_to_peer_too_big'] == 0 and x['ring_bad_address'] == 0, x


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ['all']):
        print('usage: test_guest.py PLUGIN [all]', file=sys.stderr)
        return 2
    plugin = os.path.abspath(sys.argv[1])
    why = missing() or ('needs root' if os.geteuid() != 0 else None)
    if why:
        print(f'SKIP guest: {why}\n0 passed, 0 failed, 1 skipped')
        return 0
    folder = tempfile.mkdtemp(prefix='sltgi')
    bed.end_in_order()
    bed.cleanup()
    try:
        bed.setup()
        image = initramfs(folder, kernel()[1])
        for name, options, queues in CASES[::1 if sys.argv[2:] == ['all'] else 3]:
            bed.case(f'guest over {name}', serve, plugin, image, options, queues)
    finally:
        bed.cleanup()
        shutil.rmtree(folder)
    print(f'{bed.passed} passed, {bed.failed} failed, 0 skipped')
    return bed.failed != 0


if __name__ == '__main__':
    sys.exit(main())
