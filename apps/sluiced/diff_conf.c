/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff_priv.h"

struct diff_row *
diff_add(struct diff *diff, const char *what, const char *change, const char *service,
	const char *name)
{
	struct diff_row *r;

	if (diff->n == diff->room) {
		uint32_t room = diff->room != 0 ? 2 * diff->room : 16;

		r = realloc(diff->row, room * sizeof(*r));
		if (r == NULL)
			return NULL;
		diff->row = r;
		diff->room = room;
	}
	r = &diff->row[diff->n++];
	memset(r, 0, sizeof(*r));
	r->what = what;
	r->change = change;
	snprintf(r->service, sizeof(r->service), "%s", service);
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

void
diff_free(struct diff *diff)
{
	free(diff->row);
	memset(diff, 0, sizeof(*diff));
}

static void detail(struct diff_row *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* One more thing that differs; what has no room is marked as cut off. */
static void
detail(struct diff_row *r, const char *format, ...)
{
	static const char cut[] = "...";
	size_t at = strlen(r->detail), size = sizeof(r->detail);
	va_list args;

	if (at > 0 && at < size)
		at += (size_t)snprintf(r->detail + at, size - at, ", ");
	va_start(args, format);
	if (at < size)
		at += (size_t)vsnprintf(r->detail + at, size - at, format, args);
	va_end(args);
	if (at >= size)
		memcpy(r->detail + size - sizeof(cut), cut, sizeof(cut));
}

static void
number(struct diff_row *r, const char *key, uint64_t from, uint64_t to)
{
	if (from != to)
		detail(r, "%s %llu -> %llu", key, (unsigned long long)from, (unsigned long long)to);
}

static void
text(struct diff_row *r, const char *key, const char *from, const char *to)
{
	if (strcmp(from, to) != 0)
		detail(r, "%s %s -> %s", key, from[0] != '\0' ? from : "none",
			to[0] != '\0' ? to : "none");
}

/* An address in words; none: what none means. */
static const char *
addr_text(const struct sl_addr *a, const char *none, char *room, size_t size)
{
	return sl_addr_is_any(a) ? none : sl_addr_format(a, room, size);
}

static void
addr(struct diff_row *r, const char *key, const char *none, const struct sl_addr *from,
	const struct sl_addr *to)
{
	char a[64], b[64];

	text(r, key, addr_text(from, none, a, sizeof(a)), addr_text(to, none, b, sizeof(b)));
}

/* Octets may be anything, so they are not shown. */
static void
bytes(struct diff_row *r, const char *key, const struct conf_bytes *from,
	const struct conf_bytes *to)
{
	if (from->len != to->len || memcmp(from->octet, to->octet, from->len) != 0)
		detail(r, "%s", key);
}

int
diff_settings(const struct conf *now, const struct conf *next, struct diff *diff)
{
	const struct {
		const char *name, *from, *to;
	} settings[] = {
		{"log", conf_log_name(now->log_level), conf_log_name(next->log_level)},
		{"idle", conf_idle_name(now->idle), conf_idle_name(next->idle)},
	};

	for (size_t i = 0; i < SL_COUNT_OF(settings); i++) {
		struct diff_row *r;

		if (strcmp(settings[i].from, settings[i].to) == 0)
			continue;
		r = diff_add(diff, "setting", "changed", "", settings[i].name);
		if (r == NULL)
			return -ENOMEM;
		text(r, settings[i].name, settings[i].from, settings[i].to);
	}
	return 0;
}

/* The route of conf that says the same, under whatever name: the stack knows none. */
static const struct conf_route *
same_route(const struct conf *conf, const struct conf_route *r)
{
	for (uint16_t i = 0; i < conf->nroutes; i++)
		if (conf_route_equal(&conf->route[i], r))
			return &conf->route[i];
	return NULL;
}

static const struct conf_route *
named_route(const struct conf *conf, const char *name)
{
	for (uint16_t i = 0; i < conf->nroutes; i++)
		if (strcmp(conf->route[i].name, name) == 0)
			return &conf->route[i];
	return NULL;
}

static void
prefix_text(const struct conf_cidr *c, char *room, size_t size)
{
	char a[64];

	snprintf(room, size, "%s/%u", sl_addr_format(&c->addr, a, sizeof(a)), c->prefix);
}

static void
route_keys(struct diff_row *r, const struct conf_route *a, const struct conf_route *b)
{
	char from[72], to[72];

	prefix_text(&a->prefix, from, sizeof(from));
	prefix_text(&b->prefix, to, sizeof(to));
	text(r, "prefix", from, to);
	addr(r, "via", "link", &a->via, &b->via);
	text(r, "port", a->port, b->port);
	number(r, "metric", a->metric, b->metric);
}

/* All of a route that comes or goes. */
static void
route_all(struct diff_row *r, const struct conf_route *a)
{
	char prefix[72], via[64];

	prefix_text(&a->prefix, prefix, sizeof(prefix));
	detail(r, "prefix %s, via %s, port %s, metric %u", prefix,
		addr_text(&a->via, "link", via, sizeof(via)), a->port, a->metric);
}

int
diff_routes(const struct conf *now, const struct conf *next, struct diff *diff)
{
	for (uint16_t i = 0; i < now->nroutes; i++) {
		const struct conf_route *a = &now->route[i], *b = named_route(next, a->name);
		bool changes = b != NULL && same_route(now, b) == NULL;
		struct diff_row *r;

		if (same_route(next, a) != NULL)
			continue;
		r = diff_add(diff, "route", changes ? "changed" : "removed", "", a->name);
		if (r == NULL)
			return -ENOMEM;
		if (changes)
			route_keys(r, a, b);
		else
			route_all(r, a);
	}
	for (uint16_t i = 0; i < next->nroutes; i++) {
		const struct conf_route *b = &next->route[i], *a = named_route(now, b->name);
		struct diff_row *r;

		if (same_route(now, b) != NULL || (a != NULL && same_route(next, a) == NULL))
			continue;
		r = diff_add(diff, "route", "added", "", b->name);
		if (r == NULL)
			return -ENOMEM;
		route_all(r, b);
	}
	return 0;
}

/* A bridge comes, goes or changes its ports with a restart only. */
int
diff_bridges(const struct conf *now, const struct conf *next, struct diff *diff)
{
	for (uint16_t i = 0; i < now->nbridges; i++) {
		const struct conf_bridge *a = &now->bridge[i], *b = NULL;
		struct diff_row *r;

		for (uint16_t k = 0; k < next->nbridges; k++)
			if (strcmp(next->bridge[k].name, a->name) == 0)
				b = &next->bridge[k];
		if (b == NULL || (a->port_entries == b->port_entries && a->age_s == b->age_s))
			continue;
		r = diff_add(diff, "bridge", "changed", "", a->name);
		if (r == NULL)
			return -ENOMEM;
		number(r, "port-entries", a->port_entries, b->port_entries);
		number(r, "age", a->age_s, b->age_s);
	}
	return 0;
}

void
diff_backend_keys(struct diff_row *r, const struct conf_backend *a, const struct conf_backend *b)
{
	addr(r, "address", "any", &a->addr, &b->addr);
	number(r, "udp-port", a->udp_port, b->udp_port);
	number(r, "weight", a->weight, b->weight);
}

static void
check_keys(struct diff_row *r, const struct conf_check *a, const struct conf_check *b)
{
	static const char *const kinds[] = {[CONF_CHECK_NONE] = "none", [CONF_CHECK_UDP] = "udp"};

	text(r, "check", kinds[a->kind], kinds[b->kind]);
	number(r, "check-interval ms", a->interval_ms, b->interval_ms);
	number(r, "check-timeout ms", a->timeout_ms, b->timeout_ms);
	number(r, "check-rise", a->rise, b->rise);
	number(r, "check-fall", a->fall, b->fall);
	bytes(r, "check-send", &a->send, &b->send);
	bytes(r, "check-expect", &a->expect, &b->expect);
}

static void
forward_keys(struct diff_row *r, const struct conf_forward *a, const struct conf_forward *b)
{
	static const char *const affinity[] = {
		[BALANCER_FLOW] = "flow", [BALANCER_SOURCE] = "source", [BALANCER_NONE] = "none"};
	static const char *const drain[] = {[BALANCER_KEEP] = "keep", [BALANCER_MOVE] = "move"};
	static const char *const source[] = {
		[CONF_SOURCE_KEEP] = "keep", [CONF_SOURCE_OWN] = "own"};

	text(r, "affinity", affinity[a->affinity], affinity[b->affinity]);
	text(r, "drain", drain[a->drain], drain[b->drain]);
	text(r, "source", source[a->source], source[b->source]);
	number(r, "slots", a->slots, b->slots);
	number(r, "seed", a->seed, b->seed);
	number(r, "flows", a->flows, b->flows);
	number(r, "flow-timeout ms", a->idle_ms, b->idle_ms);
	number(r, "new-flows", a->inserts_per_s, b->inserts_per_s);
	check_keys(r, &a->check, &b->check);
	/* Last, since it may be long. */
	text(r, "backends", a->names, b->names);
}

static void
mirror_keys(struct diff_row *r, const struct conf_mirror *a, const struct conf_mirror *b)
{
	number(r, "file-size", a->file_size, b->file_size);
	number(r, "files", a->files, b->files);
	text(r, "interface", a->interface, b->interface);
	text(r, "file", a->file, b->file);
}

void
diff_service_keys(struct diff_row *r, const struct conf_service *a, const struct conf_service *b)
{
	static const char *const sequence[] = {
		[STAMP_STATELESS] = "stateless", [STAMP_STATEFUL] = "stateful"};
	static const char *const format[] = {
		[STAMP_NTP] = "ntp", [STAMP_PTP] = "ptp", [STAMP_SENDER] = "sender"};

	text(r, "kind", conf_kind_name(a->kind), conf_kind_name(b->kind));
	number(r, "udp-port", a->udp_port, b->udp_port);
	addr(r, "address", "any", &a->address, &b->address);
	text(r, "port", a->port[0] != '\0' ? a->port : "any", b->port[0] != '\0' ? b->port : "any");
	number(r, "rcvbuf", a->rcvbuf, b->rcvbuf);
	text(r, "sequence", sequence[a->sequence], sequence[b->sequence]);
	text(r, "format", format[a->format], format[b->format]);
	if (a->kind == CONF_FORWARD && b->kind == CONF_FORWARD)
		forward_keys(r, &a->forward, &b->forward);
	if (a->kind == CONF_MIRROR && b->kind == CONF_MIRROR)
		mirror_keys(r, &a->mirror, &b->mirror);
}
