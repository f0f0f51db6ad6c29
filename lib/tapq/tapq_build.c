/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "sl_frag_mbuf.h"
#include "tapq_priv.h"

/*
 * A burst goes through four steps, each over all of its chains, so that what one of them waits for
 * - a descriptor, the peer's frame, the allocator's lock - is fetched or paid once for many:
 *
 *     gather    pop the chains, say what each is to become, prefetch the frames
 *     supply    headers from the pool and slices from the allocator, one call each
 *     fill      copy, check, push, in the order of the ring
 *     settle    rewind what could not be had, show the peer what was pushed
 */

#define SPANS (2 * SL_TAPQ_BURST_MAX + TAPQ_SPANS_MAX)

/* What a chain is to become: an outcome other than BUILT, or one of these. */
enum {
	PLAN_SMALL = SL_TAPQ_OUTCOME_COUNT,
	PLAN_LARGE,
};

/* Too large to be zeroed for each burst: what is not set at the start is set before it is read. */
struct build {
	struct sl_tapq *q;
	const struct sl_tapq_ring *r;
	uint32_t worker;
	uint16_t chains; /* popped */
	uint16_t spans;
	uint16_t wanted; /* slices and headers: one each for a small frame */
	uint16_t had;
	uint16_t used;
	uint16_t built;
	uint32_t small_span; /* from the shortest frame to the longest one that is built on a slice
			      */
	uint64_t bytes;
	uint16_t plan[SL_TAPQ_BURST_MAX];  /* no bytes: a store of these might change anything */
	uint16_t first[SL_TAPQ_BURST_MAX]; /* span */
	struct sl_vring_chain chain[SL_TAPQ_BURST_MAX];
	uint32_t size[SL_TAPQ_BURST_MAX];
	struct sl_frag_slice slice[SL_TAPQ_BURST_MAX];
	struct rte_mbuf *header[SL_TAPQ_BURST_MAX];
	struct sl_vring_span span[SPANS];
};

static struct sl_tapq_stats *
stats_of(const struct build *b)
{
	return &b->q->feeder[b->worker].stats;
}

/* A chain that gets no slice. */
static uint16_t
plan_odd(const struct build *b, const struct sl_vring_chain *c)
{
	uint32_t len = c->readable_len - b->r->header;

	if (c->readable_len <= b->r->header)
		return SL_TAPQ_NO_HEADER;
	if (len < RTE_ETHER_HDR_LEN)
		return SL_TAPQ_SHORT;
	if (len > SL_TAPQ_FRAME_MAX)
		return SL_TAPQ_TOO_LONG;
	return PLAN_LARGE;
}

/* Say what n chains are to become. */
static inline void
plan(struct build *b, uint16_t n)
{
	uint32_t header = b->r->header, headroom = b->q->conf.headroom, most = b->small_span;
	const struct sl_vring_chain *c = &b->chain[b->chains];
	uint16_t *to = &b->plan[b->chains], wanted = b->wanted;

	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = c[i].readable_len - header;

		/* Most. Without a whole header, len is huge. */
		if (SL_LIKELY(len - RTE_ETHER_HDR_LEN <= most)) {
			b->size[wanted++] = headroom + len;
			to[i] = PLAN_SMALL;
		} else {
			to[i] = plan_odd(b, &c[i]);
		}
	}
	b->wanted = wanted;
}

static void
gather_plain(struct build *b, uint16_t n)
{
	struct sl_vring_chain *c = &b->chain[b->chains];
	struct sl_vring_span *span = &b->span[b->spans];
	uint16_t got = sl_vring_pop_plain(b->r->ring, b->r->mem, c, span, n);
	uint32_t skip = b->r->bare ? b->r->header : 0;

	for (uint16_t i = 0; i < got; i++) {
		rte_prefetch0(span[i].addr + skip);
		rte_prefetch0(span[i].addr + RTE_MIN(span[i].len, skip + SL_CACHE_LINE) - 1);
		b->first[b->chains + i] = (uint16_t)(b->spans + i);
	}
	plan(b, got);
	b->chains += got;
	b->spans += got;
}

static bool
gather_any(struct build *b)
{
	struct sl_vring_chain *c = &b->chain[b->chains];
	struct sl_vring_span *span = &b->span[b->spans];
	enum sl_vring_outcome v = sl_vring_pop(b->r->ring, b->r->mem, c, span, TAPQ_SPANS_MAX);

	if (!sl_vring_has_chain(v))
		return false;
	b->first[b->chains] = b->spans;
	b->plan[b->chains] = SL_TAPQ_BAD_CHAIN;
	if (v == SL_VRING_OK) {
		plan(b, 1);
		b->spans += c->readable;
		rte_prefetch0(span->addr);
		rte_prefetch0(span[c->readable > 1].addr);
	}
	b->chains++;
	return true;
}

/* Bad chains cost work too, so they count against the burst. */
static void
gather(struct build *b, uint16_t n)
{
	while (b->chains < n && b->spans + TAPQ_SPANS_MAX <= SPANS) {
		gather_plain(b, (uint16_t)(n - b->chains));
		if (b->chains == n || b->spans + TAPQ_SPANS_MAX > SPANS || !gather_any(b))
			break;
	}
}

/* As many as can be had; a slice is not carved for which there is no header. */
static void
supply(struct build *b)
{
	uint16_t n = b->wanted;

	while (n > 0 &&
		SL_UNLIKELY(rte_mempool_get_bulk(b->q->conf.headers, (void **)b->header, n) != 0)) {
		sl_counter_add(&stats_of(b)->no_mbuf, 1);
		n /= 2;
	}
	b->had = n;
	if (n > 0)
		b->had = sl_frag_carve_burst(b->q->conf.frag, b->worker, b->size, n, b->slice);
	sl_frag_mbuf_attach_bulk(b->q->conf.frag, b->slice, b->header, b->size, b->had,
		b->q->conf.headroom, b->r->port);
	if (SL_UNLIKELY(b->had < n)) {
		sl_counter_add(&stats_of(b)->no_frag, 1);
		rte_mempool_put_bulk(b->q->conf.headers, (void **)b->header + b->had, n - b->had);
	}
}

/* Frames in one piece with their header are the rule. */
static void
copy_frame(const struct build *b, const struct sl_vring_span *span, uint16_t n, uint8_t *to,
	uint32_t len)
{
	uint32_t header = b->r->header;

	if (SL_LIKELY(span->len >= header + len))
		rte_memcpy(to, span->addr + header, len);
	else if (n > 1 && span->len == header && span[1].len >= len)
		rte_memcpy(to, span[1].addr, len);
	else
		sl_vring_copy_out(span, n, header, to, len);
}

static struct rte_mbuf *
fill_small(struct build *b, uint16_t i, uint32_t len)
{
	struct rte_mbuf *m;

	if (SL_UNLIKELY(b->used == b->had))
		return NULL;
	/* Outside the allocator's lock: these bytes are this packet's, whoever carves meanwhile. */
	m = b->header[b->used++];
	copy_frame(b, &b->span[b->first[i]], b->chain[i].readable, rte_pktmbuf_mtod(m, uint8_t *),
		len);
	return m;
}

static struct rte_mbuf *
fill_large(struct build *b, uint16_t i, uint32_t len)
{
	struct rte_mbuf *first = NULL, **link = &first, *m;
	uint32_t done = 0;

	while (done < len) {
		uint32_t piece;

		m = rte_pktmbuf_alloc(b->q->conf.large);
		if (SL_UNLIKELY(m == NULL)) {
			rte_pktmbuf_free(first);
			sl_counter_add(&stats_of(b)->no_mbuf, 1);
			return NULL;
		}
		piece = RTE_MIN(len - done, (uint32_t)rte_pktmbuf_tailroom(m));
		sl_vring_copy_out(&b->span[b->first[i]], b->chain[i].readable, b->r->header + done,
			rte_pktmbuf_mtod(m, void *), piece);
		m->data_len = (uint16_t)piece;
		*link = m;
		link = &m->next;
		if (m != first)
			first->nb_segs++;
		done += piece;
	}
	first->pkt_len = len;
	first->port = b->r->port;
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
	sl_counter_add(&stats_of(b)->vnet[e], 1);
	return SL_TAPQ_BAD_VNET;
}

static void
copy_header(const struct build *b, const struct sl_vring_span *span, uint16_t n,
	struct sl_tapq_vnet_hdr *hdr)
{
	if (SL_LIKELY(span->len >= SL_TAPQ_VNET_LONG && b->r->header == SL_TAPQ_VNET_LONG))
		memcpy(hdr, span->addr, SL_TAPQ_VNET_LONG);
	else
		sl_vring_copy_out(span, n, 0, hdr, b->r->header);
	sl_snapshot_barrier();
}

/* Chain i; false when it has to stay where it was. */
static bool
fill(struct build *b, uint16_t i, struct rte_mbuf **m)
{
	enum sl_tapq_outcome o = (enum sl_tapq_outcome)b->plan[i];
	uint32_t len = b->chain[i].readable_len - b->r->header;
	struct sl_tapq_vnet_hdr hdr = {0};
	struct rte_mbuf *packet;

	if (SL_UNLIKELY(b->plan[i] < SL_TAPQ_OUTCOME_COUNT)) {
		sl_counter_add(&stats_of(b)->outcomes[o], 1);
		return true;
	}
	if (!b->r->bare)
		copy_header(b, &b->span[b->first[i]], b->chain[i].readable, &hdr);
	packet =
		SL_LIKELY(b->plan[i] == PLAN_SMALL) ? fill_small(b, i, len) : fill_large(b, i, len);
	if (SL_UNLIKELY(packet == NULL))
		return false;
	/* Most say nothing. */
	o = hdr.flags == 0 && hdr.gso_type == 0 && hdr.hdr_len == 0 ? SL_TAPQ_BUILT
								    : finish(b, &hdr, packet);
	if (SL_UNLIKELY(o != SL_TAPQ_BUILT)) {
		sl_counter_add(&stats_of(b)->outcomes[o], 1);
		rte_pktmbuf_free(packet);
		return true;
	}
	m[b->built++] = packet;
	b->bytes += len;
	return true;
}

/* The usual burst: small frames alone, each in one piece, whose headers say nothing. Returns how
 * many were done from the front; the general path goes on from there. */
static uint16_t
fill_plain(struct build *b, struct rte_mbuf **m)
{
	uint32_t header = b->r->header, headroom = b->q->conf.headroom, i;
	const uint32_t had = b->had;
	const bool bare = b->r->bare;
	uint64_t bytes = 0;

	if (b->wanted != b->chains || b->spans != b->chains)
		return 0;
	for (i = 0; i < had; i++) {
		const uint8_t *from = b->span[i].addr;
		uint32_t len = b->size[i] - headroom;
		struct rte_mbuf *packet = b->header[i];

		if (!bare && tapq_header_speaks(from))
			break;
		m[i] = packet;
		bytes += len;
		rte_memcpy(rte_pktmbuf_mtod(packet, uint8_t *), from + header, len);
	}
	b->used = (uint16_t)i;
	b->built = (uint16_t)i;
	b->bytes = bytes;
	return (uint16_t)i;
}

/* From chain i on nothing could be filled: those chains stay where they were. */
static void
settle(struct build *b, uint16_t i)
{
	uint16_t slots = 0;

	for (uint16_t k = i; k < b->chains; k++)
		slots += b->chain[k].slots;
	if (i < b->chains)
		sl_vring_rewind(b->r->ring, b->chains - i, slots);
	/* What was had for chains behind one that could not be filled. */
	for (uint16_t k = b->used; k < b->had; k++) {
		sl_frag_mbuf_waste(b->q->conf.frag, &b->slice[k], b->header[k]);
	}
	sl_counter_add(&stats_of(b)->outcomes[SL_TAPQ_BUILT], b->built);
	sl_counter_add(&stats_of(b)->small, b->used);
	sl_counter_add(&stats_of(b)->bytes, b->bytes);
}

uint16_t
sl_tapq_build_burst(struct sl_tapq *q, uint32_t worker, const struct sl_tapq_ring *r,
	struct rte_mbuf **m, uint16_t n, bool *call)
{
	struct build b;
	uint16_t i;

	if (n == 0 || !sl_vring_ready(r->ring))
		return 0;
	b.q = q;
	b.r = r;
	b.worker = worker;
	b.small_span = q->conf.share - q->conf.headroom - RTE_ETHER_HDR_LEN;
	b.chains = b.spans = b.wanted = b.had = b.used = b.built = 0;
	b.bytes = 0;
	gather(&b, (uint16_t)RTE_MIN((uint32_t)n, SL_TAPQ_BURST_MAX));
	supply(&b);
	i = fill_plain(&b, m);
	for (; i < b.chains && fill(&b, i, m); i++)
		;
	sl_vring_push_unused(r->ring, b.chain, i);
	settle(&b, i);
	tapq_flush(r, call);
	return b.built;
}
