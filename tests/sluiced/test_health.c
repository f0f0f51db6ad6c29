/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* When a back end is asked, and what makes it up or down. */
#include <string.h>

#include "health.h"
#include "sl_test.h"

static const struct health_conf usual = {
	.interval_ms = 1000, .timeout_ms = 500, .rise = 2, .fall = 3};
static const uint8_t any[] = "x";

/* Go on to the next request and send it. Returns when. */
static uint64_t
ask(struct health *h, const struct health_conf *conf, uint64_t now)
{
	while (!health_turn(h, conf, now))
		now++;
	health_sent(h, conf, now, true);
	return now;
}

/* The same, and an answer right away. */
static uint64_t
ask_well(struct health *h, const struct health_conf *conf, uint64_t now)
{
	now = ask(h, conf, now);
	health_answer(h, conf, now, any, 1);
	return now;
}

/* The same, and none. */
static uint64_t
ask_in_vain(struct health *h, const struct health_conf *conf, uint64_t now)
{
	now = ask(h, conf, now) + conf->timeout_ms;
	CHECK(!health_turn(h, conf, now));
	return now;
}

static void
the_first_failure_decides(void)
{
	struct health h;

	health_begin(&h, &usual, 5000, 1);
	CHECK(h.up && h.why == HEALTH_NEW && !h.open);
	ask_in_vain(&h, &usual, 5000);
	CHECK(!h.up && h.why == HEALTH_SILENT);
	CHECK(h.sent == 1 && h.failed == 1 && h.changes == 1);
	/* After a good answer it takes `fall`. */
	health_begin(&h, &usual, 5000, 1);
	ask_in_vain(&h, &usual, ask_well(&h, &usual, 5000));
	CHECK(h.up && h.why == HEALTH_SILENT && h.changes == 0);
}

static void
a_doubtful_one_has_to_rise(void)
{
	struct health h;
	uint64_t now;

	health_begin(&h, &usual, 0, 1);
	health_doubt(&h);
	CHECK(!h.up);
	now = ask_well(&h, &usual, 0);
	CHECK(!h.up);
	ask_well(&h, &usual, now);
	CHECK(h.up && h.changes == 1);
}

static void
rise_and_fall_are_counted_in_a_row(void)
{
	uint64_t now = 1;
	struct health h;

	health_begin(&h, &usual, now, 7);
	now = ask_well(&h, &usual, now);
	/* Two failures and an answer, over and over, keep it up. */
	for (int i = 0; i < 10; i++) {
		now = ask_in_vain(&h, &usual, now);
		now = ask_in_vain(&h, &usual, now);
		now = ask_well(&h, &usual, now);
		CHECK(h.up);
	}
	for (uint32_t i = 0; i < usual.fall; i++) {
		CHECK(h.up);
		now = ask_in_vain(&h, &usual, now);
	}
	CHECK(!h.up && h.changes == 1);
	/* One answer and a failure, over and over, keep it down. */
	for (int i = 0; i < 10; i++) {
		now = ask_well(&h, &usual, now);
		CHECK(!h.up);
		now = ask_in_vain(&h, &usual, now);
	}
	now = ask_well(&h, &usual, now);
	CHECK(!h.up);
	ask_well(&h, &usual, now);
	CHECK(h.up && h.why == HEALTH_ANSWERS && h.changes == 2);
}

static void
time_is_over_at_the_timeout(void)
{
	uint64_t now;
	struct health h;

	health_begin(&h, &usual, 0, 3);
	now = ask_well(&h, &usual, 0);
	now = ask(&h, &usual, now);
	CHECK_EQ(health_next(&h, &usual), now + 500);
	CHECK(!health_turn(&h, &usual, now + 499) && h.open && h.failed == 0);
	/* In time, whoever asks first. */
	health_answer(&h, &usual, now + 499, any, 1);
	CHECK(!h.open && h.good == 2);
	now = ask(&h, &usual, now + 499);
	health_answer(&h, &usual, now + 500, any, 1);
	CHECK(h.open && h.good == 2 && h.late == 1);
	CHECK(!health_turn(&h, &usual, now + 500) && !h.open && h.failed == 1);
	health_answer(&h, &usual, now + 501, any, 1);
	CHECK(h.late == 2 && h.good == 2);
	CHECK_EQ(h.sent, h.good + h.failed);
}

static void
an_answer_begins_as_expected(void)
{
	static const struct {
		const char *expect, *answer;
		uint16_t expect_len, len;
		bool good;
	} cases[] = {
		{"pong", "pong", 4, 4, true},
		{"pong", "pong 17", 4, 7, true},
		{"pong", "pon", 4, 3, false},
		{"pong", "ponG", 4, 4, false},
		{"pong", "", 4, 0, false},
		{"a\0b", "a\0bc", 3, 4, true},
		{"a\0b", "a\0c", 3, 3, false},
		{NULL, "", 0, 0, true},
		{NULL, "anything", 0, 8, true},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct health_conf conf = usual;
		struct health h;
		uint64_t now;

		conf.expect = (const uint8_t *)cases[i].expect;
		conf.expect_len = cases[i].expect_len;
		health_begin(&h, &conf, 0, 9);
		now = ask(&h, &conf, 0);
		health_answer(&h, &conf, now, (const uint8_t *)cases[i].answer, cases[i].len);
		CHECK(h.up == cases[i].good && !h.open);
		CHECK_EQ(h.why, cases[i].good ? HEALTH_ANSWERS : HEALTH_WRONG);
		CHECK_EQ(h.good, cases[i].good);
		CHECK_EQ(h.failed, !cases[i].good);
	}
}

static void
what_cannot_be_sent_or_arrive_fails(void)
{
	struct health h;
	uint64_t now;

	health_begin(&h, &usual, 0, 2);
	now = ask_well(&h, &usual, 0);
	/* Nothing is open: nothing fails. */
	health_unreachable(&h, &usual, now);
	CHECK(h.failed == 0 && h.why == HEALTH_ANSWERS);
	now = ask(&h, &usual, now);
	health_unreachable(&h, &usual, now + 1);
	CHECK(h.failed == 1 && h.why == HEALTH_UNREACHABLE && !h.open && h.up);
	while (!health_turn(&h, &usual, now))
		now++;
	health_sent(&h, &usual, now, false);
	CHECK(h.failed == 2 && h.why == HEALTH_UNSENT && !h.open && h.sent == 3);
}

static void
requests_are_early_or_late_by_a_tenth(void)
{
	uint64_t now = 0, first[2];
	uint32_t early = 0, late = 0;
	struct health h;

	for (uint32_t seed = 0; seed < 2; seed++) {
		health_begin(&h, &usual, 1000, seed);
		first[seed] = health_next(&h, &usual);
		CHECK(first[seed] >= 1000 && first[seed] <= 1100);
		now = ask_well(&h, &usual, 1000);
		for (int i = 0; i < 2000; i++) {
			uint64_t next = ask_well(&h, &usual, now);

			CHECK(next - now >= 900 && next - now <= 1100);
			early += next - now < 920;
			late += next - now > 1080;
			now = next;
		}
	}
	/* A tenth of them each, or thereabouts. */
	CHECK(early > 200 && late > 200 && early < 600 && late < 600);
}

static void
a_shorter_interval_takes_effect(void)
{
	struct health_conf slow = usual;
	struct health h;
	uint64_t now;

	slow.interval_ms = 3600000;
	health_begin(&h, &slow, 0, 5);
	now = ask_well(&h, &slow, 0);
	CHECK(!health_turn(&h, &slow, now + 100000));
	CHECK(health_turn(&h, &usual, now + 1100));
}

static void
a_hint_takes_it_down_at_once(void)
{
	struct health h;
	uint64_t now;

	health_begin(&h, &usual, 0, 4);
	now = ask_well(&h, &usual, 0) + 10;
	health_hint(&h, &usual, now);
	CHECK(!h.up && h.why == HEALTH_HINT && h.hints == 1);
	/* Asked about it at once; silence confirms it, and then it takes `rise`. */
	CHECK(health_turn(&h, &usual, now));
	health_sent(&h, &usual, now, true);
	health_hint(&h, &usual, now);
	CHECK(h.open && h.hints == 1);
	now += usual.timeout_ms;
	CHECK(!health_turn(&h, &usual, now) && h.why == HEALTH_SILENT);
	now = ask_well(&h, &usual, now);
	CHECK(!h.up);
	now = ask_well(&h, &usual, now);
	CHECK(h.up && h.changes == 2);
	/* With a request under way: that one is not the one that is believed. */
	now = ask(&h, &usual, now);
	health_hint(&h, &usual, now + 1);
	CHECK(!h.up && !h.open && h.sent == h.good + h.failed);
	health_answer(&h, &usual, now + 2, any, 1);
	CHECK(!h.up && h.late == 1);
}

static void
a_forged_hint_costs_a_round_trip(void)
{
	struct health h;
	uint64_t now;

	health_begin(&h, &usual, 0, 4);
	now = ask_well(&h, &usual, 0) + 10;
	health_hint(&h, &usual, now);
	CHECK(health_turn(&h, &usual, now));
	health_sent(&h, &usual, now, true);
	health_answer(&h, &usual, now + 1, any, 1);
	CHECK(h.up && h.why == HEALTH_ANSWERS && h.changes == 2);
	/* No hint is believed for ten intervals from then on. */
	health_hint(&h, &usual, now + 10000);
	CHECK(h.up && h.hints == 1);
	/* But requests are. */
	for (uint32_t i = 0; i < usual.fall; i++)
		ask_in_vain(&h, &usual, now + 2 + i * 2000);
	CHECK(!h.up);
	health_begin(&h, &usual, 0, 4);
	h.trust_ms = 10001;
	health_hint(&h, &usual, 10001);
	CHECK(!h.up && h.hints == 1);
}

/* Anything in any order: requests have one end each, and the state follows its changes. */
static void
everything_has_one_end(void)
{
	uint32_t random = 12345;
	struct health h;
	uint64_t now = 0;

	health_begin(&h, &usual, now, 6);
	for (int i = 0; i < 200000; i++) {
		bool due;

		now += test_random(&random) >> 24;
		due = health_turn(&h, &usual, now);
		switch (random >> 16 & 7) {
		case 0:
			health_answer(&h, &usual, now, any, 1);
			break;
		case 1:
			health_unreachable(&h, &usual, now);
			break;
		case 2:
			health_hint(&h, &usual, now);
			break;
		default:
			if (due)
				health_sent(&h, &usual, now, (random >> 8 & 15) != 0);
			break;
		}
		CHECK_EQ(h.sent, h.good + h.failed + h.open);
		CHECK(h.up == (h.changes % 2 == 0));
		CHECK(!h.hinted || !h.up);
		CHECK(health_next(&h, &usual) <= now + 1100);
	}
	CHECK(h.good > 1000 && h.failed > 1000 && h.hints > 100 && h.late > 1000);
}

int
main(void)
{
	SL_TEST_RUN(the_first_failure_decides);
	SL_TEST_RUN(a_doubtful_one_has_to_rise);
	SL_TEST_RUN(rise_and_fall_are_counted_in_a_row);
	SL_TEST_RUN(time_is_over_at_the_timeout);
	SL_TEST_RUN(an_answer_begins_as_expected);
	SL_TEST_RUN(what_cannot_be_sent_or_arrive_fails);
	SL_TEST_RUN(requests_are_early_or_late_by_a_tenth);
	SL_TEST_RUN(a_shorter_interval_takes_effect);
	SL_TEST_RUN(a_hint_takes_it_down_at_once);
	SL_TEST_RUN(a_forged_hint_costs_a_round_trip);
	SL_TEST_RUN(everything_has_one_end);
	return test_end();
}
