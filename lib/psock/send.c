/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "psock_priv.h"

#define VLAN_LEN 4
#define PACKET_MAX 65535u /* what an mbuf's length can say */

int
psock_msg_check(const struct msghdr *msg)
{
	if (msg == NULL)
		return -EFAULT;
	if (msg->msg_name != NULL && (int)msg->msg_namelen < 0)
		return -EINVAL;
	if (msg->msg_iovlen > UIO_MAXIOV)
		return -EMSGSIZE;
	if (msg->msg_iovlen > 0 && msg->msg_iov == NULL)
		return -EFAULT;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > SSIZE_MAX)
			return -EINVAL;
	}
	return 0;
}

static int
dest_spkt(struct sl_psock *s, const struct msghdr *msg, struct psock_dest *dest)
{
	char name[RTE_ETH_NAME_MAX_LEN] = {0};
	struct sockaddr_pkt pkt = {0};
	uint16_t port_id;

	if (msg->msg_name == NULL || msg->msg_namelen == 0)
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

	if (msg->msg_name == NULL || msg->msg_namelen == 0) {
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

/* How many bytes msg has, SIZE_MAX if more than can be said, and the first of them. */
static size_t
msg_bytes(const struct msghdr *msg, uint8_t *front, size_t want)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const uint8_t *from = msg->msg_iov[i].iov_base;
		size_t n = msg->msg_iov[i].iov_len;

		for (size_t k = 0; k < n && len < want && k < want - len; k++)
			front[len + k] = from[k];
		len = n > SIZE_MAX - len ? SIZE_MAX : len + n;
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

/* As psock_offload. */
static int
fill_packet(struct sl_psock *s, const struct psock_dest *dest, const struct msghdr *msg,
	const uint8_t *front, struct rte_mbuf *m, struct sl_vnet_cut *cut)
{
	int ret = 0;

	if (s->type == SOCK_DGRAM)
		ret = psock_header(dest, (uint8_t *)rte_pktmbuf_append(m, HEADER_LEN));
	if (ret == 0)
		ret = gather(s, msg, s->vnet_size, m);
	if (ret == 0 && s->vnet_size != 0)
		ret = psock_offload(dest, m, front, cut);
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

/* A request to be segmented here: as much of it as the port takes now. Nothing waits here, so the
 * rest is dropped and counted. */
static int
send_cut(struct sl_psock *s, struct psock_cut *c, uint16_t worker)
{
	bool begun;

	while (c->whole != NULL && psock_cut_send(s, c, worker) > 0)
		;
	begun = c->whole == NULL || c->next > 0;
	psock_cut_end(s, c);
	return begun ? 0 : -ENOBUFS;
}

static ssize_t
send_one(struct sl_psock *s, const struct msghdr *msg, uint16_t worker)
{
	uint8_t front[HEADER_LEN + SL_PKTRING_VNET_MAX] = {0};
	size_t len = msg_bytes(msg, front, sizeof(front));
	struct psock_cut cut = {0};
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
	ret = fill_packet(s, &dest, msg, front, m, &cut.cut);
	if (ret == 1) {
		cut.whole = m;
		cut.port = dest.port;
		ret = send_cut(s, &cut, worker);
		return ret == 0 ? (ssize_t)len : ret;
	}
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
	int ret = psock_msg_check(msg);

	if (ret != 0)
		return ret;
	if (worker != SL_PSOCK_NO_WORKER && worker >= s->net->conf.workers)
		return -EINVAL;
	/* Set up and taken away by control calls, which no send may run beside. */
	if (sl_load_acquire(&s->tx) != NULL) /* PS5 */
		return psock_ring_send(s, msg, flags, worker);
	return send_one(s, msg, worker);
}
