/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Two workers send to more neighbours than the table holds, while these move and are forgotten: no
 * datagram may leave with another neighbour's MAC address.
 */
#include <pthread.h>

#include "inet_test.h"
#include "sl_shared.h"

#define PEERS 40
#define ROUNDS 20000

static uint32_t seed = 1;

static struct rte_mempool *pool[2];
static uint64_t sent_wrong; /* (a) */
static uint64_t sent_right; /* (a) */
static uint64_t shared_now;   /* (a) */

static uint64_t
shared_clock(void *arg)
{
	return sl_load_relaxed((uint64_t *)arg);
}

/* Datagrams to 198.18.0.n go to 02:..:n:x, whatever x is just now. */
static uint16_t
check_macs(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	(void)port, (void)queue, (void)arg;
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(pkts[i], const uint8_t *);

		if (p[12] != 0x08 || p[13] != 0x00)
			continue;
		if (p[0] == 2 && p[4] == p[33])
			sl_fetch_add_relaxed(&sent_right, UINT64_C(1));
		else
			sl_fetch_add_relaxed(&sent_wrong, UINT64_C(1));
	}
	return n;
}

static void
send_datagram(uint16_t worker, uint32_t peer)
{
	struct sl_inet_flow flow = {.src = t_addr("198.18.0.2"), .sport = 1, .dport = 2};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool[worker]);

	if (m == NULL)
		return; /* all wait for neighbours */
	flow.dst = sl_addr_v4(rte_cpu_to_be_32(0xc6120000 + peer));
	if (sl_inet_udp_output(t_inet, worker, &flow, m) != 0)
		rte_pktmbuf_free(m);
}

/* The peer asks for us, from one of its MAC addresses. */
static void
peer_asks(uint16_t worker, uint32_t peer, uint8_t x)
{
	uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)peer, x};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool[worker]);
	struct t_frame f;
	char text[46];

	if (m == NULL)
		return;
	snprintf(text, sizeof(text), "198.18.0.%u", peer);
	t_arp_frame(&f, 1, t_any_mac, mac, text, "198.18.0.2");
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	sl_inet_input_burst(t_inet, worker, t_port, &m, 1);
}

static void *
worker_loop(void *arg)
{
	uint16_t worker = *(uint16_t *)arg;
	uint32_t state = seed + worker;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t peer = 10 + (test_random(&state) >> 8) % PEERS;

		switch ((test_random(&state) >> 8) % 8) {
		case 0:
			peer_asks(worker, peer, (uint8_t)(test_random(&state) >> 8));
			break;
		case 1:
			sl_fetch_add_relaxed(&shared_now, 7 * T_S);
			sl_inet_timers(t_inet, worker);
			break;
		default:
			send_datagram(worker, peer);
		}
		sl_inet_flush(t_inet, worker, t_port, (uint16_t)(worker + 1));
	}
	sl_inet_worker_offline(t_inet, worker);
	return NULL;
}

static void
neighbours_under_two_workers(void)
{
	struct sl_inet_conf conf = {.workers = 2, .neighbours = 8, .now_ns = shared_clock,
		.now_arg = &shared_now};
	struct sl_inet_port_conf port_conf = {.port_id = t_port, .pool = t_pool};
	struct sl_addr ours = t_addr("198.18.0.2");
	uint64_t counts[SL_OUTCOME_COUNT], sum = 0;
	uint16_t index[2] = {0, 1};
	pthread_t thread[2];

	shared_now = 1000 * T_S;
	REQUIRE(sl_inet_create(&conf, &t_inet) == 0);
	REQUIRE(sl_inet_port_add(t_inet, &port_conf) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &ours, 24) == 0);
	for (int i = 0; i < 2; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker_loop, &index[i]) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(sent_wrong, 0);
	CHECK(sent_right > 1000);
	sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, counts);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++)
		sum += counts[i];
	CHECK_EQ(sum, sl_inet_received(t_inet, SL_INET_NO_WORKER));
	CHECK(counts[SL_TX_NEIGH_FULL] > 0 && counts[SL_TX_NEIGH_FAILED] > 0);
	sl_inet_destroy(t_inet);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(rte_mempool_avail_count(pool[i]), T_POOL);
	CHECK_EQ(rte_mempool_avail_count(t_pool), T_POOL);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		seed = (uint32_t)strtoul(argv[1], NULL, 0);
	printf("seed %u\n", seed);
	t_init(argv[0]);
	for (unsigned int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker%u", i);
		pool[i] = rte_pktmbuf_pool_create(name, T_POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
		REQUIRE(pool[i] != NULL);
		REQUIRE(rte_eth_add_tx_callback(t_port, (uint16_t)(i + 1), check_macs, NULL) != NULL);
	}
	SL_TEST_RUN(neighbours_under_two_workers);
	return test_end();
}
