/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Producers and the reader on threads of their own, for ThreadSanitizer and for the counts:
 * everything appended is either handed out in its producer's order or counted as dropped.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "queue_help.h"
#include "sl_shared.h"

#define PRODUCERS 3u
#define PER_PRODUCER 400000u

struct run {
	struct sl_udpq *q;
	bool retry;       /* the producer sends again what was refused */
	bool sleeps;      /* the reader sleeps in place of polling */
	uint32_t running; /* producers */
	uint64_t out[PRODUCERS];
	uint64_t refused[PRODUCERS];
	uint64_t disorder;
};

struct producer {
	struct run *run;
	uint32_t index;
	unsigned int seed;
	pthread_t thread;
};

/* src carries the producer, aux the sequence number. */
static void
produce_burst(struct producer *p, struct sl_dgram *d, uint16_t n, uint64_t seq)
{
	for (uint16_t i = 0; i < n; i++)
		d[i] = (struct sl_dgram){.buf = p,
			.truesize = 1 + (uint32_t)(seq + i) % 700,
			.aux = seq + i,
			.src = {(uint8_t)p->index}};
}

static void *
produce(void *arg)
{
	struct producer *p = arg;
	struct run *r = p->run;
	uint64_t seq = 0;

	while (seq < PER_PRODUCER) {
		struct sl_dgram d[64];
		uint16_t n = (uint16_t)(1 + (unsigned int)rand_r(&p->seed) % SL_COUNT_OF(d));
		enum sl_udpq_drop why;
		uint16_t taken;

		n = n < PER_PRODUCER - seq ? n : (uint16_t)(PER_PRODUCER - seq);
		produce_burst(p, d, n, seq);
		taken = sl_udpq_append_burst(r->q, p->index, d, n, &why);
		if (taken < n) {
			r->refused[p->index] += n - taken;
			sched_yield();
		}
		seq += r->retry ? taken : n;
		if (r->sleeps && rand_r(&p->seed) % 64 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 20 * 1000}, NULL);
	}
	sl_fetch_sub_acq_rel(&r->running, 1u);
	sl_udpq_wake(r->q);
	return NULL;
}

static void
read_burst(struct run *r, const struct sl_dgram *d, uint16_t n, uint64_t *next)
{
	for (uint16_t i = 0; i < n; i++) {
		uint32_t p = d[i].src[0];

		r->disorder += d[i].aux < next[p];
		r->disorder += r->retry && d[i].aux != next[p];
		next[p] = d[i].aux + 1;
		r->out[p]++;
	}
}

static void
read_all(struct run *r)
{
	uint64_t next[PRODUCERS] = {0};

	for (;;) {
		/* Looked at before the queue: what the last producer appended is then visible. */
		bool last = sl_load_acquire(&r->running) == 0;
		struct sl_dgram *d;
		uint16_t n = sl_udpq_peek_burst(r->q, 64, &d);

		read_burst(r, d, n, next);
		sl_udpq_release_burst(r->q, n);
		if (n == 0 && last)
			break;
		if (n == 0 && r->sleeps) {
			int ret = sl_udpq_wait(r->q, -1);

			CHECK(ret == 0 || ret == -ECANCELED);
		} else if (n == 0) {
			sched_yield();
		}
	}
}

static void
run_all(enum sl_udpq_mode mode, uint32_t slots, uint64_t rcvbuf, bool retry, bool sleeps)
{
	struct run r = {.retry = retry, .sleeps = sleeps, .running = PRODUCERS};
	struct producer p[PRODUCERS];
	struct sl_udpq_stats stats;
	uint64_t out = 0, refused = 0;

	r.q = queue_create(mode, PRODUCERS, slots, rcvbuf);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){.run = &r, .index = i, .seed = 11 * i + slots};
		REQUIRE(pthread_create(&p[i].thread, NULL, produce, &p[i]) == 0);
	}
	read_all(&r);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		pthread_join(p[i].thread, NULL);
		CHECK_EQ(r.out[i] + (retry ? 0 : r.refused[i]), PER_PRODUCER);
		out += r.out[i];
		refused += r.refused[i];
	}
	CHECK_EQ(r.disorder, 0);
	sl_udpq_stats(r.q, UINT32_MAX, &stats);
	CHECK_EQ(stats.appended, out);
	CHECK_EQ(stats.released, out);
	CHECK_EQ(stats.drops[SL_UDPQ_DROP_RCVBUF] + stats.drops[SL_UDPQ_DROP_SLOTS], refused);
	CHECK_EQ(stats.rmem, 0);
	CHECK(sl_udpq_check(r.q));
	printf("     %llu handed out, %llu refused, %llu takes, %llu wake-ups\n",
		(unsigned long long)out, (unsigned long long)refused,
		(unsigned long long)stats.takes, (unsigned long long)stats.wakeups);
	sl_udpq_destroy(r.q);
	CHECK_EQ(freed, 0);
}

static void
split_all_arrive(void)
{
	run_all(SL_UDPQ_SPLIT, 256, 1 << 30, true, false);
}

static void
split_small_buffer_drops(void)
{
	run_all(SL_UDPQ_SPLIT, 8, 4096, false, false);
}

static void
split_with_a_sleeping_reader(void)
{
	run_all(SL_UDPQ_SPLIT, 256, 1 << 30, true, true);
}

static void
shared_all_arrive(void)
{
	run_all(SL_UDPQ_SHARED, 256, 1 << 30, true, false);
}

static void
shared_small_buffer_drops(void)
{
	run_all(SL_UDPQ_SHARED, 8, 4096, false, false);
}

static void
shared_with_a_sleeping_reader(void)
{
	run_all(SL_UDPQ_SHARED, 64, 20000, true, true);
}

int
main(void)
{
	printf("seeds: 11 * producer + slots\n");
	SL_TEST_RUN(split_all_arrive);
	SL_TEST_RUN(split_small_buffer_drops);
	SL_TEST_RUN(split_with_a_sleeping_reader);
	SL_TEST_RUN(shared_all_arrive);
	SL_TEST_RUN(shared_small_buffer_drops);
	SL_TEST_RUN(shared_with_a_sleeping_reader);
	return test_end();
}
