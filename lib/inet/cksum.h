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
#include <rte_vect.h>

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

/** Sum of up to 2^16 bytes. Below 2^45: sums and words of 32 bits can be added without a look at the
 * carry. */
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

/** Four words of 64 bits; ordinary operators, which the compiler turns into what the CPU has. */
typedef uint64_t inet_vec __attribute__((vector_size(32)));
typedef uint64_t inet_half __attribute__((vector_size(16)));

#ifdef __AVX2__
/** Has v no bit where mask has ones? */
#define inet_vec_none(v, mask) (_mm256_testz_si256((__m256i)(v), (__m256i)(mask)) != 0)
#else
#define inet_vec_none(v, mask)                                                                     \
	((((v)[0] & (mask)[0]) | ((v)[1] & (mask)[1]) | ((v)[2] & (mask)[2]) |                      \
		 ((v)[3] & (mask)[3])) == 0)
#endif

/** 32 bytes of zeros, then 32 of ones: what lies n bytes in keeps the last n of 32 bytes. */
extern const uint8_t inet_keep_last[64];
/** Keeps the lower half of each word. In memory, since a loop with calls had to build it anew each time. */
extern const inet_vec inet_keep_low;

/** Most bytes that inet_sum_short takes. */
#define INET_SHORT 32u

/** Sum of up to INET_SHORT bytes, where as many can be read before their end. Below 2^45, as inet_sum. */
static inline uint64_t
inet_sum_short(const void *data, size_t len)
{
	const char *end = (const char *)data + len;
	inet_vec sum, v, keep;
	inet_half half;

	memcpy(&v, end - sizeof(v), sizeof(v));
	memcpy(&keep, inet_keep_last + len, sizeof(keep));
	v &= keep;
	sum = (v & inet_keep_low) + (v >> 32);
	half = __builtin_shufflevector(sum, sum, 0, 1) + __builtin_shufflevector(sum, sum, 2, 3);
	/* If their number is odd, even and odd places are exchanged. */
	return (half[0] + half[1]) << 8 * (len & 1);
}

#endif
