/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_lcore.h>
#include <rte_memcpy.h>

#include "pktring_priv.h"
#include "sl_pktring_mbuf.h"

/* The last reference to a slot's bytes is gone. */
static inline void
slot_freed(int version, struct tx_record *record)
{
	if (SL_UNLIKELY(record->unsent))
		return;
	/* A thread without an lcore id has LCORE_ID_ANY, which counts in the shared cell. */
	pktring_complete(version, record->ring, record->slot, rte_lcore_id());
}

static void
slot_freed_v1(void *addr, void *opaque)
{
	(void)addr;
	slot_freed(TPACKET_V1, opaque);
}

static void
slot_freed_v2(void *addr, void *opaque)
{
	(void)addr;
	slot_freed(TPACKET_V2, opaque);
}

static void
slot_freed_v3(void *addr, void *opaque)
{
	(void)addr;
	slot_freed(TPACKET_V3, opaque);
}

rte_mbuf_extbuf_free_callback_t
pktring_slot_freed(int version)
{
	static const rte_mbuf_extbuf_free_callback_t freed[] = {
		slot_freed_v1, slot_freed_v2, slot_freed_v3};

	return freed[version];
}

static inline void
attach(struct tx_record *record, uint32_t offset, uint32_t len, struct rte_mbuf *m, bool va)
{
	uint8_t *bytes = record->slot + offset;

	SL_DEBUG_ASSERT(len <= UINT16_MAX);
	rte_mbuf_ext_refcnt_set(&record->shinfo, 1);
	rte_pktmbuf_attach_extbuf(
		m, bytes, va ? (uintptr_t)bytes : RTE_BAD_IOVA, (uint16_t)len, &record->shinfo);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
}

void
sl_pktring_mbuf_attach(
	struct sl_pktring_tx *ring, const struct sl_pktring_frame *frame, struct rte_mbuf *m)
{
	attach(&ring->record[frame->slot], frame->offset, frame->len, m,
		rte_eal_iova_mode() == RTE_IOVA_VA);
}

/* What rte_pktmbuf_reset and attach do to a raw mbuf, each field once. A raw mbuf has one segment,
 * no next one and one reference already. */
static inline void
attach_raw(struct tx_record *record, uint32_t offset, uint32_t len, struct rte_mbuf *m, bool va,
	uint16_t port)
{
	uint8_t *bytes = record->slot + offset;

	rte_mbuf_ext_refcnt_set(&record->shinfo, 1);
	m->buf_addr = bytes;
	m->buf_iova = va ? (uintptr_t)bytes : RTE_BAD_IOVA;
	m->data_off = 0;
	m->port = port;
	m->ol_flags = RTE_MBUF_F_EXTERNAL;
	m->packet_type = 0;
	m->pkt_len = len;
	m->data_len = (uint16_t)len;
	m->vlan_tci = 0;
	m->vlan_tci_outer = 0;
	m->buf_len = (uint16_t)len;
	m->shinfo = &record->shinfo;
	m->tx_offload = 0;
}

/* Is there a request without any peculiarity? Each field is read once. */
static inline bool
is_plain(int version, const uint8_t *slot, uint32_t *len)
{
	/* PR1. The whole word, as in peek. */
	if (sl_pktring_status(version, slot) != TP_STATUS_SEND_REQUEST)
		return false;
	if (version == TPACKET_V1)
		*len = sl_load_relaxed(&((const struct tpacket_hdr *)slot)->tp_len);
	else if (version == TPACKET_V2)
		*len = sl_load_relaxed(&((const struct tpacket2_hdr *)slot)->tp_len);
	else
		*len = sl_load_relaxed(&((const struct tpacket3_hdr *)slot)->tp_len);
	return version != TPACKET_V3 ||
	       sl_load_relaxed(&((const struct tpacket3_hdr *)slot)->tp_next_offset) == 0;
}

/* One body for three versions, each with its own as a constant. */
static inline uint16_t
lend(int version, struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n)
{
	uint32_t data = sl_pktring_data(version), head = ring->head, nr = ring->geo.frame_nr;
	uint32_t most = RTE_MIN(want->most, ring->geo.frame_size - data);
	bool va = rte_eal_iova_mode() == RTE_IOVA_VA;
	uint16_t got = 0;

	for (; got < n; got++) {
		struct tx_record *record = &ring->record[head];
		uint32_t bytes;

		if (!is_plain(version, record->slot, &bytes) || bytes < want->least || bytes > most)
			break;
		sl_pktring_status_set(version, record->slot, TP_STATUS_SENDING);
		attach_raw(record, data, bytes, m[got], va, want->port);
		len[got] = bytes;
		head = head + 1 < nr ? head + 1 : 0;
	}
	sl_store_relaxed(&ring->head, head);
	/* Nobody else has these slots yet, so none can have been completed before this. */
	if (got > 0)
		sl_lcount_take(ring->pending, want->worker, got);
	return got;
}

uint16_t
sl_pktring_mbuf_lend(struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n)
{
	if (ring->conf.has_off || ring->conf.vnet_size != 0)
		return 0;
	switch (ring->geo.version) {
	case TPACKET_V1:
		return lend(TPACKET_V1, ring, want, m, len, n);
	case TPACKET_V2:
		return lend(TPACKET_V2, ring, want, m, len, n);
	default:
		return lend(TPACKET_V3, ring, want, m, len, n);
	}
}

/* The sixteen bytes that start a fresh mbuf. */
struct fresh {
	uint16_t data_off, refcnt, nb_segs, port;
	uint64_t ol_flags;
};

static struct fresh
fresh_of(uint16_t port)
{
	_Static_assert(
		offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
			offsetof(struct rte_mbuf, nb_segs) ==
				offsetof(struct rte_mbuf, data_off) + 4 &&
			offsetof(struct rte_mbuf, port) ==
				offsetof(struct rte_mbuf, data_off) + 6 &&
			offsetof(struct rte_mbuf, ol_flags) ==
				offsetof(struct rte_mbuf, data_off) + 8,
		"words in their order");
	return (struct fresh){RTE_PKTMBUF_HEADROOM, 1, 1, port, 0};
}

/* What rte_pktmbuf_reset does to a raw mbuf, and two lengths, in as few words as it takes. */
static inline void
reset_raw(struct rte_mbuf *m, const struct fresh *f, uint32_t len)
{
	/* packet_type and pkt_len; data_len, vlan_tci and four bytes that mean nothing. */
	const uint64_t middle[] = {(uint64_t)len << 32, (uint16_t)len};

	_Static_assert(
		offsetof(struct rte_mbuf, pkt_len) == offsetof(struct rte_mbuf, packet_type) + 4 &&
			offsetof(struct rte_mbuf, data_len) ==
				offsetof(struct rte_mbuf, packet_type) + 8 &&
			offsetof(struct rte_mbuf, vlan_tci) ==
				offsetof(struct rte_mbuf, packet_type) + 10,
		"words in their order");
	memcpy(&m->rearm_data, f, sizeof(*f));
	memcpy(&m->rx_descriptor_fields1, middle, sizeof(middle));
	m->vlan_tci_outer = 0;
	m->tx_offload = 0;
}

#define LINE 64u

/* Whole lines up to `lines` bytes, where there is room for them on both sides: what is behind the
 * packet is the client's, and is not sent. */
static inline void
copy_small(uint8_t *to, const uint8_t *from, uint32_t len, uint32_t lines)
{
	if (SL_UNLIKELY(len > lines)) {
		memcpy(to, from, len);
		return;
	}
	rte_mov64(to, from);
	if (len > LINE)
		rte_mov64(to + LINE, from + LINE);
}

/* What stays the same from slot to slot. */
struct fetching {
	uint32_t data, least, range, lines;
	struct fresh fresh;
};

/* Slots that follow each other without the ring's end between them. */
static inline uint16_t
fetch_run(int version, const struct fetching *f, uint8_t *const *slots, struct rte_mbuf *const *m,
	uint32_t *len, uint16_t n)
{
	uint16_t got = 0;

	for (; got < n; got++) {
		struct rte_mbuf *to = m[got];
		uint8_t *slot = slots[got];
		uint32_t bytes;

		if (!is_plain(version, slot, &bytes) || bytes - f->least > f->range)
			break;
		/* Or a lap of the ring would find it again. */
		sl_pktring_status_set(version, slot, TP_STATUS_SENDING);
		copy_small((uint8_t *)to->buf_addr + RTE_PKTMBUF_HEADROOM, slot + f->data, bytes,
			f->lines);
		reset_raw(to, &f->fresh, bytes);
		len[got] = bytes;
	}
	return got;
}

static inline uint16_t
fetch(int version, struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n)
{
	uint32_t data = sl_pktring_data(version), room = ring->geo.frame_size - data;
	uint32_t head = ring->head, to_end = ring->geo.frame_nr - head;
	struct fetching f = {.data = data,
		.least = want->least,
		.range = RTE_MIN(want->most, room) - want->least,
		.fresh = fresh_of(want->port)};
	uint16_t first = (uint16_t)RTE_MIN((uint32_t)n, to_end), got;

	if (room >= 2 * LINE && m[0]->buf_len >= RTE_PKTMBUF_HEADROOM + 2 * LINE)
		f.lines = 2 * LINE;
	got = fetch_run(version, &f, &ring->slot[head], m, len, first);
	head += got;
	if (head == ring->geo.frame_nr) {
		head = 0;
		if (got < n)
			head = fetch_run(version, &f, ring->slot, m + got, len + got, n - got);
		got += (uint16_t)head;
	}
	sl_store_relaxed(&ring->head, head);
	return got;
}

uint16_t
sl_pktring_mbuf_fetch(struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n, uint32_t *first)
{
	uint32_t room = ring->geo.frame_size - sl_pktring_data(ring->geo.version);

	*first = ring->head;
	if (ring->conf.has_off || ring->conf.vnet_size != 0 || n == 0)
		return 0;
	if (RTE_MIN(want->most, room) < want->least)
		return 0;
	switch (ring->geo.version) {
	case TPACKET_V1:
		return fetch(TPACKET_V1, ring, want, m, len, n);
	case TPACKET_V2:
		return fetch(TPACKET_V2, ring, want, m, len, n);
	default:
		return fetch(TPACKET_V3, ring, want, m, len, n);
	}
}

void
sl_pktring_mbuf_cancel(struct sl_pktring_tx *ring, struct rte_mbuf *m, uint32_t worker)
{
	struct tx_record *record = m->shinfo->fcb_opaque;

	SL_DEBUG_ASSERT(rte_mbuf_ext_refcnt_read(&record->shinfo) == 1);
	record->unsent = true;
	rte_pktmbuf_free(m);
	record->unsent = false;
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
