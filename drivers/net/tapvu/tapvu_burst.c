/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The data path: nothing here waits, allocates, logs, or calls rte_vhost. */
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "sl_errno.h"
#include "tapvu_priv.h"

/* Frames moved one way on one pair before the other way has its turn. */
#define BRIDGE_BUDGET 64u

/* Its descriptor does not block: it was set so when it came. */
void
tapvu_call_peer(struct tapvu_ring *r)
{
	uint64_t one = 1;

	if (r->call_fd < 0)
		return;
	sl_counter_add(&r->calls, 1);
	/* Can only fail when the counter is full, and then the peer has been told. */
	if (write(r->call_fd, &one, sizeof(one)) < 0)
		return;
}

/* Take a virtqueue that is up and that nobody else has. */
static bool
ring_take(struct tapvu_ring *r)
{
	if (sl_load_relaxed(&r->up) == 0 || rte_spinlock_trylock(&r->lock) == 0)
		return false;
	if (SL_LIKELY(sl_load_relaxed(&r->up) != 0))
		return true;
	rte_spinlock_unlock(&r->lock);
	return false;
}

static struct tapvu_ring *
ring_of(struct tapvu_port *port, uint32_t frontend, uint32_t index)
{
	return &port->frontend[frontend].ring[index];
}

static uint16_t
rx_ring(struct tapvu_rxq *q, struct tapvu_ring *r, uint32_t worker, struct rte_mbuf **m, uint16_t n)
{
	bool call = false;
	uint16_t got;

	if (!ring_take(r))
		return 0;
	r->view.complete = q->complete;
	r->view.port = q->port->data->port_id;
	got = sl_tapq_build_burst(q->tapq, worker, &r->view, m, n, &call);
	if (call)
		tapvu_call_peer(r);
	rte_spinlock_unlock(&r->lock);
	return got;
}

/* Every virtqueue that feeds this queue once, each time beginning with another one. */
static uint16_t
rx_all(struct tapvu_rxq *q, uint32_t worker, struct rte_mbuf **m, uint16_t n)
{
	uint32_t at = sl_load_relaxed(&q->next), next = at + 1;
	uint16_t got = 0;

	sl_store_relaxed(&q->next, next < q->rings ? next : 0);
	for (uint32_t i = 0; i < q->rings && got < n; i++) {
		got += rx_ring(q, q->ring[at], worker, m + got, (uint16_t)(n - got));
		at = at + 1 < q->rings ? at + 1 : 0;
	}
	return got;
}

uint16_t
tapvu_rx_burst(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct tapvu_rxq *q = queue;
	uint32_t lcore = rte_lcore_id();
	uint16_t got;

	if (SL_LIKELY(lcore < RTE_MAX_LCORE))
		return rx_all(q, lcore, m, n);
	if (rte_spinlock_trylock(&q->stranger) == 0)
		return 0;
	got = rx_all(q, RTE_MAX_LCORE, m, n);
	rte_spinlock_unlock(&q->stranger);
	return got;
}

static void
bridge_pair(struct tapvu_port *port, uint32_t frontend, uint32_t pair)
{
	struct tapvu_ring *from = ring_of(port, frontend, 2 * pair + 1);
	struct tapvu_ring *to = ring_of(port, frontend, 2 * pair);
	bool call = false;

	if (ring_take(from)) {
		(void)sl_tap_from_ring(&port->tap, (uint16_t)pair, &from->view, BRIDGE_BUDGET,
			&from->bridged, &call);
		if (call)
			tapvu_call_peer(from);
		rte_spinlock_unlock(&from->lock);
	}
	call = false;
	if (ring_take(to)) {
		(void)sl_tap_to_ring(&port->tap, (uint16_t)pair, &to->view, BRIDGE_BUDGET,
			sl_load_relaxed(&port->bridge_max), &to->bridged, &call);
		if (call)
			tapvu_call_peer(to);
		rte_spinlock_unlock(&to->lock);
	}
}

/* With a kernel tap the frames go there: polling the receive queue moves them, and returns none. */
uint16_t
tapvu_bridge_burst(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct tapvu_rxq *q = queue;
	const struct tapvu_args *args = &q->port->args;

	(void)m;
	(void)n;
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++)
		for (uint32_t pair = q->id; pair < args->queues; pair += args->taps)
			bridge_pair(q->port, f, pair);
	return 0;
}

/* Transmitters wait for each other, for one burst at most: packets of a flow stay in order. */
static bool
ring_wait(struct tapvu_ring *r)
{
	if (sl_load_relaxed(&r->up) == 0)
		return false;
	rte_spinlock_lock(&r->lock);
	if (SL_LIKELY(sl_load_relaxed(&r->up) != 0))
		return true;
	rte_spinlock_unlock(&r->lock);
	return false;
}

uint16_t
tapvu_tx_burst(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct tapvu_txq *q = queue;
	uint32_t index = 2 * (q->id % q->port->args.queues);
	uint16_t sent = 0;

	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++) {
		struct tapvu_ring *r = ring_of(q->port, f, index);
		bool call = false;

		if (!ring_wait(r))
			continue;
		sent = sl_tapq_write_burst(&r->view, m, n, &r->written, &call);
		if (call)
			tapvu_call_peer(r);
		rte_spinlock_unlock(&r->lock);
		break;
	}
	return sent;
}
