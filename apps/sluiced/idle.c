/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What a worker does when there is nothing to do: `idle` of [sluiced].
 *
 *   poll        looks again
 *   backoff     sleeps for a time that grows up to what its receive rings bear (sleep.h)
 *   interrupt   arms its receive queues, looks once more, and sleeps until one of them, another
 * worker or a control thread wakes it, IDLE_WAIT_MS at most: timers have to run monitor     has the
 * processor watch for a write to its receive queues, as long as backoff would sleep
 *
 * ID1: a worker that is about to sleep says so, and then looks at its queues; another one that has
 * put something into them then looks whether it sleeps. Each stores its own word before it reads
 * the other's, with a full fence between, so one of them sees the other.
 *
 * A sleeper is offline for grace periods.
 */
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_power_intrinsics.h>

#include "../common/app.h"
#include "daemon.h"
#include "sl_errno.h"

/* Turns without a packet after which a worker on a shared processor lets others run. */
#define YIELD_TURNS 16
/* Turns without a packet before the first sleep. */
#define SLEEP_TURNS 64
/* Arming and waking cost some microseconds, so that is not done between the packets of a burst. */
#define INTERRUPT_TURNS 512
#define SLEEP_FIRST_NS 1000
#define NSEC_PER_SEC UINT64_C(1000000000)
#define IDLE_WAIT_MS 10
#define EVENTS 16

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- sleeping ---- */

static uint64_t
begin_sleep(struct worker *w)
{
	worker_bill(w, &w->idle_cycles);
	sl_inet_worker_offline(w->d->inet, w->index);
	return now_ns();
}

static void
end_sleep(struct worker *w, uint64_t begin)
{
	uint64_t slept = now_ns() - begin;

	sl_inet_worker_online(w->d->inet, w->index);
	sl_counter_add(&w->sleeps, 1);
	sl_counter_add(&w->slept_ns, slept);
	if (slept > w->longest_ns)
		sl_store_relaxed(&w->longest_ns, slept);
	worker_bill(w, &w->sleep_cycles);
}

static void
doze(struct worker *w)
{
	struct timespec ts = {.tv_nsec = (long)w->step_ns};
	uint64_t begin = begin_sleep(w);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	end_sleep(w, begin);
	w->step_ns = RTE_MIN(w->step_ns * 2, w->sleep_max_ns);
}

static void
arm(const struct worker *w, bool on)
{
	for (uint16_t i = 0; i < w->npairs; i++) {
		const struct worker_pair *p = &w->pair[i];

		if (p->target != 0)
			continue; /* a ring, which target 0 wakes for */
		/* One that fails costs no packet: the sleep has an end. */
		if (on)
			(void)rte_eth_dev_rx_intr_enable(p->port_id, p->queue);
		else
			(void)rte_eth_dev_rx_intr_disable(p->port_id, p->queue);
	}
}

static bool
wanted(const struct worker *w)
{
	return sl_load_relaxed(&w->d->halt) || sl_load_relaxed(&w->d->park);
}

static void
count_events(struct worker *w, const struct rte_epoll_event *events, int n)
{
	if (n <= 0)
		sl_counter_add(&w->timeouts, 1);
	for (int i = 0; i < n; i++) {
		if (events[i].epdata.data == &w->wake_fd)
			sl_counter_add(&w->wakes, 1);
		else
			sl_counter_add(&w->interrupts, 1);
	}
}

/* Returns what it found before it would have slept. */
static uint32_t
wait_interrupt(struct worker *w, uint32_t (*look)(struct worker *w))
{
	struct rte_epoll_event events[EVENTS];
	uint32_t found;
	uint64_t begin;

	arm(w, true);
	sl_store_relaxed(&w->asleep, true); /* ID1 */
	sl_fence_seq_cst();		    /* ID1 */
	found = look(w);
	if (found == 0 && !wanted(w)) {
		begin = begin_sleep(w);
		count_events(w, events, rte_epoll_wait(w->epoll_fd, events, EVENTS, IDLE_WAIT_MS));
		end_sleep(w, begin);
	}
	sl_store_relaxed(&w->asleep, false);
	arm(w, false);
	return found;
}

static void
watch(struct worker *w)
{
	struct rte_power_monitor_cond cond[CONF_PORTS_MAX];
	uint64_t begin, until;
	uint32_t n = 0;

	for (uint16_t i = 0; i < w->npairs && n < CONF_PORTS_MAX; i++)
		if (w->pair[i].target == 0 && rte_eth_get_monitor_addr(w->pair[i].port_id,
						      w->pair[i].queue, &cond[n]) == 0)
			n++;
	begin = begin_sleep(w);
	until = rte_get_tsc_cycles() + w->sleep_max_ns * rte_get_tsc_hz() / NSEC_PER_SEC;
	if (n == 1)
		(void)rte_power_monitor(&cond[0], until);
	else if (n > 1)
		(void)rte_power_monitor_multi(cond, n, until);
	end_sleep(w, begin);
}

void
idle_busy(struct worker *w)
{
	w->empty = 0;
	w->step_ns = SLEEP_FIRST_NS;
}

uint32_t
idle_rest(struct worker *w, uint32_t (*look)(struct worker *w))
{
	enum conf_idle idle = sl_load_relaxed(&w->d->conf.idle);
	bool long_enough = w->sleep_max_ns >= SLEEP_FIRST_NS;

	w->empty++;
	if (idle == CONF_IDLE_INTERRUPT && w->empty >= INTERRUPT_TURNS)
		return wait_interrupt(w, look);
	if (idle == CONF_IDLE_BACKOFF && w->empty >= SLEEP_TURNS && long_enough)
		doze(w);
	else if (idle == CONF_IDLE_MONITOR && w->empty >= SLEEP_TURNS && long_enough)
		watch(w);
	else if (w->d->crowded && w->empty >= YIELD_TURNS)
		sched_yield();
	return 0;
}

/* ---- waking ---- */

static void
wake_up(struct worker *w)
{
	uint64_t one = 1;

	/* It fails only when the count is full, and then it is awake. */
	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void
idle_wake(struct worker *to)
{
	if (!to->d->interrupts)
		return;
	sl_fence_seq_cst();		  /* ID1 */
	if (sl_load_relaxed(&to->asleep)) /* ID1 */
		wake_up(to);
}

void
idle_wake_all(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nworkers && d->interrupts; i++)
		wake_up(&d->worker[i]);
}

void
idle_wake_readers(struct worker *w, const struct service_table *table)
{
	struct daemon *d = w->d;

	if (d->nworkers == 1 || sl_load_relaxed(&d->conf.idle) != CONF_IDLE_INTERRUPT)
		return;
	sl_fence_seq_cst(); /* ID1 */
	for (uint16_t i = 0; table != NULL && i < table->n; i++) {
		const struct service *s = table->service[i];
		struct service_sums sums = {0};

		if (s->worker == w->index ||
			!sl_load_relaxed(&d->worker[s->worker].asleep)) /* ID1 */
			continue;
		service_sums(s, &sums);
		/* Another worker may wake it as well; that costs an empty turn. */
		if (sums.held != 0)
			wake_up(&d->worker[s->worker]);
	}
}

/* ---- start, reload, end ---- */

static bool
monitor_multi(void)
{
	struct rte_cpu_intrinsics cpu = {0};

	rte_cpu_get_intrinsics_support(&cpu);
	return cpu.power_monitor_multi != 0;
}

/* Can the queues of all workers be watched? */
static void
check_monitor(const struct daemon *d, uint32_t line, struct mistakes *m)
{
	struct rte_power_monitor_cond cond;

	for (uint16_t i = 0; i < d->nworkers; i++) {
		const struct worker *w = &d->worker[i];

		if (w->npairs > 1 && !monitor_multi()) {
			mistake(m, line,
				"[sluiced] idle = monitor: lcore %u receives from %u queues, and "
				"this "
				"processor watches one; write interrupt or backoff.",
				w->cpu, w->npairs);
			return;
		}
		for (uint16_t k = 0; k < w->npairs; k++) {
			if (w->pair[k].target != 0 || rte_eth_get_monitor_addr(w->pair[k].port_id,
							      w->pair[k].queue, &cond) == 0)
				continue;
			mistake(m, line,
				"[sluiced] idle = monitor: the driver of [port %s] says of no "
				"address "
				"to watch; write interrupt or backoff.",
				d->conf.port[w->pair[k].port_index].name);
			return;
		}
	}
}

void
idle_check(const struct daemon *d, const struct conf *next, struct mistakes *m)
{
	conf_idle_machine(next, m);
	if (next->idle == CONF_IDLE_MONITOR && mistakes_count(m) == 0)
		check_monitor(d, next->idle_line, m);
	if (next->idle == CONF_IDLE_INTERRUPT && !d->interrupts)
		mistake(m, next->idle_line,
			"[sluiced] idle = interrupt: ports were started without interrupts; "
			"restart, "
			"or write backoff.");
}

static void
worker_open(struct daemon *d, struct worker *w)
{
	int ret;

	w->epoll_fd = sl_sys(epoll_create1(EPOLL_CLOEXEC));
	w->wake_fd = sl_sys(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (w->epoll_fd < 0 || w->wake_fd < 0)
		app_fail("no descriptor to sleep on.");
	w->wake_event.epdata.event = EPOLLIN | EPOLLET;
	w->wake_event.epdata.data = &w->wake_fd;
	ret = rte_epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &w->wake_event);
	for (uint16_t i = 0; i < w->npairs && ret == 0; i++) {
		const struct worker_pair *p = &w->pair[i];

		if (p->target != 0)
			continue;
		ret = rte_eth_dev_rx_intr_ctl_q(
			p->port_id, p->queue, w->epoll_fd, RTE_INTR_EVENT_ADD, NULL);
		if (ret != 0)
			app_fail(
				"%s:%u: [sluiced] idle = interrupt: the driver of [port %s] has no "
				"receive interrupts; write backoff.",
				d->path, d->conf.idle_line, d->conf.port[p->port_index].name);
	}
	/* Not edge-triggered: a turn may leave frames in a tap. */
	for (uint16_t i = 0; i < w->ntaps && ret == 0; i++) {
		struct worker_tap *t = &w->tap[i];

		t->event.epdata.event = EPOLLIN;
		t->event.epdata.data = &t->fd;
		ret = rte_epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, t->fd, &t->event);
	}
	if (ret != 0)
		app_fail("cannot wait for events.");
}

void
idle_open(struct daemon *d)
{
	struct mistakes *m = mistakes_create(d->path);

	d->interrupts = d->conf.idle == CONF_IDLE_INTERRUPT;
	if (m == NULL)
		app_fail("no memory.");
	idle_check(d, &d->conf, m);
	if (mistakes_count(m) != 0)
		app_fail("%s", mistakes_text(m, 0));
	mistakes_free(m);
	for (uint16_t i = 0; i < d->nworkers && d->interrupts; i++)
		worker_open(d, &d->worker[i]);
}

void
idle_close(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nworkers && d->interrupts; i++) {
		struct worker *w = &d->worker[i];

		for (uint16_t k = 0; k < w->npairs; k++)
			if (w->pair[k].target == 0)
				(void)rte_eth_dev_rx_intr_ctl_q(w->pair[k].port_id,
					w->pair[k].queue, w->epoll_fd, RTE_INTR_EVENT_DEL, NULL);
		close(w->wake_fd);
		close(w->epoll_fd);
	}
}
