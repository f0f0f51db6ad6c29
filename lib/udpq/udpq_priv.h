/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_PRIV_H
#define UDPQ_PRIV_H

#include <rte_ring.h>
#include <rte_spinlock.h>

#include "sl_assert.h"
#include "sl_shared.h"
#include "sl_udpq.h"

/* What one producer writes: (o) that producer alone, read by anyone. */
struct udpq_producer {
	struct rte_ring *intake SL_CACHE_ALIGNED; /* (c) NULL in LOCAL; all the same in SHARED */
	uint64_t appended; /* (o); in SHARED (l) under append_lock, as are the two below */
	uint64_t drops[SL_UDPQ_DROP_COUNT];
	uint64_t wakeups; /* (a) in SHARED */
	uint8_t guard[SL_CACHE_GUARD];
};

/* Grouped by writer, one guarded cache line a group. */
struct sl_udpq {
	/* (c) */
	enum sl_udpq_mode mode;
	uint32_t producers;
	uint32_t intakes; /* distinct ones: producers in SPLIT, 1 in SHARED, 0 in LOCAL */
	uint32_t slots;   /* a power of two */
	int event_fd;     /* -1 in LOCAL */
	void (*free_burst)(void **bufs, uint16_t n);
	struct udpq_producer *producer;
	struct sl_dgram *private_queue; /* `slots` descriptors: (o) reader */

	/* (a) charged by producers, given back by the reader. Relaxed: it is a number that nothing
	 * is reached through; the intake itself orders the descriptors. LOCAL: (o). */
	uint64_t rmem SL_CACHE_ALIGNED;
	uint64_t rcvbuf; /* (a) relaxed; rarely written */
	uint8_t guard_rmem[SL_CACHE_GUARD];

	/* SHARED: one append at a time, held for one burst. */
	rte_spinlock_t append_lock SL_CACHE_ALIGNED;
	uint8_t guard_append[SL_CACHE_GUARD];

	/* (a) UQ3 */
	uint32_t sleeping SL_CACHE_ALIGNED;
	uint32_t canceled; /* UQ4 */
	uint8_t guard_sleep[SL_CACHE_GUARD];

	/* (o) reader. Free-running 32-bit indexes, masked on access, so that a difference is right
	 * across the wrap. */
	uint32_t head SL_CACHE_ALIGNED;
	uint32_t tail;
	uint32_t shown; /* by the last peek and not yet released */
	uint32_t next;  /* intake to look at first */
	uint64_t released;
	uint64_t takes;
	uint32_t inside; /* (a) debug builds: a reader is in here */
	uint8_t guard_reader[SL_CACHE_GUARD];
};

/** The reader enters and leaves; a second one is refused here in debug builds. */
static inline void
udpq_reader_enter(struct sl_udpq *q)
{
	SL_DEBUG_ASSERT(sl_exchange_acq_rel(&q->inside, 1u) == 0);
	(void)q;
}

static inline void
udpq_reader_leave(struct sl_udpq *q)
{
	SL_DEBUG_ASSERT(sl_exchange_acq_rel(&q->inside, 0u) == 1);
	(void)q;
}

/** Does the private queue or any intake hold something? */
bool udpq_ready(const struct sl_udpq *q);

#endif
