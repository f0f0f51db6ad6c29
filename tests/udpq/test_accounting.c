/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The receive-buffer rule at its edges, in every mode; and what a large rcvbuf does to the sums. */
#include "queue_help.h"

static const enum sl_udpq_mode modes[] = {SL_UDPQ_LOCAL, SL_UDPQ_SPLIT, SL_UDPQ_SHARED};

static uint64_t
rmem(const struct sl_udpq *q)
{
	struct sl_udpq_stats stats;

	sl_udpq_stats(q, UINT32_MAX, &stats);
	return stats.rmem;
}

static void
admission(void)
{
	static const struct {
		uint64_t rcvbuf;
		uint32_t sizes[6]; /* ends with 0 */
		uint16_t taken;
	} cases[] = {
		{100, {100}, 1},              /* exactly full */
		{100, {101}, 1},              /* an empty queue takes one of any size */
		{1, {UINT32_MAX}, 1},         /* also of the largest */
		{1, {1, 1}, 1},
		{100, {60, 40}, 2},           /* exactly full with two */
		{100, {60, 41}, 1},
		{100, {99, 1, 1}, 2},
		{100, {101, 1}, 1},           /* above the limit: nothing more */
		{100, {60, 41, 1}, 1},        /* a burst stops at the first that does not fit */
		{UINT64_MAX, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, 5},
		{UINT64_C(1) << 33, {UINT32_MAX, UINT32_MAX, 2, 1}, 3},
	};

	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
			struct sl_udpq *q = queue_create(modes[m], 1, 16, cases[i].rcvbuf);
			struct sl_dgram d[6];
			enum sl_udpq_drop why;
			uint64_t bytes = 0;
			uint16_t n;

			for (n = 0; n < 6 && cases[i].sizes[n] != 0; n++) {
				fill(&d[n], 1, n + 1, cases[i].sizes[n]);
				bytes += n < cases[i].taken ? cases[i].sizes[n] : 0;
			}
			CHECK_EQ(sl_udpq_append_burst(q, 0, d, n, &why), cases[i].taken);
			CHECK_EQ(why, n > cases[i].taken ? SL_UDPQ_DROP_RCVBUF : SL_UDPQ_DROP_NONE);
			CHECK_EQ(rmem(q), bytes);
			CHECK(sl_udpq_check(q));
			sl_udpq_destroy(q);
			CHECK_EQ(freed, cases[i].taken);
		}
	}
}

/* One at a time and as one burst: the same datagrams must be admitted. */
static void
burst_admits_what_single_appends_do(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		for (uint64_t rcvbuf = 1; rcvbuf < 400; rcvbuf += 7) {
			struct sl_udpq *one = queue_create(modes[m], 1, 16, rcvbuf);
			struct sl_udpq *all = queue_create(modes[m], 1, 16, rcvbuf);
			struct sl_dgram d[8];
			enum sl_udpq_drop why;
			uint16_t taken = 0;

			fill(d, 8, 1, 33);
			while (taken < 8 && sl_udpq_append_burst(one, 0, &d[taken], 1, &why) == 1)
				taken++;
			CHECK_EQ(sl_udpq_append_burst(all, 0, d, 8, &why), taken);
			CHECK_EQ(rmem(one), rmem(all));
			sl_udpq_destroy(one);
			sl_udpq_destroy(all);
		}
	}
}

/* Memory is given back when the datagram is released, not when it is shown. */
static void
given_back_at_release(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 1, 16, 100);
		struct sl_dgram d[4], *first;
		enum sl_udpq_drop why;

		fill(d, 4, 1, 50);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 4, &why), 2);
		CHECK_EQ(sl_udpq_peek_burst(q, 2, &first), 2);
		CHECK_EQ(rmem(q), 100);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 1, &why), 0);
		sl_udpq_release_burst(q, 1);
		CHECK_EQ(rmem(q), 50);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 2, &why), 1);
		CHECK(sl_udpq_check(q));
		sl_udpq_destroy(q);
		CHECK_EQ(freed, 2);
	}
}

static void
a_smaller_rcvbuf_keeps_what_is_queued(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		struct sl_udpq *q = queue_create(modes[m], 1, 16, 1000);
		struct sl_dgram d[4], *first;
		enum sl_udpq_drop why;

		fill(d, 4, 1, 100);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 4, &why), 4);
		sl_udpq_set_rcvbuf(q, 50);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 1, &why), 0);
		CHECK_EQ(why, SL_UDPQ_DROP_RCVBUF);
		CHECK_EQ(sl_udpq_peek_burst(q, 64, &first), 4);
		sl_udpq_release_burst(q, 4);
		CHECK_EQ(rmem(q), 0);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 2, &why), 1); /* empty: one of any size */
		sl_udpq_set_rcvbuf(q, UINT64_MAX);
		CHECK_EQ(sl_udpq_append_burst(q, 0, d, 4, &why), 4);
		CHECK(sl_udpq_check(q));
		sl_udpq_destroy(q);
	}
}

/* A ring that is full gives the charge of what it refused back. */
static void
slots_and_bytes_run_out_together(void)
{
	for (size_t m = 0; m < SL_COUNT_OF(modes); m++) {
		for (uint64_t rcvbuf = 10; rcvbuf <= 120; rcvbuf += 10) {
			struct sl_udpq *q = queue_create(modes[m], 1, 8, rcvbuf);
			struct sl_dgram d[12];
			struct sl_udpq_stats stats;
			enum sl_udpq_drop why;
			uint16_t fit = (uint16_t)(rcvbuf / 10);
			uint16_t want = fit < 8 ? fit : 8;

			fill(d, 12, 1, 10);
			CHECK_EQ(sl_udpq_append_burst(q, 0, d, 12, &why), want);
			CHECK_EQ(rmem(q), want * 10);
			sl_udpq_stats(q, 0, &stats);
			CHECK_EQ(stats.drops[why], 12 - want);
			CHECK(sl_udpq_check(q));
			sl_udpq_destroy(q);
			CHECK_EQ(freed, want);
		}
	}
}

int
main(void)
{
	SL_TEST_RUN(admission);
	SL_TEST_RUN(burst_admits_what_single_appends_do);
	SL_TEST_RUN(given_back_at_release);
	SL_TEST_RUN(a_smaller_rcvbuf_keeps_what_is_queued);
	SL_TEST_RUN(slots_and_bytes_run_out_together);
	return test_end();
}
