/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "cksum.h"
#include "icmp.h"
#include "sl_inet_claim.h"
#include "table.h"

#define ICMP_HDR 8u
#define IP4_HDR 20u
#define IP6_HDR 40u
#define UDP_PORTS 4u /* of the quoted datagram's header, the part that is needed */
/* Errors of at most this size, IP header included (RFC 1812, 4.3.2.3 and RFC 4443, 2.4). */
#define ERROR4_MAX 576u
#define ERROR6_MAX 1280u
#define TOKENS_MAX 50u
/* Neighbour discovery in practice is below 100 bytes; what exceeds this is not looked at. */
#define ICMP_COPY 512u

struct error_info {
	int error;
	bool hard;
};

/* Destination unreachable, by code: what Linux reports to a socket for it. */
static const struct error_info unreach4[] = {
	{-ENETUNREACH, false},	/* network */
	{-EHOSTUNREACH, false}, /* host */
	{-ENOPROTOOPT, true},	/* protocol */
	{-ECONNREFUSED, true},	/* port */
	{-EMSGSIZE, true},	/* fragmentation needed: we always set DF */
	{-EOPNOTSUPP, false},	/* source route failed */
	{-ENETUNREACH, true},	/* network unknown */
	{-EHOSTDOWN, true},	/* host unknown */
	{-ENONET, true},	/* host isolated */
	{-ENETUNREACH, true},	/* network prohibited */
	{-EHOSTUNREACH, true},	/* host prohibited */
	{-ENETUNREACH, false},	/* network, for this service */
	{-EHOSTUNREACH, false}, /* host, for this service */
	{-EHOSTUNREACH, true},	/* filtered */
	{-EHOSTUNREACH, true},	/* precedence violation */
	{-EHOSTUNREACH, true},	/* precedence cut-off */
};

static const struct error_info unreach6[] = {
	{-ENETUNREACH, false},	/* no route */
	{-EACCES, true},	/* prohibited */
	{-EHOSTUNREACH, false}, /* beyond scope */
	{-EHOSTUNREACH, false}, /* address */
	{-ECONNREFUSED, true},	/* port */
	{-EACCES, true},	/* source address failed policy */
	{-EACCES, true},	/* reject route */
};

/* False for types that report no error. */
static bool
error_info4(uint8_t type, uint8_t code, struct error_info *info)
{
	switch (type) {
	case ICMP4_UNREACH:
		*info = code < SL_COUNT_OF(unreach4) ? unreach4[code]
						     : (struct error_info){-EHOSTUNREACH, false};
		return true;
	case ICMP4_TIME:
		*info = (struct error_info){-EHOSTUNREACH, false};
		return true;
	case ICMP4_PARAM:
		*info = (struct error_info){-EPROTO, true};
		return true;
	default:
		return false;
	}
}

static bool
error_info6(uint8_t type, uint8_t code, struct error_info *info)
{
	switch (type) {
	case ICMP6_UNREACH:
		*info = code < SL_COUNT_OF(unreach6) ? unreach6[code]
						     : (struct error_info){-EPROTO, true};
		return true;
	case ICMP6_TOO_BIG:
		*info = (struct error_info){-EMSGSIZE, true};
		return true;
	case ICMP6_TIME:
		*info = (struct error_info){-EHOSTUNREACH, false};
		return true;
	case ICMP6_PARAM:
		*info = (struct error_info){-EPROTO, true};
		return true;
	default:
		return false;
	}
}

/* The quoted packet is a UDP datagram of ours: fill in its flow. Sets *ours to false if it is not;
 * false for a quote that is malformed or too short. */
static bool
parse_quote4(const uint8_t *q, uint32_t len, struct sl_inet_flow *flow, bool *ours)
{
	uint32_t hdr, be;

	if (len < IP4_HDR || q[0] >> 4 != 4)
		return false;
	hdr = (q[0] & 0xfu) * 4;
	if (hdr < IP4_HDR || hdr + UDP_PORTS > len)
		return false;
	/* A later fragment has no ports; we send none. */
	*ours = q[9] == IPPROTO_UDP && (inet_get16(q + 6) & 0x1fff) == 0;
	memcpy(&be, q + 12, sizeof(be));
	flow->src = sl_addr_v4(be);
	memcpy(&be, q + 16, sizeof(be));
	flow->dst = sl_addr_v4(be);
	flow->tos = q[1];
	flow->ttl = q[8];
	memcpy(&flow->sport, q + hdr, 2);
	memcpy(&flow->dport, q + hdr + 2, 2);
	return true;
}

static bool
parse_quote6(const uint8_t *q, uint32_t len, struct sl_inet_flow *flow, bool *ours)
{
	if (len < IP6_HDR + UDP_PORTS || q[0] >> 4 != 6)
		return false;
	*ours = q[6] == IPPROTO_UDP; /* we send no extension headers */
	memcpy(flow->src.b, q + 8, sizeof(flow->src.b));
	memcpy(flow->dst.b, q + 24, sizeof(flow->dst.b));
	flow->tos = (uint8_t)(inet_get16(q) >> 4);
	flow->ttl = q[7];
	memcpy(&flow->sport, q + IP6_HDR, 2);
	memcpy(&flow->dport, q + IP6_HDR + 2, 2);
	return true;
}

/* icmp: len bytes of private copy. */
static enum sl_outcome
error_input(struct inet_rx *rx, const struct inet_pkt *p, const uint8_t *icmp, uint32_t len,
	const struct error_info *info)
{
	struct sl_inet_error e = {.error = info->error, .hard = info->hard};
	bool ours, good;

	if (inet_is_v4(&p->dst))
		good = parse_quote4(icmp + ICMP_HDR, len - ICMP_HDR, &e.flow, &ours);
	else
		good = parse_quote6(icmp + ICMP_HDR, len - ICMP_HDR, &e.flow, &ours);
	if (!good)
		return SL_RX_ICMP_BAD;
	/* Errors come back to the address that the datagram left from. */
	if (!ours || p->dst_group || memcmp(&e.flow.src, &p->dst, sizeof(p->dst)) != 0)
		return SL_RX_ICMP_IGNORED;
	if (rx->inet->udp != NULL && rx->inet->udp->error != NULL)
		rx->inet->udp->error(rx->inet->udp_arg, rx->worker, &e);
	return SL_RX_ICMP_ERROR;
}

/* May the packet's sender be answered to the MAC address that its frame came from? */
static bool
answerable(const struct inet_pkt *p)
{
	return (p->head[RTE_ETHER_ADDR_LEN] & 1) == 0 && !sl_addr_is_any(&p->src);
}

/* A packet that we may write to: m itself, or a copy if others can see m's memory or the headers
 * would not fit in front. NULL is counted. */
static struct rte_mbuf *
writable(struct inet_rx *rx, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 && m->data_len >= ICMP_HDR &&
		rte_pktmbuf_headroom(m) >= INET_ETH_MAX + IP6_HDR)
		return m;
	copy = rte_pktmbuf_copy(m, rx->port->pool, 0, UINT32_MAX);
	if (copy == NULL)
		inet_count(rx->w, SL_TX_NO_MBUF, 1);
	return copy;
}

/* Send a finished reply; it came in fragments if it is longer than the port sends, and goes so. */
static unsigned int
echo_output(
	struct inet_rx *rx, struct inet_pkt *p, struct rte_mbuf *m, const struct inet_ip_out *out)
{
	const uint8_t *mac = p->head + RTE_ETHER_ADDR_LEN;
	bool v4 = inet_is_v4(&out->dst);

	if (m->pkt_len + (v4 ? IP4_HDR : IP6_HDR) > rx->port->mtu) {
		inet_fragments_output(rx, m, out, mac);
		if (m != p->m)
			rte_pktmbuf_free(m);
		return SL_RX_ECHO;
	}
	inet_ip_prepend(rx->w, rx->port, m, out);
	inet_eth_output(
		rx->w, rx->port, rx->wport, m, mac, v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	return m == p->m ? SL_RX_ECHO | INET_KEPT : SL_RX_ECHO;
}

static unsigned int
echo(struct inet_rx *rx, struct inet_pkt *p, uint8_t reply_type)
{
	bool v4 = inet_is_v4(&p->dst);
	uint32_t len = p->end - p->l4_off;
	struct inet_ip_out out = {.src = p->dst,
		.dst = p->src,
		.ttl = INET_TTL,
		.tos = p->tos,
		.proto = v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6};
	const struct inet_addr *src;
	struct rte_mbuf *m;
	uint64_t pseudo;
	uint8_t *icmp;
	uint16_t sum;

	/* Broadcast pings are for flooding third parties; a group ping of IPv6 is answered. */
	if (!answerable(p) || (v4 && (p->dst_group || p->l2_group)))
		return SL_RX_ICMP_IGNORED;
	if (p->dst_group) {
		src = inet_port_source(rx->port, &p->src, &p->src);
		if (src == NULL)
			return SL_RX_ICMP_IGNORED;
		out.src = src->addr;
	}
	inet_mbuf_window(p->m, p->l4_off, len);
	m = writable(rx, p->m);
	if (m == NULL)
		return SL_RX_ECHO;
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
	icmp = rte_pktmbuf_mtod(m, uint8_t *);
	icmp[0] = reply_type;
	memset(icmp + 2, 0, 2);
	pseudo = v4 ? 0 : inet_pseudo_sum(&out.src, &out.dst, out.proto, len);
	sum = (uint16_t)~inet_fold(pseudo + inet_sum_mbuf(m, 0, len));
	memcpy(icmp + 2, &sum, sizeof(sum));
	return echo_output(rx, p, m, &out);
}

unsigned int
inet_icmp4_input(struct inet_rx *rx, struct inet_pkt *p)
{
	uint32_t len = p->end - p->l4_off;
	struct error_info info;
	uint8_t icmp[INET_HEAD];
	uint32_t copied;

	if (len < ICMP_HDR || inet_sum_mbuf(p->m, p->l4_off, len) != UINT16_MAX)
		return SL_RX_ICMP_BAD;
	copied = inet_mbuf_read(p->m, p->l4_off, icmp, RTE_MIN(len, sizeof(icmp)));
	if (icmp[0] == ICMP4_ECHO)
		return echo(rx, p, ICMP4_ECHO_REPLY);
	if (error_info4(icmp[0], icmp[1], &info))
		return error_input(rx, p, icmp, copied, &info);
	return SL_RX_ICMP_IGNORED;
}

unsigned int
inet_icmp6_input(struct inet_rx *rx, struct inet_pkt *p)
{
	uint32_t len = p->end - p->l4_off;
	uint8_t icmp[ICMP_COPY];
	struct error_info info;
	uint32_t copied;
	uint64_t sum;

	if (len < ICMP_HDR)
		return SL_RX_ICMP_BAD;
	sum = inet_pseudo_sum(&p->src, &p->dst, IPPROTO_ICMPV6, len);
	if (inet_fold(sum + inet_sum_mbuf(p->m, p->l4_off, len)) != UINT16_MAX)
		return SL_RX_ICMP_BAD;
	copied = inet_mbuf_read(p->m, p->l4_off, icmp, RTE_MIN(len, sizeof(icmp)));
	if (icmp[0] >= ICMP6_RS && icmp[0] <= ICMP6_REDIRECT)
		return copied == len ? inet_nd_input(rx, p, icmp, len) : SL_RX_ND_BAD;
	if (sl_addr_is_any(&p->src))
		return SL_RX_IP_SOURCE;
	if (icmp[0] == ICMP6_ECHO)
		return echo(rx, p, ICMP6_ECHO_REPLY);
	if (error_info6(icmp[0], icmp[1], &info))
		return error_input(rx, p, icmp, copied, &info);
	return SL_RX_ICMP_IGNORED;
}

/* One token a packet, refilled by the second; a short burst is let through. */
static bool
take_token(const struct sl_inet *inet, struct inet_worker *w)
{
	uint64_t now = inet_now(inet);
	uint64_t passed = RTE_MIN(now - w->tokens_ns, NSEC_PER_SEC);
	uint64_t most = RTE_MIN(inet->icmp_errors_per_s, TOKENS_MAX) * NSEC_PER_SEC;

	w->tokens = RTE_MIN(w->tokens + passed * inet->icmp_errors_per_s, most);
	w->tokens_ns = now;
	if (w->tokens < NSEC_PER_SEC)
		return false;
	w->tokens -= NSEC_PER_SEC;
	return true;
}

struct error_out {
	uint8_t type;
	uint8_t code;
	uint32_t word;
	struct sl_addr src;
	struct sl_addr dst;
	const uint8_t *mac;
	/* The packet to quote: head first, then bytes of m. */
	const uint8_t *head;
	uint32_t head_len;
	const struct rte_mbuf *m;
	uint32_t off;
	uint32_t len;
};

static void
error_output(struct inet_rx *rx, const struct error_out *e)
{
	bool v4 = inet_is_v4(&e->dst);
	struct inet_ip_out out = {.src = e->src,
		.dst = e->dst,
		.ttl = INET_TTL,
		.proto = v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6};
	uint32_t most = v4 ? ERROR4_MAX - IP4_HDR : ERROR6_MAX - IP6_HDR, len, quoted;
	uint64_t pseudo = 0;
	struct rte_mbuf *m;
	uint8_t *icmp;
	uint16_t sum;

	m = inet_own_mbuf(rx->w, rx->port);
	if (m == NULL)
		return;
	most = RTE_MIN(most, rte_pktmbuf_tailroom(m));
	len = RTE_MIN(ICMP_HDR + e->head_len + e->len, most);
	icmp = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	if (len < ICMP_HDR + e->head_len || icmp == NULL) {
		inet_count(rx->w, SL_TX_NO_MBUF, 1); /* buffers too small for any error */
		rte_pktmbuf_free(m);
		return;
	}
	quoted = ICMP_HDR + e->head_len;
	icmp[0] = e->type;
	icmp[1] = e->code;
	memset(icmp + 2, 0, 2);
	inet_put16(icmp + 4, (uint16_t)(e->word >> 16));
	inet_put16(icmp + 6, (uint16_t)e->word);
	if (e->head_len > 0)
		memcpy(icmp + ICMP_HDR, e->head, e->head_len);
	inet_mbuf_read(e->m, e->off, icmp + quoted, len - quoted);
	if (!v4)
		pseudo = inet_pseudo_sum(&out.src, &out.dst, out.proto, len);
	sum = (uint16_t)~inet_fold(pseudo + inet_sum(icmp, len));
	memcpy(icmp + 2, &sum, sizeof(sum));
	inet_ip_prepend(rx->w, rx->port, m, &out);
	inet_eth_output(rx->w, rx->port, rx->wport, m, e->mac,
		v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
}

/* Is it an ICMPv6 error or redirect, behind whatever extension headers? About those no error may be
 * sent (RFC 4443, 2.4 e). What the private copy of the headers does not show is taken for one. */
static bool
carries_error6(const struct inet_pkt *p)
{
	uint32_t at = p->l2_len + IP6_HDR;
	uint8_t next = p->head[p->l2_len + 6];

	while (next == IPPROTO_HOPOPTS || next == IPPROTO_DSTOPTS || next == IPPROTO_ROUTING ||
		next == IPPROTO_FRAGMENT) {
		bool fragment = next == IPPROTO_FRAGMENT;

		if (at + 4 > p->head_len)
			return true;
		next = p->head[at];
		/* A later part of something: its type lies in the first one. */
		if (fragment && (inet_get16(p->head + at + 2) & 0xfff8) != 0)
			return next == IPPROTO_ICMPV6;
		at += fragment ? 8u : 8u * (p->head[at + 1] + 1u);
	}
	if (next != IPPROTO_ICMPV6)
		return false;
	return at >= p->head_len || p->head[at] < ICMP6_ECHO || p->head[at] == ICMP6_REDIRECT;
}

/* foreign: the destination is not ours, so that we have to find a source. */
static void
answer(struct inet_rx *rx, const struct inet_pkt *p, struct error_out *e, bool foreign)
{
	const struct inet_addr *src;

	e->src = p->dst;
	e->dst = p->src;
	e->mac = p->head + RTE_ETHER_ADDR_LEN;
	e->m = p->m;
	e->off = p->l2_len;
	e->len = p->end - p->l2_len;
	if (!inet_is_v4(&p->dst) && carries_error6(p))
		return;
	if (foreign) {
		src = inet_port_source(rx->port, &p->src, &p->src);
		if (src == NULL)
			return;
		e->src = src->addr;
	}
	if (take_token(rx->inet, rx->w))
		error_output(rx, e);
}

void
inet_icmp_error(
	struct inet_rx *rx, const struct inet_pkt *p, uint8_t type, uint8_t code, uint32_t word)
{
	struct error_out e = {.type = type, .code = code, .word = word};
	/* RFC 4443, 2.4: this one may be sent about a packet to a group. */
	bool group_ok = !inet_is_v4(&p->dst) && type == ICMP6_PARAM && code == ICMP6_PARAM_OPTION;

	if (!answerable(p) || ((p->dst_group || p->l2_group) && !group_ok))
		return;
	answer(rx, p, &e, p->dst_group);
}

/* Type and code of each error about a claimed packet, by family. */
static const struct {
	uint8_t type4, code4, type6, code6;
} claim_errors[] = {
	[SL_CLAIM_ERROR_TIME] = {ICMP4_TIME, 0, ICMP6_TIME, 0},
	[SL_CLAIM_ERROR_TOO_BIG] = {ICMP4_UNREACH, ICMP4_UNREACH_TOO_BIG, ICMP6_TOO_BIG, 0},
	[SL_CLAIM_ERROR_NOBODY] = {ICMP4_UNREACH, ICMP4_UNREACH_PORT, ICMP6_UNREACH,
		ICMP6_UNREACH_PORT},
	[SL_CLAIM_ERROR_NO_WAY] = {ICMP4_UNREACH, ICMP4_UNREACH_NET, ICMP6_UNREACH,
		ICMP6_UNREACH_ROUTE},
};

void
sl_inet_claim_answer(struct sl_inet *inet, uint16_t worker, const struct sl_inet_claimed *c,
	enum sl_inet_claim_error error, uint16_t mtu)
{
	struct error_out e = {.word = mtu};
	struct inet_pkt p = {.m = c->m,
		.head = c->head,
		.head_len = c->head_len,
		.l2_len = c->l2_len,
		.end = c->end,
		.src = c->src,
		.dst = c->dst};
	struct inet_rx rx; /* of which sending needs little */

	if (c->later || c->kind > SL_CLAIMED_FROM || !answerable(&p))
		return;
	rx.inet = inet;
	rx.port = inet_port_find(inet, c->port);
	rx.worker = worker;
	rx.w = &inet->worker[worker];
	rx.wport = &rx.port->workers[worker];
	e.type = c->v4 ? claim_errors[error].type4 : claim_errors[error].type6;
	e.code = c->v4 ? claim_errors[error].code4 : claim_errors[error].code6;
	answer(&rx, &p, &e, !inet_port_is_local(rx.port, &c->dst));
}

static void
port_unreachable(struct inet_rx *rx, uint16_t i)
{
	struct sl_dgram *d = &rx->dgram[i];
	struct rte_mbuf *m = d->buf;
	struct error_out e = {.m = m, .len = d->len};
	uint32_t l2 = RTE_ETHER_HDR_LEN;
	const uint8_t *frame;
	bool v4;

	memcpy(e.dst.b, d->src, sizeof(e.dst.b));
	memcpy(e.src.b, d->dst, sizeof(e.src.b));
	v4 = inet_is_v4(&e.dst);
	if ((rx->in_head >> i & 1) != 0) {
		l2 = rx->l2_len[i];
		e.head_len = rx->l3_len[i] + 8u; /* UDP header included */
		frame = rx->head[i];
	} else { /* the fast path's: nothing but these headers, and they still lie before the
		    payload */
		e.head_len = (v4 ? IP4_HDR : IP6_HDR) + 8u;
		frame = rte_pktmbuf_mtod(m, const uint8_t *) - l2 - e.head_len;
	}
	e.mac = frame + RTE_ETHER_ADDR_LEN;
	e.head = frame + l2;
	e.type = v4 ? ICMP4_UNREACH : ICMP6_UNREACH;
	e.code = v4 ? ICMP4_UNREACH_PORT : ICMP6_UNREACH_PORT;
	if ((rx->l2_group >> i & 1) != 0 || (e.mac[0] & 1) != 0 || inet_is_multicast(&e.src))
		return;
	if (v4 && (inet_to_v4(&e.src) == UINT32_MAX ||
			  inet_port_is_broadcast4(rx->port, inet_to_v4(&e.src))))
		return;
	if (take_token(rx->inet, rx->w))
		error_output(rx, &e);
}

void
inet_icmp_port_unreachable(struct inet_rx *rx, uint16_t i)
{
	struct inet_port *first = rx->port;

	/* The burst is of a DPDK port, and the datagram of whichever of its ports had the tags. */
	rx->port = inet_port_find(rx->inet, rx->dgram[i].port);
	rx->wport = &rx->port->workers[rx->worker];
	port_unreachable(rx, i);
	rx->port = first;
	rx->wport = &first->workers[rx->worker];
}
