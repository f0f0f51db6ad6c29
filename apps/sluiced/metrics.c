/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include "metrics.h"

/* All tables, in the order of the text. */
static const struct metrics_family *const tables[] = {
	metrics_daemon_families,
	metrics_port_families,
	metrics_table_families,
	metrics_lcore_families,
	metrics_service_families,
	metrics_socket_families,
	metrics_forward_families,
	metrics_mirror_families,
	metrics_bridge_families,
	metrics_exception_families,
	metrics_audit_families,
};

void
metrics_sample(struct metrics_scrape *s, const char *label, const char *text, uint64_t value)
{
	struct openmetrics_label l = {label, text};

	openmetrics_u64(s->out, &l, 1, value);
}

void
metrics_sample2(struct metrics_scrape *s, const char *label, const char *text, const char *label2,
	const char *text2, uint64_t value)
{
	struct openmetrics_label l[] = {{label, text}, {label2, text2}};

	openmetrics_u64(s->out, l, 2, value);
}

char *
metrics_text(struct daemon *d, size_t *len)
{
	struct openmetrics out = {0};
	struct metrics_scrape s = {.d = d, .out = &out};

	pthread_mutex_lock(&d->lock);
	if (d->state != DAEMON_RUNNING) {
		pthread_mutex_unlock(&d->lock);
		return NULL;
	}
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (rte_eth_stats_get(d->port_id[i], &s.port[i]) != 0)
			memset(&s.port[i], 0, sizeof(s.port[i]));
	for (size_t i = 0; i < SL_COUNT_OF(tables); i++) {
		for (const struct metrics_family *f = tables[i]; f->name != NULL; f++) {
			openmetrics_family(&out, f->name, f->type, f->unit, f->help);
			f->collect(&s, f);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return openmetrics_end(&out, len);
}
