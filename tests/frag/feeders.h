/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FEEDERS_H
#define FEEDERS_H

/*
 * Threads that carve, sign what they carved, pass half of it to the neighbour, and verify the
 * signature before it is put: a slice that was handed out twice shows a foreign signature. Now and
 * then they carve and put a burst, which leaves the other's chunk half used.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <rte_ring.h>

#include "frag_help.h"

#define FEEDERS 2u
#define WINDOW 64u /* slices that a feeder holds before it gives one away */
#define FEED_BURST 4u

struct signed_slice {
	struct sl_frag_slice slice;
	uint64_t signature;
};

/* Between one feeder and the other: a tiny single-producer single-consumer queue. */
struct passing {
	uint32_t put SL_CACHE_ALIGNED;
	uint32_t got SL_CACHE_ALIGNED;
	struct signed_slice slot[256] SL_CACHE_ALIGNED;
};

struct feeder {
	struct sl_frag *f;
	uint32_t worker;
	uint64_t slices; /* to carve */
	unsigned int seed;
	struct passing *in, *out;
	uint32_t *ready; /* feeders that have started: they begin together */
	uint64_t carved, refused, wasted, mixed;
	uint64_t left_out; /* behind the one that a burst was refused */
	pthread_t thread;
};

static inline void
sign(const struct signed_slice *s)
{
	uint64_t *words = (uint64_t *)s->slice.addr;

	for (uint32_t i = 0; i < s->slice.size / 8; i += 4)
		words[i] = s->signature;
	words[s->slice.size / 8 - 1] = s->signature;
}

static inline bool
signature_holds(const struct signed_slice *s)
{
	const uint64_t *words = (const uint64_t *)s->slice.addr;

	for (uint32_t i = 0; i < s->slice.size / 8; i += 4)
		if (words[i] != s->signature)
			return false;
	return words[s->slice.size / 8 - 1] == s->signature;
}

static inline void
give_back(struct feeder *me, const struct signed_slice *s)
{
	me->mixed += !signature_holds(s);
	sl_frag_put(me->f, &s->slice);
}

static inline bool
pass(struct passing *p, const struct signed_slice *s)
{
	if (p->put - sl_load_acquire(&p->got) == SL_COUNT_OF(p->slot)) /* frees slots for reuse */
		return false;
	p->slot[p->put % SL_COUNT_OF(p->slot)] = *s;
	sl_store_release(&p->put, p->put + 1);
	return true;
}

static inline void
take_passed(struct feeder *me)
{
	uint32_t put = sl_load_acquire(&me->in->put);

	while (me->in->got != put) {
		give_back(me, &me->in->slot[me->in->got % SL_COUNT_OF(me->in->slot)]);
		sl_store_release(&me->in->got, me->in->got + 1);
	}
}

/* Carve, sign, verify and put a burst; the slices that it had, of FEED_BURST wanted. */
static inline void
feed_burst(struct feeder *me, uint64_t n)
{
	struct signed_slice s[FEED_BURST];
	struct sl_frag_slice slice[FEED_BURST];
	uint32_t size[FEED_BURST];
	uint16_t got;

	for (uint32_t i = 0; i < FEED_BURST; i++)
		size[i] = 60 + (uint32_t)rand_r(&me->seed) % 1500;
	got = sl_frag_carve_burst(me->f, me->worker, size, FEED_BURST, slice);
	for (uint16_t i = 0; i < got; i++) {
		s[i] = (struct signed_slice){.slice = slice[i], .signature = n << 8 | me->worker};
		sign(&s[i]);
	}
	for (uint16_t i = 0; i < got; i++)
		me->mixed += !signature_holds(&s[i]);
	sl_frag_put_burst(me->f, slice, got);
	me->carved += got;
	me->refused += got < FEED_BURST; /* counted once a burst */
	me->left_out += got < FEED_BURST ? FEED_BURST - 1 - got : 0;
}

static inline void *
feed(void *arg)
{
	struct feeder *me = arg;
	struct signed_slice window[WINDOW];
	uint32_t held = 0;

	sl_fetch_add_relaxed(me->ready, 1u);
	while (sl_load_relaxed(me->ready) < FEEDERS)
		sched_yield();
	for (uint64_t n = 0; n < me->slices; n++) {
		uint32_t size = 60 + (uint32_t)rand_r(&me->seed) % 1500;
		struct signed_slice s = {.signature = n << 8 | me->worker};

		take_passed(me);
		if (n % 7 == 0 && n + FEED_BURST <= me->slices) {
			feed_burst(me, n);
			n += FEED_BURST - 1;
			continue;
		}
		if (held == WINDOW) {
			uint32_t i = (uint32_t)rand_r(&me->seed) % WINDOW;

			if (i % 2 == 0 || !pass(me->out, &window[i]))
				give_back(me, &window[i]);
			window[i] = window[--held];
		}
		if (sl_frag_carve(me->f, me->worker, size, &s.slice) != 0) {
			me->refused++;
			if (held > 0)
				give_back(me, &window[--held]);
			sched_yield();
			continue;
		}
		me->carved++;
		if (n % 101 == 0) { /* a copy that failed */
			me->wasted += s.slice.size;
			sl_frag_waste(me->f, &s.slice);
			continue;
		}
		sign(&s);
		window[held++] = s;
	}
	while (held > 0)
		give_back(me, &window[--held]);
	return NULL;
}

/* Runs the feeders over f and adds up what they saw in *sum. */
static inline void
feed_all(struct sl_frag *f, uint64_t slices, struct feeder *sum)
{
	static struct passing between[FEEDERS];
	struct feeder feeder[FEEDERS];
	uint32_t ready = 0;

	memset(between, 0, sizeof(between));
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < FEEDERS; i++) {
		feeder[i] = (struct feeder){.f = f,
			.worker = i,
			.slices = slices,
			.seed = 7 + i,
			.ready = &ready,
			.in = &between[i],
			.out = &between[(i + 1) % FEEDERS]};
		REQUIRE(pthread_create(&feeder[i].thread, NULL, feed, &feeder[i]) == 0);
	}
	for (uint32_t i = 0; i < FEEDERS; i++)
		pthread_join(feeder[i].thread, NULL);
	for (uint32_t i = 0; i < FEEDERS; i++) {
		take_passed(&feeder[i]);
		sum->carved += feeder[i].carved;
		sum->refused += feeder[i].refused;
		sum->left_out += feeder[i].left_out;
		sum->wasted += feeder[i].wasted;
		sum->mixed += feeder[i].mixed;
	}
}

#endif
