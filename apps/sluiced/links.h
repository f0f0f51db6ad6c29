/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_LINKS_H
#define SLUICED_LINKS_H

/**
 * @file
 * Links that come up. Whoever is behind one may know our addresses by another MAC address, of a
 * daemon that was killed, say: they are announced, so that he need not find out by himself, which
 * takes a kernel half a minute.
 */

/** How often the main thread looks. */
#define LINKS_MS 200

struct daemon;

/** Announce the addresses of each port whose link has come up since the last call. Main thread. */
void links_look(struct daemon *d);

#endif
