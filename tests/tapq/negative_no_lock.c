/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The feeders' test over an allocator whose lock was compiled out must see mixed payloads. A broken
 * list may end a try in any way, so each runs in a child of its own, with a time limit.
 */
#include <sys/wait.h>

#include "feed.h"

#define TRIES 60
#define SEEN 42

static void
try_once(void)
{
	struct sl_tapq *q;
	struct taken t;

	alarm(2);
	/* Few refills, so that most tries end before a list breaks. A slice handed out twice shows
	 * as a mixed payload, or as a packet that came twice while the other one is missing. */
	chunk_size = 1u << 20;
	q = tapq_open(SL_FRAG_LOCK, FEEDERS, 4, 512);
	feed_all(q, 3000, &t);
	fflush(NULL);
	_exit(t.mixed + t.disorder > 0 ? SEEN : 0);
}

static void
without_the_lock_packets_get_mixed(void)
{
	int seen = 0, died = 0, tries;

	for (tries = 0; tries < TRIES && seen == 0; tries++) {
		pid_t child = fork();
		int status;

		REQUIRE(child >= 0);
		if (child == 0) {
			eal_start(); /* after the fork: EAL's threads would not come along */
			for (int k = 0; k < 20; k++)
				if (fork() == 0)
					try_once();
			for (int k = 0; k < 20; k++) {
				REQUIRE(wait(&status) > 0);
				seen += WIFEXITED(status) && WEXITSTATUS(status) == SEEN;
			}
			_exit(seen > 0 ? SEEN : 0);
		}
		REQUIRE(waitpid(child, &status, 0) == child);
		seen += WIFEXITED(status) && WEXITSTATUS(status) == SEEN;
		died += WIFSIGNALED(status);
	}
	printf("     mixed packets seen in round %d of 20 tries; %d rounds died\n", tries, died);
	CHECK(seen > 0);
}

int
main(void)
{
	SL_TEST_RUN(without_the_lock_packets_get_mixed);
	return test_end();
}
