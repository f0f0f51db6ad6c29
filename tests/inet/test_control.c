/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Control calls while a worker receives, sends and runs timers (IN1): what it sees is whole. */
#include <errno.h>
#include <pthread.h>

#include "inet_test.h"
#include "sl_inet_table.h"
#include "sl_shared.h"

#define NETS 15 /* addresses that a port has room for beside its link-local one */
#define ROUNDS 8
#define GATEWAY_CHANGES 2000

static uint32_t turns; /* of the worker's loop */
static uint32_t stop;
static uint32_t added; /* addresses that the control thread knows to be there */

/* Wait until the worker has gone round again, so that changes meet it at work. */
static void
wait_turns(uint32_t n)
{
	uint32_t start = sl_load_relaxed(&turns);

	while (sl_load_relaxed(&turns) - start < n)
		sched_yield();
}

static void
end_turn(void)
{
	sl_inet_timers(t_inet, 0);
	t_flush();
	t_drop_out();
	t_drop_in();
	/* What sl_inet_poll does at its end: nothing is looked at any more. */
	sl_inet_worker_offline(t_inet, 0);
	sl_inet_worker_online(t_inet, 0);
	sl_store_relaxed(&turns, turns + 1);
}

static void
net_addr(char *text, unsigned int net, unsigned int host)
{
	snprintf(text, 32, "198.18.%u.%u", net + 1, host);
}

/* Is the address of net k known to every call alike? Returns whether it is there. */
static bool
look_at(unsigned int k, bool must)
{
	char ours[32], peer[32];
	struct sl_addr us, them, source;
	struct t_frame f;
	int outcome, ret;

	net_addr(ours, k, 2);
	net_addr(peer, k, 1);
	us = t_addr(ours);
	them = t_addr(peer);
	t_udp_frame(&f, &(struct t_udp){.src = peer, .dst = ours, .payload = 10});
	outcome = t_feed(f.b, f.len);
	CHECK(outcome == SL_RX_UDP_QUEUED || (!must && outcome == SL_RX_IP_NOT_LOCAL));
	ret = sl_inet_source(t_inet, &them, &source);
	if (outcome == SL_RX_UDP_QUEUED) {
		CHECK(sl_inet_addr_is_local(t_inet, &us));
		CHECK_EQ(ret, 0);
	} else {
		CHECK(ret == 0 || ret == -ENETUNREACH);
	}
	/* With another prefix than its own, an address would be picked for the wrong net. */
	if (ret == 0)
		CHECK(memcmp(&source, &us, sizeof(us)) == 0);
	return outcome == SL_RX_UDP_QUEUED;
}

static void *
watch_addresses(void *arg)
{
	bool there[NETS] = {false};

	(void)arg;
	sl_inet_worker_online(t_inet, 0);
	while (sl_load_relaxed(&stop) == 0) {
		/* Acquire: the control thread's call has returned. */
		uint32_t known = sl_load_acquire(&added);

		for (unsigned int k = 0; k < NETS; k++)
			there[k] = look_at(k, there[k] || k < known);
		end_turn();
	}
	sl_inet_worker_offline(t_inet, 0);
	return NULL;
}

static void
start(pthread_t *worker, void *(*loop)(void *arg))
{
	sl_store_relaxed(&stop, 0u);
	sl_store_relaxed(&added, 0u);
	REQUIRE(pthread_create(worker, NULL, loop, NULL) == 0);
	wait_turns(2);
}

static void
finish(pthread_t worker)
{
	wait_turns(2);
	sl_store_relaxed(&stop, 1u);
	pthread_join(worker, NULL);
	t_close();
}

static void
addresses_appear_whole(void)
{
	pthread_t worker;

	for (int round = 0; round < ROUNDS; round++) {
		t_open_bare(NULL, 0, 0);
		start(&worker, watch_addresses);
		for (unsigned int k = 0; k < NETS; k++) {
			struct sl_addr a;
			char text[32];

			net_addr(text, k, 2);
			a = t_addr(text);
			CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &a, 24), 0);
			sl_store_release(&added, k + 1);
			wait_turns((uint32_t)round);
		}
		finish(worker);
	}
}

/* Sends beyond the link; the MAC address in the frame says which gateway was taken. */
static void *
watch_gateways(void *arg)
{
	struct sl_inet_flow flow = {
		.src = t_addr("198.18.0.2"), .dst = t_addr("203.0.113.9"), .sport = 1, .dport = 2};
	uint64_t *taken = arg;

	sl_inet_worker_online(t_inet, 0);
	while (sl_load_relaxed(&stop) == 0) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
		const uint8_t *frame;

		REQUIRE(m != NULL);
		CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, m), 0);
		t_flush();
		REQUIRE(t_outs == 1);
		frame = t_out_data(0, NULL);
		CHECK(frame[5] == 11 || frame[5] == 12);
		taken[frame[5] == 12]++;
		end_turn();
	}
	sl_inet_worker_offline(t_inet, 0);
	return NULL;
}

static void
gateways_change_whole(void)
{
	static const char *const gateways[] = {"198.18.0.11", "198.18.0.12"};
	uint64_t taken[2] = {0, 0};
	struct sl_addr addr[2];
	struct t_frame f;
	pthread_t worker;

	t_open(NULL);
	for (int i = 0; i < 2; i++) {
		uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(11 + i)};

		addr[i] = t_addr(gateways[i]);
		t_arp_frame(&f, 1, t_any_mac, mac, gateways[i], "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
	}
	t_flush();
	t_drop_out();
	REQUIRE(sl_inet_gateway_set(t_inet, t_port, &addr[0]) == 0);
	sl_store_relaxed(&stop, 0u);
	REQUIRE(pthread_create(&worker, NULL, watch_gateways, taken) == 0);
	wait_turns(2);
	for (int i = 0; i < GATEWAY_CHANGES; i++) {
		CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &addr[i % 2]), 0);
		if (i % 64 < 2)
			wait_turns(2);
	}
	finish(worker);
	/* Both were seen, or nothing was shown. */
	CHECK(taken[0] > 0 && taken[1] > 0);
}

#define CHURNS 600
#define FAR 4

/* Sends to hosts that different routes cover, and receives for addresses that come and go. The MAC
 * address says which way a datagram went: each next hop 198.18.0.n is 02:..:n. */
static void *
watch_churn(void *arg)
{
	struct sl_inet_flow flow = {.src = t_addr("198.18.0.2"), .sport = 1, .dport = 2};
	uint64_t *taken = arg;
	struct t_frame coming;

	t_udp_frame(&coming, &(struct t_udp){.dst = "198.18.0.99", .payload = 20});
	sl_inet_worker_online(t_inet, 0);
	while (sl_load_relaxed(&stop) == 0) {
		for (uint32_t k = 0; k < FAR; k++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
			struct sl_addr src;
			uint8_t hop;

			REQUIRE(m != NULL);
			flow.dst = sl_addr_v4(rte_cpu_to_be_32(0xcb007100 + k));
			CHECK_EQ(sl_inet_worker_source(t_inet, 0, &flow.dst, &src), 0);
			CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, m), 0);
			t_flush();
			REQUIRE(t_outs == 1);
			hop = t_out_data(0, NULL)[5];
			CHECK(hop >= 11 && hop <= 13);
			taken[hop - 11]++;
			t_drop_out();
		}
		switch (t_feed(coming.b, coming.len)) {
		case SL_RX_UDP_QUEUED:
			taken[3]++;
			break;
		case SL_RX_IP_NOT_LOCAL:
			taken[4]++;
			break;
		default:
			CHECK(false);
		}
		end_turn();
	}
	sl_inet_worker_offline(t_inet, 0);
	return NULL;
}

static void
routes_and_addresses_come_and_go(void)
{
	static const char *const hops[] = {"198.18.0.11", "198.18.0.12", "198.18.0.13"};
	struct sl_inet_route r[3] = {{.prefix = 0}, {.prefix = 24, .metric = 2}, {.prefix = 32}};
	struct sl_addr coming = t_addr("198.18.0.99");
	uint64_t taken[5] = {0};
	struct t_frame f;
	pthread_t worker;

	t_open(NULL);
	for (int i = 0; i < 3; i++) {
		uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(11 + i)};

		t_arp_frame(&f, 1, t_any_mac, mac, hops[i], "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
		r[i].dst = sl_addr_v4(rte_cpu_to_be_32(i == 0	? 0
						       : i == 1 ? 0xcb007100
								: 0xcb007101));
		r[i].via = t_addr(hops[i]);
		r[i].port = t_port;
	}
	t_flush();
	t_drop_out();
	sl_inet_worker_offline(t_inet, 0);
	REQUIRE(sl_inet_route_add(t_inet, &r[0]) == 0);
	sl_store_relaxed(&stop, 0u);
	REQUIRE(pthread_create(&worker, NULL, watch_churn, taken) == 0);
	wait_turns(2);
	for (int i = 0; i < CHURNS; i++) {
		int k = 1 + i % 2;

		CHECK_EQ(sl_inet_route_add(t_inet, &r[k]), 0);
		CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &coming, 32), 0);
		if (i % 15 == 0)
			wait_turns(2);
		CHECK_EQ(sl_inet_route_del(t_inet, &r[k]), 0);
		CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &coming), 0);
		if (i % 15 == 0)
			wait_turns(2);
	}
	finish(worker);
	/* All were seen, or nothing was shown. */
	for (int i = 0; i < 5; i++)
		CHECK(taken[i] > 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(addresses_appear_whole);
	SL_TEST_RUN(gateways_change_whole);
	SL_TEST_RUN(routes_and_addresses_come_and_go);
	rte_eal_cleanup();
	return test_end();
}
