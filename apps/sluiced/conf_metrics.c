/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* [metrics]: where counters are served for scrapers. They are for this machine alone: what is
 * served has no key, so whoever can reach it can read it. */
#include <stdio.h>
#include <string.h>

#include "../common/app.h"
#include "conf_priv.h"

#define UNIX_PREFIX "unix:"

void *
conf_metrics_begin(struct conf_at *at, const char *name)
{
	(void)name;
	at->conf->metrics.line = at->line;
	return &at->conf->metrics;
}

static void
take_path(struct conf_at *at, const char *path)
{
	struct conf_metrics *m = at->item;

	if (path[0] != '/')
		conf_wrong(at, "\"%s\" is no whole path; begin it with \"/\".", path);
	else if (strlen(path) >= sizeof(m->path))
		conf_wrong(at, "is longer than the path of a socket can be, %zu; choose another.",
			sizeof(m->path) - 1);
	else
		snprintf(m->path, sizeof(m->path), "%s", path);
}

static bool
is_loopback(const struct sl_addr *a)
{
	static const struct sl_addr loopback6 = {.b = {[15] = 1}};

	return sl_addr_is_v4(a) ? a->b[12] == 127 : memcmp(a, &loopback6, sizeof(*a)) == 0;
}

/* "127.0.0.1:9111" or "[::1]:9111" */
static bool
parse_address(const char *text, struct sl_addr *addr, uint64_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	char host[64];
	uint8_t prefix;

	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len) != NULL) {
		return false;
	}
	if (len == 0 || len >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)len, text);
	return strchr(host, '/') == NULL && sl_addr_parse(host, addr, &prefix) == 0 &&
	       app_parse_number(colon + 1, port) == 0 && *port >= 1 && *port <= UINT16_MAX;
}

static void
take_listen(struct conf_at *at)
{
	struct conf_metrics *m = at->item;
	uint64_t port;

	m->listen_line = at->line;
	if (strncmp(at->value, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
		take_path(at, at->value + strlen(UNIX_PREFIX));
		return;
	}
	if (!parse_address(at->value, &m->addr, &port))
		conf_wrong(at, "is no place to listen; write 127.0.0.1:9111, [::1]:9111 or "
			       "unix:/run/sluiced-metrics.");
	else if (!is_loopback(&m->addr))
		conf_wrong(at,
			"is no loopback address, and whoever reaches it may read it; write "
			"127.0.0.1:%u and let a proxy guard the way in.",
			(unsigned int)port);
	else
		m->port = (uint16_t)port;
}

const struct conf_key conf_metrics_keys[] = {
	{"listen", "127.0.0.1:9111", take_listen},
	{NULL, NULL, NULL},
};

bool
conf_metrics_equal(const struct conf_metrics *a, const struct conf_metrics *b)
{
	return strcmp(a->path, b->path) == 0 && a->port == b->port &&
	       memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}
