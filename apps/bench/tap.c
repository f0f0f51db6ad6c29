/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What a backend's burst costs: net_tapvu in each of its modes against net_vhost, fed by
 * virtio-user ports; and a frame's way into the kernel, over net_tapvu's bridge and over net_tap.
 * One lcore does both sides in turn, burst by burst, and only the side in question is timed; a
 * slice's value is the median of its bursts. So neither the frontend's speed nor other programs on
 * the CPU are in it, and neither is what it costs that the frontend is on another core:
 * config/compare-tapvu.py has that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "bench.h"
#include "sl_base.h"

#define BURST 32u
#define MBUFS 8191u
#define BURSTS_MAX 8192u
#define POLLS_MAX 1000000u
#define NAME_LEN 64
#define ARGS_LEN 256

/* Who gets a burst that virtio-user sent; or who sends one itself. */
struct side {
	const char *name;
	const char *driver;
	const char *args; /* "%s" is the socket */
	const char
		*kernel; /* interface that the frames leave by, or NULL: they come out as mbufs */
	bool frontend;	 /* fed over virtio-user */
	uint16_t port, peer; /* peer: what is sent to */
	struct bench_series cycles;
};

struct group {
	const char *name;
	struct side *side;
	unsigned int sides;
};

static struct side receivers[] = {
	{.name = "net_vhost", .driver = "net_vhost", .args = "iface=%s", .frontend = true},
	{.name = "lock", .driver = "net_tapvu", .args = "path=%s,frag=lock", .frontend = true},
	{.name = "lcore", .driver = "net_tapvu", .args = "path=%s,frag=lcore", .frontend = true},
	{.name = "page", .driver = "net_tapvu", .args = "path=%s,frag=page", .frontend = true},
};

static struct side bridges[] = {
	{.name = "net_tap", .driver = "net_tap", .args = "iface=slbtap0", .kernel = "slbtap0"},
	{.name = "bridge",
		.driver = "net_tapvu",
		.args = "path=%s,tap=slbtap1",
		.kernel = "slbtap1",
		.frontend = true},
	{.name = "bridge-calls",
		.driver = "net_tapvu",
		.args = "path=%s,tap=slbtap2,uring=0",
		.kernel = "slbtap2",
		.frontend = true},
};

static struct group groups[] = {
	{"receive", receivers, SL_COUNT_OF(receivers)},
	{"to-kernel", bridges, SL_COUNT_OF(bridges)},
};

static int
port_start(const char *name, struct rte_mempool *pool, uint16_t *port)
{
	struct rte_eth_conf conf = {0};
	int ret = rte_eth_dev_get_port_by_name(name, port);

	if (ret == 0)
		ret = rte_eth_dev_configure(*port, 1, 1, &conf);
	if (ret == 0)
		ret = rte_eth_rx_queue_setup(*port, 0, 256, SOCKET_ID_ANY, NULL, pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(*port, 0, 256, SOCKET_ID_ANY, NULL);
	return ret == 0 ? rte_eth_dev_start(*port) : ret;
}

static int
side_open(struct side *s, unsigned int n, const char *folder, struct rte_mempool *pool)
{
	char name[NAME_LEN], args[ARGS_LEN], socket[NAME_LEN];
	int ret;

	snprintf(socket, sizeof(socket), "%s/%u", folder, n);
	snprintf(name, sizeof(name), "%s%u", s->driver, 100 + n);
	snprintf(args, sizeof(args), s->args, socket);
	ret = rte_eal_hotplug_add("vdev", name, args);
	if (ret == 0)
		ret = port_start(name, pool, &s->port);
	if (ret != 0) {
		fprintf(stderr,
			"tap: no port of %s: is the driver there (EAL's -d PLUGIN), and has this "
			"user the right to make taps?\n",
			s->driver);
		return ret;
	}
	s->peer = s->port;
	if (!s->frontend)
		return 0;
	snprintf(name, sizeof(name), "net_virtio_user%u", 100 + n);
	snprintf(args, sizeof(args), "path=%s", socket);
	ret = rte_eal_hotplug_add("vdev", name, args);
	if (ret == 0)
		ret = port_start(name, pool, &s->peer);
	if (ret != 0)
		fprintf(stderr, "tap: no virtio-user port for %s\n", s->name);
	return ret;
}

/* The address that nobody has: the kernel looks at such a frame no further than that. */
static struct rte_mbuf *
frame_make(struct rte_mempool *pool, uint16_t size)
{
	static const uint8_t start[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		return NULL;
	memset(rte_pktmbuf_append(m, size), 0x5a, size);
	memcpy(rte_pktmbuf_mtod(m, void *), start, sizeof(start));
	return m;
}

/* What the backend is given; 0 when everything is taken. */
static int
burst_send(const struct side *s, struct rte_mempool *pool, uint16_t size, uint64_t *cycles)
{
	struct rte_mbuf *m[BURST];
	uint64_t begin;
	uint16_t sent = 0;

	for (uint32_t i = 0; i < BURST; i++)
		if ((m[i] = frame_make(pool, size)) == NULL)
			return -ENOMEM;
	begin = rte_rdtsc();
	for (uint32_t k = 0; k < POLLS_MAX && sent < BURST; k++)
		sent += rte_eth_tx_burst(s->peer, 0, m + sent, (uint16_t)(BURST - sent));
	*cycles = rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(m + sent, BURST - sent);
	return sent == BURST ? 0 : -EPROTO;
}

static uint64_t
kernel_frames(const struct side *s)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(s->port, &stats) == 0 ? stats.ipackets : 0;
}

/* Until all of a burst has arrived, and been freed. */
static int
burst_receive(const struct side *s, uint64_t *cycles)
{
	uint64_t begin = rte_rdtsc();
	uint32_t got = 0;

	for (uint32_t k = 0; k < POLLS_MAX && got < BURST; k++) {
		struct rte_mbuf *m[BURST];
		uint16_t n = rte_eth_rx_burst(s->port, 0, m, BURST);

		rte_pktmbuf_free_bulk(m, n);
		got += n;
		/* The bridge hands nothing out, and one call moves more than a burst. */
		if (s->kernel != NULL)
			break;
	}
	*cycles = rte_rdtsc() - begin;
	return got == BURST || s->kernel != NULL ? 0 : -EPROTO;
}

static int
compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* One slice: the median burst's cycles per frame. */
static int
slice_run(struct side *s, struct rte_mempool *pool, uint16_t size, double seconds)
{
	static uint64_t burst[BURSTS_MAX];
	uint64_t until = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
	uint64_t before = kernel_frames(s), send, receive = 0;
	uint32_t n = 0;

	do {
		int ret = burst_send(s, pool, size, &send);

		if (ret == 0 && s->frontend)
			ret = burst_receive(s, &receive);
		if (ret != 0)
			return ret;
		/* Into the kernel the frontend's share counts too: net_tap has none. */
		burst[n++] = s->kernel != NULL ? send + receive : receive;
	} while (n < BURSTS_MAX && rte_rdtsc() < until && !bench_stopped());
	if (s->frontend && kernel_frames(s) - before != (uint64_t)n * BURST)
		return -EPROTO;
	qsort(burst, n, sizeof(burst[0]), compare);
	if (s->cycles.n < BENCH_SLICES_MAX)
		s->cycles.v[s->cycles.n++] = (double)burst[n / 2] / BURST;
	return 0;
}

static void
emit(const struct bench_opts *opts, const struct group *g, uint16_t size)
{
	for (unsigned int i = 0; i < g->sides; i++) {
		struct bench_spread c = bench_spread(&g->side[i].cycles);
		char name[NAME_LEN];

		snprintf(name, sizeof(name), "%s/%u/%s", g->name, size, g->side[i].name);
		bench_emit(opts, json_pack("{s:s, s:s, s:f, s:s, s:f, s:f}", "bench", "tap", "case",
					 name, "value", c.median, "unit", "cycles/packet", "min",
					 c.min, "max", c.max));
	}
	for (unsigned int i = 1; i < g->sides; i++) {
		struct bench_spread r = bench_ratio(&g->side[0].cycles, &g->side[i].cycles);
		char name[NAME_LEN];

		snprintf(name, sizeof(name), "%s/%u/%s-over-%s", g->name, size, g->side[i].name,
			g->side[0].name);
		bench_emit(opts,
			json_pack("{s:s, s:s, s:f, s:s, s:f, s:f}", "bench", "tap", "case", name,
				"value", r.median, "unit", "ratio", "min", r.min, "max", r.max));
	}
}

static int
case_run(const struct bench_opts *opts, struct group *g, uint16_t size, struct rte_mempool *pool,
	struct bench_plan plan)
{
	for (unsigned int i = 0; i < g->sides; i++)
		g->side[i].cycles.n = 0;
	for (unsigned int k = 0; k < plan.slices && !bench_stopped(); k++) {
		for (unsigned int i = 0; i < g->sides; i++) {
			int ret = slice_run(&g->side[i], pool, size, plan.seconds);

			if (ret != 0) {
				fprintf(stderr, "tap: %s: frames are missing\n", g->side[i].name);
				return ret;
			}
		}
	}
	emit(opts, g, size);
	return 0;
}

static int
group_run(const struct bench_opts *opts, struct group *g, const char *folder,
	struct rte_mempool *pool)
{
	static const uint16_t sizes[] = {64, 256, 1500};
	struct bench_plan plan =
		bench_plan(opts->seconds / (SL_COUNT_OF(groups) * SL_COUNT_OF(sizes)), g->sides);
	unsigned int first = g == groups ? 0 : 16;
	int ret = 0;

	for (unsigned int i = 0; i < g->sides && ret == 0; i++)
		ret = side_open(&g->side[i], first + i, folder, pool);
	for (size_t i = 0; i < SL_COUNT_OF(sizes) && ret == 0 && !bench_stopped(); i++) {
		char name[NAME_LEN];

		snprintf(name, sizeof(name), "%s/%u", g->name, sizes[i]);
		bench_progress(name, (unsigned int)i, (unsigned int)SL_COUNT_OF(sizes));
		if (bench_wanted(opts, name))
			ret = case_run(opts, g, sizes[i], pool, plan);
	}
	return ret;
}

static void
ports_close(void)
{
	uint16_t port;

	/* Frontends first: they were made last. */
	for (port = RTE_MAX_ETHPORTS; port-- > 0;)
		if (rte_eth_dev_is_valid_port(port)) {
			(void)rte_eth_dev_stop(port);
			(void)rte_eth_dev_close(port);
		}
}

static int
run(const struct bench_opts *opts)
{
	char folder[] = "/tmp/sluice-bench-XXXXXX";
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("bench tap", MBUFS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	int ret = 0;

	if (pool == NULL || mkdtemp(folder) == NULL) {
		fprintf(stderr, "tap: no memory for packets, or no folder in /tmp\n");
		return -ENOMEM;
	}
	for (size_t i = 0; i < SL_COUNT_OF(groups) && ret == 0; i++)
		if (opts->filter == NULL || strstr(opts->filter, groups[i ^ 1].name) == NULL)
			ret = group_run(opts, &groups[i], folder, pool);
	ports_close();
	if (rmdir(folder) != 0)
		fprintf(stderr, "tap: %s is not empty\n", folder);
	return ret;
}

const struct bench_command bench_tap = {
	.name = "tap",
	.what = "net_tapvu against net_vhost, its kernel bridge against net_tap (root; -d PLUGIN)",
	.run = run,
};
