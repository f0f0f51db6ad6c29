/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CLAIM_AGAIN_H
#define INET_CLAIM_AGAIN_H

/*
 * Datagrams like the one before: most of a burst falls under one claim. What of a plain datagram
 * must be the same for that is compared by words, so that no claim is looked for and no address
 * looked up. Anything that does not fit, or is doubtful, is looked at in full, from the packet
 * anew, and nothing that was read here counts for it.
 *
 * Each word of a frame is read once: pinned, so that the compiler cannot read it again. The private
 * copy is written from them; who reads it by words of the same places does not wait for stores.
 *
 *   0        6        12          l2        +8        +16       +24      +28           +40     +48
 *   | to     | from   | tag, type | w0      | w1      | w2      | w3     |                     IPv4
 *                                  version.. ttl..src  dst,ports length, sum
 *                                 | w0      | source            | destination           | udp |
 * IPv6 version..hop limit                        ports, length, sum
 */
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "cksum.h"
#include "claim.h"
#include "load.h"

#define CLAIM_ETH 14u
#define CLAIM_TAGGED (CLAIM_ETH + 4u)
/* Headers behind that of the link. */
#define CLAIM_PLAIN4 (20u + 8u)
#define CLAIM_PLAIN6 (40u + 8u)

/* How far to shift a word to what lies some octets in it, and is some octets long. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define CLAIM_AT(at, octets) (8 * (at))
#else
#define CLAIM_AT(at, octets) (64 - 8 * ((at) + (octets)))
#endif
#define CLAIM_OCTET(v, at) ((uint64_t)(v) << CLAIM_AT(at, 1))
#define CLAIM_PORT(at) ((uint64_t)UINT16_MAX << CLAIM_AT(at, 2))
#define CLAIM_ADDR(at) ((uint64_t)UINT32_MAX << CLAIM_AT(at, 4))

/* Version and length of the header, and that it is no fragment. */
#define CLAIM_MASK0 (CLAIM_OCTET(0xff, 0) | CLAIM_OCTET(0x3f, 6) | CLAIM_OCTET(0xff, 7))
#define CLAIM_WANT0 CLAIM_OCTET(0x45, 0)

/* The last 8 octets of a link header: type; and, as all a port's frames have a tag or none, what
 * says which one. Its priority may differ. */
#define CLAIM_TYPE CLAIM_PORT(6)
#define CLAIM_TAG (CLAIM_PORT(2) | CLAIM_OCTET(0x0f, 4) | CLAIM_OCTET(0xff, 5))

/* What those like the first one of a kind and family look like; of one burst. */
struct claim_again {
	bool known;
	/* Without what may differ. */
	uint64_t link, link_mask;
	union {
		struct {
			uint64_t w1, w2;
		}; /* IPv4 */
		struct {
			uint64_t src[2], dst[2], udp;
		}; /* IPv6 */
	};
	struct sl_inet_claimed c; /* what they have in common */
};

/* What the compiler knows of those that are alike. */
struct claim_shape {
	enum sl_inet_claim_kind kind;
	bool v4;
	uint32_t l2_len;
};

/* Protocol; source, if the claim names that. */
static inline uint64_t
claim_mask1(enum sl_inet_claim_kind kind)
{
	return CLAIM_OCTET(0xff, 1) | (kind == SL_CLAIM_FROM ? CLAIM_ADDR(4) : 0);
}

/* Destination, which is local or not, and the port that the claim names. */
static inline uint64_t
claim_mask2(enum sl_inet_claim_kind kind)
{
	return CLAIM_ADDR(0) | (kind == SL_CLAIM_FROM ? CLAIM_PORT(4) : CLAIM_PORT(6));
}

/* c is the first of its kind and family in this burst. */
static inline void
claim_again_common(struct claim_again *a, const struct sl_inet_claimed *c, uint32_t headers)
{
	a->link_mask = c->l2_len == CLAIM_ETH ? CLAIM_TYPE : CLAIM_TYPE | CLAIM_TAG;
	memcpy(&a->link, c->head + c->l2_len - 8, sizeof(a->link));
	a->link &= a->link_mask;
	a->c = *c;
	a->c.head_len = (uint16_t)(c->l2_len + headers);
	a->known = true;
}

static inline void
claim_again_set4(
	struct claim_again *a, enum sl_inet_claim_kind kind, const struct sl_inet_claimed *c)
{
	const uint8_t *ip = c->head + c->l2_len;

	memcpy(&a->w1, ip + 8, sizeof(a->w1));
	memcpy(&a->w2, ip + 16, sizeof(a->w2));
	a->w1 &= claim_mask1(kind);
	a->w2 &= claim_mask2(kind);
	claim_again_common(a, c, CLAIM_PLAIN4);
}

/* One store for one word: vectors made of several would take longer to make. */
static inline __attribute__((always_inline)) void
claim_write(uint8_t *to, const void *word, size_t octets)
{
	memcpy(to, word, octets);
	sl_snapshot_barrier();
}

static inline bool
claim_unicast4(uint32_t be)
{
	return inet_is_host4((uint8_t)(rte_be_to_cpu_32(be) >> 24));
}

/* Is the source address one that may send? */
static inline __attribute__((always_inline)) bool
claim_source4_ok(const struct inet_rx *rx, uint32_t src, uint32_t dst)
{
	if (!claim_unicast4(src) || src == dst || src == rx->bcast4)
		return false;
	return SL_LIKELY(!rx->many4 && rx->bcast4 != 0) || !inet_port_is_broadcast4(rx->port, src);
}

/* Is it a frame of that length at least, about which hardware says nothing? */
static inline bool
claim_again_may(const struct rte_mbuf *m, uint32_t len)
{
	return m->nb_segs == 1 && m->data_len >= len &&
	       (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED |
				      RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_BAD)) ==
		       0;
}

/* Is the link header of p like the first one's? It is in h then: words overlap where it is short.
 */
static inline __attribute__((always_inline)) bool
claim_again_link(const struct inet_rx *rx, const struct claim_again *a, uint32_t l2, const char *p,
	uint8_t *h)
{
	uint32_t last = l2 - 8;
	uint64_t e0 = load64(p), e1 = load64(p + 6), e2 = load64(p + last);

	if (((e0 ^ rx->mac_want) & rx->mac_mask) != 0 || (e2 & a->link_mask) != a->link)
		return false;
	claim_write(h, &e0, 8);
	claim_write(h + 6, &e1, 8);
	claim_write(h + last, &e2, 8);
	return true;
}

/* c is like the first one, but for what is its own. ports: as in a frame. */
static inline __attribute__((always_inline)) void
claim_again_fill(const struct claim_again *a, struct sl_inet_claimed *c, struct rte_mbuf *m,
	uint8_t *h, uint32_t end, uint32_t ports)
{
	*c = a->c;
	c->m = m;
	c->head = h;
	c->end = end;
	_Static_assert(offsetof(struct sl_inet_claimed, dport) ==
			       offsetof(struct sl_inet_claimed, sport) + 2,
		"ports lie as in a frame");
	memcpy(&c->sport, &ports, sizeof(ports));
}

/* True if the frame is like the first of its kind, with c and its head h filled in. l2: length of
 * its link header, which the compiler knows. */
static inline __attribute__((always_inline)) bool
claim_again_one4(const struct inet_rx *rx, const struct claim_again *a, struct claim_shape shape,
	struct rte_mbuf *m, uint8_t *h, struct sl_inet_claimed *c)
{
	uint32_t w3, total, src, dst;
	const char *p = rte_pktmbuf_mtod(m, const char *);
	uint64_t w0, w1, w2;

	if (!claim_again_may(m, shape.l2_len + CLAIM_PLAIN4) ||
		!claim_again_link(rx, a, shape.l2_len, p, h))
		return false;
	p += shape.l2_len;
	h += shape.l2_len;
	w0 = load64(p);
	w1 = load64(p + 8);
	w2 = load64(p + 16);
	w3 = load32(p + 24);
	if ((w0 & CLAIM_MASK0) != CLAIM_WANT0 || (w1 & claim_mask1(shape.kind)) != a->w1 ||
		(w2 & claim_mask2(shape.kind)) != a->w2)
		return false;
	claim_write(h, &w0, 8);
	claim_write(h + 8, &w1, 8);
	claim_write(h + 16, &w2, 8);
	claim_write(h + 24, &w3, 4);
	total = rte_be_to_cpu_16((uint16_t)(w0 >> CLAIM_AT(2, 2)));
	src = (uint32_t)(w1 >> CLAIM_AT(4, 4));
	dst = (uint32_t)(w2 >> CLAIM_AT(0, 4));
	if (total + shape.l2_len > m->data_len || total < CLAIM_PLAIN4 ||
		(rte_be_to_cpu_32(w3) >> 16) + 20 != total || !claim_source4_ok(rx, src, dst) ||
		!inet_sum_right(inet_add64(inet_add64(w0, w1), dst)))
		return false;
	claim_again_fill(
		a, c, m, h - shape.l2_len, shape.l2_len + total, (uint32_t)(w2 >> CLAIM_AT(4, 4)));
	memcpy(c->src.b + 12, &src, sizeof(src));
	return true;
}

#endif
