/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <string.h>

#include "ctl.h"

#define NAME_MAX_LEN 31

/* Pages at most: more than the largest table has. */
#define PAGES_MAX 2000

/* "MAC PORT AGE" as an object. */
static json_t *
station(const char *text)
{
	char mac[32], port[NAME_MAX_LEN + 1];
	long long age;

	if (text == NULL || sscanf(text, "%31s %31s %lld", mac, port, &age) != 3)
		ctl_fail("bad_answer", "a station is no MAC address, port and age.");
	return json_pack("{s:s, s:s, s:I}", "mac", mac, "port", port, "age_s", (json_int_t)age);
}

/* One page; where the next one begins, or -1 behind the last. */
static json_int_t
add_page(int fd, const char *name, json_int_t from, json_t *rows)
{
	char param[NAME_MAX_LEN + 24];
	json_t *page, *list, *one, *next;
	json_int_t at = -1;
	size_t i;

	snprintf(param, sizeof(param), "%s,%lld", name, (long long)from);
	page = ctl_ask(fd, "/sluice/bridge_stations", param);
	list = json_object_get(page, "stations");
	if (json_is_null(page))
		ctl_fail("usage", "there is no bridge \"%s\".", name);
	if (!json_is_array(list))
		ctl_fail("bad_answer", "stations are no list.");
	json_array_foreach(list, i, one)
	{
		json_array_append_new(rows, station(json_string_value(one)));
	}
	next = json_object_get(page, "next");
	if (json_is_integer(next))
		at = json_integer_value(next);
	json_decref(page);
	return at;
}

static int
print_stations(int fd, const char *name)
{
	static const struct ctl_column columns[] = {{"STATION", "mac", false},
		{"PORT", "port", false}, {"AGE-S", "age_s", true}, {NULL, NULL, false}};
	json_t *rows = json_array();
	json_int_t from = 0;

	if (strlen(name) > NAME_MAX_LEN)
		ctl_fail("usage", "there is no bridge \"%s\".", name);
	for (int page = 0; page < PAGES_MAX && from >= 0; page++)
		from = add_page(fd, name, from, rows);
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

	if (argc > 1)
		return print_stations(fd, argv[1]);
	return ctl_print_list(fd, "/sluice/bridges", "/sluice/bridge", columns);
}

const struct ctl_command ctl_bridge_commands[] = {
	{"bridge", "[NAME]", "bridges: ports, frames; with a name: its stations", do_bridge},
	{NULL, NULL, NULL, NULL},
};
