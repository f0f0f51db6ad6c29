#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Each mistake at the command line is answered by one sentence that names the option, the value and
what would be right, and by exit status 2."""
import os
import shutil
import socket
import subprocess
import tempfile

import apps
from apps import ADDR4, ADDR6

ON = ['--iface', 'wb']
OK = ON + ADDR4

# options, and the parts that the sentence must have
SINK = [
    (['--port', '0', *OK], ['--port', '0', '1 to 65535']),
    (['--port', '65536', *OK], ['--port', '65536', '1 to 65535']),
    (['--port', '99999999999999999999', *OK], ['--port', 'whole number']),
    (['--port', '-1', *OK], ['--port', '-1', 'whole number']),
    (['--port', '9x', *OK], ['--port', '9x', 'whole number']),
    (['--port', '', *OK], ['--port', 'whole number']),
    (['--port'], ['--port', 'needs a value']),
    (['--batch', '0', *OK], ['--batch', '0', '1 to 1024']),
    (['--batch', '1025', *OK], ['--batch', '1025', '1 to 1024']),
    (['--count', '0', *OK], ['--count', '0']),
    (['--count', '1T', *OK], ['--count', '1T', 'whole number']),
    (['--repeat', '0', *OK], ['--repeat', '0']),
    (['--duration', '0', *OK], ['--duration', '0']),
    (['--timeout', '-5', *OK], ['--timeout', '-5']),
    (['--use-bad-ptr', '0', *OK], ['--use-bad-ptr', '0']),
    (['--split=0', *OK], ['--split', '0', '1 to']),
    (['--reuse-port=17', *OK], ['--reuse-port', '17', '1 to 16']),
    (['--rcvbuf', '0', *OK], ['--rcvbuf', '0']),
    (['--addr', '198.18.0.2', *ON], ['--addr', '198.18.0.2/24']),
    (['--addr', '2001:db8::2', *ON], ['--addr', '2001:db8::2/64']),
    (['--addr', '198.18.0.256/24', *ON], ['--addr', '198.18.0.256/24']),
    (['--addr', '198.18.0.2/33', *ON], ['--addr', '198.18.0.2/33']),
    (['--addr', '', *ON], ['--addr']),
    (['--addr', 'localhost/8', *ON], ['--addr', 'localhost/8']),
    (['--addr', '224.0.0.1/24', *ON], ['--addr', '224.0.0.1']),
    (['--addr', '0.0.0.0/0', *ON], ['--addr', '0.0.0.0']),
    (ADDR4 * 2 + ON, ['--addr', '198.18.0.2']),
    (ADDR4 * 9 + ON, ['--addr', '8 at most']),
    (ON, ['--addr', 'missing']),
    (ADDR4, ['--iface', 'missing']),
    (['--iface', 'nope0', *ADDR4], ['--iface', 'nope0', 'ip link']),
    (['--iface', '', *ADDR4], ['--iface', 'ip link']),
    (['--iface', 'a-name-that-is-too-long', *ADDR4], ['--iface', 'a-name-that-is-too-long']),
    (['--iface', 'wb,x=1', *ADDR4], ['--iface', 'wb,x=1']),
    (['--iface', 'lo', *ADDR4], ['--iface', 'lo', 'Ethernet']),
    (['--iface', 'down0', *ADDR4], ['--iface', 'down0', 'ip link set down0 up']),
    (['--gateway', '10.0.0.300', *OK], ['--gateway', '10.0.0.300']),
    (['--gateway', '198.18.0.1/24', *OK], ['--gateway', '198.18.0.1/24', 'without a prefix']),
    (['--ipv6', *OK], ['--ipv6', '--addr']),
    (ON + ADDR6, ['--ipv6', '--addr']),
    (['--connect=198.18.0.1', *OK], ['--connect', '198.18.0.1', 'ADDR:PORT']),
    (['--connect=198.18.0.1:0', *OK], ['--connect', '1 to 65535']),
    (['--connect=198.18.0.1:70000', *OK], ['--connect', '1 to 65535']),
    (['--connect=:9', *OK], ['--connect', 'ADDR:PORT']),
    (['--connect=[2001:db8::1]:9', *OK], ['--connect', '--ipv6']),
    (['--connect', '--reuse-port=2', *OK], ['--connect', '--reuse-port']),
    (['--dontwait', '--waitforone', *OK], ['--dontwait', '--waitforone']),
    (['--dontwait', '--timeout', '5', *OK], ['--dontwait', '--timeout']),
    (['--read', '--dontwait', *OK], ['--dontwait', '--recvmsg']),
    (['--read', '--batch', '8', *OK], ['--batch', '--recvmmsg']),
    (['--recvmsg', '--timeout', '8', *OK], ['--timeout', '--recvmmsg']),
    (['--recvfrom', '--waitforone', *OK], ['--waitforone', '--recvmmsg']),
    (['--read', '--recv-ttl', *OK], ['--recv-ttl', '--recvmsg']),
    (['--burst', '--recv-pktinfo', *OK], ['--recv-pktinfo', '--recvmsg']),
    (['--burst', '--use-bad-ptr', '5', *OK], ['--use-bad-ptr', '--read']),
    (['--busy', *OK], ['--busy', '--split']),
    (['--kernel', '--split'], ['--split', '--kernel']),
    (['--kernel', '--iface', 'wb'], ['--iface', '--kernel']),
    (['--kernel', '--addr', '192.0.2.77/24'], ['--addr', 'address of this host']),
    (['--nonsense', *OK], ['--nonsense', '--help']),
    (['-x', *OK], ['-x', '--help']),
    (['--re', *OK], ['--re', '--help']),
    (['--json=1', *OK], ['--json=1', '--help']),
    ([*OK, 'stray'], ['stray', '--help']),
    (['--no-pci', '--no-huge', '-m', '64', '--', *OK], ['--iface', 'EAL']),
    (['--', *ADDR4], ['--iface', 'missing']),
]

FLOOD = [
    (OK, ['--to', 'missing']),
    (['--to', '198.18.0.1'], ['--addr', '--kernel']),
    (['--to', '198.18.0.1/24', *OK], ['--to', '198.18.0.1/24', 'without a prefix']),
    (['--to', 'x', *OK], ['--to', '"x"']),
    (['--to', '2001:db8::1', *OK], ['--addr', '--to', 'IPv6']),
    (['--to', '198.18.0.1', '--size', '1473', *OK], ['--size', '1473', '1472']),
    (['--kernel', '--to', '198.18.0.1', '--size', '65508'], ['--size', '65508', '65507']),
    (['--kernel', '--to', '198.18.0.1', '--size', '15', '--check'], ['--size', '15', '--check']),
    (['--kernel', '--to', '198.18.0.1', '--flows', '0'], ['--flows', '1 to 1024']),
    (['--kernel', '--to', '198.18.0.1', '--rate', '0'], ['--rate', '0']),
    (['--kernel', '--to', '198.18.0.1', '--port', '0'], ['--port', '1 to 65535']),
    (['--kernel', '--to', '198.18.0.1', '--source-port', '65535', '--flows', '2'],
     ['--source-port', '65535']),
    (['--kernel', '--to', '198.18.0.1', '--first-flow', '65535', '--flows', '2'],
     ['--first-flow', '65535']),
    (['--kernel', '--to', '198.18.0.1', '--addr', '198.18.0.55/24'], ['--addr', 'ip addr']),
    (['--kernel', '--to', '203.0.113.1'], ['--to']),
    (['--kernel', '--to', '198.18.0.1', '--iface', 'nope0'], ['--iface', 'nope0']),
    (['--no-pci', '--', '--kernel', '--to', '198.18.0.1'], ['--kernel', 'EAL']),
    (['--to', '203.0.113.1', *OK], ['--to', '--gateway']),
    (['--to', '198.18.0.99', *OK], ['--to', '198.18.0.99', 'does not answer']),
]


def check(bed, path, options, parts, prefix=()):
    status, out, err = bed.fails(path, *options, prefix=prefix)
    assert status == 2, f'exit status {status}: {out}{err}'
    assert out == '', out
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith(path.rsplit('/', 1)[1] + ': '), err
    for part in parts:
        assert part in lines[0], f'"{part}" is not in: {lines[0]}'


def table(cases, bed, path, rows):
    for options, parts in rows:
        with cases(f'{path.rsplit("/", 1)[1]} {" ".join(options)}'):
            check(bed, path, options, parts)


def case_privilege(cases, bed):
    with cases('a missing privilege'):
        check(bed, bed.sink_path, OK, ['--iface', 'wb', 'CAP_NET_RAW', 'root'],
              ('setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw'))
    # A copy that anybody may execute, wherever the build is.
    folder = tempfile.mkdtemp(prefix='sluice-test')
    os.chmod(folder, 0o755)
    path = shutil.copy(bed.sink_path, folder)
    nobody = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
    with cases('as another user'):
        check(bed, path, OK, ['CAP_NET_RAW', 'setcap'], nobody)
    with cases('as another user with that privilege alone it works'):
        sink = apps.Sink(bed, [*OK, '--json', '--count', '100'],
                         (*nobody, '--inh-caps=+net_raw', '--ambient-caps=+net_raw'), True, path)
        bed.flood('--count', '500')
        assert [r['count'] for r in sink.finish()] == [100] * 5
    shutil.rmtree(folder)


def case_busy_port(cases, bed):
    with cases('a port that another sink has'):
        sink = bed.sink('--recvmsg', '--count', '1')
        check(bed, bed.sink_path, OK, ['--port 9', 'wb', 'in use', '--reuse-port'])
        check(bed, bed.sink_path, [*OK, '--reuse-port'], ['--port 9', 'in use'])
        sink.interrupt()
        sink.finish()
    with cases('a shared port is not for one that does not share'):
        sink = bed.sink('--recvmsg', '--count', '1', '--reuse-port')
        check(bed, bed.sink_path, OK, ['--port 9', 'in use', '--reuse-port'])
        sink.interrupt()
        sink.finish()
    with cases('a port that a program on the kernel has'):
        apps.wire.sh('ip', '-n', bed.b, 'addr', 'add', '198.18.0.2/24', 'dev', 'wb')
        s = bed.socket(bed.b, socket.AF_INET, socket.SOCK_DGRAM, 0)
        s.bind(('0.0.0.0', 9))
        check(bed, bed.sink_path, OK, ['--port 9', '198.18.0.2', 'in use', 'kernel'])
        s.close()
    with cases('an address that the kernel has too: it keeps silent while the sink runs'):
        sink = bed.sink('--recvmsg', '--count', '20')
        sent = bed.flood('--count', '20', '--rate', '1000', '--batch', '1')
        assert sink.row()['count'] == 20 and sent['unreachable'] == 0, sent
        apps.wire.sh('ip', '-n', bed.b, 'addr', 'del', '198.18.0.2/24', 'dev', 'wb')
    with cases('an address that another host on the link has'):
        check(bed, bed.sink_path, [*ON, '--ipv6', '--addr', '2001:db8::1/64'],
              ['--addr', '2001:db8::1', 'in use'])


def case_help(cases, bed):
    for path in (bed.sink_path, bed.flood_path):
        with cases(f'{path.rsplit("/", 1)[1]} --help: every option, status 0'):
            ret = subprocess.run([path, '--help'], capture_output=True, text=True, check=False)
            assert ret.returncode == 0 and ret.stderr == '', ret.stderr
            for option in ('--port', '--addr', '--iface', '--ipv6', '--count', '--duration',
                           '--batch', '--check', '--json', '--gateway'):
                assert option in ret.stdout, option
            assert max(len(line) for line in ret.stdout.splitlines()) <= 100, ret.stdout


def run(cases, bed):
    apps.wire.sh('ip', '-n', bed.b, 'link', 'add', 'down0', 'type', 'veth', 'peer', 'name', 'down1')
    table(cases, bed, bed.sink_path, SINK)
    table(cases, bed, bed.flood_path, FLOOD)
    case_privilege(cases, bed)
    case_busy_port(cases, bed)
    case_help(cases, bed)
    with cases('nothing is left in the file system'):
        assert apps.leftovers() == [], apps.leftovers()


if __name__ == '__main__':
    apps.main(run)
