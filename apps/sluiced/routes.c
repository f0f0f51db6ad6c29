/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The stack's routes follow the [route] sections: what is new comes first, then what is gone goes,
 * then comes what takes the place of something, since two cannot have one prefix and metric. */
#include <errno.h>
#include <string.h>

#include "../common/app.h"
#include "daemon.h"
#include "sl_errno.h"
#include "sl_inet_table.h"

uint16_t
daemon_handles(const struct daemon *d)
{
	return d->conf.nports + d->conf.nvlans;
}

uint16_t
daemon_handle_at(const struct daemon *d, uint16_t i)
{
	return i < d->conf.nports ? d->port_id[i] : d->vlan_handle[i - d->conf.nports];
}

uint16_t
daemon_handle(const struct daemon *d, const char *name)
{
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (strcmp(d->conf.port[i].name, name) == 0)
			return d->port_id[i];
	for (uint16_t i = 0; i < d->conf.nvlans; i++)
		if (strcmp(d->conf.vlan[i].name, name) == 0)
			return d->vlan_handle[i];
	return UINT16_MAX;
}

const char *
daemon_handle_name(const struct daemon *d, uint16_t handle)
{
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (d->port_id[i] == handle)
			return d->conf.port[i].name;
	for (uint16_t i = 0; i < d->conf.nvlans; i++)
		if (d->vlan_handle[i] == handle)
			return d->conf.vlan[i].name;
	return "?";
}

static struct sl_inet_route
stack_route(const struct daemon *d, const struct conf_route *r)
{
	return (struct sl_inet_route){.dst = r->prefix.addr,
		.via = r->via,
		.metric = r->metric,
		.port = daemon_handle(d, r->port),
		.prefix = r->prefix.prefix};
}

static int
add(struct daemon *d, const struct conf_route *r)
{
	struct sl_inet_route route = stack_route(d, r);

	return sl_inet_route_add(d->inet, &route);
}

static int
del(struct daemon *d, const struct conf_route *r)
{
	struct sl_inet_route route = stack_route(d, r);

	return sl_inet_route_del(d->inet, &route);
}

void
daemon_open_routes(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nroutes; i++) {
		const struct conf_route *r = &d->conf.route[i];
		int ret = add(d, r);

		if (ret != 0)
			app_fail("%s:%u: [route %s]: cannot be added: %s.", d->path, r->line,
				r->name, sl_strerror(ret));
	}
}

static bool
has_equal(const struct conf *conf, const struct conf_route *r)
{
	for (uint16_t i = 0; i < conf->nroutes; i++)
		if (conf_route_equal(&conf->route[i], r))
			return true;
	return false;
}

/* Has some route of conf that prefix and metric? */
static bool
has_place(const struct conf *conf, const struct conf_route *r)
{
	for (uint16_t i = 0; i < conf->nroutes; i++) {
		const struct conf_route *q = &conf->route[i];

		if (q->metric == r->metric && q->prefix.prefix == r->prefix.prefix &&
			memcmp(&q->prefix.addr, &r->prefix.addr, sizeof(r->prefix.addr)) == 0)
			return true;
	}
	return false;
}

/* Add those of `to` that `from` does not have, of the kind that takes a place or of the other. The
 * first that cannot be added, or NULL. */
static const struct conf_route *
add_new(struct daemon *d, const struct conf *from, const struct conf *to, bool takes_place,
	int *ret)
{
	for (uint16_t i = 0; i < to->nroutes; i++) {
		const struct conf_route *r = &to->route[i];

		if (has_equal(from, r) || has_place(from, r) != takes_place)
			continue;
		*ret = add(d, r);
		if (*ret != 0 && *ret != -EEXIST)
			return r;
		/* Also one that is there already, from a change that was taken back half-way. */
		if (*ret == -EEXIST && del(d, r) != 0)
			return r;
		if (*ret == -EEXIST)
			*ret = add(d, r);
		if (*ret != 0)
			return r;
	}
	return NULL;
}

static const struct conf_route *
change(struct daemon *d, const struct conf *from, const struct conf *to, int *ret)
{
	const struct conf_route *bad = add_new(d, from, to, false, ret);

	for (uint16_t i = 0; i < from->nroutes && bad == NULL; i++) {
		*ret = has_equal(to, &from->route[i]) ? 0 : del(d, &from->route[i]);
		if (*ret != 0 && *ret != -ESRCH)
			bad = &from->route[i];
	}
	return bad != NULL ? bad : add_new(d, from, to, true, ret);
}

bool
daemon_reload_routes(struct daemon *d, const struct conf *next, struct mistakes *m)
{
	int ret = 0, again = 0;
	const struct conf_route *bad = change(d, &d->conf, next, &ret);

	if (bad == NULL) {
		d->conf.nroutes = next->nroutes;
		memcpy(d->conf.route, next->route, sizeof(d->conf.route));
		return true;
	}
	mistake(m, bad->line, "[route %s]: cannot be changed: %s.", bad->name, sl_strerror(ret));
	if (change(d, next, &d->conf, &again) != NULL)
		mistake(m, 0, "the former routes are not all back: %s; restart.",
			sl_strerror(again));
	return false;
}
