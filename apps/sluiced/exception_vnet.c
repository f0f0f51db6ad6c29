/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Frames of the port as the kernel's tap takes them, and the other way round. What a port cannot do
 * - checksums, segmentation - is done here, on a copy that nobody else sees. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "exception_priv.h"

#define TCP_CKSUM 16u
#define UDP_CKSUM 6u
#define TCP_LEN 20u
#define UDP_LEN 8u
#define IP4_LEN 20u
#define IP6_LEN 40u

/* Where the transport header of a frame is, tags not counted; false if it is not TCP or UDP right
 * behind the network header. Only what is in f->head is looked at. */
static bool
find_l4(const struct sl_inet_frame *f, bool *v6, uint8_t *proto, uint32_t *l4)
{
	const uint8_t *l3 = f->head + f->l2_len;
	uint32_t room = f->head_len - f->l2_len, len;
	uint16_t type = (uint16_t)(l3[-2] << 8 | l3[-1]);

	*v6 = type == RTE_ETHER_TYPE_IPV6;
	if (room < (*v6 ? IP6_LEN : IP4_LEN) || (!*v6 && type != RTE_ETHER_TYPE_IPV4))
		return false;
	*proto = *v6 ? l3[6] : l3[9];
	len = *v6 ? IP6_LEN : (l3[0] & 0xfu) * 4;
	*l4 = RTE_ETHER_HDR_LEN + len;
	return len >= IP4_LEN && ((*proto == IPPROTO_TCP && len + TCP_LEN <= room) ||
					 (*proto == IPPROTO_UDP && len + UDP_LEN <= room));
}

void
exception_to_kernel(const struct sl_inet_frame *f, struct sl_tapq_vnet_hdr *h)
{
	uint64_t flags = f->m->ol_flags, sum = flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	bool lro = (flags & RTE_MBUF_F_RX_LRO) != 0 && f->m->tso_segsz != 0, v6;
	const uint8_t *tcp;
	uint8_t proto;
	uint32_t l4;

	memset(h, 0, sizeof(*h));
	if (sum == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		h->flags = SL_TAPQ_VNET_DATA_VALID;
	if ((sum != RTE_MBUF_F_RX_L4_CKSUM_NONE && !lro) || !find_l4(f, &v6, &proto, &l4))
		return;
	if (sum == RTE_MBUF_F_RX_L4_CKSUM_NONE) {
		h->flags = SL_TAPQ_VNET_NEEDS_CSUM;
		h->csum_start = (uint16_t)l4;
		h->csum_offset = proto == IPPROTO_TCP ? TCP_CKSUM : UDP_CKSUM;
	}
	if (!lro || proto != IPPROTO_TCP)
		return;
	tcp = f->head + f->l2_len - RTE_ETHER_HDR_LEN + l4;
	h->gso_type = v6 ? SL_TAPQ_VNET_GSO_TCPV6 : SL_TAPQ_VNET_GSO_TCPV4;
	h->gso_size = f->m->tso_segsz;
	h->hdr_len = (uint16_t)(l4 + (tcp[12] >> 4) * 4u);
}

/* Does the port complete this checksum? It finds the field by itself: behind the network header,
 * where the protocol has it. */
static bool
port_sums(const struct exception_port *port, const struct sl_vnet *v)
{
	bool tcp = v->proto == IPPROTO_TCP;

	if (!(tcp ? port->tcp_cksum : v->proto == IPPROTO_UDP && port->udp_cksum))
		return false;
	return v->csum && v->l4_len >= (tcp ? TCP_LEN : UDP_LEN) &&
	       v->csum_start == v->l2_len + v->l3_len &&
	       v->csum_offset == (tcp ? TCP_CKSUM : UDP_CKSUM);
}

static bool
port_segments(const struct exception_packets *p)
{
	bool tcp = p->v.gso == SL_VNET_GSO_TCP4 || p->v.gso == SL_VNET_GSO_TCP6;

	/* Transmit flags cannot say that the first segment alone has CWR. */
	return p->port->tso && tcp && !p->v.ecn && port_sums(p->port, &p->v);
}

int
exception_begin(struct exception_packets *p, const void *header)
{
	int ret;

	p->next = 0;
	p->segments = 1;
	if (p->len < RTE_ETHER_HDR_LEN)
		return -EINVAL;
	ret = sl_vnet_check(header, p->frame, p->len, &p->v);
	if (ret != 0 || p->v.gso == SL_VNET_GSO_NONE)
		return ret;
	/* Also where the port cuts: so its headers are what the request says they are. */
	ret = sl_vnet_cut(&p->v, p->frame, p->len, &p->cut);
	if (ret == 0 && !port_segments(p))
		p->segments = p->cut.segments;
	return ret;
}

static void
ask_cksum(const struct sl_vnet *v, struct rte_mbuf *m)
{
	m->ol_flags |= v->proto == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
	m->ol_flags |= v->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
	m->l2_len = v->l2_len & 0x7f;
	m->l3_len = v->l3_len & 0x1ff;
	m->l4_len = v->l4_len & 0xff;
}

/* A copy in as many pieces as it takes; NULL if there are not as many. */
static struct rte_mbuf *
copy(struct rte_mempool *pool, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *last = m;

	while (m != NULL) {
		uint16_t part = (uint16_t)RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(last));

		memcpy(rte_pktmbuf_mtod(last, void *), data, part);
		last->data_len = part;
		m->pkt_len += part;
		data += part;
		len -= part;
		if (len == 0)
			return m;
		last->next = rte_pktmbuf_alloc(pool);
		last = last->next;
		if (last == NULL)
			break;
		m->nb_segs++;
	}
	rte_pktmbuf_free(m);
	return NULL;
}

static struct rte_mbuf *
whole_packet(struct exception_packets *p)
{
	bool ask = port_sums(p->port, &p->v);
	struct rte_mbuf *m;

	/* Before it is copied, while it is in one piece. */
	if (p->v.csum && !ask)
		sl_vnet_complete(p->frame, p->len, &p->v);
	m = copy(p->port->pool, p->frame, p->len);
	if (m == NULL || !ask)
		return m;
	ask_cksum(&p->v, m);
	if (p->v.gso == SL_VNET_GSO_NONE)
		return m;
	m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
	if (!p->v.v6)
		m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
	m->tso_segsz = p->v.gso_size;
	return m;
}

static struct rte_mbuf *
segment(struct exception_packets *p)
{
	const struct sl_vnet_cut *cut = &p->cut;
	uint32_t payload = sl_vnet_cut_payload(cut, p->next), len = cut->front_len + payload;
	const uint8_t *data = p->frame + cut->front_len + (size_t)p->next * cut->v.gso_size;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->port->pool);
	uint8_t *to;

	if (m == NULL || len > rte_pktmbuf_tailroom(m)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	to = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	sl_vnet_cut_front(cut, p->next, to);
	memcpy(to + cut->front_len, data, payload);
	if (port_sums(p->port, &cut->v))
		ask_cksum(&cut->v, m);
	else
		sl_vnet_complete(to, len, &cut->v);
	return m;
}

struct rte_mbuf *
exception_next(struct exception_packets *p)
{
	struct rte_mbuf *m;

	if (p->next == p->segments)
		return NULL;
	m = p->segments == 1 && (p->v.gso == SL_VNET_GSO_NONE || port_segments(p)) ? whole_packet(p)
										   : segment(p);
	if (m != NULL)
		p->next++;
	return m;
}
