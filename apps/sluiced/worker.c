/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "daemon.h"
#include "exception.h"
#include "trace.h"

uint64_t
daemon_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
daemon_event(struct daemon *d)
{
	uint64_t one = 1;

	/* It fails only when the count is full, and then the main thread is being woken. */
	if (write(d->event_fd, &one, sizeof(one)) < 0)
		return;
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

static uint16_t
poll_bridge(struct worker *w, const struct worker_pair *p)
{
	struct trace *trace = trace_of(w->d);

	if (SL_UNLIKELY(trace != NULL))
		return trace_bridge_poll(trace, w, p);
	return bridge_poll(p->bridge, w->index, p->member, p->queue);
}

static uint16_t
poll_pair(struct worker *w, const struct worker_pair *p)
{
	if (p->bridge != NULL)
		return poll_bridge(w, p);
	if (p->spread != NULL)
		return spread_poll(w, p);
	return sl_inet_poll(w->d->inet, w->index, p->port_id, p->queue);
}

static uint32_t
turn(struct worker *w)
{
	struct daemon *d = w->d;
	const struct service_table *table;
	uint32_t work = 0, served;

	for (uint16_t i = 0; i < w->npairs; i++) {
		const struct worker_pair *p = &w->pair[i];
		uint16_t got = poll_pair(w, p);

		if (got == 0)
			continue;
		if (p->target == 0)
			sl_counter_add(&w->received[p->port_index], got);
		work += got;
	}
	if (w->spread) /* no poll of the stack's does it */
		sl_inet_timers(d->inet, w->index);
	table = sl_load_acquire(&d->table); /* pairs with publish() */
	if (work != 0)
		idle_wake_readers(w, table);
	if (w->ntaps > 0)
		work += exceptions_turn(w);
	served = services_turn(w, table);
	sl_counter_add(&w->served, served);
	for (uint16_t p = 0; p < d->conf.nports; p++)
		if (d->conf.port[p].bridge == 0)
			sl_inet_flush(d->inet, w->index, d->port_id[p], w->tx_queue[p]);
	/* Only its polls say so for the stack, and a worker may have none of them. */
	sl_inet_worker_quiescent(d->inet, w->index);
	return work + served;
}

int
worker_main(void *arg)
{
	struct worker *w = arg;
	struct daemon *d = w->d;

	/* A sleep is to end when it says, not 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	idle_busy(w);
	w->billed = rte_rdtsc();
	sl_inet_worker_online(d->inet, w->index);
	while (!sl_load_relaxed(&d->halt)) {
		uint32_t work = turn(w);

		worker_bill(w, work != 0 ? &w->busy_cycles : &w->idle_cycles);
		sl_counter_add(&w->turns, 1);
		if (work != 0) {
			sl_counter_add(&w->busy_turns, 1);
			idle_busy(w);
		} else if (idle_rest(w, turn) != 0) {
			worker_bill(w, &w->busy_cycles);
			idle_busy(w);
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
	idle_wake_all(d);
	wait_parked(d, true);
}

void
daemon_unpark(struct daemon *d)
{
	sl_store_release(&d->park, false);
	/* One that has seen it but not said so would be taken for parked by the next audit. */
	wait_parked(d, false);
}
