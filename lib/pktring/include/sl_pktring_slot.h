/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_PKTRING_SLOT_H
#define SL_PKTRING_SLOT_H

/**
 * @file
 * Where things lie in a slot of a packet ring, and how its status word is read and written, from
 * both sides. Needs no DPDK: servers, clients and tests share it.
 *
 * A *slot* is one frame of the ring: a header (struct tpacket_hdr, tpacket2_hdr or tpacket3_hdr),
 * an address in receive rings, then the packet. The *status word* in the header says whose the slot
 * is; it is the only synchronisation between the two sides.
 *
 *     transmit:  AVAILABLE --client--> SEND_REQUEST --server--> SENDING --server--> AVAILABLE
 *                                            \--server--> WRONG_FORMAT --client--> SEND_REQUEST
 *     receive:   KERNEL --server--> USER --client--> KERNEL
 *
 * Ordering, one pair for each change of hands:
 *
 *     PR1  client's bytes and header  -> server, with SEND_REQUEST
 *     PR2  server's last look         -> client, with AVAILABLE (the client may write again)
 *     PR3  server's bytes and header  -> client, with USER (V3: on the block)
 *     PR4  client's last look         -> server, with KERNEL (the server may write again)
 *
 * Stability: stable (doc/api.md).
 */

#include <linux/if_packet.h>

#include "sl_base.h"
#include "sl_shared.h"

SL_BEGIN_DECLS

/** Bytes of a slot's header: 32, 32 and 48 on 64-bit machines. */
static inline uint32_t
sl_pktring_header(int version)
{
	static const uint8_t size[] = {sizeof(struct tpacket_hdr), sizeof(struct tpacket2_hdr),
		sizeof(struct tpacket3_hdr)};

	return size[version];
}

/** Where the address lies in a receive slot, and the packet in a transmit slot by default. */
static inline uint32_t
sl_pktring_data(int version)
{
	return TPACKET_ALIGN(sl_pktring_header(version));
}

/** Smallest legal frame: header and address (TPACKET_HDRLEN of each version: 52, 52, 68). */
static inline uint32_t
sl_pktring_hdrlen(int version)
{
	return sl_pktring_data(version) + (uint32_t)sizeof(struct sockaddr_ll);
}

/**
 * Read a slot's status, whole, acquiring what the other side wrote before it gave the slot away.
 *
 * Ordering: PR1 on the server, PR2 on the client; PR4 and PR3 in receive rings.
 */
static inline uint64_t
sl_pktring_status(int version, const void *slot)
{
	/* PR1, PR2, PR3, PR4: see above */
	switch (version) {
	case TPACKET_V1:
		return sl_load_acquire(&((const struct tpacket_hdr *)slot)->tp_status);
	case TPACKET_V2:
		return sl_load_acquire(&((const struct tpacket2_hdr *)slot)->tp_status);
	default: /* PR1, PR2, PR3, PR4 */
		return sl_load_acquire(&((const struct tpacket3_hdr *)slot)->tp_status);
	}
}

/**
 * Write a slot's status: the slot is the other side's afterwards.
 *
 * Ordering: PR2 on the server, PR1 on the client; PR3 and PR4 in receive rings.
 */
static inline void
sl_pktring_status_set(int version, void *slot, uint32_t status)
{
	/* PR1, PR2, PR3, PR4: see above */
	switch (version) {
	case TPACKET_V1:
		sl_store_release(&((struct tpacket_hdr *)slot)->tp_status, (unsigned long)status);
		break;
	case TPACKET_V2: /* PR1, PR2, PR3, PR4 */
		sl_store_release(&((struct tpacket2_hdr *)slot)->tp_status, status);
		break;
	default: /* PR1, PR2, PR3, PR4 */
		sl_store_release(&((struct tpacket3_hdr *)slot)->tp_status, status);
		break;
	}
}

/**
 * Client: fill the header of a transmit slot and ask for it to be sent.
 *
 * @param len   bytes that were written at the slot's data offset, vnet header included
 * Caller: the client, on a slot whose status it has seen AVAILABLE.
 * Ordering: PR1
 */
static inline void
sl_pktring_request(int version, void *slot, uint32_t len)
{
	switch (version) {
	case TPACKET_V1:
		((struct tpacket_hdr *)slot)->tp_len = len;
		break;
	case TPACKET_V2:
		((struct tpacket2_hdr *)slot)->tp_len = len;
		break;
	default:
		((struct tpacket3_hdr *)slot)->tp_len = len;
		((struct tpacket3_hdr *)slot)->tp_next_offset = 0;
		break;
	}
	sl_pktring_status_set(version, slot, TP_STATUS_SEND_REQUEST);
}

/** Is the slot the client's to fill? Timestamp bits of a completed one do not matter. */
static inline bool
sl_pktring_is_available(int version, const void *slot)
{
	return (sl_pktring_status(version, slot) &
		       (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING | TP_STATUS_WRONG_FORMAT)) == 0;
}

SL_END_DECLS

#endif
