/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdlib.h>

#include "bench.h"

/* Short, so that what else runs on the machine hits neighbouring slices of all sides alike. */
#define SLICE_SECONDS 0.02
#define SLICES_MIN 3

struct bench_plan
bench_plan(double seconds, unsigned int sides)
{
	struct bench_plan plan;
	double slices = seconds / (SLICE_SECONDS * sides);

	if (slices < SLICES_MIN)
		slices = SLICES_MIN;
	if (slices > BENCH_SLICES_MAX)
		slices = BENCH_SLICES_MAX;
	plan.slices = (unsigned int)slices;
	plan.seconds = seconds / (plan.slices * sides);
	return plan;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_spread
bench_spread(const struct bench_series *s)
{
	struct bench_series sorted = *s;

	if (s->n == 0)
		return (struct bench_spread){0};
	qsort(sorted.v, sorted.n, sizeof(sorted.v[0]), compare);
	return (struct bench_spread){
		.median = (sorted.v[(sorted.n - 1) / 2] + sorted.v[sorted.n / 2]) / 2,
		.min = sorted.v[0],
		.max = sorted.v[sorted.n - 1],
	};
}

struct bench_spread
bench_ratio(const struct bench_series *a, const struct bench_series *b)
{
	struct bench_series ratio = {0};

	for (unsigned int i = 0; i < a->n && i < b->n; i++) {
		if (b->v[i] > 0)
			ratio.v[ratio.n++] = a->v[i] / b->v[i];
	}
	return bench_spread(&ratio);
}
