/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "sl_udpq_mbuf.h"

#include "udpq_load.h"

#define POOL_CACHE 256
#define USER_STRIDE 2048
#define BACKOFF_MIN_S 1e-6
#define BACKOFF_MAX_S 8e-6

/* As if the packet had come through a port: written once, out of the reader's caches when read. */
static void
payload_write(struct rte_mempool *pool, void *arg, void *obj, unsigned int i)
{
	struct rte_mbuf *m = obj;

	(void)pool;
	(void)arg;
	memset(m->buf_addr, (int)i, m->buf_len);
}

struct rte_mempool *
load_pool_create(unsigned int lcores)
{
	/* A full queue, each lcore's cache at its fullest, and the bursts on their way. */
	unsigned int n = 2 * LOAD_DEPTH + lcores * (POOL_CACHE * 2 + SL_UDPQ_BURST_MAX);
	uint16_t priv = RTE_ALIGN_CEIL(sizeof(struct onebyone_node), RTE_MBUF_PRIV_ALIGN);
	struct rte_mempool *pool;

	pool = rte_pktmbuf_pool_create(
		"load", n, POOL_CACHE, priv, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool != NULL)
		rte_mempool_obj_iter(pool, payload_write, NULL);
	return pool;
}

static uint32_t
truesize_of(struct rte_mempool *pool)
{
	return (uint32_t)sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool) +
	       rte_pktmbuf_data_room_size(pool);
}

static int
queue_create(struct load *l)
{
	uint64_t rcvbuf = (uint64_t)LOAD_DEPTH * truesize_of(l->pool);
	struct sl_udpq_conf conf = {
		.mode = l->shape.same && l->shape.producers == 1 ? SL_UDPQ_LOCAL : SL_UDPQ_SPLIT,
		.producers = l->shape.producers,
		.slots = LOAD_DEPTH,
		.rcvbuf = rcvbuf,
		.free_burst = sl_udpq_free_mbufs,
	};

	onebyone_init(&l->one, rcvbuf);
	return l->side == LOAD_BATCHED ? sl_udpq_create(&conf, &l->q) : 0;
}

static void
flows_deal(struct load *l)
{
	uint32_t producers = l->shape.producers;

	for (uint32_t i = 0; i < producers; i++) {
		l->producer[i].flow_first = l->shape.flows * i / producers;
		l->producer[i].flow_count =
			l->shape.flows * (i + 1) / producers - l->producer[i].flow_first;
		l->producer[i].backoff = l->backoff_min;
	}
}

int
load_create(enum load_side side, const struct load_shape *shape, struct rte_mempool *pool,
	double tsc_hz, struct load **out)
{
	struct load *l = aligned_alloc(SL_CACHE_LINE, sizeof(*l));
	int ret;

	if (l == NULL)
		return -ENOMEM;
	memset(l, 0, sizeof(*l));
	l->side = side;
	l->shape = *shape;
	l->pool = pool;
	l->backoff_min = (uint64_t)(BACKOFF_MIN_S * tsc_hz);
	l->backoff_max = (uint64_t)(BACKOFF_MAX_S * tsc_hz);
	l->user = aligned_alloc(SL_CACHE_LINE, SL_UDPQ_BURST_MAX * USER_STRIDE);
	ret = l->user != NULL ? queue_create(l) : -ENOMEM;
	if (ret != 0) {
		load_destroy(l);
		return ret;
	}
	memset(l->user, 0, SL_UDPQ_BURST_MAX * USER_STRIDE);
	flows_deal(l);
	*out = l;
	return 0;
}

void
load_destroy(struct load *l)
{
	struct onebyone_node *node;

	if (l == NULL)
		return;
	sl_udpq_destroy(l->q);
	while (l->side == LOAD_ONE_BY_ONE && (node = onebyone_take(&l->one)) != NULL)
		rte_pktmbuf_free(node->d.buf);
	free(l->user);
	free(l);
}

/* The flow's number stands in the zero bytes of a mapped IPv4 address, so that a descriptor stays
 * one line and the check needs no payload. */
static inline void
dgram_fill(struct load *l, struct load_producer *p, struct sl_dgram *d, struct rte_mbuf *m,
	uint64_t now)
{
	uint32_t flow = p->flow_first + p->flow_next;

	p->flow_next = p->flow_next + 1 < p->flow_count ? p->flow_next + 1 : 0;
	d->buf = m;
	d->truesize = sl_mbuf_truesize(m);
	d->len = l->shape.size;
	d->sport = rte_cpu_to_be_16((uint16_t)flow);
	d->dport = RTE_BE16(9);
	d->port = 0;
	d->ttl = 64;
	d->tos = 0;
	d->aux = now;
	memset(d->src, 0xff, sizeof(d->src));
	memcpy(d->src, &l->sent[flow], sizeof(l->sent[flow]));
	memset(d->dst, 0xff, sizeof(d->dst));
	l->sent[flow]++;
}

static uint16_t
append_batched(struct load *l, uint32_t producer, struct rte_mbuf **pkts, uint64_t now,
	enum sl_udpq_drop *why)
{
	struct sl_dgram d[LOAD_BURST];

	for (uint16_t i = 0; i < LOAD_BURST; i++)
		dgram_fill(l, &l->producer[producer], &d[i], pkts[i], now);
	return sl_udpq_append_burst(l->q, producer, d, LOAD_BURST, why);
}

static uint16_t
append_one_by_one(struct load *l, uint32_t producer, struct rte_mbuf **pkts, uint64_t now,
	enum sl_udpq_drop *why)
{
	uint16_t taken = LOAD_BURST;

	for (uint16_t i = 0; i < LOAD_BURST; i++) {
		struct onebyone_node *node = rte_mbuf_to_priv(pkts[i]);

		dgram_fill(l, &l->producer[producer], &node->d, pkts[i], now);
		/* All are filled, for the same work on both sides; none after the first refused one
		 * is tried, so that a flow has no gaps. */
		if (taken == LOAD_BURST && SL_UNLIKELY(!onebyone_append(&l->one, node)))
			taken = i;
	}
	*why = taken < LOAD_BURST ? SL_UDPQ_DROP_RCVBUF : SL_UDPQ_DROP_NONE;
	return taken;
}

/* What was refused: free it, and give the numbers back so that the flows have no gaps. */
static void
refused_undo(struct load *l, struct load_producer *p, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		p->flow_next = (p->flow_next > 0 ? p->flow_next : p->flow_count) - 1;
		l->sent[p->flow_first + p->flow_next]--;
	}
	rte_pktmbuf_free_bulk(pkts, n);
}

void
load_produce(struct load *l, uint32_t producer, uint64_t now)
{
	struct load_producer *p = &l->producer[producer];
	struct rte_mbuf *pkts[LOAD_BURST];
	enum sl_udpq_drop why;
	uint16_t taken;

	if (now < p->resume)
		return;
	if (SL_UNLIKELY(rte_pktmbuf_alloc_bulk(l->pool, pkts, LOAD_BURST) != 0)) {
		p->no_mbuf++;
		return;
	}
	taken = l->side == LOAD_BATCHED ? append_batched(l, producer, pkts, now, &why)
					: append_one_by_one(l, producer, pkts, now, &why);
	p->offered += LOAD_BURST;
	p->taken += taken;
	if (SL_LIKELY(taken == LOAD_BURST)) {
		p->backoff = l->backoff_min;
		return;
	}
	p->refused[why] += (uint64_t)(LOAD_BURST - taken);
	refused_undo(l, p, pkts + taken, LOAD_BURST - taken);
	if (l->shape.flood)
		return;
	p->resume = now + p->backoff;
	p->backoff = RTE_MIN(p->backoff * 2, l->backoff_max);
}

static inline void
consume(struct load *l, const struct sl_dgram *d, uint16_t i)
{
	uint32_t flow = rte_be_to_cpu_16(d->sport);
	const struct rte_mbuf *m = d->buf;
	uint64_t number;

	memcpy(&number, d->src, sizeof(number));
	l->disorder += number != l->expected[flow];
	l->expected[flow] = number + 1;
	l->bytes += d->len;
	if (l->shape.touch)
		rte_memcpy(l->user + i * USER_STRIDE, rte_pktmbuf_mtod(m, const void *), d->len);
}

static inline uint16_t
read_batched(struct load *l, void **bufs, uint64_t *stamps)
{
	struct sl_dgram *d;
	uint16_t n = sl_udpq_peek_burst(l->q, SL_UDPQ_BURST_MAX, &d);

	for (uint16_t i = 0; i < n; i++) {
		consume(l, &d[i], i);
		bufs[i] = d[i].buf;
		stamps[i] = d[i].aux;
	}
	sl_udpq_release_burst(l->q, n);
	return n;
}

static inline uint16_t
read_one_by_one(struct load *l, void **bufs, uint64_t *stamps)
{
	uint16_t n;

	for (n = 0; n < SL_UDPQ_BURST_MAX; n++) {
		struct onebyone_node *node = onebyone_take(&l->one);

		if (node == NULL)
			break;
		consume(l, &node->d, n);
		bufs[n] = node->d.buf;
		stamps[n] = node->d.aux;
	}
	return n;
}

/* Neighbours often carry the same time, that of their producer's burst. */
static void
latency_add(struct hist *h, const uint64_t *stamps, uint16_t n, uint64_t now)
{
	for (uint16_t i = 0, end; i < n; i = end) {
		/* Two cores' TSCs may differ by some cycles. */
		uint64_t cycles = now > stamps[i] ? now - stamps[i] : 0;

		for (end = i + 1; end < n && stamps[end] == stamps[i]; end++)
			;
		hist_add(h, cycles, (uint64_t)(end - i));
	}
}

uint16_t
load_read(struct load *l, uint64_t *now)
{
	uint64_t stamps[SL_UDPQ_BURST_MAX];
	void *bufs[SL_UDPQ_BURST_MAX];
	uint16_t n;

	n = l->side == LOAD_BATCHED ? read_batched(l, bufs, stamps)
				    : read_one_by_one(l, bufs, stamps);
	*now = rte_rdtsc();
	if (n == 0)
		return 0;
	latency_add(&l->latency, stamps, n, *now);
	l->read += n;
	sl_udpq_free_mbufs(bufs, n);
	return n;
}

void
load_sum(const struct load *l, struct load_producer *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < l->shape.producers; i++) {
		const struct load_producer *p = &l->producer[i];

		sum->offered += p->offered;
		sum->taken += p->taken;
		sum->no_mbuf += p->no_mbuf;
		for (int k = 0; k < SL_UDPQ_DROP_COUNT; k++)
			sum->refused[k] += p->refused[k];
	}
}

/* The queue's own counters must say what producers and reader saw. */
static bool
queue_agrees(const struct load *l, const struct load_producer *sum)
{
	struct sl_udpq_stats s;

	if (l->side == LOAD_ONE_BY_ONE)
		return l->one.length == 0 && l->one.rmem == 0;
	sl_udpq_stats(l->q, UINT32_MAX, &s);
	return s.appended == sum->taken && s.released == l->read && s.rmem == 0 &&
	       s.drops[SL_UDPQ_DROP_RCVBUF] == sum->refused[SL_UDPQ_DROP_RCVBUF] &&
	       s.drops[SL_UDPQ_DROP_SLOTS] == sum->refused[SL_UDPQ_DROP_SLOTS] &&
	       sl_udpq_check(l->q);
}

int
load_check(const struct load *l)
{
	struct load_producer sum;
	uint64_t refused;

	load_sum(l, &sum);
	refused = sum.refused[SL_UDPQ_DROP_RCVBUF] + sum.refused[SL_UDPQ_DROP_SLOTS];
	if (l->disorder == 0 && sum.offered == sum.taken + refused && sum.taken == l->read &&
		l->latency.total == l->read && queue_agrees(l, &sum) && rte_mempool_full(l->pool))
		return 0;
	fprintf(stderr,
		"sluice-bench: check failed: offered %" PRIu64 ", taken %" PRIu64
		", refused %" PRIu64 ", read %" PRIu64 ", out of order %" PRIu64
		", packets back in the pool %u of %u\n",
		sum.offered, sum.taken, refused, l->read, l->disorder,
		rte_mempool_avail_count(l->pool), l->pool->size);
	return -EPROTO;
}
