/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stddef.h>
#include <string.h>

#include "sl_assert.h"
#include "sl_udpq_mbuf.h"

/* What an mbuf must be like that goes back to its pool as it is: whole, ours alone, its buffer its own.
 * With one owner nobody else writes here, and a packet of one segment has no next, so two words tell:
 * that with the reference and segment counts, and the flags. */
struct counts {
	uint16_t data_off;
	uint16_t refcnt;
	uint16_t nb_segs;
	uint16_t port;
};

static inline uint64_t
counts_differ(const struct rte_mbuf *m, uint64_t want, uint64_t mask)
{
	uint64_t word;

	_Static_assert(offsetof(struct rte_mbuf, refcnt) - offsetof(struct rte_mbuf, data_off) ==
			       offsetof(struct counts, refcnt),
		"struct counts lies in an mbuf from data_off on");
	_Static_assert(offsetof(struct rte_mbuf, nb_segs) - offsetof(struct rte_mbuf, data_off) ==
			       offsetof(struct counts, nb_segs),
		"struct counts lies in an mbuf from data_off on");
	memcpy(&word, &m->data_off, sizeof(word));
	return (word ^ want) & mask;
}

void
sl_udpq_free_mbufs(void **bufs, uint16_t n)
{
	struct rte_mbuf **m = (struct rte_mbuf **)bufs;
	const struct counts one = {.refcnt = 1, .nb_segs = 1};
	const struct counts all = {.refcnt = UINT16_MAX, .nb_segs = UINT16_MAX};
	struct rte_mempool *pool;
	uint64_t want, mask, odd = 0;

	if (n == 0)
		return;
	/* Nearly always all of a burst are plain and of one pool: then they go back in one step. */
	memcpy(&want, &one, sizeof(want));
	memcpy(&mask, &all, sizeof(mask));
	pool = m[0]->pool;
	for (uint16_t i = 0; i < n; i++) {
		SL_DEBUG_ASSERT(m[i]->nb_segs > 1 || m[i]->next == NULL);
		odd |= (uintptr_t)m[i]->pool ^ (uintptr_t)pool;
		odd |= counts_differ(m[i], want, mask);
		odd |= m[i]->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	}
	if (SL_LIKELY(odd == 0))
		rte_mempool_put_bulk(pool, bufs, n);
	else
		rte_pktmbuf_free_bulk(m, n);
}
