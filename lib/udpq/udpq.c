/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ring_elem.h>

#include "sl_errno.h"
#include "udpq_priv.h"

#define PRODUCERS_MAX 1024u
#define SLOTS_MAX (1u << 20)
#define INTAKE_FLAGS (RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ)

/* Zeroed, and starting on a cache line. */
static void *
alloc_zeroed(size_t bytes)
{
	size_t whole = RTE_ALIGN_CEIL(bytes, (size_t)SL_CACHE_LINE);
	void *p = aligned_alloc(SL_CACHE_LINE, whole);

	if (p != NULL)
		memset(p, 0, whole);
	return p;
}

static struct rte_ring *
intake_create(uint32_t slots)
{
	/* Exact size: `slots` usable of the next power of two above it. */
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct sl_dgram), slots * 2);
	struct rte_ring *r = alloc_zeroed((size_t)bytes);

	if (r != NULL && rte_ring_init(r, "intake", slots, INTAKE_FLAGS) != 0) {
		free(r);
		r = NULL;
	}
	return r;
}

static int
conf_check(const struct sl_udpq_conf *conf)
{
	if (conf->mode > SL_UDPQ_SHARED || conf->free_burst == NULL || conf->rcvbuf == 0)
		return -EINVAL;
	if (conf->producers == 0 || conf->producers > PRODUCERS_MAX)
		return -EINVAL;
	if (conf->slots < 2 || conf->slots > SLOTS_MAX)
		return -EINVAL;
	return 0;
}

static void
queue_free(struct sl_udpq *q)
{
	for (uint32_t i = 0; i < q->intakes && q->producer != NULL; i++)
		free(q->producer[i].intake);
	free(q->producer);
	free(q->private_queue);
	if (q->event_fd >= 0)
		close(q->event_fd);
	free(q);
}

static int
intakes_create(struct sl_udpq *q)
{
	for (uint32_t i = 0; i < q->intakes; i++) {
		q->producer[i].intake = intake_create(q->slots);
		if (q->producer[i].intake == NULL)
			return -ENOMEM;
	}
	for (uint32_t i = q->intakes; q->mode == SL_UDPQ_SHARED && i < q->producers; i++)
		q->producer[i].intake = q->producer[0].intake;
	if (q->intakes > 0) {
		q->event_fd = sl_sys(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		if (q->event_fd < 0)
			return q->event_fd;
	}
	return 0;
}

static uint32_t
intake_count(enum sl_udpq_mode mode, uint32_t producers)
{
	switch (mode) {
	case SL_UDPQ_SPLIT:
		return producers;
	case SL_UDPQ_SHARED:
		return 1;
	default:
		return 0;
	}
}

int
sl_udpq_create(const struct sl_udpq_conf *conf, struct sl_udpq **out)
{
	struct sl_udpq *q;
	int ret = conf_check(conf);

	if (ret != 0)
		return ret;
	q = alloc_zeroed(sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->mode = conf->mode;
	q->producers = conf->producers;
	q->intakes = intake_count(conf->mode, conf->producers);
	q->slots = rte_align32pow2(conf->slots);
	q->event_fd = -1;
	q->free_burst = conf->free_burst;
	q->rcvbuf = conf->rcvbuf;
	q->producer = alloc_zeroed(q->producers * sizeof(*q->producer));
	q->private_queue = alloc_zeroed(q->slots * sizeof(*q->private_queue));
	ret = q->producer != NULL && q->private_queue != NULL ? intakes_create(q) : -ENOMEM;
	if (ret != 0) {
		queue_free(q);
		return ret;
	}
	*out = q;
	return 0;
}

void
sl_udpq_destroy(struct sl_udpq *q)
{
	struct sl_dgram *d;
	uint16_t n;

	if (q == NULL)
		return;
	while ((n = sl_udpq_peek_burst(q, SL_UDPQ_BURST_MAX, &d)) != 0) {
		void *bufs[SL_UDPQ_BURST_MAX];

		for (uint16_t i = 0; i < n; i++)
			bufs[i] = d[i].buf;
		sl_udpq_release_burst(q, n);
		q->free_burst(bufs, n);
	}
	queue_free(q);
}

static uint64_t
sum_truesize(const struct sl_dgram *d, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += d[i].truesize;
	return sum;
}

/* How many from the front of d fit when `queued` bytes are queued already; *charge: their sum. */
static uint16_t
count_fitting(
	const struct sl_dgram *d, uint16_t n, uint64_t queued, uint64_t rcvbuf, uint64_t *charge)
{
	uint64_t sum = sum_truesize(d, n);
	uint16_t i;

	*charge = sum;
	if (SL_LIKELY(sum <= rcvbuf - RTE_MIN(rcvbuf, queued)))
		return n;
	for (i = 0, sum = 0; i < n; i++) {
		/* An empty queue takes one datagram of any size. No sum can wrap: n is 16 bits,
		 * true sizes are 32. */
		if (queued + sum != 0 && d[i].truesize > rcvbuf - RTE_MIN(rcvbuf, queued + sum))
			break;
		sum += d[i].truesize;
	}
	*charge = sum;
	return i;
}

/* Tell a sleeping reader, if there is one. */
static void
wake_sleeper(struct sl_udpq *q, struct udpq_producer *p)
{
	uint64_t one = 1;

	/* UQ3: the append above must not pass the look at `sleeping` below. */
	sl_fence_seq_cst();
	if (SL_LIKELY(sl_load_relaxed(&q->sleeping) == 0))
		return;
	if (sl_exchange_acq_rel(&q->sleeping, 0u) == 0)
		return; /* another producer does it */
	sl_fetch_add_relaxed(&p->wakeups, UINT64_C(1));
	/* Can only fail when the counter is full, and then the reader wakes all the same. */
	if (write(q->event_fd, &one, sizeof(one)) < 0)
		return;
}

/* A reader that keeps up works at the start of the array for ever, in lines that are in its cache,
 * instead of passing through all of it. */
static inline void
rewind_empty(struct sl_udpq *q)
{
	if (SL_LIKELY(q->head == q->tail)) {
		q->head = 0;
		q->tail = 0;
	}
}

struct sl_dgram *
sl_udpq_room(struct sl_udpq *q, uint16_t n)
{
	uint32_t at;

	if (q->mode != SL_UDPQ_LOCAL)
		return NULL;
	rewind_empty(q);
	at = q->tail & (q->slots - 1);
	if (n > q->slots - (q->tail - q->head) || n > q->slots - at)
		return NULL;
	return &q->private_queue[at];
}

/* Copy them to the end of the private queue, which has room, unless they were built there. */
static inline void
put(struct sl_udpq *q, const struct sl_dgram *d, uint16_t n)
{
	uint32_t at = q->tail & (q->slots - 1);
	uint16_t first = (uint16_t)RTE_MIN((uint32_t)n, q->slots - at);

	if (SL_LIKELY(d == &q->private_queue[at]))
		return;
	memcpy(&q->private_queue[at], d, first * sizeof(*d));
	memcpy(q->private_queue, d + first, (size_t)(n - first) * sizeof(*d));
}

static uint16_t
append_local(struct sl_udpq *q, const struct sl_dgram *d, uint16_t n, enum sl_udpq_drop *why)
{
	uint16_t taken;
	uint64_t charge;
	uint32_t room;

	rewind_empty(q);
	room = q->slots - (q->tail - q->head);
	taken = count_fitting(d, n, q->rmem, q->rcvbuf, &charge);
	*why = taken < n ? SL_UDPQ_DROP_RCVBUF : SL_UDPQ_DROP_NONE;
	if (SL_UNLIKELY(taken > room)) {
		taken = (uint16_t)room;
		charge = sum_truesize(d, taken);
		*why = SL_UDPQ_DROP_SLOTS;
	}
	put(q, d, taken);
	q->tail += taken;
	sl_store_relaxed(&q->rmem, q->rmem + charge);
	return taken;
}

static uint16_t
append_intake(struct sl_udpq *q, struct udpq_producer *p, const struct sl_dgram *d, uint16_t n,
	enum sl_udpq_drop *why)
{
	uint64_t rcvbuf = sl_load_relaxed(&q->rcvbuf);
	uint64_t queued = sl_load_relaxed(&q->rmem);
	uint16_t fit, taken;
	uint64_t charge;

	do {
		fit = count_fitting(d, n, queued, rcvbuf, &charge);
		/* Nothing to charge: leave the line to those who have. */
	} while (charge != 0 && !sl_cas_weak_relaxed(&q->rmem, &queued, queued + charge));
	*why = fit < n ? SL_UDPQ_DROP_RCVBUF : SL_UDPQ_DROP_NONE;
	/* UQ1: the ring publishes the descriptors with its tail. */
	taken = (uint16_t)rte_ring_enqueue_burst_elem(p->intake, d, sizeof(*d), fit, NULL);
	if (SL_UNLIKELY(taken < fit)) {
		sl_fetch_add_relaxed(&q->rmem, UINT64_C(0) - sum_truesize(d + taken, fit - taken));
		*why = SL_UDPQ_DROP_SLOTS;
	}
	return taken;
}

static void
count_append(struct udpq_producer *p, uint16_t taken, uint16_t n, enum sl_udpq_drop why)
{
	sl_counter_add(&p->appended, taken);
	sl_counter_add(&p->drops[why], (uint64_t)(n - taken));
}

/* A lock in place of the ring's own multi-producer modes: those hand the tail from one producer to
 * the next with a relaxed wait, so that the reader is ordered after the last of them only. */
static uint16_t
append_shared(struct sl_udpq *q, struct udpq_producer *p, const struct sl_dgram *d, uint16_t n,
	enum sl_udpq_drop *why)
{
	uint16_t taken;

	rte_spinlock_lock(&q->append_lock);
	taken = append_intake(q, p, d, n, why);
	count_append(p, taken, n, *why);
	rte_spinlock_unlock(&q->append_lock);
	return taken;
}

uint16_t
sl_udpq_append_burst(struct sl_udpq *q, uint32_t producer, const struct sl_dgram *d, uint16_t n,
	enum sl_udpq_drop *why)
{
	struct udpq_producer *p = &q->producer[producer];
	uint16_t taken;

	SL_DEBUG_ASSERT(producer < q->producers);
	if (q->mode == SL_UDPQ_SHARED) {
		taken = append_shared(q, p, d, n, why);
	} else {
		taken = q->mode == SL_UDPQ_LOCAL ? append_local(q, d, n, why)
						 : append_intake(q, p, d, n, why);
		count_append(p, taken, n, *why);
	}
	if (taken > 0 && q->mode != SL_UDPQ_LOCAL)
		wake_sleeper(q, p);
	return taken;
}

/* Move the next intake that holds anything into the empty private queue, whole. */
static void
take_intake(struct sl_udpq *q)
{
	q->head = 0;
	q->tail = 0;
	for (uint32_t i = 0; i < q->intakes; i++) {
		struct rte_ring *intake = q->producer[q->next].intake;

		q->next = q->next + 1 < q->intakes ? q->next + 1 : 0;
		/* UQ1, and UQ2: the ring gives its slots back with one store. */
		q->tail = rte_ring_sc_dequeue_burst_elem(
			intake, q->private_queue, sizeof(struct sl_dgram), q->slots, NULL);
		if (q->tail != 0) {
			sl_counter_add(&q->takes, 1);
			return;
		}
	}
}

uint16_t
sl_udpq_peek_burst(struct sl_udpq *q, uint16_t max, struct sl_dgram **first)
{
	uint32_t mask = q->slots - 1;
	uint32_t n;

	udpq_reader_enter(q);
	if (q->head == q->tail)
		take_intake(q);
	n = RTE_MIN(q->tail - q->head, (uint32_t)RTE_MIN(max, SL_UDPQ_BURST_MAX));
	n = RTE_MIN(n, q->slots - (q->head & mask)); /* contiguous */
	q->shown = n;
	*first = &q->private_queue[q->head & mask];
	udpq_reader_leave(q);
	return (uint16_t)n;
}

void
sl_udpq_release_burst(struct sl_udpq *q, uint16_t n)
{
	const struct sl_dgram *first = &q->private_queue[q->head & (q->slots - 1)];

	udpq_reader_enter(q);
	SL_DEBUG_ASSERT(n <= q->shown);
	q->head += n;
	q->shown -= n;
	sl_counter_add(&q->released, n);
	/* With the last one goes all that is charged, without adding it up. */
	if (q->mode == SL_UDPQ_LOCAL)
		sl_store_relaxed(&q->rmem,
			SL_LIKELY(q->head == q->tail) ? 0 : q->rmem - sum_truesize(first, n));
	else if (n > 0)
		sl_fetch_add_relaxed(&q->rmem, UINT64_C(0) - sum_truesize(first, n));
	udpq_reader_leave(q);
}

void
sl_udpq_set_rcvbuf(struct sl_udpq *q, uint64_t bytes)
{
	SL_ASSERT(bytes > 0);
	sl_store_relaxed(&q->rcvbuf, bytes);
}

bool
udpq_ready(const struct sl_udpq *q)
{
	if (q->head != q->tail)
		return true;
	for (uint32_t i = 0; i < q->intakes; i++) {
		const struct rte_ring *r = q->producer[i].intake;

		/* rte_ring_empty reads the indexes as plain words. Relaxed is enough: the fence of
		 * UQ3 orders this look, and the descriptors are acquired by the take. */
		if (sl_load_relaxed(&r->prod.tail) != sl_load_relaxed(&r->cons.tail))
			return true;
	}
	return false;
}

void
sl_udpq_stats(const struct sl_udpq *q, uint32_t producer, struct sl_udpq_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i < q->producers; i++) {
		const struct udpq_producer *p = &q->producer[i];

		if (producer != UINT32_MAX && producer != i)
			continue;
		stats->appended += sl_load_relaxed(&p->appended);
		for (int k = SL_UDPQ_DROP_NONE + 1; k < SL_UDPQ_DROP_COUNT; k++)
			stats->drops[k] += sl_load_relaxed(&p->drops[k]);
		stats->wakeups += sl_load_relaxed(&p->wakeups);
	}
	stats->released = sl_load_relaxed(&q->released);
	stats->takes = sl_load_relaxed(&q->takes);
	stats->rmem = sl_load_relaxed(&q->rmem);
}

/* True sizes in an intake, by taking every descriptor out and putting it back in order. */
static uint64_t
intake_weigh(struct rte_ring *intake, uint64_t *count)
{
	uint32_t n = rte_ring_count(intake);
	uint64_t sum = 0;
	struct sl_dgram d;

	*count += n;
	while (n-- > 0 && rte_ring_dequeue_elem(intake, &d, sizeof(d)) == 0) {
		sum += d.truesize;
		SL_ASSERT(rte_ring_enqueue_elem(intake, &d, sizeof(d)) == 0);
	}
	return sum;
}

bool
sl_udpq_check(struct sl_udpq *q)
{
	uint64_t queued = 0, bytes = 0;
	struct sl_udpq_stats stats;

	for (uint32_t i = q->head; i != q->tail; i++) {
		bytes += q->private_queue[i & (q->slots - 1)].truesize;
		queued++;
	}
	for (uint32_t i = 0; i < q->intakes; i++)
		bytes += intake_weigh(q->producer[i].intake, &queued);
	sl_udpq_stats(q, UINT32_MAX, &stats);
	return stats.appended == stats.released + queued && stats.rmem == bytes;
}
