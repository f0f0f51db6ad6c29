/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_random.h>

#include "packet_help.h"
#include "sl_errno.h"

static void
side_emit(const struct bench_opts *opts, const char *bench, const char *name, const char *unit,
	const struct packet_side *side, const struct bench_series *s)
{
	struct bench_spread v = bench_spread(s);

	bench_emit(opts, json_pack("{s:s, s:s, s:f, s:s, s:s, s:f, s:f, s:i}", "bench", bench,
				 "case", name, "value", v.median, "unit", unit, "side", side->name,
				 "min", v.min, "max", v.max, "slices", (int)s->n));
}

static void
ratio_emit(const struct bench_opts *opts, const char *bench, const char *name,
	const struct packet_side *a, const struct packet_side *b, const struct bench_spread *r,
	unsigned int slices)
{
	char ratio[96];

	snprintf(ratio, sizeof(ratio), "%s/%s", a->name, b->name);
	bench_emit(opts, json_pack("{s:s, s:s, s:f, s:s, s:s, s:f, s:f, s:i}", "bench", bench,
				 "case", name, "value", r->median, "unit", "x", "ratio", ratio,
				 "min", r->min, "max", r->max, "slices", (int)slices));
}

/* In which order the sides have their slices of this round: by lot, so that none always follows the
 * same one, whose leftovers (the kernel's, above all) would be its own. */
static void
order_draw(unsigned int *order, unsigned int sides)
{
	for (unsigned int i = 0; i < sides; i++) {
		unsigned int at = (unsigned int)rte_rand_max(i + 1);

		order[i] = order[at];
		order[at] = i;
	}
}

int
packet_sides_run(const struct bench_opts *opts, const char *bench, const char *name,
	const char *unit, double seconds, const struct packet_side *side, unsigned int sides)
{
	static struct bench_series series[PACKET_SIDES_MAX];
	struct bench_plan plan = bench_plan(seconds, sides);
	unsigned int order[PACKET_SIDES_MAX];
	struct bench_spread ratio;

	memset(series, 0, sizeof(series));
	for (unsigned int i = 0; i < plan.slices && !bench_stopped(); i++) {
		bench_progress(name, i, plan.slices);
		order_draw(order, sides);
		for (unsigned int at = 0; at < sides; at++) {
			unsigned int k = order[at];
			double v = side[k].slice(side[k].arg, plan.seconds);

			if (v < 0) {
				fprintf(stderr, "sluice-bench: %s %s: %s failed\n", bench, name,
					side[k].name);
				return -EPROTO;
			}
			series[k].v[series[k].n++] = v;
		}
	}
	for (unsigned int k = 0; k < sides; k++)
		side_emit(opts, bench, name, unit, &side[k], &series[k]);
	for (unsigned int k = 1; k < sides; k++) {
		ratio = bench_ratio(&series[0], &series[k]);
		ratio_emit(opts, bench, name, &side[0], &side[k], &ratio, series[0].n);
	}
	return 0;
}

void
packet_skip(const struct bench_opts *opts, const char *bench, const char *name, const char *why)
{
	bench_emit(opts, json_pack("{s:s, s:s, s:n, s:s, s:s}", "bench", bench, "case", name,
				 "value", "unit", "skipped", "note", why));
}

static int
port_start(uint16_t port_id, struct rte_mempool *pool, unsigned int mtu)
{
	struct rte_eth_conf conf = {.rxmode = {.mtu = mtu}};
	int ret = rte_eth_dev_configure(port_id, 1, 1, &conf);

	if (ret == 0)
		ret = rte_eth_rx_queue_setup(port_id, 0, 512, SOCKET_ID_ANY, NULL, pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(port_id, 0, 512, SOCKET_ID_ANY, NULL);
	return ret == 0 ? rte_eth_dev_start(port_id) : ret;
}

int
packet_port_open(uint16_t *port_id, struct rte_mempool **pool, unsigned int mtu)
{
	int ret = rte_eal_hotplug_add("vdev", "net_null_packet", "size=64");

	if (ret == 0)
		ret = rte_eth_dev_get_port_by_name("net_null_packet", port_id);
	*pool = ret == 0 ? rte_pktmbuf_pool_create(
				   "bench_packet", 4095, 256, 0, 10240, SOCKET_ID_ANY)
			 : NULL;
	if (ret == 0)
		ret = *pool != NULL ? port_start(*port_id, *pool, mtu) : sl_rte_error();
	if (ret != 0)
		fprintf(stderr, "sluice-bench: a net_null port: %s\n", sl_strerror(ret));
	return ret;
}

void
packet_port_close(uint16_t port_id, struct rte_mempool *pool)
{
	rte_eth_dev_stop(port_id);
	rte_eth_dev_close(port_id);
	rte_mempool_free(pool);
}
