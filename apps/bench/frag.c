/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The page-frag allocator: the same copies into slices of each mode, slice by slice in turn.
 * Feeders are lcores of their own (or the main one alone); each carves a burst, copies frames out
 * of a region as a peer's memory is, and puts the oldest of the packets in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memcpy.h>

#include "bench.h"
#include "sl_frag.h"

#define FEEDERS_MAX 2u
#define BURST 32u      /* carved and put together, as a feeder of the tap queue does */
#define IN_FLIGHT 512u /* packets a feeder holds: two rings' worth */
#define SOURCE (1u << 20)
#define HEADROOM 128u
#define MEMORY (16u << 20) /* bytes of chunks in every mode */
#define NAME_LEN 64

enum side {
	SIDE_LOCK,
	SIDE_MCS,
	SIDE_LCORE,
	SIDE_PAGE,
	SIDES,
};

static const char *const side_name[SIDES] = {"lock", "lock-mcs", "lcore", "page"};

struct feeder {
	struct sl_frag *f;
	uint32_t worker;
	uint32_t size;
	const uint8_t *source;
	uint64_t until;	 /* TSC */
	uint64_t *start; /* feeders that are ready: all begin together */
	uint32_t feeders;
	uint64_t packets, cycles;
};

static struct sl_frag *
side_create(enum side side)
{
	struct sl_frag_conf conf = {.workers = FEEDERS_MAX, .socket = -1};
	struct sl_frag *f = NULL;

	conf.mode = side == SIDE_LCORE	? SL_FRAG_LCORE
		    : side == SIDE_PAGE ? SL_FRAG_PAGE
					: SL_FRAG_LOCK;
	conf.lock = side == SIDE_MCS ? SL_FRAG_MCS : SL_FRAG_SPIN;
	conf.chunks = MEMORY / (side == SIDE_PAGE ? SL_FRAG_PAGE_DEFAULT : SL_FRAG_CHUNK_DEFAULT);
	return sl_frag_create(&conf, &f) == 0 ? f : NULL;
}

static int
feed(void *arg)
{
	struct feeder *me = arg;
	struct sl_frag_slice held[IN_FLIGHT];
	uint64_t n = 0, begin, now;
	uint32_t at = 0, size[BURST];

	for (uint32_t i = 0; i < BURST; i++)
		size[i] = HEADROOM + me->size;
	sl_fetch_add_relaxed(me->start, UINT64_C(1));
	while (sl_load_relaxed(me->start) < me->feeders)
		rte_pause();
	begin = rte_rdtsc();
	do {
		struct sl_frag_slice *s = &held[n % IN_FLIGHT];

		if (n >= IN_FLIGHT)
			sl_frag_put_burst(me->f, s, BURST);
		if (sl_frag_carve_burst(me->f, me->worker, size, BURST, s) != BURST)
			return -ENOBUFS; /* cannot be: there is memory for all in flight */
		for (uint32_t i = 0; i < BURST; i++) {
			rte_memcpy(s[i].addr + HEADROOM, me->source + at, me->size);
			at = (at + 2048) % (SOURCE - 2048);
		}
		n += BURST;
		now = rte_rdtsc();
	} while (now < me->until);
	me->packets = n;
	me->cycles = now - begin;
	for (uint64_t i = n > IN_FLIGHT ? n - IN_FLIGHT : 0; i < n; i++)
		sl_frag_put(me->f, &held[i % IN_FLIGHT]);
	return 0;
}

struct result {
	struct sl_frag *f;	    /* one for all slices of a case: its memory is warm */
	uint64_t packets;	    /* of all slices */
	struct bench_series cycles; /* of a feeder, per packet */
	struct bench_series rate;   /* packets per second, all feeders */
	double bytes;		    /* of memory that a packet in flight holds */
};

static int
slice_run(uint32_t feeders, uint32_t size, const uint8_t *source, double seconds, struct result *r)
{
	struct sl_frag *f = r->f;
	struct feeder feeder[FEEDERS_MAX];
	uint64_t start = 0, packets = 0, cycles = 0, hz = rte_get_tsc_hz();
	uint64_t until = rte_rdtsc() + (uint64_t)(seconds * (double)hz);
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);
	struct sl_frag_stats stats;
	int ret = 0;
	bool sums;

	for (uint32_t i = 0; i < feeders; i++)
		feeder[i] = (struct feeder){.f = f,
			.worker = i,
			.size = size,
			.source = source,
			.until = until,
			.start = &start,
			.feeders = feeders};
	if (feeders > 1)
		ret = rte_eal_remote_launch(feed, &feeder[1], lcore);
	if (ret == 0)
		ret = feed(&feeder[0]);
	if (feeders > 1 && rte_eal_wait_lcore(lcore) != 0)
		ret = -ENOBUFS;
	for (uint32_t i = 0; i < feeders; i++) {
		packets += feeder[i].packets;
		cycles += feeder[i].cycles;
	}
	r->packets += packets;
	sl_frag_stats(f, UINT32_MAX, &stats);
	/* The sums are checked in every slice: a figure from an allocator that lost one is none. */
	sums = sl_frag_check(f, NULL) && stats.slices == r->packets;
	if (ret == 0 && packets > 0 && r->cycles.n < BENCH_SLICES_MAX) {
		r->cycles.v[r->cycles.n++] = (double)cycles / (double)packets;
		r->rate.v[r->rate.n++] = (double)packets * (double)hz * feeders / (double)cycles;
		/* With the tail of each chunk, which is no packet's and nobody else's. */
		r->bytes = (double)(stats.carved + stats.tail) / (double)stats.slices;
	}
	return ret != 0 ? ret : sums ? 0 : -EPROTO;
}

static void
emit(const struct bench_opts *opts, const char *name, const struct result *r)
{
	struct bench_spread cycles = bench_spread(&r->cycles), rate = bench_spread(&r->rate);

	bench_emit(opts,
		json_pack("{s:s, s:s, s:f, s:s, s:f, s:f, s:f, s:f}", "bench", "frag", "case", name,
			"value", cycles.median, "unit", "cycles/packet", "min", cycles.min, "max",
			cycles.max, "mpps", rate.median / 1e6, "bytes_per_packet", r->bytes));
}

static void
emit_ratio(const struct bench_opts *opts, const char *name, const char *of, const struct result *a,
	const struct result *b)
{
	struct bench_spread ratio = bench_ratio(&a->rate, &b->rate);
	char text[NAME_LEN + 32];

	snprintf(text, sizeof(text), "%s/%s", name, of);
	bench_emit(opts,
		json_pack("{s:s, s:s, s:f, s:s, s:f, s:f}", "bench", "frag", "case", text, "value",
			ratio.median, "unit", "ratio", "min", ratio.min, "max", ratio.max));
}

static int
case_run(const struct bench_opts *opts, uint32_t feeders, uint32_t size, const uint8_t *source,
	struct bench_plan plan)
{
	static struct result results[SIDES];
	char name[NAME_LEN];
	int ret = 0;

	memset(results, 0, sizeof(results));
	for (int side = 0; side < SIDES && ret == 0; side++) {
		results[side].f = side_create((enum side)side);
		ret = results[side].f != NULL ? 0 : -ENOMEM;
	}
	for (unsigned int s = 0; s < plan.slices && ret == 0 && !bench_stopped(); s++)
		for (int side = 0; side < SIDES && ret == 0; side++)
			ret = slice_run(feeders, size, source, plan.seconds, &results[side]);
	for (int side = 0; side < SIDES; side++)
		sl_frag_destroy(results[side].f);
	if (ret != 0)
		return ret;
	for (int side = 0; side < SIDES; side++) {
		snprintf(name, sizeof(name), "%u-feeder/%u/%s", feeders, size, side_name[side]);
		emit(opts, name, &results[side]);
	}
	snprintf(name, sizeof(name), "%u-feeder/%u", feeders, size);
	emit_ratio(opts, name, "lock-over-page", &results[SIDE_LOCK], &results[SIDE_PAGE]);
	emit_ratio(opts, name, "lcore-over-lock", &results[SIDE_LCORE], &results[SIDE_LOCK]);
	emit_ratio(opts, name, "lcore-over-page", &results[SIDE_LCORE], &results[SIDE_PAGE]);
	return 0;
}

static int
run(const struct bench_opts *opts)
{
	static const uint32_t sizes[] = {64, 256, 576, 1500};
	uint32_t feeders_max = rte_lcore_count() > 1 ? FEEDERS_MAX : 1;
	unsigned int cases = feeders_max * (unsigned int)SL_COUNT_OF(sizes), done = 0;
	struct bench_plan plan = bench_plan(opts->seconds / cases, SIDES);
	uint8_t *source = rte_zmalloc("bench source", SOURCE, SL_CACHE_LINE);
	int ret = 0;

	if (source == NULL) {
		fprintf(stderr, "frag: no memory for 1 MB of source data\n");
		return -ENOMEM;
	}
	if (feeders_max == 1)
		fprintf(stderr, "frag: one lcore, so one feeder; two need a second CPU\n");
	for (uint32_t feeders = 1; feeders <= feeders_max && ret == 0; feeders++) {
		for (size_t i = 0; i < SL_COUNT_OF(sizes) && ret == 0 && !bench_stopped(); i++) {
			char name[NAME_LEN];

			snprintf(name, sizeof(name), "%u-feeder/%u", feeders, sizes[i]);
			bench_progress(name, done++, cases);
			if (bench_wanted(opts, name))
				ret = case_run(opts, feeders, sizes[i], source, plan);
		}
	}
	rte_free(source);
	if (ret != 0)
		fprintf(stderr, "frag: %s\n",
			ret == -EPROTO ? "the allocator's sums do not add up" : "out of memory");
	return ret;
}

const struct bench_command bench_frag = {
	.name = "frag",
	.what = "page-frag allocator: one cursor under a lock, one per lcore, a page per packet",
	.run = run,
};
