/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* VLANs, exception paths, sockets of frontends and routes: what one value alone does not show. */
#include <stdio.h>
#include <string.h>

#include <rte_jhash.h>

#include "conf_priv.h"

static bool
is_link_local(const struct sl_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static struct conf_port *
nth(struct conf *conf, uint16_t i)
{
	return i < conf->nports ? &conf->port[i] : &conf->vlan[i - conf->nports];
}

static void
check_vlan(const struct conf *conf, const struct conf_port *v, struct mistakes *m)
{
	const struct conf_port *on = conf_find_port(conf, v->on);

	if (v->on[0] == '\0')
		return;
	if (on == NULL || on->on[0] != '\0') {
		mistake(m, v->on_line,
			"[vlan %s] port = %s: there is no such port; write the NAME of a [port "
			"NAME].",
			v->name, v->on);
		return;
	}
	if (on->bridge != 0)
		mistake(m, v->on_line,
			"[vlan %s] port = %s: is in a bridge, which passes all tags on; name "
			"another.",
			v->name, v->on);
	if (v->vlan != 0 && on->vlan == v->vlan)
		mistake(m, v->vlan_line,
			"[vlan %s] vlan = %u: [%s %s] on line %u is in it already; choose another.",
			v->name, v->vlan, on->section, on->name, on->line);
	for (uint16_t i = 0; i < conf->nvlans; i++) {
		const struct conf_port *other = &conf->vlan[i];

		if (other == v)
			return;
		if (v->vlan != 0 && other->vlan == v->vlan && strcmp(other->on, v->on) == 0)
			mistake(m, v->vlan_line,
				"[vlan %s] vlan = %u: [vlan %s] on line %u is that of the port "
				"already; choose another.",
				v->name, v->vlan, other->name, other->line);
	}
}

/* Interfaces and sockets that two want, or that are taken otherwise. */
static void
check_names(struct conf *conf, uint16_t i, struct mistakes *m)
{
	const struct conf_port *p = nth(conf, i);

	for (uint16_t k = 0; k < conf->nports + conf->nvlans; k++) {
		const struct conf_port *q = nth(conf, k);

		if (p->exception[0] != '\0' && strcmp(p->exception, q->iface) == 0)
			mistake(m, p->exception_line,
				"[%s %s] exception = %s: is the interface of [%s %s]; choose a "
				"name that "
				"no interface has.",
				p->section, p->name, p->exception, q->section, q->name);
		if (k >= i)
			continue;
		if (p->exception[0] != '\0' && strcmp(p->exception, q->exception) == 0)
			mistake(m, p->exception_line,
				"[%s %s] exception = %s: [%s %s] has it already; choose another "
				"name.",
				p->section, p->name, p->exception, q->section, q->name);
		if (p->path[0] != '\0' && strcmp(p->path, q->path) == 0)
			mistake(m, p->path_line,
				"[%s %s] path = %s: [%s %s] has it already; choose another.",
				p->section, p->name, p->path, q->section, q->name);
	}
}

/* The port whose networks have the next hop, or NULL. */
static const struct conf_port *
reached_by(struct conf *conf, const struct conf_route *r)
{
	for (uint16_t i = 0; i < conf->nports + conf->nvlans; i++) {
		const struct conf_port *p = nth(conf, i);

		if (r->port[0] != '\0' && strcmp(r->port, p->name) != 0)
			continue;
		for (uint16_t k = 0; k < p->naddrs; k++)
			if (conf_on_link(&p->addrs[k], &r->via))
				return p;
		if (r->port[0] != '\0' && is_link_local(&r->via))
			return p;
	}
	return NULL;
}

static void
check_via(struct conf *conf, struct conf_route *r, struct mistakes *m)
{
	const struct conf_port *p = reached_by(conf, r);
	char text[64];

	sl_addr_format(&r->via, text, sizeof(text));
	if (sl_addr_is_v4(&r->via) != sl_addr_is_v4(&r->prefix.addr)) {
		if (r->has_prefix)
			mistake(m, r->via_line,
				"[route %s] via = %s: is of another family than the prefix; name a "
				"router of that.",
				r->name, text);
		return;
	}
	if (conf_port_of(conf, &r->via) != NULL) {
		mistake(m, r->via_line,
			"[route %s] via = %s: is an address of ours; name a router.", r->name,
			text);
		return;
	}
	if (p != NULL && conf_is_broadcast(p, &r->via))
		mistake(m, r->via_line,
			"[route %s] via = %s: is the broadcast address of its network; name a "
			"router.",
			r->name, text);
	if (p == NULL && r->port[0] != '\0')
		mistake(m, r->via_line,
			"[route %s] via = %s: is in none of the networks of [port %s]; name a "
			"router on "
			"its link.",
			r->name, text, r->port);
	else if (p == NULL)
		mistake(m, r->via_line,
			"[route %s] via = %s: is in no network of a port; name a router on a "
			"link%s.",
			r->name, text, is_link_local(&r->via) ? ", and its \"port\"" : "");
	else
		snprintf(r->port, sizeof(r->port), "%s", p->name);
}

static void
check_route(struct conf *conf, uint16_t i, struct mistakes *m)
{
	struct conf_route *r = &conf->route[i];
	bool known = r->port[0] == '\0' || conf_find_port(conf, r->port) != NULL;

	if (!known)
		mistake(m, r->port_line,
			"[route %s] port = %s: there is no [port %s]; name one that there is.",
			r->name, r->port, r->port);
	if (r->via_line == 0 && r->port_line == 0)
		mistake(m, r->line,
			"[route %s]: has neither \"via\" nor \"port\"; add the router, or the port "
			"to "
			"whose link the network belongs.",
			r->name);
	if (known && r->via_line != 0 && !sl_addr_is_any(&r->via))
		check_via(conf, r, m);
	for (uint16_t k = 0; k < i && r->has_prefix; k++) {
		const struct conf_route *q = &conf->route[k];

		if (!q->has_prefix || q->metric != r->metric ||
			q->prefix.prefix != r->prefix.prefix ||
			memcmp(&q->prefix.addr, &r->prefix.addr, sizeof(q->prefix.addr)) != 0)
			continue;
		mistake(m, r->line,
			"[route %s]: [route %s] on line %u has the same prefix and metric; give "
			"one "
			"another \"metric\".",
			r->name, q->name, q->line);
		break;
	}
}

/* Peers remember it, so it must be the same after a restart: made of the names, locally
 * administered. */
static void
default_mac(const struct conf *conf, struct conf_port *p)
{
	static const uint8_t none[sizeof(p->mac)];
	uint32_t hash;

	if (p->path[0] == '\0' || memcmp(p->mac, none, sizeof(none)) != 0)
		return;
	hash = rte_jhash(conf->name, (uint32_t)strlen(conf->name), 0);
	hash = rte_jhash(p->name, (uint32_t)strlen(p->name), hash);
	p->mac[0] = 0x02;
	p->mac[1] = 0x53;
	memcpy(p->mac + 2, &hash, sizeof(hash));
}

void
conf_link_cross(struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->nvlans; i++)
		check_vlan(conf, &conf->vlan[i], m);
	for (uint16_t i = 0; i < conf->nports + conf->nvlans; i++)
		check_names(conf, i, m);
	for (uint16_t i = 0; i < conf->nports; i++)
		default_mac(conf, &conf->port[i]);
	for (uint16_t i = 0; i < conf->nroutes; i++)
		check_route(conf, i, m);
}
