/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "claim.h"
#include "inet_priv.h"
#include "ip_fast.h"
#include "punt.h"

#define RX_VLAN_ANY (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

uint32_t
inet_mbuf_read(const struct rte_mbuf *m, uint32_t off, void *to, uint32_t len)
{
	uint32_t done = 0;

	for (; m != NULL && off >= m->data_len; m = m->next)
		off -= m->data_len;
	for (; m != NULL && done < len; m = m->next, off = 0) {
		uint32_t part = RTE_MIN(len - done, m->data_len - off);

		memcpy((char *)to + done, rte_pktmbuf_mtod_offset(m, char *, off), part);
		done += part;
	}
	sl_snapshot_barrier();
	return done;
}

void
inet_mbuf_window(struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct rte_mbuf *s, *last = m;

	m->pkt_len = len;
	/* Segments that are used up stay, empty: the first one is the packet. */
	for (s = m; s != NULL; s = s->next) {
		uint16_t cut = (uint16_t)RTE_MIN(off, (uint32_t)s->data_len);

		s->data_off = (uint16_t)(s->data_off + cut);
		s->data_len = (uint16_t)(s->data_len - cut);
		off -= cut;
		if (off == 0 && s->data_len >= len)
			break;
		len -= s->data_len;
	}
	SL_DEBUG_ASSERT(s != NULL);
	s->data_len = (uint16_t)len;
	last = s->next;
	s->next = NULL;
	while (last != NULL) {
		struct rte_mbuf *next = last->next;

		last->next = NULL;
		last->nb_segs = 1;
		rte_pktmbuf_free_seg(last);
		m->nb_segs--;
		last = next;
	}
}

/* Do the tags say the port's VLAN? A tag that hardware took off has no type left to check. */
static bool
tags_match(const struct inet_port *port, const uint16_t *vid, const uint16_t *type, uint8_t n)
{
	static const uint16_t want[INET_TAGS_MAX + 1][INET_TAGS_MAX] = {
		{0, 0}, {RTE_ETHER_TYPE_VLAN, 0}, {RTE_ETHER_TYPE_QINQ, RTE_ETHER_TYPE_VLAN}};

	if (n != port->vids_count)
		return false;
	for (uint8_t i = 0; i < n; i++) {
		if (vid[i] != port->vids[i] || (type[i] != 0 && type[i] != want[n][i]))
			return false;
	}
	return true;
}

struct tags {
	uint16_t vid[INET_TAGS_MAX];
	uint16_t type[INET_TAGS_MAX];
	uint8_t n;
};

/* False if there are more than any port can be in. VLAN 0 carries a priority only: no tag. */
static bool
tags_add(struct tags *t, uint16_t tci, uint16_t type)
{
	if ((tci & 0xfff) == 0)
		return true;
	if (t->n == INET_TAGS_MAX)
		return false;
	t->vid[t->n] = tci & 0xfff;
	t->type[t->n++] = type;
	return true;
}

/* Let the frame be that of the DPDK port's port which has these tags. */
static bool
find_port(struct inet_rx *rx, const struct tags *t)
{
	struct inet_port *port = rx->port;

	while (port != NULL && !tags_match(port, t->vid, t->type, t->n))
		port = sl_load_acquire(&port->next); /* IN1 */
	if (port == NULL || port == rx->port)
		return port != NULL;
	rx->port = port;
	rx->wport = &port->workers[rx->worker];
	inet_wport_check(rx->inet, rx->wport);
	return true;
}

/* Walk the tags; sets p->l2_len, *type, and rx->port. INET_PASS if there is one that has them. */
static enum sl_outcome
parse_tags(struct inet_rx *rx, struct inet_pkt *p, uint16_t *type)
{
	uint64_t flags = p->m->ol_flags;
	struct tags t = {.n = 0};
	uint32_t off = 12;
	bool fits = true;

	if ((flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0)
		fits = tags_add(&t, p->m->vlan_tci_outer, 0);
	if ((flags & RX_VLAN_ANY) != 0)
		fits = tags_add(&t, p->m->vlan_tci, 0) && fits;
	for (;;) {
		if (off + 2 > p->head_len)
			return SL_RX_ETH_SHORT;
		*type = inet_get16(p->head + off);
		if (*type != RTE_ETHER_TYPE_VLAN && *type != RTE_ETHER_TYPE_QINQ)
			break;
		if (off + 4 > p->head_len)
			return SL_RX_ETH_SHORT;
		fits = tags_add(&t, inet_get16(p->head + off + 2), *type) && fits;
		off += 4;
		if (off > INET_ETH_MAX) /* enough seen: also ends a stack of priority tags */
			return SL_RX_VLAN_OTHER;
	}
	p->l2_len = (uint16_t)(off + 2);
	return fits && find_port(rx, &t) ? INET_PASS : SL_RX_VLAN_OTHER;
}

/* The general path for one frame: its outcome, with INET_KEPT if the mbuf found a use. */
static unsigned int
input_general(struct inet_rx *rx, struct rte_mbuf *m)
{
	uint8_t *head = rx->head[rx->dgrams];
	struct inet_pkt p = {.m = m, .head = head};
	enum sl_outcome outcome;
	unsigned int result;
	uint16_t type;

	/* Bounds come from the segments themselves, not from a sum that a driver may have got
	 * wrong. */
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		p.end += s->data_len;
	p.head_len = (uint16_t)inet_mbuf_read(m, 0, head, INET_HEAD);
	if (p.head_len < RTE_ETHER_HDR_LEN)
		return SL_RX_ETH_SHORT;
	outcome = parse_tags(rx, &p, &type);
	if (outcome != INET_PASS)
		return outcome;
	p.l2_group = (head[0] & 1) != 0;
	if (!p.l2_group && !rx->port->promiscuous &&
		memcmp(head, rx->port->mac.addr_bytes, RTE_ETHER_ADDR_LEN) != 0)
		return SL_RX_ETH_OTHERHOST;
	switch (type) {
	case RTE_ETHER_TYPE_IPV4:
		result = inet_ip4_input(rx, &p);
		break;
	case RTE_ETHER_TYPE_IPV6:
		result = inet_ip6_input(rx, &p);
		break;
	case RTE_ETHER_TYPE_ARP:
		result = inet_arp_input(rx, &p);
		break;
	default:
		result = SL_RX_ETH_TYPE;
	}
	return inet_punt_result(rx, &p, result);
}

/* Kept apart from the loop so that the common case stays small. */
static void __attribute__((noinline)) input_slow(struct inet_rx *rx, struct rte_mbuf *m)
{
	struct inet_port *first = rx->port;
	unsigned int result = input_general(rx, m);

	if (SL_UNLIKELY(rx->port != first)) {
		rx->port = first;
		rx->wport = &first->workers[rx->worker];
	}
	fast_local4(rx);
	/* A kept datagram gets its outcome from the UDP layer. */
	if (result == (SL_RX_UDP_QUEUED | INET_KEPT))
		return;
	rx->counts[INET_OUTCOME(result)]++;
	rx->losses = true;
	if ((result & INET_KEPT) == 0)
		rx->free[rx->frees++] = m;
}

/* Does the driver say something of the packet that the fast path does not know what to do with? */
static inline bool
flags_odd(uint64_t flags)
{
	if (SL_LIKELY((flags & (RX_VLAN_ANY | RTE_MBUF_F_RX_IP_CKSUM_BAD |
				       RTE_MBUF_F_RX_L4_CKSUM_BAD)) == 0))
		return false;
	/* NONE is GOOD and BAD at once: not filled in, but the data is right. */
	return (flags & (RX_VLAN_ANY | RTE_MBUF_F_RX_IP_CKSUM_BAD)) != 0 ||
	       (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

/* True if the frame was the common case, and d filled in. */
static inline __attribute__((always_inline)) bool
input_fast(const struct inet_rx *rx, struct rte_mbuf *m, struct sl_dgram *d)
{
	const char *p = rte_pktmbuf_mtod(m, const char *);
	uint64_t odd;
	uint32_t type;

	if (m->nb_segs != 1 || m->data_len < rx->fast_len || flags_odd(m->ol_flags))
		return false;
	odd = (load64(p) ^ rx->mac_want) & rx->mac_mask;
	type = load16(p + 12);
	if (SL_LIKELY(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)))
		return fast_ip4(rx, m, p, odd, d);
	return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) && odd == 0 &&
	       m->data_len >= FAST_IP6 && fast_ip6(rx, m, p + FAST_ETH, d);
}

static void
prefetch_packet(const struct rte_mbuf *m)
{
	rte_prefetch0(rte_pktmbuf_mtod(m, const char *));
}

static void
count_losses(struct inet_rx *rx)
{
	for (int k = 0; k < SL_OUTCOME_COUNT; k++) {
		if (rx->counts[k] != 0)
			inet_count(rx->w, (enum sl_outcome)k, rx->counts[k]);
	}
}

/* Settle what a burst of n has come to. */
static inline __attribute__((always_inline)) void
finish(struct inet_rx *rx, uint16_t n)
{
	if (rx->dgrams > 0)
		inet_udp_deliver(rx);
	if (SL_UNLIKELY(rx->frees > 0))
		rte_pktmbuf_free_bulk(rx->free, rx->frees);
	if (SL_UNLIKELY(rx->losses))
		count_losses(rx);
	sl_counter_add(&rx->w->received, n);
}

/* Inlined where there are no claims, so that these cost no call. */
static inline __attribute__((always_inline)) void
input_burst(struct inet_rx *rx, struct rte_mbuf **pkts, uint16_t n)
{
	struct sl_dgram *d = rx->dgram;
	struct rte_mbuf **end = pkts + n;
	uint32_t i;

	/* The last one again, which costs less than to ask. */
	for (i = 0; i < INET_AHEAD; i++)
		end[i] = end[-1];
	for (i = 0; i < INET_AHEAD; i++)
		prefetch_packet(pkts[i]);
	for (; pkts != end; pkts++) {
		prefetch_packet(pkts[INET_AHEAD]);
		__asm__("" : "+r"(d)); /* an address, not an index to be scaled again and again */
		if (SL_LIKELY(input_fast(rx, pkts[0], d))) {
			d++;
			continue;
		}
		rx->dgrams = (uint16_t)(d - rx->dgram);
		input_slow(rx, pkts[0]);
		d = &rx->dgram[rx->dgrams];
	}
	rx->dgrams = (uint16_t)(d - rx->dgram);
	finish(rx, n);
}

/* Without the fast path. */
static void
input_odd(struct inet_rx *rx, struct rte_mbuf **pkts, uint16_t n)
{
	rx->dgram = rx->own; /* what room there was may be used up */
	rx->dgrams = 0;
	rx->frees = 0;
	rx->losses = false;
	rx->in_head = 0;
	rx->l2_group = 0;
	memset(rx->counts, 0, sizeof(rx->counts));
	for (uint16_t i = 0; i < n; i++)
		input_slow(rx, pkts[i]);
	finish(rx, n);
}

/* What no claim takes. */
static __attribute__((noinline)) void
input_rest(struct inet_rx *rx, struct rte_mbuf **pkts, uint16_t n)
{
	input_burst(rx, pkts, n);
}

/* There are claims: what they take is handed over behind all else, of which some may be theirs,
 * too. */
static __attribute__((noinline)) void
input_claims(
	struct inet_rx *rx, const struct sl_inet_claims *set, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *odd[SL_INET_BURST];
	struct inet_claim_rx crx;
	uint16_t rest, odds;

	inet_claim_begin(rx, &crx, set);
	rest = inet_claim_take(rx, pkts, n, odd, &odds);
	sl_counter_add(&rx->w->received, (uint64_t)(n - rest - odds));
	if (rest > 0)
		input_rest(rx, pkts, rest);
	if (odds > 0)
		input_odd(rx, odd, odds);
	inet_claim_deliver(rx);
}

void
inet_input(struct sl_inet *inet, uint16_t worker, struct inet_port *port, struct rte_mbuf **pkts,
	uint16_t n)
{
	const struct sl_inet_claims *set;
	struct inet_rx rx;

	SL_DEBUG_ASSERT(n > 0 && n <= SL_INET_BURST);
	/* The arrays are written before they are read: clearing 12 KB a burst would show. */
	rx.inet = inet;
	rx.port = port;
	rx.port_id = port->id;
	rx.mac_want = port->mac_want;
	rx.mac_mask = port->mac_mask;
	rx.wport = &port->workers[worker];
	rx.w = &inet->worker[worker];
	rx.worker = worker;
	fast_local4(&rx);
	rx.dgram = inet->udp != NULL && inet->udp->room != NULL
			   ? inet->udp->room(inet->udp_arg, worker)
			   : NULL;
	if (SL_UNLIKELY(rx.dgram == NULL))
		rx.dgram = rx.own;
	rx.dgrams = 0;
	rx.frees = 0;
	/* With any_dst the address hit last need not be one of the port's, whose broadcast
	 * addresses must not send all the same. */
	rx.many4 = port->any_dst || sl_load_relaxed(&port->count4) > 1;
	rx.losses = false;
	/* No frame is long enough for the fast path of a port in a VLAN. */
	rx.fast_len = port->vids_count == 0 ? FAST_READ : UINT32_MAX;
	rx.in_head = 0;
	rx.l2_group = 0;
	rx.pool = pkts[0]->pool;
	rx.overhead = inet_overhead(pkts[0]);
	memset(rx.counts, 0, sizeof(rx.counts));
	set = sl_load_acquire(&inet->claims); /* IN1 */
	rx.claim = NULL;
	if (SL_UNLIKELY(set != NULL))
		input_claims(&rx, set, pkts, n);
	else
		input_burst(&rx, pkts, n);
}
