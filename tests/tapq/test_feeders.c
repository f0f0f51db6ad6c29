/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Two feeders with two virtqueues each into one tap queue, in every allocator mode: none mixed,
 * none lost, none out of order. */
#include "feed.h"

static void
run_all(enum sl_frag_mode mode, uint32_t chunks)
{
	const char *wanted = getenv("SL_TAPQ_PACKETS");
	uint64_t packets = wanted != NULL ? strtoull(wanted, NULL, 0) : 100000;
	struct sl_tapq *q = tapq_open(mode, FEEDERS, chunks, 512);
	struct sl_tapq_stats s;
	struct taken t;

	feed_all(q, packets, &t);
	CHECK_EQ(t.mixed, 0);
	sl_tapq_stats(q, UINT32_MAX, &s);
	CHECK_EQ(s.outcomes[SL_TAPQ_BUILT], FEEDERS * packets);
	CHECK_EQ(s.small, FEEDERS * packets);
	CHECK_EQ(s.outcomes[SL_TAPQ_BAD_CHAIN] + s.outcomes[SL_TAPQ_BAD_VNET], 0);
	CHECK_EQ(t.disorder, 0);
	printf("     %llu packets, %llu stops for want of a slice\n", (unsigned long long)t.packets,
		(unsigned long long)s.no_frag);
	tapq_close(q);
}

static void
lock(void)
{
	run_all(SL_FRAG_LOCK, 64);
}

static void
lcore(void)
{
	run_all(SL_FRAG_LCORE, 64);
}

static void
page(void)
{
	run_all(SL_FRAG_PAGE, 1024);
}

static void
short_of_memory(void)
{
	run_all(SL_FRAG_LOCK, 4);
}

int
main(void)
{
	eal_start();
	SL_TEST_RUN(lock);
	SL_TEST_RUN(lcore);
	SL_TEST_RUN(page);
	SL_TEST_RUN(short_of_memory);
	return eal_end();
}
