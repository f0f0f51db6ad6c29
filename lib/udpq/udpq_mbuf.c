/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stddef.h>
#include <string.h>

#include "sl_assert.h"
#include "sl_udpq_mbuf.h"

#define ATTACHED (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

/* What an mbuf must be like that goes back to its pool in one step with others: whole and ours
 * alone, its buffer its own, or external for all of them. With one owner nobody else writes here,
 * and a packet of one segment has no next, so two words tell: that with the reference and segment
 * counts, and the flags. */
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

/* What an mbuf of a pool has of its own: the same for all of them, but for the address. */
struct own_buffer {
	uint32_t offset; /* of the buffer, from the mbuf */
	uint16_t priv_size;
	uint16_t len;
};

/* Give an mbuf its own buffer back, as rte_pktmbuf_detach does behind its reference count. */
static inline void
restore_buffer(struct rte_mbuf *m, const struct own_buffer *own)
{
	m->priv_size = own->priv_size;
	m->buf_addr = (char *)m + own->offset;
	rte_mbuf_iova_set(m, rte_mempool_virt2iova(m) + own->offset);
	m->buf_len = own->len;
	rte_pktmbuf_reset_headroom(m);
	m->data_len = 0;
	m->ol_flags = 0;
}

/* Give up the references of the first packets that share a buffer's count, all at once. Returns how
 * many packets those are. */
static uint16_t
put_shared(struct rte_mbuf **m, uint16_t n, const struct own_buffer *own)
{
	struct rte_mbuf_ext_shared_info *shared = m[0]->shinfo;
	void *buf_addr = m[0]->buf_addr;
	uint16_t run = 0;

	do {
		restore_buffer(m[run], own);
		run++;
	} while (run < n && m[run]->shinfo == shared);
	if (rte_mbuf_ext_refcnt_update(shared, (int16_t)-run) == 0)
		shared->free_cb(buf_addr, shared->fcb_opaque);
	return run;
}

/* Packets of one pool whose buffers are all external: many slices of one page, as a rule. */
static __attribute__((noinline)) void
free_external(struct rte_mbuf **m, uint16_t n)
{
	struct rte_mempool *pool = m[0]->pool;
	struct own_buffer own = {
		.priv_size = rte_pktmbuf_priv_size(pool), .len = rte_pktmbuf_data_room_size(pool)};

	if (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) {
		rte_pktmbuf_free_bulk(m, n);
		return;
	}
	own.offset = (uint32_t)sizeof(**m) + own.priv_size;
	for (uint16_t i = 0; i < n;)
		i = (uint16_t)(i + put_shared(m + i, (uint16_t)(n - i), &own));
	rte_mempool_put_bulk(pool, (void *const *)m, n);
}

void
sl_udpq_free_mbufs(void **bufs, uint16_t n)
{
	struct rte_mbuf **m = (struct rte_mbuf **)bufs;
	const struct counts one = {.refcnt = 1, .nb_segs = 1};
	const struct counts all = {.refcnt = UINT16_MAX, .nb_segs = UINT16_MAX};
	struct rte_mempool *pool;
	uint64_t want, mask, external, odd = 0;

	if (n == 0)
		return;
	/* Nearly always all of a burst are plain and of one pool: then they go back in one step. */
	memcpy(&want, &one, sizeof(want));
	memcpy(&mask, &all, sizeof(mask));
	pool = m[0]->pool;
	external = m[0]->ol_flags & RTE_MBUF_F_EXTERNAL;
	for (uint16_t i = 0; i < n; i++) {
		SL_DEBUG_ASSERT(m[i]->nb_segs > 1 || m[i]->next == NULL);
		odd |= (uintptr_t)m[i]->pool ^ (uintptr_t)pool;
		odd |= counts_differ(m[i], want, mask);
		odd |= (m[i]->ol_flags & ATTACHED) ^ external;
	}
	if (SL_UNLIKELY(odd != 0))
		rte_pktmbuf_free_bulk(m, n);
	else if (external != 0)
		free_external(m, n);
	else
		rte_mempool_put_bulk(pool, bufs, n);
}
