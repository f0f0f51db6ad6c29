/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_SESSION_H
#define SLUICED_SESSION_H

/**
 * @file
 * A client that is fed with what workers find, until it has enough or is gone: a trace, a capture.
 *
 *     workers --never wait--> bounded ring --> the session's thread --> unix socket --> sluicectl
 *
 * The client listens at a socket in the daemon's folder, where only the daemon's user can, and asks
 * over telemetry for the session; the daemon connects. When the client closes its end, or does not
 * read for SESSION_PATIENCE_S, the session ends by itself. There is one of each kind at a time.
 */

#include "daemon.h"

#define SESSION_PATIENCE_S 5

struct session;

/** What a kind of session does. */
struct session_kind {
	const char *name; /**< "trace" */
	/**
	 * Hand the client what there is.
	 *
	 * @param ending   the client wants no more, so that this is the last call
	 * @return         false when the session is at its end
	 * Caller: the session's thread, often; without the lock.
	 */
	bool (*pump)(struct session *s, bool ending);
	/** Let no worker find it any more. Caller: the session's thread, with d->lock. */
	void (*unhook)(struct session *s);
	/** Free it, and what is still in it. Caller: the session's thread. */
	void (*done)(struct session *s);
};

/** The beginning of a kind's own struct. */
struct session {
	const struct session_kind *kind;
	struct daemon *d;
	int fd;	   /**< to the client; -1 before it is connected */
	bool stop; /**< (relaxed) the daemon ends */
};

/**
 * Connect to the client's socket.
 *
 * @param name   of the socket in the daemon's folder
 * @return       0; -errno
 * Caller: a telemetry thread, with d->lock.
 */
int session_connect(struct session *s, const char *name) SL_MUST_CHECK;

/** Is there one of that kind? Not once its client has seen its end. Caller: with d->lock. */
bool session_busy(const struct session_kind *kind);

/**
 * Start its thread, which owns it from now on. On failure it is closed.
 *
 * @return   0; -EAGAIN no thread; -EBUSY more kinds than there is room for: then it is the caller's
 * Caller: with d->lock.
 */
int session_start(struct session *s) SL_MUST_CHECK;

/** Write it all. False when the client is gone, or does not read. Caller: the session's thread. */
bool session_write(struct session *s, const void *data, size_t len);

/** Register the endpoints that start them (session_telemetry.c). Caller: main thread, once. */
bool session_telemetry_open(void);

/** End all, and wait for it. No new one may begin. Caller: main thread, without the lock. */
void sessions_stop(struct daemon *d);

#endif
