/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A client's rings: made when it says hello, taken from the queue's bursts when it goes. What is in
 * flight then keeps the transmit ring's memory: it is buried, and freed when the last mbuf is. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "port.h"
#include "sl_errno.h"

#define PAGE_BYTES 4096u

struct pktring_grave {
	struct sl_pktring_tx *ring;
	struct pktring_grave *next;
};

/* (l) graves_lock; of all ports, since mbufs can outlive their port */
static struct pktring_grave *graves;
static pthread_mutex_t graves_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t
pktring_graves_reap(void)
{
	struct pktring_grave **at = &graves;
	uint32_t left = 0;

	pthread_mutex_lock(&graves_lock);
	while (*at != NULL) {
		struct pktring_grave *g = *at;

		if (sl_pktring_tx_destroy(g->ring) == 0) {
			*at = g->next;
			free(g);
		} else {
			at = &g->next;
			left++;
		}
	}
	pthread_mutex_unlock(&graves_lock);
	return left;
}

/* The grave was dug when the ring was made: a ring in flight must not be lost for want of memory.
 */
static void
bury(struct sl_pktring_tx *ring, struct pktring_grave *g)
{
	if (sl_pktring_tx_destroy(ring) == 0) {
		free(g);
		return;
	}
	g->ring = ring;
	pthread_mutex_lock(&graves_lock);
	g->next = graves;
	graves = g;
	pthread_mutex_unlock(&graves_lock);
}

static int
rings_create(struct pktring_client *c, const struct pktring_wish *wish)
{
	struct sl_pktring_tx_conf conf = {.has_off = wish->has_off};
	int ret = 0;

	c->grave = malloc(sizeof(*c->grave));
	if (c->grave == NULL)
		return -ENOMEM;
	if (wish->tx.bytes > 0)
		ret = sl_pktring_tx_create(&wish->tx, &conf, RTE_MAX_LCORE, &c->tx);
	if (ret == 0 && wish->rx.bytes > 0)
		ret = sl_pktring_rx_create(&wish->rx, 0, &c->rx);
	if (ret == 0)
		ret = sl_pktring_mem_alloc(PAGE_BYTES, &c->page_mem);
	if (ret == 0) {
		c->page = (struct sl_pktring_page *)c->page_mem.addr;
		c->kick_fd = sl_sys(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		ret = c->kick_fd < 0 ? c->kick_fd : 0;
	}
	return ret;
}

/* The queue with the fewest clients, when the client does not mind. */
static uint16_t
choose_queue(const struct pktring_port *port, uint16_t wish)
{
	uint16_t best = 0;

	if (wish != SL_PKTRING_ANY_QUEUE)
		return wish;
	for (uint16_t i = 1; i < port->queues; i++)
		if (port->queue[i].rx_clients + port->queue[i].tx_clients <
			port->queue[best].rx_clients + port->queue[best].tx_clients)
			best = i;
	return best;
}

static bool
queue_join(struct pktring_queue *q, struct pktring_client *c)
{
	bool room;

	/* Only the control thread changes these numbers, so they may be looked at first. */
	room = (c->tx == NULL || q->rx_clients < CLIENTS_MAX) &&
	       (c->rx == NULL || q->tx_clients < CLIENTS_MAX);
	if (!room)
		return false;
	if (c->tx != NULL) {
		rte_spinlock_lock(&q->rx_lock);
		sl_store_relaxed(&c->page->server_sleeps, q->sleeping);
		q->rx_client[q->rx_clients++] = c;
		rte_spinlock_unlock(&q->rx_lock);
	}
	if (c->rx != NULL) {
		rte_spinlock_lock(&q->tx_lock);
		q->tx_client[q->tx_clients++] = c;
		rte_spinlock_unlock(&q->tx_lock);
	}
	return true;
}

static void
list_remove(struct pktring_client **list, uint32_t *n, const struct pktring_client *c)
{
	for (uint32_t i = 0; i < *n; i++) {
		if (list[i] != c)
			continue;
		list[i] = list[--*n];
		return;
	}
}

static void
queue_leave(struct pktring_queue *q, struct pktring_client *c)
{
	rte_spinlock_lock(&q->rx_lock);
	list_remove(q->rx_client, &q->rx_clients, c);
	rte_spinlock_unlock(&q->rx_lock);
	rte_spinlock_lock(&q->tx_lock);
	list_remove(q->tx_client, &q->tx_clients, c);
	rte_spinlock_unlock(&q->tx_lock);
}

static void
client_free_rings(struct pktring_client *c)
{
	bury(c->tx, c->grave);
	sl_pktring_rx_destroy(c->rx);
	sl_pktring_mem_free(&c->page_mem);
	if (c->kick_fd >= 0)
		close(c->kick_fd);
	c->tx = NULL;
	c->grave = NULL;
	c->rx = NULL;
	c->kick_fd = -1;
}

int
pktring_client_open(struct pktring_port *port, struct pktring_client *c,
	const struct pktring_wish *wish, const char **why)
{
	int ret = rings_create(c, wish);

	*why = "the rings could not be made";
	if (ret == 0) {
		c->queue = choose_queue(port, wish->queue);
		c->loss = wish->loss;
		*why = "the queue has as many clients as it can have";
		if (!queue_join(&port->queue[c->queue], c))
			ret = -EUSERS;
	}
	if (ret != 0)
		client_free_rings(c);
	return ret;
}

void
pktring_client_close(struct pktring_port *port, struct pktring_client *c)
{
	if (c->kick_fd >= 0)
		queue_leave(&port->queue[c->queue], c);
	client_free_rings(c);
	close(c->fd);
	free(c);
}
