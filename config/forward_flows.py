# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Frames for compare-forward.py: datagrams of clients to a service, in a capture that testpmd plays."""
import random

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.utils import wrpcap

SERVICE_PORT, BACKEND_PORT, VLAN = 1001, 2000, 7
# In a round of a capture: there are enough frames that the three that answer for the back ends do not show.
FRAMES = 4096
MAC = '02:00:00:00:00:09'


def service(ipv6):
    """Its address, which is that of the port."""
    return '2001:db8::2' if ipv6 else '10.253.0.0'


def prefix(ipv6):
    return 64 if ipv6 else 8


def backends(ipv6):
    return [f'2001:db8::1{i}' if ipv6 else f'10.1.0.{i}' for i in (1, 2, 3)]


def client(k, ipv6):
    """A hundred addresses, and ports of their own."""
    return f'2001:db8::1:{k % 100:x}' if ipv6 else f'10.254.0.{1 + k % 100}'


def datagram(k, ipv6):
    """64 octets without a tag."""
    net = IPv6 if ipv6 else IP
    return (net(src=client(k, ipv6), dst=service(ipv6)) / UDP(sport=1024 + k, dport=SERVICE_PORT) /
            bytes(2 if ipv6 else 22))


def answer(address, ipv6):
    """Says whose MAC address a back end's is, to all who ask at any time."""
    if ipv6:
        return (IPv6(src=address, dst=service(ipv6), hlim=255) / ICMPv6ND_NA(tgt=address, R=0, S=1, O=1) /
                ICMPv6NDOptDstLLAddr(lladdr=MAC))
    return ARP(op='is-at', hwsrc=MAC, psrc=address, pdst=service(ipv6))


def frame(packet, vlan):
    link = Ether(src=MAC, dst='02:00:00:00:00:02')
    return bytes((link / Dot1Q(vlan=VLAN) if vlan else link) / packet)


def write(path, flows, ipv6, vlan):
    """A capture of so many flows, mixed, with as many frames of each."""
    each = [frame(datagram(k, ipv6), vlan) for k in range(flows)]
    mixed = each * (-(-FRAMES // flows))
    random.Random(1).shuffle(mixed)
    wrpcap(path, [frame(answer(b, ipv6), vlan) for b in backends(ipv6)] + mixed, linktype=1)
