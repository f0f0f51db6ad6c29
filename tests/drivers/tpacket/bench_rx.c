/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What a received frame costs, in two parts: the kernel's, which copies it into the ring on the
 * sender's processor, and the driver's, which takes it out. A ring is filled while nobody reads,
 * and then emptied; net_af_packet and net_tpacket take turns on the same veth, in one thread.
 * Medians of the thread's own time, so that other work on the machine decides little.
 *
 * usage: run_api.sh bench_rx PLUGIN
 */
#include <stdlib.h>

#include "ports.h"

#define FRAMES 2000
#define ROUNDS 60
#define TURNS 5

static double fill_ns[2][TURNS * ROUNDS], drain_ns[2][TURNS * ROUNDS];

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void
fill(uint16_t from, uint32_t size)
{
	struct rte_mbuf *m[BURST];
	uint16_t i, sent;
	int done;

	for (done = 0; done < FRAMES; done += sent) {
		for (i = 0; i < BURST; i++)
			m[i] = frame_of(size, 0);
		sent = rte_eth_tx_burst(from, 0, m, (uint16_t)RTE_MIN(BURST, FRAMES - done));
		rte_pktmbuf_free_bulk(m + sent, BURST - sent);
	}
}

static int
drain(uint16_t to)
{
	struct rte_mbuf *m[BURST];
	uint16_t n;
	int got = 0;

	while ((n = rte_eth_rx_burst(to, 0, m, BURST)) != 0) {
		rte_pktmbuf_free_bulk(m, n);
		got += n;
	}
	return got;
}

static void
one_turn(const char *driver, const char *args, uint32_t size, int which, int turn)
{
	struct setup plain = {.args = "", .desc = 256}, s = {.args = args, .desc = 2048};
	uint16_t a = open_port("net_tpacket_a", "t0", &plain), b = open_port(driver, "t1", &s);
	int i, got, at = turn * ROUNDS;
	double start, filled;

	(void)rte_eth_promiscuous_enable(b);
	fill(a, size);
	(void)drain(b);
	for (i = 0; i < ROUNDS; i++) {
		start = now_ns();
		fill(a, size);
		filled = now_ns();
		got = drain(b);
		CHECK_EQ(got, FRAMES);
		fill_ns[which][at + i] = (filled - start) / FRAMES;
		drain_ns[which][at + i] = (now_ns() - filled) / FRAMES;
	}
	close_port(b);
	close_port(a);
}

static int
by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double
median(double *v)
{
	qsort(v, TURNS * ROUNDS, sizeof(*v), by_value);
	return v[TURNS * ROUNDS / 2];
}

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = {64, 1500};
	double fills[2], drains[2];
	size_t i;
	int t;

	start_dpdk(argc, argv);
	for (i = 0; i < SL_COUNT_OF(sizes); i++) {
		for (t = 0; t < TURNS; t++) {
			one_turn("net_af_packet0", ",framesz=2048,blocksz=65536,framecnt=2048",
				sizes[i], 0, t);
			one_turn("net_tpacket_b", "", sizes[i], 1, t);
		}
		for (t = 0; t < 2; t++) {
			fills[t] = median(fill_ns[t]);
			drains[t] = median(drain_ns[t]);
		}
		printf("%u bytes, ns a frame: sent and put into the ring %.0f and %.0f, taken out "
		       "%.1f and %.1f (net_af_packet and net_tpacket); ratio taken out %.2f, "
		       "both %.2f\n",
			sizes[i], fills[0], fills[1], drains[0], drains[1], drains[0] / drains[1],
			(fills[0] + drains[0]) / (fills[1] + drains[1]));
	}
	rte_eal_cleanup();
	return test_end();
}
