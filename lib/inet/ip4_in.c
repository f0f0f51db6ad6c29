/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include "cksum.h"
#include "claim.h"
#include "icmp.h"
#include "inet_priv.h"
#include "punt.h"
#include "reasm.h"

#define IP4_HDR 20u
#define IP4_ALL_HOSTS 0xe0000001u /* 224.0.0.1 */
#define IP4_FRAGMENT 0x3fff	  /* more fragments, or an offset */
#define IP4_MORE 0x2000
#define IP4_OFFSET 0x1fff

enum {
	OPT_END = 0,
	OPT_NOP = 1,
	OPT_LSRR = 131,
	OPT_SSRR = 137,
};

static enum sl_outcome
check_options(const uint8_t *opt, uint32_t len)
{
	uint32_t i = 0;

	while (i < len && opt[i] != OPT_END) {
		if (opt[i] == OPT_NOP) {
			i++;
			continue;
		}
		if (i + 2 > len || opt[i + 1] < 2 || opt[i + 1] > len - i)
			return SL_RX_IP_OPTION;
		if (opt[i] == OPT_LSRR || opt[i] == OPT_SSRR)
			return SL_RX_IP_OPTION;
		i += opt[i + 1];
	}
	return INET_PASS;
}

static bool
header_sum_ok(const struct inet_pkt *p, const uint8_t *ip, uint32_t len)
{
	uint64_t known = p->m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	if (known == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		return false;
	if (known != 0) /* GOOD, or NONE: not filled in, but known to be right */
		return true;
	return inet_fold(inet_sum(ip, len)) == UINT16_MAX;
}

/* Version, lengths, checksum, options. Sets *hdr. */
static enum sl_outcome
check_header(const struct inet_pkt *p, uint32_t *hdr)
{
	const uint8_t *ip = p->head + p->l2_len;
	uint32_t room = p->end - p->l2_len, total;

	if (room < IP4_HDR || p->head_len < p->l2_len + IP4_HDR)
		return SL_RX_IP_LENGTH;
	if (ip[0] >> 4 != 4)
		return SL_RX_IP_VERSION;
	*hdr = (ip[0] & 0xfu) * 4;
	total = inet_get16(ip + 2);
	if (*hdr < IP4_HDR || *hdr > total || total > room || p->head_len < p->l2_len + *hdr)
		return SL_RX_IP_LENGTH;
	if (!header_sum_ok(p, ip, *hdr))
		return SL_RX_IP_CSUM;
	return check_options(ip + IP4_HDR, *hdr - IP4_HDR);
}

/* An address that a host may have: not in 0/8 or 127/8, no group, not the broadcast address. */
static bool
unicast4(uint32_t be)
{
	uint32_t host = rte_be_to_cpu_32(be);

	return host >> 24 != 0 && host >> 24 != 127 && host >> 28 != 0xe && host != UINT32_MAX;
}

static bool
source_ok(const struct inet_port *port, uint32_t src, uint32_t dst)
{
	return unicast4(src) && src != dst && !inet_port_is_broadcast4(port, src);
}

bool
inet_ip4_hit(const struct inet_port *port, struct inet_wport *wport, uint32_t dst)
{
	struct sl_addr addr = sl_addr_v4(dst);
	const struct inet_addr *a = inet_port_addr(port, &addr);
	uint32_t mask;

	if (a == NULL)
		return false;
	mask = inet_prefix_mask4(a->prefix);
	wport->local4 = dst;
	wport->bcast4 = a->prefix == 0 || a->prefix > 30 ? 0 : (dst & mask) | ~mask;
	return true;
}

/* Is dst for us? Remembers a unicast hit, with its broadcast address, for the fast path. */
static bool
dst_ok(const struct inet_rx *rx, struct inet_pkt *p, uint32_t dst)
{
	struct inet_wport *wport = rx->wport;

	p->dst_group = dst == UINT32_MAX || dst == rte_cpu_to_be_32(IP4_ALL_HOSTS) ||
		       inet_port_is_broadcast4(rx->port, dst);
	if (p->dst_group)
		return true;
	if (inet_ip4_hit(rx->port, wport, dst))
		return true;
	if (!rx->port->any_dst || !unicast4(dst))
		return false;
	wport->local4 = dst;
	wport->bcast4 = 0;
	return true;
}

static struct inet_fragment
fragment_of(const uint8_t *ip)
{
	uint16_t word = inet_get16(ip + 6);

	return (struct inet_fragment){.id = inet_get16(ip + 4),
		.start = (word & IP4_OFFSET) * 8u,
		.more = (word & IP4_MORE) != 0,
		.proto = ip[9]};
}

static unsigned int
fragment_input(struct inet_rx *rx, struct inet_pkt *p, const uint8_t *ip)
{
	struct inet_fragment f = fragment_of(ip);

	return inet_reasm_input(rx, p, &f);
}

/* Does a claim take it? */
static __attribute__((noinline)) unsigned int
claim_input(struct inet_rx *rx, const struct inet_pkt *p, const uint8_t *ip, bool local)
{
	struct inet_fragment f = fragment_of(ip);

	return inet_claim_ip(rx, p, ip[9], f.more || f.start != 0 ? &f : NULL, local);
}

unsigned int
inet_ip4_input(struct inet_rx *rx, struct inet_pkt *p)
{
	const uint8_t *ip = p->head + p->l2_len;
	enum sl_outcome outcome;
	uint32_t src, dst, hdr;
	bool local;

	outcome = check_header(p, &hdr);
	if (outcome != INET_PASS)
		return outcome;
	p->end = p->l2_len + inet_get16(ip + 2);
	p->l4_off = (uint16_t)(p->l2_len + hdr);
	p->tos = ip[1];
	p->ttl = ip[8];
	memcpy(&src, ip + 12, sizeof(src));
	memcpy(&dst, ip + 16, sizeof(dst));
	p->src = sl_addr_v4(src);
	p->dst = sl_addr_v4(dst);
	if (!source_ok(rx->port, src, dst))
		return SL_RX_IP_SOURCE;
	local = dst_ok(rx, p, dst);
	if (SL_UNLIKELY(rx->claim != NULL)) {
		unsigned int claimed = claim_input(rx, p, ip, local);

		if (claimed != INET_PASS)
			return claimed;
	}
	if (!local)
		return SL_RX_IP_NOT_LOCAL;
	if ((inet_get16(ip + 6) & IP4_FRAGMENT) != 0)
		return fragment_input(rx, p, ip);
	switch (ip[9]) {
	case IPPROTO_UDP:
		return inet_udp_input(rx, p);
	case IPPROTO_ICMP:
		return inet_icmp4_input(rx, p);
	default:
		if (!inet_punts(rx))
			inet_icmp_error(rx, p, ICMP4_UNREACH, ICMP4_UNREACH_PROTO, 0);
		return SL_RX_IP_PROTO;
	}
}
