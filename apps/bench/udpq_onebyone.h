/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_ONEBYONE_H
#define UDPQ_ONEBYONE_H

/**
 * @file
 * The baseline: a receive queue as the Linux kernel had it before it read in batches. One doubly
 * linked list through the packets themselves, under one spinlock that a producer takes for each
 * packet and the reader for each datagram; the packet's true size is charged to and given back from
 * one atomic word under that lock, by the same admission rule as lib/udpq; after each append the
 * producer looks whether the reader sleeps.
 *
 * Where the model differs from the kernel it does so in the baseline's favour: everything is
 * inlined, interrupts are not masked, a reader that finds the list empty does not take the lock,
 * and links and descriptor lie in one pair of lines (a kernel packet buffer spreads them over
 * four).
 *
 * Any number of producers and readers at once.
 */

#include <rte_spinlock.h>

#include "sl_shared.h"
#include "sl_udpq.h"

/** Lies in the packet buffer's private area. */
struct onebyone_node {
	struct sl_dgram d;
	struct onebyone_node *next; /* (l) */
	struct onebyone_node *prev; /* (l) */
};

struct onebyone {
	rte_spinlock_t lock SL_CACHE_ALIGNED;
	uint32_t length;	   /* (l) */
	struct onebyone_node head; /* (l) links alone; next is also peeked at without the lock */
	uint64_t rmem;		   /* (a) */
	uint64_t rcvbuf;	   /* (c) */
	uint32_t sleeping;	   /* (a) nobody sleeps here, but each append looks */
	uint64_t wakeups;	   /* (a) */
	uint8_t guard[SL_CACHE_GUARD];
};

static inline void
onebyone_init(struct onebyone *q, uint64_t rcvbuf)
{
	*q = (struct onebyone){.rcvbuf = rcvbuf};
	rte_spinlock_init(&q->lock);
	q->head.next = &q->head;
	q->head.prev = &q->head;
}

/** Append one packet; false when the receive buffer has no room for it. */
static inline bool
onebyone_append(struct onebyone *q, struct onebyone_node *node)
{
	uint64_t size = node->d.truesize, rmem;

	rte_spinlock_lock(&q->lock);
	rmem = sl_load_relaxed(&q->rmem);
	if (SL_UNLIKELY(rmem != 0 && rmem + size > q->rcvbuf)) {
		rte_spinlock_unlock(&q->lock);
		return false;
	}
	sl_fetch_add_relaxed(&q->rmem, size);
	node->next = &q->head;
	node->prev = q->head.prev;
	sl_store_relaxed(&q->head.prev->next, node);
	q->head.prev = node;
	q->length++;
	rte_spinlock_unlock(&q->lock);
	/* As UQ3: the append must not pass the look for a sleeper. */
	sl_fence_seq_cst();
	if (SL_UNLIKELY(sl_load_relaxed(&q->sleeping) != 0))
		sl_fetch_add_relaxed(&q->wakeups, UINT64_C(1));
	return true;
}

/** Take the first packet out; NULL when there is none. */
static inline struct onebyone_node *
onebyone_take(struct onebyone *q)
{
	struct onebyone_node *node;

	if (sl_load_relaxed(&q->head.next) == &q->head)
		return NULL;
	rte_spinlock_lock(&q->lock);
	node = q->head.next;
	if (SL_UNLIKELY(node == &q->head)) {
		rte_spinlock_unlock(&q->lock);
		return NULL;
	}
	sl_store_relaxed(&q->head.next, node->next);
	node->next->prev = &q->head;
	q->length--;
	sl_fetch_add_relaxed(&q->rmem, UINT64_C(0) - node->d.truesize);
	rte_spinlock_unlock(&q->lock);
	return node;
}

#endif
