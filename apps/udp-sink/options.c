/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

/* Options that have no letter. The receive calls come first and are numbered as sink_call. */
enum {
	OPT_CALL = 256,
	OPT_PORT = OPT_CALL + SINK_CALLS,
	OPT_ADDR,
	OPT_IFACE,
	OPT_IPV6,
	OPT_CONNECT,
	OPT_COUNT,
	OPT_REPEAT,
	OPT_DURATION,
	OPT_BATCH,
	OPT_TIMEOUT,
	OPT_DONTWAIT,
	OPT_WAITFORONE,
	OPT_TOUCH,
	OPT_CHECK,
	OPT_TTL,
	OPT_PKTINFO,
	OPT_REUSE_PORT,
	OPT_BAD_PTR,
	OPT_JSON,
	OPT_SPLIT,
	OPT_BUSY,
	OPT_ANY_DST,
	OPT_PROMISCUOUS,
	OPT_GATEWAY,
	OPT_RCVBUF,
	OPT_KERNEL
};

static const struct option options[] = {{"recvmmsg", no_argument, NULL, OPT_CALL + SINK_RECVMMSG},
	{"recvmsg", no_argument, NULL, OPT_CALL + SINK_RECVMSG},
	{"recvfrom", no_argument, NULL, OPT_CALL + SINK_RECVFROM},
	{"read", no_argument, NULL, OPT_CALL + SINK_READ},
	{"burst", no_argument, NULL, OPT_CALL + SINK_BURST},
	{"port", required_argument, NULL, OPT_PORT}, {"addr", required_argument, NULL, OPT_ADDR},
	{"iface", required_argument, NULL, OPT_IFACE}, {"ipv6", no_argument, NULL, OPT_IPV6},
	{"connect", optional_argument, NULL, OPT_CONNECT},
	{"count", required_argument, NULL, OPT_COUNT},
	{"repeat", required_argument, NULL, OPT_REPEAT},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"batch", required_argument, NULL, OPT_BATCH},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"dontwait", no_argument, NULL, OPT_DONTWAIT},
	{"waitforone", no_argument, NULL, OPT_WAITFORONE}, {"touch", no_argument, NULL, OPT_TOUCH},
	{"check", no_argument, NULL, OPT_CHECK}, {"recv-ttl", no_argument, NULL, OPT_TTL},
	{"recv-pktinfo", no_argument, NULL, OPT_PKTINFO},
	{"reuse-port", optional_argument, NULL, OPT_REUSE_PORT},
	{"use-bad-ptr", required_argument, NULL, OPT_BAD_PTR},
	{"json", no_argument, NULL, OPT_JSON}, {"split", optional_argument, NULL, OPT_SPLIT},
	{"busy", no_argument, NULL, OPT_BUSY}, {"any-dst", no_argument, NULL, OPT_ANY_DST},
	{"promiscuous", no_argument, NULL, OPT_PROMISCUOUS},
	{"gateway", required_argument, NULL, OPT_GATEWAY},
	{"rcvbuf", required_argument, NULL, OPT_RCVBUF},
	{"kernel", no_argument, NULL, OPT_KERNEL}, {"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}};

static const char help[] =
	"Receives UDP datagrams with each receive call in turn and prints a row for each:\n"
	"nanoseconds and cycles a datagram, rate, payload, and drops by cause.\n"
	"\n"
	"  sluice-udp-sink --iface NAME --addr CIDR [options]     over a kernel interface\n"
	"  sluice-udp-sink EAL-ARGUMENTS -- --addr CIDR [options] over DPDK ports\n"
	"  sluice-udp-sink --kernel [--addr CIDR] [options]       on a socket of the host's kernel\n"
	"\n"
	"Where\n"
	"  --iface NAME        kernel interface to receive on\n"
	"  --addr CIDR         own address, 198.18.0.2/24 or 2001:db8::2/64; may be repeated\n"
	"  --port N            UDP port (9)\n"
	"  --gateway ADDR      where answers to other networks go; once for each family\n"
	"  --ipv6              an IPv6 socket, which receives IPv4 too\n"
	"  --connect[=ADDR:PORT]  receive from that peer alone; without one, from whoever sends "
	"first\n"
	"  --any-dst           take datagrams to any unicast address as ours\n"
	"  --promiscuous       take frames to any MAC address\n"
	"  --reuse-port[=N]    N sockets (1) share the port; other sluice-udp-sinks may join\n"
	"  --split[=N]         N lcores (1) receive and this one only reads; without, one does "
	"both\n"
	"  --busy              with --split: the reader polls and never sleeps\n"
	"  --rcvbuf BYTES      receive buffer, in bytes of memory held (32 MiB)\n"
	"\n"
	"What\n"
	"  --recvmmsg --recvmsg --recvfrom --read --burst   these calls alone\n"
	"  --count N           datagrams a row (1000000, or without end when there is a --duration)\n"
	"  --duration S        end a row S seconds after its first datagram, or after S without "
	"any\n"
	"  --repeat N          rows a call (1)\n"
	"  --batch N           datagrams a recvmmsg or burst call (32)\n"
	"  --timeout MS        timeout of each recvmmsg call\n"
	"  --dontwait          calls do not wait (read has no flags, and waits)\n"
	"  --waitforone        recvmmsg waits for its first datagram only\n"
	"  --touch             read the payload\n"
	"  --check             verify payloads that sluice-udp-flood --check numbered\n"
	"  --recv-ttl          ask for the TTL or hop limit (recvmmsg, recvmsg)\n"
	"  --recv-pktinfo      ask for the destination address (recvmmsg, recvmsg)\n"
	"  --use-bad-ptr N     every Nth datagram is received into memory that is not there\n"
	"  --json              one JSON object a line\n";

/* Where: addresses, sockets, lcores. False if the option is not one of these. */
static bool
read_where(int opt, struct sink_options *o)
{
	switch (opt) {
	case OPT_PORT:
		o->port = (uint16_t)app_number("--port", optarg, 1, 65535);
		return true;
	case OPT_ADDR:
		app_stack_addr(&o->stack, optarg);
		return true;
	case OPT_IFACE:
		o->iface = optarg;
		return true;
	case OPT_IPV6:
		o->ipv6 = true;
		return true;
	case OPT_CONNECT:
		o->connect = true;
		o->connect_any = optarg == NULL;
		if (optarg != NULL)
			app_addr_port("--connect", optarg, 0, &o->peer, &o->peer_port);
		return true;
	case OPT_ANY_DST:
		o->stack.any_dst = true;
		return true;
	case OPT_PROMISCUOUS:
		o->stack.promiscuous = true;
		return true;
	case OPT_GATEWAY:
		app_stack_gateway(&o->stack, optarg);
		return true;
	case OPT_REUSE_PORT:
		o->socks = optarg == NULL ? 1
					  : (uint16_t)app_number(
						    "--reuse-port", optarg, 1, SINK_SOCKS_MAX);
		return true;
	case OPT_SPLIT:
		o->split = true;
		o->stack.workers = optarg == NULL ? 1
						  : (uint16_t)app_number("--split", optarg, 1,
							    SL_INET_WORKERS_MAX);
		return true;
	case OPT_BUSY:
		o->busy = true;
		return true;
	case OPT_KERNEL:
		o->kernel = true;
		return true;
	case OPT_RCVBUF:
		o->rcvbuf = app_number("--rcvbuf", optarg, 1, 1ull << 40);
		return true;
	default:
		return false;
	}
}

/* What: calls, rows, flags. */
static void
read_what(int opt, struct sink_options *o)
{
	if (opt >= OPT_CALL && opt < OPT_CALL + SINK_CALLS)
		o->calls[opt - OPT_CALL] = true;
	else if (opt == OPT_COUNT)
		o->count = app_number("--count", optarg, 1, UINT64_MAX / 2);
	else if (opt == OPT_REPEAT)
		o->repeat = (uint32_t)app_number("--repeat", optarg, 1, UINT32_MAX);
	else if (opt == OPT_DURATION)
		o->duration_s = app_number("--duration", optarg, 1, 1000000);
	else if (opt == OPT_TIMEOUT)
		o->timeout_ms = (int64_t)app_number("--timeout", optarg, 0, 1000000000);
	else if (opt == OPT_DONTWAIT)
		o->dontwait = true;
	else if (opt == OPT_WAITFORONE)
		o->waitforone = true;
	else if (opt == OPT_TOUCH)
		o->touch = true;
	else if (opt == OPT_CHECK)
		o->check = true;
	else if (opt == OPT_TTL)
		o->recv_ttl = true;
	else if (opt == OPT_PKTINFO)
		o->recv_pktinfo = true;
	else if (opt == OPT_BAD_PTR)
		o->bad_ptr = (uint32_t)app_number("--use-bad-ptr", optarg, 1, UINT32_MAX);
	else if (opt == OPT_JSON)
		o->json = true;
	if (opt == OPT_BATCH) {
		o->batch = (uint16_t)app_number("--batch", optarg, 1, SINK_BATCH_MAX);
		o->batch_given = true;
	}
}

/* An option that none of the chosen calls can follow would change nothing in silence. */
static void
need_call(const struct sink_options *o, bool given, const char *option, unsigned int calls,
	const char *names)
{
	for (int c = 0; c < SINK_CALLS; c++)
		if (o->calls[c] && (calls >> c & 1) != 0)
			return;
	if (given)
		app_fail("%s is for %s: add one of these, or leave it out.", option, names);
}

static void
check_calls(struct sink_options *o)
{
	const unsigned int mmsg = 1u << SINK_RECVMMSG;
	const unsigned int msg = 1u << SINK_RECVMSG;
	const unsigned int from = 1u << SINK_RECVFROM;
	const unsigned int rd = 1u << SINK_READ;
	const unsigned int burst = 1u << SINK_BURST;
	bool any = false;

	for (int c = 0; c < SINK_CALLS; c++)
		any |= o->calls[c];
	if (!any)
		memset(o->calls, true, sizeof(o->calls));
	need_call(o, o->batch_given, "--batch", mmsg | burst, "--recvmmsg and --burst");
	need_call(o, o->timeout_ms >= 0, "--timeout", mmsg, "--recvmmsg");
	need_call(o, o->waitforone, "--waitforone", mmsg, "--recvmmsg");
	need_call(o, o->dontwait, "--dontwait", mmsg | msg | from | burst,
		"--recvmmsg, --recvmsg, --recvfrom and --burst");
	need_call(o, o->recv_ttl, "--recv-ttl", mmsg | msg, "--recvmmsg and --recvmsg");
	need_call(o, o->recv_pktinfo, "--recv-pktinfo", mmsg | msg, "--recvmmsg and --recvmsg");
	need_call(o, o->bad_ptr != 0, "--use-bad-ptr", mmsg | msg | from | rd,
		"--recvmmsg, --recvmsg, --recvfrom and --read");
}

/* What the kernel's socket has no use for. */
static void
check_kernel(struct sink_options *o)
{
	const char *option = o->split				 ? "--split" :
			     o->connect				 ? "--connect" :
			     o->socks != 0			 ? "--reuse-port" :
			     o->bad_ptr != 0			 ? "--use-bad-ptr" :
			     o->recv_ttl			 ? "--recv-ttl" :
			     o->recv_pktinfo			 ? "--recv-pktinfo" :
			     o->stack.promiscuous || o->stack.any_dst ? "--promiscuous or --any-dst" :
			     o->iface != NULL			 ? "--iface" :
								   NULL;

	if (option != NULL)
		app_fail("%s is not for --kernel, which compares plain sockets: leave it out.", option);
	o->calls[SINK_BURST] = false; /* the kernel has no such call */
}

static void
check_clashes(const struct sink_options *o)
{
	bool v4 = false;
	bool v6 = false;

	for (uint16_t i = 0; i < o->stack.naddrs; i++) {
		v4 |= sl_addr_is_v4(&o->stack.addrs[i].addr);
		v6 |= !sl_addr_is_v4(&o->stack.addrs[i].addr);
	}
	if (o->stack.naddrs == 0)
		app_fail("--addr is missing: it gives the sink its address, for instance "
			 "--addr 198.18.0.2/24.");
	if (o->ipv6 && !v6)
		app_fail("--ipv6 needs an IPv6 address: add one, for instance "
			 "--addr 2001:db8::2/64.");
	if (!o->ipv6 && !v4)
		app_fail("--addr names IPv6 addresses alone, and the socket is an IPv4 one: add "
			 "--ipv6, or an IPv4 address.");
	if (!o->ipv6 && o->connect && !o->connect_any && !sl_addr_is_v4(&o->peer))
		app_fail("--connect to an IPv6 address needs --ipv6.");
	if (o->dontwait && o->waitforone)
		app_fail("--dontwait and --waitforone exclude each other: leave one out.");
	if (o->dontwait && o->timeout_ms >= 0)
		app_fail("--dontwait and --timeout exclude each other: leave one out.");
	if (o->busy && !o->split)
		app_fail("--busy is for --split: without it the reader polls anyway.");
	if (o->socks > 1 && o->connect)
		app_fail("--connect and --reuse-port=%u exclude each other: the peer would reach "
			 "one of the sockets only.",
			o->socks);
}

void
sink_options_read(int argc, char **argv, struct sink_options *o)
{
	int opt;

	memset(o, 0, sizeof(*o));
	o->port = 9;
	o->batch = 32;
	o->repeat = 1;
	o->timeout_ms = -1;
	o->stack.workers = 1;
	while ((opt = app_getopt(argc, argv, options)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (!read_where(opt, o))
			read_what(opt, o);
	}
	if (o->count == 0)
		o->count = o->duration_s != 0 ? UINT64_MAX / 2 : 1000000;
	check_calls(o);
	if (o->kernel)
		check_kernel(o);
	else
		check_clashes(o);
}
