/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_STACK_H
#define UDPQ_STACK_H

/**
 * @file
 * The whole stack on one lcore for the memory rows: sl_inet_poll receives, parses, verifies and
 * queues; sl_udp_recvmmsg copies the payload to the caller's buffers, as for any program.
 */

#include <stdint.h>

#include "sl_base.h"

#include "udpq_loop.h"

struct stack;
struct rte_mempool;

/**
 * A stack on the port, and one socket bound to PCAP_DST_PORT.
 *
 * @param buffer   LOOP_BURST buffers, where the payloads go
 * @return         0; -errno
 */
int stack_create(uint16_t port, struct rte_mempool *pool, const struct loop_buffer *buffer,
	struct stack **out) SL_MUST_CHECK;

/** Closes the socket; NULL is allowed. */
void stack_destroy(struct stack *s);

/** Receive once from the port, then take what came, if anything, with one call. Returns how many
 * datagrams; below 0 an error of the call. */
int stack_turn(struct stack *s);

/** Bytes of payload that message i of the last turn holds. */
uint32_t stack_length(const struct stack *s, int i);

/** Did every packet that the stack was given end in a datagram received? */
bool stack_check(const struct stack *s, uint64_t datagrams);

#endif
