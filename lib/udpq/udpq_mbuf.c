/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "sl_udpq_mbuf.h"

void
sl_udpq_free_mbufs(void **bufs, uint16_t n)
{
	rte_pktmbuf_free_bulk((struct rte_mbuf **)bufs, n);
}
