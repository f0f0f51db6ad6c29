/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the daemon knows of the network: neighbours, routes, and the kernel beside it. */
#include "ctl.h"

static int
do_neigh(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"ADDRESS", "address", false},
		{"PORT", "port", false}, {"MAC", "mac", false}, {"STATE", "state", false},
		{"AGE-MS", "age_ms", true}, {"IDLE-MS", "idle_ms", true},
		{"WAITING", "waiting", true}, {NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_rows(ctl_collect_pages(fd, "/sluice/neigh", NULL), columns);
}

static int
do_routes(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"PREFIX", "prefix", false},
		{"VIA", "via", false}, {"PORT", "port", false}, {"METRIC", "metric", true},
		{"KIND", "kind", false}, {"STATE", "state", false}, {NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_rows(ctl_collect_pages(fd, "/sluice/routes", NULL), columns);
}

static int
do_exceptions(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"PORT", "name", false},
		{"INTERFACE", "interface", false}, {"CARRIER", "carrier", false},
		{"TAKEN", "taken", true}, {"DOWN", "down", true}, {"REFUSED", "refused", true},
		{"SHOWN", "shown", true}, {"READ", "read", true}, {"SENT", "sent", true},
		{"BAD", "bad", true}, {"NO-MBUF", "no_mbuf", true}, {"PACKETS", "packets", true},
		{NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_list(fd, "/sluice/exceptions", "/sluice/exception", columns);
}

const struct ctl_command ctl_net_commands[] = {
	{"neigh", "", "neighbours: MAC address, state, age", do_neigh},
	{"routes", "", "routes of the stack, and which are in use", do_routes},
	{"exceptions", "", "taps: what the kernel took and sent", do_exceptions},
	{NULL, NULL, NULL, NULL},
};
