/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Transmit over a version 2 ring. A burst fills slots, calls the kernel once, and looks at what the
 * kernel took. Only those mbufs are the driver's: what the kernel would not take now (no memory,
 * buffer full, interface down) is taken out of the ring again and stays with the caller, so that no
 * frame waits in the ring for a burst that may never come. A frame that the kernel calls malformed
 * is counted and freed, and the rest of the burst is put into the ring anew from its slot on.
 *
 *   AVAILABLE --fill--> SEND_REQUEST --kernel--> SENDING --device done--> AVAILABLE
 *                          |    ^
 *                  rewind  v    |  kernel could not: stays
 *                      AVAILABLE / WRONG_FORMAT
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

#define TX_DATA 32 /* data begins here when no offset is given */
#define TAG_LEN 4
#define MACS_LEN 12
#define STAMP_BITS (TP_STATUS_TS_SOFTWARE | TP_STATUS_TS_RAW_HARDWARE)
#define NOT_TAKEN (TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT)
#define KICK_TRIES 2
/* Frames up to this length are copied by the kernel as a whole. The alternative, page references,
 * costs more than the copy where a driver cannot keep them (veth must copy them again). */
#define LINEAR_MAX 1920

/* What became of the packet after a run: FULL finds no slot, HELD stays with the caller because the
 * kernel would not take it now. */
enum verdict { FILLED, FULL, HELD, BAD, SUPER };

static void
count(struct tpacket_txq *q, enum tpacket_tx_stat which)
{
	sl_counter_add(&q->stats[which], 1);
}

static bool
is_available(uint8_t *slot)
{
	/* TP3: the kernel is done with the slot's bytes. A timestamp bit may remain. */
	return (sl_load_acquire(&tpacket_slot_header(slot)->tp_status) & ~STAMP_BITS) ==
	       TP_STATUS_AVAILABLE;
}

uint32_t
tpacket_tx_reap(struct tpacket_txq *q, const struct tpacket_ring *ring, uint32_t n)
{
	uint32_t done = 0;

	while (done < n && q->filled > done && is_available(q->tail.slot)) {
		tpacket_cursor_advance(&q->tail, ring);
		done++;
	}
	if (done != 0) {
		q->filled -= done;
		sl_store_relaxed(&q->in_flight, q->filled);
		sl_lcount_give(q->port->pending, rte_lcore_id(), done);
	}
	return done;
}

void
tpacket_tx_reset(struct tpacket_txq *q, struct tpacket_ring *ring)
{
	memset(&q->head, 0, sizeof(q->head));
	q->head.slot = ring->map;
	q->tail = q->head;
	if (q->filled != 0) /* frames of the old ring: the kernel has its own hold on their pages */
		sl_lcount_give(q->port->pending, SL_LCOUNT_SHARED, q->filled);
	q->filled = 0;
	sl_store_relaxed(&q->in_flight, 0);
}

/* ---- filling a slot ---------------------------------------------------------------------------
 */

uint32_t
tpacket_tx_copy(const struct rte_mbuf *m, uint8_t *out, uint32_t max)
{
	uint32_t at = 0, from = 0, part;

	if (tpacket_tx_tag(m) != 0 && m->data_len >= MACS_LEN && max >= MACS_LEN + TAG_LEN) {
		memcpy(out, rte_pktmbuf_mtod(m, const uint8_t *), MACS_LEN);
		out[MACS_LEN] = RTE_ETHER_TYPE_VLAN >> 8;
		out[MACS_LEN + 1] = RTE_ETHER_TYPE_VLAN & 0xff;
		out[MACS_LEN + 2] = (uint8_t)(m->vlan_tci >> 8);
		out[MACS_LEN + 3] = (uint8_t)m->vlan_tci;
		from = MACS_LEN;
		at = MACS_LEN + TAG_LEN;
	}
	for (; m != NULL && at < max; m = m->next, from = 0) {
		part = m->data_len - from;
		part = part < max - at ? part : max - at;
		rte_memcpy(out + at, rte_pktmbuf_mtod_offset(m, const uint8_t *, from), part);
		at += part;
	}
	return at;
}

/* May the interface carry a frame of this length? Its tag is beyond the MTU. */
static bool
fits_mtu(const struct tpacket_txq *q, const struct rte_mbuf *m, uint32_t len)
{
	uint32_t limit = sl_load_relaxed(&q->port->kernel_mtu) + RTE_ETHER_HDR_LEN;
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (SL_LIKELY(len <= limit))
		return true;
	return len <= limit + TAG_LEN &&
	       (tpacket_tx_tag(m) != 0 || eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_VLAN) ||
		       eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_QINQ));
}

static enum verdict
fill_one(struct tpacket_txq *q, const struct tpacket_ring *ring, const struct rte_mbuf *m)
{
	struct tpacket2_hdr *h = tpacket_slot_header(q->head.slot);
	uint8_t *frame = q->head.slot + TX_DATA + ring->vnet_len;
	uint32_t len = m->pkt_len + tpacket_tx_tag(m);
	struct tpacket_txmeta meta;

	if (!is_available(q->head.slot))
		return FULL;
	if (SL_UNLIKELY(m->data_len < RTE_ETHER_HDR_LEN)) {
		count(q, TPACKET_TX_TOO_SHORT);
		return BAD;
	}
	if (SL_UNLIKELY(tpacket_tx_is_super(q, m)))
		return SUPER;
	if (SL_UNLIKELY(len > ring->geom.frame_size - TX_DATA - ring->vnet_len ||
			!fits_mtu(q, m, len))) {
		count(q, TPACKET_TX_TOO_LONG);
		return BAD;
	}
	tpacket_tx_copy(m, frame, len);
	memset(&meta.vnet, 0, sizeof(meta.vnet));
	if (tpacket_tx_has_work(m)) {
		if (tpacket_tx_meta(m, frame, len, len, &meta) != 0) {
			count(q, TPACKET_TX_BAD_OFFLOAD);
			return BAD;
		}
		tpacket_tx_fix(frame, len, &meta, ring->vnet_len != 0);
	}
	if (ring->vnet_len != 0) {
		meta.vnet.hdr_len = (uint16_t)(len < LINEAR_MAX ? len : LINEAR_MAX);
		memcpy(frame - TPACKET_VNET_LEN, &meta.vnet, sizeof(meta.vnet));
	}
	sl_store_relaxed(&h->tp_len, len + ring->vnet_len);
	/* TP3: frame and length before the request. The whole word, so that no old bit stays. */
	sl_store_release(&h->tp_status, TP_STATUS_SEND_REQUEST);
	tpacket_cursor_advance(&q->head, ring);
	return FILLED;
}

/* ---- handing over to the kernel
 * ------------------------------------------------------------------ */

static void
count_error(struct tpacket_txq *q, int error)
{
	switch (error) {
	case -EAGAIN:
	case -EINTR:
		count(q, TPACKET_TX_AGAIN);
		break;
	case -ENOBUFS:
	case -ENOMEM:
		count(q, TPACKET_TX_NOBUFS);
		break;
	case -ENETDOWN:
	case -ENXIO:
	case -ENODEV:
		count(q, TPACKET_TX_DOWN);
		break;
	default:
		count(q, TPACKET_TX_OTHER_ERROR);
	}
}

static uint32_t
slot_status(uint8_t *slot)
{
	return sl_load_acquire(&tpacket_slot_header(slot)->tp_status); /* TP3 */
}

/* Calls the kernel until it took all slots from `first` to `last` or will not go on. It takes them
 * in order, so the last one tells. */
static void
kick(struct tpacket_txq *q, const struct tpacket_ring *ring, uint8_t *last)
{
	int tries, ret;

	for (tries = 0; tries < KICK_TRIES; tries++) {
		ret = sl_sys((int)sendto(ring->fd, NULL, 0, MSG_DONTWAIT, NULL, 0));
		count(q, TPACKET_TX_KICKS);
		if ((slot_status(last) & NOT_TAKEN) == 0)
			return;
		if (ret < 0)
			count_error(q, ret);
		if (ret != -EAGAIN && ret != -ENOBUFS && ret != -EINTR && ret < 0)
			return;
	}
}

/* Takes back what the kernel left: returns the frames it took of the n from `first`. The kernel's
 * own place in the ring is the slot it did not take, where the head goes back to. */
static uint32_t
rewind_rest(struct tpacket_txq *q, const struct tpacket_ring *ring, struct tpacket_cursor first,
	uint32_t n, bool *malformed)
{
	struct tpacket_cursor at;
	uint32_t taken = 0, i;

	while (taken < n && (slot_status(first.slot) & NOT_TAKEN) == 0) {
		tpacket_cursor_advance(&first, ring);
		taken++;
	}
	*malformed = taken < n && (slot_status(first.slot) & TP_STATUS_WRONG_FORMAT) != 0;
	q->head = first;
	for (at = first, i = taken; i < n; i++) {
		/* TP3: the kernel looks at this word only when it is called. */
		sl_store_release(&tpacket_slot_header(at.slot)->tp_status, TP_STATUS_AVAILABLE);
		tpacket_cursor_advance(&at, ring);
	}
	return taken;
}

static void
account(struct tpacket_txq *q, struct rte_mbuf **pkts, uint32_t n)
{
	uint64_t bytes = 0;
	uint32_t i;

	if (n == 0)
		return;
	for (i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len + tpacket_tx_tag(pkts[i]);
	sl_counter_add(&q->stats[TPACKET_TX_PACKETS], n);
	sl_counter_add(&q->stats[TPACKET_TX_BYTES], bytes);
	q->filled += n;
	sl_store_relaxed(&q->in_flight, q->filled);
	sl_lcount_take(q->port->pending, rte_lcore_id(), n);
	rte_pktmbuf_free_bulk(pkts, n);
}

/* Fills slots from pkts until one cannot be filled, and hands them over. Returns packets that the
 * caller is rid of; *why is FILLED when another call may go on. */
static uint16_t
send_run(struct tpacket_txq *q, const struct tpacket_ring *ring, struct rte_mbuf **pkts, uint16_t n,
	enum verdict *why)
{
	struct tpacket_cursor first = q->head;
	uint8_t *last = NULL, *slot;
	uint32_t filled = 0, taken;
	bool malformed = false;

	for (*why = FILLED; filled < n; filled++) {
		if (filled + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[filled + 1], const void *));
		slot = q->head.slot;
		*why = filled + q->filled < ring->geom.frame_nr ? fill_one(q, ring, pkts[filled])
								: FULL;
		if (*why != FILLED)
			break;
		last = slot;
	}
	if (filled == 0)
		return 0;
	kick(q, ring, last);
	taken = filled;
	if (SL_UNLIKELY((slot_status(last) & NOT_TAKEN) != 0)) {
		taken = rewind_rest(q, ring, first, filled, &malformed);
		*why = malformed ? BAD : HELD;
		if (malformed)
			count(q, TPACKET_TX_WRONG_FORMAT);
	}
	account(q, pkts, taken);
	return (uint16_t)taken;
}

/* The packet that stopped a run. Returns true when the caller is rid of it. */
static bool
deal_with(struct tpacket_txq *q, const struct tpacket_ring *ring, struct rte_mbuf *m,
	enum verdict why)
{
	uint64_t bytes = m->pkt_len + tpacket_tx_tag(m);
	int ret;

	if (why == SUPER) {
		ret = tpacket_tx_super(q, ring, m);
		if (ret != 0)
			count_error(q, ret);
		if (ret == -EAGAIN || ret == -ENOBUFS || ret == -EINTR || ret == -ENETDOWN ||
			ret == -ENXIO || ret == -ENOMEM)
			return false;
		if (ret == 0) {
			sl_counter_add(&q->stats[TPACKET_TX_PACKETS], 1);
			sl_counter_add(&q->stats[TPACKET_TX_BYTES], bytes);
			count(q, TPACKET_TX_SUPER);
		} else {
			count(q, TPACKET_TX_BAD_OFFLOAD);
		}
	}
	rte_pktmbuf_free(m);
	return true;
}

uint16_t
tpacket_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_txq *q = txq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	enum verdict why = FILLED;
	uint16_t done = 0;

	if (SL_UNLIKELY(ring == NULL))
		goto out;
	tpacket_tx_reap(q, ring, UINT32_MAX);
	while (done < n) {
		done = (uint16_t)(done +
				  send_run(q, ring, pkts + done, (uint16_t)(n - done), &why));
		if (why == FILLED)
			continue;
		if (why == FULL)
			count(q, TPACKET_TX_RING_FULL);
		if (why == FULL || why == HELD || !deal_with(q, ring, pkts[done], why))
			break;
		done++;
	}
out:
	tpacket_gate_leave(&q->gate);
	return done;
}

/* ---- the rest of a transmit queue
 * ----------------------------------------------------------------- */

int
tpacket_tx_cleanup(void *txq, uint32_t n)
{
	struct tpacket_txq *q = txq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	uint32_t done = 0;

	if (ring != NULL)
		done = tpacket_tx_reap(q, ring, n == 0 ? UINT32_MAX : n);
	tpacket_gate_leave(&q->gate);
	return (int)done;
}

int
tpacket_tx_status(void *txq, uint16_t offset)
{
	struct tpacket_txq *q = txq;
	struct tpacket_ring *ring = tpacket_gate_enter(&q->gate);
	int ret = RTE_ETH_TX_DESC_UNAVAIL;
	uint8_t *slot;
	uint32_t n;

	if (ring != NULL && offset >= ring->geom.frame_nr) {
		ret = -EINVAL;
	} else if (ring != NULL) {
		n = q->head.block * ring->geom.per_block + q->head.in_block + offset;
		slot = ring->map + tpacket_geom_offset(&ring->geom, n % ring->geom.frame_nr);
		ret = is_available(slot) ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
	}
	tpacket_gate_leave(&q->gate);
	return ret;
}
