/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <rte_common.h>

#include "tapq_priv.h"

enum write_result {
	WRITE_SENT,
	WRITE_DROPPED,
	WRITE_FULL,
};

static enum write_result
write_one(const struct sl_tapq_ring *r, struct rte_mbuf *m, struct tapq_room *room,
	struct sl_tapq_write_stats *stats)
{
	uint32_t len = rte_pktmbuf_pkt_len(m), at = r->header;
	enum tapq_room_result have = tapq_room_get(r, at + len, room, &stats->bad_chain);
	struct sl_tapq_vnet_hdr hdr;

	if (have == TAPQ_ROOM_NONE) {
		sl_counter_add(&stats->full, 1);
		return WRITE_FULL;
	}
	if (have == TAPQ_ROOM_NEVER) {
		sl_counter_add(&stats->too_big, 1);
		return WRITE_DROPPED;
	}
	if (sl_tapq_vnet_from_mbuf(m, r->accept, &hdr) != 0) {
		sl_counter_add(&stats->bad_offload, 1);
		return WRITE_DROPPED;
	}
	for (; m != NULL; m = m->next) {
		sl_vring_copy_in(room->span, room->spans, at, rte_pktmbuf_mtod(m, void *),
			rte_pktmbuf_data_len(m));
		at += rte_pktmbuf_data_len(m);
	}
	tapq_room_put(r, room, &hdr, at);
	sl_counter_add(&stats->sent, 1);
	sl_counter_add(&stats->bytes, len);
	return WRITE_SENT;
}

uint16_t
sl_tapq_write_burst(const struct sl_tapq_ring *r, struct rte_mbuf **m, uint16_t n,
	struct sl_tapq_write_stats *stats, bool *call)
{
	struct tapq_room room;
	uint16_t i;

	tapq_room_init(&room);
	for (i = 0; i < n; i++)
		if (write_one(r, m[i], &room, stats) == WRITE_FULL)
			break;
	tapq_room_cancel(r, &room);
	tapq_flush(r, call);
	rte_pktmbuf_free_bulk(m, i);
	return i;
}
