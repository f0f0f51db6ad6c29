/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "cksum.h"
#include "icmp.h"
#include "neigh.h"

/* RFC 4861, chapter 4: type, code, checksum, flags, target, options. */
#define ND_LEN 24u
#define ND_TARGET 8
#define ND_HOP_LIMIT 255
#define OPT_SOURCE_LLA 1
#define OPT_TARGET_LLA 2
#define OPT_LLA_LEN 8u
#define NA_SOLICITED 0x40u
#define NA_OVERRIDE 0x20u

const struct sl_addr inet_all_nodes = {{0xff, 0x02, [15] = 1}};

struct sl_addr
inet_solicited_node(const struct sl_addr *a)
{
	return (struct sl_addr){{0xff, 0x02, [11] = 1, 0xff, a->b[13], a->b[14], a->b[15]}};
}

static void
group_mac(const struct sl_addr *group, uint8_t *mac)
{
	mac[0] = 0x33;
	mac[1] = 0x33;
	memcpy(mac + 2, group->b + 12, 4);
}

struct nd {
	uint8_t type;
	uint8_t flags;
	uint8_t option; /* that carries our MAC address; 0 for none */
	struct sl_addr target;
	struct sl_addr src;
	struct sl_addr dst;
};

static void
nd_output(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct nd *nd, const uint8_t *mac)
{
	uint16_t len = (uint16_t)(ND_LEN + (nd->option != 0 ? OPT_LLA_LEN : 0)), sum;
	struct rte_mbuf *m = inet_own_mbuf(w, port);
	struct inet_ip_out out = {
		.src = nd->src, .dst = nd->dst, .proto = IPPROTO_ICMPV6, .ttl = ND_HOP_LIMIT};
	uint8_t *p;

	if (m == NULL)
		return;
	p = (uint8_t *)rte_pktmbuf_append(m, len);
	if (p == NULL) {
		inet_count(w, SL_TX_NO_MBUF, 1); /* a pool with buffers too small for anything */
		rte_pktmbuf_free(m);
		return;
	}
	memset(p, 0, len);
	p[0] = nd->type;
	p[4] = nd->flags;
	memcpy(p + ND_TARGET, nd->target.b, sizeof(nd->target.b));
	if (nd->option != 0) {
		p[ND_LEN] = nd->option;
		p[ND_LEN + 1] = OPT_LLA_LEN / 8;
		memcpy(p + ND_LEN + 2, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	}
	sum = (uint16_t)~inet_fold(
		inet_pseudo_sum(&nd->src, &nd->dst, IPPROTO_ICMPV6, len) + inet_sum(p, len));
	memcpy(p + 2, &sum, sizeof(sum));
	inet_ip_prepend(w, port, m, &out);
	inet_eth_output(w, port, wport, m, mac, RTE_ETHER_TYPE_IPV6);
}

void
inet_nd_ask(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr, const uint8_t *mac)
{
	const struct inet_addr *src = inet_port_source(port, addr, addr);
	struct nd nd = {.type = ICMP6_NS, .option = OPT_SOURCE_LLA, .target = *addr, .dst = *addr};
	uint8_t group[RTE_ETHER_ADDR_LEN];

	if (src == NULL)
		return; /* all in duplicate detection; the timer asks again */
	nd.src = src->addr;
	if (mac == NULL) {
		nd.dst = inet_solicited_node(addr);
		group_mac(&nd.dst, group);
		mac = group;
	}
	nd_output(w, port, wport, &nd, mac);
}

void
inet_nd_probe(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr)
{
	struct nd nd = {.type = ICMP6_NS, .target = *addr, .dst = inet_solicited_node(addr)};
	uint8_t mac[RTE_ETHER_ADDR_LEN];

	group_mac(&nd.dst, mac);
	nd_output(w, port, wport, &nd, mac);
}

void
inet_nd_announce(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr)
{
	struct nd nd = {.type = ICMP6_NA,
		.flags = NA_OVERRIDE,
		.option = OPT_TARGET_LLA,
		.target = *addr,
		.src = *addr,
		.dst = inet_all_nodes};
	uint8_t mac[RTE_ETHER_ADDR_LEN];

	group_mac(&nd.dst, mac);
	nd_output(w, port, wport, &nd, mac);
}

/* Options of a message: lengths in units of 8, never 0. *lla: the MAC address in option `want`, if
 * there. False for a malformed list. */
static bool
parse_options(const uint8_t *icmp, uint32_t at, uint32_t len, uint8_t want, const uint8_t **lla)
{
	*lla = NULL;
	while (at < len) {
		struct rte_ether_addr mac;
		uint32_t size;

		if (at + 2 > len)
			return false;
		size = icmp[at + 1] * 8u;
		if (size == 0 || size > len - at)
			return false;
		/* Longer ones belong to other link layers. A group address is nobody's own, nor is zero. */
		memcpy(&mac, icmp + at + 2, sizeof(mac)); /* the shortest option has them */
		if (icmp[at] == want && size == OPT_LLA_LEN && rte_is_valid_assigned_ether_addr(&mac))
			*lla = icmp + at + 2;
		at += size;
	}
	return true;
}

/* Answer to the frame's sender; to all nodes if it was a probe from an unspecified address. */
static void
answer(struct inet_rx *rx, const struct inet_pkt *p, const struct sl_addr *target)
{
	struct nd nd = {.type = ICMP6_NA,
		.flags = NA_OVERRIDE,
		.option = OPT_TARGET_LLA,
		.target = *target,
		.src = *target};
	uint8_t mac[RTE_ETHER_ADDR_LEN];

	if (sl_addr_is_any(&p->src)) {
		nd.dst = inet_all_nodes;
		group_mac(&nd.dst, mac);
	} else {
		nd.dst = p->src;
		nd.flags |= NA_SOLICITED;
		memcpy(mac, p->head + RTE_ETHER_ADDR_LEN, sizeof(mac));
	}
	nd_output(rx->w, rx->port, rx->wport, &nd, mac);
}

static enum sl_outcome
solicitation(struct inet_rx *rx, struct inet_pkt *p, const uint8_t *icmp, uint32_t len)
{
	bool probe = sl_addr_is_any(&p->src);
	struct sl_addr target, group;
	struct inet_addr *a;
	const uint8_t *lla;

	memcpy(target.b, icmp + ND_TARGET, sizeof(target.b));
	group = inet_solicited_node(&target);
	if (inet_is_multicast(&target) || !parse_options(icmp, ND_LEN, len, OPT_SOURCE_LLA, &lla))
		return SL_RX_ND_BAD;
	if (probe && (lla != NULL || memcmp(&p->dst, &group, sizeof(group)) != 0))
		return SL_RX_ND_BAD;
	a = inet_port_addr(rx->port, &target);
	if (a == NULL)
		return SL_RX_ND;
	p->answered = true;
	if (sl_load_relaxed(&a->state) != INET_ADDR_READY) {
		/* Another host wants it too; its own multicast must not come back as that host. */
		if (probe && memcmp(p->head + RTE_ETHER_ADDR_LEN, rx->port->mac.addr_bytes,
				     RTE_ETHER_ADDR_LEN) != 0)
			inet_addr_conflict(rx->inet, a);
		return SL_RX_ND;
	}
	if (lla != NULL && inet_port_addr(rx->port, &p->src) == NULL)
		inet_neigh_hear(rx->inet, rx->worker, rx->port, &p->src, lla,
			INET_HEAR_CREATE | INET_HEAR_OVERRIDE);
	answer(rx, p, &target);
	return SL_RX_ND;
}

static enum sl_outcome
advertisement(struct inet_rx *rx, const struct inet_pkt *p, const uint8_t *icmp, uint32_t len)
{
	unsigned int flags = 0;
	struct sl_addr target;
	struct inet_addr *a;
	const uint8_t *lla;

	memcpy(target.b, icmp + ND_TARGET, sizeof(target.b));
	if (inet_is_multicast(&target) || !parse_options(icmp, ND_LEN, len, OPT_TARGET_LLA, &lla))
		return SL_RX_ND_BAD;
	if (p->dst_group && (icmp[4] & NA_SOLICITED) != 0)
		return SL_RX_ND_BAD;
	a = inet_port_addr(rx->port, &target);
	if (a != NULL) {
		inet_addr_conflict(rx->inet, a);
		return SL_RX_ND;
	}
	if ((icmp[4] & NA_SOLICITED) != 0)
		flags |= INET_HEAR_SOLICITED;
	if ((icmp[4] & NA_OVERRIDE) != 0)
		flags |= INET_HEAR_OVERRIDE;
	inet_neigh_hear(rx->inet, rx->worker, rx->port, &target, lla, flags);
	return SL_RX_ND;
}

/* Least length of each message, options excluded. */
static uint32_t
least_length(uint8_t type)
{
	switch (type) {
	case ICMP6_RS:
		return 8;
	case ICMP6_RA:
		return 16;
	case ICMP6_REDIRECT:
		return 40;
	default:
		return ND_LEN;
	}
}

unsigned int
inet_nd_input(struct inet_rx *rx, struct inet_pkt *p, const uint8_t *icmp, uint32_t len)
{
	uint32_t least = least_length(icmp[0]);
	const uint8_t *lla;

	/* A hop limit of 255 proves that no router has passed it on: the sender is on the link. */
	if (p->ttl != ND_HOP_LIMIT || icmp[1] != 0 || len < least || len > p->end - p->l4_off)
		return SL_RX_ND_BAD;
	if (icmp[0] == ICMP6_NS)
		return solicitation(rx, p, icmp, len);
	if (icmp[0] == ICMP6_NA)
		return advertisement(rx, p, icmp, len);
	/* Routers: addresses and gateways are configured here, not discovered. */
	if (!parse_options(icmp, least, len, 0, &lla))
		return SL_RX_ND_BAD;
	return SL_RX_ICMP_IGNORED;
}
