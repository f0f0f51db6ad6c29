/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include "inet_priv.h"

static const struct sl_addr *
gateway(const struct inet_port *port, bool v4)
{
	return v4 ? sl_load_acquire(&port->gateway4) : sl_load_acquire(&port->gateway6); /* IN1 */
}

int
inet_on_link(const struct inet_port *port, const struct sl_addr *dst)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */
	int best = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *a = &port->addr[i];

		if (a->prefix > best && inet_prefix_match(&a->addr, dst, a->prefix))
			best = a->prefix;
	}
	return best;
}

/* Destinations that are on every link: the source address says which is meant. */
static int
route_scoped(const struct sl_inet *inet, uint32_t ports, const struct sl_addr *src,
	struct inet_port **port)
{
	for (uint32_t i = 0; i < ports; i++) {
		if (src == NULL || inet_port_is_local(inet->port[i], src)) {
			*port = inet->port[i];
			return 0;
		}
	}
	return -ENETUNREACH;
}

int
inet_route(const struct sl_inet *inet, const struct sl_addr *dst, const struct sl_addr *src,
	struct inet_port **port, struct sl_addr *hop)
{
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */
	bool v4 = inet_is_v4(dst);
	int best = -1;

	*hop = *dst;
	if (sl_addr_is_any(dst))
		return -ENETUNREACH;
	if (inet_is_multicast(dst) || (!v4 && inet_is_link_local(dst)))
		return route_scoped(inet, ports, src, port);
	for (uint32_t i = 0; i < ports; i++) {
		int len = inet_on_link(inet->port[i], dst);

		if (len > best) {
			best = len;
			*port = inet->port[i];
		}
	}
	/* Packets to ourselves would have to come back in: there is no loopback here. */
	if (best >= 0)
		return inet_port_addr(*port, dst) == NULL ? 0 : -ENETUNREACH;
	for (uint32_t i = 0; i < ports; i++) {
		const struct sl_addr *via = gateway(inet->port[i], v4);

		if (via != NULL) {
			*hop = *via;
			*port = inet->port[i];
			return 0;
		}
	}
	return -ENETUNREACH;
}

/* How well an address suits as source for dst, below 0 not at all. Same scope first, then the
 * longest prefix that covers dst (RFC 6724, rules 2 and 8 as far as they go here). */
static int
suits(const struct inet_addr *a, const struct sl_addr *dst)
{
	bool v4 = inet_is_v4(dst);
	bool want_local =
		inet_is_link_local(dst) || (!v4 && dst->b[0] == 0xff && (dst->b[1] & 0xf) == 2);
	int score;

	if (inet_is_v4(&a->addr) != v4 || sl_load_relaxed(&a->state) != INET_ADDR_READY)
		return -1;
	score = inet_is_link_local(&a->addr) == want_local ? 256 : 0;
	if (inet_prefix_match(&a->addr, dst, a->prefix))
		score += 1 + a->prefix;
	return score;
}

const struct inet_addr *
inet_port_source(const struct inet_port *port, const struct sl_addr *dst)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */
	const struct inet_addr *found = NULL;
	int best = -1;

	for (uint32_t i = 0; i < n; i++) {
		int score = suits(&port->addr[i], dst);

		if (score > best) {
			best = score;
			found = &port->addr[i];
		}
	}
	return found;
}

int
sl_inet_source(const struct sl_inet *inet, const struct sl_addr *dst, struct sl_addr *src)
{
	const struct inet_addr *a;
	struct inet_port *port;
	struct sl_addr hop;
	int ret;

	ret = inet_route(inet, dst, NULL, &port, &hop);
	if (ret != 0)
		return ret;
	a = inet_port_source(port, dst);
	if (a == NULL)
		return -ENETUNREACH;
	*src = a->addr;
	return 0;
}
