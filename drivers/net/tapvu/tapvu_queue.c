/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Queues as the application sets them up: each receive queue has an allocator of its own. */
#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "sl_errno.h"
#include "tapvu_priv.h"

#define HEADERS_MAX 65535u
#define CACHE 256u
#define SLICE_TYPICAL 192u /* a small frame with its headroom */
#define BYTES_PER_DESC 2048u

/* Header pools whose packets the application still has: freed when the last one is back. */
struct retired {
	struct rte_mempool *pool;
	struct retired *next;
};

static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;
static struct retired *retired;

static void
retired_sweep(void)
{
	pthread_mutex_lock(&retired_lock);
	for (struct retired **r = &retired; *r != NULL;) {
		struct retired *this = *r;

		if (rte_mempool_in_use_count(this->pool) != 0) {
			r = &this->next;
			continue;
		}
		*r = this->next;
		rte_mempool_free(this->pool);
		free(this);
	}
	pthread_mutex_unlock(&retired_lock);
}

static void
pool_retire(struct rte_mempool *pool)
{
	struct retired *r = pool != NULL ? malloc(sizeof(*r)) : NULL;

	if (r == NULL) /* without memory for a note the pool stays; it is not lost to its packets */
		return;
	pthread_mutex_lock(&retired_lock);
	*r = (struct retired){pool, retired};
	retired = r;
	pthread_mutex_unlock(&retired_lock);
	retired_sweep();
}

static void
memory_free(void *memory, void *arg)
{
	(void)arg;
	rte_free(memory);
}

/* Room for as many full-sized frames as the application asked descriptors for, and for every
 * feeding lcore a chunk in use. */
static int
frag_create(struct tapvu_rxq *q, uint16_t desc, int socket)
{
	enum sl_frag_mode mode = q->port->args.frag;
	uint32_t chunk = mode == SL_FRAG_PAGE ? SL_FRAG_PAGE_DEFAULT : SL_FRAG_CHUNK_DEFAULT;
	uint32_t chunks = mode == SL_FRAG_PAGE
				  ? RTE_MAX(1024u, 2u * desc)
				  : RTE_MAX(32u, desc * BYTES_PER_DESC / chunk + rte_lcore_count());
	struct sl_frag_conf conf = {.mode = mode,
		.workers = TAPVU_WORKERS,
		.chunk_size = chunk,
		.chunks = chunks,
		.socket = socket,
		.memory_free = memory_free};
	int ret;

	conf.memory = rte_zmalloc_socket("tapvu chunks", (size_t)chunk * chunks, chunk, socket);
	if (conf.memory == NULL)
		return -ENOMEM;
	ret = sl_frag_create(&conf, &q->frag);
	if (ret != 0) {
		rte_free(conf.memory);
		return ret;
	}
	return sl_frag_mbuf_bind(q->frag);
}

static int
headers_create(struct tapvu_rxq *q, int socket)
{
	uint64_t bytes = (uint64_t)q->frag->chunks * q->frag->chunk_size;
	uint64_t slice = q->port->args.frag == SL_FRAG_PAGE ? q->frag->chunk_size : SLICE_TYPICAL;
	/* For every lcore's cache of free headers there must be some beside those in flight. */
	uint64_t n = RTE_MIN(bytes / slice + 2 * CACHE * rte_lcore_count(), (uint64_t)HEADERS_MAX);
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "tapvu_%u_%u_%lx", q->port->data->port_id, q->id,
		(unsigned long)(uintptr_t)q & 0xffffff);
	q->headers = rte_pktmbuf_pool_create(name, (unsigned int)n, CACHE, 0, 0, socket);
	return q->headers != NULL ? 0 : sl_rte_error();
}

static void
rxq_free(struct tapvu_rxq *q)
{
	sl_tapq_destroy(q->tapq);
	sl_frag_destroy(q->frag);
	pool_retire(q->headers);
	rte_free(q);
}

/* Whoever reads counters finds a queue that is whole, or none. */
static void
rxq_publish(struct tapvu_port *port, uint16_t id, struct tapvu_rxq *q)
{
	pthread_mutex_lock(&port->lock);
	if (port->rxq[id] != NULL)
		tapvu_stats_keep(port, port->rxq[id]);
	port->rxq[id] = q;
	pthread_mutex_unlock(&port->lock);
}

static int
rxq_fill(struct tapvu_rxq *q, uint16_t desc, int socket, struct rte_mempool *pool)
{
	struct sl_tapq_conf conf = {.large = pool, .headroom = RTE_PKTMBUF_HEADROOM};
	int ret = frag_create(q, desc, socket);

	/* An application that keeps something of its own in each mbuf must get its own mbufs; their
	 * data rooms are then used by large frames only. */
	if (ret == 0 && rte_pktmbuf_priv_size(pool) == 0)
		ret = headers_create(q, socket);
	if (ret != 0)
		return ret;
	conf.frag = q->frag;
	conf.headers = q->headers != NULL ? q->headers : pool;
	return sl_tapq_create(&conf, &q->tapq);
}

static struct tapvu_rxq *
rxq_alloc(struct tapvu_port *port, uint16_t id, int socket)
{
	/* There are no more than if all pairs fed this queue. */
	uint32_t most = port->args.queues * TAPVU_FRONTENDS_MAX;
	struct tapvu_rxq *q = rte_zmalloc_socket(
		"tapvu rxq", sizeof(*q) + most * sizeof(q->ring[0]), SL_CACHE_LINE, socket);

	if (q == NULL)
		return NULL;
	q->port = port;
	q->id = id;
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++)
		for (uint32_t pair = id; pair < port->args.queues; pair += port->args.taps)
			q->ring[q->rings++] = &port->frontend[f].ring[2 * pair + 1];
	return q;
}

int
tapvu_rx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	uint64_t sums = RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	uint64_t wanted = conf->offloads | dev->data->dev_conf.rxmode.offloads;
	struct tapvu_rxq *q;
	int ret;

	retired_sweep();
	q = rxq_alloc(dev->data->dev_private, id, (int)socket);
	if (q == NULL)
		return -ENOMEM;
	q->complete = (wanted & sums) != sums;
	rte_spinlock_init(&q->stranger);
	ret = rxq_fill(q, desc, (int)socket, pool);
	if (ret != 0) {
		TAPVU_LOG(ERR, "%s: no memory for receive queue %u: %s\n", dev->data->name, id,
			sl_strerror(ret));
		rxq_free(q);
		return ret;
	}
	rxq_publish(q->port, id, q);
	dev->data->rx_queues[id] = q;
	return 0;
}

void
tapvu_rx_release(struct rte_eth_dev *dev, uint16_t id)
{
	struct tapvu_rxq *q = dev->data->rx_queues[id];

	dev->data->rx_queues[id] = NULL;
	if (q == NULL)
		return;
	rxq_publish(q->port, id, NULL);
	rxq_free(q);
}

int
tapvu_tx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct tapvu_txq *q =
		rte_zmalloc_socket("tapvu txq", sizeof(*q), SL_CACHE_LINE, (int)socket);

	(void)desc; /* the peer's rings are what there is */
	(void)conf;
	if (q == NULL)
		return -ENOMEM;
	q->port = dev->data->dev_private;
	q->id = id;
	dev->data->tx_queues[id] = q;
	return 0;
}

void
tapvu_tx_release(struct rte_eth_dev *dev, uint16_t id)
{
	rte_free(dev->data->tx_queues[id]);
	dev->data->tx_queues[id] = NULL;
}
