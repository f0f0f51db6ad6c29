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

#include <stdbool.h>
#include <stdint.h>

/** How often the main thread looks: also how soon the kernel hears of a link behind an exception path. */
#define LINKS_MS 200

struct daemon;

/** Is a DPDK port's link up, as far as the port can tell? Any thread. */
bool links_up(uint16_t port_id);

/** Announce the addresses of each port whose link has come up since the last call. Main thread. */
void links_look(struct daemon *d);

#endif
