/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Carving: where slices lie, when a chunk is used again, what is refused and how it is counted. */
#include <errno.h>
#include <string.h>

#include "frag_help.h"

static const enum sl_frag_mode modes[] = {SL_FRAG_LOCK, SL_FRAG_LCORE, SL_FRAG_PAGE};

static void
slices_follow_each_other_on_cache_lines(void)
{
	static const uint32_t sizes[] = {1, 63, 64, 65, 128, 1500, 4096};

	for (int mode = SL_FRAG_LOCK; mode <= SL_FRAG_LCORE; mode++) {
		struct sl_frag *f = frag_create((enum sl_frag_mode)mode, 1, 0, 2);
		uint8_t *end = NULL;

		for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
			struct sl_frag_slice s;

			CHECK_EQ(sl_frag_carve(f, 0, sizes[i], &s), 0);
			CHECK_EQ((uintptr_t)s.addr % SL_CACHE_LINE, 0);
			CHECK(s.size >= sizes[i] && s.size < sizes[i] + SL_CACHE_LINE);
			CHECK(end == NULL || s.addr == end);
			memset(s.addr, 0xa5, s.size);
			end = s.addr + s.size;
			sl_frag_put(f, &s);
		}
		CHECK_EQ(all_stats(f).refills, 1);
		CHECK_EQ(all_stats(f).slices, SL_COUNT_OF(sizes));
		CHECK_EQ(in_flight(f), 64 + 64 + 64 + 128 + 128 + 1536 + 4096);
		sl_frag_destroy(f);
	}
}

static void
a_page_holds_one_packet(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_PAGE, 1, 0, 3);
	struct sl_frag_slice a, b;

	CHECK_EQ(sl_frag_carve(f, 0, 60, &a), 0);
	CHECK_EQ(sl_frag_carve(f, 0, 60, &b), 0);
	CHECK_EQ((uintptr_t)a.addr % 4096, 0);
	CHECK(a.chunk != b.chunk);
	CHECK_EQ(a.size, 4096);
	CHECK_EQ(in_flight(f), 2 * 4096);
	sl_frag_put(f, &a);
	sl_frag_put(f, &b);
	sl_frag_destroy(f);
}

static void
sizes_at_the_edges(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(modes); i++) {
		struct sl_frag *f = frag_create(modes[i], 1, 8192, 1);
		struct sl_frag_slice s = {.addr = NULL};

		CHECK_EQ(sl_frag_carve(f, 0, 0, &s), -EINVAL);
		CHECK_EQ(sl_frag_carve(f, 0, 8193, &s), -EMSGSIZE);
		CHECK_EQ(sl_frag_carve(f, 0, UINT32_MAX, &s), -EMSGSIZE);
		CHECK(s.addr == NULL);
		CHECK_EQ(all_stats(f).slices, 0);
		CHECK_EQ(sl_frag_carve(f, 0, 8192, &s), 0);
		CHECK_EQ(s.size, 8192);
		sl_frag_put(f, &s);
		CHECK_EQ(sl_frag_carve(f, 0, 8192 - 63, &s), 0);
		CHECK_EQ(s.size, 8192);
		CHECK_EQ(in_flight(f), 8192);
		sl_frag_put(f, &s);
		CHECK_EQ(all_stats(f).exhausted, 0);
		sl_frag_destroy(f);
	}
}

static void
exhaustion_is_counted_and_passes(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(modes); i++) {
		struct sl_frag *f = frag_create(modes[i], 1, 4096, 4);
		struct sl_frag_slice s[5];

		for (int k = 0; k < 4; k++)
			CHECK_EQ(sl_frag_carve(f, 0, 4096, &s[k]), 0);
		CHECK_EQ(sl_frag_carve(f, 0, 64, &s[4]), -ENOBUFS);
		CHECK_EQ(sl_frag_carve(f, 0, 64, &s[4]), -ENOBUFS);
		CHECK_EQ(all_stats(f).exhausted, 2);
		CHECK_EQ(in_flight(f), 4 * 4096);
		sl_frag_put(f, &s[2]);
		CHECK_EQ(sl_frag_carve(f, 0, 64, &s[4]), 0);
		CHECK(s[4].addr == s[2].addr);
		for (int k = 0; k < 5; k++)
			if (k != 2)
				sl_frag_put(f, &s[k]);
		CHECK(sl_frag_check(f, NULL));
		sl_frag_destroy(f);
	}
}

/* A large size that cannot be had does not cost the place that a small one still fits into. */
static void
a_refusal_keeps_the_current_chunk(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 1, 4096, 1);
	struct sl_frag_slice a, b;

	CHECK_EQ(sl_frag_carve(f, 0, 2048, &a), 0);
	CHECK_EQ(sl_frag_carve(f, 0, 4096, &b), -ENOBUFS);
	CHECK_EQ(sl_frag_carve(f, 0, 2048, &b), 0);
	CHECK(b.addr == a.addr + 2048);
	CHECK_EQ(in_flight(f), 4096);
	sl_frag_put(f, &a);
	sl_frag_put(f, &b);
	sl_frag_destroy(f);
}

/* When everything is back the same chunk starts again: the cache has it already. */
static void
an_idle_chunk_starts_again_in_place(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 1, 4096, 8);

	for (int i = 0; i < 1000; i++) {
		struct sl_frag_slice s;

		CHECK_EQ(sl_frag_carve(f, 0, 1000, &s), 0);
		CHECK_EQ(s.chunk, 0);
		sl_frag_put(f, &s);
	}
	CHECK_EQ(all_stats(f).refills, 250);
	CHECK_EQ(all_stats(f).returned, 249 * 4096);
	CHECK_EQ(in_flight(f), 4096);
	sl_frag_destroy(f);
}

static void
a_wasted_slice_is_not_handed_out_again(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(modes); i++) {
		struct sl_frag *f = frag_create(modes[i], 1, 4096, 4);
		struct sl_frag_slice a, b;
		struct sl_frag_stats s;

		CHECK_EQ(sl_frag_carve(f, 0, 100, &a), 0);
		sl_frag_waste(f, &a);
		CHECK_EQ(sl_frag_carve(f, 0, 100, &b), 0);
		CHECK(modes[i] == SL_FRAG_PAGE || b.addr == a.addr + a.size);
		s = all_stats(f);
		CHECK_EQ(s.wasted, a.size);
		CHECK_EQ(s.carved, a.size + b.size);
		CHECK_EQ(in_flight(f), b.size);
		sl_frag_put(f, &b);
		CHECK_EQ(sl_frag_carve(f, 0, 4096, &b), 0);
		s = all_stats(f);
		CHECK_EQ(s.carved, in_flight(f) + s.wasted + s.returned);
		CHECK_EQ(s.returned, modes[i] == SL_FRAG_PAGE ? 4096 : 128);
		sl_frag_put(f, &b);
		sl_frag_destroy(f);
	}
}

static void
a_burst_takes_what_it_can(void)
{
	static const uint32_t sizes[] = {2048, 2048, 4096, 64, 64};

	for (int mode = SL_FRAG_LOCK; mode <= SL_FRAG_LCORE; mode++) {
		struct sl_frag *f = frag_create((enum sl_frag_mode)mode, 1, 4096, 2);
		struct sl_frag_slice s[5];
		uint16_t n = sl_frag_carve_burst(f, 0, sizes, 5, s);

		CHECK_EQ(n, 3);
		CHECK(s[1].addr == s[0].addr + 2048);
		CHECK_EQ(all_stats(f).exhausted, 1);
		CHECK_EQ(all_stats(f).slices, 3);
		for (uint16_t i = 0; i < n; i++)
			sl_frag_put(f, &s[i]);
		CHECK_EQ(sl_frag_carve_burst(f, 0, sizes, 0, s), 0);
		CHECK(sl_frag_check(f, NULL));
		sl_frag_destroy(f);
	}
}

/* Slices of one chunk in a row, of two chunks in turns, none at all, and the last ones of an
 * allocator that was given up. */
static void
a_burst_is_put_wherever_it_lies(void)
{
	static const uint32_t sizes[] = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024};

	for (size_t i = 0; i < SL_COUNT_OF(modes); i++) {
		struct sl_frag *f = frag_create(modes[i], 1, 4096, 8);
		struct sl_frag_slice s[8], turns[8];

		REQUIRE(sl_frag_carve_burst(f, 0, sizes, 8, s) == 8);
		for (int k = 0; k < 8; k++)
			turns[k] = s[k % 2 * 4 + k / 2];
		sl_frag_put_burst(f, turns, 0);
		CHECK_EQ(in_flight(f), modes[i] == SL_FRAG_PAGE ? 8 * 4096 : 8192);
		sl_frag_put_burst(f, turns, 8);
		CHECK(in_flight(f) <= 4096); /* the current chunk's */
		REQUIRE(sl_frag_carve_burst(f, 0, sizes, 8, s) == 8);
		sl_frag_put_burst(f, s, 5);
		sl_frag_destroy(f);
		sl_frag_put_burst(f, s + 5, 3); /* frees it: AddressSanitizer looks on */
	}
}

/* The invariant notices what it is there for. */
static void
check_sees_damage(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LCORE, 1, 4096, 4);
	struct sl_frag_slice s;

	CHECK_EQ(sl_frag_carve(f, 0, 100, &s), 0);
	CHECK(sl_frag_check(f, NULL));
	f->cursors[0].carved += 64; /* a byte sum that does not add up */
	CHECK(!sl_frag_check(f, NULL));
	f->cursors[0].carved -= 64;
	f->chunk[0].shared.refcnt -= 2; /* a slice put twice */
	CHECK(!sl_frag_check(f, NULL));
	f->chunk[0].shared.refcnt += 2;
	f->rest->stock = 0; /* chunks lost */
	CHECK(!sl_frag_check(f, NULL));
	f->rest->stock = 1; /* a chunk in two places */
	CHECK(!sl_frag_check(f, NULL));
	sl_frag_put(f, &s);
	sl_frag_destroy(f);
}

int
main(void)
{
	SL_TEST_RUN(slices_follow_each_other_on_cache_lines);
	SL_TEST_RUN(a_page_holds_one_packet);
	SL_TEST_RUN(sizes_at_the_edges);
	SL_TEST_RUN(exhaustion_is_counted_and_passes);
	SL_TEST_RUN(a_refusal_keeps_the_current_chunk);
	SL_TEST_RUN(an_idle_chunk_starts_again_in_place);
	SL_TEST_RUN(a_wasted_slice_is_not_handed_out_again);
	SL_TEST_RUN(a_burst_takes_what_it_can);
	SL_TEST_RUN(a_burst_is_put_wherever_it_lies);
	SL_TEST_RUN(check_sees_damage);
	return test_end();
}
