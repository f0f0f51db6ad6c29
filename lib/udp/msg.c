/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * One datagram into one struct msghdr, with every option. What Linux checks before it looks for a
 * datagram is checked first and costs nothing (a refused header); what fails while the result is
 * written costs the datagram.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>

#include "udp_priv.h"

/* The caller's control buffer while it fills. */
struct control {
	uint8_t *at;
	size_t left;
	int flags;
};

/* A control buffer that cannot be written to is passed over in silence, as on Linux. */
static void
put_cmsg(const struct sl_udp_sock *s, struct control *c, int level, int type, const void *data,
	size_t len)
{
	uint8_t built[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	size_t whole = CMSG_LEN(len);
	struct cmsghdr *h = (struct cmsghdr *)built;

	if (c->at == NULL || c->left < sizeof(*h)) {
		c->flags |= MSG_CTRUNC;
		return;
	}
	if (c->left < whole) {
		c->flags |= MSG_CTRUNC;
		whole = c->left;
	}
	h->cmsg_level = level;
	h->cmsg_type = type;
	h->cmsg_len = whole;
	memcpy(CMSG_DATA(h), data, len);
	if (udp_put(s, c->at, built, whole) != 0)
		return;
	whole = RTE_MIN(CMSG_SPACE(len), c->left);
	c->at += whole;
	c->left -= whole;
}

static void
put_v6_only(const struct sl_udp_sock *s, const struct sl_dgram *d, struct control *c)
{
	int ttl = d->ttl, tos = d->tos;

	if (s->conf.recv_ttl)
		put_cmsg(s, c, IPPROTO_IPV6, IPV6_HOPLIMIT, &ttl, sizeof(ttl));
	if (s->conf.recv_tos)
		put_cmsg(s, c, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

static void
put_v4(const struct sl_udp_sock *s, const struct sl_dgram *d, struct control *c)
{
	int ttl = d->ttl;

	if (s->conf.recv_ttl)
		put_cmsg(s, c, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	if (s->conf.recv_tos)
		put_cmsg(s, c, IPPROTO_IP, IP_TOS, &d->tos, sizeof(d->tos));
}

static void
put_pktinfo(const struct sl_udp_sock *s, const struct sl_dgram *d, const struct sl_addr *dst,
	struct control *c)
{
	struct in6_pktinfo info6 = {.ipi6_ifindex = d->port};
	struct in_pktinfo info4 = {.ipi_ifindex = d->port};

	if (s->conf.family == AF_INET6) {
		memcpy(&info6.ipi6_addr, dst->b, sizeof(dst->b));
		put_cmsg(s, c, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
		return;
	}
	info4.ipi_addr.s_addr = sl_addr_to_v4(dst);
	if (!sl_addr_is_multicast(dst) && info4.ipi_addr.s_addr != INADDR_BROADCAST)
		info4.ipi_spec_dst = info4.ipi_addr;
	put_cmsg(s, c, IPPROTO_IP, IP_PKTINFO, &info4, sizeof(info4));
}

static void
put_control(const struct sl_udp_sock *s, const struct sl_dgram *d, struct control *c)
{
	struct sl_addr dst;

	memcpy(&dst, d->dst, sizeof(dst));
	if (s->conf.recv_pktinfo)
		put_pktinfo(s, d, &dst, c);
	if (sl_addr_is_v4(&dst))
		put_v4(s, d, c);
	else
		put_v6_only(s, d, c);
}

static int
header_get(const struct sl_udp_sock *s, const struct msghdr *user, struct msghdr *m)
{
	int ret = udp_get(s, m, user, sizeof(*m));

	if (ret == 0 && m->msg_name != NULL && (int)m->msg_namelen < 0)
		ret = -EINVAL;
	return ret;
}

int
udp_msg_check(const struct sl_udp_sock *s, const struct msghdr *user)
{
	struct iovec room[UDP_IOV_MAX];
	const struct iovec *iov;
	struct msghdr m;
	int ret = header_get(s, user, &m);

	return ret == 0 ? udp_iov_get(s, &m, room, &iov) : ret;
}

/* What is to be written back into the caller's message, in Linux's order. */
struct pieces {
	struct iovec to[5];
	struct iovec from[5];
	size_t n;
};

static void
add_piece(struct pieces *p, void *to, void *from, size_t len)
{
	p->to[p->n] = (struct iovec){.iov_base = to, .iov_len = len};
	p->from[p->n++] = (struct iovec){.iov_base = from, .iov_len = len};
}

/* All of the result but the payload. */
static int
fill_rest(const struct sl_udp_sock *s, const struct sl_dgram *d, const struct msghdr *m,
	struct msghdr *user, unsigned int *len, const struct udp_filled *out)
{
	struct control c = {.at = m->msg_control,
		.left = m->msg_controllen,
		.flags = out->truncated ? MSG_TRUNC : 0};
	unsigned int result = (unsigned int)out->len;
	struct pieces p = {.n = 0};
	struct sockaddr_storage sa;
	struct sl_addr src;
	socklen_t whole;
	size_t used;

	put_control(s, d, &c);
	used = (size_t)(c.at - (uint8_t *)m->msg_control);
	if (m->msg_name != NULL) {
		memcpy(&src, d->src, sizeof(src));
		whole = udp_addr_put(s, &src, d->sport, d->port, &sa);
		if (m->msg_namelen != 0)
			add_piece(&p, m->msg_name, &sa, RTE_MIN(m->msg_namelen, whole));
		add_piece(&p, &user->msg_namelen, &whole, sizeof(whole));
	}
	add_piece(&p, &user->msg_flags, &c.flags, sizeof(c.flags));
	add_piece(&p, &user->msg_controllen, &used, sizeof(used));
	if (len != NULL)
		add_piece(&p, len, &result, sizeof(result));
	return udp_put_all(s, p.to, p.from, p.n);
}

int
udp_msg_fill(const struct sl_udp_sock *s, const struct sl_dgram *d, struct msghdr *user,
	unsigned int *len, int flags, struct udp_filled *out)
{
	struct iovec room[UDP_IOV_MAX];
	const struct iovec *iov;
	struct msghdr m;
	size_t copied;
	int ret;

	out->lost = false;
	ret = header_get(s, user, &m);
	if (ret == 0)
		ret = udp_iov_get(s, &m, room, &iov);
	if (ret != 0)
		return ret;
	ret = udp_scatter(s, d, iov, m.msg_iovlen, &copied);
	out->truncated = copied < d->len;
	out->len = flags & MSG_TRUNC ? d->len : copied;
	if (ret == 0)
		ret = fill_rest(s, d, &m, user, len, out);
	out->lost = ret != 0;
	return ret;
}
