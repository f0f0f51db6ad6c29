/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Receive from a version 2 ring: one frame a slot, each with a status word. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_power_intrinsics.h>
#include <rte_prefetch.h>

#include "tpacket_priv.h"

/* Slots ahead that are fetched into the cache. */
#define AHEAD 4
/* Frames in a row that tell of a backlog. Without one the kernel is about to write the slots ahead:
 * fetching them would take their lines away from it. */
#define BACKLOG 2

#define SLL_OFFSET TPACKET_ALIGN(sizeof(struct tpacket2_hdr))

/* Copies out what the kernel wrote, each field once, and keeps it inside the slot. */
static int
read_slot(const struct tpacket_ring *ring, uint8_t *slot, uint32_t status, struct tpacket_frame *f)
{
	const struct tpacket2_hdr *h = tpacket_slot_header(slot);
	uint32_t mac = sl_load_relaxed(&h->tp_mac);

	f->status = status;
	f->caught = sl_load_relaxed(&h->tp_snaplen);
	f->wire = sl_load_relaxed(&h->tp_len);
	f->tci = sl_load_relaxed(&h->tp_vlan_tci);
	f->tpid = sl_load_relaxed(&h->tp_vlan_tpid);
	f->ns = sl_load_relaxed(&h->tp_sec) * UINT64_C(1000000000) + sl_load_relaxed(&h->tp_nsec);
	f->hash = 0;
	f->packet_type = slot[SLL_OFFSET + offsetof(struct sockaddr_ll, sll_pkttype)];
	if (SL_UNLIKELY(mac < sizeof(*h) + ring->vnet_len || mac > ring->geom.frame_size ||
			f->caught > ring->geom.frame_size - mac || f->caught > f->wire))
		return -EINVAL;
	f->data = slot + mac;
	if (ring->vnet_len != 0)
		memcpy(&f->vnet, f->data - TPACKET_VNET_LEN, sizeof(f->vnet));
	else
		memset(&f->vnet, 0, sizeof(f->vnet));
	return 0;
}

static int
read_one(struct tpacket_rxq *q, struct tpacket_ring *ring, uint32_t status, struct rte_mbuf **pkts,
	uint16_t n)
{
	struct tpacket_frame f;

	if (SL_UNLIKELY(read_slot(ring, q->cur.slot, status, &f) != 0)) {
		sl_counter_add(&q->stats[TPACKET_RX_BAD_SLOT], 1);
		return 0;
	}
	return tpacket_rx_frame(q, ring, &f, pkts, n);
}

/* Wrong at the end of a block that is not full and of the ring, where it does no harm. */
static void
fetch_ahead(const struct tpacket_rxq *q, const struct tpacket_ring *ring)
{
	const uint8_t *slot = q->cur.slot + (size_t)AHEAD * ring->geom.frame_size;

	rte_prefetch0(slot);
	rte_prefetch0(slot + SL_CACHE_LINE);
	rte_prefetch0(slot + 2 * SL_CACHE_LINE);
}

uint16_t
tpacket_rx2_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_rxq *q = rxq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	uint16_t got = 0;
	uint32_t status;
	int ret;

	if (SL_UNLIKELY(ring == NULL))
		goto out;
	if (SL_UNLIKELY(q->cutting))
		got = tpacket_rx_cut(q, pkts, n);
	while (got < n && !q->cutting) {
		/* TP2: the frame behind a status word that says it is ours. */
		status = sl_load_acquire(&tpacket_slot_header(q->cur.slot)->tp_status);
		if ((status & TP_STATUS_USER) == 0)
			break;
		if (q->behind || got >= BACKLOG)
			fetch_ahead(q, ring);
		ret = read_one(q, ring, status, pkts + got, (uint16_t)(n - got));
		if (SL_UNLIKELY(ret < 0))
			break; /* no mbuf: the frame waits in its slot */
		got = (uint16_t)(got + ret);
		/* TP2: we have read all of it. */
		sl_store_release(&tpacket_slot_header(q->cur.slot)->tp_status, TP_STATUS_KERNEL);
		tpacket_cursor_advance(&q->cur, ring);
	}
	q->behind = got == n;
out:
	tpacket_gate_leave(&q->gate);
	return got;
}

void
tpacket_rx_reset(struct tpacket_rxq *q, struct tpacket_ring *ring)
{
	memset(&q->cur, 0, sizeof(q->cur));
	q->cur.slot = ring->map;
	q->v3_left = 0;
	q->v3_room = 0;
}

static bool
block_ready(const struct tpacket_ring *ring, uint32_t block)
{
	struct tpacket_block_desc *b = (struct tpacket_block_desc *)__builtin_assume_aligned(
		ring->map + (size_t)block * ring->geom.block_size, TPACKET_ALIGNMENT);

	return (sl_load_acquire(&b->hdr.bh1.block_status) & TP_STATUS_USER) != 0; /* TP4 */
}

static int
count_blocks(const struct tpacket_rxq *q, const struct tpacket_ring *ring)
{
	uint32_t frames = q->v3_left;
	uint32_t block = q->cur.block;
	uint32_t i;

	if (frames != 0) /* the open block is ours as well */
		block = (block + 1) % ring->geom.block_nr;
	for (i = 0; i < ring->geom.block_nr && block_ready(ring, block); i++) {
		frames += ((struct tpacket_block_desc *)__builtin_assume_aligned(
				   ring->map + (size_t)block * ring->geom.block_size,
				   TPACKET_ALIGNMENT))
				  ->hdr.bh1.num_pkts;
		block = (block + 1) % ring->geom.block_nr;
	}
	return (int)frames;
}

/* Is the frame `offset` places after the cursor ready? */
static bool
frame_ready(const struct tpacket_rxq *q, const struct tpacket_ring *ring, uint32_t offset)
{
	uint32_t n = q->cur.block * ring->geom.per_block + q->cur.in_block + offset;
	uint8_t *slot = ring->map + tpacket_geom_offset(&ring->geom, n % ring->geom.frame_nr);

	/* TP2: as in a burst, though nothing is read here. */
	return (sl_load_acquire(&tpacket_slot_header(slot)->tp_status) & TP_STATUS_USER) != 0;
}

uint32_t
tpacket_rx_count(void *rxq)
{
	struct tpacket_rxq *q = rxq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	uint32_t n = 0;

	if (ring != NULL && ring->version == 3)
		n = (uint32_t)count_blocks(q, ring);
	else if (ring != NULL)
		while (n < ring->geom.frame_nr && frame_ready(q, ring, n))
			n++;
	tpacket_gate_leave(&q->gate);
	return n;
}

int
tpacket_rx_status(void *rxq, uint16_t offset)
{
	struct tpacket_rxq *q = rxq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	int ret = RTE_ETH_RX_DESC_UNAVAIL;

	if (ring != NULL && offset >= ring->geom.frame_nr)
		ret = -EINVAL;
	else if (ring != NULL && ring->version == 3)
		ret = count_blocks(q, ring) > offset ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
	else if (ring != NULL)
		ret = frame_ready(q, ring, offset) ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
	tpacket_gate_leave(&q->gate);
	return ret;
}

/* Called by the power library between arming the monitor and sleeping. */
static int
monitor_check(const uint64_t value, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ])
{
	return (value & opaque[0]) != 0 ? -1 : 0;
}

int
tpacket_rx_monitor(void *rxq, struct rte_power_monitor_cond *cond)
{
	struct tpacket_rxq *q = rxq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	struct tpacket_block_desc *block;
	int ret = 0;

	if (ring == NULL || q->cutting || (ring->version == 3 && q->v3_left != 0)) {
		ret = -EBUSY; /* nothing to wait for: there is work, or no ring */
	} else {
		block = (struct tpacket_block_desc *)__builtin_assume_aligned(
			ring->map + (size_t)q->cur.block * ring->geom.block_size,
			TPACKET_ALIGNMENT);
		cond->addr = ring->version == 3 ? &block->hdr.bh1.block_status
						: &tpacket_slot_header(q->cur.slot)->tp_status;
		cond->size = sizeof(uint32_t);
		cond->fn = monitor_check;
		cond->opaque[0] = TP_STATUS_USER;
	}
	tpacket_gate_leave(&q->gate);
	return ret;
}
