/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_REASM_H
#define INET_REASM_H

/*
 * Reassembly: each worker holds fragments in a table of its own, by (source, destination, id,
 * protocol, port), until a datagram is whole; then rte_ip_frag joins them and the datagram goes
 * through IP input as if it had come in one packet.
 *
 *     fragment --> checks --> held, headers off --+--> whole: rte_ip_frag --> IP input
 *                    |                            |
 *                    v                            +--> too old, too much, overlap: dropped
 *               its outcome
 *
 * rte_ip_frag looks at lengths alone: it takes parts that overlap for good ones until their sum is
 * what the last one says, lets a hole pass for an overlap of the same size until it walks them, and
 * says of a dropped one no more than that it is gone. So it is handed the parts of a datagram all
 * at once, when they are known to fit each other. It also writes into the first one, so that gets a
 * head of our own: packets may lie in memory that others can see.
 *
 * All is the worker's own (o): no lock, nothing shared but the gauge.
 */
#include "inet_priv.h"

/** What a fragment says of its place. */
struct inet_fragment {
	uint32_t id;
	uint32_t start; /* of its data in the datagram's */
	uint8_t proto;	/* IPv4: protocol; IPv6: what the fragment header says follows it */
	bool more;	/* not the last one */
};

/** conf's members of reassembly are checked here: -EINVAL; -ENOMEM; what DPDK says. */
int inet_reasm_create(const struct sl_inet_conf *conf, struct inet_reasm **out) SL_MUST_CHECK;
/** Frees what is held. */
void inet_reasm_destroy(struct inet_reasm *t);

/** What it was created with: datagrams and fragments, and how long they may wait. */
void inet_reasm_bounds(const struct inet_reasm *t, uint32_t *packets, uint64_t *timeout_ns);

/**
 * Make a hash table over keys of fragments, here and in claims, seeded, since strangers choose them.
 *
 * @param what   part of its name in DPDK: at most 10 characters
 * @return       NULL with rte_errno
 */
struct rte_hash *inet_frag_hash_create(const char *what, uint32_t entries, uint32_t key_len);

/** Take a fragment, whose data starts at p->l4_off. Outcome, or INET_HELD, or the datagram's. */
unsigned int inet_reasm_input(
	struct inet_rx *rx, struct inet_pkt *p, const struct inet_fragment *f);

/** Drop what is too old, also of what waits in claims (claim.h); sets w->reasm_due_ns. */
void inet_reasm_expire(const struct sl_inet *inet, uint16_t worker);

#endif
