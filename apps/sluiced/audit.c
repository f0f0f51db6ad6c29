/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The audit's lines, from the wire inwards:
 *
 *   line           entered                              outcomes + held
 *   port NAME      packets that the port handed over    packets that workers took from it
 *   spread NAME    packets passed on to other lcores    taken by these, or dropped; held: not yet
 *   stack          packets that entered                 receive outcomes; held: fragments
 *   sockets        outcome udp_queued                   handed to services, purged at a close; held
 *   claims         outcome claimed                      packets that load balancers were handed
 *   service NAME   datagrams (of a load balancer:       its outcomes
 *                  packets) handed to it
 *   mirror NAME    outcome mirrored of its service      written, or dropped; held: not yet
 *   exception NAME frames offered to the kernel         taken, lost because the tap was down, refused
 *   kernel NAME    frames read from the kernel          handed to the port, or lost, by cause
 *   punted         outcomes punted, punt_failed         frames offered to the kernel, by all ports
 *   bridge NAME    frames that its ports handed over    their outcomes
 *   bridge NAME    copies of them to be sent            their outcomes
 *     copies
 *   transmit       packets that ports sent or lost      outcomes tx_sent and bridge_sent
 */
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "daemon.h"
#include "exception.h"
#include "forward.h"

static void
line(struct audit_line *lines, uint16_t *n, const char *name, const char *more, uint64_t entered,
	uint64_t outcomes, uint64_t held)
{
	struct audit_line *l = &lines[(*n)++];

	snprintf(l->name, sizeof(l->name), "%s%s", name, more);
	l->entered = entered;
	l->outcomes = outcomes;
	l->held = held;
}

/* Returns what the ports have taken to send. */
static uint64_t
audit_ports(struct daemon *d, struct audit_line *lines, uint16_t *n)
{
	uint64_t sent = 0;

	for (uint16_t i = 0; i < d->conf.nports; i++) {
		struct rte_eth_stats stats;
		uint64_t taken = 0;

		if (rte_eth_stats_get(d->port_id[i], &stats) != 0)
			memset(&stats, 0, sizeof(stats));
		for (uint16_t w = 0; w < d->nworkers; w++)
			taken += d->worker[w].received[i];
		line(lines, n, "port ", d->conf.port[i].name, stats.ipackets, taken, 0);
		/* A port may take what it then cannot send: a ring without a client, for instance. */
		sent += stats.opackets + stats.oerrors;
	}
	return sent;
}

static void
audit_exceptions(struct daemon *d, struct audit_line *lines, uint16_t *n, const uint64_t *counts)
{
	uint64_t offered = 0;

	for (uint16_t i = 0; i < d->nexceptions; i++) {
		uint64_t c[EXCEPTION_COUNTS] = {0};
		const char *name = exception_name(d->exception[i]);

		exception_sums(d, d->exception[i], c);
		offered += c[EXCEPTION_OFFERED];
		line(lines, n, "exception ", name, c[EXCEPTION_OFFERED],
			c[EXCEPTION_TAKEN] + c[EXCEPTION_DOWN] + c[EXCEPTION_REFUSED], 0);
		line(lines, n, "kernel ", name, c[EXCEPTION_READ],
			c[EXCEPTION_SENT] + c[EXCEPTION_BAD] + c[EXCEPTION_NO_MBUF], 0);
	}
	if (d->nexceptions > 0)
		line(lines, n, "punted", "", counts[SL_RX_PUNTED] + counts[SL_RX_PUNT_FAILED],
			offered, 0);
}

static void
audit_service(
	const struct daemon *d, const struct service *s, struct audit_line *lines, uint16_t *n)
{
	uint64_t outcome[SERVICE_OUTCOMES] = {0}, sum = 0;
	struct service_sums own = {0};

	/* Answers to its checks are in the line of sockets. */
	if (s->forward != NULL)
		own.handed = forward_entered(s->forward);
	else
		service_sums(s, &own);
	service_outcomes(d, s, outcome);
	for (int k = 0; k < SERVICE_OUTCOMES; k++)
		sum += outcome[k];
	line(lines, n, "service ", s->conf.name, own.handed, sum, 0);
}

uint16_t
daemon_audit(struct daemon *d, struct audit_line *lines)
{
	uint64_t counts[SL_OUTCOME_COUNT], sum = 0, sent, claimed = d->gone_claimed;
	struct service_sums sums = d->gone;
	struct bridge_counts bridges = {0};
	uint16_t n = 0;

	daemon_park(d);
	sent = audit_ports(d, lines, &n);
	n += spreads_audit(d, &lines[n]);
	sl_inet_outcomes(d->inet, SL_INET_NO_WORKER, counts);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++)
		sum += counts[i];
	line(lines, &n, "stack", "", sl_inet_received(d->inet, SL_INET_NO_WORKER), sum,
		sl_inet_held(d->inet, SL_INET_NO_WORKER));
	for (uint16_t i = 0; d->table != NULL && i < d->table->n; i++) {
		service_sums(d->table->service[i], &sums);
		if (d->table->service[i]->forward != NULL)
			claimed += forward_entered(d->table->service[i]->forward);
	}
	line(lines, &n, "sockets", "", counts[SL_RX_UDP_QUEUED], sums.handed + sums.purged,
		sums.held);
	if (counts[SL_RX_CLAIMED] != 0 || claimed != 0)
		line(lines, &n, "claims", "", counts[SL_RX_CLAIMED], claimed, 0);
	for (uint16_t i = 0; d->table != NULL && i < d->table->n; i++)
		audit_service(d, d->table->service[i], lines, &n);
	n += mirrors_audit(d, &lines[n]);
	audit_exceptions(d, lines, &n, counts);
	n += bridges_audit(d, &lines[n]);
	bridges_counts(d, &bridges);
	line(lines, &n, "transmit", "", sent, counts[SL_TX_SENT] + bridges.outcome[BRIDGE_SENT], 0);
	daemon_unpark(d);
	return n;
}
