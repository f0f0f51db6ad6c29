/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FORWARD_PLAIN_H
#define SLUICED_FORWARD_PLAIN_H

/**
 * @file
 * What forward_send does, for the common case alone, and in a tenth of the instructions: a plain
 * IPv4 datagram in memory of ours, to a next hop that is known, by a link without tags like the one
 * it came by. All 42 octets of headers are made in registers from the private copy, by words, and
 * written once.
 *
 *   0     8        14       22              30              38         42
 *   | link header  | w0     | ttl p sum src | dst sport dport | len sum |
 *           (of the way)          w1               w2             w3
 */
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "forward_priv.h"

#define PLAIN_LINK 14u
#define PLAIN_HEADERS 42u

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
	uint32_t addr;
	uint16_t port;
};

static inline struct forward_plain_end
forward_plain_end(const struct forward_end *end)
{
	struct forward_plain_end e = {.port = end->port};

	memcpy(&e.addr, end->addr.b + 12, sizeof(e.addr));
	return e;
}

/* Can forward_plain send that way at all? */
static inline bool
forward_plain_way(const struct sl_inet_way *way)
{
	return way->link_len == PLAIN_LINK;
}

/* May it send c's packet that way? */
static inline bool
forward_plain_may(const struct sl_inet_claimed *c, const struct sl_inet_way *way)
{
	const struct rte_mbuf *m = c->m;

	return c->plain && c->end - PLAIN_LINK <= way->mtu && c->head[PLAIN_LINK + 8] > 1 &&
	       rte_mbuf_refcnt_read(m) == 1 &&
	       (m->ol_flags & (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)) == 0 &&
	       (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) != RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/**
 * Make c's packet the frame that goes to (to_end), or else comes from, end.
 *
 * @param c   forward_plain_way and forward_plain_may said so
 */
static inline __attribute__((always_inline)) void
forward_plain(const struct sl_inet_claimed *c, const struct sl_inet_way *way,
	struct forward_plain_end end, bool to_end)
{
	const uint8_t *h = c->head;
	struct rte_mbuf *m = c->m;
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint64_t w0, w1, w2, addr = end.addr, delta, ports = end.port;
	uint16_t ip_sum, udp_sum;
	uint32_t w3;

	memcpy(&w0, h + 14, 8);
	memcpy(&w1, h + 22, 8);
	memcpy(&w2, h + 30, 8);
	memcpy(&w3, h + 38, 4);
	if (to_end) {
		delta = addr + (uint32_t) ~(w2 >> PLAIN_AT(0, 4));
		ports += (uint16_t) ~(w2 >> PLAIN_AT(6, 2));
		w2 &= (uint64_t)UINT16_MAX << PLAIN_AT(4, 2);
		w2 |= addr << PLAIN_AT(0, 4) | (uint64_t)end.port << PLAIN_AT(6, 2);
	} else {
		delta = addr + (uint32_t) ~(w1 >> PLAIN_AT(4, 4));
		ports += (uint16_t) ~(w2 >> PLAIN_AT(4, 2));
		w1 &= (uint64_t)UINT32_MAX << PLAIN_AT(0, 4);
		w1 |= addr << PLAIN_AT(4, 4);
		w2 &= ~((uint64_t)UINT16_MAX << PLAIN_AT(4, 2));
		w2 |= (uint64_t)end.port << PLAIN_AT(4, 2);
	}
	ip_sum = forward_sum((uint16_t)(w1 >> PLAIN_AT(2, 2)), delta + PLAIN_HOP);
	w1 &= ~((uint64_t)UINT16_MAX << PLAIN_AT(2, 2));
	w1 |= (uint64_t)ip_sum << PLAIN_AT(2, 2);
	w1 -= UINT64_C(1) << PLAIN_AT(0, 1);
	udp_sum = forward_udp_sum((uint16_t)(w3 >> PLAIN_AT3(2)), delta + ports);
	w3 &= (uint32_t)UINT16_MAX << PLAIN_AT3(0);
	w3 |= (uint32_t)udp_sum << PLAIN_AT3(2);
	m->ol_flags = 0;
	m->tx_offload = rte_mbuf_tx_offload(PLAIN_LINK, 20, 0, 0, 0, 0, 0);
	m->data_len = (uint16_t)c->end;
	m->pkt_len = c->end;
	memcpy(p, way->link, PLAIN_LINK);
	memcpy(p + 14, &w0, 8);
	memcpy(p + 22, &w1, 8);
	memcpy(p + 30, &w2, 8);
	memcpy(p + 38, &w3, 4);
}

#endif
