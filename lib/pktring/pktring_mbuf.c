/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_lcore.h>

#include "pktring_priv.h"
#include "sl_pktring_mbuf.h"

/* The last reference to a slot's bytes is gone. */
static void
slot_freed(void *addr, void *opaque)
{
	struct tx_record *record = opaque;

	(void)addr;
	if (SL_UNLIKELY(record->unsent))
		return;
	/* A thread without an lcore id has LCORE_ID_ANY, which counts in the shared cell. */
	sl_pktring_tx_complete(
		record->ring, (uint32_t)(record - record->ring->record), rte_lcore_id());
}

void
sl_pktring_mbuf_attach(
	struct sl_pktring_tx *ring, const struct sl_pktring_frame *frame, struct rte_mbuf *m)
{
	struct tx_record *record = &ring->record[frame->slot];
	uint8_t *bytes = sl_pktring_tx_bytes(ring, frame);
	rte_iova_t iova = rte_eal_iova_mode() == RTE_IOVA_VA ? (uintptr_t)bytes : RTE_BAD_IOVA;

	SL_DEBUG_ASSERT(frame->len <= UINT16_MAX);
	record->unsent = false;
	record->shinfo.free_cb = slot_freed;
	record->shinfo.fcb_opaque = record;
	rte_mbuf_ext_refcnt_set(&record->shinfo, 1);
	rte_pktmbuf_attach_extbuf(m, bytes, iova, (uint16_t)frame->len, &record->shinfo);
	m->data_off = 0;
	m->data_len = (uint16_t)frame->len;
	m->pkt_len = frame->len;
}

void
sl_pktring_mbuf_cancel(struct sl_pktring_tx *ring, struct rte_mbuf *m, uint32_t worker)
{
	struct tx_record *record = m->shinfo->fcb_opaque;

	SL_DEBUG_ASSERT(rte_mbuf_ext_refcnt_read(&record->shinfo) == 1);
	record->unsent = true;
	rte_pktmbuf_free(m);
	sl_pktring_tx_untake(ring, worker);
}

struct rte_mbuf *
sl_pktring_mbuf_copy(const struct sl_pktring_tx *ring, const struct sl_pktring_frame *frame,
	struct rte_mempool *pool)
{
	const uint8_t *from = sl_pktring_tx_bytes(ring, frame);
	struct rte_mbuf *head = rte_pktmbuf_alloc(pool), *m = head;
	uint32_t left = frame->len;

	while (m != NULL) {
		uint16_t room = rte_pktmbuf_tailroom(m);
		uint16_t n = (uint16_t)RTE_MIN(left, (uint32_t)room);

		memcpy(rte_pktmbuf_mtod(m, void *), from, n);
		m->data_len = n;
		from += n;
		left -= n;
		if (left == 0) {
			head->pkt_len = frame->len;
			return head;
		}
		m->next = rte_pktmbuf_alloc(pool);
		m = m->next;
		head->nb_segs++;
	}
	if (head != NULL) {
		head->nb_segs--; /* the one that was not to be had */
		rte_pktmbuf_free(head);
	}
	return NULL;
}

void
sl_pktring_mbuf_read(const struct rte_mbuf *m, uint32_t skip, uint8_t *to, uint32_t n)
{
	while (m != NULL && skip >= m->data_len) {
		skip -= m->data_len;
		m = m->next;
	}
	while (m != NULL && n > 0) {
		uint32_t part = RTE_MIN(n, m->data_len - skip);

		memcpy(to, rte_pktmbuf_mtod_offset(m, const uint8_t *, skip), part);
		to += part;
		n -= part;
		skip = 0;
		m = m->next;
	}
}

int
sl_pktring_mbuf_store(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	const struct rte_mbuf *m, uint32_t skip, bool *visible)
{
	struct sl_pktring_room room;
	int ret;

	SL_DEBUG_ASSERT(skip + meta->len <= m->pkt_len);
	ret = sl_pktring_rx_reserve(ring, meta, &room);
	if (ret != 0)
		return ret;
	sl_pktring_mbuf_read(m, skip, room.data, room.snaplen);
	if (sl_pktring_rx_commit(ring, &room, 0))
		*visible = true;
	return 0;
}
