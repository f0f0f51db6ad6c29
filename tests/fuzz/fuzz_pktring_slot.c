/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Transmit slots: options, then the ring's memory, frame by frame, as a client may leave it. What
 * the server accepts must lie within its frame.
 */
#include <stdlib.h>
#include <string.h>

#include "pktring_priv.h"

#define FRAME 256u
#define FRAMES 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sl_pktring_tx *
ring_make(uint8_t options)
{
	static const uint8_t vnet[] = {0, 10, 12, 0};
	struct sl_pktring_req req = {.dir = SL_PKTRING_TX, .version = options % 3};
	struct sl_pktring_tx_conf conf = {.has_off = options & 4,
		.dgram = options & 8,
		.vnet_size = vnet[options >> 4 & 3]};
	struct sl_pktring_state none = {0};
	struct sl_pktring_geo geo;
	struct sl_pktring_tx *ring;

	req.ask = (struct tpacket_req3){.tp_block_size = FRAME * FRAMES,
		.tp_block_nr = 1,
		.tp_frame_size = FRAME,
		.tp_frame_nr = FRAMES};
	if (sl_pktring_geometry(&req, &none, &geo) != 0 ||
		sl_pktring_tx_create(&geo, &conf, 1, &ring) != 0)
		abort();
	return ring;
}

static void
check_frame(const struct sl_pktring_tx *ring, const struct sl_pktring_frame *f, uint32_t cap)
{
	const struct sl_pktring_geo *geo = sl_pktring_tx_geo(ring);

	SL_ASSERT(f->slot < FRAMES);
	SL_ASSERT(f->offset >= sl_pktring_data(geo->version));
	SL_ASSERT((uint64_t)f->offset + f->len <= FRAME);
	SL_ASSERT(ring->conf.vnet_size != 0 || f->len <= cap);
	for (uint32_t i = 0; i < f->len; i++)
		SL_ASSERT(sl_pktring_tx_bytes(ring, f)[i] ==
			sl_pktring_tx_mem(ring)->addr[f->slot * FRAME + f->offset + i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_pktring_frame f;
	struct sl_pktring_tx *ring;
	uint32_t cap;

	if (size < 2)
		return 0;
	ring = ring_make(data[0]);
	cap = data[1];
	size = RTE_MIN(size - 2, (size_t)FRAME * FRAMES);
	memcpy(sl_pktring_tx_mem(ring)->addr, data + 2, size);
	for (uint32_t turn = 0; turn < FRAMES; turn++) {
		int ret = sl_pktring_tx_peek(ring, cap, &f);

		if (ret == 0)
			break;
		if (ret < 0) {
			sl_pktring_tx_reject(ring);
			SL_ASSERT(sl_pktring_tx_peek(ring, cap, &f) == 0);
			sl_pktring_tx_drop(ring);
			continue;
		}
		check_frame(ring, &f, cap);
		sl_pktring_tx_take(ring, 0);
		if (f.len % 2 == 0) {
			sl_pktring_tx_untake(ring, 0);
			sl_pktring_tx_take(ring, 0);
		}
		sl_pktring_tx_complete(ring, f.slot, 0);
	}
	SL_ASSERT(sl_pktring_tx_destroy(ring) == 0);
	return 0;
}
