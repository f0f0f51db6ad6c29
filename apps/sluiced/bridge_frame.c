/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What received frames ask for, and how it is done. */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "bridge.h"
#include "sl_dpdk.h"

#define TAG_LEN 4u
#define TCP_CSUM_OFFSET 16u
#define UDP_CSUM_OFFSET 6u
/* Where the memory of a packet is, which flags say, too. */
#define KEPT_FLAGS (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)
#define SEGMENT_FLAGS (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_RX_LRO)

struct request {
	uint32_t start; /* of the transport header */
	uint32_t len;	/* from there on, without padding */
	uint32_t offset;
	uint64_t flags; /* that ask a port for it */
	uint64_t offload;
};

/* Is the transport checksum yet to be filled in? */
static bool
partial(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE ||
	       (m->ol_flags & RTE_MBUF_F_TX_L4_MASK) != 0;
}

static bool
stripped(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)) != 0;
}

bool
bridge_frame_asks(const struct rte_mbuf *m)
{
	return partial(m) || stripped(m) || (m->ol_flags & SEGMENT_FLAGS) != 0;
}

uint32_t
bridge_frame_payload(const struct rte_mbuf *m)
{
	uint32_t len = m->pkt_len, head = RTE_ETHER_HDR_LEN;
	const uint8_t *p;
	uint8_t copy[2];

	for (int tags = 0; tags < 2; tags++) {
		p = rte_pktmbuf_read(m, head - 2, sizeof(copy), copy);
		if (p == NULL || !((p[0] == 0x81 && p[1] == 0) || (p[0] == 0x88 && p[1] == 0xa8)))
			break;
		head += TAG_LEN;
	}
	return len > head ? len - head : 0;
}

/* A frame whose first n bytes are one piece of memory that is ours alone to write. */
static int
own(struct rte_mbuf **m, uint32_t n, struct rte_mempool *pool)
{
	struct rte_mbuf *copy;
	bool ours = rte_pktmbuf_data_len(*m) >= n;

	for (const struct rte_mbuf *s = *m; s != NULL && ours; s = s->next)
		ours = RTE_MBUF_DIRECT(s) && rte_mbuf_refcnt_read(s) == 1;
	if (ours)
		return 0;
	copy = rte_pktmbuf_copy(*m, pool, 0, UINT32_MAX);
	if (copy == NULL)
		return -ENOMEM;
	rte_pktmbuf_free(*m);
	*m = copy;
	return rte_pktmbuf_data_len(copy) >= n ? 0 : -EOPNOTSUPP;
}

/* Bytes of the transport part as the IP header has it: a frame may be padded. */
static int
transport_len(
	const struct rte_mbuf *m, const struct rte_net_hdr_lens *lens, bool ipv6, uint32_t *len)
{
	uint8_t copy[sizeof(struct rte_ipv6_hdr)];
	const uint8_t *ip =
		rte_pktmbuf_read(m, lens->l2_len, ipv6 ? sizeof(struct rte_ipv6_hdr) : 20, copy);
	uint32_t total, start = (uint32_t)lens->l2_len + lens->l3_len;

	if (ip == NULL)
		return -EOPNOTSUPP;
	total = ipv6 ? 40u + ((uint32_t)ip[4] << 8 | ip[5]) : ((uint32_t)ip[2] << 8 | ip[3]);
	if (total < lens->l3_len || lens->l2_len + total > m->pkt_len || start >= m->pkt_len)
		return -EOPNOTSUPP;
	*len = total - lens->l3_len;
	return 0;
}

/* Where the checksum is; sets the lengths that a port wants. */
static int
find_request(struct rte_mbuf *m, struct request *r)
{
	struct rte_net_hdr_lens lens = {0};
	uint32_t type = rte_net_get_ptype(
		m, &lens, RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK);
	bool ipv6 = RTE_ETH_IS_IPV6_HDR(type), udp = (type & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_UDP;

	if (!udp && (type & RTE_PTYPE_L4_MASK) != RTE_PTYPE_L4_TCP)
		return -EOPNOTSUPP;
	/* A transport header is named also behind what is no IP header. */
	if (!ipv6 && !RTE_ETH_IS_IPV4_HDR(type))
		return -EOPNOTSUPP;
	if (transport_len(m, &lens, ipv6, &r->len) != 0)
		return -EOPNOTSUPP;
	r->start = (uint32_t)lens.l2_len + lens.l3_len;
	r->offset = udp ? UDP_CSUM_OFFSET : TCP_CSUM_OFFSET;
	r->flags = (udp ? RTE_MBUF_F_TX_UDP_CKSUM : RTE_MBUF_F_TX_TCP_CKSUM) |
		   (ipv6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
	r->offload = udp ? RTE_ETH_TX_OFFLOAD_UDP_CKSUM : RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	if (r->len < r->offset + 2)
		return -EOPNOTSUPP;
	m->l2_len = lens.l2_len;
	m->l3_len = lens.l3_len;
	m->l4_len = lens.l4_len;
	return 0;
}

/* The field holds the sum over the pseudo header, so that summing all up completes it. */
static int
complete(struct rte_mbuf **m, const struct request *r, struct rte_mempool *pool)
{
	uint32_t at = r->start + r->offset;
	uint16_t sum;
	int ret = own(m, at + 2, pool);

	if (ret != 0)
		return ret;
	if (sl_raw_cksum_mbuf(*m, r->start, r->len, &sum) != 0)
		return -EOPNOTSUPP;
	sum = (uint16_t)~sum;
	if (sum == 0 && r->offset == UDP_CSUM_OFFSET)
		sum = UINT16_MAX; /* 0 would say that there is none */
	memcpy(rte_pktmbuf_mtod_offset(*m, uint8_t *, at), &sum, sizeof(sum));
	return 0;
}

/* Put a tag back that a port took off. */
static int
tag(struct rte_mbuf **m, struct rte_mempool *pool)
{
	int ret;

	if (((*m)->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0)
		return -EOPNOTSUPP;
	ret = own(m, RTE_ETHER_HDR_LEN, pool);
	if (ret == 0 && rte_vlan_insert(m) != 0)
		ret = -EOPNOTSUPP;
	return ret;
}

int
bridge_frame_finish(struct rte_mbuf **m, uint64_t offloads, struct rte_mempool *pool)
{
	bool sum = partial(*m);
	struct request r;
	int ret = 0;

	if (((*m)->ol_flags & SEGMENT_FLAGS) != 0)
		return -EOPNOTSUPP;
	if (stripped(*m))
		ret = tag(m, pool);
	if (ret == 0 && sum)
		ret = find_request(*m, &r);
	if (ret != 0)
		return ret;
	if (sum && (offloads & r.offload) == 0)
		ret = complete(m, &r, pool);
	(*m)->ol_flags &= KEPT_FLAGS;
	if (sum && (offloads & r.offload) != 0)
		(*m)->ol_flags |= r.flags;
	if ((*m)->nb_segs > 1 && (offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0 && ret == 0) {
		ret = own(m, (*m)->pkt_len, pool);
		/* A copy has fewer pieces, but cannot always be one. */
		if (ret == 0 && (*m)->nb_segs > 1)
			ret = -EOPNOTSUPP;
	}
	return ret;
}
