/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* [route NAME] sections. */
#include <stdio.h>
#include <string.h>

#include "conf_priv.h"

#define METRIC_DEFAULT 100

void *
conf_route_begin(struct conf_at *at, const char *name)
{
	struct conf *conf = at->conf;
	struct conf_route *r;

	if (conf->nroutes == CONF_ROUTES_MAX) {
		conf_too_many(at, CONF_ROUTES_MAX, "routes");
		return NULL;
	}
	r = &conf->route[conf->nroutes++];
	r->line = at->line;
	r->metric = METRIC_DEFAULT;
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

/* The first address of the network that one is in. */
static struct sl_addr
network(const struct conf_cidr *c)
{
	unsigned int bits = c->prefix + (sl_addr_is_v4(&c->addr) ? 96u : 0u);
	struct sl_addr a = c->addr;

	for (unsigned int i = bits; i < 128; i++)
		a.b[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	return a;
}

static void
take_prefix(struct conf_at *at)
{
	struct conf_route *r = at->item;
	struct conf_cidr c = {0};
	struct sl_addr first;
	char text[64];

	r->prefix_line = at->line;
	if (sl_addr_parse(at->value, &c.addr, &c.prefix) != 0 || strchr(at->value, '/') == NULL) {
		conf_wrong(at, "is no network; write 198.51.100.0/24, 2001:db8:1::/48 or "
			       "0.0.0.0/0.");
		return;
	}
	first = network(&c);
	if (memcmp(&first, &c.addr, sizeof(first)) != 0) {
		conf_wrong(at, "has bits behind the prefix length; write %s/%u.",
			sl_addr_format(&first, text, sizeof(text)), c.prefix);
	} else if (sl_addr_is_multicast(&c.addr)) {
		conf_wrong(at, "is a network of groups; name one of hosts.");
	} else {
		r->prefix = c;
		r->has_prefix = true;
	}
}

static void
take_via(struct conf_at *at)
{
	struct conf_route *r = at->item;
	const char *why;
	struct sl_addr a;
	uint8_t prefix;

	r->via_line = at->line;
	if (sl_addr_parse(at->value, &a, &prefix) != 0 || strchr(at->value, '/') != NULL) {
		conf_wrong(at, "is no address; write 198.18.0.1 or 2001:db8::1.");
		return;
	}
	why = conf_addr_unfit(&a, 32);
	if (why != NULL)
		conf_wrong(at, "%s; name a router on the link.", why);
	else
		r->via = a;
}

static void
take_port(struct conf_at *at)
{
	struct conf_route *r = at->item;

	r->port_line = at->line;
	if (conf_name_good(at->value))
		snprintf(r->port, sizeof(r->port), "%s", at->value);
	else
		conf_wrong(at, "is no name of a port; write the NAME of a [port NAME].");
}

static void
take_metric(struct conf_at *at)
{
	struct conf_route *r = at->item;
	uint64_t n;

	if (conf_number(at, 0, UINT32_MAX, &n))
		r->metric = (uint32_t)n;
}

const struct conf_key conf_route_keys[] = {
	{"prefix", "198.51.100.0/24", take_prefix},
	{"via", NULL, take_via},
	{"port", NULL, take_port},
	{"metric", NULL, take_metric},
	{NULL, NULL, NULL},
};

bool
conf_route_equal(const struct conf_route *a, const struct conf_route *b)
{
	return a->prefix.prefix == b->prefix.prefix &&
	       memcmp(&a->prefix.addr, &b->prefix.addr, sizeof(a->prefix.addr)) == 0 &&
	       memcmp(&a->via, &b->via, sizeof(a->via)) == 0 && strcmp(a->port, b->port) == 0 &&
	       a->metric == b->metric;
}
