/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <rte_common.h>

#include "vring_priv.h"

#define F_AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define F_USED (1u << VRING_PACKED_DESC_F_USED)
#define EVENT_WRAP (1u << VRING_PACKED_EVENT_F_WRAP_CTR)

/* Flags as read; the other fields once each. */
static void
fields_read(const struct vring_packed_desc *d, uint16_t flags, struct vring_fields *f)
{
	f->addr = sl_load_relaxed(&d->addr);
	f->len = sl_load_relaxed(&d->len);
	f->next = sl_load_relaxed(&d->id);
	f->flags = flags;
}

/* In a table the entries follow each other and nothing but their direction counts. */
static void
walk_table(struct sl_vring *r, struct vring_walk *w, const struct vring_fields *head)
{
	uint32_t entries;

	if (!vring_table_check(r, head, &entries)) {
		w->outcome = SL_VRING_BAD_INDIRECT;
		return;
	}
	for (uint32_t i = 0; i < entries && w->outcome == SL_VRING_OK; i++) {
		struct vring_packed_desc copy;
		struct vring_fields d;

		if (!vring_table_read(w->mem, head->addr, i, (struct vring_desc *)&copy)) {
			w->outcome = SL_VRING_BAD_INDIRECT;
			return;
		}
		fields_read(&copy, copy.flags, &d);
		if ((d.flags & VRING_DESC_F_INDIRECT) != 0) {
			w->outcome = SL_VRING_BAD_INDIRECT;
			return;
		}
		vring_walk_add(w, &d);
	}
}

static bool
is_available(uint16_t flags, bool wrap)
{
	return ((flags & F_AVAIL) != 0) == wrap && ((flags & F_USED) != 0) != wrap;
}

static void
advance(const struct sl_vring *r, uint16_t *at, bool *wrap, uint16_t slots)
{
	uint32_t to = (uint32_t)*at + slots;

	if (to >= r->conf.size) {
		to -= r->conf.size;
		*wrap = !*wrap;
	}
	*at = (uint16_t)to;
}

enum sl_vring_outcome
vring_packed_pop(struct sl_vring *r, struct vring_walk *w)
{
	uint16_t at = r->next_avail, slots = 0;
	bool wrap = r->avail_wrap;
	struct vring_fields d;
	/* VR1: the driver writes the flags of a chain's first descriptor last. */
	uint16_t flags = sl_load_acquire(&r->conf.packed[at].flags);

	if (!is_available(flags, wrap))
		return SL_VRING_EMPTY;
	/* The whole chain is walked also when it is spoilt: its length says where the next starts.
	 */
	for (;;) {
		fields_read(&r->conf.packed[at], flags, &d);
		advance(r, &at, &wrap, 1);
		slots++;
		if ((flags & VRING_DESC_F_INDIRECT) == 0)
			vring_walk_add(w, &d);
		else if (slots > 1 || (flags & VRING_DESC_F_NEXT) != 0)
			w->outcome = SL_VRING_BAD_INDIRECT;
		else
			walk_table(r, w, &d);
		if ((flags & VRING_DESC_F_NEXT) == 0)
			break;
		if (slots == r->conf.size)
			return SL_VRING_LOOP;
		flags = sl_load_relaxed(&r->conf.packed[at].flags);
	}
	if (d.next >= r->conf.size)
		return SL_VRING_BAD_ID;
	w->chain->id = d.next;
	w->chain->slots = slots;
	r->next_avail = at;
	r->avail_wrap = wrap;
	return vring_walk_end(w);
}

uint16_t
vring_packed_pop_plain(struct sl_vring *r, const struct sl_vmem *mem, struct sl_vring_chain *chain,
	struct sl_vring_span *span, uint16_t n)
{
	struct vring_plain p;
	uint16_t i;

	vring_plain_begin(&p, r, mem);
	for (i = 0; i < n; i++) {
		const struct vring_packed_desc *at = &r->conf.packed[r->next_avail];
		uint16_t flags = sl_load_acquire(&at->flags); /* VR1 */
		struct vring_fields d;

		if (!is_available(flags, r->avail_wrap))
			break;
		fields_read(at, flags, &d);
		if (d.next >= r->conf.size ||
			!vring_plain_take(&p, &d, d.next, &chain[i], &span[i]))
			break;
		advance(r, &r->next_avail, &r->avail_wrap, 1);
	}
	return i;
}

bool
vring_packed_ready(struct sl_vring *r)
{
	return is_available(sl_load_acquire(&r->conf.packed[r->next_avail].flags), /* VR1 */
		r->avail_wrap);
}

void
vring_packed_rewind(struct sl_vring *r, uint16_t slots)
{
	if (slots > r->next_avail) {
		r->next_avail = (uint16_t)(r->next_avail + r->conf.size - slots);
		r->avail_wrap = !r->avail_wrap;
	} else {
		r->next_avail -= slots;
	}
}

static uint16_t
used_flags(bool wrap)
{
	return wrap ? F_AVAIL | F_USED : 0;
}

/* The slots of a chain behind its first one, which no driver looks at: for sl_vring_recover, which
 * tells from the last one that the chain was being pushed, so that one is written first. */
static void
mark_rest(struct sl_vring *r, uint16_t slots)
{
	for (uint16_t i = (uint16_t)(slots - 1); i > 0; i--) {
		uint16_t at = r->next_used;
		bool wrap = r->used_wrap;

		advance(r, &at, &wrap, i);
		/* VR5: in this order, and behind the entry's id. */
		sl_store_release(&r->conf.packed[at].flags, used_flags(wrap));
	}
}

void
vring_packed_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint32_t len)
{
	struct vring_packed_desc *d = &r->conf.packed[r->next_used];
	uint16_t flags = (uint16_t)(used_flags(r->used_wrap) | (len > 0 ? VRING_DESC_F_WRITE : 0));

	sl_store_relaxed(&d->id, chain->id);
	sl_store_relaxed(&d->len, len);
	if (SL_UNLIKELY(chain->slots > 1))
		mark_rest(r, chain->slots);
	/* The driver looks at the entries in turn: while the first one's flags are held back (VR2)
	 * it cannot reach the others, so theirs may be written at once. */
	if (r->unflushed == 0) {
		r->first_slot = r->next_used;
		r->first_flags = flags;
		r->added = 0;
	} else if (chain->slots == 1) {
		sl_store_relaxed(&d->flags, flags);
	} else {
		sl_store_release(&d->flags, flags); /* VR5 */
	}
	r->added = (uint16_t)RTE_MIN((uint32_t)r->added + chain->slots, (uint32_t)r->conf.size);
	advance(r, &r->next_used, &r->used_wrap, chain->slots);
}

bool
vring_packed_flush(struct sl_vring *r)
{
	uint16_t off_wrap, flags, event;

	r->unflushed = 0;
	/* VR2: all entries, and what was written to the chains, come before these flags. */
	sl_store_release(&r->conf.packed[r->first_slot].flags, r->first_flags);
	/* VR3: the flags must not pass the look at the driver's wish. */
	sl_fence_seq_cst();
	flags = sl_load_relaxed(&r->conf.driver_event->flags);
	if (flags != VRING_PACKED_EVENT_FLAG_DESC)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	off_wrap = sl_load_relaxed(&r->conf.driver_event->off_wrap);
	event = (uint16_t)(off_wrap & ~EVENT_WRAP);
	/* Seen from the present round, an event of the round before lies one ring size earlier. */
	if (((off_wrap & EVENT_WRAP) != 0) != r->used_wrap)
		event -= r->conf.size;
	return vring_passed(event, r->next_used, (uint16_t)(r->next_used - r->added));
}

void
vring_packed_want_kicks(struct sl_vring *r, bool want)
{
	uint16_t flags = want ? VRING_PACKED_EVENT_FLAG_ENABLE : VRING_PACKED_EVENT_FLAG_DISABLE;

	if (want && (r->conf.features & SL_VRING_F_EVENT_IDX) != 0) {
		sl_store_relaxed(&r->conf.device_event->off_wrap,
			(uint16_t)(r->next_avail | (r->avail_wrap ? EVENT_WRAP : 0)));
		flags = VRING_PACKED_EVENT_FLAG_DESC;
	}
	/* VR4: the driver that reads DESC reads the position that belongs to it. */
	sl_store_release(&r->conf.device_event->flags, flags);
}

/* ---- where a dead device has left it ---- */

static bool
used_bit(const struct sl_vring *r, uint16_t at)
{
	return (sl_load_acquire(&r->conf.packed[at].flags) & F_USED) != 0; /* VR5 */
}

/*
 * The slots at which the used bit changes; at slot 0, where the rounds change too, those at which
 * it does not. A device that has flushed leaves one. One that has not leaves two more, around what
 * it held back, and another two if it was pushing a chain of several slots, the last one first:
 *
 *     round of ones   1 1 1 0 0 0 0 0    1 1 1 0 1 1 0 0    1 1 1 0 1 1 0 0 1 0
 *                           ^                  ^ ^   ^            ^ ^   ^   ^ ^
 *                           resume             |     resume       |           resume
 *                                              held back          held back
 */
#define CHANGES_MAX 5u

/* Returns how many there are; more than CHANGES_MAX are no work of ours. */
static uint32_t
changes_find(const struct sl_vring *r, uint16_t at[CHANGES_MAX])
{
	bool before = used_bit(r, (uint16_t)(r->conf.size - 1));
	uint32_t n = 0;

	for (uint16_t i = 0; i < r->conf.size; i++) {
		bool bit = used_bit(r, i);

		if ((bit != before) != (i == 0)) {
			if (n == CHANGES_MAX)
				return n + 1;
			at[n++] = i;
		}
		before = bit;
	}
	return n;
}

static uint16_t
distance(const struct sl_vring *r, uint16_t from, uint16_t to)
{
	return (uint16_t)(to >= from ? to - from : to + r->conf.size - from);
}

/* Any of the changes could be the first one. It is the one from which the fewest slots reach to the
 * last: nobody flushes half a ring at once. */
static uint32_t
first_change(const struct sl_vring *r, const uint16_t *at, uint32_t n)
{
	uint32_t best = 0;
	uint16_t least = UINT16_MAX;

	for (uint32_t i = 0; i < n; i++) {
		uint16_t slots = distance(r, at[i], at[(i + n - 1) % n]);

		if (slots < least) {
			least = slots;
			best = i;
		}
	}
	return best;
}

/* Hand back with nothing in them the slots that no driver has seen: the first one is the last. */
static void
hand_back(struct sl_vring *r, uint16_t n)
{
	for (uint16_t i = n; i-- > 0;) {
		struct vring_packed_desc *d;
		uint16_t at = r->next_used;
		bool wrap = r->used_wrap;

		advance(r, &at, &wrap, i);
		d = &r->conf.packed[at];
		sl_store_relaxed(&d->len, 0u);
		sl_store_release(&d->flags, used_flags(wrap)); /* VR2 */
	}
}

bool
vring_packed_recover(struct sl_vring *r, uint16_t *lost)
{
	uint16_t at[CHANGES_MAX], was = r->next_used;
	bool wrapped = r->used_wrap;
	uint32_t n = changes_find(r, at), first;

	/* An even number is what a driver that writes meanwhile can make of it. */
	if (n > CHANGES_MAX || n % 2 == 0)
		return false;
	first = first_change(r, at, n);
	r->next_used = at[first];
	r->used_wrap = !used_bit(r, at[first]); /* the round has not come to it */
	*lost = distance(r, at[first], at[(first + n - 1) % n]);
	hand_back(r, *lost);
	advance(r, &r->next_used, &r->used_wrap, *lost);
	r->next_avail = r->next_used;
	r->avail_wrap = r->used_wrap;
	return *lost > 0 || r->next_used != was || r->used_wrap != wrapped;
}
