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

/* Do the packet's own headers say what the segmentation type says? */
static bool
gso_fits_headers(const struct sl_vnet *v)
{
	bool tcp = v->gso == SL_VNET_GSO_TCP4 || v->gso == SL_VNET_GSO_TCP6;
	bool any_family = v->gso == SL_VNET_GSO_UFO || v->gso == SL_VNET_GSO_UDP_L4;

	if (v->l3_len == 0 || v->proto != (tcp ? IPPROTO_TCP : IPPROTO_UDP))
		return false;
	return any_family || v->v6 == (v->gso == SL_VNET_GSO_TCP6);
}

static int
check_gso(const struct virtio_net_hdr *h, uint32_t len, struct sl_vnet *v)
{
	uint32_t front = v->csum ? (uint32_t)v->csum_start : (uint32_t)v->l2_len + v->l3_len;
	bool tcp = v->gso == SL_VNET_GSO_TCP4 || v->gso == SL_VNET_GSO_TCP6;

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

void
sl_vnet_fill(void *header, uint32_t size, bool data_valid)
{
	struct virtio_net_hdr h = {.flags = data_valid ? VIRTIO_NET_HDR_F_DATA_VALID : 0};

	memset(header, 0, size);
	memcpy(header, &h, RTE_MIN((size_t)size, sizeof(h)));
}
