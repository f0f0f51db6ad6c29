/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sched.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "app.h"
#include "sl_errno.h"

#define RX_DESC 1024
#define TX_DESC 1024
/* On a kernel interface: the ring has its own memory, takes what comes while we are not on the
 * processor, and what we send is gone when the call returns. */
#define IFACE_RX_DESC 8192
#define IFACE_TX_DESC 256
#define POOL_CACHE 256
/* Fragments that a worker holds at most. */
#define FRAGMENTS 256
/* Turns without a packet after which a worker on a shared processor lets others run. */
#define IDLE_TURNS 16
/* Duplicate address detection takes a second; see that it had the chance to end. */
#define READY_S 4

static struct rte_mempool *
pool_create(const struct app_stack_conf *conf, uint32_t pairs)
{
	uint32_t n = pairs * (RX_DESC + TX_DESC + SL_INET_BURST) + conf->queued +
		     conf->workers * FRAGMENTS + rte_lcore_count() * POOL_CACHE * 2 + 1024;
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"app_packets", n, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id());

	if (pool == NULL)
		app_fail("no memory for %u packets (%u MB): free some hugepages, or give EAL more "
			 "with -m.",
			n, (unsigned int)((uint64_t)n * (RTE_MBUF_DEFAULT_BUF_SIZE + 192) >> 20));
	return pool;
}

static void
port_start(uint16_t id, uint16_t queues, bool promiscuous, struct rte_mempool *pool)
{
	struct app_port_conf conf = {
		.rx_queues = queues,
		.tx_queues = queues,
		.rx_ring = app_eal_own() ? IFACE_RX_DESC : RX_DESC,
		.tx_ring = app_eal_own() ? IFACE_TX_DESC : TX_DESC,
		.promiscuous = promiscuous,
		.pool = pool,
	};
	char name[RTE_ETH_NAME_MAX_LEN] = "?";
	int ret = app_port_start(id, &conf);

	rte_eth_dev_get_name_by_port(id, name);
	if (ret != 0)
		app_fail("port %s with %u queue pairs does not start: %s.", name, queues,
			sl_strerror(ret));
}

/* How many queue pairs each port gets: enough for the workers, as even as the ports allow. */
static uint16_t
plan(struct app_stack *s, uint16_t workers)
{
	uint16_t pairs = 0;
	uint16_t id;

	RTE_ETH_FOREACH_DEV (id) {
		struct rte_eth_dev_info info;
		uint16_t most;

		if (s->nports == APP_PORTS_MAX)
			app_fail("more than %d ports: leave some out.", APP_PORTS_MAX);
		if (rte_eth_dev_info_get(id, &info) != 0)
			app_fail("port %u does not say what it can do.", id);
		most = RTE_MIN(info.max_rx_queues, info.max_tx_queues);
		s->ports[s->nports] = id;
		s->queues[s->nports] = RTE_MAX(1, RTE_MIN(most, workers));
		pairs += s->queues[s->nports++];
	}
	if (pairs == 0)
		app_fail("there is no port: name one with --iface, or with --vdev or -a among the "
			 "EAL arguments.");
	if (pairs < workers)
		app_fail("--split=%u needs as many receive queues, and the ports have %u: "
			 "--split=%u would do.",
			workers, pairs, pairs);
	return pairs;
}

static void
deal(struct app_stack *s)
{
	uint16_t next = 0;

	for (uint16_t w = 0; w < s->nworkers; w++) {
		s->worker[w].stack = s;
		s->worker[w].index = w;
	}
	for (uint16_t p = 0; p < s->nports; p++)
		for (uint16_t q = 0; q < s->queues[p]; q++) {
			struct app_worker *w = &s->worker[next++ % s->nworkers];

			if (w->npairs == APP_PORTS_MAX)
				app_fail("too many queues for %u workers.", s->nworkers);
			w->pairs[w->npairs].port = s->ports[p];
			w->pairs[w->npairs++].queue = q;
		}
}

static void
add_addrs(struct app_stack *s, const struct app_stack_conf *conf)
{
	char text[64];

	for (uint16_t i = 0; i < conf->naddrs; i++) {
		const struct app_addr *a = &conf->addrs[i];
		int ret = sl_inet_addr_add(s->inet, s->ports[0], &a->addr, a->prefix);

		if (ret == -EINVAL)
			app_fail("--addr %s/%u is no address that a host on a link can have.",
				sl_addr_format(&a->addr, text, sizeof(text)), a->prefix);
		if (ret != 0)
			app_fail("--addr %s/%u: %s.", sl_addr_format(&a->addr, text, sizeof(text)),
				a->prefix, sl_strerror(ret));
	}
	if (!sl_addr_is_any(&conf->gateway) &&
		sl_inet_gateway_set(s->inet, s->ports[0], &conf->gateway) != 0)
		app_fail("--gateway %s is on none of the --addr networks.",
			sl_addr_format(&conf->gateway, text, sizeof(text)));
	if (!sl_addr_is_any(&conf->gateway6) &&
		sl_inet_gateway_set(s->inet, s->ports[0], &conf->gateway6) != 0)
		app_fail("--gateway %s is on none of the --addr networks.",
			sl_addr_format(&conf->gateway6, text, sizeof(text)));
}

void
app_stack_start(struct app_stack *s, const struct app_stack_conf *conf)
{
	struct sl_inet_conf inet_conf = {.workers = conf->workers, .frag_packets = FRAGMENTS};
	struct sl_udp_conf udp_conf = {0};
	uint16_t pairs;
	int ret;

	memset(s, 0, sizeof(*s));
	s->nworkers = conf->workers;
	s->crowded = app_crowded();
	pairs = plan(s, conf->workers);
	s->pool = pool_create(conf, pairs);
	deal(s);
	ret = sl_inet_create(&inet_conf, &s->inet);
	if (ret != 0)
		app_fail("no network stack: %s.", sl_strerror(ret));
	for (uint16_t p = 0; p < s->nports; p++) {
		struct sl_inet_port_conf port = {
			.port_id = s->ports[p],
			.pool = s->pool,
			.promiscuous = conf->promiscuous,
			.any_dst = conf->any_dst,
		};

		port_start(s->ports[p], s->queues[p], conf->promiscuous, s->pool);
		ret = sl_inet_port_add(s->inet, &port);
		if (ret != 0)
			app_fail("port %u is not taken by the stack: %s.", port.port_id,
				sl_strerror(ret));
	}
	udp_conf.pool = s->pool;
	ret = sl_udp_create(s->inet, &udp_conf, &s->udp);
	if (ret != 0)
		app_fail("no UDP layer: %s.", sl_strerror(ret));
	add_addrs(s, conf);
}

void
app_worker_poll(void *arg)
{
	struct app_worker *w = arg;
	uint16_t got = 0;

	for (uint16_t i = 0; i < w->npairs; i++)
		got += sl_inet_poll(w->stack->inet, w->index, w->pairs[i].port, w->pairs[i].queue);
	if (!w->stack->crowded)
		return;
	w->idle = got != 0 ? 0 : w->idle + 1;
	if (w->idle >= IDLE_TURNS)
		sched_yield();
}

static int
worker_main(void *arg)
{
	struct app_worker *w = arg;

	sl_inet_worker_online(w->stack->inet, w->index);
	while (!sl_load_relaxed(&w->stack->halt))
		app_worker_poll(w);
	sl_inet_worker_offline(w->stack->inet, w->index);
	return 0;
}

void
app_stack_launch(struct app_stack *s)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (s->lcores == s->nworkers)
			break;
		if (rte_eal_remote_launch(worker_main, &s->worker[s->lcores], lcore) != 0)
			app_fail("lcore %u does not start.", lcore);
		s->lcores++;
	}
	if (s->lcores < s->nworkers)
		app_fail("--split=%u needs %u lcores besides the reader's: name them with -l among "
			 "the EAL arguments.",
			s->nworkers, s->nworkers);
}

void
app_stack_local(struct app_stack *s)
{
	s->local = true;
	sl_inet_worker_online(s->inet, 0);
}

void
app_stack_wait_ready(struct app_stack *s, const struct app_stack_conf *conf)
{
	uint64_t end = rte_get_timer_cycles() + READY_S * rte_get_timer_hz();
	uint16_t i = 0;
	char text[64];

	while (i < conf->naddrs && !app_stopped()) {
		const struct sl_addr *a = &conf->addrs[i].addr;

		if (sl_inet_addr_is_local(s->inet, a)) {
			i++;
			continue;
		}
		sl_addr_format(a, text, sizeof(text));
		if (sl_inet_addr_is_duplicate(s->inet, a))
			app_fail("--addr %s is in use by another host on the link.", text);
		if (rte_get_timer_cycles() > end)
			app_fail("--addr %s did not become usable within %d s.", text, READY_S);
		if (s->lcores == 0)
			app_worker_poll(&s->worker[0]);
		else
			sched_yield();
	}
}

void
app_stack_halt(struct app_stack *s)
{
	sl_store_relaxed(&s->halt, true);
	rte_eal_mp_wait_lcore();
	if (s->local)
		sl_inet_worker_offline(s->inet, 0);
}

uint64_t
app_stack_missed(struct app_stack *s)
{
	uint64_t missed = 0;

	for (uint16_t p = 0; p < s->nports; p++) {
		struct rte_eth_stats stats;

		if (rte_eth_stats_get(s->ports[p], &stats) != 0)
			continue;
		missed += stats.imissed - s->missed_before[p];
		s->missed_before[p] = stats.imissed;
	}
	s->missed += missed;
	return s->missed;
}

void
app_stack_free(struct app_stack *s)
{
	unsigned int missing;

	sl_udp_destroy(s->udp);
	sl_inet_destroy(s->inet);
	for (uint16_t p = 0; p < s->nports; p++) {
		rte_eth_dev_stop(s->ports[p]);
		rte_eth_dev_close(s->ports[p]);
	}
	missing = s->pool->size - rte_mempool_avail_count(s->pool);
	if (missing != 0)
		app_note("%u of %u packets did not come back: please report it.", missing,
			s->pool->size);
	rte_mempool_free(s->pool);
}
