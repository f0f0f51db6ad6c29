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
#define PRIV 64
#define ROOM 2048

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
		CHECK(m[i]->buf_addr == (char *)m[i] + sizeof(*m[i]) + PRIV);
		CHECK_EQ(m[i]->priv_size, PRIV);
		CHECK_EQ(m[i]->buf_len, ROOM);
		CHECK_EQ(m[i]->ol_flags, 0);
		CHECK_EQ(rte_mbuf_iova_get(m[i]),
			rte_mempool_virt2iova(m[i]) + sizeof(*m[i]) + PRIV);
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
	CHECK(addr != NULL && arg != NULL);
	external_freed++;
}

/* A packet over a buffer whose count has that many holders. */
static struct rte_mbuf *
external_of(struct rte_mempool *from, struct rte_mbuf_ext_shared_info *info, uint16_t holders)
{
	static uint8_t area[2048];
	struct rte_mbuf *m = take(from);

	info->free_cb = on_external_free;
	info->fcb_opaque = info;
	rte_mbuf_ext_refcnt_set(info, holders);
	rte_pktmbuf_attach_extbuf(m, area, RTE_BAD_IOVA, sizeof(area), info);
	m->data_len = 60;
	return m;
}

static struct rte_mbuf *
external(void)
{
	static struct rte_mbuf_ext_shared_info info;

	return external_of(pool, &info, 1);
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

/* Bursts over pages: `pages` of them take turns of `run` packets each, and `others` more holders
 * have a reference to each page. */
static void
over_pages(uint16_t pages, uint16_t run, uint16_t others)
{
	struct rte_mbuf_ext_shared_info info[BURST];
	uint16_t holders[BURST] = {0};
	void *bufs[BURST];

	external_freed = 0;
	for (uint16_t i = 0; i < BURST; i++) {
		uint16_t page = i / run % pages;

		holders[page]++;
		bufs[i] = external_of(pool, &info[page], (uint16_t)(holders[page] + others));
	}
	sl_udpq_free_mbufs(bufs, BURST);
	CHECK_EQ(external_freed, others == 0 ? pages : 0);
	for (uint16_t page = 0; page < pages; page++)
		CHECK_EQ(rte_mbuf_ext_refcnt_read(&info[page]), others);
	check_pools();
}

static void
bursts_over_pages(void)
{
	for (uint16_t others = 0; others < 3; others++) {
		over_pages(1, BURST, others);
		over_pages(BURST, 1, others);
		over_pages(2, 1, others);
		over_pages(2, 3, others);
		over_pages(3, 2, others);
	}
}

/* One of the other pool, and one with its own buffer, among packets over a page. */
static void
odd_ones_over_a_page(void)
{
	for (uint16_t at = 0; at < BURST; at++) {
		struct rte_mbuf_ext_shared_info info;
		void *bufs[BURST];

		external_freed = 0;
		for (uint16_t i = 0; i < BURST; i++)
			bufs[i] = i == at ? take(pool) : external_of(pool, &info, BURST - 1);
		sl_udpq_free_mbufs(bufs, BURST);
		CHECK_EQ(external_freed, 1);
		check_pools();
		for (uint16_t i = 0; i < BURST; i++)
			bufs[i] = external_of(i == at ? other : pool, &info, BURST);
		sl_udpq_free_mbufs(bufs, BURST);
		CHECK_EQ(external_freed, 2);
		check_pools();
	}
}

/* A copy of a packet over a page has a reference of its own to it. */
static void
clones_over_a_page(void)
{
	struct rte_mbuf_ext_shared_info info;
	struct rte_mbuf *m = external_of(pool, &info, 1);
	void *bufs[2] = {m, rte_pktmbuf_clone(m, pool)};

	external_freed = 0;
	REQUIRE(bufs[1] != NULL);
	CHECK_EQ(rte_mbuf_ext_refcnt_read(&info), 2);
	sl_udpq_free_mbufs(bufs, 2);
	CHECK_EQ(external_freed, 1);
	check_pools();
}

/* Packets of such a pool keep their external buffers for good. */
static void
pinned_buffers_stay(void)
{
	static uint8_t area[BURST * (ROOM + RTE_PKTMBUF_HEADROOM)];
	struct rte_pktmbuf_extmem ext = {.buf_ptr = area,
		.buf_iova = RTE_BAD_IOVA,
		.buf_len = sizeof(area),
		.elt_size = ROOM};
	struct rte_mempool *pinned =
		rte_pktmbuf_pool_create_extbuf("pinned", BURST, 0, 0, ROOM, SOCKET_ID_ANY, &ext, 1);
	void *bufs[BURST];

	REQUIRE(pinned != NULL);
	for (int turn = 0; turn < 2; turn++) {
		for (uint16_t i = 0; i < BURST; i++) {
			struct rte_mbuf *m = take(pinned);

			CHECK(RTE_MBUF_HAS_PINNED_EXTBUF(m));
			CHECK((uint8_t *)m->buf_addr >= area &&
				(uint8_t *)m->buf_addr < area + sizeof(area));
			bufs[i] = m;
		}
		sl_udpq_free_mbufs(bufs, BURST);
		CHECK_EQ(rte_mempool_avail_count(pinned), BURST);
	}
	rte_mempool_free(pinned);
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
	pool = rte_pktmbuf_pool_create("pool", POOL_SIZE, 0, PRIV, ROOM, SOCKET_ID_ANY);
	other = rte_pktmbuf_pool_create("other", POOL_SIZE, 0, PRIV, ROOM, SOCKET_ID_ANY);
	REQUIRE(pool != NULL && other != NULL);
	SL_TEST_RUN(plain_bursts);
	SL_TEST_RUN(odd_ones_in_a_burst);
	SL_TEST_RUN(bursts_over_pages);
	SL_TEST_RUN(odd_ones_over_a_page);
	SL_TEST_RUN(clones_over_a_page);
	SL_TEST_RUN(pinned_buffers_stay);
	SL_TEST_RUN(shared_packet_stays);
	rte_mempool_free(pool);
	rte_mempool_free(other);
	rte_eal_cleanup();
	return test_end();
}
