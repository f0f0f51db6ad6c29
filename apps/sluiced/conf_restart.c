/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What differs between two configurations that only a restart can change, key by key. */
#include <string.h>

#include <rte_common.h>

#include "conf_priv.h"

static const char only[] = "changes with a restart only; restart, or take the change back.";

static bool
lcores_equal(const struct conf_lcores *a, const struct conf_lcores *b)
{
	return a->n == b->n && memcmp(a->cpu, b->cpu, a->n * sizeof(a->cpu[0])) == 0;
}

static bool
drivers_equal(const struct conf *a, const struct conf *b)
{
	if (a->ndrivers != b->ndrivers)
		return false;
	for (uint16_t i = 0; i < a->ndrivers; i++)
		if (strcmp(a->driver[i], b->driver[i]) != 0)
			return false;
	return true;
}

static bool
addr_equal(const struct sl_addr *a, const struct sl_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool
addrs_equal(const struct conf_port *a, const struct conf_port *b)
{
	if (a->naddrs != b->naddrs)
		return false;
	for (uint16_t i = 0; i < a->naddrs; i++)
		if (a->addrs[i].prefix != b->addrs[i].prefix ||
			!addr_equal(&a->addrs[i].addr, &b->addrs[i].addr))
			return false;
	return true;
}

/* A port or VLAN a that will be b. */
static void
port_keys(const struct conf_port *a, const struct conf_port *b, struct mistakes *m)
{
	const struct {
		const char *name;
		bool equal;
		uint32_t line;
	} keys[] = {
		{"devargs", strcmp(a->devargs, b->devargs) == 0, b->devargs_line},
		{"path", strcmp(a->path, b->path) == 0, b->path_line},
		{"port", strcmp(a->on, b->on) == 0, b->on_line},
		{"address", addrs_equal(a, b), b->address_line},
		{"gateway",
			addr_equal(&a->gateway, &b->gateway) &&
				addr_equal(&a->gateway6, &b->gateway6),
			RTE_MAX(b->gateway_line, b->gateway6_line)},
		{"mac", memcmp(a->mac, b->mac, sizeof(a->mac)) == 0, 0},
		{"client", a->client == b->client, 0},
		{"pairs", a->pairs == b->pairs, 0},
		{"frag", a->frag == b->frag, 0},
		{"lend", a->lend == b->lend, 0},
		{"lcores", lcores_equal(&a->lcores, &b->lcores), b->lcores_line},
		{"queues", a->queues == b->queues, 0},
		{"ring", conf_ring(a) == conf_ring(b), 0},
		{"mtu", a->mtu == b->mtu, b->mtu_line},
		{"vlan", a->vlan == b->vlan, b->vlan_line},
		{"promiscuous", a->promiscuous == b->promiscuous, 0},
		{"exception", strcmp(a->exception, b->exception) == 0, b->exception_line},
	};

	for (size_t i = 0; i < SL_COUNT_OF(keys); i++)
		if (!keys[i].equal)
			mistake(m, keys[i].line != 0 ? keys[i].line : b->line, "[%s %s] %s: %s",
				b->section, b->name, keys[i].name, only);
}

static void
check_ports(const struct conf *now, const struct conf *next, struct mistakes *m)
{
	for (uint16_t i = 0; i < next->nports + next->nvlans; i++) {
		const struct conf_port *p = conf_nth_port(next, i);
		const struct conf_port *q = conf_find_port(now, p->name);

		if (q == NULL)
			mistake(m, p->line, "[%s %s]: is new, and %s", p->section, p->name, only);
		else if (strcmp(q->section, p->section) != 0)
			mistake(m, p->line, "[%s %s]: was a [%s], and %s", p->section, p->name,
				q->section, only);
		else
			port_keys(q, p, m);
	}
	for (uint16_t i = 0; i < now->nports + now->nvlans; i++) {
		const struct conf_port *p = conf_nth_port(now, i);

		if (conf_find_port(next, p->name) == NULL)
			mistake(m, 0, "[%s %s]: is gone, and %s", p->section, p->name, only);
	}
}

void
conf_restart_only(const struct conf *now, const struct conf *next, struct mistakes *m)
{
	if (strcmp(now->name, next->name) != 0)
		mistake(m, 0, "[sluiced] name: %s", only);
	if (!lcores_equal(&now->lcores, &next->lcores))
		mistake(m, next->lcores_line, "[sluiced] lcores: %s", only);
	if (now->hugepages != next->hugepages)
		mistake(m, next->hugepages_line, "[sluiced] hugepages: %s", only);
	if (next->memory_line != 0 && now->memory_mb != next->memory_mb)
		mistake(m, next->memory_line, "[sluiced] memory: %s", only);
	if (!drivers_equal(now, next))
		mistake(m, next->driver_line, "[sluiced] driver: %s", only);
	if (now->secondary != next->secondary)
		mistake(m, next->secondary_line, "[sluiced] secondary: %s", only);
	if (!conf_metrics_equal(&now->metrics, &next->metrics))
		mistake(m, next->metrics.listen_line, "[metrics] listen: %s", only);
	check_ports(now, next, m);
	conf_bridge_restart_only(now, next, m);
}
