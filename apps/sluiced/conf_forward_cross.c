/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Services of kind = forward and their back ends: what one value alone does not show. */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "conf_priv.h"

#define FLOWS_DEFAULT 65536u
#define IDLE_MS_DEFAULT 30000u
#define INSERTS_DEFAULT 100000u
#define CHECK_INTERVAL_MS 1000u
#define CHECK_TIMEOUT_MS 500u
#define CHECK_RISE 2u
#define CHECK_FALL 3u
/* Of a flow, with what rte_hash has for it and its share of what is kept free; of a balancer. */
#define FLOW_BYTES 160u
#define BALANCER_BYTES 65536u

_Static_assert(CONF_FORWARD_BACKENDS_MAX < MAGLEV_SLOTS_MIN,
	"there are slots for every weighted back end, whatever is configured");

uint64_t
conf_forward_bytes(const struct conf *conf, const struct conf_service *s)
{
	uint64_t flows = s->forward.flows != 0 ? s->forward.flows : FLOWS_DEFAULT;

	if (s->kind != CONF_FORWARD)
		return 0;
	return (flows * FLOW_BYTES + BALANCER_BYTES) * conf->lcores.n;
}

static const char *
key_name(enum conf_forward_key key)
{
	return conf_forward_keys[key].name;
}

/* Keys that only this kind has. */
static void
check_other_kind(const struct conf_service *s, struct mistakes *m)
{
	for (int i = 0; i < CONF_FORWARD_KEYS; i++)
		if (s->forward.line[i] != 0)
			mistake(m, s->forward.line[i],
				"[service %s] %s: is for kind = forward alone; leave it out.",
				s->name, conf_forward_keys[i].name);
}

static int
find_backend(const struct conf *conf, const char *name)
{
	for (uint16_t i = 0; i < conf->nbackends; i++)
		if (strcmp(conf->backend[i].name, name) == 0)
			return i;
	return -1;
}

static bool
has_backend(const struct conf_forward *f, uint16_t backend)
{
	for (uint16_t i = 0; i < f->nbackends; i++)
		if (f->backend[i] == backend)
			return true;
	return false;
}

/* "b1", or "web*" for all whose names begin so. */
static void
add_backends(struct conf *conf, struct conf_service *s, const char *word, struct mistakes *m)
{
	uint32_t line = s->forward.line[CONF_FORWARD_BACKENDS];
	struct conf_forward *f = &s->forward;
	size_t len = strlen(word);
	bool begins = word[len - 1] == '*', any = false;

	for (uint16_t i = 0; i < conf->nbackends; i++) {
		const char *name = conf->backend[i].name;

		if (begins ? strncmp(name, word, len - 1) != 0 : strcmp(name, word) != 0)
			continue;
		any = true;
		if (has_backend(f, i)) {
			mistake(m, line, "[service %s] backends: names %s twice; once is enough.",
				s->name, name);
		} else if (f->nbackends == CONF_FORWARD_BACKENDS_MAX) {
			mistake(m, line,
				"[service %s] backends: names more than %d back ends; leave some "
				"out.",
				s->name, CONF_FORWARD_BACKENDS_MAX);
			return;
		} else {
			f->backend[f->nbackends++] = i;
		}
	}
	if (any)
		return;
	if (begins)
		mistake(m, line,
			"[service %s] backends = %s: no [backend NAME] begins so; name those that "
			"there are.",
			s->name, word);
	else
		mistake(m, line,
			"[service %s] backends = %s: there is no [backend %s]; name one that there "
			"is.",
			s->name, word, word);
}

static void
check_backends(struct conf *conf, struct conf_service *s, struct mistakes *m)
{
	struct conf_forward *f = &s->forward;
	const char *text = f->names;
	char word[CONF_VALUE_LEN];

	if (f->line[CONF_FORWARD_BACKENDS] == 0)
		mistake(m, s->line, "[service %s]: lacks %s; add \"%s = %s\", for instance.",
			s->name, key_name(CONF_FORWARD_BACKENDS), key_name(CONF_FORWARD_BACKENDS),
			conf_forward_keys[CONF_FORWARD_BACKENDS].example);
	while (conf_next(&text, word, sizeof(word)))
		add_backends(conf, s, word, m);
	for (uint16_t i = 0; i < f->nbackends; i++) {
		const struct conf_backend *b = &conf->backend[f->backend[i]];

		if (!s->has_address || sl_addr_is_any(&b->addr) ||
			sl_addr_is_v4(&b->addr) == sl_addr_is_v4(&s->address))
			continue;
		mistake(m, f->line[CONF_FORWARD_BACKENDS],
			"[service %s] backends: %s has an %s address, and the service an %s one; "
			"make a service for each.",
			s->name, b->name, sl_addr_is_v4(&b->addr) ? "IPv4" : "IPv6",
			sl_addr_is_v4(&s->address) ? "IPv4" : "IPv6");
	}
}

static void
check_needs(const struct conf_service *s, struct mistakes *m)
{
	if (s->address_line == 0)
		mistake(m, s->line,
			"[service %s]: lacks address, which kind = forward needs; name one of a "
			"port's \"address\".",
			s->name);
	if (s->rcvbuf_line != 0)
		mistake(m, s->rcvbuf_line,
			"[service %s] rcvbuf: is not for kind = forward, which has no queue; leave "
			"it out.",
			s->name);
}

/* The data path does not hide clients' addresses yet. */
static void
check_source(const struct conf_service *s, struct mistakes *m)
{
	if (s->forward.source == CONF_SOURCE_OWN)
		mistake(m, s->forward.line[CONF_FORWARD_SOURCE],
			"[service %s] source = own: is not in this version; write keep, and let "
			"back ends answer by way of this appliance.",
			s->name);
}

static void
check_checks(struct conf_service *s, struct mistakes *m)
{
	struct conf_forward *f = &s->forward;
	struct conf_check *c = &f->check;

	if (f->line[CONF_FORWARD_CHECK] != 0 && c->kind == CONF_CHECK_UDP &&
		f->line[CONF_FORWARD_CHECK_SEND] == 0)
		mistake(m, f->line[CONF_FORWARD_CHECK],
			"[service %s] check = udp: lacks %s; add \"%s = %s\", for instance.",
			s->name, key_name(CONF_FORWARD_CHECK_SEND),
			key_name(CONF_FORWARD_CHECK_SEND),
			conf_forward_keys[CONF_FORWARD_CHECK_SEND].example);
	for (int i = CONF_FORWARD_CHECK + 1; i <= CONF_FORWARD_CHECK_EXPECT; i++)
		if (c->kind == CONF_CHECK_NONE && f->line[i] != 0)
			mistake(m, f->line[i],
				"[service %s] %s: is for check = udp alone; leave it out, or add "
				"\"check = udp\".",
				s->name, conf_forward_keys[i].name);
	if (f->line[CONF_FORWARD_CHECK_INTERVAL] == 0)
		c->interval_ms = RTE_MAX(CHECK_INTERVAL_MS, c->timeout_ms);
	if (f->line[CONF_FORWARD_CHECK_TIMEOUT] == 0)
		c->timeout_ms = RTE_MIN(CHECK_TIMEOUT_MS, c->interval_ms);
	if (c->interval_ms != 0 && c->timeout_ms > c->interval_ms)
		mistake(m, f->line[CONF_FORWARD_CHECK_TIMEOUT],
			"[service %s] check-timeout: %u ms is longer than the %u ms of "
			"\"check-interval\"; write a shorter time.",
			s->name, c->timeout_ms, c->interval_ms);
	if (c->rise == 0)
		c->rise = CHECK_RISE;
	if (c->fall == 0)
		c->fall = CHECK_FALL;
}

static void
fill_in(struct conf_forward *f)
{
	if (f->slots == 0)
		f->slots = MAGLEV_SLOTS;
	if (f->flows == 0)
		f->flows = FLOWS_DEFAULT;
	if (f->idle_ms == 0)
		f->idle_ms = IDLE_MS_DEFAULT;
	if (f->inserts_per_s == 0)
		f->inserts_per_s = INSERTS_DEFAULT;
}

static bool
same_place(const struct conf_backend *a, const struct conf_backend *b)
{
	return a->udp_port != 0 && a->udp_port == b->udp_port && !sl_addr_is_any(&a->addr) &&
	       memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}

/* Within a service, an answer must tell which back end it is from. */
static void
check_places(const struct conf *conf, const struct conf_service *s, struct mistakes *m)
{
	const struct conf_forward *f = &s->forward;

	for (uint16_t i = 0; i < f->nbackends; i++) {
		for (uint16_t k = 0; k < i; k++) {
			const struct conf_backend *a = &conf->backend[f->backend[k]];
			const struct conf_backend *b = &conf->backend[f->backend[i]];

			if (!same_place(a, b))
				continue;
			mistake(m, f->line[CONF_FORWARD_BACKENDS],
				"[service %s] backends: %s and %s have one address and UDP port; "
				"leave one out.",
				s->name, a->name, b->name);
			break;
		}
	}
}

/* Between services, when both leave the client's address as it is, it must tell which service it is
 * for. */
static void
check_sharing(const struct conf *conf, const struct conf_service *s, const struct conf_service *t,
	struct mistakes *m)
{
	const struct conf_forward *f = &s->forward, *g = &t->forward;

	if (f->source != CONF_SOURCE_KEEP || g->source != CONF_SOURCE_KEEP)
		return;
	for (uint16_t i = 0; i < g->nbackends; i++) {
		for (uint16_t k = 0; k < f->nbackends; k++) {
			const struct conf_backend *a = &conf->backend[f->backend[k]];
			const struct conf_backend *b = &conf->backend[g->backend[i]];

			if (a != b && !same_place(a, b))
				continue;
			mistake(m, g->line[CONF_FORWARD_BACKENDS],
				"[service %s] backends: %s serves [service %s] already, and its "
				"answers could be for either; give it another \"udp-port\" for one "
				"of them.",
				t->name, b->name, s->name);
		}
	}
}

static void
check_not_ours(const struct conf *conf, const struct conf_backend *b, struct mistakes *m)
{
	const struct conf_port *p = conf_port_of(conf, &b->addr);
	char text[64];

	if (p == NULL || sl_addr_is_any(&b->addr))
		return;
	mistake(m, b->address_line,
		"[backend %s] address = %s: [port %s] has it; name another host's.", b->name,
		sl_addr_format(&b->addr, text, sizeof(text)), p->name);
}

void
conf_forward_cross(struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->nbackends; i++)
		check_not_ours(conf, &conf->backend[i], m);
	for (uint16_t i = 0; i < conf->nservices; i++) {
		struct conf_service *s = &conf->service[i];

		if (!s->has_kind)
			continue;
		if (s->kind != CONF_FORWARD) {
			check_other_kind(s, m);
			continue;
		}
		check_needs(s, m);
		check_source(s, m);
		check_backends(conf, s, m);
		check_checks(s, m);
		check_places(conf, s, m);
		fill_in(&s->forward);
		for (uint16_t k = 0; k < i; k++)
			if (conf->service[k].has_kind && conf->service[k].kind == CONF_FORWARD)
				check_sharing(conf, &conf->service[k], s, m);
	}
}

static bool
bytes_equal(const struct conf_bytes *a, const struct conf_bytes *b)
{
	return a->len == b->len && memcmp(a->octet, b->octet, a->len) == 0;
}

bool
conf_check_equal(const struct conf_check *a, const struct conf_check *b)
{
	return a->kind == b->kind && a->interval_ms == b->interval_ms &&
	       a->timeout_ms == b->timeout_ms && a->rise == b->rise && a->fall == b->fall &&
	       bytes_equal(&a->send, &b->send) && bytes_equal(&a->expect, &b->expect);
}

bool
conf_backend_equal(const struct conf_backend *a, const struct conf_backend *b)
{
	return strcmp(a->name, b->name) == 0 && a->udp_port == b->udp_port &&
	       memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}

bool
conf_forward_remade(const struct conf_forward *a, const struct conf_forward *b)
{
	return a->source != b->source || a->slots != b->slots || a->seed != b->seed ||
	       a->flows != b->flows || a->idle_ms != b->idle_ms ||
	       a->inserts_per_s != b->inserts_per_s;
}

bool
conf_forward_equal(const struct conf *x, const struct conf_service *a, const struct conf *y,
	const struct conf_service *b)
{
	const struct conf_forward *f = &a->forward, *g = &b->forward;

	if (f->nbackends != g->nbackends || f->affinity != g->affinity || f->drain != g->drain ||
		conf_forward_remade(f, g) || !conf_check_equal(&f->check, &g->check))
		return false;
	for (uint16_t i = 0; i < f->nbackends; i++) {
		const struct conf_backend *p = &x->backend[f->backend[i]];
		int k = find_backend(y, p->name);

		if (k < 0 || !has_backend(g, (uint16_t)k) ||
			!conf_backend_equal(p, &y->backend[k]) || p->weight != y->backend[k].weight)
			return false;
	}
	return true;
}
