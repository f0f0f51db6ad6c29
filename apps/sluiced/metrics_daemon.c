/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of the daemon as a whole: what it is, what became of packets, and the audit. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "metrics.h"

static void
collect_version(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	metrics_sample(s, "version", DAEMON_VERSION, 1);
}

static void
collect_uptime(struct metrics_scrape *s, const struct metrics_family *f)
{
	struct timespec now;

	(void)f;
	clock_gettime(CLOCK_MONOTONIC, &now);
	openmetrics_u64(s->out, NULL, 0, (uint64_t)now.tv_sec - s->d->started_s);
}

static void
collect_reloads(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	metrics_sample(s, "result", "applied", s->d->reloads);
	metrics_sample(s, "result", "refused", s->d->refused);
}

static void
collect_hertz(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	openmetrics_u64(s->out, NULL, 0, rte_get_tsc_hz());
}

static void
collect_pool(struct metrics_scrape *s, const struct metrics_family *f)
{
	uint64_t free = rte_mempool_avail_count(s->d->pool);

	(void)f;
	metrics_sample(s, "state", "free", free);
	metrics_sample(s, "state", "used", s->d->mbufs - free);
}

static void
collect_stack(struct metrics_scrape *s, const struct metrics_family *f)
{
	uint64_t counts[SL_OUTCOME_COUNT];

	(void)f;
	sl_inet_outcomes(s->d->inet, SL_INET_NO_WORKER, counts);
	for (int i = 0; i < SL_OUTCOME_COUNT; i++) {
		const struct sl_outcome_info *info = sl_outcome_info((enum sl_outcome)i);

		openmetrics_u64(s->out,
			(struct openmetrics_label[]){
				{"direction", i < SL_OUTCOME_TX_FIRST ? "receive" : "transmit"},
				{"outcome", info->name}, {"lost", info->drop ? "yes" : "no"}},
			3, counts[i]);
	}
}

static void
collect_received(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	openmetrics_u64(s->out, NULL, 0, sl_inet_received(s->d->inet, SL_INET_NO_WORKER));
}

static void
collect_held(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	openmetrics_u64(s->out, NULL, 0, sl_inet_held(s->d->inet, SL_INET_NO_WORKER));
}

static void
collect_purged(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	openmetrics_u64(s->out, NULL, 0, s->d->gone.purged);
}

static void
collect_spread(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	openmetrics_u64(s->out, NULL, 0, spreads_full(s->d));
}

static void
collect_gone(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		metrics_sample2(s, "outcome", service_outcome_info[i].name, "lost",
			service_outcome_info[i].drop ? "yes" : "no", s->d->gone_outcome[i]);
}

const struct metrics_family metrics_daemon_families[] = {
	{"sluice_daemon", OPENMETRICS_INFO, NULL, "The running daemon.", collect_version, 0},
	{"sluice_uptime_seconds", OPENMETRICS_GAUGE, "seconds", "Time since it started.",
		collect_uptime, 0},
	{"sluice_reloads", OPENMETRICS_COUNTER, NULL, "Configurations read again.", collect_reloads,
		0},
	{"sluice_tsc_hertz", OPENMETRICS_GAUGE, "hertz",
		"Rate of the clock that cycles are counted by.", collect_hertz, 0},
	{"sluice_pool_packets", OPENMETRICS_GAUGE, "packets",
		"Packets in the pool, and those in use or in caches.", collect_pool, 0},
	{"sluice_stack_received_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that entered the stack.", collect_received, 0},
	{"sluice_stack_held_packets", OPENMETRICS_GAUGE, "packets",
		"Fragments that wait for the rest of their datagram.", collect_held, 0},
	{"sluice_stack_packets", OPENMETRICS_COUNTER, "packets",
		"What became of packets in the stack.", collect_stack, 0},
	{"sluice_spread_full_packets", OPENMETRICS_COUNTER, "packets",
		"Packets lost because the lcore that they were for did not keep up.",
		collect_spread, 0},
	{"sluice_purged_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that were in a queue when its socket was closed.", collect_purged, 0},
	{"sluice_gone_services_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"What became of datagrams of services that are gone.", collect_gone, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};

/* An audit holds all workers up for a turn: once a second is often enough for any scraper. */
#define AUDIT_EVERY_S 1

/* The last audit, under the daemon's lock. */
static struct {
	time_t when_s;
	uint16_t n;
	struct audit_line line[AUDIT_LINES_MAX];
} last;

static void
collect_audit(struct metrics_scrape *s, const struct metrics_family *f)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* All families of a scrape tell of one audit, so only the first may make one. */
	if (f == metrics_audit_families &&
		(last.when_s == 0 || now.tv_sec >= last.when_s + AUDIT_EVERY_S)) {
		last.n = daemon_audit(s->d, last.line);
		last.when_s = now.tv_sec;
	}
	for (uint16_t i = 0; i < last.n; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&last.line[i] + f->at, sizeof(value));
		metrics_sample(s, "where", last.line[i].name, value);
	}
}

const struct metrics_family metrics_audit_families[] = {
	{"sluice_audit_entered_packets", OPENMETRICS_COUNTER, "packets",
		"What entered, as of the last audit, one a second at most.", collect_audit,
		offsetof(struct audit_line, entered)},
	{"sluice_audit_outcomes_packets", OPENMETRICS_COUNTER, "packets",
		"Of these, what has an outcome.", collect_audit,
		offsetof(struct audit_line, outcomes)},
	{"sluice_audit_held_packets", OPENMETRICS_GAUGE, "packets",
		"Of these, what is held; entered is the sum of both, or something is wrong.",
		collect_audit, offsetof(struct audit_line, held)},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
