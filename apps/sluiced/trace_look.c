/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "backends.h"
#include "exception.h"
#include "forward.h"
#include "sl_inet_claim.h"
#include "trace_look.h"

#define EXCEPTIONS_MAX (CONF_PORTS_MAX + CONF_VLANS_MAX)

/* One worker's counters before a packet. */
struct trace_look {
	const struct service_table *table;
	struct forward_counters forward[CONF_SERVICES_MAX];
	uint64_t exception[EXCEPTIONS_MAX][EXCEPTION_COUNTS];
} SL_CACHE_ALIGNED;

struct trace_look *
trace_look_create(uint16_t workers)
{
	size_t size = workers * sizeof(struct trace_look);
	struct trace_look *look = aligned_alloc(SL_CACHE_LINE, size);

	if (look != NULL)
		memset(look, 0, size);
	return look;
}

void
trace_look_free(struct trace_look *look)
{
	free(look);
}

void
trace_look_begin(struct trace_look *look, struct worker *w)
{
	struct trace_look *l = &look[w->index];
	const struct daemon *d = w->d;

	l->table = sl_load_acquire(&d->table);
	for (uint16_t i = 0; l->table != NULL && i < l->table->n; i++)
		if (l->table->service[i]->forward != NULL)
			forward_worker_counters(
				l->table->service[i]->forward, w->index, &l->forward[i]);
	for (uint16_t i = 0; i < d->nexceptions; i++)
		exception_worker_counts(d->exception[i], w->index, l->exception[i]);
}

/* The first that has moved, or n. */
static uint16_t
first_moved(const uint64_t *before, const uint64_t *after, uint16_t n)
{
	uint16_t i = 0;

	while (i < n && before[i] == after[i])
		i++;
	return i;
}

/* Its name, in the configuration that this worker sees. */
static void
name_backend(const struct service *s, uint16_t index, char *name, size_t size)
{
	const struct backends *b = sl_load_acquire(&s->backends); /* BE1 */

	for (uint16_t i = 0; b != NULL && i < b->n; i++)
		if (b->backend[i].index == index)
			snprintf(name, size, "%s", b->backend[i].conf.name);
}

/* Does what was sent to that address wait for the neighbour's answer? */
static bool
waits(struct worker *w, const struct sl_addr *dst)
{
	const struct daemon *d = w->d;
	struct sl_inet_way way;
	uint8_t mac[6];
	bool asked = false;

	if (sl_inet_way_find(d->inet, w->index, dst, &way) != 0)
		return false;
	for (uint16_t i = 0; i < daemon_handles(d); i++) {
		int ret = sl_inet_neighbour(d->inet, daemon_handle_at(d, i), &way.hop, mac);

		if (ret == 0)
			return false;
		asked |= ret == -EAGAIN;
	}
	return asked;
}

/* Which slot of the table a client's datagram falls into; known flows have one, too. */
static void
find_slot(const struct service *v, struct worker *w, const struct trace_step *got,
	struct trace_step *s)
{
	struct balancer_explanation e;
	struct flow_key key = {.proto = IPPROTO_UDP};
	struct sl_addr src, dst;

	if (!trace_step_flow(got, &src, &dst, &key.sport, &key.dport))
		return;
	memcpy(key.src, src.b, sizeof(key.src));
	memcpy(key.dst, dst.b, sizeof(key.dst));
	forward_worker_explain(v->forward, w->index, &key, &e);
	if (e.pick.backend == MAGLEV_NONE || e.pick.reason == BALANCER_TURN)
		return;
	s->has_slot = true;
	s->slot = e.slot;
}

/* What has moved in the one load balancer that was handed the packet. */
static void
look_forward(const struct service *v, const struct forward_counters *before, struct worker *w,
	const struct trace_step *got, struct trace_step *s)
{
	struct forward_counters now;
	uint16_t backend, outcome, reason;
	struct sl_addr to;

	forward_worker_counters(v->forward, w->index, &now);
	s->kind = TRACE_FORWARD;
	s->packets = (uint16_t)(now.entered - before->entered);
	snprintf(s->service, sizeof(s->service), "%s", v->conf.name);
	outcome = first_moved(before->outcome, now.outcome, SERVICE_OUTCOMES);
	if (outcome < SERVICE_OUTCOMES)
		s->outcome = service_outcome_info[outcome].name;
	reason = first_moved(before->reason, now.reason, BALANCER_REASONS);
	if (reason < BALANCER_REASONS) {
		s->reason = balancer_reason_name((enum balancer_reason)reason);
		find_slot(v, w, got, s);
	}
	backend = first_moved(before->picked, now.picked, CONF_FORWARD_BACKENDS_MAX);
	if (backend < CONF_FORWARD_BACKENDS_MAX) {
		name_backend(v, backend, s->to, sizeof(s->to));
		forward_worker_backend(v->forward, backend, &to);
		s->waits = outcome == SERVICE_FORWARDED && waits(w, &to);
		return;
	}
	backend = first_moved(before->replies, now.replies, CONF_FORWARD_BACKENDS_MAX);
	if (backend == CONF_FORWARD_BACKENDS_MAX)
		return;
	s->back = true;
	name_backend(v, backend, s->to, sizeof(s->to));
	if (trace_step_dst(got, &to))
		s->waits = outcome == SERVICE_FORWARD_RETURNED && waits(w, &to);
}

bool
trace_look_forward(struct trace_look *look, struct worker *w, const struct trace_step *got,
	struct trace_step *s)
{
	const struct trace_look *l = &look[w->index];

	for (uint16_t i = 0; l->table != NULL && i < l->table->n; i++) {
		const struct service *v = l->table->service[i];

		if (v->forward == NULL ||
			forward_worker_entered(v->forward, w->index) == l->forward[i].entered)
			continue;
		look_forward(v, &l->forward[i], w, got, s);
		return true;
	}
	return false;
}

bool
trace_look_kernel(struct trace_look *look, struct worker *w, struct trace_step *s)
{
	static const enum exception_count outcomes[] = {EXCEPTION_TAKEN, EXCEPTION_DOWN,
		EXCEPTION_REFUSED, EXCEPTION_SHOWN, EXCEPTION_SHOW_LOST};
	const struct trace_look *l = &look[w->index];

	for (uint16_t i = 0; i < w->d->nexceptions; i++) {
		const struct exception *e = w->d->exception[i];
		uint64_t now[EXCEPTION_COUNTS];

		exception_worker_counts(e, w->index, now);
		for (size_t k = 0; k < SL_COUNT_OF(outcomes); k++) {
			if (now[outcomes[k]] == l->exception[i][outcomes[k]])
				continue;
			s->kind = TRACE_KERNEL;
			snprintf(s->to, sizeof(s->to), "%s", exception_interface(e));
			s->outcome = exception_count_name[outcomes[k]];
			return true;
		}
	}
	return false;
}

/* The port of the bridge that a known station is behind. */
static void
name_member(const struct daemon *d, const struct worker_pair *p, uint16_t index, uint64_t mac,
	struct trace_step *s)
{
	const struct conf_bridge *c = &d->conf.bridge[index];
	uint16_t member;

	bridge_table_find_burst(bridge_stations(p->bridge), &mac, 1, bridge_now_s(), &member);
	if (member < c->nports)
		snprintf(s->to, sizeof(s->to), "%s", d->conf.port[c->port[member]].name);
}

void
trace_look_bridge(
	struct worker *w, const struct worker_pair *p, struct rte_mbuf *m, struct trace_step *s)
{
	uint16_t index = (uint16_t)(w->d->conf.port[p->port_index].bridge - 1);
	struct bridge_counts before, now;
	uint8_t head[6];
	const uint8_t *dst = rte_pktmbuf_read(m, 0, sizeof(head), head);
	uint64_t mac = dst != NULL ? bridge_mac(dst) : 0;
	uint16_t i;

	bridge_worker_counts(p->bridge, w->index, &before);
	bridge_input(p->bridge, w->index, p->member, &m, 1, bridge_now_s());
	bridge_worker_counts(p->bridge, w->index, &now);
	s->kind = TRACE_BRIDGE;
	snprintf(s->service, sizeof(s->service), "%s", w->d->conf.bridge[index].name);
	i = first_moved(before.outcome, now.outcome, BRIDGE_COPY_FIRST);
	if (i < BRIDGE_COPY_FIRST)
		s->outcome = bridge_outcome_info[i].name;
	if (i == BRIDGE_FORWARDED)
		name_member(w->d, p, index, mac, s);
	i = first_moved(before.learn, now.learn, BRIDGE_LEARN_RESULTS);
	if (i < BRIDGE_LEARN_RESULTS)
		s->reason = bridge_learn_name[i];
	for (i = BRIDGE_COPY_FIRST; i < BRIDGE_OUTCOMES && s->ncounters < TRACE_COUNTERS_MAX; i++) {
		if (now.outcome[i] == before.outcome[i])
			continue;
		s->counter[s->ncounters].outcome = i;
		s->counter[s->ncounters++].by = (uint16_t)(now.outcome[i] - before.outcome[i]);
	}
}
