/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What a reload of a file would change. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

/* The daemon tells a long text in pieces: "detail", "detail_1", ... */
static void
join_detail(json_t *row)
{
	char text[1024] = "", name[24] = "detail";
	const json_t *piece = json_object_get(row, name);

	for (unsigned int i = 1; json_is_string(piece); i++) {
		size_t at = strlen(text);

		snprintf(text + at, sizeof(text) - at, "%s", json_string_value(piece));
		json_object_del(row, name);
		snprintf(name, sizeof(name), "detail_%u", i);
		piece = json_object_get(row, name);
	}
	json_object_set_new(row, "detail", json_string(text));
}

/* The rows of the last comparison, if it is still ours. */
static json_t *
collect(int fd, const json_t *o)
{
	json_int_t serial = json_integer_value(json_object_get(o, "serial"));
	json_int_t n = json_integer_value(json_object_get(o, "rows"));
	json_t *rows = json_array();
	char param[64];

	for (json_int_t i = 0; i < n; i++) {
		json_t *row;

		snprintf(param, sizeof(param), "%lld/%lld", (long long)serial, (long long)i);
		row = ctl_ask(fd, "/sluice/diff_row", param);
		if (!json_is_object(row))
			ctl_fail("busy", "somebody else compares files at the same time; try "
					 "again.");
		join_detail(row);
		json_array_append_new(rows, row);
	}
	return rows;
}

static int
refused(int fd, json_t *o)
{
	json_t *report = ctl_ask(fd, "/sluice/diff_report", NULL);

	if (ctl_json) {
		json_object_set_new(o, "error", json_string("refused"));
		json_object_set(o, "report", report);
		ctl_print(o);
	} else {
		fputs(json_is_string(report) ? json_string_value(report) : "", stderr);
		fputs("sluicectl: a reload of it would be refused.\n", stderr);
	}
	json_decref(report);
	return CTL_EXIT_FAILED;
}

static void
print_rows(const json_t *rows)
{
	static const struct ctl_column columns[] = {{"WHAT", "what", false},
		{"SERVICE", "service", false}, {"NAME", "name", false}, {"CHANGE", "change", false},
		{"SLOTS", "slots", true}, {"MOVED", "slots_moved", true}, {"FLOWS", "flows", true},
		{"MOVED", "flows_moved", true}, {"DETAIL", "detail", false}, {NULL, NULL, false}};

	if (json_array_size(rows) == 0)
		printf("no difference\n");
	else
		ctl_table(rows, columns);
}

static int
do_diff(int fd, int argc, char **argv)
{
	char path[PATH_MAX];
	const char *result;
	json_t *o, *rows;
	bool differs;

	if (argc != 2)
		ctl_fail("usage", "diff takes the path of one configuration file.");
	if (realpath(argv[1], path) == NULL)
		ctl_fail("usage", "%s: %s.", argv[1], strerror(errno));
	o = ctl_ask(fd, "/sluice/diff", path);
	result = json_string_value(json_object_get(o, "result"));
	if (result == NULL)
		ctl_fail("bad_answer", "the comparison has no result.");
	if (strcmp(result, "refused") == 0)
		return refused(fd, o);
	differs = strcmp(result, "differs") == 0;
	rows = collect(fd, o);
	if (ctl_json)
		ctl_print(rows);
	else
		print_rows(rows);
	json_decref(rows);
	json_decref(o);
	return differs ? CTL_EXIT_DIFFERS : 0;
}

const struct ctl_command ctl_diff_commands[] = {
	{"diff", "FILE", "what a reload of FILE would change; status 1 if anything", do_diff},
	{NULL, NULL, NULL, NULL},
};
