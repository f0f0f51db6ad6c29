/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pktring_priv.h"

/* The header fields of a request, each read once. */
struct request {
	uint32_t len;
	uint16_t mac, net;
	uint32_t next;
};

/* Everything in a record that stays as it is, and the slots' places behind them. */
static int
records_create(struct sl_pktring_tx *ring)
{
	size_t n = ring->geo.frame_nr, each = sizeof(*ring->record) + sizeof(*ring->slot);

	ring->record =
		aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(n * each, (size_t)SL_CACHE_LINE));
	if (ring->record == NULL)
		return -ENOMEM;
	ring->slot = (uint8_t **)(ring->record + n);
	for (uint32_t i = 0; i < n; i++) {
		ring->slot[i] = pktring_slot(&ring->geo, &ring->mem, i);
		ring->record[i] = (struct tx_record){
			.shinfo = {.free_cb = pktring_slot_freed(ring->geo.version),
				.fcb_opaque = &ring->record[i]},
			.ring = ring,
			.slot = ring->slot[i]};
	}
	return 0;
}

int
sl_pktring_tx_create(const struct sl_pktring_geo *geo, const struct sl_pktring_tx_conf *conf,
	uint32_t workers, struct sl_pktring_tx **out)
{
	struct sl_pktring_tx *ring;
	int ret;

	SL_ASSERT(geo->dir == SL_PKTRING_TX && geo->bytes > 0);
	ring = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*ring), (size_t)SL_CACHE_LINE));
	if (ring == NULL)
		return -ENOMEM;
	memset(ring, 0, sizeof(*ring));
	ring->geo = *geo;
	ring->conf = *conf;
	ret = sl_pktring_mem_alloc(geo->bytes, &ring->mem);
	if (ret == 0)
		ret = records_create(ring);
	if (ret == 0)
		ret = sl_lcount_create(workers, -1, &ring->pending);
	if (ret == 0 && (geo->retire_ms != 0 || geo->priv_size != 0 || geo->features != 0))
		ret = -EINVAL;
	if (ret != 0) {
		sl_pktring_mem_free(&ring->mem);
		sl_lcount_destroy(ring->pending);
		free(ring->record);
		free(ring);
		return ret;
	}
	*out = ring;
	return 0;
}

int
sl_pktring_tx_destroy(struct sl_pktring_tx *ring)
{
	if (ring == NULL)
		return 0;
	/* Nobody takes any more, so the sum is not too low; the acquire in it (LC1) puts the last
	 * completer's stores before what follows. */
	if (sl_lcount_sum(ring->pending) != 0)
		return -EBUSY;
	sl_pktring_mem_free(&ring->mem);
	sl_lcount_destroy(ring->pending);
	free(ring->record);
	free(ring);
	return 0;
}

const struct sl_pktring_mem *
sl_pktring_tx_mem(const struct sl_pktring_tx *ring)
{
	return &ring->mem;
}

const struct sl_pktring_geo *
sl_pktring_tx_geo(const struct sl_pktring_tx *ring)
{
	return &ring->geo;
}

void
sl_pktring_tx_set(struct sl_pktring_tx *ring, const struct sl_pktring_tx_conf *conf)
{
	ring->conf.has_off = conf->has_off;
	ring->conf.dgram = conf->dgram;
	ring->conf.vnet_size = conf->vnet_size;
	sl_store_relaxed(&ring->conf.timestamp, conf->timestamp);
}

static void
read_request(int version, const void *slot, struct request *r)
{
	const struct tpacket_hdr *h1 = slot;
	const struct tpacket2_hdr *h2 = slot;
	const struct tpacket3_hdr *h3 = slot;

	switch (version) {
	case TPACKET_V1:
		*r = (struct request){sl_load_relaxed(&h1->tp_len), sl_load_relaxed(&h1->tp_mac),
			sl_load_relaxed(&h1->tp_net), 0};
		break;
	case TPACKET_V2:
		*r = (struct request){sl_load_relaxed(&h2->tp_len), sl_load_relaxed(&h2->tp_mac),
			sl_load_relaxed(&h2->tp_net), 0};
		break;
	default:
		*r = (struct request){sl_load_relaxed(&h3->tp_len), sl_load_relaxed(&h3->tp_mac),
			sl_load_relaxed(&h3->tp_net), sl_load_relaxed(&h3->tp_next_offset)};
		break;
	}
}

/* Where the request's bytes start, vnet header first; 0 when that is out of bounds. */
static uint32_t
data_offset(const struct sl_pktring_tx *ring, const struct request *r)
{
	uint32_t first = sl_pktring_data(ring->geo.version);
	uint32_t offset = ring->conf.dgram ? r->net : r->mac;

	if (!ring->conf.has_off)
		return first;
	return offset >= first && offset <= ring->geo.frame_size - r->len ? offset : 0;
}

static uint8_t *
head_slot(const struct sl_pktring_tx *ring)
{
	return ring->slot[ring->head];
}

/* Take the vnet header off the front of the frame, into the frame's copy. */
static int
split_vnet(const struct sl_pktring_tx *ring, struct sl_pktring_frame *frame)
{
	uint32_t size = ring->conf.vnet_size;

	if (frame->len < size)
		return -EINVAL;
	memcpy(frame->vnet, head_slot(ring) + frame->offset, size);
	memset(frame->vnet + size, 0, sizeof(frame->vnet) - size);
	sl_snapshot_barrier();
	frame->offset += size;
	frame->len -= size;
	return 0;
}

int
sl_pktring_tx_peek(struct sl_pktring_tx *ring, uint32_t cap, struct sl_pktring_frame *frame)
{
	const struct sl_pktring_geo *geo = &ring->geo;
	uint32_t most = geo->frame_size - sl_pktring_data(geo->version);
	const uint8_t *slot = head_slot(ring);
	struct request r;

	/* PR1. The whole word: a request with a leftover timestamp bit is none, as on Linux. */
	if (sl_pktring_status(geo->version, slot) != TP_STATUS_SEND_REQUEST)
		return 0;
	read_request(geo->version, slot, &r);
	if (r.next != 0)
		return -EINVAL;
	if (ring->conf.vnet_size == 0 && cap < most)
		most = cap;
	if (r.len > most)
		return -EMSGSIZE;
	frame->slot = ring->head;
	frame->len = r.len;
	frame->offset = data_offset(ring, &r);
	if (frame->offset == 0)
		return -EINVAL;
	if (ring->conf.vnet_size != 0 && split_vnet(ring, frame) != 0)
		return -EINVAL;
	return 1;
}

uint8_t *
sl_pktring_tx_bytes(const struct sl_pktring_tx *ring, const struct sl_pktring_frame *frame)
{
	return ring->slot[frame->slot] + frame->offset;
}

static void
head_status(struct sl_pktring_tx *ring, uint32_t status)
{
	sl_pktring_status_set(ring->geo.version, head_slot(ring), status);
}

static void
head_next(struct sl_pktring_tx *ring)
{
	sl_store_relaxed(&ring->head, ring->head + 1 < ring->geo.frame_nr ? ring->head + 1 : 0);
}

void
sl_pktring_tx_take(struct sl_pktring_tx *ring, uint32_t worker)
{
	head_status(ring, TP_STATUS_SENDING);
	sl_lcount_take(ring->pending, worker, 1);
	head_next(ring);
}

void
sl_pktring_tx_back(struct sl_pktring_tx *ring)
{
	sl_store_relaxed(&ring->head, (ring->head > 0 ? ring->head : ring->geo.frame_nr) - 1);
	head_status(ring, TP_STATUS_SEND_REQUEST);
}

static inline void
give_run(int version, uint8_t *const *slot, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sl_pktring_status_set(version, slot[i], TP_STATUS_AVAILABLE); /* PR2 */
}

static void
give_stamped(int version, uint8_t *const *slot, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		pktring_stamp_now(version, slot[i]);
		sl_pktring_status_set(
			version, slot[i], TP_STATUS_AVAILABLE | TP_STATUS_TS_SOFTWARE); /* PR2 */
	}
}

/* One body for three versions, each with its own as a constant; in two parts where the ring's end
 * is between. */
static inline void
give(int version, const struct sl_pktring_tx *ring, uint32_t first, uint32_t n)
{
	uint32_t part = RTE_MIN(n, ring->geo.frame_nr - first);

	if (SL_UNLIKELY(sl_load_relaxed(&ring->conf.timestamp))) {
		give_stamped(version, &ring->slot[first], part);
		give_stamped(version, ring->slot, n - part);
	} else {
		give_run(version, &ring->slot[first], part);
		give_run(version, ring->slot, n - part);
	}
}

void
sl_pktring_tx_give(struct sl_pktring_tx *ring, uint32_t first, uint32_t n)
{
	switch (ring->geo.version) {
	case TPACKET_V1:
		give(TPACKET_V1, ring, first, n);
		break;
	case TPACKET_V2:
		give(TPACKET_V2, ring, first, n);
		break;
	default:
		give(TPACKET_V3, ring, first, n);
		break;
	}
}

void
sl_pktring_tx_untake(struct sl_pktring_tx *ring, uint32_t worker)
{
	sl_pktring_tx_back(ring);
	sl_lcount_give(ring->pending, worker, 1);
}

void
sl_pktring_tx_reject(struct sl_pktring_tx *ring)
{
	head_status(ring, TP_STATUS_WRONG_FORMAT);
}

void
sl_pktring_tx_drop(struct sl_pktring_tx *ring)
{
	head_status(ring, TP_STATUS_AVAILABLE);
	head_next(ring);
}

void
pktring_stamp_now(int version, uint8_t *slot)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	pktring_stamp(version, slot, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

void
sl_pktring_tx_complete(struct sl_pktring_tx *ring, uint32_t slot, uint32_t worker)
{
	pktring_complete(ring->geo.version, ring, ring->slot[slot], worker);
}

uint32_t
sl_pktring_tx_pending(const struct sl_pktring_tx *ring)
{
	return sl_lcount_sum(ring->pending);
}

bool
sl_pktring_tx_requested(const struct sl_pktring_tx *ring)
{
	/* PR1, though nothing is read here but the word. */
	return sl_pktring_status(ring->geo.version, head_slot(ring)) == TP_STATUS_SEND_REQUEST;
}

bool
sl_pktring_tx_writable(const struct sl_pktring_tx *ring)
{
	uint32_t head = sl_load_relaxed(&ring->head);

	return sl_pktring_is_available(ring->geo.version, ring->slot[head]);
}
