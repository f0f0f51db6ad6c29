/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Signals while a driver waits: each case is a process of its own, whose main thread does nothing. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "early.h"
#include "sl_base.h"
#include "sl_test.h"

#define LATE 7 /* exit status of a process that the signal was left to */

static void
block(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	REQUIRE(sigprocmask(SIG_BLOCK, set, NULL) == 0);
}

/* Exit status of a process; what killed it comes back as a negative number. */
static int
ended(pid_t child)
{
	int status;

	REQUIRE(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void
a_signal_ends_a_process_that_waits(void)
{
	static const int signals[] = {SIGTERM, SIGINT};

	for (size_t i = 0; i < SL_COUNT_OF(signals); i++) {
		int ready[2];
		char byte;
		pid_t child;

		REQUIRE(pipe(ready) == 0);
		child = fork();
		REQUIRE(child >= 0);
		if (child == 0) {
			struct early e;
			sigset_t set;

			block(&set);
			early_begin(&e);
			REQUIRE(write(ready[1], "", 1) == 1);
			for (;;)
				poll(NULL, 0, -1);
		}
		REQUIRE(read(ready[0], &byte, 1) == 1);
		REQUIRE(kill(child, signals[i]) == 0);
		CHECK_EQ(ended(child), 0);
		close(ready[0]);
		close(ready[1]);
	}
}

/* One that was there before it began counts as well. */
static void
an_earlier_signal_counts(void)
{
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (child == 0) {
		struct early e;
		sigset_t set;

		block(&set);
		REQUIRE(kill(getpid(), SIGTERM) == 0);
		early_begin(&e);
		for (;;)
			poll(NULL, 0, -1);
	}
	CHECK_EQ(ended(child), 0);
}

static void
afterwards_signals_are_the_main_threads(void)
{
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (child == 0) {
		struct early e;
		sigset_t set;
		int sig;

		block(&set);
		early_begin(&e);
		early_end(&e);
		REQUIRE(kill(getpid(), SIGTERM) == 0);
		REQUIRE(sigwait(&set, &sig) == 0);
		_exit(sig == SIGTERM ? LATE : 1);
	}
	CHECK_EQ(ended(child), LATE);
}

int
main(void)
{
	SL_TEST_RUN(a_signal_ends_a_process_that_waits);
	SL_TEST_RUN(an_earlier_signal_counts);
	SL_TEST_RUN(afterwards_signals_are_the_main_threads);
	return test_end();
}
