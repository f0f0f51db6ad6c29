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

void
vring_packed_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint32_t len)
{
	struct vring_packed_desc *d = &r->conf.packed[r->next_used];
	uint16_t flags = (uint16_t)((r->used_wrap ? F_AVAIL | F_USED : 0) |
				    (len > 0 ? VRING_DESC_F_WRITE : 0));

	sl_store_relaxed(&d->id, chain->id);
	sl_store_relaxed(&d->len, len);
	/* The driver looks at the entries in turn: while the first one's flags are held back (VR2)
	 * it cannot reach the others, so theirs may be written at once. */
	if (r->unflushed == 0) {
		r->first_slot = r->next_used;
		r->first_flags = flags;
		r->added = 0;
	} else {
		sl_store_relaxed(&d->flags, flags);
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
