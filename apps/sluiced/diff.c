/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "daemon.h"
#include "diff_priv.h"
#include "forward.h"

/* How a load balancer is, or would be. */
struct side {
	const struct conf_forward *forward;
	uint32_t n;
	struct balancer_backend backend[CONF_FORWARD_BACKENDS_MAX];
	const struct conf_backend *conf[CONF_FORWARD_BACKENDS_MAX];
	struct balancer_view *view;
};

static const struct conf_service *
find_service(const struct conf *conf, const char *name)
{
	for (uint16_t i = 0; i < conf->nservices; i++)
		if (strcmp(conf->service[i].name, name) == 0)
			return &conf->service[i];
	return NULL;
}

static const struct service *
running(const struct daemon *d, const char *name)
{
	for (uint16_t i = 0; i < d->table->n; i++)
		if (strcmp(d->table->service[i]->conf.name, name) == 0)
			return d->table->service[i];
	return NULL;
}

static int
side_make(struct side *side)
{
	struct balancer_view_conf conf = {.backends = side->backend,
		.count = side->n,
		.slots = side->forward->slots,
		.seed = side->forward->seed,
		.affinity = side->forward->affinity,
		.drain = side->forward->drain};

	for (uint32_t i = 0; i < side->n; i++) {
		side->backend[i].name = side->conf[i]->name;
		side->backend[i].weight = side->conf[i]->weight;
		side->backend[i].generation = 1;
	}
	return balancer_view_create(&conf, &side->view);
}

static int
side_now(const struct service *s, struct side *side)
{
	*side = (struct side){.forward = &s->conf.forward, .n = s->backends->n};
	for (uint32_t i = 0; i < side->n; i++) {
		side->conf[i] = &s->backends->backend[i].conf;
		side->backend[i].state = s->backends->backend[i].state;
	}
	return side_make(side);
}

static const struct backend *
find_same(const struct service *s, const struct conf_backend *b)
{
	for (uint16_t i = 0; s != NULL && s->backends != NULL && i < s->backends->n; i++)
		if (conf_backend_equal(&s->backends->backend[i].conf, b))
			return &s->backends->backend[i];
	return NULL;
}

static int
side_next(const struct service *s, const struct conf *conf, const struct conf_service *c,
	struct side *side)
{
	*side = (struct side){.forward = &c->forward, .n = c->forward.nbackends};
	for (uint32_t i = 0; i < side->n; i++) {
		const struct conf_backend *b = &conf->backend[c->forward.backend[i]];
		const struct backend *e = find_same(s, b);

		side->conf[i] = b;
		side->backend[i].state = e != NULL ? e->state : BALANCER_UP;
	}
	return side_make(side);
}

static uint32_t
share_of(const struct side *side, const char *name)
{
	const struct maglev *m = balancer_view_table(side->view);

	for (uint32_t i = 0; i < m->members; i++)
		if (strcmp(m->member[i].name, name) == 0)
			return m->member[i].share;
	return 0;
}

static enum balancer_state
state_of(const struct balancer_backend *b)
{
	return b->state == BALANCER_UP && b->weight == 0 ? BALANCER_DRAINING : b->state;
}

/* May flows stay with a back end of that side? As balancer.h says. */
static bool
may_stay(const struct side *side, const struct conf_backend *b)
{
	bool last_resort = true, keep = side->forward->drain == BALANCER_KEEP;
	enum balancer_state state = BALANCER_DOWN;

	for (uint32_t i = 0; i < side->n; i++) {
		last_resort &= state_of(&side->backend[i]) != BALANCER_UP;
		if (conf_backend_equal(side->conf[i], b))
			state = state_of(&side->backend[i]);
	}
	return state == BALANCER_UP || (state == BALANCER_DRAINING && (keep || last_resort));
}

static const struct conf_backend *
find_conf(const struct side *side, const char *name)
{
	for (uint32_t i = 0; i < side->n; i++)
		if (strcmp(side->conf[i]->name, name) == 0)
			return side->conf[i];
	return NULL;
}

/* Back ends that change, each a row; their flows go into the service's row. Only indexes of rows
 * hold: they move when there are more. */
static int
diff_now(const struct service *s, const struct side *now, const struct side *next, bool all,
	struct diff *diff, uint32_t row)
{
	for (uint32_t i = 0; i < now->n; i++) {
		const struct backend *e = &s->backends->backend[i];
		const struct conf_backend *to = find_conf(next, e->conf.name);
		uint64_t flows = forward_flows(s->forward, e->index);
		bool moves = all || (may_stay(now, &e->conf) && !may_stay(next, &e->conf));
		struct diff_row *r;

		diff->row[row].flows += flows;
		diff->row[row].flows_moved += moves ? flows : 0;
		if (to != NULL && conf_backend_equal(&e->conf, to) && e->conf.weight == to->weight)
			continue;
		r = diff_add(diff, "backend", to == NULL ? "removed" : "changed", s->conf.name,
			e->conf.name);
		if (r == NULL)
			return -ENOMEM;
		r->flows = flows;
		r->flows_moved = moves ? flows : 0;
		if (to == NULL)
			continue;
		r->slots = share_of(next, to->name);
		diff_backend_keys(r, &e->conf, to);
	}
	return 0;
}

static int
diff_added(const struct side *now, const struct side *next, const char *service, struct diff *diff)
{
	for (uint32_t i = 0; i < next->n; i++) {
		struct diff_row *r;

		if (now != NULL && find_conf(now, next->conf[i]->name) != NULL)
			continue;
		r = diff_add(diff, "backend", "added", service, next->conf[i]->name);
		if (r == NULL)
			return -ENOMEM;
		r->slots = share_of(next, next->conf[i]->name);
	}
	return 0;
}

/* A service that balances now and will. `all`: it is made anew, or flows are told apart in another
 * way, so that no flow is known any more. */
static int
diff_balancer(const struct service *s, const struct conf *conf, const struct conf_service *c,
	bool all, struct diff *diff, uint32_t row)
{
	struct maglev_diff slots;
	struct side now, next;
	int ret = side_now(s, &now);

	if (ret != 0)
		return ret;
	ret = side_next(s, conf, c, &next);
	if (ret == 0) {
		struct diff_row *r = &diff->row[row];

		all |= now.forward->affinity != next.forward->affinity;
		r->slots = r->slots_moved = next.forward->slots;
		ret = maglev_diff(
			balancer_view_table(now.view), balancer_view_table(next.view), &slots);
		if (ret == 0)
			r->slots_moved = slots.moved;
		ret = ret == -ENOMEM ? ret : diff_now(s, &now, &next, all, diff, row);
		if (ret == 0)
			ret = diff_added(&now, &next, c->name, diff);
		balancer_view_destroy(next.view);
	}
	balancer_view_destroy(now.view);
	return ret;
}

/* A service that balances and did not. */
static int
diff_new_balancer(
	const struct conf *conf, const struct conf_service *c, struct diff *diff, uint32_t row)
{
	struct side next;
	int ret = side_next(NULL, conf, c, &next);

	if (ret != 0)
		return ret;
	diff->row[row].slots = diff->row[row].slots_moved = c->forward.slots;
	ret = diff_added(NULL, &next, c->name, diff);
	balancer_view_destroy(next.view);
	return ret;
}

/* A service that does not balance any more. */
static void
diff_old_balancer(const struct service *s, struct diff_row *r)
{
	r->slots = s->conf.forward.slots;
	for (uint16_t i = 0; i < s->backends->n; i++)
		r->flows += forward_flows(s->forward, s->backends->backend[i].index);
	r->flows_moved = r->flows;
}

/* A service that is in both. */
static int
diff_service(const struct daemon *d, const struct conf *next, const struct service *s,
	const struct conf_service *c, struct diff *diff)
{
	bool remade = !service_stays(&s->conf, c);
	uint32_t row = diff->n;
	struct diff_row *r;

	if (conf_service_equal(&s->conf, c) &&
		(c->kind != CONF_FORWARD || conf_forward_equal(&d->conf, &s->conf, next, c)))
		return 0;
	r = diff_add(diff, "service", remade ? "remade" : "changed", c->name, c->name);
	if (r == NULL)
		return -ENOMEM;
	diff_service_keys(r, &s->conf, c);
	if (s->forward != NULL && c->kind == CONF_FORWARD)
		return diff_balancer(s, next, c, remade, diff, row);
	if (s->forward != NULL)
		diff_old_balancer(s, r);
	return c->kind == CONF_FORWARD ? diff_new_balancer(next, c, diff, row) : 0;
}

int
diff_make(const struct daemon *d, const struct conf *next, struct diff *diff)
{
	int ret;

	diff->n = 0;
	ret = diff_settings(&d->conf, next, diff);
	if (ret == 0)
		ret = diff_routes(&d->conf, next, diff);
	if (ret == 0)
		ret = diff_bridges(&d->conf, next, diff);
	for (uint16_t i = 0; i < d->table->n && ret == 0; i++) {
		const struct service *s = d->table->service[i];
		struct diff_row *r;

		if (find_service(next, s->conf.name) != NULL)
			continue;
		r = diff_add(diff, "service", "removed", s->conf.name, s->conf.name);
		if (r == NULL)
			ret = -ENOMEM;
		else if (s->forward != NULL)
			diff_old_balancer(s, r);
	}
	for (uint16_t i = 0; i < next->nservices && ret == 0; i++) {
		const struct conf_service *c = &next->service[i];
		const struct service *s = running(d, c->name);
		uint32_t row = diff->n;

		if (s != NULL)
			ret = diff_service(d, next, s, c, diff);
		else if (diff_add(diff, "service", "added", c->name, c->name) == NULL)
			ret = -ENOMEM;
		else if (c->kind == CONF_FORWARD)
			ret = diff_new_balancer(next, c, diff, row);
	}
	return ret;
}
