/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port.h"
#include "sl_dpdk.h"

static const struct {
	const char *name;
	enum pktring_count what;
} names[] = {
	{"rx_bad_slots", RX_BAD},
	{"rx_no_mbuf", RX_NO_MBUF},
	{"tx_no_client", TX_NO_CLIENT},
	{"tx_client_ring_full", TX_FULL},
	{"tx_bells", TX_BELLS},
};

static uint64_t
count_now(const struct pktring_port *port, uint16_t queue, enum pktring_count what)
{
	const struct pktring_queue *q = &port->queue[queue];

	return what < TX_PACKETS ? sl_load_relaxed(&q->rx_count[what])
				 : sl_load_relaxed(&q->tx_count[what]);
}

uint64_t
pktring_count(const struct pktring_port *port, uint16_t queue, enum pktring_count what)
{
	return count_now(port, queue, what) - port->base[queue][what];
}

int
pktring_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct pktring_port *port = dev->data->dev_private;

	for (uint16_t i = 0; i < port->queues; i++) {
		uint64_t rx = pktring_count(port, i, RX_PACKETS),
			 tx = pktring_count(port, i, TX_PACKETS);
		uint64_t rx_bytes = pktring_count(port, i, RX_BYTES);
		uint64_t tx_bytes = pktring_count(port, i, TX_BYTES);

		stats->ipackets += rx;
		stats->ibytes += rx_bytes;
		stats->opackets += tx;
		stats->obytes += tx_bytes;
		stats->ierrors += pktring_count(port, i, RX_BAD);
		stats->rx_nombuf += pktring_count(port, i, RX_NO_MBUF);
		stats->oerrors += pktring_count(port, i, TX_LOST);
		if (i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
			continue;
		stats->q_ipackets[i] = rx;
		stats->q_ibytes[i] = rx_bytes;
		stats->q_opackets[i] = tx;
		stats->q_obytes[i] = tx_bytes;
	}
	return 0;
}

/* Counters are their bursts' alone to write: a reset remembers where they stood. */
int
pktring_stats_reset(struct rte_eth_dev *dev)
{
	struct pktring_port *port = dev->data->dev_private;

	for (uint16_t i = 0; i < port->queues; i++)
		for (int k = 0; k < COUNT_MAX; k++)
			port->base[i][k] = count_now(port, i, k);
	return 0;
}

int
pktring_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n)
{
	const struct pktring_port *port = dev->data->dev_private;

	for (unsigned int i = 0; i < SL_COUNT_OF(names) && i < n; i++) {
		xstats[i] = (struct rte_eth_xstat){.id = i};
		for (uint16_t q = 0; q < port->queues; q++)
			xstats[i].value += pktring_count(port, q, names[i].what);
	}
	return SL_COUNT_OF(names);
}

int
pktring_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *out, unsigned int n)
{
	(void)dev;
	for (unsigned int i = 0; out != NULL && i < SL_COUNT_OF(names) && i < n; i++)
		snprintf(out[i].name, sizeof(out[i].name), "%s", names[i].name);
	return SL_COUNT_OF(names);
}

static void
describe(struct rte_tel_data *d, const struct rte_eth_dev *dev)
{
	const struct pktring_port *port = dev->data->dev_private;
	struct rte_tel_data *one = rte_tel_data_alloc();

	if (one == NULL)
		return;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_string(one, "path", port->path);
	sl_tel_dict_u64(one, "queues", port->queues);
	rte_tel_data_add_dict_int(one, "copy", port->copy);
	sl_tel_dict_u64(one, "clients", sl_load_relaxed(&port->connected));
	sl_tel_dict_u64(one, "accepted", sl_load_relaxed(&port->accepted));
	sl_tel_dict_u64(one, "refused", sl_load_relaxed(&port->refused));
	rte_tel_data_add_dict_container(d, dev->data->name, one, 0);
}

static int
list_ports(const char *cmd, const char *params, struct rte_tel_data *d)
{
	uint16_t i;

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(d);
	RTE_ETH_FOREACH_DEV (i) {
		if (rte_eth_devices[i].rx_pkt_burst == pktring_rx_burst)
			describe(d, &rte_eth_devices[i]);
	}
	return 0;
}

void
pktring_telemetry_init(void)
{
	rte_telemetry_register_cmd("/sluice/pktring", list_ports,
		"Ports of net_pktring: socket, clients. No parameters");
}
