/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * TPACKET_V3 receive: packets of any size one behind the other in a block, and the block as a whole
 * changes hands.
 *
 *     open --full, or over time--> closing --last writer commits--> the client's (USER)
 *       ^                             |
 *       |     next block is ours      v
 *       +------------------------- next one ----is the client's----> frozen --comes back--> open
 *
 * Writers copy outside of the lock, so a block can be closed while they are still in it: it is
 * handed over by the last of them. What the client needs to read a block is written when it is
 * closed, from counts kept in this process; nothing is ever read back from the block but its
 * status.
 */
#include <errno.h>

#include "pktring_priv.h"

#define RETIRE_MS 8 /* where the request says 0 */

static uint64_t
retire_ns(const struct sl_pktring_rx *ring)
{
	uint64_t ms = ring->geo.retire_ms != 0 ? ring->geo.retire_ms : RETIRE_MS;

	return ms * 1000000;
}

static uint8_t *
block_start(const struct sl_pktring_rx *ring, uint32_t number)
{
	return ring->mem.addr + (size_t)number * ring->geo.block_size;
}

static struct tpacket_block_desc *
block_desc(const struct sl_pktring_rx *ring, uint32_t number)
{
	return (struct tpacket_block_desc *)block_start(ring, number);
}

/* Is the block at `block.number` the server's, all writers of its last lap gone? */
static bool
block_is_free(const struct sl_pktring_rx *ring)
{
	uint32_t n = ring->block.number;

	if (ring->fill[n].closing)
		return false;
	/* PR4 */
	return sl_load_acquire(&block_desc(ring, n)->hdr.bh1.block_status) == TP_STATUS_KERNEL;
}

void
pktring_block_open(struct sl_pktring_rx *ring, uint64_t now_ns)
{
	struct rx_block *b = &ring->block;
	struct tpacket_block_desc *d = block_desc(ring, b->number);

	d->version = TPACKET_V3;
	d->offset_to_priv = BLOCK_HEADER;
	d->hdr.bh1.seq_num = ++ring->sequence;
	d->hdr.bh1.ts_first_pkt.ts_sec = (uint32_t)(now_ns / 1000000000);
	d->hdr.bh1.ts_first_pkt.ts_nsec = (uint32_t)(now_ns % 1000000000);
	*b = (struct rx_block){.number = b->number,
		.used = pktring_block_front(&ring->geo),
		.opened_ns = now_ns,
		.last_ns = now_ns,
		.open = true};
	sl_store_relaxed(&ring->due_ns, UINT64_MAX); /* nothing to retire yet */
}

/* Open the block whose turn it is, or freeze until the client gives it back. */
static void
block_next(struct sl_pktring_rx *ring, uint64_t now_ns)
{
	if (block_is_free(ring)) {
		pktring_block_open(ring, now_ns);
		return;
	}
	if (ring->block.open)
		sl_counter_add(&ring->stats.freezes, 1);
	ring->block.open = false;
	sl_store_relaxed(&ring->due_ns, 0);
}

static void
block_publish(struct sl_pktring_rx *ring, uint32_t number)
{
	/* PR3: the headers above were stored under the lock, by this thread or before it. */
	sl_store_release(
		&block_desc(ring, number)->hdr.bh1.block_status, ring->fill[number].status);
	ring->fill[number].closing = false;
}

/* Close the open block; true when the client has it now, false when writers are still in it. */
static bool
block_close(struct sl_pktring_rx *ring, uint32_t why)
{
	struct rx_block *b = &ring->block;
	struct rx_fill *fill = &ring->fill[b->number];
	struct tpacket_hdr_v1 *h = &block_desc(ring, b->number)->hdr.bh1;
	uint32_t number = b->number;

	if (b->packets > 0)
		((struct tpacket3_hdr *)(block_start(ring, number) + b->last))->tp_next_offset = 0;
	h->num_pkts = b->packets;
	h->offset_to_first_pkt = pktring_block_front(&ring->geo);
	h->blk_len = b->used;
	h->ts_last_pkt.ts_sec = (uint32_t)(b->last_ns / 1000000000);
	h->ts_last_pkt.ts_nsec = (uint32_t)(b->last_ns % 1000000000);
	fill->status = TP_STATUS_USER | why | (ring->losing ? TP_STATUS_LOSING : 0);
	fill->closing = true;
	b->number = number + 1 < ring->geo.block_nr ? number + 1 : 0;
	if (fill->writers > 0)
		return false;
	block_publish(ring, number);
	return true;
}

/* A packet of `bytes` padded bytes goes to the end of the open block. */
static void
block_append(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta, uint32_t bytes,
	struct sl_pktring_room *room)
{
	struct rx_block *b = &ring->block;

	room->slot = b->number;
	room->header = block_start(ring, b->number) + b->used;
	((struct tpacket3_hdr *)room->header)->tp_next_offset = bytes;
	if (b->packets == 0)
		sl_store_relaxed(&ring->due_ns, meta->ns + retire_ns(ring));
	b->last = b->used;
	b->last_ns = meta->ns;
	b->used += bytes;
	b->packets++;
	ring->fill[b->number].writers++;
}

int
pktring_block_reserve(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	uint32_t macoff, struct sl_pktring_room *room)
{
	uint32_t most = ring->geo.block_size - pktring_block_front(&ring->geo);
	uint32_t start = RTE_MIN(macoff, most);
	uint32_t snaplen = RTE_MIN(meta->len, most - start);
	uint32_t bytes = RTE_ALIGN_CEIL(start + snaplen, 8u);

	if (!ring->block.open)
		block_next(ring, meta->ns);
	else if (ring->block.packets > 0 && ring->block.used + bytes >= ring->geo.block_size) {
		block_close(ring, 0);
		block_next(ring, meta->ns);
	}
	if (!ring->block.open)
		return -ENOBUFS;
	block_append(ring, meta, bytes, room);
	room->data = room->header + start;
	room->snaplen = snaplen;
	room->status = TP_STATUS_USER | meta->status;
	return 0;
}

bool
pktring_block_commit(
	struct sl_pktring_rx *ring, const struct sl_pktring_room *room, uint32_t status)
{
	struct rx_fill *fill = &ring->fill[room->slot];

	((struct tpacket3_hdr *)room->header)->tp_status = room->status | status;
	fill->writers--;
	if (fill->writers > 0 || !fill->closing)
		return false;
	block_publish(ring, room->slot);
	return true;
}

bool
pktring_block_tick(struct sl_pktring_rx *ring, uint64_t now_ns)
{
	uint64_t due = ring->due_ns;
	bool visible;

	if (!ring->block.open) {
		block_next(ring, now_ns);
		return false;
	}
	/* A due time further away than the retire time means that the clock was set back. */
	if (ring->block.packets == 0 || (now_ns < due && due - now_ns <= retire_ns(ring)))
		return false;
	visible = block_close(ring, TP_STATUS_BLK_TMO);
	block_next(ring, now_ns);
	return visible;
}

bool
pktring_block_has_room(const struct sl_pktring_rx *ring)
{
	return ring->block.open || block_is_free(ring);
}
