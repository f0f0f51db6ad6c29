/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "exception_priv.h"
#include "telemetry.h"

static const char *
name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	(void)room;
	(void)size;
	return i < d->nexceptions ? d->exception[i]->name : NULL;
}

static void
fill(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	const struct exception *e = d->exception[i];
	uint64_t n[EXCEPTION_COUNTS] = {0};

	exception_sums(d, e, n);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "name", e->name);
	telemetry_text(t, "interface", e->tap.name);
	telemetry_text(t, "carrier", exception_carrier(e) ? "on" : "off");
	telemetry_u64(t, "queues", e->tap.queues);
	for (int k = 0; k < EXCEPTION_COUNTS; k++)
		telemetry_u64(t, exception_count_name[k], n[k]);
}

void
exception_drops(const struct daemon *d, struct rte_tel_data *t)
{
	uint64_t n[EXCEPTION_COUNTS] = {0};

	for (uint16_t i = 0; i < d->nexceptions; i++)
		exception_sums(d, d->exception[i], n);
	telemetry_u64(t, "exception_bad", n[EXCEPTION_BAD]);
	telemetry_u64(t, "exception_no_mbuf", n[EXCEPTION_NO_MBUF]);
	telemetry_u64(t, "exception_show_lost", n[EXCEPTION_SHOW_LOST]);
}

const struct telemetry_kind exception_kind = {
	.list = {"/sluice/exceptions", telemetry_on_list, "Names of exception paths. No parameter"},
	.one = {"/sluice/exception", telemetry_on_one,
		"Counters of an exception path. Parameter: its name"},
	.name = name,
	.fill = fill,
};
