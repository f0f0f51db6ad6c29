/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FILTER_H
#define SLUICED_FILTER_H

/**
 * @file
 * Which packets a trace or a capture is about: an expression as tcpdump takes them, compiled and
 * run by libpcap.
 */

#include <rte_mbuf.h>

struct filter;

/**
 * Compile.
 *
 * @param expression   "udp port 7", for instance; "" takes every packet
 * @param out          set on success only; freed by filter_free
 * @param why          filled with a sentence on failure
 * @return             0; -EINVAL not understood; -ENOMEM
 * Caller: control path; EAL is there.
 */
int filter_create(const char *expression, struct filter **out, char *why, size_t size);

/** NULL is allowed. Caller: when nobody runs it any more. */
void filter_free(struct filter *f);

/** Is the packet, from its Ethernet header on, one of them? Any thread. */
bool filter_match(const struct filter *f, const struct rte_mbuf *m);

#endif
