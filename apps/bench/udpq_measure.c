/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "udpq_measure.h"

/* Shorter than a scheduler's time slice, so that also on a busy machine some are undisturbed; long
 * enough to fill the queue and to make the start of a slice small. */
#define SLICE_SECONDS 0.002
#define PAIRS_FEWEST 3
/* Share of a slice that each thread must have run for the pair to count, from the best pairs down.
 */
#define LEVELS 3
static const double level_ran[LEVELS] = {0.95, 0.5, 0};

/* In the search for the fewest flows: saturated when more flows bring no more than this. */
#define SATURATED 0.95
#define SEARCH_MAX 8
#define SEARCH_SLICES 5
#define SEARCH_SHARE 0.2

static double
pps_of(const struct load_env *env, const struct slice_result *r)
{
	return (double)r->read * env->tsc_hz / (double)r->cycles;
}

static int
slice(const struct load_env *env, struct load *l, struct slice_result *r)
{
	/* On a busy machine the reader may not have run at all: such a slice says nothing. */
	do {
		memset(&l->latency, 0, sizeof(l->latency));
		slice_run(l, (uint64_t)(SLICE_SECONDS * env->tsc_hz), r);
	} while (r->cycles == 0);
	return load_check(l);
}

static void
add(const struct load_env *env, struct measure_side *side, const struct slice_result *r)
{
	if (side->pps.n == BENCH_SLICES_MAX)
		return;
	side->pps.v[side->pps.n++] = pps_of(env, r);
	side->sum.read += r->read;
	side->sum.cycles += r->cycles;
	side->sum.busy += r->busy;
	hist_merge(&side->latency, &side->load->latency);
}

/* Best packets per second of some slices with that many flows, one on each producer. The best is
 * the one that was disturbed least. */
static int
probe(const struct load_env *env, enum load_side which, const struct load_shape *shape,
	uint64_t until, double *pps)
{
	struct slice_result r;
	struct load *l = NULL;
	int ret = load_create(which, shape, env, &l);

	for (int i = 0; ret == 0 && (i == 0 || (i < SEARCH_SLICES && rte_rdtsc() < until)); i++) {
		ret = slice(env, l, &r);
		*pps = RTE_MAX(*pps, pps_of(env, &r));
	}
	load_destroy(l);
	return ret;
}

/* The fewest flows beyond which this side's reader gets no more. */
static int
fewest_find(
	const struct load_env *env, enum load_side which, struct load_shape *shape, double seconds)
{
	uint64_t until = rte_rdtsc() + (uint64_t)(seconds * env->tsc_hz);
	double pps[SEARCH_MAX + 1] = {0}, best = 0;
	int ret = 0;

	for (uint32_t n = 1; n <= SEARCH_MAX && ret == 0; n *= 2) {
		shape->flows = n;
		shape->producers = n;
		ret = probe(env, which, shape, until, &pps[n]);
		best = RTE_MAX(best, pps[n]);
	}
	for (uint32_t n = SEARCH_MAX; n >= 1; n /= 2) {
		if (pps[n] >= SATURATED * best)
			shape->flows = n;
	}
	shape->producers = shape->flows;
	return ret;
}

static int
loads_create(const struct load_env *env, const struct load_shape *shape, bool fewest,
	double seconds, struct measure *m)
{
	int ret = 0;

	for (int i = 0; i < LOAD_SIDES && ret == 0; i++) {
		struct load_shape own = *shape;

		if (fewest)
			ret = fewest_find(env, (enum load_side)i, &own, seconds / LOAD_SIDES);
		if (ret == 0)
			ret = load_create((enum load_side)i, &own, env, &m->side[i].load);
	}
	return ret;
}

/* Pairs until the time is over; each counts on all levels that it reaches. */
static int
pairs_run(const struct load_env *env, uint64_t until, struct measure level[LEVELS],
	unsigned int *pairs)
{
	const unsigned int *clean = &level[0].side[0].pps.n;
	struct slice_result r[LOAD_SIDES];
	int ret = 0;

	while (ret == 0 && !bench_stopped() && *clean < BENCH_SLICES_MAX &&
		(*pairs < PAIRS_FEWEST || rte_rdtsc() < until)) {
		/* Either goes first: else a scheduler's rhythm may always hit the same one. */
		int i, first = (int)(rte_rand() & 1);
		double ran = 1;

		for (int turn = 0; turn < LOAD_SIDES && ret == 0; turn++) {
			i = turn ^ first;
			ret = slice(env, level[0].side[i].load, &r[i]);
			ran = RTE_MIN(ran, r[i].ran);
		}
		*pairs += ret == 0;
		for (int k = 0; k < LEVELS && ret == 0; k++) {
			for (i = 0; i < LOAD_SIDES && ran >= level_ran[k]; i++)
				add(env, &level[k].side[i], &r[i]);
		}
	}
	return ret;
}

int
measure_run(const struct load_env *env, const struct load_shape *shape, bool fewest, double seconds,
	struct measure *out)
{
	static struct measure level[LEVELS];
	double search = fewest ? seconds * SEARCH_SHARE : 0;
	unsigned int pairs = 0, k = 0;
	uint64_t until;
	int ret;

	memset(level, 0, sizeof(level));
	ret = loads_create(env, shape, fewest, search, &level[0]);
	for (int i = 1; i < LEVELS; i++)
		level[i] = level[0];
	until = rte_rdtsc() + (uint64_t)((seconds - search) * env->tsc_hz);
	if (ret == 0)
		ret = pairs_run(env, until, level, &pairs);
	while (level[k].side[0].pps.n < RTE_MIN(pairs, (unsigned int)MEASURE_PAIRS_MIN))
		k++;
	*out = level[k];
	out->busy = k > 0;
	out->pairs = pairs;
	out->disturbed = pairs - level[0].side[0].pps.n;
	return ret;
}

void
measure_free(struct measure *m)
{
	for (int i = 0; i < LOAD_SIDES; i++)
		load_destroy(m->side[i].load);
}
