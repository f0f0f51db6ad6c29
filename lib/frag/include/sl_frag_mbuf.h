/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_FRAG_MBUF_H
#define SL_FRAG_MBUF_H

/**
 * @file
 * The mbuf-facing half of the page-frag allocator: a slice becomes the external buffer of an mbuf.
 *
 * The mbuf comes from a pool of headers (data room 0 is enough). Freeing it, on any lcore and also
 * after sl_frag_destroy, puts the slice; attaching further mbufs to it adds references to the same
 * count, of which 65535 less the bias (chunk size / 64 + 1) are left for a chunk.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_frag.h"

SL_BEGIN_DECLS

/**
 * Prepare an allocator for mbufs: free callbacks, and the I/O address of each chunk.
 *
 * @return   0; -ENOTSUP when a chunk's I/O addresses are not one piece (I/O addresses are physical
 *           and the memory is not EAL's)
 * Caller: control path, after rte_eal_init and before the first carve.
 */
int sl_frag_mbuf_bind(struct sl_frag *f) SL_MUST_CHECK;

/**
 * Make slices the data buffers of mbufs, one each, as packets of one segment without flags or
 * offloads.
 *
 * @param m          as their pool keeps them (rte_mempool_get_bulk): all that a receiver looks at
 * is set here
 * @param size       bytes of headroom and data of each; at most its slice's size, and 65535
 * @param headroom   bytes left free in front of each, at most the smallest size
 * @param port       what the packets say that they came from
 * Caller: the owner of slices and mbufs; each slice belongs to its mbuf afterwards. Lock-free.
 */
void sl_frag_mbuf_attach_bulk(struct sl_frag *f, const struct sl_frag_slice *slice,
	struct rte_mbuf **m, const uint32_t *size, uint16_t n, uint16_t headroom, uint16_t port);

/** Free an mbuf over a slice that was carved for nothing: as sl_frag_waste. */
void sl_frag_mbuf_waste(struct sl_frag *f, const struct sl_frag_slice *slice, struct rte_mbuf *m);

SL_END_DECLS

#endif
