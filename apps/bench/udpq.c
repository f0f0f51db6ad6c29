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
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "udpq_measure.h"
#include "udpq_mem.h"

#define MANY_FLOWS 512
#define MANY_PRODUCERS 4
/* In the search for the fewest flows: a side is saturated when more flows bring no more than this.
 */
#define SATURATED 0.95
#define SEARCH_MAX 8
#define SEARCH_SLICES 3
#define NAME_MAX_LEN 64
#define NULL_DEVICE "net_null_sluice_bench"
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

struct run {
	const struct bench_opts *opts;
	struct load_env env;
	bool have_port;
};

static const char *const lookup_name[LOAD_LOOKUPS] = {"queue-only", "unconnected", "connected"};

/* Two places; each lookup of two with two sizes, touched or not, and the queue alone once. */
#define CASES (KIND_COUNT * 2 * (2 * 2 * 2 + 1))

static struct bench_case
case_make(enum kind kind, bool same, enum load_lookup lookup, uint32_t size, bool touch)
{
	struct bench_case c = {
		.kind = kind,
		.shape =
			{
				.producers = kind == KIND_MANY ? MANY_PRODUCERS : 1,
				.flows = kind == KIND_MANY ? MANY_FLOWS : 1,
				.lookup = lookup,
				.same = same,
				.size = size,
				.touch = touch,
			},
	};

	snprintf(c.name, sizeof(c.name), "%s/%s/%s/%u/%s", kind_name[kind],
		same ? "same-core" : "other-core", lookup_name[lookup], size,
		touch ? "copy" : "no-touch");
	return c;
}

static void
cases_make(struct bench_case cases[CASES])
{
	static const uint32_t sizes[] = {64, 1472};
	unsigned int n = 0;

	for (unsigned int i = 0; i < KIND_COUNT * 2; i++) {
		enum kind kind = (enum kind)(i / 2);
		bool same = i % 2;

		cases[n++] = case_make(kind, same, LOAD_QUEUE_ONLY, sizes[0], false);
		for (unsigned int k = 0; k < 8; k++)
			cases[n++] = case_make(kind, same,
				k < 4 ? LOAD_UNCONNECTED : LOAD_CONNECTED, sizes[k / 2 % 2], k % 2);
	}
}

static json_t *
note_make(const struct load_shape *shape, const struct measure *m)
{
	unsigned int lcores = slice_producer_lcores(shape);
	char crowded[64] = "", busy[96] = "";

	if (shape->producers > lcores)
		snprintf(crowded, sizeof(crowded), "more producers than cores: %u in turn on %u",
			shape->producers, lcores);
	if (m->busy)
		snprintf(busy, sizeof(busy), "busy machine: other programs ran in %u of %u slices",
			m->disturbed, m->pairs);
	return json_sprintf("%s%s%s", crowded, *crowded && *busy ? "; " : "", busy);
}

static double
to_ns(const struct run *run, const struct measure_side *s, double quantile)
{
	return (double)hist_quantile(&s->latency, quantile) * 1e9 / run->env.tsc_hz;
}

static json_t *
row_make(const struct run *run, const struct bench_case *c, const struct measure *m,
	const struct measure_side *s)
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
		"read", (json_int_t)l->read, "p50_ns", (json_int_t)to_ns(run, s, 0.5), "p99_ns",
		(json_int_t)to_ns(run, s, 0.99), "p999_ns", (json_int_t)to_ns(run, s, 0.999),
		"flows", (json_int_t)l->shape.flows, "producers", (json_int_t)l->shape.producers,
		"note", note_make(&l->shape, m));
}

static int
case_run(const struct run *run, struct bench_case *c, double seconds)
{
	static struct measure m;
	int ret = measure_run(&run->env, &c->shape, c->kind == KIND_FEWEST, seconds, &m);

	c->slices = m.side[LOAD_BATCHED].pps.n;
	c->done = ret == 0 && c->slices > 0;
	for (int i = 0; i < LOAD_SIDES && c->done; i++)
		bench_emit(run->opts, row_make(run, c, &m, &m.side[i]));
	c->ratio = bench_ratio(&m.side[LOAD_BATCHED].pps, &m.side[LOAD_ONE_BY_ONE].pps);
	measure_free(&m);
	return ret;
}

/* Why a case cannot run here, or NULL. */
static const char *
case_obstacle(const struct run *run, const struct bench_case *c)
{
	if (slice_producer_lcores(&c->shape) == 0)
		return "EAL has one lcore: no other core to produce on";
	if (c->shape.lookup != LOAD_QUEUE_ONLY && !run->have_port)
		return "DPDK has no net_null here: install its driver package";
	return NULL;
}

static void
skip_emit(const struct bench_opts *opts, const struct bench_case *c, const char *why)
{
	bench_emit(opts, json_pack("{s:s, s:s, s:n, s:s, s:s}", "bench", "udpq", "case", c->name,
				 "value", "unit", "skipped", "note", why));
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
		const char *obstacle = case_obstacle(run, c);

		if (!bench_wanted(run->opts, c->name))
			continue;
		bench_progress(c->name, done++, wanted);
		c->shape.flood = run->opts->flood;
		if (obstacle != NULL)
			skip_emit(run->opts, c, obstacle);
		else
			ret = case_run(run, c, seconds / wanted);
	}
	for (unsigned int i = 0; i < CASES; i++) {
		if (cases[i].done)
			ratio_emit(run->opts, &cases[i]);
	}
	return ret;
}

/* A port that gives the producers' stacks an address; nothing is received from it. */
static bool
null_port_make(struct load_env *env)
{
	struct rte_eth_conf conf = {0};

	if (rte_eal_hotplug_add("vdev", NULL_DEVICE, "") != 0)
		return false;
	return rte_eth_dev_get_port_by_name(NULL_DEVICE, &env->port) == 0 &&
	       rte_eth_dev_configure(env->port, 1, 1, &conf) == 0 &&
	       rte_eth_rx_queue_setup(env->port, 0, 64, 0, NULL, env->pool) == 0 &&
	       rte_eth_tx_queue_setup(env->port, 0, 64, 0, NULL) == 0 &&
	       rte_eth_dev_start(env->port) == 0;
}

static int
all_run(const struct run *run, double seconds)
{
	double mem_share = bench_wanted(run->opts, MEM_CASE) ? MEM_SHARE : 0;
	struct bench_case cases[CASES];
	int ret = 0;

	cases_make(cases);
	if (mem_share > 0 && cases_wanted(run, cases) == 0)
		mem_share = 1;
	if (mem_share > 0)
		ret = mem_run(run->opts, run->env.tsc_hz, seconds * mem_share);
	return ret == 0 ? cases_run(run, cases, seconds * (1 - mem_share)) : ret;
}

static int
udpq_run(const struct bench_opts *opts)
{
	struct run run = {.opts = opts, .env.tsc_hz = (double)rte_get_tsc_hz()};
	int ret;

	run.env.pool = load_pool_create(rte_lcore_count());
	if (run.env.pool == NULL) {
		fprintf(stderr, "sluice-bench: no memory for packet buffers\n");
		return -ENOMEM;
	}
	run.have_port = null_port_make(&run.env);
	ret = all_run(&run, opts->seconds);
	if (run.have_port) {
		rte_eth_dev_stop(run.env.port);
		rte_eth_dev_close(run.env.port);
		rte_eal_hotplug_remove("vdev", NULL_DEVICE);
	}
	rte_mempool_free(run.env.pool);
	return ret;
}

const struct bench_command bench_udpq = {
	.name = "udpq",
	.what = "UDP receive queue: batched against one datagram at a time",
	.run = udpq_run,
};
