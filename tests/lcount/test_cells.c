/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Cells and their sum on one thread: wraps in both directions, the shared cell, memory, limits. */
#include <errno.h>

#include "sl_lcount.h"
#include "sl_test.h"

static void
limits(void)
{
	static const struct {
		uint32_t workers;
		int result;
	} cases[] = {{0, -EINVAL}, {1, 0}, {2, 0}, {65536, 0}, {65537, -EINVAL}, {UINT32_MAX, -EINVAL}};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_lcount *c = NULL;

		CHECK_EQ(sl_lcount_create(cases[i].workers, -1, &c), cases[i].result);
		CHECK((c != NULL) == (cases[i].result == 0));
		sl_lcount_destroy(c);
	}
	sl_lcount_destroy(NULL);
}

static void
memory_follows_workers(void)
{
	struct sl_lcount *one, *nine;

	REQUIRE(sl_lcount_create(1, -1, &one) == 0);
	REQUIRE(sl_lcount_create(9, -1, &nine) == 0);
	CHECK_EQ(sl_lcount_memory(nine) - sl_lcount_memory(one), 8 * sizeof(struct sl_lcount_cell));
	/* Two workers' words are at least a whole line apart. */
	CHECK((char *)&nine->cells[1].value - (char *)&nine->cells[0].value >= 2 * SL_CACHE_LINE);
	CHECK_EQ((uintptr_t)&nine->cells[0].value % SL_CACHE_LINE, 0);
	sl_lcount_destroy(one);
	sl_lcount_destroy(nine);
}

static void
on_a_node(void)
{
	struct sl_lcount *c;

	/* A node that does not exist is a hint that cannot be followed, not an error. */
	for (int socket = -1; socket <= 64; socket += 13) {
		REQUIRE(sl_lcount_create(3, socket, &c) == 0);
		sl_lcount_take(c, 2, 7);
		CHECK_EQ(sl_lcount_sum(c), 7);
		sl_lcount_destroy(c);
	}
}

/* Start a cell `before` its edge, cross it, and look at the sum on both sides. */
static void
cells_wrap(void)
{
	struct sl_lcount *c;

	REQUIRE(sl_lcount_create(2, -1, &c) == 0);
	/* Worker 0 takes across 2^32, worker 1 gives below zero: the sum never notices. */
	sl_lcount_preset(c, 0, UINT32_MAX - 2);
	sl_lcount_preset(c, 1, 3);
	CHECK_EQ(sl_lcount_sum(c), 0);
	for (uint32_t i = 1; i <= 6; i++) {
		sl_lcount_take(c, 0, 1);
		CHECK_EQ(sl_lcount_sum(c), i);
	}
	CHECK_EQ(c->cells[0].value, 3); /* it did wrap */
	for (uint32_t i = 6; i-- > 0;) {
		sl_lcount_give(c, 1, 1);
		CHECK_EQ(sl_lcount_sum(c), i);
	}
	CHECK_EQ(c->cells[1].value, UINT32_MAX - 2); /* and so did this, downwards */
	sl_lcount_destroy(c);
}

static void
shared_cell(void)
{
	struct sl_lcount *c;

	REQUIRE(sl_lcount_create(2, -1, &c) == 0);
	sl_lcount_take(c, SL_LCOUNT_SHARED, 5);
	sl_lcount_give(c, 1, 2);
	CHECK_EQ(sl_lcount_sum(c), 3);
	sl_lcount_give(c, SL_LCOUNT_SHARED, 3);
	CHECK_EQ(sl_lcount_sum(c), 0);
	sl_lcount_preset(c, SL_LCOUNT_SHARED, UINT32_MAX);
	sl_lcount_preset(c, 0, 1);
	sl_lcount_preset(c, 1, 0);
	sl_lcount_take(c, SL_LCOUNT_SHARED, 2);
	CHECK_EQ(sl_lcount_sum(c), 2);
	/* An index past the workers is another thread that is no worker. */
	sl_lcount_give(c, 2, 2);
	CHECK_EQ(sl_lcount_sum(c), 0);
	sl_lcount_destroy(c);
}

/* The contract's other side, step by step: what a reader that passes cell 0 too early adds up. */
static void
a_false_zero_step_by_step(void)
{
	struct sl_lcount *c;
	uint32_t seen;

	REQUIRE(sl_lcount_create(2, -1, &c) == 0);
	sl_lcount_take(c, 0, 1);                    /* item A pending */
	seen = sl_load_acquire(&c->cells[0].value); /* LC1: the reader has passed cell 0: 1 */
	sl_lcount_take(c, 0, 1);                    /* item B pending, unseen */
	sl_lcount_give(c, 1, 1);                    /* item A done, on the other worker */
	seen += sl_load_acquire(&c->cells[1].value);
	CHECK_EQ(seen, 0);             /* "nothing pending" */
	CHECK_EQ(sl_lcount_sum(c), 1); /* but item B is */
	sl_lcount_destroy(c);
}

int
main(void)
{
	SL_TEST_RUN(limits);
	SL_TEST_RUN(memory_follows_workers);
	SL_TEST_RUN(on_a_node);
	SL_TEST_RUN(cells_wrap);
	SL_TEST_RUN(shared_cell);
	SL_TEST_RUN(a_false_zero_step_by_step);
	return test_end();
}
