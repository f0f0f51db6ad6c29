/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Ring requests: whatever is accepted must describe frames that lie within the ring's memory. */
#include <string.h>

#include "pktring_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t dir, version, mapped, pending;
	uint32_t reserve;
	struct tpacket_req3 ask;
};

static void
check_geo(const struct sl_pktring_req *req, const struct sl_pktring_geo *geo)
{
	uint64_t least = (uint64_t)sl_pktring_hdrlen(geo->version) + req->reserve;

	SL_ASSERT(geo->bytes == (uint64_t)geo->block_size * geo->block_nr);
	SL_ASSERT(geo->block_size % 4096 == 0 && geo->frame_size % 16 == 0);
	SL_ASSERT(geo->frame_size >= least);
	SL_ASSERT((uint64_t)geo->frames_per_block * geo->frame_size <= geo->block_size);
	SL_ASSERT((uint64_t)geo->frames_per_block * geo->block_nr == geo->frame_nr);
	SL_ASSERT(sl_pktring_offset(geo, geo->frame_nr - 1) + geo->frame_size <= geo->bytes);
	if (geo->version == TPACKET_V3)
		SL_ASSERT((uint64_t)pktring_block_front(geo) + least <= geo->block_size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_pktring_state state = {0};
	struct sl_pktring_req req;
	struct sl_pktring_geo geo;
	struct input in;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	req = (struct sl_pktring_req){.dir = in.dir % 2 ? SL_PKTRING_TX : SL_PKTRING_RX,
		.version = in.version % 3,
		.reserve = in.reserve & INT32_MAX,
		.ask = in.ask};
	state.mapped = in.mapped == 1;
	state.pending = in.pending == 1;
	if (sl_pktring_geometry(&req, &state, &geo) != 0)
		return 0;
	SL_ASSERT(!state.mapped && !state.pending);
	if (req.ask.tp_block_nr == 0)
		SL_ASSERT(geo.bytes == 0);
	else
		check_geo(&req, &geo);
	return 0;
}
