/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * /sluice/diff,FILE compares, and says how many rows there are; /sluice/diff_row,SERIAL/I gives
 * them out as long as nobody has asked for another comparison; /sluice/diff_report has the mistakes
 * of a file that a reload would refuse.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diff.h"
#include "telemetry.h"

/* The last comparison; all under the daemon's lock. */
static struct {
	uint32_t serial;
	struct diff diff;
	char report[DAEMON_REPORT_LEN];
} last;

/* Returns the number of mistakes. */
static uint32_t
compare(struct daemon *d, const char *path)
{
	static struct conf next;
	struct mistakes *m = mistakes_create(path);
	uint32_t n;

	last.serial++;
	last.diff.n = 0;
	last.report[0] = '\0';
	if (m == NULL) {
		snprintf(last.report, sizeof(last.report), "no memory.\n");
		return 1;
	}
	reload_read(d, path, &next, m);
	if (mistakes_count(m) == 0 && diff_make(d, &next, &last.diff) != 0)
		mistake(m, 0, "cannot be compared: no memory.");
	n = (uint32_t)mistakes_count(m);
	if (n != 0)
		mistakes_join(m, last.report, sizeof(last.report));
	mistakes_free(m);
	return n;
}

static int
on_diff(const char *cmd, const char *param, struct rte_tel_data *t)
{
	uint32_t mistakes, serial, rows;
	struct daemon *d;

	(void)cmd;
	if (param == NULL || param[0] != '/')
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	mistakes = compare(d, param);
	serial = last.serial;
	rows = last.diff.n;
	telemetry_leave(d);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "result", mistakes != 0 ? "refused" : rows != 0 ? "differs" : "same");
	telemetry_u64(t, "mistakes", mistakes);
	telemetry_u64(t, "serial", serial);
	telemetry_u64(t, "rows", rows);
	return 0;
}

/* As "detail", "detail_1" and so on: telemetry cuts texts off. */
static void
add_detail(const char *detail, struct rte_tel_data *t)
{
	size_t len = strlen(detail), piece = RTE_TEL_MAX_STRING_LEN - 1;
	char name[32] = "detail";

	for (size_t at = 0, i = 0; at == 0 || at < len; at += piece, i++) {
		if (i > 0)
			snprintf(name, sizeof(name), "detail_%zu", i);
		telemetry_text(t, name, detail + at);
	}
}

static void
row_dict(const struct diff_row *r, struct rte_tel_data *t)
{
	rte_tel_data_start_dict(t);
	telemetry_text(t, "what", r->what);
	telemetry_text(t, "change", r->change);
	telemetry_text(t, "service", r->service);
	telemetry_text(t, "name", r->name);
	add_detail(r->detail, t);
	telemetry_u64(t, "slots", r->slots);
	telemetry_u64(t, "slots_moved", r->slots_moved);
	telemetry_u64(t, "flows", r->flows);
	telemetry_u64(t, "flows_moved", r->flows_moved);
}

static int
on_row(const char *cmd, const char *param, struct rte_tel_data *t)
{
	uint32_t serial, i;
	struct daemon *d;
	int ret = -ENOENT;

	(void)cmd;
	if (param == NULL || sscanf(param, "%u/%u", &serial, &i) != 2)
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	if (serial == last.serial && i < last.diff.n) {
		row_dict(&last.diff.row[i], t);
		ret = 0;
	}
	telemetry_leave(d);
	return ret;
}

static int
on_report(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	int ret;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	ret = rte_tel_data_string(t, last.report);
	telemetry_leave(d);
	return ret;
}

bool
diff_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/diff", on_diff,
			"What a reload of a file would change. Parameter: its whole path"},
		{"/sluice/diff_row", on_row,
			"A row of the last comparison. Parameter: its serial number, slash, the "
			"row's"},
		{"/sluice/diff_report", on_report,
			"The mistakes that the last comparison found. No parameter"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
