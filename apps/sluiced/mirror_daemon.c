/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Services of kind = mirror. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../common/app.h"
#include "daemon.h"
#include "sl_errno.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

int
service_mirror_open(struct daemon *d, struct service *s)
{
	const struct conf_mirror *c = &s->conf.mirror;
	struct mirror_conf conf = {.name = s->conf.name,
		.file = c->file[0] != '\0' ? c->file : NULL,
		.file_size = c->file_size,
		.files = c->files,
		.interface = c->interface[0] != '\0' ? c->interface : NULL,
		.pool = d->pool};

	return s->conf.kind == CONF_MIRROR ? mirror_create(&conf, &s->mirror) : 0;
}

void
service_mirror_begin(struct service *s)
{
	int ret = s->mirror != NULL ? mirror_begin(s->mirror) : 0;

	if (ret != 0)
		app_note("service %s: %s stays %s.new: %s", s->conf.name, s->conf.mirror.file,
			s->conf.mirror.file, sl_strerror(ret));
}

void
service_mirror_serve(
	struct service *s, struct service_cell *cell, const struct sl_dgram *g, uint16_t n)
{
	struct timespec now;
	uint64_t ns, counts[MIRROR_OUTCOMES] = {0};

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	for (uint16_t i = 0; i < n; i++)
		counts[mirror_put(s->mirror, &g[i], ns)]++;
	sl_counter_add(&cell->outcome[SERVICE_MIRRORED], counts[MIRROR_TAKEN]);
	sl_counter_add(&cell->outcome[SERVICE_MIRROR_NO_ROOM], counts[MIRROR_NO_ROOM]);
	sl_counter_add(&cell->outcome[SERVICE_MIRROR_NO_MBUF], counts[MIRROR_NO_MBUF]);
}

void
service_mirror_close(struct daemon *d, struct service *s)
{
	mirror_destroy(s->mirror, d->gone_mirror);
	s->mirror = NULL;
}

void
mirrors_counts(const struct daemon *d, uint64_t *counts)
{
	for (int i = 0; i < MIRROR_OUTCOMES; i++)
		counts[i] += d->gone_mirror[i];
	for (uint16_t i = 0; d->table != NULL && i < d->table->n; i++)
		if (d->table->service[i]->mirror != NULL)
			(void)mirror_counts(d->table->service[i]->mirror, counts);
}

uint16_t
mirrors_audit(const struct daemon *d, struct audit_line *lines)
{
	uint16_t n = 0;

	for (uint16_t i = 0; d->table != NULL && i < d->table->n; i++) {
		struct service *s = d->table->service[i];
		uint64_t outcome[SERVICE_OUTCOMES] = {0}, counts[MIRROR_OUTCOMES] = {0};
		struct audit_line *l;

		if (s->mirror == NULL)
			continue;
		l = &lines[n++];
		memset(l, 0, sizeof(*l));
		snprintf(l->name, sizeof(l->name), "mirror %s", s->conf.name);
		service_outcomes(d, s, outcome);
		l->entered = outcome[SERVICE_MIRRORED];
		l->held = mirror_counts(s->mirror, counts);
		for (int k = MIRROR_WRITTEN; k < MIRROR_OUTCOMES; k++)
			l->outcomes += counts[k];
	}
	return n;
}
