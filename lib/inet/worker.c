/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include "inet_priv.h"
#include "neigh.h"
#include "reasm.h"

uint16_t
sl_inet_poll(struct sl_inet *inet, uint16_t worker, uint16_t port_id, uint16_t queue)
{
	struct inet_port *port = sl_load_acquire(&inet->by_dev[port_id]); /* IN1 */
	struct inet_worker *w = &inet->worker[worker];
	struct rte_mbuf *pkts[SL_INET_BURST + INET_AHEAD];
	uint16_t n;

	SL_DEBUG_ASSERT(worker < inet->workers && port != NULL);
	if (SL_UNLIKELY(!w->online))
		sl_inet_worker_online(inet, worker);
	n = rte_eth_rx_burst(port_id, queue, pkts, SL_INET_BURST);
	w->now_ns = inet_now(inet);
	if (n > 0) {
		inet_wport_check(inet, &port->workers[worker]);
		inet_input(inet, worker, port, pkts, n);
	}
	if (SL_UNLIKELY(w->now_ns >= sl_load_relaxed(&port->tick_ns)))
		inet_timers_dev(inet, worker, port, w->now_ns);
	if (SL_UNLIKELY(w->now_ns >= w->reasm_due_ns))
		inet_reasm_expire(inet, worker);
	sl_inet_flush(inet, worker, port_id, queue);
	rte_rcu_qsbr_quiescent(inet->rcu, worker);
	return n;
}

void
sl_inet_input_burst(
	struct sl_inet *inet, uint16_t worker, uint16_t port_id, struct rte_mbuf **pkts, uint16_t n)
{
	struct inet_port *port = sl_load_acquire(&inet->by_dev[port_id]); /* IN1 */
	struct inet_worker *w = &inet->worker[worker];
	struct rte_mbuf *own[SL_INET_BURST + INET_AHEAD];

	SL_DEBUG_ASSERT(worker < inet->workers && port != NULL && n <= SL_INET_BURST);
	if (SL_UNLIKELY(!w->online))
		sl_inet_worker_online(inet, worker);
	w->now_ns = inet_now(inet);
	if (n == 0)
		return;
	inet_wport_check(inet, &port->workers[worker]);
	memcpy(own, pkts, n * sizeof(*own));
	inet_input(inet, worker, port, own, n);
}

void
sl_inet_worker_quiescent(struct sl_inet *inet, uint16_t worker)
{
	rte_rcu_qsbr_quiescent(inet->rcu, worker);
}

void
sl_inet_timers(struct sl_inet *inet, uint16_t worker)
{
	struct inet_worker *w = &inet->worker[worker];
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */

	w->now_ns = inet_now(inet);
	for (uint32_t i = 0; i < ports; i++) {
		if (w->now_ns >= sl_load_relaxed(&inet->port[i]->tick_ns))
			inet_timers_port(inet, worker, inet->port[i], w->now_ns);
	}
	if (w->now_ns >= w->reasm_due_ns)
		inet_reasm_expire(inet, worker);
}
