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
 * Each header word is read once, into a register; the barrier keeps it there. Lengths and addresses
 * below come from these copies alone, whatever happens in the packet's memory meanwhile.
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
/* First 8 bytes of an IPv4 header: version and length of the header; no fragment. */
#define FAST_IP4_MASK rte_cpu_to_be_64(UINT64_C(0xff00000000003fff))
#define FAST_IP4_WANT rte_cpu_to_be_64(UINT64_C(0x4500000000000000))
/* First 8 bytes of a frame that are the destination. */
#define FAST_MAC_MASK rte_cpu_to_be_64(UINT64_C(0xffffffffffff0000))
#define FAST_MAC_GROUP rte_cpu_to_be_64(UINT64_C(0x01) << 56)

/* Where the halves of an 8-byte load end up. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define FAST_FIRST32(v) ((uint32_t)(v))
#define FAST_SECOND32(v) ((uint32_t)((v) >> 32))
#define FAST_MAPPED(be) ((uint64_t)(be) << 32 | UINT64_C(0xffff0000))
#else
#define FAST_FIRST32(v) ((uint32_t)((v) >> 32))
#define FAST_SECOND32(v) ((uint32_t)(v))
#define FAST_MAPPED(be) ((uint64_t)(be) | UINT64_C(0xffff00000000))
#endif

/* What is the same for all packets of a burst. A copy whose address nobody has: the barriers
 * between packets do not make the compiler read it again. */
struct inet_fast {
	struct inet_rx *rx;
	const struct inet_wport *wport;
	uint64_t mac; /* as the first 8 bytes of a frame, masked */
	uint16_t port_id;
	bool promiscuous;
	bool untagged; /* else nothing is fast */
	bool one4;     /* the port has one IPv4 address */
};

static inline struct inet_fast
fast_begin(struct inet_rx *rx)
{
	const struct inet_port *port = rx->port;
	struct inet_fast f = {
		.rx = rx,
		.wport = rx->wport,
		.port_id = port->id,
		.promiscuous = port->promiscuous,
		.untagged = port->vids_count == 0,
		.one4 = sl_load_relaxed(&port->count4) <= 1,
	};

	memcpy(&f.mac, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	return f;
}

static inline uint32_t
load32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t
load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Does the frame start with our MAC address, or does that not matter? Group frames do not count. */
static inline bool
fast_eth_for_us(const struct inet_fast *f, uint64_t first)
{
	if (SL_LIKELY((first & FAST_MAC_MASK) == f->mac))
		return true;
	return f->promiscuous && (first & FAST_MAC_GROUP) == 0;
}

/* Sum of the payload, which lies in one segment behind its headers. */
static inline uint64_t
fast_payload_sum(const char *payload, uint32_t len)
{
	if (SL_LIKELY(len <= FAST_SUM_MAX))
		return inet_sum_behind(payload, len);
	return inet_sum(payload, len);
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
static inline struct sl_dgram *
fast_accept(
	const struct inet_fast *f, struct rte_mbuf *m, uint32_t off, uint16_t l3_len, uint32_t len)
{
	struct inet_rx *rx = f->rx;
	uint16_t i = rx->dgrams++;
	struct sl_dgram *d = &rx->dgram[i];

	rx->l3_len[i] = l3_len;
	rx->l2_len[i] = FAST_ETH;
	m->data_off = (uint16_t)(m->data_off + off);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	d->buf = m;
	d->truesize =
		(uint32_t)sizeof(*m) + m->priv_size + m->buf_len; /* sl_mbuf_truesize, 1 segment */
	d->len = len;
	d->port = f->port_id;
	return d;
}

static inline bool
fast_source4_ok(const struct inet_fast *f, uint32_t src, uint32_t dst)
{
	uint32_t first = rte_be_to_cpu_32(src) >> 24;

	/* 0/8, 127/8, groups and above, ourselves, our broadcast: the general path knows more. */
	return first - 1 < 223 && first != 127 && src != dst && src != f->wport->bcast4 && f->one4;
}

/* The sum that says whether the UDP checksum is right. udp: header as read. */
static inline bool
fast_udp_sum_right(uint64_t addrs, uint64_t udp, uint32_t udp_len, const char *payload)
{
	uint64_t sum = addrs + rte_cpu_to_be_32(IPPROTO_UDP << 16 | udp_len);

	sum = inet_add(sum, udp);
	return inet_sum_right(inet_add(sum, fast_payload_sum(payload, udp_len - 8)));
}

/* True if the packet was accepted. */
static inline bool
fast_ip4(const struct inet_fast *f, struct rte_mbuf *m, const char *p)
{
	uint64_t w0 = load64(p), w8 = load64(p + 8); /* IP */
	uint32_t dst = load32(p + 16), src = FAST_SECOND32(w8);
	uint64_t udp = load64(p + 20), map;
	uint32_t h0, h8, ports, total, udp_len;
	struct sl_dgram *d;

	sl_snapshot_barrier();
	if ((w0 & FAST_IP4_MASK) != FAST_IP4_WANT)
		return false;
	h0 = rte_be_to_cpu_32(FAST_FIRST32(w0));
	h8 = rte_be_to_cpu_32(FAST_FIRST32(w8));
	total = h0 & 0xffff;
	udp_len = rte_be_to_cpu_32(FAST_SECOND32(udp)) >> 16;
	if (((h8 >> 16) & 0xff) != IPPROTO_UDP || dst != f->wport->local4)
		return false;
	if (total > m->data_len - FAST_ETH || udp_len < 8 || udp_len + 20 > total)
		return false;
	if (!fast_source4_ok(f, src, dst))
		return false;
	if (!inet_sum_right(inet_add(inet_add(w0, w8), dst)))
		return false;
	if ((FAST_SECOND32(udp) & rte_cpu_to_be_32(0xffff)) != 0 &&
		!fast_l4_known_good(m->ol_flags) &&
		!fast_udp_sum_right((uint64_t)src + dst, udp, udp_len, p + 28))
		return false;
	d = fast_accept(f, m, FAST_IP4, 20, udp_len - 8);
	ports = FAST_FIRST32(udp);
	memcpy(&d->sport, &ports, 4); /* dport follows */
	d->ttl = (uint8_t)(h8 >> 24);
	d->tos = (uint8_t)(h0 >> 16);
	memset(d->src, 0, 8);
	memset(d->dst, 0, 8);
	map = FAST_MAPPED(src);
	memcpy(d->src + 8, &map, 8);
	map = FAST_MAPPED(dst);
	memcpy(d->dst + 8, &map, 8);
	return true;
}

/* Halves of a sum, so that more can be added without a wrap. */
static inline uint64_t
halves64(uint64_t v)
{
	return (v & UINT32_MAX) + (v >> 32);
}

/* Neither a group nor in 0::/8, where all the special ones are. */
static inline bool
fast_source6_ok(uint64_t high)
{
	uint8_t first = (uint8_t)(rte_be_to_cpu_64(high) >> 56);

	return first != 0 && first != 0xff;
}

static inline bool
fast_ip6(const struct inet_fast *f, struct rte_mbuf *m, const char *p)
{
	uint32_t w0 = load32(p), w1 = load32(p + 4);
	uint64_t src0 = load64(p + 8), src1 = load64(p + 16);
	uint64_t dst0 = load64(p + 24), dst1 = load64(p + 32), local0, local1;
	uint64_t udp = load64(p + 40), addrs;
	uint32_t h0, h1, ports, udp_len;
	struct sl_dgram *d;

	sl_snapshot_barrier();
	memcpy(&local0, f->wport->local6.b, 8);
	memcpy(&local1, f->wport->local6.b + 8, 8);
	h0 = rte_be_to_cpu_32(w0);
	h1 = rte_be_to_cpu_32(w1);
	udp_len = rte_be_to_cpu_32(FAST_SECOND32(udp)) >> 16;
	if ((h0 >> 28) != 6 || ((h1 >> 8) & 0xff) != IPPROTO_UDP)
		return false;
	if (dst0 != local0 || dst1 != local1 || !fast_source6_ok(src0))
		return false;
	if (src0 == dst0 && src1 == dst1)
		return false;
	if ((h1 >> 16) + FAST_ETH + 40 > m->data_len || udp_len < 8 || udp_len > h1 >> 16)
		return false;
	if ((FAST_SECOND32(udp) & rte_cpu_to_be_32(0xffff)) == 0)
		return false;
	if (!fast_l4_known_good(m->ol_flags)) {
		addrs = halves64(inet_add(inet_add(src0, src1), inet_add(dst0, dst1)));
		if (!fast_udp_sum_right(addrs, udp, udp_len, p + 48))
			return false;
	}
	d = fast_accept(f, m, FAST_IP6, 40, udp_len - 8);
	ports = FAST_FIRST32(udp);
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
