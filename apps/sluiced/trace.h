/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_TRACE_H
#define SLUICED_TRACE_H

/**
 * @file
 * A trace follows packets that match a filter, and tells each step that they take:
 *
 *   received   port, queue, lcore, and the first bytes of the frame
 *   stack      which of the stack's counters it moved, and the service whose socket took it
 *   service    what the service made of it, and what the stack made of an answer
 *   forward    what a load balancer made of it: reason, slot, back end, outcome
 *   kernel     what became of it, or of a copy, on the way to the kernel's tap
 *   bridge     in place of all but `received`: what a bridge made of it
 *
 * A packet that is followed is processed alone, with everything sent that waited to be, before and
 * after it. So what counters have moved by is its doing. Between the socket and the service it
 * bears a mark, a dynamic field. A datagram made of fragments is followed into the socket.
 *
 * Without a trace it costs one branch for each burst that is received, one for each poll of a
 * bridge's port and one for each burst that is served. Steps go into a bounded ring, and are
 * counted as lost when it is full.
 */

#include "session.h"

struct trace;

/** Filled by trace_begin for trace_end. */
struct trace_mark {
	uint32_t id;
	uint64_t outcome[SERVICE_OUTCOMES];
	uint64_t stack[SL_OUTCOME_COUNT];
};

/**
 * Start to follow packets, for a client.
 *
 * @param name     of the client's socket in the daemon's folder
 * @param count    packets; 0 for no end
 * @param filter   expression, "" for all
 * @param why      filled with a sentence on failure
 * @return         0; -EINVAL the filter; -EBUSY there is one already; else -errno
 * Caller: a telemetry thread, with d->lock.
 */
int trace_start(struct daemon *d, const char *name, uint64_t count, const char *filter, char *why,
	size_t size) SL_MUST_CHECK;

/** What the running or the last trace has done. Caller: with d->lock. */
struct trace_stats {
	bool running;
	uint64_t followed;
	uint64_t lost; /**< steps for which the ring had no room */
};
void trace_stats(struct trace_stats *stats);

/** The trace that is on, or NULL: good until the worker's turn ends. */
static inline struct trace *
trace_of(const struct daemon *d)
{
	return sl_load_acquire(&d->trace); /* pairs with trace_start */
}

/**
 * A poll of a bridge's port while there is a trace, in place of bridge_poll. Returns frames.
 * Caller: the pair's worker.
 */
uint16_t trace_bridge_poll(struct trace *t, struct worker *w, const struct worker_pair *p);

/**
 * A service is about to handle a datagram: is it one that is followed? Then trace_end must follow
 * when it is handled. Caller: the service's worker.
 */
bool trace_begin(struct trace *t, struct worker *w, const struct service *s,
	const struct sl_dgram *g, struct trace_mark *mark);
void trace_end(
	struct trace *t, struct worker *w, const struct service *s, const struct trace_mark *mark);

#endif
