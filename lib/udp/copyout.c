/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Copies between payloads and the caller's memory. For a guarded socket every access to that memory
 * is a system call (process_vm_writev or _readv on ourselves), which answers -EFAULT where a plain
 * copy would end in a signal; it costs some hundred nanoseconds each, so things are gathered into
 * few of them.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "sl_errno.h"
#include "udp_priv.h"

/* Most segments of one payload; a datagram of 64 KiB in mbufs of 1 KiB has 64. */
#define SEGMENTS_MAX 128

void
udp_copy_long(uint8_t *to, const uint8_t *from, size_t n)
{
	rte_memcpy(to, from, n);
}

int
udp_put(const struct sl_udp_sock *s, void *user, const void *from, size_t n)
{
	struct iovec local = {.iov_base = (void *)(uintptr_t)from, .iov_len = n};
	struct iovec remote = {.iov_base = user, .iov_len = n};

	if (n == 0)
		return 0;
	if (!s->conf.guarded) {
		memcpy(user, from, n);
		return 0;
	}
	return process_vm_writev(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

int
udp_get(const struct sl_udp_sock *s, void *to, const void *user, size_t n)
{
	struct iovec local = {.iov_base = to, .iov_len = n};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)user, .iov_len = n};

	if (n == 0)
		return 0;
	if (!s->conf.guarded) {
		memcpy(to, user, n);
		return 0;
	}
	return process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

int
udp_put_all(const struct sl_udp_sock *s, const struct iovec *to, const struct iovec *from, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++) {
		total += from[i].iov_len;
		if (!s->conf.guarded)
			memcpy(to[i].iov_base, from[i].iov_base, from[i].iov_len);
	}
	if (!s->conf.guarded)
		return 0;
	return process_vm_writev(s->pid, from, n, to, n, 0) == (ssize_t)total ? 0 : -EFAULT;
}

int
udp_guard_probe(pid_t pid)
{
	uint64_t from = 1, to = 0;
	struct iovec local = {.iov_base = &from, .iov_len = sizeof(from)};
	struct iovec remote = {.iov_base = &to, .iov_len = sizeof(to)};
	int ret = sl_sys((int)process_vm_writev(pid, &local, 1, &remote, 1, 0));

	if (ret < 0)
		return ret;
	return to == from ? 0 : -EFAULT;
}

bool
udp_user_range(const void *base, size_t len)
{
	uintptr_t start = (uintptr_t)base;

	/* The upper half of the address space is the kernel's on every 64-bit machine. */
	return start <= INTPTR_MAX && len <= (size_t)INTPTR_MAX - start;
}

int
udp_iov_get(const struct sl_udp_sock *s, const struct msghdr *m, struct iovec *room,
	const struct iovec **iov)
{
	int ret;

	if (m->msg_iovlen > UDP_IOV_MAX)
		return -EMSGSIZE;
	*iov = m->msg_iov;
	if (s->conf.guarded) {
		ret = udp_get(s, room, m->msg_iov, m->msg_iovlen * sizeof(*room));
		if (ret != 0)
			return ret;
		*iov = room;
	}
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		if ((*iov)[i].iov_len > SSIZE_MAX)
			return -EINVAL;
	}
	for (size_t i = 0; s->conf.guarded && i < m->msg_iovlen; i++) {
		if (!udp_user_range((*iov)[i].iov_base, (*iov)[i].iov_len))
			return -EFAULT;
	}
	return 0;
}

/* The payload as an iovec array, at most `room` entries; returns their number. */
static size_t
segments(const struct sl_dgram *d, struct iovec *seg, size_t room)
{
	const struct rte_mbuf *m = d->buf;
	size_t left = d->len, n = 0;

	for (; m != NULL && left > 0 && n < room; m = m->next) {
		seg[n].iov_base = rte_pktmbuf_mtod(m, void *);
		seg[n].iov_len = RTE_MIN(left, (size_t)m->data_len);
		left -= seg[n++].iov_len;
	}
	return n;
}

static void
scatter_plain(const struct iovec *seg, size_t nseg, const struct iovec *iov, size_t total)
{
	size_t at = 0, to = 0; /* offsets into the current segment and entry */

	(void)nseg;
	while (total > 0) {
		size_t n = RTE_MIN(RTE_MIN(seg->iov_len - at, iov->iov_len - to), total);

		if (n > 0)
			rte_memcpy((uint8_t *)iov->iov_base + to, (uint8_t *)seg->iov_base + at, n);
		total -= n;
		at += n;
		to += n;
		if (at == seg->iov_len) {
			seg++;
			at = 0;
		}
		if (to == iov->iov_len) {
			iov++;
			to = 0;
		}
	}
}

/* process_vm_writev stops at the shorter of the two sides: they are made equally long. */
static int
scatter_guarded(const struct sl_udp_sock *s, struct iovec *seg, size_t nseg,
	const struct iovec *iov, size_t iovlen, size_t total)
{
	size_t left = total, n;

	for (n = 0; n < nseg && left > 0; n++) {
		seg[n].iov_len = RTE_MIN(seg[n].iov_len, left);
		left -= seg[n].iov_len;
	}
	if (process_vm_writev(s->pid, seg, n, iov, iovlen, 0) != (ssize_t)total)
		return -EFAULT;
	return 0;
}

int
udp_scatter(const struct sl_udp_sock *s, const struct sl_dgram *d, const struct iovec *iov,
	size_t iovlen, size_t *copied)
{
	struct iovec seg[SEGMENTS_MAX];
	size_t nseg = segments(d, seg, SEGMENTS_MAX);
	size_t total = 0;

	for (size_t i = 0; i < iovlen && total < d->len; i++)
		total += RTE_MIN(iov[i].iov_len, d->len - total);
	*copied = total;
	if (total == 0)
		return 0;
	if (s->conf.guarded)
		return scatter_guarded(s, seg, nseg, iov, iovlen, total);
	scatter_plain(seg, nseg, iov, total);
	return 0;
}

int
udp_put_name(const struct sl_udp_sock *s, const struct sl_dgram *d, void *name, socklen_t *namelen)
{
	struct sockaddr_storage sa;
	struct sl_addr src;
	socklen_t room, whole;
	int ret;

	memcpy(&src, d->src, sizeof(src));
	whole = udp_addr_put(s, &src, d->sport, d->port, &sa);
	ret = udp_get(s, &room, namelen, sizeof(room));
	if (ret == 0 && (int)room < 0)
		ret = -EINVAL;
	if (ret == 0)
		ret = udp_put(s, name, &sa, RTE_MIN(room, whole));
	if (ret == 0)
		ret = udp_put(s, namelen, &whole, sizeof(whole));
	return ret;
}
