/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef EAL_HELP_H
#define EAL_HELP_H

/* EAL without hugepages, and a tap queue over an allocator of its own. */
#include <unistd.h>

#include <rte_eal.h>

#include "sl_frag_mbuf.h"
#include "sl_test_eal.h"
#include "sl_test_pool.h"
#include "tapq_priv.h"
#include "vring/driver.h"

static struct rte_mempool *headers, *large;
static uint32_t chunk_size; /* of the next tapq_open; 0: the mode's default */

static inline void
eal_start(void)
{
	REQUIRE(test_eal_start("tapq", "-l 0 --log-level=3") >= 0);
	headers = rte_pktmbuf_pool_create_by_ops(
		"headers", 4095, 0, 0, 0, SOCKET_ID_ANY, TEST_POOL_OPS_TSAN);
	large = rte_pktmbuf_pool_create_by_ops(
		"large", 255, 0, 0, 128 + 2048, SOCKET_ID_ANY, TEST_POOL_OPS_TSAN);
	REQUIRE(headers != NULL && large != NULL);
}

static inline int
eal_end(void)
{
	CHECK_EQ(rte_mempool_in_use_count(headers), 0);
	CHECK_EQ(rte_mempool_in_use_count(large), 0);
	rte_mempool_free(headers);
	rte_mempool_free(large);
	rte_eal_cleanup();
	return test_end() != 0 || test_bad != 0;
}

static inline struct sl_tapq *
tapq_open(enum sl_frag_mode mode, uint32_t workers, uint32_t chunks, uint32_t depth)
{
	struct sl_frag_conf frag = {.mode = mode,
		.workers = workers,
		.chunk_size = chunk_size,
		.chunks = chunks,
		.socket = -1};
	struct sl_tapq_conf conf = {
		.headers = headers, .large = large, .depth = depth, .headroom = 128};
	struct sl_tapq *q = NULL;

	REQUIRE(sl_frag_create(&frag, &conf.frag) == 0);
	REQUIRE(sl_frag_mbuf_bind(conf.frag) == 0);
	REQUIRE(sl_tapq_create(&conf, &q) == 0);
	return q;
}

static inline void
tapq_close(struct sl_tapq *q)
{
	struct sl_frag *f = q->conf.frag;

	sl_tapq_destroy(q);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

static inline struct sl_tapq_ring
ring_of(struct driver *d)
{
	return (struct sl_tapq_ring){.ring = &d->ring,
		.mem = &d->mem,
		.header = SL_TAPQ_VNET_LONG,
		.mergeable = true,
		.accept = SL_TAPQ_VNET_ACCEPT_CSUM | SL_TAPQ_VNET_ACCEPT_TSO4 | SL_TAPQ_VNET_ACCEPT_TSO6};
}

/* Write header and frame into the driver's memory at addr and make them available as one chain. */
static inline void
driver_send(struct driver *d, uint64_t addr, const struct sl_tapq_vnet_hdr *h, const void *frame,
	uint32_t len)
{
	struct piece p[2] = {{addr, SL_TAPQ_VNET_LONG, false}, {addr + SL_TAPQ_VNET_LONG, len, false}};

	memcpy(driver_host(d, addr), h, SL_TAPQ_VNET_LONG);
	if (len > 0)
		memcpy(driver_host(d, addr + SL_TAPQ_VNET_LONG), frame, len);
	driver_put(d, p, 2);
}

#endif
