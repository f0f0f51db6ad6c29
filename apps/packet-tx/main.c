/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include "common/app.h"
#include "sl_errno.h"
#include "tx.h"

#define HEADER 14
#define SIZE_MIN 22 /* header and sequence number */
#define SIZE_MAX_BYTES 65000
#define TRIES_MAX 1000000 /* flushes in a row that change nothing */

struct result {
	uint64_t sent, calls, again;
	double seconds;
};

static void
usage(void)
{
	puts("usage: sluice-packet-tx [EAL ARGUMENTS --] [OPTIONS]\n"
	     "Fill a packet ring with frames and have them sent.\n"
	     "  --server SOCKET     the ring of a net_pktring port\n"
	     "  --iface NAME        the ring of the kernel's packet socket on that interface\n"
	     "  (EAL arguments)     a packet socket over the first DPDK port\n"
	     "  -s, --size BYTES    of a frame, without check sequence (60)\n"
	     "  -c, --count N       frames (1000000); 0 goes on until interrupted\n"
	     "  --version 1|2|3     TPACKET version (2)\n"
	     "  --frames N          slots of the ring (1024)\n"
	     "  --loss              bad slots are passed over\n"
	     "  --dontwait          calls do not wait for frames in flight\n"
	     "  --json              one JSON object in place of the table");
	exit(0);
}

static void
parse(int argc, char **argv, struct tx_conf *c)
{
	static const struct option options[] = {{"server", required_argument, NULL, 'S'},
		{"iface", required_argument, NULL, 'i'}, {"size", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'}, {"version", required_argument, NULL, 'v'},
		{"frames", required_argument, NULL, 'f'}, {"loss", no_argument, NULL, 'l'},
		{"dontwait", no_argument, NULL, 'd'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int o;

	while ((o = app_getopt(argc, argv, options)) != -1) {
		switch (o) {
		case 'S':
			c->server = optarg;
			break;
		case 'i':
			c->iface = optarg;
			break;
		case 's':
			c->size = (uint32_t)app_number("--size", optarg, SIZE_MIN, SIZE_MAX_BYTES);
			break;
		case 'c':
			c->count = app_number("--count", optarg, 0, UINT64_MAX);
			break;
		case 'v':
			c->version = (int)app_number("--version", optarg, 1, 3) - 1;
			break;
		case 'f':
			c->frames = (uint32_t)app_number("--frames", optarg, 1, 65536);
			break;
		case 'l':
			c->loss = true;
			break;
		case 'd':
			c->dontwait = true;
			break;
		case 'j':
			c->json = true;
			break;
		default:
			usage();
		}
	}
	if (c->server != NULL && c->iface != NULL)
		app_fail("--server and --iface exclude each other: a ring lives in one place");
	if ((c->server != NULL || c->iface != NULL) && c->eal_argc > 1)
		app_fail("EAL arguments are for a ring in this process: leave out --server and "
			 "--iface");
}

/* The two options that such generators have always had. */
static void
lengthen(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-s") == 0)
			argv[i] = (char *)(uintptr_t) "--size";
		else if (strcmp(argv[i], "-c") == 0)
			argv[i] = (char *)(uintptr_t) "--count";
	}
}

static double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Broadcast, from a local address, an ethertype for experiments; the number of the frame, then
 * bytes that count up. */
static void
frame_make(uint8_t *frame, uint32_t size)
{
	static const uint8_t header[HEADER] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};

	memcpy(frame, header, HEADER);
	for (uint32_t i = HEADER; i < size; i++)
		frame[i] = (uint8_t)i;
}

/* Where the ring lives, as it was asked for. */
static const char *
place(const struct tx_conf *c)
{
	static char text[64];

	if (c->server == NULL && c->iface == NULL)
		return "port 0";
	snprintf(text, sizeof(text), "%s %s", c->server != NULL ? "--server" : "--iface",
		c->server != NULL ? c->server : c->iface);
	return text;
}

static void
flush(const struct tx_backend *b, const struct tx_conf *c, struct result *r)
{
	int ret = b->flush(c);

	r->calls++;
	if (ret == -EAGAIN || ret == -ENOBUFS || ret == -EINTR)
		r->again++;
	else if (ret == -EPIPE)
		app_fail("--server %s: the server has hung up", c->server);
	else if (ret == -EMSGSIZE)
		app_fail("-s %u: %s takes no frames of this size: %s", c->size, place(c),
			sl_strerror(ret));
	else if (ret != 0)
		app_fail("%s: send: %s", place(c), sl_strerror(ret));
}

/* Until every slot has come back. */
static void
drain(const struct tx_backend *b, const struct tx_conf *c, struct result *r)
{
	while (!b->idle() && !app_stopped())
		flush(b, c, r);
}

static void
run(const struct tx_backend *b, const struct tx_conf *c, struct result *r)
{
	static uint8_t frame[SIZE_MAX_BYTES];
	double start;
	uint32_t tries = 0;

	frame_make(frame, c->size);
	start = now_s();
	while ((c->count == 0 || r->sent < c->count) && !app_stopped()) {
		uint8_t *slot = b->next();

		if (slot == NULL) {
			flush(b, c, r);
			if (++tries % TRIES_MAX == 0 && b->refused() > 0)
				app_fail("-s %u: the other side refuses frames of this size",
					c->size);
			continue;
		}
		tries = 0;
		memcpy(frame + HEADER, &r->sent, sizeof(r->sent));
		memcpy(slot, frame, c->size);
		b->submit(c->size);
		r->sent++;
	}
	drain(b, c, r);
	r->seconds = now_s() - start;
}

static void
report(const struct tx_backend *b, const struct tx_conf *c, uint32_t slots, const struct result *r)
{
	double pps = r->seconds > 0 ? (double)r->sent / r->seconds : 0;

	if (c->json)
		printf("{\"backend\": \"%s\", \"version\": %d, \"size\": %u, \"frames\": %u, "
		       "\"sent\": %" PRIu64 ", \"seconds\": %.6f, \"pps\": %.0f, "
		       "\"bits_per_second\": %.0f, \"calls\": %" PRIu64 ", \"again\": %" PRIu64
		       "}\n",
			b->name, c->version + 1, c->size, slots, r->sent, r->seconds, pps,
			pps * c->size * 8, r->calls, r->again);
	else
		printf("%-8s %7s %6s %6s %12s %10s %12s %10s\n%-8s %7d %6u %6u %12" PRIu64
		       " %10.3f %12.0f %10" PRIu64 "\n",
			"backend", "version", "size", "slots", "sent", "seconds", "pps", "calls",
			b->name, c->version + 1, c->size, slots, r->sent, r->seconds, pps,
			r->calls);
}

int
main(int argc, char **argv)
{
	struct tx_conf c = {.version = TPACKET_V2, .size = 60, .frames = 1024, .count = 1000000};
	const struct tx_backend *b;
	struct result r = {0};
	uint32_t slots;
	char **own;
	int n;

	app_name_set("sluice-packet-tx");
	c.eal_argv = argv;
	n = app_args_split(argc, argv, &c.eal_argc, &own);
	lengthen(n, own);
	parse(n, own, &c);
	b = c.server != NULL ? &tx_server : c.iface != NULL ? &tx_kernel : &tx_port;
	slots = b->open(&c);
	app_catch_signals();
	run(b, &c, &r);
	report(b, &c, slots, &r);
	b->close();
	return 0;
}
