/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef QUEUE_HELP_H
#define QUEUE_HELP_H

/* Datagrams whose buffer is a number: `buf` carries the sequence, nothing is allocated. */
#include "sl_test.h"
#include "sl_udpq.h"

static uint64_t freed; /* buffers given to free_burst */

static inline void
count_freed(void **bufs, uint16_t n)
{
	(void)bufs;
	freed += n;
}

static inline struct sl_udpq *
queue_create(enum sl_udpq_mode mode, uint32_t producers, uint32_t slots, uint64_t rcvbuf)
{
	struct sl_udpq_conf conf = {.mode = mode,
		.producers = producers,
		.slots = slots,
		.rcvbuf = rcvbuf,
		.free_burst = count_freed};
	struct sl_udpq *q = NULL;

	REQUIRE(sl_udpq_create(&conf, &q) == 0);
	freed = 0;
	return q;
}

static inline void
fill(struct sl_dgram *d, uint16_t n, uintptr_t first, uint32_t truesize)
{
	for (uint16_t i = 0; i < n; i++)
		d[i] = (struct sl_dgram){
			.buf = (void *)(first + i), .truesize = truesize, .len = truesize / 2};
}

#endif
