/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

/**
 * @file
 * Histogram of 64-bit values, logarithmic with 32 linear steps per power of two: a percentile is
 * right within 1/32, and recording is a shift and an add into memory allocated beforehand.
 */

#include <stdint.h>

#define HIST_STEPS_LOG2 5
#define HIST_STEPS (1u << HIST_STEPS_LOG2)
#define HIST_BUCKETS ((64 - HIST_STEPS_LOG2 + 1) * HIST_STEPS)

struct hist {
	uint64_t total;
	uint64_t bucket[HIST_BUCKETS];
};

static inline uint32_t
hist_index(uint64_t v)
{
	uint32_t octave;

	if (v < HIST_STEPS)
		return (uint32_t)v;
	octave = 63u - (uint32_t)__builtin_clzll(v) - HIST_STEPS_LOG2;
	/* v >> octave is in HIST_STEPS .. 2 * HIST_STEPS - 1. */
	return octave * HIST_STEPS + (uint32_t)(v >> octave);
}

static inline void
hist_add(struct hist *h, uint64_t v, uint64_t times)
{
	h->bucket[hist_index(v)] += times;
	h->total += times;
}

/** Add what `from` holds. */
void hist_merge(struct hist *to, const struct hist *from);

/** Largest value that the bucket of the q-th value (0 < q <= 1) may hold; 0 if there is none. */
uint64_t hist_quantile(const struct hist *h, double q);

#endif
