/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* [bridge NAME] */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "bridge_table.h"
#include "conf_priv.h"

#define ENTRIES_DEFAULT 4096
#define AGE_DEFAULT_S 300
/* Of a hash table that is twice as large as it need be, rounded up. */
#define ENTRY_BYTES 256

static struct conf_bridge *
bridge_of(struct conf_at *at)
{
	return at->item;
}

void *
conf_bridge_begin(struct conf_at *at, const char *name)
{
	struct conf *conf = at->conf;
	struct conf_bridge *b;

	if (conf->nbridges == CONF_BRIDGES_MAX) {
		conf_too_many(at, CONF_BRIDGES_MAX, "bridges");
		return NULL;
	}
	b = &conf->bridge[conf->nbridges++];
	b->line = at->line;
	b->entries = ENTRIES_DEFAULT;
	b->age_s = AGE_DEFAULT_S;
	snprintf(b->name, sizeof(b->name), "%s", name);
	return b;
}

static void
take_ports(struct conf_at *at)
{
	bridge_of(at)->ports_line = at->line;
	snprintf(bridge_of(at)->names, sizeof(bridge_of(at)->names), "%s", at->value);
}

static void
take_entries(struct conf_at *at)
{
	uint64_t n;

	bridge_of(at)->entries_line = at->line;
	if (conf_number(at, BRIDGE_ENTRIES_MIN, BRIDGE_ENTRIES_MAX, &n))
		bridge_of(at)->entries = (uint32_t)n;
}

static void
take_port_entries(struct conf_at *at)
{
	uint64_t n;

	bridge_of(at)->port_entries_line = at->line;
	if (conf_number(at, 1, BRIDGE_ENTRIES_MAX, &n))
		bridge_of(at)->port_entries = (uint32_t)n;
}

static void
take_age(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 1, BRIDGE_AGE_MAX_S, &n))
		bridge_of(at)->age_s = (uint32_t)n;
}

const struct conf_key conf_bridge_keys[] = {
	{"ports", "lan1 lan2", take_ports},
	{"entries", NULL, take_entries},
	{"port-entries", NULL, take_port_entries},
	{"age", NULL, take_age},
	{NULL, NULL, NULL},
};

/* ---- several keys ---- */

static uint16_t
port_index(const struct conf *conf, const char *name)
{
	uint16_t i = 0;

	while (i < conf->nports && strcmp(conf->port[i].name, name) != 0)
		i++;
	return i;
}

/* A word of "ports". */
static void
add_port(struct conf *conf, uint16_t index, const char *name, struct mistakes *m)
{
	struct conf_bridge *b = &conf->bridge[index];
	uint16_t i = port_index(conf, name);

	if (i == conf->nports)
		mistake(m, b->ports_line,
			"[bridge %s] ports: there is no [port %s]; name one that there is.",
			b->name, name);
	else if (conf->port[i].bridge == index + 1u)
		mistake(m, b->ports_line, "[bridge %s] ports: names \"%s\" twice; once is enough.",
			b->name, name);
	else if (conf->port[i].bridge != 0)
		mistake(m, b->ports_line,
			"[bridge %s] ports: [port %s] is in [bridge %s] already; give it to one.",
			b->name, name, conf->bridge[conf->port[i].bridge - 1].name);
	else
		conf->port[i].bridge = (uint16_t)(index + 1);
	if (i < conf->nports && conf->port[i].bridge == index + 1u && b->nports < CONF_PORTS_MAX)
		b->port[b->nports++] = i;
}

static void
check_bridge(struct conf *conf, uint16_t index, struct mistakes *m)
{
	struct conf_bridge *b = &conf->bridge[index];
	const char *text = b->names;
	size_t before = mistakes_count(m);
	char word[CONF_NAME_LEN];

	while (conf_next(&text, word, sizeof(word)))
		add_port(conf, index, word, m);
	if (b->ports_line != 0 && b->nports < 2 && mistakes_count(m) == before)
		mistake(m, b->ports_line,
			"[bridge %s] ports = %s: a bridge is between two ports at least; name "
			"another.",
			b->name, b->names);
	if (b->port_entries > b->entries)
		mistake(m, b->port_entries_line,
			"[bridge %s] port-entries = %u: is more than \"entries\", which are %u.",
			b->name, b->port_entries, b->entries);
	/* So that no port can take another one's. */
	if (b->port_entries_line == 0)
		b->port_entries = RTE_MAX(b->entries / RTE_MAX(b->nports, 1u), 1u);
}

/* What a port of a bridge does not have. */
static void
check_member(const struct conf *conf, const struct conf_port *p, struct mistakes *m)
{
	const char *bridge = p->bridge != 0 ? conf->bridge[p->bridge - 1].name : "";

	if (p->bridge == 0) {
		if (p->address_line == 0)
			mistake(m, p->line,
				"[%s %s]: lacks address; add \"address = 198.18.0.2/24\", for "
				"instance.",
				p->section, p->name);
		return;
	}
	if (p->address_line != 0)
		mistake(m, p->address_line,
			"[%s %s] address: the port is in [bridge %s] and has none of its own; "
			"leave it out.",
			p->section, p->name, bridge);
	if (p->gateway_line != 0 || p->gateway6_line != 0)
		mistake(m, RTE_MAX(p->gateway_line, p->gateway6_line),
			"[%s %s] gateway: the port is in [bridge %s] and has no address; leave "
			"it out.",
			p->section, p->name, bridge);
	if (p->vlan != 0)
		mistake(m, p->line,
			"[%s %s] vlan: the port is in [bridge %s], which passes all tags on; "
			"leave it out.",
			p->section, p->name, bridge);
	if (p->exception_line != 0)
		mistake(m, p->exception_line,
			"[%s %s] exception: the port is in [bridge %s] and has no address; leave it "
			"out.",
			p->section, p->name, bridge);
}

void
conf_bridge_cross(struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->nbridges; i++)
		check_bridge(conf, i, m);
	for (uint16_t i = 0; i < conf->nports; i++)
		check_member(conf, &conf->port[i], m);
	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *s = &conf->service[i];
		uint16_t p = s->port[0] != '\0' ? port_index(conf, s->port) : conf->nports;

		if (p < conf->nports && conf->port[p].bridge != 0)
			mistake(m, s->port_line,
				"[service %s] port = %s: is in [bridge %s] and has no address; "
				"name "
				"another.",
				s->name, s->port, conf->bridge[conf->port[p].bridge - 1].name);
	}
}

uint64_t
conf_bridge_bytes(const struct conf *conf)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < conf->nbridges; i++)
		bytes += (uint64_t)conf->bridge[i].entries * ENTRY_BYTES;
	return bytes;
}

static const struct conf_bridge *
find_bridge(const struct conf *conf, const char *name)
{
	for (uint16_t i = 0; i < conf->nbridges; i++)
		if (strcmp(conf->bridge[i].name, name) == 0)
			return &conf->bridge[i];
	return NULL;
}

/* Do they have the same ports, in whatever order? The ports themselves are compared elsewhere. */
static bool
same_ports(const struct conf *now, const struct conf_bridge *a, const struct conf *next,
	const struct conf_bridge *b)
{
	if (a->nports != b->nports)
		return false;
	for (uint16_t i = 0; i < a->nports; i++) {
		uint16_t k = 0;

		while (k < b->nports &&
			strcmp(now->port[a->port[i]].name, next->port[b->port[k]].name) != 0)
			k++;
		if (k == b->nports)
			return false;
	}
	return true;
}

void
conf_bridge_restart_only(const struct conf *now, const struct conf *next, struct mistakes *m)
{
	static const char what[] = "changes with a restart only; restart, or take the change back.";

	for (uint16_t i = 0; i < next->nbridges; i++) {
		const struct conf_bridge *b = &next->bridge[i], *a = find_bridge(now, b->name);

		if (a == NULL)
			mistake(m, b->line, "[bridge %s]: is new, and %s", b->name, what);
		else if (!same_ports(now, a, next, b))
			mistake(m, b->ports_line, "[bridge %s] ports: %s", b->name, what);
		else if (a->entries != b->entries)
			mistake(m, b->entries_line != 0 ? b->entries_line : b->line,
				"[bridge %s] entries: %s", b->name, what);
	}
	for (uint16_t i = 0; i < now->nbridges; i++)
		if (find_bridge(next, now->bridge[i].name) == NULL)
			mistake(m, 0, "[bridge %s]: is gone, and %s", now->bridge[i].name, what);
}
