/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_FIB_H
#define INET_FIB_H

/*
 * The routes that packets of one family go by, in a form that never changes once it is published:
 * an rte_fib (its tree, which takes memory by the number of routes; the flat tables take 64 MB from
 * the first one on, and workers remember what they looked up) and what its values stand for.
 */
#include "inet_priv.h"

struct inet_next_hop {
	struct inet_port *port;
	struct sl_addr via;
	uint32_t metric;
	bool on_link; /* the next hop is the destination */
};

struct inet_fib;

/** Room for n routes: -ENOMEM; what DPDK says. */
int inet_fib_create(bool v4, uint32_t n, struct inet_fib **out) SL_MUST_CHECK;
void inet_fib_destroy(struct inet_fib *fib);
/** Add a prefix that is not there yet. Before it is published. */
int inet_fib_add(struct inet_fib *fib, const struct sl_addr *dst, uint8_t prefix,
	const struct inet_next_hop *hop) SL_MUST_CHECK;
/** The longest prefix that covers dst; NULL for none. fib may be NULL. */
const struct inet_next_hop *inet_fib_find(const struct inet_fib *fib, const struct sl_addr *dst);

#endif
