/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Feeders on threads of their own, in each mode: no slice is ever two packets', every byte adds up.
 */
#include "feeders.h"

#define SLICES 300000u

static void
run_all(enum sl_frag_mode mode, enum sl_frag_lock lock, uint32_t chunks)
{
	struct sl_frag_conf conf = {
		.mode = mode, .lock = lock, .workers = FEEDERS, .chunks = chunks, .socket = -1};
	struct sl_frag *f = NULL;
	struct feeder sum;
	struct sl_frag_stats s;

	REQUIRE(sl_frag_create(&conf, &f) == 0);
	feed_all(f, SLICES, &sum);
	CHECK_EQ(sum.mixed, 0);
	CHECK_EQ(sum.carved + sum.refused + sum.left_out, FEEDERS * SLICES);
	s = all_stats(f);
	CHECK_EQ(s.slices, sum.carved);
	CHECK_EQ(s.exhausted, sum.refused);
	CHECK_EQ(s.wasted, sum.wasted);
	/* Everything was put: only what lies under a cursor, or is parked, is not back yet. */
	CHECK(in_flight(f) <= (uint64_t)FEEDERS * f->chunk_size);
	printf("     %llu carved, %llu refused, %llu refills, %llu stolen\n",
		(unsigned long long)s.slices, (unsigned long long)s.exhausted,
		(unsigned long long)s.refills, (unsigned long long)s.stolen);
	sl_frag_destroy(f);
}

static void
spinlock(void)
{
	run_all(SL_FRAG_LOCK, SL_FRAG_SPIN, 64);
}

static void
mcs_lock(void)
{
	run_all(SL_FRAG_LOCK, SL_FRAG_MCS, 64);
}

static void
per_lcore(void)
{
	run_all(SL_FRAG_LCORE, SL_FRAG_SPIN, 64);
}

static void
page(void)
{
	run_all(SL_FRAG_PAGE, SL_FRAG_SPIN, 1024);
}

/* Fewer chunks than the windows need: refusals, stealing and the stock are all in play. */
static void
short_of_memory(void)
{
	run_all(SL_FRAG_LOCK, SL_FRAG_SPIN, 3);
	run_all(SL_FRAG_LCORE, SL_FRAG_SPIN, 4);
	run_all(SL_FRAG_PAGE, SL_FRAG_SPIN, 100);
}

int
main(void)
{
	printf("seeds: 7 + feeder\n");
	SL_TEST_RUN(spinlock);
	SL_TEST_RUN(mcs_lock);
	SL_TEST_RUN(per_lcore);
	SL_TEST_RUN(page);
	SL_TEST_RUN(short_of_memory);
	return test_end();
}
