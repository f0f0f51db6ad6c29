/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Reads and writes of a tap, a burst in one system call. Each request says that it must not wait
 * (RWF_NOWAIT): the kernel then tries it once, in place, and it has ended when the call returns.
 * Without that word a read that finds nothing would stay behind and wake up later, on memory of a
 * peer that may be gone by then - although the descriptor does not block. A kernel that does not
 * know the word for taps is found out when the io_uring is made, and not used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <liburing.h>

#include "sl_errno.h"
#include "tapq_priv.h"

struct sl_tap_uring {
	rte_spinlock_t busy;
	bool failed; /* (l) busy, from here on */
	uint32_t streak;
	struct io_uring ring; /* its only file is the tap */
};

static void
request_prepare(struct io_uring_sqe *sqe, bool write, const struct tap_io *io, uint16_t id)
{
	SL_ASSERT(
		sqe != NULL); /* there are as many as a batch has, and none is left from the last */
	if (io->addr == NULL && write)
		io_uring_prep_writev(sqe, 0, io->iov, (unsigned int)io->iovs, 0);
	else if (io->addr == NULL)
		io_uring_prep_readv(sqe, 0, io->iov, (unsigned int)io->iovs, 0);
	else if (write)
		io_uring_prep_write(sqe, 0, io->addr, io->len, 0);
	else
		io_uring_prep_read(sqe, 0, io->addr, io->len, 0);
	io_uring_sqe_set_data64(sqe, id);
	sqe->flags |= IOSQE_FIXED_FILE;
	sqe->rw_flags = RWF_NOWAIT;
}

static unsigned int
results_collect(struct sl_tap_uring *u, struct tap_io *io)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		io[io_uring_cqe_get_data64(cqe)].result = cqe->res;
		seen++;
	}
	io_uring_cq_advance(&u->ring, seen);
	return seen;
}

void
tap_uring_run(struct sl_tap_uring *u, bool write, struct tap_io *io, uint16_t n)
{
	unsigned int seen;
	int taken;

	for (uint16_t i = 0; i < n; i++) {
		request_prepare(io_uring_get_sqe(&u->ring), write, &io[i], i);
		io[i].result = -EAGAIN;
	}
	/* Waits for nothing: what was taken has ended by then. */
	taken = io_uring_submit_and_wait(&u->ring, n);
	/* What was not is still in the queue there, and must never be met again. */
	if (taken != n)
		u->failed = true;
	seen = results_collect(u, io);
	SL_ASSERT(taken < 0 || seen == (unsigned int)taken);
}

/* A read of nothing takes no frame out of the queue: it says whether the kernel knows the word. */
static int
probe(struct sl_tap_uring *u)
{
	uint8_t nothing;
	struct tap_io io = {.addr = &nothing};

	tap_uring_run(u, false, &io, 1);
	return io.result == 0 && !u->failed ? 0 : -EOPNOTSUPP;
}

int
tap_uring_create(int fd, struct sl_tap_uring **out)
{
	struct sl_tap_uring *u = calloc(1, sizeof(*u));
	int ret;

	if (u == NULL)
		return -ENOMEM;
	rte_spinlock_init(&u->busy);
	ret = io_uring_queue_init(TAP_URING_BATCH, &u->ring, 0);
	if (ret != 0)
		goto fail_init;
	/* Spares a look-up of the descriptor for each frame. */
	ret = io_uring_register_files(&u->ring, &fd, 1);
	if (ret == 0)
		ret = probe(u);
	if (ret != 0)
		goto fail_ring;
	*out = u;
	return 0;
fail_ring:
	tap_uring_destroy(u);
	return ret;
fail_init:
	free(u);
	return ret;
}

void
tap_uring_destroy(struct sl_tap_uring *u)
{
	if (u == NULL)
		return;
	/* The kernel takes its time with the rest; the tap would stay for as long. */
	(void)io_uring_unregister_files(&u->ring);
	io_uring_queue_exit(&u->ring);
	free(u);
}

struct sl_tap_uring *
tap_uring_take(struct sl_tap_uring *u)
{
	if (u == NULL || rte_spinlock_trylock(&u->busy) == 0)
		return NULL;
	if (SL_LIKELY(!u->failed))
		return u;
	rte_spinlock_unlock(&u->busy);
	return NULL;
}

void
tap_uring_release(struct sl_tap_uring *u)
{
	if (u != NULL)
		rte_spinlock_unlock(&u->busy);
}

uint32_t *
tap_uring_streak(struct sl_tap_uring *u)
{
	return &u->streak;
}
