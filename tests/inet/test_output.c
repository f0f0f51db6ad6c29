/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Sending: headers, checksums, routes, refusals, full ports; and whole turns of a worker's loop. */
#include <errno.h>
#include <pthread.h>

#include "inet_test.h"
#include "sl_shared.h"

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static struct rte_mbuf *
payload(size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	uint8_t *p;

	REQUIRE(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	REQUIRE(p != NULL);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i + 1);
	return m;
}

static struct sl_inet_flow
flow_to(const char *src, const char *dst)
{
	return (struct sl_inet_flow){.src = t_addr(src),
		.dst = t_addr(dst),
		.sport = rte_cpu_to_be_16(1000),
		.dport = rte_cpu_to_be_16(2000)};
}

/* Sends `m`, and frees it if it is refused. */
static int
output(const struct sl_inet_flow *flow, struct rte_mbuf *m)
{
	int ret = sl_inet_udp_output(t_inet, 0, flow, m);

	if (ret != 0)
		rte_pktmbuf_free(m);
	t_flush();
	return ret;
}

/* The peers are known, so that datagrams leave at once. */
static void
open_with_peers(const struct sl_inet_port_conf *conf)
{
	struct t_frame f, g;
	uint8_t msg[32];

	t_open(conf);
	t_arp_frame(&f, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	t_icmp6_frame(&g, "2001:db8::1", "2001:db8::2", t_our_mac, 255, msg,
		t_nd(msg, 135, 0, "2001:db8::2", t_peer_mac));
	if (conf == NULL) {
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
		CHECK_EQ(t_feed(g.b, g.len), SL_RX_ND);
	}
	t_flush();
	t_drop_out();
}

/* Every length, both families: the receiver of a second stack would take it. */
static void
datagrams_of_every_length(void)
{
	open_with_peers(NULL);
	for (size_t len = 0; len <= 1472; len++) {
		for (int v6 = 0; v6 < 2; v6++) {
			const char *ours = v6 ? "2001:db8::2" : "198.18.0.2";
			const char *peer = v6 ? "2001:db8::1" : "198.18.0.1";
			struct sl_inet_flow flow = flow_to(ours, peer);
			size_t hdr = v6 ? 40 : 20, all;
			const uint8_t *p;

			if (len + hdr + 8 > 1500)
				continue;
			flow.ttl = (uint8_t)(len % 2 ? 33 : 0);
			flow.tos = 0xb8;
			CHECK_EQ(output(&flow, payload(len)), 0);
			REQUIRE(t_outs == 1);
			p = t_out_data(0, &all);
			CHECK_EQ(all, 14 + hdr + 8 + len);
			CHECK(memcmp(p, t_peer_mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
			CHECK_EQ(get16(p + 12), v6 ? 0x86dd : 0x0800);
			CHECK_EQ(v6 ? p[21] : p[22], len % 2 ? 33 : 64);
			CHECK_EQ(v6 ? get16(p + 14) >> 4 & 0xff : p[15], 0xb8);
			CHECK_EQ(get16(p + 14 + hdr), 1000);
			CHECK_EQ(get16(p + 14 + hdr + 2), 2000);
			CHECK_EQ(get16(p + 14 + hdr + 4), len + 8);
			CHECK(get16(p + 14 + hdr + 6) != 0);
			CHECK_EQ(t_sum(p + 14 + hdr, 8 + len, t_pseudo(ours, peer, 17, 8 + len)),
				0xffff);
			if (!v6) {
				CHECK_EQ(t_sum(p + 14, 20, 0), 0xffff);
				CHECK_EQ(get16(p + 20), 0x4000); /* don't fragment */
			}
			for (size_t i = 0; i < len; i++)
				REQUIRE(p[14 + hdr + 8 + i] == (uint8_t)(i + 1));
			t_drop_out();
		}
	}
	t_close();
}

/* A checksum that computes to zero goes out as 0xffff: zero would mean that there is none. */
static void
checksum_of_zero(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct sl_inet_flow flow = flow_to(
			v6 ? "2001:db8::2" : "198.18.0.2", v6 ? "2001:db8::1" : "198.18.0.1");
		size_t at = 14u + (v6 ? 40u : 20u);
		uint8_t two[2] = {0, 0};
		struct rte_mbuf *m;
		uint16_t sum;

		open_with_peers(NULL);
		for (int round = 0; round < 2; round++) {
			m = payload(2);
			memcpy(rte_pktmbuf_mtod(m, void *), two, 2);
			CHECK_EQ(output(&flow, m), 0);
			sum = get16(t_out_data(0, NULL) + at + 6);
			/* What a payload of zero leaves as checksum is what makes it zero. */
			two[0] = (uint8_t)(sum >> 8);
			two[1] = (uint8_t)sum;
			t_drop_out();
		}
		CHECK_EQ(sum, 0xffff);
		t_close();
	}
}

static void
payload_in_segments(void)
{
	struct sl_inet_flow flow = flow_to("198.18.0.2", "198.18.0.1");

	open_with_peers(NULL);
	for (size_t at = 0; at <= 101; at++) {
		struct rte_mbuf *m = payload(at), *tail = payload(101);
		const uint8_t *p;
		uint8_t flat[256];

		rte_pktmbuf_adj(tail, (uint16_t)at);
		REQUIRE(rte_pktmbuf_chain(m, tail) == 0);
		CHECK_EQ(output(&flow, m), 0);
		REQUIRE(t_outs == 1);
		p = rte_pktmbuf_read(t_out[0], 34, 109, flat);
		REQUIRE(p != NULL);
		CHECK_EQ(t_sum(p, 109, t_pseudo("198.18.0.2", "198.18.0.1", 17, 109)), 0xffff);
		t_drop_out();
	}
	t_close();
}

struct refusal {
	const char *what;
	const char *src, *dst;
	uint16_t dport;
	uint16_t len;
	int ret;
};

static const struct refusal refusals[] = {
	{"port 0", "198.18.0.2", "198.18.0.1", 0, 10, -EINVAL},
	{"largest", "198.18.0.2", "198.18.0.1", 9, 1472, 0},
	{"too large", "198.18.0.2", "198.18.0.1", 9, 1473, -EMSGSIZE},
	{"largest of IPv6", "2001:db8::2", "2001:db8::1", 9, 1452, 0},
	{"too large for IPv6", "2001:db8::2", "2001:db8::1", 9, 1453, -EMSGSIZE},
	{"broadcast", "198.18.0.2", "255.255.255.255", 9, 10, -EACCES},
	{"subnet broadcast", "198.18.0.2", "198.18.0.255", 9, 10, -EACCES},
	{"no route", "198.18.0.2", "192.0.2.1", 9, 10, -ENETUNREACH},
	{"no route of IPv6", "2001:db8::2", "2001:db8:1::1", 9, 10, -ENETUNREACH},
	{"ourselves", "198.18.0.2", "198.18.0.2", 9, 10, -ENETUNREACH},
	{"nobody", "198.18.0.2", "0.0.0.0", 9, 10, -ENETUNREACH},
	{"nobody of IPv6", "2001:db8::2", "::", 9, 10, -ENETUNREACH},
	{"group", "198.18.0.2", "224.0.0.251", 9, 10, 0},
	{"group of IPv6", "fe80::ff:fe00:2", "ff02::fb", 9, 10, 0},
	{"group from an address of nobody's", "198.18.0.9", "224.0.0.251", 9, 10, -ENETUNREACH},
};

static void
verdicts(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(refusals); i++) {
		const struct refusal *r = &refusals[i];
		struct sl_inet_flow flow = flow_to(r->src, r->dst);
		struct rte_mbuf *m = payload(r->len);
		int ret;

		open_with_peers(NULL);
		flow.dport = rte_cpu_to_be_16(r->dport);
		ret = sl_inet_udp_output(t_inet, 0, &flow, m);
		if (ret != r->ret)
			fprintf(stderr, "%s\n", r->what);
		CHECK_EQ(ret, r->ret);
		CHECK_EQ(t_count(SL_TX_NO_ROUTE), r->ret == -ENETUNREACH);
		if (ret != 0) {
			/* Untouched, and the caller's. */
			CHECK_EQ(rte_pktmbuf_pkt_len(m), r->len);
			rte_pktmbuf_free(m);
		}
		t_flush();
		CHECK_EQ(t_outs, r->ret == 0);
		t_close();
	}
}

static void
group_addresses(void)
{
	struct sl_inet_flow four = flow_to("198.18.0.2", "239.129.3.4");
	struct sl_inet_flow six = flow_to("fe80::ff:fe00:2", "ff02::1:2:3");

	t_open(NULL);
	CHECK_EQ(output(&four, payload(1)), 0);
	CHECK_EQ(output(&six, payload(1)), 0);
	CHECK(memcmp(t_out_data(0, NULL), "\x01\0\x5e\x01\x03\x04", 6) == 0);
	CHECK(memcmp(t_out_data(1, NULL), "\x33\x33\0\x02\0\x03", 6) == 0);
	t_close();
}

static void
gateways(void)
{
	struct sl_addr gw4 = t_addr("198.18.0.1"), gw6 = t_addr("fe80::1"),
		       other = t_addr("198.18.0.7");
	struct sl_inet_flow four = flow_to("198.18.0.2", "192.0.2.1");
	struct sl_inet_flow six = flow_to("2001:db8::2", "2001:db8:1::1");
	struct sl_addr src;
	const uint8_t *p;

	open_with_peers(NULL);
	CHECK_EQ(sl_inet_source(t_inet, &four.dst, &src), -ENETUNREACH);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw4), 0);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw6), 0);
	CHECK_EQ(sl_inet_source(t_inet, &four.dst, &src), 0);
	CHECK(memcmp(&src, &four.src, 16) == 0);
	CHECK_EQ(sl_inet_source(t_inet, &six.dst, &src), 0);
	CHECK(memcmp(&src, &six.src, 16) == 0);
	CHECK_EQ(output(&four, payload(1)), 0);
	p = t_out_data(0, NULL);
	CHECK(memcmp(p, t_peer_mac, 6) == 0);
	CHECK(memcmp(p + 30, four.dst.b + 12, 4) == 0);
	CHECK_EQ(output(&six, payload(1)), 0);
	p = t_out_data(1, NULL); /* asks for the gateway, with our link-local address */
	CHECK_EQ(p[54], 135);
	CHECK(memcmp(p + 62, gw6.b, 16) == 0);
	CHECK_EQ(p[22], 0xfe);
	/* Another gateway from now on. */
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &other), 0);
	CHECK_EQ(output(&four, payload(1)), 0);
	p = t_out_data(2, NULL);
	CHECK_EQ(get16(p + 12), 0x0806);
	CHECK(memcmp(p + 38, other.b + 12, 4) == 0);
	t_close();
}

/* Source addresses: the prefix that covers the destination, and the right scope. */
static void
sources(void)
{
	static const struct {
		const char *dst, *src;
	} cases[] = {
		{"198.18.0.1", "198.18.0.2"},
		{"10.0.0.9", "10.0.0.1"},
		{"10.0.1.9", "10.0.1.1"},
		{"2001:db8::1", "2001:db8::2"},
		{"2001:db8:0:1::1", "2001:db8:0:1::2"},
		{"fe80::1", "fe80::ff:fe00:2"},
		{"ff02::1", "fe80::ff:fe00:2"},
		{"192.0.2.1", NULL},
		{"2001:db8:9::1", NULL},
	};
	struct sl_addr more[] = {t_addr("10.0.0.1"), t_addr("10.0.1.1"), t_addr("2001:db8:0:1::2")};
	static const uint8_t prefixes[] = {8, 24, 64};

	t_open(NULL);
	for (size_t i = 0; i < SL_COUNT_OF(more); i++)
		REQUIRE(sl_inet_addr_add(t_inet, t_port, &more[i], prefixes[i]) == 0);
	t_pass(20 * T_MS);
	t_pass(2 * T_S);
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_addr dst = t_addr(cases[i].dst), src, want;
		int ret = sl_inet_source(t_inet, &dst, &src);

		CHECK_EQ(ret, cases[i].src != NULL ? 0 : -ENETUNREACH);
		if (cases[i].src == NULL || ret != 0)
			continue;
		want = t_addr(cases[i].src);
		if (memcmp(&src, &want, sizeof(src)) != 0)
			fprintf(stderr, "to %s\n", cases[i].dst);
		CHECK(memcmp(&src, &want, sizeof(src)) == 0);
	}
	t_close();
}

static void
tagged(void)
{
	struct sl_inet_port_conf conf = {.svlan = 9, .vlan = 7};
	struct sl_inet_flow flow = flow_to("198.18.0.2", "224.0.0.251");
	const uint8_t *p;
	size_t len;

	open_with_peers(&conf);
	CHECK_EQ(output(&flow, payload(10)), 0);
	p = t_out_data(0, &len);
	CHECK_EQ(len, 22 + 20 + 8 + 10);
	CHECK(memcmp(p + 12, "\x88\xa8\0\x09\x81\0\0\x07\x08\0", 10) == 0);
	t_close();
}

/* A port that takes some, or none: the rest is freed and counted. */
static void
full_port(void)
{
	struct sl_inet_flow flow = flow_to("198.18.0.2", "198.18.0.1");

	open_with_peers(NULL);
	for (unsigned int room = 0; room < 12; room++) {
		uint64_t sent = t_count(SL_TX_SENT), full = t_count(SL_TX_PORT_FULL);

		t_tx_room = room;
		for (int i = 0; i < 10; i++)
			CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, payload(5)), 0);
		t_flush();
		CHECK_EQ(t_outs, RTE_MIN(room, 10u));
		CHECK_EQ(t_count(SL_TX_SENT) - sent, RTE_MIN(room, 10u));
		CHECK_EQ(t_count(SL_TX_PORT_FULL) - full, 10 - RTE_MIN(room, 10u));
		t_drop_out();
	}
	t_tx_room = UINT32_MAX;
	/* More than a batch between two flushes: sent as the batch fills. */
	for (int i = 0; i < 200; i++)
		CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, payload(5)), 0);
	CHECK_EQ(t_outs, 192);
	t_flush();
	CHECK_EQ(t_outs, 200);
	/* A worker that never flushes this port keeps a batch at most. */
	for (int i = 0; i < 100; i++)
		CHECK_EQ(sl_inet_udp_output(t_inet, 1, &flow, payload(5)), 0);
	CHECK_EQ(t_outs, 200);
	t_close();
}

/* Destroying a stack frees what waits in it: for a neighbour, and for a flush. */
static void
destroyed_with_packets_waiting(void)
{
	struct sl_inet_flow waits = flow_to("198.18.0.2", "198.18.0.50");
	struct sl_inet_flow goes = flow_to("198.18.0.2", "198.18.0.1");

	open_with_peers(NULL);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(sl_inet_udp_output(t_inet, 0, &waits, payload(5)), 0);
		CHECK_EQ(sl_inet_udp_output(t_inet, 1, &goes, payload(5)), 0);
	}
	t_drop_out();
	sl_inet_destroy(t_inet);
	CHECK_EQ(rte_mempool_avail_count(t_pool), T_POOL);
}

/* A port that sends to itself: what the stack sends, the same port receives. */
static void
poll_a_ring(void)
{
	struct sl_inet_conf inet_conf = {.workers = 1};
	struct sl_inet_port_conf conf = {.pool = t_pool, .promiscuous = true};
	struct sl_inet_flow flow = flow_to("198.18.0.2", "224.0.0.1");
	struct rte_eth_conf eth = {0};
	struct sl_addr v4 = t_addr("198.18.0.2");
	uint64_t counts[SL_OUTCOME_COUNT], sum = 0;
	unsigned int polls = 0;

	REQUIRE(rte_eth_dev_get_port_by_name("net_ring0", &conf.port_id) == 0);
	REQUIRE(rte_eth_dev_configure(conf.port_id, 1, 1, &eth) == 0);
	REQUIRE(rte_eth_rx_queue_setup(conf.port_id, 0, 64, 0, NULL, t_pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(conf.port_id, 0, 64, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(conf.port_id) == 0);
	REQUIRE(sl_inet_create(&inet_conf, &t_inet) == 0);
	REQUIRE(sl_inet_port_add(t_inet, &conf) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, conf.port_id, &v4, 24) == 0);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, payload(5)), 0);
		CHECK_EQ(sl_inet_poll(t_inet, 0, conf.port_id, 0) <= SL_INET_BURST, true);
	}
	/* The gratuitous ARP, the probe for the link-local address, and ten datagrams come back. */
	while (sl_inet_received(t_inet, 0) < 12 && polls++ < 1000000)
		sl_inet_poll(t_inet, 0, conf.port_id, 0);
	sl_inet_outcomes(t_inet, 0, counts);
	CHECK_EQ(counts[SL_RX_UDP_NO_SOCKET], 10);
	CHECK_EQ(counts[SL_RX_ND], 1);
	CHECK_EQ(counts[SL_TX_SENT], 12);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++)
		sum += counts[i];
	CHECK_EQ(sum, sl_inet_received(t_inet, 0));
	sl_inet_destroy(t_inet);
	CHECK_EQ(rte_mempool_avail_count(t_pool), T_POOL);
}

struct loop {
	uint16_t worker;
	uint32_t stop;	/* (a) */
	uint32_t turns; /* (a) */
	bool sleeps;
};

static void *
run_loop(void *arg)
{
	struct loop *l = arg;

	while (sl_load_relaxed(&l->stop) == 0) {
		sl_inet_worker_online(t_inet, l->worker);
		sl_inet_poll(t_inet, l->worker, t_port, 0);
		if (l->sleeps)
			sl_inet_worker_offline(t_inet, l->worker);
		sl_fetch_add_relaxed(&l->turns, 1u);
	}
	sl_inet_worker_offline(t_inet, l->worker);
	return NULL;
}

/* The null port always has packets, so a poll is never empty. */
static uint16_t
no_packets(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	(void)port, (void)queue, (void)max, (void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
	return 0;
}

/* A grace period ends when every worker that is online has passed a turn, and only then. */
static void
grace_periods(void)
{
	const struct rte_eth_rxtx_callback *cb;
	struct loop l = {.worker = 0};
	pthread_t thread;

	cb = rte_eth_add_rx_callback(t_port, 0, no_packets, NULL);
	REQUIRE(cb != NULL);
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		t_open(NULL);
		/* Nobody polls: nothing to wait for, whether we are a worker or not. */
		sl_inet_synchronize(t_inet, SL_INET_NO_WORKER);
		sl_inet_synchronize(t_inet, 1);
		l = (struct loop){.worker = 0, .sleeps = sleeps != 0};
		REQUIRE(pthread_create(&thread, NULL, run_loop, &l) == 0);
		while (sl_load_relaxed(&l.turns) == 0)
			;
		sl_inet_worker_online(t_inet, 1);
		for (int i = 0; i < 10; i++) {
			uint32_t before = sl_load_relaxed(&l.turns);

			sl_inet_synchronize(t_inet, 1); /* we are a worker ourselves */
			sl_inet_synchronize(t_inet, 1);
			/* Two grace periods in a row see at least one turn end, if it is online. */
			if (!sleeps)
				CHECK(sl_load_relaxed(&l.turns) != before);
		}
		sl_inet_worker_offline(t_inet, 1);
		sl_inet_synchronize(t_inet, SL_INET_NO_WORKER);
		sl_store_relaxed(&l.stop, 1u);
		pthread_join(thread, NULL);
		sl_inet_synchronize(t_inet, SL_INET_NO_WORKER);
		t_close();
	}
	rte_eth_remove_rx_callback(t_port, 0, cb);
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(datagrams_of_every_length);
	SL_TEST_RUN(checksum_of_zero);
	SL_TEST_RUN(payload_in_segments);
	SL_TEST_RUN(verdicts);
	SL_TEST_RUN(group_addresses);
	SL_TEST_RUN(gateways);
	SL_TEST_RUN(sources);
	SL_TEST_RUN(tagged);
	SL_TEST_RUN(full_port);
	SL_TEST_RUN(destroyed_with_packets_waiting);
	SL_TEST_RUN(poll_a_ring);
	SL_TEST_RUN(grace_periods);
	return test_end();
}
