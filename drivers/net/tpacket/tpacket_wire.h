/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TPACKET_WIRE_H
#define TPACKET_WIRE_H

/**
 * @file
 * The part of the driver that works on bytes alone: ring geometry, header parsing, the vnet header
 * and software segmentation. It touches neither sockets nor mbufs, so tables and fuzzers drive it.
 *
 * A *slot* is one frame place in a ring of fixed frames. A *super-frame* is what the kernel's
 * segmentation offload carries: one packet with the headers of many, to be cut every gso_size bytes
 * of payload. A *partial checksum* is a layer-4 checksum field that holds only the pseudo-header
 * sum; whoever puts the frame on a wire completes it.
 */

#include <string.h>

#include <rte_byteorder.h>

#include "sl_base.h"

/** Bytes of the vnet header that AF_PACKET puts before each frame (the short form). */
#define TPACKET_VNET_LEN 10

/** Longest frame that one socket call can carry: 64 KB of IP, Ethernet header and two tags. */
#define TPACKET_SUPER_MAX (65535 + 14 + 8)

/** The vnet header, in the byte order of the machine as packet sockets use it. */
struct tpacket_vnet {
	uint8_t flags;
	uint8_t gso_type;
	uint16_t hdr_len;
	uint16_t gso_size;
	uint16_t csum_start;
	uint16_t csum_offset;
};

/** Where the headers of one frame end. Lengths are checked against the bytes that are there. */
struct tpacket_headers {
	uint16_t l2_len;
	uint16_t l3_len; /* 0: not IP, or cut short */
	uint16_t
		l4_len; /* 0: no TCP, UDP, SCTP or ICMP header, or cut short, or a later fragment */
	uint8_t l4_proto; /* of the packet, also where l4_len is 0 */
	bool ipv6;
	bool fragment;
	uint32_t ptype; /* RTE_PTYPE_* of all layers found */
};

/** A field of a header, at any alignment, in the machine's byte order. */
static inline uint16_t
tpacket_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_16(v);
}

/**
 * Find the headers of an Ethernet frame: up to two VLAN tags, IPv4 with options, IPv6 with the
 * extension headers that may precede a transport header.
 *
 * @param frame     private copy or memory nobody writes; at least `len` readable bytes
 * @param len       any value
 * @param h         always set; fields that cannot be known are 0
 */
void tpacket_parse(const uint8_t *frame, uint32_t len, struct tpacket_headers *h);

/** What a received vnet header asks for, after its fields were checked against the frame. */
struct tpacket_offload {
	bool csum_valid;   /* the kernel vouches for the checksum */
	bool csum_partial; /* start and offset below are inside the frame */
	uint16_t csum_start;
	uint16_t csum_offset;
	uint16_t gso_size; /* 0: an ordinary frame */
	bool gso_udp;
	bool gso_ipv6; /* meaning only for TCP */
};

/**
 * Check a received vnet header against its frame.
 *
 * @param len       bytes of the frame that are there, without the vnet header
 * @return          0; -EINVAL when a field points outside the frame or contradicts another;
 *                  -EOPNOTSUPP for a segmentation type that cannot be cut here
 */
int tpacket_vnet_check(
	const struct tpacket_vnet *v, uint32_t len, struct tpacket_offload *out) SL_MUST_CHECK;

/**
 * Complete a partial checksum in place over contiguous bytes.
 *
 * @param start,offset  as tpacket_vnet_check allowed them for `len`
 */
void tpacket_csum_complete(uint8_t *frame, uint32_t len, uint16_t start, uint16_t offset);

/** Folded pseudo-header sum (not inverted) of a parsed TCP or UDP frame; l4_bytes in its length. */
uint16_t tpacket_pseudo_sum(
	const uint8_t *frame, const struct tpacket_headers *h, uint32_t l4_bytes);

/** Offset of the checksum field in the transport header: TCP 16, UDP 6, others 0. */
uint16_t tpacket_csum_offset(const struct tpacket_headers *h);

/** Write the IPv4 header checksum. */
void tpacket_ipv4_csum(uint8_t *ip, uint16_t l3_len);

/** A super-frame being cut. */
struct tpacket_gso {
	const uint8_t *frame; /* whole and contiguous, the caller's, unchanged until the end */
	uint32_t len;
	uint32_t hdr_len; /* link to transport header */
	uint32_t done;	  /* payload bytes already cut */
	uint32_t index;	  /* segments already cut */
	uint16_t size;	  /* payload bytes a segment */
	bool partial;	  /* leave the segments' checksums partial */
	struct tpacket_headers h;
};

/**
 * Begin to cut.
 *
 * @param o         from tpacket_vnet_check, gso_size not 0
 * @param partial   true: segments carry partial checksums, else complete ones
 * @return          0; -EINVAL when the headers do not agree with the segmentation type
 */
int tpacket_gso_start(struct tpacket_gso *g, const uint8_t *frame, uint32_t len,
	const struct tpacket_offload *o, bool partial) SL_MUST_CHECK;

/** Bytes of the next segment, 0 at the end. */
uint32_t tpacket_gso_next(const struct tpacket_gso *g);

/** Write the next segment to `out`, tpacket_gso_next bytes, and go on to the one after it. */
void tpacket_gso_emit(struct tpacket_gso *g, uint8_t *out);

/** One ring as the kernel is asked for it. */
struct tpacket_geom {
	uint32_t block_size; /* bytes, a page multiple */
	uint32_t block_nr;
	uint32_t frame_size; /* bytes, a multiple of 16; for version 3 what a frame needs at most */
	uint32_t frame_nr;   /* per_block * block_nr */
	uint32_t per_block;  /* frames never cross a block; what is left at its end is unused */
};

/** What a geometry is derived from. 0 in the first three means: derive it. */
struct tpacket_geom_ask {
	uint32_t block_size;
	uint32_t frame_size;
	uint32_t frame_nr;
	uint32_t slot;	      /* bytes a frame needs, headers of the ring included */
	uint32_t block_least; /* bytes that a block must hold, 0: one frame */
	uint32_t page;	      /* bytes of a page */
	bool fit_slot;	      /* a frame size below `slot` is no use */
	bool whole_blocks;    /* version 3: frames of any size packed into blocks */
};

#define TPACKET_BLOCK_MAX (4u << 20)
#define TPACKET_FRAME_MAX (256u << 10)
#define TPACKET_RING_MAX (1u << 30)

/**
 * Derive a ring that the kernel accepts from what was asked.
 *
 * @param changed   set to true when a value that was asked for had to be rounded
 * @return          0; -EINVAL when no ring fits (frame larger than a block can be, ring above 1 GB)
 */
int tpacket_geom_derive(
	const struct tpacket_geom_ask *ask, struct tpacket_geom *out, bool *changed) SL_MUST_CHECK;

/** Byte offset of frame n: the block it lies in, then its place there. */
static inline size_t
tpacket_geom_offset(const struct tpacket_geom *g, uint32_t n)
{
	return (size_t)(n / g->per_block) * g->block_size +
	       (size_t)(n % g->per_block) * g->frame_size;
}

#endif
