/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FRAG_HELP_H
#define FRAG_HELP_H

#include "frag_priv.h"
#include "sl_test.h"

static inline struct sl_frag *
frag_create(enum sl_frag_mode mode, uint32_t workers, uint32_t chunk_size, uint32_t chunks)
{
	struct sl_frag_conf conf = {.mode = mode,
		.workers = workers,
		.chunk_size = chunk_size,
		.chunks = chunks,
		.socket = -1};
	struct sl_frag *f = NULL;

	REQUIRE(sl_frag_create(&conf, &f) == 0);
	return f;
}

static inline uint64_t
in_flight(struct sl_frag *f)
{
	uint64_t bytes = UINT64_MAX;

	CHECK(sl_frag_check(f, &bytes));
	return bytes;
}

static inline struct sl_frag_stats
all_stats(const struct sl_frag *f)
{
	struct sl_frag_stats s;

	sl_frag_stats(f, UINT32_MAX, &s);
	return s;
}

#endif
