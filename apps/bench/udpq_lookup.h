/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_LOOKUP_H
#define UDPQ_LOOKUP_H

/**
 * @file
 * The way to a socket, for both sides of the comparison alike: a producer's frames go through
 * sl_inet_input_burst and lib/udp's lookup into a socket of that producer's own, from which it
 * takes the descriptors at once. What follows, the queue to the reader, is what the sides differ
 * in.
 *
 * Each producer has a stack of one worker, as lcores that share nothing would have.
 *
 * Not connected: one bound socket. Connected: one socket per flow, found by its exact match among
 * all flows of the producer.
 */

#include "sl_base.h"
#include "sl_udpq.h"

struct rte_mbuf;
struct rte_mempool;
struct lookup;

/** What stands in a flow's packets as source port, less its number. */
#define LOOKUP_SPORT 1024u

struct lookup_conf {
	uint32_t flow_first; /**< number of its first flow */
	uint32_t flow_count;
	uint32_t size; /**< bytes of payload */
	bool connected;
	uint16_t port; /**< a started DPDK port: gives the stack its identity, is never polled */
	struct rte_mempool *pool;
};

/** Make a producer's stack and sockets. 0; -errno. */
int lookup_create(const struct lookup_conf *conf, struct lookup **out) SL_MUST_CHECK;

/** Close the sockets; NULL is allowed. The producer must be parked. */
void lookup_destroy(struct lookup *k);

/**
 * Write the headers of a flow's packets and take them through the stack.
 *
 * @param pkts   n packet buffers just allocated; the stack's afterwards
 * @param d      n descriptors, filled; they own the buffers
 * @return       descriptors filled: n, or fewer when the stack refused some
 * Caller: that producer.
 */
uint16_t lookup_burst(
	struct lookup *k, uint32_t flow, struct rte_mbuf **pkts, uint16_t n, struct sl_dgram *d);

/** The producer makes a pause: nothing waits for it. Caller: that producer. */
void lookup_park(struct lookup *k);

#endif
