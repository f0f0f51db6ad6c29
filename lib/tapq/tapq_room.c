/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_common.h>

#include "tapq_priv.h"

/* Pops the next chain with room for writing into the array; hands back what has none. */
static bool
room_add(const struct sl_tapq_ring *r, struct tapq_room *room, uint64_t *bad_chain)
{
	struct sl_vring_chain *c = &room->chain[room->chains];
	struct sl_vring_span *span = &room->span[room->spans];
	uint16_t left = (uint16_t)(ROOM_SPANS_MAX - room->spans);

	if (room->chains == ROOM_CHAINS_MAX)
		return false;
	for (uint32_t tries = 0; tries < r->ring->conf.size; tries++) {
		enum sl_vring_outcome o = sl_vring_pop(r->ring, r->mem, c, span, left);

		if (!sl_vring_has_chain(o))
			return false;
		/* The header goes to the front of the first chain, in one piece or several. */
		if (o == SL_VRING_OK && c->readable == 0 && c->writable_len >= r->header) {
			room->chains++;
			room->spans += c->writable;
			room->slots += c->slots;
			room->bytes += c->writable_len;
			return true;
		}
		/* Chains are pushed in the order in which they were popped, so with some in hand
		 * this one has to wait until they are back. */
		if (room->chains > 0) {
			sl_vring_rewind(r->ring, 1, c->slots);
			return false;
		}
		sl_counter_add(bad_chain, 1);
		sl_vring_push(r->ring, c, 0);
	}
	return false;
}

enum tapq_room_result
tapq_room_get(
	const struct sl_tapq_ring *r, uint32_t bytes, struct tapq_room *room, uint64_t *bad_chain)
{
	while (room->bytes < bytes) {
		if (room->chains > 0 && !r->mergeable)
			return TAPQ_ROOM_NEVER;
		if (!room_add(r, room, bad_chain))
			return room->chains == ROOM_CHAINS_MAX ? TAPQ_ROOM_NEVER : TAPQ_ROOM_NONE;
	}
	return TAPQ_ROOM_OK;
}

void
tapq_room_cancel(const struct sl_tapq_ring *r, struct tapq_room *room)
{
	if (room->chains > 0)
		sl_vring_rewind(r->ring, room->chains, room->slots);
	room->chains = room->spans = room->slots = 0;
	room->bytes = 0;
}

/* The first n chains were pushed: what is left moves to the front. */
static void
room_shift(struct tapq_room *room, uint16_t n)
{
	uint16_t spans = 0;

	for (uint16_t i = 0; i < n; i++) {
		spans += room->chain[i].writable;
		room->slots -= room->chain[i].slots;
		room->bytes -= room->chain[i].writable_len;
	}
	room->chains -= n;
	room->spans -= spans;
	memmove(room->chain, room->chain + n, room->chains * sizeof(room->chain[0]));
	memmove(room->span, room->span + spans, room->spans * sizeof(room->span[0]));
}

void
tapq_room_put(const struct sl_tapq_ring *r, struct tapq_room *room, struct sl_tapq_vnet_hdr *hdr,
	uint32_t used)
{
	uint32_t left = used;
	uint16_t n = 0;

	while (left > 0) {
		left -= RTE_MIN(left, room->chain[n].writable_len);
		n++;
	}
	hdr->num_buffers = n;
	sl_vring_copy_in(room->span, room->spans, 0, hdr, r->header);
	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = RTE_MIN(used, room->chain[i].writable_len);

		sl_vring_push(r->ring, &room->chain[i], len);
		used -= len;
	}
	room_shift(room, n);
}
