/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The reflector by length, by field, and against exchanges without end. Scapy reads its answers in
 * test_stamp_reference.py. */
#include <errno.h>
#include <string.h>
#include <sys/timex.h>

#include <rte_byteorder.h>

#include "sl_test.h"
#include "sl_test_eal.h"
#include "stamp.h"

/* 2026-12-01 00:00:00.5 UTC, and what that is in both formats. */
#define T_NOW_NS 1796083200500000000ull
#define T_NOW_NTP (((uint64_t)(1796083200u + 2208988800u) << 32) | 0x80000000u)
#define T_NOW_PTP(tai) (((uint64_t)(1796083200u + (tai)) << 32) | 500000000u)

static struct timex t_timex;
static int
	t_timex_result; /* what adjtimex says; the value that asks for the real one is TIMEX_REAL */
#define TIMEX_REAL 1000
static bool fail_calloc;

int __real_adjtimex(struct timex *t);
int __wrap_adjtimex(struct timex *t);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

int
__wrap_adjtimex(struct timex *t)
{
	if (t_timex_result == TIMEX_REAL)
		return __real_adjtimex(t);
	CHECK_EQ(t->modes, 0); /* it only asks */
	*t = t_timex;
	if (t_timex_result < 0)
		errno = EPERM;
	return t_timex_result;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return fail_calloc ? NULL : __real_calloc(n, size);
}

static struct stamp_seen
t_seen(uint16_t sport)
{
	struct stamp_seen s = {.src = sl_addr_v4(rte_cpu_to_be_32(0xc6120001)),
		.dst = sl_addr_v4(rte_cpu_to_be_32(0xc6120002)),
		.sport = rte_cpu_to_be_16(sport),
		.dport = rte_cpu_to_be_16(862),
		.ttl = 61,
		.rx_ns = T_NOW_NS,
		.tx_ns = T_NOW_NS + 1000};

	return s;
}

/* A request: number 0x01020304, some T1, error estimate `error`, everything behind it zero. */
static void
t_request(uint8_t *data, size_t len, uint16_t error)
{
	static const uint8_t head[14] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

	memset(data, 0, len);
	memcpy(data, head, len < sizeof(head) ? len : sizeof(head));
	if (len >= sizeof(head)) {
		data[12] = (uint8_t)(error >> 8);
		data[13] = (uint8_t)error;
	}
}

static uint64_t
t_get(const uint8_t *p, int octets)
{
	uint64_t v = 0;

	while (octets-- > 0)
		v = v << 8 | *p++;
	return v;
}

static struct stamp *
t_make(enum stamp_sequence sequence, enum stamp_format format, bool session_id)
{
	struct stamp_conf conf = {.sequence = sequence,
		.format = format,
		.session_id = session_id,
		.sessions = {.flows = 16, .idle_ms = 1000, .socket = -1}};
	struct stamp_clock clock = {.synchronised = true, .error_ns = 1000000, .tai_s = 37};
	struct stamp *s = NULL;

	REQUIRE(stamp_create(&conf, &s) == 0);
	stamp_set_clock(s, &clock);
	return s;
}

/* Every length: what the outcome is, that refused requests stay, that nothing behind the request is
 * touched, and what of the padding stays. */
static void
lengths(void)
{
	static const size_t large[] = {512, 1471, 1472, 1473, 8972, 9000, 65507};
	static uint8_t data[65536], before[65536];
	struct stamp *s = t_make(STAMP_STATELESS, STAMP_NTP, false);
	struct stamp_seen seen = t_seen(40000);
	uint64_t counts[STAMP_OUTCOMES], sum = 0;
	size_t tried = 0;

	for (size_t len = 0; tried < 101 + SL_COUNT_OF(large); len++, tried++) {
		enum stamp_outcome expected;

		if (tried >= 101)
			len = large[tried - 101];
		expected = len < 14 ? STAMP_SHORT : len < 41 ? STAMP_UNPADDED : STAMP_ANSWERED;
		memset(data, 0xee, sizeof(data));
		t_request(data, len, 0x8001);
		memset(data + (len < 44 ? len : 44), 0xee, sizeof(data) - (len < 44 ? len : 44));
		memcpy(before, data, sizeof(data));
		CHECK_EQ(stamp_reflect(s, &seen, data, len), expected);
		if (expected != STAMP_ANSWERED) {
			CHECK(memcmp(data, before, sizeof(data)) == 0);
			continue;
		}
		CHECK_EQ(data[40], 61);
		CHECK(memcmp(data + (len < 44 ? len : 44), before + (len < 44 ? len : 44),
			      sizeof(data) - (len < 44 ? len : 44)) == 0);
		for (size_t i = 41; i < 44 && i < len; i++)
			CHECK_EQ(data[i], 0);
	}
	stamp_counts(s, counts);
	for (int i = 0; i < STAMP_OUTCOMES; i++)
		sum += counts[i];
	CHECK_EQ(sum, tried);
	CHECK_EQ(counts[STAMP_SHORT], 14);
	CHECK_EQ(counts[STAMP_UNPADDED], 27);
	stamp_destroy(s);
}

static void
fields(void)
{
	static const struct {
		enum stamp_format format;
		uint16_t error; /* of the request */
		bool ptp;
	} cases[] = {
		{STAMP_NTP, 0x8001, false},
		{STAMP_NTP, 0xc001, false},
		{STAMP_PTP, 0x0001, true},
		{STAMP_PTP, 0x4001, true},
		{STAMP_SENDER, 0x0001, false},
		{STAMP_SENDER, 0x7fff, true},
		{STAMP_SENDER, 0xbfff, false},
	};
	struct stamp_seen seen = t_seen(40000);

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct stamp *s = t_make(STAMP_STATELESS, cases[i].format, false);
		uint64_t now = cases[i].ptp ? T_NOW_PTP(37) : T_NOW_NTP;
		/* 1000 ns: by count of nanoseconds, or 2^-32 s rounded down. */
		uint64_t later = now + (cases[i].ptp ? 1000 : (1000ull << 32) / 1000000000);
		uint8_t data[60];

		t_request(data, sizeof(data), cases[i].error);
		data[14] = 0xab;
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), STAMP_ANSWERED);
		CHECK_EQ(t_get(data, 4), 0x01020304);
		CHECK_EQ(t_get(data + 4, 8), later);
		CHECK_EQ(data[12] >> 6, cases[i].ptp ? 3 : 2);
		CHECK_EQ(t_get(data + 14, 2), 0);
		CHECK_EQ(t_get(data + 16, 8), now);
		CHECK_EQ(t_get(data + 24, 4), 0x01020304);
		CHECK_EQ(t_get(data + 28, 8), 0x05060708090a0b0c);
		CHECK_EQ(t_get(data + 36, 2), cases[i].error);
		CHECK_EQ(t_get(data + 38, 2), 0);
		CHECK_EQ(t_get(data + 40, 4), 61u << 24);
		/* A later T3, in the format that the answer announces. */
		stamp_set_transmit(stamp_how_of(s), T_NOW_NS, data);
		CHECK_EQ(t_get(data + 4, 8), now);
		stamp_destroy(s);
	}
}

static void
session_ids(void)
{
	struct stamp *s = t_make(STAMP_STATEFUL, STAMP_NTP, true);
	struct stamp_seen seen = t_seen(40000);
	uint8_t data[44];

	/* Two identifiers of one socket are two sessions. */
	for (uint32_t n = 0; n < 6; n++) {
		t_request(data, sizeof(data), 1);
		data[15] = (uint8_t)(n % 2);
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), STAMP_ANSWERED);
		CHECK_EQ(t_get(data + 14, 2), n % 2);
		CHECK_EQ(t_get(data, 4), n / 2);
		CHECK_EQ(t_get(data + 24, 4), 0x01020304);
	}
	stamp_destroy(s);
	/* A TWAMP sender's padding in that place makes no sessions. */
	s = t_make(STAMP_STATEFUL, STAMP_NTP, false);
	for (uint32_t n = 0; n < 40; n++) {
		t_request(data, sizeof(data), 1);
		data[15] = (uint8_t)n;
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), STAMP_ANSWERED);
		CHECK_EQ(t_get(data, 4), n);
		CHECK_EQ(data[15], 0);
	}
	stamp_destroy(s);
}

/* Own numbers per session; idle ones are forgotten and begin anew; no more than there is room for.
 */
static void
stateful(void)
{
	struct stamp *s = t_make(STAMP_STATEFUL, STAMP_NTP, false);
	uint64_t counts[STAMP_OUTCOMES];
	struct flowtab_stats stats;
	uint8_t data[44];

	stamp_turn(s, 0);
	for (uint32_t n = 0; n < 3; n++) {
		for (uint16_t port = 2000; port < 2020; port++) {
			struct stamp_seen seen = t_seen(port);
			enum stamp_outcome outcome;

			t_request(data, sizeof(data), 1);
			outcome = stamp_reflect(s, &seen, data, sizeof(data));
			CHECK_EQ(outcome, port < 2016 ? STAMP_ANSWERED : STAMP_SESSIONS);
			CHECK_EQ(t_get(data, 4), port < 2016 ? n : 0x01020304);
		}
		stamp_turn(s, n * 100);
	}
	stamp_counts(s, counts);
	CHECK_EQ(counts[STAMP_SESSIONS], 12);
	/* One goes on while the others fall silent. */
	for (uint64_t now = 1000; now <= 3000; now += 500) {
		struct stamp_seen seen = t_seen(2001);

		stamp_turn(s, now);
		t_request(data, sizeof(data), 1);
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), STAMP_ANSWERED);
		CHECK_EQ(t_get(data, 4), 3 + (now - 1000) / 500);
	}
	flowtab_stats_get(stamp_sessions(s), &stats);
	CHECK_EQ(stats.flows, 1);
	CHECK_EQ(stats.aged, 15);
	flowtab_check(stamp_sessions(s));
	stamp_destroy(s);
	s = t_make(STAMP_STATELESS, STAMP_NTP, false);
	CHECK(stamp_sessions(s) == NULL);
	stamp_turn(s, 5);
	stamp_destroy(s);
}

static void
refusals(void)
{
	struct stamp_conf conf = {.authenticated = true};
	struct stamp *s = NULL;

	CHECK_EQ(stamp_create(&conf, &s), -ENOTSUP);
	conf = (struct stamp_conf){.format = 3};
	CHECK_EQ(stamp_create(&conf, &s), -EINVAL);
	conf = (struct stamp_conf){.sequence = 2};
	CHECK_EQ(stamp_create(&conf, &s), -EINVAL);
	conf = (struct stamp_conf){
		.sequence = STAMP_STATEFUL, .sessions = {.flows = 1, .socket = -1}};
	CHECK_EQ(stamp_create(&conf, &s), -EINVAL);
	conf = (struct stamp_conf){.sequence = STAMP_STATELESS};
	fail_calloc = true;
	CHECK_EQ(stamp_create(&conf, &s), -ENOMEM);
	fail_calloc = false;
	CHECK(s == NULL);
	stamp_destroy(NULL);
}

static void
source_ports(void)
{
	static const struct {
		uint16_t port;
		enum stamp_outcome outcome;
	} cases[] = {{0, STAMP_PORT}, {7, STAMP_PORT}, {13, STAMP_PORT}, {17, STAMP_PORT},
		{19, STAMP_PORT}, {53, STAMP_PORT}, {123, STAMP_PORT}, {861, STAMP_PORT},
		{862, STAMP_ANSWERED}, {863, STAMP_PORT}, {1023, STAMP_PORT},
		{1024, STAMP_ANSWERED}, {65535, STAMP_ANSWERED}};
	struct stamp *s = t_make(STAMP_STATELESS, STAMP_NTP, false);

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct stamp_seen seen = t_seen(cases[i].port);
		uint8_t data[44];

		t_request(data, sizeof(data), 1);
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), cases[i].outcome);
	}
	stamp_destroy(s);
}

/* Two reflectors whose requests somebody forges: how many answers until silence? A clock may be off
 * by `skew_s`, and formats may differ. */
static int
exchange(enum stamp_format fa, enum stamp_format fb, int64_t skew_s, bool echo, size_t len)
{
	struct stamp *s[2] = {
		t_make(STAMP_STATELESS, fa, false), t_make(STAMP_STATELESS, fb, false)};
	uint64_t now = T_NOW_NS;
	uint8_t data[1472];
	int answers = 0;

	t_request(data, len, 1);
	for (int turn = 0; answers < 100; turn++) {
		struct stamp_seen seen = t_seen(5000);

		now += 30000000;
		if (echo && turn % 2 == 1)
			continue; /* the other side sends back what it got */
		seen.rx_ns = now + (turn % 2 != 0 ? (uint64_t)skew_s * 1000000000 : 0);
		seen.tx_ns = seen.rx_ns + 5000;
		if (stamp_reflect(s[turn % 2], &seen, data, len) != STAMP_ANSWERED)
			break;
		answers++;
	}
	stamp_destroy(s[0]);
	stamp_destroy(s[1]);
	return answers;
}

static void
no_exchange_without_end(void)
{
	static const int64_t skews[] = {0, 1, -1, 60, -3600, 1000000000, -1700000000};
	static const size_t lens[] = {41, 43, 44, 1472};

	for (size_t l = 0; l < SL_COUNT_OF(lens); l++) {
		for (size_t k = 0; k < SL_COUNT_OF(skews); k++) {
			for (int f = 0; f < 9; f++)
				CHECK(exchange(f / 3, f % 3, skews[k], false, lens[l]) <= 2);
		}
		for (int f = 0; f < 3; f++)
			CHECK_EQ(exchange(f, f, 0, true, lens[l]), 1);
	}
}

/* What is not ours in the padding is no reason to refuse. */
static void
padding_is_no_answer(void)
{
	struct stamp *s = t_make(STAMP_STATELESS, STAMP_NTP, false);
	struct stamp_seen seen = t_seen(5000);
	uint64_t rng = 88172645463325252ull;
	uint8_t data[100];

	for (int n = 0; n < 100000; n++) {
		t_request(data, sizeof(data), 1);
		for (size_t i = 14; i < sizeof(data); i++) {
			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			data[i] = (uint8_t)(rng >> 32);
		}
		CHECK_EQ(stamp_reflect(s, &seen, data, sizeof(data)), STAMP_ANSWERED);
	}
	stamp_destroy(s);
}

static void
error_estimates(void)
{
	static const struct {
		bool synchronised;
		uint64_t ns;
		uint16_t expected;
	} cases[] = {
		{false, 0, 0x0001}, /* the multiplier is never 0 */
		{true, 0, 0x8001},
		{true, 1, 0x8005},			    /* 4.3 units of 2^-32 s */
		{true, 59, 0x80fe},			    /* 253.4 */
		{true, 60, 0x8181},			    /* 257.7: 129 x 2 */
		{true, 1000, 0x8000 | 5 << 8 | 135},	    /* 4294.97 */
		{true, 1000000000, 0x8000 | 25 << 8 | 128}, /* 2^32 */
		{false, 16000000000, 29 << 8 | 128},	    /* 2^36 */
		{true, UINT64_MAX, 0x8000 | 29 << 8 | 128},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct stamp_clock clock = {
			.synchronised = cases[i].synchronised, .error_ns = cases[i].ns};

		CHECK_EQ(stamp_error_estimate(&clock, false), cases[i].expected);
		CHECK_EQ(stamp_error_estimate(&clock, true), cases[i].expected | 0x4000);
	}
	/* Never below the error, never twice it and two units. */
	for (uint64_t ns = 1; ns < 16000000000; ns += ns / 3 + 1) {
		struct stamp_clock clock = {.error_ns = ns};
		uint16_t e = stamp_error_estimate(&clock, false);
		double said = (double)(e & 0xff) * (double)(1ull << (e >> 8 & 0x3f)) / 4294967296.0;

		CHECK(said >= (double)ns * 1e-9);
		CHECK(said <= (double)ns * 1.01e-9 + 2 / 4294967296.0);
	}
}

static void
times(void)
{
	static const struct {
		uint64_t ns;
		int32_t tai_s;
		uint64_t ntp, ptp;
	} cases[] = {
		{0, 0, 2208988800ull << 32, 0},
		{999999999, 0, 2208988800ull << 32 | 0xfffffffb, 999999999},
		{T_NOW_NS, 37, T_NOW_NTP, T_NOW_PTP(37)},
		/* NTP's seconds wrap in 2036, PTP's 32 bits of them in 2106. */
		{2085978496ull * 1000000000, 0, 0, 2085978496ull << 32},
		{4294967295ull * 1000000000 + 1, 1, (2208988800ull - 1) << 32 | 4, 1},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct stamp_clock clock = {.tai_s = cases[i].tai_s};

		CHECK_EQ(stamp_time(cases[i].ns, false, &clock), cases[i].ntp);
		CHECK_EQ(stamp_time(cases[i].ns, true, &clock), cases[i].ptp);
	}
}

static void
the_clock(void)
{
	static const struct {
		int result, status;
		long maxerror;
		bool synchronised;
		uint64_t error_ns;
	} cases[] = {
		{TIME_OK, 0, 1500, true, 1500000},
		{TIME_OK, STA_NANO | STA_PLL, 0, true, 0},
		{TIME_INS, 0, 20, true, 20000},
		{TIME_OK, STA_UNSYNC, 20, false, 16000000000},
		{TIME_ERROR, STA_UNSYNC, 16000000, false, 16000000000},
		{TIME_ERROR, 0, 20, false, 16000000000},
		{TIME_OK, 0, -1, true, 16000000000},
		{-1, 0, 20, false, 16000000000},
	};
	struct stamp_clock clock;

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		t_timex_result = cases[i].result;
		t_timex = (struct timex){
			.status = cases[i].status, .maxerror = cases[i].maxerror, .tai = 37};
		stamp_clock_read(&clock);
		CHECK_EQ(clock.synchronised, cases[i].synchronised);
		CHECK_EQ(clock.error_ns, cases[i].error_ns);
		CHECK_EQ(clock.tai_s, cases[i].result < 0 ? 0 : 37);
	}
	t_timex_result = TIMEX_REAL;
	stamp_clock_read(&clock);
	CHECK(clock.error_ns <= 16000000000);
}

static void
outcomes_have_names(void)
{
	for (int i = 0; i < STAMP_OUTCOMES; i++) {
		CHECK(stamp_outcome_name(i) != NULL);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(stamp_outcome_name(i), stamp_outcome_name(k)) != 0);
	}
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	SL_TEST_RUN(lengths);
	SL_TEST_RUN(fields);
	SL_TEST_RUN(session_ids);
	SL_TEST_RUN(stateful);
	SL_TEST_RUN(refusals);
	SL_TEST_RUN(source_ports);
	SL_TEST_RUN(no_exchange_without_end);
	SL_TEST_RUN(padding_is_no_answer);
	SL_TEST_RUN(error_estimates);
	SL_TEST_RUN(times);
	SL_TEST_RUN(the_clock);
	SL_TEST_RUN(outcomes_have_names);
	return test_end();
}
