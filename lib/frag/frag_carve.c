/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>

#include <rte_common.h>

#include "frag_priv.h"

#define STOCK_BATCH 16u /* chunks taken from the stock under one hold of its lock */

static struct frag_chunk *
chunk_of(struct sl_frag *f, uint32_t link)
{
	return &f->chunk[link - 1];
}

/* Cut a list behind its n-th chunk; returns the rest. */
static uint32_t
list_cut(struct sl_frag *f, uint32_t list, uint32_t n)
{
	uint32_t rest;

	for (uint32_t i = 1; i < n && list != 0; i++)
		list = chunk_of(f, list)->next;
	if (list == 0)
		return 0;
	rest = chunk_of(f, list)->next;
	chunk_of(f, list)->next = 0;
	return rest;
}

static void
stock_give(struct sl_frag *f, uint32_t list)
{
	uint32_t last = list;

	if (list == 0)
		return;
	while (chunk_of(f, last)->next != 0)
		last = chunk_of(f, last)->next;
	rte_spinlock_lock(&f->rest->stock_lock);
	chunk_of(f, last)->next = f->rest->stock;
	f->rest->stock = list;
	rte_spinlock_unlock(&f->rest->stock_lock);
}

static uint32_t
stock_take(struct sl_frag *f, uint32_t *n)
{
	uint32_t want = RTE_MIN(f->rest->keep, STOCK_BATCH), list;

	*n = 0;
	rte_spinlock_lock(&f->rest->stock_lock);
	list = f->rest->stock;
	f->rest->stock = list_cut(f, list, want);
	rte_spinlock_unlock(&f->rest->stock_lock);
	for (uint32_t at = list; at != 0; at = chunk_of(f, at)->next)
		++*n;
	return list;
}

/* Everything that came back to a home; *n says how many. */
static uint32_t
home_take(struct frag_home *h, uint32_t *n)
{
	uint64_t head;

	*n = 0;
	if (sl_load_relaxed(&h->head) == 0)
		return 0;
	/* FR2: what the pushers did to the chunks and their links is visible after this. */
	head = sl_exchange_acq_rel(&h->head, UINT64_C(0));
	*n = (uint32_t)(head >> 32);
	sl_fetch_add_relaxed(&h->collected, *n);
	return (uint32_t)head;
}

/* Put a list of n in front of the own list. Half of what is too much goes to the stock, so that the
 * next surplus is far. */
static void
own_add(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t list, uint32_t n)
{
	uint32_t last = list, keep = RTE_MAX(f->rest->keep / 2, 1u);

	if (n == 0)
		return;
	if (c->own != 0) {
		while (chunk_of(f, last)->next != 0)
			last = chunk_of(f, last)->next;
		chunk_of(f, last)->next = c->own;
	}
	c->own = list;
	c->owned += n;
	if (c->owned > f->rest->keep) {
		stock_give(f, list_cut(f, list, keep));
		c->owned = keep;
	}
}

/* LOCK: half of another worker's own list, which the lock makes ours to touch. */
static uint32_t
own_steal_locked(struct sl_frag *f, uint32_t worker, uint32_t *n)
{
	struct sl_frag_cursor *from = &f->cursors[worker];
	uint32_t list = from->own;

	*n = (from->owned + 1) / 2;
	from->own = list_cut(f, list, *n);
	from->owned -= *n;
	return list;
}

/* Fill the own list, from the nearest place that has anything. */
static void
own_fill(struct sl_frag *f, struct sl_frag_cursor *own, uint32_t worker)
{
	uint32_t n, list = stock_take(f, &n);

	for (uint32_t i = 1; list == 0 && i < f->workers; i++) {
		uint32_t other = (worker + i) % f->workers;

		list = home_take(&f->home[other], &n);
		if (list == 0 && f->mode == SL_FRAG_LOCK)
			list = own_steal_locked(f, other, &n);
		if (list != 0)
			sl_counter_add(&own->stolen, 1);
	}
	own_add(f, own, list, n);
}

static void
account_returned(struct sl_frag *f, struct frag_chunk *k, uint32_t carved)
{
	sl_fetch_add_relaxed(
		&f->home[k->home].returned, (uint64_t)(carved - sl_load_relaxed(&k->wasted)));
}

/* The cursor leaves its chunk: what it says of it becomes part of the sums. */
static void
cursor_sum_up(struct sl_frag_cursor *c)
{
	sl_counter_add(&c->carved, c->offset);
	sl_counter_add(&c->slices, c->handed);
	sl_counter_add(&c->tail, c->limit - c->offset);
	sl_store_relaxed(&c->offset, 0u);
	sl_store_relaxed(&c->handed, 0u);
}

void
frag_retire(struct sl_frag *f, struct sl_frag_cursor *c)
{
	struct frag_chunk *k = &f->chunk[c->chunk];
	uint16_t unused = (uint16_t)(f->rest->bias - c->handed);

	if (c->limit == 0)
		return;
	k->carved = c->offset;
	k->state = FRAG_OUT;
	cursor_sum_up(c);
	c->limit = 0;
	/* FR1: k->carved is visible to the one who brings the count to 0; and if that is here, what
	 * the other holders did is over. */
	if (sl_fetch_sub_acq_rel(&k->shared.refcnt, unused) == unused)
		frag_chunk_back(k);
}

void
frag_chunk_back(struct frag_chunk *k)
{
	struct sl_frag *f = k->frag;
	struct frag_home *h = &f->home[k->home];
	uint64_t old = sl_load_relaxed(&h->head), now;

	account_returned(f, k, k->carved);
	k->state = FRAG_FREE;
	do {
		if ((old & FRAG_CLOSED) != 0) {
			now = old - 1;
			continue;
		}
		k->next = (uint32_t)old;
		now = ((old >> 32) + 1) << 32 | (uint64_t)(k - f->chunk + 1);
		/* FR2: the chunk is the taker's from here on. FR3: or nobody's; then what was done
		 * with it is over before the last one out frees the memory. */
	} while (!sl_cas_weak_acq_rel(&h->head, &old, now));
	if (now == FRAG_CLOSED && sl_fetch_sub_acq_rel(&f->rest->open, 1u) == 1)
		frag_free_all(f);
}

/* Another worker's chunk leaves the cursor as it is. Its home has none parked: whoever makes a
 * chunk of that home current takes up the parked one first. The chunk itself is not touched: its
 * line is where its slices are put. */
static void
cursor_park(struct sl_frag *f, struct sl_frag_cursor *c)
{
	struct sl_frag_cursor *home = &f->cursors[c->home];

	SL_DEBUG_ASSERT(home->parked == 0);
	home->parked = c->chunk + 1;
	home->parked_offset = c->offset;
	home->parked_handed = c->handed;
	sl_counter_add(&c->carved, c->offset);
	sl_counter_add(&c->slices, c->handed);
	sl_store_relaxed(&c->offset, 0u);
	sl_store_relaxed(&c->handed, 0u);
	c->limit = 0;
}

/* Bring a worker's parked chunk back under the cursor, which has none. */
static void
unpark(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker)
{
	struct sl_frag_cursor *home = &f->cursors[worker];

	SL_DEBUG_ASSERT(home->parked != 0 && c->limit == 0);
	c->chunk = home->parked - 1;
	c->home = worker;
	c->base = f->memory + (size_t)c->chunk * f->chunk_size;
	c->limit = f->chunk_size;
	home->parked = 0;
	/* Parking summed them up; they are the cursor's again. */
	sl_counter_add(&c->carved, -(uint64_t)home->parked_offset);
	sl_counter_add(&c->slices, -(uint64_t)home->parked_handed);
	sl_store_relaxed(&c->offset, home->parked_offset);
	sl_store_relaxed(&c->handed, home->parked_handed);
}

void
frag_retire_parked(struct sl_frag *f, uint32_t worker)
{
	if (f->cursors[worker].parked == 0)
		return;
	unpark(f, frag_shared_cursor(f), worker);
	frag_retire(f, frag_shared_cursor(f));
}

/* Make the first chunk of a worker's own list current. */
static void
cursor_start(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker)
{
	struct sl_frag_cursor *own = &f->cursors[worker];
	struct frag_chunk *k = chunk_of(f, own->own);

	SL_DEBUG_ASSERT(k->state == FRAG_FREE);
	c->chunk = own->own - 1;
	own->own = k->next;
	own->owned--;
	own->taken++;
	k->home = worker;
	c->home = worker;
	k->state = FRAG_CURRENT;
	k->wasted = 0;
	/* Nobody else knows the chunk yet, so a relaxed store sets the bias. */
	sl_store_relaxed(&k->shared.refcnt, f->rest->bias);
	c->base = f->memory + (size_t)c->chunk * f->chunk_size;
	c->limit = f->chunk_size;
	sl_counter_add(&c->refills, 1);
}

/* Are all of so many slices of a chunk in use back? FR1: then nobody has a reference any more, and
 * what they did with the bytes is over. */
static bool
all_back(const struct sl_frag *f, uint32_t chunk, uint32_t handed)
{
	return sl_load_acquire(&f->chunk[chunk].shared.refcnt) ==
	       (uint16_t)(f->rest->bias - handed);
}

/* Are all slices of the current chunk back? Then start it again where it is. */
static bool
cursor_restart(struct sl_frag *f, struct sl_frag_cursor *c)
{
	struct frag_chunk *k = &f->chunk[c->chunk];

	if (c->limit == 0 || !all_back(f, c->chunk, c->handed))
		return false;
	account_returned(f, k, c->offset);
	cursor_sum_up(c);
	k->wasted = 0;
	sl_store_relaxed(&k->shared.refcnt, f->rest->bias);
	sl_counter_add(&c->refills, 1);
	return true;
}

/* Has the chunk that a worker parked room for that many bytes, or is it back as a whole? */
static bool
parked_fits(const struct sl_frag *f, uint32_t worker, uint32_t size)
{
	const struct sl_frag_cursor *home = &f->cursors[worker];

	return home->parked != 0 && (size <= f->chunk_size - home->parked_offset ||
					    all_back(f, home->parked - 1, home->parked_handed));
}

/* Go on with what a worker has parked, if that many bytes fit. */
static bool
cursor_resume(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker, uint32_t size)
{
	if (!parked_fits(f, worker, size))
		return false;
	frag_retire(f, c);
	unpark(f, c, worker);
	return size <= c->limit - c->offset || cursor_restart(f, c);
}

/* The last resort: any worker's. */
static bool
cursor_resume_any(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t size)
{
	for (uint32_t i = 0; i < f->workers; i++)
		if (cursor_resume(f, c, i, size))
			return true;
	return false;
}

/* A chunk that `worker` had before, if there is one: its lines are then in that lcore's cache, also
 * where all share a cursor. */
static int
refill(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker, uint32_t size)
{
	struct sl_frag_cursor *own = &f->cursors[worker];
	uint32_t list, n;

	if (cursor_restart(f, c) || cursor_resume(f, c, worker, size))
		return 0;
	list = home_take(&f->home[worker], &n);
	own_add(f, own, list, n);
	if (own->own == 0)
		own_fill(f, own, worker);
	if (own->own == 0 && cursor_resume_any(f, c, size))
		return 0;
	if (own->own == 0) {
		/* The current chunk stays: something smaller may still fit. */
		sl_counter_add(&c->exhausted, 1);
		return -ENOBUFS;
	}
	frag_retire(f, c);
	frag_retire_parked(f, worker); /* too full; its place is for the new one */
	cursor_start(f, c, worker);
	return 0;
}

/* Give the cursor a chunk with room for that many bytes, where it has none. */
static int
make_room(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker, uint32_t size)
{
	if (size == 0)
		return -EINVAL;
	if (size > f->chunk_size)
		return -EMSGSIZE;
	return refill(f, c, worker, size);
}

/* As many from the front as the cursor's chunk has room for. Its members are written once: in LOCK
 * mode their line goes from lcore to lcore. */
static inline uint16_t
carve_run(const struct sl_frag *f, struct sl_frag_cursor *c, const uint32_t *size, uint16_t n,
	struct sl_frag_slice *out)
{
	uint32_t least = f->mode == SL_FRAG_PAGE ? f->chunk_size : 0;
	uint32_t offset = c->offset, limit = c->limit;
	uint16_t i;

	for (i = 0; i < n && size[i] - 1 < limit - offset; i++) {
		uint32_t whole = RTE_ALIGN_CEIL(size[i], SL_CACHE_LINE);

		out[i].addr = c->base + offset;
		out[i].size = RTE_MAX(whole, least);
		out[i].chunk = c->chunk;
		offset += out[i].size;
	}
	sl_store_relaxed(&c->offset, offset);
	sl_store_relaxed(&c->handed, c->handed + i);
	return i;
}

static int
carve(struct sl_frag *f, struct sl_frag_cursor *c, uint32_t worker, uint32_t size,
	struct sl_frag_slice *out)
{
	int ret = size - 1 < c->limit - c->offset ? 0 : make_room(f, c, worker, size);

	if (ret == 0)
		carve_run(f, c, &size, 1, out);
	return ret;
}

__attribute__((noinline)) int
sl_frag_carve_slow(struct sl_frag *f, uint32_t worker, uint32_t size, struct sl_frag_slice *out)
{
	rte_mcslock_t me;
	int ret;

	if (f->mode != SL_FRAG_LOCK)
		return carve(f, &f->cursors[worker], worker, size, out);
	frag_lock(f, &me);
	ret = carve(f, frag_shared_cursor(f), worker, size, out);
	frag_unlock(f, &me);
	return ret;
}

uint16_t
sl_frag_carve_burst(struct sl_frag *f, uint32_t worker, const uint32_t *size, uint16_t n,
	struct sl_frag_slice *out)
{
	bool shared = f->mode == SL_FRAG_LOCK;
	struct sl_frag_cursor *c = shared ? frag_shared_cursor(f) : &f->cursors[worker];
	rte_mcslock_t me;
	uint16_t i = 0;

	SL_DEBUG_ASSERT(worker < f->workers);
	if (shared) {
		frag_lock(f, &me);
		if (c->limit != 0 && c->home != worker)
			cursor_park(f, c);
	}
	for (;;) {
		i = (uint16_t)(i + carve_run(f, c, size + i, (uint16_t)(n - i), out + i));
		if (i == n || make_room(f, c, worker, size[i]) != 0)
			break;
	}
	if (shared)
		frag_unlock(f, &me);
	return i;
}

static inline void
put(struct sl_frag *f, uint32_t chunk, uint16_t references)
{
	struct frag_chunk *k = &f->chunk[chunk];

	/* FR1: this holder's use of the bytes is over; the last one sees that of all others. */
	if (sl_fetch_sub_acq_rel(&k->shared.refcnt, references) == references)
		frag_chunk_back(k);
}

void
sl_frag_put(struct sl_frag *f, const struct sl_frag_slice *slice)
{
	put(f, slice->chunk, 1);
}

void
sl_frag_put_burst(struct sl_frag *f, const struct sl_frag_slice *slice, uint16_t n)
{
	uint16_t i = 0;

	while (i < n) {
		uint16_t first = i;

		while (++i < n && slice[i].chunk == slice[first].chunk)
			;
		put(f, slice[first].chunk, (uint16_t)(i - first));
	}
}

void
frag_count_waste(struct sl_frag *f, const struct sl_frag_slice *slice)
{
	sl_fetch_add_relaxed(&f->chunk[slice->chunk].wasted, slice->size);
	sl_fetch_add_relaxed(&f->rest->wasted, (uint64_t)slice->size);
}

void
sl_frag_waste(struct sl_frag *f, const struct sl_frag_slice *slice)
{
	frag_count_waste(f, slice);
	sl_frag_put(f, slice);
}
