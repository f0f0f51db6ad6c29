/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * bind: how long a packet socket's bind takes. One that changes nothing, one that must wait for
 * workers, and the first one of a socket that was created with protocol 0; while a worker polls a
 * port under traffic. Microseconds for one bind.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "packet_help.h"
#include "sl_psock.h"
#include "sl_shared.h"

static struct bind_state {
	struct sl_psock_net *net;
	struct sl_psock *s;
	uint16_t port_id;
	uint32_t done;
} state;

/* The port gives a full burst each time, and the socket that is bound sees none of it: its protocol
 * is another. */
static int
poll_port(void *arg)
{
	(void)arg;
	sl_psock_worker_online(state.net, 0);
	while (!sl_load_acquire(&state.done))
		sl_psock_poll(state.net, 0, state.port_id, 0);
	sl_psock_worker_offline(state.net, 0);
	return 0;
}

static int
bind_to(struct sl_psock *s, uint16_t proto)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET,
		.sll_ifindex = state.port_id + 1,
		.sll_protocol = htons(proto)};

	return sl_psock_bind(s, &ll, sizeof(ll), SL_PSOCK_NO_WORKER);
}

/* The clock is read once in so many binds: reading it costs about as much as a bind that changes
 * nothing does. */
#define BINDS_A_TURN 16

static double
unchanged(void *arg, double seconds)
{
	uint64_t start = rte_get_tsc_cycles(), n = 0, now;
	uint64_t end = start + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	(void)arg;
	do {
		for (unsigned int i = 0; i < BINDS_A_TURN; i++)
			if (bind_to(state.s, ETH_P_ARP) != 0)
				return -1;
		n += BINDS_A_TURN;
		now = rte_get_tsc_cycles();
	} while (now < end);
	return (double)(now - start) / (double)n / (double)rte_get_tsc_hz() * 1e6;
}

/* There and back: the slice ends where it began, so that the unchanged one stays unchanged. */
static double
changed(void *arg, double seconds)
{
	uint64_t start = rte_get_tsc_cycles(), n = 0, now;
	uint64_t end = start + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	(void)arg;
	do {
		for (unsigned int i = 0; i < BINDS_A_TURN; i += 2)
			if (bind_to(state.s, ETH_P_IP) != 0 || bind_to(state.s, ETH_P_ARP) != 0)
				return -1;
		n += BINDS_A_TURN;
		now = rte_get_tsc_cycles();
	} while (now < end);
	return (double)(now - start) / (double)n / (double)rte_get_tsc_hz() * 1e6;
}

/* Only the bind is timed, not the making and closing of the socket. */
static double
from_protocol_0(void *arg, double seconds)
{
	uint64_t begin = rte_get_tsc_cycles(), spent = 0, n = 0, start;
	uint64_t end = begin + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	(void)arg;
	do {
		struct sl_psock *s;
		int ret;

		if (sl_psock_create(state.net, SOCK_RAW, 0, &s) != 0)
			return -1;
		start = rte_get_tsc_cycles();
		ret = bind_to(s, ETH_P_ARP);
		spent += rte_get_tsc_cycles() - start;
		sl_psock_close(s, SL_PSOCK_NO_WORKER);
		if (ret != 0)
			return -1;
		n++;
	} while (rte_get_tsc_cycles() < end);
	return (double)spent / (double)n / (double)rte_get_tsc_hz() * 1e6;
}

static int
measure(const struct bench_opts *opts, unsigned int lcore)
{
	static const struct packet_side side[] = {{"changed", changed, NULL},
		{"unchanged", unchanged, NULL}, {"from_protocol_0", from_protocol_0, NULL}};
	int ret;

	if (rte_eal_remote_launch(poll_port, NULL, lcore) != 0)
		return -EBUSY;
	ret = packet_sides_run(opts, "bind", "under_traffic", "us", opts->seconds, side, 3);
	sl_store_release(&state.done, 1);
	rte_eal_wait_lcore(lcore);
	return ret;
}

static int
run(const struct bench_opts *opts)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);
	struct sl_psock_net_conf conf = {.workers = 1};
	struct sl_psock_port_conf port = {.tx_queues = 1};
	int ret;

	if (lcore == RTE_MAX_LCORE) {
		packet_skip(opts, "bind", "under_traffic", "EAL has one lcore");
		return 0;
	}
	ret = packet_port_open(&state.port_id, &conf.pool, 1500);
	if (ret != 0)
		return ret;
	port.port_id = state.port_id;
	ret = sl_psock_net_create(&conf, &state.net);
	if (ret == 0)
		ret = sl_psock_port_add(state.net, &port);
	if (ret == 0)
		ret = sl_psock_create(state.net, SOCK_RAW, 0, &state.s);
	if (ret == 0)
		ret = bind_to(state.s, ETH_P_ARP);
	if (ret == 0)
		ret = measure(opts, lcore);
	sl_psock_close(state.s, SL_PSOCK_NO_WORKER);
	if (sl_psock_net_destroy(state.net) != 0)
		ret = -EPROTO;
	packet_port_close(state.port_id, conf.pool);
	return ret;
}

const struct bench_command bench_bind = {
	"bind", "a packet socket's bind: unchanged, changed, first", run};
