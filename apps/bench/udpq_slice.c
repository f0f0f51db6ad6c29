/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <time.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "sl_assert.h"

#include "udpq_slice.h"

/* Turns of the reader between two of the producers on its own core: enough to read what all other
 * cores' producers can append meanwhile, and bounded. */
#define TURNS_MAX 4
/* A worker that was seen within a second divided by this has its core. */
#define FRESH_PER_S 100000

/* What one lcore does in a slice: producers first, first + step, ... */
struct job {
	struct load *load SL_CACHE_ALIGNED;
	const uint64_t *start; /* (a) BN1: TSC; 0 until all have their cores */
	uint32_t first;
	uint32_t step;
	uint64_t cycles; /* length of the slice */
	double ran;	 /* share of it that the thread ran; read when the lcore has finished */
	uint64_t seen;	 /* (a) relaxed: TSC at which the thread waited for the start; 0 not yet */
};

unsigned int
slice_producer_lcores(const struct load_shape *shape)
{
	return rte_lcore_count() - (shape->same ? 0 : 1);
}

static inline void
produce(const struct job *job)
{
	for (uint32_t i = job->first; i < job->load->shape.producers; i += job->step)
		load_produce(job->load, i, rte_rdtsc());
}

static void
park(const struct job *job)
{
	for (uint32_t i = job->first; i < job->load->shape.producers; i += job->step)
		load_park(job->load, i);
}

/* Seconds that this thread has run. */
static double
thread_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Share of the slice that the thread ran. */
static double
share_run(const struct job *job, double seconds)
{
	return seconds * (double)rte_get_tsc_hz() / (double)job->cycles;
}

static int
producer_main(void *arg)
{
	struct job *job = arg;
	uint64_t start;
	double before;

	while ((start = sl_load_acquire(job->start)) == 0) /* BN1 */
		sl_store_relaxed(&job->seen, rte_rdtsc());
	before = thread_seconds();
	while (rte_rdtsc() - start < job->cycles)
		produce(job);
	job->ran = share_run(job, thread_seconds() - before);
	park(job);
	return 0;
}

/* Wake the worker lcores that have producers; rte_eal_remote_launch orders what was written. */
static unsigned int
workers_start(struct job *jobs, const struct job *model, uint32_t first)
{
	unsigned int lcore, n = 0;

	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (first + n >= model->load->shape.producers)
			break;
		jobs[n] = *model;
		jobs[n].first = first + n;
		SL_ASSERT(rte_eal_remote_launch(producer_main, &jobs[n], lcore) == 0);
		n++;
	}
	return n;
}

static bool
workers_running(void)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (rte_eal_get_lcore_state(lcore) == RUNNING)
			return true;
	}
	return false;
}

/* Do all workers have their cores at this moment? */
static bool
workers_here(const struct job *jobs, unsigned int n)
{
	uint64_t now = rte_rdtsc(), fresh = rte_get_tsc_hz() / FRESH_PER_S;

	for (unsigned int i = 0; i < n; i++) {
		if (sl_load_relaxed(&jobs[i].seen) + fresh < now)
			return false;
	}
	return true;
}

static void
reader_run(const struct job *own, uint64_t start, struct slice_result *r)
{
	uint64_t end = start + own->cycles, last = start, now = start;
	uint64_t before = own->load->read;
	uint16_t n;

	while (now < end) {
		if (own->load->shape.same)
			produce(own);
		for (int i = 0; i < TURNS_MAX; i++) {
			n = load_read(own->load, &now);
			r->busy += n > 0 && now <= end ? now - last : 0;
			last = now;
			if (n == 0)
				break;
		}
		if (n == 0 && !own->load->shape.same)
			rte_pause();
		last = own->load->shape.same ? rte_rdtsc() : now;
	}
	r->read = own->load->read - before;
}

void
slice_run(struct load *l, uint64_t cycles, struct slice_result *result)
{
	uint32_t step = slice_producer_lcores(&l->shape);
	struct job jobs[RTE_MAX_LCORE];
	uint64_t start = 0;
	struct job own = {.load = l, .start = &start, .step = step, .cycles = cycles};
	unsigned int workers;
	double before;
	bool running;
	uint64_t now;

	*result = (struct slice_result){0};
	SL_ASSERT(step > 0);
	workers = workers_start(jobs, &own, l->shape.same ? 1 : 0);
	/* On a busy machine this takes a while, at the end of which we want our core, too. */
	while (!workers_here(jobs, workers))
		rte_delay_us_sleep(20);
	before = thread_seconds();
	now = rte_rdtsc();
	l->until = now + cycles;
	sl_store_release(&start, now); /* BN1 */
	reader_run(&own, now, result);
	before = thread_seconds() - before;
	result->cycles = (uint64_t)(before * (double)rte_get_tsc_hz());
	result->ran = share_run(&own, before);
	if (l->shape.same)
		park(&own);
	do {
		/* Look whether they run first: what they appended before is then seen. */
		running = workers_running();
	} while (load_read(l, &now) > 0 || running);
	rte_eal_mp_wait_lcore();
	for (unsigned int i = 0; i < workers; i++)
		result->ran = RTE_MIN(result->ran, jobs[i].ran);
}
