/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PSOCK_HELP_H
#define PSOCK_HELP_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "psock_priv.h"
#include "sl_test.h"
#include "sl_test_eal.h"

/* One net over one port that loops what it sends: a ring in memory. */
static struct rte_mempool *pool;
static struct sl_psock_net *net;

#define PORT 0
#define IFINDEX 1
#define FRAME 2048u
#define FRAMES 8u

/* What is in the port's ring, freed: receive without showing it to anybody. */
static inline uint32_t
drain(void)
{
	struct rte_mbuf *m[32];
	uint32_t all = 0;
	uint16_t n;

	while ((n = rte_eth_rx_burst(PORT, 0, m, 32)) > 0) {
		rte_pktmbuf_free_bulk(m, n);
		all += n;
	}
	return all;
}

static inline void
help_progress(void *arg, uint16_t worker)
{
	(void)arg;
	(void)worker;
	drain();
}

static inline void
port_start(uint64_t offloads)
{
	struct rte_eth_conf conf = {.txmode = {.offloads = offloads}};

	REQUIRE(rte_eth_dev_configure(PORT, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(PORT, 0, 512, SOCKET_ID_ANY, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(PORT, 0, 512, SOCKET_ID_ANY, NULL) == 0);
	REQUIRE(rte_eth_dev_start(PORT) == 0);
}

static inline void
net_open(void (*progress)(void *, uint16_t), enum sl_psock_lend lend)
{
	struct sl_psock_net_conf conf = {.workers = 4, .pool = pool, .progress = progress};
	struct sl_psock_port_conf port = {.port_id = PORT, .tx_queues = 1, .lend = lend};

	REQUIRE(sl_psock_net_create(&conf, &net) == 0);
	REQUIRE(sl_psock_port_add(net, &port) == 0);
}

static inline void
net_close(void)
{
	drain();
	CHECK_EQ(sl_psock_net_destroy(net), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static inline void
help_init_with(const char *prefix, const char *eal)
{
	REQUIRE(test_eal_start(prefix, eal) >= 0);
	pool = rte_pktmbuf_pool_create("pool", 2047, 64, 0, 2048 + 128, SOCKET_ID_ANY);
	REQUIRE(pool != NULL);
	port_start(0);
}

static inline void
help_init(const char *prefix)
{
	help_init_with(prefix, "-l 0 --vdev=net_ring0 --log-level=error");
}

static inline int
help_end(void)
{
	rte_eth_dev_stop(PORT);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}

static inline struct sl_psock *
sock_open(int type, uint16_t proto)
{
	struct sl_psock *s;

	REQUIRE(sl_psock_create(net, type, htons(proto), &s) == 0);
	return s;
}

static inline int
sock_bind(struct sl_psock *s, int ifindex, uint16_t proto, uint16_t worker)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_protocol = htons(proto)};

	return sl_psock_bind(s, &ll, sizeof(ll), worker);
}

static inline struct sl_psock *
sock_bound(int type, uint16_t proto)
{
	struct sl_psock *s = sock_open(type, 0);

	REQUIRE(sock_bind(s, IFINDEX, proto, SL_PSOCK_NO_WORKER) == 0);
	return s;
}

static inline int
sock_set(struct sl_psock *s, int name, int value)
{
	return sl_psock_setsockopt(s, SOL_PACKET, name, &value, sizeof(value), SL_PSOCK_NO_WORKER);
}

static inline int
sock_error(struct sl_psock *s)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK_EQ(sl_psock_getsockopt(s, SOL_SOCKET, SO_ERROR, &value, &len), 0);
	return value;
}

static inline int
sock_ring(struct sl_psock *s, int name, int version)
{
	struct tpacket_req3 req = {.tp_block_size = 2 * FRAME,
		.tp_block_nr = FRAMES / 2,
		.tp_frame_size = FRAME,
		.tp_frame_nr = FRAMES};
	int ret = sock_set(s, PACKET_VERSION, version);

	if (ret != 0)
		return ret;
	return sl_psock_setsockopt(s, SOL_PACKET, name, &req,
		version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req),
		SL_PSOCK_NO_WORKER);
}

static inline uint8_t *
sock_map(struct sl_psock *s, size_t len)
{
	void *p = NULL;

	REQUIRE(sl_psock_mmap(s, len, &p) == 0);
	return p;
}

/* A frame to nobody in particular: broadcast, proto, bytes that count up. */
static inline struct rte_mbuf *
frame(uint16_t proto, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p;

	REQUIRE(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, len);
	REQUIRE(p != NULL);
	for (uint16_t i = 0; i < len; i++)
		p[i] = (uint8_t)i;
	if (len >= 14) {
		memset(p, 0xff, 6);
		p[12] = (uint8_t)(proto >> 8);
		p[13] = (uint8_t)proto;
	}
	return m;
}

static inline void
show(struct rte_mbuf *m, uint16_t worker)
{
	sl_psock_input_burst(net, worker, PORT, 0, &m, 1);
	rte_pktmbuf_free(m);
}

static inline ssize_t
sock_recv(struct sl_psock *s, void *buf, size_t len, int flags, struct sockaddr_ll *from)
{
	struct iovec v = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1, .msg_name = from};

	if (from != NULL)
		msg.msg_namelen = sizeof(*from);
	return sl_psock_recvmsg(s, &msg, flags | MSG_DONTWAIT);
}

static inline ssize_t
sock_kick(struct sl_psock *s, int flags)
{
	struct msghdr msg = {0};

	return sl_psock_sendmsg(s, &msg, flags, SL_PSOCK_NO_WORKER);
}

#endif
