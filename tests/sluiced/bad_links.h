/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BAD_LINKS_H
#define BAD_LINKS_H

/* As bad_files.h, for exception paths, VLANs, frontends, rings and routes. T is a [tapvu], R a
 * [pktring], V a [vlan] section, of 3, 3 and 4 lines. */
#include "bad_files.h"

#define T "[tapvu vm]\npath = /run/vm\naddress = 198.18.1.1/24\n"
#define R "[pktring ring]\npath = /run/ring\naddress = 198.18.2.1/24\n"
#define V "[vlan lab]\nport = wan\nvlan = 7\naddress = 198.18.7.2/24\n"

static const struct bad_file bad_links[] = {
	{"tap without a good name", G P "exception = a/b\n",
		"t.conf:6: [port wan] exception = a/b: is no name of an interface; it has 1 to 15 "
		"letters, digits, \"-\", \"_\" or \".\".\n"},
	{"tap with a long name", G P "exception = sixteenletters16\n",
		"t.conf:6: [port wan] exception = sixteenletters16: is no name of an interface; it "
		"has "
		"1 to 15 letters, digits, \"-\", \"_\" or \".\".\n"},
	{"tap named as the port's interface", G P "exception = v1\n",
		"t.conf:6: [port wan] exception = v1: is the interface of [port wan]; choose a "
		"name "
		"that no interface has.\n"},
	{"tap twice", G P "exception = k0\n" V "exception = k0\n",
		"t.conf:11: [vlan lab] exception = k0: [port wan] has it already; choose another "
		"name.\n"},
	{"VLAN lacks all", G P "[vlan lab]\n",
		"t.conf:6: [vlan lab]: lacks port; add \"port = wan\", for instance.\n"
		"t.conf:6: [vlan lab]: lacks vlan; add \"vlan = 100\", for instance.\n"
		"t.conf:6: [vlan lab]: lacks address; add \"address = 198.18.100.2/24\", for "
		"instance.\n"},
	{"VLAN of no port", G P "[vlan lab]\nport = lan\nvlan = 7\naddress = 198.18.7.2/24\n",
		"t.conf:7: [vlan lab] port = lan: there is no such port; write the NAME of a [port "
		"NAME].\n"},
	{"VLAN of a VLAN", G P V "[vlan more]\nport = lab\nvlan = 8\naddress = 198.18.8.2/24\n",
		"t.conf:11: [vlan more] port = lab: there is no such port; write the NAME of a "
		"[port "
		"NAME].\n"},
	{"VLAN of a port with a bad name",
		G P "[vlan lab]\nport = a b\nvlan = 7\naddress = 198.18.7.2/24\n",
		"t.conf:7: [vlan lab] port = a b: is no name of a port; write the NAME of a [port "
		"NAME].\n"},
	{"VLAN of the port itself", G P "vlan = 7\n" V,
		"t.conf:9: [vlan lab] vlan = 7: [port wan] on line 3 is in it already; choose "
		"another.\n"},
	{"VLAN twice", G P V "[vlan more]\nport = wan\nvlan = 7\naddress = 198.18.8.2/24\n",
		"t.conf:12: [vlan more] vlan = 7: [vlan lab] on line 6 is that of the port "
		"already; "
		"choose another.\n"},
	{"VLAN out of range", G P "[vlan lab]\nport = wan\nvlan = 4095\naddress = 198.18.7.2/24\n",
		"t.conf:8: [vlan lab] vlan = 4095: is out of range; write one of 1 to 4094.\n"},
	{"VLAN in a network of its port",
		G P "[vlan lab]\nport = wan\nvlan = 7\naddress = 198.18.0.3/24\n",
		"t.conf:9: [vlan lab] address: 198.18.0.3 is in a network of [port wan]; give each "
		"port networks of its own.\n"},
	{"VLAN with a gateway elsewhere", G P V "gateway = 198.18.0.1\n",
		"t.conf:10: [vlan lab] gateway = 198.18.0.1: is in none of the networks of "
		"\"address\"; name a router on the link.\n"},
	{"VLAN and port of one name",
		G P "[vlan wan]\nport = wan\nvlan = 7\naddress = 198.18.7.2/24\n",
		"t.conf:6: [vlan wan]: [port wan] on line 3 has this name already; choose "
		"another.\n"},
	{"frontend and port of one name",
		G P "[tapvu wan]\npath = /run/vm\naddress = 198.18.1.1/24\n",
		"t.conf:6: [tapvu wan]: [port wan] on line 3 has this name already; choose "
		"another.\n"},
	{"frontend lacks all", G P "[tapvu vm]\n",
		"t.conf:6: [tapvu vm]: lacks path; add \"path = /run/sluiced/guest.sock\", for "
		"instance.\n"
		"t.conf:6: [tapvu vm]: lacks address; add \"address = 198.18.0.2/24\", for "
		"instance.\n"},
	{"frontend with devargs", G P T "devargs = net_tapvu0\n",
		"t.conf:9: [tapvu vm] devargs: no such key here; there are path, address, gateway, "
		"mac, "
		"client, pairs, frag, lcores, queues, mtu, vlan, promiscuous and exception.\n"},
	{"relative path", G P "[tapvu vm]\npath = vm\naddress = 198.18.1.1/24\n",
		"t.conf:7: [tapvu vm] path = vm: is no whole path; begin it with \"/\".\n"},
	{"path with a comma", G P "[tapvu vm]\npath = /run/a,b\naddress = 198.18.1.1/24\n",
		"t.conf:7: [tapvu vm] path = /run/a,b: has a blank, a comma or \"=\" in it; choose "
		"another.\n"},
	{"path too long",
		G P
		"[pktring r]\npath = "
		"/123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"23456789012345678901234567\naddress = 198.18.1.1/24\n",
		"t.conf:7: [pktring r] path = "
		"/123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"23"
		"456789012345678901234567: is longer than the path of a socket can be; 107 at "
		"most.\n"},
	{"path twice", G P T "[pktring ring]\npath = /run/vm\naddress = 198.18.2.1/24\n",
		"t.conf:10: [pktring ring] path = /run/vm: [tapvu vm] has it already; choose "
		"another.\n"},
	{"client is neither", G P T "client = maybe\n",
		"t.conf:9: [tapvu vm] client = maybe: is not known; write yes or no.\n"},
	{"VLAN of a port in a bridge",
		G P "[port a]\ndevargs = net_tpacket1,iface=v2\nexception = k0\n"
		    "[port b]\ndevargs = net_tpacket2,iface=v3\n[bridge br]\nports = a b\n"
		    "[vlan lab]\nport = a\nvlan = 7\naddress = 198.18.7.2/24\n",
		"t.conf:8: [port a] exception: the port is in [bridge br] and has no address; "
		"leave it "
		"out.\n"
		"t.conf:14: [vlan lab] port = a: is in a bridge, which passes all tags on; name "
		"another.\n"},
	{"MAC address of a group", G P R "mac = 01:00:5e:00:00:01\n",
		"t.conf:9: [pktring ring] mac = 01:00:5e:00:00:01: is no MAC address of a host; "
		"write "
		"02:00:00:00:00:01, for instance.\n"},
	{"too many pairs", G P T "pairs = 33\n",
		"t.conf:9: [tapvu vm] pairs = 33: is out of range; write one of 1 to 32.\n"},
	{"unknown way to cut", G P T "frag = knife\n",
		"t.conf:9: [tapvu vm] frag = knife: is not known; write lock, lcore or page.\n"},
	{"lend is neither", G P R "lend = 2\n",
		"t.conf:9: [pktring ring] lend = 2: is not known; write yes or no.\n"},
	{"frontend with a foreign lcore", G P T "lcores = 9\n",
		"t.conf:9: [tapvu vm] lcores: 9 is not among the lcores of [sluiced]; add it "
		"there, or "
		"name another.\n"},
	{"route lacks the prefix", G P "[route r]\nvia = 198.18.0.1\n",
		"t.conf:6: [route r]: lacks prefix; add \"prefix = 198.51.100.0/24\", for "
		"instance.\n"},
	{"route to an address", G P "[route r]\nprefix = 198.51.100.1\nvia = 198.18.0.1\n",
		"t.conf:7: [route r] prefix = 198.51.100.1: is no network; write 198.51.100.0/24, "
		"2001:db8:1::/48 or 0.0.0.0/0.\n"},
	{"route with host bits", G P "[route r]\nprefix = 198.51.100.1/24\nvia = 198.18.0.1\n",
		"t.conf:7: [route r] prefix = 198.51.100.1/24: has bits behind the prefix length; "
		"write "
		"198.51.100.0/24.\n"},
	{"route to groups", G P "[route r]\nprefix = 224.0.0.0/4\nvia = 198.18.0.1\n",
		"t.conf:7: [route r] prefix = 224.0.0.0/4: is a network of groups; name one of "
		"hosts.\n"},
	{"next hop that is no address",
		G P "[route r]\nprefix = 198.51.100.0/24\nvia = 198.18.0.1/24\n",
		"t.conf:8: [route r] via = 198.18.0.1/24: is no address; write 198.18.0.1 or "
		"2001:db8::1.\n"},
	{"next hop that no host has", G P "[route r]\nprefix = 198.51.100.0/24\nvia = 224.0.0.1\n",
		"t.conf:8: [route r] via = 224.0.0.1: is the address of a group; name a router on "
		"the "
		"link.\n"},
	{"next hop of another family",
		G P "[route r]\nprefix = 2001:db8:9::/48\nvia = 198.18.0.1\n",
		"t.conf:8: [route r] via = 198.18.0.1: is of another family than the prefix; name "
		"a "
		"router of that.\n"},
	{"next hop that is ours", G P "[route r]\nprefix = 198.51.100.0/24\nvia = 198.18.0.2\n",
		"t.conf:8: [route r] via = 198.18.0.2: is an address of ours; name a router.\n"},
	{"next hop that is nowhere", G P "[route r]\nprefix = 198.51.100.0/24\nvia = 203.0.113.1\n",
		"t.conf:8: [route r] via = 203.0.113.1: is in no network of a port; name a router "
		"on a "
		"link.\n"},
	{"next hop that is everybody on the link",
		G P "[route r]\nprefix = 198.51.100.0/24\nvia = 198.18.0.255\n",
		"t.conf:8: [route r] via = 198.18.0.255: is the broadcast address of its network; "
		"name a router.\n"},
	{"next hop on another port",
		G P V "[route r]\nprefix = 198.51.100.0/24\nvia = 198.18.0.1\nport = lab\n",
		"t.conf:12: [route r] via = 198.18.0.1: is in none of the networks of [port lab]; "
		"name "
		"a router on its link.\n"},
	{"link-local next hop without a port",
		G P "[route r]\nprefix = 2001:db8:9::/48\nvia = fe80::1\n",
		"t.conf:8: [route r] via = fe80::1: is in no network of a port; name a router on a "
		"link, and its \"port\".\n"},
	{"route by no port", G P "[route r]\nprefix = 198.51.100.0/24\nport = lan\n",
		"t.conf:8: [route r] port = lan: there is no [port lan]; name one that there "
		"is.\n"},
	{"route by a port with a bad name", G P "[route r]\nprefix = 198.51.100.0/24\nport = a b\n",
		"t.conf:8: [route r] port = a b: is no name of a port; write the NAME of a [port "
		"NAME].\n"},
	{"route by nothing", G P "[route r]\nprefix = 198.51.100.0/24\n",
		"t.conf:6: [route r]: has neither \"via\" nor \"port\"; add the router, or the "
		"port to "
		"whose link the network belongs.\n"},
	{"bad metric", G P "[route r]\nprefix = 198.51.100.0/24\nport = wan\nmetric = -1\n",
		"t.conf:9: [route r] metric = -1: is no whole number; write one of 0 to "
		"4294967295.\n"},
	{"route twice",
		G P "[route r]\nprefix = 198.51.100.0/24\nport = wan\n"
		    "[route s]\nprefix = 198.51.100.0/24\nvia = 198.18.0.9\n",
		"t.conf:9: [route s]: [route r] on line 6 has the same prefix and metric; give one "
		"another \"metric\".\n"},
	{"service by no port or VLAN", G P V S "port = lan\n",
		"t.conf:13: [service echo] port = lan: there is no [port lan]; name one that there "
		"is.\n"},
	{"service with an address of another", G P V S "port = wan\naddress = 198.18.7.2\n",
		"t.conf:14: [service echo] address = 198.18.7.2: belongs to [vlan lab], not to "
		"[port "
		"wan]; leave \"port\" out.\n"},
};

#endif
