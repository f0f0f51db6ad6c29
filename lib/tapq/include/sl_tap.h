/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TAP_H
#define SL_TAP_H

/**
 * @file
 * The kernel side of a tap queue: a tap interface with virtio-net headers, and the bridge between
 * one of its queues and a pair of virtqueues.
 *
 * The bridge copies once, and the kernel does it: frames are read straight into the peer's buffers
 * and written straight out of them. The virtio-net header alone passes through private memory. The
 * kernel takes its own copy of what it is given and checks that, so a peer that changes a frame
 * meanwhile has only changed its frame.
 *
 *     virtqueue (peer sends)    --pop--> header copied, frame in place --writev--> tap queue
 *     virtqueue (peer receives) <--push-- header filled in <--readv, into the peer's buffers--
 *
 * With io_uring the frames of a burst go in one system call; without it, or where it does not pay,
 * each in one of its own. What becomes of a frame is the same.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_tapq.h"

SL_BEGIN_DECLS

#define SL_TAP_QUEUES_MAX 64u
#define SL_TAP_NAME_MAX 16u

struct sl_tap_uring;

struct sl_tap {
	char name[SL_TAP_NAME_MAX];
	uint16_t queues;
	int fd[SL_TAP_QUEUES_MAX]; /* -1: closed */
	int control;		   /* socket for interface requests */
	uint32_t offloads;	   /* enum sl_tapq_vnet_accept that the kernel may send us */
	/* A queue's io_urings, one a direction, so that neither waits for the other. NULL: none. */
	struct sl_tap_uring *from[SL_TAP_QUEUES_MAX], *to[SL_TAP_QUEUES_MAX];
};

/**
 * Open a tap interface, making it if it is not there. It vanishes with the last descriptor unless
 * somebody made it persistent.
 *
 * @param name     interface name, or "" for one that the kernel chooses
 * @param queues   1..SL_TAP_QUEUES_MAX
 * @return         0; -EINVAL; -EPERM without the right to; -EBUSY when it is open elsewhere or has
 *                 other properties; -ENODEV without tap support; -EMFILE
 * Caller: control path; on failure nothing stays open.
 */
int sl_tap_open(struct sl_tap *t, const char *name, uint16_t queues) SL_MUST_CHECK;

/**
 * Let the bridge move bursts through io_uring, two for each queue. Each holds one descriptor more.
 *
 * @return         0; -errno when the kernel has none to give (-ENOSYS, -EPERM where it is switched
 *                 off, -ENOMEM, -EMFILE), or -EOPNOTSUPP when it cannot promise for taps that no
 *                 request waits. Then all goes on with plain calls.
 * Caller: control path, once, before the bridge is used.
 */
int sl_tap_uring_open(struct sl_tap *t) SL_MUST_CHECK;

/** Close it, io_urings included: the name is free on return. Idempotent. Caller: control path. */
void sl_tap_close(struct sl_tap *t);

/**
 * Tell the kernel what frames it may give us.
 *
 * @param accept   enum sl_tapq_vnet_accept of the peer; what the kernel does not know is left out
 * @return         0; -errno
 * Caller: control path.
 */
int sl_tap_set_offloads(struct sl_tap *t, uint32_t accept) SL_MUST_CHECK;

/** Set the interface's MTU. -EINVAL out of range. Caller: control path. */
int sl_tap_set_mtu(struct sl_tap *t, uint16_t mtu) SL_MUST_CHECK;

/** Read the interface's MTU. Caller: control path. */
int sl_tap_get_mtu(struct sl_tap *t, uint16_t *mtu) SL_MUST_CHECK;

/** Bring the interface up or down. Caller: control path. */
int sl_tap_set_up(struct sl_tap *t, bool up) SL_MUST_CHECK;

/** Set the carrier: without it the interface stays up and sends nothing. Caller: control path. */
int sl_tap_set_carrier(struct sl_tap *t, bool on) SL_MUST_CHECK;

/** How bridged frames ended, one direction. */
struct sl_tap_stats {
	uint64_t frames, bytes;
	uint64_t bad_chain; /**< chains handed back because they were spoilt */
	uint64_t no_header; /**< no room for the header, or nothing behind it */
	uint64_t bad_frame; /**< refused by the kernel as malformed (EINVAL), or longer than it
			       takes */
	uint64_t down;	    /**< the interface is down (EIO) */
	uint64_t failed;    /**< any other error of the kernel */
	uint64_t too_big;   /**< from the kernel: longer than the peer's buffers; lost */
	uint64_t full; /**< calls that stopped for want of room on the far side; nothing lost */
};

/**
 * Move frames from the peer to the kernel, in order.
 *
 * @param queue    of the tap
 * @param n        frames at most
 * @param call     set to true if the peer wants to be told
 * @return         chains consumed
 * Caller: the holder of the ring; never blocks. Two that meet at one queue's io_uring do not wait
 * for each other: the second one makes plain calls. Counts: a frame that the kernel has no room for
 * stays in the ring, unless one behind it went already (the kernel short of memory for a moment):
 * that is `failed`.
 */
uint16_t sl_tap_from_ring(struct sl_tap *t, uint16_t queue, const struct sl_tapq_ring *r,
	uint16_t n, struct sl_tap_stats *stats, bool *call);

/**
 * Move frames from the kernel to the peer, in order.
 *
 * @param frame_max   longest frame to expect; a frame is asked for only when that much room is
 * there
 * @return            frames moved
 * Caller, Counts: as sl_tap_from_ring. A frame longer than expected that also fills a buffer to the
 * last byte may count as `too_big`.
 */
uint16_t sl_tap_to_ring(struct sl_tap *t, uint16_t queue, const struct sl_tapq_ring *r, uint16_t n,
	uint32_t frame_max, struct sl_tap_stats *stats, bool *call);

SL_END_DECLS

#endif
