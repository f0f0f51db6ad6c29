/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "udp_priv.h"

#define FLAGS_KNOWN (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM)
/* As Linux caps sendmmsg. */
#define SENDMMSG_MAX 1024u
/* Room for the headers that sl_inet_udp_output puts in front. */
#define HEADROOM 128u

/* Where the next bytes to send are. */
struct source {
	const struct iovec *iov;
	size_t at; /* into *iov */
};

static int
take(const struct sl_udp_sock *s, struct source *from, uint8_t *to, size_t n)
{
	int ret = 0;

	while (n > 0 && ret == 0) {
		size_t k = RTE_MIN(n, from->iov->iov_len - from->at);

		if (k > 0) /* an empty piece may have no address at all */
			ret = udp_get(s, to, (const uint8_t *)from->iov->iov_base + from->at, k);
		to += k;
		n -= k;
		from->at += k;
		if (from->at == from->iov->iov_len) {
			from->iov++;
			from->at = 0;
		}
	}
	return ret;
}

/* Build a packet of `len` bytes, in as many segments as the pool's buffers make it. */
static int
build(const struct sl_udp_sock *s, const struct iovec *iov, size_t len, struct rte_mbuf **out)
{
	struct rte_mempool *pool = s->udp->pool;
	struct rte_mbuf *first = pool != NULL ? rte_pktmbuf_alloc(pool) : NULL, *m = first;
	struct source from = {.iov = iov};
	int ret = 0;

	if (first == NULL || rte_pktmbuf_tailroom(first) + rte_pktmbuf_headroom(first) < HEADROOM) {
		rte_pktmbuf_free(first);
		return -ENOBUFS;
	}
	first->data_off = RTE_MAX(first->data_off, (uint16_t)HEADROOM);
	for (;;) {
		uint16_t n = (uint16_t)RTE_MIN((size_t)rte_pktmbuf_tailroom(m), len);

		ret = take(s, &from, rte_pktmbuf_mtod(m, uint8_t *), n);
		if (ret != 0)
			break;
		m->data_len = n;
		first->pkt_len += n;
		len -= n;
		if (len == 0) {
			*out = first;
			return 0;
		}
		m->next = rte_pktmbuf_alloc(pool);
		if (m->next == NULL) {
			ret = -ENOBUFS;
			break;
		}
		m = m->next;
		m->data_off = 0; /* no headers go in front of it */
		first->nb_segs++;
	}
	rte_pktmbuf_free(first);
	return ret;
}

/* The destination that a call names. 0 and *named, or -errno as sendto(2). */
static int
dest_get(const struct sl_udp_sock *s, const void *name, socklen_t namelen,
	struct sl_inet_flow *flow, bool *named)
{
	struct sockaddr_storage sa;
	int ret;

	*named = false;
	if (name == NULL)
		return 0;
	ret = udp_name_get(s, name, namelen, &sa);
	if (ret == 0 && namelen < sizeof(sa.ss_family))
		ret = -EINVAL;
	if (ret != 0)
		return ret;
	if (sa.ss_family == AF_UNSPEC) {
		if (s->conf.family == AF_INET6)
			return 0; /* as if there were none */
		sa.ss_family = AF_INET;
	}
	ret = udp_addr_get(s, (const struct sockaddr *)&sa, namelen, &flow->dst, &flow->dport);
	if (ret != 0)
		return ret;
	if (s->conf.v6only && sl_addr_is_v4(&flow->dst))
		return -ENETUNREACH;
	*named = true;
	return flow->dport != 0 ? 0 : -EINVAL;
}

/* Fill in the rest of the flow: the peer if none was named, and our end. */
static int
flow_complete(struct sl_udp_sock *s, uint16_t worker, struct sl_inet_flow *flow, bool named)
{
	struct udp_names names;
	int ret;

	udp_names_read(s, &names);
	if (!named && !names.connected)
		return -EDESTADDRREQ;
	if (names.lport == 0) {
		ret = udp_autobind(s);
		if (ret != 0)
			return ret == -EADDRINUSE ? -EAGAIN : ret;
		udp_names_read(s, &names);
	}
	if (!named) {
		flow->dst = names.remote;
		flow->dport = names.rport;
		if (names.rport == 0)
			return -EINVAL;
	}
	flow->sport = names.lport;
	if (names.no_source)
		return sl_inet_worker_source(s->udp->inet, worker, &flow->dst, &flow->src);
	flow->src = names.local;
	if (SL_LIKELY(sl_addr_is_v4(&flow->src) == sl_addr_is_v4(&flow->dst)))
		return 0;
	/* What connect chose for the peer's family does not keep others out, what bind named does. */
	if (!sl_addr_is_any(&names.bound))
		return -ENETUNREACH;
	return sl_inet_worker_source(s->udp->inet, worker, &flow->dst, &flow->src);
}

/* The error that ICMP left, if any. After a call's first message it stays where it is, for the next
 * call to meet: this one's result is how many were sent. */
static int
pending_error(struct sl_udp_sock *s, bool first)
{
	return first ? sl_udp_take_error(s) : sl_load_relaxed(&s->error);
}

static ssize_t
send_iov(struct sl_udp_sock *s, uint16_t worker, const struct iovec *iov, size_t iovlen,
	const void *name, socklen_t namelen, bool first)
{
	struct sl_inet_flow flow = {0};
	struct rte_mbuf *m = NULL;
	size_t len = 0;
	bool named;
	int ret;

	for (size_t i = 0; i < iovlen; i++) {
		if (iov[i].iov_len > UDP_PAYLOAD_MAX - len)
			return -EMSGSIZE;
		len += iov[i].iov_len;
	}
	ret = dest_get(s, name, namelen, &flow, &named);
	if (ret == 0)
		ret = flow_complete(s, worker, &flow, named);
	if (ret == 0)
		ret = pending_error(s, first);
	if (ret == 0)
		ret = build(s, iov, len, &m);
	if (ret != 0)
		return ret;
	ret = sl_inet_udp_output(s->udp->inet, worker, &flow, m);
	if (ret != 0) {
		rte_pktmbuf_free(m);
		return ret;
	}
	return (ssize_t)len;
}

/* A thread that is no worker has nothing to send with. */
static int
call_check(const struct sl_udp_sock *s, uint16_t worker, int flags)
{
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (sl_load_relaxed(&s->closing) != 0)
		return -EBADF;
	return (flags & ~FLAGS_KNOWN) != 0 || worker >= s->udp->workers ? -EINVAL : 0;
}

ssize_t
sl_udp_sendto(struct sl_udp_sock *s, uint16_t worker, const void *buf, size_t len, int flags,
	const struct sockaddr *addr, socklen_t addrlen)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	int ret = call_check(s, worker, flags);

	return ret != 0 ? ret : send_iov(s, worker, &iov, 1, addr, addrlen, true);
}

/* One message: 0 and its msg_len, or -errno. */
static int
send_msg(struct sl_udp_sock *s, uint16_t worker, struct mmsghdr *user, bool first)
{
	struct iovec room[UDP_IOV_MAX];
	const struct iovec *iov;
	unsigned int sent;
	struct msghdr m;
	ssize_t len;
	int ret = udp_get(s, &m, &user->msg_hdr, sizeof(m));

	if (ret == 0)
		ret = udp_iov_get(s, &m, room, &iov);
	/* A request in a control message is refused rather than passed over in silence. */
	if (ret == 0 && m.msg_control != NULL && m.msg_controllen != 0)
		ret = -EINVAL;
	if (ret != 0)
		return ret;
	if (m.msg_namelen == 0)
		m.msg_name = NULL; /* as sendmsg(2), where sendto(2) says EINVAL */
	if (m.msg_name != NULL && (int)m.msg_namelen >= 0)
		m.msg_namelen = RTE_MIN(m.msg_namelen, (socklen_t)sizeof(struct sockaddr_storage));
	len = send_iov(s, worker, iov, m.msg_iovlen, m.msg_name, m.msg_namelen, first);
	if (len < 0)
		return (int)len;
	sent = (unsigned int)len;
	return udp_put(s, &user->msg_len, &sent, sizeof(sent));
}

int
sl_udp_sendmmsg(
	struct sl_udp_sock *s, uint16_t worker, struct mmsghdr *msgs, unsigned int vlen, int flags)
{
	int ret = call_check(s, worker, flags);
	unsigned int i;

	if (ret != 0)
		return ret;
	vlen = RTE_MIN(vlen, SENDMMSG_MAX);
	for (i = 0; i < vlen && ret == 0; i++)
		ret = send_msg(s, worker, &msgs[i], i == 0);
	/* What stopped it after the first is met again by the call that starts there. */
	return ret != 0 ? (i > 1 ? (int)i - 1 : ret) : (int)i;
}
