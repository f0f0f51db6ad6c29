/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include "fib.h"
#include "inet_priv.h"
#include "table.h"

int
inet_on_link(const struct inet_port *port, const struct sl_addr *dst)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */
	int best = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *a = &port->addr[i];

		if (inet_addr_state(a) != INET_ADDR_NONE && a->prefix > best &&
			inet_prefix_match(&a->addr, dst, a->prefix))
			best = a->prefix;
	}
	return best;
}

/* Destinations that are on every link: the source address says which is meant. */
static int
route_scoped(const struct sl_inet *inet, const struct sl_addr *src, struct inet_port **port)
{
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */

	for (uint32_t i = 0; i < ports; i++) {
		if (src == NULL || inet_port_is_local(inet->port[i], src)) {
			*port = inet->port[i];
			return 0;
		}
	}
	return -ENETUNREACH;
}

static bool
is_ours(const struct sl_inet *inet, const struct sl_addr *addr)
{
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */

	for (uint32_t i = 0; i < ports; i++) {
		if (inet_port_addr(inet->port[i], addr) != NULL)
			return true;
	}
	return false;
}

static const struct inet_next_hop *
find_hop(const struct sl_inet *inet, const struct sl_addr *dst)
{
	const struct inet_fib *fib = inet_is_v4(dst) ? sl_load_acquire(&inet->fib4)  /* IN1 */
						     : sl_load_acquire(&inet->fib6); /* IN1 */

	return inet_fib_find(fib, dst);
}

int
inet_route(const struct sl_inet *inet, const struct sl_addr *dst, const struct sl_addr *src,
	struct inet_port **port, struct sl_addr *hop)
{
	const struct inet_next_hop *next;

	*hop = *dst;
	if (sl_addr_is_any(dst))
		return -ENETUNREACH;
	if (inet_is_multicast(dst) || inet_is_link_local(dst))
		return route_scoped(inet, src, port);
	next = find_hop(inet, dst);
	/* Packets to ourselves would have to come back in: there is no loopback here. */
	if (next == NULL || is_ours(inet, dst))
		return -ENETUNREACH;
	if (!next->on_link)
		*hop = next->via;
	*port = next->port;
	return 0;
}

int
inet_source(const struct sl_inet *inet, const struct sl_addr *dst, struct inet_path *path)
{
	const struct inet_addr *a;
	int ret;

	/* Read first: a change from here on makes what is found out of date, not wrong. */
	path->routes = sl_load_acquire(&inet->routes); /* IN1 */
	path->dst = *dst;
	ret = inet_route(inet, dst, NULL, &path->port, &path->hop);
	if (ret != 0)
		return ret;
	a = inet_port_source(path->port, dst, &path->hop);
	if (a == NULL)
		return -ENETUNREACH;
	path->src = a->addr;
	path->has_src = true;
	return 0;
}

int
sl_inet_source(const struct sl_inet *inet, const struct sl_addr *dst, struct sl_addr *src)
{
	struct inet_path path;
	int ret;

	inet_table_read(inet);
	ret = inet_source(inet, dst, &path);
	inet_table_unlock(inet);
	if (ret == 0)
		*src = path.src;
	return ret;
}

static int
route_get_locked(const struct sl_inet *inet, const struct sl_addr *dst, struct sl_inet_route *route)
{
	const struct inet_next_hop *next;
	struct inet_port *port;
	struct sl_addr hop;
	int ret = inet_route(inet, dst, NULL, &port, &hop);

	if (ret != 0)
		return ret;
	next = find_hop(inet, dst);
	*route = (struct sl_inet_route){.dst = *dst,
		.prefix = inet_is_v4(dst) ? 32 : 128,
		.via = hop,
		.port = port->id,
		.metric = next != NULL ? next->metric : 0};
	return 0;
}

int
sl_inet_route_get(
	const struct sl_inet *inet, const struct sl_addr *dst, struct sl_inet_route *route)
{
	int ret;

	inet_table_read(inet);
	ret = route_get_locked(inet, dst, route);
	inet_table_unlock(inet);
	return ret;
}
