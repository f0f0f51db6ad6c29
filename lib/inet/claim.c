/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "cksum.h"
#include "claim_again6.h"
#include "reasm.h"

#define UDP_LEN 8u
#define COPY 68u	    /* of plain datagrams: IPv6 ones with a tag have headers of 66 */
#define IP4_FRAGMENT 0x3fff /* more fragments, or an offset */

enum verdict {
	NOT_OURS, /* nobody claims it, or it is none of the plain ones */
	OURS,
	ODD, /* claimed, and something about it is for the general path to judge */
};

void
inet_claim_begin(struct inet_rx *rx, struct inet_claim_rx *crx, const struct sl_inet_claims *set)
{
	crx->set = set;
	crx->cw = &rx->inet->claim_worker[rx->worker];
	crx->n = 0;
	rx->claim = crx;
}

void
inet_claim_deliver(struct inet_rx *rx)
{
	struct inet_claim_rx *crx = rx->claim;
	uint16_t n = crx->n;

	if (n == 0)
		return;
	crx->n = 0;
	crx->set->ops->input(crx->set->arg, rx->worker, rx->w->now_ns, crx->c, n);
}

/* Is it an address of the port's? The one that was hit last mostly is. */
static inline bool
is_local4(const struct inet_rx *rx, uint32_t be)
{
	return be == rx->local4 || inet_ip4_hit(rx->port, rx->wport, be);
}

/* Fill in what plain datagrams have; the offsets of their headers are there. */
static inline void
plain(const struct inet_rx *rx, struct rte_mbuf *m, struct sl_inet_claimed *c, uint8_t *head,
	uint32_t len, const struct sl_inet_claim *claim)
{
	c->m = m;
	c->head = head;
	c->head_len = (uint16_t)RTE_MIN(COPY, (uint32_t)m->data_len);
	c->port = rx->port_id;
	c->end = c->l2_len + len;
	c->kind = claim->kind == SL_CLAIM_TO ? SL_CLAIMED_TO : SL_CLAIMED_FROM;
	c->later = false;
	c->plain = true;
	c->follow = NULL;
	c->owner = claim->owner;
}

/* Does it fall under a claim? Addresses and ports are in c. */
static inline const struct sl_inet_claim *
match_plain(const struct inet_rx *rx, const struct sl_inet_claimed *c, bool local)
{
	return inet_claim_match(rx->claim, &c->src, &c->dst, c->sport, c->dport, local);
}

static inline bool
ports_claimed(const struct inet_rx *rx, const struct sl_inet_claimed *c)
{
	const struct sl_inet_claims *set = rx->claim->set;

	return ((set->ports[SL_CLAIM_TO][c->dport / 64] >> c->dport % 64 |
			set->ports[SL_CLAIM_FROM][c->sport / 64] >> c->sport % 64) &
		       1) != 0;
}

/* Where the first ones of a burst are kept, by which others are known. */
struct burst_again {
	struct claim_again v4[2]; /* by kind of the claim */
	struct claim_again v6[2];
};

static inline enum verdict
take_ip4(const struct inet_rx *rx, struct rte_mbuf *m, struct claim_again *again, uint8_t *h,
	struct sl_inet_claimed *c)
{
	const uint8_t *ip = h + c->l2_len;
	const struct sl_inet_claim *claim;
	uint32_t src, dst, total = inet_get16(ip + 2), sum[5];
	bool local;

	if (ip[0] != 0x45 || ip[9] != IPPROTO_UDP || (inet_get16(ip + 6) & IP4_FRAGMENT) != 0)
		return NOT_OURS;
	memcpy(&c->sport, ip + 20, 2);
	memcpy(&c->dport, ip + 22, 2);
	if (!ports_claimed(rx, c))
		return NOT_OURS;
	memcpy(sum, ip, sizeof(sum));
	src = sum[3];
	dst = sum[4];
	c->src = sl_addr_v4(src);
	c->dst = sl_addr_v4(dst);
	local = is_local4(rx, dst);
	claim = match_plain(rx, c, local);
	if (claim == NULL)
		return NOT_OURS;
	c->v4 = true;
	c->l4_off = (uint16_t)(c->l2_len + 20);
	if (total + c->l2_len > m->data_len || inet_get16(ip + 24) + 20u != total ||
		total < 20 + UDP_LEN || !claim_unicast4(src) || !claim_unicast4(dst) || src == dst)
		return ODD;
	if (src == rx->bcast4 || dst == rx->bcast4 ||
		((rx->many4 || rx->bcast4 == 0) && (inet_port_is_broadcast4(rx->port, src) ||
							   inet_port_is_broadcast4(rx->port, dst))))
		return ODD;
	if (!inet_sum_right((uint64_t)sum[0] + sum[1] + sum[2] + sum[3] + sum[4]))
		return ODD;
	plain(rx, m, c, h, total, claim);
	/* The first ones of a burst: if several claims take turns, others would gain no more. A
	 * local destination of a FROM claim's depends on the port, too. */
	if (!again[claim->kind].known && (claim->kind == SL_CLAIM_TO || !local))
		claim_again_set4(&again[claim->kind], claim->kind, c);
	return OURS;
}

static __attribute__((noinline)) enum verdict
take_ip6(const struct inet_rx *rx, struct rte_mbuf *m, struct claim_again *again, uint8_t *h,
	struct sl_inet_claimed *c)
{
	const uint8_t *ip = h + c->l2_len;
	const struct sl_inet_claim *claim;
	uint32_t len = inet_get16(ip + 4);
	uint64_t high;
	bool local;

	if (m->data_len < c->l2_len + CLAIM_PLAIN6 || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP)
		return NOT_OURS;
	memcpy(&c->sport, ip + 40, 2);
	memcpy(&c->dport, ip + 42, 2);
	if (!ports_claimed(rx, c))
		return NOT_OURS;
	memcpy(c->src.b, ip + 8, 16);
	memcpy(c->dst.b, ip + 24, 16);
	local = inet_port_is_local(rx->port, &c->dst);
	claim = match_plain(rx, c, local);
	if (claim == NULL)
		return NOT_OURS;
	c->v4 = false;
	c->l4_off = (uint16_t)(c->l2_len + 40);
	memcpy(&high, c->src.b, sizeof(high));
	if (len + c->l4_off > m->data_len || len < UDP_LEN || inet_get16(ip + 44) != len ||
		!claim_source6_ok(high) || c->dst.b[0] == 0 || c->dst.b[0] == 0xff ||
		inet_is_link_local(&c->dst) || inet_addr_equal(&c->src, &c->dst) ||
		(ip[46] | ip[47]) == 0)
		return ODD;
	plain(rx, m, c, h, len + 40, claim);
	if (!again[claim->kind].known && (claim->kind == SL_CLAIM_TO || !local))
		claim_again_set6(&again[claim->kind], claim->kind, c);
	return OURS;
}

/* Length of the link header that plain frames have on this port; 0: there are none. */
static inline uint16_t
plain_link(const struct inet_port *port)
{
	return port->vids_count == 0 ? CLAIM_ETH : port->vids_count == 1 ? CLAIM_TAGGED : 0;
}

/* Is there a tag of the port's where there is to be one, and none else? type is what follows. */
static inline bool
tag_right(const struct inet_rx *rx, const uint8_t *h, uint16_t l2, uint16_t *type)
{
	memcpy(type, h + l2 - 2, sizeof(*type));
	return l2 == CLAIM_ETH || (inet_get16(h + 12) == RTE_ETHER_TYPE_VLAN &&
					  (inet_get16(h + 14) & 0xfff) == rx->port->vids[0]);
}

/* Both halves of what there is, which overlap if it is less than COPY: of a length that the
 * compiler knows. */
static inline void
copy(uint8_t *h, const uint8_t *p, uint32_t len)
{
	_Static_assert(COPY / 2 <= CLAIM_ETH + CLAIM_PLAIN4, "the shortest has as much");
	memcpy(h, p, COPY / 2);
	memcpy(h + len - COPY / 2, p + len - COPY / 2, COPY / 2);
}

static __attribute__((noinline)) enum verdict
take(const struct inet_rx *rx, struct rte_mbuf *m, struct burst_again *again, uint16_t l2,
	uint8_t *h, struct sl_inet_claimed *c)
{
	uint64_t mac;
	uint16_t type;

	if (m->nb_segs != 1 || m->data_len < l2 + CLAIM_PLAIN4 ||
		(m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)) != 0)
		return NOT_OURS;
	copy(h, rte_pktmbuf_mtod(m, const uint8_t *), RTE_MIN(COPY, (uint32_t)m->data_len));
	sl_snapshot_barrier();
	memcpy(&mac, h, sizeof(mac));
	if (((mac ^ rx->mac_want) & rx->mac_mask) != 0 || !tag_right(rx, h, l2, &type))
		return NOT_OURS;
	c->l2_len = l2;
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return take_ip4(rx, m, again->v4, h, c);
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return take_ip6(rx, m, again->v6, h, c);
	return NOT_OURS;
}

/* Hardware found something wrong. */
static inline bool
flags_bad(uint64_t flags)
{
	return (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD ||
	       (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

/* As run_again, of that shape. */
static inline __attribute__((always_inline)) uint16_t
run_shape(const struct inet_rx *rx, const struct claim_again *a, struct claim_shape shape,
	struct rte_mbuf **pkts, uint16_t n)
{
	struct inet_claim_rx *crx = rx->claim;
	struct sl_inet_claimed *c = &crx->c[crx->n];
	uint8_t(*h)[SL_INET_CLAIM_HEAD] = &crx->head[crx->n];
	struct rte_mbuf **p = pkts, **end = pkts + n;

	for (; p != end; p++, c++, h++) {
		rte_prefetch0(rte_pktmbuf_mtod(p[INET_AHEAD], const char *));
		if (SL_UNLIKELY(!(shape.v4 ? claim_again_one4(rx, a, shape, *p, *h, c)
					   : claim_again_one6(rx, a, shape, *p, *h, c))))
			break;
	}
	crx->n = (uint16_t)(crx->n + (p - pkts));
	return (uint16_t)(p - pkts);
}

/* How many of the first of n packets, behind which INET_AHEAD more may be read, are like the first
 * of that kind and family; they are in crx then. */
static inline __attribute__((always_inline)) uint16_t
run_again(const struct inet_rx *rx, const struct claim_again *a, struct claim_shape shape,
	struct rte_mbuf **pkts, uint16_t n)
{
	shape.l2_len = CLAIM_ETH;
	if (SL_LIKELY(a->c.l2_len == CLAIM_ETH))
		return run_shape(rx, a, shape, pkts, n);
	shape.l2_len = CLAIM_TAGGED;
	return run_shape(rx, a, shape, pkts, n);
}

static __attribute__((noinline)) uint16_t
again_to4(const struct inet_rx *rx, const struct claim_again *a, struct rte_mbuf **pkts, uint16_t n)
{
	return run_again(rx, a, (struct claim_shape){.kind = SL_CLAIM_TO, .v4 = true}, pkts, n);
}

static __attribute__((noinline)) uint16_t
again_from4(
	const struct inet_rx *rx, const struct claim_again *a, struct rte_mbuf **pkts, uint16_t n)
{
	return run_again(rx, a, (struct claim_shape){.kind = SL_CLAIM_FROM, .v4 = true}, pkts, n);
}

static __attribute__((noinline)) uint16_t
again_to6(const struct inet_rx *rx, const struct claim_again *a, struct rte_mbuf **pkts, uint16_t n)
{
	return run_again(rx, a, (struct claim_shape){.kind = SL_CLAIM_TO, .v4 = false}, pkts, n);
}

static __attribute__((noinline)) uint16_t
again_from6(
	const struct inet_rx *rx, const struct claim_again *a, struct rte_mbuf **pkts, uint16_t n)
{
	return run_again(rx, a, (struct claim_shape){.kind = SL_CLAIM_FROM, .v4 = false}, pkts, n);
}

/* Packets at the front that are like those before them: of one kind, then of another, and so on. */
static inline uint16_t
take_again(const struct inet_rx *rx, const struct burst_again *again, struct rte_mbuf **pkts,
	uint16_t n)
{
	uint16_t k = 0, before;

	do {
		before = k;
		if (again->v4[SL_CLAIM_TO].known)
			k = (uint16_t)(k + again_to4(rx, &again->v4[SL_CLAIM_TO], pkts + k,
						   (uint16_t)(n - k)));
		if (again->v4[SL_CLAIM_FROM].known)
			k = (uint16_t)(k + again_from4(rx, &again->v4[SL_CLAIM_FROM], pkts + k,
						   (uint16_t)(n - k)));
		if (again->v6[SL_CLAIM_TO].known)
			k = (uint16_t)(k + again_to6(rx, &again->v6[SL_CLAIM_TO], pkts + k,
						   (uint16_t)(n - k)));
		if (again->v6[SL_CLAIM_FROM].known)
			k = (uint16_t)(k + again_from6(rx, &again->v6[SL_CLAIM_FROM], pkts + k,
						   (uint16_t)(n - k)));
	} while (k != before && k != n);
	return k;
}

uint16_t
inet_claim_take(struct inet_rx *rx, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **odd,
	uint16_t *odds)
{
	struct inet_claim_rx *crx = rx->claim;
	uint16_t rest = 0, i, l2 = plain_link(rx->port);
	struct burst_again again;

	*odds = 0;
	if (l2 == 0)
		return n;
	for (i = 0; i < 2; i++) {
		again.v4[i].known = false;
		again.v6[i].known = false;
	}
	for (i = 0; i < INET_AHEAD; i++)
		pkts[n + i] = pkts[n - 1];
	for (i = 0; i < INET_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const char *));
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m;
		enum verdict v;

		i = (uint16_t)(i + take_again(rx, &again, pkts + i, (uint16_t)(n - i)));
		if (i == n)
			break;
		m = pkts[i];
		v = take(rx, m, &again, l2, crx->head[crx->n], &crx->c[crx->n]);
		if (SL_LIKELY(v == OURS && !flags_bad(m->ol_flags)))
			crx->n++;
		else if (v == NOT_OURS)
			pkts[rest++] = m;
		else
			odd[(*odds)++] = m;
	}
	inet_count(rx->w, SL_RX_CLAIMED, crx->n);
	return rest;
}

struct sl_inet_claimed *
inet_claim_add(struct inet_rx *rx, const struct inet_pkt *p, const struct sl_inet_claim *claim)
{
	struct inet_claim_rx *crx = rx->claim;
	struct sl_inet_claimed *c;

	if (crx->n == SL_INET_BURST)
		inet_claim_deliver(rx);
	c = &crx->c[crx->n];
	memcpy(crx->head[crx->n], p->head, p->head_len);
	*c = (struct sl_inet_claimed){.m = p->m,
		.head = crx->head[crx->n],
		.head_len = p->head_len,
		.port = rx->port->id,
		.l2_len = p->l2_len,
		.l4_off = p->l4_off,
		.end = p->end,
		.kind = claim->kind == SL_CLAIM_TO ? SL_CLAIMED_TO : SL_CLAIMED_FROM,
		.v4 = inet_is_v4(&p->dst),
		.src = p->src,
		.dst = p->dst,
		.owner = claim->owner};
	crx->n++;
	return c;
}

static unsigned int
claim_udp(struct inet_rx *rx, const struct inet_pkt *p, bool local)
{
	const struct sl_inet_claim *claim;
	const uint8_t *udp = p->head + p->l4_off;
	struct sl_inet_claimed *c;
	uint16_t sport, dport, len;

	/* What has no whole header the usual way refuses. */
	if (p->end - p->l4_off < UDP_LEN || p->l4_off + UDP_LEN > p->head_len)
		return INET_PASS;
	memcpy(&sport, udp, 2);
	memcpy(&dport, udp + 2, 2);
	claim = inet_claim_match(rx->claim, &p->src, &p->dst, sport, dport, local);
	if (claim == NULL)
		return INET_PASS;
	len = inet_get16(udp + 4);
	if (len < UDP_LEN || len > p->end - p->l4_off)
		return SL_RX_UDP_LENGTH;
	if ((p->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD)
		return SL_RX_UDP_CSUM;
	if (!inet_is_v4(&p->dst) && udp[6] == 0 && udp[7] == 0)
		return SL_RX_UDP_CSUM_ZERO6;
	c = inet_claim_add(rx, p, claim);
	c->sport = sport;
	c->dport = dport;
	return SL_RX_CLAIMED | INET_KEPT;
}

/* Is the destination one that a packet could be sent on to? */
static bool
destination_ok(const struct inet_rx *rx, const struct inet_pkt *p)
{
	if (!inet_is_v4(&p->dst))
		return p->dst.b[0] != 0 && !inet_is_multicast(&p->dst) &&
		       !inet_is_link_local(&p->dst) && !inet_is_link_local(&p->src);
	return claim_unicast4(inet_to_v4(&p->dst)) &&
	       !inet_port_is_broadcast4(rx->port, inet_to_v4(&p->dst));
}

unsigned int
inet_claim_ip(struct inet_rx *rx, const struct inet_pkt *p, uint8_t proto,
	const struct inet_fragment *f, bool local)
{
	if (p->dst_group || p->l2_group || !destination_ok(rx, p))
		return INET_PASS;
	if (f != NULL)
		return f->proto == IPPROTO_UDP ? inet_claim_fragment(rx, p, f, local) : INET_PASS;
	if (proto == IPPROTO_UDP)
		return claim_udp(rx, p, local);
	if (proto == (inet_is_v4(&p->dst) ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return inet_claim_icmp(rx, p, local);
	return INET_PASS;
}
