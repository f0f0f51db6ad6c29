/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * From a port to sockets: packet type, filter, then ring or queue. The packet stays its owner's and
 * is not changed, so what a queue keeps is a copy. Headers are read once, into a private copy.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "psock_priv.h"
#include "sl_bpf.h"
#include "sl_udpq_mbuf.h"

uint64_t
psock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint8_t
packet_type(const struct psock_port *port, const struct rte_ether_hdr *eth, bool outgoing)
{
	if (outgoing)
		return PACKET_OUTGOING;
	if (rte_is_broadcast_ether_addr(&eth->dst_addr))
		return PACKET_BROADCAST;
	if (rte_is_multicast_ether_addr(&eth->dst_addr))
		return PACKET_MULTICAST;
	if (rte_is_same_ether_addr(&eth->dst_addr, &port->mac))
		return PACKET_HOST;
	return PACKET_OTHERHOST;
}

static void
fill_from(const struct psock_packet *p, struct sockaddr_ll *from)
{
	*from = (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_protocol = p->proto,
		.sll_ifindex = p->port_id + 1,
		.sll_hatype = 1,
		.sll_pkttype = p->pkttype,
		.sll_halen = MAC_LEN};
	memcpy(from->sll_addr, &p->eth.src_addr, MAC_LEN);
}

static uint32_t
status_of(const struct rte_mbuf *m)
{
	uint64_t csum = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	uint32_t status = 0;

	if (csum == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		status |= TP_STATUS_CSUMNOTREADY;
	else if (csum == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		status |= TP_STATUS_CSUM_VALID;
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		status |= TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
	return status;
}

/* Link header bytes that the socket does not see. */
static uint32_t
skip_of(const struct sl_psock *s)
{
	return s->type == SOCK_DGRAM ? HEADER_LEN : 0;
}

static void
note_fill(const struct sl_psock *s, const struct psock_packet *p, struct psock_note *note)
{
	*note = (struct psock_note){.wire_len = p->m->pkt_len - skip_of(s),
		.status = TP_STATUS_USER | status_of(p->m),
		.vlan_tci = p->m->vlan_tci,
		.vlan_tpid = p->m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED ? RTE_ETHER_TYPE_QINQ
									  : RTE_ETHER_TYPE_VLAN,
		.net = (uint16_t)(HEADER_LEN - skip_of(s)),
		.csum_good = (p->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) ==
			     RTE_MBUF_F_RX_L4_CKSUM_GOOD};
}

/* The queue keeps a copy of the packet; what recvmsg must know goes into the descriptor. */
static int
queue_packet(struct sl_psock *s, const struct psock_packet *p, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_copy(p->m, s->net->conf.pool, skip_of(s), len);
	struct sl_dgram d = {.buf = m, .len = len, .aux = p->ns};
	enum sl_udpq_drop why;
	struct psock_note note;
	struct sockaddr_ll from;

	if (m == NULL)
		return -ENOBUFS;
	fill_from(p, &from);
	note_fill(s, p, &note);
	psock_note_put(&d, &from, &note);
	d.truesize = sl_mbuf_truesize(m);
	if (sl_udpq_append_burst(s->queue, 0, &d, 1, &why) == 1)
		return 0;
	rte_pktmbuf_free(m);
	return -ENOBUFS;
}

bool
psock_has_room(struct sl_psock *s)
{
	struct sl_udpq_stats stats;

	if (s->rx != NULL)
		return sl_pktring_rx_has_room(s->rx);
	sl_udpq_stats(s->queue, 0, &stats);
	return stats.rmem < sl_load_relaxed(&s->rcvbuf);
}

/* A packet that does not fit its frame may go to the queue whole as well (PACKET_COPY_THRESH). */
static uint32_t
copy_beside(struct sl_psock *s, const struct psock_packet *p, uint32_t len)
{
	struct sl_udpq_stats stats;

	if (sl_load_relaxed(&s->copy_thresh) == 0 || s->version == TPACKET_V3)
		return 0;
	sl_udpq_stats(s->queue, 0, &stats);
	if (stats.rmem >= sl_load_relaxed(&s->rcvbuf) || queue_packet(s, p, len) != 0)
		return 0;
	return TP_STATUS_COPY;
}

static void
ring_packet(struct sl_psock *s, const struct psock_packet *p, uint32_t len)
{
	uint8_t vnet[SL_PKTRING_VNET_MAX];
	struct sl_pktring_meta meta = {.len = len,
		.wire_len = p->m->pkt_len - skip_of(s),
		.maclen = HEADER_LEN - skip_of(s),
		.status = status_of(p->m),
		.rxhash = p->m->hash.rss,
		.ns = p->ns,
		.vlan_tci = p->m->vlan_tci,
		.vlan_tpid = RTE_ETHER_TYPE_VLAN,
		.vnet_size = s->vnet_size,
		.vnet = vnet};
	struct sl_pktring_room room;
	uint32_t extra = 0;

	if (!(meta.status & TP_STATUS_VLAN_VALID))
		meta.vlan_tci = meta.vlan_tpid = 0;
	if (sl_load_relaxed(&s->timestamp) != 0)
		meta.status |= TP_STATUS_TS_SOFTWARE;
	if (meta.vnet_size != 0)
		sl_vnet_fill(vnet, meta.vnet_size, meta.status & TP_STATUS_CSUM_VALID);
	fill_from(p, &meta.from);
	if (sl_pktring_rx_reserve(s->rx, &meta, &room) != 0)
		return; /* the ring has counted it */
	if (room.snaplen < len)
		extra = copy_beside(s, p, len);
	sl_pktring_mbuf_read(p->m, skip_of(s), room.data, room.snaplen);
	sl_pktring_rx_commit(s->rx, &room, extra);
}

/* Bytes that the socket's filter keeps. The filter sees what the socket sees, so a link header that
 * it does not see is hidden meanwhile. */
static uint32_t
filtered(struct sl_psock *s, struct rte_mbuf *m)
{
	/* PS4 */
	const struct sl_bpf *f = sl_load_acquire(&s->filter);
	uint16_t skip = (uint16_t)skip_of(s);
	uint32_t keep;

	if (f == NULL)
		return UINT32_MAX;
	if (m->data_len < skip)
		return 0;
	rte_pktmbuf_adj(m, skip);
	keep = sl_bpf_run(f, m);
	rte_pktmbuf_prepend(m, skip);
	return keep;
}

void
psock_deliver(struct sl_psock *s, struct psock_packet *p)
{
	uint32_t keep;

	if (p->pkttype == PACKET_OUTGOING && sl_load_relaxed(&s->ignore_outgoing))
		return;
	keep = RTE_MIN(filtered(s, p->m), p->m->pkt_len - skip_of(s));
	if (keep == 0) /* the filter's word, or nothing behind a link header that is not seen */
		return;
	if (s->rx != NULL)
		ring_packet(s, p, keep);
	else if (queue_packet(s, p, keep) == 0)
		sl_fetch_add_relaxed(&s->stats.packets, UINT64_C(1));
	else
		sl_fetch_add_relaxed(&s->stats.drops, UINT64_C(1));
}

static uint16_t
proto_of(const struct rte_ether_hdr *eth)
{
	bool length = rte_be_to_cpu_16(eth->ether_type) < 0x600;

	return length ? RTE_BE16(0x0004) : eth->ether_type; /* ETH_P_802_2 */
}

static void
show_packet(const struct psock_table *t, struct psock_packet *p, const struct sl_psock *except)
{
	for (uint32_t i = 0; i < t->hooks; i++) {
		const struct psock_hook *row = &t->hook[i];
		struct sl_psock *s = row->member[0];

		/* What is sent is shown to those who want everything, as on Linux. */
		if (row->proto != PROTO_ALL &&
			(row->proto != p->proto || p->pkttype == PACKET_OUTGOING))
			continue;
		if (row->group != NULL)
			s = psock_fanout_pick(row, p);
		if (s != NULL && s != except)
			psock_deliver(s, p);
	}
}

void
psock_show(struct sl_psock_net *net, uint16_t worker, uint16_t port_id, uint16_t queue,
	struct rte_mbuf **pkts, uint16_t n, bool outgoing, const struct sl_psock *except)
{
	struct psock_port *port = psock_port(net, port_id + 1);
	const struct psock_table *t;
	struct psock_packet p = {.port_id = port_id, .queue = queue, .worker = worker};

	if (port == NULL)
		return;
	t = sl_load_acquire(&port->table); /* PS1 */
	if (t == NULL || t->hooks == 0)
		return;
	p.ns = psock_now_ns();
	for (uint16_t i = 0; i < n; i++) {
		const void *eth;

		if (pkts[i]->pkt_len < HEADER_LEN)
			continue;
		p.m = pkts[i];
		eth = rte_pktmbuf_read(p.m, 0, HEADER_LEN, &p.eth);
		if (eth != &p.eth)
			memcpy(&p.eth, eth, HEADER_LEN);
		sl_snapshot_barrier();
		p.proto = proto_of(&p.eth);
		p.pkttype = packet_type(port, &p.eth, outgoing);
		show_packet(t, &p, except);
	}
}

void
sl_psock_input_burst(struct sl_psock_net *net, uint16_t worker, uint16_t port_id, uint16_t queue,
	struct rte_mbuf **pkts, uint16_t n)
{
	psock_show(net, worker, port_id, queue, pkts, n, false, NULL);
}

void
sl_psock_output_burst(struct sl_psock_net *net, uint16_t worker, uint16_t port_id,
	struct rte_mbuf **pkts, uint16_t n)
{
	psock_show(net, worker, port_id, 0, pkts, n, true, NULL);
}

/* Every socket that a port's table names, V3 blocks that are due. */
static void
tick_table(const struct psock_table *t, uint64_t now)
{
	for (uint32_t i = 0; i < t->hooks; i++)
		for (uint32_t k = 0; k < t->hook[i].members; k++)
			if (t->hook[i].member[k]->rx != NULL)
				sl_pktring_rx_tick(t->hook[i].member[k]->rx, now);
}

void
sl_psock_tick(struct sl_psock_net *net, uint16_t worker)
{
	uint64_t now = psock_now_ns();

	(void)worker;
	for (int i = 1; i <= SL_PSOCK_PORTS_MAX; i++) {
		struct psock_port *port = psock_port(net, i);
		const struct psock_table *t;

		if (port == NULL)
			continue;
		t = sl_load_acquire(&port->table); /* PS1 */
		if (t != NULL)
			tick_table(t, now);
	}
}

uint16_t
sl_psock_poll(struct sl_psock_net *net, uint16_t worker, uint16_t port_id, uint16_t queue)
{
	struct rte_mbuf *pkts[SL_PSOCK_BURST];
	uint16_t n = rte_eth_rx_burst(port_id, queue, pkts, SL_PSOCK_BURST);

	if (n > 0) {
		sl_psock_input_burst(net, worker, port_id, queue, pkts, n);
		rte_pktmbuf_free_bulk(pkts, n);
	}
	sl_psock_tick(net, worker);
	sl_psock_quiescent(net, worker);
	return n;
}
