/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_SHARED_H
#define SL_SHARED_H

/**
 * @file
 * Named accessors for words that several threads (or this process and another one) share.
 *
 * A shared word is a plain integer or pointer type, because words that the kernel or a peer process
 * shares cannot be declared _Atomic and DPDK 22.11 has no stdatomic wrappers. It is reached through
 * these names alone. Each acquire and release carries a pair label in a comment (UQ1, ...), the
 * same at both ends, and a row in doc/concurrency.md.
 *
 * They are macros because C cannot say "any integer type" otherwise; each evaluates its arguments
 * once.
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_base.h"

/** Read a word whose order against other words does not matter here. */
#define sl_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
/** Read a word; what its writer stored before the matching release is visible afterwards. */
#define sl_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
/** Write a word whose order against other words does not matter here. */
#define sl_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
/** Write a word; what this thread stored before is visible to whoever acquires the value. */
#define sl_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/** Swap a word, no order. Returns the old value. */
#define sl_exchange_relaxed(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
/** Swap a word, acquiring what was there and releasing what is put. Returns the old value. */
#define sl_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
/** Add to a word, no order. Returns the old value. */
#define sl_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
/** Add to a word and release what was done before. Returns the old value. */
#define sl_fetch_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
/** Subtract from a word and release what was done before. Returns the old value. */
#define sl_fetch_sub_release(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELEASE)
/** Subtract from a word, ordered both ways (the last holder of a reference). Returns the old. */
#define sl_fetch_sub_acq_rel(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)
/** Replace *p by v if it still is *expected; else put what is there into *expected. May fail
 * without cause, so it belongs in a loop. */
#define sl_cas_weak_relaxed(p, expected, v)                                                        \
	__atomic_compare_exchange_n((p), (expected), (v), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define sl_cas_weak_acq_rel(p, expected, v)                                                        \
	__atomic_compare_exchange_n((p), (expected), (v), 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)

/**
 * Add to a counter that one thread writes and any thread reads: no locked instruction, and a
 * reader never sees a torn value.
 *
 * Caller: the owner of the counter alone.
 */
static inline void
sl_counter_add(uint64_t *counter, uint64_t n)
{
	sl_store_relaxed(counter, *counter + n);
}

/**
 * Full fence: stores before it and loads after it are not exchanged. For sleep and wake protocols
 * alone (UQ3), where each side stores its own word and then reads the other's.
 */
static inline void
sl_fence_seq_cst(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#ifdef __SANITIZE_THREAD__
#define SL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SL_TSAN 1
#endif
#endif
#ifdef SL_TSAN
SL_BEGIN_DECLS
void __tsan_acquire(void *p);
SL_END_DECLS
/* It does not understand fences, and is told. */
#define SL_TSAN_ACQUIRE(p) __tsan_acquire(p)
#else
#define SL_TSAN_ACQUIRE(p) ((void)(p))
#endif

/**
 * Make an acquire of a relaxed load of *p that a library did for us: what was stored before the matching
 * release is visible afterwards.
 */
static inline void
sl_fence_acquire(void *p)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	SL_TSAN_ACQUIRE(p);
}

/**
 * Keep the compiler from reading peer-shared memory a second time: values copied out before this
 * point stay the values that are used after it.
 */
static inline void
sl_snapshot_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

#endif
