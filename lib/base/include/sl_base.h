/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_BASE_H
#define SL_BASE_H

/**
 * @file
 * What every other header stands on: declaration guards, attributes and the cache line.
 *
 * A *cache line* is the unit in which cores pass memory to each other. Two words that different
 * lcores write must not share one, and because processors fetch lines in adjacent pairs, a word
 * that is written often is kept one whole line away from words of other writers (SL_CACHE_GUARD).
 *
 * Stability: stable (doc/api.md).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between these two stand the exported declarations of a public header: C linkage for C++, and
 * visible outside libsluice.so, which is built with hidden visibility. */
#ifdef __cplusplus
#define SL_BEGIN_DECLS extern "C" { _Pragma("GCC visibility push(default)")
#define SL_END_DECLS _Pragma("GCC visibility pop") }
#else
#define SL_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define SL_END_DECLS _Pragma("GCC visibility pop")
#endif

/** Bytes in a cache line on every machine that DPDK 22.11 lists for x86-64 and most for Arm. */
#define SL_CACHE_LINE 64

/** Starts a struct or a member on a cache line of its own. */
#define SL_CACHE_ALIGNED __attribute__((aligned(SL_CACHE_LINE)))

/** Bytes of padding that keep the adjacent-line prefetcher off the next writer's line. */
#define SL_CACHE_GUARD 64

/** On every call whose result owns something or may be an error. */
#define SL_MUST_CHECK __attribute__((warn_unused_result))

#define SL_LIKELY(x) __builtin_expect(!!(x), 1)
#define SL_UNLIKELY(x) __builtin_expect(!!(x), 0)

/** Number of elements in an array (not a pointer). */
#define SL_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#endif
