/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "sl_frag_mbuf.h"
#include "tapq_priv.h"

/* One burst in the making. */
struct build {
	struct sl_tapq *q;
	const struct sl_tapq_ring *r;
	uint32_t worker;
	struct sl_tapq_stats *stats;
	struct rte_mbuf *spare[SL_TAPQ_BURST_MAX]; /* headers, taken from the pool together */
	uint16_t spares;
	struct sl_vring_span span[TAPQ_SPANS_MAX];
};

/* A chain becomes a packet in *out (BUILT), or ends otherwise; RETRY: it stays where it was. */
#define RETRY SL_TAPQ_OUTCOME_COUNT

static struct rte_mbuf *
build_small(struct build *b, const struct sl_vring_chain *c, uint32_t len)
{
	uint16_t headroom = b->q->conf.headroom;
	struct sl_frag_slice slice;
	struct rte_mbuf *m;

	if (SL_UNLIKELY(sl_frag_carve(b->q->conf.frag, b->worker, headroom + len, &slice) != 0)) {
		sl_counter_add(&b->stats->no_frag, 1);
		return NULL;
	}
	/* Outside the allocator's lock: these bytes are this packet's, whoever carves meanwhile. */
	sl_vring_copy_out(b->span, c->readable, b->r->header, slice.addr + headroom, len);
	m = b->spare[--b->spares];
	sl_frag_mbuf_attach(b->q->conf.frag, &slice, m, headroom, (uint16_t)len);
	sl_counter_add(&b->stats->small, 1);
	return m;
}

static struct rte_mbuf *
build_large(struct build *b, const struct sl_vring_chain *c, uint32_t len)
{
	struct rte_mbuf *first = NULL, **link = &first, *m;
	uint32_t done = 0;

	while (done < len) {
		uint32_t piece;

		m = rte_pktmbuf_alloc(b->q->conf.large);
		if (SL_UNLIKELY(m == NULL)) {
			rte_pktmbuf_free(first);
			sl_counter_add(&b->stats->no_mbuf, 1);
			return NULL;
		}
		piece = RTE_MIN(len - done, (uint32_t)rte_pktmbuf_tailroom(m));
		sl_vring_copy_out(b->span, c->readable, b->r->header + done,
			rte_pktmbuf_mtod(m, void *), piece);
		m->data_len = (uint16_t)piece;
		*link = m;
		link = &m->next;
		if (m != first)
			first->nb_segs++;
		done += piece;
	}
	first->pkt_len = len;
	return first;
}

/* The frame lies in m, the header in hdr, both private: what does the one say of the other? */
static enum sl_tapq_outcome
finish(struct build *b, struct sl_tapq_vnet_hdr *hdr, struct rte_mbuf *m)
{
	enum sl_tapq_vnet_error e = sl_tapq_vnet_check(hdr, rte_pktmbuf_mtod(m, uint8_t *),
		rte_pktmbuf_data_len(m), rte_pktmbuf_pkt_len(m));

	if (e == SL_TAPQ_VNET_OK)
		e = sl_tapq_vnet_to_mbuf(hdr, m, b->r->complete);
	if (SL_LIKELY(e == SL_TAPQ_VNET_OK))
		return SL_TAPQ_BUILT;
	sl_counter_add(&b->stats->vnet[e], 1);
	return SL_TAPQ_BAD_VNET;
}

static enum sl_tapq_outcome
build_one(struct build *b, const struct sl_vring_chain *c, struct rte_mbuf **out)
{
	struct sl_tapq_vnet_hdr hdr = {0};
	enum sl_tapq_outcome o;
	uint32_t len;

	if (c->readable_len <= b->r->header)
		return SL_TAPQ_NO_HEADER;
	len = c->readable_len - b->r->header;
	if (len < RTE_ETHER_HDR_LEN)
		return SL_TAPQ_SHORT;
	if (len > SL_TAPQ_FRAME_MAX)
		return SL_TAPQ_TOO_LONG;
	sl_vring_copy_out(b->span, c->readable, 0, &hdr, b->r->header);
	sl_snapshot_barrier();
	*out = b->q->conf.headroom + len <= b->q->conf.share ? build_small(b, c, len)
							     : build_large(b, c, len);
	if (*out == NULL)
		return RETRY;
	o = finish(b, &hdr, *out);
	if (SL_UNLIKELY(o != SL_TAPQ_BUILT))
		rte_pktmbuf_free(*out);
	else
		sl_counter_add(&b->stats->bytes, len);
	return o;
}

/* Pops one chain; false when nothing more is to be had. */
static bool
next(struct build *b, struct rte_mbuf **m, uint16_t *built)
{
	enum sl_tapq_outcome o = SL_TAPQ_BAD_CHAIN;
	struct sl_vring_chain c;
	enum sl_vring_outcome v = sl_vring_pop(b->r->ring, b->r->mem, &c, b->span, TAPQ_SPANS_MAX);

	if (v == SL_VRING_OK)
		o = build_one(b, &c, &m[*built]);
	else if (!sl_vring_has_chain(v))
		return false;
	if (o == RETRY) {
		sl_vring_rewind(b->r->ring, 1, c.slots);
		return false;
	}
	sl_counter_add(&b->stats->outcomes[o], 1);
	*built += o == SL_TAPQ_BUILT;
	sl_vring_push(b->r->ring, &c, 0);
	return true;
}

uint16_t
sl_tapq_build_burst(struct sl_tapq *q, uint32_t worker, const struct sl_tapq_ring *r,
	struct rte_mbuf **m, uint16_t n, bool *call)
{
	struct build b = {.q = q, .r = r, .worker = worker, .stats = &q->feeder[worker].stats};
	uint16_t built = 0, tries;

	n = (uint16_t)RTE_MIN((uint32_t)n, SL_TAPQ_BURST_MAX);
	if (n == 0 || !sl_vring_ready(r->ring))
		return 0;
	while (SL_UNLIKELY(rte_pktmbuf_alloc_bulk(q->conf.headers, b.spare, n) != 0)) {
		sl_counter_add(&b.stats->no_mbuf, 1);
		if ((n /= 2) == 0)
			return 0;
	}
	b.spares = n;
	/* Bad chains cost work too, so they count against the burst. */
	for (tries = 0; tries < n && next(&b, m, &built); tries++)
		;
	if (b.spares > 0)
		rte_pktmbuf_free_bulk(b.spare, b.spares);
	tapq_flush(r, call);
	return built;
}
