/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_UDPQ_MBUF_H
#define SL_UDPQ_MBUF_H

/**
 * @file
 * The mbuf-facing half of the receive queue: what an mbuf weighs and how a burst of them is freed.
 *
 * Stability: stable (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_udpq.h"

SL_BEGIN_DECLS

/**
 * Memory that a packet holds.
 *
 * @param m    first segment
 * @return     bytes: for each segment the mbuf header, its private area and its whole buffer
 * Caller: the owner of m.
 */
static inline uint32_t
sl_mbuf_truesize(const struct rte_mbuf *m)
{
	uint32_t size = 0;

	do {
		size += (uint32_t)sizeof(*m) + m->priv_size + m->buf_len;
		m = m->next;
	} while (SL_UNLIKELY(m != NULL));
	return size;
}

/** free_burst for queues of mbufs: frees whole chains. */
void sl_udpq_free_mbufs(void **bufs, uint16_t n);

SL_END_DECLS

#endif
