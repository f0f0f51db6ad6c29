/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "ctl.h"

static int
print_stations(int fd, const char *name)
{
	static const struct ctl_column columns[] = {{"STATION", "mac", false},
		{"PORT", "port", false}, {"AGE-S", "age_s", true}, {NULL, NULL, false}};
	json_t *rows = ctl_collect_pages(fd, "/sluice/bridge_stations", name);

	if (rows == NULL)
		ctl_fail("usage", "there is no bridge \"%s\".", name);
	return ctl_print_rows(rows, columns);
}

static int
do_bridge(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"BRIDGE", "name", false},
		{"PORTS", "ports", false}, {"STATIONS", "stations", true}, {"OF", "entries", true},
		{"AGE-S", "age_s", true}, {"RECEIVED", "received", true},
		{"COPIES", "copies", true}, {"OUTCOMES", "outcomes", false},
		{"SOURCES", "sources", false}, {NULL, NULL, false}};

	if (argc > 2)
		ctl_fail("usage", "bridge takes the NAME of one bridge, or nothing.");
	if (argc > 1)
		return print_stations(fd, argv[1]);
	return ctl_print_list(fd, "/sluice/bridges", "/sluice/bridge", columns);
}

const struct ctl_command ctl_bridge_commands[] = {
	{"bridge", "[NAME]", "bridges: ports, frames; with a name: its stations", do_bridge},
	{NULL, NULL, NULL, NULL},
};
