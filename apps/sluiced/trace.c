/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring_elem.h>

#include "filter.h"
#include "sl_errno.h"
#include "trace.h"
#include "trace_look.h"
#include "trace_step.h"

#define STEPS 2048u /* of the ring */
#define OUT_SIZE 65536u
#define LINE_MAX_SIZE 2048u
/* How long steps of the last packets are waited for: one may be in a queue that is purged. */
#define LAST_S 1

struct trace {
	struct session session;
	struct sl_inet_tap tap;
	struct filter *filter;
	struct rte_ring *ring;
	struct trace_look *look;
	int id_offset;	    /* of the mark in packets */
	uint64_t mark_flag; /* that says that it is there */
	uint32_t base;	    /* marks are the packet's number and this: no other trace's */
	uint64_t count;	    /* packets to follow; 0 for no end */
	uint64_t begin;	    /* TSC, as are the next two */
	uint64_t hz;
	/* The session's thread's. */
	uint64_t enough_at; /* when all were taken; 0 before */
	size_t out_len;
	char out[OUT_SIZE]; /* lines that are to be written */
	/* Written by workers. */
	SL_CACHE_ALIGNED uint64_t taken; /* (a) packets that were chosen */
	uint64_t open;			 /* (a) of these, not yet at their last step */
	uint64_t lost;			 /* (a) steps */
};

_Static_assert(sizeof(struct trace_step) % 4 == 0, "as rings take them");

/* (l) */
static struct trace_stats last;
static uint32_t next_base;

static void
put_step(struct trace *t, struct trace_step *s)
{
	s->tsc = rte_rdtsc();
	if (rte_ring_mp_enqueue_elem(t->ring, s, sizeof(*s)) != 0)
		sl_fetch_add_relaxed(&t->lost, UINT64_C(1));
}

/* Send what waits, so that what is sent from now on is the packet's doing. */
static void
flush(struct worker *w)
{
	struct daemon *d = w->d;

	for (uint16_t p = 0; p < d->conf.nports; p++)
		if (d->conf.port[p].bridge == 0)
			sl_inet_flush(d->inet, w->index, d->port_id[p], w->tx_queue[p]);
}

static void
count_moves(struct trace_step *s, struct worker *w, const uint64_t *before)
{
	uint64_t after[SL_OUTCOME_COUNT];

	sl_inet_outcomes(w->d->inet, w->index, after);
	for (uint16_t i = 0; i < SL_OUTCOME_COUNT && s->ncounters < TRACE_COUNTERS_MAX; i++) {
		if (after[i] == before[i])
			continue;
		s->counter[s->ncounters].outcome = i;
		s->counter[s->ncounters++].by = (uint16_t)(after[i] - before[i]);
	}
}

static bool
moved(const struct trace_step *s, enum sl_outcome outcome)
{
	for (uint16_t i = 0; i < s->ncounters; i++)
		if (s->counter[i].outcome == outcome)
			return true;
	return false;
}

/* The service whose socket takes datagrams to that address and port. */
static const char *
find_service(const struct service_table *t, const struct sl_addr *dst, uint16_t port)
{
	const char *any = "";

	for (uint16_t i = 0; t != NULL && i < t->n; i++) {
		const struct service *s = t->service[i];

		if (s->conf.udp_port != rte_be_to_cpu_16(port))
			continue;
		for (uint16_t k = 0; k < s->nsocks; k++) {
			if (memcmp(&s->bound[k], dst, sizeof(*dst)) == 0)
				return s->conf.name;
			if (sl_addr_is_any(&s->bound[k]))
				any = s->conf.name;
		}
	}
	return any;
}

static uint16_t
port_index(const struct daemon *d, uint16_t port_id)
{
	uint16_t i = 0;

	while (i + 1 < d->conf.nports && d->port_id[i] != port_id)
		i++;
	return i;
}

/* What became of it where the stack has handed it on. */
static void
look(struct trace *t, struct worker *w, const struct trace_step *got)
{
	struct trace_step forward = {.id = got->id, .cpu = w->cpu}, kernel = forward;

	if (trace_look_forward(t->look, w, got, &forward))
		put_step(t, &forward);
	if (trace_look_kernel(t->look, w, &kernel))
		put_step(t, &kernel);
}

/* One packet through the stack, alone. */
static void
follow(struct trace *t, struct worker *w, uint16_t port_id, uint16_t queue, struct rte_mbuf *m,
	uint32_t id)
{
	struct trace_step first = {.id = id, .cpu = w->cpu, .kind = TRACE_RECEIVED}, then = first;
	uint64_t before[SL_OUTCOME_COUNT], held;
	struct sl_inet *inet = w->d->inet;
	struct sl_addr dst;
	uint16_t dport;
	bool whole;

	first.port = port_index(w->d, port_id);
	first.queue = queue;
	trace_step_describe(&first, m);
	put_step(t, &first);
	whole = (first.ptype & RTE_PTYPE_L4_MASK) != RTE_PTYPE_L4_FRAG;
	if (whole) {
		m->ol_flags |= t->mark_flag;
		*RTE_MBUF_DYNFIELD(m, t->id_offset, uint32_t *) = t->base + id;
	}
	flush(w);
	sl_inet_outcomes(inet, w->index, before);
	held = sl_inet_held(inet, w->index);
	trace_look_begin(t->look, w);
	sl_inet_input_burst(inet, w->index, port_id, &m, 1);
	flush(w);
	then.kind = TRACE_STACK;
	count_moves(&then, w, before);
	then.held = sl_inet_held(inet, w->index) > held;
	if (moved(&then, SL_RX_UDP_QUEUED) && trace_step_udp(&first, &dst, &dport))
		snprintf(then.service, sizeof(then.service), "%s",
			find_service(sl_load_acquire(&w->d->table), &dst, dport));
	put_step(t, &then);
	look(t, w, &first);
	if (!whole || !moved(&then, SL_RX_UDP_QUEUED))
		sl_fetch_sub_release(&t->open, UINT64_C(1));
}

/* Is it one more to follow? Then its number. */
static bool
take(struct trace *t, const struct rte_mbuf *m, uint32_t *id)
{
	uint64_t nth;

	if ((t->count != 0 && sl_load_relaxed(&t->taken) >= t->count) ||
		!filter_match(t->filter, m))
		return false;
	/* Opened before it counts as taken: "all taken, none open" must not be seen in between. */
	sl_fetch_add_relaxed(&t->open, UINT64_C(1));
	nth = sl_fetch_add_release(&t->taken, UINT64_C(1));
	*id = (uint32_t)nth + 1;
	if (t->count == 0 || nth < t->count)
		return true;
	sl_fetch_sub_release(&t->open, UINT64_C(1));
	return false;
}

static void
hand_on(struct worker *w, uint16_t port_id, struct rte_mbuf **pkts, uint16_t n)
{
	if (n > 0)
		sl_inet_input_burst(w->d->inet, w->index, port_id, pkts, n);
}

static void
on_input(void *arg, uint16_t worker, uint16_t port_id, uint16_t queue, struct rte_mbuf **pkts,
	uint16_t n)
{
	struct trace *t = arg;
	struct worker *w = &t->session.d->worker[worker];
	uint16_t first = 0;
	uint32_t id;

	for (uint16_t i = 0; i < n; i++) {
		if (!take(t, pkts[i], &id))
			continue;
		hand_on(w, port_id, pkts + first, (uint16_t)(i - first));
		follow(t, w, port_id, queue, pkts[i], id);
		first = (uint16_t)(i + 1);
	}
	hand_on(w, port_id, pkts + first, (uint16_t)(n - first));
}

/* One frame through a bridge, alone. */
static void
follow_bridge(struct trace *t, struct worker *w, const struct worker_pair *p, struct rte_mbuf *m,
	uint32_t id)
{
	struct trace_step first = {.id = id, .cpu = w->cpu, .kind = TRACE_RECEIVED}, then = first;

	first.port = p->port_index;
	first.queue = p->queue;
	trace_step_describe(&first, m);
	put_step(t, &first);
	trace_look_bridge(w, p, m, &then);
	put_step(t, &then);
	sl_fetch_sub_release(&t->open, UINT64_C(1));
}

uint16_t
trace_bridge_poll(struct trace *t, struct worker *w, const struct worker_pair *p)
{
	struct rte_mbuf *pkts[BRIDGE_BURST];
	uint16_t n = rte_eth_rx_burst(p->port_id, p->queue, pkts, BRIDGE_BURST), first = 0;
	uint32_t id;

	for (uint16_t i = 0; i < n; i++) {
		if (!take(t, pkts[i], &id))
			continue;
		if (i > first)
			bridge_input(p->bridge, w->index, p->member, pkts + first,
				(uint16_t)(i - first), bridge_now_s());
		follow_bridge(t, w, p, pkts[i], id);
		first = (uint16_t)(i + 1);
	}
	if (n > first)
		bridge_input(p->bridge, w->index, p->member, pkts + first, (uint16_t)(n - first),
			bridge_now_s());
	return n;
}

bool
trace_begin(struct trace *t, struct worker *w, const struct service *s, const struct sl_dgram *g,
	struct trace_mark *mark)
{
	struct rte_mbuf *m = g->buf;
	uint64_t taken = sl_load_relaxed(&t->taken);

	if ((m->ol_flags & t->mark_flag) == 0)
		return false;
	m->ol_flags &= ~t->mark_flag;
	mark->id = *RTE_MBUF_DYNFIELD(m, t->id_offset, uint32_t *) - t->base;
	/* An earlier trace's may still have waited. */
	if (mark->id == 0 || mark->id > taken)
		return false;
	flush(w);
	memcpy(mark->outcome, s->cell[w->index].outcome, sizeof(mark->outcome));
	sl_inet_outcomes(w->d->inet, w->index, mark->stack);
	return true;
}

void
trace_end(struct trace *t, struct worker *w, const struct service *s, const struct trace_mark *mark)
{
	const uint64_t *after = s->cell[w->index].outcome;
	struct trace_step step = {.id = mark->id, .cpu = w->cpu, .kind = TRACE_SERVICE};

	flush(w);
	snprintf(step.service, sizeof(step.service), "%s", s->conf.name);
	for (int i = 0; i < SERVICE_OUTCOMES && step.outcome == NULL; i++)
		if (after[i] != mark->outcome[i])
			step.outcome = service_outcome_info[i].name;
	count_moves(&step, w, mark->stack);
	put_step(t, &step);
	sl_fetch_sub_release(&t->open, UINT64_C(1));
}

/* ---- the session ---- */

/* Write the lines that wait. False: the client is gone. */
static bool
write_lines(struct trace *t)
{
	bool ok = t->out_len == 0 || session_write(&t->session, t->out, t->out_len);

	t->out_len = 0;
	return ok;
}

/* A value as a line of text. */
static bool
put_line(struct trace *t, json_t *o)
{
	size_t len =
		o != NULL ? json_dumpb(o, t->out + t->out_len, LINE_MAX_SIZE - 1, JSON_COMPACT) : 0;

	json_decref(o);
	if (len == 0 || len >= LINE_MAX_SIZE)
		return false;
	t->out_len += len;
	t->out[t->out_len++] = '\n';
	return t->out_len + LINE_MAX_SIZE <= OUT_SIZE || write_lines(t);
}

static uint64_t
followed(const struct trace *t)
{
	uint64_t taken = sl_load_relaxed(&t->taken);

	return t->count != 0 ? RTE_MIN(taken, t->count) : taken;
}

/* Is all said that there is to say? */
static bool
complete(struct trace *t)
{
	uint64_t now = rte_rdtsc();

	if (t->count == 0 || sl_load_acquire(&t->taken) < t->count)
		return false;
	if (t->enough_at == 0)
		t->enough_at = now;
	return sl_load_acquire(&t->open) == 0 || now - t->enough_at > LAST_S * t->hz;
}

static bool
pump(struct session *s, bool ending)
{
	struct trace *t = (struct trace *)s;
	bool last_call = complete(t) || ending;
	struct trace_step step;

	while (rte_ring_sc_dequeue_elem(t->ring, &step, sizeof(step)) == 0) {
		const char *port = s->d->conf.port[step.port].name;

		if (!put_line(t, trace_step_json(&step, port, t->begin, t->hz)))
			return false;
	}
	if (ending)
		(void)put_line(t, json_pack("{s:s, s:I, s:I}", "step", "end", "followed",
					  (json_int_t)followed(t), "lost",
					  (json_int_t)sl_load_relaxed(&t->lost)));
	return write_lines(t) && !last_call;
}

static void
unhook(struct session *s)
{
	struct trace *t = (struct trace *)s;

	sl_inet_set_tap(s->d->inet, NULL);
	sl_store_release(&s->d->trace, (struct trace *)NULL);
	sl_inet_synchronize(s->d->inet, SL_INET_NO_WORKER);
	last.followed = followed(t);
	last.lost = sl_load_relaxed(&t->lost);
	last.running = false;
	next_base += (uint32_t)sl_load_relaxed(&t->taken);
}

static void
done(struct session *s)
{
	struct trace *t = (struct trace *)s;

	rte_ring_free(t->ring);
	trace_look_free(t->look);
	filter_free(t->filter);
	free(t);
}

static const struct session_kind kind = {"trace", pump, unhook, done};

/* Where packets bear their mark; the same for all traces. */
static int
find_mark(struct trace *t)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "sluiced_trace_id", .size = sizeof(uint32_t), .align = _Alignof(uint32_t)};
	static const struct rte_mbuf_dynflag flag = {.name = "sluiced_trace"};
	int bit = rte_mbuf_dynflag_register(&flag);

	t->id_offset = rte_mbuf_dynfield_register(&field);
	if (t->id_offset < 0 || bit < 0)
		return -ENOSPC;
	t->mark_flag = UINT64_C(1) << bit;
	return 0;
}

static int
create(struct daemon *d, const char *filter, struct trace **out, char *why, size_t size)
{
	struct trace *t = aligned_alloc(SL_CACHE_LINE, sizeof(*t));
	int ret = -ENOMEM;

	if (t != NULL) {
		memset(t, 0, sizeof(*t));
		t->session = (struct session){.kind = &kind, .d = d, .fd = -1};
		t->tap = (struct sl_inet_tap){.input = on_input, .arg = t};
		t->begin = rte_rdtsc();
		t->hz = rte_get_tsc_hz();
		ret = filter_create(filter, &t->filter, why, size);
		if (ret == 0)
			ret = find_mark(t);
		if (ret == 0) {
			t->ring = rte_ring_create_elem("sluiced_trace", sizeof(struct trace_step),
				STEPS, SOCKET_ID_ANY, RING_F_SC_DEQ);
			t->look = trace_look_create(d->nworkers);
			ret = t->ring != NULL && t->look != NULL ? 0 : -ENOMEM;
		}
	}
	if (ret == 0)
		*out = t;
	else if (t != NULL)
		done(&t->session);
	return ret;
}

int
trace_start(struct daemon *d, const char *name, uint64_t count, const char *filter, char *why,
	size_t size)
{
	struct trace *t;
	int ret;

	if (session_busy(&kind)) {
		snprintf(why, size, "there is a trace already; end that one first");
		return -EBUSY;
	}
	why[0] = '\0';
	ret = create(d, filter, &t, why, size);
	if (ret == 0) {
		t->count = count;
		t->base = next_base;
		ret = session_connect(&t->session, name);
		if (ret == 0)
			ret = session_start(&t->session);
		if (ret != 0)
			done(&t->session);
	}
	if (ret == 0) {
		last = (struct trace_stats){.running = true};
		sl_store_release(&d->trace, t); /* pairs with trace_of() */
		sl_inet_set_tap(d->inet, &t->tap);
	} else if (why[0] == '\0') {
		snprintf(why, size, "cannot be started: %s", sl_strerror(ret));
	}
	return ret;
}

void
trace_stats(struct trace_stats *stats)
{
	*stats = last;
}
