/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_prefetch.h>

#include "frag_priv.h"
#include "sl_frag_mbuf.h"

/* The mbuf library calls this when it has brought a chunk's count to 0. */
static void
chunk_free(void *addr, void *opaque)
{
	struct frag_chunk *k = opaque;

	(void)addr;
	/* FR1: a count that reads 1 is taken down with a relaxed load and store there. The fence
	 * makes that load an acquire: what the other holders did with their bytes is over. */
	sl_fence_acquire(&k->shared.refcnt);
	frag_chunk_back(k);
}

/* I/O address of memory that is one piece there too, or RTE_BAD_IOVA. */
static rte_iova_t
chunk_iova(const uint8_t *addr, uint32_t size)
{
	rte_iova_t first, last;

	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		return (rte_iova_t)(uintptr_t)addr;
	first = rte_mem_virt2iova(addr);
	last = rte_mem_virt2iova(addr + size - 1);
	return first != RTE_BAD_IOVA && last == first + size - 1 ? first : RTE_BAD_IOVA;
}

int
sl_frag_mbuf_bind(struct sl_frag *f)
{
	for (uint32_t i = 0; i < f->chunks; i++) {
		struct frag_chunk *k = &f->chunk[i];

		const uint8_t *start = f->memory + (size_t)i * f->chunk_size;
		rte_iova_t iova = chunk_iova(start, f->chunk_size);

		/* Without hugepages there are no I/O addresses at all, and no device to use them.
		 */
		if (iova == RTE_BAD_IOVA && rte_eal_has_hugepages())
			return -ENOTSUP;
		k->iova_shift = iova - (uintptr_t)start;
		k->shared.free_cb = chunk_free;
		k->shared.fcb_opaque = k;
	}
	return 0;
}

void
sl_frag_mbuf_attach_bulk(struct sl_frag *f, const struct sl_frag_slice *slice, struct rte_mbuf **m,
	const uint32_t *size, uint16_t n, uint16_t headroom, uint16_t port)
{
	struct frag_chunk *k = f->chunk;
	uint32_t chunk = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = size[i] - headroom, whole = slice[i].size;
		uint8_t *addr = slice[i].addr;
		struct rte_mbuf *p = m[i];

		if (SL_UNLIKELY(slice[i].chunk != chunk)) {
			chunk = slice[i].chunk;
			k = &f->chunk[chunk];
		}

		SL_DEBUG_ASSERT(headroom <= size[i] && size[i] <= slice[i].size);
		SL_DEBUG_ASSERT(rte_mbuf_refcnt_read(p) == 1 && p->nb_segs == 1 && p->next == NULL);
		rte_prefetch0_write(addr + headroom);
		p->buf_addr = addr;
		rte_mbuf_iova_set(p, (uintptr_t)addr + k->iova_shift);
		p->data_off = headroom;
		p->port = port;
		p->ol_flags = RTE_MBUF_F_EXTERNAL;
		p->packet_type = 0;
		p->pkt_len = len;
		p->data_len = (uint16_t)len;
		p->vlan_tci = 0;
		p->vlan_tci_outer = 0;
		p->buf_len = whole <= UINT16_MAX ? (uint16_t)whole : UINT16_MAX;
		p->tx_offload = 0;
		p->shinfo = &k->shared;
	}
}

void
sl_frag_mbuf_waste(struct sl_frag *f, const struct sl_frag_slice *slice, struct rte_mbuf *m)
{
	frag_count_waste(f, slice);
	rte_pktmbuf_free(m);
}
