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

/** Sum to 16 bits, not complemented. Right for any 64-bit value: adding the halves to each other in
 * both places leaves their sum, with the carry that goes around, in the upper one. */
static inline uint16_t
inet_fold(uint64_t sum)
{
	uint32_t half = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);

	return (uint16_t)((half + (half << 16 | half >> 16)) >> 16);
}

/** Sums of up to 2^16 32-bit words may be added to each other without a wrap. */
uint64_t inet_sum(const void *data, size_t len);

/** Sum of bytes off..off+len of a packet, which must hold them. */
uint16_t inet_sum_mbuf(const struct rte_mbuf *m, uint32_t off, uint32_t len);

/** Add a word of 64 bits, carry included. */
static inline uint64_t
inet_add64(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word);
}

/** Sum of a few bytes, of which len rounded up to 8 can be read. Any 64-bit value: add to it with
 * inet_add64 alone. */
static inline uint64_t
inet_sum_short(const void *data, size_t len)
{
	const char *p = data, *end = p + (len & ~(size_t)7);
	uint64_t sum = 0, word;

	for (; p != end; p += 8) {
		memcpy(&word, p, sizeof(word));
		sum = inet_add64(sum, word);
	}
	if (len % 8 != 0) {
		memcpy(&word, p, sizeof(word));
		/* Keep the first len % 8 bytes. */
		word = rte_le_to_cpu_64(word) & ((UINT64_C(1) << 8 * (len % 8)) - 1);
		sum = inet_add64(sum, rte_cpu_to_le_64(word));
	}
	return sum;
}

#endif
