/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Where chunks go when they come back, and how long the memory lives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frag_help.h"

/* Whoever frees, the chunk returns to the worker that took it. */
static void
chunks_go_back_to_their_taker(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 2, 4096, 8);
	struct sl_frag_slice a[3], b;
	bool used[8] = {false};

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(sl_frag_carve(f, 0, 4096, &a[i]), 0);
		used[a[i].chunk] = true;
	}
	CHECK_EQ(sl_frag_carve(f, 1, 4096, &b), 0);
	sl_frag_put(f, &a[0]); /* pushed home; a[2] is current, so its chunk starts in place */
	sl_frag_put(f, &a[1]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(f->chunk[a[i].chunk].home, 0);
	CHECK_EQ(f->home[0].head >> 32, 2);
	CHECK_EQ(f->home[1].head, 0);
	for (int i = 0; i < 2; i++) {
		struct sl_frag_slice s;

		sl_frag_put(f, &a[2]);
		CHECK_EQ(sl_frag_carve(f, 0, 4096, &s), 0);
		a[2] = s;
	}
	CHECK(used[a[2].chunk]);
	sl_frag_put(f, &a[2]);
	sl_frag_put(f, &b);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

/* One worker took everything and went idle; its chunks came back. The other one lives on them. */
static void
no_idle_worker_starves_another(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 3, 4096, 6);
	struct sl_frag_slice s[6], t[5];
	int n = 0;

	for (int i = 0; i < 6; i++)
		REQUIRE(sl_frag_carve(f, 2, 4096, &s[i]) == 0);
	CHECK_EQ(sl_frag_carve(f, 0, 64, &t[0]), -ENOBUFS);
	for (int i = 0; i < 6; i++)
		sl_frag_put(f, &s[i]);
	/* All but the one that is still under worker 2's cursor. */
	while (n < 5 && sl_frag_carve(f, 0, 4096, &t[n]) == 0)
		n++;
	CHECK_EQ(n, 5);
	CHECK(all_stats(f).stolen >= 1);
	CHECK_EQ(in_flight(f), 6 * 4096);
	for (int i = 0; i < n; i++)
		sl_frag_put(f, &t[i]);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

/* What a worker keeps to itself is bounded: the rest is in the stock for others. */
static void
a_surplus_goes_to_the_stock(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 2, 4096, 64);
	struct sl_frag_slice s[64];
	int n = 0;

	for (int i = 0; i < 64; i++)
		REQUIRE(sl_frag_carve(f, 0, 4096, &s[i]) == 0);
	for (int i = 0; i < 64; i++)
		sl_frag_put(f, &s[i]);
	REQUIRE(sl_frag_carve(f, 0, 4096, &s[0]) == 0); /* starts in place */
	REQUIRE(sl_frag_carve(f, 0, 4096, &s[1]) == 0); /* takes its home */
	while (n < 62 && sl_frag_carve(f, 1, 4096, &s[2 + n]) == 0)
		n++;
	/* Of what is too much worker 0 keeps half of what it may, one of them in use; one more is
	 * still out. */
	CHECK_EQ(f->rest->keep, 16);
	CHECK_EQ(n, 64 - 1 - 8);
	CHECK_EQ(all_stats(f).stolen, 0);
	for (int i = 0; i < n + 2; i++)
		sl_frag_put(f, &s[i]);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

/* What came back last is used first, so that a worker that frees soon stays with few chunks. */
static void
warm_chunks_come_first(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 1, 4096, 32);
	struct sl_frag_slice s, before = {0};
	uint32_t chunks = 0;
	bool seen[32] = {false};

	/* The last slice is still out when the next chunk is needed. */
	for (int i = 0; i < 1000; i++) {
		REQUIRE(sl_frag_carve(f, 0, 1024, &s) == 0);
		if (i > 0)
			sl_frag_put(f, &before);
		chunks += !seen[s.chunk];
		seen[s.chunk] = true;
		before = s;
	}
	CHECK_EQ(chunks, 2);
	sl_frag_put(f, &before);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

static int memory_freed;

static void
free_memory(void *memory, void *arg)
{
	memory_freed++;
	CHECK(arg == &memory_freed);
	free(memory);
}

static struct sl_frag *
create_on(enum sl_frag_mode mode, uint32_t workers)
{
	struct sl_frag_conf conf = {.mode = mode,
		.workers = workers,
		.chunk_size = 4096,
		.chunks = 8,
		.socket = -1,
		.memory = aligned_alloc(4096, 8 * 4096),
		.memory_free = free_memory,
		.memory_arg = &memory_freed};
	struct sl_frag *f = NULL;

	memory_freed = 0;
	REQUIRE(conf.memory != NULL && sl_frag_create(&conf, &f) == 0);
	CHECK(f->memory == conf.memory);
	return f;
}

/* For every number of slices in flight, also 0: the last put frees, and not one earlier. */
static void
memory_outlives_the_allocator(void)
{
	for (int mode = SL_FRAG_LOCK; mode <= SL_FRAG_PAGE; mode++) {
		for (int n = 0; n <= 12; n++) {
			struct sl_frag *f = create_on((enum sl_frag_mode)mode, 2);
			struct sl_frag_slice s[12];
			int have = 0;

			while (have < n && sl_frag_carve(f, have % 2u, 1800, &s[have]) == 0)
				have++;
			if (n > 6) { /* some come back before */
				sl_frag_put(f, &s[--have]);
				sl_frag_put(f, &s[--have]);
			}
			sl_frag_destroy(f);
			for (int i = 0; i < have; i++) {
				CHECK_EQ(memory_freed, 0);
				memset(s[i].addr, i, 1800); /* still there */
				sl_frag_put(f, &s[i]);
			}
			CHECK_EQ(memory_freed, 1);
		}
	}
}

static void
destroy_after_stealing(void)
{
	struct sl_frag *f = create_on(SL_FRAG_LCORE, 2);
	struct sl_frag_slice s[8], t[3];

	for (int i = 0; i < 8; i++)
		REQUIRE(sl_frag_carve(f, 0, 4096, &s[i]) == 0);
	for (int i = 0; i < 4; i++)
		sl_frag_put(f, &s[i]);
	for (int i = 0; i < 3; i++)
		REQUIRE(sl_frag_carve(f, 1, 4096, &t[i]) == 0);
	CHECK_EQ(all_stats(f).stolen, 1);
	sl_frag_destroy(f);
	for (int i = 4; i < 8; i++)
		sl_frag_put(f, &s[i]);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(memory_freed, 0);
		sl_frag_put(f, &t[i]);
	}
	CHECK_EQ(memory_freed, 1);
}

int
main(void)
{
	SL_TEST_RUN(chunks_go_back_to_their_taker);
	SL_TEST_RUN(no_idle_worker_starves_another);
	SL_TEST_RUN(a_surplus_goes_to_the_stock);
	SL_TEST_RUN(warm_chunks_come_first);
	SL_TEST_RUN(memory_outlives_the_allocator);
	SL_TEST_RUN(destroy_after_stealing);
	return test_end();
}
