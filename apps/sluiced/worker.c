/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_common.h>
#include <rte_pause.h>

#include "daemon.h"
#include "exception.h"

/* Turns without a packet after which a worker on a shared processor lets others run. */
#define YIELD_TURNS 16
/* Turns without a packet before the first sleep. */
#define SLEEP_TURNS 64
#define SLEEP_FIRST_NS 1000
#define NSEC_PER_SEC UINT64_C(1000000000)

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void
doze(struct worker *w)
{
	struct timespec ts = {.tv_nsec = (long)w->step_ns};
	uint64_t begin = now_ns(), slept;

	sl_inet_worker_offline(w->d->inet, w->index);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	sl_inet_worker_online(w->d->inet, w->index);
	slept = now_ns() - begin;
	sl_counter_add(&w->sleeps, 1);
	sl_counter_add(&w->slept_ns, slept);
	if (slept > w->longest_ns)
		sl_store_relaxed(&w->longest_ns, slept);
	w->step_ns = RTE_MIN(w->step_ns * 2, w->sleep_max_ns);
}

static void
rest(struct worker *w, bool backoff)
{
	w->empty++;
	if (backoff && w->empty >= SLEEP_TURNS && w->sleep_max_ns >= SLEEP_FIRST_NS)
		doze(w);
	else if (w->d->crowded && w->empty >= YIELD_TURNS)
		sched_yield();
}

static void
park(struct worker *w)
{
	struct daemon *d = w->d;

	sl_inet_worker_offline(d->inet, w->index);
	sl_store_release(&w->parked, true); /* whoever sees it sees this worker's counters */
	while (sl_load_acquire(&d->park) && !sl_load_relaxed(&d->halt)) {
		if (d->crowded)
			sched_yield();
		else
			rte_pause();
	}
	sl_store_release(&w->parked, false);
	sl_inet_worker_online(d->inet, w->index);
}

static uint32_t
turn(struct worker *w)
{
	struct daemon *d = w->d;
	uint32_t work = 0;

	for (uint16_t i = 0; i < w->npairs; i++) {
		const struct worker_pair *p = &w->pair[i];
		uint16_t got = sl_inet_poll(d->inet, w->index, p->port_id, p->queue);

		if (got == 0)
			continue;
		sl_counter_add(&w->received[p->port_index], got);
		work += got;
	}
	if (w->ntaps > 0)
		work += exceptions_turn(w);
	work += services_turn(w, sl_load_acquire(&d->table)); /* pairs with publish() */
	for (uint16_t p = 0; p < d->conf.nports; p++)
		sl_inet_flush(d->inet, w->index, d->port_id[p], w->tx_queue[p]);
	return work;
}

int
worker_main(void *arg)
{
	struct worker *w = arg;
	struct daemon *d = w->d;

	/* A sleep is to end when it says, not 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	w->step_ns = SLEEP_FIRST_NS;
	sl_inet_worker_online(d->inet, w->index);
	while (!sl_load_relaxed(&d->halt)) {
		uint32_t work = turn(w);

		sl_counter_add(&w->turns, 1);
		if (work != 0) {
			sl_counter_add(&w->busy_turns, 1);
			w->empty = 0;
			w->step_ns = SLEEP_FIRST_NS;
		} else {
			rest(w, sl_load_relaxed(&d->conf.idle) == CONF_IDLE_BACKOFF);
		}
		if (SL_UNLIKELY(sl_load_acquire(&d->park)))
			park(w);
	}
	sl_inet_worker_offline(d->inet, w->index);
	sl_store_release(&w->ended, true);
	return 0;
}

/* Until every worker that has not ended is parked, or is not. */
static void
wait_parked(struct daemon *d, bool parked)
{
	for (uint16_t i = 0; i < d->nworkers; i++) {
		struct worker *w = &d->worker[i];

		while (sl_load_acquire(&w->parked) != parked && !sl_load_acquire(&w->ended))
			sched_yield();
	}
}

void
daemon_park(struct daemon *d)
{
	sl_store_release(&d->park, true);
	wait_parked(d, true);
}

void
daemon_unpark(struct daemon *d)
{
	sl_store_release(&d->park, false);
	/* One that has seen it but not said so would be taken for parked by the next audit. */
	wait_parked(d, false);
}
