/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Very many datagrams with sequence numbers through the split mode: one lcore receives, this thread
 * reads with recvmmsg. None is lost that is not counted, each flow keeps its order, and every mbuf is
 * back in its pool at the end. Half of them meet a queue that holds more than the pool, so that all
 * arrive; the other half one that overflows. The argument is the number of datagrams.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sl_inet.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_pool.h"
#include "sl_udp.h"

#define FLOWS 4u
#define MBUFS 32767u
#define BATCH 64u
#define DPORT 9

struct payload {
	uint64_t flow;
	uint64_t seq;
};

static uint64_t total = 50 * 1000 * 1000; /* of a case */
static struct rte_mempool *pool;
static struct sl_inet *inet;
static struct sl_udp *udp;
static struct sl_udp_sock *sock;
static uint16_t port_id;
static uint32_t finished; /* (a) the receiving lcore has appended its last datagram */

static const uint8_t frame_template[] = {
	/* Ethernet: the port's own address is filled in */
	0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00,
	/* IPv4: 44 bytes in all, TTL 64, UDP; header checksum is filled in */
	0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2,
	/* UDP: from port 0x1000, no checksum */
	0x10, 0x00, 0, DPORT, 0, 24, 0, 0};

static void
build_frame(struct rte_mbuf *m, const uint8_t *header, uint64_t seq)
{
	struct payload payload = {.flow = seq % FLOWS, .seq = seq / FLOWS};
	uint8_t *frame = (uint8_t *)rte_pktmbuf_append(
		m, sizeof(frame_template) + sizeof(payload));

	memcpy(frame, header, sizeof(frame_template));
	frame[35] = (uint8_t)payload.flow; /* low byte of the source port */
	memcpy(frame + sizeof(frame_template), &payload, sizeof(payload));
}

static int
receive_all(void *arg)
{
	uint8_t header[sizeof(frame_template)];
	struct rte_ether_addr mac;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(header + RTE_ETHER_HDR_LEN);

	(void)arg;
	memcpy(header, frame_template, sizeof(header));
	rte_eth_macaddr_get(port_id, &mac);
	memcpy(header, &mac, sizeof(mac));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	sl_inet_worker_online(inet, 0);
	for (uint64_t seq = 0; seq < total;) {
		struct rte_mbuf *pkts[SL_INET_BURST];
		uint16_t n = (uint16_t)RTE_MIN(total - seq, (uint64_t)SL_INET_BURST);

		/* The pool is the wire: when it is empty the reader has it all. */
		while (rte_pktmbuf_alloc_bulk(pool, pkts, n) != 0)
			sched_yield();
		for (uint16_t i = 0; i < n; i++)
			build_frame(pkts[i], header, seq + i);
		sl_inet_input_burst(inet, 0, port_id, pkts, n);
		seq += n;
	}
	sl_inet_worker_offline(inet, 0);
	sl_store_release(&finished, 1u);
	return 0;
}

struct reader {
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct payload payload[BATCH];
	uint64_t next[FLOWS]; /* lowest sequence number that may come */
	uint64_t received;
	uint64_t missing;
	uint64_t bad; /* out of order, twice, or not what was sent */
};

static void
note_datagram(struct reader *r, const struct payload *p, unsigned int len)
{
	if (len != sizeof(*p) || p->flow >= FLOWS || p->seq < r->next[p->flow] ||
		p->seq >= total) {
		r->bad++;
		return;
	}
	r->missing += p->seq - r->next[p->flow];
	r->next[p->flow] = p->seq + 1;
	r->received++;
}

static void
read_all(struct reader *r)
{
	for (;;) {
		/* Before the queue is looked at: an empty queue is then the end. */
		bool last = sl_load_acquire(&finished) != 0;
		struct timespec timeout = {.tv_nsec = 50 * 1000 * 1000};
		int n;

		for (uint32_t i = 0; i < BATCH; i++) {
			r->iov[i] = (struct iovec){&r->payload[i], sizeof(r->payload[i])};
			r->msgs[i].msg_hdr = (struct msghdr){.msg_iov = &r->iov[i], .msg_iovlen = 1};
		}
		n = sl_udp_recvmmsg(sock, r->msgs, BATCH, MSG_WAITFORONE, &timeout);
		for (int i = 0; i < n; i++)
			note_datagram(r, &r->payload[i], r->msgs[i].msg_len);
		if (n == -EAGAIN && last)
			return;
		if (n < 0 && n != -EAGAIN) {
			CHECK_EQ(n, 0);
			return;
		}
	}
}

static void
port_start(void)
{
	struct rte_eth_conf eth = {0};

	REQUIRE(rte_eth_dev_get_port_by_name("net_null0", &port_id) == 0);
	REQUIRE(rte_eth_dev_configure(port_id, 1, 1, &eth) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port_id, 0, 64, SOCKET_ID_ANY, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port_id, 0, 64, SOCKET_ID_ANY, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port_id) == 0);
}

static void
stack_create(uint32_t slots, uint64_t rcvbuf)
{
	struct sl_inet_conf conf = {.workers = 1};
	struct sl_inet_port_conf port = {.pool = pool};
	struct sl_udp_conf udp_conf = {.pool = pool};
	struct sl_udp_sock_conf sock_conf = {.family = AF_INET,
		.worker = SL_INET_NO_WORKER,
		.slots = slots,
		.rcvbuf = rcvbuf};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(DPORT)};
	struct sl_addr addr;
	uint8_t prefix;

	port.port_id = port_id;
	REQUIRE(sl_inet_create(&conf, &inet) == 0);
	REQUIRE(sl_inet_port_add(inet, &port) == 0);
	REQUIRE(sl_addr_parse("198.18.0.2/24", &addr, &prefix) == 0);
	REQUIRE(sl_inet_addr_add(inet, port_id, &addr, prefix) == 0);
	REQUIRE(sl_udp_create(inet, &udp_conf, &udp) == 0);
	REQUIRE(sl_udp_socket(udp, &sock_conf, &sock) == 0);
	REQUIRE(sl_udp_bind(sock, (struct sockaddr *)&any, sizeof(any)) == 0);
}

/* Returns how many were dropped, all of them counted. */
static uint64_t
run(uint32_t slots, uint64_t rcvbuf)
{
	static struct reader r;
	uint64_t outcomes[SL_OUTCOME_COUNT], sum = 0;
	struct sl_udp_sock_stats stats;
	uint64_t dropped;

	memset(&r, 0, sizeof(r));
	sl_store_relaxed(&finished, 0u);
	stack_create(slots, rcvbuf);
	REQUIRE(rte_eal_remote_launch(receive_all, NULL, rte_get_next_lcore(-1, 1, 0)) == 0);
	read_all(&r);
	rte_eal_mp_wait_lcore();
	for (uint32_t f = 0; f < FLOWS; f++)
		r.missing += (total + FLOWS - 1 - f) / FLOWS - r.next[f];
	sl_inet_outcomes(inet, SL_INET_NO_WORKER, outcomes);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++)
		sum += outcomes[i];
	dropped = outcomes[SL_RX_UDP_RCVBUF] + outcomes[SL_RX_UDP_SLOTS];
	sl_udp_sock_stats(sock, &stats);
	CHECK_EQ(r.bad, 0);
	CHECK_EQ(sum, total);
	CHECK_EQ(r.received, outcomes[SL_RX_UDP_QUEUED]);
	CHECK_EQ(r.received + dropped, total);
	CHECK_EQ(r.missing, dropped);
	CHECK_EQ(stats.datagrams, r.received);
	CHECK_EQ(stats.bytes, r.received * sizeof(struct payload));
	sl_udp_close(sock, SL_INET_NO_WORKER);
	sl_udp_destroy(udp);
	sl_inet_destroy(inet);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
	printf("     %llu sent, %llu read, %llu counted as dropped\n", (unsigned long long)total,
		(unsigned long long)r.received, (unsigned long long)dropped);
	return dropped;
}

static void
a_queue_larger_than_the_pool_loses_none(void)
{
	CHECK_EQ(run(MBUFS + 1, UINT64_MAX), 0);
}

static void
what_a_small_queue_refuses_is_counted(void)
{
	CHECK(run(256, 100 * 1000) > 0);
}

/* Two lcores; on one CPU if there is just one. */
static int
eal_start(void)
{
	char more[64];
	int cpu[2] = {-1, -1}, count = 0;
	cpu_set_t cpus;

	REQUIRE(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
		if (CPU_ISSET(i, &cpus))
			cpu[count++] = i;
	snprintf(more, sizeof(more), "--vdev net_null0 --lcores 0@%d,1@%d", cpu[0], cpu[count - 1]);
	return test_eal_start("test-many", more);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		total = strtoull(argv[1], NULL, 10) / 2;
	REQUIRE(total > 0 && eal_start() >= 0);
	pool = rte_pktmbuf_pool_create_by_ops(
		"wire", MBUFS, 256, 0, 512, SOCKET_ID_ANY, TEST_POOL_OPS_TSAN);
	REQUIRE(pool != NULL);
	port_start();
	SL_TEST_RUN(a_queue_larger_than_the_pool_loses_none);
	SL_TEST_RUN(what_a_small_queue_refuses_is_counted);
	rte_eth_dev_stop(port_id);
	rte_eal_cleanup();
	return test_end();
}
