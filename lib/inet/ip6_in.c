/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include "claim.h"
#include "icmp.h"
#include "inet_priv.h"
#include "punt.h"
#include "reasm.h"

#define IP6_HDR 40u
#define EXTENSIONS_MAX 8
#define NO_NEXT_HEADER 59
#define OPT_PAD1 0
#define FRAGMENT_HDR 8u
#define FRAGMENT_MORE 1
#define FRAGMENT_OFFSET 0xfff8

static bool
source_ok(const struct inet_pkt *p)
{
	static const struct sl_addr loopback = {{[15] = 1}};

	if (inet_is_multicast(&p->src) || memcmp(&p->src, &loopback, sizeof(loopback)) == 0)
		return false;
	/* RFC 4291: ::ffff:0:0/96 stands for IPv4 nodes inside a host and is not for the wire. It
	 * would look like IPv4 to everybody above. */
	return !inet_is_v4(&p->src) && memcmp(&p->src, &p->dst, sizeof(p->src)) != 0;
}

/* Our address in whatever state, all nodes, or the solicited-node group of an address of ours. */
static bool
dst_ok(const struct inet_rx *rx, struct inet_pkt *p)
{
	const struct inet_port *port = rx->port;
	const struct inet_addr *a;
	uint32_t n;

	p->dst_group = inet_is_multicast(&p->dst);
	if (!p->dst_group) {
		a = inet_port_addr(port, &p->dst);
		if (a == NULL &&
			(!port->any_dst || p->dst.b[0] == 0)) /* special ones are in 0::/8 */
			return false;
		if (a != NULL && sl_load_relaxed(&a->state) != INET_ADDR_READY)
			return false;
		rx->wport->local6 = p->dst;
		return true;
	}
	if (memcmp(&p->dst, &inet_all_nodes, sizeof(p->dst)) == 0)
		return true;
	n = sl_load_acquire(&port->addr_count); /* IN1 */
	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *ours = &port->addr[i];
		struct sl_addr group;

		if (inet_addr_state(ours) == INET_ADDR_NONE || inet_is_v4(&ours->addr))
			continue;
		group = inet_solicited_node(&ours->addr);
		if (inet_addr_equal(&p->dst, &group))
			return true;
	}
	return false;
}

/* Options of a hop-by-hop or destination header: RFC 8200, 4.2 says by the two top bits of the type
 * what becomes of a packet with an option that we do not know. `at` is their offset in the frame.
 */
static enum sl_outcome
check_options(struct inet_rx *rx, struct inet_pkt *p, uint32_t at, uint32_t end)
{
	while (at < end) {
		uint8_t type = p->head[at];

		if (type == OPT_PAD1) {
			at++;
			continue;
		}
		if (at + 2 > end || p->head[at + 1] > end - at - 2)
			return SL_RX_IP_EXTENSION;
		/* 5: router alert, understood in that we need do nothing. PadN starts with 00. */
		if ((type & 0xc0) != 0) {
			if ((type & 0x80) != 0 && ((type & 0x40) == 0 || !p->dst_group))
				inet_icmp_error(
					rx, p, ICMP6_PARAM, ICMP6_PARAM_OPTION, at - p->l2_len);
			return SL_RX_IP_EXTENSION;
		}
		at += 2u + p->head[at + 1];
	}
	return INET_PASS;
}

/* Routing header: with no segments left it says nothing; else we would have to forward. */
static enum sl_outcome
check_routing(struct inet_rx *rx, struct inet_pkt *p, uint32_t at)
{
	if (p->head[at + 3] == 0)
		return INET_PASS;
	inet_icmp_error(rx, p, ICMP6_PARAM, ICMP6_PARAM_FIELD, at + 2 - p->l2_len);
	return SL_RX_IP_EXTENSION;
}

/* One extension header: sets *next and its length. */
static enum sl_outcome
check_extension(struct inet_rx *rx, struct inet_pkt *p, uint8_t *next, uint32_t *len)
{
	uint32_t at = p->l4_off;
	uint8_t kind = *next;

	if (p->end - at < 8 || at + 8 > p->head_len)
		return SL_RX_IP_EXTENSION;
	if (kind == IPPROTO_FRAGMENT && p->whole)
		return SL_RX_IP_EXTENSION;
	*next = p->head[at];
	if (kind == IPPROTO_FRAGMENT) {
		*len = FRAGMENT_HDR;
		return INET_PASS;
	}
	*len = 8u * (p->head[at + 1] + 1u);
	if (*len > p->end - at || at + *len > p->head_len)
		return SL_RX_IP_EXTENSION;
	if (kind == IPPROTO_ROUTING)
		return check_routing(rx, p, at);
	return check_options(rx, p, at + 2, at + *len);
}

/* A fragment header behind which the rest of another packet lies: one that says that it is the
 * whole datagram does nothing (RFC 6946). */
static bool
splits(const struct inet_pkt *p)
{
	return p->l4_off + FRAGMENT_HDR <= RTE_MIN(p->end, (uint32_t)p->head_len) &&
	       (inet_get16(p->head + p->l4_off + 2) & (FRAGMENT_OFFSET | FRAGMENT_MORE)) != 0;
}

/* h: the fragment header. */
static struct inet_fragment
fragment_of(const uint8_t *h)
{
	uint16_t word = inet_get16(h + 2);
	struct inet_fragment f = {.start = word & FRAGMENT_OFFSET,
		.more = (word & FRAGMENT_MORE) != 0,
		.proto = h[0]};

	memcpy(&f.id, h + 4, sizeof(f.id));
	return f;
}

static unsigned int
fragment_input(struct inet_rx *rx, struct inet_pkt *p)
{
	struct inet_fragment f = fragment_of(p->head + p->l4_off);

	p->l4_off = (uint16_t)(p->l4_off + FRAGMENT_HDR);
	return inet_reasm_input(rx, p, &f);
}

/* Does a claim take it? next: what lies at p->l4_off. */
static __attribute__((noinline)) unsigned int
claim_input(struct inet_rx *rx, const struct inet_pkt *p, uint8_t next, bool local)
{
	struct inet_pkt q = *p;
	struct inet_fragment f;

	if (next != IPPROTO_FRAGMENT)
		return inet_claim_ip(rx, p, next, NULL, local);
	f = fragment_of(p->head + p->l4_off);
	q.l4_off = (uint16_t)(q.l4_off + FRAGMENT_HDR);
	return inet_claim_ip(rx, &q, f.proto, &f, local);
}

/* Not for us: it is if a claim takes it. */
static unsigned int
input_foreign(struct inet_rx *rx, const struct inet_pkt *p, uint8_t next)
{
	unsigned int claimed = INET_PASS;

	if (next != IPPROTO_FRAGMENT || splits(p))
		claimed = claim_input(rx, p, next, false);
	return claimed != INET_PASS ? claimed : (unsigned int)SL_RX_IP_NOT_LOCAL;
}

/* Up to the transport, or to a fragment header that splits a datagram. */
static enum sl_outcome
walk_extensions(struct inet_rx *rx, struct inet_pkt *p, uint8_t *next)
{
	enum sl_outcome outcome;
	uint32_t len;

	for (int i = 0;; i++) {
		bool first = i == 0;

		switch (*next) {
		case IPPROTO_HOPOPTS:
			if (!first) {
				inet_icmp_error(rx, p, ICMP6_PARAM, ICMP6_PARAM_NEXT, p->next_at);
				return SL_RX_IP_EXTENSION;
			}
			break;
		case IPPROTO_FRAGMENT:
			if (!p->whole && splits(p))
				return INET_PASS;
			break;
		case IPPROTO_DSTOPTS:
		case IPPROTO_ROUTING:
			break;
		default:
			return INET_PASS;
		}
		if (i == EXTENSIONS_MAX)
			return SL_RX_IP_EXTENSION;
		outcome = check_extension(rx, p, next, &len);
		if (outcome != INET_PASS)
			return outcome;
		p->next_at = (uint16_t)(p->l4_off - p->l2_len);
		p->l4_off = (uint16_t)(p->l4_off + len);
	}
}

static unsigned int
input_next(struct inet_rx *rx, struct inet_pkt *p, uint8_t next)
{
	switch (next) {
	case IPPROTO_UDP:
		return inet_udp_input(rx, p);
	case IPPROTO_ICMPV6:
		return inet_icmp6_input(rx, p);
	case IPPROTO_FRAGMENT:
		return fragment_input(rx, p);
	case NO_NEXT_HEADER:
		return SL_RX_IP_PROTO;
	default:
		if (!inet_punts(rx))
			inet_icmp_error(rx, p, ICMP6_PARAM, ICMP6_PARAM_NEXT, p->next_at);
		return SL_RX_IP_PROTO;
	}
}

unsigned int
inet_ip6_input(struct inet_rx *rx, struct inet_pkt *p)
{
	const uint8_t *ip = p->head + p->l2_len;
	uint32_t room = p->end - p->l2_len;
	enum sl_outcome outcome;
	uint8_t next;
	bool local;

	if (room < IP6_HDR || p->head_len < p->l2_len + IP6_HDR)
		return SL_RX_IP_LENGTH;
	if (ip[0] >> 4 != 6)
		return SL_RX_IP_VERSION;
	if (inet_get16(ip + 4) > room - IP6_HDR)
		return SL_RX_IP_LENGTH;
	p->end = p->l2_len + IP6_HDR + inet_get16(ip + 4);
	p->l4_off = (uint16_t)(p->l2_len + IP6_HDR);
	p->next_at = 6;
	p->tos = (uint8_t)(inet_get16(ip) >> 4);
	p->ttl = ip[7];
	next = ip[6];
	memcpy(p->src.b, ip + 8, sizeof(p->src.b));
	memcpy(p->dst.b, ip + 24, sizeof(p->dst.b));
	if (!source_ok(p))
		return SL_RX_IP_SOURCE;
	/* Nor is ::ffff:0:0/96 where a packet may go to: it would be taken for one of IPv4. */
	if (inet_is_v4(&p->dst))
		return SL_RX_IP_NOT_LOCAL;
	/* Only neighbour discovery may come from nobody (RFC 4861, duplicate detection). */
	if (sl_addr_is_any(&p->src) && next != IPPROTO_ICMPV6)
		return SL_RX_IP_SOURCE;
	local = dst_ok(rx, p);
	/* Sent on only without extension headers, but for that of a fragment: others are for whom
	 * it is to. */
	if (!local)
		return rx->claim != NULL ? input_foreign(rx, p, next)
					 : (unsigned int)SL_RX_IP_NOT_LOCAL;
	outcome = walk_extensions(rx, p, &next);
	if (outcome != INET_PASS)
		return outcome;
	if (SL_UNLIKELY(rx->claim != NULL)) {
		unsigned int claimed = claim_input(rx, p, next, true);

		if (claimed != INET_PASS)
			return claimed;
	}
	return input_next(rx, p, next);
}
