/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Routes and neighbours. There may be more than one answer holds, so they come in pages: the
 * parameter is the number of the first wanted, and "next" that of the page behind, 0 at the end.
 * What changes between two pages may be missed, or come twice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "sl_inet_table.h"
#include "telemetry.h"

/* A list that is visited whole, and the page of it that is wanted. */
struct visit {
	struct telemetry_page page;
	uint64_t at; /* number of the one that is visited next */
};

/* The next one is visited: an object for it, or NULL if it is on another page. */
static struct rte_tel_data *
entry(struct visit *v)
{
	return v->at++ < v->page.first ? NULL : telemetry_page_entry(&v->page);
}

static void
on_route(void *arg, const struct sl_inet_route_info *r)
{
	static const char *const kinds[] = {[SL_INET_ROUTE_CONNECTED] = "connected",
		[SL_INET_ROUTE_STATIC] = "static",
		[SL_INET_ROUTE_GATEWAY] = "gateway"};
	struct rte_tel_data *one = entry(arg);
	struct visit *v = arg;
	char text[64];
	size_t len;

	if (one == NULL)
		return;
	len = strlen(sl_addr_format(&r->route.dst, text, sizeof(text)));
	snprintf(text + len, sizeof(text) - len, "/%u", r->route.prefix);
	telemetry_text(one, "prefix", text);
	telemetry_text(one, "via",
		sl_addr_is_any(&r->route.via) ? "link"
					      : sl_addr_format(&r->route.via, text, sizeof(text)));
	telemetry_text(one, "port", daemon_handle_name(v->page.d, r->route.port));
	telemetry_u64(one, "metric", r->route.metric);
	telemetry_text(one, "kind", kinds[r->kind]);
	telemetry_text(one, "state", !r->usable ? "unusable" : r->best ? "best" : "spare");
	telemetry_page_add(&v->page, one);
}

static void
on_neigh(void *arg, const struct sl_inet_neigh_info *n)
{
	static const char *const states[] = {[SL_INET_NEIGH_INCOMPLETE] = "incomplete",
		[SL_INET_NEIGH_REACHABLE] = "reachable",
		[SL_INET_NEIGH_STALE] = "stale",
		[SL_INET_NEIGH_PROBE] = "probe"};
	struct rte_tel_data *one = entry(arg);
	struct visit *v = arg;
	char text[64];

	if (one == NULL)
		return;
	telemetry_text(one, "address", sl_addr_format(&n->addr, text, sizeof(text)));
	telemetry_text(one, "mac",
		n->state == SL_INET_NEIGH_INCOMPLETE ? "" : telemetry_mac(n->mac, text));
	telemetry_text(one, "port", daemon_handle_name(v->page.d, n->port));
	telemetry_text(one, "state", states[n->state]);
	telemetry_u64(one, "waiting", n->waiting);
	telemetry_u64(one, "age_ms", n->age_ns / 1000000);
	telemetry_u64(one, "idle_ms", n->idle_ns / 1000000);
	telemetry_page_add(&v->page, one);
}

static void
visit_routes(struct visit *v)
{
	sl_inet_route_foreach(v->page.d->inet, on_route, v);
}

static void
visit_neighs(struct visit *v)
{
	sl_inet_neigh_foreach(v->page.d->inet, on_neigh, v);
}

static int
answer(const char *param, struct rte_tel_data *t, void (*visit)(struct visit *v))
{
	struct daemon *d = telemetry_enter();
	struct visit v = {.at = 0};
	uint64_t behind;
	bool good;

	if (d == NULL)
		return -EAGAIN;
	good = telemetry_page_begin(&v.page, d, param, t);
	visit(&v);
	telemetry_leave(d);
	behind = v.page.first + TELEMETRY_PAGE;
	telemetry_page_end(&v.page, v.at > behind ? behind : 0, v.at);
	return good ? 0 : -EINVAL;
}

static int
on_routes(const char *cmd, const char *param, struct rte_tel_data *t)
{
	(void)cmd;
	return answer(param, t, visit_routes);
}

static int
on_neighs(const char *cmd, const char *param, struct rte_tel_data *t)
{
	(void)cmd;
	return answer(param, t, visit_neighs);
}

bool
routes_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/routes", on_routes,
			"Routes, in pages. Parameter: number of the first, from the page before's "
			"next"},
		{"/sluice/neigh", on_neighs,
			"Neighbours, in pages. Parameter: number of the first, from the page "
			"before's next"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
