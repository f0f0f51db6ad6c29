/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/sockios.h>

#include "psock_priv.h"

#define FLAGS_KNOWN (MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_ERRQUEUE)

void
psock_note_put(struct sl_dgram *d, const struct sockaddr_ll *from, const struct psock_note *note)
{
	_Static_assert(sizeof(*note) <= sizeof(d->dst), "a note must fit a descriptor");
	d->sport = from->sll_protocol;
	d->port = (uint16_t)(from->sll_ifindex - 1);
	d->ttl = from->sll_pkttype;
	memcpy(d->src, from->sll_addr, MAC_LEN);
	memcpy(d->dst, note, sizeof(*note));
}

void
psock_note_get(const struct sl_dgram *d, struct sockaddr_ll *from, struct psock_note *note)
{
	*from = (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_protocol = d->sport,
		.sll_ifindex = d->port + 1,
		.sll_hatype = 1,
		.sll_pkttype = d->ttl,
		.sll_halen = MAC_LEN};
	memcpy(from->sll_addr, d->src, MAC_LEN);
	memcpy(note, d->dst, sizeof(*note));
}

/* A place in msg's data. */
struct cursor {
	const struct msghdr *msg;
	size_t vec, at;
};

/* Copy as much of n bytes as there is room for. */
static size_t
put(struct cursor *c, const uint8_t *from, size_t n)
{
	size_t done = 0;

	while (done < n && c->vec < c->msg->msg_iovlen) {
		const struct iovec *v = &c->msg->msg_iov[c->vec];
		size_t part = RTE_MIN(n - done, v->iov_len - c->at);

		if (part > 0)
			memcpy((uint8_t *)v->iov_base + c->at, from + done, part);
		done += part;
		c->at += part;
		if (c->at == v->iov_len) {
			c->vec++;
			c->at = 0;
		}
	}
	return done;
}

static size_t
put_packet(struct cursor *c, const struct rte_mbuf *m, uint32_t len)
{
	size_t done = 0;

	for (; m != NULL && done < len; m = m->next) {
		size_t want = RTE_MIN((size_t)m->data_len, len - done);
		size_t got = put(c, rte_pktmbuf_mtod(m, const uint8_t *), want);

		done += got;
		if (got < want)
			break;
	}
	return done;
}

static void
put_name(const struct sl_psock *s, struct msghdr *msg, const struct sockaddr_ll *from)
{
	struct sockaddr_pkt pkt = {.spkt_family = 1, .spkt_protocol = from->sll_protocol};
	char name[RTE_ETH_NAME_MAX_LEN] = {0};
	const void *addr = from;
	socklen_t len = sizeof(*from);

	if (msg->msg_name == NULL) {
		msg->msg_namelen = 0;
		return;
	}
	if (s->type == SOCK_PACKET) {
		if (rte_eth_dev_get_name_by_port((uint16_t)(from->sll_ifindex - 1), name) == 0)
			memcpy(pkt.spkt_device, name, sizeof(pkt.spkt_device) - 1);
		addr = &pkt;
		len = sizeof(pkt);
	}
	memcpy(msg->msg_name, addr, RTE_MIN(msg->msg_namelen, len));
	msg->msg_namelen = len;
}

static void
put_auxdata(struct msghdr *msg, const struct sl_dgram *d, const struct psock_note *note)
{
	struct tpacket_auxdata aux = {.tp_status = note->status,
		.tp_len = note->wire_len,
		.tp_snaplen = d->len,
		.tp_net = note->net};
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (note->status & TP_STATUS_VLAN_VALID) {
		aux.tp_vlan_tci = note->vlan_tci;
		aux.tp_vlan_tpid = note->vlan_tpid;
	}
	if (c == NULL || msg->msg_controllen < CMSG_LEN(sizeof(aux))) {
		msg->msg_flags |= MSG_CTRUNC;
		msg->msg_controllen = 0;
		return;
	}
	c->cmsg_level = SOL_PACKET;
	c->cmsg_type = PACKET_AUXDATA;
	c->cmsg_len = CMSG_LEN(sizeof(aux));
	memcpy(CMSG_DATA(c), &aux, sizeof(aux));
	msg->msg_controllen = RTE_MIN(msg->msg_controllen, CMSG_SPACE(sizeof(aux)));
}

/* Hand one datagram out; it stays in the queue. */
static ssize_t
hand_out(struct sl_psock *s, const struct sl_dgram *d, struct msghdr *msg, int flags)
{
	struct cursor c = {.msg = msg};
	uint8_t vnet[SL_PKTRING_VNET_MAX];
	struct sockaddr_ll from;
	struct psock_note note;
	size_t copied;

	psock_note_get(d, &from, &note);
	if (s->vnet_size != 0) {
		sl_vnet_fill(vnet, s->vnet_size, note.csum_good);
		if (put(&c, vnet, s->vnet_size) < s->vnet_size)
			return -EINVAL;
	}
	copied = put_packet(&c, d->buf, d->len);
	msg->msg_flags = copied < d->len ? MSG_TRUNC : 0;
	put_name(s, msg, &from);
	if (sl_load_relaxed(&s->auxdata))
		put_auxdata(msg, d, &note);
	else
		msg->msg_controllen = 0;
	return (ssize_t)(s->vnet_size + (flags & MSG_TRUNC ? d->len : copied));
}

static int
take_error(struct sl_psock *s)
{
	if (sl_load_relaxed(&s->error) == 0)
		return 0;
	return -sl_exchange_acq_rel(&s->error, 0); /* PS3 */
}

/* Wait for the head of the queue; 1 when there is one. */
static int
wait_head(struct sl_psock *s, int flags, struct sl_dgram **d)
{
	int64_t limit = sl_load_relaxed(&s->rcvtimeo_ns);
	int ret;

	for (;;) {
		ret = take_error(s);
		if (ret != 0)
			return ret;
		if (sl_udpq_peek_burst(s->queue, 1, d) == 1)
			return 1;
		if (flags & MSG_DONTWAIT)
			return -EAGAIN;
		ret = sl_udpq_wait(s->queue, limit > 0 ? limit : -1);
		if (ret != 0 && ret != -ECANCELED)
			return ret;
	}
}

ssize_t
sl_psock_recvmsg(struct sl_psock *s, struct msghdr *msg, int flags)
{
	struct sl_dgram *d;
	ssize_t ret;
	int head = psock_msg_check(msg);

	if (head != 0)
		return head;
	if (flags & ~FLAGS_KNOWN)
		return -EINVAL;
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN; /* nothing is ever put there */
	head = wait_head(s, flags, &d);
	if (head < 0)
		return head;
	ret = hand_out(s, d, msg, flags);
	if (!(flags & MSG_PEEK)) {
		struct rte_mbuf *m = d->buf;

		sl_udpq_release_burst(s->queue, 1);
		rte_pktmbuf_free(m);
	}
	return ret;
}

short
sl_psock_events(struct sl_psock *s)
{
	struct sl_udpq_stats stats;
	short events = POLLOUT | POLLWRNORM; /* room to send without the ring never runs out */

	sl_udpq_stats(s->queue, UINT32_MAX, &stats);
	if (stats.appended != stats.released)
		events |= POLLIN | POLLRDNORM;
	if (s->rx != NULL && sl_pktring_rx_readable(s->rx))
		events |= POLLIN | POLLRDNORM;
	if (sl_load_acquire(&s->error) != 0) /* PS3 */
		events |= POLLERR;
	return events;
}

int
sl_psock_ioctl(struct sl_psock *s, unsigned long request, int *value)
{
	struct sl_dgram *d;

	if (value == NULL)
		return -EFAULT;
	switch (request) {
	case SIOCINQ:
		*value = sl_udpq_peek_burst(s->queue, 1, &d) == 1 ? (int)d->len : 0;
		return 0;
	case SIOCOUTQ:
		*value = s->tx != NULL ? (int)(sl_pktring_tx_pending(s->tx) *
						 sl_pktring_tx_geo(s->tx)->frame_size)
				       : 0;
		return 0;
	default:
		return -EINVAL;
	}
}
