/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Rings between threads, for ThreadSanitizer and for the counts. Transmit: a client fills slots, a
 * sender takes them, one by one and in bursts of mbufs, two completers give them back; every frame
 * arrives once and in order, and no slot's bytes change while somebody reads them. Receive: two
 * writers, one client, all versions.
 */
#include <pthread.h>
#include <sched.h>

#include "ring_help.h"
#include "sl_pktring_mbuf.h"

#define COUNT 200000u
#define QUEUE 16u

/* From the sender to one completer: slot numbers, single producer, single consumer. */
struct lane {
	uint32_t slot[QUEUE];
	uint64_t expect[QUEUE];
	struct rte_mbuf_ext_shared_info *lent[QUEUE]; /* NULL when the slot was taken alone */
	uint32_t tail SL_CACHE_ALIGNED;
	uint32_t head SL_CACHE_ALIGNED;
};

struct run {
	int version;
	struct sl_pktring_tx *tx;
	struct sl_pktring_rx *rx;
	struct lane lane[2];
	uint32_t done;	  /* the sender has sent everything */
	uint32_t writers; /* that still run */
	uint64_t wrong;	  /* bytes that changed, or frames out of order */
	uint64_t stored[2];
};

struct worker {
	struct run *run;
	uint32_t index;
	pthread_t thread;
};

static uint64_t *
words_of(uint8_t *p)
{
	return (uint64_t *)(p - (uintptr_t)p % 8);
}

static void *
tx_client(void *arg)
{
	struct run *r = ((struct worker *)arg)->run;

	for (uint64_t seq = 0; seq < COUNT; seq++) {
		uint8_t *slot = tx_slot(r->tx, (uint32_t)(seq % FRAMES));
		uint64_t *data = words_of(slot + sl_pktring_data(r->version));

		while (!sl_pktring_is_available(r->version, slot))
			sched_yield();
		for (int i = 0; i < 8; i++)
			data[i] = seq;
		sl_pktring_request(r->version, slot, 64);
	}
	return NULL;
}

static void *
tx_sender(void *arg)
{
	struct run *r = ((struct worker *)arg)->run;

	for (uint64_t seq = 0; seq < COUNT;) {
		struct lane *lane = &r->lane[seq % 2];
		struct sl_pktring_frame f;

		if (lane->tail - sl_load_acquire(&lane->head) == QUEUE ||
			sl_pktring_tx_peek(r->tx, UINT32_MAX, &f) != 1) {
			sched_yield();
			continue;
		}
		sl_pktring_tx_take(r->tx, 0);
		lane->slot[lane->tail % QUEUE] = f.slot;
		lane->expect[lane->tail % QUEUE] = seq;
		sl_store_release(&lane->tail, lane->tail + 1);
		seq++;
	}
	sl_store_release(&r->done, 1);
	return NULL;
}

/* The same with the burst that makes mbufs. What frees them is called as the mbuf library would
 * call it; the mbufs are this thread's own, as a pool is no part of this. */
static void *
tx_lender(void *arg)
{
	struct run *r = ((struct worker *)arg)->run;
	struct sl_pktring_lend want = {64, 64, 0, 0};
	struct rte_mbuf *raw = calloc(FRAMES, sizeof(*raw)), *m[FRAMES];
	uint32_t len[FRAMES];

	REQUIRE(raw != NULL);
	for (uint32_t i = 0; i < FRAMES; i++)
		m[i] = &raw[i];
	for (uint64_t seq = 0; seq < COUNT;) {
		struct lane *lane = &r->lane[seq / 3 % 2];
		uint32_t room = QUEUE - (lane->tail - sl_load_acquire(&lane->head));
		/* Up to where the other lane's turn is. */
		uint16_t most = (uint16_t)RTE_MIN((uint64_t)room, 3 - seq % 3);
		uint16_t n = sl_pktring_mbuf_lend(r->tx, &want, m, len, most);

		for (uint16_t i = 0; i < n; i++, seq++) {
			lane->lent[(lane->tail + i) % QUEUE] = m[i]->shinfo;
			lane->slot[(lane->tail + i) % QUEUE] = (uint32_t)(seq % FRAMES);
			lane->expect[(lane->tail + i) % QUEUE] = seq;
		}
		sl_store_release(&lane->tail, lane->tail + n);
		if (n == 0)
			sched_yield();
	}
	sl_store_release(&r->done, 1);
	free(raw);
	return NULL;
}

static void
complete(struct run *r, struct lane *lane, uint32_t slot, uint32_t worker)
{
	struct rte_mbuf_ext_shared_info *lent = lane->lent[lane->head % QUEUE];

	if (lent != NULL)
		lent->free_cb(NULL, lent->fcb_opaque);
	else
		sl_pktring_tx_complete(r->tx, slot, worker);
}

static void *
tx_completer(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	struct lane *lane = &r->lane[w->index];
	uint32_t worker = w->index == 0 ? 1 : SL_LCOUNT_SHARED;

	for (;;) {
		uint32_t last = sl_load_acquire(&r->done);
		uint32_t slot;

		if (lane->head == sl_load_acquire(&lane->tail)) {
			if (last)
				return NULL;
			sched_yield();
			continue;
		}
		slot = lane->slot[lane->head % QUEUE];
		for (int i = 0; i < 8; i++) {
			uint64_t *data =
				words_of(tx_slot(r->tx, slot) + sl_pktring_data(r->version));

			if (data[i] != lane->expect[lane->head % QUEUE])
				sl_fetch_add_relaxed(&r->wrong, 1);
		}
		complete(r, lane, slot, worker);
		sl_store_release(&lane->head, lane->head + 1);
	}
}

static void
start(struct worker *w, struct run *run, uint32_t index, void *(*body)(void *))
{
	w->run = run;
	w->index = index;
	REQUIRE(pthread_create(&w->thread, NULL, body, w) == 0);
}

static void
transmit(int version, void *(*sender)(void *))
{
	struct run run = {
		.version = version, .tx = ring_tx(version, (struct sl_pktring_tx_conf){0})};
	struct worker w[4];

	start(&w[0], &run, 0, tx_client);
	start(&w[1], &run, 0, sender);
	start(&w[2], &run, 0, tx_completer);
	start(&w[3], &run, 1, tx_completer);
	for (size_t i = 0; i < SL_COUNT_OF(w); i++)
		pthread_join(w[i].thread, NULL);
	CHECK_EQ(run.wrong, 0);
	CHECK_EQ(sl_pktring_tx_pending(run.tx), 0);
	CHECK_EQ(sl_pktring_tx_destroy(run.tx), 0);
}

static void
transmit_v1(void)
{
	transmit(TPACKET_V1, tx_sender);
	transmit(TPACKET_V1, tx_lender);
}

static void
transmit_v2(void)
{
	transmit(TPACKET_V2, tx_sender);
	transmit(TPACKET_V2, tx_lender);
}

static void
transmit_v3(void)
{
	transmit(TPACKET_V3, tx_sender);
	transmit(TPACKET_V3, tx_lender);
}

/* A packet: which writer, and its count, eight times. */
static void *
rx_writer(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;

	for (uint64_t seq = 0; seq < COUNT; seq++) {
		struct sl_pktring_meta meta = {.len = 128, .maclen = 14, .ns = SEC + seq * 1000};
		struct sl_pktring_room room;

		if (sl_pktring_rx_reserve(r->rx, &meta, &room) != 0) {
			sched_yield();
			continue;
		}
		for (int i = 0; i < 16; i++) {
			uint64_t word = seq << 8 | w->index;

			memcpy(room.data + 8 * i, &word, sizeof(word));
		}
		sl_pktring_rx_commit(r->rx, &room, 0);
		r->stored[w->index]++;
	}
	sl_fetch_sub_release(&r->writers, 1);
	return NULL;
}

/* Check one packet; last[] is what came before from the same writer. */
static void
rx_check(struct run *r, const uint8_t *packet, uint64_t last[2], uint64_t seen[2])
{
	uint64_t word, again;

	memcpy(&word, packet, sizeof(word));
	for (int i = 1; i < 16; i++) {
		memcpy(&again, packet + 8 * i, sizeof(again));
		r->wrong += again != word;
	}
	r->wrong += seen[word & 1] > 0 && word >> 8 <= last[word & 1];
	last[word & 1] = word >> 8;
	seen[word & 1]++;
}

static bool
rx_read_slot(struct run *r, uint32_t *n, uint64_t last[2], uint64_t seen[2])
{
	uint8_t *slot = rx_slot(r->rx, *n);

	if (sl_pktring_status(r->version, slot) == TP_STATUS_KERNEL)
		return false;
	rx_check(r, slot + 66, last, seen);
	sl_pktring_status_set(r->version, slot, TP_STATUS_KERNEL);
	*n = (*n + 1) % FRAMES;
	return true;
}

static bool
rx_read_block(struct run *r, uint32_t *n, uint64_t last[2], uint64_t seen[2])
{
	struct tpacket_block_desc *b = rx_block(r->rx, *n);
	const uint8_t *p;

	if (sl_load_acquire(&b->hdr.bh1.block_status) == TP_STATUS_KERNEL)
		return false;
	p = (const uint8_t *)b + b->hdr.bh1.offset_to_first_pkt;
	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		rx_check(r, p + 82, last, seen);
		p += ((const struct tpacket3_hdr *)p)->tp_next_offset;
	}
	sl_store_release(&b->hdr.bh1.block_status, TP_STATUS_KERNEL); /* PR4 */
	*n = (*n + 1) % sl_pktring_rx_geo(r->rx)->block_nr;
	return true;
}

static void
receive(int version)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, version, FRAME);
	struct run run = {.version = version, .writers = 2};
	uint64_t last[2] = {0}, seen[2] = {0};
	struct sl_pktring_rx_stats stats;
	uint32_t next = 0, idle = 0;
	struct worker w[2];

	REQUIRE(sl_pktring_rx_create(&geo, SEC, &run.rx) == 0);
	start(&w[0], &run, 0, rx_writer);
	start(&w[1], &run, 1, rx_writer);
	while (idle < 2) {
		uint32_t writers = sl_load_acquire(&run.writers);
		bool got = version == TPACKET_V3 ? rx_read_block(&run, &next, last, seen)
						 : rx_read_slot(&run, &next, last, seen);

		if (got)
			continue;
		if (writers > 0)
			sched_yield();
		else if (!sl_pktring_rx_tick(run.rx, UINT64_C(1) << 62))
			idle++; /* twice, as the first may just have thawed the queue */
	}
	pthread_join(w[0].thread, NULL);
	pthread_join(w[1].thread, NULL);
	CHECK_EQ(run.wrong, 0);
	CHECK_EQ(seen[0], run.stored[0]);
	CHECK_EQ(seen[1], run.stored[1]);
	sl_pktring_rx_stats(run.rx, &stats);
	CHECK_EQ(stats.packets, 2 * COUNT);
	CHECK_EQ(stats.drops, 2 * COUNT - seen[0] - seen[1]);
	sl_pktring_rx_destroy(run.rx);
}

static void
receive_v1(void)
{
	receive(TPACKET_V1);
}

static void
receive_v2(void)
{
	receive(TPACKET_V2);
}

static void
receive_v3(void)
{
	receive(TPACKET_V3);
}

int
main(void)
{
	SL_TEST_RUN(transmit_v1);
	SL_TEST_RUN(transmit_v2);
	SL_TEST_RUN(transmit_v3);
	SL_TEST_RUN(receive_v1);
	SL_TEST_RUN(receive_v2);
	SL_TEST_RUN(receive_v3);
	return test_end();
}
