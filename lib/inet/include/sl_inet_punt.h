/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_INET_PUNT_H
#define SL_INET_PUNT_H

/**
 * @file
 * The exception path: what nobody here claims, to another network stack that has the same
 * addresses, and what that stack sends, out by the port.
 *
 * A port may have one *taker*. Frames that are well-formed but would end as unclaimed - a protocol
 * or ethertype that is not handled, a destination that is not ours, a port without a socket, ICMP
 * that asks for nothing - are offered to it instead, and end in SL_RX_PUNTED if it takes them, else
 * in SL_RX_PUNT_FAILED. No ICMP error is sent about them: the other stack sends its own.
 *
 * Who answers: the stack answers ARP requests, neighbour solicitations and echo requests for its
 * addresses, and the taker does not see them. All other ARP and neighbour discovery is used here,
 * and the taker is shown it, as it is shown ICMP errors about UDP, which may be about a datagram of
 * either. These have their outcomes here, whatever the taker does.
 *
 *     rx burst -> stack -> claimed: UDP socket, answered, used
 *                   |----> unclaimed ------------------------> take()    PUNTED | PUNT_FAILED
 *                   '----> ARP and ND of others, ICMP errors -> show()   (outcome as without)
 *
 * Malformed frames, and those to other hosts' MAC addresses, end as they do without a taker.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_inet.h"

SL_BEGIN_DECLS

/**
 * A frame in two pieces: head_len bytes at head, then len bytes of m from off on; without padding,
 * and fragments joined. It is to be copied before the call returns, since both pieces are the
 * stack's; and they may lie in memory that a peer can change.
 */
struct sl_inet_frame {
	const uint8_t *head;
	uint32_t head_len; /**< l2_len..128 */
	const struct rte_mbuf
		*m; /**< ol_flags and tso_segsz are as the port set them; 0 if joined */
	uint32_t off;
	uint32_t len;
	uint16_t l2_len; /**< bytes of link header, tags that are in the frame included */
	uint16_t port;	 /**< handle */
};

struct sl_inet_punt_ops {
	/** An unclaimed frame: true if it was taken. Called on workers; must not block. */
	bool (*take)(void *arg, uint16_t worker, const struct sl_inet_frame *f);
	/** A frame that has found its use here. Likewise. */
	void (*show)(void *arg, uint16_t worker, const struct sl_inet_frame *f);
};

/**
 * Give a port a taker, or take it away (ops NULL).
 *
 * @param port   handle
 * @param ops    both functions are there; lives, as arg does, until a later call has put another in
 *               its place (it waits for workers that are online), or until destroy
 * @return       0; -ENODEV; -ENOMEM
 * Caller: control path. A thread that is a worker as well must be offline.
 */
int sl_inet_punt_set(struct sl_inet *inet, uint16_t port, const struct sl_inet_punt_ops *ops,
	void *arg) SL_MUST_CHECK;

/**
 * Send a whole frame by a port as it is, with the tags of the port's VLAN put in.
 *
 * @param m      Ethernet header first, its first segment not shared and with headroom for the tags;
 *               owned by the stack afterwards. Its transmit flags go to the DPDK port, which must
 * have these offloads Caller: the worker; never blocks. It leaves with the next flush at the
 * latest. Counts: a transmit outcome.
 */
void sl_inet_frame_output(struct sl_inet *inet, uint16_t worker, uint16_t port, struct rte_mbuf *m);

SL_END_DECLS

#endif
