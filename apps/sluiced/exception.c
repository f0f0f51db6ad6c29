/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The way to the kernel and back, as workers go it. Everything here is per worker: queues, counters
 * and the room that frames are read into. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "exception_priv.h"
#include "sl_errno.h"

/* Pieces of a frame for the kernel: a super-frame of 64 KB in packets of 2 KB, with some to spare.
 */
#define PIECES_MAX 72
/* Up to here a copy in one piece is cheaper than a table of pieces. */
#define FLAT_MAX 2048u
#define MACS_LEN (2u * RTE_ETHER_ADDR_LEN)

const char *const exception_count_name[EXCEPTION_COUNTS] = {
	[EXCEPTION_OFFERED] = "offered",
	[EXCEPTION_TAKEN] = "taken",
	[EXCEPTION_DOWN] = "down",
	[EXCEPTION_REFUSED] = "refused",
	[EXCEPTION_SHOWN] = "shown",
	[EXCEPTION_SHOW_LOST] = "show_lost",
	[EXCEPTION_READ] = "read",
	[EXCEPTION_SENT] = "sent",
	[EXCEPTION_BAD] = "bad",
	[EXCEPTION_NO_MBUF] = "no_mbuf",
	[EXCEPTION_PACKETS] = "packets",
};

static void
piece(struct iovec *v, int *n, const void *data, size_t len)
{
	if (len == 0)
		return;
	v[*n].iov_base = (void *)(uintptr_t)data; /* the kernel only reads it */
	v[(*n)++].iov_len = len;
}

/* The frame, without its tags: the tap is in the port's VLAN as a whole. Number of pieces; 0 if
 * there are too many. */
static int
pieces(const struct sl_inet_frame *f, const struct sl_tapq_vnet_hdr *h, struct iovec *v)
{
	uint32_t off = f->off, left = f->len;
	int n = 0;

	piece(v, &n, h, sizeof(*h));
	piece(v, &n, f->head, MACS_LEN);
	piece(v, &n, f->head + f->l2_len - 2, f->head_len - f->l2_len + 2);
	for (const struct rte_mbuf *m = f->m; m != NULL && left > 0; m = m->next) {
		uint32_t skip = RTE_MIN(off, (uint32_t)m->data_len);
		uint32_t part = RTE_MIN(left, m->data_len - skip);

		if (n == PIECES_MAX)
			return 0;
		piece(v, &n, rte_pktmbuf_mtod_offset(m, const char *, skip), part);
		off -= skip;
		left -= part;
	}
	return n;
}

static int
write_pieces(int fd, const struct iovec *v, int n)
{
	uint8_t flat[FLAT_MAX];
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += v[i].iov_len;
	if (len > sizeof(flat))
		return sl_sys((int)writev(fd, v, n));
	len = 0;
	for (int i = 0; i < n; i++) {
		memcpy(flat + len, v[i].iov_base, v[i].iov_len);
		len += v[i].iov_len;
	}
	return sl_sys((int)write(fd, flat, len));
}

/* 0, or -errno; never waits: the tap's send buffer has no limit, and its descriptor does not block.
 */
static int
to_kernel(const struct exception *e, uint16_t worker, const struct sl_inet_frame *f)
{
	struct iovec v[PIECES_MAX];
	struct sl_tapq_vnet_hdr h;
	int n, ret;

	exception_to_kernel(f, &h);
	n = pieces(f, &h, v);
	ret = n > 0 ? write_pieces(e->fd[worker], v, n) : -E2BIG;
	return ret < 0 ? ret : 0;
}

static bool
on_take(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	struct exception *e = arg;
	uint64_t *n = e->cell[worker].n;
	int ret = to_kernel(e, worker, f);

	sl_counter_add(&n[EXCEPTION_OFFERED], 1);
	if (ret == 0)
		sl_counter_add(&n[EXCEPTION_TAKEN], 1);
	else
		sl_counter_add(&n[ret == -EIO ? EXCEPTION_DOWN : EXCEPTION_REFUSED], 1);
	return ret == 0;
}

static void
on_show(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	struct exception *e = arg;
	int ret = to_kernel(e, worker, f);

	sl_counter_add(&e->cell[worker].n[ret == 0 ? EXCEPTION_SHOWN : EXCEPTION_SHOW_LOST], 1);
}

const struct sl_inet_punt_ops exception_ops = {.take = on_take, .show = on_show};

/* Hand one frame of the kernel's to the port. */
static void
from_kernel(struct worker *w, const struct exception *e, struct exception_packets *p,
	const struct sl_tapq_vnet_hdr *h)
{
	uint64_t *n = e->cell[w->index].n;
	struct rte_mbuf *m;

	sl_counter_add(&n[EXCEPTION_READ], 1);
	if (exception_begin(p, h) != 0) {
		sl_counter_add(&n[EXCEPTION_BAD], 1);
		return;
	}
	while ((m = exception_next(p)) != NULL) {
		sl_counter_add(&n[EXCEPTION_PACKETS], 1);
		sl_inet_frame_output(w->d->inet, w->index, e->port.handle, m);
	}
	sl_counter_add(&n[p->next == p->segments ? EXCEPTION_SENT : EXCEPTION_NO_MBUF], 1);
}

static uint32_t
read_frames(struct worker *w, const struct worker_tap *t)
{
	struct sl_tapq_vnet_hdr h;
	struct iovec v[2] = {{&h, sizeof(h)}, {w->tap_room, EXCEPTION_FRAME_MAX}};
	uint32_t n = 0;

	for (; n < EXCEPTION_BURST; n++) {
		struct exception_packets p = {.port = &t->e->port, .frame = w->tap_room};
		int ret = sl_sys((int)readv(t->fd, v, 2));

		if (ret <= 0)
			break;
		p.len = (uint32_t)ret > sizeof(h) ? (uint32_t)ret - (uint32_t)sizeof(h) : 0;
		from_kernel(w, t->e, &p, &h);
	}
	return n;
}

uint32_t
exceptions_turn(struct worker *w)
{
	uint64_t us = rte_get_tsc_hz() / 1000000, now = rte_rdtsc();
	uint32_t work = 0;

	for (uint16_t i = 0; i < w->ntaps; i++) {
		struct worker_tap *t = &w->tap[i];
		uint32_t n;

		if (now < t->due)
			continue;
		n = read_frames(w, t);
		/* A look for nothing costs a system call: look less often, and at once again when
		 * something was there. */
		t->wait = n > 0 ? 0 : RTE_MIN(t->wait * 2 + 1, (uint32_t)EXCEPTION_WAIT_MAX_US);
		t->due = now + t->wait * us;
		work += n;
	}
	return work;
}

void
exception_sums(const struct daemon *d, const struct exception *e, uint64_t *counts)
{
	for (uint16_t w = 0; w < d->nworkers; w++)
		for (int i = 0; i < EXCEPTION_COUNTS; i++)
			counts[i] += sl_load_relaxed(&e->cell[w].n[i]);
}

const char *
exception_name(const struct exception *e)
{
	return e->name;
}

bool
exception_carrier(const struct exception *e)
{
	return sl_load_relaxed(&e->up);
}

const char *
exception_interface(const struct exception *e)
{
	return e->tap.name;
}

void
exception_worker_counts(const struct exception *e, uint16_t worker, uint64_t *counts)
{
	memcpy(counts, e->cell[worker].n, sizeof(e->cell[worker].n));
}
