/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The bridge's way into the kernel, a burst at a time: gather chains, write them, settle them. The
 * header we exchange with the kernel always has 12 bytes; the peer's may have 10.
 */
#include <errno.h>
#include <unistd.h>

#include <rte_common.h>

#include "sl_errno.h"
#include "tapq_priv.h"

/* Pieces of all frames of a burst: room for many small frames in a few, or for a large one. */
#define IOVS_MAX 384u

struct burst {
	uint16_t n; /* chains, popped */
	uint16_t calls;
	uint32_t iovs;
	struct sl_vring_chain chain[TAP_URING_BATCH];
	/* What a chain is that nothing is written of: where it is counted. Else NULL, and its write
	 * is the next one. */
	uint64_t *bad[TAP_URING_BATCH];
	struct tap_io io[TAP_URING_BATCH];
	struct sl_tapq_vnet_hdr hdr[TAP_URING_BATCH];
	struct iovec iov[IOVS_MAX];
};

uint64_t *
tap_failure(struct sl_tap_stats *stats, int error)
{
	switch (error) {
	case -EINVAL:
	case -EMSGSIZE:
		return &stats->bad_frame;
	case -EIO:
		return &stats->down;
	default:
		return &stats->failed;
	}
}

/* In one piece with a header of the kernel's size: the kernel takes both from where they lie, which
 * spares it a table of pieces. It reads the header once, as we would, and checks it. */
static bool
in_one_piece(const struct sl_tapq_ring *r, const struct sl_vring_chain *c,
	const struct sl_vring_span *span)
{
	return c->readable == 1 && r->header == SL_TAPQ_VNET_LONG &&
	       (!r->bare || !tapq_header_speaks(span->addr));
}

/* The frame in pieces, with a private copy of its header in front. */
static void
gather_pieces(const struct sl_tapq_ring *r, const struct sl_vring_chain *c,
	const struct sl_vring_span *span, struct burst *b, struct tap_io *io)
{
	struct sl_tapq_vnet_hdr *hdr = &b->hdr[b->calls];

	*hdr = (struct sl_tapq_vnet_hdr){0};
	if (!r->bare)
		sl_vring_copy_out(span, c->readable, 0, hdr, r->header);
	sl_snapshot_barrier();
	io->addr = NULL;
	io->iov = &b->iov[b->iovs];
	io->iov[0] = (struct iovec){hdr, sizeof(*hdr)};
	io->iovs = tap_vectors_fill(io->iov, span, c->readable, r->header);
	b->iovs += (uint32_t)io->iovs;
}

/* Up to n chains; false when there is none. */
static bool
gather(const struct sl_tapq_ring *r, uint16_t n, struct burst *b, struct sl_tap_stats *stats)
{
	struct sl_vring_span span[TAPQ_SPANS_MAX];

	b->n = b->calls = 0;
	b->iovs = 0;
	for (; b->n < n && b->iovs + TAPQ_SPANS_MAX < IOVS_MAX; b->n++) {
		struct sl_vring_chain *c = &b->chain[b->n];
		struct tap_io *io = &b->io[b->calls];
		enum sl_vring_outcome o = sl_vring_pop(r->ring, r->mem, c, span, TAPQ_SPANS_MAX);

		if (!sl_vring_has_chain(o))
			break;
		b->bad[b->n] = o != SL_VRING_OK		      ? &stats->bad_chain
			       : c->readable_len <= r->header ? &stats->no_header
							      : NULL;
		if (b->bad[b->n] != NULL)
			continue;
		if (in_one_piece(r, c, span)) {
			io->addr = span->addr;
			io->len = span->len;
		} else {
			gather_pieces(r, c, span, b, io);
		}
		b->calls++;
	}
	return b->n > 0;
}

static bool
no_room(int result)
{
	return result == -EAGAIN || result == -ENOBUFS;
}

/* A call each, as far as the kernel has room. */
static void
write_each(int fd, struct burst *b)
{
	uint16_t i = 0;
	int ret = 0;

	for (; i < b->calls && !no_room(ret); i++) {
		const struct tap_io *io = &b->io[i];

		ret = sl_sys((int)(io->addr != NULL ? write(fd, io->addr, io->len)
						    : writev(fd, io->iov, io->iovs)));
		b->io[i].result = ret;
	}
	for (; i < b->calls; i++)
		b->io[i].result = -EAGAIN;
}

/* How many chains are done with: all up to the last one that went, or that the kernel refused for
 * good. */
static uint16_t
done_with(const struct burst *b)
{
	uint16_t calls = b->calls, bad = 0, i;

	while (calls > 0 && no_room(b->io[calls - 1].result))
		calls--;
	if (calls == b->calls)
		return b->n;
	for (i = 0; b->bad[i] != NULL || i - bad < calls; i++)
		bad += b->bad[i] != NULL;
	return i;
}

static void
count(struct sl_tap_stats *stats, const struct sl_tapq_ring *r, const struct sl_vring_chain *c,
	int result)
{
	if (result < 0) {
		sl_counter_add(tap_failure(stats, result), 1);
		return;
	}
	sl_counter_add(&stats->frames, 1);
	sl_counter_add(&stats->bytes, c->readable_len - r->header);
}

/* Hand back what is done with and put the rest back where it was. Returns the first's number. */
static uint16_t
settle(const struct sl_tapq_ring *r, const struct burst *b, struct sl_tap_stats *stats)
{
	uint16_t done = done_with(b), slots = 0;
	const struct tap_io *io = b->io;

	for (uint16_t i = 0; i < done; i++) {
		if (b->bad[i] != NULL)
			sl_counter_add(b->bad[i], 1);
		else
			count(stats, r, &b->chain[i], (io++)->result);
		sl_vring_push(r->ring, &b->chain[i], 0);
	}
	for (uint16_t i = done; i < b->n; i++)
		slots += b->chain[i].slots;
	if (done < b->n) {
		sl_vring_rewind(r->ring, b->n - done, slots);
		sl_counter_add(&stats->full, 1);
	}
	return done;
}

uint16_t
sl_tap_from_ring(struct sl_tap *t, uint16_t queue, const struct sl_tapq_ring *r, uint16_t n,
	struct sl_tap_stats *stats, bool *call)
{
	struct sl_tap_uring *u = tap_uring_take(t->from[queue]);
	uint16_t done = 0, settled;
	struct burst b;

	while (gather(r, RTE_MIN((uint16_t)(n - done), TAP_URING_BATCH), &b, stats)) {
		if (u != NULL && b.calls >= TAP_URING_LEAST)
			tap_uring_run(u, true, b.io, b.calls);
		else
			write_each(t->fd[queue], &b);
		settled = settle(r, &b, stats);
		done += settled;
		if (settled < b.n)
			break;
	}
	tap_uring_release(u);
	tapq_flush(r, call);
	return done;
}
