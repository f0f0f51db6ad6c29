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
	uint64_t rcvbuf = (uint64_t)LOAD_DEPTH * l->truesize;
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

static int
lookups_make(struct load *l, uint16_t port)
{
	int ret = 0;

	if (l->shape.lookup == LOAD_QUEUE_ONLY)
		return 0;
	for (uint32_t i = 0; i < l->shape.producers && ret == 0; i++) {
		struct load_producer *p = &l->producer[i];
		struct lookup_conf conf = {
			.flow_first = p->flow_first,
			.flow_count = p->flow_count,
			.size = l->shape.size,
			.connected = l->shape.lookup == LOAD_CONNECTED,
			.port = port,
			.pool = l->pool,
		};

		ret = lookup_create(&conf, &p->lookup);
	}
	return ret;
}

int
load_create(enum load_side side, const struct load_shape *shape, const struct load_env *env,
	struct load **out)
{
	struct load *l = aligned_alloc(SL_CACHE_LINE, sizeof(*l));
	int ret;

	if (l == NULL)
		return -ENOMEM;
	memset(l, 0, sizeof(*l));
	l->side = side;
	l->shape = *shape;
	l->pool = env->pool;
	l->truesize = truesize_of(env->pool);
	l->backoff_min = (uint64_t)(BACKOFF_MIN_S * env->tsc_hz);
	l->backoff_max = (uint64_t)(BACKOFF_MAX_S * env->tsc_hz);
	flows_deal(l);
	l->user = aligned_alloc(SL_CACHE_LINE, SL_UDPQ_BURST_MAX * USER_STRIDE);
	ret = l->user != NULL ? queue_create(l) : -ENOMEM;
	if (ret == 0)
		ret = lookups_make(l, env->port);
	if (ret != 0) {
		load_destroy(l);
		return ret;
	}
	memset(l->user, 0, SL_UDPQ_BURST_MAX * USER_STRIDE);
	*out = l;
	return 0;
}

void
load_destroy(struct load *l)
{
	struct onebyone_node *node;

	if (l == NULL)
		return;
	for (uint32_t i = 0; i < l->shape.producers; i++)
		lookup_destroy(l->producer[i].lookup);
	sl_udpq_destroy(l->q);
	while (l->side == LOAD_ONE_BY_ONE && (node = onebyone_take(&l->one)) != NULL)
		rte_pktmbuf_free(node->d.buf);
	free(l->user);
	free(l);
}

/* Descriptors as a lookup would have made them. */
static void
make_up(const struct load *l, uint32_t flow, struct rte_mbuf **pkts, struct sl_dgram *d)
{
	for (uint16_t i = 0; i < LOAD_BURST; i++) {
		d[i].buf = pkts[i];
		d[i].truesize = sl_mbuf_truesize(pkts[i]);
		d[i].len = l->shape.size;
		d[i].sport = rte_cpu_to_be_16((uint16_t)(LOOKUP_SPORT + flow));
		d[i].dport = RTE_BE16(9);
		d[i].port = 0;
		d[i].ttl = 64;
		d[i].tos = 0;
		memset(d[i].src, 0, sizeof(d[i].src));
		memset(d[i].dst, 0, sizeof(d[i].dst));
	}
}

/* The datagram's number in its flow stands in the zero bytes of a mapped IPv4 address, so that a
 * descriptor stays one line and the check needs no payload. */
static void
number(struct load *l, uint32_t flow, struct sl_dgram *d, uint16_t n, uint64_t now)
{
	uint64_t next = l->sent[flow];

	for (uint16_t i = 0; i < n; i++, next++) {
		d[i].aux = now;
		memcpy(d[i].src, &next, sizeof(next));
	}
}

/* The descriptor is copied into the packet as the ring of the other side copies it. */
static uint16_t
append_one_by_one(struct load *l, const struct sl_dgram *d, uint16_t n, enum sl_udpq_drop *why)
{
	*why = SL_UDPQ_DROP_NONE;
	for (uint16_t i = 0; i < n; i++) {
		struct onebyone_node *node = rte_mbuf_to_priv(d[i].buf);

		node->d = d[i];
		/* The rest is not tried, so that a flow has no gaps. */
		if (SL_UNLIKELY(!onebyone_append(&l->one, node))) {
			*why = SL_UDPQ_DROP_RCVBUF;
			return i;
		}
	}
	return n;
}

static void
refused(struct load *l, struct load_producer *p, const struct sl_dgram *d, uint16_t n, uint64_t now)
{
	void *bufs[LOAD_BURST];

	for (uint16_t i = 0; i < n; i++)
		bufs[i] = d[i].buf;
	sl_udpq_free_mbufs(bufs, n);
	if (l->shape.flood)
		return;
	p->resume = now + p->backoff;
	p->backoff = RTE_MIN(p->backoff * 2, l->backoff_max);
}

void
load_produce(struct load *l, uint32_t producer, uint64_t now)
{
	struct load_producer *p = &l->producer[producer];
	uint32_t flow = p->flow_first + p->flow_next;
	struct sl_dgram d[LOAD_BURST];
	struct rte_mbuf *pkts[LOAD_BURST];
	uint16_t n = LOAD_BURST, taken;
	enum sl_udpq_drop why;

	if (now < p->resume)
		return;
	if (SL_UNLIKELY(rte_pktmbuf_alloc_bulk(l->pool, pkts, LOAD_BURST) != 0)) {
		p->no_mbuf++;
		return;
	}
	p->flow_next = p->flow_next + 1 < p->flow_count ? p->flow_next + 1 : 0;
	if (p->lookup != NULL)
		n = lookup_burst(p->lookup, flow, pkts, LOAD_BURST, d);
	else
		make_up(l, flow, pkts, d);
	p->lost += (uint64_t)(LOAD_BURST - n);
	number(l, flow, d, n, now);
	taken = l->side == LOAD_BATCHED ? sl_udpq_append_burst(l->q, producer, d, n, &why)
					: append_one_by_one(l, d, n, &why);
	p->offered += n;
	p->taken += taken;
	l->sent[flow] += taken;
	if (SL_LIKELY(taken == n)) {
		p->backoff = l->backoff_min;
		return;
	}
	p->refused[why] += (uint64_t)(n - taken);
	refused(l, p, d + taken, (uint16_t)(n - taken), now);
}

void
load_park(struct load *l, uint32_t producer)
{
	if (l->producer[producer].lookup != NULL)
		lookup_park(l->producer[producer].lookup);
}

static inline void
consume(struct load *l, const struct sl_dgram *d, uint16_t i)
{
	uint32_t flow = rte_be_to_cpu_16(d->sport) - LOOKUP_SPORT;
	const struct rte_mbuf *m = d->buf;
	uint64_t got;

	memcpy(&got, d->src, sizeof(got));
	l->disorder += got != l->expected[flow];
	l->expected[flow] = got + 1;
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
	if (*now <= l->until)
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
		sum->lost += p->lost;
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
	if (l->disorder == 0 && sum.lost == 0 && sum.offered == sum.taken + refused &&
		sum.taken == l->read && queue_agrees(l, &sum) && rte_mempool_full(l->pool))
		return 0;
	fprintf(stderr,
		"sluice-bench: check failed: offered %" PRIu64 ", taken %" PRIu64
		", refused %" PRIu64 ", read %" PRIu64 ", out of order %" PRIu64
		", lost in the stack %" PRIu64 ", packets back in the pool %u of %u\n",
		sum.offered, sum.taken, refused, l->read, l->disorder, sum.lost,
		rte_mempool_avail_count(l->pool), l->pool->size);
	return -EPROTO;
}
