/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_SLEEP_H
#define SLUICED_SLEEP_H

#include <stdint.h>

/**
 * Longest that a worker which has nothing to do may sleep: half of the time in which the smallest
 * frames at full speed fill a receive ring, since waking up takes time as well, and 1 ms at most.
 *
 * @param slots   of the ring
 * @param mbps    speed of the link; 0 if it is not known, then 10 Gb/s are assumed
 */
uint64_t sleep_max_ns(uint32_t slots, uint32_t mbps);

#endif
