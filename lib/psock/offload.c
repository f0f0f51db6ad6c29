/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What vnet headers ask for: by the port where it can, else here. Packets are private copies, so
 * that what was checked is what is sent. Segments are made as the port takes them, so that a large
 * packet costs no more mbufs than a burst does, and what a full port leaves is made later.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "psock_priv.h"
#include "sl_dpdk.h"

static void
write_at(struct rte_mbuf *m, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	for (; n > 0; n--, at++, bytes++) {
		struct rte_mbuf *seg = m;
		uint32_t k = at;

		while (k >= seg->data_len) {
			k -= seg->data_len;
			seg = seg->next;
		}
		*rte_pktmbuf_mtod_offset(seg, uint8_t *, k) = *bytes;
	}
}

static int
complete_csum(struct rte_mbuf *m, const struct sl_vnet *v)
{
	uint16_t sum;

	if (sl_raw_cksum_mbuf(m, v->csum_start, m->pkt_len - v->csum_start, &sum) != 0)
		return -EINVAL;
	sum = (uint16_t)~sum;
	if (sum == 0)
		sum = UINT16_MAX; /* as sl_vnet_complete */
	write_at(m, (uint32_t)v->csum_start + v->csum_offset, (const uint8_t *)&sum, sizeof(sum));
	return 0;
}

/* The mbuf flag by which the port completes the checksum, or 0 when it cannot. */
static uint64_t
csum_flag(const struct sl_vnet *v, uint64_t offloads)
{
	if (v->l4_len == 0 || v->csum_start != v->l2_len + v->l3_len)
		return 0;
	if (v->proto == IPPROTO_TCP && v->csum_offset == 16 &&
		(offloads & RTE_ETH_TX_OFFLOAD_TCP_CKSUM))
		return RTE_MBUF_F_TX_TCP_CKSUM;
	if (v->proto == IPPROTO_UDP && v->csum_offset == 6 &&
		(offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM))
		return RTE_MBUF_F_TX_UDP_CKSUM;
	return 0;
}

static uint64_t
gso_flag(const struct sl_vnet *v, uint64_t offloads)
{
	bool tcp = v->gso == SL_VNET_GSO_TCP4 || v->gso == SL_VNET_GSO_TCP6;

	if (v->l4_len == 0)
		return 0;
	if (tcp && (offloads & RTE_ETH_TX_OFFLOAD_TCP_TSO))
		return RTE_MBUF_F_TX_TCP_SEG;
	if (v->gso == SL_VNET_GSO_UDP_L4 && (offloads & RTE_ETH_TX_OFFLOAD_UDP_TSO))
		return RTE_MBUF_F_TX_UDP_SEG;
	return 0;
}

/* Ports want a pseudo header without the length in the field of a packet to be segmented. */
static void
gso_prepare(struct rte_mbuf *m, const struct sl_vnet *v)
{
	uint8_t ip[sizeof(struct rte_ipv6_hdr)];
	uint16_t sum;

	sl_pktring_mbuf_read(m, v->l2_len, ip, v->v6 ? 40 : 20);
	sum = v->v6 ? rte_ipv6_phdr_cksum((void *)ip, m->ol_flags)
		    : rte_ipv4_phdr_cksum((void *)ip, m->ol_flags);
	m->tso_segsz = v->gso_size;
	write_at(m, (uint32_t)v->l2_len + v->l3_len + (v->proto == IPPROTO_TCP ? 16 : 6),
		(const uint8_t *)&sum, sizeof(sum));
}

/* Drivers look at offloaded packets once more, and say here what their burst would drop. */
static int
port_accepts(const struct psock_dest *dest, struct rte_mbuf *m)
{
	return rte_eth_tx_prepare(dest->port->conf.port_id, 0, &m, 1) == 1 ? 0 : -EINVAL;
}

/* May a segment's headers be put into the pool's mbufs in one piece? */
static int
cut_prepare(const struct sl_vnet *v, const uint8_t *head, const struct rte_mbuf *m,
	struct sl_vnet_cut *cut)
{
	uint32_t room = (uint32_t)rte_pktmbuf_data_room_size(m->pool) - RTE_PKTMBUF_HEADROOM;

	if (sl_vnet_cut(v, head, m->pkt_len, cut) != 0 || cut->front_len > room)
		return -EINVAL;
	return 1;
}

/* m is a private copy: the vnet header is checked against bytes that nobody else can change. */
int
psock_offload(const struct psock_dest *dest, struct rte_mbuf *m, const uint8_t *vnet,
	struct sl_vnet_cut *cut)
{
	uint64_t offloads = dest->port->conf.tx_offloads, flag;
	uint8_t head[SL_VNET_HEAD];
	struct sl_vnet v;

	sl_pktring_mbuf_read(m, 0, head, RTE_MIN(m->pkt_len, (uint32_t)sizeof(head)));
	if (sl_vnet_check(vnet, head, m->pkt_len, &v) != 0)
		return -EINVAL;
	if (!v.csum && v.gso == SL_VNET_GSO_NONE)
		return 0;
	m->l2_len = v.l2_len;
	m->l3_len = v.l3_len & 0x1ff;
	m->l4_len = v.l4_len & 0xff;
	if (v.gso != SL_VNET_GSO_NONE) {
		flag = gso_flag(&v, offloads);
		if (flag == 0)
			return cut_prepare(&v, head, m, cut);
		m->ol_flags |= flag | (v.v6 ? RTE_MBUF_F_TX_IPV6
					    : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
		gso_prepare(m, &v);
		return port_accepts(dest, m);
	}
	flag = csum_flag(&v, offloads);
	if (flag == 0)
		return complete_csum(m, &v);
	m->ol_flags |= flag | (v.v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
	return port_accepts(dest, m);
}

/* Copy n bytes of `from` at `at` to the end of the chain at m, which grows; false without mbufs. */
static bool
append_part(struct rte_mbuf *m, const struct rte_mbuf *from, uint32_t at, uint32_t n)
{
	struct rte_mbuf *last = m;

	for (;;) {
		uint32_t part = RTE_MIN(n, (uint32_t)rte_pktmbuf_tailroom(last));

		sl_pktring_mbuf_read(
			from, at, rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len), part);
		last->data_len += (uint16_t)part;
		m->pkt_len += part;
		at += part;
		n -= part;
		if (n == 0)
			return true;
		last->next = rte_pktmbuf_alloc(from->pool);
		last = last->next;
		if (last == NULL)
			return false;
		m->nb_segs++;
	}
}

static struct rte_mbuf *
make_segment(const struct psock_cut *c, uint32_t i)
{
	const struct sl_vnet_cut *cut = &c->cut;
	struct rte_mbuf *m = rte_pktmbuf_alloc(c->whole->pool);
	uint32_t at = cut->front_len + i * cut->v.gso_size;

	if (m == NULL)
		return NULL;
	sl_vnet_cut_front(cut, i, (uint8_t *)rte_pktmbuf_append(m, (uint16_t)cut->front_len));
	if (append_part(m, c->whole, at, sl_vnet_cut_payload(cut, i)) &&
		complete_csum(m, &cut->v) == 0)
		return m;
	rte_pktmbuf_free(m);
	return NULL;
}

int
psock_cut_send(struct sl_psock *s, struct psock_cut *c, uint16_t worker)
{
	const struct psock_dest dest = {.port = c->port};
	uint32_t want = RTE_MIN(c->cut.segments - c->next, (uint32_t)TX_BURST);
	struct rte_mbuf *m[TX_BURST];
	uint16_t n = 0, seen, sent;

	while (n < want && (m[n] = make_segment(c, c->next + n)) != NULL)
		n++;
	if (n == 0)
		return -ENOBUFS;
	seen = (uint16_t)RTE_MIN(c->shown - c->next, (uint32_t)n);
	psock_show_sent(s, &dest, worker, m + seen, n - seen);
	c->shown = RTE_MAX(c->shown, c->next + n);
	sent = psock_tx_burst(&dest, worker, m, n);
	rte_pktmbuf_free_bulk(m + sent, n - sent);
	sl_fetch_add_relaxed(&s->tx_segments, (uint64_t)sent);
	c->next += sent;
	if (c->next == c->cut.segments)
		psock_cut_end(s, c);
	return sent;
}

/* Segments that are left of a request that was begun are lost. One that was not begun is still a
 * request, so who has seen its first segments is remembered for the next time. */
void
psock_cut_end(struct sl_psock *s, struct psock_cut *c)
{
	if (c->whole == NULL)
		return;
	if (c->next > 0) {
		sl_fetch_add_relaxed(&s->tx_dropped, (uint64_t)c->cut.segments - c->next);
		c->shown = 0;
	}
	c->next = 0;
	rte_pktmbuf_free(c->whole);
	c->whole = NULL;
}
