/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_LOOP_H
#define UDPQ_LOOP_H

/**
 * @file
 * The hand-written loop that the stack is measured against: what an engineer writes who needs UDP
 * over IPv4 over untagged Ethernet on one port and nothing else. It parses at fixed offsets,
 * verifies both checksums, copies the payload to the caller's buffers and frees in bulk. It has no
 * options, no VLANs, no fragments, no IPv6, no ARP, no sockets, no accounting and no outcomes.
 */

#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;

/** Most packets of one call. */
#define LOOP_BURST 64
/** Bytes of one of the caller's buffers. */
#define LOOP_STRIDE 2048

/** One of the caller's buffers. */
struct loop_buffer {
	uint8_t *data;
	uint32_t size;
	uint32_t len; /**< of the payload copied */
};

/**
 * Start a port with one queue each way.
 *
 * @return   0; -errno of the step that failed
 */
int loop_port_start(uint16_t port, uint16_t descriptors, struct rte_mempool *pool);

/**
 * Make LOOP_BURST buffers, zeroed, in one piece of memory.
 *
 * @return   it, for free(); NULL without memory
 */
uint8_t *loop_buffers_make(struct loop_buffer *buffer);

/**
 * Take a burst: the k-th good packet's payload goes to out[k]; all packets are freed.
 *
 * @param dport  destination port, network order; others are not taken
 * @param n      0..LOOP_BURST
 * @return       good packets
 */
uint16_t loop_take(struct rte_mbuf **pkts, uint16_t n, uint16_t dport, struct loop_buffer *out);

/**
 * Free a burst. A port's fresh packets come from one pool, are whole and have one owner, so they go
 * back in one piece; where that does not hold, the general way.
 */
void loop_free(struct rte_mbuf **pkts, uint16_t n);

#endif
