/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Lcores learn, move and look up stations of one table while a control thread ages, lists and
 * changes settings (BR1, BR2). Whatever is found is a member that the station has really been heard
 * from; in the end the counts agree with the entries.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "bridge_table.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define WORKERS 3u
#define ENTRIES 256u
#define STATIONS 300u /* more than there is room for */
#define ROUNDS 300u

/* rte_hash orders its keys by atomics that ThreadSanitizer does not see, as it is not built for it. */
const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
	return "called_from_lib:librte_hash\n";
}

static struct bridge_table *table;
static uint64_t round_now;	     /* (a) the control thread's */
static uint64_t seen_round[WORKERS]; /* (a) each by its worker */
static uint64_t wrong;		     /* (a) */
static uint64_t learned[WORKERS][BRIDGE_LEARN_RESULTS], bursts[WORKERS];

/* A station is heard by two of the three workers, each of which is a member: never by the third. */
static bool
hears(uint32_t worker, uint64_t station)
{
	return station % WORKERS != worker;
}

static void
one_burst(uint32_t w, uint32_t *rng, uint32_t now_s)
{
	uint64_t mac[BRIDGE_BURST];
	uint16_t member[BRIDGE_BURST], n = 0;

	for (uint32_t i = 0; i < BRIDGE_BURST; i++) {
		uint64_t station = (test_random(rng) >> 16) % STATIONS;

		if (hears(w, station))
			mac[n++] = station + 1;
	}
	bridge_table_learn_burst(table, mac, n, (uint16_t)w, now_s, learned[w]);
	bursts[w] += n;
	bridge_table_find_burst(table, mac, n, now_s, member);
	for (uint16_t i = 0; i < n; i++)
		if (member[i] != BRIDGE_UNKNOWN &&
			(member[i] >= WORKERS || !hears(member[i], mac[i] - 1)))
			sl_fetch_add_relaxed(&wrong, UINT64_C(1));
}

static void *
work(void *arg)
{
	uint32_t w = (uint32_t)(uintptr_t)arg, rng = w + 1;
	uint64_t round;

	do {
		round = sl_load_acquire(&round_now);
		one_burst(w, &rng, (uint32_t)round);
		sl_store_release(&seen_round[w], round);
		sched_yield(); /* there may be more threads than processors */
	} while (round < ROUNDS);
	return NULL;
}

/* A grace period: every worker has begun a burst since, or has ended. */
static void
wait_round(void *arg)
{
	uint64_t round = round_now < ROUNDS ? round_now + 1 : ROUNDS;

	(void)arg;
	sl_store_release(&round_now, round);
	for (uint32_t w = 0; w < WORKERS; w++)
		while (sl_load_acquire(&seen_round[w]) < round)
			sched_yield();
}

static void
list_all(void)
{
	struct bridge_row row[50];
	uint32_t from = 0;

	while (from != BRIDGE_ENTRIES_MAX) {
		uint32_t n = bridge_table_list(
			table, from, (uint32_t)round_now, row, SL_COUNT_OF(row), &from);

		for (uint32_t i = 0; i < n; i++)
			CHECK(row[i].member < WORKERS && hears(row[i].member, row[i].mac - 1));
	}
}

static void
control(void)
{
	uint32_t forgotten = 0;

	while (round_now < ROUNDS) {
		wait_round(NULL);
		bridge_table_set(table, ENTRIES / 2 + (uint32_t)round_now % 3, 1);
		forgotten += bridge_table_age(table, (uint32_t)round_now, wait_round, NULL);
		list_all();
	}
	printf("%u stations forgotten\n", forgotten);
}

static void
stations_come_move_and_go(void)
{
	struct bridge_table_conf conf = {
		.entries = ENTRIES, .per_port = ENTRIES / 2, .age_s = 1, .seed = 5, .socket = -1};
	uint64_t sum[BRIDGE_LEARN_RESULTS] = {0}, all = 0, did = 0, held = 0;
	pthread_t thread[WORKERS];

	REQUIRE(bridge_table_create(&conf, &table) == 0);
	for (uint32_t w = 0; w < WORKERS; w++)
		REQUIRE(pthread_create(&thread[w], NULL, work, (void *)(uintptr_t)w) == 0);
	control();
	for (uint32_t w = 0; w < WORKERS; w++) {
		pthread_join(thread[w], NULL);
		for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
			sum[i] += learned[w][i];
		did += bursts[w];
	}
	for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
		all += sum[i];
	CHECK_EQ(all, did);
	CHECK_EQ(wrong, 0);
	CHECK(sum[BRIDGE_KNOWN] > 0 && sum[BRIDGE_LEARNED] > 0 && sum[BRIDGE_MOVED] > 0);
	/* What is left agrees with the counts, and goes. */
	for (uint16_t w = 0; w < WORKERS; w++)
		held += bridge_table_held(table, w);
	CHECK_EQ(bridge_table_age(table, ROUNDS + 100, wait_round, NULL), held);
	for (uint16_t w = 0; w < WORKERS; w++)
		CHECK_EQ(bridge_table_held(table, w), 0);
	printf("known %llu learned %llu moved %llu limit %llu full %llu busy %llu\n",
		(unsigned long long)sum[0], (unsigned long long)sum[1], (unsigned long long)sum[2],
		(unsigned long long)sum[3], (unsigned long long)sum[4], (unsigned long long)sum[5]);
	bridge_table_destroy(table);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	printf("seed 1, %u rounds\n", ROUNDS);
	SL_TEST_RUN(stations_come_move_and_go);
	return test_end();
}
