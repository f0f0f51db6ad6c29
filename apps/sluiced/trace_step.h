/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_TRACE_STEP_H
#define SLUICED_TRACE_STEP_H

/**
 * @file
 * One step of a packet that is followed, as a worker writes it and as clients get it.
 */

#include <jansson.h>

#include "conf.h"

struct rte_mbuf;

/** Counters that one packet can move, more than it does. */
#define TRACE_COUNTERS_MAX 8
#define TRACE_HEAD 96

enum trace_step_kind {
	TRACE_RECEIVED,
	TRACE_STACK,
	TRACE_SERVICE,
	TRACE_FORWARD, /**< a load balancer */
	TRACE_BRIDGE,
	TRACE_KERNEL, /**< an exception path */
};

struct trace_step {
	uint64_t tsc;
	uint32_t id; /**< of the packet, from 1 */
	uint16_t cpu;
	uint16_t kind; /**< enum trace_step_kind */
	/* TRACE_RECEIVED */
	uint16_t port; /**< index in the configuration */
	uint16_t queue;
	uint32_t len;
	uint32_t ptype; /**< RTE_PTYPE_... */
	uint16_t l3_off;
	uint16_t l4_off;
	uint16_t head_len;
	uint8_t head[TRACE_HEAD]; /**< private copy of the frame's beginning */
	/* All others */
	uint16_t ncounters;
	bool held; /**< a fragment that waits */
	struct {
		uint16_t outcome; /**< enum sl_outcome; of a bridge's copies: enum bridge_outcome */
		uint16_t by;
	} counter[TRACE_COUNTERS_MAX];
	char service[CONF_NAME_LEN]; /**< or bridge; "" for none */
	const char *outcome;	     /**< of it, a constant; NULL for none */
	char to[CONF_NAME_LEN];	     /**< back end, port of a bridge or tap; "" for none */
	const char *reason; /**< of a load balancer's decision, or what a bridge learned; or NULL */
	uint32_t slot;	    /**< of the Maglev table, if it has one */
	uint16_t packets;   /**< that a load balancer was handed: fragments waited for the first */
	bool has_slot;
	bool back;  /**< `to` is the back end that it came from */
	bool waits; /**< until the next hop's MAC address is known */
};

/** Take down what a packet is: length, types of its headers, and its beginning. Any thread. */
void trace_step_describe(struct trace_step *s, const struct rte_mbuf *m);

/**
 * Addresses and ports of a packet, as "198.18.0.1:7" or "[2001:db8::1]:7"; without ports where
 * there are none, and "" where there are no addresses. Reads nothing beyond head_len.
 *
 * @param dst   the destination, else the source
 * @param text  at least 64 bytes
 */
const char *trace_step_end(const struct trace_step *s, bool dst, char *text, size_t size);

/** Where a UDP datagram goes, port in network order: false if that is not in the head. */
bool trace_step_udp(const struct trace_step *s, struct sl_addr *dst, uint16_t *port);

/** Where a packet goes: false if that is not in the head. */
bool trace_step_dst(const struct trace_step *s, struct sl_addr *dst);

/** Both ends of a UDP datagram, ports in network order: false if they are not in the head. */
bool trace_step_flow(const struct trace_step *s, struct sl_addr *src, struct sl_addr *dst,
	uint16_t *sport, uint16_t *dport);

/**
 * As an object: {"packet":1, "step":"received", "time_us":0, ...}
 *
 * @param port    name of the step's port
 * @param t0      TSC at the beginning of the trace, hz its rate
 * @return        to be released by the caller; NULL when there is no memory
 */
json_t *trace_step_json(const struct trace_step *s, const char *port, uint64_t t0, uint64_t hz);

#endif
