/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

#include "maglev.h"
#include "sl_assert.h"

/* A back end while the table is being filled. */
struct filler {
	uint32_t at;   /* next slot of its permutation */
	uint32_t skip; /* from one slot of its permutation to the next */
	uint32_t quota;
	uint32_t taken;
	uint32_t phase; /* when in the time between two turns its own fall, in 2^-32 of it */
	uint64_t rest;	/* what rounding its share down left, in parts of the sum of weights */
	uint32_t order;
};

bool
maglev_slots_valid(uint32_t slots)
{
	if (slots < MAGLEV_SLOTS_MIN || slots > MAGLEV_SLOTS_MAX || slots % 2 == 0)
		return false;
	for (uint32_t d = 3; d * d <= slots; d += 2) {
		if (slots % d == 0)
			return false;
	}
	return true;
}

uint32_t
maglev_slots_next(uint32_t slots)
{
	if (slots < MAGLEV_SLOTS_MIN)
		return MAGLEV_SLOTS_MIN;
	while (slots < MAGLEV_SLOTS_MAX && !maglev_slots_valid(slots))
		slots++;
	return slots < MAGLEV_SLOTS_MAX ? slots : MAGLEV_SLOTS_MAX;
}

static int
check(const struct maglev_conf *conf, uint32_t slots)
{
	uint32_t weighted = 0;

	if (!maglev_slots_valid(slots) || conf->count > MAGLEV_BACKENDS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < conf->count; i++) {
		const struct maglev_backend *b = &conf->backends[i];
		size_t length = strnlen(b->name, MAGLEV_NAME_SIZE);

		if (length == 0 || length == MAGLEV_NAME_SIZE || b->weight > MAGLEV_WEIGHT_MAX ||
			b->index == MAGLEV_NONE)
			return -EINVAL;
		weighted += b->weight > 0;
		for (uint32_t k = 0; k < i; k++) {
			if (b->index == conf->backends[k].index ||
				strcmp(b->name, conf->backends[k].name) == 0)
				return -EEXIST;
		}
	}
	return weighted > slots ? -ENOSPC : 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct maglev_member *)a)->name, ((const struct maglev_member *)b)->name);
}

static int
by_rest(const void *a, const void *b)
{
	const struct filler *x = a, *y = b;

	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static int
by_order(const void *a, const void *b)
{
	return ((const struct filler *)a)->order < ((const struct filler *)b)->order ? -1 : 1;
}

/* Divide the slots by the largest remainders: every share is exact to less than one slot. */
static void
set_quotas(const struct maglev *m, struct filler *f)
{
	uint64_t sum = 0;
	uint32_t left = m->slots;

	for (uint32_t i = 0; i < m->members; i++)
		sum += m->member[i].weight;
	for (uint32_t i = 0; i < m->members; i++) {
		uint64_t parts = (uint64_t)m->slots * m->member[i].weight;

		f[i].quota = (uint32_t)(parts / sum);
		f[i].rest = parts % sum;
		f[i].order = i;
		left -= f[i].quota;
	}
	qsort(f, m->members, sizeof(*f), by_rest);
	for (uint32_t i = 0; i < left; i++)
		f[i].quota++;
	qsort(f, m->members, sizeof(*f), by_order);
	/* Whoever has a weight must be reachable. */
	for (uint32_t i = 0; i < m->members; i++) {
		uint32_t most = 0;

		if (m->member[i].weight == 0 || f[i].quota > 0)
			continue;
		for (uint32_t k = 1; k < m->members; k++)
			most = f[k].quota > f[most].quota ? k : most;
		f[most].quota--;
		f[i].quota = 1;
	}
}

static void
set_permutations(const struct maglev *m, struct filler *f)
{
	for (uint32_t i = 0; i < m->members; i++) {
		uint32_t first = m->seed, second = 0;

		/* The hash reads whole words; the name's array is zero behind the name. */
		rte_jhash_2hashes(
			m->member[i].name, (uint32_t)strlen(m->member[i].name), &first, &second);
		f[i].at = first % m->slots;
		f[i].skip = second % (m->slots - 1) + 1;
		f[i].phase = second;
	}
}

static void
take_slot(struct maglev *m, struct filler *f, uint16_t index)
{
	while (m->slot[f->at] != MAGLEV_NONE) {
		f->at += f->skip;
		f->at -= f->at >= m->slots ? m->slots : 0;
	}
	m->slot[f->at] = index;
	f->taken++;
}

/* In round r of `most` everybody is brought to r/most of its quota, so that shares stay even all
 * along and nobody is left with the last slots only. Phases keep back ends of one weight from
 * taking their turns in the same round. */
static uint32_t
due(const struct filler *f, uint32_t r, uint32_t most)
{
	uint64_t phase = ((uint64_t)f->phase * most) >> 32;

	return (uint32_t)(((uint64_t)f->quota * r + phase) / most);
}

static void
fill(struct maglev *m, struct filler *f)
{
	uint32_t most = 0, turn = 0;

	for (uint32_t i = 0; i < m->members; i++)
		most = f[i].quota > most ? f[i].quota : most;
	for (uint32_t r = 1; r <= most; r++) {
		for (uint32_t i = 0; i < m->members; i++) {
			if (f[i].taken < due(&f[i], r, most)) {
				m->turn[turn++] = m->member[i].index;
				take_slot(m, &f[i], m->member[i].index);
			}
		}
	}
	SL_ASSERT(most == 0 || turn == m->slots);
	for (uint32_t i = 0; i < m->members; i++)
		m->member[i].share = f[i].taken;
}

static bool
allocate(struct maglev *m)
{
	/* One more than there may be, as nothing is a size that calloc may answer with NULL. */
	m->member = calloc(m->members + 1, sizeof(*m->member));
	m->slot = malloc(m->slots * sizeof(*m->slot));
	m->turn = malloc(m->slots * sizeof(*m->turn));
	return m->member != NULL && m->slot != NULL && m->turn != NULL;
}

int
maglev_create(const struct maglev_conf *conf, struct maglev **out)
{
	uint32_t slots = conf->slots != 0 ? conf->slots : MAGLEV_SLOTS;
	struct filler *f = NULL;
	struct maglev *m;
	bool weighted = false;
	int ret = check(conf, slots);

	if (ret != 0)
		return ret;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->slots = slots;
	m->members = conf->count;
	m->seed = conf->seed;
	f = calloc(conf->count + 1, sizeof(*f));
	if (!allocate(m) || f == NULL) {
		free(f);
		maglev_destroy(m);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < conf->count; i++) {
		struct maglev_member *member = &m->member[i];

		memcpy(member->name, conf->backends[i].name, strlen(conf->backends[i].name));
		member->weight = conf->backends[i].weight;
		member->index = conf->backends[i].index;
		weighted |= member->weight > 0;
	}
	qsort(m->member, m->members, sizeof(*m->member), by_name);
	memset(m->slot, 0xff, slots * sizeof(*m->slot));
	memset(m->turn, 0xff, slots * sizeof(*m->turn));
	if (weighted) {
		set_quotas(m, f);
		set_permutations(m, f);
		fill(m, f);
	}
	free(f);
	*out = m;
	return 0;
}

void
maglev_destroy(struct maglev *m)
{
	if (m == NULL)
		return;
	free(m->slot);
	free(m->turn);
	free(m->member);
	free(m);
}

static const struct maglev_member *
find(const struct maglev *m, const char *name)
{
	struct maglev_member key;

	memcpy(key.name, name, sizeof(key.name));
	return bsearch(&key, m->member, m->members, sizeof(key), by_name);
}

int
maglev_diff(const struct maglev *from, const struct maglev *to, struct maglev_diff *diff)
{
	uint16_t *became; /* index of a back end in `from` -> its index in `to` */
	uint32_t moved = 0, owed = 0;

	if (from->slots != to->slots || from->seed != to->seed)
		return -EINVAL;
	became = malloc((UINT16_MAX + 1) * sizeof(*became));
	if (became == NULL)
		return -ENOMEM;
	memset(became, 0xff, (UINT16_MAX + 1) * sizeof(*became));
	for (uint32_t i = 0; i < from->members; i++) {
		const struct maglev_member *old = &from->member[i], *new = find(to, old->name);
		uint32_t share = new != NULL ? new->share : 0;

		owed += old->share > share ? old->share - share : 0;
		if (new != NULL)
			became[old->index] = new->index;
	}
	for (uint32_t s = 0; s < from->slots; s++) {
		uint16_t old = from->slot[s];

		/* A back end that is gone has moved all its slots, whoever has its index now. */
		if (old == MAGLEV_NONE)
			moved += to->slot[s] != MAGLEV_NONE;
		else
			moved += became[old] == MAGLEV_NONE || became[old] != to->slot[s];
	}
	free(became);
	*diff = (struct maglev_diff){.moved = moved};
	/* Slots that had no back end and get one move too, and must. */
	owed += from->slot[0] == MAGLEV_NONE && to->slot[0] != MAGLEV_NONE ? from->slots : 0;
	diff->owed = owed;
	diff->disturbed = moved - owed;
	return 0;
}
