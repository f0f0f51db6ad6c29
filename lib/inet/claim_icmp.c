/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * ICMP errors that quote a claimed datagram. One that quotes what we have sent on came from the way
 * to the back end, and is for the client; one that quotes what we have sent back came from the way
 * to the client, and is for the back end.
 */
#include <netinet/in.h>
#include <string.h>

#include "cksum.h"
#include "claim.h"
#include "icmp.h"

#define ICMP_HDR 8u
#define UDP_LEN 8u
#define IP4_HDR 20u
#define IP6_HDR 40u
#define IP4_OFFSET 0x1fff

/* What an error quotes. */
struct quote {
	struct sl_addr src;
	struct sl_addr dst;
	uint16_t sport;
	uint16_t dport;
	uint16_t l4; /* offset of the UDP header in the quote */
};

static bool
is_error(const struct inet_pkt *p)
{
	uint8_t type = p->head[p->l4_off];

	if (inet_is_v4(&p->dst))
		return type == ICMP4_UNREACH || type == ICMP4_TIME || type == ICMP4_PARAM;
	return type >= ICMP6_UNREACH && type <= ICMP6_PARAM;
}

/* q: room bytes of private copy. False: no UDP datagram, or not enough of it. */
static bool
parse4(const uint8_t *q, uint32_t room, struct quote *out)
{
	uint32_t hdr, be;

	if (room < IP4_HDR + UDP_LEN || q[0] >> 4 != 4)
		return false;
	hdr = (q[0] & 0xfu) * 4;
	if (hdr < IP4_HDR || hdr + UDP_LEN > room || q[9] != IPPROTO_UDP ||
		(inet_get16(q + 6) & IP4_OFFSET) != 0)
		return false;
	memcpy(&be, q + 12, sizeof(be));
	out->src = sl_addr_v4(be);
	memcpy(&be, q + 16, sizeof(be));
	out->dst = sl_addr_v4(be);
	out->l4 = (uint16_t)hdr;
	return true;
}

static bool
parse6(const uint8_t *q, uint32_t room, struct quote *out)
{
	if (room < IP6_HDR + UDP_LEN || q[0] >> 4 != 6 || q[6] != IPPROTO_UDP)
		return false;
	memcpy(out->src.b, q + 8, sizeof(out->src.b));
	memcpy(out->dst.b, q + 24, sizeof(out->dst.b));
	out->l4 = IP6_HDR;
	return true;
}

static bool
parse(const struct inet_pkt *p, struct quote *out)
{
	uint32_t at = p->l4_off + ICMP_HDR;
	uint32_t room = RTE_MIN(p->end, (uint32_t)p->head_len);
	const uint8_t *q = p->head + at;
	bool good;

	if (room < at)
		return false;
	good = inet_is_v4(&p->dst) ? parse4(q, room - at, out) : parse6(q, room - at, out);
	if (!good)
		return false;
	memcpy(&out->sport, q + out->l4, 2);
	memcpy(&out->dport, q + out->l4 + 2, 2);
	return true;
}

static bool
sum_right(const struct inet_pkt *p)
{
	uint32_t len = p->end - p->l4_off;
	uint64_t sum = 0;

	if (!inet_is_v4(&p->dst))
		sum = inet_pseudo_sum(&p->src, &p->dst, IPPROTO_ICMPV6, len);
	return inet_fold(sum + inet_sum_mbuf(p->m, p->l4_off, len)) == UINT16_MAX;
}

unsigned int
inet_claim_icmp(struct inet_rx *rx, const struct inet_pkt *p, bool local)
{
	const struct sl_inet_claim *claim;
	struct sl_inet_claimed *c;
	bool to = false;
	struct quote q;

	if (p->end - p->l4_off < ICMP_HDR || p->l4_off >= p->head_len || !is_error(p) ||
		!parse(p, &q))
		return INET_PASS;
	/* Errors go to the one whose datagram they quote. */
	if (!inet_addr_equal(&q.src, &p->dst))
		return INET_PASS;
	claim = inet_claim_find(rx->claim, SL_CLAIM_FROM, &q.dst, q.dport);
	/* About a datagram of a socket of ours. */
	if (claim != NULL && local && !inet_claim_own(claim, q.sport))
		return INET_PASS;
	if (claim == NULL && local) {
		claim = inet_claim_find(rx->claim, SL_CLAIM_TO, &q.src, q.sport);
		to = claim != NULL;
	}
	if (claim == NULL)
		return INET_PASS;
	if (!sum_right(p))
		return SL_RX_ICMP_BAD;
	c = inet_claim_add(rx, p, claim);
	c->kind = to ? SL_CLAIMED_ERROR_TO : SL_CLAIMED_ERROR_FROM;
	c->sport = q.sport;
	c->dport = q.dport;
	c->quote_off = (uint16_t)(p->l4_off + ICMP_HDR);
	c->quote_l4 = (uint16_t)(c->quote_off + q.l4);
	return SL_RX_CLAIMED | INET_KEPT;
}
