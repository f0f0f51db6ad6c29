/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Two lcores decide while a control thread puts one view after the other in force and destroys the
 * old ones (LB1): no datagram goes to a back end that is down in the view it was decided by. The
 * grace period is the test's own: each lcore says once a turn which round it has seen.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "balancer.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define BACKENDS 8u
#define WORKERS 2u
#define ROUNDS 400u
#define BURST 32u

static struct balancer_view *place; /* (a) LB1 */
static uint64_t round_now;	    /* (a) written by the control thread; ROUNDS ends the workers */
static uint64_t seen_round[WORKERS]; /* (a) each by its worker */
static struct balancer *balancer[WORKERS];
static uint64_t wrong, decided[WORKERS]; /* (a) wrong */

static struct balancer_view *
make_view(uint32_t n)
{
	static const char *const names[BACKENDS] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
	struct balancer_backend backends[BACKENDS];
	struct balancer_view_conf conf = {.backends = backends,
		.count = BACKENDS,
		.slots = 251,
		.seed = 3,
		.affinity = BALANCER_FLOW,
		.drain = BALANCER_MOVE};
	struct balancer_view *v;

	for (uint32_t i = 0; i < BACKENDS; i++)
		backends[i] = (struct balancer_backend){
			.name = names[i], .weight = 1 + n % 3, .generation = 1};
	backends[n % BACKENDS].state = BALANCER_DOWN;
	backends[(n / 3) % BACKENDS].state = BALANCER_DOWN;
	backends[(n / 5) % BACKENDS].generation = 1 + n / 5 / BACKENDS;
	REQUIRE(balancer_view_create(&conf, &v) == 0);
	return v;
}

static void
decide_burst(uint32_t worker, const struct balancer_view *view, uint32_t *rng)
{
	const struct maglev *table = balancer_view_table(view);
	struct flow_key key[BURST];
	const struct flow_key *keys[BURST];
	struct balancer_pick picks[BURST];

	for (uint32_t i = 0; i < BURST; i++) {
		key[i] =
			(struct flow_key){.sport = (uint16_t)(test_random(rng) >> 22), .proto = 17};
		keys[i] = &key[i];
	}
	balancer_pick_burst(balancer[worker], view, keys, BURST, picks);
	for (uint32_t i = 0; i < BURST; i++) {
		/* Names sort as indexes do, so a member's place is its index. */
		if (picks[i].backend >= BACKENDS || table->member[picks[i].backend].share == 0)
			sl_fetch_add_relaxed(&wrong, UINT64_C(1));
	}
	decided[worker] += BURST;
}

static void *
work(void *arg)
{
	uint32_t worker = (uint32_t)(uintptr_t)arg, rng = worker + 1;
	uint64_t round;

	do {
		/* What is read after this round's number was seen is this round's view or a later
		 * one. */
		round = sl_load_acquire(&round_now);
		balancer_turn(balancer[worker], round);
		decide_burst(worker, balancer_view_get(&place), &rng);
		sl_store_release(&seen_round[worker], round);
		sched_yield(); /* there may be more threads than processors */
	} while (round < ROUNDS);
	return NULL;
}

static void
views_change_under_decisions(void)
{
	struct flowtab_conf flows = {
		.flows = 512, .idle_ms = 50, .inserts_per_s = 10000000, .socket = -1};
	pthread_t thread[WORKERS];

	CHECK(balancer_view_publish(&place, make_view(0)) == NULL);
	for (uint32_t w = 0; w < WORKERS; w++) {
		REQUIRE(balancer_create(&flows, &balancer[w]) == 0);
		REQUIRE(pthread_create(&thread[w], NULL, work, (void *)(uintptr_t)w) == 0);
	}
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		struct balancer_view *old = balancer_view_publish(&place, make_view(n));

		sl_store_release(&round_now, (uint64_t)n);
		for (uint32_t w = 0; w < WORKERS; w++) {
			while (sl_load_acquire(&seen_round[w]) < n)
				sched_yield();
		}
		balancer_view_destroy(old);
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		uint64_t counts[BALANCER_REASONS], sum = 0;

		pthread_join(thread[w], NULL);
		balancer_counts(balancer[w], counts);
		for (int i = 0; i < BALANCER_REASONS; i++)
			sum += counts[i];
		CHECK_EQ(sum, decided[w]);
		CHECK(counts[BALANCER_MOVED] > 0 && counts[BALANCER_KNOWN] > 0);
		CHECK_EQ(counts[BALANCER_NO_BACKEND], 0);
		flowtab_check(balancer_flowtab(balancer[w]));
		balancer_destroy(balancer[w]);
	}
	CHECK_EQ(wrong, 0);
	balancer_view_destroy(place);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0") >= 0);
	printf("seed 1, %u rounds\n", ROUNDS);
	SL_TEST_RUN(views_change_under_decisions);
	return test_end();
}
