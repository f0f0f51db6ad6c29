/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_SPREAD_H
#define SLUICED_SPREAD_H

/**
 * @file
 * Flows of a port with one receive queue, spread over several lcores in software.
 *
 * The lcore that polls the queue is *target* 0. It keeps what is its own, and passes the rest on
 * over a bounded ring for each other target; what finds a ring full is dropped and counted. A
 * packet's target follows from a hash:
 *
 *   UDP and TCP, whole           addresses, protocol and ports
 *   fragments, other protocols   addresses alone, so that the fragments of a datagram meet
 *   no IP (ARP ...)              target 0
 *
 * as NICs do it. So a flow stays on one lcore; of one that is fragmented now and then, the
 * fragments may be on another. Tags are passed over, two at most.
 */

#include "sl_base.h"

struct rte_mbuf;

#define SPREAD_BURST 64u
#define SPREAD_TARGETS_MAX 64u
/** Packets that wait for a target at most. */
#define SPREAD_RING 1024u

/** Passed on = taken + full + held. */
struct spread_counts {
	uint64_t passed; /**< packets for other targets than 0 */
	uint64_t taken;	 /**< by them */
	uint64_t full;	 /**< dropped */
	uint64_t held;	 /**< in the rings */
};

struct spread;

/**
 * @param targets   2..SPREAD_TARGETS_MAX
 * @param seed      of the hash: nobody outside must know it
 * @param out       set on success only
 * @return          0; -EINVAL; -ENOMEM
 * Caller: control path.
 */
int spread_create(uint16_t targets, uint32_t seed, struct spread **out) SL_MUST_CHECK;

/** Free it, and the packets in it. NULL is allowed. Caller: control path; no lcore uses it. */
void spread_destroy(struct spread *s);

/** The target of a packet. Caller: any thread. */
uint16_t spread_pick(const struct spread *s, const struct rte_mbuf *m);

/**
 * Spread a burst that was received.
 *
 * @param pkts      n of them, 0..SPREAD_BURST; those of target 0 are at its front afterwards
 * @param touched   set to the targets that were given something, a bit each
 * @return          how many are target 0's
 * Caller: the lcore that polls the queue; never blocks.
 */
uint16_t spread_burst(struct spread *s, struct rte_mbuf **pkts, uint16_t n, uint64_t *touched);

/** Take what was passed on to a target, up to SPREAD_BURST. Caller: that target's lcore. */
uint16_t spread_take(struct spread *s, uint16_t target, struct rte_mbuf **pkts);

/** Counters. Caller: any thread; exact while no lcore is inside. */
void spread_counts(const struct spread *s, struct spread_counts *c);

#endif
