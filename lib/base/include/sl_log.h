/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_LOG_H
#define SL_LOG_H

/**
 * @file
 * Log lines of the libraries, through DPDK's log under the type "sluice" (so that
 * --log-level=sluice:debug works). For rare events on control paths; bursts count, never log.
 *
 * Stability: stable (doc/api.md).
 */

#include <rte_log.h>

#include "sl_base.h"

SL_BEGIN_DECLS

/** DPDK log type of the project; registered before main. */
extern int sl_logtype;

SL_END_DECLS

#define SL_LOG(level, ...)                                                                         \
	rte_log(RTE_LOG_##level, sl_logtype, "sluice: " __VA_ARGS__)

#endif
