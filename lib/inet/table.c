/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fib.h"
#include "table.h"

#define ROUTES_DEFAULT 256u
#define ROUTES_MAX 4096u
int
inet_table_create(const struct sl_inet_conf *conf, struct inet_table **out)
{
	uint32_t routes = conf->routes != 0 ? conf->routes : ROUTES_DEFAULT;
	uint32_t connected = SL_INET_PORTS_MAX * SL_INET_ADDRS_MAX;
	struct inet_table *t;

	if (routes > ROUTES_MAX)
		return -EINVAL;
	t = inet_alloc(sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->routes_max = routes;
	t->route = inet_alloc((routes + connected + 1) * sizeof(*t->route));
	if (t->route == NULL) {
		free(t);
		return -ENOMEM;
	}
	SL_ASSERT(pthread_rwlock_init(&t->lock, NULL) == 0);
	*out = t;
	return 0;
}

static void
fib_free(const struct inet_fib *fib)
{
	inet_fib_destroy((struct inet_fib *)(uintptr_t)fib);
}

void
inet_table_destroy(struct sl_inet *inet)
{
	struct inet_table *t = inet->table;

	if (t == NULL)
		return;
	for (uint32_t i = 0; i < t->retired_n; i++)
		fib_free(t->retired[i].fib);
	fib_free(inet->fib4);
	fib_free(inet->fib6);
	pthread_rwlock_destroy(&t->lock);
	free(t->route);
	free(t);
}

/* Of prefixes; which of two is the better for packets; 0 if that is up to who came first. */
static int
compare(const struct inet_table_route *a, const struct inet_table_route *b)
{
	const struct sl_inet_route *x = &a->info.route, *y = &b->info.route;
	bool v4 = inet_is_v4(&x->dst);
	int order = memcmp(&x->dst, &y->dst, sizeof(x->dst));

	if (v4 != inet_is_v4(&y->dst))
		return v4 ? -1 : 1;
	if (order == 0)
		order = (int)x->prefix - (int)y->prefix;
	if (order == 0)
		order = (x->metric > y->metric) - (x->metric < y->metric);
	return order != 0 ? order : (int)a->info.kind - (int)b->info.kind;
}

static bool
same_prefix(const struct sl_inet_route *x, const struct sl_inet_route *y)
{
	return x->prefix == y->prefix && inet_addr_equal(&x->dst, &y->dst);
}

/* Behind all that are not worse. */
static void
insert(struct inet_table *t, const struct inet_table_route *new)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (compare(new, &t->route[middle]) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	memmove(&t->route[low + 1], &t->route[low], (t->n - low) * sizeof(*new));
	t->route[low] = *new;
	t->n++;
	t->configured += new->info.kind != SL_INET_ROUTE_CONNECTED;
}

static void
take_out(struct inet_table *t, uint32_t i)
{
	t->configured -= t->route[i].info.kind != SL_INET_ROUTE_CONNECTED;
	t->n--;
	memmove(&t->route[i], &t->route[i + 1], (t->n - i) * sizeof(t->route[0]));
}

/* Where a route with all these members is; t->n if it is not. */
static uint32_t
find(const struct inet_table *t, const struct inet_table_route *wanted)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		const struct inet_table_route *r = &t->route[i];

		if (r->port == wanted->port && r->info.kind == wanted->info.kind &&
			r->info.route.metric == wanted->info.route.metric &&
			same_prefix(&r->info.route, &wanted->info.route) &&
			inet_addr_equal(&r->info.route.via, &wanted->info.route.via))
			break;
	}
	return i;
}

static bool
usable(const struct inet_table_route *r)
{
	const struct sl_addr *via = &r->info.route.via;

	return sl_addr_is_any(via) || inet_is_link_local(via) || inet_on_link(r->port, via) >= 0;
}

/* Say of each route whether packets go by it; how many do, of one family. */
static uint32_t
choose(struct inet_table *t, bool v4)
{
	const struct inet_table_route *best = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		struct inet_table_route *r = &t->route[i];

		r->info.usable = usable(r);
		r->info.best = r->info.usable &&
			       (best == NULL || !same_prefix(&best->info.route, &r->info.route));
		if (r->info.best) {
			best = r;
			n += inet_is_v4(&r->info.route.dst) == v4;
		}
	}
	return n;
}

static int
build(struct inet_table *t, bool v4, struct inet_fib **out)
{
	uint32_t n = choose(t, v4);
	struct inet_fib *fib;
	int ret;

	*out = NULL;
	if (n == 0)
		return 0;
	ret = inet_fib_create(v4, n, &fib);
	for (uint32_t i = 0; i < t->n && ret == 0; i++) {
		const struct inet_table_route *r = &t->route[i];
		struct inet_next_hop hop = {.port = r->port,
			.via = r->info.route.via,
			.metric = r->info.route.metric,
			.on_link = sl_addr_is_any(&r->info.route.via)};

		if (!r->info.best || inet_is_v4(&r->info.route.dst) != v4)
			continue;
		ret = inet_fib_add(fib, &r->info.route.dst, r->info.route.prefix, &hop);
		if (ret != 0)
			inet_fib_destroy(fib);
	}
	if (ret == 0)
		*out = fib;
	return ret;
}

/* Free the tables that no worker looks at any more. */
static void
reap(struct sl_inet *inet)
{
	struct inet_table *t = inet->table;
	uint32_t left = 0;

	for (uint32_t i = 0; i < t->retired_n; i++) {
		if (rte_rcu_qsbr_check(inet->rcu, t->retired[i].token, false) == 1)
			fib_free(t->retired[i].fib);
		else
			t->retired[left++] = t->retired[i];
	}
	t->retired_n = left;
}

/* The routes of one family have changed: let workers see it. On an error they go by the former
 * ones. */
static int
publish(struct sl_inet *inet, bool v4)
{
	const struct inet_fib **place = v4 ? &inet->fib4 : &inet->fib6, *old = *place;
	struct inet_table *t = inet->table;
	struct inet_fib *fib;
	int ret;

	reap(inet);
	for (int i = 0; t->retired_n == TABLE_RETIRED_MAX && i < TABLE_WAITS; i++) {
		rte_delay_us_sleep(TABLE_WAIT_US);
		reap(inet);
	}
	if (t->retired_n == TABLE_RETIRED_MAX)
		return -EBUSY;
	ret = build(t, v4, &fib);
	if (ret != 0)
		return ret;
	sl_store_release(place, fib);		 /* IN1 */
	sl_fetch_add_release(&inet->routes, 1u); /* IN1 */
	if (old != NULL) {
		t->retired[t->retired_n].fib = old;
		t->retired[t->retired_n++].token = rte_rcu_qsbr_start(inet->rcu);
	}
	return 0;
}

static int
insert_and_publish(struct sl_inet *inet, const struct inet_table_route *r)
{
	bool v4 = inet_is_v4(&r->info.route.dst);
	struct inet_table *t = inet->table;
	int ret;

	insert(t, r);
	ret = publish(inet, v4);
	if (ret != 0) {
		take_out(t, find(t, r));
		choose(t, v4);
	}
	return ret;
}

static int
take_out_and_publish(struct sl_inet *inet, uint32_t i)
{
	struct inet_table *t = inet->table;
	struct inet_table_route r = t->route[i];
	bool v4 = inet_is_v4(&r.info.route.dst);
	int ret;

	take_out(t, i);
	ret = publish(inet, v4);
	if (ret != 0) {
		insert(t, &r);
		choose(t, v4);
	}
	return ret;
}

static void
make_connected(struct inet_table_route *r, struct inet_port *port, const struct sl_addr *addr,
	uint8_t prefix)
{
	*r = (struct inet_table_route){.port = port,
		.users = 1,
		.info.kind = SL_INET_ROUTE_CONNECTED,
		.info.route.dst = inet_prefix_of(addr, prefix),
		.info.route.prefix = prefix,
		.info.route.port = port->id};
}

int
inet_table_connect(
	struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr, uint8_t prefix)
{
	struct inet_table *t = inet->table;
	struct inet_table_route r;
	uint32_t i;

	make_connected(&r, port, addr, prefix);
	i = find(t, &r);
	if (i == t->n)
		return insert_and_publish(inet, &r);
	t->route[i].users++;
	sl_fetch_add_release(&inet->routes, 1u); /* IN1 */
	return 0;
}

int
inet_table_disconnect(
	struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr, uint8_t prefix)
{
	struct inet_table *t = inet->table;
	struct inet_table_route r;
	uint32_t i;

	make_connected(&r, port, addr, prefix);
	i = find(t, &r);
	SL_ASSERT(i < t->n);
	if (t->route[i].users == 1)
		return take_out_and_publish(inet, i);
	t->route[i].users--;
	sl_fetch_add_release(&inet->routes, 1u); /* IN1 */
	return 0;
}

/* Could such a next hop be: a host, of that family, not ourselves? */
static bool
via_possible(const struct inet_port *port, const struct sl_addr *via, bool v4)
{
	return inet_is_v4(via) == v4 && inet_addr_acceptable(via, 0) &&
	       inet_port_addr(port, via) == NULL &&
	       !(v4 && inet_port_is_broadcast4(port, inet_to_v4(via)));
}

/* Checks of sl_inet_route_add that need no look at other routes. */
static int
check(const struct inet_port *port, const struct sl_inet_route *route)
{
	bool v4 = inet_is_v4(&route->dst);
	struct sl_addr whole;

	if (port == NULL)
		return -ENODEV;
	if (route->prefix > (v4 ? 32 : 128))
		return -EINVAL;
	whole = inet_prefix_of(&route->dst, route->prefix);
	if (!inet_addr_equal(&whole, &route->dst) || inet_is_multicast(&route->dst) ||
		(!v4 && inet_is_link_local(&route->dst)))
		return -EINVAL;
	if (!sl_addr_is_any(&route->via) && !via_possible(port, &route->via, v4))
		return -EINVAL;
	return 0;
}

/* What the table keeps for a route that was asked for. */
static struct inet_table_route
make_route(struct inet_port *port, const struct sl_inet_route *route, enum sl_inet_route_kind kind)
{
	struct inet_table_route r = {.port = port, .info.route = *route, .info.kind = kind};

	if (sl_addr_is_any(&route->via))
		memset(&r.info.route.via, 0, sizeof(r.info.route.via));
	return r;
}

static bool
exists(const struct inet_table *t, const struct sl_inet_route *route)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->route[i].info.route.metric == route->metric &&
			same_prefix(&t->route[i].info.route, route))
			return true;
	}
	return false;
}

static int
route_add_locked(struct sl_inet *inet, const struct sl_inet_route *route)
{
	struct inet_port *port = inet_port_find(inet, route->port);
	int ret = check(port, route);
	struct inet_table_route r;

	if (ret != 0)
		return ret;
	if (exists(inet->table, route))
		return -EEXIST;
	r = make_route(port, route, SL_INET_ROUTE_STATIC);
	if (!usable(&r))
		return -ENETUNREACH;
	if (inet->table->configured == inet->table->routes_max)
		return -ENOSPC;
	return insert_and_publish(inet, &r);
}

int
sl_inet_route_add(struct sl_inet *inet, const struct sl_inet_route *route)
{
	int ret;

	inet_table_write(inet);
	ret = route_add_locked(inet, route);
	inet_table_unlock(inet);
	return ret;
}

static int
route_del_locked(struct sl_inet *inet, const struct sl_inet_route *route)
{
	static const enum sl_inet_route_kind kinds[] = {
		SL_INET_ROUTE_STATIC, SL_INET_ROUTE_GATEWAY, SL_INET_ROUTE_CONNECTED};
	struct inet_port *port = inet_port_find(inet, route->port);

	for (size_t k = 0; k < SL_COUNT_OF(kinds) && port != NULL; k++) {
		struct inet_table_route r = make_route(port, route, kinds[k]);
		uint32_t i = find(inet->table, &r);

		if (i == inet->table->n)
			continue;
		return kinds[k] == SL_INET_ROUTE_CONNECTED ? -EINVAL
							   : take_out_and_publish(inet, i);
	}
	return -ESRCH;
}

int
sl_inet_route_del(struct sl_inet *inet, const struct sl_inet_route *route)
{
	int ret;

	inet_table_write(inet);
	ret = route_del_locked(inet, route);
	inet_table_unlock(inet);
	return ret;
}

void
sl_inet_route_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_route_info *route), void *arg)
{
	inet_table_read(inet);
	for (uint32_t i = 0; i < inet->table->n; i++)
		visit(arg, &inet->table->route[i].info);
	inet_table_unlock(inet);
}

/* The port's gateway of that family. */
static uint32_t
find_gateway(const struct inet_table *t, const struct inet_port *port, bool v4)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		const struct inet_table_route *r = &t->route[i];

		if (r->info.kind == SL_INET_ROUTE_GATEWAY && r->port == port &&
			inet_is_v4(&r->info.route.dst) == v4)
			break;
	}
	return i;
}

static int
gateway_set_locked(struct sl_inet *inet, uint16_t handle, const struct sl_addr *gateway)
{
	struct inet_port *port = inet_port_find(inet, handle);
	bool v4 = inet_is_v4(gateway);
	struct sl_inet_route route = {
		.dst = v4 ? sl_addr_v4(0) : (struct sl_addr){{0}}, .via = *gateway, .port = handle};
	struct inet_table *t = inet->table;
	struct inet_table_route old, new;
	uint32_t i;
	int ret;

	if (port == NULL)
		return -ENODEV;
	if (!via_possible(port, gateway, v4))
		return -EINVAL;
	route.metric = SL_INET_GATEWAY_METRIC + port->index;
	new = make_route(port, &route, SL_INET_ROUTE_GATEWAY);
	if (!usable(&new))
		return -ENETUNREACH;
	i = find_gateway(t, port, v4);
	if (i == t->n) {
		if (exists(t, &route))
			return -EEXIST;
		return t->configured < t->routes_max ? insert_and_publish(inet, &new) : -ENOSPC;
	}
	old = t->route[i];
	take_out(t, i);
	ret = insert_and_publish(inet, &new);
	if (ret != 0) {
		insert(t, &old);
		choose(t, v4);
	}
	return ret;
}

int
sl_inet_gateway_set(struct sl_inet *inet, uint16_t port, const struct sl_addr *gateway)
{
	int ret;

	inet_table_write(inet);
	ret = gateway_set_locked(inet, port, gateway);
	inet_table_unlock(inet);
	return ret;
}
