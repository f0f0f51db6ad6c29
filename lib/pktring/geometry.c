/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "pktring_priv.h"

/* The part of the checks that comes before any number is looked at. */
static int
check_state(const struct tpacket_req3 *ask, const struct sl_pktring_state *state)
{
	if (state->mapped || state->pending)
		return -EBUSY;
	if (ask->tp_block_nr == 0)
		return ask->tp_frame_nr == 0 ? 0 : -EINVAL;
	return state->exists ? -EBUSY : 0;
}

static int
check_block(const struct sl_pktring_req *req, uint64_t min_frame)
{
	const struct tpacket_req3 *ask = &req->ask;
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint64_t priv = RTE_ALIGN_CEIL((uint64_t)ask->tp_sizeof_priv, 8);

	if (ask->tp_block_size == 0 || ask->tp_block_size > INT_MAX)
		return -EINVAL;
	if (ask->tp_block_size % page != 0)
		return -EINVAL;
	/* In 64 bits: a private area near 2^32 must not wrap. */
	if (req->version == TPACKET_V3 && ask->tp_block_size < BLOCK_HEADER + priv + min_frame)
		return -EINVAL;
	return 0;
}

static int
check_frame(const struct tpacket_req3 *ask, uint64_t min_frame)
{
	uint32_t per_block;

	if (ask->tp_frame_size < min_frame || ask->tp_frame_size % TPACKET_ALIGNMENT != 0)
		return -EINVAL;
	per_block = ask->tp_block_size / ask->tp_frame_size;
	if (per_block == 0 || per_block > UINT_MAX / ask->tp_block_nr)
		return -EINVAL;
	return per_block * ask->tp_block_nr == ask->tp_frame_nr ? 0 : -EINVAL;
}

static void
geo_fill(const struct sl_pktring_req *req, struct sl_pktring_geo *geo)
{
	const struct tpacket_req3 *ask = &req->ask;
	bool v3 = req->version == TPACKET_V3;

	*geo = (struct sl_pktring_geo){.dir = req->dir,
		.version = req->version,
		.reserve = req->reserve,
		.block_size = ask->tp_block_size,
		.block_nr = ask->tp_block_nr,
		.frame_size = ask->tp_frame_size,
		.frame_nr = ask->tp_frame_nr,
		.frames_per_block = ask->tp_block_size / ask->tp_frame_size,
		.retire_ms = v3 ? ask->tp_retire_blk_tov : 0,
		.priv_size = v3 ? ask->tp_sizeof_priv : 0,
		.features = v3 ? ask->tp_feature_req_word : 0,
		.bytes = (size_t)ask->tp_block_size * ask->tp_block_nr};
}

int
sl_pktring_geometry(const struct sl_pktring_req *req, const struct sl_pktring_state *state,
	struct sl_pktring_geo *geo)
{
	uint64_t min_frame;
	int ret;

	SL_ASSERT(req->version >= TPACKET_V1 && req->version <= TPACKET_V3);
	ret = check_state(&req->ask, state);
	if (ret != 0)
		return ret;
	if (req->ask.tp_block_nr == 0) {
		*geo = (struct sl_pktring_geo){.dir = req->dir, .version = req->version};
		return 0;
	}
	min_frame = (uint64_t)sl_pktring_hdrlen(req->version) + req->reserve;
	ret = check_block(req, min_frame);
	if (ret == 0)
		ret = check_frame(&req->ask, min_frame);
	if (ret == 0)
		geo_fill(req, geo);
	return ret;
}

void
pktring_stamp(int version, uint8_t *slot, uint64_t ns)
{
	uint32_t sec = (uint32_t)(ns / 1000000000), rest = (uint32_t)(ns % 1000000000);

	switch (version) {
	case TPACKET_V1:
		((struct tpacket_hdr *)slot)->tp_sec = sec;
		((struct tpacket_hdr *)slot)->tp_usec = rest / 1000;
		break;
	case TPACKET_V2:
		((struct tpacket2_hdr *)slot)->tp_sec = sec;
		((struct tpacket2_hdr *)slot)->tp_nsec = rest;
		break;
	default:
		((struct tpacket3_hdr *)slot)->tp_sec = sec;
		((struct tpacket3_hdr *)slot)->tp_nsec = rest;
		break;
	}
}
