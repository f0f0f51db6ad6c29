/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_pause.h>

#include "sink.h"
#include "sl_udpq_mbuf.h"

/* The TSC is read once in so many datagrams while there is always one waiting, so that its cost is
 * not measured along. */
#define STAMP_STRIDE 64

static const char *const names[SINK_CALLS] = {"recvmmsg", "recvmsg", "recvfrom", "read", "burst"};

const char *
sink_call_name(enum sink_call call)
{
	return names[call];
}

bool
sink_buffers_create(struct sink *s)
{
	s->bufs = aligned_alloc(SL_CACHE_LINE, (size_t)SINK_BATCH_MAX * SINK_STRIDE);
	s->control = calloc(SINK_BATCH_MAX, sizeof(*s->control));
	/* No access at all: a copy to it faults. */
	s->bad = mmap(NULL, SINK_BUF, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->bufs == NULL || s->control == NULL || s->bad == MAP_FAILED)
		return false;
	memset(s->bufs, 0, (size_t)SINK_BATCH_MAX * SINK_STRIDE);
	for (uint32_t i = 0; i < SINK_BATCH_MAX; i++) {
		struct msghdr *h = &s->msgs[i].msg_hdr;

		s->iov[i].iov_base = s->bufs + (size_t)i * SINK_STRIDE;
		s->iov[i].iov_len = SINK_BUF;
		h->msg_iov = &s->iov[i];
		h->msg_iovlen = 1;
	}
	return true;
}

void
sink_buffers_free(struct sink *s)
{
	free(s->bufs);
	free(s->control);
	if (s->bad != NULL && s->bad != MAP_FAILED)
		munmap(s->bad, SINK_BUF);
}

/* What a receive call changes in a message, put back before the next one. */
static void
arm(struct sink *s, unsigned int n)
{
	if (!s->opt->recv_ttl && !s->opt->recv_pktinfo)
		return;
	for (unsigned int i = 0; i < n; i++) {
		struct msghdr *h = &s->msgs[i].msg_hdr;

		h->msg_control = s->control[i];
		h->msg_controllen = SINK_CONTROL;
	}
}

static bool
is_bad(const struct sink *s, unsigned int i)
{
	return s->opt->bad_ptr != 0 && (s->position + i + 1) % s->opt->bad_ptr == 0;
}

static void
arm_bad(struct sink *s, unsigned int n)
{
	if (s->opt->bad_ptr == 0)
		return;
	for (unsigned int i = 0; i < n; i++)
		s->iov[i].iov_base =
			is_bad(s, i) ? s->bad : (void *)(s->bufs + (size_t)i * SINK_STRIDE);
}

static void
count_control(struct sink_row *r, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP;
		bool v6 = c->cmsg_level == IPPROTO_IPV6;
		int ttl;

		if ((v4 && c->cmsg_type == IP_PKTINFO) || (v6 && c->cmsg_type == IPV6_PKTINFO))
			r->with_pktinfo++;
		if (!(v4 && c->cmsg_type == IP_TTL) && !(v6 && c->cmsg_type == IPV6_HOPLIMIT))
			continue;
		memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
		if (r->with_ttl == 0 || ttl < r->ttl_min)
			r->ttl_min = ttl;
		if (r->with_ttl == 0 || ttl > r->ttl_max)
			r->ttl_max = ttl;
		r->with_ttl++;
	}
}

static void
use_payload(struct sink *s, const uint8_t *data, size_t len)
{
	s->row.bytes += len;
	if (s->opt->touch)
		for (size_t i = 0; i < len; i++)
			s->row.sum += data[i];
	if (s->check != NULL)
		payload_check_one(s->check, data, len);
}

/* What recvmmsg brought. */
static void
use_messages(struct sink *s, int n)
{
	bool look = s->opt->touch || s->check != NULL;
	uint64_t bytes = 0;

	for (int i = 0; i < n && !look; i++)
		bytes += s->msgs[i].msg_len;
	s->row.bytes += bytes;
	for (int i = 0; i < n && look; i++)
		use_payload(s, s->iov[i].iov_base, s->msgs[i].msg_len);
	for (int i = 0; i < n && s->msgs[i].msg_hdr.msg_control != NULL; i++)
		count_control(&s->row, &s->msgs[i].msg_hdr);
}

/* Datagrams came: the row's clock. */
static void
stamp(struct sink *s, unsigned int got, uint64_t max)
{
	struct sink_row *r = &s->row;

	r->count += got;
	r->calls++;
	s->position += got;
	if (r->first_count == 0) {
		r->first_tsc = rte_rdtsc();
		r->last_tsc = r->first_tsc;
		r->first_count = r->count;
		s->drained = false;
		return;
	}
	if (!s->drained && got < max && r->count - r->first_count - r->timed < STAMP_STRIDE)
		return;
	r->last_tsc = rte_rdtsc();
	r->timed = r->count - r->first_count;
	s->drained = false;
}

static int
do_recvmmsg(struct sink *s, unsigned int n)
{
	const struct sink_options *o = s->opt;
	struct timespec timeout = {o->timeout_ms / 1000, o->timeout_ms % 1000 * 1000000};
	int flags = (s->wait ? 0 : MSG_DONTWAIT) | (o->waitforone ? MSG_WAITFORONE : 0);
	int got;

	n = RTE_MIN(n, o->batch);
	arm(s, n);
	arm_bad(s, n);
	got = s->via->recvmmsg(s, n, flags, o->timeout_ms >= 0 ? &timeout : NULL);
	use_messages(s, got);
	return got;
}

static int
do_recvmsg(struct sink *s)
{
	ssize_t len;

	arm(s, 1);
	arm_bad(s, 1);
	len = s->via->recvmsg(s, s->wait ? 0 : MSG_DONTWAIT);
	if (len < 0)
		return (int)len;
	use_payload(s, s->iov[0].iov_base, (size_t)len);
	if (s->msgs[0].msg_hdr.msg_control != NULL)
		count_control(&s->row, &s->msgs[0].msg_hdr);
	return 1;
}

static int
do_recvfrom(struct sink *s)
{
	ssize_t len;

	arm_bad(s, 1);
	len = s->via->recvfrom(s, s->wait ? 0 : MSG_DONTWAIT);
	if (len < 0)
		return (int)len;
	use_payload(s, s->iov[0].iov_base, (size_t)len);
	return 1;
}

static int
do_read(struct sink *s)
{
	ssize_t len;

	arm_bad(s, 1);
	len = s->via->read(s);
	if (len < 0)
		return (int)len;
	use_payload(s, s->iov[0].iov_base, (size_t)len);
	return 1;
}

static int
do_burst(struct sink *s, unsigned int n)
{
	struct sl_dgram d[SL_UDPQ_BURST_MAX];
	void *bufs[SL_UDPQ_BURST_MAX];
	int got;

	n = RTE_MIN(n, RTE_MIN(s->opt->batch, (unsigned int)SL_UDPQ_BURST_MAX));
	got = sl_udp_recv_burst(s->sock, d, (uint16_t)n);
	for (int i = 0; i < got; i++) {
		const struct rte_mbuf *m = d[i].buf;

		bufs[i] = d[i].buf;
		if (rte_pktmbuf_data_len(m) >= d[i].len)
			use_payload(s, rte_pktmbuf_mtod(m, const uint8_t *), d[i].len);
		else
			use_payload(s, rte_pktmbuf_read(m, 0, RTE_MIN(d[i].len, SINK_BUF), s->bufs),
				RTE_MIN(d[i].len, SINK_BUF));
	}
	if (got > 0)
		sl_udpq_free_mbufs(bufs, (uint16_t)got);
	return got;
}

static int
own_recvmmsg(struct sink *s, unsigned int n, int flags, struct timespec *timeout)
{
	return sl_udp_recvmmsg(s->sock, s->msgs, n, flags, timeout);
}

static ssize_t
own_recvmsg(struct sink *s, int flags)
{
	return sl_udp_recvmsg(s->sock, &s->msgs[0].msg_hdr, flags);
}

static ssize_t
own_recvfrom(struct sink *s, int flags)
{
	socklen_t len = sizeof(s->name);

	return sl_udp_recvfrom(
		s->sock, s->iov[0].iov_base, SINK_BUF, flags, (struct sockaddr *)&s->name, &len);
}

static ssize_t
own_read(struct sink *s)
{
	return sl_udp_read(s->sock, s->iov[0].iov_base, SINK_BUF);
}

/* Nothing there: what the calls that do not wait leave to the caller. */
static void
own_idle(struct sink *s)
{
	char byte;
	struct iovec iov = {&byte, 0};
	struct msghdr peek = {.msg_iov = &iov, .msg_iovlen = 1};

	s->turn = (uint16_t)((s->turn + 1) % s->nsocks);
	s->sock = s->socks[s->turn];
	if (s->stack->lcores == 0)
		app_worker_poll(&s->stack->worker[0]);
	else if (s->opt->busy || s->opt->dontwait || s->nsocks > 1)
		rte_pause();
	else
		/* recv_burst never waits; this does, for as long as SO_RCVTIMEO lets it. */
		(void)!sl_udp_recvmsg(s->sock, &peek, MSG_PEEK);
}

const struct sink_sockets sink_sockets_own = {
	own_recvmmsg, own_recvmsg, own_recvfrom, own_read, own_idle};

int
sink_receive(struct sink *s, enum sink_call call, uint64_t max)
{
	unsigned int n = (unsigned int)RTE_MIN(max, (uint64_t)SINK_BATCH_MAX);
	int got;

	/* Several sockets take turns, so none of them may keep the reader; read has no flags, so
	 * there it is the turn that is not taken. */
	s->wait = !s->opt->dontwait && s->nsocks == 1;
	switch (call) {
	case SINK_RECVMMSG:
		got = do_recvmmsg(s, n);
		break;
	case SINK_RECVMSG:
		got = do_recvmsg(s);
		break;
	case SINK_RECVFROM:
		got = do_recvfrom(s);
		break;
	case SINK_READ:
		got = do_read(s);
		break;
	default:
		got = do_burst(s, n);
		break;
	}
	if (got > 0) {
		stamp(s, (unsigned int)got, max);
		return got;
	}
	if (got == -EFAULT) {
		s->position++;
		s->row.faults++;
		return got;
	}
	if (got == 0 || got == -EAGAIN || got == -EINTR) {
		s->drained = true;
		s->via->idle(s);
		return 0;
	}
	return got;
}
