/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_LOAD_H
#define UDPQ_LOAD_H

/**
 * @file
 * Producers and the reader of one side of a receive queue comparison.
 *
 * A *producer* stands for a receive queue of a port with some flows in it: a turn takes a burst of
 * packet buffers from a pool for the next flow, gets descriptors for them (udpq_lookup.h) and
 * appends. Packets that the queue refuses are counted and freed, and the producer backs off for
 * some microseconds. A *turn* of the reader takes up to one burst, checks each flow's order, copies
 * the payload out if asked to, and frees in bulk.
 *
 * Both sides run the same code but for the queue itself: same pool, same descriptors, same burst,
 * same checks, same freeing.
 */

#include <rte_mempool.h>

#include "bench.h"
#include "hist.h"
#include "udpq_lookup.h"
#include "udpq_onebyone.h"

#define LOAD_PRODUCERS_MAX 16
#define LOAD_FLOWS_MAX 512
/** Packets of a producer's burst, as a port hands them over. */
#define LOAD_BURST 32
/** Datagrams that the receive buffer holds. */
#define LOAD_DEPTH 1024

/** How packets find the queue. */
enum load_lookup {
	LOAD_QUEUE_ONLY,  /**< they do not: descriptors are made up */
	LOAD_UNCONNECTED, /**< through the stack, to a bound socket */
	LOAD_CONNECTED,	  /**< through the stack, to the socket connected to their flow */
	LOAD_LOOKUPS
};

enum load_side { LOAD_BATCHED, LOAD_ONE_BY_ONE, LOAD_SIDES };

/** What a case does. */
struct load_shape {
	uint32_t producers;
	uint32_t flows;
	enum load_lookup lookup;
	bool same;     /**< the reader's core produces too */
	bool touch;    /**< the reader copies the payload out */
	uint32_t size; /**< bytes of payload */
	bool flood;    /**< producers never back off */
};

/** (o) one lcore's at a time. */
struct load_producer {
	struct lookup *lookup SL_CACHE_ALIGNED; /* NULL for LOAD_QUEUE_ONLY */
	uint32_t flow_first;
	uint32_t flow_count;
	uint32_t flow_next;
	uint64_t resume;  /* TSC at which it goes on */
	uint64_t backoff; /* TSC cycles */
	uint64_t offered;
	uint64_t taken;
	uint64_t refused[SL_UDPQ_DROP_COUNT];
	uint64_t no_mbuf; /* turns without a packet buffer */
	uint64_t lost;	  /* packets that the lookup did not deliver: none, or the check fails */
	uint8_t guard[SL_CACHE_GUARD];
};

struct load {
	/* (c) */
	enum load_side side;
	struct load_shape shape;
	struct rte_mempool *pool;
	struct sl_udpq *q;
	uint32_t truesize;
	uint64_t backoff_min, backoff_max; /* TSC cycles */

	struct onebyone one;
	struct load_producer producer[LOAD_PRODUCERS_MAX];
	uint64_t sent[LOAD_FLOWS_MAX] SL_CACHE_ALIGNED; /* (o) the flow's producer: next number */
	uint8_t guard[SL_CACHE_GUARD];

	/* (o) reader */
	uint64_t expected[LOAD_FLOWS_MAX] SL_CACHE_ALIGNED;
	uint64_t read;
	uint64_t bytes;
	uint64_t disorder; /* datagrams that were not their flow's next */
	uint8_t *user;	   /* SL_UDPQ_BURST_MAX buffers */
	uint64_t until;	   /* TSC: turns that end later, or were held up beyond, tell no latency */
	/* Of this slice, in TSC cycles, from append to the end of the reader's turn. */
	struct hist latency;
};

/** The pool for loads on that many lcores: payload written, room for a node. NULL on failure. */
struct rte_mempool *load_pool_create(unsigned int lcores);

/** What all loads of a run have in common. */
struct load_env {
	struct rte_mempool *pool;
	double tsc_hz;
	uint16_t port; /**< DPDK port for lookups */
};

/** @return 0; -errno of the queue or the stack */
int load_create(enum load_side side, const struct load_shape *shape, const struct load_env *env,
	struct load **out) SL_MUST_CHECK;

/** Frees what is still queued, too. */
void load_destroy(struct load *l);

/** One turn of a producer. Caller: the lcore that it is on in this slice. */
void load_produce(struct load *l, uint32_t producer, uint64_t now);

/** A producer's slice is over. Caller: the same lcore. */
void load_park(struct load *l, uint32_t producer);

/** One turn of the reader; returns datagrams read, at most SL_UDPQ_BURST_MAX, and the time. */
uint16_t load_read(struct load *l, uint64_t *now);

/**
 * Nothing lost, nothing twice, each flow in order: offered = taken + refused, taken = read.
 *
 * @return   0; -EPROTO after a sentence on standard error
 * Caller: when neither side runs and the queue is drained.
 */
int load_check(const struct load *l);

/** Sums over producers. */
void load_sum(const struct load *l, struct load_producer *sum);

#endif
