/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Maglev tables: shares, what a change moves, what is refused. Whole tables are compared with
 * another implementation by test_maglev_reference.py, which also prints the constants below. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "maglev.h"
#include "sl_test.h"

/* Names b0, b1, ...; weight 1 and index = number unless a case changes them. */
static char t_names[MAGLEV_BACKENDS_MAX + 1][MAGLEV_NAME_SIZE + 1];
static struct maglev_backend t_backends[MAGLEV_BACKENDS_MAX + 1];

static long fail_at; /* the allocation that fails, counted from 1; 0 for none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_malloc(size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_calloc(n, size);
}

static struct maglev_conf
t_conf(uint32_t count, uint32_t slots)
{
	for (uint32_t i = 0; i <= MAGLEV_BACKENDS_MAX; i++) {
		snprintf(t_names[i], sizeof(t_names[i]), "b%u", i);
		t_backends[i] = (struct maglev_backend){
			.name = t_names[i], .weight = 1, .index = (uint16_t)i};
	}
	return (struct maglev_conf){
		.backends = t_backends, .count = count, .slots = slots, .seed = 7};
}

static struct maglev *
t_make(const struct maglev_conf *conf)
{
	struct maglev *m = NULL;

	REQUIRE(maglev_create(conf, &m) == 0);
	return m;
}

static uint32_t
t_share(const struct maglev *m, uint16_t index)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < m->slots; s++)
		n += m->slot[s] == index;
	return n;
}

static uint64_t
t_fingerprint(const uint16_t *values, uint32_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ values[i]) * 0x100000001b3;
	return h;
}

static void
sizes(void)
{
	static const struct {
		uint32_t slots;
		bool valid;
		uint32_t next;
	} cases[] = {
		{0, false, 251},
		{2, false, 251},
		{241, false, 251},
		{250, false, 251},
		{251, true, 251},
		{252, false, 257},
		{253, false, 257}, /* 11 x 23 */
		{4093, true, 4093},
		{65535, false, 65537},
		{65536, false, 65537},
		{65537, true, 65537},
		{66049, false, 66067}, /* 257 x 257 */
		{1048573, true, 1048573},
		{1048574, false, 1048573},
		{1048583, false, 1048573}, /* prime, too large */
		{UINT32_MAX, false, 1048573},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct maglev_conf conf = t_conf(3, cases[i].slots);
		struct maglev *m = NULL;

		CHECK_EQ(maglev_slots_valid(cases[i].slots), cases[i].valid);
		CHECK_EQ(maglev_slots_next(cases[i].slots), cases[i].next);
		if (cases[i].slots == 0)
			continue; /* the default */
		CHECK_EQ(maglev_create(&conf, &m), cases[i].valid ? 0 : -EINVAL);
		CHECK((m != NULL) == cases[i].valid);
		CHECK(m == NULL || m->slots == cases[i].slots);
		maglev_destroy(m);
	}
	maglev_destroy(NULL);
}

static void
refusals(void)
{
	struct maglev_conf conf = t_conf(3, 0);
	struct maglev *m = NULL;

	t_names[1][0] = '\0';
	CHECK_EQ(maglev_create(&conf, &m), -EINVAL);
	memset(t_names[1], 'x', MAGLEV_NAME_SIZE);
	CHECK_EQ(maglev_create(&conf, &m), -EINVAL);
	t_names[1][MAGLEV_NAME_SIZE - 1] = '\0';
	CHECK_EQ(maglev_create(&conf, &m), 0);
	CHECK_EQ(m->slots, MAGLEV_SLOTS);
	maglev_destroy(m);
	m = NULL;
	strcpy(t_names[1], "b2");
	CHECK_EQ(maglev_create(&conf, &m), -EEXIST);
	conf = t_conf(3, 0);
	t_backends[2].index = 0;
	CHECK_EQ(maglev_create(&conf, &m), -EEXIST);
	t_backends[2].index = MAGLEV_NONE;
	CHECK_EQ(maglev_create(&conf, &m), -EINVAL);
	conf = t_conf(3, 0);
	t_backends[0].weight = MAGLEV_WEIGHT_MAX + 1;
	CHECK_EQ(maglev_create(&conf, &m), -EINVAL);
	conf = t_conf(MAGLEV_BACKENDS_MAX + 1, 0);
	CHECK_EQ(maglev_create(&conf, &m), -EINVAL);
	conf = t_conf(252, 251);
	CHECK_EQ(maglev_create(&conf, &m), -ENOSPC);
	t_backends[100].weight = 0; /* who has no weight needs no slot */
	CHECK_EQ(maglev_create(&conf, &m), 0);
	maglev_destroy(m);
}

static void
golden(void)
{
	static const uint16_t first3[] = {1, 1, 1, 1, 1, 1, 2, 1};
	static const uint16_t first4[] = {1, 0, 1, 0, 2, 1, 1, 2};
	static const struct maglev_backend three[] = {{"a", 1, 0}, {"b", 1, 1}, {"c", 1, 2}};
	static const struct maglev_backend four[] = {
		{"dns-1", 3, 0}, {"dns-2", 2, 1}, {"dns-3", 1, 2}, {"dns-4", 0, 3}};
	struct maglev_conf conf = {.backends = three, .count = 3, .slots = 251};
	struct maglev *m = t_make(&conf);

	CHECK(memcmp(m->slot, first3, sizeof(first3)) == 0);
	CHECK(t_fingerprint(m->slot, 251) == 0x5d5de6a9c60bbf61);
	CHECK(t_fingerprint(m->turn, 251) == 0x9dbfddff9b664c51);
	maglev_destroy(m);
	conf = (struct maglev_conf){.backends = four, .count = 4, .seed = 1};
	m = t_make(&conf);
	CHECK(memcmp(m->slot, first4, sizeof(first4)) == 0);
	CHECK(t_fingerprint(m->slot, 65537) == 0xa081813651d10bd9);
	CHECK(t_fingerprint(m->turn, 65537) == 0x45eac98db1cf615b);
	maglev_destroy(m);
}

/* The same back ends in another order and with other indexes: every slot has the same name. */
static void
order_and_indexes_do_not_matter(void)
{
	struct maglev_conf conf = t_conf(20, 4093);
	struct maglev_backend turned[20];
	struct maglev *a = t_make(&conf), *b;
	struct maglev_diff diff;
	uint32_t different = 0;

	for (uint32_t i = 0; i < 20; i++) {
		turned[i] = t_backends[(i * 7 + 3) % 20];
		turned[i].index = (uint16_t)(1000 + i);
	}
	conf.backends = turned;
	b = t_make(&conf);
	for (uint32_t s = 0; s < 4093; s++)
		different +=
			strcmp(t_backends[a->slot[s]].name, turned[b->slot[s] - 1000].name) != 0;
	CHECK_EQ(different, 0);
	REQUIRE(maglev_diff(a, b, &diff) == 0);
	CHECK_EQ(diff.moved, 0);
	CHECK_EQ(diff.owed, 0);
	maglev_destroy(b);
	/* Another seed is another table. */
	conf.seed++;
	b = t_make(&conf);
	CHECK_EQ(maglev_diff(a, b, &diff), -EINVAL);
	for (uint32_t s = 0; s < 4093; s++)
		different +=
			strcmp(t_backends[a->slot[s]].name, turned[b->slot[s] - 1000].name) != 0;
	CHECK(different > 4093 / 2);
	maglev_destroy(a);
	maglev_destroy(b);
}

/* Every share is exact to less than one slot, but a weight always has a slot. */
static void
shares_follow_weights(void)
{
	static const struct {
		uint32_t count, slots, weight[4]; /* weights in turn */
	} cases[] = {
		{1, 251, {1, 1, 1, 1}}, {2, 251, {1, 1, 1, 1}}, {3, 65537, {1, 1, 1, 1}},
		{3, 65537, {1000, 1, 1, 1}}, {4, 65537, {3, 2, 1, 0}}, {100, 65537, {1, 2, 3, 100}},
		{1000, 65537, {1, 7, 1, 1}}, {251, 251, {1, 1, 1, 1}},
		{200, 251,
			{1000, 1, 1,
				1}}, /* far fewer slots than the small ones' shares are worth */
	};

	for (size_t k = 0; k < SL_COUNT_OF(cases); k++) {
		struct maglev_conf conf = t_conf(cases[k].count, cases[k].slots);
		uint64_t sum = 0, all = 0;
		bool raised = false;
		struct maglev *m;

		for (uint32_t i = 0; i < conf.count; i++) {
			t_backends[i].weight = cases[k].weight[i % 4];
			sum += t_backends[i].weight;
		}
		m = t_make(&conf);
		for (uint32_t i = 0; i < m->members; i++)
			raised |= m->member[i].weight > 0 &&
				  (uint64_t)m->slots * m->member[i].weight < sum;
		for (uint32_t i = 0; i < m->members; i++) {
			uint64_t parts = (uint64_t)m->slots * m->member[i].weight;
			uint32_t share = m->member[i].share;

			CHECK_EQ(t_share(m, m->member[i].index), share);
			CHECK((share == 0) == (m->member[i].weight == 0));
			if (!raised)
				CHECK(share * sum < parts + sum && share * sum + sum > parts);
			all += share;
		}
		CHECK_EQ(all, m->slots);
		maglev_destroy(m);
	}
}

/* Hashes reach every slot, as often as any other. */
static void
hashes_reach_all_slots(void)
{
	struct maglev_conf conf = t_conf(5, 251);
	struct maglev *m = t_make(&conf);
	uint32_t seen[251] = {0};

	CHECK_EQ(maglev_slot(m, 0), 0);
	CHECK_EQ(maglev_slot(m, UINT32_MAX), 250);
	for (uint64_t h = 0; h < 1ull << 32; h += 65536)
		seen[maglev_slot(m, (uint32_t)h)]++;
	for (uint32_t s = 0; s < 251; s++)
		CHECK(seen[s] >= 65536 / 251 && seen[s] <= 65536 / 251 + 1);
	CHECK_EQ(maglev_lookup(m, 0x80000000), m->slot[125]);
	maglev_destroy(m);
}

static struct maglev_diff
t_diff(struct maglev *from, struct maglev *to)
{
	struct maglev_diff diff = {0};

	REQUIRE(maglev_diff(from, to, &diff) == 0);
	CHECK_EQ(diff.moved, diff.owed + diff.disturbed);
	return diff;
}

/* One of N goes: its slots move, and of the others no more than doc/balancer.md says. */
static void
removal_moves_little_else(void)
{
	static const struct {
		uint32_t count, disturbed_permille;
	} cases[] = {{2, 0}, {3, 3}, {10, 6}, {100, 10}, {1000, 15}};

	for (size_t k = 0; k < SL_COUNT_OF(cases); k++) {
		uint32_t worst = 0;

		for (uint32_t victim = 0; victim < 5 && victim < cases[k].count; victim++) {
			struct maglev_conf conf = t_conf(cases[k].count, 0);
			struct maglev *all = t_make(&conf), *less;
			struct maglev_diff diff;

			t_backends[victim] = t_backends[--conf.count];
			less = t_make(&conf);
			diff = t_diff(all, less);
			CHECK_EQ(diff.owed, t_share(all, (uint16_t)victim));
			CHECK_EQ(t_share(less, (uint16_t)victim), 0);
			worst = diff.disturbed > worst ? diff.disturbed : worst;
			/* Back again: nothing is left behind. */
			CHECK_EQ(t_diff(less, all).moved, diff.moved);
			maglev_destroy(all);
			maglev_destroy(less);
		}
		printf("     one of %u goes: at most %.2f %% of the slots move beside its own\n",
			cases[k].count, 100.0 * worst / MAGLEV_SLOTS);
		CHECK(worst <= MAGLEV_SLOTS * cases[k].disturbed_permille / 1000);
	}
}

static void
differences(void)
{
	struct maglev_conf conf = t_conf(3, 4093), none = t_conf(0, 4093), other = t_conf(3, 251);
	struct maglev *three = t_make(&conf), *same = t_make(&conf), *nobody = t_make(&none), *m;
	struct maglev_diff diff;

	CHECK_EQ(t_diff(three, same).moved, 0);
	diff = t_diff(three, nobody);
	CHECK_EQ(diff.moved, 4093);
	CHECK_EQ(diff.disturbed, 0);
	diff = t_diff(nobody, three);
	CHECK_EQ(diff.moved, 4093);
	CHECK_EQ(diff.disturbed, 0);
	CHECK_EQ(t_diff(nobody, nobody).moved, 0);
	m = t_make(&other);
	CHECK_EQ(maglev_diff(three, m, &diff), -EINVAL);
	maglev_destroy(m);
	/* Another name with the index of one that is gone: its slots have moved, though the index
	 * in them may not have changed. */
	strcpy(t_names[1], "other");
	m = t_make(&conf);
	diff = t_diff(three, m);
	CHECK(diff.moved >= 4093 / 3);
	CHECK_EQ(diff.owed, t_share(three, 1));
	maglev_destroy(m);
	/* Half the weight: the slots it gives up are owed. */
	conf = t_conf(3, 4093);
	t_backends[0].weight = t_backends[1].weight = 2;
	m = t_make(&conf);
	diff = t_diff(three, m);
	CHECK_EQ(diff.owed, t_share(three, 2) - t_share(m, 2));
	maglev_destroy(m);
	maglev_destroy(three);
	maglev_destroy(same);
	maglev_destroy(nobody);
}

/* Turns come in proportion over any run of them, begun anywhere. */
static void
turns_are_spread(void)
{
	static const uint32_t runs[] = {1, 2, 3, 10, 100, 1000, 4093};
	struct maglev_conf conf = t_conf(10, 4093);
	double worst = 0;
	struct maglev *m;

	t_backends[3].weight = 5;
	t_backends[4].weight = 20;
	t_backends[5].weight = 0;
	m = t_make(&conf);
	for (size_t k = 0; k < SL_COUNT_OF(runs); k++) {
		for (uint32_t start = 0; start + runs[k] <= 4093; start += 61) {
			uint32_t seen[10] = {0};

			for (uint32_t n = start; n < start + runs[k]; n++)
				seen[maglev_turn(m, n)]++;
			for (uint32_t i = 0; i < m->members; i++) {
				double part = (double)m->member[i].share / m->slots;
				double off = seen[m->member[i].index] - part * runs[k];

				off = (off < 0 ? -off : off) - 2 * part * m->members;
				worst = off > worst ? off : worst;
			}
		}
	}
	CHECK(worst <= 2);
	maglev_destroy(m);
}

static void
empty_tables(void)
{
	struct maglev_conf conf = t_conf(0, 0);
	struct maglev *m;

	conf.backends = NULL;
	m = t_make(&conf);
	CHECK_EQ(maglev_lookup(m, 12345), MAGLEV_NONE);
	CHECK_EQ(maglev_turn(m, 9), MAGLEV_NONE);
	maglev_destroy(m);
	conf = t_conf(2, 0);
	t_backends[0].weight = t_backends[1].weight = 0;
	m = t_make(&conf);
	CHECK_EQ(t_share(m, MAGLEV_NONE), MAGLEV_SLOTS);
	CHECK_EQ(m->members, 2);
	maglev_destroy(m);
}

static void
no_memory(void)
{
	struct maglev_conf conf = t_conf(3, 251);
	struct maglev *m = NULL, *other = t_make(&conf);
	struct maglev_diff diff;
	long k = 1;
	int ret;

	do {
		fail_at = k++;
		ret = maglev_create(&conf, &m);
		CHECK((ret == 0) == (m != NULL));
		CHECK(ret == 0 || ret == -ENOMEM);
	} while (ret != 0 && k < 20);
	CHECK_EQ(ret, 0);
	CHECK_EQ(k, 7); /* five allocations */
	fail_at = 1;
	CHECK_EQ(maglev_diff(m, other, &diff), -ENOMEM);
	fail_at = 0;
	maglev_destroy(m);
	maglev_destroy(other);
}

int
main(void)
{
	SL_TEST_RUN(sizes);
	SL_TEST_RUN(refusals);
	SL_TEST_RUN(golden);
	SL_TEST_RUN(order_and_indexes_do_not_matter);
	SL_TEST_RUN(shares_follow_weights);
	SL_TEST_RUN(hashes_reach_all_slots);
	SL_TEST_RUN(removal_moves_little_else);
	SL_TEST_RUN(differences);
	SL_TEST_RUN(turns_are_spread);
	SL_TEST_RUN(empty_tables);
	SL_TEST_RUN(no_memory);
	return test_end();
}
