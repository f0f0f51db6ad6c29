/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "sl_test.h"
#include "sl_test_eal.h"

#include "sl_udpq_mbuf.h"

#define POOL_SIZE 63
#define BURST 8

static struct rte_mempool *pool, *other;
static unsigned int external_freed;

static struct rte_mbuf *
take(struct rte_mempool *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from);

	REQUIRE(m != NULL);
	return m;
}

/* All packets are back, and as fresh ones: one that went back in a bad state would come out in it.
 */
static void
check_pools(void)
{
	struct rte_mbuf *m[POOL_SIZE];

	CHECK_EQ(rte_mempool_avail_count(other), POOL_SIZE);
	CHECK_EQ(rte_mempool_avail_count(pool), POOL_SIZE);
	for (int i = 0; i < POOL_SIZE; i++) {
		m[i] = rte_mbuf_raw_alloc(pool); /* does not reset anything */
		REQUIRE(m[i] != NULL);
		CHECK_EQ(rte_mbuf_refcnt_read(m[i]), 1);
		CHECK_EQ(m[i]->nb_segs, 1);
		CHECK(m[i]->next == NULL);
		CHECK(RTE_MBUF_DIRECT(m[i]));
	}
	rte_pktmbuf_free_bulk(m, POOL_SIZE);
}

static void
plain_bursts(void)
{
	for (uint16_t n = 0; n <= BURST; n++) {
		void *bufs[BURST];

		for (uint16_t i = 0; i < n; i++)
			bufs[i] = take(pool);
		sl_udpq_free_mbufs(bufs, n);
		check_pools();
	}
}

/* Free a burst of plain packets with one odd one at each place. */
static void
burst_with(struct rte_mbuf *(*odd)(void))
{
	for (uint16_t at = 0; at < BURST; at++) {
		void *bufs[BURST];

		for (uint16_t i = 0; i < BURST; i++)
			bufs[i] = i == at ? odd() : take(pool);
		sl_udpq_free_mbufs(bufs, BURST);
		check_pools();
	}
}

static struct rte_mbuf *
of_other_pool(void)
{
	return take(other);
}

static struct rte_mbuf *
chain(void)
{
	struct rte_mbuf *m = take(pool);

	REQUIRE(rte_pktmbuf_chain(m, take(other)) == 0);
	REQUIRE(rte_pktmbuf_chain(m, take(pool)) == 0);
	return m;
}

/* Attached to another packet's buffer, which goes back with it. */
static struct rte_mbuf *
attached(void)
{
	struct rte_mbuf *m = take(pool), *owner = take(pool);

	rte_pktmbuf_attach(m, owner);
	rte_pktmbuf_free(owner);
	return m;
}

static void
on_external_free(void *addr, void *arg)
{
	(void)addr;
	(void)arg;
	external_freed++;
}

static struct rte_mbuf *
external(void)
{
	static uint8_t area[2048];
	static struct rte_mbuf_ext_shared_info info = {.free_cb = on_external_free};
	struct rte_mbuf *m = take(pool);

	rte_mbuf_ext_refcnt_set(&info, 1);
	rte_pktmbuf_attach_extbuf(m, area, RTE_BAD_IOVA, sizeof(area), &info);
	return m;
}

static void
odd_ones_in_a_burst(void)
{
	burst_with(of_other_pool);
	burst_with(chain);
	burst_with(attached);
	burst_with(external);
	CHECK_EQ(external_freed, BURST);
}

/* Who else holds the packet still has it. */
static void
shared_packet_stays(void)
{
	struct rte_mbuf *m = take(pool);
	void *bufs[2] = {m, take(pool)};

	rte_mbuf_refcnt_update(m, 1);
	sl_udpq_free_mbufs(bufs, 2);
	CHECK_EQ(rte_mempool_avail_count(pool), POOL_SIZE - 1);
	CHECK_EQ(rte_mbuf_refcnt_read(m), 1);
	rte_pktmbuf_free(m);
	check_pools();
}

int
main(void)
{
	REQUIRE(test_eal_start("udpq-mbuf", "-l 0") >= 0);
	pool = rte_pktmbuf_pool_create("pool", POOL_SIZE, 0, 0, 2048, SOCKET_ID_ANY);
	other = rte_pktmbuf_pool_create("other", POOL_SIZE, 0, 0, 2048, SOCKET_ID_ANY);
	REQUIRE(pool != NULL && other != NULL);
	SL_TEST_RUN(plain_bursts);
	SL_TEST_RUN(odd_ones_in_a_burst);
	SL_TEST_RUN(shared_packet_stays);
	rte_mempool_free(pool);
	rte_mempool_free(other);
	rte_eal_cleanup();
	return test_end();
}
