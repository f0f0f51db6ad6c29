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

/** One's complement addition: the carry out of the top comes in again at the bottom. */
static inline uint64_t
inet_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	bool carry = __builtin_add_overflow(a, b, &sum);

	return sum + carry;
}

/**
 * Does a sum over data that holds its own checksum fold to 0xffff? That is to be a multiple of
 * 0xffff, which one multiplication tells. The sum must not be 0: some byte in it is not.
 */
static inline bool
inet_sum_right(uint64_t sum)
{
	return sum % UINT16_MAX == 0;
}

/**
 * Sum of bytes for inet_add and inet_sum_right: it may be any 64-bit value, so plain addition to it
 * could wrap. The 8 bytes before data must be readable; they do not count.
 */
static inline uint64_t
inet_sum_behind(const void *data, size_t len)
{
	const char *p = data;
	uint64_t sum = 0, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		sum = inet_add(sum, word);
	}
	if (len > 0) {
		/* The word that ends with the data; of it, the last len bytes, put first. */
		memcpy(&word, p + len - 8, sizeof(word));
		word = rte_le_to_cpu_64(word) >> (64 - 8 * len);
		sum = inet_add(sum, rte_cpu_to_le_64(word));
	}
	return sum;
}

#endif
