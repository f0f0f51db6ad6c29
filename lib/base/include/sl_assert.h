/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_ASSERT_H
#define SL_ASSERT_H

/**
 * @file
 * Assertions for misuse by our own code or a caller who broke a contract. Never for input that a
 * peer controls: that gets an outcome and a counter.
 *
 * SL_ASSERT stays in release builds and ends the process; it is for control paths. SL_DEBUG_ASSERT
 * is for bursts and costs nothing unless SL_DEBUG is defined (the sanitizer builds define it).
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_base.h"

SL_BEGIN_DECLS

/**
 * Report a broken assertion on standard error and abort.
 *
 * Caller: any thread; does not return.
 */
void sl_assert_fail(const char *expression, const char *file, int line)
	__attribute__((noreturn, cold));

SL_END_DECLS

#define SL_ASSERT(x) (SL_LIKELY(x) ? (void)0 : sl_assert_fail(#x, __FILE__, __LINE__))

#ifdef SL_DEBUG
#define SL_DEBUG_ASSERT(x) SL_ASSERT(x)
#else
#define SL_DEBUG_ASSERT(x) ((void)sizeof(!(x)))
#endif

#endif
