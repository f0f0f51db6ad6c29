/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The hand-written loop of `udpq` on a port that the EAL arguments name: how much of a wire is left to
 * any receiver that parses, verifies and copies. config/compare-sinks.py puts it in the sink's place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sl_base.h"
#include "sl_errno.h"

#include "bench.h"
#include "udpq_loop.h"

#define PORT 0
#define UDP_PORT 9 /* discard, as senders of testpmd use it */
#define DESCRIPTORS 1024
#define POOL_SIZE 16383
#define POOL_CACHE 256

struct wire {
	struct rte_mempool *pool;
	uint8_t *user;
	struct loop_buffer buffer[LOOP_BURST];
	uint64_t received, taken;
	uint64_t first, last; /* TSC of the first packet's burst and of the last one's */
};

static void
receive(struct wire *w, uint64_t end)
{
	struct rte_mbuf *pkts[LOOP_BURST];
	uint64_t now;

	do {
		uint16_t n = rte_eth_rx_burst(PORT, 0, pkts, LOOP_BURST);

		now = rte_rdtsc();
		if (n == 0)
			continue;
		if (w->first == 0)
			w->first = now;
		w->last = now;
		w->received += n;
		w->taken += loop_take(pkts, n, RTE_BE16(UDP_PORT), w->buffer);
	} while (now < end && !bench_stopped());
}

static int
memory_get(struct wire *w)
{
	w->user = loop_buffers_make(w->buffer);
	w->pool = rte_pktmbuf_pool_create(
		"wire", POOL_SIZE, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (w->user == NULL || w->pool == NULL) {
		fprintf(stderr, "sluice-bench: no memory for %d packets\n", POOL_SIZE);
		return -ENOMEM;
	}
	return 0;
}

static void
emit(const struct bench_opts *opts, const struct wire *w)
{
	double seconds = (double)(w->last - w->first) / (double)rte_get_tsc_hz();

	bench_emit(opts,
		json_pack("{s:s, s:s, s:f, s:s, s:I, s:I}", "bench", "wire", "case", "loop", "value",
			seconds > 0 ? (double)w->taken / seconds : 0.0, "unit", "pps", "received",
			(json_int_t)w->received, "taken", (json_int_t)w->taken));
}

static int
run(const struct bench_opts *opts)
{
	struct wire w = {.pool = NULL};
	int ret;

	if (!bench_wanted(opts, "loop"))
		return 0;
	if (rte_eth_dev_count_avail() == 0) {
		fprintf(stderr, "sluice-bench: wire: no port; give one with EAL arguments, as in "
				"--vdev=net_vhost0,iface=PATH --\n");
		return -ENODEV;
	}
	ret = memory_get(&w);
	if (ret == 0) {
		ret = loop_port_start(PORT, DESCRIPTORS, w.pool);
		if (ret != 0)
			fprintf(stderr, "sluice-bench: cannot start port 0: %s\n", sl_strerror(ret));
	}
	if (ret == 0) {
		receive(&w, rte_rdtsc() + (uint64_t)(opts->seconds * (double)rte_get_tsc_hz()));
		emit(opts, &w);
		rte_eth_dev_stop(PORT);
		rte_eth_dev_close(PORT);
	}
	rte_mempool_free(w.pool);
	free(w.user);
	return ret;
}

const struct bench_command bench_wire = {
	.name = "wire",
	.what = "hand-written UDP loop on port 0 of the EAL arguments, until --seconds or Ctrl-C",
	.run = run,
};
