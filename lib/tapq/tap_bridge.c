/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_common.h>

#include "sl_errno.h"
#include "sl_tap.h"
#include "tapq_priv.h"

/* The header we exchange with the kernel always has 12 bytes; the peer's may have 10. */

/* Vectors for what lies behind `skip` bytes of the spans; entry 0 is left for the header. */
static int
vectors_fill(struct iovec *iov, const struct sl_vring_span *span, uint16_t n, uint32_t skip)
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

/* Which counter a failed write belongs to. */
static uint64_t *
failure(struct sl_tap_stats *stats, int error)
{
	switch (error) {
	case -EINVAL:
	case -EMSGSIZE:
		return &stats->bad_frame;
	case -EIO:
		return &stats->down;
	default:
		return &stats->failed;
	}
}

/* In one piece with a header of the kernel's size: the kernel takes both from where they lie, which
 * spares it a table of pieces. It reads the header once, as we would, and checks it. */
static bool
in_one_piece(const struct sl_tapq_ring *r, const struct sl_vring_chain *c,
	const struct sl_vring_span *span)
{
	return c->readable == 1 && r->header == SL_TAPQ_VNET_LONG &&
	       (!r->bare || !tapq_header_speaks(span->addr));
}

/* One frame to the kernel; false when the kernel has no room now. */
static bool
write_frame(int fd, const struct sl_tapq_ring *r, const struct sl_vring_chain *c,
	const struct sl_vring_span *span, struct sl_tap_stats *stats)
{
	struct iovec iov[TAPQ_SPANS_MAX + 1];
	struct sl_tapq_vnet_hdr hdr = {0};
	int ret;

	if (c->readable_len <= r->header) {
		sl_counter_add(&stats->no_header, 1);
		return true;
	}
	if (in_one_piece(r, c, span)) {
		ret = sl_sys((int)write(fd, span->addr, span->len));
	} else {
		if (!r->bare)
			sl_vring_copy_out(span, c->readable, 0, &hdr, r->header);
		sl_snapshot_barrier();
		iov[0] = (struct iovec){&hdr, sizeof(hdr)};
		ret = sl_sys((int)writev(fd, iov, vectors_fill(iov, span, c->readable, r->header)));
	}
	if (ret == -EAGAIN || ret == -ENOBUFS)
		return false;
	if (ret < 0) {
		sl_counter_add(failure(stats, ret), 1);
		return true;
	}
	sl_counter_add(&stats->frames, 1);
	sl_counter_add(&stats->bytes, c->readable_len - r->header);
	return true;
}

uint16_t
sl_tap_from_ring(
	int fd, const struct sl_tapq_ring *r, uint16_t n, struct sl_tap_stats *stats, bool *call)
{
	struct sl_vring_span span[TAPQ_SPANS_MAX];
	uint16_t done;

	for (done = 0; done < n; done++) {
		struct sl_vring_chain c;
		enum sl_vring_outcome o = sl_vring_pop(r->ring, r->mem, &c, span, TAPQ_SPANS_MAX);

		if (!sl_vring_has_chain(o))
			break;
		if (o != SL_VRING_OK) {
			sl_counter_add(&stats->bad_chain, 1);
		} else if (!write_frame(fd, r, &c, span, stats)) {
			sl_vring_rewind(r->ring, 1, c.slots);
			sl_counter_add(&stats->full, 1);
			break;
		}
		sl_vring_push(r->ring, &c, 0);
	}
	tapq_flush(r, call);
	return done;
}

/* One frame from the kernel into the room; its length, or below 0. */
static int
read_frame(
	int fd, const struct sl_tapq_ring *r, struct tapq_room *room, struct sl_tapq_vnet_hdr *hdr)
{
	struct iovec iov[ROOM_SPANS_MAX + 2];
	uint8_t beyond;
	int count = vectors_fill(iov, room->span, room->spans, r->header), ret;

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

uint16_t
sl_tap_to_ring(int fd, const struct sl_tapq_ring *r, uint16_t n, uint32_t frame_max,
	struct sl_tap_stats *stats, bool *call)
{
	struct tapq_room room;
	uint16_t done;

	tapq_room_init(&room);
	for (done = 0; done < n && room_for_any(r, frame_max, &room, stats); done++) {
		struct sl_tapq_vnet_hdr hdr = {0};
		int len = read_frame(fd, r, &room, &hdr);

		if (len == -EAGAIN)
			break;
		if (len <= 0) {
			sl_counter_add(failure(stats, len), 1);
			continue;
		}
		if (r->header + (uint32_t)len > room.bytes) {
			sl_counter_add(&stats->too_big, 1);
			continue;
		}
		tapq_room_put(r, &room, &hdr, r->header + (uint32_t)len);
		sl_counter_add(&stats->frames, 1);
		sl_counter_add(&stats->bytes, (uint64_t)len);
	}
	tapq_room_cancel(r, &room);
	tapq_flush(r, call);
	return done;
}
