/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Sleeping: what ends a wait, and that nobody writes the eventfd of a reader that is awake. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "queue_help.h"
#include "udpq_priv.h"

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void
append_one(struct sl_udpq *q, uint32_t producer)
{
	enum sl_udpq_drop why;
	struct sl_dgram d;

	fill(&d, 1, 1, 10);
	CHECK_EQ(sl_udpq_append_burst(q, producer, &d, 1, &why), 1);
}

static void
no_sleep_when_local(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_LOCAL, 1, 4, 100);

	CHECK_EQ(sl_udpq_wait(q, 0), -EOPNOTSUPP);
	sl_udpq_wake(q); /* allowed, does nothing */
	CHECK_EQ(sl_udpq_wait(q, -1), -EOPNOTSUPP);
	sl_udpq_destroy(q);
}

static void
the_time_is_a_lower_bound(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 1, 4, 100);
	int64_t start = now_ns();

	CHECK_EQ(sl_udpq_wait(q, 0), -EAGAIN);
	CHECK_EQ(sl_udpq_wait(q, 20 * 1000 * 1000), -EAGAIN);
	CHECK(now_ns() - start >= 20 * 1000 * 1000);
	sl_udpq_destroy(q);
}

static void
queued_means_no_sleep(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 2, 4, 100);
	struct sl_udpq_stats stats;
	struct sl_dgram *d;

	append_one(q, 1);
	CHECK_EQ(sl_udpq_wait(q, -1), 0);
	CHECK_EQ(sl_udpq_wait(q, INT64_MAX), 0);
	CHECK_EQ(sl_udpq_peek_burst(q, 1, &d), 1);
	CHECK_EQ(sl_udpq_wait(q, -1), 0); /* shown is still queued */
	sl_udpq_release_burst(q, 1);
	CHECK_EQ(sl_udpq_wait(q, 0), -EAGAIN);
	sl_udpq_stats(q, UINT32_MAX, &stats);
	CHECK_EQ(stats.wakeups, 0); /* the reader never slept when something was appended */
	sl_udpq_destroy(q);
}

static void
a_wake_is_remembered_once(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SHARED, 1, 4, 100);

	sl_udpq_wake(q);
	sl_udpq_wake(q);
	CHECK_EQ(sl_udpq_wait(q, -1), -ECANCELED);
	CHECK_EQ(sl_udpq_wait(q, 1000), -EAGAIN);
	sl_udpq_destroy(q);
}

struct sleeper {
	struct sl_udpq *q;
	int result;
};

static void *
sleep_without_limit(void *arg)
{
	struct sleeper *s = arg;

	s->result = sl_udpq_wait(s->q, -1);
	return NULL;
}

static void
until_asleep(struct sl_udpq *q)
{
	while (sl_load_relaxed(&q->sleeping) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	/* It has said so; give it time to enter the kernel, though nothing depends on it. */
	nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
}

static void
an_append_ends_the_sleep(void)
{
	struct sleeper s = {.q = queue_create(SL_UDPQ_SPLIT, 2, 8, 100), .result = -1};
	struct sl_udpq_stats stats;
	pthread_t t;

	REQUIRE(pthread_create(&t, NULL, sleep_without_limit, &s) == 0);
	until_asleep(s.q);
	append_one(s.q, 1);
	append_one(s.q, 0);
	pthread_join(t, NULL);
	CHECK_EQ(s.result, 0);
	sl_udpq_stats(s.q, UINT32_MAX, &stats);
	CHECK_EQ(stats.wakeups, 1); /* one write for two appends */
	sl_udpq_destroy(s.q);
	CHECK_EQ(freed, 2);
}

static void
a_wake_ends_the_sleep(void)
{
	struct sleeper s = {.q = queue_create(SL_UDPQ_SPLIT, 2, 8, 100), .result = -1};
	pthread_t t;

	REQUIRE(pthread_create(&t, NULL, sleep_without_limit, &s) == 0);
	until_asleep(s.q);
	sl_udpq_wake(s.q);
	pthread_join(t, NULL);
	CHECK_EQ(s.result, -ECANCELED);
	sl_udpq_destroy(s.q);
}

static void
on_signal(int number)
{
	(void)number;
}

static void
a_signal_ends_the_sleep(void)
{
	struct sleeper s = {.q = queue_create(SL_UDPQ_SPLIT, 1, 8, 100), .result = -1};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t;

	REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
	REQUIRE(pthread_create(&t, NULL, sleep_without_limit, &s) == 0);
	until_asleep(s.q);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	CHECK_EQ(s.result, -EINTR);
	sl_udpq_destroy(s.q);
}

/* A wake-up that an earlier wait left in the eventfd must not end a later one for nothing. */
static void
a_stale_wakeup_is_no_datagram(void)
{
	struct sl_udpq *q = queue_create(SL_UDPQ_SPLIT, 1, 8, 100);
	struct sl_dgram *d;
	uint64_t one = 1;

	REQUIRE(write(q->event_fd, &one, sizeof(one)) == sizeof(one));
	CHECK_EQ(sl_udpq_wait(q, 2 * 1000 * 1000), -EAGAIN);
	CHECK_EQ(sl_udpq_peek_burst(q, 1, &d), 0);
	sl_udpq_destroy(q);
}

int
main(void)
{
	SL_TEST_RUN(no_sleep_when_local);
	SL_TEST_RUN(the_time_is_a_lower_bound);
	SL_TEST_RUN(queued_means_no_sleep);
	SL_TEST_RUN(a_wake_is_remembered_once);
	SL_TEST_RUN(an_append_ends_the_sleep);
	SL_TEST_RUN(a_wake_ends_the_sleep);
	SL_TEST_RUN(a_signal_ends_the_sleep);
	SL_TEST_RUN(a_stale_wakeup_is_no_datagram);
	return test_end();
}
