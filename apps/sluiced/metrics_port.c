/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of ports and of workers. */
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "links.h"
#include "metrics.h"
#include "telemetry.h"

static void
collect_port_info(struct metrics_scrape *s, const struct metrics_family *f)
{
	const struct conf *conf = &s->d->conf;

	(void)f;
	for (uint16_t i = 0; i < conf->nports; i++) {
		char mac[TELEMETRY_MAC_SIZE];
		struct rte_ether_addr addr = {{0}};

		(void)rte_eth_macaddr_get(s->d->port_id[i], &addr);
		openmetrics_u64(s->out,
			(struct openmetrics_label[]){{"port", conf->port[i].name},
				{"device", conf->port[i].device},
				{"interface", conf->port[i].iface},
				{"mac", telemetry_mac(addr.addr_bytes, mac)}},
			4, 1);
	}
}

static void
collect_link(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->conf.nports; i++)
		metrics_sample(s, "port", s->d->conf.port[i].name, links_up(s->d->port_id[i]));
}

static void
collect_port(struct metrics_scrape *s, const struct metrics_family *f)
{
	for (uint16_t i = 0; i < s->d->conf.nports; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&s->port[i] + f->at, sizeof(value));
		metrics_sample(s, "port", s->d->conf.port[i].name, value);
	}
}

#define PORT(what) collect_port, offsetof(struct rte_eth_stats, what)

const struct metrics_family metrics_port_families[] = {
	{"sluice_port", OPENMETRICS_INFO, NULL, "Ports and their devices.", collect_port_info, 0},
	{"sluice_port_up", OPENMETRICS_GAUGE, NULL, "1 if the link is up.", collect_link, 0},
	{"sluice_port_received_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that the port handed over.", PORT(ipackets)},
	{"sluice_port_received_bytes", OPENMETRICS_COUNTER, "bytes",
		"Bytes that the port handed over.", PORT(ibytes)},
	{"sluice_port_missed_packets", OPENMETRICS_COUNTER, "packets",
		"Packets lost by the port, mostly because its ring was full.", PORT(imissed)},
	{"sluice_port_receive_error_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that the port received with errors.", PORT(ierrors)},
	{"sluice_port_no_mbuf_packets", OPENMETRICS_COUNTER, "packets",
		"Packets for which the port had no memory.", PORT(rx_nombuf)},
	{"sluice_port_sent_packets", OPENMETRICS_COUNTER, "packets", "Packets that the port sent.",
		PORT(opackets)},
	{"sluice_port_sent_bytes", OPENMETRICS_COUNTER, "bytes", "Bytes that the port sent.",
		PORT(obytes)},
	{"sluice_port_transmit_error_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that the port could not send.", PORT(oerrors)},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};

/* How a worker reads as a label. */
static const char *
cpu_text(const struct worker *w, char *text, size_t size)
{
	snprintf(text, size, "%u", w->cpu);
	return text;
}

static void
collect_lcore(struct metrics_scrape *s, const struct metrics_family *f)
{
	for (uint16_t i = 0; i < s->d->nworkers; i++) {
		const struct worker *w = &s->d->worker[i];
		char cpu[16];

		metrics_sample(s, "lcore", cpu_text(w, cpu, sizeof(cpu)),
			sl_load_relaxed((const uint64_t *)((const char *)w + f->at)));
	}
}

static void
collect_lcore_received(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->nworkers; i++) {
		const struct worker *w = &s->d->worker[i];
		char cpu[16];

		cpu_text(w, cpu, sizeof(cpu));
		for (uint16_t p = 0; p < s->d->conf.nports; p++)
			metrics_sample2(s, "lcore", cpu, "port", s->d->conf.port[p].name,
				sl_load_relaxed(&w->received[p]));
	}
}

static void
collect_cycles(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->nworkers; i++) {
		const struct worker *w = &s->d->worker[i];
		char cpu[16];

		cpu_text(w, cpu, sizeof(cpu));
		metrics_sample2(s, "lcore", cpu, "state", "busy", sl_load_relaxed(&w->busy_cycles));
		metrics_sample2(s, "lcore", cpu, "state", "idle", sl_load_relaxed(&w->idle_cycles));
		metrics_sample2(
			s, "lcore", cpu, "state", "asleep", sl_load_relaxed(&w->sleep_cycles));
	}
}

static void
collect_ends(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->nworkers; i++) {
		const struct worker *w = &s->d->worker[i];
		char cpu[16];

		cpu_text(w, cpu, sizeof(cpu));
		metrics_sample2(
			s, "lcore", cpu, "cause", "interrupt", sl_load_relaxed(&w->interrupts));
		metrics_sample2(s, "lcore", cpu, "cause", "wake", sl_load_relaxed(&w->wakes));
		metrics_sample2(s, "lcore", cpu, "cause", "timeout", sl_load_relaxed(&w->timeouts));
	}
}

static void
collect_lcore_seconds(struct metrics_scrape *s, const struct metrics_family *f)
{
	for (uint16_t i = 0; i < s->d->nworkers; i++) {
		const struct worker *w = &s->d->worker[i];
		char cpu[16];

		openmetrics_ratio(s->out,
			&(struct openmetrics_label){"lcore", cpu_text(w, cpu, sizeof(cpu))}, 1,
			sl_load_relaxed((const uint64_t *)((const char *)w + f->at)), 1000000000);
	}
}

#define LCORE(what) offsetof(struct worker, what)

const struct metrics_family metrics_lcore_families[] = {
	{"sluice_lcore_received_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that a worker took from a port.", collect_lcore_received, 0},
	{"sluice_lcore_served_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that a worker handed to services.", collect_lcore, LCORE(served)},
	{"sluice_lcore_turns", OPENMETRICS_COUNTER, "turns", "Turns of a worker's loop.",
		collect_lcore, LCORE(turns)},
	{"sluice_lcore_busy_turns", OPENMETRICS_COUNTER, "turns",
		"Of these, turns that found something to do.", collect_lcore, LCORE(busy_turns)},
	{"sluice_lcore_cycles", OPENMETRICS_COUNTER, "cycles",
		"What a worker's time went to, in cycles of the time stamp counter.",
		collect_cycles, 0},
	{"sluice_lcore_sleeps", OPENMETRICS_COUNTER, NULL, "Times that a worker slept.",
		collect_lcore, LCORE(sleeps)},
	{"sluice_lcore_sleep_ends", OPENMETRICS_COUNTER, NULL,
		"With idle = interrupt: what woke a worker, or that nothing did.", collect_ends, 0},
	{"sluice_lcore_slept_seconds", OPENMETRICS_COUNTER, "seconds", "Time that a worker slept.",
		collect_lcore_seconds, LCORE(slept_ns)},
	{"sluice_lcore_longest_sleep_seconds", OPENMETRICS_GAUGE, "seconds",
		"The longest sleep of a worker.", collect_lcore_seconds, LCORE(longest_ns)},
	{"sluice_lcore_sleep_limit_seconds", OPENMETRICS_GAUGE, "seconds",
		"The longest that a worker means to sleep.", collect_lcore_seconds,
		LCORE(sleep_max_ns)},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
