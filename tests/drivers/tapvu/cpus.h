/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef CPUS_H
#define CPUS_H

/* Where lcores go: needs _GNU_SOURCE, as all tests have it. */
#include <sched.h>

#include "sl_test.h"

/** The first or the last CPU that we may run on. */
static inline unsigned int
cpu_nth(int last)
{
	unsigned int found = 0;
	cpu_set_t cpus;

	REQUIRE(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	for (unsigned int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &cpus))
			continue;
		found = i;
		if (!last)
			break;
	}
	return found;
}

#endif
