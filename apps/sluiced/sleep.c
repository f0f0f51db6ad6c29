/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <rte_common.h>

#include "sleep.h"

#define SLEEP_MOST_NS UINT64_C(1000000)
/* Bits on the wire of the smallest frame: 64 bytes, preamble, gap. */
#define SMALLEST_BITS 672
/* A port that does not know its speed is taken for one of 10 Gb/s. */
#define SPEED_UNKNOWN_MBPS 10000

uint64_t
sleep_max_ns(uint32_t slots, uint32_t mbps)
{
	if (mbps == 0)
		mbps = SPEED_UNKNOWN_MBPS;
	/* Bits by Mb/s are microseconds; only the last step may lose a fraction. */
	return RTE_MIN((uint64_t)slots * SMALLEST_BITS * 1000 / mbps / 2, SLEEP_MOST_NS);
}
