/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_SEED_H
#define INET_SEED_H

#include <stdint.h>

/**
 * A seed for a hash table whose keys strangers choose: whoever knows the hash can have all they
 * send fall into one bucket, and lookups there take as long as the bucket is full.
 *
 * It is the kernel's, not rte_rand's: that one's state follows from a few of its values, and some
 * of them leave in IPv4 identifications. Tests replace getrandom to have the same one each time.
 *
 * Caller: control path.
 */
uint32_t inet_seed(void);

#endif
