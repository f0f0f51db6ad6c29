/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_log.h>

#include "backends.h"
#include "daemon.h"
#include "forward.h"
#include "notify.h"
#include "sl_errno.h"

/* A table that is being made, and what of it is new. */
struct draft {
	struct service_table *table;
	bool fresh[CONF_SERVICES_MAX];		      /* opened for this table */
	struct backends *backends[CONF_SERVICES_MAX]; /* that are to replace those of the service */
	struct sl_inet_claims *claims;		      /* NULL: they stay as they are */
};

static struct service *
find(const struct service_table *t, const char *name)
{
	for (uint16_t i = 0; t != NULL && i < t->n; i++)
		if (strcmp(t->service[i]->conf.name, name) == 0)
			return t->service[i];
	return NULL;
}

/* A reflector is made for good, with its sessions: does it stay what it is, or none? */
static bool
same_reflector(const struct conf_service *a, const struct conf_service *b)
{
	if (a->kind != CONF_REFLECT && b->kind != CONF_REFLECT)
		return true;
	return a->kind == b->kind && a->sequence == b->sequence && a->format == b->format;
}

/* A load balancer is made for some of its settings; others it takes over. */
static bool
same_balancer(const struct conf_service *a, const struct conf_service *b)
{
	if (a->kind != CONF_FORWARD && b->kind != CONF_FORWARD)
		return true;
	return a->kind == b->kind && !conf_forward_remade(&a->forward, &b->forward);
}

bool
service_stays(const struct conf_service *a, const struct conf_service *b)
{
	return a->udp_port == b->udp_port && a->has_address == b->has_address &&
	       memcmp(&a->address, &b->address, sizeof(a->address)) == 0 &&
	       strcmp(a->port, b->port) == 0 && same_reflector(a, b) && same_balancer(a, b) &&
	       conf_mirror_equal(a, b);
}

static void
draft_drop(struct daemon *d, struct draft *draft)
{
	if (draft->claims != NULL)
		forward_claims_drop(draft->claims);
	for (uint16_t i = 0; i < draft->table->n; i++) {
		struct service *s = draft->table->service[i];

		if (draft->backends[i] != NULL) {
			forward_abandon(s->forward);
			backends_drop(d, draft->backends[i], s->backends);
		}
		if (draft->fresh[i])
			service_close(d, s);
	}
	free(draft->table);
}

/* A load balancer that stays, and whose settings or back ends differ. */
static int
draft_backends(struct daemon *d, const struct conf *conf, struct draft *draft, uint16_t i)
{
	const struct conf_service *c = &conf->service[i];
	struct service *s = draft->table->service[i];

	if (s->forward == NULL || draft->fresh[i] ||
		conf_forward_equal(&d->conf, &s->conf, conf, c))
		return 0;
	return backends_make(d, conf, c, s->backends, true, &draft->backends[i]);
}

static int
draft_forward(const struct conf *conf, struct draft *draft, uint16_t i)
{
	if (draft->backends[i] == NULL)
		return 0;
	return forward_prepare(draft->table->service[i]->forward, conf, &conf->service[i]);
}

static bool
any_forward(const struct service_table *t)
{
	return t != NULL && t->forwards;
}

/* What of the wire is for the load balancers of a table. */
static int
make_claims(struct daemon *d, const struct service_table *t, struct sl_inet_claims **claims)
{
	struct forward *forward[CONF_SERVICES_MAX];
	uint16_t n = 0;

	for (uint16_t i = 0; i < t->n; i++)
		if (t->service[i]->forward != NULL)
			forward[n++] = t->service[i]->forward;
	return forward_claims_make(d, forward, n, claims);
}

static int
draft_claims(struct daemon *d, struct draft *draft)
{
	for (uint16_t i = 0; i < draft->table->n; i++)
		draft->table->forwards |= draft->table->service[i]->forward != NULL;
	if (!draft->table->forwards && !any_forward(d->table))
		return 0;
	return make_claims(d, draft->table, &draft->claims);
}

/* All of a load balancer that may fail. */
static bool
draft_balancers(struct daemon *d, const struct conf *conf, struct draft *draft, struct mistakes *m)
{
	uint32_t line = 0;
	int ret = 0;

	for (uint16_t i = 0; i < draft->table->n && ret == 0; i++) {
		line = conf->service[i].line;
		ret = draft_backends(d, conf, draft, i);
	}
	for (uint16_t i = 0; i < draft->table->n && ret == 0; i++) {
		line = conf->service[i].line;
		ret = draft_forward(conf, draft, i);
	}
	if (ret == 0) {
		line = 0;
		ret = draft_claims(d, draft);
	}
	if (ret != 0)
		mistake(m, line, "back ends cannot be taken over: %s.", sl_strerror(ret));
	return ret == 0;
}

/* Open what is new; nothing that is there changes yet. */
static bool
draft_make(struct daemon *d, const struct conf *conf, struct draft *draft, struct mistakes *m)
{
	struct service_table *t = calloc(1, sizeof(*t));

	memset(draft, 0, sizeof(*draft));
	draft->table = t;
	if (t == NULL) {
		mistake(m, 0, "cannot be applied: no memory.");
		return false;
	}
	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *c = &conf->service[i];
		struct service *s = find(d->table, c->name);

		if (s == NULL || !service_stays(&s->conf, c)) {
			s = service_open(d, conf, c, i, s, m);
			if (s == NULL) {
				draft_drop(d, draft);
				return false;
			}
			draft->fresh[i] = true;
		}
		t->service[t->n++] = s;
		if (c->kind == CONF_ECHO)
			t->echo[t->nechos++] = rte_cpu_to_be_16(c->udp_port);
		t->reflects |= c->kind == CONF_REFLECT;
	}
	if (!draft_balancers(d, conf, draft, m)) {
		draft_drop(d, draft);
		return false;
	}
	return true;
}

/* What the new table takes over from the old one follows the file. */
static void
adopt(const struct conf *conf, const struct draft *draft, struct reload_result *r)
{
	for (uint16_t i = 0; i < draft->table->n; i++) {
		struct service *s = draft->table->service[i];
		const struct conf_service *c = &conf->service[i];

		if (draft->fresh[i])
			continue;
		if (conf_service_equal(&s->conf, c) &&
			(s->forward == NULL || draft->backends[i] == NULL)) {
			r->kept++;
		} else {
			r->changed++;
			for (uint16_t k = 0; k < s->nsocks; k++)
				sl_udp_set_rcvbuf(s->sock[k], c->rcvbuf);
			sl_store_relaxed(&s->kind, c->kind);
		}
		s->conf = *c;
	}
}

/* Load balancers that stay have others to choose from: their answers are claimed already. In the
 * end nobody is claimed for that is gone; if there is no memory for that, the next reload will do
 * it. */
static void
publish_backends(struct daemon *d, const struct draft *draft)
{
	struct sl_inet_claims *claims;
	bool any = false;

	for (uint16_t i = 0; i < draft->table->n; i++) {
		struct service *s = draft->table->service[i];
		struct backends *former;

		if (draft->backends[i] == NULL)
			continue;
		any = true;
		forward_commit(s->forward);
		backends_bind(draft->backends[i], s->forward);
		former = backends_publish(&s->backends, draft->backends[i]);
		backends_update(s->backends, daemon_now_ms());
		sl_inet_synchronize(d->inet, SL_INET_NO_WORKER);
		backends_drop(d, former, s->backends);
	}
	if (any && make_claims(d, draft->table, &claims) == 0)
		forward_claims_publish(d, claims);
}

/* Let workers see the table, and close what it no longer has. */
static void
publish(struct daemon *d, const struct draft *draft, struct reload_result *r)
{
	struct service_table *old = d->table;

	if (draft->claims != NULL)
		forward_claims_publish(d, draft->claims);
	publish_backends(d, draft);
	sl_store_release(&d->table, draft->table); /* pairs with turn() */
	idle_wake_all(d);
	sl_inet_synchronize(d->inet, SL_INET_NO_WORKER);
	for (uint16_t i = 0; old != NULL && i < old->n; i++) {
		struct service *s = old->service[i];
		const struct service *now = find(draft->table, s->conf.name);

		if (now == s)
			continue;
		if (now == NULL)
			r->removed++;
		else
			r->changed++;
		service_close(d, s);
	}
	for (uint16_t i = 0; i < draft->table->n; i++) {
		r->added += draft->fresh[i];
		if (draft->fresh[i])
			service_mirror_begin(draft->table->service[i]);
	}
	free(old);
}

bool
daemon_open_services(struct daemon *d, struct mistakes *m)
{
	struct reload_result r = {0};
	struct draft draft;

	if (!draft_make(d, &d->conf, &draft, m))
		return false;
	publish(d, &draft, &r);
	return true;
}

/* A service whose sockets changed was counted as new, and again as changed. */
static void
apply(struct daemon *d, struct conf *next, struct draft *draft, struct reload_result *r)
{
	adopt(next, draft, r);
	for (uint16_t i = 0; i < draft->table->n; i++)
		if (draft->fresh[i] && find(d->table, draft->table->service[i]->conf.name) != NULL)
			r->added--;
	publish(d, draft, r);
	sl_store_relaxed(&d->conf.idle, next->idle);
	bridges_apply(d, next);
	d->conf.log_level = next->log_level;
	rte_log_set_global_level((uint32_t)next->log_level);
	rte_log_set_level_pattern("*", (uint32_t)next->log_level);
	d->conf.nservices = next->nservices;
	memcpy(d->conf.service, next->service, sizeof(next->service));
	d->conf.nbackends = next->nbackends;
	memcpy(d->conf.backend, next->backend, sizeof(next->backend));
	daemon_event(d); /* there may be a load balancer now */
	r->applied = true;
}

static void
check_room(const struct daemon *d, const struct conf *next, struct mistakes *m)
{
	if (conf_mbufs(next) > d->mbufs)
		mistake(m, 0,
			"services may hold %u packets now, and memory was made for %u; restart, or "
			"use smaller \"rcvbuf\".",
			conf_mbufs(next), d->mbufs);
	if (conf_memory_needed_mb(next) > d->conf.memory_mb)
		mistake(m, 0,
			"services may need %u MB now, and %u were taken at the start; restart, or "
			"use smaller \"flows\".",
			conf_memory_needed_mb(next), d->conf.memory_mb);
}

void
reload_read(const struct daemon *d, const char *path, struct conf *next, struct mistakes *m)
{
	conf_read_file(path, next, m);
	if (mistakes_count(m) == 0)
		conf_restart_only(&d->conf, next, m);
	if (mistakes_count(m) == 0)
		check_room(d, next, m);
	if (mistakes_count(m) == 0)
		idle_check(d, next, m);
}

bool
daemon_backends(struct daemon *d)
{
	bool forwards;

	pthread_mutex_lock(&d->lock);
	forwards = d->state == DAEMON_RUNNING && any_forward(d->table);
	for (uint16_t i = 0; forwards && i < d->table->n; i++)
		backends_update(d->table->service[i]->backends, daemon_now_ms());
	pthread_mutex_unlock(&d->lock);
	return forwards;
}

void
daemon_reload(struct daemon *d, struct reload_result *r)
{
	static struct conf next;
	struct mistakes *m = mistakes_create(d->path);
	struct draft draft;

	memset(r, 0, sizeof(*r));
	pthread_mutex_lock(&d->lock);
	if (m == NULL || d->state != DAEMON_RUNNING) {
		snprintf(d->report, sizeof(d->report), "%s: not reloaded: %s.\n", d->path,
			m == NULL ? "no memory" : "starting or ending");
		r->mistakes = 1;
		pthread_mutex_unlock(&d->lock);
		mistakes_free(m);
		return;
	}
	notify_reloading();
	reload_read(d, d->path, &next, m);
	if (mistakes_count(m) == 0 && draft_make(d, &next, &draft, m)) {
		if (daemon_reload_routes(d, &next, m))
			apply(d, &next, &draft, r);
		else
			draft_drop(d, &draft);
	}
	r->mistakes = (uint32_t)mistakes_count(m);
	if (r->applied) {
		d->reloads++;
		snprintf(d->report, sizeof(d->report),
			"%s: applied: %u services added, %u removed, %u changed, %u kept.\n",
			d->path, r->added, r->removed, r->changed, r->kept);
	} else {
		d->refused++;
		mistakes_join(m, d->report, sizeof(d->report));
	}
	notify_ready(r->applied ? "running" : "running; the last reload was refused");
	pthread_mutex_unlock(&d->lock);
	mistakes_free(m);
}
