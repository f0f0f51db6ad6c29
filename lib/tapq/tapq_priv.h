/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TAPQ_PRIV_H
#define TAPQ_PRIV_H

#include <string.h>
#include <sys/uio.h>

#include <rte_ring.h>
#include <rte_spinlock.h>

#include "sl_tap.h"

#define TAPQ_SPANS_MAX 128u /* pieces that a chain of a peer may have */

/* (o) one feeder, read by anyone. */
struct tapq_feeder {
	struct sl_tapq_stats stats SL_CACHE_ALIGNED;
	uint8_t guard[SL_CACHE_GUARD];
};

struct sl_tapq {
	struct sl_tapq_conf conf; /* (c) */
	struct rte_ring *ring;	  /* (c) NULL without a queue */
	struct tapq_feeder *feeder;

	/* Each held for one burst's move into or out of the queue, never while packets are built.
	 */
	rte_spinlock_t append_lock SL_CACHE_ALIGNED;
	uint8_t guard_append[SL_CACHE_GUARD];
	rte_spinlock_t take_lock SL_CACHE_ALIGNED;
	uint8_t guard_take[SL_CACHE_GUARD];

	/* (a) packets that may still be built for the queue */
	uint32_t room SL_CACHE_ALIGNED;
	uint8_t guard[SL_CACHE_GUARD];
};

/* Chains of a peer that were popped to be written to, in order. Kept from one frame of a burst to
 * the next, so that what the first did not need is not popped again. */
#define ROOM_CHAINS_MAX 64u
#define ROOM_SPANS_MAX 256u

struct tapq_room {
	uint16_t chains, spans, slots;
	uint32_t bytes; /* writable, all chains */
	struct sl_vring_chain chain[ROOM_CHAINS_MAX];
	struct sl_vring_span span[ROOM_SPANS_MAX];
};

enum tapq_room_result {
	TAPQ_ROOM_OK,
	TAPQ_ROOM_NONE, /* the peer has not enough buffers now */
	TAPQ_ROOM_NEVER /* as many chains as one frame may take are not enough */
};

static inline void
tapq_room_init(struct tapq_room *room)
{
	room->chains = room->spans = room->slots = 0;
	room->bytes = 0;
}

/** Pop chains until the room holds `bytes`. Spoilt ones are handed back and counted. */
enum tapq_room_result tapq_room_get(
	const struct sl_tapq_ring *r, uint32_t bytes, struct tapq_room *room, uint64_t *bad_chain);

/** Write the header and push the chains that `used` bytes, header included, fill. */
void tapq_room_put(const struct sl_tapq_ring *r, struct tapq_room *room,
	struct sl_tapq_vnet_hdr *hdr, uint32_t used);

/** Give back all chains. At the end of every burst. */
void tapq_room_cancel(const struct sl_tapq_ring *r, struct tapq_room *room);

/** Does a header that lies in one piece ask for anything? Only a first look: whoever acts on it
 * reads it anew, once. */
static inline bool
tapq_header_speaks(const uint8_t *header)
{
	struct sl_tapq_vnet_hdr hdr;

	memcpy(&hdr, header, SL_TAPQ_VNET_SHORT);
	return (hdr.flags | hdr.gso_type | hdr.hdr_len) != 0;
}

/* One frame's way through a system call: one piece of memory, or a table of them. */
struct tap_io {
	uint8_t *addr; /* NULL: the table */
	uint32_t len;
	struct iovec *iov;
	int iovs;
	int result; /* bytes, or -errno */
};

/** Frames that are worth one submission: fewer go faster by a call each. */
#define TAP_URING_LEAST 4u
/** Frames of one submission at most: more of them save nothing more. */
#define TAP_URING_BATCH 32u

/** Make an io_uring for a descriptor of a tap; errors as sl_tap_uring_open. */
int tap_uring_create(int fd, struct sl_tap_uring **out) SL_MUST_CHECK;

/** Give up an io_uring, and on return its hold on the descriptor. NULL is allowed. */
void tap_uring_destroy(struct sl_tap_uring *u);

/** Have it to oneself, or NULL: there is none, somebody else has it, or it has failed before. */
struct sl_tap_uring *tap_uring_take(struct sl_tap_uring *u);

/** Let go of what was taken. NULL is allowed. */
void tap_uring_release(struct sl_tap_uring *u);

/**
 * Do n reads or writes, in order, each to its end: none of them waits.
 *
 * @param io   those that the kernel did not take have -EAGAIN, and so do those that would wait
 * @param n    1..TAP_URING_BATCH
 * Caller: who has it.
 */
void tap_uring_run(struct sl_tap_uring *u, bool write, struct tap_io *io, uint16_t n);

/** Reads in a row that found a frame, over calls: how busy the kernel's side is. Caller: who has
 * it. */
uint32_t *tap_uring_streak(struct sl_tap_uring *u);

/** Vectors for what lies behind `skip` bytes of the spans; entry 0 is left for the header. Returns
 * how many there are, that one included. */
int tap_vectors_fill(
	struct iovec *iov, const struct sl_vring_span *span, uint16_t n, uint32_t skip);

/** Which counter a frame belongs to that the kernel refused. */
uint64_t *tap_failure(struct sl_tap_stats *stats, int error);

/** Let the peer see what was pushed; *call is set if it wants to be told. */
static inline void
tapq_flush(const struct sl_tapq_ring *r, bool *call)
{
	if (sl_vring_flush(r->ring))
		*call = true;
}

#endif
