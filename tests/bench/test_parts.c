/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sl_test.h"
#include "sl_test_eal.h"

#include "bench.h"
#include "hist.h"
#include "udpq_loop.h"
#include "udpq_onebyone.h"

#define DPORT RTE_BE16(9)
#define PAYLOAD_AT 42

static struct rte_mempool *pool;

static void
quantiles_within_a_step(void)
{
	static struct hist h;

	CHECK_EQ(hist_quantile(&h, 0.5), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		hist_add(&h, v, 2);
	CHECK_EQ(h.total, 200000);
	for (uint64_t percent = 1; percent <= 100; percent++) {
		uint64_t exact = percent * 1000, got = hist_quantile(&h, (double)percent / 100);

		CHECK(got >= exact && got <= exact + exact / HIST_STEPS);
	}
}

/* Buckets cover all values, in order, without a gap. */
static void
buckets_in_order(void)
{
	uint32_t last = 0;

	for (uint64_t v = 0; v < 1u << 20; v++) {
		uint32_t i = hist_index(v);

		CHECK(i == last || i == last + 1);
		last = i;
	}
	CHECK_EQ(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
	for (int bit = 20; bit < 63; bit++)
		CHECK_EQ(hist_index(UINT64_C(1) << bit), hist_index((UINT64_C(1) << bit) - 1) + 1);
}

static void
medians_of_neighbours(void)
{
	struct bench_series a = {.n = 4, .v = {2, 9, 40, 5}}, b = {.n = 5, .v = {1, 3, 10, 1, 7}};
	struct bench_spread s = bench_ratio(&a, &b); /* 2 3 4 5 */

	CHECK(s.median > 3.49 && s.median < 3.51);
	CHECK(s.min > 1.99 && s.min < 2.01);
	CHECK(s.max > 4.99 && s.max < 5.01);
	a.n = 0;
	CHECK(bench_ratio(&a, &b).max <= 0);
	CHECK_EQ(bench_plan(0, 2).slices, 3);
	CHECK_EQ(bench_plan(1e6, 2).slices, BENCH_SLICES_MAX);
}

/* The baseline obeys the same admission rule as lib/udpq, and is a queue. */
static void
baseline_is_a_queue(void)
{
	struct onebyone_node node[4] = {0};
	struct onebyone q;

	onebyone_init(&q, 25);
	CHECK(onebyone_take(&q) == NULL);
	for (int i = 0; i < 4; i++)
		node[i].d.truesize = 10;
	CHECK(onebyone_append(&q, &node[0]));
	CHECK(onebyone_append(&q, &node[1]));
	CHECK(!onebyone_append(&q, &node[2]));
	CHECK_EQ(q.rmem, 20);
	CHECK(onebyone_take(&q) == &node[0]);
	CHECK(onebyone_append(&q, &node[2]));
	CHECK(onebyone_take(&q) == &node[1]);
	CHECK(onebyone_take(&q) == &node[2]);
	CHECK(onebyone_take(&q) == NULL);
	node[3].d.truesize = 1000; /* an empty queue takes one of any size */
	CHECK(onebyone_append(&q, &node[3]));
	CHECK(onebyone_take(&q) == &node[3]);
	CHECK_EQ(q.rmem, 0);
	CHECK_EQ(q.length, 0);
}

static struct rte_mbuf *
packet_make(uint16_t payload)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct rte_ether_hdr *eth;
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	uint8_t *p;

	REQUIRE(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(PAYLOAD_AT + payload));
	REQUIRE(p != NULL);
	memset(p, 0, PAYLOAD_AT);
	eth = (struct rte_ether_hdr *)p;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip = (struct rte_ipv4_hdr *)(p + 14);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(28 + payload));
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = RTE_BE32(0xc6120003);
	ip->dst_addr = RTE_BE32(0xc6120002);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp = (struct rte_udp_hdr *)(p + 34);
	udp->dst_port = DPORT;
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(8 + payload));
	for (uint16_t i = 0; i < payload; i++)
		p[PAYLOAD_AT + i] = (uint8_t)(i * 31 + 255 - payload);
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	return m;
}

static void
loop_takes_every_length(void)
{
	uint8_t data[2048];

	for (uint16_t payload = 0; payload <= 1472; payload++) {
		struct loop_buffer out = {.data = data, .size = sizeof(data)};
		struct rte_mbuf *m = packet_make(payload);

		CHECK_EQ(loop_take(&m, 1, DPORT, &out), 1);
		CHECK_EQ(out.len, payload);
		for (uint16_t i = 0; i < payload; i++)
			CHECK_EQ(data[i], (uint8_t)(i * 31 + 255 - payload));
	}
	CHECK_EQ(rte_mempool_avail_count(pool), pool->size);
}

/* Any bit that some field covers, turned over, costs the packet; MAC addresses are not looked at.
 */
static void
loop_refuses_every_bad_bit(void)
{
	uint8_t data[2048];

	for (uint32_t bit = 12 * 8; bit < (PAYLOAD_AT + 22) * 8; bit++) {
		struct loop_buffer out = {.data = data, .size = sizeof(data)};
		struct rte_mbuf *m = packet_make(22);

		rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK_EQ(loop_take(&m, 1, DPORT, &out), 0);
	}
	for (uint16_t cut = 1; cut < PAYLOAD_AT + 22; cut++) {
		struct loop_buffer out = {.data = data, .size = sizeof(data)};
		struct rte_mbuf *m = packet_make(22);

		CHECK_EQ(rte_pktmbuf_trim(m, cut), 0);
		CHECK_EQ(loop_take(&m, 1, DPORT, &out), 0);
	}
	CHECK_EQ(rte_mempool_avail_count(pool), pool->size);
}

int
main(void)
{
	REQUIRE(test_eal_start("bench-parts", "-l 0") >= 0);
	pool = rte_pktmbuf_pool_create("pool", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(quantiles_within_a_step);
	SL_TEST_RUN(buckets_in_order);
	SL_TEST_RUN(medians_of_neighbours);
	SL_TEST_RUN(baseline_is_a_queue);
	SL_TEST_RUN(loop_takes_every_length);
	SL_TEST_RUN(loop_refuses_every_bad_bit);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}
