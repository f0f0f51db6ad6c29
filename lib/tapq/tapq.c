/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "tapq_priv.h"

#define DEPTH_MAX (1u << 20)
#define SHARE_DEFAULT 4096u
#define SHARE_MIN 256u

/* Locks in place of the ring's own modes for many: those hand an index from one to the next with a
 * relaxed wait or read the other side's as a plain word, so that a taker is not ordered behind all
 * whose packets it takes. */
#define QUEUE_FLAGS (RING_F_EXACT_SZ | RING_F_SP_ENQ | RING_F_SC_DEQ)

static int
conf_check(const struct sl_tapq_conf *conf, uint32_t share)
{
	if (conf->frag == NULL || conf->headers == NULL || conf->large == NULL)
		return -EINVAL;
	if (share < SHARE_MIN || share > conf->frag->chunk_size || share > UINT16_MAX)
		return -EINVAL;
	if (conf->depth > DEPTH_MAX || conf->headroom >= share / 2)
		return -EINVAL;
	return 0;
}

static struct rte_ring *
queue_create(uint32_t depth)
{
	ssize_t bytes = rte_ring_get_memsize(rte_align32pow2(depth + 1));
	struct rte_ring *ring = aligned_alloc(SL_CACHE_LINE, (size_t)bytes);

	if (ring != NULL && rte_ring_init(ring, "tapq", depth, QUEUE_FLAGS) != 0) {
		free(ring);
		ring = NULL;
	}
	return ring;
}

int
sl_tapq_create(const struct sl_tapq_conf *conf, struct sl_tapq **out)
{
	uint32_t share = conf->share != 0 ? conf->share : SHARE_DEFAULT;
	struct sl_tapq *q;
	size_t bytes;
	int ret = conf_check(conf, share);

	if (ret != 0)
		return ret;
	q = aligned_alloc(SL_CACHE_LINE, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->conf = *conf;
	q->conf.share = share;
	q->room = conf->depth;
	bytes = conf->frag->workers * sizeof(*q->feeder);
	q->feeder = aligned_alloc(SL_CACHE_LINE, bytes);
	if (q->feeder == NULL)
		goto free_queue;
	memset(q->feeder, 0, bytes);
	if (conf->depth > 0) {
		q->ring = queue_create(conf->depth);
		if (q->ring == NULL)
			goto free_queue;
	}
	*out = q;
	return 0;
free_queue:
	free(q->feeder);
	free(q);
	return -ENOMEM;
}

void
sl_tapq_destroy(struct sl_tapq *q)
{
	struct rte_mbuf *m;

	if (q == NULL)
		return;
	while (q->ring != NULL && rte_ring_dequeue(q->ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	free(q->ring);
	free(q->feeder);
	free(q);
}

/* Room in the queue, taken before anything is built, so that nothing built is ever refused.
 * Relaxed: it is a number; the queue itself orders the packets. */
static uint32_t
room_take(struct sl_tapq *q, uint32_t n)
{
	uint32_t room = sl_load_relaxed(&q->room), take;

	do {
		take = RTE_MIN(room, n);
	} while (take > 0 && !sl_cas_weak_relaxed(&q->room, &room, room - take));
	return take;
}

uint16_t
sl_tapq_feed_burst(
	struct sl_tapq *q, uint32_t worker, const struct sl_tapq_ring *r, uint16_t n, bool *call)
{
	uint32_t room = room_take(q, RTE_MIN((uint32_t)n, SL_TAPQ_BURST_MAX));
	struct rte_mbuf *m[SL_TAPQ_BURST_MAX];
	uint16_t built;

	if (room == 0)
		return 0;
	built = sl_tapq_build_burst(q, worker, r, m, (uint16_t)room, call);
	if (built < room)
		sl_fetch_add_relaxed(&q->room, room - built);
	if (built > 0) {
		rte_spinlock_lock(&q->append_lock);
		SL_ASSERT(rte_ring_enqueue_bulk(q->ring, (void **)m, built, NULL) == built);
		rte_spinlock_unlock(&q->append_lock);
	}
	return built;
}

uint16_t
sl_tapq_take_burst(struct sl_tapq *q, struct rte_mbuf **m, uint16_t n)
{
	uint16_t taken;

	rte_spinlock_lock(&q->take_lock);
	taken = (uint16_t)rte_ring_dequeue_burst(q->ring, (void **)m, n, NULL);
	rte_spinlock_unlock(&q->take_lock);
	if (taken > 0)
		sl_fetch_add_relaxed(&q->room, (uint32_t)taken);
	return taken;
}

static void
stats_add(const struct sl_tapq_stats *from, struct sl_tapq_stats *to)
{
	for (int i = 0; i < SL_TAPQ_OUTCOME_COUNT; i++)
		to->outcomes[i] += sl_load_relaxed(&from->outcomes[i]);
	for (int i = 0; i < SL_TAPQ_VNET_ERROR_COUNT; i++)
		to->vnet[i] += sl_load_relaxed(&from->vnet[i]);
	to->bytes += sl_load_relaxed(&from->bytes);
	to->small += sl_load_relaxed(&from->small);
	to->no_frag += sl_load_relaxed(&from->no_frag);
	to->no_mbuf += sl_load_relaxed(&from->no_mbuf);
}

void
sl_tapq_stats(const struct sl_tapq *q, uint32_t worker, struct sl_tapq_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i < q->conf.frag->workers; i++)
		if (worker == UINT32_MAX || worker == i)
			stats_add(&q->feeder[i].stats, stats);
}

const char *
sl_tapq_outcome_name(enum sl_tapq_outcome o)
{
	static const char *const names[SL_TAPQ_OUTCOME_COUNT] = {
		[SL_TAPQ_BUILT] = "built",
		[SL_TAPQ_BAD_CHAIN] = "bad_chain",
		[SL_TAPQ_NO_HEADER] = "no_header",
		[SL_TAPQ_SHORT] = "short",
		[SL_TAPQ_TOO_LONG] = "too_long",
		[SL_TAPQ_BAD_VNET] = "bad_vnet",
	};

	return o < SL_TAPQ_OUTCOME_COUNT ? names[o] : "unknown";
}
