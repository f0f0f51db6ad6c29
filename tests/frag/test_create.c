/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Creation: limits, placement, and the k-th allocation failing for every k. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frag_help.h"

static int fail_at; /* the k-th wrapped call from now fails; 0: none does */

void *__real_aligned_alloc(size_t alignment, size_t size); /* names are the linker's (--wrap) */
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_numa_alloc_onnode(size_t size, int node);
void *__wrap_numa_alloc_onnode(size_t size, int node);

void *
__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_aligned_alloc(alignment, size);
}

void *
__wrap_numa_alloc_onnode(size_t size, int node)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_numa_alloc_onnode(size, node);
}

static void
members_out_of_range(void)
{
	static uint8_t memory[8192] SL_CACHE_ALIGNED;
	static const struct {
		struct sl_frag_conf conf;
		int result;
	} cases[] = {
		{{.workers = 1, .chunks = 1}, 0},
		{{.workers = 1024, .chunks = 1}, 0},
		{{.workers = 0, .chunks = 1}, -EINVAL},
		{{.workers = 1025, .chunks = 1}, -EINVAL},
		{{.workers = 1, .chunks = 0}, -EINVAL},
		{{.workers = 1, .chunks = (1u << 20) + 1}, -EINVAL},
		{{.workers = 1, .chunks = 1, .chunk_size = 4095}, -EINVAL},
		{{.workers = 1, .chunks = 1, .chunk_size = 2048}, -EINVAL},
		{{.workers = 1, .chunks = 1, .chunk_size = 12288}, -EINVAL},
		{{.workers = 1, .chunks = 1, .chunk_size = 1u << 20}, 0},
		{{.workers = 1, .chunks = 1, .chunk_size = 1u << 21}, -EINVAL},
		{{.workers = 1, .chunks = 1, .mode = (enum sl_frag_mode)3}, -EINVAL},
		{{.workers = 1, .chunks = 1, .lock = (enum sl_frag_lock)2}, -EINVAL},
		{{.workers = 1, .chunks = 1, .chunk_size = 4096, .memory = memory}, 0},
		{{.workers = 1, .chunks = 1, .chunk_size = 4096, .memory = memory + 8}, -EINVAL},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_frag *f = NULL;

		CHECK_EQ(sl_frag_create(&cases[i].conf, &f), cases[i].result);
		CHECK((f != NULL) == (cases[i].result == 0));
		sl_frag_destroy(f);
	}
}

static void
default_sizes(void)
{
	struct sl_frag *f = frag_create(SL_FRAG_LOCK, 1, 0, 1);

	CHECK_EQ(f->chunk_size, 32768);
	CHECK(sl_frag_memory(f) >= 32768);
	sl_frag_destroy(f);
	f = frag_create(SL_FRAG_PAGE, 1, 0, 2);
	CHECK_EQ(f->chunk_size, 4096);
	CHECK(sl_frag_memory(f) >= 2 * 4096 && sl_frag_memory(f) < 3 * 4096);
	sl_frag_destroy(f);
}

static int given_freed;

static void
count_free(void *memory, void *arg)
{
	(void)memory;
	(void)arg;
	given_freed++;
}

/* AddressSanitizer sees what an unwinding forgets. */
static void
every_step_fails_once(void)
{
	static uint8_t memory[4 * 4096] SL_CACHE_ALIGNED;

	/* Memory from the heap, from a node, and from the caller. */
	for (int from = 0; from < 3; from++) {
		struct sl_frag_conf conf = {.workers = 2,
			.chunk_size = 4096,
			.chunks = 4,
			.socket = from == 1 ? 0 : -1,
			.memory = from == 2 ? memory : NULL,
			.memory_free = count_free};
		int k = 0, ret;

		given_freed = 0;
		do {
			struct sl_frag *f = NULL;

			fail_at = ++k;
			ret = sl_frag_create(&conf, &f);
			CHECK((f != NULL) == (ret == 0));
			CHECK(ret == 0 || ret == -ENOMEM);
			CHECK_EQ(given_freed, 0); /* what failed to be created owns nothing */
			sl_frag_destroy(f);
			REQUIRE(k < 20);
		} while (ret != 0);
		fail_at = 0;
		/* The allocator, cursors, chunks, homes, the rest; then the memory. */
		CHECK_EQ(k - 1, from == 2 ? 5 : 6);
		CHECK_EQ(given_freed, from == 2);
	}
}

int
main(void)
{
	SL_TEST_RUN(members_out_of_range);
	SL_TEST_RUN(default_sizes);
	SL_TEST_RUN(every_step_fails_once);
	return test_end();
}
