/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include "exception_priv.h"
#include "telemetry.h"

static int
on_exceptions(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	rte_tel_data_start_array(t, RTE_TEL_STRING_VAL);
	for (uint16_t i = 0; i < d->nexceptions; i++)
		rte_tel_data_add_array_string(t, d->exception[i]->name);
	telemetry_leave(d);
	return 0;
}

static int
on_exception(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	int ret = -ENOENT;

	(void)cmd;
	if (d == NULL)
		return -EAGAIN;
	for (uint16_t i = 0; i < d->nexceptions && param != NULL && ret != 0; i++) {
		const struct exception *e = d->exception[i];
		uint64_t n[EXCEPTION_COUNTS] = {0};

		if (strcmp(e->name, param) != 0)
			continue;
		exception_sums(d, e, n);
		rte_tel_data_start_dict(t);
		telemetry_text(t, "name", e->name);
		telemetry_text(t, "interface", e->tap.name);
		telemetry_text(t, "carrier", exception_carrier(e) ? "on" : "off");
		telemetry_u64(t, "queues", e->tap.queues);
		for (int k = 0; k < EXCEPTION_COUNTS; k++)
			telemetry_u64(t, exception_count_name[k], n[k]);
		ret = 0;
	}
	telemetry_leave(d);
	return ret;
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

bool
exception_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/exceptions", on_exceptions, "Names of exception paths. No parameter"},
		{"/sluice/exception", on_exception,
			"Counters of an exception path. Parameter: its name"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
