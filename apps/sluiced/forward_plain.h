/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FORWARD_PLAIN_H
#define SLUICED_FORWARD_PLAIN_H

/**
 * @file
 * What forward_send does, for the common case alone, and in a tenth of the instructions: a plain
 * datagram in memory of ours, to a next hop that is known, by a link with as long a header as the
 * one that it came by. All headers are made in registers from the private copy, by words, and
 * written once.
 *
 *   IPv4, from the end of the link header (of the way):
 *     | +0: w0 | +8: ttl, protocol, sum, source | +16: destination, ports | +24: length, sum |
 *   IPv6:
 *     | +0: w0, hop limit | +8: source | +24: destination | +40: ports, length, sum |
 */
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "forward_priv.h"

#define PLAIN_LINK 14u
#define PLAIN_LINK_TAG 18u

/* How far to shift a word to what lies some octets in it, and is some octets long. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define PLAIN_AT(at, octets) (8 * (at))
#define PLAIN_AT3(at) (8 * (at))
#else
#define PLAIN_AT(at, octets) (64 - 8 * ((at) + (octets)))
#define PLAIN_AT3(at) (16 - 8 * (at))
#endif
/* What a sum of 16-bit words in memory order gains when the hop limit loses one: less than that by
 * 65535, as one's complement has it. */
#define PLAIN_HOP (UINT16_MAX - (1u << (PLAIN_AT(0, 1) - PLAIN_AT(0, 2))))

/* An end as words have it. */
struct forward_plain_end {
	uint64_t high, low; /* address; IPv4's is at the end of low */
	uint16_t port;
};

static inline struct forward_plain_end
forward_plain_end(const struct forward_end *end)
{
	struct forward_plain_end e = {.port = end->port};

	memcpy(&e.high, end->addr.b, sizeof(e.high));
	memcpy(&e.low, end->addr.b + 8, sizeof(e.low));
	return e;
}

/* Can forward_plain send that way at all? */
static inline bool
forward_plain_way(const struct sl_inet_way *way)
{
	return way->link_len == PLAIN_LINK || way->link_len == PLAIN_LINK_TAG;
}

/* May it send c's packet that way? */
static inline bool
forward_plain_may(const struct sl_inet_claimed *c, const struct sl_inet_way *way)
{
	const struct rte_mbuf *m = c->m;

	return c->plain && c->l2_len == way->link_len && c->end - c->l2_len <= way->mtu &&
	       c->head[c->l2_len + (c->v4 ? 8 : 7)] > 1 && rte_mbuf_refcnt_read(m) == 1 &&
	       (m->ol_flags & (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)) == 0 &&
	       (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) != RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/* Make c's packet a frame with that link header; returns what is behind it. */
static inline __attribute__((always_inline)) uint8_t *
forward_plain_frame(const struct sl_inet_claimed *c, const struct sl_inet_way *way, uint32_t l2_len,
	uint32_t l3_len)
{
	struct rte_mbuf *m = c->m;
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	m->ol_flags = 0;
	m->tx_offload = rte_mbuf_tx_offload(l2_len, l3_len, 0, 0, 0, 0, 0);
	m->data_len = (uint16_t)c->end;
	m->pkt_len = c->end;
	memcpy(p, way->link, l2_len);
	return p + l2_len;
}

/* One's complement sum of two words. */
static inline uint64_t
forward_add64(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

/* Of IPv4: see forward_plain. */
static inline __attribute__((always_inline)) void
forward_plain4(const struct sl_inet_claimed *c, const struct sl_inet_way *way, uint32_t l2_len,
	const struct forward_plain_end *end, bool to_end)
{
	const uint8_t *h = c->head + l2_len;
	uint8_t *p = forward_plain_frame(c, way, l2_len, 20);
	uint64_t w0, w1, w2, addr = (uint32_t)(end->low >> PLAIN_AT(4, 4)), delta,
			     ports = end->port;
	uint16_t ip_sum, udp_sum;
	uint32_t w3;

	memcpy(&w0, h, 8);
	memcpy(&w1, h + 8, 8);
	memcpy(&w2, h + 16, 8);
	memcpy(&w3, h + 24, 4);
	if (to_end) {
		delta = addr + (uint32_t) ~(w2 >> PLAIN_AT(0, 4));
		ports += (uint16_t) ~(w2 >> PLAIN_AT(6, 2));
		w2 &= (uint64_t)UINT16_MAX << PLAIN_AT(4, 2);
		w2 |= addr << PLAIN_AT(0, 4) | (uint64_t)end->port << PLAIN_AT(6, 2);
	} else {
		delta = addr + (uint32_t) ~(w1 >> PLAIN_AT(4, 4));
		ports += (uint16_t) ~(w2 >> PLAIN_AT(4, 2));
		w1 &= (uint64_t)UINT32_MAX << PLAIN_AT(0, 4);
		w1 |= addr << PLAIN_AT(4, 4);
		w2 &= ~((uint64_t)UINT16_MAX << PLAIN_AT(4, 2));
		w2 |= (uint64_t)end->port << PLAIN_AT(4, 2);
	}
	ip_sum = forward_sum((uint16_t)(w1 >> PLAIN_AT(2, 2)), delta + PLAIN_HOP);
	w1 &= ~((uint64_t)UINT16_MAX << PLAIN_AT(2, 2));
	w1 |= (uint64_t)ip_sum << PLAIN_AT(2, 2);
	w1 -= UINT64_C(1) << PLAIN_AT(0, 1);
	udp_sum = forward_udp_sum((uint16_t)(w3 >> PLAIN_AT3(2)), delta + ports);
	w3 &= (uint32_t)UINT16_MAX << PLAIN_AT3(0);
	w3 |= (uint32_t)udp_sum << PLAIN_AT3(2);
	memcpy(p, &w0, 8);
	memcpy(p + 8, &w1, 8);
	memcpy(p + 16, &w2, 8);
	memcpy(p + 24, &w3, 4);
}

/* Of IPv6: see forward_plain. */
static inline __attribute__((always_inline)) void
forward_plain6(const struct sl_inet_claimed *c, const struct sl_inet_way *way, uint32_t l2_len,
	const struct forward_plain_end *end, bool to_end)
{
	const uint8_t *h = c->head + l2_len;
	uint8_t *p = forward_plain_frame(c, way, l2_len, 40);
	uint32_t addr = to_end ? 24 : 8, other = to_end ? 8 : 24, port = to_end ? 2 : 0;
	uint64_t w0, high, low, o0, o1, udp, delta;
	uint16_t sum;

	memcpy(&w0, h, 8);
	memcpy(&high, h + addr, 8);
	memcpy(&low, h + addr + 8, 8);
	memcpy(&o0, h + other, 8);
	memcpy(&o1, h + other + 8, 8);
	memcpy(&udp, h + 40, 8);
	w0 -= UINT64_C(1) << PLAIN_AT(7, 1);
	delta = forward_add64(forward_add64(end->high, end->low), ~forward_add64(high, low));
	delta = (delta & UINT32_MAX) + (delta >> 32);
	delta += (uint64_t)end->port + (uint16_t) ~(udp >> PLAIN_AT(port, 2));
	sum = forward_udp_sum((uint16_t)(udp >> PLAIN_AT(6, 2)), delta);
	udp &= ~(
		(uint64_t)UINT16_MAX << PLAIN_AT(port, 2) | (uint64_t)UINT16_MAX << PLAIN_AT(6, 2));
	udp |= (uint64_t)end->port << PLAIN_AT(port, 2) | (uint64_t)sum << PLAIN_AT(6, 2);
	memcpy(p, &w0, 8);
	memcpy(p + addr, &end->high, 8);
	memcpy(p + addr + 8, &end->low, 8);
	memcpy(p + other, &o0, 8);
	memcpy(p + other + 8, &o1, 8);
	memcpy(p + 40, &udp, 8);
}

/**
 * Make c's packet the frame that goes to (to_end), or else comes from, end.
 *
 * @param c   forward_plain_way and forward_plain_may said so
 */
static inline __attribute__((always_inline)) void
forward_plain(const struct sl_inet_claimed *c, const struct sl_inet_way *way,
	const struct forward_plain_end *end, bool to_end)
{
	/* Lengths that the compiler knows. */
	if (SL_LIKELY(c->v4 && way->link_len == PLAIN_LINK))
		forward_plain4(c, way, PLAIN_LINK, end, to_end);
	else if (c->v4)
		forward_plain4(c, way, PLAIN_LINK_TAG, end, to_end);
	else if (way->link_len == PLAIN_LINK)
		forward_plain6(c, way, PLAIN_LINK, end, to_end);
	else
		forward_plain6(c, way, PLAIN_LINK_TAG, end, to_end);
}

#endif
