/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FRAG_PRIV_H
#define FRAG_PRIV_H

#include <rte_mcslock.h>
#include <rte_spinlock.h>

#include "sl_frag.h"

/* Where a chunk is. Written by whoever has the chunk to itself at that moment. */
enum frag_state {
	FRAG_FREE,    /* on a list */
	FRAG_CURRENT, /* under a cursor, or parked */
	FRAG_OUT,     /* retired, slices in flight */
};

/*
 *            refill                 retire                  last put
 *   FREE ------------> CURRENT ---------------> OUT -----------------------> FREE (home)
 *     ^                  |  ^ reset in place, when all slices are back
 *     |                  +--+   (or parked and taken up again, in LOCK mode)
 *     +--- retire, when all slices are back
 */
struct frag_chunk {
	/* (a) refcnt; the free callback is there for the mbuf half. First, so that the count is at
	 * the start of the line. */
	struct rte_mbuf_ext_shared_info shared SL_CACHE_ALIGNED;
	struct sl_frag *frag; /* (c) */
	uint64_t iova_shift;  /* (c) from an address to its I/O address, after sl_frag_mbuf_bind */
	uint32_t next;	      /* list link: index + 1, 0: last */
	uint32_t home;	      /* worker that took it last */
	uint32_t carved;      /* bytes, set at retirement */
	uint32_t wasted;      /* (a) bytes; relaxed, ordered by the reference (FR1) */
	enum frag_state state;
};

/*
 * Chunks that came back to one worker: a list that any thread pushes to and that is only ever taken
 * whole, so that a link read before a push is still right after it (no ABA). One word says all:
 *
 *     open:     | 0 | count, 31 bits | index + 1 of the first, 32 bits |
 *     closed:   | 1 |                | chunks still out                |     after sl_frag_destroy
 */
struct frag_home {
	uint64_t head SL_CACHE_ALIGNED; /* (a) FR2, FR3 */
	uint64_t returned;		/* (a) bytes; relaxed, a statistic */
	uint32_t collected;		/* (a) chunks taken from here, modulo 2^32; relaxed */
	uint8_t guard[SL_CACHE_GUARD];
};

#define FRAG_CLOSED (UINT64_C(1) << 63)

struct frag_rest {
	/* (l) LOCK: held for one carve or one burst of them, with a refill at most per slice. */
	rte_spinlock_t spin SL_CACHE_ALIGNED;
	rte_mcslock_t *mcs;
	uint8_t guard_lock[SL_CACHE_GUARD];

	rte_spinlock_t stock_lock SL_CACHE_ALIGNED; /* innermost: nothing is taken under it */
	uint32_t stock;				    /* (l) stock_lock: index + 1 of the first */
	uint8_t guard_stock[SL_CACHE_GUARD];

	/* (c) */
	enum sl_frag_lock lock SL_CACHE_ALIGNED;
	uint32_t keep; /* chunks that an own list may hold; of more, half go to the stock */
	uint16_t bias;
	bool on_node; /* memory comes from libnuma */
	void *given;  /* memory of the caller */
	void (*memory_free)(void *memory, void *arg);
	void *memory_arg;

	uint64_t wasted SL_CACHE_ALIGNED; /* (a) bytes; relaxed, a statistic */
	uint32_t open; /* (a) homes with chunks out, and one for the owner; FR3 */
};

/* The lock around refill, move of the cursor and reference. Compiled out for one test alone, which
 * must then fail: it shows that the test would see a missing lock. */
#ifdef FRAG_NO_LOCK
static inline void
frag_lock(struct sl_frag *f, rte_mcslock_t *me)
{
	(void)f;
	(void)me;
}

static inline void
frag_unlock(struct sl_frag *f, rte_mcslock_t *me)
{
	(void)f;
	(void)me;
}
#else
static inline void
frag_lock(struct sl_frag *f, rte_mcslock_t *me)
{
	if (f->rest->lock == SL_FRAG_MCS)
		rte_mcslock_lock(&f->rest->mcs, me);
	else
		rte_spinlock_lock(&f->rest->spin);
}

static inline void
frag_unlock(struct sl_frag *f, rte_mcslock_t *me)
{
	if (f->rest->lock == SL_FRAG_MCS)
		rte_mcslock_unlock(&f->rest->mcs, me);
	else
		rte_spinlock_unlock(&f->rest->spin);
}
#endif

/** The cursor that LOCK mode shares lies behind the workers'. */
static inline struct sl_frag_cursor *
frag_shared_cursor(struct sl_frag *f)
{
	return &f->cursors[f->workers];
}

/** Take the allocator's own share off a cursor's current chunk and leave the cursor empty. */
void frag_retire(struct sl_frag *f, struct sl_frag_cursor *c);

/** LOCK: the same for the chunk that a worker has parked, if any; the shared cursor has none. */
void frag_retire_parked(struct sl_frag *f, uint32_t worker);

/** The last reference of a retired chunk has gone. Any thread; f may be gone afterwards. */
void frag_chunk_back(struct frag_chunk *k);

/** Count a slice as wasted, before it is put. */
void frag_count_waste(struct sl_frag *f, const struct sl_frag_slice *slice);

/** Free everything (FR3: the last one out calls it). */
void frag_free_all(struct sl_frag *f);

#endif
