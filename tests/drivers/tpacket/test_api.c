/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What an application sees of net_tpacket through ethdev's own calls. */
#include "ports.h"

static void
an_empty_pool_leaves_frames_in_the_ring(void)
{
	struct rte_mempool *small = rte_pktmbuf_pool_create("small", 40, 0, 0, 2176, 0);
	struct setup s = {.args = "", .desc = 256}, few = {.args = "", .desc = 256, .pool = small};
	uint16_t a, b;
	struct rte_mbuf *pkts[100], *got[128];
	struct rte_eth_stats stats;
	uint16_t i, n, total = 0;

	REQUIRE(small != NULL);
	a = open_port("net_tpacket_a", "t0", &s);
	b = open_port("net_tpacket_b", "t1", &few);
	for (i = 0; i < 100; i++)
		pkts[i] = frame_of(80, i);
	CHECK_EQ(rte_eth_tx_burst(a, 0, pkts, 100), 100);
	for (i = 0; i < 1000; i++) {
		n = rte_eth_rx_burst(b, 0, got + total, BURST);
		total += n;
	}
	CHECK(total <= 40);
	CHECK_EQ(rte_eth_stats_get(b, &stats), 0);
	CHECK(stats.rx_nombuf > 0);
	CHECK_EQ(stats.imissed, 0);
	rte_pktmbuf_free_bulk(got, total);
	for (i = 0; i < 20 && total < 100; i++) { /* the rest, as mbufs come back */
		n = receive(b, got, 100 - total < 20 ? 100 - total : 20);
		CHECK(n > 0);
		CHECK_EQ(number_of(got[0]), total);
		total += n;
		rte_pktmbuf_free_bulk(got, n);
	}
	CHECK_EQ(total, 100);
	close_port(a);
	close_port(b);
	CHECK_EQ(rte_mempool_avail_count(small), 40);
	rte_mempool_free(small);
}

static void
an_interrupt_wakes_and_outlives_the_socket(void)
{
	static const char *const versions[] = {"", ",tpver=3"};
	struct setup plain = {.args = "", .desc = 64}, s = {.intr = true, .desc = 64};
	struct rte_epoll_event event;
	struct rte_mbuf *m;
	uint16_t a, b;
	size_t v;
	int i;

	for (v = 0; v < SL_COUNT_OF(versions); v++) {
		s.args = versions[v];
		a = open_port("net_tpacket_a", "t0", &plain);
		b = open_port("net_tpacket_b", "t1", &s);
		CHECK_EQ(rte_eth_dev_rx_intr_ctl_q(
				 b, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL),
			0);
		for (i = 0; i < 6; i++) {
			CHECK_EQ(rte_eth_dev_rx_intr_enable(b, 0), 0);
			CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 0), 0);
			m = frame_of(64, (uint32_t)i);
			CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
			CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 10000), 1);
			CHECK_EQ(rte_eth_dev_rx_intr_disable(b, 0), 0);
			CHECK_EQ(receive(b, &m, 1), 1);
			rte_pktmbuf_free(m);
			if (i == 2) /* a new socket behind the same registration */
				CHECK_EQ(rte_eth_dev_set_mtu(b, 1400), 0);
			while (rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 0) > 0)
				;
		}
		CHECK_EQ(rte_eth_dev_rx_intr_ctl_q(
				 b, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL),
			0);
		CHECK_EQ(rte_eth_dev_set_mtu(b, 1500), 0);
		close_port(a);
		close_port(b);
	}
}

static void
the_monitored_word_changes_when_a_frame_comes(void)
{
	struct setup s = {.args = "", .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &s), b = open_port("net_tpacket_b", "t1", &s);
	struct rte_power_monitor_cond cond = {0};
	struct rte_mbuf *m = frame_of(64, 0);
	uint32_t value;

	CHECK_EQ(rte_eth_get_monitor_addr(b, 0, &cond), 0);
	CHECK_EQ(cond.size, sizeof(value));
	memcpy(&value, (const void *)(uintptr_t)cond.addr, sizeof(value));
	CHECK_EQ(cond.fn(value, cond.opaque), 0); /* sleep */
	CHECK_EQ(rte_eth_rx_descriptor_status(b, 0, 0), RTE_ETH_RX_DESC_AVAIL);
	CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
	while (rte_eth_rx_queue_count(b, 0) == 0)
		;
	memcpy(&value, (const void *)(uintptr_t)cond.addr, sizeof(value));
	CHECK_EQ(cond.fn(value, cond.opaque), -1); /* do not sleep */
	CHECK_EQ(rte_eth_rx_descriptor_status(b, 0, 0), RTE_ETH_RX_DESC_DONE);
	CHECK_EQ(rte_eth_rx_descriptor_status(b, 0, 1), RTE_ETH_RX_DESC_AVAIL);
	CHECK_EQ(rte_eth_rx_queue_count(b, 0), 1);
	CHECK_EQ(receive(b, &m, 1), 1);
	rte_pktmbuf_free(m);
	CHECK_EQ(rte_eth_rx_queue_count(b, 0), 0);
	CHECK(rte_eth_tx_done_cleanup(a, 0, 0) >= 0);
	CHECK_EQ(xstat(a, "tx_in_flight"), 0);
	close_port(a);
	close_port(b);
}

static void
timestamps_are_the_systems_time(void)
{
	static const char *const versions[] = {"", ",tpver=3"};
	struct setup plain = {.args = "", .desc = 64};
	struct setup s = {.rx = RTE_ETH_RX_OFFLOAD_TIMESTAMP, .desc = 64};
	struct timespec before, after;
	struct rte_mbuf *m;
	uint16_t a, b;
	uint64_t ns, from, to;
	int field;
	size_t v;

	for (v = 0; v < SL_COUNT_OF(versions); v++) {
		s.args = versions[v];
		a = open_port("net_tpacket_a", "t0", &plain);
		b = open_port("net_tpacket_b", "t1", &s);
		field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
		REQUIRE(field >= 0);
		m = frame_of(64, 0);
		clock_gettime(CLOCK_REALTIME, &before);
		CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
		CHECK_EQ(receive(b, &m, 1), 1);
		clock_gettime(CLOCK_REALTIME, &after);
		from = (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec;
		to = (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec;
		ns = *RTE_MBUF_DYNFIELD(m, field, rte_mbuf_timestamp_t *);
		CHECK(ns >= from && ns <= to);
		rte_pktmbuf_free(m);
		close_port(a);
		close_port(b);
	}
}

static void
deferred_queues_start_when_told(void)
{
	struct setup s = {.args = "", .desc = 64},
		     late = {.args = "", .desc = 64, .deferred = true};
	uint16_t a = open_port("net_tpacket_a", "t0", &s),
		 b = open_port("net_tpacket_b", "t1", &late);
	struct rte_eth_rxq_info info;
	struct rte_mbuf *m = frame_of(64, 1), *got[BURST];

	CHECK_EQ(rte_eth_rx_queue_info_get(b, 0, &info), 0);
	CHECK(info.queue_state == RTE_ETH_QUEUE_STATE_STOPPED && info.conf.rx_deferred_start);
	CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1); /* nobody is there to receive it */
	CHECK_EQ(rte_eth_rx_burst(b, 0, got, BURST), 0);
	m = frame_of(64, 2);
	CHECK_EQ(rte_eth_tx_burst(b, 0, &m, 1), 0);
	CHECK_EQ(rte_eth_dev_rx_queue_start(b, 0), 0);
	CHECK_EQ(rte_eth_dev_tx_queue_start(b, 0), 0);
	CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
	CHECK_EQ(receive(b, got, 1), 1);
	CHECK_EQ(number_of(got[0]), 2);
	CHECK_EQ(rte_eth_tx_burst(b, 0, got, 1), 1);
	CHECK_EQ(receive(a, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	close_port(a);
	close_port(b);
}

/* An IPv4 UDP packet of several mbufs, to be cut every 1000 bytes. */
static struct rte_mbuf *
udp_super(uint32_t payload)
{
	struct rte_mbuf *head = frame_of(42, 0), *m;
	uint8_t *p = rte_pktmbuf_mtod(head, uint8_t *);
	uint32_t part;

	memcpy(p + 12,
		"\x08\x00\x45\0\0\0\0\1\0\0\x40\x11\0\0\xc6\x12\0\1\xc6\x12\0\2"
		"\x03\xe8\x07\xd0\0\0\0\0",
		30);
	for (; payload > 0; payload -= part) {
		m = rte_pktmbuf_alloc(pool);
		REQUIRE(m != NULL);
		part = payload < 1500 ? payload : 1500;
		memset(rte_pktmbuf_append(m, (uint16_t)part), (int)(payload & 0xff), part);
		REQUIRE(rte_pktmbuf_chain(head, m) == 0);
	}
	head->l2_len = 14;
	head->l3_len = 20;
	head->l4_len = 8;
	head->tso_segsz = 1000;
	head->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_IP_CKSUM;
	return head;
}

static void
datagram_segmentation_reaches_the_other_end(void)
{
	struct setup s = {.args = "",
		.desc = 64,
		.tx = RTE_ETH_TX_OFFLOAD_UDP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS |
		      RTE_ETH_TX_OFFLOAD_IPV4_CKSUM};
	struct setup r = {.args = "", .desc = 64, .rx = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM};
	struct rte_eth_dev_info info;
	struct rte_mbuf *m, *got[BURST];
	uint16_t a, b, n, i;

	a = open_port("net_tpacket_a", "t0", &(struct setup){.args = "", .desc = 64});
	CHECK_EQ(rte_eth_dev_info_get(a, &info), 0);
	close_port(a);
	if ((info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_TSO) == 0)
		SKIP("this kernel has no datagram segmentation on packet sockets");
	a = open_port("net_tpacket_a", "t0", &s);
	b = open_port("net_tpacket_b", "t1", &r);
	m = udp_super(7500);
	CHECK_EQ(rte_eth_tx_prepare(a, 0, &m, 1), 1);
	CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
	n = receive(b, got, 8);
	CHECK_EQ(n, 8);
	for (i = 0; i < n; i++) {
		CHECK_EQ(got[i]->pkt_len, 42 + (i < 7 ? 1000 : 500));
		CHECK_EQ(got[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK,
			RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	}
	rte_pktmbuf_free_bulk(got, n);
	CHECK_EQ(xstat(a, "tx_super_frames"), 1);
	close_port(a);
	close_port(b);
}

static void
offloads_that_cannot_be_are_refused_by_prepare_and_counted_by_burst(void)
{
	struct setup s = {.args = "",
		.desc = 64,
		.tx = RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS};
	uint16_t a = open_port("net_tpacket_a", "t0", &s);
	struct rte_mbuf *m[3];
	int i;

	for (i = 0; i < 3; i++) {
		m[i] = frame_of(60, 0);
		m[i]->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
		m[i]->l2_len = 14;
		m[i]->l3_len = i == 0 ? 100 : 20; /* behind the end */
	}
	m[1]->l2_len = 0;
	m[2]->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_SCTP_CKSUM;
	for (i = 0; i < 3; i++) {
		CHECK_EQ(rte_eth_tx_prepare(a, 0, m + i, 1), 0);
		CHECK_EQ(rte_errno, EINVAL);
	}
	CHECK_EQ(rte_eth_tx_burst(a, 0, m, 3), 3);
	CHECK_EQ(xstat(a, "tx_drop_bad_offload"), 3);
	CHECK_EQ(xstat(a, "tx_sent_packets"), 0);
	close_port(a);
}

static void
the_kernels_hash_is_passed_on_by_version_3(void)
{
	struct setup plain = {.args = "", .desc = 64};
	struct setup s = {.args = ",tpver=3", .rx = RTE_ETH_RX_OFFLOAD_RSS_HASH, .desc = 64};
	uint16_t a = open_port("net_tpacket_a", "t0", &plain),
		 b = open_port("net_tpacket_b", "t1", &s);
	struct rte_mbuf *m, *got[2];
	int i;

	for (i = 0; i < 2; i++) {
		m = udp_super(100);
		m->ol_flags = 0;
		rte_pktmbuf_mtod(m, uint8_t *)[17] = 128; /* total length */
		rte_pktmbuf_mtod(m, uint8_t *)[39] = 108;
		CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
	}
	CHECK_EQ(receive(b, got, 2), 2);
	CHECK((got[0]->ol_flags & RTE_MBUF_F_RX_RSS_HASH) != 0);
	CHECK_EQ(got[0]->hash.rss, got[1]->hash.rss); /* one flow */
	rte_pktmbuf_free_bulk(got, 2);
	close_port(a);
	close_port(b);
}

static void
a_port_closed_and_opened_leaves_nothing(void)
{
	struct setup s = {.args = "", .intr = true, .desc = 64};
	unsigned int before = rte_mempool_avail_count(pool);
	struct rte_mbuf *m;
	unsigned int files = 0, i;
	uint16_t a, b;

	for (i = 0; i < 20; i++) {
		a = open_port("net_tpacket_a", "t0", &s);
		b = open_port("net_tpacket_b", "t1", &s);
		m = frame_of(64, 0);
		CHECK_EQ(rte_eth_tx_burst(a, 0, &m, 1), 1);
		if (i % 2 == 0) { /* else it stays in the ring */
			CHECK_EQ(receive(b, &m, 1), 1);
			rte_pktmbuf_free(m);
		}
		close_port(a);
		close_port(b);
		if (i == 1)
			files = test_descriptors();
	}
	CHECK_EQ(test_descriptors(), files);
	CHECK_EQ(rte_mempool_avail_count(pool), before);
}

int
main(int argc, char **argv)
{
	start_dpdk(argc, argv);
	SL_TEST_RUN(an_empty_pool_leaves_frames_in_the_ring);
	SL_TEST_RUN(an_interrupt_wakes_and_outlives_the_socket);
	SL_TEST_RUN(the_monitored_word_changes_when_a_frame_comes);
	SL_TEST_RUN(timestamps_are_the_systems_time);
	SL_TEST_RUN(deferred_queues_start_when_told);
	SL_TEST_RUN(datagram_segmentation_reaches_the_other_end);
	SL_TEST_RUN(offloads_that_cannot_be_are_refused_by_prepare_and_counted_by_burst);
	SL_TEST_RUN(the_kernels_hash_is_passed_on_by_version_3);
	SL_TEST_RUN(a_port_closed_and_opened_leaves_nothing);
	rte_eal_cleanup();
	return test_end();
}
