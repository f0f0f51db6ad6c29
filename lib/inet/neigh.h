/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_NEIGH_H
#define INET_NEIGH_H

/*
 * The neighbour table: next hops on the link, their MAC addresses, and the packets that wait for
 * them.
 *
 *              output          answer                 30 s, in use
 *      (none) -------> INCOMPLETE ----> REACHABLE -------------------> PROBE --answer--> REACHABLE
 *        ^                | 3 x 1 s        | 30 s, not used      ^       | 3 x 1 s
 *        |                v                v                     |       v
 *        +---- packets: neigh_failed     STALE --used------------+     (none)
 *        +------------------------------- 60 s, not used
 *
 * An entry's `word` holds all that sending needs: MAC address, whether it may be used, and a
 * generation that changes when the entry gets a new address. A worker remembers entries it has used
 * (struct inet_hop) and needs no lock as long as the word's generation and the table's epoch are
 * those it remembers: one 64-bit load cannot tear, and nothing is reached through it, so it may be
 * relaxed. Everything else is under the table's spinlock, held for a few hundred nanoseconds.
 */
#include "inet_priv.h"

enum {
	INET_HEAR_CREATE = 1,	 /* worth an entry: it talks to us */
	INET_HEAR_SOLICITED = 2, /* an answer: the neighbour has heard us */
	INET_HEAR_OVERRIDE = 4,	 /* may replace another MAC address */
};

int inet_neigh_create(uint32_t entries, struct inet_neigh_table **out) SL_MUST_CHECK;
void inet_neigh_destroy(struct inet_neigh_table *t);

/** Send an IP packet to a next hop on a port, now or when it has answered. Takes m. */
void inet_neigh_output(struct sl_inet *inet, uint16_t worker, struct inet_port *port,
	const struct sl_addr *hop, struct rte_mbuf *m);

/** A neighbour said something about itself; mac may be NULL. Sends what waited for it. */
void inet_neigh_hear(struct sl_inet *inet, uint16_t worker, struct inet_port *port,
	const struct sl_addr *addr, const uint8_t *mac, unsigned int flags);

/** Timers of one port's neighbours and addresses that are due. */
void inet_timers_port(
	struct sl_inet *inet, uint16_t worker, struct inet_port *port, uint64_t now_ns);

/** The same for all ports of a DPDK port, the first of which is given. */
void inet_timers_dev(
	struct sl_inet *inet, uint16_t worker, struct inet_port *port, uint64_t now_ns);

/** The address is filled in and may be used from now on, or is gone. Announced by the next timer. */
void inet_addr_set_state(struct sl_inet *inet, struct inet_addr *a, uint32_t state);

/** Let the next timer announce the usable addresses of a port. Table held. */
void inet_addrs_announce(struct sl_inet *inet, struct inet_port *port);

/** End of an address's duplicate detection by an objection. */
void inet_addr_conflict(struct sl_inet *inet, struct inet_addr *a);

/* arp.c, nd.c: ask for addr; mac NULL asks everybody. */
void inet_arp_ask(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr, const uint8_t *mac);
void inet_nd_ask(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr, const uint8_t *mac);
/* Tell everybody about an address of ours; ask everybody whether an IPv6 one is taken. */
void inet_arp_announce(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr);
void inet_nd_announce(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr);
void inet_nd_probe(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr);

#endif
