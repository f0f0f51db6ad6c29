/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What DPDK's telemetry says of our ports:
 *
 *     /sluice/tapvu              every port with its frontends
 *     /sluice/tapvu,PORT         one port, and the rings of its frontends
 *     /sluice/tapvu,PORT,F       one frontend of it
 *     /sluice/tapvu,PORT,F,R     one ring, for answers that would else be too long for telemetry
 *
 * Counters that are zero are left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_telemetry.h>

#include "sl_dpdk.h"
#include "tapvu_priv.h"

#define ANY UINT32_MAX

/* What is asked for: numbers, or ANY. */
struct wanted {
	uint32_t port, frontend, ring;
	struct rte_tel_data *into;
	bool found;
};

/* A dictionary in a dictionary, or NULL: then telemetry leaves it out. */
static struct rte_tel_data *
dict_start(void)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d != NULL)
		rte_tel_data_start_dict(d);
	return d;
}

static void
dict_end(struct rte_tel_data *into, const char *name, struct rte_tel_data *d)
{
	if (rte_tel_data_add_dict_container(into, name, d, 0) != 0)
		rte_tel_data_free(d);
}

static void
add_counter(const char *name, uint64_t value, void *d)
{
	if (value != 0)
		sl_tel_dict_u64(d, name, value);
}

static void
add_counters(struct rte_tel_data *into, struct tapvu_port *port, const struct tapvu_ring *r)
{
	struct rte_tel_data *d = dict_start();

	if (d == NULL)
		return;
	if (r != NULL)
		tapvu_ring_counters(r, add_counter, d);
	else
		tapvu_port_counters(port, add_counter, d);
	dict_end(into, "counters", d);
}

/* All of a ring's state at one moment: its lock is held no longer than a burst would hold it. */
static void
add_ring(struct rte_tel_data *into, const char *name, struct tapvu_ring *r)
{
	struct rte_tel_data *d = dict_start();
	uint16_t next_avail, next_used;
	struct sl_vring ring;
	uint32_t up;
	int call_fd;

	if (d == NULL)
		return;
	rte_spinlock_lock(&r->lock);
	up = sl_load_relaxed(&r->up);
	ring = r->ring;
	call_fd = r->call_fd;
	sl_vring_position(&r->ring, &next_avail, &next_used);
	rte_spinlock_unlock(&r->lock);
	sl_tel_dict_u64(d, "index", r->index);
	rte_tel_data_add_dict_string(
		d, "way", r->index % 2 == 1 ? "from the frontend" : "to the frontend");
	rte_tel_data_add_dict_int(d, "enabled", sl_load_relaxed(&r->enabled));
	rte_tel_data_add_dict_int(d, "up", (int)up);
	rte_tel_data_add_dict_int(d, "broken", ring.broken);
	rte_tel_data_add_dict_string(
		d, "layout", (ring.conf.features & SL_VRING_F_PACKED) != 0 ? "packed" : "split");
	sl_tel_dict_u64(d, "size", ring.conf.size);
	sl_tel_dict_u64(d, "next_avail", next_avail);
	sl_tel_dict_u64(d, "next_used", next_used);
	sl_tel_dict_u64(d, "chains_taken", ring.popped - ring.rewound);
	sl_tel_dict_u64(d, "chains_returned", ring.pushed);
	rte_tel_data_add_dict_int(d, "wants_calls", call_fd >= 0);
	add_counters(d, NULL, r);
	dict_end(into, name, d);
}

static void
add_frontend(
	struct rte_tel_data *into, struct tapvu_frontend *f, uint32_t id, const struct wanted *want)
{
	struct rte_tel_data *d = dict_start();
	char text[RTE_TEL_MAX_STRING_LEN];

	if (d == NULL)
		return;
	rte_tel_data_add_dict_int(d, "vid", sl_load_relaxed(&f->vid));
	rte_tel_data_add_dict_int(d, "running", sl_load_relaxed(&f->running));
	snprintf(text, sizeof(text), "0x%" PRIx64, sl_load_relaxed(&f->features));
	rte_tel_data_add_dict_string(d, "features", text);
	sl_tel_dict_u64(d, "regions", sl_load_relaxed(&f->regions));
	for (uint32_t i = 0; want->port != ANY && i < 2 * f->port->args.queues; i++) {
		snprintf(text, sizeof(text), "ring_%" PRIu32, i);
		if (want->ring == ANY || want->ring == i)
			add_ring(d, text, &f->ring[i]);
	}
	snprintf(text, sizeof(text), "frontend_%" PRIu32, id);
	dict_end(into, text, d);
}

static void
add_settings(struct rte_tel_data *d, const struct tapvu_port *port)
{
	static const char *const modes[] = {
		[SL_FRAG_LOCK] = "lock", [SL_FRAG_LCORE] = "lcore", [SL_FRAG_PAGE] = "page"};

	sl_tel_dict_u64(d, "port_id", port->data->port_id);
	rte_tel_data_add_dict_string(d, "path", port->args.path);
	rte_tel_data_add_dict_int(d, "client", (int)port->args.client);
	sl_tel_dict_u64(d, "queues", port->args.queues);
	sl_tel_dict_u64(d, "taps", port->args.taps);
	rte_tel_data_add_dict_string(d, "frag", modes[port->args.frag]);
	if (port->tap.queues > 0) {
		rte_tel_data_add_dict_string(d, "tap", port->tap.name);
		sl_tel_dict_u64(d, "uring", port->tap.from[0] != NULL);
	}
	rte_tel_data_add_dict_int(d, "started", sl_load_relaxed(&port->started));
	rte_tel_data_add_dict_int(d, "link", port->data->dev_link.link_status);
}

/* Ports stay while they are looked at: the list is locked. */
static void
add_port(struct tapvu_port *port, void *arg)
{
	struct wanted *want = arg;
	struct rte_tel_data *d;

	if ((want->port != ANY && want->port != port->data->port_id) || (d = dict_start()) == NULL)
		return;
	want->found = true;
	add_settings(d, port);
	add_counters(d, port, NULL);
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++) {
		bool asked = want->frontend == f;

		if (asked ||
			(want->frontend == ANY && sl_load_relaxed(&port->frontend[f].vid) >= 0))
			add_frontend(d, &port->frontend[f], f, want);
	}
	dict_end(want->into, port->data->name, d);
}

/* Up to three numbers with commas between them. */
static int
params_parse(const char *text, struct wanted *want)
{
	uint32_t *const all[] = {&want->port, &want->frontend, &want->ring};

	for (size_t i = 0; text != NULL && *text != '\0'; i++) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		if (i == SL_COUNT_OF(all) || *text < '0' || *text > '9' || n >= ANY)
			return -EINVAL;
		*all[i] = (uint32_t)n;
		if (*end != '\0' && *end != ',')
			return -EINVAL;
		text = *end == ',' ? end + 1 : end;
	}
	return 0;
}

static int
list_ports(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct wanted want = {.port = ANY, .frontend = ANY, .ring = ANY, .into = d};
	int ret = params_parse(params, &want);

	(void)cmd;
	if (ret != 0)
		return ret;
	rte_tel_data_start_dict(d);
	tapvu_ports_each(add_port, &want);
	return want.found || want.port == ANY ? 0 : -ENODEV;
}

void
tapvu_telemetry_init(void)
{
	rte_telemetry_register_cmd("/sluice/tapvu", list_ports,
		"Ports of net_tapvu, their frontends and rings. Parameters: none, or "
		"PORT[,FRONTEND[,RING]]");
}
