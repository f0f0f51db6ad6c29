/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TAPQ_VNET_H
#define SL_TAPQ_VNET_H

/**
 * @file
 * The virtio-net header: what a peer may say about a frame, and what it means for an mbuf.
 *
 * The header tells that a checksum is still to be computed (*partial*), that it was verified, or
 * that the frame is a large one to be cut into *segments*. It lies in the peer's memory: copy it
 * and the frame first, then call what is here, on the copies.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_base.h"

SL_BEGIN_DECLS

#define SL_TAPQ_VNET_NEEDS_CSUM 1u
#define SL_TAPQ_VNET_DATA_VALID 2u

#define SL_TAPQ_VNET_GSO_NONE 0u
#define SL_TAPQ_VNET_GSO_TCPV4 1u
#define SL_TAPQ_VNET_GSO_UDP 3u /**< fragments of one datagram */
#define SL_TAPQ_VNET_GSO_TCPV6 4u
#define SL_TAPQ_VNET_GSO_UDP_L4 5u /**< datagrams of one size */
#define SL_TAPQ_VNET_GSO_ECN 0x80u

/** Bytes of the header: with and without the number of buffers. */
#define SL_TAPQ_VNET_LONG 12u
#define SL_TAPQ_VNET_SHORT 10u

/** The header as virtio 1 has it, little-endian. */
struct sl_tapq_vnet_hdr {
	uint8_t flags;
	uint8_t gso_type;
	uint16_t hdr_len;
	uint16_t gso_size;
	uint16_t csum_start;
	uint16_t csum_offset;
	uint16_t num_buffers;
};

/** What is wrong with a header. */
enum sl_tapq_vnet_error {
	SL_TAPQ_VNET_OK,
	SL_TAPQ_VNET_BAD_GSO_TYPE, /**< no such type, or ECN where there is no TCP */
	SL_TAPQ_VNET_BAD_GSO_SIZE, /**< 0, 0xffff, or more than 128 datagrams */
	SL_TAPQ_VNET_BAD_HDR_LEN,  /**< longer than the frame, or shorter than an Ethernet header */
	SL_TAPQ_VNET_BAD_CSUM, /**< checksum field outside the frame, or not where its protocol has it */
	SL_TAPQ_VNET_BAD_PROTOCOL, /**< the frame is not what gso_type says */
	SL_TAPQ_VNET_ERROR_COUNT
};

/**
 * Check a header against its frame, and make it plain: a frame no longer than a segment loses its
 * gso_type, a tiny gso_size is raised to 8.
 *
 * @param hdr    private copy; changed as said
 * @param data   first bytes of the frame, private
 * @param have   how many of them there are, at most len
 * @param len    bytes of the frame
 * Caller: any thread.
 */
enum sl_tapq_vnet_error sl_tapq_vnet_check(
	struct sl_tapq_vnet_hdr *hdr, const uint8_t *data, uint32_t have, uint32_t len);

/** Name of an error, for counters. */
const char *sl_tapq_vnet_error_name(enum sl_tapq_vnet_error e);

/**
 * Say in an mbuf's receive fields what a checked header says.
 *
 * @param m          the frame; the headers lie in its first segment
 * @param complete   compute a partial checksum here, for an application that does not know the flag
 * @return           SL_TAPQ_VNET_OK, or SL_TAPQ_VNET_BAD_CSUM when the field lies in a later segment
 * Caller: the owner of m.
 */
enum sl_tapq_vnet_error sl_tapq_vnet_to_mbuf(
	const struct sl_tapq_vnet_hdr *hdr, struct rte_mbuf *m, bool complete);

/** What a peer has agreed to receive. */
enum sl_tapq_vnet_accept {
	SL_TAPQ_VNET_ACCEPT_CSUM = 1 << 0,
	SL_TAPQ_VNET_ACCEPT_TSO4 = 1 << 1,
	SL_TAPQ_VNET_ACCEPT_TSO6 = 1 << 2,
	SL_TAPQ_VNET_ACCEPT_USO = 1 << 3,
};

/**
 * Make the header that an mbuf's transmit flags ask for. Checksums that the peer does not accept
 * partial are computed in the mbuf, as is the IPv4 header's.
 *
 * @param accept   enum sl_tapq_vnet_accept
 * @param hdr      set; num_buffers is 1
 * @return         0; -EOPNOTSUPP for segmentation that the peer does not accept; -EINVAL for
 * lengths in m that do not fit the frame Caller: the owner of m, whose first segment is not shared.
 */
int sl_tapq_vnet_from_mbuf(struct rte_mbuf *m, uint32_t accept, struct sl_tapq_vnet_hdr *hdr) SL_MUST_CHECK;

SL_END_DECLS

#endif
