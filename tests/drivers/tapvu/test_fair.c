/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Several frontends on one port: stock virtio-user drivers in this process, connected to one
 * socket. While each has more to give than a burst takes, all are served in turn.
 *
 * usage: test_fair PLUGIN
 */
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sl_test.h"
#include "sl_test_eal.h"

#define FRONTENDS 3u
#define EACH 64u  /* packets that a frontend sends */
#define BURST 4u  /* that a poll takes */
#define POLLS 16u /* after which each must have had a good share */

static uint16_t ours, peer[FRONTENDS];
static struct rte_mempool *pool;

static void
port_setup(uint16_t port)
{
	struct rte_eth_conf conf = {0};

	REQUIRE(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
}

static uint16_t
port_add(const char *name, const char *args)
{
	uint16_t port;

	REQUIRE(rte_eal_hotplug_add("vdev", name, args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name(name, &port) == 0);
	port_setup(port);
	return port;
}

static void
port_remove(uint16_t port)
{
	REQUIRE(rte_eth_dev_stop(port) == 0);
	REQUIRE(rte_eth_dev_close(port) == 0);
}

/* The first byte of each says who sent it. */
static void
send_all(uint32_t frontend)
{
	for (uint32_t i = 0; i < EACH; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		REQUIRE(m != NULL);
		memset(rte_pktmbuf_append(m, 60), (int)frontend, 60);
		REQUIRE(rte_eth_tx_burst(peer[frontend], 0, &m, 1) == 1);
	}
}

static uint16_t
take(uint32_t *had)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(ours, 0, m, BURST);

	for (uint16_t i = 0; i < n; i++) {
		uint8_t from = *rte_pktmbuf_mtod(m[i], uint8_t *);

		REQUIRE(from < FRONTENDS);
		had[from]++;
	}
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Every virtqueue of a frontend comes up by itself, some time after its link. */
static void
all_come_up(void)
{
	uint32_t had[FRONTENDS] = {0}, all = 0;
	struct test_wait w = {0};

	for (uint32_t f = 0; f < FRONTENDS; f++)
		send_all(f);
	while (all < FRONTENDS * EACH && test_patience(&w)) {
		uint16_t n = take(had);

		all += n;
		if (n == 0)
			usleep(10);
	}
	for (uint32_t f = 0; f < FRONTENDS; f++)
		CHECK_EQ(had[f], EACH);
}

static void
none_is_served_last(void)
{
	uint32_t had[FRONTENDS] = {0}, all = 0;

	for (uint32_t f = 0; f < FRONTENDS; f++)
		send_all(f);
	for (uint32_t k = 0; k < POLLS; k++)
		all += take(had);
	CHECK_EQ(all, POLLS * BURST);
	for (uint32_t f = 0; f < FRONTENDS; f++)
		CHECK(had[f] >= POLLS * BURST / FRONTENDS / 2);
	while (take(had) > 0)
		;
	for (uint32_t f = 0; f < FRONTENDS; f++)
		CHECK_EQ(had[f], EACH);
}

int
main(int argc, char **argv)
{
	char args[512], socket[64], text[128], name[32];

	if (argc != 2) {
		fprintf(stderr, "usage: test_fair PLUGIN\n");
		return 2;
	}
	snprintf(socket, sizeof(socket), "/tmp/sl_fair_%d.sock", (int)getpid());
	snprintf(text, sizeof(text), "path=%s", socket);
	snprintf(args, sizeof(args), "-l 0 -d %s --log-level=3", argv[1]);
	REQUIRE(test_eal_start(argv[0], args) >= 0);
	pool = rte_pktmbuf_pool_create("packets", 8191, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	ours = port_add("net_tapvu0", text);
	for (uint32_t f = 0; f < FRONTENDS; f++) {
		snprintf(name, sizeof(name), "net_virtio_user%u", f);
		peer[f] = port_add(name, text);
	}
	SL_TEST_RUN(all_come_up);
	SL_TEST_RUN(none_is_served_last);
	for (uint32_t f = 0; f < FRONTENDS; f++)
		port_remove(peer[f]);
	port_remove(ours);
	unlink(socket);
	rte_eal_cleanup();
	return test_end();
}
