/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

#ifndef PORTS_H
#define PORTS_H

/* Ports of net_tpacket for the programs that run_api.sh starts: it gives them t0 and t1, the ends
 * of a veth pair. Port A is on t0, port B on t1. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <asm/socket.h>
#include <linux/if_packet.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_power_intrinsics.h>

#include "sl_base.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_leak.h"

#define BURST 32

static struct rte_mempool *pool;

/* ---- ports
 * ----------------------------------------------------------------------------------------- */

struct setup {
	const char *args;
	uint64_t rx, tx;
	struct rte_mempool *pool;
	bool intr, deferred;
	uint16_t desc;
};

/* 0, or -errno of the first call that failed; *id is set in any case where there is a port. */
static inline int
try_port(const char *name, const char *iface, const struct setup *s, uint16_t *id)
{
	struct rte_eth_conf conf = {.rxmode.offloads = s->rx, .txmode.offloads = s->tx};
	struct rte_eth_dev_info info;
	struct rte_eth_rxconf rxconf;
	struct rte_eth_txconf txconf;
	char args[200];
	int ret;

	*id = RTE_MAX_ETHPORTS;
	snprintf(args, sizeof(args), "iface=%s%s", iface, s->args);
	ret = rte_eal_hotplug_add("vdev", name, args);
	if (ret != 0)
		return ret;
	REQUIRE(rte_eth_dev_get_port_by_name(name, id) == 0);
	conf.intr_conf.rxq = s->intr;
	conf.rxmode.max_lro_pkt_size = (s->rx & RTE_ETH_RX_OFFLOAD_TCP_LRO) != 0 ? 65535 : 0;
	if ((s->rx & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP;
	}
	ret = rte_eth_dev_configure(*id, 1, 1, &conf);
	if (ret != 0)
		return ret;
	REQUIRE(rte_eth_dev_info_get(*id, &info) == 0);
	rxconf = info.default_rxconf;
	txconf = info.default_txconf;
	rxconf.rx_deferred_start = s->deferred;
	txconf.tx_deferred_start = s->deferred;
	REQUIRE(rte_eth_rx_queue_setup(
			*id, 0, s->desc, 0, &rxconf, s->pool != NULL ? s->pool : pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(*id, 0, s->desc, 0, &txconf) == 0);
	ret = rte_eth_dev_start(*id);
	return ret == 0 ? rte_eth_promiscuous_enable(*id) : ret;
}

static inline uint16_t
open_port(const char *name, const char *iface, const struct setup *s)
{
	uint16_t id;

	REQUIRE(try_port(name, iface, s, &id) == 0);
	return id;
}

static inline void
close_port(uint16_t id)
{
	struct rte_eth_dev_info info;
	struct rte_device *device;

	REQUIRE(rte_eth_dev_info_get(id, &info) == 0);
	device = info.device;
	CHECK_EQ(rte_eth_dev_stop(id), 0); /* also when it has not started */
	CHECK_EQ(rte_eth_dev_close(id), 0);
	CHECK_EQ(rte_dev_remove(device), 0);
}

static inline struct rte_mbuf *
frame_of(uint32_t len, uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p;

	REQUIRE(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	REQUIRE(p != NULL);
	memset(p, 0x11, len);
	if (len >= 14)
		memcpy(p, "\x02\0\0\0\0\2\x02\0\0\0\0\1\x88\xb5", 14);
	if (len >= 18)
		memcpy(p + 14, &number, sizeof(number));
	return m;
}

static inline uint32_t
number_of(const struct rte_mbuf *m)
{
	uint32_t n;

	memcpy(&n, rte_pktmbuf_mtod_offset(m, uint8_t *, 14), sizeof(n));
	return n;
}

/* Polls until n packets came or patience ends. */
static inline uint16_t
receive(uint16_t port, struct rte_mbuf **out, uint16_t n)
{
	struct test_wait w = {0};
	uint16_t got = 0;

	while (got < n && test_patience(&w))
		got += rte_eth_rx_burst(port, 0, out + got, n - got);
	return got;
}

static inline uint64_t
xstat(uint16_t port, const char *name)
{
	uint64_t id, value = UINT64_MAX;

	CHECK_EQ(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	CHECK_EQ(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}

/* Loads the plugin, starts EAL, makes the pool. */
static inline void
start_dpdk(int argc, char **argv)
{
	static char words[][48] = {"test_api", "--no-huge", "-m", "256", "--no-pci",
		"--no-telemetry", "-l", "0", "--file-prefix=tpacketapi",
		"--log-level=pmd.net.tpacket:warning"};
	char *eal[SL_COUNT_OF(words)];
	size_t i;

	for (i = 0; i < SL_COUNT_OF(words); i++)
		eal[i] = words[i];
	REQUIRE(argc == 2);
	/* Before EAL starts, so that it needs no path that only we may write to. */
	if (dlopen(argv[1], RTLD_NOW) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	REQUIRE(test_eal_init(SL_COUNT_OF(words), eal) >= 0);
	pool = rte_pktmbuf_pool_create("pool", 4095, 0, 0, 2176, 0);
	REQUIRE(pool != NULL);
}

#endif
