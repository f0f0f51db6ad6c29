/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Slots as mbufs: attach, free on another thread, cancel, copy, and storing chains. */
#include <pthread.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "ring_help.h"
#include "sl_pktring_mbuf.h"

static struct rte_mempool *pool;

static struct sl_pktring_tx *
ring_for_lcores(int version)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_TX, version, FRAME);
	struct sl_pktring_tx_conf conf = {0};
	struct sl_pktring_tx *ring;

	REQUIRE(sl_pktring_tx_create(&geo, &conf, RTE_MAX_LCORE, &ring) == 0);
	return ring;
}

static struct rte_mbuf *
attach_next(struct sl_pktring_tx *ring, int version, uint32_t n, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct sl_pktring_frame f;

	REQUIRE(m != NULL);
	memset(tx_slot(ring, n) + sl_pktring_data(version), (int)(n + 1), len);
	sl_pktring_request(version, tx_slot(ring, n), len);
	REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
	sl_pktring_tx_take(ring, rte_lcore_id());
	sl_pktring_mbuf_attach(ring, &f, m);
	return m;
}

static void *
free_here(void *m)
{
	CHECK_EQ(rte_lcore_id(), LCORE_ID_ANY);
	rte_pktmbuf_free(m);
	return NULL;
}

static void
buffer_is_the_slot(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_pktring_tx *ring = ring_for_lcores(v);
		struct rte_mbuf *m = attach_next(ring, v, 0, 1500), *other;
		pthread_t thread;

		CHECK(rte_pktmbuf_mtod(m, uint8_t *) == tx_slot(ring, 0) + sl_pktring_data(v));
		CHECK_EQ(m->pkt_len, 1500);
		CHECK_EQ(rte_pktmbuf_headroom(m), 0);
		CHECK_EQ(rte_pktmbuf_tailroom(m), 0);
		CHECK(rte_mbuf_check(m, 1, &(const char *){0}) == 0);
		/* A clone shares the slot; the last one to go completes it, here on a thread that
		 * has no lcore id. */
		other = rte_pktmbuf_clone(m, pool);
		REQUIRE(other != NULL);
		rte_pktmbuf_free(m);
		CHECK_EQ(sl_pktring_status(v, tx_slot(ring, 0)), TP_STATUS_SENDING);
		CHECK_EQ(sl_pktring_tx_destroy(ring), -EBUSY);
		REQUIRE(pthread_create(&thread, NULL, free_here, other) == 0);
		pthread_join(thread, NULL);
		CHECK_EQ(sl_pktring_status(v, tx_slot(ring, 0)), TP_STATUS_AVAILABLE);
		CHECK_EQ(sl_pktring_tx_pending(ring), 0);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static void
canceled_slots_are_requests(void)
{
	struct sl_pktring_tx *ring = ring_for_lcores(TPACKET_V2);
	struct rte_mbuf *m[3];

	for (uint32_t i = 0; i < 3; i++)
		m[i] = attach_next(ring, TPACKET_V2, i, 60);
	for (uint32_t i = 2; i > 0; i--)
		sl_pktring_mbuf_cancel(ring, m[i], rte_lcore_id());
	CHECK_EQ(sl_pktring_tx_pending(ring), 1);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, tx_slot(ring, 1)), TP_STATUS_SEND_REQUEST);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, tx_slot(ring, 2)), TP_STATUS_SEND_REQUEST);
	/* The record of a canceled slot is good for the next time. */
	m[1] = attach_next(ring, TPACKET_V2, 1, 60);
	rte_pktmbuf_free(m[1]);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, tx_slot(ring, 1)), TP_STATUS_AVAILABLE);
	rte_pktmbuf_free(m[0]);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static void
copies_span_mbufs(void)
{
	struct sl_pktring_tx *ring = ring_for_lcores(TPACKET_V2);
	struct rte_mempool *small = rte_pktmbuf_pool_create("small", 8, 0, 0, 128 + 500, -1);
	struct rte_mbuf *m, *keep[8];
	struct sl_pktring_frame f;
	const uint8_t *byte;
	uint8_t buf[1];

	REQUIRE(small != NULL);
	for (uint32_t i = 0; i < 2000; i++)
		tx_slot(ring, 0)[32 + i] = (uint8_t)(i % 251);
	sl_pktring_request(TPACKET_V2, tx_slot(ring, 0), 2000);
	REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
	m = sl_pktring_mbuf_copy(ring, &f, small);
	REQUIRE(m != NULL);
	CHECK_EQ(m->nb_segs, 4);
	CHECK_EQ(m->pkt_len, 2000);
	for (uint32_t i = 0; i < 2000; i += 7) {
		byte = rte_pktmbuf_read(m, i, 1, buf);
		CHECK_EQ(*byte, i % 251);
	}
	/* With too few left, nothing is lost. */
	REQUIRE(rte_pktmbuf_alloc_bulk(small, keep, 2) == 0);
	CHECK(sl_pktring_mbuf_copy(ring, &f, small) == NULL);
	CHECK_EQ(rte_mempool_in_use_count(small), 6);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(keep, 2);
	CHECK_EQ(rte_mempool_in_use_count(small), 0);
	rte_mempool_free(small);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

static void
chains_are_stored(void)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, TPACKET_V2, FRAME);
	struct sl_pktring_meta meta = {.len = 250, .maclen = 0, .ns = SEC};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *tail = rte_pktmbuf_alloc(pool);
	struct sl_pktring_rx *ring;
	bool visible = false;

	REQUIRE(m != NULL && tail != NULL);
	for (uint32_t i = 0; i < 264; i++)
		*(uint8_t *)rte_pktmbuf_append(i < 100 ? m : tail, 1) = (uint8_t)(i * 3);
	REQUIRE(rte_pktmbuf_chain(m, tail) == 0);
	REQUIRE(sl_pktring_rx_create(&geo, SEC, &ring) == 0);
	CHECK_EQ(sl_pktring_mbuf_store(ring, &meta, m, 14, &visible), 0);
	CHECK(visible);
	for (uint32_t i = 0; i < 250; i++)
		CHECK_EQ(rx_slot(ring, 0)[80 + i], (uint8_t)((i + 14) * 3));
	rte_pktmbuf_free(m);
	sl_pktring_rx_destroy(ring);
}

int
main(void)
{
	const char *eal[] = {"test", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0",
		"--file-prefix=pktring_mbuf", "--log-level=error"};

	REQUIRE(rte_eal_init((int)SL_COUNT_OF(eal), (char **)(uintptr_t)eal) >= 0);
	pool = rte_pktmbuf_pool_create("pool", 64, 0, 0, 2048 + 128, -1);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(buffer_is_the_slot);
	SL_TEST_RUN(canceled_slots_are_requests);
	SL_TEST_RUN(copies_span_mbufs);
	SL_TEST_RUN(chains_are_stored);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}
