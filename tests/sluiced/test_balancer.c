/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What users of other balancers ran into, as far as it shows without packets: removal while a flow
 * is busy, both meanings of draining, one busy source, changes that must disturb nobody else. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "balancer.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define BACKENDS 3u
#define FLOWS 3000u

static const char *const t_names[] = {"dns-1", "dns-2", "dns-3", "dns-4"};
static struct balancer_backend t_backends[4];
static struct balancer_view_conf t_conf;
static int fail_zmalloc, fail_calloc; /* the one that fails, counted from 1 */

void *__real_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket);
void *__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	if (fail_zmalloc > 0 && --fail_zmalloc == 0)
		return NULL;
	return __real_rte_zmalloc_socket(type, size, align, socket);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return fail_calloc > 0 && --fail_calloc == 0 ? NULL : __real_calloc(n, size);
}

/* Three back ends that are up; cases change t_conf and t_backends. */
static void
t_reset(enum balancer_affinity affinity, enum balancer_drain drain)
{
	for (uint32_t i = 0; i < SL_COUNT_OF(t_backends); i++)
		t_backends[i] =
			(struct balancer_backend){.name = t_names[i], .weight = 1, .generation = 1};
	t_conf = (struct balancer_view_conf){.backends = t_backends,
		.count = BACKENDS,
		.seed = 11,
		.affinity = affinity,
		.drain = drain};
}

static struct balancer_view *
t_view(void)
{
	struct balancer_view *v = NULL;

	REQUIRE(balancer_view_create(&t_conf, &v) == 0);
	return v;
}

static struct balancer *
t_make(uint32_t flows, uint32_t inserts_per_s)
{
	struct flowtab_conf conf = {
		.flows = flows, .idle_ms = 30000, .inserts_per_s = inserts_per_s, .socket = -1};
	struct balancer *b = NULL;

	REQUIRE(balancer_create(&conf, &b) == 0);
	balancer_turn(b, 1000);
	return b;
}

/* Flow n: half of them IPv6. */
static struct flow_key
t_key(uint32_t n)
{
	struct flow_key k = {.sport = (uint16_t)(1024 + n), .dport = 53, .proto = 17};

	memset(k.src, n % 2 != 0 ? 0x20 : 0, 10);
	k.src[10] = k.src[11] = 0xff;
	k.src[15] = (uint8_t)(n % 7);
	return k;
}

static struct balancer_pick
t_pick(struct balancer *b, const struct balancer_view *v, const struct flow_key *key)
{
	struct balancer_explanation e;
	struct balancer_pick p;

	/* What is explained is what happens. */
	balancer_explain(b, v, key, &e);
	balancer_pick_burst(b, v, &key, 1, &p);
	CHECK_EQ(e.pick.backend, p.backend);
	CHECK_EQ(e.pick.reason, p.reason);
	return p;
}

/* All flows once: where they go, and how many for each reason. */
static void
t_send(struct balancer *b, const struct balancer_view *v, uint16_t *where, uint32_t *reasons)
{
	memset(reasons, 0, BALANCER_REASONS * sizeof(*reasons));
	for (uint32_t n = 0; n < FLOWS; n++) {
		struct flow_key key = t_key(n);
		struct balancer_pick p = t_pick(b, v, &key);

		where[n] = p.backend;
		reasons[p.reason]++;
	}
}

static uint32_t
t_count(const uint16_t *where, uint16_t backend)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FLOWS; i++)
		n += where[i] == backend;
	return n;
}

static void
t_end(struct balancer *b)
{
	uint64_t counts[BALANCER_REASONS], sum = 0, bound = 0;
	struct flowtab_stats stats;

	flowtab_check(balancer_flowtab(b));
	flowtab_stats_get(balancer_flowtab(b), &stats);
	balancer_counts(b, counts);
	for (int i = 0; i < BALANCER_REASONS; i++)
		sum += counts[i];
	for (uint32_t i = 0; i < MAGLEV_BACKENDS_MAX; i++)
		bound += balancer_flows(b, (uint16_t)i);
	CHECK_EQ(bound, stats.flows);
	CHECK_EQ(counts[BALANCER_NEW], stats.added);
	CHECK_EQ(counts[BALANCER_MOVED], stats.moved);
	CHECK_EQ(counts[BALANCER_GUARDED], stats.guarded);
	CHECK_EQ(counts[BALANCER_FULL], stats.full + stats.crowded);
	CHECK(sum >= stats.hits); /* affinity none looks nothing up */
	CHECK_EQ(balancer_flows(b, MAGLEV_NONE), 0);
	balancer_destroy(b);
}

static void
flows_stay_and_spread(void)
{
	static uint16_t first[FLOWS], again[FLOWS];
	struct balancer *b = t_make(0, FLOWTAB_INSERTS_MAX);
	uint32_t reasons[BALANCER_REASONS];
	struct balancer_view *v;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	v = t_view();
	t_send(b, v, first, reasons);
	CHECK_EQ(reasons[BALANCER_NEW], FLOWS);
	for (uint16_t i = 0; i < BACKENDS; i++) {
		CHECK(t_count(first, i) > FLOWS / BACKENDS * 9 / 10);
		CHECK_EQ(balancer_flows(b, i), t_count(first, i));
	}
	t_send(b, v, again, reasons);
	CHECK_EQ(reasons[BALANCER_KNOWN], FLOWS);
	CHECK(memcmp(first, again, sizeof(first)) == 0);
	/* All are forgotten in the end, and no back end has flows then. */
	for (uint64_t now = 31000; now < 60000; now += 10)
		balancer_turn(b, now);
	for (uint16_t i = 0; i < BACKENDS; i++)
		CHECK_EQ(balancer_flows(b, i), 0);
	balancer_view_destroy(v);
	t_end(b);
}

/* Row 1: a back end goes while its clients are busy. Their next datagram goes to a live one, nobody
 * else notices, and no slot names it any more. */
static void
removal_moves_its_flows_at_once(void)
{
	static uint16_t first[FLOWS], second[FLOWS];
	struct balancer *b = t_make(0, FLOWTAB_INSERTS_MAX);
	struct balancer_view *place = NULL, *old;
	uint32_t reasons[BALANCER_REASONS];
	const struct maglev *table;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	CHECK(balancer_view_publish(&place, t_view()) == NULL);
	t_send(b, balancer_view_get(&place), first, reasons);
	for (int how = 0; how < 2; how++) {
		if (how == 0)
			t_backends[1].state = BALANCER_DOWN;
		else
			t_backends[1].name =
				NULL; /* removed: flows have moved, nothing more happens */
		old = balancer_view_publish(&place, t_view());
		balancer_view_destroy(old);
		table = balancer_view_table(place);
		for (uint32_t s = 0; s < table->slots; s++)
			REQUIRE(table->slot[s] != 1);
		t_send(b, balancer_view_get(&place), second, reasons);
		CHECK_EQ(reasons[BALANCER_MOVED], how == 0 ? t_count(first, 1) : 0);
		CHECK_EQ(reasons[BALANCER_KNOWN], FLOWS - reasons[BALANCER_MOVED]);
		CHECK_EQ(t_count(second, 1), 0);
		CHECK_EQ(balancer_flows(b, 1), 0);
		for (uint32_t n = 0; n < FLOWS; n++)
			CHECK(first[n] == 1 || second[n] == first[n]);
	}
	balancer_view_destroy(place);
	t_end(b);
}

/* An index that another back end has now is not the old one's: flows move by generation. */
static void
an_index_used_again(void)
{
	static uint16_t first[FLOWS], second[FLOWS];
	struct balancer *b = t_make(0, FLOWTAB_INSERTS_MAX);
	uint32_t reasons[BALANCER_REASONS];
	struct balancer_explanation e;
	struct flow_key key;
	struct balancer_view *v;
	uint32_t n = 0;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	v = t_view();
	t_send(b, v, first, reasons);
	balancer_view_destroy(v);
	t_backends[1].name = "another";
	t_backends[1].generation = 2;
	v = t_view();
	while (first[n] != 1)
		n++;
	key = t_key(n);
	balancer_explain(b, v, &key, &e);
	CHECK_EQ(e.was, 1);
	CHECK_EQ(e.why, BALANCER_WHY_GONE);
	CHECK_EQ(e.pick.reason, BALANCER_MOVED);
	t_send(b, v, second, reasons);
	CHECK_EQ(reasons[BALANCER_MOVED], t_count(first, 1));
	CHECK_EQ(balancer_flows(b, 1), t_count(second, 1));
	for (uint32_t i = 0; i < FLOWS; i++)
		CHECK(first[i] == 1 || second[i] == first[i]);
	balancer_view_destroy(v);
	t_end(b);
}

/* Row 2: draining, in both meanings, and by weight 0. */
static void
draining(void)
{
	static uint16_t first[FLOWS], second[FLOWS];

	for (int k = 0; k < 4; k++) {
		enum balancer_drain drain = k % 2 == 0 ? BALANCER_KEEP : BALANCER_MOVE;
		struct balancer *b = t_make(0, FLOWTAB_INSERTS_MAX);
		struct flow_key key = t_key(0);
		uint32_t reasons[BALANCER_REASONS];
		struct balancer_explanation e;
		struct balancer_view *v;

		t_reset(BALANCER_FLOW, drain);
		v = t_view();
		t_send(b, v, first, reasons);
		balancer_view_destroy(v);
		if (k < 2)
			t_backends[first[0]].state = BALANCER_DRAINING;
		else
			t_backends[first[0]].weight = 0;
		v = t_view();
		balancer_explain(b, v, &key, &e);
		CHECK_EQ(e.was, first[0]);
		CHECK_EQ(e.why, drain == BALANCER_KEEP ? BALANCER_WHY_NOT : BALANCER_WHY_DRAINING);
		CHECK(e.slot_backend != first[0]);
		t_send(b, v, second, reasons);
		CHECK_EQ(reasons[BALANCER_MOVED],
			drain == BALANCER_KEEP ? 0 : t_count(first, first[0]));
		CHECK_EQ(reasons[BALANCER_KNOWN], FLOWS - reasons[BALANCER_MOVED]);
		for (uint32_t n = 0; n < FLOWS; n++)
			CHECK(first[n] == first[0]
					? (second[n] == first[0]) == (drain == BALANCER_KEEP)
					: second[n] == first[n]);
		/* New flows avoid it either way. */
		for (uint32_t n = FLOWS; n < FLOWS + 300; n++) {
			key = t_key(n);
			CHECK(t_pick(b, v, &key).backend != first[0]);
		}
		balancer_view_destroy(v);
		t_end(b);
	}
}

/* Row 2, the end of it: only draining ones are left, so they serve, old flows and new ones. */
static void
draining_as_a_last_resort(void)
{
	for (int drain = BALANCER_KEEP; drain <= BALANCER_MOVE; drain++) {
		struct balancer *b = t_make(0, 0);
		struct flow_key key = t_key(1), fresh = t_key(2);
		struct balancer_explanation e;
		struct balancer_view *v;
		struct balancer_pick p;

		t_reset(BALANCER_FLOW, (enum balancer_drain)drain);
		v = t_view();
		p = t_pick(b, v, &key);
		balancer_view_destroy(v);
		for (uint16_t i = 0; i < BACKENDS; i++)
			t_backends[i].state = i == p.backend ? BALANCER_DRAINING : BALANCER_DOWN;
		t_backends[p.backend].weight = (uint32_t)drain; /* whatever its weight */
		v = t_view();
		CHECK_EQ(t_pick(b, v, &key).backend, p.backend);
		CHECK_EQ(t_pick(b, v, &key).reason, BALANCER_KNOWN);
		CHECK_EQ(t_pick(b, v, &fresh).backend, p.backend);
		balancer_explain(b, v, &key, &e);
		CHECK(e.last_resort);
		balancer_view_destroy(v);
		t_end(b);
	}
}

static void
nobody_left(void)
{
	for (int affinity = BALANCER_FLOW; affinity <= BALANCER_NONE; affinity++) {
		struct balancer *b = t_make(0, 0);
		struct flow_key key = t_key(1), fresh = t_key(2);
		struct balancer_view *v;
		struct balancer_pick p;

		t_reset((enum balancer_affinity)affinity, BALANCER_KEEP);
		v = t_view();
		p = t_pick(b, v, &key);
		balancer_view_destroy(v);
		for (uint16_t i = 0; i < BACKENDS; i++)
			t_backends[i].state = BALANCER_DOWN;
		v = t_view();
		CHECK_EQ(t_pick(b, v, &key).reason, BALANCER_NO_BACKEND);
		CHECK_EQ(t_pick(b, v, &key).backend, MAGLEV_NONE);
		CHECK_EQ(t_pick(b, v, &fresh).reason, BALANCER_NO_BACKEND);
		balancer_view_destroy(v);
		/* Up again: a flow is where it was. */
		for (uint16_t i = 0; i < BACKENDS; i++)
			t_backends[i].state = BALANCER_UP;
		v = t_view();
		if (affinity != BALANCER_NONE)
			CHECK_EQ(t_pick(b, v, &key).backend, p.backend);
		else
			CHECK_EQ(t_pick(b, v, &key).reason, BALANCER_TURN);
		balancer_view_destroy(v);
		t_conf.count = 0;
		v = t_view();
		CHECK_EQ(t_pick(b, v, &key).reason, BALANCER_NO_BACKEND);
		balancer_view_destroy(v);
		t_end(b);
	}
}

/* Row 3: one busy source. With `none` the spread of its one flow is within 2 %; by weights, too. */
static void
affinity_none(void)
{
	static const uint32_t weights[][BACKENDS] = {{1, 1, 1}, {5, 3, 2}, {1, 0, 3}};

	for (size_t k = 0; k < SL_COUNT_OF(weights); k++) {
		struct balancer *b = t_make(0, 0);
		struct flow_key key = t_key(5);
		const struct flow_key *keys[FLOWTAB_BURST];
		struct balancer_pick picks[FLOWTAB_BURST];
		uint32_t seen[BACKENDS] = {0}, sum = 0, all = 1000 * FLOWTAB_BURST;
		struct balancer_view *v;

		t_reset(BALANCER_NONE, BALANCER_KEEP);
		for (uint32_t i = 0; i < BACKENDS; i++) {
			t_backends[i].weight = weights[k][i];
			sum += weights[k][i];
		}
		for (uint32_t i = 0; i < FLOWTAB_BURST; i++)
			keys[i] = &key;
		v = t_view();
		CHECK_EQ(t_pick(b, v, &key).reason, BALANCER_TURN);
		for (int i = 0; i < 1000; i++) {
			balancer_pick_burst(b, v, keys, FLOWTAB_BURST, picks);
			for (uint32_t n = 0; n < FLOWTAB_BURST; n++)
				seen[picks[n].backend]++;
		}
		for (uint32_t i = 0; i < BACKENDS; i++) {
			double expected = (double)all * weights[k][i] / sum;

			CHECK(seen[i] >= expected * 0.98 && seen[i] <= expected * 1.02);
		}
		balancer_view_destroy(v);
		t_end(b);
	}
}

/* Row 3: by source, all ports of an address go to one back end, and are one flow. */
static void
affinity_source(void)
{
	struct balancer *b = t_make(0, 0);
	uint16_t where[2][7], differ = 0;
	struct balancer_view *v;

	t_reset(BALANCER_SOURCE, BALANCER_KEEP);
	v = t_view();
	memset(where, 0xff, sizeof(where));
	for (uint32_t n = 0; n < FLOWS; n++) {
		struct flow_key key = t_key(n);
		uint16_t *w = &where[n % 2][n % 7];
		struct balancer_pick p = t_pick(b, v, &key);

		CHECK_EQ(p.reason, *w == MAGLEV_NONE ? BALANCER_NEW : BALANCER_KNOWN);
		CHECK(*w == MAGLEV_NONE || *w == p.backend);
		*w = p.backend;
		differ |= (uint16_t)(1 << p.backend);
	}
	CHECK_EQ(differ, 7); /* 14 sources, and each back end has one */
	CHECK_EQ(balancer_flows(b, 0) + balancer_flows(b, 1) + balancer_flows(b, 2), 14);
	balancer_view_destroy(v);
	t_end(b);
}

/* Row 4: the next view with nothing changed, or one field of one back end, disturbs no known flow;
 * an unchanged one moves no slot. */
static void
reload_disturbs_nobody(void)
{
	static uint16_t first[FLOWS], second[FLOWS];
	struct balancer *b = t_make(0, FLOWTAB_INSERTS_MAX);
	uint32_t reasons[BALANCER_REASONS];
	struct balancer_view *v, *next;
	struct maglev_diff diff;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	v = t_view();
	next = t_view();
	REQUIRE(maglev_diff(balancer_view_table(v), balancer_view_table(next), &diff) == 0);
	CHECK_EQ(diff.moved, 0);
	balancer_view_destroy(next);
	t_send(b, v, first, reasons);
	balancer_view_destroy(v);
	t_backends[2].weight = 7;
	t_conf.count = 4; /* and one more */
	v = t_view();
	t_send(b, v, second, reasons);
	CHECK_EQ(reasons[BALANCER_KNOWN], FLOWS);
	CHECK(memcmp(first, second, sizeof(first)) == 0);
	balancer_view_destroy(v);
	t_end(b);
}

/* A flood of new flows: beyond the guard they are hashed only, to the same back end as ever; known
 * flows do not notice. */
static void
flood(void)
{
	static uint16_t first[FLOWS], second[FLOWS];
	struct balancer *b =
		t_make(100, 5000); /* the guard's reserve is 500, the table's room 100 */
	uint32_t reasons[BALANCER_REASONS];
	struct balancer_view *v;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	v = t_view();
	t_send(b, v, first, reasons);
	CHECK_EQ(reasons[BALANCER_NEW], 100);
	CHECK_EQ(reasons[BALANCER_FULL], FLOWS - 100);
	t_send(b, v, second, reasons);
	CHECK_EQ(reasons[BALANCER_KNOWN], 100);
	CHECK(memcmp(first, second, sizeof(first)) == 0);
	t_end(b);
	b = t_make(65536, 5000);
	t_send(b, v, second, reasons);
	CHECK_EQ(reasons[BALANCER_NEW], 500);
	CHECK_EQ(reasons[BALANCER_GUARDED], FLOWS - 500);
	CHECK(memcmp(first, second, sizeof(first)) == 0); /* also: instances agree */
	t_end(b);
	balancer_view_destroy(v);
}

static void
twice_in_a_burst(void)
{
	struct balancer *b = t_make(0, 0);
	struct flow_key key = t_key(9);
	const struct flow_key *keys[] = {&key, &key};
	struct balancer_pick picks[2];
	struct balancer_view *v;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	v = t_view();
	balancer_pick_burst(b, v, keys, 2, picks);
	CHECK_EQ(picks[0].reason, BALANCER_NEW);
	CHECK_EQ(picks[1].reason, BALANCER_KNOWN);
	CHECK_EQ(picks[0].backend, picks[1].backend);
	balancer_view_destroy(v);
	t_backends[picks[0].backend].state = BALANCER_DOWN;
	v = t_view();
	balancer_pick_burst(b, v, keys, 2, picks);
	CHECK_EQ(picks[0].reason, BALANCER_MOVED);
	CHECK_EQ(picks[1].reason, BALANCER_KNOWN);
	CHECK_EQ(picks[0].backend, picks[1].backend);
	balancer_pick_burst(b, v, keys, 0, picks);
	balancer_view_destroy(v);
	t_end(b);
}

static void
refusals(void)
{
	struct flowtab_conf flows = {.socket = -1, .gone_arg = &flows};
	struct balancer_view *v = NULL;
	struct balancer *b = NULL;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	t_conf.count = MAGLEV_BACKENDS_MAX + 1;
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	t_reset(3, BALANCER_KEEP);
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	t_reset(BALANCER_FLOW, 2);
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	t_backends[0].generation = 0;
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	t_backends[0].state = 3;
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	t_backends[0].name = t_names[1];
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EEXIST);
	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	t_conf.slots = 65536;
	CHECK_EQ(balancer_view_create(&t_conf, &v), -EINVAL);
	CHECK(v == NULL);
	CHECK_EQ(balancer_create(&flows, &b), -EINVAL);
	flows = (struct flowtab_conf){.flows = 1, .socket = -1};
	CHECK_EQ(balancer_create(&flows, &b), -EINVAL);
	balancer_view_destroy(NULL);
	balancer_destroy(NULL);
}

static void
no_memory(void)
{
	struct flowtab_conf flows = {.socket = -1};
	struct balancer_view *v = NULL;
	struct balancer *b = NULL;
	int ret, k = 1;

	t_reset(BALANCER_FLOW, BALANCER_KEEP);
	do {
		fail_calloc = k++;
		ret = balancer_view_create(&t_conf, &v);
		CHECK(ret == 0 || ret == -ENOMEM);
	} while (ret != 0 && k < 20);
	fail_calloc = 0;
	CHECK(k > 6);
	CHECK(v != NULL);
	balancer_view_destroy(v);
	for (k = 1; k <= 3; k++) {
		fail_zmalloc = k;
		CHECK_EQ(balancer_create(&flows, &b), -ENOMEM);
	}
	fail_zmalloc = 0;
	CHECK(b == NULL);
}

static void
names(void)
{
	for (int i = 0; i < BALANCER_REASONS; i++)
		CHECK(strlen(balancer_reason_name(i)) > 0);
	for (int i = 0; i <= BALANCER_WHY_DRAINING; i++)
		CHECK(strlen(balancer_why_name(i)) > 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	SL_TEST_RUN(flows_stay_and_spread);
	SL_TEST_RUN(removal_moves_its_flows_at_once);
	SL_TEST_RUN(an_index_used_again);
	SL_TEST_RUN(draining);
	SL_TEST_RUN(draining_as_a_last_resort);
	SL_TEST_RUN(nobody_left);
	SL_TEST_RUN(affinity_none);
	SL_TEST_RUN(affinity_source);
	SL_TEST_RUN(reload_disturbs_nobody);
	SL_TEST_RUN(flood);
	SL_TEST_RUN(twice_in_a_burst);
	SL_TEST_RUN(refusals);
	SL_TEST_RUN(no_memory);
	SL_TEST_RUN(names);
	return test_end();
}
