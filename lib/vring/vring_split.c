/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <rte_common.h>

#include "vring_priv.h"

/* Each field with one load that the compiler may not repeat. */
static void
fields_read(const struct vring_desc *d, struct vring_fields *f)
{
	f->addr = sl_load_relaxed(&d->addr);
	f->len = sl_load_relaxed(&d->len);
	f->flags = sl_load_relaxed(&d->flags);
	f->next = sl_load_relaxed(&d->next);
}

/* The descriptors of a table. What is wrong here spoils the chain, not the ring. */
static void
walk_table(struct sl_vring *r, struct vring_walk *w, const struct vring_fields *head)
{
	uint32_t entries, i = 0, left;

	if (!vring_table_check(r, head, &entries) || (head->flags & VRING_DESC_F_NEXT) != 0) {
		w->outcome = SL_VRING_BAD_INDIRECT;
		return;
	}
	for (left = entries; left > 0; left--) {
		struct vring_fields d;
		struct vring_desc copy;

		if (!vring_table_read(w->mem, head->addr, i, &copy)) {
			w->outcome = SL_VRING_BAD_INDIRECT;
			return;
		}
		fields_read(&copy, &d);
		if ((d.flags & VRING_DESC_F_INDIRECT) != 0) {
			w->outcome = SL_VRING_BAD_INDIRECT;
			return;
		}
		vring_walk_add(w, &d);
		if (w->outcome != SL_VRING_OK || (d.flags & VRING_DESC_F_NEXT) == 0)
			return;
		i = d.next;
		if (i >= entries)
			break;
	}
	w->outcome = SL_VRING_INDIRECT_NEXT;
}

/* Returns the outcome; BAD_NEXT and LOOP break the ring. */
static enum sl_vring_outcome
walk_ring(struct sl_vring *r, struct vring_walk *w, uint16_t head)
{
	uint16_t i = head;

	for (uint32_t left = r->conf.size; left > 0; left--) {
		struct vring_fields d;

		fields_read(&r->conf.desc[i], &d);
		if ((d.flags & VRING_DESC_F_INDIRECT) != 0) {
			walk_table(r, w, &d);
			return vring_walk_end(w);
		}
		vring_walk_add(w, &d);
		if ((d.flags & VRING_DESC_F_NEXT) == 0)
			return vring_walk_end(w);
		i = d.next;
		if (i >= r->conf.size)
			return SL_VRING_BAD_NEXT;
	}
	return SL_VRING_LOOP;
}

/* How many heads are there to take, by a fresh look at the index if the last one is used up. */
static uint16_t
heads_left(struct sl_vring *r)
{
	if (r->seen == r->next_avail) {
		/* VR1: the heads and descriptors behind this index are visible. */
		r->seen = sl_load_acquire(&r->conf.avail->idx);
	}
	return (uint16_t)(r->seen - r->next_avail);
}

enum sl_vring_outcome
vring_split_pop(struct sl_vring *r, struct vring_walk *w)
{
	uint16_t left = heads_left(r), head;
	enum sl_vring_outcome o;

	if (left == 0)
		return SL_VRING_EMPTY;
	if (left > r->conf.size)
		return SL_VRING_BAD_INDEX;
	head = sl_load_relaxed(&r->conf.avail->ring[r->next_avail & (r->conf.size - 1)]);
	if (head >= r->conf.size)
		return SL_VRING_BAD_HEAD;
	w->chain->id = head;
	o = walk_ring(r, w, head);
	if (sl_vring_has_chain(o))
		r->next_avail++;
	return o;
}

uint16_t
vring_split_pop_plain(struct sl_vring *r, const struct sl_vmem *mem, struct sl_vring_chain *chain,
	struct sl_vring_span *span, uint16_t n)
{
	uint16_t left = heads_left(r), mask = (uint16_t)(r->conf.size - 1), i;
	const uint16_t next = r->next_avail;
	const struct vring_desc *desc = r->conf.desc;
	const uint16_t *heads = r->conf.avail->ring;
	struct vring_plain p;

	if (left > r->conf.size)
		return 0;
	n = RTE_MIN(n, left);
	vring_plain_begin(&p, r, mem);
	for (i = 0; i < n; i++) {
		uint16_t head = sl_load_relaxed(&heads[(next + i) & mask]);
		struct vring_fields d;

		if (head > mask)
			break;
		fields_read(&desc[head], &d);
		if (!vring_plain_take(&p, &d, head, &chain[i], &span[i]))
			break;
	}
	r->next_avail = (uint16_t)(next + i);
	return i;
}

bool
vring_split_ready(struct sl_vring *r)
{
	return heads_left(r) != 0;
}

void
vring_split_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint16_t n, uint32_t len)
{
	uint16_t mask = (uint16_t)(r->conf.size - 1);

	/* Relaxed: the driver looks at them only after the index (VR2). */
	for (uint16_t i = 0; i < n; i++) {
		struct vring_used_elem *e = &r->conf.used->ring[(r->next_used + i) & mask];

		sl_store_relaxed(&e->id, (uint32_t)chain[i].id);
		sl_store_relaxed(&e->len, len);
	}
	r->next_used += n;
}

/* The driver's wish for calls lies behind the ring of available heads. */
static uint16_t
used_event(const struct sl_vring *r)
{
	return sl_load_relaxed(&r->conf.avail->ring[r->conf.size]);
}

bool
vring_split_flush(struct sl_vring *r)
{
	uint16_t old = (uint16_t)(r->next_used - r->unflushed);

	r->unflushed = 0;
	/* VR2: the entries, and what was written to the chains, come before the index. */
	sl_store_release(&r->conf.used->idx, r->next_used);
	/* VR3: the index must not pass the look at the driver's wish. */
	sl_fence_seq_cst();
	if ((r->conf.features & SL_VRING_F_EVENT_IDX) != 0)
		return vring_passed(used_event(r), r->next_used, old);
	return (sl_load_relaxed(&r->conf.avail->flags) & VRING_AVAIL_F_NO_INTERRUPT) == 0;
}

void
vring_split_want_kicks(struct sl_vring *r, bool want)
{
	/* Our wish lies behind the ring of used entries: two bytes, aligned to two. */
	uint16_t *avail_event = (uint16_t *)&r->conf.used->ring[r->conf.size];

	if ((r->conf.features & SL_VRING_F_EVENT_IDX) == 0)
		sl_store_relaxed(
			&r->conf.used->flags, (uint16_t)(want ? 0 : VRING_USED_F_NO_NOTIFY));
	else if (want)
		sl_store_relaxed(avail_event, r->next_avail);
}
