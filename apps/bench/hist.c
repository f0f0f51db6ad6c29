/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "hist.h"

static uint64_t
bucket_top(uint32_t i)
{
	uint32_t octave;

	if (i < 2 * HIST_STEPS)
		return i;
	octave = i / HIST_STEPS - 1;
	return ((uint64_t)(i % HIST_STEPS + HIST_STEPS + 1) << octave) - 1;
}

uint64_t
hist_quantile(const struct hist *h, double q)
{
	uint64_t rank = (uint64_t)(q * (double)h->total), seen = 0;

	rank = rank < 1 ? 1 : rank;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			return bucket_top(i);
	}
	return 0;
}

void
hist_merge(struct hist *to, const struct hist *from)
{
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	to->total += from->total;
}
