/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_UNIX_H
#define SL_UNIX_H

/**
 * @file
 * Sockets in the file system outlive a program that is killed: nobody listens there any more, and
 * yet nobody can bind to the path. Who serves a path asks first whether that is so.
 *
 * Stability: experimental (doc/api.md).
 */

#include <stdbool.h>

#include "sl_base.h"

SL_BEGIN_DECLS

/**
 * Remove the socket at a path if nobody listens on it.
 *
 * @param path   of the file system; a file of another kind, or none, is left as it is
 * @param type   SOCK_STREAM or SOCK_SEQPACKET: what a listener there would be
 * @return       true if one was removed; false also for a path longer than a socket's may be
 * Caller: control path, who is about to bind to the path. A live listener sees a connection that
 * ends at once. Two callers at one path at the same time may remove each other's new socket.
 */
bool sl_unix_remove_stale(const char *path, int type);

SL_END_DECLS

#endif
