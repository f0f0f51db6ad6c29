/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The bridge's way out of the kernel. How many frames wait there nobody says, and a read that finds
 * none costs a third of one that does. So reads are made one at a time until a row of them has
 * found something, and then a batch half as long as the row: what is asked for in vain stays
 * little.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include <rte_common.h>

#include "sl_errno.h"
#include "tapq_priv.h"

int
tap_vectors_fill(struct iovec *iov, const struct sl_vring_span *span, uint16_t n, uint32_t skip)
{
	int count = 1;

	for (uint16_t i = 0; i < n; i++) {
		if (skip >= span[i].len) {
			skip -= span[i].len;
			continue;
		}
		iov[count++] = (struct iovec){span[i].addr + skip, span[i].len - skip};
		skip = 0;
	}
	return count;
}

/* One frame from the kernel into the room; its length, or below 0. */
static int
read_frame(
	int fd, const struct sl_tapq_ring *r, struct tapq_room *room, struct sl_tapq_vnet_hdr *hdr)
{
	struct iovec iov[ROOM_SPANS_MAX + 2];
	uint8_t beyond;
	int count = tap_vectors_fill(iov, room->span, room->spans, r->header), ret;

	iov[0] = (struct iovec){hdr, sizeof(*hdr)};
	/* A frame that fills this byte is longer than the room: the kernel cuts without a word. */
	iov[count++] = (struct iovec){&beyond, 1};
	ret = sl_sys((int)readv(fd, iov, count));
	return ret < 0 ? ret : ret - (int)sizeof(*hdr);
}

/* Room for the longest frame, or, where the peer's buffers are all smaller, for most of them. */
static bool
room_for_any(const struct sl_tapq_ring *r, uint32_t frame_max, struct tapq_room *room,
	struct sl_tap_stats *stats)
{
	enum tapq_room_result have =
		tapq_room_get(r, r->header + frame_max, room, &stats->bad_chain);

	if (have == TAPQ_ROOM_NONE)
		sl_counter_add(&stats->full, 1);
	return have == TAPQ_ROOM_OK || have == TAPQ_ROOM_NEVER;
}

static void
count(struct sl_tap_stats *stats, uint32_t len)
{
	sl_counter_add(&stats->frames, 1);
	sl_counter_add(&stats->bytes, len);
}

/* One frame, whatever the peer's buffers are like; false when none waits. */
static bool
move_one(int fd, const struct sl_tapq_ring *r, struct tapq_room *room, struct sl_tap_stats *stats)
{
	struct sl_tapq_vnet_hdr hdr = {0};
	int len = read_frame(fd, r, room, &hdr);

	if (len == -EAGAIN)
		return false;
	if (len <= 0) {
		sl_counter_add(tap_failure(stats, len), 1);
		return true;
	}
	if (r->header + (uint32_t)len > room->bytes) {
		sl_counter_add(&stats->too_big, 1);
		return true;
	}
	tapq_room_put(r, room, &hdr, r->header + (uint32_t)len);
	count(stats, (uint32_t)len);
	return true;
}

struct batch {
	uint16_t n;
	uint16_t slots;
	struct sl_vring_chain chain[TAP_URING_BATCH];
	struct tap_io io[TAP_URING_BATCH];
};

/* Chains that each hold a frame of any length, in one piece with its header, and a byte more, which
 * shows that a frame was not cut. What is different stays, for move_one. */
static void
batch_gather(const struct sl_tapq_ring *r, uint32_t frame_max, uint16_t n, struct batch *b)
{
	struct sl_vring_span span[TAPQ_SPANS_MAX];

	b->slots = 0;
	for (b->n = 0; b->n < n; b->n++) {
		struct sl_vring_chain *c = &b->chain[b->n];
		enum sl_vring_outcome o = sl_vring_pop(r->ring, r->mem, c, span, TAPQ_SPANS_MAX);

		if (!sl_vring_has_chain(o))
			return;
		if (o != SL_VRING_OK || c->readable != 0 || c->writable != 1 ||
			c->writable_len <= SL_TAPQ_VNET_LONG + frame_max) {
			sl_vring_rewind(r->ring, 1, c->slots);
			return;
		}
		b->io[b->n] = (struct tap_io){.addr = span->addr, .len = span->len};
		b->slots += c->slots;
	}
}

/* Frame `from` has arrived, and the first chain without one is `to`: chains are handed back in
 * order, so if a read before it found none it moves to where that one would have been. */
static void
deliver(const struct sl_tapq_ring *r, struct batch *b, uint16_t from, uint16_t to)
{
	const uint16_t buffers = 1;
	const struct tap_io *io = &b->io[from];

	if (from != to)
		memcpy(b->io[to].addr, io->addr, (size_t)io->result);
	memcpy(b->io[to].addr + offsetof(struct sl_tapq_vnet_hdr, num_buffers), &buffers,
		sizeof(buffers));
	sl_vring_push(r->ring, &b->chain[to], (uint32_t)io->result);
}

/* Give back the chains that none came for. *none: a read has found nothing. Returns what the reads
 * have used up. */
static uint16_t
batch_settle(const struct sl_tapq_ring *r, struct batch *b, struct sl_tap_stats *stats, bool *none)
{
	uint16_t done = 0, used = 0, slots = b->slots;

	for (uint16_t i = 0; i < b->n; i++) {
		int result = b->io[i].result;

		*none = *none || result == -EAGAIN;
		if (result == -EAGAIN)
			continue;
		done++;
		if (result <= (int)SL_TAPQ_VNET_LONG) {
			sl_counter_add(tap_failure(stats, result), 1);
		} else if ((uint32_t)result >= RTE_MIN(b->io[i].len, b->io[used].len)) {
			sl_counter_add(&stats->too_big, 1);
		} else {
			deliver(r, b, i, used);
			slots -= b->chain[used++].slots;
			count(stats, (uint32_t)result - SL_TAPQ_VNET_LONG);
		}
	}
	if (used < b->n)
		sl_vring_rewind(r->ring, b->n - used, slots);
	return done;
}

/* Up to n frames in one system call; 0 and not *none where the peer's buffers are not fit for it.
 */
static uint16_t
move_batch(struct sl_tap_uring *u, const struct sl_tapq_ring *r, uint16_t n, uint32_t frame_max,
	struct sl_tap_stats *stats, bool *none)
{
	struct batch b;

	batch_gather(r, frame_max, n, &b);
	if (b.n >= TAP_URING_LEAST) {
		tap_uring_run(u, false, b.io, b.n);
		return batch_settle(r, &b, stats, none);
	}
	if (b.n > 0)
		sl_vring_rewind(r->ring, b.n, b.slots);
	return 0;
}

/* Of the next submission, by how many reads in a row have found a frame; 0: a call each. */
static uint16_t
batch_size(uint32_t streak, uint16_t left)
{
	uint32_t n = RTE_MIN(RTE_MIN(streak / 2, TAP_URING_BATCH), (uint32_t)left);

	return n >= TAP_URING_LEAST ? (uint16_t)n : 0;
}

uint16_t
sl_tap_to_ring(struct sl_tap *t, uint16_t queue, const struct sl_tapq_ring *r, uint16_t n,
	uint32_t frame_max, struct sl_tap_stats *stats, bool *call)
{
	struct sl_tap_uring *u = tap_uring_take(t->to[queue]);
	uint32_t alone = 0, *streak = u != NULL ? tap_uring_streak(u) : &alone;
	bool batches = u != NULL && r->header == SL_TAPQ_VNET_LONG, none = false;
	struct tapq_room room;
	uint16_t done = 0;

	tapq_room_init(&room);
	while (done < n && !none) {
		uint16_t got = 0, want = batch_size(*streak, (uint16_t)(n - done));

		if (batches && want > 0 && room.chains == 0) {
			got = move_batch(u, r, want, frame_max, stats, &none);
			batches = got > 0;
		}
		if (got == 0 && !none) {
			if (!room_for_any(r, frame_max, &room, stats))
				break;
			none = !move_one(t->fd[queue], r, &room, stats);
			got = !none;
		}
		done += got;
		*streak = none ? 0 : RTE_MIN(*streak + got, 2 * TAP_URING_BATCH);
	}
	tap_uring_release(u);
	tapq_room_cancel(r, &room);
	tapq_flush(r, call);
	return done;
}
