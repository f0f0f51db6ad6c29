/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_VNET_H
#define SL_VNET_H

/**
 * @file
 * The vnet header (struct virtio_net_hdr, 10 bytes, or 12 with the buffer count) that programs put
 * in front of packets to ask for checksums and segmentation: which are refused, and what an
 * accepted one means for a packet.
 *
 * Both the header and the packet's front are given as private copies: checking in memory that the
 * sender can still change is worth nothing. Host byte order in the header, as packet sockets have
 * it.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_base.h"

SL_BEGIN_DECLS

/** Bytes of a packet's front that a check wants to see (or the whole packet, if shorter): Ethernet,
 * two VLAN tags, IPv6 with some extension headers or IPv4 with options, TCP with options. */
#define SL_VNET_HEAD 256

enum sl_vnet_gso {
	SL_VNET_GSO_NONE,
	SL_VNET_GSO_TCP4,
	SL_VNET_GSO_TCP6,
	SL_VNET_GSO_UDP_L4,
	SL_VNET_GSO_UFO,
};

/** A checked request. */
struct sl_vnet {
	bool csum;              /**< the checksum at csum_start + csum_offset is to be completed */
	uint16_t csum_start;    /**< from the packet's start */
	uint16_t csum_offset;   /**< from csum_start */
	enum sl_vnet_gso gso;   /**< NONE also when the packet is no longer than one segment */
	uint16_t gso_size;      /**< payload bytes of a segment */
	bool ecn;               /**< the first segment alone carries CWR */
	bool v6;                /**< the packet is IPv6 (else IPv4, when l3_len is not 0) */
	uint8_t proto;          /**< IPPROTO_ of the packet, 0 when it is not understood */
	uint16_t l2_len, l3_len, l4_len; /**< header lengths, 0 where not understood */
};

/**
 * Check a vnet header against its packet.
 *
 * @param header   10 bytes at least, any alignment, a private copy
 * @param head     the packet's first min(len, SL_VNET_HEAD) bytes, a private copy
 * @param len      bytes of the whole packet
 * @param v        set on success only
 * @return         0; -EINVAL for a header that Linux refuses (doc/pktring.md lists the rules)
 * Caller: any thread.
 */
int sl_vnet_check(const void *header, const uint8_t *head, uint32_t len, struct sl_vnet *v)
	SL_MUST_CHECK;

/**
 * Complete a checksum in place: one's complement sum from csum_start to the packet's end, which
 * includes what the sender left in the field (the pseudo header's sum).
 *
 * @param packet   len bytes, contiguous, the caller's own
 * @param v        checked against this packet, with v->csum set
 */
void sl_vnet_complete(uint8_t *packet, uint32_t len, const struct sl_vnet *v);

/** A packet that is to be cut into segments, and the headers that each of them starts with. */
struct sl_vnet_cut {
	struct sl_vnet v;       /**< csum_start and csum_offset name the transport checksum */
	uint32_t front_len;     /**< bytes of link, network and transport header */
	uint32_t payload;       /**< bytes behind them */
	uint32_t segments;      /**< at least 1 */
	uint8_t front[SL_VNET_HEAD];
};

/**
 * Get ready to cut a packet as its segmentation request says, for a port that cannot: TCP over IPv4
 * or IPv6, UDP by UDP_L4.
 *
 * @param v      checked against this packet, v->gso other than NONE
 * @param head   the packet's first min(len, SL_VNET_HEAD) bytes, a private copy
 * @param cut    set on success only
 * @return       0; -EINVAL: headers that are not those of the request, or that end behind the
 *               packet or behind SL_VNET_HEAD; a checksum request for another field; UFO
 * Caller: any thread.
 */
int sl_vnet_cut(const struct sl_vnet *v, const uint8_t *head, uint32_t len,
	struct sl_vnet_cut *cut) SL_MUST_CHECK;

/** Payload bytes of segment i (below cut->segments); they start at front_len + i * gso_size. */
uint32_t sl_vnet_cut_payload(const struct sl_vnet_cut *cut, uint32_t i);

/**
 * Write the headers of segment i, as Linux makes them: its lengths, identification counted up,
 * sequence number, FIN and PSH with the last alone, CWR with the first alone. The IPv4 checksum is
 * complete, the transport checksum's field has the sum of the pseudo header, as sl_vnet_complete
 * wants it.
 *
 * @param front   front_len bytes
 */
void sl_vnet_cut_front(const struct sl_vnet_cut *cut, uint32_t i, uint8_t *front);

/** Write a vnet header for a received packet: data_valid when its checksums are known good. */
void sl_vnet_fill(void *header, uint32_t size, bool data_valid);

SL_END_DECLS

#endif
