/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_MEASURE_H
#define UDPQ_MEASURE_H

/**
 * @file
 * Measures both sides of one case: slices of one side and the other in turn, in pairs. A pair in
 * which a thread did not run nearly all the time, because something else had its core, is
 * *disturbed* and left out, as long as enough others are there; else the less disturbed ones count.
 */

#include "udpq_slice.h"

/** Fewer undisturbed pairs than this, and disturbed ones count too. */
#define MEASURE_PAIRS_MIN 5

/** What one side did in the pairs that count. */
struct measure_side {
	struct load *load; /**< lives until measure_free */
	struct bench_series pps;
	struct slice_result sum;
	struct hist latency;
};

struct measure {
	struct measure_side side[LOAD_SIDES];
	unsigned int pairs;	/**< that were run */
	unsigned int disturbed; /**< of these */
	bool busy;		/**< disturbed ones count: nearly all were */
};

/**
 * Measure a case for that long.
 *
 * @param fewest  first find, for each side, the fewest flows that saturate the reader, one on each
 *                producer; else the shape says how many
 * @param out     to be freed with measure_free, also after an error
 * @return        0; -errno; -EPROTO when a check failed, after a sentence on standard error
 */
int measure_run(const struct load_env *env, const struct load_shape *shape, bool fewest,
	double seconds, struct measure *out) SL_MUST_CHECK;

void measure_free(struct measure *m);

#endif
