/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The daemon's bridges: made of [bridge] sections, aged by the main thread, audited. */
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_random.h>

#include "../common/app.h"
#include "daemon.h"
#include "sl_errno.h"

void
bridges_open(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nbridges; i++) {
		const struct conf_bridge *c = &d->conf.bridge[i];
		struct bridge_conf conf = {.name = c->name,
			.members = c->nports,
			.workers = d->nworkers,
			.pool = d->pool,
			.table = {.entries = c->entries,
				.per_port = c->port_entries,
				.age_s = c->age_s,
				.seed = (uint32_t)rte_rand(),
				.socket = (int)rte_socket_id()}};
		int ret;

		for (uint16_t k = 0; k < c->nports; k++)
			conf.port_id[k] = d->port_id[c->port[k]];
		ret = bridge_create(&conf, &d->bridge[i]);
		if (ret != 0)
			app_fail("%s:%u: [bridge %s]: cannot be made: %s.", d->path, c->line,
				c->name, sl_strerror(ret));
	}
}

void
bridges_close(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nbridges; i++) {
		bridge_destroy(d->bridge[i]);
		d->bridge[i] = NULL;
	}
}

void
bridges_deal(struct daemon *d, struct worker *w)
{
	for (uint16_t i = 0; i < d->conf.nbridges; i++) {
		const struct conf_bridge *c = &d->conf.bridge[i];

		for (uint16_t k = 0; k < c->nports; k++)
			bridge_set_tx_queue(d->bridge[i], w->index, k, w->tx_queue[c->port[k]]);
	}
}

void
bridges_pair(struct daemon *d, struct worker_pair *p)
{
	uint16_t index = d->conf.port[p->port_index].bridge;
	const struct conf_bridge *c;

	p->bridge = NULL;
	if (index == 0)
		return;
	c = &d->conf.bridge[index - 1];
	p->bridge = d->bridge[index - 1];
	for (p->member = 0; c->port[p->member] != p->port_index;)
		p->member++;
}

static void
grace(void *daemon)
{
	const struct daemon *d = daemon;

	sl_inet_synchronize(d->inet, SL_INET_NO_WORKER);
}

void
bridges_age(struct daemon *d)
{
	static uint32_t last_s;
	uint32_t now_s = bridge_now_s();

	if (now_s == last_s)
		return;
	last_s = now_s;
	for (uint16_t i = 0; i < d->conf.nbridges; i++)
		(void)bridge_table_age(bridge_stations(d->bridge[i]), now_s, grace, d);
}

void
bridges_apply(struct daemon *d, const struct conf *next)
{
	for (uint16_t i = 0; i < d->conf.nbridges; i++) {
		struct conf_bridge *c = &d->conf.bridge[i];
		uint16_t k = 0;

		while (strcmp(next->bridge[k].name, c->name) != 0)
			k++;
		c->port_entries = next->bridge[k].port_entries;
		c->age_s = next->bridge[k].age_s;
		bridge_table_set(bridge_stations(d->bridge[i]), c->port_entries, c->age_s);
	}
}

void
bridges_counts(const struct daemon *d, struct bridge_counts *sum)
{
	for (uint16_t i = 0; i < d->conf.nbridges; i++)
		bridge_counts(d->bridge[i], sum);
}

uint16_t
bridges_audit(const struct daemon *d, struct audit_line *lines)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < d->conf.nbridges; i++) {
		const char *name = d->conf.bridge[i].name;
		struct audit_line *frames = &lines[n++], *copies = &lines[n++];
		struct bridge_counts c = {0};

		bridge_counts(d->bridge[i], &c);
		memset(frames, 0, sizeof(*frames));
		memset(copies, 0, sizeof(*copies));
		snprintf(frames->name, sizeof(frames->name), "bridge %s", name);
		snprintf(copies->name, sizeof(copies->name), "bridge %s copies", name);
		frames->entered = c.received;
		copies->entered = c.copies;
		for (int k = 0; k < BRIDGE_COPY_FIRST; k++)
			frames->outcomes += c.outcome[k];
		for (int k = BRIDGE_COPY_FIRST; k < BRIDGE_OUTCOMES; k++)
			copies->outcomes += c.outcome[k];
	}
	return n;
}
