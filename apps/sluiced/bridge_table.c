/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_jhash.h>
#include <rte_malloc.h>

#include "bridge_table.h"
#include "sl_assert.h"
#include "sl_errno.h"
#include "sl_shared.h"

/* Entries that are looked at, or forgotten, under the lock at once. */
#define AGE_STEP 256u

/* (l) under `lock`, (a) atomic, (c) constant. */
struct entry {
	uint64_t word; /* (a) member and time, see pack(); written by whoever hears the station */
	uint64_t mac;  /* (l) */
	bool linked;   /* (l) */
};

struct bridge_table {
	struct rte_hash *hash;		   /* changed under the lock */
	uint32_t entries;		   /* (c) */
	uint32_t per_port;		   /* (a) relaxed: a setting */
	uint32_t age_s;			   /* (a) relaxed: a setting */
	uint32_t nfree;			   /* (l) */
	uint32_t *free;			   /* (l) a stack of places */
	uint32_t held[BRIDGE_MEMBERS_MAX]; /* (a) written under the lock */
	SL_CACHE_ALIGNED uint32_t lock;	   /* (a) BR1 */
	SL_CACHE_ALIGNED struct entry entry[];
};

/* Member and time in one word, so that nobody sees one of them without the other. */
static uint64_t
pack(uint16_t member, uint32_t seen_s)
{
	return (uint64_t)member << 32 | seen_s;
}

static uint16_t
member_of(uint64_t word)
{
	return (uint16_t)(word >> 32);
}

/* Lcores read the clock at different moments: one may be a second ahead of another. */
static uint32_t
age_of(uint64_t word, uint32_t now_s)
{
	int32_t age = (int32_t)(now_s - (uint32_t)word);

	return age > 0 ? (uint32_t)age : 0;
}

/* ---- the lock ---- */

static bool
lock_try(struct bridge_table *t)
{
	return sl_load_relaxed(&t->lock) == 0 && sl_exchange_acq_rel(&t->lock, 1u) == 0; /* BR1 */
}

static void
lock_wait(struct bridge_table *t)
{
	while (!lock_try(t))
		sched_yield();
}

static void
unlock(struct bridge_table *t)
{
	sl_store_release(&t->lock, 0u); /* BR1 */
}

/* ---- life ---- */

static bool
conf_good(const struct bridge_table_conf *c)
{
	return c->entries >= BRIDGE_ENTRIES_MIN && c->entries <= BRIDGE_ENTRIES_MAX &&
	       c->per_port >= 1 && c->per_port <= c->entries && c->age_s >= 1 &&
	       c->age_s <= BRIDGE_AGE_MAX_S;
}

static struct rte_hash *
hash_create(const struct bridge_table_conf *conf)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {
		.name = name,
		/* A table that is never quite full finds room for whatever fits the bounds. */
		.entries = conf->entries * 2,
		.key_len = sizeof(uint64_t),
		.hash_func = rte_jhash,
		.hash_func_init_val = conf->seed,
		.socket_id = conf->socket,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF,
	};

	snprintf(name, sizeof(name), "sluiced_bridge_%u", sl_fetch_add_relaxed(&serial, 1u));
	return rte_hash_create(&params);
}

int
bridge_table_create(const struct bridge_table_conf *conf, struct bridge_table **out)
{
	struct bridge_table *t;

	if (!conf_good(conf))
		return -EINVAL;
	t = rte_zmalloc_socket("bridge", sizeof(*t) + conf->entries * sizeof(t->entry[0]),
		SL_CACHE_LINE, conf->socket);
	if (t == NULL)
		return -ENOMEM;
	t->entries = conf->entries;
	t->per_port = conf->per_port;
	t->age_s = conf->age_s;
	t->free =
		rte_malloc_socket("bridge_free", conf->entries * sizeof(*t->free), 0, conf->socket);
	t->hash = hash_create(conf);
	if (t->free == NULL || t->hash == NULL) {
		bridge_table_destroy(t);
		return -ENOMEM;
	}
	/* The lowest place is taken first, so that a listing begins with what there is. */
	for (uint32_t i = conf->entries; i > 0; i--)
		t->free[t->nfree++] = i - 1;
	*out = t;
	return 0;
}

void
bridge_table_destroy(struct bridge_table *t)
{
	if (t == NULL)
		return;
	rte_hash_free(t->hash);
	rte_free(t->free);
	rte_free(t);
}

void
bridge_table_set(struct bridge_table *t, uint32_t per_port, uint32_t age_s)
{
	sl_store_relaxed(&t->per_port, RTE_MIN(per_port, t->entries));
	sl_store_relaxed(&t->age_s, age_s);
}

/* ---- lcores ---- */

/* The entry of each, or NULL. */
static void
lookup(struct bridge_table *t, const uint64_t *mac, uint16_t n, struct entry **found)
{
	const void *keys[BRIDGE_BURST];
	void *data[BRIDGE_BURST];
	uint64_t hit = 0;

	SL_DEBUG_ASSERT(n <= BRIDGE_BURST);
	for (uint16_t i = 0; i < n; i++)
		keys[i] = &mac[i];
	if (n > 0)
		(void)rte_hash_lookup_bulk_data(t->hash, keys, n, &hit, data); /* BR2 */
	for (uint16_t i = 0; i < n; i++)
		found[i] = (hit >> i & 1) != 0 ? data[i] : NULL;
}

void
bridge_table_find_burst(
	struct bridge_table *t, const uint64_t *mac, uint16_t n, uint32_t now_s, uint16_t *member)
{
	uint32_t age_s = sl_load_relaxed(&t->age_s);
	struct entry *found[BRIDGE_BURST];

	lookup(t, mac, n, found);
	for (uint16_t i = 0; i < n; i++) {
		uint64_t word;

		member[i] = BRIDGE_UNKNOWN;
		if (found[i] == NULL)
			continue;
		/* Relaxed: the word is all that is read of it. */
		word = sl_load_relaxed(&found[i]->word);
		/* Ageing may be late: a station that it should have forgotten is not known. */
		if (age_of(word, now_s) <= age_s)
			member[i] = member_of(word);
	}
}

/* How many are behind the member; changed under the lock alone. */
static void
held_add(struct bridge_table *t, uint16_t member, int n)
{
	sl_store_relaxed(&t->held[member], t->held[member] + (uint32_t)n);
}

static enum bridge_learn
insert_locked(struct bridge_table *t, uint64_t mac, uint16_t member, uint32_t now_s)
{
	struct entry *e;

	if (t->nfree == 0)
		return BRIDGE_FULL;
	e = &t->entry[t->free[t->nfree - 1]];
	e->mac = mac;
	sl_store_relaxed(&e->word, pack(member, now_s)); /* BR2: before the hash table shows it */
	if (rte_hash_add_key_data(t->hash, &mac, e) != 0)
		return BRIDGE_FULL;
	t->nfree--;
	e->linked = true;
	held_add(t, member, 1);
	return BRIDGE_LEARNED;
}

static enum bridge_learn
move_locked(struct bridge_table *t, struct entry *e, uint16_t member, uint32_t now_s)
{
	/* Members change under the lock alone; others only set the time. */
	uint16_t before = member_of(sl_load_relaxed(&e->word));

	sl_store_relaxed(&e->word, pack(member, now_s));
	held_add(t, before, -1);
	held_add(t, member, 1);
	return BRIDGE_MOVED;
}

/* A station that is not there, or behind another member; both may have changed since. */
static enum bridge_learn
learn(struct bridge_table *t, uint64_t mac, uint16_t member, uint32_t now_s)
{
	enum bridge_learn what;
	void *data;
	bool known;

	/* Without the lock first: whoever floods a full share costs no more than this. */
	if (sl_load_relaxed(&t->held[member]) >= sl_load_relaxed(&t->per_port))
		return BRIDGE_LIMIT;
	if (!lock_try(t))
		return BRIDGE_BUSY;
	known = rte_hash_lookup_data(t->hash, &mac, &data) >= 0;
	if (known && member_of(sl_load_relaxed(&((struct entry *)data)->word)) == member)
		what = BRIDGE_KNOWN;
	else if (t->held[member] >= sl_load_relaxed(&t->per_port))
		what = BRIDGE_LIMIT;
	else if (known)
		what = move_locked(t, data, member, now_s);
	else
		what = insert_locked(t, mac, member, now_s);
	unlock(t);
	return what;
}

/* True if the station is behind that member already; then it was heard just now. */
static bool
refresh(struct entry *e, uint16_t member, uint32_t now_s)
{
	uint64_t word = sl_load_relaxed(&e->word);

	if (member_of(word) != member)
		return false;
	/* Should it fail, it has moved or another lcore has heard it, too: both are newer. */
	if ((int32_t)(now_s - (uint32_t)word) > 0)
		(void)sl_cas_weak_relaxed(&e->word, &word, pack(member, now_s));
	return true;
}

void
bridge_table_learn_burst(struct bridge_table *t, const uint64_t *mac, uint16_t n, uint16_t member,
	uint32_t now_s, uint64_t *counts)
{
	struct entry *found[BRIDGE_BURST];

	SL_DEBUG_ASSERT(member < BRIDGE_MEMBERS_MAX);
	lookup(t, mac, n, found);
	for (uint16_t i = 0; i < n; i++) {
		if (found[i] != NULL && refresh(found[i], member, now_s))
			counts[BRIDGE_KNOWN]++;
		else
			counts[learn(t, mac[i], member, now_s)]++;
	}
}

/* ---- control ---- */

struct batch {
	uint32_t n;
	uint32_t place[AGE_STEP];
	int32_t position[AGE_STEP]; /* in the hash table */
};

/* Unlink what is too old among the places from `from` on; they stay as they are. */
static void
unlink_old(struct bridge_table *t, uint32_t from, uint32_t now_s, struct batch *b)
{
	uint32_t end = RTE_MIN(from + AGE_STEP, t->entries), age_s = sl_load_relaxed(&t->age_s);

	b->n = 0;
	lock_wait(t);
	for (uint32_t i = from; i < end; i++) {
		struct entry *e = &t->entry[i];
		uint64_t word = sl_load_relaxed(&e->word);
		int32_t position;

		if (!e->linked || age_of(word, now_s) <= age_s)
			continue;
		position = rte_hash_del_key(t->hash, &e->mac);
		SL_DEBUG_ASSERT(position >= 0);
		e->linked = false;
		held_add(t, member_of(word), -1);
		b->place[b->n] = i;
		b->position[b->n++] = position;
	}
	unlock(t);
}

uint32_t
bridge_table_age(struct bridge_table *t, uint32_t now_s, void (*wait)(void *arg), void *arg)
{
	struct batch b;
	uint32_t n = 0;

	for (uint32_t from = 0; from < t->entries; from += AGE_STEP) {
		unlink_old(t, from, now_s, &b);
		if (b.n == 0)
			continue;
		/* An lcore may have found them just before: they change only when it is done. */
		wait(arg);
		lock_wait(t);
		for (uint32_t i = 0; i < b.n; i++) {
			(void)rte_hash_free_key_with_position(t->hash, b.position[i]);
			t->free[t->nfree++] = b.place[i];
		}
		unlock(t);
		n += b.n;
	}
	return n;
}

uint32_t
bridge_table_list(struct bridge_table *t, uint32_t from, uint32_t now_s, struct bridge_row *rows,
	uint32_t max, uint32_t *next)
{
	uint32_t n = 0;

	lock_wait(t);
	for (; from < t->entries && n < max; from++) {
		const struct entry *e = &t->entry[from];
		uint64_t word = sl_load_relaxed(&e->word);

		if (e->linked)
			rows[n++] =
				(struct bridge_row){e->mac, member_of(word), age_of(word, now_s)};
	}
	unlock(t);
	*next = from < t->entries ? from : BRIDGE_ENTRIES_MAX;
	return n;
}

uint32_t
bridge_table_held(const struct bridge_table *t, uint16_t member)
{
	return sl_load_relaxed(&t->held[member]);
}
