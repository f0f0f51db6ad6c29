/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The proof that the feeders' signatures see a missing lock: the allocator is compiled into this
 * program with its lock left out, and slices must get mixed. What the race does beyond that (broken
 * lists) is undefined, so each try is a child process with a time limit; only a child that has seen
 * a foreign signature counts. A try is about one chunk long: most then end before a list breaks.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "feeders.h"

#define TRIES 1000
#define SEEN 42

static void
try_once(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, FEEDERS, 1u << 20, 64);
	struct feeder sum;

	alarm(2);
	feed_all(f, 600, &sum);
	fflush(NULL);
	_exit(sum.mixed > 0 ? SEEN : 0);
}

static void
without_the_lock_slices_get_mixed(void)
{
	int seen = 0, died = 0, tries;

	for (tries = 0; tries < TRIES && seen == 0; tries++) {
		pid_t child = fork();
		int status;

		REQUIRE(child >= 0);
		if (child == 0)
			try_once();
		REQUIRE(waitpid(child, &status, 0) == child);
		seen += WIFEXITED(status) && WEXITSTATUS(status) == SEEN;
		died += WIFSIGNALED(status);
	}
	printf("     mixed slices seen in try %d; %d tries died of broken lists\n", tries, died);
	CHECK(seen > 0);
}

int
main(void)
{
	SL_TEST_RUN(without_the_lock_slices_get_mixed);
	return test_end();
}
