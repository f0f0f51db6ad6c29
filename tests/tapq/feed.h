/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FEED_H
#define FEED_H

/*
 * Feeders with two virtqueues each into one tap queue; a taker that verifies a signature in every
 * payload. Each packet that was put must arrive whole, once, in its ring's order, or be counted.
 * SL_TAPQ_PACKETS sets how many per feeder.
 */
#include <pthread.h>
#include <sched.h>

#include "eal_help.h"

#define FEEDERS 2u
#define RINGS 2u /* of each feeder */
#define SLOT 1600u
#define RING_SIZE 32u

struct feeder {
	struct sl_tapq *q;
	uint32_t worker;
	uint64_t packets;
	uint64_t fed;
	struct driver d[RINGS];
	uint64_t sequence[RINGS];
	uint32_t *ready; /* feeders that have started: they begin together */
	pthread_t thread;
};

/* Every word of a payload says whose it is: ring, sequence. */
static inline uint64_t
signature_of(uint32_t worker, uint32_t ring, uint64_t sequence)
{
	return sequence << 8 | worker << 4 | ring;
}

static inline void
put_packet(struct feeder *f, uint32_t ring)
{
	struct driver *d = &f->d[ring];
	uint64_t s = signature_of(f->worker, ring, f->sequence[ring]);
	uint64_t addr = BASE + (f->sequence[ring] % RING_SIZE) * SLOT;
	uint32_t words = 8 + (uint32_t)(f->sequence[ring] * 13 % 180);
	uint64_t *to = (uint64_t *)(void *)driver_host(d, addr);
	struct piece p = {addr + 4, SL_TAPQ_VNET_LONG + words * 8, false};

	memset(to, 0, 16); /* the header ends on a word */
	for (uint32_t i = 0; i < words; i++)
		to[2 + i] = s;
	driver_put(d, &p, 1);
	f->sequence[ring]++;
}

static inline void *
feed(void *arg)
{
	struct feeder *f = arg;
	uint64_t put = 0;

	sl_fetch_add_relaxed(f->ready, 1u);
	while (sl_load_relaxed(f->ready) < FEEDERS)
		sched_yield();
	for (uint32_t ring = 0; f->fed < f->packets; ring = (ring + 1) % RINGS) {
		struct driver *d = &f->d[ring];
		struct sl_tapq_ring r = ring_of(d);
		bool call = false;
		uint16_t id, n;
		uint32_t len;

		while (put < f->packets && d->free_count > 0) {
			put_packet(f, ring);
			put++;
		}
		n = sl_tapq_feed_burst(f->q, f->worker, &r, RING_SIZE, &call);
		f->fed += n;
		while (driver_used(d, &id, &len))
			;
		if (n == 0)
			sched_yield(); /* the taker is behind */
	}
	return NULL;
}

struct taken {
	uint64_t packets, mixed, disorder;
	uint64_t next[FEEDERS][RINGS];
};

static inline void
verify(struct taken *t, const struct rte_mbuf *m)
{
	const uint64_t *w = rte_pktmbuf_mtod(m, const uint64_t *);
	uint32_t worker = (uint32_t)(w[0] >> 4 & 15), ring = (uint32_t)(w[0] & 15);

	t->packets++;
	for (uint32_t i = 1; i < m->pkt_len / 8; i++) {
		if (w[i] != w[0]) {
			t->mixed++;
			return;
		}
	}
	if (worker >= FEEDERS || ring >= RINGS) {
		t->mixed++;
		return;
	}
	t->disorder += w[0] >> 8 != t->next[worker][ring];
	t->next[worker][ring] = (w[0] >> 8) + 1;
}

/* Runs all; the sums are the caller's to check. */
static inline void
feed_all(struct sl_tapq *q, uint64_t packets, struct taken *t)
{
	static struct feeder f[FEEDERS];
	struct rte_mbuf *m[256];
	uint32_t ready = 0;

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < FEEDERS; i++) {
		memset(&f[i], 0, sizeof(f[i]));
		f[i].q = q;
		f[i].worker = i;
		f[i].packets = packets;
		f[i].ready = &ready;
		for (uint32_t k = 0; k < RINGS; k++)
			driver_open(&f[i].d[k], k % 2, RING_SIZE, 0);
		REQUIRE(pthread_create(&f[i].thread, NULL, feed, &f[i]) == 0);
	}
	while (t->packets < FEEDERS * packets) {
		uint16_t n = sl_tapq_take_burst(q, m, 256);

		for (uint16_t i = 0; i < n; i++)
			verify(t, m[i]);
		/* One by one, which is compiled here: ThreadSanitizer sees no order in what DPDK's
		 * libraries do. */
		for (uint16_t i = 0; i < n; i++)
			rte_pktmbuf_free(m[i]);
		if (n == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < FEEDERS; i++) {
		pthread_join(f[i].thread, NULL);
		for (uint32_t k = 0; k < RINGS; k++)
			driver_close(&f[i].d[k]);
	}
}

#endif
