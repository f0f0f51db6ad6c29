/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Back ends as /sluice/ shows them, and the operator's drains. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "forward.h"
#include "probe.h"
#include "telemetry.h"

#define DRAIN_MS_MAX UINT64_C(604800000) /* a week */

static struct service *
find_service(const struct daemon *d, const char *name)
{
	for (uint16_t i = 0; i < d->table->n; i++)
		if (d->table->service[i]->forward != NULL &&
			strcmp(d->table->service[i]->conf.name, name) == 0)
			return d->table->service[i];
	return NULL;
}

/* Load balancers, or with the name of one its back ends. */
static int
on_backends(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	char text[2 * CONF_NAME_LEN + 2];
	const struct service *s;

	(void)cmd;
	if (d == NULL)
		return -EAGAIN;
	s = param != NULL ? find_service(d, param) : NULL;
	rte_tel_data_start_array(t, RTE_TEL_STRING_VAL);
	for (uint16_t i = 0; param == NULL && i < d->table->n; i++)
		if (d->table->service[i]->forward != NULL)
			rte_tel_data_add_array_string(t, d->table->service[i]->conf.name);
	for (uint16_t i = 0; s != NULL && i < s->backends->n; i++) {
		snprintf(text, sizeof(text), "%s/%s", s->conf.name,
			s->backends->backend[i].conf.name);
		rte_tel_data_add_array_string(t, text);
	}
	telemetry_leave(d);
	return param != NULL && s == NULL ? -ENOENT : 0;
}

static void
check_dict(const struct probe *p, struct rte_tel_data *t)
{
	static const struct health none;
	const struct health *h = p != NULL ? &p->health : &none;

	telemetry_u64(t, "checks", sl_load_relaxed(&h->sent));
	telemetry_u64(t, "checks_ok", sl_load_relaxed(&h->good));
	telemetry_u64(t, "checks_failed", sl_load_relaxed(&h->failed));
	telemetry_u64(t, "checks_late", sl_load_relaxed(&h->late));
	telemetry_u64(t, "hints", sl_load_relaxed(&h->hints));
	telemetry_u64(t, "changes", sl_load_relaxed(&h->changes));
}

static void
backend_dict(const struct service *s, const struct backend *e, struct rte_tel_data *t)
{
	struct forward_backend_stats stats;
	uint64_t now = daemon_now_ms();
	char text[64];

	if (forward_backend_stats(s->forward, e->index, &stats) != 0)
		memset(&stats, 0, sizeof(stats));
	rte_tel_data_start_dict(t);
	telemetry_text(t, "service", s->conf.name);
	telemetry_text(t, "name", e->conf.name);
	telemetry_text(t, "address", sl_addr_format(&e->conf.addr, text, sizeof(text)));
	telemetry_u64(t, "udp_port", e->conf.udp_port);
	telemetry_text(t, "state", backend_state_name(e));
	telemetry_text(t, "why", backend_why_name(e));
	telemetry_text(t, "drained", e->drained ? "yes" : "no");
	telemetry_u64(t, "drain_left_ms", e->cut_ms > now ? e->cut_ms - now : 0);
	telemetry_u64(t, "weight", e->conf.weight);
	telemetry_u64(t, "slots", stats.slots);
	telemetry_u64(t, "flows", stats.flows);
	telemetry_u64(t, "picked", stats.picked);
	telemetry_u64(t, "replies", stats.replies);
	check_dict(e->probe, t);
}

static int
on_backend(const char *cmd, const char *param, struct rte_tel_data *t)
{
	char service[CONF_NAME_LEN];
	struct daemon *d;
	const struct backend *e;
	const struct service *s;
	const char *slash = param != NULL ? strchr(param, '/') : NULL;

	(void)cmd;
	if (slash == NULL)
		return -EINVAL;
	snprintf(service, sizeof(service), "%.*s", (int)(slash - param), param);
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	s = find_service(d, service);
	e = s != NULL ? backends_find(s->backends, slash + 1) : NULL;
	if (e != NULL)
		backend_dict(s, e, t);
	telemetry_leave(d);
	return e != NULL ? 0 : -ENOENT;
}

/* In all services that have it. Returns how many; *flows: bound to it in these. */
static uint32_t
change(struct daemon *d, const char *name, bool drain, uint64_t ms, uint64_t *flows)
{
	uint64_t now = daemon_now_ms();
	uint32_t n = 0;

	for (uint16_t i = 0; i < d->table->n; i++) {
		struct service *s = d->table->service[i];
		struct backend *e = backends_find(s->backends, name);

		if (e == NULL)
			continue;
		if (drain)
			backend_drain(e, now, ms);
		else
			backend_undrain(e);
		backends_update(s->backends, now);
		*flows += forward_flows(s->forward, e->index);
		n++;
	}
	return n;
}

/* "NAME" or "NAME,MS". */
static bool
parse_drain(const char *param, char *name, size_t size, uint64_t *ms)
{
	const char *comma = param != NULL ? strchr(param, ',') : NULL;
	char *end;

	*ms = 0;
	if (param == NULL)
		return false;
	snprintf(name, size, "%.*s", comma != NULL ? (int)(comma - param) : (int)strlen(param),
		param);
	if (comma == NULL)
		return true;
	*ms = strtoull(comma + 1, &end, 10);
	return comma[1] >= '0' && comma[1] <= '9' && *end == '\0' && *ms != 0 &&
	       *ms <= DRAIN_MS_MAX;
}

static int
on_drain(const char *cmd, const char *param, struct rte_tel_data *t)
{
	bool drain = strcmp(cmd, "/sluice/backend_drain") == 0;
	char name[CONF_VALUE_LEN];
	uint64_t ms, flows = 0;
	struct daemon *d;
	uint32_t n;

	if (!parse_drain(param, name, sizeof(name), &ms) || (!drain && ms != 0))
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	n = change(d, name, drain, ms, &flows);
	telemetry_leave(d);
	if (n == 0)
		return -ENOENT;
	rte_tel_data_start_dict(t);
	telemetry_text(t, "name", name);
	telemetry_text(t, "result", drain ? "drained" : "undrained");
	telemetry_u64(t, "services", n);
	telemetry_u64(t, "flows", flows);
	telemetry_u64(t, "ms", ms);
	return 0;
}

bool
backends_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/backends", on_backends,
			"Names of load balancers; of the back ends of one. Parameter: none, or its "
			"name"},
		{"/sluice/backend", on_backend,
			"State and counters of a back end. Parameter: SERVICE/NAME"},
		{"/sluice/backend_drain", on_drain,
			"Give a back end no new flows. Parameter: NAME, or NAME,MILLISECONDS after "
			"which it gets nothing"},
		{"/sluice/backend_undrain", on_drain,
			"Give a back end new flows again. Parameter: NAME"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
