/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf_ptype.h>

#include "tpacket_wire.h"

#define GSO_UDP_L4 5 /* newer than the headers of the oldest distribution that we build on */
#define TCP_CSUM_OFFSET 16
#define UDP_CSUM_OFFSET 6

static void
parse_l4(const uint8_t *frame, uint32_t len, struct tpacket_headers *h)
{
	uint32_t at = h->l2_len + h->l3_len;
	uint32_t left = len - at;
	uint32_t tcp_len;

	switch (h->l4_proto) {
	case IPPROTO_TCP:
		tcp_len = left >= 20 ? (frame[at + 12] >> 4) * 4u : 0;
		if (tcp_len >= 20 && tcp_len <= left)
			h->l4_len = (uint16_t)tcp_len;
		h->ptype |= RTE_PTYPE_L4_TCP;
		break;
	case IPPROTO_UDP:
		h->l4_len = left >= 8 ? 8 : 0;
		h->ptype |= RTE_PTYPE_L4_UDP;
		break;
	case IPPROTO_SCTP:
		h->l4_len = left >= 12 ? 12 : 0;
		h->ptype |= RTE_PTYPE_L4_SCTP;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		h->l4_len = left >= 4 ? 4 : 0;
		h->ptype |= RTE_PTYPE_L4_ICMP;
		break;
	default:
		h->ptype |= RTE_PTYPE_L4_NONFRAG;
	}
}

static void
parse_ipv4(const uint8_t *frame, uint32_t len, struct tpacket_headers *h)
{
	const uint8_t *ip = frame + h->l2_len;
	uint32_t left = len - h->l2_len;
	uint32_t l3_len;

	if (left < 20 || ip[0] >> 4 != 4)
		return;
	l3_len = (ip[0] & 0xf) * 4u;
	if (l3_len < 20 || l3_len > left)
		return;
	h->l3_len = (uint16_t)l3_len;
	h->l4_proto = ip[9];
	h->ptype |= l3_len == 20 ? RTE_PTYPE_L3_IPV4 : RTE_PTYPE_L3_IPV4_EXT;
	h->fragment = (tpacket_get16(ip + 6) & 0x3fff) != 0;
	if (h->fragment)
		h->ptype |= RTE_PTYPE_L4_FRAG;
	else
		parse_l4(frame, len, h);
}

/* Walks hop-by-hop, routing, destination and fragment headers; at most eight, as real packets have
 * fewer and a chain must not cost more than a packet is worth. */
static void
parse_ipv6(const uint8_t *frame, uint32_t len, struct tpacket_headers *h)
{
	const uint8_t *ip = frame + h->l2_len;
	uint32_t left = len - h->l2_len;
	uint32_t at = 40, step;
	uint8_t next;
	int i;

	if (left < 40 || ip[0] >> 4 != 6)
		return;
	h->ipv6 = true;
	next = ip[6];
	for (i = 0; i < 8; i++) {
		if (next != 0 && next != 43 && next != 44 && next != 60)
			break;
		if (left - at < 8)
			break;
		step = next == 44 ? 8 : (ip[at + 1] + 1u) * 8;
		if (next == 44 && (tpacket_get16(ip + at + 2) & ~6u) != 0)
			h->fragment = true;
		if (left - at < step)
			break;
		next = ip[at];
		at += step;
	}
	h->l3_len = (uint16_t)at;
	h->l4_proto = next;
	h->ptype |= at == 40 ? RTE_PTYPE_L3_IPV6 : RTE_PTYPE_L3_IPV6_EXT;
	if (h->fragment)
		h->ptype |= RTE_PTYPE_L4_FRAG;
	else
		parse_l4(frame, len, h);
}

void
tpacket_parse(const uint8_t *frame, uint32_t len, struct tpacket_headers *h)
{
	uint16_t type;
	uint32_t l2 = RTE_ETHER_HDR_LEN;
	uint32_t tags = 0;

	memset(h, 0, sizeof(*h));
	if (len < l2)
		return;
	type = tpacket_get16(frame + 12);
	while ((type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ) && tags < 2 &&
		len >= l2 + 4) {
		type = tpacket_get16(frame + l2 + 2);
		l2 += 4;
		tags++;
	}
	h->l2_len = (uint16_t)l2;
	h->ptype = tags == 0   ? RTE_PTYPE_L2_ETHER
		   : tags == 1 ? RTE_PTYPE_L2_ETHER_VLAN
			       : RTE_PTYPE_L2_ETHER_QINQ;
	if (type == RTE_ETHER_TYPE_IPV4)
		parse_ipv4(frame, len, h);
	else if (type == RTE_ETHER_TYPE_IPV6)
		parse_ipv6(frame, len, h);
	else if (type == RTE_ETHER_TYPE_ARP && tags == 0)
		h->ptype = RTE_PTYPE_L2_ETHER_ARP;
}

static int
check_gso(const struct tpacket_vnet *v, uint32_t len, struct tpacket_offload *out)
{
	switch (v->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		return 0;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		break;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		out->gso_ipv6 = true;
		break;
	case GSO_UDP_L4:
		out->gso_udp = true;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (v->gso_size == 0 || v->gso_size == UINT16_MAX || len > TPACKET_SUPER_MAX)
		return -EINVAL;
	out->gso_size = v->gso_size;
	return 0;
}

int
tpacket_vnet_check(const struct tpacket_vnet *v, uint32_t len, struct tpacket_offload *out)
{
	memset(out, 0, sizeof(*out));
	if ((v->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) {
		if (v->csum_start < RTE_ETHER_HDR_LEN ||
			(uint32_t)v->csum_start + v->csum_offset + 2 > len)
			return -EINVAL;
		out->csum_partial = true;
		out->csum_start = v->csum_start;
		out->csum_offset = v->csum_offset;
	} else if ((v->flags & VIRTIO_NET_HDR_F_DATA_VALID) != 0) {
		out->csum_valid = true;
	}
	return check_gso(v, len, out);
}

void
tpacket_csum_complete(uint8_t *frame, uint32_t len, uint16_t start, uint16_t offset)
{
	uint16_t sum = (uint16_t)~rte_raw_cksum(frame + start, len - start);

	/* UDP says "no checksum" with zero; all ones has the same value in this arithmetic. */
	if (sum == 0 && offset == UDP_CSUM_OFFSET)
		sum = UINT16_MAX;
	memcpy(frame + start + offset, &sum, sizeof(sum));
}

uint16_t
tpacket_pseudo_sum(const uint8_t *frame, const struct tpacket_headers *h, uint32_t l4_bytes)
{
	struct {
		uint8_t addr[32];
		uint32_t len;
		uint8_t zero[3];
		uint8_t proto;
	} six = {.len = rte_cpu_to_be_32(l4_bytes), .proto = h->l4_proto};
	struct {
		uint8_t addr[8];
		uint8_t zero;
		uint8_t proto;
		uint16_t len;
	} four = {.proto = h->l4_proto, .len = rte_cpu_to_be_16((uint16_t)l4_bytes)};
	const uint8_t *ip = frame + h->l2_len;

	if (h->ipv6) {
		memcpy(six.addr, ip + 8, sizeof(six.addr));
		return rte_raw_cksum(&six, sizeof(six));
	}
	memcpy(four.addr, ip + 12, sizeof(four.addr));
	return rte_raw_cksum(&four, sizeof(four));
}

void
tpacket_ipv4_csum(uint8_t *ip, uint16_t l3_len)
{
	uint16_t sum = 0;

	memcpy(ip + 10, &sum, sizeof(sum));
	sum = (uint16_t)~rte_raw_cksum(ip, l3_len);
	memcpy(ip + 10, &sum, sizeof(sum));
}

uint16_t
tpacket_csum_offset(const struct tpacket_headers *h)
{
	if (h->l4_proto == IPPROTO_TCP)
		return TCP_CSUM_OFFSET;
	return h->l4_proto == IPPROTO_UDP ? UDP_CSUM_OFFSET : 0;
}
