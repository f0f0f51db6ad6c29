/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_MEM_H
#define UDPQ_MEM_H

/**
 * @file
 * UDP receive from memory: net_pcap plays 512 flows of 64-byte frames for ever on the main lcore.
 * Rows: bare receive and free; the hand-written loop (udpq_loop.h); the whole stack.
 */

#include "sl_base.h"

#include "bench.h"

/** Name of the cases, for --filter. */
#define MEM_CASE "memory/64-byte-frames"

/**
 * Run and print the memory rows.
 *
 * @param seconds  time for all of them
 * @return         0 (also when there is no net_pcap: a row says so); -errno; -EPROTO
 */
int mem_run(const struct bench_opts *opts, double tsc_hz, double seconds) SL_MUST_CHECK;

#endif
