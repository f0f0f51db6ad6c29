/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Slices as mbufs: data where it belongs, the count shared with clones, memory until the last free.
 */
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "frag_help.h"
#include "sl_frag_mbuf.h"
#include "sl_test_eal.h"

static struct rte_mempool *headers;

static struct rte_mbuf *
packet(struct sl_frag *f, uint16_t headroom, uint16_t len, uint8_t fill)
{
	uint32_t size = (uint32_t)headroom + len;
	struct sl_frag_slice s;
	struct rte_mbuf *m;

	REQUIRE(rte_mempool_get(headers, (void **)&m) == 0);
	REQUIRE(sl_frag_carve(f, 0, size, &s) == 0);
	memset(s.addr + headroom, fill, len);
	sl_frag_mbuf_attach_bulk(f, &s, &m, &size, 1, headroom, 3);
	CHECK_EQ(m->port, 3);
	return m;
}

static struct sl_frag *
create_bound(enum sl_frag_mode mode, uint32_t chunks)
{
	struct sl_frag *f = frag_create(mode, 1, 4096, chunks);

	CHECK_EQ(sl_frag_mbuf_bind(f), 0);
	return f;
}

static void
an_mbuf_over_a_slice(void)
{
	struct sl_frag *f = create_bound(SL_FRAG_LOCK, 4);
	struct rte_mbuf *m = packet(f, 128, 60, 7);
	const char *why = NULL;

	CHECK(RTE_MBUF_HAS_EXTBUF(m));
	CHECK_EQ(m->buf_len, 192);
	CHECK_EQ(rte_pktmbuf_headroom(m), 128);
	CHECK_EQ(rte_pktmbuf_tailroom(m), 4);
	CHECK_EQ(rte_pktmbuf_pkt_len(m), 60);
	CHECK_EQ(*rte_pktmbuf_mtod_offset(m, uint8_t *, 59), 7);
	CHECK_EQ(rte_mbuf_check(m, 1, &why), 0);
	CHECK(rte_eal_iova_mode() != RTE_IOVA_VA ||
		rte_pktmbuf_iova(m) == (uintptr_t)m->buf_addr + 128);
	rte_pktmbuf_free(m);
	CHECK(sl_frag_check(f, NULL));
	CHECK_EQ(rte_mempool_in_use_count(headers), 0);
	sl_frag_destroy(f);
}

static void
neighbours_do_not_touch(void)
{
	struct sl_frag *f = create_bound(SL_FRAG_LCORE, 4);
	struct rte_mbuf *m[40];

	for (uint8_t i = 0; i < 40; i++)
		m[i] = packet(f, 64, 100, i);
	for (uint8_t i = 0; i < 40; i++)
		for (int b = 0; b < 100; b++)
			CHECK_EQ(*rte_pktmbuf_mtod_offset(m[i], uint8_t *, b), i);
	rte_pktmbuf_free_bulk(m, 40);
	CHECK(in_flight(f) <= 4096);
	sl_frag_destroy(f);
}

static void
clones_hold_the_chunk(void)
{
	struct sl_frag *f = create_bound(SL_FRAG_LCORE, 1);
	struct rte_mbuf *m = packet(f, 0, 4096, 3);
	struct rte_mbuf *clone = rte_pktmbuf_clone(m, headers);
	struct sl_frag_slice s;

	REQUIRE(clone != NULL);
	rte_pktmbuf_free(m);
	CHECK(sl_frag_carve(f, 0, 64, &s) != 0);
	CHECK_EQ(*rte_pktmbuf_mtod_offset(clone, uint8_t *, 4095), 3);
	rte_pktmbuf_free(clone);
	CHECK_EQ(sl_frag_carve(f, 0, 64, &s), 0);
	sl_frag_put(f, &s);
	CHECK_EQ(rte_mempool_in_use_count(headers), 0);
	sl_frag_destroy(f);
}

static int memory_freed;

static void
free_memory(void *memory, void *arg)
{
	(void)arg;
	memory_freed++;
	free(memory);
}

static void
mbufs_outlive_the_allocator(void)
{
	struct sl_frag_conf conf = {.mode = SL_FRAG_LCORE,
		.workers = 1,
		.chunk_size = 4096,
		.chunks = 8,
		.socket = -1,
		.memory = aligned_alloc(4096, 8 * 4096),
		.memory_free = free_memory};
	struct sl_frag *f = NULL;
	struct rte_mbuf *m[20];

	REQUIRE(conf.memory != NULL && sl_frag_create(&conf, &f) == 0);
	CHECK_EQ(sl_frag_mbuf_bind(f), 0);
	for (uint8_t i = 0; i < 20; i++)
		m[i] = packet(f, 128, 1000, i);
	sl_frag_destroy(f);
	for (uint8_t i = 0; i < 20; i++) {
		CHECK_EQ(memory_freed, 0);
		CHECK_EQ(*rte_pktmbuf_mtod_offset(m[i], uint8_t *, 999), i);
		rte_pktmbuf_free(m[i]);
	}
	CHECK_EQ(memory_freed, 1);
}

/* Random lives: the pool and the allocator both end where they began. */
static void
nothing_leaks(void)
{
	struct sl_frag *f = create_bound(SL_FRAG_LOCK, 64);
	struct rte_mbuf *m[100] = {NULL};
	unsigned int seed = 5;

	for (int i = 0; i < 20000; i++) {
		uint32_t k = (uint32_t)rand_r(&seed) % 100;

		rte_pktmbuf_free(m[k]);
		m[k] = packet(f, 0, (uint16_t)(60 + rand_r(&seed) % 1500), (uint8_t)k);
	}
	rte_pktmbuf_free_bulk(m, 100);
	CHECK(in_flight(f) <= 4096);
	CHECK_EQ(rte_mempool_in_use_count(headers), 0);
	sl_frag_destroy(f);
}

int
main(void)
{
	REQUIRE(test_eal_start("frag-mbuf", "-l 0") >= 0);
	headers = rte_pktmbuf_pool_create("headers", 1023, 0, 0, 0, SOCKET_ID_ANY);
	REQUIRE(headers != NULL);
	SL_TEST_RUN(an_mbuf_over_a_slice);
	SL_TEST_RUN(neighbours_do_not_touch);
	SL_TEST_RUN(clones_hold_the_chunk);
	SL_TEST_RUN(mbufs_outlive_the_allocator);
	SL_TEST_RUN(nothing_leaks);
	rte_mempool_free(headers);
	rte_eal_cleanup();
	return test_end();
}
