/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_FRAG_H
#define SL_FRAG_H

/**
 * @file
 * Page-frag allocator: packet buffers cut one behind the other from large chunks.
 *
 * A *chunk* is a piece of memory of a fixed size (32 KB by default). A *cursor* is the place in its
 * current chunk where the next *slice* starts; slices start on cache lines, so that neighbours
 * never share one. A slice is *carved* by moving the cursor. When the rest of a chunk is too small
 * it is *retired*, and the cursor is *refilled* with another. A chunk is *back* when it is retired
 * and every slice of it was put: it is then used again as a whole. Its *home* is the worker that
 * took it; it goes back there, so that memory stays warm in one core's cache.
 *
 *     chunk:  | slice | slice | slice |  free           |
 *                                     ^ cursor           ^ limit
 *
 * References. A chunk has one count, 16 bits wide, inside the shared info that an mbuf with an
 * external buffer points to. When a chunk becomes current its count is set once, with one plain
 * store, to a *bias* larger than the number of slices that it can ever give: the references of all
 * slices are there in advance, so carving costs no atomic operation. Putting a slice takes one
 * away. Retirement takes away, in one step, what was never handed out. Until then the allocator's
 * own share is at least one, so no holder of a slice ever finds itself the last one while the
 * cursor is there.
 *
 * Modes, chosen at creation:
 *
 *     SL_FRAG_LOCK    one cursor for all workers; refill, the move of the cursor and the
 *                     reference are under a lock (a spinlock, or a queued MCS lock); the caller
 *                     copies outside of it. A burst too large for the rest of another worker's
 *                     chunk parks it there, and its worker goes on with it later: a chunk that
 *                     two cores write in turns is in the wrong cache for both
 *     SL_FRAG_LCORE   a cursor per worker, no lock
 *     SL_FRAG_PAGE    as LCORE, with one slice per chunk, which is then a page: what the other
 *                     two are measured against
 *
 * Where chunks wait, and where a refill looks for them, in this order:
 *
 *     [ parked   ]   LOCK: the worker's own chunk that another one's burst left half used
 *     [ home     ]   chunks that came back; any thread pushes, the owner takes all in one exchange
 *                    and puts them in front of its own list, so that the warmest is used first
 *     [ own list ]   the owner's alone
 *     [ stock    ]   chunks that no worker took yet, or that an owner had too many of; a spinlock
 *     [ others   ]   the home of every other worker: taken whole, so that no idle worker
 *                    starves one; last, in LOCK mode, what they have parked
 *
 * When all are empty the carve fails with -ENOBUFS and is counted; it never waits.
 *
 * Accounting, in bytes: carved = in flight + wasted + returned. A slice whose use failed after it
 * was carved (a copy that faulted) is *wasted*: its place is lost until the chunk is back, and it
 * is never handed out twice. A slice is *returned* when its chunk is back, in flight until then.
 * sl_frag_check verifies the sum by walking the chunks.
 *
 * Who may call what at the same time as what (carve: same worker, other worker):
 *
 *                carve(w)   carve(w')   put/waste   stats   check   destroy
 *     carve(w)   no*        yes         yes         yes     no      no
 *     put/waste  yes        yes         yes         yes     no      yes (put)
 *
 *     * yes in SL_FRAG_LOCK, where the worker index says whose cache
 *       chunks are likely to be in, and most counters are common.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf_core.h>

#include "sl_assert.h"
#include "sl_base.h"
#include "sl_shared.h"

SL_BEGIN_DECLS

#define SL_FRAG_CHUNK_DEFAULT 32768u
#define SL_FRAG_CHUNK_MAX (1u << 20)
#define SL_FRAG_PAGE_DEFAULT 4096u

enum sl_frag_mode {
	SL_FRAG_LOCK,
	SL_FRAG_LCORE,
	SL_FRAG_PAGE,
};

enum sl_frag_lock {
	SL_FRAG_SPIN,
	SL_FRAG_MCS,
};

struct sl_frag_conf {
	enum sl_frag_mode mode;
	enum sl_frag_lock lock; /**< SL_FRAG_LOCK alone */
	uint32_t workers;	/**< 1..1024 */
	uint32_t chunk_size;	/**< bytes, a power of two, 4096..2^20; 0: the mode's default */
	uint32_t chunks;	/**< 1..2^20; all memory there will ever be */
	int socket;		/**< NUMA node of the memory, or -1 for any */
	/** chunks * chunk_size bytes on a cache line (hugepages, say), or NULL to have it
	 * allocated. */
	void *memory;
	/** Called with memory and memory_arg when the last slice has gone; may be NULL. */
	void (*memory_free)(void *memory, void *arg);
	void *memory_arg;
};

/** A piece of a chunk. Whoever holds the slice owns its bytes and one reference. */
struct sl_frag_slice {
	uint8_t *addr;
	uint32_t size;	/**< as asked, rounded up to whole cache lines; PAGE: the whole page */
	uint32_t chunk; /**< index */
};

struct sl_frag_stats {
	uint64_t slices;    /**< carved */
	uint64_t carved;    /**< bytes */
	uint64_t wasted;    /**< bytes of slices given to sl_frag_waste */
	uint64_t returned;  /**< bytes whose chunk is back */
	uint64_t tail;	    /**< bytes left unused at the end of retired chunks */
	uint64_t refills;   /**< chunks made current */
	uint64_t stolen;    /**< refills out of another worker's home */
	uint64_t exhausted; /**< carves refused with -ENOBUFS */
};

/** Where the next slice comes from, and its counters. (o) its worker, or (l) under the lock in
 * SL_FRAG_LOCK; counters are read by anyone. Visible because carve is inline. */
struct sl_frag_cursor {
	uint8_t *base SL_CACHE_ALIGNED;
	uint32_t offset;
	uint32_t limit;	 /* 0: no current chunk */
	uint32_t chunk;	 /* index of the current one */
	uint32_t handed; /* slices of the current one */
	uint32_t own;	 /* own list: index + 1 of the first, 0: empty */
	uint32_t taken;	 /* chunks taken out of the lists, modulo 2^32 */
	uint32_t owned;	 /* chunks on the own list */
	uint32_t home;	 /* of the current one */
	uint64_t carved; /* bytes of earlier chunks, as are the next two */
	uint64_t slices;
	uint64_t tail;
	uint64_t refills SL_CACHE_ALIGNED;
	uint64_t stolen;
	uint64_t exhausted;
	/* LOCK, of a worker: the chunk that another one's burst left half used */
	uint32_t parked; /* index + 1, 0: none */
	uint32_t parked_offset;
	uint32_t parked_handed;
	uint8_t guard[SL_CACHE_GUARD];
};

struct frag_chunk;
struct frag_home;
struct frag_rest;

/** Visible because carve is inline; members are not for callers. */
struct sl_frag {
	struct sl_frag_cursor *cursors; /* (c) one per worker, then the one that LOCK shares */
	enum sl_frag_mode mode;		/* (c) */
	uint32_t workers;		/* (c) */
	uint32_t chunk_size;		/* (c) */
	uint32_t chunks;		/* (c) */
	uint8_t *memory;		/* (c) */
	struct frag_chunk *chunk;	/* (c) the array; members see frag_priv.h */
	struct frag_home *home;		/* (c) one per cursor in use */
	struct frag_rest *rest;		/* (c) what only the slow half needs */
};

/**
 * Create an allocator; all memory is obtained here.
 *
 * @param conf   copied; conf.memory stays the caller's until memory_free
 * @param out    set on success only; given back with sl_frag_destroy
 * @return       0; -EINVAL for a member out of range; -ENOMEM
 * Caller: control path.
 */
int sl_frag_create(const struct sl_frag_conf *conf, struct sl_frag **out) SL_MUST_CHECK;

/**
 * Give the allocator up. Slices in flight stay valid: whoever puts the last one frees the memory.
 *
 * @param f      NULL is allowed
 * Caller: control path, when nobody carves any more; putting may go on.
 * Ordering: FR3 against the last put.
 */
void sl_frag_destroy(struct sl_frag *f);

/** The cold half of carve: takes the lock or refills, or says why not. */
int sl_frag_carve_slow(
	struct sl_frag *f, uint32_t worker, uint32_t size, struct sl_frag_slice *out) SL_MUST_CHECK;

/**
 * Carve a slice.
 *
 * @param worker   below conf.workers; LCORE and PAGE: the caller's own
 * @param size     bytes, at least 1
 * @param out      set on success only; given back with sl_frag_put, sl_frag_waste, or by freeing
 *                 the mbuf it was made into
 * @return         0; -ENOBUFS when no chunk is free; -EMSGSIZE for more than a chunk; -EINVAL for 0
 * Caller: the worker; LCORE and PAGE lock-free, LOCK takes the lock; never sleeps.
 * Counts: exhausted, for -ENOBUFS.
 */
static inline int
sl_frag_carve(struct sl_frag *f, uint32_t worker, uint32_t size, struct sl_frag_slice *out)
{
	struct sl_frag_cursor *c = &f->cursors[worker];

	SL_DEBUG_ASSERT(worker < f->workers);
	/* A worker's cursor never gets a chunk in LOCK mode, so this goes the slow way there, and
	 * in PAGE mode, where no chunk has room for a second one. So does size 0: it wraps. */
	if (SL_UNLIKELY(size - 1 >= c->limit - c->offset))
		return sl_frag_carve_slow(f, worker, size, out);
	out->addr = c->base + c->offset;
	out->size = (size + SL_CACHE_LINE - 1) & ~(uint32_t)(SL_CACHE_LINE - 1);
	out->chunk = c->chunk;
	sl_store_relaxed(&c->offset, c->offset + out->size);
	sl_store_relaxed(&c->handed, c->handed + 1);
	return 0;
}

/**
 * Carve several slices, in LOCK mode under one hold of the lock.
 *
 * @param size     n sizes
 * @param out      the first result entries are set
 * @return         number carved from the front; it stops at the first size that cannot be had
 * Caller, Counts: as sl_frag_carve; a stop for want of chunks is counted once.
 */
uint16_t sl_frag_carve_burst(struct sl_frag *f, uint32_t worker, const uint32_t *size, uint16_t n,
	struct sl_frag_slice *out);

/**
 * Give a slice back.
 *
 * Caller: any thread that holds the slice, at any time, also after sl_frag_destroy; lock-free but
 *         for the rare case that a home has too much.
 * Ordering: FR1: what was done with the bytes is over before they are carved again.
 */
void sl_frag_put(struct sl_frag *f, const struct sl_frag_slice *slice);

/**
 * Give several slices back. Neighbours of one chunk cost one atomic operation together: it is the
 * count that lcores which share a cursor fight for.
 *
 * Caller, Ordering: as sl_frag_put, for each.
 */
void sl_frag_put_burst(struct sl_frag *f, const struct sl_frag_slice *slice, uint16_t n);

/**
 * Give back a slice that was carved for nothing. As sl_frag_put, counted as wasted.
 *
 * Caller: as sl_frag_put, but not after sl_frag_destroy.
 */
void sl_frag_waste(struct sl_frag *f, const struct sl_frag_slice *slice);

/**
 * Read the counters.
 *
 * @param worker   one worker's, or UINT32_MAX for all; wasted and returned are of all in any case,
 *                 and in LOCK mode everything is
 * Caller: any thread; exact when nobody carves or puts.
 */
void sl_frag_stats(const struct sl_frag *f, uint32_t worker, struct sl_frag_stats *stats);

/**
 * Check the invariant: carved = in flight + wasted + returned; every chunk is in exactly one place;
 * no chunk in use has fewer references than it must.
 *
 * @param in_flight   set to the bytes in flight; NULL is allowed
 * @return            true if it holds
 * Caller: when nobody carves or puts (tests, debug builds).
 */
bool sl_frag_check(struct sl_frag *f, uint64_t *in_flight);

/** Bytes that chunks and their descriptions occupy. */
size_t sl_frag_memory(const struct sl_frag *f);

SL_END_DECLS

#endif
