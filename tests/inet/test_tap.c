/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A tap gets what polls receive, whole, and what it hands on has outcomes as ever. */
#include "inet_test.h"

static struct {
	unsigned int calls;
	unsigned int packets;
	unsigned int hand_on; /* of each burst; the rest is freed */
	uint16_t portion;
	uint16_t worker, port, queue;
} seen;

static void
tap_input(void *arg, uint16_t worker, uint16_t port_id, uint16_t queue, struct rte_mbuf **pkts,
	uint16_t n)
{
	const struct t_frame *f = arg;
	uint16_t i = 0;

	seen.calls++;
	seen.packets += n;
	seen.worker = worker;
	seen.port = port_id;
	seen.queue = queue;
	/* The null port receives zeros. */
	for (uint16_t k = 0; k < n; k++) {
		REQUIRE(pkts[k]->data_len == f->len);
		memcpy(rte_pktmbuf_mtod(pkts[k], void *), f->b, f->len);
	}
	while (i < n && i < seen.hand_on) {
		uint16_t part = (uint16_t)RTE_MIN(seen.portion, RTE_MIN(n, seen.hand_on) - i);

		sl_inet_input_burst(t_inet, worker, port_id, pkts + i, part);
		i = (uint16_t)(i + part);
	}
	rte_pktmbuf_free_bulk(pkts + i, n - i);
}

/* 64 bytes, as long as the null port's. */
static struct t_frame frame;
static const struct sl_inet_tap tap = {.input = tap_input, .arg = &frame};

static void
start(unsigned int hand_on, uint16_t portion)
{
	memset(&seen, 0, sizeof(seen));
	seen.hand_on = hand_on;
	seen.portion = portion;
	t_udp_frame(&frame, &(struct t_udp){.payload = 22});
	t_open(NULL);
	sl_inet_set_tap(t_inet, &tap);
}

static void
all_is_handed_on_in_parts(void)
{
	for (uint16_t portion = 1; portion <= SL_INET_BURST; portion *= 2) {
		uint16_t n;

		start(UINT32_MAX, portion);
		n = sl_inet_poll(t_inet, 0, t_port, 0);
		CHECK(n > 0);
		CHECK_EQ(seen.calls, 1);
		CHECK_EQ(seen.packets, n);
		CHECK_EQ(seen.worker, 0);
		CHECK_EQ(seen.port, t_port);
		CHECK_EQ(seen.queue, 0);
		CHECK_EQ(t_ins, n);
		CHECK_EQ(t_count(SL_RX_UDP_QUEUED), n);
		t_close();
	}
}

static void
what_is_freed_never_entered(void)
{
	uint16_t n;

	start(5, 2);
	n = sl_inet_poll(t_inet, 0, t_port, 0);
	CHECK(n > 5);
	CHECK_EQ(t_ins, 5);
	CHECK_EQ(sl_inet_received(t_inet, SL_INET_NO_WORKER), 5);
	t_close();
}

static void
taken_away_it_hears_no_more(void)
{
	uint16_t n;

	start(0, 1);
	CHECK(sl_inet_poll(t_inet, 0, t_port, 0) > 0);
	sl_inet_set_tap(t_inet, NULL);
	sl_inet_synchronize(t_inet, 0);
	CHECK_EQ(seen.calls, 1);
	n = sl_inet_poll(t_inet, 0, t_port, 0);
	CHECK(n > 0);
	CHECK_EQ(seen.calls, 1);
	CHECK_EQ(sl_inet_received(t_inet, SL_INET_NO_WORKER), n);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(all_is_handed_on_in_parts);
	SL_TEST_RUN(what_is_freed_never_entered);
	SL_TEST_RUN(taken_away_it_hears_no_more);
	return test_end();
}
