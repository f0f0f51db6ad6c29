/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_PKTRING_MBUF_H
#define SL_PKTRING_MBUF_H

/**
 * @file
 * The mbuf-facing half of packet rings: a transmit slot as an mbuf's external buffer, and an mbuf
 * copied into a receive ring.
 *
 * The external buffer *is* the slot: whoever frees the mbuf last, on whichever lcore, completes the
 * slot. The buffer covers the packet alone, without headroom or tailroom, because what lies around
 * it is the slot's header and somebody else's slot.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_pktring.h"

SL_BEGIN_DECLS

/**
 * Make a taken slot the buffer of an mbuf.
 *
 * @param ring    its memory must be reachable by who reads the mbuf: no DMA
 * @param frame   of a slot that was peeked and then taken; len at most 65535
 * @param m       freshly allocated, direct; its own buffer is not used
 * Caller: the sender.
 * Ordering: freeing the mbuf completes the slot (PR2).
 */
void sl_pktring_mbuf_attach(struct sl_pktring_tx *ring, const struct sl_pktring_frame *frame,
	struct rte_mbuf *m);

/** What a burst of lent slots may be, and how they are counted. */
struct sl_pktring_lend {
	uint32_t least, most; /**< bytes of a packet; most is at most 65535 */
	uint32_t worker;      /**< as sl_pktring_tx_take */
	uint16_t port;        /**< of the mbufs */
};

/**
 * Take requests from the head and attach them to mbufs, for as long as there is nothing peculiar
 * about them: their lengths are within bounds, and the ring has neither TX_HAS_OFF nor vnet headers
 * (then none is taken). What stops it is the head slot, for peek to say what it is. As peek, take
 * and attach in turn, at a fraction of the cost: pending slots are counted once.
 *
 * @param m     mbufs as rte_mempool_get_bulk leaves them; those that are not needed stay as they are
 * @param len   set for each that was taken
 * @return      how many were taken, 0..n
 * Caller: the sender.
 * Ordering: PR1; freeing the mbufs completes the slots (PR2).
 */
uint16_t sl_pktring_mbuf_lend(struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n);

/**
 * Copy requests from the head into mbufs, one mbuf each, for as long as there is nothing peculiar
 * about them, as sl_pktring_mbuf_lend does it. A copy of a cache line or two costs less than lending
 * does: no buffer to attach and detach, no callback, no count.
 *
 * Fetched slots are SENDING until they are given back (sl_pktring_tx_give) or the head goes back
 * (sl_pktring_tx_back), but they are not pending: nobody counts them. So one of the two must be done
 * before the sender lets go of the ring.
 *
 * @param m       as sl_pktring_mbuf_lend, with room for want->most bytes
 * @param first   set to the number of the first slot; the others follow it in the ring
 * @return        how many were fetched, 0..n
 * Caller: the sender.
 * Ordering: PR1
 */
uint16_t sl_pktring_mbuf_fetch(struct sl_pktring_tx *ring, const struct sl_pktring_lend *want,
	struct rte_mbuf *const *m, uint32_t *len, uint16_t n, uint32_t *first);

/**
 * Free an attached mbuf that nobody has sent, without completing its slot, and untake the slot.
 *
 * @param worker   as sl_pktring_tx_untake, and as there last first
 * Caller: the sender, who owns m alone.
 */
void sl_pktring_mbuf_cancel(struct sl_pktring_tx *ring, struct rte_mbuf *m, uint32_t worker);

/**
 * Copy a peeked packet, once, into an mbuf chain of the ring's caller.
 *
 * @return   the chain, or NULL when the pool is empty
 * Caller: the sender; does not take the slot.
 */
struct rte_mbuf *sl_pktring_mbuf_copy(const struct sl_pktring_tx *ring,
	const struct sl_pktring_frame *frame, struct rte_mempool *pool);

/** Copy n bytes from `skip` on out of a chain that holds at least that many. */
void sl_pktring_mbuf_read(const struct rte_mbuf *m, uint32_t skip, uint8_t *to, uint32_t n);

/**
 * Copy a packet into a receive ring: reserve, copy, commit.
 *
 * @param m       not freed and not changed; its first `meta->len` bytes from `skip` on are stored
 * @param skip    bytes at the front that are not stored (the link header of a dgram socket)
 * @param visible set to true when the client has something new to look at; else left alone
 * @return        as sl_pktring_rx_reserve
 * Caller: any thread.
 */
int sl_pktring_mbuf_store(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	const struct rte_mbuf *m, uint32_t skip, bool *visible) SL_MUST_CHECK;

SL_END_DECLS

#endif
