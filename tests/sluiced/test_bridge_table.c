/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The table of stations on one thread: learning, moving, bounds, ageing, listing. */
#include <errno.h>
#include <string.h>

#include "bridge_table.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define ENTRIES 64u
#define AGE_S 300u

static struct bridge_table *table;
static uint32_t waits;

static void
setup(uint32_t per_port)
{
	struct bridge_table_conf conf = {
		.entries = ENTRIES, .per_port = per_port, .age_s = AGE_S, .seed = 7, .socket = -1};

	REQUIRE(bridge_table_create(&conf, &table) == 0);
	waits = 0;
}

static void
wait_none(void *arg)
{
	(void)arg;
	waits++;
}

static enum bridge_learn
learn(uint64_t mac, uint16_t member, uint32_t now_s)
{
	uint64_t counts[BRIDGE_LEARN_RESULTS] = {0};

	bridge_table_learn_burst(table, &mac, 1, member, now_s, counts);
	for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
		if (counts[i] == 1)
			return (enum bridge_learn)i;
	return BRIDGE_LEARN_RESULTS;
}

static uint16_t
find(uint64_t mac, uint32_t now_s)
{
	uint16_t member;

	bridge_table_find_burst(table, &mac, 1, now_s, &member);
	return member;
}

static void
mac_bytes_are_in_order(void)
{
	const uint8_t bytes[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

	CHECK(bridge_mac(bytes) == UINT64_C(0x021122334455));
}

static void
bad_bounds_are_refused(void)
{
	static const struct bridge_table_conf bad[] = {
		{.entries = BRIDGE_ENTRIES_MIN - 1, .per_port = 1, .age_s = 1},
		{.entries = BRIDGE_ENTRIES_MAX + 1, .per_port = 1, .age_s = 1},
		{.entries = 64, .per_port = 0, .age_s = 1},
		{.entries = 64, .per_port = 65, .age_s = 1},
		{.entries = 64, .per_port = 64, .age_s = 0},
		{.entries = 64, .per_port = 64, .age_s = BRIDGE_AGE_MAX_S + 1},
	};
	struct bridge_table *t = NULL;

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++)
		CHECK_EQ(bridge_table_create(&bad[i], &t), -EINVAL);
	CHECK(t == NULL);
	bridge_table_destroy(NULL);
}

static void
stations_are_learned_and_move(void)
{
	setup(ENTRIES);
	CHECK_EQ(find(1, 0), BRIDGE_UNKNOWN);
	CHECK_EQ(learn(1, 3, 0), BRIDGE_LEARNED);
	CHECK_EQ(learn(1, 3, 0), BRIDGE_KNOWN);
	CHECK_EQ(find(1, 0), 3);
	CHECK_EQ(bridge_table_held(table, 3), 1);
	CHECK_EQ(learn(1, 5, 1), BRIDGE_MOVED);
	CHECK_EQ(find(1, 1), 5);
	CHECK_EQ(bridge_table_held(table, 3), 0);
	CHECK_EQ(bridge_table_held(table, 5), 1);
	bridge_table_destroy(table);
}

static void
one_burst_may_have_a_station_twice(void)
{
	uint64_t mac[BRIDGE_BURST], counts[BRIDGE_LEARN_RESULTS] = {0};
	uint16_t member[BRIDGE_BURST];

	setup(ENTRIES);
	for (uint32_t i = 0; i < BRIDGE_BURST; i++)
		mac[i] = 1 + i / 2;
	bridge_table_learn_burst(table, mac, BRIDGE_BURST, 0, 0, counts);
	CHECK_EQ(counts[BRIDGE_LEARNED], BRIDGE_BURST / 2);
	CHECK_EQ(counts[BRIDGE_KNOWN], BRIDGE_BURST / 2);
	CHECK_EQ(bridge_table_held(table, 0), BRIDGE_BURST / 2);
	bridge_table_find_burst(table, mac, BRIDGE_BURST, 0, member);
	for (uint32_t i = 0; i < BRIDGE_BURST; i++)
		CHECK_EQ(member[i], 0);
	bridge_table_learn_burst(table, mac, 0, 0, 0, counts);
	bridge_table_find_burst(table, mac, 0, 0, member);
	bridge_table_destroy(table);
}

/* A flood of forged sources behind one member leaves the others what they have, and may have. */
static void
a_flood_fills_its_members_share_alone(void)
{
	uint32_t learned = 0, refused = 0;

	setup(ENTRIES / 2);
	CHECK_EQ(learn(1, 0, 0), BRIDGE_LEARNED);
	for (uint64_t mac = 1000; mac < 11000; mac++) {
		enum bridge_learn what = learn(mac, 1, 0);

		learned += what == BRIDGE_LEARNED;
		refused += what == BRIDGE_LIMIT;
	}
	CHECK_EQ(learned, ENTRIES / 2);
	CHECK_EQ(refused, 10000 - ENTRIES / 2);
	CHECK_EQ(find(1, 0), 0);
	for (uint64_t mac = 2; mac <= ENTRIES / 2; mac++)
		CHECK_EQ(learn(mac, 0, 0), BRIDGE_LEARNED);
	CHECK_EQ(learn(500, 0, 0), BRIDGE_LIMIT);
	/* Nor do the forged ones take away a station that a full member is said to have. */
	CHECK_EQ(learn(1, 1, 0), BRIDGE_LIMIT);
	CHECK_EQ(find(1, 0), 0);
	/* All shares are used, and so is the table. */
	CHECK_EQ(learn(600, 2, 0), BRIDGE_FULL);
	bridge_table_destroy(table);
}

static void
what_is_not_heard_is_forgotten(void)
{
	const uint32_t start = UINT32_MAX - 10; /* the clock wraps on the way */

	setup(ENTRIES);
	for (uint64_t mac = 1; mac <= ENTRIES; mac++)
		CHECK_EQ(learn(mac, (uint16_t)(mac % 4), start), BRIDGE_LEARNED);
	CHECK_EQ(bridge_table_age(table, start + AGE_S, wait_none, NULL), 0);
	CHECK_EQ(waits, 0);
	CHECK_EQ(learn(1, 1, start + AGE_S), BRIDGE_KNOWN);
	/* Late ageing does not keep what is too old. */
	CHECK_EQ(find(2, start + AGE_S), 2);
	CHECK_EQ(find(2, start + AGE_S + 1), BRIDGE_UNKNOWN);
	CHECK_EQ(bridge_table_age(table, start + AGE_S + 1, wait_none, NULL), ENTRIES - 1);
	CHECK(waits > 0);
	CHECK_EQ(find(1, start + AGE_S + 1), 1);
	for (uint16_t m = 0; m < 4; m++)
		CHECK_EQ(bridge_table_held(table, m), m == 1);
	for (uint64_t mac = 101; mac < 100 + ENTRIES; mac++)
		CHECK_EQ(learn(mac, 0, start + AGE_S + 1), BRIDGE_LEARNED);
	CHECK_EQ(learn(999, 0, start + AGE_S + 1), BRIDGE_FULL);
	bridge_table_destroy(table);
}

/* An lcore whose clock is behind another's neither makes a station older, nor forgets it. */
static void
clocks_of_lcores_may_differ(void)
{
	setup(ENTRIES);
	CHECK_EQ(learn(1, 0, 100), BRIDGE_LEARNED);
	CHECK_EQ(learn(1, 0, 99), BRIDGE_KNOWN);
	CHECK_EQ(find(1, 99), 0);
	CHECK_EQ(find(1, 100 + AGE_S), 0);
	CHECK_EQ(bridge_table_age(table, 99, wait_none, NULL), 0);
	bridge_table_destroy(table);
}

static void
settings_change(void)
{
	setup(2);
	CHECK_EQ(learn(1, 0, 0), BRIDGE_LEARNED);
	CHECK_EQ(learn(2, 0, 0), BRIDGE_LEARNED);
	CHECK_EQ(learn(3, 0, 0), BRIDGE_LIMIT);
	bridge_table_set(table, 3, 10);
	CHECK_EQ(learn(3, 0, 0), BRIDGE_LEARNED);
	CHECK_EQ(find(1, 11), BRIDGE_UNKNOWN);
	bridge_table_set(table, UINT32_MAX, 10);
	CHECK_EQ(bridge_table_age(table, 11, wait_none, NULL), 3);
	bridge_table_destroy(table);
}

static void
a_listing_has_every_station_once(void)
{
	uint32_t seen[ENTRIES + 1] = {0}, from = 0, rows = 0, pages = 0;
	struct bridge_row row[7];

	setup(ENTRIES);
	for (uint64_t mac = 1; mac <= 40; mac++)
		CHECK_EQ(learn(mac, (uint16_t)(mac % 3), (uint32_t)mac), BRIDGE_LEARNED);
	while (from != BRIDGE_ENTRIES_MAX && pages < 100) {
		uint32_t n = bridge_table_list(table, from, 50, row, SL_COUNT_OF(row), &from);

		for (uint32_t i = 0; i < n; i++) {
			REQUIRE(row[i].mac >= 1 && row[i].mac <= 40);
			seen[row[i].mac]++;
			CHECK_EQ(row[i].member, row[i].mac % 3);
			CHECK_EQ(row[i].age_s, 50 - row[i].mac);
		}
		rows += n;
		pages++;
	}
	CHECK_EQ(rows, 40);
	for (uint32_t i = 1; i <= 40; i++)
		CHECK_EQ(seen[i], 1);
	CHECK_EQ(bridge_table_list(table, ENTRIES + 5, 50, row, 7, &from), 0);
	CHECK_EQ(from, BRIDGE_ENTRIES_MAX);
	bridge_table_destroy(table);
}

/* A table of the largest size takes as many stations as it says. */
static void
the_largest_table_fills_up(void)
{
	struct bridge_table_conf conf = {.entries = BRIDGE_ENTRIES_MAX,
		.per_port = BRIDGE_ENTRIES_MAX,
		.age_s = 1,
		.seed = 99,
		.socket = -1};
	uint64_t mac[BRIDGE_BURST], counts[BRIDGE_LEARN_RESULTS] = {0};

	REQUIRE(bridge_table_create(&conf, &table) == 0);
	for (uint32_t i = 0; i < BRIDGE_ENTRIES_MAX; i += BRIDGE_BURST) {
		for (uint32_t k = 0; k < BRIDGE_BURST; k++)
			mac[k] = UINT64_C(0x020000000000) + i + k;
		bridge_table_learn_burst(table, mac, BRIDGE_BURST, 2, 0, counts);
	}
	CHECK_EQ(counts[BRIDGE_LEARNED], BRIDGE_ENTRIES_MAX);
	CHECK_EQ(bridge_table_age(table, 2, wait_none, NULL), BRIDGE_ENTRIES_MAX);
	bridge_table_destroy(table);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	SL_TEST_RUN(mac_bytes_are_in_order);
	SL_TEST_RUN(bad_bounds_are_refused);
	SL_TEST_RUN(stations_are_learned_and_move);
	SL_TEST_RUN(one_burst_may_have_a_station_twice);
	SL_TEST_RUN(a_flood_fills_its_members_share_alone);
	SL_TEST_RUN(what_is_not_heard_is_forgotten);
	SL_TEST_RUN(clocks_of_lcores_may_differ);
	SL_TEST_RUN(settings_change);
	SL_TEST_RUN(a_listing_has_every_station_once);
	SL_TEST_RUN(the_largest_table_fills_up);
	return test_end();
}
