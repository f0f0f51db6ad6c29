/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* From a received frame to mbufs, whichever ring it came in. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/virtio_net.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_memcpy.h>

#include "sl_dpdk.h"
#include "sl_errno.h"
#include "tpacket_priv.h"

#define TAG_LEN 4
#define MACS_LEN 12
#define TCP_CSUM_OFFSET 16
#define TP_STATUS_GSO (1u << 8) /* newer than the oldest headers that we build on */

/* Mbufs that the largest super-frame may need: rooms below this fraction are refused at setup. */
#define CHAIN_MAX 128
/* Copies in the socket's queue to pass over until the one that belongs to a slot. */
#define QUEUE_TRIES 8

static void
count(struct tpacket_rxq *q, enum tpacket_rx_stat which)
{
	sl_counter_add(&q->stats[which], 1);
}

/* A tag that the kernel took out of the frame and that has to go in again. */
static bool
needs_tag(const struct tpacket_rxq *q, const struct tpacket_frame *f)
{
	return (f->status & TP_STATUS_VLAN_VALID) != 0 && !sl_load_relaxed(&q->strip);
}

static void
make_tag(const struct tpacket_frame *f, uint8_t *tag)
{
	uint16_t tpid =
		(f->status & TP_STATUS_VLAN_TPID_VALID) != 0 ? f->tpid : RTE_ETHER_TYPE_VLAN;

	tag[0] = (uint8_t)(tpid >> 8);
	tag[1] = (uint8_t)tpid;
	tag[2] = (uint8_t)(f->tci >> 8);
	tag[3] = (uint8_t)f->tci;
}

/* What the kernel says about checksum and segmentation; csum_start counts an inserted tag. */
static int
offload_of(struct tpacket_rxq *q, const struct tpacket_ring *ring, const struct tpacket_frame *f,
	uint32_t tag, struct tpacket_offload *o)
{
	struct tpacket_headers h;
	uint32_t end;
	int ret = 0;

	if (ring->vnet_len != 0) {
		ret = tpacket_vnet_check(&f->vnet, f->wire, o);
		if (ret == -EOPNOTSUPP)
			count(q, TPACKET_RX_GSO_UNSUPPORTED);
		else if (ret != 0)
			count(q, TPACKET_RX_BAD_VNET);
		if (o->csum_partial)
			o->csum_start = (uint16_t)(o->csum_start + tag);
		return ret;
	}
	memset(o, 0, sizeof(*o));
	end = sl_load_relaxed(&q->port->kernel_mtu) + RTE_ETHER_HDR_LEN + 2 * TAG_LEN;
	if ((f->status & TP_STATUS_GSO) != 0 || f->wire > end) {
		/* A super-frame, and without a vnet header nobody says where to cut it. */
		count(q, TPACKET_RX_GSO_UNSUPPORTED);
		return -EOPNOTSUPP;
	}
	o->csum_valid = (f->status & TP_STATUS_CSUM_VALID) != 0;
	if ((f->status & TP_STATUS_CSUMNOTREADY) != 0) {
		tpacket_parse(f->data, f->caught, &h);
		o->csum_offset = tpacket_csum_offset(&h);
		o->csum_partial = h.l4_len != 0 && o->csum_offset != 0;
		o->csum_start = (uint16_t)(h.l2_len + h.l3_len + tag);
	}
	return 0;
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void
complete_csum(struct tpacket_rxq *q, struct rte_mbuf *m, const struct tpacket_offload *o)
{
	uint16_t *field, sum;

	count(q, TPACKET_RX_CSUM_COMPLETED);
	if (m->nb_segs == 1) {
		tpacket_csum_complete(
			rte_pktmbuf_mtod(m, uint8_t *), m->pkt_len, o->csum_start, o->csum_offset);
		return;
	}
	/* Headers lie in the first mbuf of a chain: its room is checked at setup. */
	if (o->csum_start + o->csum_offset + 2u > m->data_len ||
		sl_raw_cksum_mbuf(m, o->csum_start, m->pkt_len - o->csum_start, &sum) != 0)
		return;
	sum = (uint16_t)~sum;
	if (sum == 0 && o->csum_offset != TCP_CSUM_OFFSET)
		sum = UINT16_MAX;
	field = rte_pktmbuf_mtod_offset(m, uint16_t *, o->csum_start + o->csum_offset);
	memcpy(field, &sum, sizeof(sum));
}

static uint64_t
csum_flags(struct tpacket_rxq *q, struct rte_mbuf *m, const struct tpacket_offload *o)
{
	uint64_t l4 = RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	uint64_t asked;

	if (o->csum_partial) {
		asked = o->csum_offset == TCP_CSUM_OFFSET ? RTE_ETH_RX_OFFLOAD_TCP_CKSUM
							  : RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
		if ((q->offloads & asked) != 0)
			return RTE_MBUF_F_RX_L4_CKSUM_NONE;
		complete_csum(q, m, o);
		return 0;
	}
	return o->csum_valid && (q->offloads & l4) != 0 ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
}

static uint64_t
parse_flags(const struct tpacket_rxq *q, struct rte_mbuf *m)
{
	struct tpacket_headers h;
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	bool good;

	tpacket_parse(data, m->data_len, &h);
	m->packet_type = h.ptype & sl_load_relaxed(&q->ptypes);
	if ((q->offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) == 0 || h.l3_len == 0 || h.ipv6)
		return 0;
	good = rte_raw_cksum(data + h.l2_len, h.l3_len) == UINT16_MAX;
	return good ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
}

static void
set_stamp(const struct tpacket_rxq *q, struct rte_mbuf *m, uint64_t ns)
{
	const struct tpacket_port *port = q->port;

	*RTE_MBUF_DYNFIELD(m, port->timestamp_offset, rte_mbuf_timestamp_t *) = ns;
	m->ol_flags |= port->timestamp_flag;
}

static uint64_t
frame_flags(const struct tpacket_rxq *q, const struct tpacket_frame *f)
{
	uint64_t flags = 0;

	if ((f->status & TP_STATUS_VLAN_VALID) != 0 && !f->keep_tag)
		flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	if (f->hash != 0 && (q->offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0)
		flags |= RTE_MBUF_F_RX_RSS_HASH;
	return flags;
}

static void
finish(struct tpacket_rxq *q, struct rte_mbuf *m, const struct tpacket_frame *f,
	const struct tpacket_offload *o)
{
	m->port = q->port_id;
	m->ol_flags = frame_flags(q, f);
	m->vlan_tci = f->tci;
	m->hash.rss = f->hash;
	m->ol_flags |= csum_flags(q, m, o);
	if (sl_load_relaxed(&q->ptypes) != 0 || (q->offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0)
		m->ol_flags |= parse_flags(q, m);
	if ((q->offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0)
		set_stamp(q, m, f->ns);
	if (o->gso_size != 0) {
		m->ol_flags |= RTE_MBUF_F_RX_LRO;
		m->tso_segsz = o->gso_size;
		count(q, TPACKET_RX_LRO);
	}
	sl_counter_add(&q->stats[TPACKET_RX_PACKETS], 1);
	sl_counter_add(&q->stats[TPACKET_RX_BYTES], m->pkt_len);
}

/* ---- super-frames that are cut here ------------------------------------------------------------
 */

static bool
must_cut(const struct tpacket_rxq *q, const struct tpacket_offload *o)
{
	/* Joined datagrams are not one datagram, so UDP is cut for everybody. */
	return o->gso_size != 0 && (!q->lro || o->gso_udp);
}

/* The whole frame with its tag lies in q->staging. */
static void
cut_start(struct tpacket_rxq *q, uint32_t len, const struct tpacket_frame *f,
	const struct tpacket_offload *o)
{
	uint64_t asked = o->gso_udp ? RTE_ETH_RX_OFFLOAD_UDP_CKSUM : RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	bool partial = (q->offloads & asked) != 0;

	if (tpacket_gso_start(&q->gso, q->staging, len, o, partial) != 0) {
		count(q, TPACKET_RX_BAD_VNET);
		return;
	}
	if (q->gso.hdr_len + q->gso.size > q->room && !q->scatter) {
		count(q, TPACKET_RX_NO_ROOM);
		return;
	}
	q->cutting = true;
	q->cut_flags = frame_flags(q, f) | (partial ? RTE_MBUF_F_RX_L4_CKSUM_NONE : 0);
	if ((q->offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0 && !q->gso.h.ipv6)
		q->cut_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	q->cut_ns = f->ns;
	q->cut_tci = f->tci;
	q->cut_ptype = q->gso.h.ptype;
	if (!partial)
		count(q, TPACKET_RX_CSUM_COMPLETED);
	count(q, TPACKET_RX_SEGMENTED);
}

static struct rte_mbuf *
cut_one(struct tpacket_rxq *q, uint32_t len)
{
	uint8_t *bounce = q->staging + TPACKET_SUPER_MAX + TAG_LEN;
	struct rte_mbuf *m = tpacket_chain_get(q, len);

	if (m == NULL)
		return NULL;
	if (m->nb_segs == 1) {
		tpacket_gso_emit(&q->gso, rte_pktmbuf_mtod(m, uint8_t *));
	} else {
		tpacket_gso_emit(&q->gso, bounce);
		tpacket_chain_write(m, 0, bounce, len);
	}
	m->port = q->port_id;
	m->ol_flags = q->cut_flags;
	m->vlan_tci = q->cut_tci;
	m->packet_type = q->cut_ptype & sl_load_relaxed(&q->ptypes);
	if ((q->offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0)
		set_stamp(q, m, q->cut_ns);
	sl_counter_add(&q->stats[TPACKET_RX_PACKETS], 1);
	sl_counter_add(&q->stats[TPACKET_RX_BYTES], len);
	return m;
}

uint16_t
tpacket_rx_cut(struct tpacket_rxq *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t got = 0;
	uint32_t len;

	while (q->cutting && got < n) {
		len = tpacket_gso_next(&q->gso);
		if (len == 0) {
			q->cutting = false;
			break;
		}
		pkts[got] = cut_one(q, len);
		if (pkts[got] == NULL)
			break;
		got++;
	}
	if (q->cutting && tpacket_gso_next(&q->gso) == 0)
		q->cutting = false;
	return got;
}

/* Puts a frame from the ring into the staging area, with its tag. */
static uint32_t
stage(struct tpacket_rxq *q, const struct tpacket_frame *f, bool tag)
{
	uint8_t *to = q->staging;

	if (!tag) {
		memcpy(to, f->data, f->caught);
		return f->caught;
	}
	memcpy(to, f->data, MACS_LEN);
	make_tag(f, to + MACS_LEN);
	memcpy(to + MACS_LEN + TAG_LEN, f->data + MACS_LEN, f->caught - MACS_LEN);
	return f->caught + TAG_LEN;
}

/* ---- frames that wait in the socket's queue ---------------------------------------------------
 */

/* Takes the copy that belongs to a slot: they are queued in the order of their slots. */
static int
take_copy(const struct tpacket_ring *ring, struct tpacket_frame *f, struct iovec *iov, size_t parts)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = parts};
	struct tpacket_vnet vnet = {0};
	ssize_t ret;
	int i;

	iov[0] = (struct iovec){.iov_base = &vnet, .iov_len = ring->vnet_len};
	for (i = 0; i < QUEUE_TRIES; i++) {
		ret = sl_sys((int)recvmsg(ring->fd, &msg, MSG_DONTWAIT | MSG_TRUNC));
		if (ret == -EAGAIN)
			return -EAGAIN;
		/* An error of the interface is told once and takes nothing from the queue. */
		if (ret < 0 || (uint32_t)ret != ring->vnet_len + f->wire)
			continue;
		f->vnet = vnet;
		f->caught = f->wire;
		return 0;
	}
	return -EIO;
}

static int
queued_to_staging(struct tpacket_rxq *q, const struct tpacket_ring *ring, struct tpacket_frame *f,
	struct rte_mbuf **pkts, uint16_t n)
{
	bool tag = f->keep_tag;
	uint8_t *to = q->staging + (tag ? TAG_LEN : 0);
	struct tpacket_offload o;
	struct iovec iov[2];

	iov[1] = (struct iovec){.iov_base = to, .iov_len = TPACKET_SUPER_MAX};
	if (f->wire > TPACKET_SUPER_MAX || take_copy(ring, f, iov, 2) != 0) {
		count(q, TPACKET_RX_BAD_SLOT);
		return 0;
	}
	if (offload_of(q, ring, f, tag ? TAG_LEN : 0, &o) != 0)
		return 0;
	if (!must_cut(q, &o)) { /* it has only been taken so that the next one is found */
		count(q, TPACKET_RX_NO_ROOM);
		return 0;
	}
	if (tag) {
		memmove(q->staging, to, MACS_LEN);
		make_tag(f, q->staging + MACS_LEN);
	}
	cut_start(q, f->wire + (tag ? TAG_LEN : 0), f, &o);
	return tpacket_rx_cut(q, pkts, n);
}

static size_t
chain_iov(struct rte_mbuf *m, uint32_t skip, struct iovec *iov)
{
	size_t parts = 1;

	for (; m != NULL && parts <= CHAIN_MAX; m = m->next, skip = 0, parts++)
		iov[parts] = (struct iovec){
			.iov_base = rte_pktmbuf_mtod_offset(m, uint8_t *, skip),
			.iov_len = m->data_len - skip,
		};
	return parts;
}

static int
queued_to_chain(struct tpacket_rxq *q, const struct tpacket_ring *ring, struct tpacket_frame *f,
	struct rte_mbuf **pkts)
{
	uint32_t tag = f->keep_tag ? TAG_LEN : 0;
	struct iovec iov[CHAIN_MAX + 1];
	struct tpacket_offload o;
	struct rte_mbuf *m;
	size_t parts;

	m = tpacket_chain_get(q, f->wire + tag);
	if (m == NULL)
		return -1;
	parts = chain_iov(m, tag, iov);
	if (take_copy(ring, f, iov, parts) != 0) {
		count(q, TPACKET_RX_BAD_SLOT);
		rte_pktmbuf_free(m);
		return 0;
	}
	if (tag != 0) {
		memmove(rte_pktmbuf_mtod(m, uint8_t *), iov[1].iov_base, MACS_LEN);
		make_tag(f, rte_pktmbuf_mtod_offset(m, uint8_t *, MACS_LEN));
	}
	f->data = rte_pktmbuf_mtod_offset(m, uint8_t *, tag);
	if (offload_of(q, ring, f, tag, &o) != 0 || must_cut(q, &o)) {
		rte_pktmbuf_free(m);
		return 0;
	}
	finish(q, m, f, &o);
	pkts[0] = m;
	return 1;
}

static bool
is_other_host(struct tpacket_rxq *q, const struct tpacket_frame *f)
{
	if (SL_LIKELY(f->packet_type != PACKET_OTHERHOST) ||
		!sl_load_relaxed(&q->port->mute_other_host))
		return false;
	if (f->caught >= RTE_ETHER_ADDR_LEN && tpacket_filter_ours(q->port, f->data))
		return false;
	count(q, TPACKET_RX_OTHER_HOST);
	return true;
}

static int
rx_queued(struct tpacket_rxq *q, const struct tpacket_ring *ring, struct tpacket_frame *f,
	struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t fits = q->scatter ? (uint32_t)q->room * CHAIN_MAX : q->room;
	struct tpacket_offload o;
	bool other = is_other_host(q, f);
	struct iovec iov[2];
	int ret;

	count(q, TPACKET_RX_QUEUED_COPY);
	if (other) {
		iov[1] = (struct iovec){.iov_base = q->staging, .iov_len = TPACKET_SUPER_MAX};
		(void)take_copy(ring, f, iov, 2);
		return 0;
	}
	/* The slot has the vnet header too; a bad one is judged again on the copy. */
	ret = tpacket_vnet_check(&f->vnet, f->wire, &o);
	if (ret != 0 || must_cut(q, &o) || f->wire + TAG_LEN > fits)
		return queued_to_staging(q, ring, f, pkts, n);
	return queued_to_chain(q, ring, f, pkts);
}

/* ---- one frame ----------------------------------------------------------------------------------
 */

static int
rx_plain(struct tpacket_rxq *q, struct tpacket_frame *f, const struct tpacket_offload *o, bool tag,
	struct rte_mbuf **pkts)
{
	uint32_t len = f->caught + (tag ? TAG_LEN : 0);
	uint8_t head[MACS_LEN + TAG_LEN];
	struct rte_mbuf *m;

	if (SL_UNLIKELY(len > q->room && !q->scatter)) {
		count(q, TPACKET_RX_NO_ROOM);
		return 0;
	}
	m = tpacket_chain_get(q, len);
	if (SL_UNLIKELY(m == NULL))
		return -1;
	if (tag) {
		rte_memcpy(head, f->data, MACS_LEN);
		make_tag(f, head + MACS_LEN);
		tpacket_chain_write(m, 0, head, sizeof(head));
		tpacket_chain_write(m, sizeof(head), f->data + MACS_LEN, f->caught - MACS_LEN);
		count(q, TPACKET_RX_VLAN_REINSERTED);
	} else if (SL_LIKELY(m->nb_segs == 1)) {
		rte_memcpy(rte_pktmbuf_mtod(m, uint8_t *), f->data, len);
	} else {
		tpacket_chain_write(m, 0, f->data, len);
	}
	finish(q, m, f, o);
	pkts[0] = m;
	return 1;
}

int
tpacket_rx_frame(struct tpacket_rxq *q, const struct tpacket_ring *ring, struct tpacket_frame *f,
	struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_offload o;
	bool tag = needs_tag(q, f);

	f->keep_tag = tag; /* decided once: the application may switch stripping meanwhile */
	if (SL_UNLIKELY(f->caught < f->wire)) {
		if ((f->status & TP_STATUS_COPY) != 0)
			return rx_queued(q, ring, f, pkts, n);
		count(q, TPACKET_RX_TRUNCATED);
		return 0;
	}
	if (SL_UNLIKELY(f->caught < RTE_ETHER_HDR_LEN || f->caught > TPACKET_SUPER_MAX)) {
		count(q, TPACKET_RX_BAD_SLOT);
		return 0;
	}
	if (is_other_host(q, f) || offload_of(q, ring, f, tag ? TAG_LEN : 0, &o) != 0)
		return 0;
	if (SL_UNLIKELY(must_cut(q, &o))) {
		cut_start(q, stage(q, f, tag), f, &o);
		return tpacket_rx_cut(q, pkts, n);
	}
	return rx_plain(q, f, &o, tag, pkts);
}

void
tpacket_rx_purge(struct tpacket_rxq *q)
{
	q->cutting = false;
	if (q->stashed != 0)
		rte_pktmbuf_free_bulk(q->stash, q->stashed);
	q->stashed = 0;
}
