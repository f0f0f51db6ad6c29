/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Creation: limits, and the k-th allocation or descriptor failing for every k. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "queue_help.h"

static int fail_at; /* the k-th wrapped call from now fails; 0: none does */

void *__real_aligned_alloc(size_t alignment, size_t size); /* names are the linker's (--wrap) */
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __real_eventfd(unsigned int count, int flags);
int __wrap_eventfd(unsigned int count, int flags);

void *
__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_aligned_alloc(alignment, size);
}

int
__wrap_eventfd(unsigned int count, int flags)
{
	if (fail_at > 0 && --fail_at == 0) {
		errno = EMFILE;
		return -1;
	}
	return __real_eventfd(count, flags);
}

static const struct sl_udpq_conf good = {.mode = SL_UDPQ_SPLIT,
	.producers = 3,
	.slots = 16,
	.rcvbuf = 1000,
	.free_burst = count_freed};

static void
members_out_of_range(void)
{
	static const struct {
		enum sl_udpq_mode mode;
		uint32_t producers, slots;
		uint64_t rcvbuf;
		int result;
	} cases[] = {
		{SL_UDPQ_SPLIT, 1, 2, 1, 0},
		{SL_UDPQ_SPLIT, 1024, 2, 1, 0},
		{SL_UDPQ_SPLIT, 0, 16, 1, -EINVAL},
		{SL_UDPQ_SPLIT, 1025, 16, 1, -EINVAL},
		{SL_UDPQ_SHARED, 1, 1, 1, -EINVAL},
		{SL_UDPQ_SHARED, 1, 3, 1, 0},
		{SL_UDPQ_SHARED, 1, 1u << 20, 1, 0},
		{SL_UDPQ_SHARED, 1, (1u << 20) + 1, 1, -EINVAL},
		{SL_UDPQ_LOCAL, 1, 16, 0, -EINVAL},
		{(enum sl_udpq_mode)3, 1, 16, 1, -EINVAL},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_udpq_conf conf = good;
		struct sl_udpq *q = NULL;

		conf.mode = cases[i].mode;
		conf.producers = cases[i].producers;
		conf.slots = cases[i].slots;
		conf.rcvbuf = cases[i].rcvbuf;
		CHECK_EQ(sl_udpq_create(&conf, &q), cases[i].result);
		CHECK((q != NULL) == (cases[i].result == 0));
		sl_udpq_destroy(q);
	}
}

static void
no_way_to_free(void)
{
	struct sl_udpq_conf conf = good;
	struct sl_udpq *q;

	conf.free_burst = NULL;
	CHECK_EQ(sl_udpq_create(&conf, &q), -EINVAL);
}

/* AddressSanitizer sees what an unwinding forgets. */
static void
every_step_fails_once(void)
{
	for (int mode = SL_UDPQ_LOCAL; mode <= SL_UDPQ_SHARED; mode++) {
		struct sl_udpq_conf conf = good;
		int k = 0, ret;

		conf.mode = (enum sl_udpq_mode)mode;
		do {
			struct sl_udpq *q = NULL;

			fail_at = ++k;
			ret = sl_udpq_create(&conf, &q);
			CHECK((q != NULL) == (ret == 0));
			CHECK(ret == 0 || ret == -ENOMEM || ret == -EMFILE);
			sl_udpq_destroy(q);
			REQUIRE(k < 20);
		} while (ret != 0);
		/* The queue, its producers, its private queue; then intakes and the eventfd. */
		CHECK_EQ(k - 1, mode == SL_UDPQ_LOCAL ? 3 : mode == SL_UDPQ_SPLIT ? 3 + 3 + 1 : 3 + 1 + 1);
		fail_at = 0;
	}
}

int
main(void)
{
	SL_TEST_RUN(members_out_of_range);
	SL_TEST_RUN(no_way_to_free);
	SL_TEST_RUN(every_step_fails_once);
	return test_end();
}
