/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TAPQ_H
#define SL_TAPQ_H

/**
 * @file
 * The tap queue: frames that virtio frontends wrote into virtqueues, as mbufs.
 *
 * A *feeder* is an lcore that empties virtqueues. It *builds* packets: the chain's virtio-net
 * header and frame are copied, once, into memory of ours, checked there, and become an mbuf. Small
 * frames take one slice of the page-frag allocator, larger ones a chain of mbufs. Any number of
 * feeders may *feed* one bounded queue, from which *takers* get their bursts; or a feeder keeps
 * what it built.
 *
 *     virtqueue --+
 *     virtqueue --+-- feeder --+
 *     virtqueue --+            +--> [ bounded queue ] --> takers
 *     virtqueue ----- feeder --+
 *
 * Only the place in the chunk is decided under the allocator's lock; the copy is outside it.
 *
 * Nothing is lost for want of room: when the queue, the allocator or the pool is short, the chains
 * stay in the virtqueue and the peer feels it. What is wrong is dropped; every chain ends in one
 * outcome.
 *
 * Who may call what at the same time as what:
 *
 *             build/feed (other ring, other worker)   take    write (other ring)   stats   destroy
 *     build   yes                                     yes     yes                  yes     no
 *     take    yes                                     yes     yes                  yes     no
 *
 *     A ring belongs to one thread at a time, and so does a worker index.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_frag.h"
#include "sl_tapq_vnet.h"
#include "sl_vring.h"

SL_BEGIN_DECLS

/** Frames of a burst: what one hold of the allocator's lock serves. */
#define SL_TAPQ_BURST_MAX 64u

/** Longest frame that is taken: the largest segmentation super-frame with room to spare. */
#define SL_TAPQ_FRAME_MAX (65535u + 14u + 8u)

/** Where a chain ended. */
enum sl_tapq_outcome {
	SL_TAPQ_BUILT,	   /**< is an mbuf now */
	SL_TAPQ_BAD_CHAIN, /**< spoilt chain; the ring's own counters say how */
	SL_TAPQ_NO_HEADER, /**< no room for the virtio-net header, or nothing behind it */
	SL_TAPQ_SHORT,	   /**< frame below 14 bytes */
	SL_TAPQ_TOO_LONG,  /**< frame above SL_TAPQ_FRAME_MAX */
	SL_TAPQ_BAD_VNET,  /**< the header contradicts the frame; vnet[] says how */
	SL_TAPQ_OUTCOME_COUNT
};

/** A feeder's counters: (o) its own, read by anyone. */
struct sl_tapq_stats {
	uint64_t outcomes[SL_TAPQ_OUTCOME_COUNT]; /**< chains */
	uint64_t vnet[SL_TAPQ_VNET_ERROR_COUNT];  /**< SL_TAPQ_BAD_VNET by cause */
	uint64_t bytes;				  /**< of frames built */
	uint64_t small;				  /**< frames on one slice */
	uint64_t no_frag;			  /**< stops for want of a slice: nothing lost */
	uint64_t no_mbuf;			  /**< stops for want of an mbuf: nothing lost */
};

struct sl_tapq_conf {
	struct sl_frag *frag;	     /**< bound to mbufs; its workers are the feeders */
	struct rte_mempool *headers; /**< mbufs over slices; a data room of 0 is enough */
	struct rte_mempool *large;   /**< mbufs with data rooms, for larger frames */
	uint32_t share;		     /**< bytes of a slice at most; 0: 4096 */
	uint32_t depth;		     /**< of the queue, 1..2^20; 0: no queue, only build */
	uint16_t headroom;	     /**< bytes in front of the frame; below share / 2 */
};

struct sl_tapq;

/** One virtqueue as its holder sees it. */
struct sl_tapq_ring {
	struct sl_vring *ring;
	const struct sl_vmem *mem;
	uint32_t header; /**< SL_TAPQ_VNET_LONG or SL_TAPQ_VNET_SHORT */
	bool mergeable;	 /**< a frame to the peer may take several chains */
	bool complete;	 /**< compute partial checksums */
	bool bare; /**< the peer agreed to no offload of its own: its headers say nothing, and are
			not looked at */
	uint32_t accept; /**< enum sl_tapq_vnet_accept */
	uint16_t port;	 /**< what packets built from it say that they came from */
};

/**
 * Create a tap queue.
 *
 * @return   0; -EINVAL; -ENOMEM
 * Caller: control path.
 */
int sl_tapq_create(const struct sl_tapq_conf *conf, struct sl_tapq **out) SL_MUST_CHECK;

/** Free a tap queue and the packets in it. NULL is allowed. Caller: control path, nobody inside. */
void sl_tapq_destroy(struct sl_tapq *q);

/**
 * Turn chains of a virtqueue into packets.
 *
 * @param worker   the feeder's index, below the allocator's workers
 * @param m        room for n packets
 * @param n        packets wanted; more than SL_TAPQ_BURST_MAX counts as that
 * @param call     set to true if the peer wants to be told (else left alone)
 * @return         packets built; fewer chains than n may be left, or memory be short
 * Caller: the holder of the ring; never blocks.
 * Counts: every chain popped and not rewound, in outcomes[] of this worker.
 */
uint16_t sl_tapq_build_burst(struct sl_tapq *q, uint32_t worker, const struct sl_tapq_ring *r,
	struct rte_mbuf **m, uint16_t n, bool *call);

/**
 * The same, into the queue.
 *
 * @return         packets that the queue took
 * Ordering: the queue's own: what was copied is visible to the taker.
 */
uint16_t sl_tapq_feed_burst(
	struct sl_tapq *q, uint32_t worker, const struct sl_tapq_ring *r, uint16_t n, bool *call);

/** Take packets out of the queue. Caller: any thread. */
uint16_t sl_tapq_take_burst(struct sl_tapq *q, struct rte_mbuf **m, uint16_t n);

/** Read counters: one feeder's, or UINT32_MAX for the sum. Caller: any thread. */
void sl_tapq_stats(const struct sl_tapq *q, uint32_t worker, struct sl_tapq_stats *stats);

/** Name of an outcome, for counters. */
const char *sl_tapq_outcome_name(enum sl_tapq_outcome o);

/** How frames to a peer ended. */
struct sl_tapq_write_stats {
	uint64_t sent, bytes;
	uint64_t too_big;     /**< longer than any one buffer, and the peer cannot merge */
	uint64_t bad_offload; /**< asks for what the peer does not accept, or contradicts itself */
	uint64_t bad_chain;   /**< chains handed back unused because they were spoilt */
	uint64_t full;	      /**< calls that stopped because the peer had no room; nothing lost */
};

/**
 * Write packets into a virtqueue.
 *
 * @param m       packets; those sent are freed, as are those that can never be sent (counted)
 * @param call    set to true if the peer wants to be told
 * @return        packets consumed from the front; the rest stays the caller's
 * Caller: the holder of the ring; never blocks.
 */
uint16_t sl_tapq_write_burst(const struct sl_tapq_ring *r, struct rte_mbuf **m, uint16_t n,
	struct sl_tapq_write_stats *stats, bool *call);

SL_END_DECLS

#endif
