/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "psock_priv.h"

#define VLAN_LEN 4
#define PACKET_MAX 65535u /* what an mbuf's length can say */

static int
dest_spkt(struct sl_psock *s, const struct msghdr *msg, struct psock_dest *dest)
{
	char name[RTE_ETH_NAME_MAX_LEN] = {0};
	struct sockaddr_pkt pkt = {0};
	uint16_t port_id;

	if (msg->msg_name == NULL)
		return -ENOTCONN;
	if (msg->msg_namelen < sizeof(struct sockaddr))
		return -EINVAL;
	memcpy(&pkt, msg->msg_name, RTE_MIN(msg->msg_namelen, sizeof(pkt)));
	dest->proto = msg->msg_namelen >= sizeof(pkt) ? pkt.spkt_protocol : 0;
	memcpy(name, pkt.spkt_device, sizeof(pkt.spkt_device) - 1);
	if (rte_eth_dev_get_port_by_name(name, &port_id) != 0)
		return -ENODEV;
	dest->port = psock_port(s->net, port_id + 1);
	return dest->port != NULL ? 0 : -ENODEV;
}

/* The address in msg, or what the socket is bound to. */
static int
dest_ll(struct sl_psock *s, const struct msghdr *msg, struct psock_dest *dest)
{
	const size_t front = offsetof(struct sockaddr_ll, sll_addr);
	struct sockaddr_ll ll;

	if (msg->msg_name == NULL) {
		dest->proto = sl_load_relaxed(&s->proto);
		dest->port = psock_port(s->net, sl_load_relaxed(&s->ifindex));
		return 0;
	}
	if (msg->msg_namelen < sizeof(ll))
		return -EINVAL;
	memcpy(&ll, msg->msg_name, sizeof(ll));
	if (msg->msg_namelen < front + ll.sll_halen)
		return -EINVAL;
	dest->proto = ll.sll_protocol;
	dest->port = psock_port(s->net, ll.sll_ifindex);
	dest->has_addr = true;
	memcpy(dest->addr, ll.sll_addr, sizeof(dest->addr));
	return 0;
}

/* Linux's recording flags of SO_TIMESTAMPING, as a mask */
#define STAMP_RECORD (1 << 0 | 1 << 1 | 1 << 8 | 1 << 9)

/* A control message of SOL_SOCKET: those that every socket knows are taken, and mean nothing here.
 */
static int
check_cmsg(const struct cmsghdr *c)
{
	uint32_t value;

	switch (c->cmsg_type) {
	case SCM_RIGHTS:
	case SCM_CREDENTIALS:
		return 0;
	case SO_MARK:
		return c->cmsg_len == CMSG_LEN(sizeof(value)) ? 0 : -EINVAL;
	case SO_TIMESTAMPING:
		if (c->cmsg_len != CMSG_LEN(sizeof(value)))
			return -EINVAL;
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		return value & ~(uint32_t)STAMP_RECORD ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

static int
check_control(const struct msghdr *msg)
{
	const uint8_t *end = (const uint8_t *)msg->msg_control + msg->msg_controllen;
	const struct cmsghdr *c = msg->msg_control != NULL ? CMSG_FIRSTHDR(msg) : NULL;
	int ret = 0;

	while (c != NULL && ret == 0) {
		size_t left = (size_t)(end - (const uint8_t *)c);

		if (c->cmsg_len < sizeof(*c) || c->cmsg_len > left)
			return -EINVAL;
		if (c->cmsg_level == SOL_SOCKET)
			ret = check_cmsg(c);
		c = CMSG_ALIGN(c->cmsg_len) + sizeof(*c) > left
			    ? NULL
			    : (const struct cmsghdr *)((const uint8_t *)c +
						       CMSG_ALIGN(c->cmsg_len));
	}
	return ret;
}

int
psock_dest(struct sl_psock *s, const struct msghdr *msg, struct psock_dest *dest)
{
	int ret;

	*dest = (struct psock_dest){0};
	ret = s->type == SOCK_PACKET ? dest_spkt(s, msg, dest) : dest_ll(s, msg, dest);
	if (ret != 0)
		return ret;
	if (dest->port == NULL)
		return -ENXIO;
	if (!sl_load_relaxed(&dest->port->up))
		return -ENETDOWN;
	return SL_LIKELY(msg->msg_controllen == 0) ? 0 : check_control(msg);
}

/* The link header that the program brings along, or 0 when it is made here. */
static uint32_t
own_header(const struct sl_psock *s)
{
	return s->type == SOCK_DGRAM ? 0 : HEADER_LEN;
}

uint32_t
psock_tx_cap(const struct sl_psock *s, const struct psock_dest *dest)
{
	return sl_load_relaxed(&dest->port->mtu) + own_header(s) + VLAN_LEN;
}

/* The four bytes more are for frames with a VLAN tag alone, and just the plain kind. */
bool
psock_longer_than_mtu(
	const struct sl_psock *s, const struct psock_dest *dest, uint32_t len, const uint8_t *front)
{
	uint16_t type = dest->proto;

	if (len <= sl_load_relaxed(&dest->port->mtu) + own_header(s))
		return false;
	if (s->type != SOCK_DGRAM)
		memcpy(&type, front + 2 * MAC_LEN, sizeof(type));
	return type != RTE_BE16(RTE_ETHER_TYPE_VLAN);
}

int
psock_header(const struct psock_dest *dest, uint8_t *header)
{
	if (!dest->has_addr)
		return -EINVAL;
	memcpy(header, dest->addr, MAC_LEN);
	memcpy(header + MAC_LEN, &dest->port->mac, MAC_LEN);
	memcpy(header + 2 * MAC_LEN, &dest->proto, 2);
	return 0;
}

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

	if (rte_raw_cksum_mbuf(m, v->csum_start, m->pkt_len - v->csum_start, &sum) != 0)
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

/* m is a private copy: the vnet header is checked against bytes that nobody else can change. */
int
psock_offload(const struct psock_dest *dest, struct rte_mbuf *m, const uint8_t *vnet)
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
			return -EINVAL;
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

uint16_t
psock_tx_burst(const struct psock_dest *dest, uint16_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	struct psock_port *port = dest->port;
	uint16_t queue = worker == SL_PSOCK_NO_WORKER ? 0 : worker % port->conf.tx_queues;

	rte_spinlock_lock(&port->tx_lock[queue]);
	/* PS2: a port that is being taken away waits for this lock, so it is there or it is not. */
	if (sl_load_acquire(&port->used))
		n = rte_eth_tx_burst(port->conf.port_id, queue, pkts, n);
	else
		n = 0;
	rte_spinlock_unlock(&port->tx_lock[queue]);
	return n;
}

/* Copy n bytes of msg's data from `skip` on to the end of the chain at m. */
static int
gather(const struct sl_psock *s, const struct msghdr *msg, size_t skip, struct rte_mbuf *m)
{
	struct rte_mbuf *last = m;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const uint8_t *from = msg->msg_iov[i].iov_base;
		size_t n = msg->msg_iov[i].iov_len, part = RTE_MIN(n, skip);

		from += part;
		n -= part;
		skip -= part;
		while (n > 0) {
			if (rte_pktmbuf_tailroom(last) == 0) {
				last->next = rte_pktmbuf_alloc(s->net->conf.pool);
				last = last->next;
				if (last == NULL)
					return -ENOBUFS;
				m->nb_segs++;
			}
			part = RTE_MIN(n, (size_t)rte_pktmbuf_tailroom(last));
			memcpy(rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len), from,
				part);
			last->data_len += (uint16_t)part;
			m->pkt_len += (uint32_t)part;
			from += part;
			n -= part;
		}
	}
	return 0;
}

static size_t
msg_bytes(const struct msghdr *msg, uint8_t *front, size_t want)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const uint8_t *from = msg->msg_iov[i].iov_base;
		size_t n = msg->msg_iov[i].iov_len;

		for (size_t k = 0; k < n && len + k < want; k++)
			front[len + k] = from[k];
		len += n;
	}
	return len;
}

/* Checks that come before anything is allocated. `front` holds the first bytes of msg. */
static int
check_message(
	const struct sl_psock *s, const struct psock_dest *dest, size_t len, const uint8_t *front)
{
	size_t packet = len - s->vnet_size;

	if (len < s->vnet_size)
		return -EINVAL;
	if (s->vnet_size == 0 && packet > psock_tx_cap(s, dest))
		return -EMSGSIZE;
	if (packet > PACKET_MAX - HEADER_LEN)
		return -EMSGSIZE;
	if (packet < own_header(s))
		return -EINVAL;
	if (s->vnet_size == 0 && psock_longer_than_mtu(s, dest, (uint32_t)packet, front))
		return -EMSGSIZE;
	return 0;
}

static int
fill_packet(struct sl_psock *s, const struct psock_dest *dest, const struct msghdr *msg,
	const uint8_t *front, struct rte_mbuf *m)
{
	int ret = 0;

	if (s->type == SOCK_DGRAM)
		ret = psock_header(dest, (uint8_t *)rte_pktmbuf_append(m, HEADER_LEN));
	if (ret == 0)
		ret = gather(s, msg, s->vnet_size, m);
	if (ret == 0 && s->vnet_size != 0)
		ret = psock_offload(dest, m, front);
	return ret;
}

/* Show what is sent to the other sockets on the port. */
void
psock_show_sent(struct sl_psock *s, const struct psock_dest *dest, uint16_t worker,
	struct rte_mbuf **pkts, uint16_t n)
{
	bool is_worker = worker != SL_PSOCK_NO_WORKER;

	/* A thread that takes no part in grace periods keeps tables from being replaced instead. */
	if (!is_worker)
		pthread_mutex_lock(&s->net->lock);
	psock_show(s->net, worker, dest->port->conf.port_id, 0, pkts, n, true, s);
	if (!is_worker)
		pthread_mutex_unlock(&s->net->lock);
}

static ssize_t
send_one(struct sl_psock *s, const struct msghdr *msg, uint16_t worker)
{
	uint8_t front[HEADER_LEN + SL_PKTRING_VNET_MAX] = {0};
	size_t len = msg_bytes(msg, front, sizeof(front));
	struct psock_dest dest;
	struct rte_mbuf *m;
	int ret;

	ret = psock_dest(s, msg, &dest);
	if (ret == 0)
		ret = check_message(s, &dest, len, front + s->vnet_size);
	if (ret != 0)
		return ret;
	m = rte_pktmbuf_alloc(s->net->conf.pool);
	if (m == NULL)
		return -ENOBUFS;
	ret = fill_packet(s, &dest, msg, front, m);
	if (ret == 0) {
		psock_show_sent(s, &dest, worker, &m, 1);
		ret = psock_tx_burst(&dest, worker, &m, 1) == 1 ? 0 : -ENOBUFS;
	}
	if (ret != 0) {
		rte_pktmbuf_free(m);
		return ret;
	}
	return (ssize_t)len;
}

ssize_t
sl_psock_sendmsg(struct sl_psock *s, const struct msghdr *msg, int flags, uint16_t worker)
{
	if (msg == NULL)
		return -EFAULT;
	/* Set up and taken away by control calls, which no send may run beside. */
	if (sl_load_acquire(&s->tx) != NULL) /* PS5 */
		return psock_ring_send(s, msg, flags, worker);
	return send_one(s, msg, worker);
}
