/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any frame on its way to one of several lcores: how it lies in memory, and a tag in front, make no
 * difference to which; and none is lost.
 *
 * Input: how it lies in memory (fuzz_frames.h), then the frame.
 */
#include "fuzz_frames.h"

#include "spread.h"

#define TARGETS 5u
#define TAG_LEN 4u
#define MACS_LEN 12u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct spread *f_spread;

static uint16_t
pick(const uint8_t *frame, size_t len, uint8_t memory)
{
	struct rte_mbuf *m = make_mbuf(frame, len, memory);
	uint16_t target = spread_pick(f_spread, m);

	rte_pktmbuf_free(m);
	REQUIRE(target < TARGETS);
	return target;
}

static bool
is_tagged(const uint8_t *frame)
{
	return (frame[12] == 0x81 && frame[13] == 0) || (frame[12] == 0x88 && frame[13] == 0xa8);
}

static void
check_tag(const uint8_t *frame, size_t len, uint16_t target)
{
	uint8_t *tagged = malloc(len + TAG_LEN);

	REQUIRE(tagged != NULL);
	memcpy(tagged, frame, MACS_LEN);
	memcpy(tagged + MACS_LEN, "\x88\xa8\0\7", TAG_LEN);
	memcpy(tagged + MACS_LEN + TAG_LEN, frame + MACS_LEN, len - MACS_LEN);
	REQUIRE(pick(tagged, len + TAG_LEN, M_EXACT) == target);
	free(tagged);
}

/* A burst of it, over all rings and back. */
static void
pass(const uint8_t *frame, size_t len, uint8_t memory, uint16_t target)
{
	struct rte_mbuf *pkts[4];
	uint64_t touched;
	uint16_t own;

	for (size_t i = 0; i < SL_COUNT_OF(pkts); i++)
		pkts[i] = make_mbuf(frame, len, memory);
	own = spread_burst(f_spread, pkts, SL_COUNT_OF(pkts), &touched);
	REQUIRE(own == (target == 0 ? SL_COUNT_OF(pkts) : 0));
	REQUIRE(touched == (target == 0 ? 0 : UINT64_C(1) << target));
	if (target != 0) {
		struct rte_mbuf *taken[SPREAD_BURST];

		REQUIRE(spread_take(f_spread, target, taken) == SL_COUNT_OF(pkts));
		memcpy(pkts, taken, sizeof(pkts));
	}
	rte_pktmbuf_free_bulk(pkts, SL_COUNT_OF(pkts));
	REQUIRE(rte_mempool_avail_count(t_pool) == T_POOL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t target;

	if (f_spread == NULL) {
		t_init("fuzz_spread");
		REQUIRE(spread_create(TARGETS, 7, &f_spread) == 0);
	}
	if (size < 1 || size > 2000)
		return 0;
	target = pick(data + 1, size - 1, data[0]);
	REQUIRE(pick(data + 1, size - 1, M_EXACT) == target);
	REQUIRE(pick(data + 1, size - 1, M_EXACT | M_SPLIT) == target);
	if (size - 1 >= RTE_ETHER_HDR_LEN && !is_tagged(data + 1))
		check_tag(data + 1, size - 1, target);
	pass(data + 1, size - 1, data[0], target);
	return 0;
}
