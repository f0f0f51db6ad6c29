/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <rte_common.h>
#include <rte_mbuf.h>

#include "cksum.h"

#define ONES_8 UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX

const uint8_t inet_keep_last[64] = {[32] = ONES_8, ONES_8, ONES_8, ONES_8};
const inet_vec inet_keep_low = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};

uint64_t
inet_sum(const void *data, size_t len)
{
	const char *p = data;
	uint64_t low = 0, high = 0, word;

	/* Two halves that cannot carry into each other: the compiler turns this into vectors. */
	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		low += word & UINT32_MAX;
		high += word >> 32;
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, p, len);
		low += word & UINT32_MAX;
		high += word >> 32;
	}
	return low + high;
}

uint16_t
inet_sum_mbuf(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	uint64_t sum = 0;
	uint32_t done = 0;

	for (; m != NULL && off >= m->data_len; m = m->next)
		off -= m->data_len;
	for (; m != NULL && done < len; m = m->next, off = 0) {
		uint32_t part = RTE_MIN(len - done, m->data_len - off);
		uint16_t folded =
			inet_fold(inet_sum(rte_pktmbuf_mtod_offset(m, char *, off), part));

		/* A segment that starts at an odd place has its bytes in the other halves. */
		sum += done & 1 ? rte_bswap16(folded) : folded;
		done += part;
	}
	return inet_fold(sum);
}
