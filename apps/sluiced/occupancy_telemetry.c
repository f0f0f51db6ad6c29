/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* How full receive rings are. Only who polls a queue may ask for that, so workers are parked for as
 * long as it takes. */
#include <errno.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "telemetry.h"

#define QUEUES_MAX 200 /* that fit into an answer */

struct ring_use {
	uint16_t port;
	uint16_t queue;
	uint32_t used;
};

/* Rings of all ports whose drivers can tell. */
static uint16_t
read_rings(struct daemon *d, struct ring_use *use)
{
	uint16_t n = 0;

	daemon_park(d);
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		for (uint16_t q = 0; q < d->conf.port[i].queues && n < QUEUES_MAX; q++) {
			int used = rte_eth_rx_queue_count(d->port_id[i], q);

			if (used >= 0)
				use[n++] = (struct ring_use){i, q, (uint32_t)used};
		}
	}
	daemon_unpark(d);
	return n;
}

static int
on_rings(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	struct ring_use use[QUEUES_MAX];
	char name[CONF_NAME_LEN + 8];
	uint16_t n;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	n = read_rings(d, use);
	rte_tel_data_start_dict(t);
	for (uint16_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%u", d->conf.port[use[i].port].name, use[i].queue);
		telemetry_u64(t, name, use[i].used);
	}
	telemetry_leave(d);
	return 0;
}

bool
occupancy_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/rings", on_rings,
			"Packets that wait in receive rings, by port/queue. No parameter"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
