/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Transmit offloads: from mbuf flags to a vnet header, or to checksums made here. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/virtio_net.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

#define GSO_UDP_L4 5
#define HEADERS_MAX 512 /* link to transport header of a super-frame, as l2/l3/l4 lengths allow */
#define SEND_PARTS 130

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

bool
tpacket_tx_is_super(const struct tpacket_txq *q, const struct rte_mbuf *m)
{
	uint64_t flags = m->ol_flags;
	uint32_t whole = sl_load_relaxed(&q->port->kernel_mtu) + RTE_ETHER_HDR_LEN;

	if ((flags & (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)) != 0)
		return true;
	/* A frame that was received joined and is passed on as it came. */
	return (flags & RTE_MBUF_F_RX_LRO) != 0 && m->tso_segsz != 0 && m->pkt_len > whole;
}

/* Headers as the application described them. */
static int
described(const struct rte_mbuf *m, uint32_t there, struct tpacket_txmeta *meta)
{
	uint64_t l4 = m->ol_flags & RTE_MBUF_F_TX_L4_MASK;
	struct tpacket_headers *h = &meta->h;
	uint32_t least = 0;

	h->l2_len = (uint16_t)(m->l2_len + tpacket_tx_tag(m));
	h->l3_len = m->l3_len;
	h->ipv6 = (m->ol_flags & RTE_MBUF_F_TX_IPV6) != 0;
	if ((m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0 || l4 == RTE_MBUF_F_TX_TCP_CKSUM)
		h->l4_proto = IPPROTO_TCP;
	else if ((m->ol_flags & RTE_MBUF_F_TX_UDP_SEG) != 0 || l4 == RTE_MBUF_F_TX_UDP_CKSUM)
		h->l4_proto = IPPROTO_UDP;
	else if (l4 != 0)
		return -EINVAL; /* SCTP: a CRC, which is not offered */
	if (h->l4_proto != 0)
		least = h->l4_proto == IPPROTO_TCP ? 20 : 8;
	h->l4_len = (uint16_t)(meta->gso ? m->l4_len : least);
	if (m->l2_len < RTE_ETHER_HDR_LEN || h->l3_len < (h->ipv6 ? 40 : 20) || h->l4_len < least ||
		(uint32_t)h->l2_len + h->l3_len + h->l4_len > there)
		return -EINVAL;
	meta->csum = h->l4_proto != 0;
	meta->ip_csum = !h->ipv6 && (meta->gso || (m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0);
	return 0;
}

/* Bytes of the transport part as the IP header has it: an Ethernet frame may be padded. */
static int
measure(const uint8_t *frame, uint32_t len, struct tpacket_txmeta *meta)
{
	const uint8_t *ip = frame + meta->h.l2_len;
	uint32_t after_l2 = len - meta->h.l2_len;
	uint32_t total = meta->h.ipv6 ? 40u + tpacket_get16(ip + 4) : tpacket_get16(ip + 2);

	if (meta->gso)
		total = after_l2;
	if (total < (uint32_t)meta->h.l3_len + meta->h.l4_len || total > after_l2)
		return -EINVAL;
	meta->l4_bytes = total - meta->h.l3_len;
	return 0;
}

/* A frame that came in with a partial checksum and goes out unchanged. If the field still holds the
 * pseudo-header sum it is completed; should a complete checksum have that value, completing gives
 * the same value again, so a frame that was right stays right. */
static void
relayed(const uint8_t *frame, uint32_t there, uint32_t len, struct tpacket_txmeta *meta)
{
	uint16_t sum, field;

	tpacket_parse(frame, there, &meta->h);
	if (meta->h.l4_len == 0 || tpacket_csum_offset(&meta->h) == 0 ||
		measure(frame, len, meta) != 0)
		return;
	sum = tpacket_pseudo_sum(frame, &meta->h, meta->l4_bytes);
	memcpy(&field, frame + meta->h.l2_len + meta->h.l3_len + tpacket_csum_offset(&meta->h),
		sizeof(field));
	meta->csum = field == sum;
}

static int
describe_gso(const struct rte_mbuf *m, uint32_t len, struct tpacket_txmeta *meta)
{
	uint32_t headers = (uint32_t)meta->h.l2_len + meta->h.l3_len + meta->h.l4_len;

	if (meta->h.l4_len == 0 || m->tso_segsz == 0 || headers > HEADERS_MAX ||
		len - meta->h.l2_len > UINT16_MAX)
		return -EINVAL;
	meta->csum = true;
	meta->vnet.hdr_len = (uint16_t)headers;
	if (len - headers <= m->tso_segsz)
		return 0; /* one segment: an ordinary frame */
	meta->vnet.gso_size = m->tso_segsz;
	if (meta->h.l4_proto == IPPROTO_UDP)
		meta->vnet.gso_type = GSO_UDP_L4;
	else
		meta->vnet.gso_type =
			meta->h.ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	return 0;
}

int
tpacket_tx_meta(const struct rte_mbuf *m, const uint8_t *frame, uint32_t there, uint32_t len,
	struct tpacket_txmeta *meta)
{
	uint64_t asked = RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_SEG |
			 RTE_MBUF_F_TX_UDP_SEG;
	bool lro = (m->ol_flags & asked) == 0 && (m->ol_flags & RTE_MBUF_F_RX_LRO) != 0;
	int ret = 0;

	memset(meta, 0, sizeof(*meta));
	meta->gso = (m->ol_flags & (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)) != 0 || lro;
	if (lro) {
		tpacket_parse(frame, there, &meta->h);
		if (meta->h.l4_proto != IPPROTO_TCP)
			return -EINVAL;
	} else if ((m->ol_flags & asked) != 0) {
		ret = described(m, there, meta);
	} else {
		relayed(frame, there, len, meta);
		return 0;
	}
	if (ret == 0 && meta->gso)
		ret = describe_gso(m, len, meta);
	return ret == 0 ? measure(frame, len, meta) : ret;
}

void
tpacket_tx_fix(uint8_t *frame, uint32_t len, struct tpacket_txmeta *meta, bool vnet)
{
	uint8_t *ip = frame + meta->h.l2_len;
	uint16_t start = (uint16_t)(meta->h.l2_len + meta->h.l3_len);
	uint16_t offset = tpacket_csum_offset(&meta->h);
	uint16_t sum;

	if (meta->gso && meta->h.ipv6)
		put16(ip + 4, meta->h.l3_len - 40 + meta->l4_bytes);
	else if (meta->gso)
		put16(ip + 2, meta->h.l3_len + meta->l4_bytes);
	if (meta->ip_csum)
		tpacket_ipv4_csum(ip, meta->h.l3_len);
	if (!meta->csum)
		return;
	sum = tpacket_pseudo_sum(frame, &meta->h, meta->l4_bytes);
	memcpy(frame + start + offset, &sum, sizeof(sum));
	if (vnet && start + meta->l4_bytes == len) {
		meta->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		meta->vnet.csum_start = start;
		meta->vnet.csum_offset = offset;
		return;
	}
	/* The kernel would sum the padding too. */
	tpacket_csum_complete(frame, start + meta->l4_bytes, start, offset);
}

/* The parts of an mbuf chain after its first `skip` bytes. Returns their number, 0: too many. */
static size_t
chain_parts(const struct rte_mbuf *m, uint32_t skip, struct iovec *iov, size_t max)
{
	size_t n = 0;

	for (; m != NULL; m = m->next) {
		if (skip >= m->data_len) {
			skip -= m->data_len;
			continue;
		}
		if (n == max)
			return 0;
		iov[n].iov_base = rte_pktmbuf_mtod_offset(m, uint8_t *, skip);
		iov[n].iov_len = m->data_len - skip;
		n++;
		skip = 0;
	}
	return n;
}

int
tpacket_tx_super(struct tpacket_txq *q, const struct tpacket_ring *ring, struct rte_mbuf *m)
{
	uint32_t tag = tpacket_tx_tag(m);
	uint32_t len = m->pkt_len + tag;
	struct iovec iov[SEND_PARTS];
	struct msghdr msg = {.msg_iov = iov};
	struct tpacket_txmeta meta;
	uint8_t head[HEADERS_MAX];
	uint32_t there;
	size_t parts;
	int ret;

	if (ring->super_fd < 0)
		return -EINVAL; /* segmentation was not configured, or there is no vnet header */
	there = tpacket_tx_copy(m, head, sizeof(head));
	ret = tpacket_tx_meta(m, head, there, len, &meta);
	if (ret != 0)
		return ret;
	tpacket_tx_fix(head, len, &meta, true);
	/* The headers are ours, changed; the payload is sent from the mbufs. */
	there = (uint32_t)meta.h.l2_len + meta.h.l3_len + meta.h.l4_len;
	iov[0] = (struct iovec){.iov_base = &meta.vnet, .iov_len = sizeof(meta.vnet)};
	iov[1] = (struct iovec){.iov_base = head, .iov_len = there};
	parts = chain_parts(m, there - tag, iov + 2, SEND_PARTS - 2);
	if (parts == 0 && there < len)
		return -EMSGSIZE;
	msg.msg_iovlen = parts + 2;
	ret = sl_sys((int)sendmsg(ring->super_fd, &msg, MSG_DONTWAIT));
	if (ret >= 0 && (m->ol_flags & RTE_MBUF_F_RX_LRO) != 0)
		sl_counter_add(&q->stats[TPACKET_TX_RELAYED], 1);
	return ret < 0 ? ret : 0;
}

uint16_t
tpacket_tx_prepare(void *txq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tpacket_txmeta meta;
	uint8_t head[HEADERS_MAX];
	uint32_t there;
	uint16_t i;

	(void)txq;
	for (i = 0; i < n; i++) {
		if (!tpacket_tx_has_work(pkts[i]))
			continue;
		there = tpacket_tx_copy(pkts[i], head, sizeof(head));
		if (tpacket_tx_meta(pkts[i], head, there,
			    pkts[i]->pkt_len + tpacket_tx_tag(pkts[i]), &meta) != 0) {
			sl_set_rte_error(-EINVAL);
			break;
		}
	}
	return i;
}
