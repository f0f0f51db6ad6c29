/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of load balancers and of their back ends. */
#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "forward.h"
#include "metrics.h"
#include "probe.h"

/* Call for each back end of each load balancer, with its labels; there is room for two more. */
static void
each_backend(struct metrics_scrape *s, const struct metrics_family *f,
	void (*call)(struct metrics_scrape *s, const struct metrics_family *f,
		const struct service *v, const struct backend *e, struct openmetrics_label *labels))
{
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];

		for (uint16_t k = 0; v->forward != NULL && k < v->backends->n; k++) {
			const struct backend *e = &v->backends->backend[k];
			struct openmetrics_label labels[4] = {
				{"service", v->conf.name}, {"backend", e->conf.name}};

			call(s, f, v, e, labels);
		}
	}
}

static void
write_info(struct metrics_scrape *s, const struct metrics_family *f, const struct service *v,
	const struct backend *e, struct openmetrics_label *labels)
{
	char address[64], port[8];

	(void)f;
	(void)v;
	snprintf(port, sizeof(port), "%u", e->conf.udp_port);
	labels[2] = (struct openmetrics_label){
		"address", sl_addr_format(&e->conf.addr, address, sizeof(address))};
	labels[3] = (struct openmetrics_label){"udp_port", port};
	openmetrics_u64(s->out, labels, 4, 1);
}

/* One of the states has 1, so that a rule can name it. */
static void
write_state(struct metrics_scrape *s, const struct metrics_family *f, const struct service *v,
	const struct backend *e, struct openmetrics_label *labels)
{
	static const char *const states[] = {"up", "draining", "down"};
	const char *now = backend_state_name(e);

	(void)f;
	(void)v;
	for (size_t i = 0; i < SL_COUNT_OF(states); i++) {
		labels[2] = (struct openmetrics_label){"state", states[i]};
		openmetrics_u64(s->out, labels, 3, strcmp(states[i], now) == 0);
	}
}

enum backend_value {
	BACKEND_WEIGHT,
	BACKEND_SLOTS,
	BACKEND_FLOWS,
	BACKEND_PICKED,
	BACKEND_REPLIES
};

static void
write_value(struct metrics_scrape *s, const struct metrics_family *f, const struct service *v,
	const struct backend *e, struct openmetrics_label *labels)
{
	struct forward_backend_stats stats;
	uint64_t values[] = {[BACKEND_WEIGHT] = e->conf.weight, [BACKEND_REPLIES] = 0};

	if (forward_backend_stats(v->forward, e->index, &stats) == 0) {
		values[BACKEND_SLOTS] = stats.slots;
		values[BACKEND_FLOWS] = stats.flows;
		values[BACKEND_PICKED] = stats.picked;
		values[BACKEND_REPLIES] = stats.replies;
	}
	openmetrics_u64(s->out, labels, 2, values[f->at]);
}

/* Back ends that are not checked have no samples. */
static void
write_check(struct metrics_scrape *s, const struct metrics_family *f, const struct service *v,
	const struct backend *e, struct openmetrics_label *labels)
{
	(void)v;
	if (e->probe != NULL)
		openmetrics_u64(s->out, labels, 2,
			sl_load_relaxed(
				(const uint64_t *)((const char *)&e->probe->health + f->at)));
}

static void
collect_info(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_backend(s, f, write_info);
}

static void
collect_state(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_backend(s, f, write_state);
}

static void
collect_value(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_backend(s, f, write_value);
}

static void
collect_check(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_backend(s, f, write_check);
}

static void
collect_decisions(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		uint64_t reasons[BALANCER_REASONS] = {0};

		if (v->forward == NULL)
			continue;
		forward_reasons(v->forward, reasons);
		for (int k = 0; k < BALANCER_REASONS; k++)
			metrics_sample2(s, "service", v->conf.name, "reason",
				balancer_reason_name((enum balancer_reason)k), reasons[k]);
	}
}

#define CHECK(what) collect_check, offsetof(struct health, what)

const struct metrics_family metrics_forward_families[] = {
	{"sluice_forward_decisions", OPENMETRICS_COUNTER, NULL,
		"Datagrams of clients, by why they went where they went.", collect_decisions, 0},
	{"sluice_backend", OPENMETRICS_INFO, NULL, "Back ends of load balancers.", collect_info, 0},
	{"sluice_backend_state", OPENMETRICS_GAUGE, NULL, "1 for the state that a back end is in.",
		collect_state, 0},
	{"sluice_backend_weight", OPENMETRICS_GAUGE, NULL, "Weight of a back end.", collect_value,
		BACKEND_WEIGHT},
	{"sluice_backend_slots", OPENMETRICS_GAUGE, "slots",
		"Slots of the Maglev table that a back end has.", collect_value, BACKEND_SLOTS},
	{"sluice_backend_flows", OPENMETRICS_GAUGE, "flows",
		"Flows that are known and go to a back end.", collect_value, BACKEND_FLOWS},
	{"sluice_backend_picked_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams for which a back end was picked.", collect_value, BACKEND_PICKED},
	{"sluice_backend_reply_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that came back from a back end.", collect_value, BACKEND_REPLIES},
	{"sluice_backend_checks", OPENMETRICS_COUNTER, "checks",
		"Health checks that were sent, those that could not be sent included.",
		CHECK(sent)},
	{"sluice_backend_good_checks", OPENMETRICS_COUNTER, "checks",
		"Health checks that were answered as expected.", CHECK(good)},
	{"sluice_backend_failed_checks", OPENMETRICS_COUNTER, "checks",
		"Health checks that were not.", CHECK(failed)},
	{"sluice_backend_late_answers", OPENMETRICS_COUNTER, "answers",
		"Answers to health checks that came too late to count.", CHECK(late)},
	{"sluice_backend_hints", OPENMETRICS_COUNTER, "hints",
		"Times that a back end answered a client with port unreachable.", CHECK(hints)},
	{"sluice_backend_health_changes", OPENMETRICS_COUNTER, "changes",
		"Times that checks brought a back end up or took it down.", CHECK(changes)},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
