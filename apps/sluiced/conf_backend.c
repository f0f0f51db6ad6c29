/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* [backend NAME] */
#include <stdio.h>
#include <string.h>

#include "conf_priv.h"

static struct conf_backend *
backend_of(struct conf_at *at)
{
	return at->item;
}

void *
conf_backend_begin(struct conf_at *at, const char *name)
{
	struct conf *conf = at->conf;
	struct conf_backend *b;

	if (conf->nbackends == CONF_BACKENDS_MAX) {
		conf_too_many(at, CONF_BACKENDS_MAX, "back ends");
		return NULL;
	}
	b = &conf->backend[conf->nbackends++];
	b->line = at->line;
	b->weight = 1;
	snprintf(b->name, sizeof(b->name), "%s", name);
	return b;
}

static void
take_address(struct conf_at *at)
{
	struct sl_addr a;
	const char *why;
	uint8_t prefix;

	backend_of(at)->address_line = at->line;
	if (sl_addr_parse(at->value, &a, &prefix) != 0 || strchr(at->value, '/') != NULL) {
		conf_wrong(at, "is no address; write 198.18.0.11 or 2001:db8::11.");
		return;
	}
	why = conf_addr_unfit(&a, 32);
	if (why != NULL)
		conf_wrong(at, "%s; name the host that is to serve.", why);
	else
		backend_of(at)->addr = a;
}

static void
take_udp_port(struct conf_at *at)
{
	uint64_t n;

	backend_of(at)->udp_line = at->line;
	if (conf_number(at, 1, 65535, &n))
		backend_of(at)->udp_port = (uint16_t)n;
}

static void
take_weight(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 0, MAGLEV_WEIGHT_MAX, &n))
		backend_of(at)->weight = (uint32_t)n;
}

const struct conf_key conf_backend_keys[] = {
	{"address", "198.18.0.11", take_address},
	{"udp-port", "53", take_udp_port},
	{"weight", NULL, take_weight},
	{NULL, NULL, NULL},
};
