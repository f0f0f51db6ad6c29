/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_CAPTURE_H
#define SLUICED_CAPTURE_H

/**
 * @file
 * A capture copies packets that match a filter, as ports receive and send them, and gives them to a
 * client in the format pcapng, with time, port, queue and direction.
 *
 * Copies are made where bursts pass ethdev's callbacks, which are there for a capture only: without
 * one they cost nothing that ethdev does not cost anyway. Their memory is bounded; what finds none
 * is counted as lost.
 */

#include "session.h"

struct capture_request {
	const char *name;   /**< of the client's socket in the daemon's folder */
	const char *port;   /**< name of a port; "" for all */
	const char *filter; /**< expression; "" for all packets */
	uint64_t count;	    /**< packets; 0 for no end */
};

/**
 * Start one, for a client.
 *
 * @param why   filled with a sentence on failure
 * @return      0; -EINVAL the filter; -ENOENT no such port; -EBUSY there is one already; -ENOMEM;
 *              else -errno
 * Caller: a telemetry thread, with d->lock.
 */
int capture_start(
	struct daemon *d, const struct capture_request *r, char *why, size_t size) SL_MUST_CHECK;

/** What the running or the last capture has done. Caller: with d->lock. */
struct capture_stats {
	bool running;
	uint64_t captured;
	uint64_t lost; /**< that matched, and found no room */
};
void capture_stats(struct capture_stats *stats);

#endif
