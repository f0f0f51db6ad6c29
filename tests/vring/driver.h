/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef DRIVER_H
#define DRIVER_H

/*
 * The other side of a ring, honest unless a test tells it otherwise. Its memory is two regions that
 * follow each other in driver addresses and lie apart here:
 *
 *     driver:  BASE ........ BASE + HALF ........ BASE + 2 x HALF
 *     here:    low[HALF]            high[HALF]
 */
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_ring.h>

#include "sl_test.h"
#include "sl_vring.h"

#define BASE 0x7f0000000000ull
#define HALF 65536u
#define SIZE_MAX_HERE 256u

struct piece {
	uint64_t addr;
	uint32_t len;
	bool write;
};

struct driver {
	bool packed;
	bool event_idx;
	uint16_t size;
	uint8_t *low, *high;
	struct sl_vmem mem;
	struct sl_vring_conf conf;
	struct sl_vring ring; /* the device's */
	/* Split: a stack of free descriptors. Packed: of free ids. */
	uint16_t free[SIZE_MAX_HERE];
	uint16_t free_count;
	uint16_t slots[SIZE_MAX_HERE]; /* descriptors of the chain with this head or id */
	uint16_t links[SIZE_MAX_HERE]; /* split: as written, the ring's may be changed */
	uint16_t avail, used;	       /* next of each */
	bool avail_wrap, used_wrap;    /* packed */
	uint64_t table;		       /* address for the next indirect table */
};

static inline void *
zeroed(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);

	REQUIRE(p != NULL);
	memset(p, 0, (bytes + 63) / 64 * 64);
	return p;
}

/* A driver without a ring yet, which goes into conf. */
static inline void
driver_init(struct driver *d, bool packed, uint16_t size, uint16_t avail, uint16_t used)
{
	memset(d, 0, sizeof(*d));
	d->packed = packed;
	d->size = size;
	for (uint16_t i = 0; i < size; i++)
		d->free[i] = (uint16_t)(size - 1 - i);
	d->free_count = size;
	d->avail = packed ? avail & 0x7fff : avail;
	d->used = packed ? used & 0x7fff : used;
	d->avail_wrap = (avail & 0x8000) != 0;
	d->used_wrap = (used & 0x8000) != 0;
}

static inline void
driver_open_at(struct driver *d, bool packed, uint16_t size, uint32_t features, uint16_t avail,
	uint16_t used)
{
	driver_init(d, packed, size, avail, used);
	d->event_idx = (features & SL_VRING_F_EVENT_IDX) != 0;
	d->low = zeroed(HALF);
	d->high = zeroed(HALF);
	d->mem.count = 2;
	d->mem.region[0] = (struct sl_vmem_region){BASE, HALF, d->low};
	d->mem.region[1] = (struct sl_vmem_region){BASE + HALF, HALF, d->high};
	d->table = BASE + HALF / 2;
	d->conf = (struct sl_vring_conf){.features = features | (packed ? SL_VRING_F_PACKED : 0),
		.size = size,
		.next_avail = avail,
		.next_used = used};
	if (packed) {
		d->conf.packed = zeroed(size * sizeof(struct vring_packed_desc));
		d->conf.driver_event = zeroed(sizeof(struct vring_packed_desc_event));
		d->conf.device_event = zeroed(sizeof(struct vring_packed_desc_event));
	} else {
		d->conf.desc = zeroed(size * sizeof(struct vring_desc));
		d->conf.avail = zeroed(6 + 2 * (size_t)size);
		d->conf.used = zeroed(6 + 8 * (size_t)size);
		d->conf.avail->idx = avail;
		d->conf.used->idx = used;
	}
	REQUIRE(sl_vmem_check(&d->mem) == 0);
	REQUIRE(sl_vring_init(&d->ring, &d->conf) == 0);
}

static inline void
driver_open(struct driver *d, bool packed, uint16_t size, uint32_t features)
{
	uint16_t start = packed ? 0x8000 : 0;

	driver_open_at(d, packed, size, features, start, start);
}

static inline void
driver_close(struct driver *d)
{
	CHECK(sl_vring_check(&d->ring));
	free(d->low);
	free(d->high);
	free(d->conf.desc);
	free(d->conf.avail);
	free(d->conf.used);
	free(d->conf.packed);
	free(d->conf.driver_event);
	free(d->conf.device_event);
}

static inline uint8_t *
driver_host(struct driver *d, uint64_t addr)
{
	return addr < BASE + HALF ? d->low + (addr - BASE) : d->high + (addr - BASE - HALF);
}

static inline uint16_t
packed_avail_flags(const struct driver *d)
{
	return d->avail_wrap ? 1u << VRING_PACKED_DESC_F_AVAIL : 1u << VRING_PACKED_DESC_F_USED;
}

static inline uint16_t
put_packed(struct driver *d, const struct piece *p, uint16_t n, uint16_t extra)
{
	uint16_t id = d->free[--d->free_count], first = d->avail, first_flags = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct vring_packed_desc *desc = &d->conf.packed[d->avail];
		uint16_t flags = (uint16_t)(packed_avail_flags(d) | extra |
					    (p[i].write ? VRING_DESC_F_WRITE : 0) |
					    (i + 1 < n ? VRING_DESC_F_NEXT : 0));

		sl_store_relaxed(&desc->addr, p[i].addr);
		sl_store_relaxed(&desc->len, p[i].len);
		sl_store_relaxed(&desc->id, id);
		if (i == 0)
			first_flags = flags;
		else
			sl_store_relaxed(&desc->flags, flags);
		if (++d->avail == d->size) {
			d->avail = 0;
			d->avail_wrap = !d->avail_wrap;
		}
	}
	d->slots[id] = n;
	sl_store_release(&d->conf.packed[first].flags, first_flags); /* VR1 */
	return id;
}

static inline uint16_t
put_split(struct driver *d, const struct piece *p, uint16_t n, uint16_t extra)
{
	uint16_t head = d->free[d->free_count - 1];

	for (uint16_t i = 0; i < n; i++) {
		uint16_t at = d->free[--d->free_count];
		uint16_t next = i + 1 < n ? d->free[d->free_count - 1] : 0;
		struct vring_desc *desc = &d->conf.desc[at];

		sl_store_relaxed(&desc->addr, p[i].addr);
		sl_store_relaxed(&desc->len, p[i].len);
		sl_store_relaxed(
			&desc->flags, (uint16_t)(extra | (p[i].write ? VRING_DESC_F_WRITE : 0) |
						 (i + 1 < n ? VRING_DESC_F_NEXT : 0)));
		sl_store_relaxed(&desc->next, next);
		d->links[at] = next;
	}
	d->slots[head] = n;
	sl_store_relaxed(&d->conf.avail->ring[d->avail % d->size], head);
	sl_store_release(&d->conf.avail->idx, ++d->avail); /* VR1 */
	return head;
}

/* Make a chain available; returns its id. */
static inline uint16_t
driver_put(struct driver *d, const struct piece *p, uint16_t n)
{
	return d->packed ? put_packed(d, p, n, 0) : put_split(d, p, n, 0);
}

/* The same through an indirect table. */
static inline uint16_t
driver_put_indirect(struct driver *d, const struct piece *p, uint16_t n)
{
	struct piece table = {.addr = d->table, .len = n * 16u};

	for (uint16_t i = 0; i < n; i++) {
		uint8_t entry[16];

		if (d->packed) {
			struct vring_packed_desc e = {.addr = p[i].addr,
				.len = p[i].len,
				.flags = p[i].write ? VRING_DESC_F_WRITE : 0};
			memcpy(entry, &e, 16);
		} else {
			struct vring_desc e = {.addr = p[i].addr,
				.len = p[i].len,
				.flags = (uint16_t)((p[i].write ? VRING_DESC_F_WRITE : 0) |
						    (i + 1 < n ? VRING_DESC_F_NEXT : 0)),
				.next = (uint16_t)(i + 1)};
			memcpy(entry, &e, 16);
		}
		for (uint32_t b = 0; b < 16; b++)
			*driver_host(d, d->table + i * 16u + b) = entry[b];
	}
	return d->packed ? put_packed(d, &table, 1, VRING_DESC_F_INDIRECT)
			 : put_split(d, &table, 1, VRING_DESC_F_INDIRECT);
}

/* The next used chain; false if there is none. */
static inline bool
driver_used(struct driver *d, uint16_t *id, uint32_t *len)
{
	if (d->packed) {
		struct vring_packed_desc *desc = &d->conf.packed[d->used];
		uint16_t flags = sl_load_acquire(&desc->flags); /* VR2 */
		bool avail = (flags & 1u << VRING_PACKED_DESC_F_AVAIL) != 0;
		bool used = (flags & 1u << VRING_PACKED_DESC_F_USED) != 0;

		if (avail != used || used != d->used_wrap)
			return false;
		*id = sl_load_relaxed(&desc->id);
		*len = sl_load_relaxed(&desc->len);
		d->used = (uint16_t)(d->used + d->slots[*id]);
		if (d->used >= d->size) {
			d->used = (uint16_t)(d->used - d->size);
			d->used_wrap = !d->used_wrap;
		}
		d->free[d->free_count++] = *id;
		return true;
	}
	if (sl_load_acquire(&d->conf.used->idx) == d->used) /* VR2 */
		return false;
	*id = (uint16_t)sl_load_relaxed(&d->conf.used->ring[d->used % d->size].id);
	*len = sl_load_relaxed(&d->conf.used->ring[d->used % d->size].len);
	d->used++;
	for (uint16_t i = *id, n = d->slots[*id]; n > 0; i = d->links[i], n--)
		d->free[d->free_count++] = i;
	return true;
}

/* Every second time the short way is tried first: what it does not take must be left as it was. */
static inline enum sl_vring_outcome
device_pop(struct driver *d, struct sl_vring_chain *c, struct sl_vring_span *span, uint16_t max)
{
	static unsigned int times;

	if (times++ % 2 == 0 && max > 0 && sl_vring_pop_plain(&d->ring, &d->mem, c, span, 1) == 1)
		return SL_VRING_OK;
	return sl_vring_pop(&d->ring, &d->mem, c, span, max);
}

#endif
