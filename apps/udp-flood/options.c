/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flood.h"

enum {
	OPT_ADDR = 256,
	OPT_BATCH,
	OPT_CHECK,
	OPT_COUNT,
	OPT_DURATION,
	OPT_FIRST_FLOW,
	OPT_FLOWS,
	OPT_GATEWAY,
	OPT_IFACE,
	OPT_IPV6,
	OPT_JSON,
	OPT_KERNEL,
	OPT_PORT,
	OPT_RATE,
	OPT_SIZE,
	OPT_SOURCE_PORT,
	OPT_TO
};

static const struct option options[] = {{"addr", required_argument, NULL, OPT_ADDR},
	{"batch", required_argument, NULL, OPT_BATCH}, {"check", no_argument, NULL, OPT_CHECK},
	{"count", required_argument, NULL, OPT_COUNT},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"first-flow", required_argument, NULL, OPT_FIRST_FLOW},
	{"flows", required_argument, NULL, OPT_FLOWS},
	{"gateway", required_argument, NULL, OPT_GATEWAY},
	{"iface", required_argument, NULL, OPT_IFACE}, {"ipv6", no_argument, NULL, OPT_IPV6},
	{"json", no_argument, NULL, OPT_JSON}, {"kernel", no_argument, NULL, OPT_KERNEL},
	{"port", required_argument, NULL, OPT_PORT}, {"rate", required_argument, NULL, OPT_RATE},
	{"size", required_argument, NULL, OPT_SIZE},
	{"source-port", required_argument, NULL, OPT_SOURCE_PORT},
	{"to", required_argument, NULL, OPT_TO}, {"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}};

static const char help[] =
	"Sends UDP datagrams in several flows.\n"
	"\n"
	"  sluice-udp-flood --iface NAME --addr CIDR --to ADDR [options]     over a kernel "
	"interface\n"
	"  sluice-udp-flood EAL-ARGUMENTS -- --addr CIDR --to ADDR [options] over a DPDK port\n"
	"  sluice-udp-flood --kernel --to ADDR [options]                     from kernel sockets\n"
	"\n"
	"  --to ADDR        destination address\n"
	"  --port N         destination port (9)\n"
	"  --addr CIDR      own address; may be repeated; with --kernel the source address\n"
	"  --gateway ADDR   next hop to other networks\n"
	"  --iface NAME     interface to send on\n"
	"  --ipv6           IPv6 sockets, also to an IPv4 address\n"
	"  --kernel         send from the kernel's sockets instead of an lcore\n"
	"  --flows N        sockets, each with a source port of its own (1)\n"
	"  --source-port N  source port of the first flow, counting up (any)\n"
	"  --size N         bytes of payload (18)\n"
	"  --count N        datagrams (1000000, or without end when there is a --duration)\n"
	"  --duration S     seconds\n"
	"  --rate N         datagrams a second (as many as possible)\n"
	"  --batch N        datagrams a sendmmsg call (32)\n"
	"  --check          number the payloads, for sluice-udp-sink --check\n"
	"  --first-flow N   number of the first flow in the payload (0)\n"
	"  --json           one JSON object\n";

static bool
read_flag(int opt, struct flood_options *o)
{
	o->check |= opt == OPT_CHECK;
	o->ipv6 |= opt == OPT_IPV6;
	o->json |= opt == OPT_JSON;
	o->kernel |= opt == OPT_KERNEL;
	return opt == OPT_CHECK || opt == OPT_IPV6 || opt == OPT_JSON || opt == OPT_KERNEL;
}

static void
read_value(int opt, struct flood_options *o)
{
	if (opt == OPT_ADDR)
		app_stack_addr(&o->stack, optarg);
	else if (opt == OPT_BATCH)
		o->batch = (uint16_t)app_number("--batch", optarg, 1, FLOOD_BATCH_MAX);
	else if (opt == OPT_COUNT)
		o->count = app_number("--count", optarg, 1, UINT64_MAX / 2);
	else if (opt == OPT_DURATION)
		o->duration_s = app_number("--duration", optarg, 1, 1000000);
	else if (opt == OPT_FIRST_FLOW)
		o->first_flow = (uint16_t)app_number("--first-flow", optarg, 0, PAYLOAD_FLOWS - 1);
	else if (opt == OPT_FLOWS)
		o->flows = (uint16_t)app_number("--flows", optarg, 1, FLOOD_FLOWS_MAX);
	else if (opt == OPT_GATEWAY)
		app_stack_gateway(&o->stack, optarg);
	else if (opt == OPT_IFACE)
		o->iface = optarg;
	else if (opt == OPT_PORT)
		o->port = (uint16_t)app_number("--port", optarg, 1, 65535);
	else if (opt == OPT_RATE)
		o->rate = app_number("--rate", optarg, 1, 1000000000);
	else if (opt == OPT_SIZE)
		o->size = (uint32_t)app_number("--size", optarg, 0, PAYLOAD_MAX);
	else if (opt == OPT_SOURCE_PORT)
		o->source_port = (uint16_t)app_number("--source-port", optarg, 1, 65535);
	else
		o->to_given = true;
}

static void
check_options(struct flood_options *o, bool sized)
{
	bool v6 = !sl_addr_is_v4(&o->to);
	bool same = o->kernel && o->stack.naddrs == 0;

	if (!o->to_given)
		app_fail("--to is missing: it names the destination, for instance "
			 "--to 198.18.0.2.");
	if (!o->kernel && o->stack.naddrs == 0)
		app_fail("--addr is missing: it gives the sender its address, for instance "
			 "--addr 198.18.0.1/24; or send from the kernel's with --kernel.");
	for (uint16_t i = 0; i < o->stack.naddrs; i++)
		same |= sl_addr_is_v4(&o->stack.addrs[i].addr) != v6;
	if (!same)
		app_fail("--addr and --to are of different families: add an IPv%d --addr.",
			v6 ? 6 : 4);
	if (o->check && o->size < PAYLOAD_HEADER)
		app_fail("--size %u is too small for --check: its numbers take %d bytes.", o->size,
			PAYLOAD_HEADER);
	if (!o->kernel && o->size > 1472)
		app_fail("--size %u does not fit a frame: 1472 at most over IPv4, 1452 over IPv6.",
			o->size);
	if (o->first_flow + o->flows > PAYLOAD_FLOWS)
		app_fail("--first-flow %u with --flows %u passes %d.", o->first_flow, o->flows,
			PAYLOAD_FLOWS - 1);
	if (o->source_port != 0 && o->source_port + o->flows > 65536)
		app_fail(
			"--source-port %u with --flows %u passes 65535.", o->source_port, o->flows);
	if (!sized && o->duration_s == 0)
		o->count = 1000000;
}

void
flood_options_read(int argc, char **argv, struct flood_options *o)
{
	int opt;

	memset(o, 0, sizeof(*o));
	o->port = 9;
	o->batch = 32;
	o->flows = 1;
	o->size = 18;
	o->stack.workers = 1;
	while ((opt = app_getopt(argc, argv, options)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (opt == OPT_TO)
			o->to = app_addr("--to", optarg, NULL);
		if (!read_flag(opt, o))
			read_value(opt, o);
	}
	check_options(o, o->count != 0);
}
