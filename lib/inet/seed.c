/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sys/random.h>

#include <rte_random.h>

#include "seed.h"

uint32_t
inet_seed(void)
{
	uint32_t seed;

	/* The kernel may refuse, early after its start or in a sandbox: better a seed that could be
	 * guessed than no stack. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = (uint32_t)rte_rand();
	return seed;
}
