/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CKSUM_H
#define INET_CKSUM_H

/*
 * Internet checksums as sums of 64-bit accumulators over words in memory order: the one's
 * complement sum does not care how wide the words are that it is taken over, or about their byte
 * order, as long as the bytes stay at their even or odd places.
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

/**
 * Does a sum over data that holds its own checksum fold to 0xffff? That is to be a multiple of
 * 0xffff, for which the compiler needs one multiplication. The sum must not be 0: some byte in it
 * is not.
 */
static inline bool
inet_sum_right(uint64_t sum)
{
	return sum % UINT16_MAX == 0;
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

/** Sum of a few bytes, before which 8 more can be read. Any 64-bit value: add to it with inet_add64
 * alone. */
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
		/* The word that ends with the data: its last len % 8 bytes count, moved to the
		 * front. */
		memcpy(&word, p + len % 8 - 8, sizeof(word));
		word = rte_le_to_cpu_64(word) >> (64 - 8 * (len % 8));
		sum = inet_add64(sum, rte_cpu_to_le_64(word));
	}
	return sum;
}

#endif
