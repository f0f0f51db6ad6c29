/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A packet socket of our own over the first DPDK port, in this process. */
#include <errno.h>

#include <rte_ethdev.h>

#include "common/app.h"
#include "sl_errno.h"
#include "sl_psock.h"
#include "tx.h"

static struct rte_mempool *pool;
static struct sl_psock_net *net;
static struct sl_psock *sock;
static struct tx_ring ring;
static size_t bytes;

static void
must(int ret, const char *what)
{
	if (ret != 0)
		app_fail("%s: %s", what, sl_strerror(ret));
}

static void
port_start(void)
{
	struct rte_eth_conf conf = {0};

	if (rte_eth_dev_count_avail() == 0)
		app_fail("EAL arguments name no port, as --vdev=net_null0 would");
	pool = rte_pktmbuf_pool_create(
		"packet-tx", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	must(pool == NULL ? sl_rte_error() : 0, "mbuf pool");
	must(rte_eth_dev_configure(0, 1, 1, &conf), "port 0: configure");
	must(rte_eth_rx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL, pool), "port 0: receive queue");
	must(rte_eth_tx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL), "port 0: transmit queue");
	must(rte_eth_dev_start(0), "port 0: start");
}

/* Whatever the port receives has no reader here. */
static void
discard(void *arg, uint16_t worker)
{
	struct rte_mbuf *m[32];
	uint16_t n = rte_eth_rx_burst(0, 0, m, 32);

	(void)arg;
	(void)worker;
	rte_pktmbuf_free_bulk(m, n);
}

static void
set(int name, const void *value, socklen_t len, const char *what)
{
	must(sl_psock_setsockopt(sock, SOL_PACKET, name, value, len, SL_PSOCK_NO_WORKER), what);
}

static void
sock_open(const struct tx_conf *conf)
{
	struct sl_psock_net_conf n = {.workers = 1, .pool = pool, .progress = discard};
	struct sl_psock_port_conf p = {.tx_queues = 1};
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_ifindex = 1};
	int one = 1;

	must(sl_psock_net_create(&n, &net), "packet sockets");
	must(sl_psock_port_add(net, &p), "port 0");
	must(sl_psock_create(net, SOCK_RAW, 0, &sock), "socket");
	must(sl_psock_bind(sock, &ll, sizeof(ll), SL_PSOCK_NO_WORKER), "bind");
	set(PACKET_VERSION, &conf->version, sizeof(conf->version), "--version");
	if (conf->loss)
		set(PACKET_LOSS, &one, sizeof(one), "--loss");
}

static uint32_t
port_open(const struct tx_conf *conf)
{
	struct app_eal_conf eal = {.lcores = 1, .queues = 1};
	struct tpacket_req3 req = {0};
	uint32_t frame, blocks, block_size;
	void *addr;

	if (conf->eal_argc <= 1)
		app_fail("one of --server SOCKET, --iface NAME or EAL arguments before -- says "
			 "where "
			 "the ring lives");
	app_eal_start(conf->eal_argc, conf->eal_argv, &eal);
	port_start();
	sock_open(conf);
	tx_ring_geometry(conf, &frame, &blocks, &block_size);
	req.tp_block_size = block_size;
	req.tp_block_nr = blocks;
	req.tp_frame_size = frame;
	req.tp_frame_nr = block_size / frame * blocks;
	set(PACKET_TX_RING, &req,
		conf->version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req), "--frames");
	bytes = (size_t)block_size * blocks;
	must(sl_psock_mmap(sock, bytes, &addr), "mmap");
	ring = (struct tx_ring){.addr = addr,
		.version = conf->version,
		.frames = req.tp_frame_nr,
		.frame_size = frame};
	return ring.frames;
}

static uint8_t *
port_next(void)
{
	return tx_ring_next(&ring);
}

static void
port_submit(uint32_t len)
{
	tx_ring_submit(&ring, len);
}

static int
port_flush(const struct tx_conf *conf)
{
	struct msghdr msg = {0};
	ssize_t ret =
		sl_psock_sendmsg(sock, &msg, conf->dontwait ? MSG_DONTWAIT : 0, SL_PSOCK_NO_WORKER);

	if (conf->dontwait)
		discard(NULL, 0);
	return ret < 0 ? (int)ret : 0;
}

static uint32_t
port_refused(void)
{
	return tx_ring_refused(&ring);
}

static bool
port_idle(void)
{
	return tx_ring_idle(&ring);
}

static void
port_close(void)
{
	sl_psock_munmap(sock, ring.addr, bytes);
	sl_psock_close(sock, SL_PSOCK_NO_WORKER);
	rte_eth_dev_stop(0);
	if (sl_psock_net_destroy(net) != 0)
		app_note("frames are still in flight at the port");
	rte_eth_dev_close(0);
}

const struct tx_backend tx_port = {
	"port", port_open, port_next, port_submit, port_flush, port_refused, port_idle, port_close};
