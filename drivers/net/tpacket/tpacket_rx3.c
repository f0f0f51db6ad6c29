/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Receive from a version 3 ring: blocks of frames of any size, one status word a block. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "tpacket_priv.h"

#define SLL_OFFSET TPACKET_ALIGN(sizeof(struct tpacket3_hdr))

static struct tpacket_block_desc *
current_block(const struct tpacket_rxq *q, const struct tpacket_ring *ring)
{
	return (struct tpacket_block_desc *)__builtin_assume_aligned(
		ring->map + (size_t)q->cur.block * ring->geom.block_size, TPACKET_ALIGNMENT);
}

static void
release_block(struct tpacket_rxq *q, const struct tpacket_ring *ring)
{
	/* TP4: every frame of the block has been read. */
	sl_store_release(&current_block(q, ring)->hdr.bh1.block_status, TP_STATUS_KERNEL);
	q->v3_left = 0;
	if (++q->cur.block == ring->geom.block_nr)
		q->cur.block = 0;
}

/* Opens the next block if the kernel has closed it. */
static bool
open_block(struct tpacket_rxq *q, const struct tpacket_ring *ring)
{
	struct tpacket_block_desc *b = current_block(q, ring);
	uint32_t first;

	/* TP4: frames of the block before its status. */
	if ((sl_load_acquire(&b->hdr.bh1.block_status) & TP_STATUS_USER) == 0)
		return false;
	first = sl_load_relaxed(&b->hdr.bh1.offset_to_first_pkt);
	q->v3_left = sl_load_relaxed(&b->hdr.bh1.num_pkts);
	if (first < sizeof(*b) || first > ring->geom.block_size) {
		sl_counter_add(&q->stats[TPACKET_RX_BAD_SLOT], q->v3_left);
		q->v3_left = 0;
	}
	if (q->v3_left == 0) {
		release_block(q, ring);
		return false;
	}
	q->cur.slot = (uint8_t *)b + first;
	q->v3_room = ring->geom.block_size - first;
	return true;
}

static int
read_slot(const struct tpacket_rxq *q, const struct tpacket_ring *ring, struct tpacket_frame *f,
	uint32_t *step)
{
	const struct tpacket3_hdr *h = (const struct tpacket3_hdr *)__builtin_assume_aligned(
		q->cur.slot, sizeof(uint64_t));
	uint32_t mac;

	if (q->v3_room < SLL_OFFSET + sizeof(struct sockaddr_ll))
		return -EINVAL;
	*step = sl_load_relaxed(&h->tp_next_offset);
	mac = sl_load_relaxed(&h->tp_mac);
	f->status = sl_load_relaxed(&h->tp_status);
	f->caught = sl_load_relaxed(&h->tp_snaplen);
	f->wire = sl_load_relaxed(&h->tp_len);
	f->tci = (uint16_t)sl_load_relaxed(&h->hv1.tp_vlan_tci);
	f->tpid = sl_load_relaxed(&h->hv1.tp_vlan_tpid);
	f->hash = sl_load_relaxed(&h->hv1.tp_rxhash);
	f->ns = sl_load_relaxed(&h->tp_sec) * UINT64_C(1000000000) + sl_load_relaxed(&h->tp_nsec);
	f->packet_type = q->cur.slot[SLL_OFFSET + offsetof(struct sockaddr_ll, sll_pkttype)];
	if (mac < sizeof(*h) + ring->vnet_len || mac > q->v3_room || f->caught > q->v3_room - mac ||
		f->caught > f->wire)
		return -EINVAL;
	f->data = q->cur.slot + mac;
	if (ring->vnet_len != 0)
		memcpy(&f->vnet, f->data - TPACKET_VNET_LEN, sizeof(f->vnet));
	else
		memset(&f->vnet, 0, sizeof(f->vnet));
	return 0;
}

/* Goes to the frame after this one; an offset that leads nowhere ends the block. */
static void
step_on(struct tpacket_rxq *q, const struct tpacket_ring *ring, uint32_t step)
{
	if (--q->v3_left == 0) {
		release_block(q, ring);
		return;
	}
	if (step < sizeof(struct tpacket3_hdr) || step % sizeof(uint64_t) != 0 ||
		step > q->v3_room) {
		sl_counter_add(&q->stats[TPACKET_RX_BAD_SLOT], q->v3_left);
		release_block(q, ring);
		return;
	}
	q->cur.slot += step;
	q->v3_room -= step;
}

static int
read_one(struct tpacket_rxq *q, struct tpacket_ring *ring, struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_frame f;
	uint32_t step = 0;
	int ret;

	if (SL_UNLIKELY(read_slot(q, ring, &f, &step) != 0)) {
		sl_counter_add(&q->stats[TPACKET_RX_BAD_SLOT], 1);
		ret = 0;
	} else {
		rte_prefetch0(q->cur.slot + step);
		rte_prefetch0(q->cur.slot + step + SL_CACHE_LINE);
		ret = tpacket_rx_frame(q, ring, &f, pkts, n);
	}
	if (ret >= 0)
		step_on(q, ring, step);
	return ret;
}

uint16_t
tpacket_rx3_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_rxq *q = rxq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	uint16_t got = 0;
	int ret;

	if (SL_UNLIKELY(ring == NULL))
		goto out;
	if (SL_UNLIKELY(q->cutting))
		got = tpacket_rx_cut(q, pkts, n);
	while (got < n && !q->cutting) {
		if (q->v3_left == 0 && !open_block(q, ring))
			break;
		ret = read_one(q, ring, pkts + got, (uint16_t)(n - got));
		if (SL_UNLIKELY(ret < 0))
			break; /* no mbuf: the frame waits in its block */
		got = (uint16_t)(got + ret);
	}
out:
	tpacket_gate_leave(&q->gate);
	return got;
}
