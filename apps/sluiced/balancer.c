/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>
#include <rte_malloc.h>

#include "balancer.h"
#include "sl_assert.h"
#include "sl_shared.h"

/* Everything is constant after create. */
struct balancer_view {
	struct maglev *table;
	uint32_t count;
	uint32_t seed;
	enum balancer_affinity affinity;
	bool last_resort;
	uint32_t *follow;     /* for each back end its generation if flows may stay, else 0 */
	uint32_t *generation; /* for each back end, 0 where there is none */
	uint8_t *state;
};

struct balancer {
	struct flowtab *flows;
	uint32_t turn; /* the next one, with affinity none */
	uint64_t counts[BALANCER_REASONS];
	uint64_t bound[MAGLEV_BACKENDS_MAX]; /* flows by index */
};

const char *
balancer_reason_name(enum balancer_reason reason)
{
	static const char *const names[BALANCER_REASONS] = {
		[BALANCER_KNOWN] = "known",
		[BALANCER_NEW] = "new",
		[BALANCER_MOVED] = "moved",
		[BALANCER_GUARDED] = "guarded",
		[BALANCER_FULL] = "full",
		[BALANCER_TURN] = "turn",
		[BALANCER_NO_BACKEND] = "no_backend",
	};

	return names[reason];
}

const char *
balancer_why_name(enum balancer_why why)
{
	static const char *const names[] = {
		[BALANCER_WHY_NOT] = "stays",
		[BALANCER_WHY_GONE] = "gone",
		[BALANCER_WHY_DOWN] = "down",
		[BALANCER_WHY_DRAINING] = "draining",
	};

	return names[why];
}

/* Somebody with weight 0 is kept from new flows as if he were draining. */
static enum balancer_state
state_of(const struct balancer_backend *b)
{
	return b->state == BALANCER_UP && b->weight == 0 ? BALANCER_DRAINING : b->state;
}

static int
check(const struct balancer_view_conf *conf)
{
	if (conf->count > MAGLEV_BACKENDS_MAX || (unsigned int)conf->affinity > BALANCER_NONE ||
		(unsigned int)conf->drain > BALANCER_MOVE)
		return -EINVAL;
	for (uint32_t i = 0; i < conf->count; i++) {
		const struct balancer_backend *b = &conf->backends[i];

		if (b->name != NULL &&
			(b->generation == 0 || (unsigned int)b->state > BALANCER_DOWN))
			return -EINVAL;
	}
	return 0;
}

static void
set_states(struct balancer_view *v, const struct balancer_view_conf *conf)
{
	v->last_resort = true;
	for (uint32_t i = 0; i < conf->count; i++) {
		const struct balancer_backend *b = &conf->backends[i];

		v->state[i] = BALANCER_DOWN;
		if (b->name == NULL)
			continue;
		v->state[i] = (uint8_t)state_of(b);
		v->generation[i] = b->generation;
		v->last_resort &= v->state[i] != BALANCER_UP;
	}
	for (uint32_t i = 0; i < conf->count; i++) {
		if (v->state[i] == BALANCER_UP ||
			(v->state[i] == BALANCER_DRAINING &&
				(conf->drain == BALANCER_KEEP || v->last_resort)))
			v->follow[i] = v->generation[i];
	}
}

static int
make_table(struct balancer_view *v, const struct balancer_view_conf *conf)
{
	enum balancer_state wanted = v->last_resort ? BALANCER_DRAINING : BALANCER_UP;
	struct maglev_conf table = {.slots = conf->slots, .seed = conf->seed};
	struct maglev_backend *members = calloc(conf->count + 1, sizeof(*members));
	int ret;

	if (members == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < conf->count; i++) {
		const struct balancer_backend *b = &conf->backends[i];
		uint32_t weight = v->state[i] != wanted ? 0 : b->weight;

		if (b->name == NULL)
			continue;
		/* Weight 0 that is all there is left. */
		if (v->state[i] == wanted && b->weight == 0)
			weight = 1;
		members[table.count++] = (struct maglev_backend){
			.name = b->name, .weight = weight, .index = (uint16_t)i};
	}
	table.backends = members;
	ret = maglev_create(&table, &v->table);
	free(members);
	return ret;
}

int
balancer_view_create(const struct balancer_view_conf *conf, struct balancer_view **out)
{
	int ret = check(conf);
	struct balancer_view *v;

	if (ret != 0)
		return ret;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	v->count = conf->count;
	v->seed = conf->seed;
	v->affinity = conf->affinity;
	v->follow = calloc(conf->count + 1, sizeof(*v->follow));
	v->generation = calloc(conf->count + 1, sizeof(*v->generation));
	v->state = calloc(conf->count + 1, sizeof(*v->state));
	ret = -ENOMEM;
	if (v->follow != NULL && v->generation != NULL && v->state != NULL) {
		set_states(v, conf);
		ret = make_table(v, conf);
	}
	if (ret != 0) {
		balancer_view_destroy(v);
		return ret;
	}
	*out = v;
	return 0;
}

void
balancer_view_destroy(struct balancer_view *view)
{
	if (view == NULL)
		return;
	maglev_destroy(view->table);
	free(view->follow);
	free(view->generation);
	free(view->state);
	free(view);
}

struct balancer_view *
balancer_view_publish(struct balancer_view **place, struct balancer_view *view)
{
	struct balancer_view *old = *place; /* the caller alone writes it */

	sl_store_release(place, view); /* LB1 */
	return old;
}

const struct balancer_view *
balancer_view_get(struct balancer_view *const *place)
{
	return sl_load_acquire(place); /* LB1 */
}

const struct maglev *
balancer_view_table(const struct balancer_view *view)
{
	return view->table;
}

static void
unbind(void *arg, const union flow_state *state)
{
	struct balancer *b = arg;

	sl_store_relaxed(&b->bound[state->backend], b->bound[state->backend] - 1);
}

int
balancer_create(const struct flowtab_conf *flows, struct balancer **out)
{
	struct flowtab_conf conf = *flows;
	struct balancer *b;
	int ret;

	if (conf.gone != NULL || conf.gone_arg != NULL)
		return -EINVAL;
	b = rte_zmalloc_socket("balancer", sizeof(*b), SL_CACHE_LINE, conf.socket);
	if (b == NULL)
		return -ENOMEM;
	conf.gone = unbind;
	conf.gone_arg = b;
	ret = flowtab_create(&conf, &b->flows);
	if (ret != 0) {
		rte_free(b);
		return ret;
	}
	*out = b;
	return 0;
}

void
balancer_destroy(struct balancer *b)
{
	if (b == NULL)
		return;
	flowtab_destroy(b->flows);
	rte_free(b);
}

uint32_t
balancer_turn(struct balancer *b, uint64_t now_ms)
{
	return flowtab_turn(b->flows, now_ms);
}

/* What flows of this service are told apart by. */
static struct flow_key
narrow(const struct balancer_view *v, const struct flow_key *key)
{
	struct flow_key k = *key;

	if (v->affinity == BALANCER_SOURCE)
		k.sport = 0;
	return k;
}

static uint32_t
hash(const struct balancer_view *v, const struct flow_key *key)
{
	return rte_jhash_32b((const uint32_t *)key, sizeof(*key) / sizeof(uint32_t), v->seed);
}

static const uint8_t reason_of[] = {
	[FLOWTAB_ADDED] = BALANCER_NEW,
	[FLOWTAB_KNOWN] = BALANCER_KNOWN,
	[FLOWTAB_GUARDED] = BALANCER_GUARDED,
	[FLOWTAB_FULL] = BALANCER_FULL,
	[FLOWTAB_CROWDED] = BALANCER_FULL,
};

static struct balancer_pick
decide_new(struct balancer *b, const struct balancer_view *v, const struct flow_key *key)
{
	struct balancer_pick p = {
		.backend = maglev_lookup(v->table, hash(v, key)), .reason = BALANCER_NO_BACKEND};
	union flow_state state = {.backend = p.backend};
	enum flowtab_added added;
	uint32_t id;

	if (p.backend == MAGLEV_NONE)
		return p;
	state.generation = v->generation[p.backend];
	added = flowtab_add(b->flows, key, &state, &id);
	if (added == FLOWTAB_ADDED)
		sl_counter_add(&b->bound[p.backend], 1);
	p.reason = reason_of[added];
	return p;
}

static struct balancer_pick
decide_known(
	struct balancer *b, const struct balancer_view *v, const struct flow_key *key, uint32_t id)
{
	const union flow_state *old = flowtab_state(b->flows, id);
	struct balancer_pick p = {.backend = old->backend, .reason = BALANCER_KNOWN};
	union flow_state state;

	if (SL_LIKELY(flow_may_stay(old, v->follow, v->count)))
		return p;
	p.backend = maglev_lookup(v->table, hash(v, key));
	if (p.backend == MAGLEV_NONE) {
		/* It keeps what it is bound to: that may come back before anything else does. */
		p.reason = BALANCER_NO_BACKEND;
		return p;
	}
	state = (union flow_state){.backend = p.backend, .generation = v->generation[p.backend]};
	flowtab_rebind(b->flows, id, &state);
	sl_counter_add(&b->bound[p.backend], 1);
	p.reason = BALANCER_MOVED;
	return p;
}

static void
deal_out(struct balancer *b, const struct balancer_view *v, uint16_t n, struct balancer_pick *picks)
{
	for (uint16_t i = 0; i < n; i++) {
		if (b->turn >= v->table->slots) /* also when the view is another one now */
			b->turn = 0;
		picks[i].backend = maglev_turn(v->table, b->turn++);
		picks[i].reason =
			picks[i].backend == MAGLEV_NONE ? BALANCER_NO_BACKEND : BALANCER_TURN;
	}
}

static void
decide(struct balancer *b, const struct balancer_view *v, const struct flow_key *const *keys,
	uint16_t n, struct balancer_pick *picks)
{
	uint32_t ids[FLOWTAB_BURST];

	flowtab_lookup_burst(b->flows, keys, n, ids);
	for (uint16_t i = 0; i < n; i++) {
		if (ids[i] == FLOWTAB_NONE)
			picks[i] = decide_new(b, v, keys[i]);
		else if (i > 0 && ids[i] == ids[i - 1] && picks[i - 1].reason == BALANCER_KNOWN)
			picks[i] = picks[i - 1];
		else
			picks[i] = decide_known(b, v, keys[i], ids[i]);
	}
}

/* Datagrams with one reason mostly come in runs. */
static void
count(struct balancer *b, const struct balancer_pick *picks, uint16_t n)
{
	uint16_t i = 0, first;

	while (i < n) {
		first = i;
		while (i < n && picks[i].reason == picks[first].reason)
			i++;
		sl_counter_add(&b->counts[picks[first].reason], (uint64_t)(i - first));
	}
}

static void
decide_by_source(struct balancer *b, const struct balancer_view *v,
	const struct flow_key *const *keys, uint16_t n, struct balancer_pick *picks)
{
	struct flow_key narrowed[FLOWTAB_BURST];
	const struct flow_key *used[FLOWTAB_BURST];

	if (n == 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		narrowed[i] = narrow(v, keys[i]);
		used[i] = &narrowed[i];
		if (i > 0 && memcmp(used[i], used[i - 1], sizeof(*used[i])) == 0)
			used[i] = used[i - 1];
	}
	decide(b, v, used, n, picks);
}

void
balancer_pick_burst(struct balancer *b, const struct balancer_view *view,
	const struct flow_key *const *keys, uint16_t n, struct balancer_pick *picks)
{
	SL_DEBUG_ASSERT(n <= FLOWTAB_BURST);
	if (view->affinity == BALANCER_NONE)
		deal_out(b, view, n, picks);
	else if (view->affinity == BALANCER_SOURCE)
		decide_by_source(b, view, keys, n, picks);
	else
		decide(b, view, keys, n, picks);
	count(b, picks, n);
}

static enum balancer_why
why_not(const struct balancer_view *v, const union flow_state *state)
{
	if (flow_may_stay(state, v->follow, v->count))
		return BALANCER_WHY_NOT;
	if (state->backend >= v->count || v->generation[state->backend] != state->generation)
		return BALANCER_WHY_GONE;
	return v->state[state->backend] == BALANCER_DOWN ? BALANCER_WHY_DOWN
							 : BALANCER_WHY_DRAINING;
}

static void
explain_turn(
	const struct balancer *b, const struct balancer_view *v, struct balancer_explanation *e)
{
	e->slot = b->turn < v->table->slots ? b->turn : 0;
	e->slot_backend = maglev_turn(v->table, e->slot);
	e->pick.backend = e->slot_backend;
	e->pick.reason = e->slot_backend == MAGLEV_NONE ? BALANCER_NO_BACKEND : BALANCER_TURN;
}

void
balancer_explain(const struct balancer *b, const struct balancer_view *view,
	const struct flow_key *key, struct balancer_explanation *e)
{
	struct flow_key k = narrow(view, key);
	const union flow_state *state;
	uint32_t id;

	*e = (struct balancer_explanation){.was = MAGLEV_NONE, .last_resort = view->last_resort};
	if (view->affinity == BALANCER_NONE) {
		explain_turn(b, view, e);
		return;
	}
	e->hash = hash(view, &k);
	e->slot = maglev_slot(view->table, e->hash);
	e->slot_backend = view->table->slot[e->slot];
	e->pick = (struct balancer_pick){.backend = e->slot_backend, .reason = BALANCER_NO_BACKEND};
	id = flowtab_peek(b->flows, &k);
	if (id != FLOWTAB_NONE) {
		state = flowtab_state(b->flows, id);
		e->was = state->backend;
		e->why = why_not(view, state);
		if (e->why == BALANCER_WHY_NOT)
			e->pick = (struct balancer_pick){state->backend, BALANCER_KNOWN};
		else if (e->slot_backend != MAGLEV_NONE)
			e->pick.reason = BALANCER_MOVED;
	} else if (e->slot_backend != MAGLEV_NONE) {
		e->pick.reason = reason_of[flowtab_would_add(b->flows)];
	}
}

void
balancer_counts(const struct balancer *b, uint64_t *counts)
{
	for (int i = 0; i < BALANCER_REASONS; i++)
		counts[i] = sl_load_relaxed(&b->counts[i]);
}

uint64_t
balancer_flows(const struct balancer *b, uint16_t backend)
{
	return backend < MAGLEV_BACKENDS_MAX ? sl_load_relaxed(&b->bound[backend]) : 0;
}

struct flowtab *
balancer_flowtab(struct balancer *b)
{
	return b->flows;
}
