/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_IP_FAST_H
#define INET_IP_FAST_H

/*
 * The common case, inlined: an untagged frame to our MAC address, in one segment, with plain IPv4
 * or IPv6 and UDP to the local address that was hit last. Anything else, and anything doubtful,
 * takes the general path, which decides; so both agree by construction about what is refused.
 *
 * Each header word is read once, into a register, and pinned: the compiler takes it for changed and
 * so cannot read it from the packet again. Lengths and addresses come from these copies alone,
 * whatever happens in the packet's memory meanwhile.
 */
#include <netinet/in.h>

#include <rte_ether.h>

#include "cksum.h"
#include "inet_priv.h"

#define FAST_ETH 14u
#define FAST_IP4 (FAST_ETH + 20u + 8u)
#define FAST_IP6 (FAST_ETH + 40u + 8u)
/* Sums of payloads up to this length are taken inline. */
#define FAST_SUM_MAX 128u
#define IP4_MORE_OR_OFFSET 0x3fffu

static inline uint32_t
load32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	__asm__("" : "+r"(v));
	return v;
}

static inline uint64_t
load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	__asm__("" : "+r"(v));
	return v;
}

/* Does the frame start with our MAC address, or does that not matter? Group frames do not count. */
static inline bool
fast_eth_for_us(const struct inet_port *port, uint64_t first)
{
	if (SL_LIKELY((first & rte_cpu_to_be_64(UINT64_C(0xffffffffffff0000))) == port->mac_word))
		return true;
	return port->promiscuous && (first & rte_cpu_to_be_64(UINT64_C(0x01) << 56)) == 0;
}

/* Sum of the payload, before which its headers lie. */
static inline uint64_t
fast_payload_sum(const char *p, uint32_t len)
{
	return SL_LIKELY(len <= FAST_SUM_MAX) ? inet_sum_short(p, len) : inet_sum(p, len);
}

/* What hardware says about the UDP checksum: true when it need not be computed. Bad ones are left
 * to the general path. */
static inline bool
fast_l4_known_good(uint64_t ol_flags)
{
	/* GOOD has that bit; NONE has both and means: not filled in, but the data is right. */
	return (ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD) != 0;
}

/* The datagram is accepted: describe it and cut the packet down to the payload. */
static inline void
fast_accept(const struct inet_rx *rx, struct rte_mbuf *m, struct sl_dgram *d, uint32_t off,
	uint32_t len)
{
	m->data_off = (uint16_t)(m->data_off + off);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	d->buf = m;
	d->truesize =
		(uint32_t)sizeof(*m) + m->priv_size + m->buf_len; /* sl_mbuf_truesize, 1 segment */
	d->len = len;
	d->port = rx->port->id;
}

static inline bool
fast_source4_ok(const struct inet_rx *rx, uint32_t src, uint32_t dst)
{
	uint8_t first = (uint8_t)(rte_be_to_cpu_32(src) >> 24);

	/* Not 0/8, 127/8, a group or above, ourselves, or the broadcast address of a prefix. */
	if ((uint8_t)(first - 1) >= 223 || first == 127 || src == dst || src == rx->bcast4)
		return false;
	return SL_LIKELY(!rx->many4) || !inet_port_is_broadcast4(rx->port, src);
}

/* True if the packet was accepted, and d filled in. */
static inline __attribute__((always_inline)) bool
fast_ip4(const struct inet_rx *rx, struct rte_mbuf *m, const char *p, struct sl_dgram *d)
{
	uint32_t w0 = load32(p), w1 = load32(p + 4), w2 = load32(p + 8); /* IP */
	uint32_t src = load32(p + 12), dst = load32(p + 16);
	uint32_t ports = load32(p + 20), w6 = load32(p + 24); /* UDP */
	uint32_t total, udp_len, words[2] = {rte_cpu_to_be_32(0xffff), 0};
	uint64_t sum;

	if ((w0 & rte_cpu_to_be_32(0xff000000)) != rte_cpu_to_be_32(0x45000000))
		return false;
	if ((w1 & rte_cpu_to_be_32(IP4_MORE_OR_OFFSET)) != 0 || dst != rx->local4)
		return false;
	if ((w2 & rte_cpu_to_be_32(0x00ff0000)) != rte_cpu_to_be_32(IPPROTO_UDP << 16))
		return false;
	total = rte_be_to_cpu_32(w0) & 0xffff;
	udp_len = rte_be_to_cpu_32(w6) >> 16;
	if (total > m->data_len - FAST_ETH || udp_len < 8 || udp_len + 20 > total)
		return false;
	if (!fast_source4_ok(rx, src, dst))
		return false;
	if (!inet_sum_right((uint64_t)w0 + w1 + w2 + src + dst))
		return false;
	if ((w6 & rte_cpu_to_be_32(0xffff)) != 0 && !fast_l4_known_good(m->ol_flags)) {
		sum = fast_payload_sum(p + 28, udp_len - 8);
		sum = inet_add64(sum, (uint64_t)src + dst + ports + w6 +
					      rte_cpu_to_be_32(IPPROTO_UDP << 16 | udp_len));
		if (!inet_sum_right(sum))
			return false;
	}
	fast_accept(rx, m, d, FAST_IP4, udp_len - 8);
	memcpy(&d->sport, &ports, 4); /* dport follows */
	d->ttl = (uint8_t)(rte_be_to_cpu_32(w2) >> 24);
	d->tos = (uint8_t)(rte_be_to_cpu_32(w0) >> 16);
	/* ::ffff:a.b.c.d */
	words[1] = src;
	memset(d->src, 0, 8);
	memcpy(d->src + 8, words, 8);
	words[1] = dst;
	memset(d->dst, 0, 8);
	memcpy(d->dst + 8, words, 8);
	return true;
}

/* Neither a group nor in 0::/8, where all the special ones are. */
static inline bool
fast_source6_ok(uint64_t high)
{
	uint8_t first = (uint8_t)(rte_be_to_cpu_64(high) >> 56);

	return first != 0 && first != 0xff;
}

static __attribute__((noinline)) bool
fast_ip6(const struct inet_rx *rx, struct rte_mbuf *m, const char *p, struct sl_dgram *d)
{
	uint32_t w0 = load32(p), w1 = load32(p + 4);
	uint64_t src0 = load64(p + 8), src1 = load64(p + 16);
	uint64_t dst0 = load64(p + 24), dst1 = load64(p + 32), local0, local1;
	uint32_t ports = load32(p + 40), w6 = load32(p + 44);
	uint32_t h0, h1, udp_len;
	uint64_t sum;

	memcpy(&local0, rx->wport->local6.b, 8);
	memcpy(&local1, rx->wport->local6.b + 8, 8);
	h0 = rte_be_to_cpu_32(w0);
	h1 = rte_be_to_cpu_32(w1);
	udp_len = rte_be_to_cpu_32(w6) >> 16;
	if ((h0 >> 28) != 6 || ((h1 >> 8) & 0xff) != IPPROTO_UDP)
		return false;
	if (dst0 != local0 || dst1 != local1 || !fast_source6_ok(src0))
		return false;
	if (src0 == dst0 && src1 == dst1)
		return false;
	if ((h1 >> 16) + FAST_ETH + 40 > m->data_len || udp_len < 8 || udp_len > h1 >> 16)
		return false;
	if ((rte_be_to_cpu_32(w6) & 0xffff) == 0)
		return false;
	if (!fast_l4_known_good(m->ol_flags)) {
		sum = fast_payload_sum(p + 48, udp_len - 8);
		sum = inet_add64(inet_add64(sum, src0), src1);
		sum = inet_add64(inet_add64(sum, dst0), dst1);
		sum = inet_add64(
			sum, (uint64_t)ports + w6 + rte_cpu_to_be_32(IPPROTO_UDP << 16 | udp_len));
		if (!inet_sum_right(sum))
			return false;
	}
	fast_accept(rx, m, d, FAST_IP6, udp_len - 8);
	memcpy(&d->sport, &ports, 4);
	d->ttl = (uint8_t)h1;
	d->tos = (uint8_t)(h0 >> 20);
	memcpy(d->src, &src0, 8);
	memcpy(d->src + 8, &src1, 8);
	memcpy(d->dst, &dst0, 8);
	memcpy(d->dst + 8, &dst1, 8);
	return true;
}

#endif
