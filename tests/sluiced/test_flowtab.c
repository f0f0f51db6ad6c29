/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The flow table's bounds: flows, age, new ones a second, work per turn; and its sums. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_hash.h>

#include "flowtab.h"
#include "sl_test.h"
#include "sl_test_eal.h"

static int fail_zmalloc; /* the one that fails, counted from 1 */
static bool fail_hash, fail_key;
static uint32_t t_gone, t_gone_sum; /* calls of gone, and the back ends that they named */

void *__real_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket);
void *__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket);
struct rte_hash *__real_rte_hash_create(const struct rte_hash_parameters *params);
struct rte_hash *__wrap_rte_hash_create(const struct rte_hash_parameters *params);
int32_t __real_rte_hash_add_key(const struct rte_hash *h, const void *key);
int32_t __wrap_rte_hash_add_key(const struct rte_hash *h, const void *key);

void *
__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	if (fail_zmalloc > 0 && --fail_zmalloc == 0)
		return NULL;
	return __real_rte_zmalloc_socket(type, size, align, socket);
}

struct rte_hash *
__wrap_rte_hash_create(const struct rte_hash_parameters *params)
{
	if (fail_hash) {
		rte_errno = ENOMEM;
		return NULL;
	}
	return __real_rte_hash_create(params);
}

int32_t
__wrap_rte_hash_add_key(const struct rte_hash *h, const void *key)
{
	return fail_key ? -ENOSPC : __real_rte_hash_add_key(h, key);
}

static void
t_count_gone(void *arg, const union flow_state *state)
{
	(*(uint32_t *)arg)++;
	t_gone_sum += state->backend;
}

static struct flowtab *
t_make(uint32_t flows, uint32_t idle_ms, uint32_t inserts_per_s)
{
	struct flowtab_conf conf = {.flows = flows,
		.idle_ms = idle_ms,
		.inserts_per_s = inserts_per_s,
		.seed = 99,
		.socket = -1,
		.gone = t_count_gone,
		.gone_arg = &t_gone};
	struct flowtab *t = NULL;

	t_gone = t_gone_sum = 0;
	REQUIRE(flowtab_create(&conf, &t) == 0);
	return t;
}

static void
t_end(struct flowtab *t)
{
	flowtab_check(t);
	flowtab_destroy(t);
}

/* Flow n of an IPv4 or IPv6 client. */
static struct flow_key
t_key(uint32_t n, bool v6)
{
	struct flow_key k = {.sport = (uint16_t)(n >> 16), .dport = 53, .proto = 17};

	if (!v6)
		k.src[10] = k.src[11] = k.dst[10] = k.dst[11] = 0xff;
	k.src[0] = v6 ? 0x20 : 0;
	k.src[14] = (uint8_t)(n >> 8);
	k.src[15] = (uint8_t)n;
	return k;
}

static enum flowtab_added
t_add(struct flowtab *t, uint32_t n, uint16_t backend)
{
	struct flow_key key = t_key(n, n % 2 != 0);
	union flow_state state = {.backend = backend, .generation = 1};
	uint32_t id;
	enum flowtab_added added = flowtab_add(t, &key, &state, &id);

	CHECK((id != FLOWTAB_NONE) == (added == FLOWTAB_ADDED || added == FLOWTAB_KNOWN));
	return added;
}

static uint32_t
t_find(struct flowtab *t, uint32_t n)
{
	struct flow_key key = t_key(n, n % 2 != 0);
	const struct flow_key *keys = &key;
	uint32_t id;

	flowtab_lookup_burst(t, &keys, 1, &id);
	return id;
}

static struct flowtab_stats
t_stats(const struct flowtab *t)
{
	struct flowtab_stats s;

	flowtab_stats_get(t, &s);
	return s;
}

static void
limits(void)
{
	static const struct {
		uint32_t flows, idle_ms, inserts_per_s;
		int result;
	} cases[] = {
		{0, 0, 0, 0},
		{7, 0, 0, -EINVAL},
		{8, 10, 10, 0},
		{8, 9, 10, -EINVAL},
		{8, 10, 9, -EINVAL},
		{FLOWTAB_FLOWS_MAX + 1, 0, 0, -EINVAL},
		{8, FLOWTAB_IDLE_MS_MAX, FLOWTAB_INSERTS_MAX, 0},
		{8, FLOWTAB_IDLE_MS_MAX + 1, 0, -EINVAL},
		{8, 0, FLOWTAB_INSERTS_MAX + 1, -EINVAL},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct flowtab_conf conf = {.flows = cases[i].flows,
			.idle_ms = cases[i].idle_ms,
			.inserts_per_s = cases[i].inserts_per_s,
			.socket = -1};
		struct flowtab *t = NULL;

		CHECK_EQ(flowtab_create(&conf, &t), cases[i].result);
		CHECK((t != NULL) == (cases[i].result == 0));
		flowtab_destroy(t);
	}
}

static void
no_memory(void)
{
	struct flowtab_conf conf = {.flows = 64, .socket = -1};
	struct flowtab *t = NULL;

	for (int k = 1; k <= 2; k++) {
		fail_zmalloc = k;
		CHECK_EQ(flowtab_create(&conf, &t), -ENOMEM);
	}
	fail_zmalloc = 0;
	fail_hash = true;
	CHECK_EQ(flowtab_create(&conf, &t), -ENOMEM);
	fail_hash = false;
	CHECK(t == NULL);
	REQUIRE(flowtab_create(&conf, &t) == 0);
	flowtab_destroy(t);
}

/* Keys that differ in one field are different flows; all keep their state and id. */
static void
every_field_counts(void)
{
	struct flowtab *t = t_make(64, 0, 0);
	struct flow_key key[9], *k = key;
	const struct flow_key *keys[9];
	uint32_t ids[9], again[9];

	for (int i = 0; i < 9; i++) {
		key[i] = t_key(1, false);
		keys[i] = &key[i];
	}
	k[1].src[15]++;
	k[2].dst[15]++;
	k[3].sport++;
	k[4].dport++;
	k[5].session++;
	k[6].proto++;
	k[7].src[10] = k[7].src[11] = 0; /* ::1.2.3.4 is not 1.2.3.4 */
	k[8].dst[0]++;
	flowtab_turn(t, 5);
	for (uint16_t i = 0; i < 9; i++) {
		union flow_state state = {.backend = i, .generation = 7};

		CHECK_EQ(flowtab_peek(t, keys[i]), FLOWTAB_NONE);
		CHECK_EQ(flowtab_add(t, keys[i], &state, &ids[i]), FLOWTAB_ADDED);
		CHECK_EQ(flowtab_peek(t, keys[i]), ids[i]);
	}
	flowtab_lookup_burst(t, keys, 9, again);
	for (uint16_t i = 0; i < 9; i++) {
		CHECK_EQ(again[i], ids[i]);
		CHECK_EQ(flowtab_state(t, ids[i])->backend, i);
		CHECK_EQ(flowtab_state(t, ids[i])->generation, 7);
	}
	flowtab_lookup_burst(t, keys, 0, again);
	CHECK_EQ(t_stats(t).hits, 9);
	CHECK_EQ(t_stats(t).misses, 0); /* a peek is not counted */
	CHECK_EQ(t_stats(t).added, 9);
	t_end(t);
}

/* A burst of runs, known and unknown, of whole bursts' length down to one. */
static void
runs_in_a_burst(void)
{
	struct flowtab *t = t_make(64, 0, 0);
	struct flow_key known[2] = {t_key(1, false), t_key(2, true)}, unknown = t_key(3, false);
	const struct flow_key *keys[FLOWTAB_BURST];
	uint32_t ids[FLOWTAB_BURST], id[2], hits = 0, lookups = 0;

	for (uint16_t i = 0; i < 2; i++) {
		union flow_state state = {.backend = i, .generation = 1};

		CHECK_EQ(flowtab_add(t, &known[i], &state, &id[i]), FLOWTAB_ADDED);
	}
	for (uint32_t length = 1; length <= FLOWTAB_BURST; length++) {
		for (uint32_t i = 0; i < FLOWTAB_BURST; i++) {
			uint32_t which = i / length % 3;

			keys[i] = which == 2 ? &unknown : &known[which];
		}
		flowtab_lookup_burst(t, keys, FLOWTAB_BURST, ids);
		for (uint32_t i = 0; i < FLOWTAB_BURST; i++) {
			uint32_t which = i / length % 3;

			CHECK_EQ(ids[i], which == 2 ? FLOWTAB_NONE : id[which]);
			hits += which != 2;
		}
		lookups += FLOWTAB_BURST;
	}
	CHECK_EQ(t_stats(t).hits, hits);
	CHECK_EQ(t_stats(t).misses, lookups - hits);
	t_end(t);
}

static void
added_twice_in_a_burst(void)
{
	struct flowtab *t = t_make(64, 0, 0);
	struct flow_key key = t_key(4, false);
	union flow_state first = {.backend = 1, .generation = 1},
			 second = {.backend = 2, .generation = 1};
	uint32_t id, other;

	CHECK_EQ(flowtab_add(t, &key, &first, &id), FLOWTAB_ADDED);
	CHECK_EQ(flowtab_add(t, &key, &second, &other), FLOWTAB_KNOWN);
	CHECK_EQ(id, other);
	CHECK_EQ(flowtab_state(t, id)->backend, 1);
	CHECK_EQ(t_stats(t).added, 1);
	t_end(t);
}

static void
age_at_lookup(void)
{
	/* The low half of the time wraps in the middle. */
	uint64_t start = (1ull << 32) - 50;
	struct flowtab *t = t_make(64, 100, 0);
	struct flow_key key = t_key(2, false);
	const struct flow_key *keys[] = {&key, &key};
	uint32_t ids[2];

	flowtab_turn(t, start);
	CHECK_EQ(t_add(t, 2, 5), FLOWTAB_ADDED);
	flowtab_turn(t, start + 99);
	CHECK(t_find(t, 2) != FLOWTAB_NONE); /* and begins anew */
	flowtab_turn(t, start + 198);
	CHECK(flowtab_peek(t, &key) != FLOWTAB_NONE); /* a peek does not */
	CHECK(t_find(t, 2) != FLOWTAB_NONE);
	/* The hand moved less than a round: what is left is for the lookup. Twice in one burst. */
	t_stats(t);
	flowtab_turn(t, start + 297);
	CHECK(t_find(t, 2) != FLOWTAB_NONE);
	while (t_stats(t).aged == 0 && flowtab_peek(t, &key) != FLOWTAB_NONE) {
		start++;
		flowtab_turn(t, start + 297);
	}
	flowtab_lookup_burst(t, keys, 2, ids);
	CHECK_EQ(ids[0], FLOWTAB_NONE);
	CHECK_EQ(ids[1], FLOWTAB_NONE);
	CHECK_EQ(t_stats(t).aged, 1);
	CHECK_EQ(t_stats(t).misses, 2);
	CHECK_EQ(t_stats(t).flows, 0);
	CHECK_EQ(t_gone, 1);
	CHECK_EQ(t_gone_sum, 5);
	CHECK_EQ(t_add(t, 2, 6), FLOWTAB_ADDED);
	t_end(t);
}

/* The hand frees all old flows within a quarter of the idle time, and no more than a step a turn.
 */
static void
age_by_hand(void)
{
	struct flowtab *t = t_make(1000, 1000, FLOWTAB_INSERTS_MAX);
	uint32_t aged = 0, most = 0;
	uint64_t now = 0;

	flowtab_turn(t, now);
	for (uint32_t n = 0; n < 1000; n++)
		CHECK_EQ(t_add(t, n, 1), FLOWTAB_ADDED);
	for (now = 10; now < 1000; now += 10)
		CHECK_EQ(flowtab_turn(t, now), 0);
	for (now = 1000; now <= 1250; now++) {
		uint32_t n = flowtab_turn(t, now);

		most = n > most ? n : most;
		aged += n;
	}
	CHECK_EQ(aged, 1000);
	CHECK(most <= FLOWTAB_STEP);
	/* After a long sleep too no turn does more than its step. */
	for (uint32_t n = 0; n < 1000; n++)
		CHECK_EQ(t_add(t, n, 1), FLOWTAB_ADDED);
	now += 1000000;
	aged = most = 0;
	for (int i = 0; i < 1250 / (int)FLOWTAB_STEP + 1; i++) {
		uint32_t n = flowtab_turn(t, now);

		most = n > most ? n : most;
		aged += n;
	}
	CHECK_EQ(aged, 1000);
	CHECK_EQ(most, FLOWTAB_STEP);
	CHECK_EQ(t_gone, 2000);
	t_end(t);
}

/* In any time at most its rate and a tenth of a second's reserve. */
static void
guard(void)
{
	struct flowtab *t = t_make(65536, 0, 1000);
	uint32_t next = 0, added = 0, guarded = 0;
	uint64_t now = 12345;

	flowtab_turn(t, now);
	for (int ms = 0; ms < 1000; ms++) {
		for (int i = 0; i < 50; i++) {
			enum flowtab_added a = t_add(t, next++, 1);

			added += a == FLOWTAB_ADDED;
			guarded += a == FLOWTAB_GUARDED;
		}
		flowtab_turn(t, ++now);
	}
	CHECK_EQ(added, 100 + 999); /* the last turn's came too late */
	CHECK_EQ(added + guarded, 50000);
	CHECK_EQ(t_stats(t).guarded, guarded);
	/* Known flows do not feel it, and a flow that is already there is not asked for a token. */
	CHECK(t_find(t, 0) != FLOWTAB_NONE);
	/* A long pause gives the reserve, no more. */
	flowtab_turn(t, now += 3600000);
	added = 0;
	for (int i = 0; i < 500; i++)
		added += t_add(t, next++, 1) == FLOWTAB_ADDED;
	CHECK_EQ(added, 100);
	t_end(t);
}

static void
full_table_keeps_what_it_has(void)
{
	struct flowtab *t = t_make(100, 1000, FLOWTAB_INSERTS_MAX);

	flowtab_turn(t, 0);
	for (uint32_t n = 0; n < 100; n++)
		CHECK_EQ(t_add(t, n, 1), FLOWTAB_ADDED);
	CHECK_EQ(flowtab_would_add(t), FLOWTAB_FULL);
	for (uint32_t n = 100; n < 400; n++)
		CHECK_EQ(t_add(t, n, 1), FLOWTAB_FULL);
	CHECK_EQ(t_stats(t).full, 300);
	for (uint32_t n = 0; n < 100; n++)
		CHECK(t_find(t, n) != FLOWTAB_NONE);
	flowtab_remove(t, t_find(t, 50));
	CHECK_EQ(t_stats(t).removed, 1);
	CHECK_EQ(flowtab_would_add(t), FLOWTAB_ADDED);
	CHECK_EQ(t_add(t, 400, 1), FLOWTAB_ADDED);
	CHECK_EQ(t_add(t, 50, 1), FLOWTAB_FULL);
	CHECK_EQ(t_find(t, 50), FLOWTAB_NONE);
	t_end(t);
}

static void
crowded(void)
{
	struct flowtab *t = t_make(64, 0, 0);

	fail_key = true;
	CHECK_EQ(t_add(t, 1, 1), FLOWTAB_CROWDED);
	fail_key = false;
	CHECK_EQ(t_stats(t).crowded, 1);
	CHECK_EQ(t_stats(t).flows, 0);
	CHECK_EQ(t_add(t, 1, 1), FLOWTAB_ADDED);
	t_end(t);
}

/* drain = keep | move, down, gone, replaced: all in what the caller lists. */
static void
who_may_stay(void)
{
	static const struct {
		uint16_t backend;
		uint32_t generation, follow[3], n;
		bool stays;
	} cases[] = {
		{0, 1, {1, 1, 1}, 3, true},  /* up */
		{1, 4, {1, 4, 1}, 3, true},  /* draining with keep: still listed */
		{1, 4, {1, 0, 1}, 3, false}, /* draining with move, or down */
		{1, 4, {1, 5, 1}, 3, false}, /* another one has the index */
		{2, 1, {1, 1, 1}, 2, false}, /* gone, the list is shorter */
		{UINT16_MAX, 1, {1, 1, 1}, 3, false},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		union flow_state state = {
			.backend = cases[i].backend, .generation = cases[i].generation};

		CHECK_EQ(flow_may_stay(&state, cases[i].follow, cases[i].n), cases[i].stays);
	}
}

static void
rebind(void)
{
	struct flowtab *t = t_make(64, 0, 10);
	union flow_state other = {.backend = 9, .generation = 2};
	uint32_t id;

	CHECK_EQ(t_add(t, 1, 3), FLOWTAB_ADDED);
	CHECK_EQ(t_add(t, 2, 3), FLOWTAB_GUARDED); /* the reserve is one flow */
	id = t_find(t, 1);
	flowtab_rebind(t, id, &other); /* the guard is about new flows */
	CHECK_EQ(t_find(t, 1), id);
	CHECK_EQ(flowtab_state(t, id)->backend, 9);
	CHECK_EQ(t_stats(t).moved, 1);
	CHECK_EQ(t_gone, 1);
	CHECK_EQ(t_gone_sum, 3);
	CHECK_EQ(t_stats(t).flows, 1);
	t_end(t);
}

static void
t_visit(void *arg, const struct flow_key *key, const union flow_state *state, uint32_t idle_ms)
{
	uint8_t *seen = arg;

	REQUIRE(state->backend < 200);
	CHECK_EQ(key->src[15], state->backend);
	CHECK_EQ(idle_ms, 7);
	seen[state->backend]++;
}

static void
walk(void)
{
	struct flowtab *t = t_make(256, 1000, 0);
	uint32_t cursor = 0, calls = 1;
	uint8_t seen[200] = {0};

	flowtab_turn(t, 0);
	for (uint16_t n = 0; n < 200; n++)
		CHECK_EQ(t_add(t, n, n), FLOWTAB_ADDED);
	flowtab_turn(t, 7);
	while (flowtab_walk(t, &cursor, 10, t_visit, seen))
		calls++;
	for (int n = 0; n < 200; n++)
		CHECK_EQ(seen[n], 1);
	CHECK(calls >= 32); /* 10 places a call */
	CHECK(!flowtab_walk(t, &cursor, 10, t_visit, seen));
	t_end(t);
}

/* Thousands of random steps against a plain array; sums and structure agree at the end of each
 * thousand. */
static void
random_steps(void)
{
	enum { KEYS = 400 };
	static struct {
		bool live;
		uint64_t used;
		uint16_t backend;
	} model[KEYS];
	struct flowtab *t = t_make(300, 500, FLOWTAB_INSERTS_MAX);
	uint32_t rng = 1, lookups = 0;
	uint64_t now = 0;

	flowtab_turn(t, now);
	for (int step = 0; step < 20000; step++) {
		uint32_t n = (test_random(&rng) >> 8) % KEYS, id = t_find(t, n);

		lookups++;
		if (model[n].live && now - model[n].used >= 500)
			model[n].live = false;
		CHECK_EQ(id != FLOWTAB_NONE, model[n].live);
		if (id != FLOWTAB_NONE) {
			CHECK_EQ(flowtab_state(t, id)->backend, model[n].backend);
			model[n].used = now;
			if (rng >> 29 == 0) {
				flowtab_remove(t, id);
				model[n].live = false;
			}
		} else if (t_add(t, n, (uint16_t)step) == FLOWTAB_ADDED) {
			model[n].live = true;
			model[n].used = now;
			model[n].backend = (uint16_t)step;
		} else {
			CHECK_EQ(t_stats(t).flows, 300);
		}
		if (rng >> 28 == 1) {
			now += (rng >> 20) % 40;
			flowtab_turn(t, now);
		}
		if (step % 1000 == 0)
			flowtab_check(t);
	}
	CHECK_EQ(t_stats(t).hits + t_stats(t).misses, lookups);
	CHECK_EQ(t_gone, t_stats(t).aged + t_stats(t).removed);
	t_end(t);
}

/* All flows 0..n, in bursts, in an order in which neighbours are far from each other: those below
 * gone are not there, others have their number. */
static void
look_up_all(struct flowtab *t, uint32_t n, uint32_t gone)
{
	static struct flow_key key[FLOWTAB_BURST];
	const struct flow_key *keys[FLOWTAB_BURST];
	uint32_t ids[FLOWTAB_BURST], flow[FLOWTAB_BURST];

	for (uint32_t i = 0; i < n; i += FLOWTAB_BURST) {
		uint16_t count = (uint16_t)RTE_MIN(n - i, FLOWTAB_BURST);

		for (uint16_t k = 0; k < count; k++) {
			flow[k] = (uint32_t)((i + k) * UINT64_C(7919) % n);
			key[k] = t_key(flow[k], flow[k] % 2 != 0);
			keys[k] = &key[k];
		}
		flowtab_lookup_burst(t, keys, count, ids);
		for (uint16_t k = 0; k < count; k++) {
			CHECK_EQ(ids[k] == FLOWTAB_NONE, flow[k] < gone);
			if (ids[k] != FLOWTAB_NONE)
				CHECK_EQ(flowtab_state(t, ids[k])->sequence, flow[k]);
		}
	}
}

/* More flows than the table remembers as the last ones; places change their owners. */
static void
many_in_turn(void)
{
	const uint32_t n = 20000, half = n / 2;
	struct flowtab *t = t_make(n, 10000, 1000000);

	flowtab_turn(t, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < (round == 0 ? n : half); i++) {
			struct flow_key key = t_key(i, i % 2 != 0);
			union flow_state state = {.sequence = i};
			uint32_t id;

			CHECK_EQ(flowtab_add(t, &key, &state, &id), FLOWTAB_ADDED);
		}
		for (int twice = 0; twice < 2; twice++)
			look_up_all(t, n, 0);
		for (uint32_t i = half; i-- > 0;)
			flowtab_remove(t, t_find(t, i));
		look_up_all(t, n, half);
	}
	CHECK_EQ(t_stats(t).flows, half);
	t_end(t);
}

/* Nothing but create takes memory. */
static void
no_heap_in_bursts(void)
{
	struct flowtab *t = t_make(1024, 1000, 0);
	size_t before = mallinfo2().uordblks;

	for (uint32_t now = 0; now < 2000; now += 2) {
		flowtab_turn(t, now);
		t_add(t, now, 1);
		t_find(t, now);
	}
	CHECK_EQ(mallinfo2().uordblks, before);
	t_end(t);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	SL_TEST_RUN(limits);
	SL_TEST_RUN(no_memory);
	SL_TEST_RUN(every_field_counts);
	SL_TEST_RUN(runs_in_a_burst);
	SL_TEST_RUN(added_twice_in_a_burst);
	SL_TEST_RUN(age_at_lookup);
	SL_TEST_RUN(age_by_hand);
	SL_TEST_RUN(guard);
	SL_TEST_RUN(full_table_keeps_what_it_has);
	SL_TEST_RUN(crowded);
	SL_TEST_RUN(who_may_stay);
	SL_TEST_RUN(rebind);
	SL_TEST_RUN(walk);
	SL_TEST_RUN(random_steps);
	SL_TEST_RUN(many_in_turn);
	SL_TEST_RUN(no_heap_in_bursts);
	return test_end();
}
