/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CLAIM_AGAIN6_H
#define INET_CLAIM_AGAIN6_H

/*
 * Datagrams like the one before, of IPv6: see claim_again.h.
 */
#include "claim_again.h"

/* Version and next header. */
#define CLAIM_MASK6 (CLAIM_OCTET(0xf0, 0) | CLAIM_OCTET(0xff, 6))
#define CLAIM_WANT6 (CLAIM_OCTET(0x60, 0) | CLAIM_OCTET(IPPROTO_UDP, 6))

/* The port that the claim names. */
static inline uint64_t
claim_mask_udp(enum sl_inet_claim_kind kind)
{
	return kind == SL_CLAIM_FROM ? CLAIM_PORT(0) : CLAIM_PORT(2);
}

/* c is the first of its kind in this burst. */
static inline void
claim_again_set6(
	struct claim_again *a, enum sl_inet_claim_kind kind, const struct sl_inet_claimed *c)
{
	memcpy(a->src, c->src.b, sizeof(a->src));
	memcpy(a->dst, c->dst.b, sizeof(a->dst));
	memcpy(&a->udp, c->head + c->l4_off, sizeof(a->udp));
	a->udp &= claim_mask_udp(kind);
	claim_again_common(a, c, CLAIM_PLAIN6);
}

/* May one with these first 8 octets send from here? Neither a group, nor in 0::/8, where all the
 * special ones are, nor of one link. */
static inline bool
claim_source6_ok(uint64_t high)
{
	uint32_t top = rte_be_to_cpu_16((uint16_t)(high >> CLAIM_AT(0, 2)));

	return (top >> 8) - 1 < 0xfe && (top & 0xffc0) != 0xfe80;
}

/* Is the source the first one's, if the claim names that, or else one that may send? */
static inline bool
claim_again_source6(
	const struct claim_again *a, enum sl_inet_claim_kind kind, uint64_t s0, uint64_t s1)
{
	if (kind == SL_CLAIM_FROM)
		return s0 == a->src[0] && s1 == a->src[1];
	return claim_source6_ok(s0) && (s0 != a->dst[0] || s1 != a->dst[1]);
}

/* As claim_again_one4. */
static inline __attribute__((always_inline)) bool
claim_again_one6(const struct inet_rx *rx, const struct claim_again *a, struct claim_shape shape,
	struct rte_mbuf *m, uint8_t *h, struct sl_inet_claimed *c)
{
	const char *p = rte_pktmbuf_mtod(m, const char *);
	uint64_t w0, s0, s1, d0, d1, udp;
	uint32_t len;

	if (!claim_again_may(m, shape.l2_len + CLAIM_PLAIN6) ||
		!claim_again_link(rx, a, shape.l2_len, p, h))
		return false;
	p += shape.l2_len;
	h += shape.l2_len;
	w0 = load64(p);
	s0 = load64(p + 8);
	s1 = load64(p + 16);
	d0 = load64(p + 24);
	d1 = load64(p + 32);
	udp = load64(p + 40);
	len = rte_be_to_cpu_16((uint16_t)(w0 >> CLAIM_AT(4, 2)));
	if ((w0 & CLAIM_MASK6) != CLAIM_WANT6 || d0 != a->dst[0] || d1 != a->dst[1] ||
		(udp & claim_mask_udp(shape.kind)) != a->udp ||
		!claim_again_source6(a, shape.kind, s0, s1) ||
		shape.l2_len + 40 + len > m->data_len || len < 8 ||
		rte_be_to_cpu_16((uint16_t)(udp >> CLAIM_AT(4, 2))) != len ||
		(udp & CLAIM_PORT(6)) == 0)
		return false;
	claim_write(h, &w0, 8);
	claim_write(h + 8, &s0, 8);
	claim_write(h + 16, &s1, 8);
	claim_write(h + 24, &d0, 8);
	claim_write(h + 32, &d1, 8);
	claim_write(h + 40, &udp, 8);
	claim_again_fill(a, c, m, h - shape.l2_len, shape.l2_len + 40 + len,
		(uint32_t)(udp >> CLAIM_AT(0, 4)));
	memcpy(c->src.b, &s0, 8);
	memcpy(c->src.b + 8, &s1, 8);
	return true;
}

#endif
