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
 * Each header word that is used is read once, into a register, and pinned: the compiler takes it for
 * changed and so cannot read it from the packet again. Lengths and addresses come from these copies
 * alone, whatever happens in the packet's memory meanwhile. What must have one value, and is not used
 * afterwards, is compared in a vector of its own.
 */
#include <netinet/in.h>

#include <rte_ether.h>

#include "cksum.h"
#include "inet_priv.h"
#include "load.h"

#define FAST_ETH 14u
#define FAST_IP4 (FAST_ETH + 20u + 8u)
/* What is read of every frame; Ethernet's own minimum is above it. */
#define FAST_READ (FAST_ETH + (uint32_t)sizeof(inet_vec))
#define FAST_IP6 (FAST_ETH + 40u + 8u)

/* Halves of an 8-byte load, as 4-byte loads had given them; byte k of such a load. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define FAST_HALF0(v) ((uint32_t)(v))
#define FAST_HALF1(v) ((uint32_t)((v) >> 32))
#define FAST_BYTE(v, k) ((uint8_t)((v) >> 8 * (k)))
#else
#define FAST_HALF0(v) ((uint32_t)((v) >> 32))
#define FAST_HALF1(v) ((uint32_t)(v))
#define FAST_BYTE(v, k) ((uint8_t)((v) >> (56 - 8 * (k))))
#endif

/* Sum of the payload, before which its headers lie. */
static inline uint64_t
fast_payload_sum(const char *p, uint32_t len)
{
	return SL_LIKELY(len <= INET_SHORT) ? inet_sum_short(p, len) : inet_sum(p, len);
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
fast_accept(const struct inet_rx *rx, struct rte_mbuf *m, struct sl_dgram *d, const char *payload,
	uint32_t off, uint32_t len)
{
	m->data_off = (uint16_t)(m->data_off + off);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	d->buf = m;
	/* sl_mbuf_truesize for one segment, without a look at the mbuf's second cache line. */
	d->truesize =
		m->buf_len + (SL_LIKELY(m->pool == rx->pool) ? rx->overhead : inet_overhead(m));
	d->len = len;
	d->aux = (uintptr_t)payload;
}

/* Ports, port, TTL and TOS, which are one word of a descriptor, in one store. */
static inline void
fast_describe(struct sl_dgram *d, uint32_t ports, uint16_t port, uint8_t ttl, uint8_t tos)
{
	struct {
		uint32_t ports;
		uint16_t port;
		uint8_t ttl;
		uint8_t tos;
	} w = {ports, port, ttl, tos};

	_Static_assert(offsetof(struct sl_dgram, tos) == offsetof(struct sl_dgram, sport) + 7,
		"the members of w lie in a descriptor as they do here");
	memcpy(&d->sport, &w, sizeof(w));
}

/* From the IPv4 header on: version and its length, fragment, protocol, destination. */
static const uint8_t fast_mask4[32] = {[0] = 0xff,
	[6] = 0x3f,
	[7] = 0xff,
	[9] = 0xff,
	[16] = 0xff,
	[17] = 0xff,
	[18] = 0xff,
	[19] = 0xff};

/* What the fast path wants of a datagram to the address that was hit last. */
static inline void
fast_local4(struct inet_rx *rx)
{
	uint32_t local4 = rx->wport->local4;

	rx->local4 = local4;
	rx->bcast4 = rx->wport->bcast4;
	rx->pseudo4 = (uint64_t)local4 + rte_cpu_to_be_32(IPPROTO_UDP << 16);
	rx->local = sl_addr_v4(local4);
	memset(rx->want4, 0, sizeof(rx->want4));
	rx->want4[0] = 0x45;
	rx->want4[9] = IPPROTO_UDP;
	memcpy(rx->want4 + 16, &local4, sizeof(local4));
}

static inline bool
fast_wanted4(const struct inet_rx *rx, const char *ip)
{
	inet_vec v, want, mask;

	memcpy(&v, ip, sizeof(v));
	memcpy(&want, rx->want4, sizeof(want));
	memcpy(&mask, fast_mask4, sizeof(mask));
	return inet_vec_none(v ^ want, mask);
}

/* An address that a host may have, not ourselves nor the broadcast address of a prefix. */
static inline bool
fast_source4_ok(const struct inet_rx *rx, uint32_t src, uint8_t first)
{
	if (!inet_is_host4(first) || src == rx->local4 || src == rx->bcast4)
		return false;
	return SL_LIKELY(!rx->many4) || !inet_port_is_broadcast4(rx->port, src);
}

/* Is the sum over addresses, protocol and length as in the pseudo header, UDP header and payload right?
 * The length is also the upper half of the header's second word. */
static inline bool
fast_sum4_right(const struct inet_rx *rx, uint32_t src, uint64_t udp, const char *payload, uint32_t len)
{
	uint64_t sum = fast_payload_sum(payload, len);

	sum += (uint64_t)src + rx->pseudo4 + (FAST_HALF1(udp) & rte_cpu_to_be_32(0xffff0000));
	sum += (uint64_t)FAST_HALF0(udp) + FAST_HALF1(udp);
	return inet_sum_right(sum);
}

/* p: the frame. True if the packet was accepted, and d filled in. */
static inline __attribute__((always_inline)) bool
fast_ip4(const struct inet_rx *rx, struct rte_mbuf *m, const char *p, uint64_t odd,
	struct sl_dgram *d)
{
	uint64_t w0 = load64(p + 14), w8 = load64(p + 22), udp = load64(p + 34);
	uint32_t src = FAST_HALF1(w8);
	uint32_t total = rte_be_to_cpu_32(FAST_HALF0(w0)) & 0xffff;
	uint32_t udp_len = rte_be_to_cpu_32(FAST_HALF1(udp)) >> 16, len = udp_len - 8;

	/* Bytes between the datagram and the end of the packet are odd. Below 8, len is huge. */
	odd |= (uint64_t)(total ^ (udp_len + 20));
	if (odd != 0 || !fast_wanted4(rx, p + FAST_ETH) || len > m->data_len - FAST_IP4)
		return false;
	if (!fast_source4_ok(rx, src, FAST_BYTE(w8, 4)))
		return false;
	if (!inet_sum_right(inet_add64(inet_add64(w0, w8), rx->local4)))
		return false;
	if ((FAST_HALF1(udp) & rte_cpu_to_be_32(0xffff)) != 0 && !fast_l4_known_good(m->ol_flags) &&
		!fast_sum4_right(rx, src, udp, p + FAST_IP4, len))
		return false;
	fast_accept(rx, m, d, p + FAST_IP4, FAST_IP4, len);
	fast_describe(d, FAST_HALF0(udp), rx->port_id, FAST_BYTE(w8, 0), FAST_BYTE(w0, 1));
	memcpy(d->src, &rx->local, 12); /* ::ffff: */
	memcpy(d->src + 12, &src, 4);
	memcpy(d->dst, &rx->local, sizeof(d->dst));
	return true;
}

/* Neither a group nor in 0::/8, where all the special ones are. */
static inline bool
fast_source6_ok(uint64_t high)
{
	uint8_t first = (uint8_t)(rte_be_to_cpu_64(high) >> 56);

	return first != 0 && first != 0xff;
}

/* p: the IPv6 header. True if the packet was accepted, and d filled in. */
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
	fast_accept(rx, m, d, p + 48, FAST_IP6, udp_len - 8);
	fast_describe(d, ports, rx->port_id, (uint8_t)h1, (uint8_t)(h0 >> 20));
	memcpy(d->src, &src0, 8);
	memcpy(d->src + 8, &src1, 8);
	memcpy(d->dst, &dst0, 8);
	memcpy(d->dst + 8, &dst1, 8);
	return true;
}

#endif
