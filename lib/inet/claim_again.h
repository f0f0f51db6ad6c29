/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CLAIM_AGAIN_H
#define INET_CLAIM_AGAIN_H

/*
 * Datagrams like the one before: most of a burst falls under one claim. What of a plain IPv4
 * datagram must be the same for that is compared by words, so that no claim is looked for and no
 * address looked up. Anything that does not fit, or is doubtful, is looked at in full, from the
 * packet anew, and nothing that was read here counts for it.
 *
 * Each word of a frame is read once: pinned, so that the compiler cannot read it again. The private
 * copy is written from them; who reads it by words of the same places does not wait for stores.
 *
 *   0        6          12   14       22        30        38       42
 *   | to     | from     |type| w0     | w1      | w2      | w3     |
 *                            version.. ttl..src  dst,ports length, sum
 */
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "cksum.h"
#include "claim.h"
#include "load.h"

#define CLAIM_ETH 14u
#define CLAIM_PLAIN4 (CLAIM_ETH + 20u + 8u)

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

/* What those like the first one of a kind look like; of one burst. */
struct claim_again {
	bool known;
	uint64_t w1, w2;	  /* without what may differ */
	struct sl_inet_claimed c; /* what they have in common */
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

/* c is the first of its kind in this burst. */
static inline void
claim_again_set(
	struct claim_again *a, enum sl_inet_claim_kind kind, const struct sl_inet_claimed *c)
{
	memcpy(&a->w1, c->head + 22, sizeof(a->w1));
	memcpy(&a->w2, c->head + 30, sizeof(a->w2));
	a->w1 &= claim_mask1(kind);
	a->w2 &= claim_mask2(kind);
	a->c = *c;
	a->c.head_len = CLAIM_PLAIN4;
	a->known = true;
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
static inline bool
claim_source4_ok(const struct inet_rx *rx, uint32_t src, uint32_t dst)
{
	if (!claim_unicast4(src) || src == dst || src == rx->bcast4)
		return false;
	return SL_LIKELY(!rx->many4 && rx->bcast4 != 0) || !inet_port_is_broadcast4(rx->port, src);
}

/* Is it a frame whose words can be read, about which hardware says nothing? */
static inline bool
claim_again_may(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && m->data_len >= CLAIM_PLAIN4 &&
	       (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED |
				      RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_BAD)) ==
		       0;
}

/* True if the frame is like the first of its kind, with c and its head h filled in. */
static inline __attribute__((always_inline)) bool
claim_again_one(const struct inet_rx *rx, const struct claim_again *a, enum sl_inet_claim_kind kind,
	struct rte_mbuf *m, uint8_t *h, struct sl_inet_claimed *c)
{
	const char *p = rte_pktmbuf_mtod(m, const char *);
	uint64_t e0, e1, w0, w1, w2;
	uint32_t w3, total, src, dst, ports;

	if (!claim_again_may(m))
		return false;
	e0 = load64(p);
	e1 = load64(p + 6);
	w0 = load64(p + 14);
	w1 = load64(p + 22);
	w2 = load64(p + 30);
	w3 = load32(p + 38);
	if (((e0 ^ rx->mac_want) & rx->mac_mask) != 0 ||
		(uint16_t)(e1 >> CLAIM_AT(6, 2)) != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
		(w0 & CLAIM_MASK0) != CLAIM_WANT0 || (w1 & claim_mask1(kind)) != a->w1 ||
		(w2 & claim_mask2(kind)) != a->w2)
		return false;
	claim_write(h, &e0, 8);
	claim_write(h + 6, &e1, 8);
	claim_write(h + 14, &w0, 8);
	claim_write(h + 22, &w1, 8);
	claim_write(h + 30, &w2, 8);
	claim_write(h + 38, &w3, 4);
	total = rte_be_to_cpu_16((uint16_t)(w0 >> CLAIM_AT(2, 2)));
	src = (uint32_t)(w1 >> CLAIM_AT(4, 4));
	dst = (uint32_t)(w2 >> CLAIM_AT(0, 4));
	ports = (uint32_t)(w2 >> CLAIM_AT(4, 4));
	if (total + CLAIM_ETH > m->data_len || total < CLAIM_PLAIN4 - CLAIM_ETH ||
		(rte_be_to_cpu_32(w3) >> 16) + 20 != total || !claim_source4_ok(rx, src, dst) ||
		!inet_sum_right(inet_add64(inet_add64(w0, w1), dst)))
		return false;
	*c = a->c;
	c->m = m;
	c->head = h;
	c->end = CLAIM_ETH + total;
	memcpy(c->src.b + 12, &src, sizeof(src));
	_Static_assert(offsetof(struct sl_inet_claimed, dport) ==
			       offsetof(struct sl_inet_claimed, sport) + 2,
		"ports lie as in a frame");
	memcpy(&c->sport, &ports, sizeof(ports));
	return true;
}

/* How many of the first of n packets, behind which INET_AHEAD more may be read, are like the first
 * of that kind; they are in crx then. */
static inline __attribute__((always_inline)) uint16_t
claim_again_run(const struct inet_rx *rx, const struct claim_again *a, enum sl_inet_claim_kind kind,
	struct rte_mbuf **pkts, uint16_t n)
{
	struct inet_claim_rx *crx = rx->claim;
	struct sl_inet_claimed *c = &crx->c[crx->n];
	uint8_t(*h)[SL_INET_CLAIM_HEAD] = &crx->head[crx->n];
	struct rte_mbuf **p = pkts, **end = pkts + n;

	for (; p != end; p++, c++, h++) {
		rte_prefetch0(rte_pktmbuf_mtod(p[INET_AHEAD], const char *));
		if (SL_UNLIKELY(!claim_again_one(rx, a, kind, *p, *h, c)))
			break;
	}
	crx->n = (uint16_t)(crx->n + (p - pkts));
	return (uint16_t)(p - pkts);
}

#endif
