/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "sl_udpq_mbuf.h"

/* Is it as its pool wants it back, with nobody else holding on to it? */
static inline bool
is_plain(const struct rte_mbuf *m, const struct rte_mempool *pool)
{
	return m->pool == pool && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m) &&
	       m->nb_segs == 1 && m->next == NULL;
}

/* Bursts mostly consist of plain mbufs of one pool: these go back without a write to any of them.
 */
void
sl_udpq_free_mbufs(void **bufs, uint16_t n)
{
	struct rte_mempool *pool = n > 0 ? ((struct rte_mbuf *)bufs[0])->pool : NULL;
	uint16_t plain = 0;

	while (plain < n && is_plain(bufs[plain], pool))
		plain++;
	if (SL_LIKELY(plain > 0))
		rte_mempool_put_bulk(pool, bufs, plain);
	if (SL_UNLIKELY(plain < n))
		rte_pktmbuf_free_bulk((struct rte_mbuf **)bufs + plain, n - plain);
}
