/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Being the one reader, and waiting as one. */
#include <errno.h>
#include <time.h>

#include <rte_pause.h>

#include "udp_priv.h"

int64_t
udp_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

int
udp_reader_enter(struct sl_udp_sock *s, int flags)
{
	/* UD3: acquires the private queue and the slots as the last reader left them. */
	bool busy = sl_exchange_acq_rel(&s->reader, 1u) != 0;

	if (SL_UNLIKELY(sl_load_acquire(&s->closing) != 0)) { /* UD4 */
		if (!busy)
			udp_reader_leave(s);
		return -EBADF;
	}
	if (SL_UNLIKELY(busy))
		return flags & MSG_DONTWAIT ? -EAGAIN : -EBUSY;
	return 0;
}

void
udp_reader_leave(struct sl_udp_sock *s)
{
	sl_store_release(&s->reader, 0u); /* UD3 */
}

int
udp_pending(struct sl_udp_sock *s)
{
	int error = s->fault;

	if (SL_LIKELY(error == 0))
		return sl_udp_take_error(s);
	s->fault = 0;
	return error;
}

static bool
queued(struct sl_udp_sock *s)
{
	struct sl_dgram *d;

	return sl_udpq_peek_burst(s->queue, 1, &d) != 0;
}

/* Wait one turn: 0 look again, else what the wait ended with. */
static int
wait_turn(struct sl_udp_sock *s, int64_t deadline)
{
	int64_t left = -1;
	int ret;

	if (s->worker != NULL) {
		if (s->worker->poll != NULL)
			s->worker->poll(s->worker->arg);
		else
			rte_pause();
		return 0;
	}
	if (!s->sleeps) {
		rte_pause();
		return 0;
	}
	if (deadline >= 0) {
		left = deadline - udp_now_ns();
		left = left < 0 ? 0 : left;
	}
	ret = sl_udpq_wait(s->queue, left);
	return ret == -EINTR ? ret : 0;
}

/* What ends a wait besides datagrams: 0 nothing, -EBADF, a pending error. */
static int
interrupted(struct sl_udp_sock *s, bool first)
{
	if (sl_load_acquire(&s->closing) != 0) /* UD4 */
		return -EBADF;
	if (first)
		return udp_pending(s);
	/* The datagrams received so far are the result; the error stays for the next call. */
	return sl_load_relaxed(&s->error) != 0 ? -EAGAIN : 0;
}

/* Look at the queue, after a turn unless there is no time for one: 1 something is there, 0 not yet,
 * else what ends the wait. */
static int
look(struct sl_udp_sock *s, int64_t deadline, bool first, bool turn)
{
	int ret = turn ? wait_turn(s, deadline) : 0;

	if (ret == 0)
		ret = interrupted(s, first);
	return ret != 0 ? ret : queued(s);
}

int
udp_wait(struct sl_udp_sock *s, int flags, int64_t deadline, bool first)
{
	/* A call that must not wait still gives the worker's ports one turn: what arrives only gets
	 * into the queue that way. */
	bool last = flags & MSG_DONTWAIT;
	int ret;

	if (last && (!first || s->worker == NULL))
		return -EAGAIN;
	/* A worker's first turn comes before any look at the clock where no deadline can be over
	 * yet: with traffic it is the only one, and the clock would be a good part of its cost. */
	ret = s->worker != NULL && (last || deadline < 0) ? look(s, deadline, first, true) : 0;
	if (ret == 0 && last)
		ret = -EAGAIN;
	if (ret == 0 && s->conf.rcvtimeo_ns != 0) {
		int64_t limit = udp_now_ns();

		limit = s->conf.rcvtimeo_ns > INT64_MAX - limit ? INT64_MAX
								: limit + s->conf.rcvtimeo_ns;
		deadline = deadline < 0 || limit < deadline ? limit : deadline;
	}
	while (ret == 0) {
		last = deadline >= 0 && udp_now_ns() >= deadline;
		ret = look(s, deadline, first, !last || s->worker != NULL);
		if (ret == 0 && last)
			ret = -EAGAIN;
	}
	return ret < 0 ? ret : 0;
}
