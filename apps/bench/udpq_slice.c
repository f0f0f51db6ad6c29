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

/* What one lcore does in a slice: producers first, first + step, ... */
struct job {
	struct load *load;
	uint32_t first;
	uint32_t step;
	uint64_t start; /* TSC */
	uint64_t end;
	double ran; /* share of it that the thread ran; read when the lcore has finished */
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

static double
share_run(const struct job *job, double seconds)
{
	double whole = (double)(job->end - job->start) / (double)rte_get_tsc_hz();

	return seconds / whole;
}

static int
producer_main(void *arg)
{
	struct job *job = arg;
	double before;

	while (rte_rdtsc() < job->start)
		rte_pause();
	before = thread_seconds();
	while (rte_rdtsc() < job->end)
		produce(job);
	job->ran = share_run(job, thread_seconds() - before);
	park(job);
	return 0;
}

/* Start the worker lcores that have producers; rte_eal_remote_launch orders what was written. */
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

static void
reader_run(const struct job *own, struct slice_result *r)
{
	uint64_t last = rte_rdtsc(), now = last;
	uint64_t before = own->load->read;
	uint64_t began = last;
	uint16_t n;

	while (now < own->end) {
		if (own->load->shape.same)
			produce(own);
		for (int i = 0; i < TURNS_MAX; i++) {
			n = load_read(own->load, &now);
			r->busy += n > 0 ? now - last : 0;
			last = now;
			if (n == 0)
				break;
		}
		if (n == 0 && !own->load->shape.same)
			rte_pause();
		last = own->load->shape.same ? rte_rdtsc() : now;
	}
	r->read = own->load->read - before;
	r->cycles = now - began;
}

void
slice_run(struct load *l, uint64_t cycles, struct slice_result *result)
{
	/* Waking an lcore takes some tens of microseconds: all start at one time after that. */
	uint64_t start = rte_rdtsc() + rte_get_tsc_hz() / 10000;
	uint32_t step = slice_producer_lcores(&l->shape);
	struct job jobs[RTE_MAX_LCORE];
	struct job own = {.load = l, .step = step, .start = start, .end = start + cycles};
	unsigned int workers;
	double before;
	bool running;
	uint64_t now;

	*result = (struct slice_result){0};
	SL_ASSERT(step > 0);
	workers = workers_start(jobs, &own, l->shape.same ? 1 : 0);
	while (rte_rdtsc() < start)
		rte_pause();
	before = thread_seconds();
	reader_run(&own, result);
	result->ran = share_run(&own, thread_seconds() - before);
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
