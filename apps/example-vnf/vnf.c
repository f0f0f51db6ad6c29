/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A DNS responder on lcores: example-vnf EAL-ARGUMENTS -- ADDRESS/PREFIX ...
 * Lcore w has queue pair w of DPDK port 0, and a socket that shares port 53 with those of the others.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <sl_errno.h>
#include <sl_udp.h>

#include "dns.h"

enum { BURST = 32, DESCRIPTORS = 1024, PACKETS = 16383 };

static struct sl_inet *inet;
static struct sl_udp *udp;
static atomic_int state = 1; /* 0: come to an end; below 0: because of that error */

static void
on_signal(int sig)
{
	(void)sig;
	state = 0;
}

/* A turn of lcore w, which its receive calls make while they wait. */
static void
turn(void *w)
{
	sl_inet_poll(inet, (uint16_t)(uintptr_t)w, 0, (uint16_t)(uintptr_t)w);
}

static void
answer_burst(struct sl_udp_sock *s, uint16_t w)
{
	uint8_t data[BURST][DNS_QUERY_MAX + DNS_GROWTH];
	struct timespec patience = {.tv_nsec = 100000000};
	struct sockaddr_in6 from[BURST];
	struct mmsghdr msgs[BURST];
	struct iovec iov[BURST];
	int got, n = 0, ret;

	for (int i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){data[i], DNS_QUERY_MAX};
		msgs[i].msg_hdr = (struct msghdr){&from[i], sizeof(from[i]), &iov[i], 1, NULL, 0, 0};
	}
	got = sl_udp_recvmmsg(s, msgs, BURST, MSG_WAITFORONE, &patience);
	for (int i = 0; i < got; i++) {
		if ((msgs[i].msg_hdr.msg_flags & MSG_TRUNC) != 0)
			continue; /* longer than DNS_QUERY_MAX */
		iov[i].iov_len = dns_answer(data[i], msgs[i].msg_len);
		if (iov[i].iov_len > 0)
			msgs[n++] = msgs[i];
	}
	for (int sent = 0; sent < n; sent += ret > 0 ? ret : 1) /* one that cannot leave is passed over */
		ret = sl_udp_sendmmsg(s, w, msgs + sent, (unsigned)(n - sent), 0);
	sl_inet_flush(inet, w, 0, w);
}

static int
serve(void *arg)
{
	uint16_t w = (uint16_t)rte_lcore_index((int)rte_lcore_id());
	struct sl_udp_sock_conf conf = {.family = AF_INET6, .reuse_port = true, .worker = w};
	struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
	struct sl_udp_sock *s = arg; /* NULL */
	int ret;

	sl_inet_worker_online(inet, w);
	sl_udp_set_poll(udp, w, turn, (void *)(uintptr_t)w);
	ret = sl_udp_socket(udp, &conf, &s);
	if (ret == 0)
		ret = sl_udp_bind(s, (struct sockaddr *)&here, sizeof(here)); /* [::] takes IPv4, too */
	if (ret != 0)
		state = ret;
	while (state == 1)
		answer_burst(s, w);
	if (s != NULL)
		sl_udp_close(s, w);
	sl_inet_worker_offline(inet, w);
	return ret;
}

/* The fragments of a datagram have to come to one lcore, so queues are chosen by address alone. */
static int
port_start(uint16_t queues, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {.rxmode.mq_mode = queues > 1 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(0, &info);

	conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP & info.flow_type_rss_offloads;
	if (ret == 0)
		ret = rte_eth_dev_configure(0, queues, queues, &conf);
	for (uint16_t q = 0; ret == 0 && q < queues; q++) {
		ret = rte_eth_rx_queue_setup(0, q, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(0, q, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	}
	return ret == 0 ? rte_eth_dev_start(0) : ret;
}

static int
stack_start(uint16_t workers, char **addrs, int naddrs)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("packets", PACKETS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct sl_inet_port_conf port = {.pool = pool};
	struct sl_inet_conf conf = {.workers = workers};
	struct sl_udp_conf udp_conf = {.pool = pool};
	struct sl_addr addr;
	uint8_t prefix;
	int ret = pool == NULL ? sl_rte_error() : port_start(workers, pool);

	if (ret == 0)
		ret = sl_inet_create(&conf, &inet);
	if (ret == 0)
		ret = sl_inet_port_add(inet, &port);
	for (int i = 0; ret == 0 && i < naddrs; i++) {
		ret = sl_addr_parse(addrs[i], &addr, &prefix);
		if (ret == 0)
			ret = sl_inet_addr_add(inet, 0, &addr, prefix);
	}
	return ret == 0 ? sl_udp_create(inet, &udp_conf, &udp) : ret;
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), ret = -EINVAL;

	if (used < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (argc - used > 1)
		ret = stack_start((uint16_t)rte_lcore_count(), argv + used + 1, argc - used - 1);
	if (ret == 0) {
		puts("answering");
		fflush(stdout);
		rte_eal_mp_remote_launch(serve, NULL, CALL_MAIN);
		rte_eal_mp_wait_lcore();
		ret = state;
		sl_udp_destroy(udp);
		sl_inet_destroy(inet);
		rte_eth_dev_stop(0);
	}
	if (ret != 0)
		fprintf(stderr, "%s EAL-ARGUMENTS -- ADDRESS/PREFIX ...: %s\n", argv[0], sl_strerror(ret));
	rte_eal_cleanup();
	return ret != 0;
}
