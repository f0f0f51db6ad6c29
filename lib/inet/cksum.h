/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CKSUM_H
#define INET_CKSUM_H

/*
 * Internet checksums as sums of 64-bit accumulators over words in memory order: the one's complement
 * sum does not care how wide the words are that it is taken over, or about their byte order, as
 * long as the bytes stay at their even or odd places.
 */
#include <string.h>

#include <rte_byteorder.h>

#include "sl_base.h"

struct rte_mbuf;

/** Sum to 16 bits, not complemented. Right for any 64-bit value. */
static inline uint16_t
inet_fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}

/** Sums of up to 2^16 32-bit words may be added to each other without a wrap. */
uint64_t inet_sum(const void *data, size_t len);

/** Sum of bytes off..off+len of a packet, which must hold them. */
uint16_t inet_sum_mbuf(const struct rte_mbuf *m, uint32_t off, uint32_t len);

/** Sum of a few bytes, `room` of which can be read at least (room >= len rounded up to 8). */
static inline uint64_t
inet_sum_short(const void *data, size_t len)
{
	const char *p = data;
	uint64_t sum = 0, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		sum += (word & UINT32_MAX) + (word >> 32);
	}
	if (len > 0) {
		memcpy(&word, p, sizeof(word));
		/* Keep the first len bytes. */
		word = rte_le_to_cpu_64(word) & (UINT64_MAX >> (64 - 8 * len));
		word = rte_cpu_to_le_64(word);
		sum += (word & UINT32_MAX) + (word >> 32);
	}
	return sum;
}

#endif
