/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Receive: clients' transmit slots become mbufs. Transmit: mbufs are copied into clients' receive
 * rings. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "port.h"

#define TICKS_PER_S 2000 /* looks at V3 blocks */

static void
count(uint64_t *counter, uint64_t n)
{
	sl_counter_add(counter, n);
}

/* Is there an mbuf in stock, raw as the pool has it? */
static bool
have_stash(struct pktring_queue *q)
{
	if (q->stashed == 0 && rte_mempool_get_bulk(q->pool, (void **)q->stash, STASH) == 0)
		q->stashed = STASH;
	return q->stashed > 0;
}

static struct rte_mbuf *
take_stash(struct pktring_queue *q)
{
	struct rte_mbuf *m;

	if (!have_stash(q))
		return rte_pktmbuf_alloc(q->pool);
	m = q->stash[--q->stashed];
	rte_pktmbuf_reset(m);
	return m;
}

void
pktring_stash_free(struct pktring_queue *q)
{
	if (q->stashed > 0)
		rte_mempool_put_bulk(q->pool, (void **)q->stash, q->stashed);
	q->stashed = 0;
}

/* The peeked frame as an mbuf, its slot taken; NULL without mbufs. */
static struct rte_mbuf *
take_frame(struct pktring_queue *q, struct sl_pktring_tx *ring, const struct sl_pktring_frame *f)
{
	uint32_t worker = rte_lcore_id();
	struct rte_mbuf *m;

	if (q->copy) {
		m = sl_pktring_mbuf_copy(ring, f, q->pool);
		if (m == NULL)
			return NULL;
		sl_pktring_tx_take(ring, worker);
		sl_pktring_tx_complete(ring, f->slot, worker);
	} else {
		m = take_stash(q);
		if (m == NULL)
			return NULL;
		sl_pktring_tx_take(ring, worker);
		sl_pktring_mbuf_attach(ring, f, m);
	}
	m->port = q->port_id;
	return m;
}

/* Requests that nothing is wrong with, lent to the caller; adds their bytes. */
static uint16_t
take_plain(struct pktring_queue *q, struct sl_pktring_tx *ring, struct rte_mbuf **pkts, uint16_t n,
	uint64_t *bytes)
{
	struct sl_pktring_lend want = {.least = RTE_ETHER_HDR_LEN,
		.most = q->cap,
		.worker = rte_lcore_id(),
		.port = q->port_id};
	uint32_t len[STASH];
	uint16_t got = 0, room, k;

	while (got < n && have_stash(q)) {
		room = RTE_MIN((uint16_t)(n - got), q->stashed);
		memcpy(&pkts[got], &q->stash[q->stashed - room], room * sizeof(pkts[0]));
		k = sl_pktring_mbuf_lend(ring, &want, &pkts[got], len, room);
		/* Those that were not taken move to where the taken ones were. */
		q->stashed -= k;
		memcpy(&q->stash[q->stashed - (room - k)], &pkts[got + k],
			(size_t)(room - k) * sizeof(pkts[0]));
		for (uint16_t i = 0; i < k; i++)
			*bytes += len[i];
		got += k;
		if (k < room)
			break;
	}
	return got;
}

static uint16_t
client_rx(struct pktring_queue *q, struct pktring_client *c, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t cap = q->copy ? RTE_MIN(q->cap, q->room) : q->cap;
	struct sl_pktring_frame f;
	uint64_t bytes = 0;
	uint16_t got = 0;
	int ret;

	for (;;) {
		if (!q->copy)
			got += take_plain(q, c->tx, pkts + got, n - got, &bytes);
		if (got >= n)
			break;
		ret = sl_pktring_tx_peek(c->tx, cap, &f);
		if (ret == 0)
			break;
		if (ret == 1 && f.len < RTE_ETHER_HDR_LEN)
			ret = -EINVAL;
		if (ret < 0) {
			count(&q->rx_count[RX_BAD], 1);
			if (!c->loss) {
				sl_pktring_tx_reject(c->tx);
				break;
			}
			sl_pktring_tx_drop(c->tx);
			n--; /* a ring of bad slots must not hold the burst up */
			continue;
		}
		pkts[got] = take_frame(q, c->tx, &f);
		if (pkts[got] == NULL) {
			count(&q->rx_count[RX_NO_MBUF], 1);
			break;
		}
		bytes += f.len;
		got++;
	}
	count(&q->rx_count[RX_PACKETS], got);
	count(&q->rx_count[RX_BYTES], bytes);
	return got;
}

static uint64_t
wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The client has something to look at; wake it if it sleeps. */
static void
ring_bell(struct pktring_queue *q, struct pktring_client *c)
{
	static const struct sl_pktring_bell bell = {SL_PKTRING_MAGIC, SL_PKTRING_BELL, 0};

	sl_fence_seq_cst(); /* PR6: what was stored in the ring, then the look at its word */
	if (SL_LIKELY(sl_load_relaxed(&c->page->client_sleeps) == 0))
		return;
	sl_store_relaxed(&c->page->client_sleeps, 0);
	count(&q->tx_count[TX_BELLS], 1);
	/* Its socket is full or gone: then it has bells enough, or needs none. */
	if (send(c->fd, &bell, sizeof(bell), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

/* Retire V3 blocks that are due; now and then, by whoever transmits or receives. */
static void
tick(struct pktring_queue *q)
{
	uint64_t now = rte_get_tsc_cycles();

	if (SL_LIKELY(now < q->tick_tsc) || !rte_spinlock_trylock(&q->tx_lock))
		return;
	q->tick_tsc = now + rte_get_tsc_hz() / TICKS_PER_S;
	for (uint32_t i = 0; i < q->tx_clients; i++)
		if (sl_pktring_rx_tick(q->tx_client[i]->rx, wall_ns()))
			ring_bell(q, q->tx_client[i]);
	rte_spinlock_unlock(&q->tx_lock);
}

uint16_t
pktring_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct pktring_queue *q = queue;
	uint16_t got = 0;

	if (!rte_spinlock_trylock(&q->rx_lock))
		return 0;
	if (SL_LIKELY(q->rx_on)) {
		for (uint32_t i = 0; i < q->rx_clients && got < n; i++) {
			uint32_t k = (q->turn + i) % q->rx_clients;

			got += client_rx(q, q->rx_client[k], pkts + got, n - got);
		}
		q->turn++;
		tick(q);
	}
	rte_spinlock_unlock(&q->rx_lock);
	return got;
}

/* Copy a burst into one client's ring; bit i of the result: it has packet i. */
static uint64_t
client_tx(struct pktring_queue *q, struct pktring_client *c, struct rte_mbuf **pkts, uint16_t n,
	uint64_t now_ns)
{
	struct sl_pktring_meta meta = {.maclen = RTE_ETHER_HDR_LEN,
		.ns = now_ns,
		.from = {
			.sll_family = AF_PACKET, .sll_hatype = 1, .sll_halen = RTE_ETHER_ADDR_LEN}};
	bool visible = false;
	uint64_t has = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t eth[RTE_ETHER_HDR_LEN] = {0};

		meta.len = pkts[i]->pkt_len;
		sl_pktring_mbuf_read(pkts[i], 0, eth, RTE_MIN(meta.len, (uint32_t)sizeof(eth)));
		memcpy(meta.from.sll_addr, eth + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
		memcpy(&meta.from.sll_protocol, eth + 2 * RTE_ETHER_ADDR_LEN, 2);
		if (meta.len < sizeof(eth) ||
			sl_pktring_mbuf_store(c->rx, &meta, pkts[i], 0, &visible) != 0)
			count(&q->tx_count[TX_FULL], 1);
		else
			has |= UINT64_C(1) << i;
	}
	if (visible)
		ring_bell(q, c);
	return has;
}

static void
transmit(struct pktring_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t has = 0, bytes = 0, now_ns;
	uint16_t got;

	if (q->tx_clients == 0) {
		count(&q->tx_count[TX_NO_CLIENT], n);
		count(&q->tx_count[TX_LOST], n);
		return;
	}
	now_ns = wall_ns();
	for (uint32_t i = 0; i < q->tx_clients; i++)
		has |= client_tx(q, q->tx_client[i], pkts, n, now_ns);
	for (uint16_t i = 0; i < n; i++)
		bytes += has >> i & 1 ? pkts[i]->pkt_len : 0;
	got = (uint16_t)__builtin_popcountll(has);
	count(&q->tx_count[TX_PACKETS], got);
	count(&q->tx_count[TX_LOST], n - got);
	count(&q->tx_count[TX_BYTES], bytes);
}

uint16_t
pktring_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct pktring_queue *q = queue;

	n = RTE_MIN(
		n, (uint16_t)64); /* bits of the mask above; the rest comes with the next call */
	if (n == 0 || !rte_spinlock_trylock(&q->tx_lock))
		return 0;
	if (SL_LIKELY(q->tx_on))
		transmit(q, pkts, n);
	else
		n = 0;
	rte_spinlock_unlock(&q->tx_lock);
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static bool
has_request(struct pktring_queue *q)
{
	struct sl_pktring_frame f;

	for (uint32_t i = 0; i < q->rx_clients; i++)
		if (sl_pktring_tx_peek(q->rx_client[i]->tx, UINT32_MAX, &f) != 0)
			return true;
	return false;
}

/* Announce, then look once more: a request that came before is found here, one that comes later
 * finds the announcement (PR6). */
void
pktring_sleep(struct pktring_queue *q, bool sleeping)
{
	uint64_t one = 1;
	bool ready;

	rte_spinlock_lock(&q->rx_lock);
	q->sleeping = sleeping;
	for (uint32_t i = 0; i < q->rx_clients; i++)
		sl_store_relaxed(&q->rx_client[i]->page->server_sleeps, sleeping);
	sl_fence_seq_cst(); /* PR6 */
	ready = sleeping && has_request(q);
	rte_spinlock_unlock(&q->rx_lock);
	/* Fails only when the counter is full, and then whoever waits wakes all the same. */
	if (ready && write(q->event_fd, &one, sizeof(one)) < 0)
		return;
}
