/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of services and of their sockets. */
#include <stdio.h>
#include <string.h>

#include "forward.h"
#include "metrics.h"

static void
collect_info(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		char port[8], cpu[8];

		snprintf(port, sizeof(port), "%u", v->conf.udp_port);
		snprintf(cpu, sizeof(cpu), "%u", s->d->worker[v->worker].cpu);
		openmetrics_u64(s->out,
			(struct openmetrics_label[]){{"service", v->conf.name},
				{"kind", conf_kind_name(v->conf.kind)}, {"udp_port", port},
				{"lcore", cpu}},
			4, 1);
	}
}

static void
collect_sum(struct metrics_scrape *s, const struct metrics_family *f)
{
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		struct service_sums sums = {0};
		uint64_t value;

		service_sums(v, &sums);
		/* A load balancer has no queue: packets are claimed for it. */
		if (v->forward != NULL)
			sums.handed = forward_entered(v->forward);
		memcpy(&value, (const char *)&sums + f->at, sizeof(value));
		metrics_sample(s, "service", v->conf.name, value);
	}
}

static void
collect_refused(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		struct service_sums sums = {0};

		service_sums(v, &sums);
		metrics_sample2(s, "service", v->conf.name, "cause", "udp_rcvbuf", sums.rcvbuf);
		metrics_sample2(s, "service", v->conf.name, "cause", "udp_slots", sums.slots);
	}
}

static void
collect_bytes(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		uint64_t bytes = 0;

		for (uint16_t w = 0; w < s->d->nworkers; w++)
			bytes += sl_load_relaxed(&v->cell[w].bytes);
		metrics_sample(s, "service", v->conf.name, bytes);
	}
}

static void
collect_outcomes(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		uint64_t outcome[SERVICE_OUTCOMES] = {0};

		service_outcomes(s->d, v, outcome);
		for (int k = 0; k < SERVICE_OUTCOMES; k++)
			openmetrics_u64(s->out,
				(struct openmetrics_label[]){{"service", v->conf.name},
					{"outcome", service_outcome_info[k].name},
					{"lost", service_outcome_info[k].drop ? "yes" : "no"}},
				3, outcome[k]);
	}
}

#define SUM(what) collect_sum, offsetof(struct service_sums, what)

const struct metrics_family metrics_service_families[] = {
	{"sluice_service", OPENMETRICS_INFO, NULL, "Services and who serves them.", collect_info,
		0},
	{"sluice_service_queued_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that entered the service's queues.", SUM(appended)},
	{"sluice_service_received_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Of these, datagrams handed to the service.", SUM(handed)},
	{"sluice_service_held_datagrams", OPENMETRICS_GAUGE, "datagrams",
		"Datagrams that wait for the service.", SUM(held)},
	{"sluice_service_refused_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that the service's queues had no room for.", collect_refused, 0},
	{"sluice_service_received_bytes", OPENMETRICS_COUNTER, "bytes",
		"Payload handed to the service.", collect_bytes, 0},
	{"sluice_service_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"What became of datagrams that the service was handed.", collect_outcomes, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};

enum socket_value { SOCKET_QUEUED, SOCKET_RECEIVED, SOCKET_HELD, SOCKET_HELD_BYTES };

static uint64_t
socket_value(const struct sl_udp_sock_stats *st, size_t which)
{
	switch (which) {
	case SOCKET_QUEUED:
		return st->queue.appended;
	case SOCKET_RECEIVED:
		return st->datagrams;
	case SOCKET_HELD:
		return st->queue.appended - st->queue.released;
	default:
		return st->queue.rmem;
	}
}

/* Call for each socket, with its labels. */
static void
each_socket(struct metrics_scrape *s, const struct metrics_family *f,
	void (*call)(struct metrics_scrape *s, const struct metrics_family *f,
		const struct sl_udp_sock_stats *st, struct openmetrics_label *labels))
{
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];

		for (uint16_t k = 0; k < v->nsocks; k++) {
			struct sl_udp_sock_stats st;
			char address[64] = "any";
			struct openmetrics_label labels[3] = {
				{"service", v->conf.name}, {"address", address}};

			if (!sl_addr_is_any(&v->bound[k]))
				sl_addr_format(&v->bound[k], address, sizeof(address));
			sl_udp_sock_stats(v->sock[k], &st);
			call(s, f, &st, labels);
		}
	}
}

static void
write_socket(struct metrics_scrape *s, const struct metrics_family *f,
	const struct sl_udp_sock_stats *st, struct openmetrics_label *labels)
{
	openmetrics_u64(s->out, labels, 2, socket_value(st, f->at));
}

static void
write_drops(struct metrics_scrape *s, const struct metrics_family *f,
	const struct sl_udp_sock_stats *st, struct openmetrics_label *labels)
{
	(void)f;
	labels[2] = (struct openmetrics_label){"cause", "udp_rcvbuf"};
	openmetrics_u64(s->out, labels, 3, st->queue.drops[SL_UDPQ_DROP_RCVBUF]);
	labels[2].value = "udp_slots";
	openmetrics_u64(s->out, labels, 3, st->queue.drops[SL_UDPQ_DROP_SLOTS]);
}

static void
collect_socket(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_socket(s, f, write_socket);
}

static void
collect_drops(struct metrics_scrape *s, const struct metrics_family *f)
{
	each_socket(s, f, write_drops);
}

const struct metrics_family metrics_socket_families[] = {
	{"sluice_socket_queued_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that entered the socket's queue.", collect_socket, SOCKET_QUEUED},
	{"sluice_socket_received_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams taken from the socket.", collect_socket, SOCKET_RECEIVED},
	{"sluice_socket_held_datagrams", OPENMETRICS_GAUGE, "datagrams",
		"Datagrams in the socket's queue.", collect_socket, SOCKET_HELD},
	{"sluice_socket_held_bytes", OPENMETRICS_GAUGE, "bytes", "Packet memory that they take.",
		collect_socket, SOCKET_HELD_BYTES},
	{"sluice_socket_refused_datagrams", OPENMETRICS_COUNTER, "datagrams",
		"Datagrams that the socket's queue had no room for.", collect_drops, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
