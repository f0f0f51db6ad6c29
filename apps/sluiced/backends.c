/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/app.h"
#include "backends.h"
#include "daemon.h"
#include "forward.h"
#include "probe.h"
#include "sl_shared.h"

static bool
is_up(const struct backend *b)
{
	return b->probe == NULL || sl_load_relaxed(&b->probe->health.up);
}

struct backend *
backends_find(struct backends *b, const char *name)
{
	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (strcmp(b->backend[i].conf.name, name) == 0)
			return &b->backend[i];
	return NULL;
}

static const struct backend *
find_same(const struct backends *b, const struct conf_backend *conf)
{
	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (conf_backend_equal(&b->backend[i].conf, conf))
			return &b->backend[i];
	return NULL;
}

static bool
has_probe(const struct backends *b, const struct probe *p)
{
	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (b->backend[i].probe == p)
			return true;
	return false;
}

void
backends_drop(struct daemon *d, struct backends *b, const struct backends *other)
{
	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (!has_probe(other, b->backend[i].probe))
			probe_close(d, b->backend[i].probe);
	free(b);
}

static int
add(struct daemon *d, struct backends *b, const struct conf_backend *conf,
	const struct backend *former, bool share)
{
	struct backend *to = &b->backend[b->n];
	bool up = former == NULL || is_up(former);

	if (former != NULL)
		*to = *former;
	to->conf = *conf;
	b->n++;
	if (former != NULL && share && former->probe != NULL && b->check.kind != CONF_CHECK_NONE)
		return 0;
	to->probe = NULL;
	if (b->check.kind == CONF_CHECK_NONE)
		return 0;
	return probe_open(d, &b->from, conf, &b->check, up, &to->probe);
}

int
backends_make(struct daemon *d, const struct conf *conf, const struct conf_service *s,
	const struct backends *former, bool share, struct backends **out)
{
	struct backends *b = calloc(1, sizeof(*b));
	int ret = b != NULL ? 0 : -ENOMEM;

	if (b == NULL)
		return ret;
	b->check = s->forward.check;
	b->from = s->address;
	memcpy(b->service, s->name, sizeof(b->service));
	for (uint16_t i = 0; i < s->forward.nbackends && ret == 0; i++) {
		const struct conf_backend *c = &conf->backend[s->forward.backend[i]];

		ret = add(d, b, c, find_same(former, c), share);
	}
	if (ret != 0) {
		backends_drop(d, b, share ? former : NULL);
		return ret;
	}
	*out = b;
	return 0;
}

void
backends_bind(struct backends *b, struct forward *f)
{
	b->forward = f;
	for (uint16_t i = 0; i < b->n; i++) {
		struct forward_backend_stats stats = {.state = BALANCER_UP};
		struct backend *e = &b->backend[i];

		e->index = forward_find(f, e->conf.name);
		if (forward_backend_stats(f, e->index, &stats) == 0)
			e->state = stats.state;
	}
}

struct backends *
backends_publish(struct backends **place, struct backends *b)
{
	struct backends *former = *place; /* the caller alone writes it */

	sl_store_release(place, b); /* BE1 */
	return former;
}

void
backend_drain(struct backend *b, uint64_t now_ms, uint64_t ms)
{
	b->drained = true;
	b->cut = false;
	b->cut_ms = ms != 0 ? now_ms + ms : 0;
}

void
backend_undrain(struct backend *b)
{
	b->drained = false;
	b->cut = false;
	b->cut_ms = 0;
}

enum balancer_state
backend_wanted(const struct backend *b)
{
	if (!is_up(b) || b->cut)
		return BALANCER_DOWN;
	return b->drained ? BALANCER_DRAINING : BALANCER_UP;
}

const char *
backend_state_name(const struct backend *b)
{
	switch (b->state) {
	case BALANCER_DOWN:
		return "down";
	case BALANCER_DRAINING:
		return "draining";
	default:
		/* The balancer treats it so. */
		return b->conf.weight == 0 ? "draining" : "up";
	}
}

const char *
backend_why_name(const struct backend *b)
{
	enum health_why why =
		b->probe != NULL ? (enum health_why)sl_load_relaxed(&b->probe->health.why) : 0;

	if (b->state == BALANCER_DOWN && !is_up(b))
		return health_why_name(why);
	if (b->state != BALANCER_UP)
		return "drained";
	if (b->conf.weight == 0)
		return "weight";
	return b->probe != NULL ? health_why_name(why) : "unchecked";
}

uint32_t
backends_update(struct backends *b, uint64_t now_ms)
{
	uint32_t changed = 0;

	for (uint16_t i = 0; b != NULL && i < b->n; i++) {
		struct backend *e = &b->backend[i];
		enum balancer_state wanted;

		e->cut |= e->drained && e->cut_ms != 0 && now_ms >= e->cut_ms;
		wanted = backend_wanted(e);
		if (wanted == e->state || forward_set_state(b->forward, e->conf.name, wanted) != 0)
			continue;
		e->state = wanted;
		changed++;
		app_note("service %s: back end %s is %s: %s", b->service, e->conf.name,
			backend_state_name(e), backend_why_name(e));
	}
	return changed;
}

void
backends_turn(struct worker *w, struct backends *const *place, uint64_t now_ms)
{
	struct backends *b = sl_load_acquire(place); /* BE1 */
	bool changed = false;

	if (b == NULL || b->turn_ms == now_ms)
		return;
	b->turn_ms = now_ms;
	for (uint16_t i = 0; i < b->n; i++) {
		struct backend *e = &b->backend[i];

		if (e->probe != NULL)
			changed |= probe_turn(e->probe, w->index, &b->check,
				forward_unreachable_take(b->forward, e->index), now_ms);
	}
	if (changed)
		daemon_event(w->d);
}

void
backends_sums(const struct backends *b, struct service_sums *sums)
{
	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (b->backend[i].probe != NULL)
			probe_sums(b->backend[i].probe, sums);
}
