/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* LOCK mode, two workers in turns: whose chunk a burst lies in, and what becomes of a chunk that the
 * other worker's burst left half used. */
#include <errno.h>

#include "frag_help.h"

static const uint32_t kb[] = {1024, 1024, 1024, 1024};

static struct sl_frag_slice
one(struct sl_frag *f, uint32_t worker, uint32_t size)
{
	struct sl_frag_slice s = {.chunk = UINT32_MAX};

	CHECK_EQ(sl_frag_carve_burst(f, worker, &size, 1, &s), 1);
	return s;
}

/* Bursts in turns fill one chunk of each worker, slice behind slice. */
static void
bursts_lie_in_chunks_of_their_worker(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 8192, 4);
	struct sl_frag_slice s[2][8];

	for (int i = 0; i < 8; i += 2)
		for (uint32_t w = 0; w < 2; w++) {
			REQUIRE(sl_frag_carve_burst(f, w, kb, 2, &s[w][i]) == 2);
			CHECK_EQ(in_flight(f), (uint64_t)(i + 2) * 1024 + w * (uint64_t)(i + 2) * 1024 +
						       (1 - w) * (uint64_t)i * 1024);
		}
	CHECK_EQ(all_stats(f).refills, 2);
	CHECK_EQ(all_stats(f).slices, 16);
	CHECK_EQ(all_stats(f).carved, 2 * 8192);
	CHECK(s[0][0].chunk != s[1][0].chunk);
	for (uint32_t w = 0; w < 2; w++) {
		CHECK_EQ(f->chunk[s[w][0].chunk].home, w);
		for (int i = 1; i < 8; i++)
			CHECK(s[w][i].addr == s[w][0].addr + i * 1024);
		sl_frag_put_burst(f, s[w], 8);
	}
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

/* One slice at a time shares the chunk: it would cost more to change it than to share it. */
static void
single_slices_share_a_chunk(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 8192, 4);
	struct sl_frag_slice a, b;

	CHECK_EQ(sl_frag_carve(f, 0, 1024, &a), 0);
	CHECK_EQ(sl_frag_carve(f, 1, 1024, &b), 0);
	CHECK_EQ(a.chunk, b.chunk);
	CHECK_EQ(all_stats(f).refills, 1);
	sl_frag_put(f, &a);
	sl_frag_put(f, &b);
	sl_frag_destroy(f);
}

static void
a_parked_chunk_that_is_back_starts_again(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 4096, 4);
	struct sl_frag_slice a[4], b, c;

	REQUIRE(sl_frag_carve_burst(f, 0, kb, 4, a) == 4);
	b = one(f, 1, 1024);
	CHECK_EQ(f->cursors[0].parked, a[0].chunk + 1);
	CHECK_EQ(f->cursors[0].parked_offset, 4096);
	sl_frag_put_burst(f, a, 4);
	c = one(f, 0, 1024);
	CHECK(c.addr == a[0].addr);
	CHECK_EQ(all_stats(f).returned, 4096);
	CHECK_EQ(in_flight(f), 2 * 1024);
	sl_frag_put(f, &b);
	sl_frag_put(f, &c);
	sl_frag_destroy(f);
}

static void
a_parked_chunk_too_full_is_retired(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 4096, 4);
	struct sl_frag_slice a[3], b, c;

	REQUIRE(sl_frag_carve_burst(f, 0, kb, 3, a) == 3);
	b = one(f, 1, 64);
	c = one(f, 0, 2048);
	CHECK(c.chunk != a[0].chunk);
	CHECK_EQ(f->chunk[a[0].chunk].state, FRAG_OUT);
	CHECK_EQ(f->cursors[0].parked, 0);
	CHECK_EQ(all_stats(f).tail, 1024);
	CHECK_EQ(in_flight(f), 3 * 1024 + 64 + 2048);
	sl_frag_put_burst(f, a, 3);
	CHECK_EQ(f->home[0].head >> 32, 1);
	sl_frag_put(f, &b);
	sl_frag_put(f, &c);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

/* When nothing else is left a worker goes on with what another one has parked; what does not fit
 * there either is refused, and costs nobody anything. */
static void
the_last_resort_is_what_others_parked(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 4096, 2);
	struct sl_frag_slice a = one(f, 0, 1024), b = one(f, 1, 4096), c = {.addr = NULL}, d;

	CHECK_EQ(sl_frag_carve(f, 1, 4096, &c), -ENOBUFS);
	CHECK(c.addr == NULL);
	CHECK_EQ(f->cursors[0].parked, a.chunk + 1);
	CHECK_EQ(all_stats(f).exhausted, 1);
	c = one(f, 1, 2048);
	CHECK(c.addr == a.addr + 1024);
	CHECK_EQ(f->cursors[0].parked, 0);
	CHECK_EQ(f->chunk[b.chunk].state, FRAG_OUT);
	d = one(f, 0, 1024); /* it is worker 0's still */
	CHECK(d.addr == a.addr + 3072);
	CHECK_EQ(in_flight(f), 2 * 4096);
	sl_frag_put(f, &a);
	sl_frag_put(f, &b);
	sl_frag_put(f, &c);
	sl_frag_put(f, &d);
	CHECK(sl_frag_check(f, NULL));
	sl_frag_destroy(f);
}

static void
one_is_freed_with_chunks_parked_and_slices_out(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 3, 4096, 4);
	struct sl_frag_slice s[3];

	for (uint32_t w = 0; w < 3; w++)
		s[w] = one(f, w, 64);
	sl_frag_destroy(f);
	for (uint32_t w = 0; w < 3; w++) {
		s[w].addr[0] = 1; /* still there */
		sl_frag_put(f, &s[w]);
	}
}

static void
check_sees_damage(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 2, 4096, 4);
	struct sl_frag_slice a = one(f, 0, 64), b = one(f, 1, 64);
	uint32_t parked = f->cursors[0].parked;

	CHECK(sl_frag_check(f, NULL));
	f->cursors[0].parked = b.chunk + 1; /* under the cursor, too */
	CHECK(!sl_frag_check(f, NULL));
	f->cursors[0].parked = 0; /* lost */
	CHECK(!sl_frag_check(f, NULL));
	f->cursors[0].parked = 5; /* there is none */
	CHECK(!sl_frag_check(f, NULL));
	f->cursors[0].parked = parked;
	f->cursors[0].parked_handed++; /* a reference that nobody has */
	f->chunk[a.chunk].shared.refcnt -= 3;
	CHECK(!sl_frag_check(f, NULL));
	f->chunk[a.chunk].shared.refcnt += 3;
	f->cursors[0].parked_handed--;
	CHECK(sl_frag_check(f, NULL));
	sl_frag_put(f, &a);
	sl_frag_put(f, &b);
	sl_frag_destroy(f);
}

int
main(void)
{
	SL_TEST_RUN(bursts_lie_in_chunks_of_their_worker);
	SL_TEST_RUN(single_slices_share_a_chunk);
	SL_TEST_RUN(a_parked_chunk_that_is_back_starts_again);
	SL_TEST_RUN(a_parked_chunk_too_full_is_retired);
	SL_TEST_RUN(the_last_resort_is_what_others_parked);
	SL_TEST_RUN(one_is_freed_with_chunks_parked_and_slices_out);
	SL_TEST_RUN(check_sees_damage);
	return test_end();
}
