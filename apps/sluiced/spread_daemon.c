/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Ports with one receive queue for several lcores: the first of them receives, and spreads flows.
 */
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_random.h>

#include "../common/app.h"
#include "daemon.h"
#include "sl_errno.h"
#include "sleep.h"

_Static_assert(SPREAD_BURST <= SL_INET_BURST, "what is taken at once is one burst of the stack's");

static uint16_t
worker_of(const struct daemon *d, uint16_t cpu)
{
	uint16_t w = 0;

	while (d->worker[w].cpu != cpu)
		w++;
	return w;
}

static void
spread_open(struct daemon *d, uint16_t i)
{
	const struct conf_port *p = &d->conf.port[i];
	int ret = spread_create(p->lcores.n, (uint32_t)rte_rand(), &d->spread[i]);

	if (ret != 0)
		app_fail("%s:%u: [port %s] lcores: cannot be served by several: %s.", d->path,
			p->lcores_line, p->name, sl_strerror(ret));
	for (uint16_t t = 0; t < p->lcores.n; t++) {
		struct worker *w = &d->worker[worker_of(d, p->lcores.cpu[t])];
		struct worker_pair *pair = &w->pair[t == 0 ? 0 : w->npairs];

		/* Target 0 has the queue's pair already. */
		while (t == 0 && pair->port_index != i)
			pair++;
		if (t > 0)
			w->npairs++;
		pair->port_index = i;
		pair->port_id = d->port_id[i];
		pair->bridge = NULL;
		pair->spread = d->spread[i];
		pair->target = t;
		w->sleep_max_ns = RTE_MIN(w->sleep_max_ns, sleep_max_ns(SPREAD_RING, 0));
		w->spread = true;
		d->target_worker[i][t] = w->index;
	}
}

void
spreads_open(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (conf_spread(&d->conf.port[i]))
			spread_open(d, i);
}

void
spreads_close(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		spread_destroy(d->spread[i]);
		d->spread[i] = NULL;
	}
}

uint16_t
spread_poll(struct worker *w, const struct worker_pair *p)
{
	struct rte_mbuf *pkts[SPREAD_BURST];
	struct daemon *d = w->d;
	uint16_t own, n;
	uint64_t touched;

	if (p->target != 0) {
		n = spread_take(p->spread, p->target, pkts);
		if (n > 0)
			sl_inet_input_burst(d->inet, w->index, p->port_id, pkts, n);
		return n;
	}
	n = rte_eth_rx_burst(p->port_id, p->queue, pkts, SPREAD_BURST);
	if (n == 0)
		return 0;
	own = spread_burst(p->spread, pkts, n, &touched);
	sl_inet_input_burst(d->inet, w->index, p->port_id, pkts, own);
	for (uint16_t t = 1; touched >> t != 0; t++)
		if ((touched >> t & 1) != 0)
			idle_wake(&d->worker[d->target_worker[p->port_index][t]]);
	return n;
}

uint64_t
spreads_full(const struct daemon *d)
{
	struct spread_counts c;
	uint64_t full = 0;

	for (uint16_t i = 0; i < d->conf.nports; i++) {
		if (d->spread[i] == NULL)
			continue;
		spread_counts(d->spread[i], &c);
		full += c.full;
	}
	return full;
}

uint16_t
spreads_audit(const struct daemon *d, struct audit_line *lines)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < d->conf.nports; i++) {
		struct spread_counts c;
		struct audit_line *l;

		if (d->spread[i] == NULL)
			continue;
		spread_counts(d->spread[i], &c);
		l = &lines[n++];
		memset(l, 0, sizeof(*l));
		snprintf(l->name, sizeof(l->name), "spread %s", d->conf.port[i].name);
		l->entered = c.passed;
		l->outcomes = c.taken + c.full;
		l->held = c.held;
	}
	return n;
}
