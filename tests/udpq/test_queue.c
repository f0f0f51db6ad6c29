/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Order, bursts and edges of the queue on one thread, in every mode. */
#include <string.h>

#include "queue_help.h"
#include "udpq_priv.h"

static const enum sl_udpq_mode modes[] = {SL_UDPQ_LOCAL, SL_UDPQ_SPLIT, SL_UDPQ_SHARED};

static uint16_t
append(struct sl_udpq *q, uint32_t producer, uintptr_t first, uint16_t n)
{
	static struct sl_dgram d[UINT16_MAX];
	enum sl_udpq_drop why;

	fill(d, n, first, 100);
	return sl_udpq_append_burst(q, producer, d, n, &why);
}

/* Take up to n and check that they are first, first + 1, ... */
static uint16_t
take_in_order(struct sl_udpq *q, uintptr_t first, uint16_t n)
{
	struct sl_dgram *d;
	uint16_t got = sl_udpq_peek_burst(q, n, &d);

	for (uint16_t i = 0; i < got; i++)
		CHECK_EQ((uintptr_t)d[i].buf, first + i);
	sl_udpq_release_burst(q, got);
	return got;
}

static void
empty_shows_nothing(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 2, 4, 1000);
		struct sl_dgram *d;

		CHECK_EQ(sl_udpq_peek_burst(q, 64, &d), 0);
		sl_udpq_release_burst(q, 0);
		CHECK_EQ(append(q, 0, 1, 0), 0);
		CHECK_EQ(sl_udpq_peek_burst(q, 64, &d), 0);
		CHECK(sl_udpq_check(q));
		sl_udpq_destroy(q);
		CHECK_EQ(freed, 0);
	}
}

static void
a_burst_is_at_most_64(void)
{
	static const uint16_t asked[] = {0, 1, 63, 64, 65, 1000, UINT16_MAX};

	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		for (size_t i = 0; i < SL_COUNT_OF(asked); i++) {
			struct sl_udpq *q = queue_create(modes[m], 1, 256, 1 << 20);
			struct sl_dgram *d;

			CHECK_EQ(append(q, 0, 1, 200), 200);
			CHECK_EQ(
				sl_udpq_peek_burst(q, asked[i], &d), asked[i] < 64 ? asked[i] : 64);
			CHECK(sl_udpq_check(q));
			sl_udpq_destroy(q);
			CHECK_EQ(freed, 200);
		}
	}
}

/* A failure at datagram k: k are taken, k+1.. stay, in order, even across further appends. */
static void
what_is_not_released_stays(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 1, 256, 1 << 20);
		uintptr_t next = 1;
		struct sl_dgram *d;

		CHECK_EQ(append(q, 0, 1, 150), 150);
		for (uint16_t k = 0; k < 12; k++) {
			uint16_t n = sl_udpq_peek_burst(q, 64, &d);

			REQUIRE(n > k);
			for (uint16_t i = 0; i < n; i++)
				CHECK_EQ((uintptr_t)d[i].buf, next + i);
			sl_udpq_release_burst(q, k);
			next += k;
			CHECK_EQ(append(q, 0, 151 + k, 1), 1);
		}
		while (next < 163) {
			uint16_t n = take_in_order(q, next, 64);

			REQUIRE(n > 0);
			next += n;
		}
		CHECK_EQ(next, 163);
		CHECK(sl_udpq_check(q));
		sl_udpq_destroy(q);
		CHECK_EQ(freed, 0);
	}
}

static void
released_in_two_steps(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 1, 64, 1 << 20);
	struct sl_dgram *d;

	CHECK_EQ(append(q, 0, 1, 10), 10);
	CHECK_EQ(sl_udpq_peek_burst(q, 10, &d), 10);
	sl_udpq_release_burst(q, 3);
	sl_udpq_release_burst(q, 4);
	CHECK_EQ(take_in_order(q, 8, 64), 3);
	CHECK(sl_udpq_check(q));
	sl_udpq_destroy(q);
}

static void
order_across_many_wraps(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 1, 8, 1 << 20);
		uintptr_t in = 1, out = 1;

		/* Bursts of every size below the slots, so that each index meets each edge. */
		for (uint32_t i = 0; i < 5000; i++) {
			in += append(q, 0, in, (uint16_t)(i % 8));
			out += take_in_order(q, out, (uint16_t)(1 + i % 5));
		}
		for (uint16_t n; (n = take_in_order(q, out, 64)) != 0;)
			out += n;
		CHECK_EQ(in, out);
		CHECK(in > 5000);
		CHECK(sl_udpq_check(q));
		sl_udpq_destroy(q);
		CHECK_EQ(freed, 0);
	}
}

/* The indexes are 32 bits and free-running in LOCAL mode, as long as the queue is not empty: start
 * them near the edge. */
static void
indexes_wrap_at_32_bits(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_LOCAL, 1, 16, 1 << 20);
	uintptr_t in = 1, out = 1;

	in += append(q, 0, in, 1);
	q->head = UINT32_MAX - 20;
	q->tail = q->head + 1;
	q->private_queue[q->head & 15] = q->private_queue[0];
	for (uint32_t i = 0; i < 20; i++) {
		in += append(q, 0, in, 7);
		CHECK(q->tail - q->head <= 16);
		for (uint16_t left = 6, n; left > 0 && (n = take_in_order(q, out, left)) > 0;
			left -= n)
			out += n;
	}
	CHECK(q->tail < 1000);
	CHECK(sl_udpq_check(q));
	sl_udpq_destroy(q);
	CHECK_EQ(freed, in - out);
}

/* An empty LOCAL queue starts again at the beginning of its memory. */
static void
empty_local_queue_stays_in_its_lines(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_LOCAL, 1, 16, 1 << 20);
	struct sl_dgram *first = NULL, *again;

	for (uintptr_t in = 1; in < 100; in += 5) {
		CHECK_EQ(append(q, 0, in, 5), 5);
		CHECK_EQ(sl_udpq_peek_burst(q, 64, &again), 5);
		first = in == 1 ? again : first;
		CHECK(again == first);
		CHECK_EQ(take_in_order(q, in, 64), 5);
	}
	CHECK(sl_udpq_check(q));
	sl_udpq_destroy(q);
}

/* Built in the queue or elsewhere, appended or not: the reader sees the same. */
static void
room_is_the_queue(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_LOCAL, 1, 16, 1000);
	struct sl_dgram other[4], *room, *first;
	enum sl_udpq_drop why;

	room = sl_udpq_room(q, 16);
	REQUIRE(room != NULL);
	fill(room, 16, 1, 100);
	/* Given up, and built elsewhere. */
	fill(other, 4, 101, 100);
	CHECK_EQ(sl_udpq_append_burst(q, 0, other, 4, &why), 4);
	/* Behind what is queued; rcvbuf has room for six more of eight. */
	CHECK(sl_udpq_room(q, 13) == NULL);
	room = sl_udpq_room(q, 12);
	REQUIRE(room != NULL);
	fill(room, 8, 201, 100);
	CHECK_EQ(sl_udpq_append_burst(q, 0, room, 8, &why), 6);
	CHECK_EQ(why, SL_UDPQ_DROP_RCVBUF);
	CHECK_EQ((uintptr_t)room[6].buf, 207);
	CHECK(sl_udpq_check(q));
	CHECK_EQ(sl_udpq_peek_burst(q, 64, &first), 10);
	CHECK(&first[4] == room);
	CHECK_EQ(take_in_order(q, 101, 4), 4);
	CHECK(sl_udpq_check(q));
	CHECK_EQ(take_in_order(q, 201, 64), 6);
	CHECK(sl_udpq_check(q));
	CHECK(sl_udpq_room(q, 17) == NULL);
	sl_udpq_destroy(q);
	for (size_t m = 1; m < SL_COUNT_OF(modes); m++) {
		q = queue_create(modes[m], 1, 16, 1000);
		CHECK(sl_udpq_room(q, 1) == NULL);
		sl_udpq_destroy(q);
	}
}

static void
no_slot_no_append(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 1, 16, 1 << 20);
		struct sl_udpq_stats stats;
		struct sl_dgram d[20];
		enum sl_udpq_drop why = SL_UDPQ_DROP_NONE;

		fill(d, 20, 1, 10);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 20, &why), 16);
		CHECK_EQ(why, SL_UDPQ_DROP_SLOTS);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 1, &why), 0);
		CHECK_EQ(why, SL_UDPQ_DROP_SLOTS);
		sl_udpq_stats(q, 0, &stats);
		CHECK_EQ(stats.appended, 16);
		CHECK_EQ(stats.drops[SL_UDPQ_DROP_SLOTS], 5);
		CHECK_EQ(stats.drops[SL_UDPQ_DROP_RCVBUF], 0);
		CHECK_EQ(stats.rmem, 160);
		CHECK(sl_udpq_check(q));
		CHECK_EQ(take_in_order(q, 1, 64), 16);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 20, &why), 16);
		sl_udpq_destroy(q);
		CHECK_EQ(freed, 16);
	}
}

/* Several intakes are taken in turn: none waits behind one that is always full. */
static void
intakes_take_turns(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 3, 64, 1 << 20);
	struct sl_dgram *d;
	bool seen = false;

	CHECK_EQ(append(q, 2, 7000, 1), 1);
	for (int i = 0; i < 3 && !seen; i++) {
		uint16_t n;

		append(q, 0, 1000, 32);
		append(q, 1, 2000, 32);
		n = sl_udpq_peek_burst(q, 64, &d);
		REQUIRE(n > 0);
		seen = (uintptr_t)d[0].buf == 7000;
		sl_udpq_release_burst(q, n);
	}
	CHECK(seen);
	CHECK(sl_udpq_check(q));
	sl_udpq_destroy(q);
}

static void
stats_by_producer(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 3, 4, 1 << 20);
	struct sl_udpq_stats stats;

	CHECK_EQ(append(q, 0, 1, 3), 3);
	CHECK_EQ(append(q, 2, 1, 9), 4);
	sl_udpq_stats(q, 0, &stats);
	CHECK_EQ(stats.appended, 3);
	CHECK_EQ(stats.drops[SL_UDPQ_DROP_SLOTS], 0);
	sl_udpq_stats(q, 1, &stats);
	CHECK_EQ(stats.appended, 0);
	sl_udpq_stats(q, 2, &stats);
	CHECK_EQ(stats.appended, 4);
	CHECK_EQ(stats.drops[SL_UDPQ_DROP_SLOTS], 5);
	sl_udpq_stats(q, UINT32_MAX, &stats);
	CHECK_EQ(stats.appended, 7);
	CHECK_EQ(stats.released, 0);
	CHECK_EQ(take_in_order(q, 1, 64), 3);
	CHECK_EQ(take_in_order(q, 1, 64), 4);
	sl_udpq_stats(q, UINT32_MAX, &stats);
	CHECK_EQ(stats.released, 7);
	CHECK_EQ(stats.takes, 2);
	sl_udpq_destroy(q);
}

static void
groups_share_no_line(void)
{
	static const size_t at[] = {offsetof(struct sl_udpq, rmem),
		offsetof(struct sl_udpq, sleeping), offsetof(struct sl_udpq, head)};

	for (size_t i = 0; i < SL_COUNT_OF(at); i++) {
		CHECK_EQ(at[i] % SL_CACHE_LINE, 0);
		CHECK(i == 0 || at[i] - at[i - 1] >= 2 * SL_CACHE_LINE);
	}
	CHECK_EQ(sizeof(struct sl_dgram), SL_CACHE_LINE);
	CHECK(sizeof(struct udpq_producer) >= 2 * SL_CACHE_LINE);
}

int
main(void)
{
	SL_TEST_RUN(empty_shows_nothing);
	SL_TEST_RUN(a_burst_is_at_most_64);
	SL_TEST_RUN(what_is_not_released_stays);
	SL_TEST_RUN(released_in_two_steps);
	SL_TEST_RUN(order_across_many_wraps);
	SL_TEST_RUN(indexes_wrap_at_32_bits);
	SL_TEST_RUN(empty_local_queue_stays_in_its_lines);
	SL_TEST_RUN(room_is_the_queue);
	SL_TEST_RUN(no_slot_no_append);
	SL_TEST_RUN(intakes_take_turns);
	SL_TEST_RUN(stats_by_producer);
	SL_TEST_RUN(groups_share_no_line);
	return test_end();
}
