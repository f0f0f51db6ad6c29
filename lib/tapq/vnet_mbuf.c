/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_net.h>

#include "sl_dpdk.h"
#include "sl_tapq_vnet.h"

#define L4_CSUM_MASK RTE_MBUF_F_TX_L4_MASK
#define SEG_MASK (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)

/* Sum from `start` to the end and write it at `start + offset`. */
static bool
sum_up(struct rte_mbuf *m, uint32_t start, uint32_t offset, bool udp)
{
	uint16_t sum;

	if (start + offset + 2 > rte_pktmbuf_data_len(m) || start > rte_pktmbuf_pkt_len(m))
		return false;
	if (sl_raw_cksum_mbuf(m, start, rte_pktmbuf_pkt_len(m) - start, &sum) != 0)
		return false;
	sum = (uint16_t)~sum;
	if (udp && sum == 0)
		sum = 0xffff; /* 0 would say that there is none */
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, start + offset), &sum, sizeof(sum));
	return true;
}

static void
set_lengths(struct rte_mbuf *m)
{
	struct rte_net_hdr_lens lens = {0};

	m->packet_type = rte_net_get_ptype(
		m, &lens, RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK);
	m->l2_len = lens.l2_len;
	m->l3_len = lens.l3_len;
	m->l4_len = lens.l4_len;
}

enum sl_tapq_vnet_error
sl_tapq_vnet_to_mbuf(const struct sl_tapq_vnet_hdr *hdr, struct rte_mbuf *m, bool complete)
{
	if (SL_LIKELY(hdr->flags == 0 && hdr->gso_type == 0))
		return SL_TAPQ_VNET_OK;
	if ((hdr->flags & SL_TAPQ_VNET_NEEDS_CSUM) != 0 && complete) {
		if (!sum_up(m, hdr->csum_start, hdr->csum_offset, hdr->csum_offset == 6))
			return SL_TAPQ_VNET_BAD_CSUM;
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	} else if ((hdr->flags & SL_TAPQ_VNET_NEEDS_CSUM) != 0) {
		/* Not correct in the frame, and nothing that could have spoilt it came between. */
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	} else if ((hdr->flags & SL_TAPQ_VNET_DATA_VALID) != 0) {
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	}
	if (hdr->gso_type != SL_TAPQ_VNET_GSO_NONE) {
		m->ol_flags |= RTE_MBUF_F_RX_LRO;
		m->tso_segsz = hdr->gso_size;
	}
	set_lengths(m);
	return SL_TAPQ_VNET_OK;
}

/* The layers of a transmit request must lie in the first segment. */
static bool
layers_fit(const struct rte_mbuf *m, uint32_t l4_len)
{
	uint32_t l4 = (uint32_t)m->l2_len + m->l3_len;

	return m->l2_len >= 14 && m->l3_len >= 20 && l4 + l4_len <= rte_pktmbuf_data_len(m);
}

static void
ipv4_sum(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, m->l2_len);

	ip->hdr_checksum = 0;
	ip->hdr_checksum = (uint16_t)~rte_raw_cksum(ip, m->l3_len);
}

/* The sum over addresses, protocol and length, which a partial checksum starts from. */
static uint16_t
pseudo_sum(const struct rte_mbuf *m)
{
	const void *l3 = rte_pktmbuf_mtod_offset(m, const void *, m->l2_len);
	/* Without the segmentation flags the length counts, as the peer's partial sums have it. */
	uint64_t flags = m->ol_flags & ~(uint64_t)SEG_MASK;

	return (m->ol_flags & RTE_MBUF_F_TX_IPV6) != 0 ? rte_ipv6_phdr_cksum(l3, flags)
						       : rte_ipv4_phdr_cksum(l3, flags);
}

static int
request_csum(struct rte_mbuf *m, uint32_t accept, bool udp, struct sl_tapq_vnet_hdr *hdr)
{
	uint16_t offset = udp ? 6 : 16, sum;
	uint32_t l4 = (uint32_t)m->l2_len + m->l3_len;

	if (!layers_fit(m, offset + 2u))
		return -EINVAL;
	sum = pseudo_sum(m);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, l4 + offset), &sum, sizeof(sum));
	if ((accept & SL_TAPQ_VNET_ACCEPT_CSUM) == 0)
		return sum_up(m, l4, offset, udp) ? 0 : -EINVAL;
	hdr->flags = SL_TAPQ_VNET_NEEDS_CSUM;
	hdr->csum_start = (uint16_t)l4;
	hdr->csum_offset = offset;
	return 0;
}

static int
request_segments(const struct rte_mbuf *m, uint32_t accept, struct sl_tapq_vnet_hdr *hdr)
{
	bool udp = (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG) != 0;
	bool ipv6 = (m->ol_flags & RTE_MBUF_F_TX_IPV6) != 0;
	uint32_t need = udp    ? SL_TAPQ_VNET_ACCEPT_USO
			: ipv6 ? SL_TAPQ_VNET_ACCEPT_TSO6
			       : SL_TAPQ_VNET_ACCEPT_TSO4;

	if ((accept & need) == 0 || (accept & SL_TAPQ_VNET_ACCEPT_CSUM) == 0)
		return -EOPNOTSUPP;
	if (m->tso_segsz == 0 || !layers_fit(m, m->l4_len))
		return -EINVAL;
	hdr->gso_type = udp    ? SL_TAPQ_VNET_GSO_UDP_L4
			: ipv6 ? SL_TAPQ_VNET_GSO_TCPV6
			       : SL_TAPQ_VNET_GSO_TCPV4;
	hdr->gso_size = m->tso_segsz;
	hdr->hdr_len = (uint16_t)(m->l2_len + m->l3_len + m->l4_len);
	return 0;
}

int
sl_tapq_vnet_from_mbuf(struct rte_mbuf *m, uint32_t accept, struct sl_tapq_vnet_hdr *hdr)
{
	uint64_t l4 = m->ol_flags & L4_CSUM_MASK;
	bool segments = (m->ol_flags & SEG_MASK) != 0;
	int ret;

	memset(hdr, 0, sizeof(*hdr));
	hdr->num_buffers = 1;
	if ((m->ol_flags & (RTE_MBUF_F_TX_IP_CKSUM | L4_CSUM_MASK | SEG_MASK)) == 0)
		return 0;
	if ((m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) {
		if (!layers_fit(m, 0))
			return -EINVAL;
		ipv4_sum(m);
	}
	if (segments) {
		ret = request_segments(m, accept, hdr);
		if (ret != 0)
			return ret;
	}
	if (l4 == RTE_MBUF_F_TX_TCP_CKSUM || (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0)
		return request_csum(m, accept, false, hdr);
	if (l4 == RTE_MBUF_F_TX_UDP_CKSUM || (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG) != 0)
		return request_csum(m, accept, true, hdr);
	return l4 == 0 ? 0 : -EOPNOTSUPP; /* SCTP */
}
