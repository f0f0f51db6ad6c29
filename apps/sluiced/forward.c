/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_random.h>

#include "forward_priv.h"

/* Of a flow: see flowtab.h. */
#define FLOW_BYTES 150u
/* Of a service: itself, and back ends now and next. */
#define CLAIMS_MAX (1 + 2 * FORWARD_BACKENDS)

/* ---- views ---- */

static void
view_destroy(struct forward_view *v)
{
	if (v == NULL)
		return;
	balancer_view_destroy(v->balancer);
	free(v);
}

static int
view_make(const struct conf_forward *conf, const struct forward_backend *backend,
	struct forward_view **out)
{
	struct balancer_backend list[FORWARD_BACKENDS] = {0};
	struct balancer_view_conf vc = {.backends = list,
		.count = FORWARD_BACKENDS,
		.slots = conf->slots,
		.seed = conf->seed,
		.affinity = conf->affinity,
		.drain = conf->drain};
	struct forward_view *v = calloc(1, sizeof(*v));
	int ret;

	if (v == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < FORWARD_BACKENDS; i++) {
		const struct forward_backend *b = &backend[i];

		if (b->name[0] == '\0')
			continue;
		list[i] = (struct balancer_backend){.name = b->name,
			.weight = b->weight,
			.generation = b->generation,
			.state = b->state};
		v->end[i] = b->end;
		v->generation[i] = b->generation;
	}
	ret = balancer_view_create(&vc, &v->balancer);
	if (ret != 0) {
		free(v);
		return ret;
	}
	*out = v;
	return 0;
}

/* Let workers see it, and free the one before when they no longer do. */
static void
view_publish(struct forward *f, struct forward_view *v)
{
	struct forward_view *old = f->view; /* control alone writes it */

	sl_store_release(&f->view, v); /* LB1 */
	if (old == NULL)
		return;
	sl_inet_synchronize(f->d->inet, SL_INET_NO_WORKER);
	view_destroy(old);
}

/* ---- back ends ---- */

static bool
same(const struct forward_backend *b, const struct conf_backend *c)
{
	return strcmp(b->name, c->name) == 0 &&
	       memcmp(&b->end.addr, &c->addr, sizeof(c->addr)) == 0 &&
	       b->end.port == rte_cpu_to_be_16(c->udp_port);
}

/* Those that stay keep their places; they are marked. */
static void
keep_places(struct forward_backend *next, const struct forward_backend *now,
	const struct conf *conf, const struct conf_service *s, bool *placed)
{
	for (uint16_t k = 0; k < s->forward.nbackends; k++) {
		const struct conf_backend *c = &conf->backend[s->forward.backend[k]];

		for (uint16_t i = 0; i < FORWARD_BACKENDS; i++) {
			if (!same(&now[i], c))
				continue;
			next[i] = now[i];
			next[i].weight = c->weight;
			placed[k] = true;
		}
	}
}

/* Back ends as the file has them, with the places of those that were there before. */
static void
place(struct forward_backend *next, const struct forward *f, const struct conf *conf,
	const struct conf_service *s, uint32_t *generations)
{
	bool placed[FORWARD_BACKENDS] = {false};
	uint16_t i = 0;

	memset(next, 0, FORWARD_BACKENDS * sizeof(*next));
	keep_places(next, f->backend, conf, s, placed);
	for (uint16_t k = 0; k < s->forward.nbackends; k++) {
		const struct conf_backend *c = &conf->backend[s->forward.backend[k]];

		if (placed[k])
			continue;
		while (next[i].name[0] != '\0')
			i++;
		next[i] = (struct forward_backend){
			.end = {.addr = c->addr, .port = rte_cpu_to_be_16(c->udp_port)},
			.weight = c->weight,
			.generation = ++*generations,
			.state = BALANCER_UP};
		memcpy(next[i].name, c->name, sizeof(next[i].name));
	}
}

int
forward_prepare(struct forward *f, const struct conf *conf, const struct conf_service *s)
{
	struct forward_next *next = calloc(1, sizeof(*next));
	int ret;

	if (next == NULL)
		return -ENOMEM;
	next->generations = f->generations;
	next->conf = s->forward;
	if (f->view != NULL) { /* made for good */
		next->conf.slots = f->conf.slots;
		next->conf.seed = f->conf.seed;
	}
	place(next->backend, f, conf, s, &next->generations);
	ret = view_make(&next->conf, next->backend, &next->view);
	if (ret != 0) {
		free(next);
		return ret;
	}
	f->next = next;
	return 0;
}

void
forward_commit(struct forward *f)
{
	struct forward_next *next = f->next;

	for (uint16_t i = 0; i < FORWARD_BACKENDS; i++) {
		if (next->backend[i].generation != f->backend[i].generation)
			sl_store_relaxed(&f->unreachable[i], 0u);
	}
	memcpy(f->backend, next->backend, sizeof(f->backend));
	f->generations = next->generations;
	f->conf = next->conf;
	f->next = NULL;
	view_publish(f, next->view);
	free(next);
}

void
forward_abandon(struct forward *f)
{
	if (f->next == NULL)
		return;
	view_destroy(f->next->view);
	free(f->next);
	f->next = NULL;
}

/* ---- life ---- */

static void
workers_destroy(struct forward *f)
{
	for (uint16_t i = 0; i < f->nworkers; i++)
		balancer_destroy(f->worker[i].balancer);
	free(f->worker);
}

static int
workers_create(struct forward *f, const struct conf_forward *conf)
{
	struct flowtab_conf flows = {.flows = conf->flows,
		.idle_ms = conf->idle_ms,
		.inserts_per_s = conf->inserts_per_s,
		.socket = -1};
	size_t bytes = f->d->nworkers * sizeof(*f->worker);
	int ret = 0;

	f->worker = aligned_alloc(SL_CACHE_LINE, bytes);
	if (f->worker == NULL)
		return -ENOMEM;
	memset(f->worker, 0, bytes);
	f->nworkers = f->d->nworkers;
	for (uint16_t i = 0; i < f->nworkers && ret == 0; i++) {
		flows.seed = (uint32_t)rte_rand();
		ret = balancer_create(&flows, &f->worker[i].balancer);
	}
	return ret;
}

int
forward_open(struct daemon *d, const struct conf *conf, const struct conf_service *s,
	struct forward **out)
{
	struct forward *f = calloc(1, sizeof(*f));
	int ret;

	if (f == NULL)
		return -ENOMEM;
	f->d = d;
	f->self = (struct forward_end){.addr = s->address, .port = rte_cpu_to_be_16(s->udp_port)};
	f->to = (struct forward_owner){.f = f, .backend = FORWARD_SERVICE};
	for (uint16_t i = 0; i < FORWARD_BACKENDS; i++)
		f->from[i] = (struct forward_owner){.f = f, .backend = i};
	ret = workers_create(f, &s->forward);
	if (ret == 0)
		ret = forward_prepare(f, conf, s);
	if (ret != 0) {
		workers_destroy(f);
		free(f);
		return ret;
	}
	forward_commit(f);
	*out = f;
	return 0;
}

void
forward_close(struct daemon *d, struct forward *f)
{
	if (f == NULL)
		return;
	d->gone_claimed += forward_entered(f);
	view_destroy(f->view);
	workers_destroy(f);
	free(f);
}

/* ---- claims ---- */

/* A list of claims that is being made. */
struct claim_list {
	struct sl_inet_claim *claim;
	uint32_t n;
};

/* A back end that goes from one service to another is in both for a while: the first one has it. */
static void
add_claim(struct claim_list *l, enum sl_inet_claim_kind kind, const struct forward_end *end,
	struct forward_owner *owner)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct sl_inet_claim *c = &l->claim[i];

		if (c->kind == kind && c->udp_port == end->port &&
			memcmp(&c->addr, &end->addr, sizeof(c->addr)) == 0)
			return;
	}
	l->claim[l->n++] = (struct sl_inet_claim){
		.kind = kind, .addr = end->addr, .udp_port = end->port, .owner = owner};
}

static void
add_backends(struct claim_list *l, struct forward *f, const struct forward_backend *backend)
{
	for (uint16_t i = 0; i < FORWARD_BACKENDS; i++)
		if (backend[i].name[0] != '\0')
			add_claim(l, SL_CLAIM_FROM, &backend[i].end, &f->from[i]);
}

int
forward_claims_make(
	struct daemon *d, struct forward *const *f, uint16_t n, struct sl_inet_claims **out)
{
	struct claim_list l = {.claim = calloc((size_t)n * CLAIMS_MAX + 1, sizeof(*l.claim))};
	int ret;

	if (l.claim == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < n; i++) {
		add_claim(&l, SL_CLAIM_TO, &f[i]->self, &f[i]->to);
		add_backends(&l, f[i], f[i]->backend);
	}
	for (uint16_t i = 0; i < n; i++)
		if (f[i]->next != NULL)
			add_backends(&l, f[i], f[i]->next->backend);
	ret = sl_inet_claims_create(d->inet, l.claim, l.n, &forward_ops, NULL, out);
	free(l.claim);
	return ret;
}

void
forward_claims_publish(struct daemon *d, struct sl_inet_claims *claims)
{
	struct sl_inet_claims *old = sl_inet_claims_publish(d->inet, claims);

	sl_inet_synchronize(d->inet, SL_INET_NO_WORKER);
	sl_inet_claims_destroy(old);
}

void
forward_claims_drop(struct sl_inet_claims *claims)
{
	sl_inet_claims_destroy(claims);
}

/* ---- what control asks ---- */

uint16_t
forward_find(const struct forward *f, const char *backend)
{
	for (uint16_t i = 0; i < FORWARD_BACKENDS; i++)
		if (f->backend[i].name[0] != '\0' && strcmp(f->backend[i].name, backend) == 0)
			return i;
	return MAGLEV_NONE;
}

int
forward_set_state(struct forward *f, const char *backend, enum balancer_state state)
{
	uint16_t i = forward_find(f, backend);
	enum balancer_state before;
	struct forward_view *v;
	int ret;

	if (i == MAGLEV_NONE)
		return -ENOENT;
	before = f->backend[i].state;
	if (before == state)
		return 0;
	f->backend[i].state = state;
	ret = view_make(&f->conf, f->backend, &v);
	if (ret != 0) {
		f->backend[i].state = before;
		return ret;
	}
	view_publish(f, v);
	return 0;
}

uint64_t
forward_flows(const struct forward *f, uint16_t backend)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < f->nworkers; i++)
		sum += balancer_flows(f->worker[i].balancer, backend);
	return sum;
}

static uint32_t
slots_of(const struct forward *f, const char *name)
{
	const struct maglev *m = balancer_view_table(f->view->balancer);

	for (uint32_t i = 0; i < m->members; i++)
		if (strcmp(m->member[i].name, name) == 0)
			return m->member[i].share;
	return 0;
}

int
forward_backend_stats(
	const struct forward *f, uint16_t backend, struct forward_backend_stats *stats)
{
	if (backend >= FORWARD_BACKENDS || f->backend[backend].name[0] == '\0')
		return -ENOENT;
	*stats = (struct forward_backend_stats){.flows = forward_flows(f, backend),
		.state = f->backend[backend].state,
		.slots = slots_of(f, f->backend[backend].name)};
	for (uint16_t i = 0; i < f->nworkers; i++) {
		stats->picked += sl_load_relaxed(&f->worker[i].picked[backend]);
		stats->replies += sl_load_relaxed(&f->worker[i].replies[backend]);
	}
	return 0;
}

static const char *
name_of(const struct forward *f, uint16_t backend)
{
	return backend < FORWARD_BACKENDS && f->backend[backend].name[0] != '\0'
		       ? f->backend[backend].name
		       : NULL;
}

void
forward_explain(struct forward *f, const struct flow_key *key, struct forward_explanation *out)
{
	memset(out, 0, sizeof(*out));
	for (uint16_t i = 0; i < f->nworkers; i++) {
		struct balancer_explanation e;

		balancer_explain(f->worker[i].balancer, f->view->balancer, key, &e);
		if (i > 0 && e.was == MAGLEV_NONE)
			continue;
		out->e = e;
		out->worker = i;
		if (e.was != MAGLEV_NONE)
			break;
	}
	out->backend = name_of(f, out->e.pick.backend);
	out->was = name_of(f, out->e.was);
	out->slot = name_of(f, out->e.slot_backend);
}

bool
forward_unreachable_take(struct forward *f, uint16_t backend)
{
	if (backend >= FORWARD_BACKENDS || sl_load_relaxed(&f->unreachable[backend]) == 0)
		return false;
	return sl_exchange_acq_rel(&f->unreachable[backend], 0u) != 0; /* FW1 */
}

void
forward_reasons(const struct forward *f, uint64_t *reasons)
{
	uint64_t counts[BALANCER_REASONS];

	memset(reasons, 0, BALANCER_REASONS * sizeof(*reasons));
	for (uint16_t i = 0; i < f->nworkers; i++) {
		balancer_counts(f->worker[i].balancer, counts);
		for (int k = 0; k < BALANCER_REASONS; k++)
			reasons[k] += counts[k];
	}
}

void
forward_outcomes(const struct forward *f, uint64_t *outcome)
{
	for (uint16_t i = 0; i < f->nworkers; i++)
		for (int k = 0; k < SERVICE_OUTCOMES; k++)
			outcome[k] += sl_load_relaxed(&f->worker[i].cell.outcome[k]);
}

uint64_t
forward_entered(const struct forward *f)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < f->nworkers; i++)
		sum += sl_load_relaxed(&f->worker[i].entered);
	return sum;
}

void
forward_worker_counters(const struct forward *f, uint16_t worker, struct forward_counters *counters)
{
	const struct forward_worker *fw = &f->worker[worker];

	counters->entered = fw->entered;
	memcpy(counters->outcome, fw->cell.outcome, sizeof(counters->outcome));
	memcpy(counters->picked, fw->picked, sizeof(counters->picked));
	memcpy(counters->replies, fw->replies, sizeof(counters->replies));
	balancer_counts(fw->balancer, counters->reason);
}

uint64_t
forward_worker_entered(const struct forward *f, uint16_t worker)
{
	return f->worker[worker].entered;
}

void
forward_worker_explain(const struct forward *f, uint16_t worker, const struct flow_key *key,
	struct balancer_explanation *e)
{
	const struct forward_view *view = sl_load_acquire(&f->view); /* LB1 */

	balancer_explain(f->worker[worker].balancer, view->balancer, key, e);
}

void
forward_worker_backend(const struct forward *f, uint16_t backend, struct sl_addr *addr)
{
	const struct forward_view *view = sl_load_acquire(&f->view); /* LB1 */

	*addr = view->end[backend].addr;
}

size_t
forward_memory(const struct conf_service *s, uint16_t workers)
{
	size_t flows = s->forward.flows != 0 ? s->forward.flows : 65536;

	/* Two tables of slots and turns, while one takes the place of the other. */
	return workers * (flows * FLOW_BYTES + sizeof(struct forward_worker)) +
	       2 * (size_t)s->forward.slots * 2 * sizeof(uint16_t);
}
