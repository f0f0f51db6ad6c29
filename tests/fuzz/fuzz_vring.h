/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FUZZ_VRING_H
#define FUZZ_VRING_H

/*
 * A ring whose every byte comes from the input. Byte 0: features; byte 1: size; 2..5: where the
 * device stands; then the ring's parts; the rest is the driver's memory, in two regions. Each part
 * is a block of its exact size, so that a sanitizer sees the first byte outside.
 */
#include <stdlib.h>
#include <string.h>

#include "vring_priv.h"

#define FUZZ_BASE 0x1000u
#define FUZZ_SPANS 8

struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

static inline void *
fuzz_take(struct fuzz_input *in, size_t bytes)
{
	size_t have = bytes < in->size ? bytes : in->size;
	void *p = calloc(1, bytes > 0 ? bytes : 1);

	if (p == NULL)
		abort();
	memcpy(p, in->data, have);
	in->data += have;
	in->size -= have;
	return p;
}

static inline void
fuzz_span_check(const struct sl_vmem *mem, const struct sl_vring_span *s)
{
	for (uint32_t i = 0; i < mem->count; i++) {
		const struct sl_vmem_region *g = &mem->region[i];

		if (s->addr >= g->host && s->addr < g->host + g->size &&
			s->len <= (uint64_t)(g->host + g->size - s->addr))
			return;
	}
	abort();
}

/* Pops until nothing comes any more, at most a few rounds of the ring. */
static inline void
fuzz_serve(struct sl_vring *r, const struct sl_vmem *mem)
{
	for (int i = 0; i < 100; i++) {
		struct sl_vring_span span[FUZZ_SPANS];
		struct sl_vring_chain c;
		enum sl_vring_outcome o = SL_VRING_OK;

		if (i % 2 == 1 || sl_vring_pop_plain(r, mem, &c, span, 1) == 0)
			o = sl_vring_pop(r, mem, &c, span, FUZZ_SPANS);

		if (!sl_vring_has_chain(o))
			break;
		if (c.id >= r->conf.size || c.slots == 0 || c.slots > r->conf.size)
			abort();
		for (int k = 0; o == SL_VRING_OK && k < c.readable + c.writable; k++)
			fuzz_span_check(mem, &span[k]);
		if (i % 7 == 3) {
			sl_vring_rewind(r, 1, c.slots);
			continue;
		}
		/* What is written comes to lie anywhere, also in tables that follow. */
		if (o == SL_VRING_OK)
			(void)sl_vring_copy_in(
				span + c.readable, c.writable, 0, "\1\2\3\4\5\6\7\10", 8);
		sl_vring_push(r, &c, c.writable_len);
		if (i % 3 == 0)
			(void)!sl_vring_flush(r);
	}
	(void)!sl_vring_flush(r);
	(void)!sl_vring_want_kicks(r, true);
	if (!sl_vring_check(r))
		abort();
}

static inline void
fuzz_memory(struct fuzz_input *in, struct sl_vmem *mem)
{
	size_t half = in->size / 2 + 1, rest = in->size - in->size / 2 + 1;

	mem->count = 2;
	mem->region[0] = (struct sl_vmem_region){FUZZ_BASE, half, fuzz_take(in, half)};
	mem->region[1] = (struct sl_vmem_region){FUZZ_BASE + half, rest, fuzz_take(in, rest)};
}

static inline void
fuzz_memory_free(struct sl_vmem *mem)
{
	free(mem->region[0].host);
	free(mem->region[1].host);
}

#endif
