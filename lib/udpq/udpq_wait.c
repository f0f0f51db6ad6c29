/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Sleep and wake (UQ3). The reader stores `sleeping`, then looks at the intakes; a producer appends,
 * then looks at `sleeping`. With a full fence between the two steps on each side, at least one of
 * them sees the other: either the reader finds the datagram and does not sleep, or the producer
 * finds the sleeper and writes the eventfd. Without the fences both may look too early and the
 * reader sleeps on a queue that is not empty.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "sl_errno.h"
#include "udpq_priv.h"

#define NSEC_PER_SEC INT64_C(1000000000)

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Block on the eventfd until `deadline` (below 0: without limit). 0 when it was written. */
static int
sleep_until(int event_fd, int64_t deadline)
{
	struct pollfd pfd = {.fd = event_fd, .events = POLLIN};
	struct timespec left, *limit = NULL;
	uint64_t count;
	int ret;

	if (deadline >= 0) {
		int64_t ns = deadline - now_ns();

		ns = ns < 0 ? 0 : ns;
		left = (struct timespec){.tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC};
		limit = &left;
	}
	ret = sl_sys(ppoll(&pfd, 1, limit, NULL));
	if (ret <= 0)
		return ret == 0 ? -EAGAIN : ret;
	/* Never blocks; an empty counter means that an earlier read took this wake-up too. */
	ret = sl_sys((int)read(event_fd, &count, sizeof(count)));
	return ret == -EINTR ? ret : 0;
}

/* One turn: 0 ready, -EAGAIN over, -EINPROGRESS woken without cause, else the error. */
static int
wait_once(struct sl_udpq *q, int64_t deadline)
{
	int ret;

	sl_store_relaxed(&q->sleeping, 1u);
	sl_fence_seq_cst(); /* UQ3 */
	if (udpq_ready(q))
		ret = 0;
	else if (sl_exchange_acq_rel(&q->canceled, 0u) != 0) /* UQ4 */
		ret = -ECANCELED;
	else if ((ret = sleep_until(q->event_fd, deadline)) == 0)
		ret = -EINPROGRESS;
	sl_store_relaxed(&q->sleeping, 0u);
	/* The time can be over in the instant in which a producer appends. */
	return ret == -EAGAIN && udpq_ready(q) ? 0 : ret;
}

int
sl_udpq_wait(struct sl_udpq *q, int64_t timeout_ns)
{
	int64_t deadline = timeout_ns < 0 ? -1 : (int64_t)((uint64_t)now_ns() + (uint64_t)timeout_ns);
	int ret;

	if (q->mode == SL_UDPQ_LOCAL)
		return -EOPNOTSUPP;
	if (deadline < 0 && timeout_ns >= 0)
		deadline = INT64_MAX; /* further off than the clock can say */
	udpq_reader_enter(q);
	do {
		ret = wait_once(q, deadline);
	} while (ret == -EINPROGRESS);
	udpq_reader_leave(q);
	return ret;
}

void
sl_udpq_wake(struct sl_udpq *q)
{
	uint64_t one = 1;

	if (q->mode == SL_UDPQ_LOCAL)
		return;
	sl_exchange_acq_rel(&q->canceled, 1u); /* UQ4: before the write that makes the reader look */
	/* Fails only when the counter is full: the reader wakes all the same. */
	if (write(q->event_fd, &one, sizeof(one)) < 0)
		return;
}
