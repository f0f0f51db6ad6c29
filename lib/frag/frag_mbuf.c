/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memory.h>

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

		k->iova = chunk_iova(f->memory + (size_t)i * f->chunk_size, f->chunk_size);
		/* Without hugepages there are no I/O addresses at all, and no device to use them.
		 */
		if (k->iova == RTE_BAD_IOVA && rte_eal_has_hugepages())
			return -ENOTSUP;
		k->shared.free_cb = chunk_free;
		k->shared.fcb_opaque = k;
	}
	return 0;
}

void
sl_frag_mbuf_attach(struct sl_frag *f, const struct sl_frag_slice *slice, struct rte_mbuf *m,
	uint16_t headroom, uint16_t len)
{
	struct frag_chunk *k = &f->chunk[slice->chunk];
	size_t offset = (size_t)(slice->addr - f->memory) - (size_t)slice->chunk * f->chunk_size;
	uint16_t size = (uint16_t)RTE_MIN(slice->size, (uint32_t)UINT16_MAX);

	SL_DEBUG_ASSERT((uint32_t)headroom + len <= size);
	rte_pktmbuf_attach_extbuf(m, slice->addr, k->iova + offset, size, &k->shared);
	m->data_off = headroom;
	m->data_len = len;
	m->pkt_len = len;
}
