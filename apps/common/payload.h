/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef APP_PAYLOAD_H
#define APP_PAYLOAD_H

/**
 * @file
 * Numbered payloads: what sluice-udp-flood --check writes and sluice-udp-sink --check verifies.
 *
 *     0      2      4          8                  16
 *     | magic| flow | sequence | sent at, ns      | filler: byte i is (sequence + i) mod 256 ...
 *
 * All fields are big-endian. Each flow counts from 0; one that is first seen above PAYLOAD_WINDOW
 * is taken to have been joined on its way, and counted from there. The time is CLOCK_MONOTONIC, so
 * it means something on the sending machine alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAGIC 0x51ce
#define PAYLOAD_HEADER 16
#define PAYLOAD_MAX 65507
#define PAYLOAD_FLOWS 65536
/** How far back a repeated sequence number is told from a late one. */
#define PAYLOAD_WINDOW 4096

/** Fill a payload; len at least PAYLOAD_HEADER. */
void payload_write(uint8_t *data, size_t len, uint16_t flow, uint32_t sequence, uint64_t now_ns);

/** What became of one flow's numbers. */
struct payload_flow {
	uint64_t received;   /**< distinct numbers */
	uint64_t duplicated; /**< numbers seen before */
	uint64_t reordered;  /**< numbers below one that was seen before them */
	uint64_t span;	     /**< numbers from the flow's start to the highest one seen */
	uint32_t next;	     /**< highest number seen, plus one */
	uint64_t seen[PAYLOAD_WINDOW / 64];
};

struct payload_check {
	struct payload_flow *flows[PAYLOAD_FLOWS];
	uint32_t nflows;
	uint64_t foreign; /**< datagrams without our header */
	uint64_t corrupt; /**< datagrams with our header and another filler */
};

struct payload_totals {
	uint64_t received;
	uint64_t lost;
	uint64_t reordered;
	uint64_t duplicated;
};

/** NULL when there is no memory. */
struct payload_check *payload_check_create(void);
void payload_check_free(struct payload_check *c);

/** Take one payload into account. */
void payload_check_one(struct payload_check *c, const uint8_t *data, size_t len);

/** Numbers of a flow that have not come, from its start to the highest seen. */
uint64_t payload_flow_lost(const struct payload_flow *f);

void payload_check_totals(const struct payload_check *c, struct payload_totals *t);

#endif
