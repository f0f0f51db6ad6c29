/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "vring_priv.h"

#define POSITION 0x7fffu /* packed: the index of a position, without its wrap counter */
#define WRAP 0x8000u

static bool
is_packed(const struct sl_vring *r)
{
	return (r->conf.features & SL_VRING_F_PACKED) != 0;
}

/* Places that virtio allows; at others a field would not be read at once. */
static bool
is_aligned(const void *part, uintptr_t to)
{
	return part != NULL && (uintptr_t)part % to == 0;
}

static int
conf_check(const struct sl_vring_conf *conf)
{
	if ((conf->features & ~(uint32_t)SL_VRING_F_ALL) != 0)
		return -EINVAL;
	if (conf->size == 0 || conf->size > SL_VRING_SIZE_MAX)
		return -EINVAL;
	if ((conf->features & SL_VRING_F_PACKED) != 0) {
		if (!is_aligned(conf->packed, 16) || !is_aligned(conf->driver_event, 4) ||
			!is_aligned(conf->device_event, 4))
			return -EINVAL;
		if ((conf->next_avail & POSITION) >= conf->size ||
			(conf->next_used & POSITION) >= conf->size)
			return -EINVAL;
		return 0;
	}
	if (!is_aligned(conf->desc, 16) || !is_aligned(conf->avail, 2) ||
		!is_aligned(conf->used, 4))
		return -EINVAL;
	return (conf->size & (conf->size - 1)) == 0 ? 0 : -EINVAL;
}

int
sl_vring_init(struct sl_vring *r, const struct sl_vring_conf *conf)
{
	int ret = conf_check(conf);

	if (ret != 0)
		return ret;
	memset(r, 0, sizeof(*r));
	r->conf = *conf;
	if (r->conf.chain_max == 0)
		r->conf.chain_max = UINT32_MAX;
	r->next_avail = conf->next_avail;
	r->next_used = conf->next_used;
	r->seen = conf->next_avail;
	if (is_packed(r)) {
		r->next_avail &= POSITION;
		r->next_used &= POSITION;
		r->avail_wrap = (conf->next_avail & WRAP) != 0;
		r->used_wrap = (conf->next_used & WRAP) != 0;
	}
	return 0;
}

void
vring_walk_add(struct vring_walk *w, const struct vring_fields *d)
{
	bool write = (d->flags & VRING_DESC_F_WRITE) != 0 && !w->read_all;
	struct sl_vring_chain *c = w->chain;
	uint64_t guest = d->addr, left = d->len;

	if (w->outcome != SL_VRING_OK)
		return;
	if (!write && c->writable_len > 0) {
		w->outcome = SL_VRING_DIRECTION;
		return;
	}
	w->bytes += d->len; /* at most 2^15 x 2^32: no wrap */
	if (w->bytes > w->chain_max) {
		w->outcome = SL_VRING_OVERLONG;
		return;
	}
	while (left > 0) {
		uint16_t at = c->readable + c->writable;
		uint64_t piece = left;
		uint8_t *host = sl_vmem_translate(w->mem, guest, &piece);

		if (host == NULL || at == w->max) {
			w->outcome = host == NULL ? SL_VRING_BAD_ADDRESS : SL_VRING_MANY_SPANS;
			return;
		}
		w->span[at] = (struct sl_vring_span){.addr = host, .len = (uint32_t)piece};
		c->readable += !write;
		c->writable += write;
		guest += piece;
		left -= piece;
	}
	if (write)
		c->writable_len += d->len;
	else
		c->readable_len += d->len;
}

enum sl_vring_outcome
vring_walk_end(struct vring_walk *w)
{
	if (w->outcome == SL_VRING_OK && w->bytes == 0)
		w->outcome = SL_VRING_ZERO_LENGTH;
	return w->outcome;
}

bool
vring_table_check(const struct sl_vring *r, const struct vring_fields *d, uint32_t *entries)
{
	*entries = d->len / (uint32_t)sizeof(struct vring_desc);
	return (r->conf.features & SL_VRING_F_INDIRECT) != 0 && *entries > 0 &&
	       d->len % sizeof(struct vring_desc) == 0 && *entries <= r->conf.size;
}

enum sl_vring_outcome
sl_vring_pop(struct sl_vring *r, const struct sl_vmem *mem, struct sl_vring_chain *chain,
	struct sl_vring_span *span, uint16_t max)
{
	struct vring_walk w = {.mem = mem,
		.chain = chain,
		.span = span,
		.max = max,
		.chain_max = r->conf.chain_max,
		.read_all = (r->conf.features & SL_VRING_F_READ_ALL) != 0};
	enum sl_vring_outcome o;

	*chain = (struct sl_vring_chain){.slots = 1};
	if (SL_UNLIKELY(r->broken))
		o = SL_VRING_BROKEN;
	else
		o = is_packed(r) ? vring_packed_pop(r, &w) : vring_split_pop(r, &w);
	sl_counter_add(&r->outcomes[o], 1);
	if (sl_vring_has_chain(o)) {
		r->out++;
		sl_counter_add(&r->popped, 1);
	} else if (o != SL_VRING_EMPTY) {
		r->broken = true;
	}
	return o;
}

uint16_t
sl_vring_pop_plain(struct sl_vring *r, const struct sl_vmem *mem, struct sl_vring_chain *chain,
	struct sl_vring_span *span, uint16_t n)
{
	uint16_t taken;

	if (SL_UNLIKELY(r->broken))
		return 0;
	taken = is_packed(r) ? vring_packed_pop_plain(r, mem, chain, span, n)
			     : vring_split_pop_plain(r, mem, chain, span, n);
	sl_counter_add(&r->outcomes[SL_VRING_OK], taken);
	sl_counter_add(&r->popped, taken);
	r->out += taken;
	return taken;
}

void
sl_vring_rewind(struct sl_vring *r, uint16_t n, uint16_t slots)
{
	SL_DEBUG_ASSERT(n <= r->out);
	if (is_packed(r))
		vring_packed_rewind(r, slots);
	else
		r->next_avail -= n;
	r->out -= n;
	sl_counter_add(&r->rewound, n);
}

void
sl_vring_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint32_t len)
{
	SL_DEBUG_ASSERT(r->out > 0);
	if (is_packed(r))
		vring_packed_push(r, chain, len);
	else
		vring_split_push(r, chain, 1, len);
	r->out--;
	r->unflushed++;
	sl_counter_add(&r->pushed, 1);
}

void
sl_vring_push_unused(struct sl_vring *r, const struct sl_vring_chain *chain, uint16_t n)
{
	SL_DEBUG_ASSERT(r->out >= n);
	if (is_packed(r)) {
		for (uint16_t i = 0; i < n; i++)
			sl_vring_push(r, &chain[i], 0);
		return;
	}
	vring_split_push(r, chain, n, 0);
	r->out -= n;
	r->unflushed += n;
	sl_counter_add(&r->pushed, n);
}

bool
sl_vring_flush(struct sl_vring *r)
{
	if (r->unflushed == 0)
		return false;
	return is_packed(r) ? vring_packed_flush(r) : vring_split_flush(r);
}

bool
sl_vring_ready(struct sl_vring *r)
{
	if (r->broken)
		return false;
	return is_packed(r) ? vring_packed_ready(r) : vring_split_ready(r);
}

bool
sl_vring_want_kicks(struct sl_vring *r, bool want)
{
	if (is_packed(r))
		vring_packed_want_kicks(r, want);
	else
		vring_split_want_kicks(r, want);
	if (!want)
		return false;
	/* VR4: the wish must not pass the look at the ring below. */
	sl_fence_seq_cst();
	return sl_vring_ready(r);
}

bool
sl_vring_recover(struct sl_vring *r, uint16_t *lost)
{
	SL_DEBUG_ASSERT(r->popped == 0);
	*lost = 0;
	return is_packed(r) && vring_packed_recover(r, lost);
}

void
sl_vring_position(const struct sl_vring *r, uint16_t *next_avail, uint16_t *next_used)
{
	*next_avail = r->next_avail;
	*next_used = r->next_used;
	if (is_packed(r)) {
		*next_avail |= r->avail_wrap ? WRAP : 0;
		*next_used |= r->used_wrap ? WRAP : 0;
	}
}

const char *
sl_vring_outcome_name(enum sl_vring_outcome o)
{
	static const char *const names[SL_VRING_OUTCOME_COUNT] = {
		[SL_VRING_OK] = "ok",
		[SL_VRING_EMPTY] = "empty",
		[SL_VRING_BAD_ADDRESS] = "bad_address",
		[SL_VRING_ZERO_LENGTH] = "zero_length",
		[SL_VRING_OVERLONG] = "overlong",
		[SL_VRING_MANY_SPANS] = "many_spans",
		[SL_VRING_DIRECTION] = "direction",
		[SL_VRING_BAD_INDIRECT] = "bad_indirect",
		[SL_VRING_INDIRECT_NEXT] = "indirect_next",
		[SL_VRING_BAD_INDEX] = "bad_index",
		[SL_VRING_BAD_HEAD] = "bad_head",
		[SL_VRING_BAD_NEXT] = "bad_next",
		[SL_VRING_LOOP] = "loop",
		[SL_VRING_BAD_ID] = "bad_id",
		[SL_VRING_BROKEN] = "broken",
	};

	return o < SL_VRING_OUTCOME_COUNT ? names[o] : "unknown";
}

bool
sl_vring_check(const struct sl_vring *r)
{
	uint64_t chains = 0;

	for (int o = 0; o < SL_VRING_OUTCOME_COUNT; o++)
		if (sl_vring_has_chain((enum sl_vring_outcome)o))
			chains += sl_load_relaxed(&r->outcomes[o]);
	return r->popped == chains && r->popped == r->pushed + r->rewound + r->out;
}
