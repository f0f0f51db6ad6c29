/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Where would a datagram go, and why? /sluice/explain,udp,SRC,SPORT,DST,DPORT asks the parts that
 * would decide, and changes nothing:
 *
 *   verdict    who gets it
 *   forward    a back end of a load balancer, or nobody if it has none
 *   socket     a service's socket
 *   answer     a client: it is from a back end, on its way back
 *   kernel     the kernel, by the tap of the port that has the address: no service has the UDP port
 *   closed     nobody: likewise, and the port has no tap
 *   not_local  nobody: the address is not ours
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "backends.h"
#include "forward.h"
#include "telemetry.h"

static bool
parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*port = rte_cpu_to_be_16((uint16_t)n);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && n <= UINT16_MAX;
}

static bool
parse_addr(const char *text, uint8_t *addr)
{
	struct sl_addr a;
	uint8_t prefix;

	if (strchr(text, '/') != NULL || sl_addr_parse(text, &a, &prefix) != 0)
		return false;
	memcpy(addr, a.b, sizeof(a.b));
	return true;
}

/* "udp,SRC,SPORT,DST,DPORT" */
static bool
parse(const char *param, struct flow_key *key)
{
	char text[CONF_VALUE_LEN], *word[5], *rest = text;
	int n = 0;

	if (param == NULL || strlen(param) >= sizeof(text))
		return false;
	memcpy(text, param, strlen(param) + 1);
	while (n < 5 && (word[n] = strsep(&rest, ",")) != NULL)
		n++;
	memset(key, 0, sizeof(*key));
	key->proto = IPPROTO_UDP;
	return n == 5 && rest == NULL && strcmp(word[0], "udp") == 0 &&
	       parse_addr(word[1], key->src) && parse_port(word[2], &key->sport) &&
	       parse_addr(word[3], key->dst) && parse_port(word[4], &key->dport) &&
	       sl_addr_is_v4((const struct sl_addr *)key->src) ==
		       sl_addr_is_v4((const struct sl_addr *)key->dst);
}

static bool
is_addr(const uint8_t *b, const struct sl_addr *a)
{
	return memcmp(b, a->b, sizeof(a->b)) == 0;
}

static void
name_or_none(struct rte_tel_data *t, const char *key, const char *name)
{
	telemetry_text(t, key, name != NULL ? name : "none");
}

static void
forward_dict(
	struct daemon *d, struct service *s, const struct flow_key *key, struct rte_tel_data *t)
{
	struct forward_explanation x;
	const struct backend *e;
	char text[64];

	daemon_park(d);
	forward_explain(s->forward, key, &x);
	daemon_unpark(d);
	telemetry_text(t, "verdict", "forward");
	telemetry_text(t, "service", s->conf.name);
	name_or_none(t, "backend", x.backend);
	e = x.backend != NULL ? backends_find(s->backends, x.backend) : NULL;
	if (e != NULL) {
		telemetry_text(t, "address", sl_addr_format(&e->conf.addr, text, sizeof(text)));
		telemetry_u64(t, "udp_port", e->conf.udp_port);
		telemetry_text(t, "state", backend_state_name(e));
	}
	telemetry_text(t, "reason", balancer_reason_name((enum balancer_reason)x.e.pick.reason));
	telemetry_u64(t, "slot", x.e.slot);
	telemetry_u64(t, "slots", s->conf.forward.slots);
	name_or_none(t, "slot_backend", x.slot);
	telemetry_u64(t, "hash", x.e.hash);
	name_or_none(t, "was", x.was);
	telemetry_text(t, "moves", balancer_why_name(x.e.why));
	telemetry_text(t, "last_resort", x.e.last_resort ? "yes" : "no");
	telemetry_u64(t, "lcore", d->worker[x.worker].cpu);
}

/* A socket of that address comes before one of any. */
static bool
socket_dict(const struct daemon *d, const struct flow_key *key, struct rte_tel_data *t)
{
	char text[CONF_NAME_LEN + 8] = "";
	const struct service *found = NULL;

	for (uint16_t i = 0; i < d->table->n; i++) {
		const struct service *s = d->table->service[i];

		if (rte_cpu_to_be_16(s->conf.udp_port) != key->dport)
			continue;
		for (uint16_t k = 0; k < s->nsocks; k++) {
			bool exact = is_addr(key->dst, &s->bound[k]);

			if (!exact && (found != NULL || !sl_addr_is_any(&s->bound[k])))
				continue;
			found = s;
			snprintf(text, sizeof(text), "%s/%u", s->conf.name, k);
			if (exact)
				goto end;
		}
	}
end:
	if (found == NULL)
		return false;
	telemetry_text(t, "verdict", "socket");
	telemetry_text(t, "service", found->conf.name);
	telemetry_text(t, "kind", conf_kind_name(found->conf.kind));
	telemetry_text(t, "socket", text);
	telemetry_u64(t, "lcore", d->worker[found->worker].cpu);
	return true;
}

/* From a back end that sees its clients' addresses. */
static bool
answer_dict(const struct daemon *d, const struct flow_key *key, struct rte_tel_data *t)
{
	for (uint16_t i = 0; i < d->table->n; i++) {
		const struct service *s = d->table->service[i];

		if (s->forward == NULL || s->conf.forward.source != CONF_SOURCE_KEEP)
			continue;
		for (uint16_t k = 0; k < s->backends->n; k++) {
			const struct backend *e = &s->backends->backend[k];

			if (!is_addr(key->src, &e->conf.addr) ||
				key->sport != rte_cpu_to_be_16(e->conf.udp_port))
				continue;
			telemetry_text(t, "verdict", "answer");
			telemetry_text(t, "service", s->conf.name);
			telemetry_text(t, "backend", e->conf.name);
			return true;
		}
	}
	return false;
}

/* The tap of the port or VLAN that has the address, or NULL. */
static const char *
tap_of(const struct conf_port *p, uint16_t n, const struct sl_addr *dst)
{
	for (uint16_t i = 0; i < n; i++)
		for (uint16_t k = 0; k < p[i].naddrs; k++)
			if (p[i].exception[0] != '\0' && is_addr(dst->b, &p[i].addrs[k].addr))
				return p[i].exception;
	return NULL;
}

/* No service has the port. */
static void
rest_dict(const struct daemon *d, const struct sl_addr *dst, struct rte_tel_data *t)
{
	const char *tap = tap_of(d->conf.port, d->conf.nports, dst);

	if (tap == NULL)
		tap = tap_of(d->conf.vlan, d->conf.nvlans, dst);
	telemetry_text(t, "verdict", tap != NULL ? "kernel" : "closed");
	if (tap != NULL)
		telemetry_text(t, "interface", tap);
}

static void
explain(struct daemon *d, const struct flow_key *key, struct rte_tel_data *t)
{
	struct sl_addr dst;

	memcpy(dst.b, key->dst, sizeof(dst.b));
	rte_tel_data_start_dict(t);
	for (uint16_t i = 0; i < d->table->n; i++) {
		struct service *s = d->table->service[i];

		if (s->forward == NULL || !is_addr(key->dst, &s->conf.address) ||
			key->dport != rte_cpu_to_be_16(s->conf.udp_port))
			continue;
		forward_dict(d, s, key, t);
		return;
	}
	if (!sl_inet_addr_is_local(d->inet, &dst)) {
		if (!answer_dict(d, key, t))
			telemetry_text(t, "verdict", "not_local");
	} else if (!socket_dict(d, key, t)) {
		rest_dict(d, &dst, t);
	}
}

static int
on_explain(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct flow_key key;
	struct daemon *d;

	(void)cmd;
	if (!parse(param, &key))
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	explain(d, &key, t);
	telemetry_leave(d);
	return 0;
}

bool
explain_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/explain", on_explain,
			"Where a datagram would go, and why. Parameter: udp,SRC,SPORT,DST,DPORT"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
