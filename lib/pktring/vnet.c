/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <linux/virtio_net.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "sl_vnet.h"

#define GSO_UDP_L4 5 /* newer than the headers of some distributions */
#define UDP_CSUM_OFFSET 6
#define TCP_CSUM_OFFSET 16
#define UDP_SEGMENTS_MAX 128
#define TCP_MSS_MIN 48	    /* smaller segment sizes are raised to this */
#define BY_FRAGMENTS 0xffff /* a segment size with a meaning of its own inside of Linux */
#define VLANS_MAX 2
#define EXTENSIONS_MAX 8

/* A packet's front while it is walked. */
struct walk {
	const uint8_t *head;
	uint32_t have; /* bytes of head */
	uint32_t at;
};

static uint16_t
be16_at(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Is there an n-byte header at w->at? */
static bool
there(const struct walk *w, uint32_t n)
{
	return w->at + n <= w->have;
}

static uint16_t
walk_link(struct walk *w)
{
	uint16_t type;

	if (!there(w, RTE_ETHER_HDR_LEN))
		return 0;
	type = be16_at(w->head + 12);
	w->at = RTE_ETHER_HDR_LEN;
	for (int i = 0; i < VLANS_MAX; i++) {
		if (type != RTE_ETHER_TYPE_VLAN && type != RTE_ETHER_TYPE_QINQ)
			break;
		if (!there(w, 4))
			return 0;
		type = be16_at(w->head + w->at + 2);
		w->at += 4;
	}
	return type;
}

static int
walk_ipv4(struct walk *w)
{
	uint32_t len;
	int proto;

	if (!there(w, sizeof(struct rte_ipv4_hdr)) || w->head[w->at] >> 4 != 4)
		return -EINVAL;
	len = (w->head[w->at] & 0x0fu) * 4;
	if (len < sizeof(struct rte_ipv4_hdr) || !there(w, len))
		return -EINVAL;
	if ((be16_at(w->head + w->at + 6) & RTE_IPV4_HDR_OFFSET_MASK) != 0)
		return -EINVAL; /* no transport header in a later fragment */
	proto = w->head[w->at + 9];
	w->at += len;
	return proto;
}

static int
walk_ipv6(struct walk *w)
{
	int proto;

	if (!there(w, sizeof(struct rte_ipv6_hdr)) || w->head[w->at] >> 4 != 6)
		return -EINVAL;
	proto = w->head[w->at + 6];
	w->at += sizeof(struct rte_ipv6_hdr);
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		if (proto != IPPROTO_HOPOPTS && proto != IPPROTO_DSTOPTS &&
			proto != IPPROTO_ROUTING)
			return proto;
		if (!there(w, 8))
			return -EINVAL;
		proto = w->head[w->at];
		w->at += 8 + w->head[w->at + 1] * 8u;
		if (!there(w, 0))
			return -EINVAL; /* ends behind the packet, or behind what is seen of it */
	}
	return -EINVAL;
}

/* Header lengths as far as they are understood; l4_len 0 where the transport header is not. */
static void
dissect(const uint8_t *head, uint32_t have, struct sl_vnet *v)
{
	struct walk w = {.head = head, .have = have};
	uint16_t type = walk_link(&w);
	int proto = -EINVAL;

	v->l2_len = (uint16_t)w.at;
	v->v6 = type == RTE_ETHER_TYPE_IPV6;
	if (type == RTE_ETHER_TYPE_IPV4)
		proto = walk_ipv4(&w);
	else if (v->v6)
		proto = walk_ipv6(&w);
	if (proto < 0)
		return;
	v->proto = (uint8_t)proto;
	v->l3_len = (uint16_t)(w.at - v->l2_len);
	if (proto == IPPROTO_TCP && there(&w, sizeof(struct rte_tcp_hdr)))
		v->l4_len = (uint16_t)((head[w.at + 12] >> 4) * 4);
	else if (proto == IPPROTO_UDP && there(&w, sizeof(struct rte_udp_hdr)))
		v->l4_len = sizeof(struct rte_udp_hdr);
}

/* Least transport header and least offset of it that a segmentation type implies. */
static int
gso_type(uint8_t type, struct sl_vnet *v, uint32_t *l4_min, uint32_t *l3_min)
{
	*l4_min = sizeof(struct rte_tcp_hdr);
	*l3_min = sizeof(struct rte_ipv4_hdr);
	v->ecn = type & VIRTIO_NET_HDR_GSO_ECN;
	switch (type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		*l4_min = 0;
		*l3_min = 0;
		v->gso = SL_VNET_GSO_NONE;
		return 0;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		v->gso = SL_VNET_GSO_TCP4;
		return 0;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		v->gso = SL_VNET_GSO_TCP6;
		*l3_min = sizeof(struct rte_ipv6_hdr);
		return 0;
	case VIRTIO_NET_HDR_GSO_UDP:
		v->gso = SL_VNET_GSO_UFO;
		*l4_min = sizeof(struct rte_udp_hdr);
		return 0;
	case GSO_UDP_L4:
		v->gso = SL_VNET_GSO_UDP_L4;
		*l4_min = sizeof(struct rte_udp_hdr);
		return 0;
	default:
		return -EINVAL;
	}
}

static int
check_csum(const struct virtio_net_hdr *h, uint32_t len, uint32_t l4_min, uint32_t l3_min,
	struct sl_vnet *v)
{
	uint32_t start = h->csum_start, offset = h->csum_offset;

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return 0;
	if (start + RTE_MAX(l4_min, offset + 2) > len || start < l3_min)
		return -EINVAL;
	v->csum = true;
	v->csum_start = h->csum_start;
	v->csum_offset = h->csum_offset;
	return 0;
}

static bool
is_tcp(const struct sl_vnet *v)
{
	return v->gso == SL_VNET_GSO_TCP4 || v->gso == SL_VNET_GSO_TCP6;
}

/* Do the packet's own headers say what the segmentation type says? */
static bool
gso_fits_headers(const struct sl_vnet *v)
{
	bool any_family = v->gso == SL_VNET_GSO_UFO || v->gso == SL_VNET_GSO_UDP_L4;

	if (v->l3_len == 0 || v->proto != (is_tcp(v) ? IPPROTO_TCP : IPPROTO_UDP))
		return false;
	return any_family || v->v6 == (v->gso == SL_VNET_GSO_TCP6);
}

static int
check_gso(const struct virtio_net_hdr *h, uint32_t len, struct sl_vnet *v)
{
	uint32_t front = v->csum ? (uint32_t)v->csum_start : (uint32_t)v->l2_len + v->l3_len;
	bool tcp = is_tcp(v);

	if (h->gso_size == 0 || h->gso_size == BY_FRAGMENTS)
		return -EINVAL;
	if (!v->csum && !gso_fits_headers(v))
		return -EINVAL;
	if (v->csum && tcp && h->csum_offset != TCP_CSUM_OFFSET)
		return -EINVAL;
	v->gso_size = h->gso_size;
	if (tcp)
		v->gso_size = RTE_MAX(v->gso_size, (uint16_t)TCP_MSS_MIN);
	if (v->gso == SL_VNET_GSO_UDP_L4) {
		uint32_t payload = len > front + 8 ? len - front - 8 : 0;

		if (!v->csum || h->csum_offset != UDP_CSUM_OFFSET || v->ecn)
			return -EINVAL;
		if (RTE_ALIGN_MUL_CEIL(payload, v->gso_size) / v->gso_size > UDP_SEGMENTS_MAX)
			return -EINVAL;
	}
	if (len <= v->gso_size)
		v->gso = SL_VNET_GSO_NONE; /* one segment */
	return 0;
}

int
sl_vnet_check(const void *header, const uint8_t *head, uint32_t len, struct sl_vnet *v)
{
	struct virtio_net_hdr h;
	struct sl_vnet out = {0};
	uint32_t l4_min, l3_min;

	memcpy(&h, header, sizeof(h));
	/* Headers to be put in the linear part must be there. Wide, so that nothing wraps. */
	if (h.hdr_len > len)
		return -EINVAL;
	if ((h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) && h.csum_start + h.csum_offset + 2u > len)
		return -EINVAL;
	if (gso_type(h.gso_type, &out, &l4_min, &l3_min) != 0)
		return -EINVAL;
	if (check_csum(&h, len, l4_min, l3_min, &out) != 0)
		return -EINVAL;
	dissect(head, RTE_MIN(len, (uint32_t)SL_VNET_HEAD), &out);
	if (out.gso != SL_VNET_GSO_NONE && check_gso(&h, len, &out) != 0)
		return -EINVAL;
	*v = out;
	return 0;
}

void
sl_vnet_complete(uint8_t *packet, uint32_t len, const struct sl_vnet *v)
{
	uint16_t sum = rte_raw_cksum(packet + v->csum_start, len - v->csum_start);

	sum = (uint16_t)~sum;
	if (sum == 0)
		sum = 0xffff; /* 0 would say "no checksum" in UDP; elsewhere the two are equal */
	memcpy(packet + v->csum_start + v->csum_offset, &sum, sizeof(sum));
}

int
sl_vnet_cut(const struct sl_vnet *v, const uint8_t *head, uint32_t len, struct sl_vnet_cut *cut)
{
	uint32_t l4 = (uint32_t)v->l2_len + v->l3_len, front = l4 + v->l4_len;
	uint16_t offset = is_tcp(v) ? TCP_CSUM_OFFSET : UDP_CSUM_OFFSET;
	uint32_t l4_min = is_tcp(v) ? sizeof(struct rte_tcp_hdr) : sizeof(struct rte_udp_hdr);

	if (v->gso == SL_VNET_GSO_UFO || !gso_fits_headers(v) || v->l4_len < l4_min)
		return -EINVAL;
	if (front > len || front > SL_VNET_HEAD)
		return -EINVAL;
	if (v->csum && (v->csum_start != l4 || v->csum_offset != offset))
		return -EINVAL;
	cut->v = *v;
	cut->v.csum = true;
	cut->v.csum_start = (uint16_t)l4;
	cut->v.csum_offset = offset;
	cut->front_len = front;
	cut->payload = len - front;
	cut->segments = RTE_MAX((cut->payload + v->gso_size - 1) / v->gso_size, 1u);
	memcpy(cut->front, head, front);
	return 0;
}

uint32_t
sl_vnet_cut_payload(const struct sl_vnet_cut *cut, uint32_t i)
{
	uint32_t at = i * cut->v.gso_size;

	return RTE_MIN(cut->payload - at, (uint32_t)cut->v.gso_size);
}

static void
put_be16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void
put_be32(uint8_t *p, uint32_t value)
{
	put_be16(p, value >> 16);
	put_be16(p + 2, value);
}

/* Length of the packet from here on, identification, checksum. */
static void
cut_network(const struct sl_vnet *v, uint32_t i, uint8_t *ip, uint32_t len)
{
	uint16_t sum;

	if (v->v6) {
		put_be16(ip + 4, len - (uint32_t)sizeof(struct rte_ipv6_hdr));
		return;
	}
	put_be16(ip + 2, len);
	put_be16(ip + 4, (uint32_t)be16_at(ip + 4) + i);
	memset(ip + 10, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(ip, v->l3_len);
	memcpy(ip + 10, &sum, sizeof(sum));
}

/* The pseudo header's sum, folded, in network order. */
static uint16_t
pseudo_sum(const struct sl_vnet *v, const uint8_t *ip, uint32_t l4_len)
{
	uint32_t sum = v->v6 ? rte_raw_cksum(ip + 8, 32) : rte_raw_cksum(ip + 12, 8);

	sum += rte_cpu_to_be_16(v->proto);
	sum += rte_cpu_to_be_16((uint16_t)l4_len);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

void
sl_vnet_cut_front(const struct sl_vnet_cut *cut, uint32_t i, uint8_t *front)
{
	const struct sl_vnet *v = &cut->v;
	uint32_t payload = sl_vnet_cut_payload(cut, i);
	uint8_t *ip = front + v->l2_len, *l4 = front + v->csum_start;
	uint16_t sum;

	memcpy(front, cut->front, cut->front_len);
	cut_network(v, i, ip, (uint32_t)v->l3_len + v->l4_len + payload);
	if (is_tcp(v)) {
		uint32_t seq = (uint32_t)be16_at(l4 + 4) << 16 | be16_at(l4 + 6);

		put_be32(l4 + 4, seq + i * v->gso_size);
		if (i + 1 < cut->segments)
			l4[13] &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
		if (i > 0)
			l4[13] &= (uint8_t)~RTE_TCP_CWR_FLAG;
	} else {
		put_be16(l4 + 4, v->l4_len + payload);
	}
	sum = pseudo_sum(v, ip, v->l4_len + payload);
	memcpy(l4 + v->csum_offset, &sum, sizeof(sum));
}

void
sl_vnet_fill(void *header, uint32_t size, bool data_valid)
{
	struct virtio_net_hdr h = {.flags = data_valid ? VIRTIO_NET_HDR_F_DATA_VALID : 0};

	memset(header, 0, size);
	memcpy(header, &h, RTE_MIN((size_t)size, sizeof(h)));
}
