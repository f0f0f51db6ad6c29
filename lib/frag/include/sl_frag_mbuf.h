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
 * Make a slice the data buffer of an mbuf. The mbuf's packet fields are the caller's to set.
 *
 * @param m          just allocated, without a clone of its own buffer
 * @param headroom   bytes left free in front, at most slice->size
 * @param len        data bytes, headroom + len at most slice->size and 65535
 * Caller: the owner of slice and m; the slice belongs to m afterwards. Lock-free.
 */
void sl_frag_mbuf_attach(struct sl_frag *f, const struct sl_frag_slice *slice, struct rte_mbuf *m,
	uint16_t headroom, uint16_t len);

SL_END_DECLS

#endif
