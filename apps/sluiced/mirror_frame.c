/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Headers of datagrams: those in front of the payload, checked, or new ones. */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "mirror.h"
#include "sl_dpdk.h"
#include "sl_inet.h"
#include "sl_shared.h"

#define TAG_LEN 4u
#define IP4_LEN 20u
#define IP4_LEN_MAX 60u
#define IP6_LEN 40u
#define UDP_LEN 8u

static uint32_t
get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static bool
is_v4(const struct sl_dgram *g)
{
	struct sl_addr a;

	memcpy(&a, g->src, sizeof(a));
	return sl_addr_is_v4(&a);
}

/* Does an IPv4 header of len bytes at p say what the datagram does? */
static bool
ip4_fits(const uint8_t *p, uint32_t len, const struct sl_dgram *g)
{
	return p[0] == (0x40 | len / 4) && p[9] == IPPROTO_UDP &&
	       get16(p + 2) == len + UDP_LEN + g->len && memcmp(p + 12, g->src + 12, 4) == 0 &&
	       memcmp(p + 16, g->dst + 12, 4) == 0;
}

static bool
ip6_fits(const uint8_t *p, const struct sl_dgram *g)
{
	return p[0] >> 4 == 6 && p[6] == IPPROTO_UDP && get16(p + 4) == UDP_LEN + g->len &&
	       memcmp(p + 8, g->src, 16) == 0 && memcmp(p + 24, g->dst, 16) == 0;
}

/* Length of the IP header that ends at `end`, of which `have` bytes are there; 0: none fits. */
static uint32_t
find_ip(const uint8_t *end, uint32_t have, const struct sl_dgram *g)
{
	if (!is_v4(g))
		return have >= IP6_LEN && ip6_fits(end - IP6_LEN, g) ? IP6_LEN : 0;
	for (uint32_t len = IP4_LEN; len <= IP4_LEN_MAX && len <= have; len += 4)
		if (ip4_fits(end - len, len, g))
			return len;
	return 0;
}

/* Length of the Ethernet header that ends at `end`; 0: none. `start` bytes are in front of `end`
 * back to where drivers put frames, which tells a tag from a MAC address that looks like one. */
static uint32_t
find_ethernet(const uint8_t *end, uint32_t have, uint32_t start, bool v4)
{
	uint32_t type = v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6;
	uint32_t len = RTE_ETHER_HDR_LEN;

	if (have < len || get16(end - 2) != type)
		return 0;
	for (uint32_t tags = 1; tags <= 2; tags++) {
		const uint8_t *tag = end - 2 - tags * TAG_LEN;
		uint32_t tagged = len + TAG_LEN;

		if (len == start || have < tagged ||
			(get16(tag) != RTE_ETHER_TYPE_VLAN && get16(tag) != RTE_ETHER_TYPE_QINQ))
			break;
		len = tagged;
	}
	return len;
}

/* Those in front of the payload, copied before they are looked at: a peer may share the memory. */
static uint32_t
found(const struct sl_dgram *g, uint8_t *headers)
{
	const struct rte_mbuf *m = g->buf;
	uint32_t room = rte_pktmbuf_headroom(m), have = RTE_MIN(room, MIRROR_HEADERS_MAX);
	uint32_t start = room > RTE_PKTMBUF_HEADROOM ? room - RTE_PKTMBUF_HEADROOM : 0;
	uint8_t copy[MIRROR_HEADERS_MAX];
	const uint8_t *end = copy + have;
	uint32_t ip, ethernet, all;
	uint16_t sport, dport;

	memcpy(copy, rte_pktmbuf_mtod(m, const uint8_t *) - have, have);
	sl_snapshot_barrier();
	if (have < UDP_LEN)
		return 0;
	memcpy(&sport, end - UDP_LEN, sizeof(sport));
	memcpy(&dport, end - UDP_LEN + 2, sizeof(dport));
	if (sport != g->sport || dport != g->dport || get16(end - 4) != UDP_LEN + g->len)
		return 0;
	ip = find_ip(end - UDP_LEN, have - UDP_LEN, g);
	if (ip == 0)
		return 0;
	all = UDP_LEN + ip;
	ethernet = find_ethernet(end - all, have - all, start > all ? start - all : 0, is_v4(g));
	if (ethernet == 0)
		return 0;
	all += ethernet;
	memcpy(headers, end - all, all);
	return all;
}

static uint32_t
make_ip4(const struct sl_dgram *g, uint8_t *p)
{
	struct rte_ipv4_hdr ip = {.version_ihl = 0x45,
		.type_of_service = g->tos,
		.total_length = rte_cpu_to_be_16((uint16_t)(IP4_LEN + UDP_LEN + g->len)),
		.time_to_live = g->ttl,
		.next_proto_id = IPPROTO_UDP};

	memcpy(&ip.src_addr, g->src + 12, 4);
	memcpy(&ip.dst_addr, g->dst + 12, 4);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(p, &ip, sizeof(ip));
	return sizeof(ip);
}

static uint32_t
make_ip6(const struct sl_dgram *g, uint8_t *p)
{
	memset(p, 0, IP6_LEN);
	p[0] = (uint8_t)(0x60 | g->tos >> 4);
	p[1] = (uint8_t)(g->tos << 4);
	put16(p + 4, UDP_LEN + g->len);
	p[6] = IPPROTO_UDP;
	p[7] = g->ttl;
	memcpy(p + 8, g->src, 16);
	memcpy(p + 24, g->dst, 16);
	return IP6_LEN;
}

/* IPv6 wants a checksum of UDP. */
static uint16_t
sum6(const struct sl_dgram *g, const uint8_t *headers)
{
	struct rte_ipv6_hdr ip;
	uint16_t payload = 0;
	uint32_t sum;

	memcpy(&ip, headers, sizeof(ip));
	(void)sl_raw_cksum_mbuf(g->buf, 0, g->len, &payload);
	sum = (uint32_t)rte_ipv6_phdr_cksum(&ip, 0) + payload +
	      rte_raw_cksum(headers + IP6_LEN, UDP_LEN);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
	return (uint16_t)(sum != 0 ? sum : 0xffff);
}

uint32_t
mirror_headers(const struct sl_dgram *g, uint8_t *headers, bool *whole)
{
	uint32_t len = found(g, headers);
	uint8_t *udp;
	uint16_t sum;

	*whole = len != 0;
	if (*whole)
		return len;
	len = is_v4(g) ? make_ip4(g, headers) : make_ip6(g, headers);
	udp = headers + len;
	memcpy(udp, &g->sport, 2);
	memcpy(udp + 2, &g->dport, 2);
	put16(udp + 4, UDP_LEN + g->len);
	put16(udp + 6, 0);
	if (!is_v4(g)) {
		sum = sum6(g, headers);
		memcpy(udp + 6, &sum, sizeof(sum));
	}
	return len + UDP_LEN;
}
