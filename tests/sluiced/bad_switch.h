/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BAD_SWITCH_H
#define BAD_SWITCH_H

#include "bad_files.h"

/* Bad files about bridges, in the manner of bad_files.h. Two ports without addresses, of 2 lines
 * each, on lines 3 to 6. */
#define R "[service m]\nkind = mirror\nudp-port = 9\n"
#define M "[port a]\ndevargs = net_tpacket0,iface=va\n[port b]\ndevargs = net_tpacket1,iface=vb\n"

static const struct bad_file bad_switch[] = {
	{"port without an address", G "[port wan]\ndevargs = net_tpacket0,iface=v1\n",
		"t.conf:3: [port wan]: lacks address; add \"address = 198.18.0.2/24\", for "
		"instance.\n"},
	{"bridge without ports", G P "[bridge b0]\nage = 3\n",
		"t.conf:6: [bridge b0]: lacks ports; add \"ports = lan1 lan2\", for instance.\n"},
	{"bridge of one port",
		G "[port a]\ndevargs = net_tpacket0,iface=va\n[bridge b0]\nports = a\n",
		"t.conf:6: [bridge b0] ports = a: a bridge is between two ports at least; name "
		"another.\n"},
	{"bridge with a port that is not there", G M "[bridge b0]\nports = a, b, c\n",
		"t.conf:8: [bridge b0] ports: there is no [port c]; name one that there is.\n"},
	{"bridge with a port twice", G M "[bridge b0]\nports = a b a\n",
		"t.conf:8: [bridge b0] ports: names \"a\" twice; once is enough.\n"},
	{"port in two bridges",
		G M "[port c]\ndevargs = net_tpacket2,iface=vc\n[bridge b0]\nports = a b\n"
		    "[bridge b1]\nports = c b\n",
		"t.conf:12: [bridge b1] ports: [port b] is in [bridge b0] already; give it to "
		"one.\n"},
	{"member with an address", G M "address = 198.18.0.2/24\n[bridge b0]\nports = a b\n",
		"t.conf:7: [port b] address: the port is in [bridge b0] and has none of its own; "
		"leave it out.\n"},
	{"member with a gateway", G M "gateway = 198.18.0.1\n[bridge b0]\nports = a b\n",
		"t.conf:7: [port b] gateway: the port is in [bridge b0] and has no address; leave "
		"it out.\n"},
	{"member in a VLAN", G M "vlan = 7\n[bridge b0]\nports = a b\n",
		"t.conf:5: [port b] vlan: the port is in [bridge b0], which passes all tags on; "
		"leave it out.\n"},
	{"member with fewer queues than lcores",
		"[sluiced]\nlcores = 1,2\n" M
		"lcores = 1,2\nqueues = 1\n[bridge b0]\nports = a b\n",
		"t.conf:7: [port b] lcores: 2 lcores for 1 receive queues; name no more lcores "
		"than \"queues\" has.\n"},
	{"service on a member", G M "[bridge b0]\nports = a b\n" S "port = a\n",
		"t.conf:12: [service echo] port = a: is in [bridge b0] and has no address; name "
		"another.\n"},
	{"too few entries of a bridge", G M "[bridge b0]\nports = a b\nentries = 15\n",
		"t.conf:9: [bridge b0] entries = 15: is out of range; write one of 16 to 65536.\n"},
	{"share of a port above the table",
		G M "[bridge b0]\nports = a b\nentries = 64\nport-entries = 65\n",
		"t.conf:10: [bridge b0] port-entries = 65: is more than \"entries\", which are "
		"64.\n"},
	{"share of a port of none", G M "[bridge b0]\nports = a b\nport-entries = 0\n",
		"t.conf:9: [bridge b0] port-entries = 0: is out of range; write one of 1 to "
		"65536.\n"},
	{"age of a bridge", G M "[bridge b0]\nports = a b\nage = never\n",
		"t.conf:9: [bridge b0] age = never: is no whole number; write one of 1 to "
		"1000000.\n"},
	{"unknown key of a bridge", G M "[bridge b0]\nports = a b\nstp = yes\n",
		"t.conf:9: [bridge b0] stp: no such key here; there are ports, entries, "
		"port-entries and age.\n"},
	{"mirror to nowhere", G P R,
		"t.conf:6: [service m]: lacks file or interface; add \"file = "
		"/var/tmp/mirror.pcapng\", for instance.\n"},
	{"mirror to two places", G P R "file = /m\ninterface = eth9\n",
		"t.conf:10: [service m] interface: line 9 has a file already; keep one of "
		"them.\n"},
	{"mirror to a relative path", G P R "file = m.pcapng\n",
		"t.conf:9: [service m] file = m.pcapng: is no whole path; begin it with \"/\".\n"},
	{"mirror to a small file", G P R "file = /m\nfile-size = 10k\n",
		"t.conf:10: [service m] file-size = 10k: is out of range; write one of 65536 to "
		"1000000000000.\n"},
	{"mirror to no files", G P R "file = /m\nfiles = 0\n",
		"t.conf:10: [service m] files = 0: is out of range; write one of 1 to 100.\n"},
	{"size of an interface", G P R "interface = eth9\nfiles = 2\n",
		"t.conf:10: [service m] file-size and files: are for a \"file\"; leave them "
		"out.\n"},
	{"mirror to no interface", G P R "interface = a/b\n",
		"t.conf:9: [service m] interface = a/b: is no name of an interface; write eth1, "
		"for instance.\n"},
	{"mirror to a port", G P R "interface = v1\n",
		"t.conf:9: [service m] interface = v1: is that of [port wan]; name another.\n"},
	{"two mirrors to a file",
		G P R "file = /m\n[service n]\nkind = mirror\nudp-port = 10\nfile = /m\n",
		"t.conf:13: [service n] file = /m: [service m] writes there already; choose "
		"another.\n"},
	{"file of an echo", G P S "file = /m\nfiles = 3\nfile-size = 1M\ninterface = eth9\n",
		"t.conf:9: [service echo] file: is for kind = mirror alone; leave it out.\n"
		"t.conf:10: [service echo] files: is for kind = mirror alone; leave it out.\n"
		"t.conf:11: [service echo] file-size: is for kind = mirror alone; leave it out.\n"
		"t.conf:12: [service echo] interface: is for kind = mirror alone; leave it "
		"out.\n"},
};

#endif
