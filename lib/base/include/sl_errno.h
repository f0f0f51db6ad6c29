/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_ERRNO_H
#define SL_ERRNO_H

/**
 * @file
 * The one place that reads errno and rte_errno. The rest of the project passes 0 or -errno around,
 * so that no later call can overwrite the cause.
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_base.h"

SL_BEGIN_DECLS

/**
 * Turn a C library result into ours.
 *
 * @param result   what a system call or C library function returned; below 0 means errno is set
 * @return         result if it is 0 or above, else -errno
 * Caller: the thread that made the call, before any other call.
 */
int sl_sys(int result);

/**
 * The error of the DPDK call that has just failed.
 *
 * @return         -rte_errno, or -EINVAL where the call left no cause
 * Caller: the thread that made the call, before any other call.
 */
int sl_rte_error(void);

/**
 * Leave the cause of a failure where DPDK's callers look for it (a driver's calls of its interface).
 *
 * @param error    0 or -errno
 * Caller: the thread that returns the failure.
 */
void sl_set_rte_error(int error);

/**
 * Text for an error of ours.
 *
 * @param error    0 or -errno
 * @return         a sentence fragment; a constant that the caller does not free
 * Caller: any thread.
 */
const char *sl_strerror(int error);

SL_END_DECLS

#endif
