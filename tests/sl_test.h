/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TEST_H
#define SL_TEST_H

/**
 * @file
 * What a test program needs: CHECK counts and goes on, REQUIRE ends the program, SKIP prints why.
 * A test case is a function without arguments; SL_TEST_RUN calls it and reports by name.
 * The last line of every program is "N passed, N failed, N skipped", in cases.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int test_passed, test_failed, test_skipped;
static int test_bad;          /* failed checks of the running case */
static const char *test_why;  /* set when the running case was skipped */

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			test_bad++;                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x);          \
		}                                                                                  \
	} while (0)

/** Compares two integers and prints both when they differ. */
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long test_a = (long long)(a), test_b = (long long)(b);                        \
		if (test_a != test_b) {                                                            \
			test_bad++;                                                                \
			fprintf(stderr, "%s:%d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__,  \
				#a, test_a, #b, test_b);                                           \
		}                                                                                  \
	} while (0)

/** For what the rest of the program cannot do without. */
#define REQUIRE(x)                                                                                 \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #x);          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/**
 * The next number of a sequence that *state alone decides. Take the upper bits: the lower ones come
 * around soon.
 */
static inline uint32_t
test_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state;
}

#define TEST_PATIENCE_S 30

/** Of one wait for another thread, process or the kernel; zero it before, and after each success. */
struct test_wait {
	uint64_t turns;
	time_t end;
};

/**
 * True until TEST_PATIENCE_S seconds have passed since the first call with this *w. For the
 * condition of a loop that polls: a number of polls is no patience, as one takes some nanoseconds
 * and who is waited for may have no processor for a tenth of a second.
 */
static inline bool
test_patience(struct test_wait *w)
{
	struct timespec now;

	if (w->turns % 1024 == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (w->turns == 0)
			w->end = now.tv_sec + TEST_PATIENCE_S;
		else if (now.tv_sec >= w->end)
			return false; /* and from now on */
		else
			sched_yield();
	}
	w->turns++;
	return true;
}

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		test_why = (why);                                                                  \
		return;                                                                            \
	} while (0)

static inline void
test_run(const char *name, void (*test)(void))
{
	test_bad = 0;
	test_why = NULL;
	test();
	if (test_bad != 0)
		test_failed++;
	else if (test_why != NULL)
		test_skipped++;
	else
		test_passed++;
	printf("%s %s%s%s\n", test_bad ? "FAIL" : test_why ? "SKIP" : "ok  ", name,
		test_why ? ": " : "", test_why ? test_why : "");
	fflush(stdout);
}

#define SL_TEST_RUN(test) test_run(#test, test)

static inline int
test_end(void)
{
	printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
	return test_failed != 0;
}

#endif
