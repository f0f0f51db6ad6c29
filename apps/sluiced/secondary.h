/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_SECONDARY_H
#define SLUICED_SECONDARY_H

/**
 * @file
 * Other DPDK processes beside the daemon, with `secondary = yes`: dpdk-dumpcap, dpdk-proc-info and
 * the like attach to its memory, which lies in files of hugetlbfs then.
 */

#include "conf.h"

/** Serve their requests to capture packets. Exits with a sentence when that cannot be done. Caller:
 * main thread, when EAL is there. Does nothing unless conf->secondary. */
void secondary_open(const struct conf *conf);

/**
 * Serve no more, and give the files up: EAL leaves them where they are, and their pages with them.
 * Who has mapped them keeps them until it ends. Caller: main thread, before EAL ends.
 */
void secondary_close(const struct conf *conf);

#endif
