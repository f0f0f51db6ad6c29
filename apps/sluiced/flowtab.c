/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "flowtab.h"
#include "sl_assert.h"
#include "sl_shared.h"

#define DEFAULT_FLOWS 65536u
#define DEFAULT_IDLE_MS 30000u
#define DEFAULT_INSERTS 100000u
/* The guard's reserve is in thousandths of a flow, as time comes in thousandths of a second. */
#define MILLI 1000u

_Static_assert(sizeof(struct flow_key) == 48, "rte_hash compares 48 bytes by vectors");

/* Flows that were looked up last, by hash: most are found by one comparison. */
#define RECENT 8192u

struct flow {
	const struct flow_key
		*key;	  /* in the hash table, where each place's stays; NULL: never used */
	uint32_t used_ms; /* low half of the time: ages are differences, and far below 2^32 */
	bool live;
	union flow_state state;
} __attribute__((aligned(32)));

/* Everything is the owner's; others read the counters. */
struct flowtab {
	struct rte_hash *hash;
	struct flow *flow; /* by position in the hash table */
	uint32_t seed;
	uint32_t places;
	uint32_t flows;
	uint32_t idle_ms;
	uint32_t inserts_per_s;
	void (*gone)(void *arg, const union flow_state *state);
	void *gone_arg;
	uint64_t now_ms;
	uint64_t reserve;     /* what the guard would let in at once, in thousandths */
	uint64_t hand_credit; /* places that the hand is behind, times idle_ms / 4 */
	uint32_t hand;
	bool started;
	struct flowtab_stats stats;
	uint32_t recent[RECENT]; /* places, any at first: who is there decides */
};

static int
check_conf(struct flowtab_conf *c)
{
	c->flows = c->flows != 0 ? c->flows : DEFAULT_FLOWS;
	c->idle_ms = c->idle_ms != 0 ? c->idle_ms : DEFAULT_IDLE_MS;
	c->inserts_per_s = c->inserts_per_s != 0 ? c->inserts_per_s : DEFAULT_INSERTS;
	if (c->flows < 8 || c->flows > FLOWTAB_FLOWS_MAX || c->idle_ms < 10 ||
		c->idle_ms > FLOWTAB_IDLE_MS_MAX || c->inserts_per_s < 10 ||
		c->inserts_per_s > FLOWTAB_INSERTS_MAX)
		return -EINVAL;
	return 0;
}

/* Both halves of the product. */
static inline uint64_t
mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* By pairs of words, each of which is hidden by a secret of its own: nobody outside can make a
 * product, or the difference of two, what he wants. */
static inline uint32_t
hash(const struct flow_key *key, uint32_t seed)
{
	const uint64_t secret = seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0xd6e8feb86659fd93);
	uint64_t w[sizeof(*key) / sizeof(uint64_t)], h;

	_Static_assert(SL_COUNT_OF(w) == 6, "three pairs");
	memcpy(w, key, sizeof(w));
	h = mix(w[0] ^ secret * 3, w[1] ^ secret * 5) ^ mix(w[2] ^ secret * 7, w[3] ^ secret * 11);
	h = mix(h ^ w[4], w[5] ^ secret * 13);
	return (uint32_t)(h ^ h >> 32);
}

/* For rte_hash. */
static uint32_t
hash_key(const void *key, uint32_t len, uint32_t seed)
{
	SL_DEBUG_ASSERT(len == sizeof(struct flow_key));
	(void)len;
	return hash(key, seed);
}

int
flowtab_create(const struct flowtab_conf *conf, struct flowtab **out)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	struct rte_hash_parameters params = {.key_len = sizeof(struct flow_key),
		.hash_func = hash_key,
		.hash_func_init_val = conf->seed};
	struct flowtab_conf c = *conf;
	char name[RTE_HASH_NAMESIZE];
	struct flowtab *t;
	int ret = check_conf(&c);

	if (ret != 0)
		return ret;
	ret = -ENOMEM;
	t = rte_zmalloc_socket("flowtab", sizeof(*t), SL_CACHE_LINE, c.socket);
	if (t == NULL)
		return ret;
	t->seed = c.seed;
	t->flows = c.flows;
	t->idle_ms = c.idle_ms;
	t->inserts_per_s = c.inserts_per_s;
	t->gone = c.gone;
	t->gone_arg = c.gone_arg;
	t->reserve = (uint64_t)t->inserts_per_s * MILLI / 10;
	snprintf(name, sizeof(name), "sluiced_flows_%u", sl_fetch_add_relaxed(&serial, 1u));
	params.name = name;
	/* A quarter more than will be used: a hash table that is never quite full finds room
	 * quickly. */
	params.entries = t->flows + t->flows / 4;
	params.socket_id = c.socket;
	t->hash = rte_hash_create(&params);
	/* What is asked for is right, so it is memory, for some of which no error is set. */
	if (t->hash == NULL)
		goto free_table;
	t->places = (uint32_t)rte_hash_max_key_id(t->hash) + 1;
	t->flow =
		rte_zmalloc_socket("flows", t->places * sizeof(*t->flow), SL_CACHE_LINE, c.socket);
	if (t->flow == NULL)
		goto free_hash;
	*out = t;
	return 0;

free_hash:
	rte_hash_free(t->hash);
free_table:
	rte_free(t);
	return ret;
}

void
flowtab_destroy(struct flowtab *t)
{
	if (t == NULL)
		return;
	rte_hash_free(t->hash);
	rte_free(t->flow);
	rte_free(t);
}

static void
forget(struct flowtab *t, uint32_t id)
{
	struct flow *f = &t->flow[id];

	SL_DEBUG_ASSERT(f->live);
	/* The key lies in the hash table, which is done with it when it gives the place back. */
	rte_hash_del_key(t->hash, f->key);
	f->live = false;
	sl_store_relaxed(&t->stats.flows, t->stats.flows - 1);
	if (t->gone != NULL)
		t->gone(t->gone_arg, &f->state);
}

static uint32_t
idle(const struct flowtab *t, const struct flow *f)
{
	return (uint32_t)t->now_ms - f->used_ms;
}

static void
age(struct flowtab *t, uint32_t id)
{
	forget(t, id);
	sl_counter_add(&t->stats.aged, 1);
}

/* Move the hand as far as the time that went by asks for, within the bound of a turn. */
static uint32_t
move_hand(struct flowtab *t, uint64_t passed_ms)
{
	uint32_t round_ms = t->idle_ms / 4, aged = 0, steps;
	uint64_t all = (uint64_t)t->places * round_ms;

	/* Being a whole round behind is as far behind as one can be. */
	if (passed_ms >= round_ms)
		t->hand_credit = all;
	else
		t->hand_credit = RTE_MIN(all, t->hand_credit + passed_ms * t->places);
	steps = (uint32_t)RTE_MIN(t->hand_credit / round_ms, (uint64_t)FLOWTAB_STEP);
	t->hand_credit -= (uint64_t)steps * round_ms;
	for (uint32_t i = 0; i < steps; i++) {
		struct flow *f = &t->flow[t->hand];

		if (f->live && idle(t, f) >= t->idle_ms) {
			age(t, t->hand);
			aged++;
		}
		t->hand = t->hand + 1 < t->places ? t->hand + 1 : 0;
	}
	return aged;
}

uint32_t
flowtab_turn(struct flowtab *t, uint64_t now_ms)
{
	uint64_t most = (uint64_t)t->inserts_per_s * MILLI / 10, passed_ms;

	if (!t->started) {
		t->started = true;
		t->now_ms = now_ms;
	}
	passed_ms = now_ms - t->now_ms;
	t->now_ms = now_ms;
	if (passed_ms >= MILLI / 10)
		t->reserve = most;
	else
		t->reserve = RTE_MIN(most, t->reserve + passed_ms * t->inserts_per_s);
	return move_hand(t, passed_ms);
}

/* Keys of a burst: those next to each other that are one are a run, which is looked up once. */
struct runs {
	uint32_t n;
	uint16_t end[FLOWTAB_BURST]; /* behind its last key */
	const struct flow_key *key[FLOWTAB_BURST];
	hash_sig_t hash[FLOWTAB_BURST];
	int32_t place[FLOWTAB_BURST];
};

static inline void
find_runs(const struct flowtab *t, const struct flow_key *const *keys, uint16_t n, struct runs *r)
{
	r->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (i == 0 || keys[i] != keys[i - 1]) {
			r->key[r->n] = keys[i];
			r->hash[r->n++] = hash(keys[i], t->seed);
		}
		r->end[r->n - 1] = (uint16_t)(i + 1);
	}
}

/* All octets of two keys at once: no branch until the end. */
static inline bool
same_key(const struct flow_key *a, const struct flow_key *b)
{
	uint64_t x[sizeof(*a) / 8], y[sizeof(*b) / 8], differ = 0;

	_Static_assert(sizeof(*a) % 8 == 0, "whole words");
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	for (size_t i = 0; i < SL_COUNT_OF(x); i++)
		differ |= x[i] ^ y[i];
	return differ == 0;
}

/* Fetch what recent flows will be compared with: by turns, so that none is waited for. */
static inline void
fetch_recent(const struct flowtab *t, struct runs *r)
{
	for (uint32_t k = 0; k < r->n; k++) {
		r->place[k] = (int32_t)t->recent[r->hash[k] % RECENT];
		rte_prefetch0(&t->flow[r->place[k]]);
	}
	for (uint32_t k = 0; k < r->n; k++)
		rte_prefetch0(t->flow[r->place[k]].key);
}

/* The hash table says of all that are not where recent says. */
static __attribute__((noinline)) void
find_others(struct flowtab *t, struct runs *r, const uint8_t *other, uint32_t n)
{
	const void *key[FLOWTAB_BURST];
	hash_sig_t hashes[FLOWTAB_BURST];
	int32_t place[FLOWTAB_BURST];

	for (uint32_t i = 0; i < n; i++) {
		key[i] = r->key[other[i]];
		hashes[i] = r->hash[other[i]];
	}
	rte_hash_lookup_with_hash_bulk(t->hash, key, hashes, n, place);
	for (uint32_t i = 0; i < n; i++) {
		r->place[other[i]] = place[i];
		if (place[i] < 0)
			continue;
		t->recent[hashes[i] % RECENT] = (uint32_t)place[i];
		rte_prefetch0(&t->flow[place[i]]);
	}
}

/* Find the places of all runs. */
static inline void
find_places(struct flowtab *t, struct runs *r)
{
	uint8_t other[FLOWTAB_BURST];
	uint32_t n = 0;

	fetch_recent(t, r);
	for (uint32_t k = 0; k < r->n; k++) {
		const struct flow *f = &t->flow[r->place[k]];

		other[n] = (uint8_t)k;
		n += !f->live || !same_key(f->key, r->key[k]);
	}
	if (n > 0)
		find_others(t, r, other, n);
}

/* Id of the flow there, which is in use now; none if it has become too old. */
static uint32_t
use(struct flowtab *t, int32_t place)
{
	struct flow *f;

	if (place < 0)
		return FLOWTAB_NONE;
	f = &t->flow[place];
	if (!f->live) /* it was too old for an earlier run of this burst */
		return FLOWTAB_NONE;
	if (idle(t, f) >= t->idle_ms) {
		age(t, (uint32_t)place);
		return FLOWTAB_NONE;
	}
	f->used_ms = (uint32_t)t->now_ms;
	return (uint32_t)place;
}

void
flowtab_lookup_burst(
	struct flowtab *t, const struct flow_key *const *keys, uint16_t n, uint32_t *ids)
{
	uint32_t hits = 0, i = 0;
	struct runs r;

	SL_DEBUG_ASSERT(n <= FLOWTAB_BURST);
	if (n == 0)
		return;
	find_runs(t, keys, n, &r);
	find_places(t, &r);
	for (uint32_t k = 0; k < r.n; k++) {
		uint32_t id = use(t, r.place[k]);

		hits += id != FLOWTAB_NONE ? r.end[k] - i : 0;
		for (; i < r.end[k]; i++)
			ids[i] = id;
	}
	sl_counter_add(&t->stats.hits, hits);
	sl_counter_add(&t->stats.misses, n - hits);
}

uint32_t
flowtab_peek(const struct flowtab *t, const struct flow_key *key)
{
	int32_t place = rte_hash_lookup(t->hash, key);

	if (place < 0 || idle(t, &t->flow[place]) >= t->idle_ms)
		return FLOWTAB_NONE;
	return (uint32_t)place;
}

enum flowtab_added
flowtab_would_add(const struct flowtab *t)
{
	/* Cheapest first: in a flood it is all that a new flow costs. */
	if (t->reserve < MILLI)
		return FLOWTAB_GUARDED;
	return t->stats.flows >= t->flows ? FLOWTAB_FULL : FLOWTAB_ADDED;
}

enum flowtab_added
flowtab_add(
	struct flowtab *t, const struct flow_key *key, const union flow_state *state, uint32_t *id)
{
	enum flowtab_added added = flowtab_would_add(t);
	struct flow *f;
	int32_t place;

	*id = FLOWTAB_NONE;
	if (added != FLOWTAB_ADDED) {
		sl_counter_add(added == FLOWTAB_FULL ? &t->stats.full : &t->stats.guarded, 1);
		return added;
	}
	place = rte_hash_add_key(t->hash, key);
	if (place < 0) {
		sl_counter_add(&t->stats.crowded, 1);
		return FLOWTAB_CROWDED;
	}
	f = &t->flow[place];
	*id = (uint32_t)place;
	if (f->live)
		return FLOWTAB_KNOWN;
	if (SL_UNLIKELY(f->key == NULL)) {
		void *at = NULL;

		(void)rte_hash_get_key_with_position(t->hash, place, &at);
		f->key = at;
	}
	SL_DEBUG_ASSERT(f->key != NULL);
	f->live = true;
	f->used_ms = (uint32_t)t->now_ms;
	f->state = *state;
	t->reserve -= MILLI;
	sl_counter_add(&t->stats.added, 1);
	sl_counter_add(&t->stats.flows, 1);
	return FLOWTAB_ADDED;
}

union flow_state *
flowtab_state(struct flowtab *t, uint32_t id)
{
	SL_DEBUG_ASSERT(id < t->places && t->flow[id].live);
	return &t->flow[id].state;
}

void
flowtab_rebind(struct flowtab *t, uint32_t id, const union flow_state *state)
{
	union flow_state old = *flowtab_state(t, id);

	t->flow[id].state = *state;
	sl_counter_add(&t->stats.moved, 1);
	if (t->gone != NULL)
		t->gone(t->gone_arg, &old);
}

void
flowtab_remove(struct flowtab *t, uint32_t id)
{
	forget(t, id);
	sl_counter_add(&t->stats.removed, 1);
}

bool
flowtab_walk(struct flowtab *t, uint32_t *cursor, uint32_t steps, flowtab_visit visit, void *arg)
{
	while (*cursor < t->places && steps-- > 0) {
		const struct flow *f = &t->flow[*cursor];

		if (f->live && idle(t, f) < t->idle_ms)
			visit(arg, f->key, &f->state, idle(t, f));
		(*cursor)++;
	}
	return *cursor < t->places;
}

void
flowtab_stats_get(const struct flowtab *t, struct flowtab_stats *stats)
{
	stats->hits = sl_load_relaxed(&t->stats.hits);
	stats->misses = sl_load_relaxed(&t->stats.misses);
	stats->added = sl_load_relaxed(&t->stats.added);
	stats->guarded = sl_load_relaxed(&t->stats.guarded);
	stats->full = sl_load_relaxed(&t->stats.full);
	stats->crowded = sl_load_relaxed(&t->stats.crowded);
	stats->moved = sl_load_relaxed(&t->stats.moved);
	stats->aged = sl_load_relaxed(&t->stats.aged);
	stats->removed = sl_load_relaxed(&t->stats.removed);
	stats->flows = sl_load_relaxed(&t->stats.flows);
}

void
flowtab_check(const struct flowtab *t)
{
	const struct flowtab_stats *s = &t->stats;
	uint64_t live = 0;

	for (uint32_t i = 0; i < t->places; i++) {
		if (t->flow[i].live) {
			live++;
			SL_ASSERT(t->flow[i].key != NULL);
			SL_ASSERT(rte_hash_lookup(t->hash, t->flow[i].key) == (int32_t)i);
		}
	}
	SL_ASSERT(live == s->flows && live <= t->flows);
	SL_ASSERT(s->added == s->aged + s->removed + s->flows);
	SL_ASSERT((uint64_t)rte_hash_count(t->hash) == live);
}
