/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The receive queue: batched (lib/udpq) against one datagram at a time, both in one run.
 * doc/benchmarks.md says what each case and member means.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_memcpy.h>

#include "udpq_mem.h"
#include "udpq_slice.h"

#define MANY_FLOWS 512
#define MANY_PRODUCERS 4
/* In the search for the fewest flows: a side is saturated when more flows bring no more than this.
 */
#define SATURATED 0.95
#define SEARCH_MAX 8
#define SEARCH_SLICES 3
#define NAME_MAX_LEN 64
/* Of the whole run, for the rows from memory. */
#define MEM_SHARE 0.1

static const char *const side_name[LOAD_SIDES] = {
	[LOAD_BATCHED] = "batched",
	[LOAD_ONE_BY_ONE] = "one-at-a-time",
};

enum kind { KIND_MANY, KIND_FEWEST, KIND_ONE, KIND_COUNT };

static const char *const kind_name[KIND_COUNT] = {"many", "fewest", "one"};

struct bench_case {
	char name[NAME_MAX_LEN];
	enum kind kind;
	struct load_shape shape;
	/* result */
	bool done;
	struct bench_spread ratio;
	unsigned int slices;
};

/* One side of a case while it runs. */
struct side {
	struct load *load;
	struct bench_series pps;
	struct slice_result sum;
};

struct run {
	const struct bench_opts *opts;
	struct rte_mempool *pool;
	double tsc_hz;
};

#define CASES (KIND_COUNT * 2 * 2 * 2)

static void
case_make(struct bench_case *c, enum kind kind, bool same, uint32_t size, bool touch)
{
	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%s/%s/%u/%s", kind_name[kind],
		same ? "same-core" : "other-core", size, touch ? "copy" : "no-touch");
	c->kind = kind;
	c->shape = (struct load_shape){
		.producers = kind == KIND_MANY ? MANY_PRODUCERS : 1,
		.flows = kind == KIND_MANY ? MANY_FLOWS : 1,
		.same = same,
		.size = size,
		.touch = touch,
	};
}

static void
cases_make(struct bench_case cases[CASES])
{
	static const uint32_t sizes[] = {64, 1472};
	unsigned int n = 0;

	for (int kind = 0; kind < KIND_COUNT; kind++) {
		for (int same = 0; same < 2; same++) {
			for (unsigned int s = 0; s < 2; s++) {
				case_make(&cases[n++], (enum kind)kind, same, sizes[s], false);
				case_make(&cases[n++], (enum kind)kind, same, sizes[s], true);
			}
		}
	}
}

static int
slice(const struct run *run, struct side *side, double seconds)
{
	struct slice_result r;

	/* On a busy machine the reader may not have run at all: such a slice says nothing. */
	do {
		slice_run(side->load, (uint64_t)(seconds * run->tsc_hz), &r);
	} while (r.cycles == 0);
	if (side->pps.n < BENCH_SLICES_MAX)
		side->pps.v[side->pps.n++] = (double)r.read * run->tsc_hz / (double)r.cycles;
	side->sum.read += r.read;
	side->sum.cycles += r.cycles;
	side->sum.busy += r.busy;
	return load_check(side->load);
}

/* Median packets per second with that many flows, one on each producer. */
static int
probe(const struct run *run, enum load_side which, const struct load_shape *shape, double seconds,
	double *pps)
{
	struct side side = {0};
	int ret = load_create(which, shape, run->pool, run->tsc_hz, &side.load);

	for (int i = 0; i < SEARCH_SLICES && ret == 0; i++)
		ret = slice(run, &side, seconds);
	load_destroy(side.load);
	*pps = bench_spread(&side.pps).median;
	return ret;
}

/* The fewest flows beyond which this side's reader gets no more. */
static int
fewest_find(const struct run *run, enum load_side which, struct load_shape *shape, double seconds)
{
	double pps[SEARCH_MAX + 1] = {0}, best = 0;
	int ret = 0;

	for (uint32_t n = 1; n <= SEARCH_MAX && ret == 0; n *= 2) {
		shape->flows = n;
		shape->producers = n;
		ret = probe(run, which, shape, seconds, &pps[n]);
		best = RTE_MAX(best, pps[n]);
	}
	for (uint32_t n = SEARCH_MAX; n >= 1; n /= 2) {
		if (pps[n] >= SATURATED * best)
			shape->flows = n;
	}
	shape->producers = shape->flows;
	return ret;
}

static json_t *
note_make(const struct load_shape *shape)
{
	unsigned int lcores = slice_producer_lcores(shape);
	char text[128];

	if (shape->producers <= lcores)
		return json_string("");
	snprintf(text, sizeof(text), "more producers than cores: %u in turn on %u",
		shape->producers, lcores);
	return json_string(text);
}

static double
to_ns(const struct run *run, const struct load *l, double quantile)
{
	return (double)hist_quantile(&l->latency, quantile) * 1e9 / run->tsc_hz;
}

static json_t *
row_make(const struct run *run, const struct bench_case *c, const struct side *s)
{
	const struct load *l = s->load;
	struct load_producer sum;
	double packets = s->sum.read > 0 ? (double)s->sum.read : 1;

	load_sum(l, &sum);
	return json_pack(
		"{s:s, s:s, s:I, s:s, s:s, s:f, s:f, s:f, s:{s:I, s:I}, s:I, s:I, s:I, s:I,"
		" s:I, s:I, s:I, s:o}",
		"bench", "udpq", "case", c->name, "value", (json_int_t)bench_spread(&s->pps).median,
		"unit", "pps", "side", side_name[l->side], "cycles_per_packet",
		(double)s->sum.cycles / packets, "reader_cycles", (double)s->sum.busy / packets,
		"busy_percent",
		100.0 * (double)s->sum.busy / (double)RTE_MAX(s->sum.cycles, UINT64_C(1)), "drops",
		"rcvbuf", (json_int_t)sum.refused[SL_UDPQ_DROP_RCVBUF], "slots",
		(json_int_t)sum.refused[SL_UDPQ_DROP_SLOTS], "appended", (json_int_t)sum.taken,
		"read", (json_int_t)l->read, "p50_ns", (json_int_t)to_ns(run, l, 0.5), "p99_ns",
		(json_int_t)to_ns(run, l, 0.99), "p999_ns", (json_int_t)to_ns(run, l, 0.999),
		"flows", (json_int_t)l->shape.flows, "producers", (json_int_t)l->shape.producers,
		"note", note_make(&l->shape));
}

static int
case_measure(const struct run *run, struct bench_case *c, double seconds, struct side *side)
{
	struct bench_plan plan = bench_plan(seconds, LOAD_SIDES);
	int ret = 0;

	for (int i = 0; i < LOAD_SIDES && ret == 0; i++) {
		struct load_shape shape = c->shape;

		if (c->kind == KIND_FEWEST)
			ret = fewest_find(run, (enum load_side)i, &shape, plan.seconds / 4);
		if (ret == 0)
			ret = load_create(
				(enum load_side)i, &shape, run->pool, run->tsc_hz, &side[i].load);
	}
	for (unsigned int n = 0; n < plan.slices && ret == 0 && !bench_stopped(); n++) {
		for (int i = 0; i < LOAD_SIDES && ret == 0; i++)
			ret = slice(run, &side[i], plan.seconds);
	}
	return ret;
}

static int
case_run(const struct run *run, struct bench_case *c, double seconds)
{
	struct side side[LOAD_SIDES] = {{0}};
	int ret = case_measure(run, c, seconds, side);

	for (int i = 0; i < LOAD_SIDES; i++) {
		if (ret == 0 && side[i].pps.n > 0)
			bench_emit(run->opts, row_make(run, c, &side[i]));
		load_destroy(side[i].load);
	}
	c->ratio = bench_ratio(&side[LOAD_BATCHED].pps, &side[LOAD_ONE_BY_ONE].pps);
	c->slices = side[LOAD_BATCHED].pps.n;
	c->done = ret == 0 && c->slices > 0;
	return ret;
}

static void
skip_emit(const struct bench_opts *opts, const struct bench_case *c)
{
	bench_emit(opts, json_pack("{s:s, s:s, s:n, s:s, s:s}", "bench", "udpq", "case", c->name,
				 "value", "unit", "skipped", "note",
				 "EAL has one lcore: no other core to produce on"));
}

static void
ratio_emit(const struct bench_opts *opts, const struct bench_case *c)
{
	bench_emit(opts, json_pack("{s:s, s:s, s:f, s:s, s:s, s:f, s:f, s:i}", "bench", "udpq",
				 "case", c->name, "value", c->ratio.median, "unit", "x", "ratio",
				 "batched/one-at-a-time", "min", c->ratio.min, "max", c->ratio.max,
				 "slices", (int)c->slices));
}

static unsigned int
cases_wanted(const struct run *run, const struct bench_case cases[CASES])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CASES; i++)
		n += bench_wanted(run->opts, cases[i].name);
	return n;
}

static int
cases_run(const struct run *run, struct bench_case cases[CASES], double seconds)
{
	unsigned int wanted = cases_wanted(run, cases), done = 0;
	int ret = 0;

	for (unsigned int i = 0; i < CASES && ret == 0 && !bench_stopped(); i++) {
		struct bench_case *c = &cases[i];

		if (!bench_wanted(run->opts, c->name))
			continue;
		bench_progress(c->name, done++, wanted);
		c->shape.flood = run->opts->flood;
		if (slice_producer_lcores(&c->shape) == 0)
			skip_emit(run->opts, c);
		else
			ret = case_run(run, c, seconds / wanted);
	}
	for (unsigned int i = 0; i < CASES; i++) {
		if (cases[i].done)
			ratio_emit(run->opts, &cases[i]);
	}
	return ret;
}

static int
udpq_run(const struct bench_opts *opts)
{
	struct run run = {.opts = opts, .tsc_hz = (double)rte_get_tsc_hz()};
	struct bench_case cases[CASES];
	double mem_share = bench_wanted(opts, MEM_CASE) ? MEM_SHARE : 0;
	int ret = 0;

	run.pool = load_pool_create(rte_lcore_count());
	if (run.pool == NULL) {
		fprintf(stderr, "sluice-bench: no memory for packet buffers\n");
		return -ENOMEM;
	}
	cases_make(cases);
	if (mem_share > 0 && cases_wanted(&run, cases) == 0)
		mem_share = 1;
	if (mem_share > 0)
		ret = mem_run(opts, run.tsc_hz, opts->seconds * mem_share);
	if (ret == 0)
		ret = cases_run(&run, cases, opts->seconds * (1 - mem_share));
	rte_mempool_free(run.pool);
	return ret;
}

const struct bench_command bench_udpq = {
	.name = "udpq",
	.what = "UDP receive queue: batched against one datagram at a time",
	.run = udpq_run,
};
