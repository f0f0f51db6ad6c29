/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_LCOUNT_H
#define SL_LCOUNT_H

/**
 * @file
 * Per-lcore counter: how many of something are pending, counted without a shared cache line.
 *
 * A *counter* has one *cell* per worker, each on a cache line of its own and written by that worker
 * alone with plain instructions, and one *shared cell* for threads that are no worker, written with
 * an atomic add. What is *taken* (+1) on one worker may be *given* back (-1) on another, for ever:
 * a cell is unsigned and wraps, and that is harmless, because the sum is taken modulo 2^32 too. A
 * single cell means nothing; only the sum does.
 *
 * What the sum is worth. The cells are read one after the other. While any thread may still take,
 * the sum can read zero although something is pending: the reader passes cell A, then a taker adds
 * one to A and the giver of an older item subtracts one from B, which is read next. So zero may be
 * trusted only when the caller holds off every taker - a TX ring's sender does: it holds the ring's
 * send lock, under which alone anything is taken. Givers need not be held off: with takers stopped
 * the sum errs high only (an item given back after its cell was read), never low.
 *
 * In memory (worker count 2):
 *
 *     | cell 0      | cell 1      | shared cell |      one guarded cache line each
 *       worker 0      worker 1      any thread, atomically
 *
 * Who may call what at the same time as what:
 *
 *                    take/give(w)   take/give(other w)   take/give(SHARED)   sum
 *     take/give(w)   no             yes                  yes                 yes
 *     SHARED         yes            yes                  yes                 yes
 *     sum            yes            yes                  yes                 yes
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_assert.h"
#include "sl_base.h"
#include "sl_shared.h"

SL_BEGIN_DECLS

/** Worker index of a thread that is no worker: its counts go to the shared cell. */
#define SL_LCOUNT_SHARED UINT32_MAX

/** One worker's count: (o) written by its worker alone, read by anyone. */
struct sl_lcount_cell {
	uint32_t value SL_CACHE_ALIGNED;
	uint8_t guard[SL_CACHE_GUARD];
};

/** Visible because take and give are inline; members are not for callers. */
struct sl_lcount {
	uint32_t workers;             /* (c) */
	bool on_node;                 /* (c) cells come from libnuma, not from the heap */
	struct sl_lcount_cell *cells; /* (c) `workers` cells, then the shared one */
};

/**
 * Create a counter whose sum is zero.
 *
 * @param workers   number of workers, 1..65536; memory is proportional to it
 * @param socket    NUMA node for the cells, or -1 for any
 * @param out       set on success only; the caller frees it with sl_lcount_destroy
 * @return          0; -EINVAL for a worker count out of range; -ENOMEM
 * Caller: control path only.
 */
int sl_lcount_create(uint32_t workers, int socket, struct sl_lcount **out) SL_MUST_CHECK;

/**
 * Free a counter.
 *
 * @param c         NULL is allowed
 * Caller: control path only, when no thread uses the counter.
 */
void sl_lcount_destroy(struct sl_lcount *c);

/**
 * Add to the shared cell (the cold half of take and give).
 *
 * @param n         added modulo 2^32
 */
void sl_lcount_add_slow(struct sl_lcount *c, uint32_t n);

/**
 * Add n to a worker's cell; n above 2^31 subtracts (sl_lcount_give).
 *
 * @param worker    this thread's worker index below `workers`, or SL_LCOUNT_SHARED
 * Caller: the worker itself; lock-free, no atomic instruction except for SL_LCOUNT_SHARED.
 * Ordering: LC1, release: a giver's earlier stores (a slot marked AVAILABLE) are visible to a sum
 *           that includes the give.
 */
static inline void
sl_lcount_take(struct sl_lcount *c, uint32_t worker, uint32_t n)
{
	uint32_t *cell;

	if (SL_UNLIKELY(worker >= c->workers)) {
		sl_lcount_add_slow(c, n);
		return;
	}
	cell = &c->cells[worker].value;
	/* Own cell, so a plain read. LC1: what was done to the item before is visible to a sum that
	 * counts this. */
	sl_store_release(cell, *cell + n);
}

/** Give back n that were taken here or on any other worker. As sl_lcount_take otherwise. */
static inline void
sl_lcount_give(struct sl_lcount *c, uint32_t worker, uint32_t n)
{
	sl_lcount_take(c, worker, 0u - n);
}

/**
 * What is pending, modulo 2^32.
 *
 * @return          exact when nobody takes or gives; never too low while nobody takes; anything
 *                  (also a false zero) while takers run
 * Caller: any thread; lock-free; reads one line per worker, so keep it off fast paths.
 * Ordering: LC1, acquire on each cell.
 */
uint32_t sl_lcount_sum(const struct sl_lcount *c);

/** Bytes that the counter occupies: for tests and memory reports. */
size_t sl_lcount_memory(const struct sl_lcount *c);

/**
 * Set one cell: only for tests that start a cell near its edge.
 *
 * Caller: when no thread uses the counter. The caller keeps the sum right.
 */
void sl_lcount_preset(struct sl_lcount *c, uint32_t worker, uint32_t value);

SL_END_DECLS

#endif
