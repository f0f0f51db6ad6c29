/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * pending: what counting slots in flight costs. Per lcore against one shared atomic against not
 * counting; in the counter alone and in a transmit ring; on one lcore and with two, where one takes
 * and the other gives back. Cycles for one packet.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "packet_help.h"
#include "sl_lcount.h"
#include "sl_pktring.h"

#define FRAMES 256u
#define CHECK_EVERY 256u
#define BURST 32u
#define HANDED (4 * BURST)

enum how { PER_LCORE, ATOMIC, NONE, HOWS };

static const char *const how_name[] = {"per-lcore", "atomic", "none"};

/* From the taker to the giver: slot numbers. */
struct lane {
	uint32_t slot[HANDED];
	uint32_t tail SL_CACHE_ALIGNED;
	uint32_t head SL_CACHE_ALIGNED;
};

struct pending {
	struct sl_lcount *count;
	struct sl_pktring_tx *ring;
	uint32_t slot; /* to fill next */
	struct lane lane;
	uint32_t done;
	enum how how;
	bool with_ring;
	unsigned int other; /* lcore, or RTE_MAX_LCORE for none */
};

struct side_arg {
	struct pending *p;
	enum how how;
};

/* The index under which an lcore counts: 0 takes, 1 gives; the shared cell is one atomic word. */
static uint32_t
as(enum how how, uint32_t lcore)
{
	return how == ATOMIC ? SL_LCOUNT_SHARED : lcore;
}

/* Counter alone, both lcores: take and give, all the same. */
static uint64_t
count_for(struct pending *p, uint32_t self, uint64_t end)
{
	uint32_t index = as(p->how, self);
	uint64_t n = 0;

	while (rte_get_tsc_cycles() < end) {
		for (uint32_t i = 0; i < CHECK_EVERY; i++) {
			if (p->how != NONE) {
				sl_lcount_take(p->count, index, 1);
				sl_lcount_give(p->count, index, 1);
			}
			sl_snapshot_barrier();
		}
		n += CHECK_EVERY;
	}
	return n;
}

static int
count_other(void *arg)
{
	struct pending *p = arg;

	while (!sl_load_acquire(&p->done))
		(void)count_for(p, 1, rte_get_tsc_cycles() + 10000);
	return 0;
}

static int
give_other(void *arg)
{
	struct pending *p = arg;
	struct lane *lane = &p->lane;

	for (;;) {
		uint32_t last = sl_load_acquire(&p->done), head = lane->head;
		uint32_t tail = sl_load_acquire(&lane->tail);

		if (head == tail && last)
			return 0;
		if (head == tail)
			rte_pause();
		for (; head != tail; head++)
			sl_pktring_tx_complete(p->ring, lane->slot[head % HANDED], as(p->how, 1));
		sl_store_release(&lane->head, head);
	}
}

static uint8_t *
slot_at(const struct pending *p, uint32_t n)
{
	return sl_pktring_tx_mem(p->ring)->addr + sl_pktring_offset(sl_pktring_tx_geo(p->ring), n);
}

static void
lane_wait(const struct lane *lane)
{
	while (lane->tail + BURST - sl_load_acquire(&lane->head) > HANDED)
		rte_pause();
}

/* The client's next request, found and taken: its slot, or UINT32_MAX when that is not what is
 * there. */
static uint32_t
take_next(struct pending *p)
{
	uint8_t *slot = slot_at(p, p->slot);
	struct sl_pktring_frame f;

	while (!sl_pktring_is_available(TPACKET_V2, slot))
		rte_pause();
	sl_pktring_request(TPACKET_V2, slot, 64);
	p->slot = (p->slot + 1) % FRAMES;
	if (sl_pktring_tx_peek(p->ring, UINT32_MAX, &f) != 1)
		return UINT32_MAX;
	sl_pktring_tx_take(p->ring, as(p->how, 0));
	return f.slot;
}

/* In bursts, as packets travel; each slot is counted alone, as it is when its packet is freed. */
static uint64_t
ring_for(struct pending *p, uint64_t end)
{
	struct lane *lane = &p->lane;
	bool alone = p->other == RTE_MAX_LCORE;
	uint64_t n = 0;

	do {
		uint32_t tail = lane->tail;

		lane_wait(lane);
		for (uint32_t i = 0; i < BURST; i++) {
			uint32_t slot = take_next(p);

			if (slot == UINT32_MAX)
				return 0;
			lane->slot[tail++ % HANDED] = slot;
		}
		for (uint32_t i = BURST; alone && i > 0; i--)
			sl_pktring_tx_complete(
				p->ring, lane->slot[(tail - i) % HANDED], as(p->how, 0));
		if (alone)
			lane->head = tail;
		sl_store_release(&lane->tail, tail);
		n += BURST;
	} while (rte_get_tsc_cycles() < end);
	return n;
}

static double
slice(void *arg, double seconds)
{
	const struct side_arg *a = arg;
	struct pending *p = a->p;
	uint64_t start, n;

	p->how = a->how;
	sl_store_release(&p->done, 0);
	if (p->other != RTE_MAX_LCORE &&
		rte_eal_remote_launch(p->with_ring ? give_other : count_other, p, p->other) != 0)
		return -1;
	start = rte_get_tsc_cycles();
	n = p->with_ring ? ring_for(p, start + (uint64_t)(seconds * (double)rte_get_tsc_hz()))
			 : count_for(p, 0, start + (uint64_t)(seconds * (double)rte_get_tsc_hz()));
	start = rte_get_tsc_cycles() - start;
	sl_store_release(&p->done, 1);
	if (p->other != RTE_MAX_LCORE)
		rte_eal_wait_lcore(p->other);
	if (n == 0 || sl_lcount_sum(p->count) != 0 || sl_pktring_tx_pending(p->ring) != 0)
		return -1; /* a count that does not come out is no measurement */
	return (double)start / (double)n;
}

static int
pending_open(struct pending *p)
{
	struct sl_pktring_req req = {.dir = SL_PKTRING_TX,
		.version = TPACKET_V2,
		.ask = {2048 * FRAMES, 1, 2048, FRAMES, 0, 0, 0}};
	struct sl_pktring_tx_conf conf = {0};
	struct sl_pktring_state none = {0};
	struct sl_pktring_geo geo;
	int ret = sl_pktring_geometry(&req, &none, &geo);

	if (ret == 0)
		ret = sl_pktring_tx_create(&geo, &conf, 2, &p->ring);
	return ret == 0 ? sl_lcount_create(2, -1, &p->count) : ret;
}

static int
case_run(const struct bench_opts *opts, struct pending *p, const char *name, double seconds)
{
	struct packet_side side[HOWS];
	struct side_arg arg[HOWS];

	for (int h = 0; h < HOWS; h++) {
		arg[h] = (struct side_arg){p, h};
		side[h] = (struct packet_side){how_name[h], slice, &arg[h]};
	}
	/* A ring that does not count cannot be taken away safely, so there is none to measure. */
	return packet_sides_run(
		opts, "pending", name, "cycles/packet", seconds, side, p->with_ring ? 2 : 3);
}

static int
run(const struct bench_opts *opts)
{
	static const char *const name[] = {
		"counter_1_lcore", "counter_2_lcores", "ring_1_lcore", "ring_2_lcores"};
	struct pending *p = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*p), 64));
	int ret;

	if (p == NULL)
		return -ENOMEM;
	*p = (struct pending){0};
	ret = pending_open(p);
	for (int i = 0; i < 4 && ret == 0; i++) {
		p->with_ring = i >= 2;
		p->other = i % 2 ? rte_get_next_lcore(-1, 1, 0) : RTE_MAX_LCORE;
		if (!bench_wanted(opts, name[i]))
			continue;
		if (i % 2 && p->other == RTE_MAX_LCORE)
			packet_skip(opts, "pending", name[i], "EAL has one lcore");
		else
			ret = case_run(opts, p, name[i], opts->seconds / 4);
	}
	sl_lcount_destroy(p->count);
	if (sl_pktring_tx_destroy(p->ring) != 0)
		ret = -EPROTO;
	free(p);
	return ret;
}

const struct bench_command bench_pending = {
	"pending", "slots in flight counted per lcore, in one atomic, and not at all", run};
