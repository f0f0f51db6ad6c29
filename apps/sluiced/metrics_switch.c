/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Families of bridges, mirrors and exception paths. */
#include "exception.h"
#include "metrics.h"

/* A sample of an outcome that is a loss, or is not. */
static void
outcome(struct metrics_scrape *s, const char *label, const char *name, const char *what, bool lost,
	uint64_t value)
{
	openmetrics_u64(s->out,
		(struct openmetrics_label[]){
			{label, name}, {"outcome", what}, {"lost", lost ? "yes" : "no"}},
		3, value);
}

static void
collect_received(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->conf.nbridges; i++) {
		struct bridge_counts c = {0};

		bridge_counts(s->d->bridge[i], &c);
		metrics_sample(s, "bridge", s->d->conf.bridge[i].name, c.received);
	}
}

/* f->at: the first outcome of the family, which is of frames or of copies. */
static void
collect_bridge(struct metrics_scrape *s, const struct metrics_family *f)
{
	size_t end = f->at < BRIDGE_COPY_FIRST ? BRIDGE_COPY_FIRST : BRIDGE_OUTCOMES;

	for (uint16_t i = 0; i < s->d->conf.nbridges; i++) {
		struct bridge_counts c = {0};

		bridge_counts(s->d->bridge[i], &c);
		for (size_t k = f->at; k < end; k++)
			outcome(s, "bridge", s->d->conf.bridge[i].name, bridge_outcome_info[k].name,
				bridge_outcome_info[k].drop, c.outcome[k]);
	}
}

static void
collect_sources(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->conf.nbridges; i++) {
		struct bridge_counts c = {0};

		bridge_counts(s->d->bridge[i], &c);
		for (int k = 0; k < BRIDGE_LEARN_RESULTS; k++)
			metrics_sample2(s, "bridge", s->d->conf.bridge[i].name, "result",
				bridge_learn_name[k], c.learn[k]);
	}
}

static void
collect_stations(struct metrics_scrape *s, const struct metrics_family *f)
{
	const struct conf *conf = &s->d->conf;

	(void)f;
	for (uint16_t i = 0; i < conf->nbridges; i++) {
		struct bridge_table *t = bridge_stations(s->d->bridge[i]);

		for (uint16_t k = 0; k < conf->bridge[i].nports; k++)
			metrics_sample2(s, "bridge", conf->bridge[i].name, "port",
				conf->port[conf->bridge[i].port[k]].name, bridge_table_held(t, k));
	}
}

static void
collect_entries(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->conf.nbridges; i++)
		metrics_sample(
			s, "bridge", s->d->conf.bridge[i].name, s->d->conf.bridge[i].entries);
}

const struct metrics_family metrics_bridge_families[] = {
	{"sluice_bridge_received_frames", OPENMETRICS_COUNTER, "frames",
		"Frames that a bridge received.", collect_received, 0},
	{"sluice_bridge_frames", OPENMETRICS_COUNTER, "frames", "What became of these.",
		collect_bridge, BRIDGE_FORWARDED},
	{"sluice_bridge_copies", OPENMETRICS_COUNTER, "copies",
		"What became of their copies, one for each port that they were to leave by.",
		collect_bridge, BRIDGE_COPY_FIRST},
	{"sluice_bridge_sources", OPENMETRICS_COUNTER, NULL,
		"What became of source addresses of frames.", collect_sources, 0},
	{"sluice_bridge_stations", OPENMETRICS_GAUGE, "stations",
		"Stations that a bridge knows behind its ports.", collect_stations, 0},
	{"sluice_bridge_limit_stations", OPENMETRICS_GAUGE, "stations",
		"Stations that a bridge has room for.", collect_entries, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};

static void
collect_mirrors(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		uint64_t counts[MIRROR_OUTCOMES] = {0};

		if (v->mirror == NULL)
			continue;
		(void)mirror_counts(v->mirror, counts);
		for (size_t k = 0; k < MIRROR_ENDS; k++)
			outcome(s, "service", v->conf.name, mirror_end[k].name,
				mirror_end[k].lost, counts[mirror_end[k].outcome]);
	}
}

static void
collect_waiting(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->table->n; i++) {
		const struct service *v = s->d->table->service[i];
		uint64_t counts[MIRROR_OUTCOMES] = {0};

		if (v->mirror != NULL)
			metrics_sample(
				s, "service", v->conf.name, mirror_counts(v->mirror, counts));
	}
}

static void
collect_gone(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (size_t k = 0; k < MIRROR_ENDS; k++)
		metrics_sample2(s, "outcome", mirror_end[k].name, "lost",
			mirror_end[k].lost ? "yes" : "no",
			s->d->gone_mirror[mirror_end[k].outcome]);
}

const struct metrics_family metrics_mirror_families[] = {
	{"sluice_mirror_packets", OPENMETRICS_COUNTER, "packets",
		"What became of packets that a mirror's thread was given.", collect_mirrors, 0},
	{"sluice_mirror_held_packets", OPENMETRICS_GAUGE, "packets",
		"Packets that wait for a mirror's thread.", collect_waiting, 0},
	{"sluice_gone_mirrors_packets", OPENMETRICS_COUNTER, "packets",
		"What became of packets of mirrors that are gone.", collect_gone, 0},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};

static void
collect_carrier(struct metrics_scrape *s, const struct metrics_family *f)
{
	(void)f;
	for (uint16_t i = 0; i < s->d->nexceptions; i++)
		metrics_sample(s, "port", exception_name(s->d->exception[i]),
			exception_carrier(s->d->exception[i]));
}

/* f->at: enum exception_count. */
static void
collect_count(struct metrics_scrape *s, const struct metrics_family *f)
{
	for (uint16_t i = 0; i < s->d->nexceptions; i++) {
		uint64_t n[EXCEPTION_COUNTS] = {0};

		exception_sums(s->d, s->d->exception[i], n);
		metrics_sample(s, "port", exception_name(s->d->exception[i]), n[f->at]);
	}
}

static void
collect_exceptions(struct metrics_scrape *s, const struct metrics_family *f)
{
	static const struct {
		enum exception_count count;
		const char *direction;
		bool lost;
	} outcomes[] = {
		{EXCEPTION_TAKEN, "to_kernel", false},
		{EXCEPTION_DOWN, "to_kernel", true},
		{EXCEPTION_REFUSED, "to_kernel", true},
		{EXCEPTION_SENT, "from_kernel", false},
		{EXCEPTION_BAD, "from_kernel", true},
		{EXCEPTION_NO_MBUF, "from_kernel", true},
		{EXCEPTION_SHOWN, "shown", false},
		{EXCEPTION_SHOW_LOST, "shown", true},
	};

	(void)f;
	for (uint16_t i = 0; i < s->d->nexceptions; i++) {
		uint64_t n[EXCEPTION_COUNTS] = {0};

		exception_sums(s->d, s->d->exception[i], n);
		for (size_t k = 0; k < SL_COUNT_OF(outcomes); k++)
			openmetrics_u64(s->out,
				(struct openmetrics_label[]){
					{"port", exception_name(s->d->exception[i])},
					{"direction", outcomes[k].direction},
					{"outcome", exception_count_name[outcomes[k].count]},
					{"lost", outcomes[k].lost ? "yes" : "no"}},
				4, n[outcomes[k].count]);
	}
}

const struct metrics_family metrics_exception_families[] = {
	{"sluice_exception_up", OPENMETRICS_GAUGE, NULL,
		"1 if the tap of an exception path has its carrier.", collect_carrier, 0},
	{"sluice_exception_offered_frames", OPENMETRICS_COUNTER, "frames",
		"Frames that nobody here claimed, so that the kernel was to have them.",
		collect_count, EXCEPTION_OFFERED},
	{"sluice_exception_read_frames", OPENMETRICS_COUNTER, "frames",
		"Frames that the kernel had for a port.", collect_count, EXCEPTION_READ},
	{"sluice_exception_frames", OPENMETRICS_COUNTER, "frames",
		"What became of these, and of copies that the kernel was shown.",
		collect_exceptions, 0},
	{"sluice_exception_sent_packets", OPENMETRICS_COUNTER, "packets",
		"Packets that were made of the kernel's frames, segments counted each.",
		collect_count, EXCEPTION_PACKETS},
	{NULL, OPENMETRICS_GAUGE, NULL, NULL, NULL, 0},
};
