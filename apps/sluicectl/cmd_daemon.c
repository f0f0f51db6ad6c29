/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the daemon is asked to do: an audit, a reload. */
#include <stdio.h>
#include <string.h>

#include "ctl.h"

static json_int_t
number(const json_t *o, const char *key)
{
	const json_t *n = json_object_get(o, key);

	if (!json_is_integer(n))
		ctl_fail("bad_answer", "a line of the audit lacks \"%s\".", key);
	return json_integer_value(n);
}

static int
do_audit(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"WHERE", "name", false},
		{"ENTERED", "entered", true}, {"OUTCOMES", "outcomes", true},
		{"HELD", "held", true}, {"DIFFERENCE", "difference", true}, {NULL, NULL, false}};
	json_t *audit = ctl_ask(fd, "/sluice/audit", NULL), *lines = json_array(), *line;
	bool balanced = true;
	const char *key;

	(void)argc;
	(void)argv;
	if (!json_is_object(audit) || json_object_size(audit) == 0)
		ctl_fail("bad_answer", "the audit has no lines.");
	json_object_foreach(audit, key, line)
	{
		json_int_t difference =
			number(line, "entered") - number(line, "outcomes") - number(line, "held");

		json_object_set_new(line, "difference", json_integer(difference));
		balanced &= difference == 0;
		json_array_append(lines, line);
	}
	if (ctl_json) {
		json_t *o = json_pack("{s:b, s:O}", "balanced", balanced, "lines", lines);

		if (!balanced)
			json_object_set_new(o, "error", json_string("unbalanced"));
		ctl_print(o);
		json_decref(o);
	} else {
		ctl_table(lines, columns);
		printf(balanced ? "everything that entered has an outcome or is held\n"
				: "the sums differ: please report it\n");
	}
	json_decref(lines);
	json_decref(audit);
	return balanced ? 0 : CTL_EXIT_UNBALANCED;
}

static int
do_reload(int fd, int argc, char **argv)
{
	json_t *o = ctl_ask(fd, "/sluice/reload", NULL);
	json_t *report = ctl_ask(fd, "/sluice/report", NULL);
	const char *result = json_string_value(json_object_get(o, "result"));
	const char *text = json_string_value(report);
	bool applied;

	(void)argc;
	(void)argv;
	if (result == NULL)
		ctl_fail("bad_answer", "the reload has no result.");
	applied = strcmp(result, "applied") == 0;
	if (ctl_json) {
		if (!applied)
			json_object_set_new(o, "error", json_string("refused"));
		json_object_set(o, "report", report);
		ctl_print(o);
	} else {
		fputs(text != NULL ? text : "", applied ? stdout : stderr);
		if (!applied)
			fputs("sluicectl: the reload is refused; services go on as they were.\n",
				stderr);
	}
	json_decref(report);
	json_decref(o);
	return applied ? 0 : CTL_EXIT_FAILED;
}

const struct ctl_command ctl_daemon_commands[] = {
	{"audit", "", "does what entered equal what became of it? Status 1 if not", do_audit},
	{"reload", "", "read the configuration again; status 2 if it is refused", do_reload},
	{NULL, NULL, NULL, NULL},
};
