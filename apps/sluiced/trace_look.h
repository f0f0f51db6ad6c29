/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_TRACE_LOOK_H
#define SLUICED_TRACE_LOOK_H

/**
 * @file
 * What one packet does beyond the stack: in a load balancer, in an exception path, in a bridge.
 *
 * Nothing of these knows of traces. A worker that follows a packet reads its own counters of them
 * before and after; what has moved is the packet's doing, since it goes alone. So all this costs
 * nothing unless a packet is followed.
 */

#include "daemon.h"
#include "trace_step.h"

struct trace_look;

/** Room for the counters of all workers. NULL: no memory. Caller: control path. */
struct trace_look *trace_look_create(uint16_t workers);
/** NULL is allowed. */
void trace_look_free(struct trace_look *look);

/** A packet is about to enter the stack. Caller: the worker, as for the next two. */
void trace_look_begin(struct trace_look *look, struct worker *w);

/**
 * It has: what a load balancer has made of it.
 *
 * @param got   what it is: addresses and ports
 * @param s     filled in but for id, cpu and counters of the stack
 * @return      false: none was handed it, or only one that is gone
 */
bool trace_look_forward(struct trace_look *look, struct worker *w, const struct trace_step *got,
	struct trace_step *s);

/** What became of it on the way to the kernel; false: nothing. */
bool trace_look_kernel(struct trace_look *look, struct worker *w, struct trace_step *s);

/**
 * One frame through a bridge, alone.
 *
 * @param m   taken
 * @param s   filled in but for id and cpu
 * Caller: the worker that polls the pair.
 */
void trace_look_bridge(
	struct worker *w, const struct worker_pair *p, struct rte_mbuf *m, struct trace_step *s);

#endif
