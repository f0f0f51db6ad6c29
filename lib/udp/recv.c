/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The receive calls. All take the datagrams of a call from the queue in bursts: peek at up to 64,
 * copy out one after the other, release those that are done at once and free their mbufs at once.
 * A failure at datagram k therefore leaves k+1.. where they are.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "sl_udpq_mbuf.h"
#include "udp_priv.h"

#define FLAGS_KNOWN (MSG_DONTWAIT | MSG_WAITFORONE | MSG_TRUNC | MSG_PEEK)
/* How far ahead of the copy the payload and the caller's message are fetched. */
#define AHEAD 4

/* What one call has done to the counters: added up here, written once. */
struct tally {
	uint64_t datagrams;
	uint64_t bytes;
	uint64_t truncated;
	uint64_t faults;
};

static void
tally_add(struct sl_udp_sock *s, const struct tally *t)
{
	sl_counter_add(&s->datagrams, t->datagrams);
	sl_counter_add(&s->bytes, t->bytes);
	if (SL_UNLIKELY(t->truncated != 0))
		sl_counter_add(&s->truncated, t->truncated);
	if (SL_UNLIKELY(t->faults != 0))
		sl_counter_add(&s->faults, t->faults);
}

/* Take n datagrams off the queue and free them; bufs: theirs. */
static void
consume(struct sl_udp_sock *s, void **bufs, uint16_t n)
{
	sl_udpq_release_burst(s->queue, n);
	sl_udpq_free_mbufs(bufs, n);
}

/* The name, where the buffer has room for all of it. */
static inline bool
name_fast(const struct sl_udp_sock *s, const struct sl_dgram *d, struct msghdr *m)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = d->sport};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = d->sport};

	if (s->conf.family == AF_INET && m->msg_namelen - sizeof(sin) <= INT_MAX - sizeof(sin)) {
		memcpy(&sin.sin_addr, d->src + 12, sizeof(sin.sin_addr));
		memcpy(m->msg_name, &sin, sizeof(sin));
		m->msg_namelen = sizeof(sin);
		return true;
	}
	/* A link-local address has a scope, which udp_msg_fill knows how to give. */
	if (s->conf.family == AF_INET6 && d->src[0] != 0xfe &&
		m->msg_namelen - sizeof(sin6) <= INT_MAX - sizeof(sin6)) {
		memcpy(&sin6.sin6_addr, d->src, sizeof(sin6.sin6_addr));
		memcpy(m->msg_name, &sin6, sizeof(sin6));
		m->msg_namelen = sizeof(sin6);
		return true;
	}
	return false;
}

/* Most datagrams: one buffer that is large enough, no control messages, memory that is not in doubt:
 * the socket is plain. Inlined, since it is most of what a receive call does. */
static inline __attribute__((always_inline)) bool
fill_fast(const struct sl_udp_sock *s, const struct sl_dgram *d, struct msghdr *m)
{
	const struct iovec *iov = m->msg_iov;
	size_t n = d->len, room = iov->iov_len;

	if (SL_UNLIKELY(d->aux == 0 || m->msg_iovlen != 1 || room < n || room > SSIZE_MAX))
		return false;
	if (SL_UNLIKELY(m->msg_name != NULL) && !name_fast(s, d, m))
		return false;
	udp_copy(iov->iov_base, (const uint8_t *)(uintptr_t)d->aux, n);
	m->msg_controllen = 0;
	m->msg_flags = 0;
	return true;
}

/* Addresses in the caller's array, which with a guarded socket may lie anywhere, at any alignment.
 */
static inline struct msghdr *
header_at(struct mmsghdr *msgs, unsigned int i)
{
	return (void *)((char *)msgs + i * sizeof(*msgs) + offsetof(struct mmsghdr, msg_hdr));
}

static inline unsigned int *
length_at(struct mmsghdr *msgs, unsigned int i)
{
	return (void *)((char *)msgs + i * sizeof(*msgs) + offsetof(struct mmsghdr, msg_len));
}

/* Deliver as many from the front as are of the common kind. Returns how many. `far`: what is to be
 * read was written by another core. */
static inline __attribute__((always_inline)) uint16_t
fill_run(const struct sl_udp_sock *s, const struct sl_dgram *d, uint16_t n, struct mmsghdr *msgs,
	void **bufs, struct tally *t, bool far)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		/* The last ones again, which costs less than to ask. */
		const struct sl_dgram *ahead = &d[RTE_MIN(i + AHEAD, n - 1u)];

		if (far) {
			rte_prefetch0((const void *)(uintptr_t)ahead->aux);
			rte_prefetch0(ahead->buf);
		}
		if (SL_UNLIKELY(!fill_fast(s, &d[i], &msgs[i].msg_hdr)))
			break;
		msgs[i].msg_len = d[i].len;
		bufs[i] = d[i].buf;
		bytes += d[i].len;
	}
	t->bytes += bytes;
	return (uint16_t)i;
}

static uint16_t
fill_common(const struct sl_udp_sock *s, const struct sl_dgram *d, uint16_t n, struct mmsghdr *msgs,
	void **bufs, struct tally *t)
{
	/* A guarded socket's message may be no memory: nothing of it is touched before this test.
	 */
	if (!s->plain)
		return 0;
	return s->worker != NULL ? fill_run(s, d, n, msgs, bufs, t, false)
				 : fill_run(s, d, n, msgs, bufs, t, true);
}

/* Deliver what is queued, up to a burst, without waiting. Returns the messages filled; *error: what
 * stopped it before the last. */
static unsigned int
recv_queued(struct sl_udp_sock *s, struct mmsghdr *msgs, unsigned int vlen, int flags, int *error)
{
	struct tally t = {0};
	struct udp_filled out = {0};
	void *bufs[SL_UDPQ_BURST_MAX];
	struct sl_dgram *d;
	uint16_t n, i = 0;

	n = sl_udpq_peek_burst(s->queue, (uint16_t)RTE_MIN(vlen, SL_UDPQ_BURST_MAX), &d);
	for (;;) {
		i = (uint16_t)(i + fill_common(
				     s, d + i, (uint16_t)(n - i), msgs + i, bufs + i, &t));
		if (i == n)
			break;
		bufs[i] = d[i].buf;
		*error =
			udp_msg_fill(s, &d[i], header_at(msgs, i), length_at(msgs, i), flags, &out);
		if (*error != 0)
			break;
		t.bytes += d[i++].len;
		t.truncated += out.truncated;
	}
	t.datagrams = i;
	t.faults = i < n && out.lost;
	consume(s, bufs, (uint16_t)(i + t.faults));
	tally_add(s, &t);
	return i;
}

/* With MSG_PEEK each message shows the same datagram, which stays. */
static unsigned int
peek_queued(struct sl_udp_sock *s, struct mmsghdr *msgs, unsigned int vlen, int flags, int *error)
{
	struct udp_filled out;
	struct sl_dgram *d;
	unsigned int i;

	if (sl_udpq_peek_burst(s->queue, 1, &d) == 0)
		return 0;
	for (i = 0; i < vlen; i++) {
		*error = udp_msg_fill(s, d, header_at(msgs, i), length_at(msgs, i), flags, &out);
		if (*error != 0)
			break;
	}
	return i;
}

/* The call's result. An error after the first datagram waits for the next call; that nothing more
 * came, or a signal did, is no error then. */
static int
recv_result(struct sl_udp_sock *s, unsigned int done, int error)
{
	if (done == 0)
		return error;
	if (error != 0 && error != -EAGAIN && error != -EINTR && error != -EBADF)
		s->fault = error;
	return (int)done;
}

static int
recv_many(
	struct sl_udp_sock *s, struct mmsghdr *msgs, unsigned int vlen, int flags, int64_t deadline)
{
	unsigned int done = 0, k;
	/* The one bad address that cannot even be counted up from. */
	int error = msgs == NULL && vlen > 0 ? -EFAULT : 0;

	while (done < vlen && error == 0) {
		if (flags & MSG_PEEK)
			k = peek_queued(s, msgs + done, vlen - done, flags, &error);
		else
			k = recv_queued(s, msgs + done, vlen - done, flags, &error);
		done += k;
		if (error != 0 || done == vlen)
			break;
		if (k > 0) {
			if (flags & MSG_WAITFORONE)
				flags |= MSG_DONTWAIT;
			if (deadline >= 0 && udp_now_ns() >= deadline)
				break;
			continue;
		}
		/* Linux looks at the message before it waits for a datagram to put there. */
		error = udp_msg_check(s, header_at(msgs, done));
		if (error == 0)
			error = udp_wait(s, flags, deadline, done == 0);
	}
	return recv_result(s, done, error);
}

/* *deadline: below 0 for none. */
static int
deadline_get(const struct sl_udp_sock *s, const struct timespec *timeout, int64_t *deadline)
{
	struct timespec ts;
	int64_t now;
	int ret;

	*deadline = -1;
	if (timeout == NULL)
		return 0;
	ret = udp_get(s, &ts, timeout, sizeof(ts));
	if (ret != 0)
		return ret;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= NSEC_PER_SEC)
		return -EINVAL;
	now = udp_now_ns();
	if (ts.tv_sec >= (INT64_MAX - now) / NSEC_PER_SEC - 1)
		*deadline = INT64_MAX;
	else
		*deadline = now + ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
	return 0;
}

static int
timeout_put(const struct sl_udp_sock *s, int64_t deadline, struct timespec *timeout)
{
	int64_t left = deadline - udp_now_ns();
	struct timespec ts;

	left = left < 0 ? 0 : left;
	ts = (struct timespec){.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
	return udp_put(s, timeout, &ts, sizeof(ts));
}

int
sl_udp_recvmmsg(struct sl_udp_sock *s, struct mmsghdr *msgs, unsigned int vlen, int flags,
	struct timespec *timeout)
{
	int64_t deadline;
	int ret;

	if (flags & ~FLAGS_KNOWN)
		return -EINVAL;
	ret = deadline_get(s, timeout, &deadline);
	if (ret == 0)
		ret = udp_reader_enter(s, flags);
	if (ret != 0)
		return ret;
	ret = udp_pending(s);
	if (ret == 0)
		ret = recv_many(s, msgs, RTE_MIN(vlen, (unsigned int)INT_MAX), flags, deadline);
	udp_reader_leave(s);
	if (ret > 0 && timeout != NULL) {
		int error = timeout_put(s, deadline, timeout);

		ret = error != 0 ? error : ret;
	}
	return ret;
}

/* The next datagram, waited for if that is allowed. 0; -errno. */
static int
head(struct sl_udp_sock *s, int flags, struct sl_dgram **d)
{
	int ret = udp_pending(s);

	while (ret == 0 && sl_udpq_peek_burst(s->queue, 1, d) == 0)
		ret = udp_wait(s, flags, -1, true);
	return ret;
}

/* A single receive is over: count, and take the datagram off the queue unless it stays. */
static ssize_t
settle(struct sl_udp_sock *s, const struct sl_dgram *d, int flags, const struct udp_filled *out,
	int error)
{
	struct tally t = {0};

	if (flags & MSG_PEEK)
		return error != 0 ? error : (ssize_t)out->len;
	if (error == 0) {
		t = (struct tally){.datagrams = 1, .bytes = d->len, .truncated = out->truncated};
	} else {
		t.faults = out->lost;
	}
	tally_add(s, &t);
	if (error == 0 || out->lost) {
		void *buf = d->buf;

		consume(s, &buf, 1);
	}
	return error != 0 ? error : (ssize_t)out->len;
}

ssize_t
sl_udp_recvmsg(struct sl_udp_sock *s, struct msghdr *msg, int flags)
{
	struct udp_filled out = {0};
	struct sl_dgram *d;
	ssize_t ret;

	if (flags & ~FLAGS_KNOWN)
		return -EINVAL;
	ret = udp_reader_enter(s, flags);
	if (ret != 0)
		return ret;
	ret = udp_msg_check(s, msg);
	if (ret == 0)
		ret = head(s, flags, &d);
	if (ret == 0) {
		int error = 0;

		out.len = d->len;
		if (!s->plain || !fill_fast(s, d, msg))
			error = udp_msg_fill(s, d, msg, NULL, flags, &out);
		ret = settle(s, d, flags, &out, error);
	}
	udp_reader_leave(s);
	return ret;
}

/* Payload and name to where recvfrom wants them. */
static int
fill_from(const struct sl_udp_sock *s, const struct sl_dgram *d, const struct iovec *iov, int flags,
	struct sockaddr *addr, socklen_t *addrlen, struct udp_filled *out)
{
	size_t copied;
	int ret = udp_scatter(s, d, iov, 1, &copied);

	if (ret == 0 && addr != NULL)
		ret = udp_put_name(s, d, addr, addrlen);
	out->truncated = copied < d->len;
	out->len = flags & MSG_TRUNC ? d->len : copied;
	out->lost = ret != 0;
	return ret;
}

ssize_t
sl_udp_recvfrom(struct sl_udp_sock *s, void *buf, size_t len, int flags, struct sockaddr *addr,
	socklen_t *addrlen)
{
	struct iovec iov = {.iov_base = buf, .iov_len = RTE_MIN(len, (size_t)INT_MAX)};
	struct udp_filled out = {0};
	struct sl_dgram *d;
	ssize_t ret;

	if (flags & ~FLAGS_KNOWN)
		return -EINVAL;
	ret = udp_reader_enter(s, flags);
	if (ret != 0)
		return ret;
	if (s->conf.guarded && !udp_user_range(buf, iov.iov_len))
		ret = -EFAULT;
	if (ret == 0)
		ret = head(s, flags, &d);
	if (ret == 0)
		ret = settle(s, d, flags, &out, fill_from(s, d, &iov, flags, addr, addrlen, &out));
	udp_reader_leave(s);
	return ret;
}

ssize_t
sl_udp_read(struct sl_udp_sock *s, void *buf, size_t len)
{
	/* As Linux: no memory is that long. */
	if (len > SSIZE_MAX)
		return -EFAULT;
	/* As on Linux: nothing is asked for, so no datagram is spent. */
	return len == 0 ? 0 : sl_udp_recvfrom(s, buf, len, 0, NULL, NULL);
}

int
sl_udp_recv_burst(struct sl_udp_sock *s, struct sl_dgram *dgrams, uint16_t n)
{
	struct tally t = {0};
	struct sl_dgram *d;
	uint16_t shown;
	int ret = udp_reader_enter(s, 0);

	if (ret != 0)
		return ret;
	ret = udp_pending(s);
	if (ret == 0) {
		shown = sl_udpq_peek_burst(s->queue, n, &d);
		memcpy(dgrams, d, shown * sizeof(*d));
		for (uint16_t i = 0; i < shown; i++)
			t.bytes += dgrams[i].len;
		t.datagrams = shown;
		sl_udpq_release_burst(s->queue, shown);
		tally_add(s, &t);
		ret = shown;
	}
	udp_reader_leave(s);
	return ret;
}
