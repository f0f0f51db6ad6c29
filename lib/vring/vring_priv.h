/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef VRING_PRIV_H
#define VRING_PRIV_H

#include <linux/virtio_ring.h>

#include "sl_vring.h"

/* A descriptor's fields as read, once each; both layouts have these. */
struct vring_fields {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next; /* split: link; packed: buffer id */
};

/* What a walk over a chain has found so far. */
struct vring_walk {
	const struct sl_vmem *mem;
	struct sl_vring_chain *chain;
	struct sl_vring_span *span;
	uint16_t max;
	uint64_t bytes;
	uint32_t chain_max;
	bool read_all;
	enum sl_vring_outcome outcome; /* the first thing wrong */
};

/** Add one descriptor's memory to the chain. A wrong one sets the outcome; later ones do nothing.
 */
void vring_walk_add(struct vring_walk *w, const struct vring_fields *d);

/** Outcome of a finished walk. */
enum sl_vring_outcome vring_walk_end(struct vring_walk *w);

/**
 * Is an indirect descriptor's table usable?
 *
 * @param entries   set to the number of descriptors in it
 */
bool vring_table_check(const struct sl_vring *r, const struct vring_fields *d, uint32_t *entries);

/** Read one 16-byte descriptor out of a table, once; false if it is outside the memory. */
bool vring_table_read(
	const struct sl_vmem *mem, uint64_t table, uint32_t index, struct vring_desc *copy);

enum sl_vring_outcome vring_split_pop(struct sl_vring *r, struct vring_walk *w);
uint16_t vring_split_pop_plain(struct sl_vring *r, const struct sl_vmem *mem,
	struct sl_vring_chain *chain, struct sl_vring_span *span, uint16_t n);
void vring_split_push(
	struct sl_vring *r, const struct sl_vring_chain *chain, uint16_t n, uint32_t len);
bool vring_split_flush(struct sl_vring *r);
void vring_split_want_kicks(struct sl_vring *r, bool want);
bool vring_split_ready(struct sl_vring *r);

enum sl_vring_outcome vring_packed_pop(struct sl_vring *r, struct vring_walk *w);
uint16_t vring_packed_pop_plain(struct sl_vring *r, const struct sl_vmem *mem,
	struct sl_vring_chain *chain, struct sl_vring_span *span, uint16_t n);
void vring_packed_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint32_t len);
void vring_packed_rewind(struct sl_vring *r, uint16_t slots);
bool vring_packed_flush(struct sl_vring *r);
void vring_packed_want_kicks(struct sl_vring *r, bool want);
bool vring_packed_ready(struct sl_vring *r);
bool vring_packed_recover(struct sl_vring *r, uint16_t *lost);

/* What makes a descriptor plain, in a burst of them: limits of the ring, and the region that the
 * last one lay in, where the next one lies, too, as a rule. */
struct vring_plain {
	const struct sl_vmem *mem;
	struct sl_vmem_region region;
	uint32_t chain_max;
	uint16_t write; /* the flag that makes one writable; none if all are readable */
};

static inline void
vring_plain_begin(struct vring_plain *p, const struct sl_vring *r, const struct sl_vmem *mem)
{
	p->mem = mem;
	p->region = (struct sl_vmem_region){0}; /* in which nothing lies */
	p->chain_max = r->conf.chain_max;
	p->write = (r->conf.features & SL_VRING_F_READ_ALL) != 0 ? 0 : VRING_DESC_F_WRITE;
}

/* Make the region that an address lies in the one to look in; false if there is none. */
static inline bool
vring_plain_find(struct vring_plain *p, uint64_t addr)
{
	for (uint32_t i = 0; i < p->mem->count; i++) {
		p->region = p->mem->region[i];
		/* Huge when it lies before the region. */
		if (addr - p->region.guest < p->region.size)
			return true;
	}
	return false;
}

/**
 * Is this descriptor a whole chain in one piece of memory? Then describe it; else nothing is set.
 * Sees the fields' private copy.
 */
static inline bool
vring_plain_take(struct vring_plain *p, const struct vring_fields *d, uint16_t id,
	struct sl_vring_chain *chain, struct sl_vring_span *span)
{
	uint64_t offset;

	if ((d->flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)) != 0)
		return false;
	if (d->len - 1 >= p->chain_max) /* without a byte, huge */
		return false;
	if (SL_UNLIKELY(d->addr - p->region.guest >= p->region.size) &&
		!vring_plain_find(p, d->addr))
		return false;
	offset = d->addr - p->region.guest;
	if (d->len > p->region.size - offset)
		return false;
	*span = (struct sl_vring_span){p->region.host + offset, d->len};
	chain->id = id;
	chain->slots = 1;
	chain->readable = 1;
	chain->writable = 0;
	chain->readable_len = d->len;
	chain->writable_len = 0;
	if (SL_UNLIKELY((d->flags & p->write) != 0)) {
		chain->readable = 0;
		chain->writable = 1;
		chain->readable_len = 0;
		chain->writable_len = d->len;
	}
	return true;
}

/** Has an index that moved from old to now passed event? All modulo 2^16. */
static inline bool
vring_passed(uint16_t event, uint16_t now, uint16_t old)
{
	return (uint16_t)(now - event - 1) < (uint16_t)(now - old);
}

#endif
