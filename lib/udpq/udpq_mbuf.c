/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "sl_assert.h"
#include "sl_udpq_mbuf.h"

/* Whole, ours alone, its buffer its own: can go back to its pool as it is. With one owner nobody
 * else writes here, and a packet of one segment has no next, so two words tell. */
static inline bool
is_plain(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 && RTE_MBUF_DIRECT(m);
}

void
sl_udpq_free_mbufs(void **bufs, uint16_t n)
{
	struct rte_mbuf **m = (struct rte_mbuf **)bufs;
	struct rte_mempool *pool;
	bool plain = true;

	if (n == 0)
		return;
	/* Nearly always all of a burst are plain and of one pool: then they go back in one step. */
	pool = m[0]->pool;
	for (uint16_t i = 0; i < n; i++) {
		SL_DEBUG_ASSERT(m[i]->nb_segs > 1 || m[i]->next == NULL);
		plain &= m[i]->pool == pool && is_plain(m[i]);
	}
	if (SL_LIKELY(plain))
		rte_mempool_put_bulk(pool, bufs, n);
	else
		rte_pktmbuf_free_bulk(m, n);
}
