/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Queues: set up, start, stop, make anew. A queue has a socket only while it is started. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

/* One super-frame, a tag before it, and one segment beside it. */
#define STAGING_BYTES (2 * (TPACKET_SUPER_MAX + 64))
#define ROOM_MIN 128 /* all headers of a frame lie in its first mbuf */
#define ROOM_MIN_LRO 1024
#define DRAIN_TRIES 100
#define DRAIN_US 1000

/* ---- receive ----------------------------------------------------------------------------------
 */

static int
check_room(struct rte_eth_dev *dev, const struct tpacket_rxq *q)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint32_t longest = dev->data->mtu + RTE_ETHER_HDR_LEN;

	if (q->room < ROOM_MIN || (q->lro && q->room < ROOM_MIN_LRO)) {
		TPACKET_LOG(ERR, "%s: mbufs with %u bytes of room: at least %u are needed",
			port->args.iface, q->room, q->lro ? ROOM_MIN_LRO : ROOM_MIN);
		return -EINVAL;
	}
	if (longest > q->room && !q->scatter) {
		TPACKET_LOG(ERR,
			"%s: frames of %u bytes do not fit mbufs with %u bytes of room: "
			"enable the scatter offload or use larger mbufs",
			port->args.iface, longest, q->room);
		return -EINVAL;
	}
	return 0;
}

int
tpacket_rx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q;
	int ret;

	q = rte_zmalloc_socket("tpacket rxq", sizeof(*q), SL_CACHE_LINE, (int)socket);
	if (q == NULL)
		return -ENOMEM;
	q->staging =
		rte_malloc_socket("tpacket staging", STAGING_BYTES, SL_CACHE_LINE, (int)socket);
	q->pool = pool;
	q->port = port;
	q->port_id = dev->data->port_id;
	q->queue_id = id;
	q->desc = desc;
	q->socket_id = socket;
	q->offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
	q->lro = (q->offloads & RTE_ETH_RX_OFFLOAD_TCP_LRO) != 0;
	q->scatter = q->lro || (q->offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
	q->room = (uint16_t)(rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM);
	q->ptypes = UINT32_MAX;
	q->strip = (q->offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0;
	q->deferred = conf->rx_deferred_start != 0;
	ret = q->staging == NULL ? -ENOMEM : check_room(dev, q);
	if (ret != 0) {
		rte_free(q->staging);
		rte_free(q);
		return ret;
	}
	dev->data->rx_queues[id] = q;
	return 0;
}

void
tpacket_rx_release(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_rxq *q = dev->data->rx_queues[id];

	if (q == NULL)
		return;
	(void)tpacket_rx_stop(dev, id);
	dev->data->rx_queues[id] = NULL;
	rte_free(q->staging);
	rte_free(q);
}

static int
open_rx_locked(struct tpacket_port *port, struct tpacket_rxq *q)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct tpacket_ring *ring;
	int ret;

	ret = tpacket_sock_rx(port, q, &ring);
	if (ret != 0)
		return ret;
	if (port->epoll_fd[q->queue_id] >= 0) {
		ret = sl_sys(
			epoll_ctl(port->epoll_fd[q->queue_id], EPOLL_CTL_ADD, ring->fd, &event));
		if (ret != 0) {
			tpacket_ring_destroy(ring);
			return ret;
		}
	}
	tpacket_rx_reset(q, ring);
	tpacket_gate_open(&q->gate, ring);
	return 0;
}

static void
close_rx_locked(struct tpacket_port *port, struct tpacket_rxq *q)
{
	struct tpacket_ring *ring;

	tpacket_stats_drops_locked(q);
	ring = tpacket_gate_close(&q->gate);
	if (ring != NULL && port->fanout_members > 0)
		port->fanout_members--;
	tpacket_ring_destroy(ring);
}

int
tpacket_rx_start(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q = dev->data->rx_queues[id];
	int ret = 0;

	pthread_mutex_lock(&port->lock);
	if (sl_load_relaxed(&q->gate.ring) == NULL)
		ret = open_rx_locked(port, q);
	if (ret == 0)
		dev->data->rx_queue_state[id] = RTE_ETH_QUEUE_STATE_STARTED;
	pthread_mutex_unlock(&port->lock);
	return ret;
}

int
tpacket_rx_stop(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q = dev->data->rx_queues[id];

	pthread_mutex_lock(&port->lock);
	dev->data->rx_queue_state[id] = RTE_ETH_QUEUE_STATE_STOPPED;
	close_rx_locked(port, q);
	tpacket_rx_purge(q);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

void
tpacket_rxq_info(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_rxq_info *info)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q = dev->data->rx_queues[id];
	struct tpacket_ring *ring;

	info->mp = q->pool;
	info->conf.offloads = q->offloads;
	info->conf.rx_deferred_start = q->deferred;
	info->scattered_rx = q->scatter;
	info->rx_buf_size = q->room;
	info->nb_desc = q->desc;
	pthread_mutex_lock(&port->lock);
	ring = sl_load_acquire(&q->gate.ring); /* TP1 */
	if (ring != NULL && rte_eal_process_type() == RTE_PROC_PRIMARY)
		info->nb_desc = (uint16_t)RTE_MIN(ring->geom.frame_nr, (uint32_t)UINT16_MAX);
	pthread_mutex_unlock(&port->lock);
}

void
tpacket_vlan_strip_set(struct rte_eth_dev *dev, uint16_t id, int on)
{
	struct tpacket_rxq *q = dev->data->rx_queues[id];

	/* Alone in its word: a burst takes it for one frame, whichever it is. */
	if (q != NULL)
		sl_store_relaxed(&q->strip, on != 0);
}

int
tpacket_vlan_offload_set(struct rte_eth_dev *dev, int mask)
{
	uint64_t now = dev->data->dev_conf.rxmode.offloads;
	uint16_t i;

	for (i = 0; (mask & RTE_ETH_VLAN_STRIP_MASK) != 0 && i < dev->data->nb_rx_queues; i++)
		tpacket_vlan_strip_set(dev, i, (now & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0);
	return 0;
}

int
tpacket_rx_burst_mode(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_burst_mode *mode)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q = dev->data->rx_queues[id];

	snprintf(mode->info, sizeof(mode->info), "Kernel Ring V%u%s%s%s", port->args.version,
		port->args.vnet_hdr && !port->warned_vnet ? " VnetHdr" : "",
		q->scatter ? " Scattered" : "", q->lro ? " LRO" : "");
	return 0;
}

/* ---- transmit ---------------------------------------------------------------------------------
 */

int
tpacket_tx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_txq *q;

	q = rte_zmalloc_socket("tpacket txq", sizeof(*q), SL_CACHE_LINE, (int)socket);
	if (q == NULL)
		return -ENOMEM;
	q->port = port;
	q->port_id = dev->data->port_id;
	q->queue_id = id;
	q->desc = desc;
	q->socket_id = socket;
	q->free_thresh = conf->tx_free_thresh;
	q->deferred = conf->tx_deferred_start != 0;
	q->offloads = conf->offloads | dev->data->dev_conf.txmode.offloads;
	dev->data->tx_queues[id] = q;
	return 0;
}

void
tpacket_tx_release(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_txq *q = dev->data->tx_queues[id];

	if (q == NULL)
		return;
	(void)tpacket_tx_stop(dev, id);
	dev->data->tx_queues[id] = NULL;
	rte_free(q);
}

static int
open_tx_locked(struct tpacket_port *port, struct tpacket_txq *q)
{
	struct tpacket_ring *ring;
	int ret = tpacket_sock_tx(port, q, &ring);

	if (ret != 0)
		return ret;
	tpacket_tx_reset(q, ring);
	tpacket_gate_open(&q->gate, ring);
	return 0;
}

/* Waits a moment for what is in flight. The kernel holds the pages of what is still on its way, so
 * nothing is cut off when that takes longer. */
static void
close_tx_locked(struct tpacket_port *port, struct tpacket_txq *q)
{
	struct tpacket_ring *ring = tpacket_gate_close(&q->gate);
	int i;

	if (ring == NULL)
		return;
	/* Nothing is put in any more, so the sum can be trusted (see sl_lcount.h). Other queues of
	 * the port may hold it above zero; then this queue's own count ends the wait. */
	for (i = 0; i < DRAIN_TRIES && q->filled != 0 && sl_lcount_sum(port->pending) != 0; i++)
		if (tpacket_tx_reap(q, ring, UINT32_MAX) == 0)
			usleep(DRAIN_US);
	if (q->filled != 0)
		sl_lcount_give(port->pending, SL_LCOUNT_SHARED, q->filled);
	q->filled = 0;
	sl_store_relaxed(&q->in_flight, 0);
	tpacket_ring_destroy(ring);
}

int
tpacket_tx_start(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_txq *q = dev->data->tx_queues[id];
	int ret = 0;

	pthread_mutex_lock(&port->lock);
	if (sl_load_relaxed(&q->gate.ring) == NULL)
		ret = open_tx_locked(port, q);
	if (ret == 0)
		dev->data->tx_queue_state[id] = RTE_ETH_QUEUE_STATE_STARTED;
	pthread_mutex_unlock(&port->lock);
	return ret;
}

int
tpacket_tx_stop(struct rte_eth_dev *dev, uint16_t id)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_txq *q = dev->data->tx_queues[id];

	pthread_mutex_lock(&port->lock);
	dev->data->tx_queue_state[id] = RTE_ETH_QUEUE_STATE_STOPPED;
	close_tx_locked(port, q);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

void
tpacket_txq_info(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_txq_info *info)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_txq *q = dev->data->tx_queues[id];
	struct tpacket_ring *ring;

	info->conf.offloads = q->offloads;
	info->conf.tx_deferred_start = q->deferred;
	info->conf.tx_free_thresh = q->free_thresh;
	info->nb_desc = q->desc;
	pthread_mutex_lock(&port->lock);
	ring = sl_load_acquire(&q->gate.ring); /* TP1 */
	if (ring != NULL && rte_eal_process_type() == RTE_PROC_PRIMARY)
		info->nb_desc = (uint16_t)RTE_MIN(ring->geom.frame_nr, (uint32_t)UINT16_MAX);
	pthread_mutex_unlock(&port->lock);
}

int
tpacket_tx_burst_mode(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_burst_mode *mode)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_txq *q = dev->data->tx_queues[id];

	snprintf(mode->info, sizeof(mode->info), "Kernel Ring V2%s%s%s",
		port->args.vnet_hdr && !port->warned_vnet ? " VnetHdr" : "",
		port->args.qdisc_bypass && !port->warned_bypass ? " QdiscBypass" : "",
		(q->offloads & RTE_ETH_TX_OFFLOAD_TCP_TSO) != 0 ? " TSO" : "");
	return 0;
}

/* ---- all of them
 * --------------------------------------------------------------------------------- */

static void
close_all_locked(struct tpacket_port *port)
{
	struct rte_eth_dev_data *data = port->data;
	uint16_t i;

	for (i = 0; i < data->nb_rx_queues; i++)
		if (data->rx_queues[i] != NULL)
			close_rx_locked(port, data->rx_queues[i]);
	for (i = 0; i < data->nb_tx_queues; i++)
		if (data->tx_queues[i] != NULL)
			close_tx_locked(port, data->tx_queues[i]);
}

int
tpacket_queues_remake_locked(struct tpacket_port *port)
{
	struct rte_eth_dev_data *data = port->data;
	int ret = 0, one;
	uint16_t i;

	/* All first: a fan-out group stays tied to the interface that its first member had. */
	close_all_locked(port);
	for (i = 0; i < data->nb_rx_queues; i++) {
		if (data->rx_queue_state[i] != RTE_ETH_QUEUE_STATE_STARTED)
			continue;
		one = open_rx_locked(port, data->rx_queues[i]);
		ret = ret == 0 ? one : ret;
	}
	for (i = 0; i < data->nb_tx_queues; i++) {
		if (data->tx_queue_state[i] != RTE_ETH_QUEUE_STATE_STARTED)
			continue;
		one = open_tx_locked(port, data->tx_queues[i]);
		ret = ret == 0 ? one : ret;
	}
	port->remakes++;
	return ret;
}
