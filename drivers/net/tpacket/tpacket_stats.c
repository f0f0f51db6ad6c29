/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

/* Totals that are no counter of one queue come after those of both directions. */
enum { EXTRA_FREEZES, EXTRA_IN_FLIGHT, EXTRA_REMAKES, EXTRAS };

static const char *const rx_names[TPACKET_RX_STATS] = {
	[TPACKET_RX_PACKETS] = "rx_delivered_packets",
	[TPACKET_RX_BYTES] = "rx_delivered_bytes",
	[TPACKET_RX_NO_MBUF] = "rx_no_mbuf",
	[TPACKET_RX_TRUNCATED] = "rx_drop_truncated",
	[TPACKET_RX_NO_ROOM] = "rx_drop_mbuf_too_small",
	[TPACKET_RX_BAD_SLOT] = "rx_drop_bad_slot",
	[TPACKET_RX_BAD_VNET] = "rx_drop_bad_vnet_header",
	[TPACKET_RX_GSO_UNSUPPORTED] = "rx_drop_super_frame_unsupported",
	[TPACKET_RX_OTHER_HOST] = "rx_filtered_other_host",
	[TPACKET_RX_CSUM_COMPLETED] = "rx_checksum_completed",
	[TPACKET_RX_LRO] = "rx_super_frame_lro",
	[TPACKET_RX_SEGMENTED] = "rx_super_frame_segmented",
	[TPACKET_RX_QUEUED_COPY] = "rx_larger_than_slot",
	[TPACKET_RX_VLAN_REINSERTED] = "rx_vlan_reinserted",
};

static const char *const tx_names[TPACKET_TX_STATS] = {
	[TPACKET_TX_PACKETS] = "tx_sent_packets",
	[TPACKET_TX_BYTES] = "tx_sent_bytes",
	[TPACKET_TX_KICKS] = "tx_kicks",
	[TPACKET_TX_TOO_SHORT] = "tx_drop_too_short",
	[TPACKET_TX_TOO_LONG] = "tx_drop_too_long",
	[TPACKET_TX_BAD_OFFLOAD] = "tx_drop_bad_offload",
	[TPACKET_TX_WRONG_FORMAT] = "tx_drop_wrong_format",
	[TPACKET_TX_RING_FULL] = "tx_held_ring_full",
	[TPACKET_TX_AGAIN] = "tx_held_again",
	[TPACKET_TX_NOBUFS] = "tx_held_no_buffer",
	[TPACKET_TX_DOWN] = "tx_held_down",
	[TPACKET_TX_OTHER_ERROR] = "tx_kernel_error",
	[TPACKET_TX_SUPER] = "tx_super_frames",
	[TPACKET_TX_RELAYED] = "tx_super_frames_relayed",
};

static const char *const extra_names[EXTRAS] = {
	[EXTRA_FREEZES] = "rx_ring_freezes",
	[EXTRA_IN_FLIGHT] = "tx_in_flight",
	[EXTRA_REMAKES] = "ring_remakes",
};

void
tpacket_stats_drops_locked(struct tpacket_rxq *q)
{
	const struct tpacket_ring *ring = sl_load_acquire(&q->gate.ring); /* TP1 */
	struct tpacket_stats_v3 stats = {0};
	socklen_t len = sizeof(stats);

	if (rte_eal_process_type() != RTE_PROC_PRIMARY || ring == NULL)
		return;
	if (sl_sys(getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len)) != 0)
		return;
	q->kernel_drops += stats.tp_drops;
	q->kernel_freezes += ring->version == 3 ? stats.tp_freeze_q_cnt : 0;
}

static uint64_t
rx_stat(const struct tpacket_rxq *q, enum tpacket_rx_stat which)
{
	return sl_load_relaxed(&q->stats[which]) - q->baseline[which];
}

static uint64_t
tx_stat(const struct tpacket_txq *q, enum tpacket_tx_stat which)
{
	return sl_load_relaxed(&q->stats[which]) - q->baseline[which];
}

static void
add_rx(struct rte_eth_stats *out, struct tpacket_rxq *q, uint16_t i)
{
	uint64_t errors = 0;
	int which;

	for (which = TPACKET_RX_TRUNCATED; which <= TPACKET_RX_GSO_UNSUPPORTED; which++)
		errors += rx_stat(q, (enum tpacket_rx_stat)which);
	tpacket_stats_drops_locked(q);
	out->ipackets += rx_stat(q, TPACKET_RX_PACKETS);
	out->ibytes += rx_stat(q, TPACKET_RX_BYTES);
	out->rx_nombuf += rx_stat(q, TPACKET_RX_NO_MBUF);
	out->imissed += q->kernel_drops - q->drops_baseline;
	out->ierrors += errors;
	if (i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
		return;
	out->q_ipackets[i] = rx_stat(q, TPACKET_RX_PACKETS);
	out->q_ibytes[i] = rx_stat(q, TPACKET_RX_BYTES);
	out->q_errors[i] = errors;
}

static void
add_tx(struct rte_eth_stats *out, const struct tpacket_txq *q, uint16_t i)
{
	int which;

	for (which = TPACKET_TX_TOO_SHORT; which <= TPACKET_TX_WRONG_FORMAT; which++)
		out->oerrors += tx_stat(q, (enum tpacket_tx_stat)which);
	out->opackets += tx_stat(q, TPACKET_TX_PACKETS);
	out->obytes += tx_stat(q, TPACKET_TX_BYTES);
	if (i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
		return;
	out->q_opackets[i] = tx_stat(q, TPACKET_TX_PACKETS);
	out->q_obytes[i] = tx_stat(q, TPACKET_TX_BYTES);
}

int
tpacket_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *out)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint16_t i;

	pthread_mutex_lock(&port->lock);
	for (i = 0; i < dev->data->nb_rx_queues; i++)
		if (dev->data->rx_queues[i] != NULL)
			add_rx(out, dev->data->rx_queues[i], i);
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		if (dev->data->tx_queues[i] != NULL)
			add_tx(out, dev->data->tx_queues[i], i);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

/* The owner lcore alone writes its counters, so a reset only moves what they are compared with. */
int
tpacket_stats_reset(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *rxq;
	struct tpacket_txq *txq;
	uint32_t i, k;

	pthread_mutex_lock(&port->lock);
	for (i = 0; i < dev->data->nb_rx_queues; i++) {
		rxq = dev->data->rx_queues[i];
		if (rxq == NULL)
			continue;
		for (k = 0; k < TPACKET_RX_STATS; k++)
			rxq->baseline[k] = sl_load_relaxed(&rxq->stats[k]);
		tpacket_stats_drops_locked(rxq);
		rxq->drops_baseline = rxq->kernel_drops;
		rxq->freezes_baseline = rxq->kernel_freezes;
	}
	for (i = 0; i < dev->data->nb_tx_queues; i++) {
		txq = dev->data->tx_queues[i];
		for (k = 0; txq != NULL && k < TPACKET_TX_STATS; k++)
			txq->baseline[k] = sl_load_relaxed(&txq->stats[k]);
	}
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static uint64_t
extra(const struct rte_eth_dev_data *data, int which)
{
	const struct tpacket_port *port = data->dev_private;
	const struct tpacket_rxq *rxq;
	const struct tpacket_txq *txq;
	uint64_t sum = 0;
	uint16_t i;

	if (which == EXTRA_REMAKES)
		return port->remakes;
	for (i = 0; which == EXTRA_FREEZES && i < data->nb_rx_queues; i++) {
		rxq = data->rx_queues[i];
		sum += rxq == NULL ? 0 : rxq->kernel_freezes - rxq->freezes_baseline;
	}
	for (i = 0; which == EXTRA_IN_FLIGHT && i < data->nb_tx_queues; i++) {
		txq = data->tx_queues[i];
		sum += txq == NULL ? 0 : sl_load_relaxed(&txq->in_flight);
	}
	return sum;
}

static uint64_t
xstat(const struct rte_eth_dev_data *data, uint32_t id)
{
	uint64_t sum = 0;
	uint16_t i;

	if (id >= TPACKET_RX_STATS + TPACKET_TX_STATS)
		return extra(data, (int)id - TPACKET_RX_STATS - TPACKET_TX_STATS);
	if (id < TPACKET_RX_STATS) {
		for (i = 0; i < data->nb_rx_queues; i++)
			if (data->rx_queues[i] != NULL)
				sum += rx_stat(data->rx_queues[i], (enum tpacket_rx_stat)id);
		return sum;
	}
	for (i = 0; i < data->nb_tx_queues; i++)
		if (data->tx_queues[i] != NULL)
			sum += tx_stat(
				data->tx_queues[i], (enum tpacket_tx_stat)(id - TPACKET_RX_STATS));
	return sum;
}

#define XSTATS (TPACKET_RX_STATS + TPACKET_TX_STATS + EXTRAS)

int
tpacket_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *out, unsigned int n)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint32_t i;

	if (n < XSTATS || out == NULL)
		return XSTATS;
	pthread_mutex_lock(&port->lock);
	for (i = 0; i < XSTATS; i++) {
		out[i].id = i;
		out[i].value = xstat(dev->data, i);
	}
	pthread_mutex_unlock(&port->lock);
	return XSTATS;
}

int
tpacket_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *out, unsigned int n)
{
	const char *name;
	uint32_t i;

	(void)dev;
	for (i = 0; out != NULL && i < XSTATS && i < n; i++) {
		if (i < TPACKET_RX_STATS)
			name = rx_names[i];
		else if (i < TPACKET_RX_STATS + TPACKET_TX_STATS)
			name = tx_names[i - TPACKET_RX_STATS];
		else
			name = extra_names[i - TPACKET_RX_STATS - TPACKET_TX_STATS];
		snprintf(out[i].name, sizeof(out[i].name), "%s", name);
	}
	return XSTATS;
}
