/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Slots as mbufs: attach, free on another thread, cancel, copy, and storing chains. */
#include <pthread.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "ring_help.h"
#include "sl_pktring_mbuf.h"
#include "sl_test_eal.h"

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

/* The burst makes of raw mbufs what alloc, peek, take and attach make of them one by one. */
static void
bursts_lend_the_same(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_pktring_tx *ring = ring_for_lcores(v);
		struct sl_pktring_lend want = {14, 1500, rte_lcore_id(), 7};
		struct rte_mbuf *one = attach_next(ring, v, 0, 1500), *m[4];
		uint32_t len[4] = {0};

		for (uint32_t i = 1; i <= 3; i++)
			sl_pktring_request(v, tx_slot(ring, i), i == 2 ? 14 : 1500);
		REQUIRE(rte_mempool_get_bulk(pool, (void **)m, 4) == 0);
		for (int i = 0; i < 4; i++) /* whatever its last user left in it */
			memset(&m[i]->packet_type, 0x5a, 8 + 4 + 2 + 8);
		CHECK_EQ(sl_pktring_mbuf_lend(ring, &want, m, len, 4), 3);
		CHECK_EQ(sl_pktring_tx_pending(ring), 4);
		CHECK_EQ(len[0], 1500);
		CHECK_EQ(len[1], 14);
		CHECK_EQ(len[2], 1500);
		for (uint32_t i = 0; i < 3; i++) {
			CHECK(rte_pktmbuf_mtod(m[i], uint8_t *) ==
				tx_slot(ring, i + 1) + sl_pktring_data(v));
			CHECK_EQ(m[i]->pkt_len, len[i]);
			CHECK_EQ(m[i]->data_len, len[i]);
			CHECK_EQ(m[i]->port, 7);
			CHECK_EQ(rte_mbuf_check(m[i], 1, &(const char *){0}), 0);
			CHECK_EQ(sl_pktring_status(v, tx_slot(ring, i + 1)), TP_STATUS_SENDING);
		}
		CHECK_EQ(m[0]->ol_flags, one->ol_flags);
		CHECK_EQ(m[0]->data_off, one->data_off);
		CHECK_EQ(m[0]->buf_len, one->buf_len);
		CHECK_EQ(m[0]->nb_segs, one->nb_segs);
		CHECK_EQ(m[0]->packet_type, one->packet_type);
		CHECK_EQ(m[0]->vlan_tci, one->vlan_tci);
		CHECK_EQ(m[0]->vlan_tci_outer, one->vlan_tci_outer);
		CHECK_EQ(m[0]->tx_offload, one->tx_offload);
		CHECK((m[0]->buf_iova == RTE_BAD_IOVA) == (one->buf_iova == RTE_BAD_IOVA));
		CHECK(m[0]->next == NULL);
		rte_mempool_put(pool, m[3]);
		/* The last that was lent is given back unsent, and is lent again. */
		sl_pktring_mbuf_cancel(ring, m[2], rte_lcore_id());
		CHECK_EQ(sl_pktring_status(v, tx_slot(ring, 3)), TP_STATUS_SEND_REQUEST);
		REQUIRE(rte_mempool_get(pool, (void **)&m[2]) == 0);
		CHECK_EQ(sl_pktring_mbuf_lend(ring, &want, &m[2], len, 1), 1);
		rte_pktmbuf_free_bulk(m, 3);
		rte_pktmbuf_free(one);
		for (uint32_t i = 0; i < 4; i++)
			CHECK_EQ(sl_pktring_status(v, tx_slot(ring, i)), TP_STATUS_AVAILABLE);
		CHECK_EQ(sl_pktring_tx_pending(ring), 0);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static const uint32_t fetch_size[] = {14, 63, 64, 65, 128, 129, 500};
#define FETCHED SL_COUNT_OF(fetch_size)

/* Ask for a frame of each size from slot `at` on; its bytes are its number's. */
static void
fetch_requests(struct sl_pktring_tx *ring, int version, uint32_t at)
{
	for (uint32_t i = 0; i < FETCHED; i++) {
		uint8_t *slot = tx_slot(ring, (at + i) % FRAMES);

		memset(slot + sl_pktring_data(version), (int)(at + i), fetch_size[i]);
		sl_pktring_request(version, slot, fetch_size[i]);
	}
}

/* Everything that a fresh mbuf has, and the frame in it. */
static void
check_fetched(const struct rte_mbuf *m, uint32_t size, uint8_t fill)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	CHECK_EQ(m->pkt_len, size);
	CHECK_EQ(m->data_len, size);
	CHECK_EQ(p[0], fill);
	CHECK_EQ(p[size - 1], fill);
	CHECK_EQ(m->data_off, RTE_PKTMBUF_HEADROOM);
	CHECK_EQ(m->nb_segs, 1);
	CHECK_EQ(m->port, 7);
	CHECK_EQ(m->ol_flags, 0);
	CHECK_EQ(m->packet_type, 0);
	CHECK_EQ(m->vlan_tci, 0);
	CHECK_EQ(m->vlan_tci_outer, 0);
	CHECK_EQ(m->tx_offload, 0);
	CHECK_EQ(rte_mbuf_check(m, 1, &(const char *){0}), 0);
}

/* Copies in raw mbufs; the slots are given back in one piece over the ring's end, or the head goes
 * back. */
static void
bursts_are_fetched(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_pktring_tx *ring = ring_for_lcores(v);
		struct sl_pktring_lend want = {14, 500, rte_lcore_id(), 7};
		struct rte_mbuf *m[FRAMES];
		uint32_t len[FRAMES], first;

		for (uint32_t lap = 0; lap < 20; lap += FETCHED) {
			CHECK(!sl_pktring_tx_requested(ring));
			fetch_requests(ring, v, lap);
			CHECK(sl_pktring_tx_requested(ring));
			REQUIRE(rte_mempool_get_bulk(pool, (void **)m, FRAMES) == 0);
			for (uint32_t i = 0; i < FRAMES; i++) /* what its last user left in it */
				memset(&m[i]->packet_type, 0x5a, 8 + 4 + 2 + 8);
			CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, m, len, FRAMES, &first),
				FETCHED);
			CHECK_EQ(first, lap % FRAMES);
			CHECK_EQ(sl_pktring_tx_pending(ring), 0);
			for (uint32_t i = 0; i < FETCHED; i++) {
				CHECK_EQ(len[i], fetch_size[i]);
				check_fetched(m[i], fetch_size[i], (uint8_t)(lap + i));
				CHECK_EQ(sl_pktring_status(v, tx_slot(ring, (lap + i) % FRAMES)),
					TP_STATUS_SENDING);
			}
			/* Two are not sent, and are fetched again. */
			sl_pktring_tx_back(ring);
			sl_pktring_tx_back(ring);
			CHECK_EQ(sl_pktring_status(v, tx_slot(ring, (lap + 5) % FRAMES)),
				TP_STATUS_SEND_REQUEST);
			CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, m + 5, len, 2, &first), 2);
			CHECK_EQ(first, (lap + 5) % FRAMES);
			sl_pktring_tx_give(ring, lap % FRAMES, FETCHED);
			for (uint32_t i = 0; i < FRAMES; i++)
				CHECK_EQ(sl_pktring_status(v, tx_slot(ring, i)),
					TP_STATUS_AVAILABLE);
			rte_pktmbuf_free_bulk(m, FETCHED);
			rte_mempool_put(pool, m[FETCHED]);
		}
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

/* A ring that is full of requests is fetched once, not lap after lap. */
static void
a_full_ring_is_fetched_once(void)
{
	struct sl_pktring_tx *ring = ring_for_lcores(TPACKET_V2);
	struct sl_pktring_lend want = {14, 500, rte_lcore_id(), 7};
	struct rte_mbuf *m[2 * FRAMES];
	uint32_t len[2 * FRAMES], first, second;

	for (uint32_t i = 0; i < FRAMES; i++)
		sl_pktring_request(TPACKET_V2, tx_slot(ring, i), 60);
	REQUIRE(rte_mempool_get_bulk(pool, (void **)m, 2 * FRAMES) == 0);
	CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, m, len, 2 * FRAMES, &first), FRAMES);
	CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, m, len, 2 * FRAMES, &second), 0);
	sl_pktring_tx_give(ring, first, FRAMES);
	rte_mempool_put_bulk(pool, (void **)m, 2 * FRAMES);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

/* In frames with no room for whole lines, and in mbufs with none, what is copied is the packet. */
static void
fetching_stays_within(void)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_TX, TPACKET_V2, 128);
	struct sl_pktring_tx_conf conf = {.timestamp = true};
	struct sl_pktring_lend want = {14, 96, 0, 0};
	struct rte_mempool *tiny = rte_pktmbuf_pool_create("tiny", 4, 0, 0, 128 + 96, -1);
	struct sl_pktring_tx *ring;
	struct rte_mbuf *m;
	uint32_t len, first;

	REQUIRE(tiny != NULL && sl_pktring_tx_create(&geo, &conf, 1, &ring) == 0);
	memset(sl_pktring_tx_mem(ring)->addr, 0x11, 2 * 128);
	sl_pktring_request(TPACKET_V2, tx_slot(ring, 0), 96);
	sl_pktring_request(TPACKET_V2, tx_slot(ring, 1), 97); /* beyond the frame */
	REQUIRE(rte_mempool_get(tiny, (void **)&m) == 0);
	CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, &m, &len, 1, &first), 1);
	CHECK_EQ(m->data_len, 96);
	CHECK_EQ(rte_pktmbuf_mtod(m, uint8_t *)[95], 0x11);
	sl_pktring_tx_give(ring, first, 1);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, tx_slot(ring, 0)),
		TP_STATUS_AVAILABLE | TP_STATUS_TS_SOFTWARE);
	rte_pktmbuf_free(m);
	REQUIRE(rte_mempool_get(tiny, (void **)&m) == 0);
	want.most = 5000;
	CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, &m, &len, 1, &first), 0);
	want = (struct sl_pktring_lend){.least = 100, .most = 50};
	CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, &m, &len, 1, &first), 0);
	rte_mempool_put(tiny, m);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	rte_mempool_free(tiny);
}

/* Whatever has something to it is left for peek to say what. */
static void
bursts_stop_at_peculiar_slots(void)
{
	static const struct {
		const char *what;
		uint32_t len;
		struct sl_pktring_tx_conf conf;
		int peek;
	} rows[] = {{"no request", 0, {0}, 0}, {"short", 13, {0}, 1}, {"long", 1501, {0}, 1},
		{"longer than the frame", FRAME, {0}, -EMSGSIZE},
		{"offset", 60, {.has_off = true}, -EINVAL},
		{"vnet header", 60, {.vnet_size = 10}, 1}};

	for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
		struct sl_pktring_tx *ring = ring_tx(TPACKET_V2, rows[i].conf);
		struct sl_pktring_lend want = {14, i == 3 ? UINT16_MAX : 1500, 0, 0};
		struct sl_pktring_frame f;
		struct rte_mbuf *m;
		uint32_t len, first;

		REQUIRE(rte_mempool_get(pool, (void **)&m) == 0);
		if (rows[i].len > 0)
			sl_pktring_request(TPACKET_V2, tx_slot(ring, 0), rows[i].len);
		CHECK_EQ(sl_pktring_mbuf_lend(ring, &want, &m, &len, 1), 0);
		CHECK_EQ(sl_pktring_mbuf_fetch(ring, &want, &m, &len, 1, &first), 0);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), rows[i].peek);
		CHECK_EQ(sl_pktring_tx_pending(ring), 0);
		rte_mempool_put(pool, m);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
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
	REQUIRE(test_eal_start("pktring-mbuf", "-l 0 --log-level=error") >= 0);
	pool = rte_pktmbuf_pool_create("pool", 64, 0, 0, 2048 + 128, -1);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(buffer_is_the_slot);
	SL_TEST_RUN(canceled_slots_are_requests);
	SL_TEST_RUN(bursts_lend_the_same);
	SL_TEST_RUN(bursts_are_fetched);
	SL_TEST_RUN(a_full_ring_is_fetched_once);
	SL_TEST_RUN(fetching_stays_within);
	SL_TEST_RUN(bursts_stop_at_peculiar_slots);
	SL_TEST_RUN(copies_span_mbufs);
	SL_TEST_RUN(chains_are_stored);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}
