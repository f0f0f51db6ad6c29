/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <sched.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "flood.h"
#include "sl_errno.h"

/* How long the next hop has to answer. */
#define ANSWER_S 3
/* How long the other end of a ring has to fetch the last datagrams, before we take it down. */
#define LEAVE_MS 500
/* How long we leave a full port alone. */
#define FULL_US 10

static struct app_stack stack;
static struct sl_udp_sock *socks[FLOOD_FLOWS_MAX];

static void
socket_open(struct flood *f, uint16_t flow)
{
	const struct flood_options *o = f->opt;
	struct sl_udp_sock_conf conf = {
		.family = f->family,
		.worker = 0,
		.slots = 64,
	};
	struct sl_addr any = {{0}};
	struct sockaddr_storage ss;
	socklen_t len =
		app_sockaddr(&any, o->source_port ? o->source_port + flow : 0, f->family, &ss);
	int ret = sl_udp_socket(stack.udp, &conf, &socks[flow]);

	if (ret != 0)
		app_fail("no socket: %s.", sl_strerror(ret));
	ret = sl_udp_bind(socks[flow], (struct sockaddr *)&ss, len);
	if (ret != 0)
		app_fail("--source-port %u cannot be bound: %s.", o->source_port + flow,
			sl_strerror(ret));
	ret = sl_udp_connect(socks[flow], (struct sockaddr *)&f->to, f->to_len);
	if (ret == -ENETUNREACH)
		app_fail("--to is on none of the --addr networks: add a --gateway.");
	if (ret != 0)
		app_fail("--to: %s.", sl_strerror(ret));
}

static bool
on_link(const struct app_addr *a, const struct sl_addr *to)
{
	unsigned int bits = a->prefix + (sl_addr_is_v4(&a->addr) ? 96u : 0u);

	if (sl_addr_is_v4(&a->addr) != sl_addr_is_v4(to))
		return false;
	for (unsigned int i = 0; i < bits; i++)
		if (((a->addr.b[i / 8] ^ to->b[i / 8]) >> (7 - i % 8) & 1) != 0)
			return false;
	return true;
}

/* Send the first datagram and wait until its next hop has answered, so that none of those that
 * follow is lost for want of a place to wait in. */
static void
resolve(struct flood *f)
{
	const struct flood_options *o = f->opt;
	struct sl_addr hop = sl_addr_is_v4(&o->to) ? o->stack.gateway : o->stack.gateway6;
	uint64_t end = rte_get_timer_cycles() + ANSWER_S * rte_get_timer_hz();
	uint8_t mac[6];
	char text[64];
	int ret;

	for (uint16_t i = 0; i < o->stack.naddrs; i++)
		if (on_link(&o->stack.addrs[i], &o->to))
			hop = o->to;
	if (sl_addr_is_multicast(&hop))
		return;
	if (o->check)
		payload_write(f->bufs, o->size, o->first_flow, f->sequence[0]++, 0);
	ret = sl_udp_sendmmsg(socks[0], 0, f->msgs, 1, 0);
	if (ret != 1)
		app_fail("--to: the first datagram does not leave: %s.", sl_strerror(ret));
	f->sent++;
	while ((ret = sl_inet_neighbour(stack.inet, stack.ports[0], &hop, mac)) != 0) {
		app_worker_poll(&stack.worker[0]);
		if (app_stopped())
			return;
		if (ret == -ENOENT || rte_get_timer_cycles() > end)
			app_fail("--to: next hop %s does not answer on the link.",
				sl_addr_format(&hop, text, sizeof(text)));
	}
}

static void
lcore_open(struct flood *f, int eal_argc, char **eal_argv)
{
	const struct flood_options *o = f->opt;
	struct app_eal_conf eal = {.iface = o->iface, .lcores = 1, .queues = 1};
	struct app_stack_conf conf = o->stack;

	app_eal_start(eal_argc, eal_argv, &eal);
	conf.queued = 4096;
	app_stack_start(&stack, &conf);
	app_stack_local(&stack);
	app_stack_wait_ready(&stack, &conf);
	for (uint16_t i = 0; i < o->flows; i++)
		socket_open(f, i);
	if (!app_stopped())
		resolve(f);
}

static int
lcore_send(struct flood *f, uint16_t flow, unsigned int n)
{
	static uint64_t full;
	uint64_t counts[SL_OUTCOME_COUNT];
	int sent = sl_udp_sendmmsg(socks[flow], 0, f->msgs, n, 0);

	app_worker_poll(&stack.worker[0]);
	/* A port that has no room counts what it drops, and going on would only drop more. */
	sl_inet_outcomes(stack.inet, 0, counts);
	if (counts[SL_TX_PORT_FULL] != full) {
		full = counts[SL_TX_PORT_FULL];
		if (stack.crowded)
			sched_yield();
		else
			rte_delay_us_block(FULL_US);
	}
	return sent;
}

static void
lcore_idle(struct flood *f, uint64_t ns)
{
	(void)f;
	(void)ns;
	app_worker_poll(&stack.worker[0]);
}

static void
lcore_finish(struct flood *f)
{
	uint64_t end = rte_get_timer_cycles() + LEAVE_MS * rte_get_timer_hz() / 1000;

	(void)f;
	while (rte_get_timer_cycles() < end)
		app_worker_poll(&stack.worker[0]);
	app_stack_halt(&stack);
}

static const char *
lcore_drop(struct flood *f, unsigned int i, uint64_t *n)
{
	uint64_t counts[SL_OUTCOME_COUNT];
	unsigned int outcome = SL_OUTCOME_TX_FIRST + i;

	(void)f;
	if (outcome >= SL_OUTCOME_COUNT)
		return NULL;
	sl_inet_outcomes(stack.inet, SL_INET_NO_WORKER, counts);
	*n = sl_outcome_info((enum sl_outcome)outcome)->drop ? counts[outcome] : 0;
	return sl_outcome_info((enum sl_outcome)outcome)->name;
}

static void
lcore_close(struct flood *f)
{
	for (uint16_t i = 0; i < f->opt->flows; i++)
		sl_udp_close(socks[i], SL_INET_NO_WORKER);
	app_stack_free(&stack);
	rte_eal_cleanup();
}

const struct flood_sender flood_lcore = {
	lcore_open, lcore_send, lcore_idle, lcore_finish, lcore_drop, lcore_close};
