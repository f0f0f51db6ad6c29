/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BAD_FILES_H
#define BAD_FILES_H

/* Configuration files with a mistake, one a rule, and all that is said about each. G, P and S are a
 * [sluiced], a [port] and a [service] section without mistakes, of 2, 3 and 3 lines. */
#define SECTIONS                                                                                   \
	"[sluiced], [metrics], [port NAME], [vlan NAME], [tapvu NAME], [pktring NAME], [route NAME], "  \
	"[service NAME], [backend NAME] and [bridge NAME]"
#define G "[sluiced]\nlcores = 1\n"
#define P "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/24\n"
#define S "[service echo]\nkind = echo\nudp-port = 7\n"
/* Two back ends and a load balancer without mistakes, of 3, 3 and 5 lines. */
#define B                                                                                          \
	"[backend b1]\naddress = 198.18.0.11\nudp-port = 53\n"                                     \
	"[backend b2]\naddress = 198.18.0.12\nudp-port = 53\n"
#define L "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends = b1 b2\n"

#define NO_PLACE                                                                                   \
	"is no place to listen; write 127.0.0.1:9111, [::1]:9111 or unix:/run/sluiced-metrics.\n"
#define FIFTY "0123456789012345678901234567890123456789012345678"
#define LONG_PATH FIFTY "/" FIFTY "/"

static const struct bad_file {
	const char *name;
	const char *text;
	const char *said;
} bad_files[] = {
	{"no bracket",
		G P "[service echo\nkind = echo\nudp-port = 7\n",
		"t.conf:6: [service echo: lacks the \"]\" at its end.\n"},
	{"text behind a bracket",
		G P "[service echo] kind = echo\nkind = echo\nudp-port = 7\n",
		"t.conf:6: [service echo]: \"kind = echo\" follows the \"]\"; a key is on a "
		"line of its own.\n"},
	{"empty name of a section",
		G "[]\n" P,
		"t.conf:3: []: a section has a name; [sluiced], for instance.\n"},
	{"no equals sign",
		G "hugepages\n" P,
		"t.conf:3: \"hugepages\" is neither [SECTION] nor KEY = VALUE; comments begin "
		"with #.\n"},
	{"another comment character",
		"; a comment\n" G P,
		"t.conf:1: \"; a comment\" is neither [SECTION] nor KEY = VALUE; comments "
		"begin with #.\n"},
	{"no key",
		G "= 3\n" P,
		"t.conf:3: = 3: lacks the key before the \"=\".\n"},
	{"no value",
		G "memory =\n" P,
		"t.conf:3: memory: has no value; give it one, or leave the line out.\n"},
	{"value is a comment",
		G "memory = # 256\n" P,
		"t.conf:3: memory: has no value; give it one, or leave the line out.\n"},
	{"key before a section",
		"lcores = 1\n" P,
		"t.conf: lacks the section [sluiced]; add it, with \"lcores = 1\".\n"
		"t.conf:1: lcores: stands before the first section; begin with [sluiced].\n"},
	{"backslash",
		G "driver = /a\\b\n" P,
		"t.conf:3: a backslash begins \\xNN, an octet, and nothing else; leave it out.\n"},
	{"control byte",
		G "memory = 25\001\n" P,
		"t.conf:3: the byte 0x01 is no text outside of comments; leave it out.\n"},
	{"byte above ASCII",
		G "name = caf\351\n" P,
		"t.conf:3: the byte 0xe9 is no text outside of comments; leave it out.\n"},
	{"unknown section",
		G P "[switch s0]\nports = wan\n",
		"t.conf:6: [switch s0]: no such section here; there are " SECTIONS ".\n"},
	{"section of a later version",
		G P "[route]\ndefault = 198.18.0.1\n",
		"t.conf:6: [route]: no such section here; there are " SECTIONS ".\n"},
	{"section twice",
		G P G,
		"t.conf:6: [sluiced]: line 1 has this section already; keep one.\n"},
	{"port twice",
		G P P,
		"t.conf:6: [port wan]: line 3 has this section already; keep one.\n"},
	{"service twice",
		G P S "[service\techo]\nkind = sink\nudp-port = 9\n",
		"t.conf:9: [service\techo]: line 6 has this section already; keep one.\n"},
	{"port without a name",
		G "[port ]\n" P,
		"t.conf:3: [port]: no such section here; there are " SECTIONS ".\n"},
	{"section port alone",
		G P "[port]\naddress = 198.18.1.2/24\n",
		"t.conf:6: [port]: no such section here; there are " SECTIONS ".\n"},
	{"bad name of a port",
		G "[port a b]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/24\n",
		"t.conf:3: [port a b]: \"a b\" is no name; it has 1 to 31 letters, digits, "
		"\"-\", \"_\" or \".\".\n"},
	{"long name of a service",
		G P "[service eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee]\nkind = echo\nudp-port = 7\n",
		"t.conf:6: [service eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee]: "
		"\"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\" is no name; it has 1 to 31 letters, "
		"digits, \"-\", \"_\" or \".\".\n"},
	{"no section sluiced",
		P S,
		"t.conf: lacks the section [sluiced]; add it, with \"lcores = 1\".\n"},
	{"no port",
		G S,
		"t.conf: names no port; add a section [port NAME].\n"},
	{"empty file",
		"",
		"t.conf: lacks the section [sluiced]; add it, with \"lcores = 1\".\n"},
	{"unknown key",
		G "core = 1\n" P,
		"t.conf:3: [sluiced] core: no such key here; there are name, lcores, memory, "
		"hugepages, log, idle, driver and secondary.\n"},
	{"unknown key of a port",
		G P "ip = 198.18.0.3\n",
		"t.conf:6: [port wan] ip: no such key here; there are devargs, address, "
		"gateway, lcores, queues, ring, mtu, vlan, promiscuous and exception.\n"},
	{"unknown key of a service",
		G P S "backend = 198.18.0.9\n",
		"t.conf:9: [service echo] backend: no such key here; there are kind, udp-port, "
		"address, port, rcvbuf, sequence, format, backends, affinity, drain, source, slots, "
		"seed, flows, flow-timeout, new-flows, check, check-interval, check-timeout, "
		"check-rise, check-fall, check-send, check-expect, file, file-size, files and "
		"interface.\n"},
	{"key twice",
		G "lcores = 0\n" P,
		"t.conf:3: [sluiced] lcores = 0: line 2 has this key already; keep one of "
		"them.\n"},
	{"lcores missing",
		"[sluiced]\nmemory = 256\n" P,
		"t.conf:1: [sluiced]: lacks lcores; add \"lcores = 1\", for instance.\n"},
	{"devargs missing",
		G "[port wan]\naddress = 198.18.0.2/24\n",
		"t.conf:3: [port wan]: lacks devargs; add \"devargs = "
		"net_tpacket0,iface=eth1\", for instance.\n"},
	{"address missing",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\n",
		"t.conf:3: [port wan]: lacks address; add \"address = 198.18.0.2/24\", for "
		"instance.\n"},
	{"kind missing",
		G P "[service echo]\nudp-port = 7\n",
		"t.conf:6: [service echo]: lacks kind; add \"kind = echo\", for instance.\n"},
	{"udp-port missing",
		G P "[service echo]\nkind = echo\n",
		"t.conf:6: [service echo]: lacks udp-port; add \"udp-port = 7\", for "
		"instance.\n"},
	{"name with a slash",
		G "name = a/b\n" P,
		"t.conf:3: [sluiced] name = a/b: is no name; it has 1 to 31 letters, digits, "
		"\"-\", \"_\" or \".\".\n"},
	{"lcores: no number",
		"[sluiced]\nlcores = one\n" P,
		"t.conf:2: [sluiced] lcores = one: \"one\" names no processor; write \"1\" or "
		"\"1-3,5\".\n"},
	{"lcores: range backwards",
		"[sluiced]\nlcores = 3-1\n" P,
		"t.conf:2: [sluiced] lcores = 3-1: \"3-1\" names no processor; write \"1\" or "
		"\"1-3,5\".\n"},
	{"lcores: too high",
		"[sluiced]\nlcores = 1024\n" P,
		"t.conf:2: [sluiced] lcores = 1024: \"1024\" names no processor; write \"1\" "
		"or \"1-3,5\".\n"},
	{"lcores: twice",
		"[sluiced]\nlcores = 1,1\n" P,
		"t.conf:2: [sluiced] lcores = 1,1: names processor 1 twice; once is enough.\n"},
	{"lcores: too many",
		"[sluiced]\nlcores = 0-64\n" P,
		"t.conf:2: [sluiced] lcores = 0-64: names more than 64 processors; leave some "
		"out.\n"},
	{"lcores: several without work",
		"[sluiced]\nlcores = 1-4\n" P "queues = 2\n",
		"t.conf:2: [sluiced] lcores: no port has a receive queue for 3,4; leave out "
		"what has no work, or raise \"queues\".\n"},
	{"lcores: one without work",
		"[sluiced]\nlcores = 1,2\n" P "queues = 1\n",
		"t.conf:2: [sluiced] lcores: no port has a receive queue for 2; leave out what "
		"has no work, or raise \"queues\".\n"},
	{"memory: no number",
		G "memory = 256MB\n" P,
		"t.conf:3: [sluiced] memory = 256MB: is no whole number; write one of 64 to "
		"65536.\n"},
	{"memory: too little",
		G "memory = 63\n" P,
		"t.conf:3: [sluiced] memory = 63: is out of range; write one of 64 to 65536.\n"},
	{"memory: too much",
		G "memory = 65537\n" P,
		"t.conf:3: [sluiced] memory = 65537: is out of range; write one of 64 to "
		"65536.\n"},
	{"memory: less than rings need",
		G "memory = 64\n" P,
		"t.conf:3: [sluiced] memory = 64: is too little for 26688 packets; 109 at "
		"least, or smaller \"ring\", \"queues\", \"rcvbuf\" or \"flows\".\n"},
	{"hugepages",
		G "hugepages = maybe\n" P,
		"t.conf:3: [sluiced] hugepages = maybe: is not known; write yes, no or auto.\n"},
	{"log",
		G "log = loud\n" P,
		"t.conf:3: [sluiced] log = loud: is not known; write error, warning, notice, "
		"info or debug.\n"},
	{"idle",
		G "idle = sleep\n" P,
		"t.conf:3: [sluiced] idle = sleep: is not known; write poll, backoff, interrupt or "
		"monitor.\n"},
	{"driver: no whole path",
		G "driver = librte_net_x.so\n" P,
		"t.conf:3: [sluiced] driver = librte_net_x.so: \"librte_net_x.so\" is no whole "
		"path; begin it with \"/\".\n"},
	{"driver: too many",
		G "driver = /d0 /d1 /d2 /d3 /d4 /d5 /d6 /d7 /d8\n" P,
		"t.conf:3: [sluiced] driver = /d0 /d1 /d2 /d3 /d4 /d5 /d6 /d7 /d8: names more "
		"than 8 plugins; leave some out.\n"},
	{"devargs: blank",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1, qpairs=2\naddress = "
		"198.18.0.2/24\n",
		"t.conf:4: [port wan] devargs = net_tpacket0,iface=v1, qpairs=2: has a blank "
		"in it; write NAME,KEY=VALUE,... without.\n"},
	{"devargs: no device",
		G "[port wan]\ndevargs = eth1\naddress = 198.18.0.2/24\n",
		"t.conf:4: [port wan] devargs = eth1: names no device; write "
		"net_tpacket0,iface=eth1 or a bus address such as 0000:03:00.0.\n"},
	{"devargs: no interface",
		G "[port wan]\ndevargs = net_tpacket0\naddress = 198.18.0.2/24\n",
		"t.conf:4: [port wan] devargs = net_tpacket0: lacks the interface; add "
		"\",iface=eth1\", for instance.\n"},
	{"devargs: empty interface",
		G
		"[port wan]\ndevargs = net_tpacket0,iface=,qpairs=1\naddress = 198.18.0.2/24\n",
		"t.conf:4: [port wan] devargs = net_tpacket0,iface=,qpairs=1: lacks the "
		"interface; add \",iface=eth1\", for instance.\n"},
	{"queues",
		G P "queues = 0\n",
		"t.conf:6: [port wan] queues = 0: is out of range; write one of 1 to 16.\n"},
	{"queues: too many",
		G P "queues = 17\n",
		"t.conf:6: [port wan] queues = 17: is out of range; write one of 1 to 16.\n"},
	{"ring: too small",
		G P "ring = 63\n",
		"t.conf:6: [port wan] ring = 63: is out of range; write one of 64 to 32768.\n"},
	{"ring: no number",
		G P "ring = big\n",
		"t.conf:6: [port wan] ring = big: is no whole number; write one of 64 to "
		"32768.\n"},
	{"port lcores: not a worker",
		G P "lcores = 2\n",
		"t.conf:2: [sluiced] lcores: no port has a receive queue for 1; leave out what "
		"has no work, or raise \"queues\".\n"
		"t.conf:6: [port wan] lcores: 2 is not among the lcores of [sluiced]; add it "
		"there, or name another.\n"},
	{"port lcores: more than queues",
		"[sluiced]\nlcores = 1-3\n" P "lcores = 1-3\nqueues = 2\n",
		"t.conf:6: [port wan] lcores: 3 lcores for 2 receive queues; name no more "
		"lcores than \"queues\" has, or spread flows in software by \"queues = 1\".\n"},
	{"port lcores: no number",
		G P "lcores = x\n",
		"t.conf:6: [port wan] lcores = x: \"x\" names no processor; write \"1\" or "
		"\"1-3,5\".\n"},
	{"address: none",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = eth1\n",
		"t.conf:5: [port wan] address = eth1: \"eth1\" is no address; write "
		"198.18.0.2/24 or 2001:db8::2/64.\n"},
	{"address: no prefix length",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2\n",
		"t.conf:5: [port wan] address = 198.18.0.2: \"198.18.0.2\" lacks the prefix "
		"length; write 198.18.0.2/24, for instance.\n"},
	{"address: no prefix length, IPv6",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 2001:db8::2\n",
		"t.conf:5: [port wan] address = 2001:db8::2: \"2001:db8::2\" lacks the prefix "
		"length; write 2001:db8::2/64, for instance.\n"},
	{"address: prefix length",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/33\n",
		"t.conf:5: [port wan] address = 198.18.0.2/33: \"198.18.0.2/33\" is no "
		"address; write 198.18.0.2/24 or 2001:db8::2/64.\n"},
	{"address: group",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 224.0.0.1/24\n",
		"t.conf:5: [port wan] address = 224.0.0.1/24: \"224.0.0.1/24\" is the address "
		"of a group; give the port one of its own.\n"},
	{"address: group, IPv6",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = ff02::1/64\n",
		"t.conf:5: [port wan] address = ff02::1/64: \"ff02::1/64\" is the address of a "
		"group; give the port one of its own.\n"},
	{"address: loopback",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 127.0.0.1/8\n",
		"t.conf:5: [port wan] address = 127.0.0.1/8: \"127.0.0.1/8\" is a loopback "
		"address; give the port one of its own.\n"},
	{"address: loopback, IPv6",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = ::1/128\n",
		"t.conf:5: [port wan] address = ::1/128: \"::1/128\" is a loopback address; "
		"give the port one of its own.\n"},
	{"address: unspecified",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 0.0.0.0/24\n",
		"t.conf:5: [port wan] address = 0.0.0.0/24: \"0.0.0.0/24\" is no address of a "
		"host; give the port one of its own.\n"},
	{"address: broadcast",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.255/24\n",
		"t.conf:5: [port wan] address = 198.18.0.255/24: \"198.18.0.255/24\" is a "
		"broadcast address; give the port one of its own.\n"},
	{"address: network",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.0/24\n",
		"t.conf:5: [port wan] address = 198.18.0.0/24: \"198.18.0.0/24\" is the "
		"address of the network itself; give the port one of its own.\n"},
	{"address: twice",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/24, "
		"198.18.0.2/24\n",
		"t.conf:5: [port wan] address = 198.18.0.2/24, 198.18.0.2/24: names "
		"\"198.18.0.2/24\" twice; once is enough.\n"},
	{"address: too many",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/24 "
		"198.18.0.3/24 198.18.0.4/24 198.18.0.5/24 198.18.0.6/24 198.18.0.7/24 "
		"198.18.0.8/24 198.18.0.9/24 198.18.0.10/24\n",
		"t.conf:5: [port wan] address = 198.18.0.2/24 198.18.0.3/24 198.18.0.4/24 "
		"198.18.0.5/24 198.18.0.6/24 198.18.0.7/24 198.18.0.8/24 198.18.0.9/24 "
		"198.18.0.10/24: \"198.18.0.10/24\" is one too many; 8 at most.\n"},
	{"address: network of another port",
		G P "[port lan]\ndevargs = net_tpacket1,iface=v2\naddress = 198.18.0.3/24\n",
		"t.conf:8: [port lan] address: 198.18.0.3 is in a network of [port wan]; give "
		"each port networks of its own.\n"},
	{"device of another port",
		G P "[port lan]\ndevargs = net_tpacket0,iface=v2\naddress = 198.19.0.2/24\n",
		"t.conf:7: [port lan] devargs: [port wan] has the device net_tpacket0 already; "
		"number them, as in net_tpacket0 and net_tpacket1.\n"},
	{"interface of another port",
		G P "[port lan]\ndevargs = net_tpacket1,iface=v1\naddress = 198.19.0.2/24\n",
		"t.conf:7: [port lan] devargs: [port wan] has the interface v1 already; give "
		"it to one.\n"},
	{"gateway: none",
		G P "gateway = router\n",
		"t.conf:6: [port wan] gateway = router: \"router\" is no address; write "
		"198.18.0.1 or 2001:db8::1.\n"},
	{"gateway: prefix length",
		G P "gateway = 198.18.0.1/24\n",
		"t.conf:6: [port wan] gateway = 198.18.0.1/24: \"198.18.0.1/24\" is no "
		"address; write 198.18.0.1 or 2001:db8::1.\n"},
	{"gateway: not on the link",
		G P "gateway = 198.19.0.1\n",
		"t.conf:6: [port wan] gateway = 198.19.0.1: is in none of the networks of "
		"\"address\"; name a router on the link.\n"},
	{"gateway: own address",
		G P "gateway = 198.18.0.2\n",
		"t.conf:6: [port wan] gateway = 198.18.0.2: is the port's own address; name a "
		"router.\n"},
	{"gateway: everybody on the link",
		G P "gateway = 198.18.0.255\n",
		"t.conf:6: [port wan] gateway = 198.18.0.255: is the broadcast address of its "
		"network; name a router.\n"},
	{"gateway: two",
		G P "gateway = 198.18.0.1 198.18.0.3\n",
		"t.conf:6: [port wan] gateway = 198.18.0.1 198.18.0.3: \"198.18.0.3\" is a "
		"second one for IPv4; name one.\n"},
	{"gateway: group",
		G P "gateway = 224.0.0.2\n",
		"t.conf:6: [port wan] gateway = 224.0.0.2: \"224.0.0.2\" is the address of a "
		"group; name a router on the link.\n"},
	{"gateway: other family",
		G P "gateway = 2001:db8::1\n",
		"t.conf:6: [port wan] gateway = 2001:db8::1: is in none of the networks of "
		"\"address\"; name a router on the link.\n"},
	{"mtu: too small",
		G P "mtu = 575\n",
		"t.conf:6: [port wan] mtu = 575: is out of range; write one of 576 to 9198.\n"},
	{"mtu: too large",
		G P "mtu = 9199\n",
		"t.conf:6: [port wan] mtu = 9199: is out of range; write one of 576 to 9198.\n"},
	{"mtu: too small for IPv6",
		G "[port wan]\ndevargs = net_tpacket0,iface=v1\naddress = 198.18.0.2/24 "
		"2001:db8::2/64\nmtu = 1279\n",
		"t.conf:6: [port wan] mtu = 1279: is too small for the IPv6 address on line 5; "
		"1280 at least.\n"},
	{"vlan",
		G P "vlan = 4095\n",
		"t.conf:6: [port wan] vlan = 4095: is out of range; write one of 1 to 4094.\n"},
	{"promiscuous",
		G P "promiscuous = 1\n",
		"t.conf:6: [port wan] promiscuous = 1: is not known; write yes or no.\n"},
	{"kind: unknown",
		G P "[service echo]\nkind = span\nudp-port = 7\n",
		"t.conf:7: [service echo] kind = span: is not known; write sink, echo, drop, "
		"reflect, forward or mirror.\n"},
	{"kind: of a later version",
		G P "[service echo]\nkind = tunnel\nudp-port = 7\n",
		"t.conf:7: [service echo] kind = tunnel: is not known; write sink, echo, drop, "
		"reflect, forward or mirror.\n"},
	{"sequence: unknown",
		G P "[service r]\nkind = reflect\nudp-port = 862\nsequence = own\n",
		"t.conf:9: [service r] sequence = own: is not known; write stateless or "
		"stateful.\n"},
	{"format: unknown",
		G P "[service r]\nkind = reflect\nudp-port = 862\nformat = tai\n",
		"t.conf:9: [service r] format = tai: is not known; write ntp, ptp or sender.\n"},
	{"sequence and format: not of a reflector",
		G P S "sequence = stateful\nformat = ntp\n",
		"t.conf:9: [service echo] sequence: is for kind = reflect alone; leave it out.\n"
		"t.conf:10: [service echo] format: is for kind = reflect alone; leave it out.\n"},
	{"sequence: of an unknown kind",
		G P "[service r]\nkind = copy\nudp-port = 862\nsequence = stateful\n",
		"t.conf:7: [service r] kind = copy: is not known; write sink, echo, drop, "
		"reflect, forward or mirror.\n"},
	{"reflect: without a port",
		G P "[service r]\nkind = reflect\n",
		"t.conf:6: [service r]: lacks udp-port; add \"udp-port = 7\", for instance.\n"},
	{"udp-port: 0",
		G P "[service echo]\nkind = echo\nudp-port = 0\n",
		"t.conf:8: [service echo] udp-port = 0: is out of range; write one of 1 to "
		"65535.\n"},
	{"udp-port: too high",
		G P "[service echo]\nkind = echo\nudp-port = 65536\n",
		"t.conf:8: [service echo] udp-port = 65536: is out of range; write one of 1 to "
		"65535.\n"},
	{"udp-port: no number",
		G P "[service echo]\nkind = echo\nudp-port = echo\n",
		"t.conf:8: [service echo] udp-port = echo: is no whole number; write one of 1 "
		"to 65535.\n"},
	{"udp-port: taken",
		G P S "[service sink]\nkind = sink\nudp-port = 7\n",
		"t.conf:11: [service sink] udp-port = 7: [service echo] on line 6 has it "
		"already; choose another, or divide them by \"address\" or \"port\".\n"},
	{"udp-port: taken by one for all",
		G P S "[service sink]\nkind = echo\nudp-port = 7\naddress = 198.18.0.2\n",
		"t.conf:11: [service sink] udp-port = 7: [service echo] on line 6 has it "
		"already; choose another, or divide them by \"address\" or \"port\".\n"},
	{"service address: none",
		G P S "address = here\n",
		"t.conf:9: [service echo] address = here: is no address; write one that a port "
		"has, without a prefix length.\n"},
	{"service address: prefix length",
		G P S "address = 198.18.0.2/24\n",
		"t.conf:9: [service echo] address = 198.18.0.2/24: is no address; write one "
		"that a port has, without a prefix length.\n"},
	{"service address: no port has it",
		G P S "address = 198.18.0.3\n",
		"t.conf:9: [service echo] address = 198.18.0.3: no port has it; name one of a "
		"port's \"address\".\n"},
	{"service port: there is none",
		G P S "port = lan\n",
		"t.conf:9: [service echo] port = lan: there is no [port lan]; name one that "
		"there is.\n"},
	{"service port: bad name",
		G P S "port = a/b\n",
		"t.conf:9: [service echo] port = a/b: is no name of a port; write the NAME of "
		"a [port NAME].\n"},
	{"service port: has not the address",
		G P "[port lan]\ndevargs = net_tpacket1,iface=v2\naddress = 198.19.0.2/24\n" S
		"port = lan\naddress = 198.18.0.2\n",
		"t.conf:13: [service echo] address = 198.18.0.2: belongs to [port wan], not to "
		"[port lan]; leave \"port\" out.\n"},
	{"rcvbuf: too small",
		G P S "rcvbuf = 4095\n",
		"t.conf:9: [service echo] rcvbuf = 4095: is out of range; write one of 4096 to "
		"1000000000.\n"},
	{"rcvbuf: too large",
		G P S "rcvbuf = 2G\n",
		"t.conf:9: [service echo] rcvbuf = 2G: is out of range; write one of 4096 to "
		"1000000000.\n"},
	{"back end: no address", G P "[backend b1]\nudp-port = 53\n",
		"t.conf:6: [backend b1]: lacks address; add \"address = 198.18.0.11\", for "
		"instance.\n"},
	{"back end: no UDP port", G P "[backend b1]\naddress = 198.18.0.11\n",
		"t.conf:6: [backend b1]: lacks udp-port; add \"udp-port = 53\", for instance.\n"},
	{"back end address: none", G P "[backend b1]\naddress = web1\nudp-port = 53\n",
		"t.conf:7: [backend b1] address = web1: is no address; write 198.18.0.11 or "
		"2001:db8::11.\n"},
	{"back end address: prefix length",
		G P "[backend b1]\naddress = 198.18.0.11/24\nudp-port = 53\n",
		"t.conf:7: [backend b1] address = 198.18.0.11/24: is no address; write 198.18.0.11 "
		"or 2001:db8::11.\n"},
	{"back end address: group", G P "[backend b1]\naddress = ff02::1\nudp-port = 53\n",
		"t.conf:7: [backend b1] address = ff02::1: is the address of a group; name the "
		"host that is to serve.\n"},
	{"back end address: ours", G P "[backend b1]\naddress = 198.18.0.2\nudp-port = 53\n",
		"t.conf:7: [backend b1] address = 198.18.0.2: [port wan] has it; name another "
		"host's.\n"},
	{"back end UDP port", G P "[backend b1]\naddress = 198.18.0.11\nudp-port = 0\n",
		"t.conf:8: [backend b1] udp-port = 0: is out of range; write one of 1 to 65535.\n"},
	{"back end weight",
		G P "[backend b1]\naddress = 198.18.0.11\nudp-port = 53\nweight = 1001\n",
		"t.conf:9: [backend b1] weight = 1001: is out of range; write one of 0 to 1000.\n"},
	{"back end: unknown key",
		G P "[backend b1]\naddress = 198.18.0.11\nudp-port = 53\nport = wan\n",
		"t.conf:9: [backend b1] port: no such key here; there are address, udp-port and "
		"weight.\n"},
	{"back end twice", G P B "[backend b1]\n",
		"t.conf:12: [backend b1]: line 6 has this section already; keep one.\n"},
	{"forward: no address",
		G P B "[service lb]\nkind = forward\nudp-port = 53\nbackends = b1\n",
		"t.conf:12: [service lb]: lacks address, which kind = forward needs; name one of a "
		"port's \"address\".\n"},
	{"forward: address of no port",
		G P B "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.3\nbackends "
		      "= b1\n",
		"t.conf:15: [service lb] address = 198.18.0.3: no port has it; name one of a "
		"port's \"address\".\n"},
	{"forward: no back ends",
		G P B "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\n",
		"t.conf:12: [service lb]: lacks backends; add \"backends = b1 b2\", for "
		"instance.\n"},
	{"forward: UDP port taken",
		G P S B
		"[service lb]\nkind = forward\nudp-port = 7\naddress = 198.18.0.2\nbackends = b1\n",
		"t.conf:17: [service lb] udp-port = 7: [service echo] on line 6 has it already; "
		"choose another, or divide them by \"address\" or \"port\".\n"},
	{"backends: unknown",
		G P B "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends "
		      "= b1, b3\n",
		"t.conf:16: [service lb] backends = b3: there is no [backend b3]; name one that "
		"there is.\n"},
	{"backends: none begins so",
		G P B "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends "
		      "= web*\n",
		"t.conf:16: [service lb] backends = web*: no [backend NAME] begins so; name those "
		"that there are.\n"},
	{"backends: twice",
		G P B "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends "
		      "= b1 b*\n",
		"t.conf:16: [service lb] backends: names b1 twice; once is enough.\n"},
	{"backends: one place twice",
		G P B "[backend b3]\naddress = 198.18.0.12\nudp-port = 53\n"
		      "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends "
		      "= b*\n",
		"t.conf:19: [service lb] backends: b2 and b3 have one address and UDP port; leave "
		"one out.\n"},
	{"backends: other family",
		G P B "[backend six]\naddress = 2001:db8::11\nudp-port = 53\n"
		      "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\nbackends "
		      "= b1 six\n",
		"t.conf:19: [service lb] backends: six has an IPv6 address, and the service an "
		"IPv4 one; make a service for each.\n"},
	{"backends: of two services",
		G P B L "[service dns]\nkind = forward\nudp-port = 54\naddress = "
			"198.18.0.2\nbackends = b2\n",
		"t.conf:21: [service dns] backends: b2 serves [service lb] already, and its "
		"answers could be for either; give it another \"udp-port\" for one of them.\n"},
	{"rcvbuf: of a load balancer", G P B L "rcvbuf = 1M\n",
		"t.conf:17: [service lb] rcvbuf: is not for kind = forward, which has no queue; "
		"leave it out.\n"},
	{"affinity = sticky", G P B L "affinity = sticky\n",
		"t.conf:17: [service lb] affinity = sticky: is not known; write flow, source or "
		"none.\n"},
	{"drain = stop", G P B L "drain = stop\n",
		"t.conf:17: [service lb] drain = stop: is not known; write keep or move.\n"},
	{"source = client", G P B L "source = client\n",
		"t.conf:17: [service lb] source = client: is not known; write keep or own.\n"},
	{"source = own",
		G P B L "source = own\n",
		"t.conf:17: [service lb] source = own: is not in this version; write keep, "
		"and let back ends answer by way of this appliance.\n"},
	{"slots = 65536", G P B L "slots = 65536\n",
		"t.conf:17: [service lb] slots = 65536: is not prime; write 65537.\n"},
	{"slots = 250", G P B L "slots = 250\n",
		"t.conf:17: [service lb] slots = 250: is out of range; write one of 251 to "
		"1048573.\n"},
	{"slots = 1048574", G P B L "slots = 1048574\n",
		"t.conf:17: [service lb] slots = 1048574: is out of range; write one of 251 to "
		"1048573.\n"},
	{"seed = -1", G P B L "seed = -1\n",
		"t.conf:17: [service lb] seed = -1: is no whole number; write one of 0 to "
		"4294967295.\n"},
	{"flows = 7", G P B L "flows = 7\n",
		"t.conf:17: [service lb] flows = 7: is out of range; write one of 8 to 4194304.\n"},
	{"flow-timeout = 30", G P B L "flow-timeout = 30\n",
		"t.conf:17: [service lb] flow-timeout = 30: is no time; write a whole number with "
		"its unit: ms, s, m or h.\n"},
	{"flow-timeout = 9ms", G P B L "flow-timeout = 9ms\n",
		"t.conf:17: [service lb] flow-timeout = 9ms: is out of range; write 10ms to "
		"24h.\n"},
	{"flow-timeout = 99999999999h", G P B L "flow-timeout = 99999999999h\n",
		"t.conf:17: [service lb] flow-timeout = 99999999999h: is out of range; write 10ms "
		"to 24h.\n"},
	{"new-flows = 9", G P B L "new-flows = 9\n",
		"t.conf:17: [service lb] new-flows = 9: is out of range; write one of 10 to "
		"10000000.\n"},
	{"check = icmp", G P B L "check = icmp\n",
		"t.conf:17: [service lb] check = icmp: is not known; write none or udp.\n"},
	{"check: nothing to send", G P B L "check = udp\n",
		"t.conf:17: [service lb] check = udp: lacks check-send; add \"check-send = ping\", "
		"for instance.\n"},
	{"check-interval = 19ms", G P B L "check = udp\ncheck-send = ping\ncheck-interval = 19ms\n",
		"t.conf:19: [service lb] check-interval = 19ms: is out of range; write 20ms to "
		"1h.\n"},
	{"check-timeout = 1.5s", G P B L "check = udp\ncheck-send = ping\ncheck-timeout = 1.5s\n",
		"t.conf:19: [service lb] check-timeout = 1.5s: is no time; write a whole number "
		"with its unit: ms, s, m or h.\n"},
	{"check-rise = 0", G P B L "check = udp\ncheck-send = ping\ncheck-rise = 0\n",
		"t.conf:19: [service lb] check-rise = 0: is out of range; write one of 1 to "
		"100.\n"},
	{"check-fall = 101", G P B L "check = udp\ncheck-send = ping\ncheck-fall = 101\n",
		"t.conf:19: [service lb] check-fall = 101: is out of range; write one of 1 to "
		"100.\n"},
	{"check-timeout longer than the interval",
		G P B L "check = udp\ncheck-send = ping\ncheck-interval = 1s\ncheck-timeout = 2s\n",
		"t.conf:20: [service lb] check-timeout: 2000 ms is longer than the 1000 ms of "
		"\"check-interval\"; write a shorter time.\n"},
	{"check-expect: an escape that is none",
		G P B L "check = udp\ncheck-send = ping\ncheck-expect = \\n\n",
		"t.conf:19: a backslash begins \\xNN, an octet, and nothing else; leave it out.\n"},
	{"check-expect: without a check", G P B L "check-expect = pong\n",
		"t.conf:17: [service lb] check-expect: is for check = udp alone; leave it out, or "
		"add \"check = udp\".\n"},
	{"drain: not of a load balancer", G P S "drain = keep\n",
		"t.conf:9: [service echo] drain: is for kind = forward alone; leave it out.\n"},
	{"memory: too little for the flows",
		"[sluiced]\nlcores = 1\nmemory = 256\n" P B L "flows = 4194304\n",
		"t.conf:3: [sluiced] memory = 256: is too little for 26688 packets; 749 at least, "
		"or smaller \"ring\", \"queues\", \"rcvbuf\" or \"flows\".\n"},
	{"all are told, in order",
		"[sluiced]\nlcores = x\nmemory = 1\n[port wan]\ndevargs = eth0\naddress = "
		"1.2.3.4\nqueues = 99\nodd\n[service a]\nkind = b\nudp-port = c\n[x]\n",
		"t.conf:2: [sluiced] lcores = x: \"x\" names no processor; write \"1\" or "
		"\"1-3,5\".\n"
		"t.conf:3: [sluiced] memory = 1: is out of range; write one of 64 to 65536.\n"
		"t.conf:5: [port wan] devargs = eth0: names no device; write "
		"net_tpacket0,iface=eth1 or a bus address such as 0000:03:00.0.\n"
		"t.conf:6: [port wan] address = 1.2.3.4: \"1.2.3.4\" lacks the prefix length; "
		"write 1.2.3.4/24, for instance.\n"
		"t.conf:7: [port wan] queues = 99: is out of range; write one of 1 to 16.\n"
		"t.conf:8: \"odd\" is neither [SECTION] nor KEY = VALUE; comments begin with "
		"#.\n"
		"t.conf:10: [service a] kind = b: is not known; write sink, echo, drop, "
		"reflect, forward or mirror.\n"
		"t.conf:11: [service a] udp-port = c: is no whole number; write one of 1 to "
		"65535.\n"
		"t.conf:12: [x]: no such section here; there are " SECTIONS ".\n"},
	{"secondary",
		G "secondary = maybe\n" P,
		"t.conf:3: [sluiced] secondary = maybe: is not known; write yes or no.\n"},
	{"secondary without hugepages",
		G "hugepages = no\nsecondary = yes\n" P,
		"t.conf:4: [sluiced] secondary = yes: other processes share memory by hugepages, "
		"and \"hugepages = no\" forbids them; write yes or auto there, or no here.\n"},
	{"metrics without a place",
		G P "[metrics]\n",
		"t.conf:6: [metrics]: lacks listen; add \"listen = 127.0.0.1:9111\", for "
		"instance.\n"},
	{"metrics with a name",
		G P "[metrics a]\nlisten = 127.0.0.1:9111\n",
		"t.conf:6: [metrics a]: no such section here; there are " SECTIONS ".\n"},
	{"metrics nowhere",
		G P "[metrics]\nlisten = 9111\n",
		"t.conf:7: [metrics] listen = 9111: " NO_PLACE},
	{"metrics without a port",
		G P "[metrics]\nlisten = 127.0.0.1:0\n",
		"t.conf:7: [metrics] listen = 127.0.0.1:0: " NO_PLACE},
	{"metrics without brackets",
		G P "[metrics]\nlisten = ::1:9111\n",
		"t.conf:7: [metrics] listen = ::1:9111: " NO_PLACE},
	{"metrics with a prefix",
		G P "[metrics]\nlisten = 127.0.0.1/8:9111\n",
		"t.conf:7: [metrics] listen = 127.0.0.1/8:9111: " NO_PLACE},
	{"metrics for everybody",
		G P "[metrics]\nlisten = [2001:db8::2]:9111\n",
		"t.conf:7: [metrics] listen = [2001:db8::2]:9111: is no loopback address, and "
		"whoever reaches it may read it; write 127.0.0.1:9111 and let a proxy guard the "
		"way in.\n"},
	{"metrics on half a path",
		G P "[metrics]\nlisten = unix:metrics\n",
		"t.conf:7: [metrics] listen = unix:metrics: \"metrics\" is no whole path; begin it "
		"with \"/\".\n"},
	{"metrics on a long path",
		G P "[metrics]\nlisten = unix:/" LONG_PATH "\n",
		"t.conf:7: [metrics] listen = unix:/" LONG_PATH ": is longer than the path of a "
		"socket can be, 99; choose another.\n"},
};

#endif
