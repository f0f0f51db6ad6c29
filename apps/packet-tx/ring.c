/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stddef.h>

#include "sl_pktring_slot.h"
#include "tx.h"

#define BLOCK_BYTES 65536u

/* Frames in powers of two, so that blocks have no tail. */
void
tx_ring_geometry(
	const struct tx_conf *conf, uint32_t *frame_size, uint32_t *blocks, uint32_t *block_size)
{
	uint32_t need = conf->size + sl_pktring_hdrlen(conf->version), frame = 256, per_block;

	while (frame < need)
		frame *= 2;
	*frame_size = frame;
	*block_size = frame > BLOCK_BYTES ? frame : BLOCK_BYTES;
	per_block = *block_size / frame;
	*blocks = (conf->frames + per_block - 1) / per_block;
}

static uint8_t *
slot(const struct tx_ring *r, uint32_t n)
{
	return r->addr + (size_t)n * r->frame_size;
}

uint8_t *
tx_ring_next(struct tx_ring *r)
{
	if (!sl_pktring_is_available(r->version, slot(r, r->next)))
		return NULL;
	return slot(r, r->next) + sl_pktring_data(r->version);
}

void
tx_ring_submit(struct tx_ring *r, uint32_t len)
{
	sl_pktring_request(r->version, slot(r, r->next), len);
	r->next = r->next + 1 < r->frames ? r->next + 1 : 0;
}

uint32_t
tx_ring_refused(const struct tx_ring *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->frames; i++)
		n += sl_pktring_status(r->version, slot(r, i)) == TP_STATUS_WRONG_FORMAT;
	return n;
}

bool
tx_ring_idle(const struct tx_ring *r)
{
	for (uint32_t i = 0; i < r->frames; i++)
		if (!sl_pktring_is_available(r->version, slot(r, i)))
			return false;
	return true;
}
