/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of the stack's tables: routes, addresses and neighbours, how many of each state. */
#include "metrics.h"
#include "sl_inet_table.h"

#define STATES_MAX 4
#define HANDLES_MAX (CONF_PORTS_MAX + CONF_VLANS_MAX)

/* What a visit counts: entries of a port or VLAN, by state. */
struct tally {
	const struct daemon *d;
	uint64_t n[HANDLES_MAX][STATES_MAX];
};

static void
count(struct tally *t, uint16_t handle, unsigned int state)
{
	for (uint16_t i = 0; i < daemon_handles(t->d); i++)
		if (daemon_handle_at(t->d, i) == handle)
			t->n[i][state]++;
}

static void
write_tally(
	struct metrics_scrape *s, const struct tally *t, const char *const *states, unsigned int n)
{
	for (uint16_t i = 0; i < daemon_handles(s->d); i++)
		for (unsigned int k = 0; k < n; k++)
			metrics_sample2(s, "port",
				daemon_handle_name(s->d, daemon_handle_at(s->d, i)), "state",
				states[k], t->n[i][k]);
}

enum route_state { ROUTE_BEST, ROUTE_SPARE, ROUTE_UNUSABLE, ROUTE_STATES };

static void
on_route(void *arg, const struct sl_inet_route_info *r)
{
	count(arg, r->route.port, !r->usable ? ROUTE_UNUSABLE : r->best ? ROUTE_BEST : ROUTE_SPARE);
}

static void
on_addr(void *arg, const struct sl_inet_addr_info *a)
{
	count(arg, a->port, a->state);
}

static void
on_neigh(void *arg, const struct sl_inet_neigh_info *n)
{
	count(arg, n->port, n->state);
}

static void
collect_routes(struct metrics_scrape *s, const struct metrics_family *f)
{
	static const char *const states[ROUTE_STATES] = {"best", "spare", "unusable"};
	struct tally t = {.d = s->d};

	(void)f;
	sl_inet_route_foreach(s->d->inet, on_route, &t);
	write_tally(s, &t, states, SL_COUNT_OF(states));
}

static void
collect_addrs(struct metrics_scrape *s, const struct metrics_family *f)
{
	static const char *const states[] = {[SL_INET_ADDR_TENTATIVE] = "tentative",
		[SL_INET_ADDR_READY] = "ready",
		[SL_INET_ADDR_DUPLICATE] = "duplicate"};
	struct tally t = {.d = s->d};

	(void)f;
	sl_inet_addr_foreach(s->d->inet, on_addr, &t);
	write_tally(s, &t, states, SL_COUNT_OF(states));
}

static void
collect_neighs(struct metrics_scrape *s, const struct metrics_family *f)
{
	static const char *const states[] = {[SL_INET_NEIGH_INCOMPLETE] = "incomplete",
		[SL_INET_NEIGH_REACHABLE] = "reachable",
		[SL_INET_NEIGH_STALE] = "stale",
		[SL_INET_NEIGH_PROBE] = "probe"};
	struct tally t = {.d = s->d};

	(void)f;
	sl_inet_neigh_foreach(s->d->inet, on_neigh, &t);
	write_tally(s, &t, states, SL_COUNT_OF(states));
}

const struct metrics_family metrics_table_families[] = {
	{"sluice_routes", OPENMETRICS_GAUGE, NULL, "Routes of a port, by state.", collect_routes,
		0},
	{"sluice_addresses", OPENMETRICS_GAUGE, NULL, "Addresses of a port, by state.",
		collect_addrs, 0},
	{"sluice_neighbours", OPENMETRICS_GAUGE, NULL, "Known neighbours of a port, by state.",
		collect_neighs, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
