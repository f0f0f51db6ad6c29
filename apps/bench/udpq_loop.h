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

/** Most packets of one call. */
#define LOOP_BURST 64

/** One of the caller's buffers. */
struct loop_buffer {
	uint8_t *data;
	uint32_t size;
	uint32_t len; /**< of the payload copied */
};

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
