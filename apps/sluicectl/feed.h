/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FEED_H
#define FEED_H

/**
 * @file
 * The daemon feeds us with something: we listen at a socket in its folder, ask it for a session,
 * and it connects. SIGINT and SIGTERM tell it that we have enough; it sends what is left, and
 * closes.
 */

#include "ctl.h"

/**
 * Ask for a session, and wait until the daemon has connected.
 *
 * @param fd        connected to the daemon
 * @param endpoint  that starts it
 * @param words     of its parameter behind the socket's name
 * @return          descriptor to read from. Fails with the daemon's code and sentence
 */
int feed_open(int fd, const char *endpoint, const char *words);

/**
 * Read. Blocks until there is something.
 *
 * @return   bytes; 0 at the end
 */
size_t feed_read(int feed, void *data, size_t size);

/** Words of a filter, from argv[0] on, joined by blanks. */
void feed_filter(char **argv, int n, char *text, size_t size);

/** The value of an option that is a count; fails unless it is a number of 1 or more. */
unsigned long long feed_count(const char *option, const char *text);

#endif
