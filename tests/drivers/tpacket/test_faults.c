/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What net_tpacket does with frames and calls that fail. */
#include "fault.h"
#include "ports.h"

static void
frames_the_driver_refuses_are_errors_and_the_rest_goes(void)
{
	struct setup s = {.args = "", .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &s), b = open_port("net_tpacket_b", "t1", &s);
	struct rte_mbuf *pkts[BURST], *got[BURST];
	static const uint32_t sizes[] = {64, 13, 1514, 1515, 60, 14, 1600, 100};
	struct rte_eth_stats stats;
	uint16_t i, n;

	for (i = 0; i < SL_COUNT_OF(sizes); i++)
		pkts[i] = frame_of(sizes[i], i);
	CHECK_EQ(rte_eth_tx_burst(a, 0, pkts, i), i);
	n = receive(b, got, 5);
	CHECK_EQ(n, 5);
	CHECK(n == 5 && got[0]->pkt_len == 64 && got[1]->pkt_len == 1514 && got[2]->pkt_len == 60 &&
		got[3]->pkt_len == 14 && got[4]->pkt_len == 100);
	rte_pktmbuf_free_bulk(got, n);
	CHECK_EQ(rte_eth_stats_get(a, &stats), 0);
	CHECK_EQ(stats.opackets, 5);
	CHECK_EQ(stats.oerrors, 3);
	CHECK_EQ(stats.obytes, 64 + 1514 + 60 + 14 + 100);
	CHECK_EQ(xstat(a, "tx_drop_too_short"), 1);
	CHECK_EQ(xstat(a, "tx_drop_too_long"), 2);
	close_port(a);
	close_port(b);
}

static void
a_frame_the_kernel_calls_malformed_is_an_error_and_the_rest_goes(void)
{
	struct setup s = {.args = ",vnet_hdr=0", .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &s), b = open_port("net_tpacket_b", "t1", &s);
	struct rte_mbuf *pkts[BURST], *got[BURST];
	struct rte_eth_stats stats;
	uint16_t i, n;

	for (i = 0; i < 9; i++)
		pkts[i] = frame_of(i % 3 == 1 ? 1518 : 100, i);
	/* Without a vnet header this kernel takes a frame longer than the MTU for one tag type
	 * alone. */
	for (i = 1; i < 9; i += 3)
		memcpy(rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, 12), "\x88\xa8", 2);
	CHECK_EQ(rte_eth_tx_burst(a, 0, pkts, 9), 9);
	n = receive(b, got, 6);
	CHECK_EQ(n, 6);
	for (i = 0; i < n; i++)
		CHECK_EQ(number_of(got[i]), i / 2 * 3 + (i % 2) * 2);
	rte_pktmbuf_free_bulk(got, n);
	CHECK_EQ(rte_eth_stats_get(a, &stats), 0);
	CHECK_EQ(stats.opackets, 6);
	CHECK_EQ(stats.oerrors, 3);
	CHECK_EQ(xstat(a, "tx_drop_wrong_format"), 3);
	close_port(a);
	close_port(b);
}

static void
what_the_kernel_cannot_take_now_stays_with_the_caller(void)
{
	static const int errors[] = {EAGAIN, ENOBUFS, EINTR, ENETDOWN};
	struct setup s = {.args = "", .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &s), b = open_port("net_tpacket_b", "t1", &s);
	struct rte_mbuf *pkts[BURST], *got[BURST];
	struct rte_eth_stats stats;
	uint32_t sent = 0;
	uint16_t i, n;
	size_t e;

	for (e = 0; e < SL_COUNT_OF(errors) * 8; e++) {
		for (i = 0; i < 10; i++)
			pkts[i] = frame_of(70, sent + i);
		fault_errno = errors[e % SL_COUNT_OF(errors)];
		fault_calls = 2; /* as often as the driver tries */
		n = rte_eth_tx_burst(a, 0, pkts, 10);
		CHECK_EQ(n, 0);
		CHECK_EQ(rte_eth_rx_burst(b, 0, got, BURST), 0);
		fault_calls = 0;
		CHECK_EQ(rte_eth_tx_descriptor_status(a, 0, 0), RTE_ETH_TX_DESC_DONE);
		CHECK_EQ(rte_eth_tx_burst(a, 0, pkts + n, 10 - n), 10 - n);
		n = receive(b, got, 10);
		CHECK_EQ(n, 10);
		for (i = 0; i < n; i++)
			CHECK_EQ(number_of(got[i]), sent + i); /* once each, in order */
		rte_pktmbuf_free_bulk(got, n);
		sent += 10;
	}
	/* One refusal is not passed on: the driver tries again. */
	fault_errno = ENOBUFS;
	fault_calls = 1;
	pkts[0] = frame_of(70, sent);
	CHECK_EQ(rte_eth_tx_burst(a, 0, pkts, 1), 1);
	CHECK_EQ(receive(b, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	CHECK_EQ(rte_eth_stats_get(a, &stats), 0);
	CHECK_EQ(stats.opackets, sent + 1);
	CHECK_EQ(stats.oerrors, 0);
	CHECK(xstat(a, "tx_held_again") > 0 && xstat(a, "tx_held_no_buffer") > 0 &&
		xstat(a, "tx_held_down") > 0);
	close_port(a);
	close_port(b);
}

static void
an_empty_burst_calls_no_kernel(void)
{
	struct setup s = {.args = "", .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &s);
	struct rte_mbuf *none[1] = {NULL};
	int i;

	for (i = 0; i < 100; i++)
		CHECK_EQ(rte_eth_tx_burst(a, 0, none, 0), 0);
	CHECK_EQ(xstat(a, "tx_kicks"), 0);
	close_port(a);
}

/* One frame each way. */
static void
check_exchange(uint16_t a, uint16_t b)
{
	struct rte_mbuf *m = frame_of(77, 5);

	CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
	CHECK_EQ(receive(b, &m, 1), 1);
	CHECK_EQ(number_of(m), 5);
	CHECK_EQ(rte_eth_tx_burst(b, 0, &m, 1), 1);
	CHECK_EQ(receive(a, &m, 1), 1);
	CHECK(m->pkt_len == 77 && number_of(m) == 5);
	rte_pktmbuf_free(m);
}

static void
an_option_that_is_refused_has_a_fallback(void)
{
	static const int options[] = {PACKET_VNET_HDR, PACKET_QDISC_BYPASS, PACKET_IGNORE_OUTGOING,
		SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_BUSY_POLL};
	struct setup s = {.args = ",busy_poll=50", .desc = 64};
	struct rte_eth_dev_info info;
	uint16_t a, b;
	size_t i;

	for (i = 0; i < SL_COUNT_OF(options); i++) {
		fault_option = options[i];
		a = open_port("net_tpacket_a", "t0", &s);
		b = open_port("net_tpacket_b", "t1", &s);
		check_exchange(a, b);
		CHECK_EQ(rte_eth_dev_info_get(a, &info), 0);
		CHECK_EQ((info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO) == 0,
			options[i] == PACKET_VNET_HDR);
		CHECK((info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0);
		close_port(a);
		close_port(b);
		fault_option = 0;
	}
}

/* The k-th call fails, k = 1, 2, ... until a port comes up without having met the fault. */
static void
any_call_that_fails_ends_in_order(void)
{
	struct setup plain = {.args = "", .desc = 64};
	struct setup s = {.args = "", .desc = 64, .tx = RTE_ETH_TX_OFFLOAD_TCP_TSO};
	uint16_t a, b = open_port("net_tpacket_b", "t1", &plain);
	unsigned int files = 0;
	int k, ret, refused = 0, left = 0;

	for (k = 1; k < 100 && left == 0; k++) {
		fault_nth = k;
		ret = try_port("net_tpacket_a", "t0", &s, &a);
		left = fault_nth;
		fault_nth = 0;
		if (ret == 0)
			check_exchange(a, b);
		refused += ret != 0;
		if (a != RTE_MAX_ETHPORTS)
			close_port(a);
		if (k == 1)
			files = test_descriptors();
		CHECK_EQ(test_descriptors(), files);
	}
	CHECK(refused > 5 && k < 100);
	close_port(b);
}

int
main(int argc, char **argv)
{
	start_dpdk(argc, argv);
	SL_TEST_RUN(frames_the_driver_refuses_are_errors_and_the_rest_goes);
	SL_TEST_RUN(a_frame_the_kernel_calls_malformed_is_an_error_and_the_rest_goes);
	SL_TEST_RUN(what_the_kernel_cannot_take_now_stays_with_the_caller);
	SL_TEST_RUN(an_empty_burst_calls_no_kernel);
	SL_TEST_RUN(an_option_that_is_refused_has_a_fallback);
	SL_TEST_RUN(any_call_that_fails_ends_in_order);
	rte_eal_cleanup();
	return test_end();
}
