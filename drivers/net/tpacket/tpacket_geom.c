/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>

#include "tpacket_wire.h"

/* Blocks up to this size are tried when the caller leaves the choice: larger ones need memory that
 * the kernel may only find in pieces, which costs translation entries. */
#define BLOCK_CHOICE_MAX (256u << 10)

#define V3_BLOCK_DEFAULT (256u << 10)
#define V3_BLOCKS_MIN 16
#define FRAME_STEP 64  /* a cache line: a frame's header never shares one with another's tail */
#define FRAME_ALIGN 16 /* what the kernel asks for */

static uint64_t
round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) / step * step;
}

/* The smallest block whose unused tail is below a sixteenth, else the one that wastes least. */
static uint32_t
choose_block(uint32_t frame, uint32_t page)
{
	uint32_t best = (uint32_t)round_up(frame, page);
	uint32_t size;

	for (size = page; size <= BLOCK_CHOICE_MAX; size *= 2) {
		if (size < frame)
			continue;
		if (size % frame * 16 <= size)
			return size;
		/* tails compared as fractions: tail / size */
		if ((uint64_t)(size % frame) * best < (uint64_t)(best % frame) * size)
			best = size;
	}
	return best;
}

static int
derive_frame(const struct tpacket_geom_ask *ask, struct tpacket_geom *out, bool *changed)
{
	uint64_t frame = ask->frame_size;

	if (frame == 0) {
		frame = round_up(ask->slot, FRAME_STEP);
	} else if (frame % FRAME_ALIGN != 0) {
		frame = round_up(frame, FRAME_ALIGN);
		*changed = true;
	}
	/* A frame that was asked too small for the MTU is granted: larger packets take the slower
	 * way through the socket's queue. Only the ring's own headers must fit. */
	if (frame > TPACKET_FRAME_MAX || frame < 128)
		return -EINVAL;
	out->frame_size = (uint32_t)frame;
	return 0;
}

static int
derive_block(const struct tpacket_geom_ask *ask, struct tpacket_geom *out, bool *changed)
{
	uint64_t block = ask->block_size;
	uint64_t least = ask->block_least > out->frame_size ? ask->block_least : out->frame_size;

	if (block == 0 && ask->whole_blocks)
		block = least > V3_BLOCK_DEFAULT ? least : V3_BLOCK_DEFAULT;
	else if (block == 0)
		block = choose_block(out->frame_size, ask->page);
	if (ask->block_size != 0 && (block % ask->page != 0 || block < least))
		*changed = true;
	if (block < least)
		block = least;
	block = round_up(block, ask->page);
	if (block > TPACKET_BLOCK_MAX)
		return -EINVAL;
	out->block_size = (uint32_t)block;
	out->per_block = out->block_size / out->frame_size;
	return out->per_block == 0 ? -EINVAL : 0;
}

int
tpacket_geom_derive(const struct tpacket_geom_ask *ask, struct tpacket_geom *out, bool *changed)
{
	uint64_t blocks;
	int ret;

	*changed = false;
	ret = derive_frame(ask, out, changed);
	if (ret == 0)
		ret = derive_block(ask, out, changed);
	if (ret != 0)
		return ret;
	blocks = round_up(ask->frame_nr == 0 ? 1 : ask->frame_nr, out->per_block) / out->per_block;
	if (ask->whole_blocks && blocks < V3_BLOCKS_MIN)
		blocks = V3_BLOCKS_MIN;
	if (blocks * out->block_size > TPACKET_RING_MAX)
		return -EINVAL;
	out->block_nr = (uint32_t)blocks;
	out->frame_nr = out->block_nr * out->per_block;
	if (ask->frame_nr != 0 && out->frame_nr != ask->frame_nr)
		*changed = true;
	return 0;
}
