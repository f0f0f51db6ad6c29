/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the daemon has: lists and counters. */
#include <stdio.h>

#include "ctl.h"

/* Rates have no more that mean anything. */
#define REAL_DIGITS 9

void
ctl_print(const json_t *value)
{
	json_dumpf(
		value, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS));
	putchar('\n');
}

json_t *
ctl_collect(int fd, const char *list, const char *one)
{
	json_t *names = ctl_ask(fd, list, NULL), *name, *rows = json_array();
	size_t i;

	if (!json_is_array(names))
		ctl_fail("bad_answer", "%s is answered by something else than a list.", list);
	json_array_foreach(names, i, name)
	{
		json_t *row;

		if (!json_is_string(name))
			ctl_fail("bad_answer", "%s has a name that is no text.", list);
		row = ctl_ask(fd, one, json_string_value(name));
		if (json_is_object(row))
			json_array_append(rows, row);
		json_decref(row);
	}
	json_decref(names);
	return rows;
}

json_t *
ctl_collect_pages(int fd, const char *endpoint, const char *of)
{
	json_t *rows = json_array(), *page, *one;
	json_int_t next = 0, before;
	const char *key;

	do {
		char param[CTL_QUESTION_MAX];

		before = next;
		snprintf(param, sizeof(param), "%s%s%lld", of != NULL ? of : "",
			of != NULL ? "," : "", (long long)next);
		page = ctl_ask(fd, endpoint, param);
		if (of != NULL && json_is_null(page)) {
			json_decref(rows);
			return NULL;
		}
		if (!json_is_integer(json_object_get(page, "next")))
			ctl_fail("bad_answer", "%s is answered by something else than a page.",
				endpoint);
		next = json_integer_value(json_object_get(page, "next"));
		if (next != 0 && next <= before)
			ctl_fail("bad_answer", "%s has pages that do not go on.", endpoint);
		json_object_foreach(page, key, one)
		{
			if (json_is_object(one))
				json_array_append(rows, one);
		}
		json_decref(page);
	} while (next != 0);
	return rows;
}

int
ctl_print_rows(json_t *rows, const struct ctl_column *columns)
{
	if (ctl_json)
		ctl_print(rows);
	else
		ctl_table(rows, columns);
	json_decref(rows);
	return 0;
}

int
ctl_print_list(int fd, const char *list, const char *one, const struct ctl_column *columns)
{
	return ctl_print_rows(ctl_collect(fd, list, one), columns);
}

static int
do_ports(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"PORT", "name", false},
		{"DEVICE", "device", false}, {"LINK", "link", false}, {"MAC", "mac", false},
		{"MTU", "mtu", true}, {"RXQ", "rx_queues", true}, {"TXQ", "tx_queues", true},
		{"RX", "rx_packets", true}, {"MISSED", "rx_missed", true},
		{"TX", "tx_packets", true}, {"ADDRESSES", "addresses", false}, {NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_list(fd, "/sluice/ports", "/sluice/port", columns);
}

static int
do_services(int fd, int argc, char **argv)
{
	/* 80 columns with two outcomes; the rest is for those who ask for JSON, as of lcores. */
	static const struct ctl_column columns[] = {{"SERVICE", "name", false},
		{"KIND", "kind", false}, {"UDP", "udp_port", true}, {"ADDRESS", "address", false},
		{"LCORE", "lcore", true}, {"RECEIVED", "received", true},
		{"OUTCOMES", "outcomes", false}, {NULL, NULL, false}};

	json_t *rows = ctl_collect(fd, "/sluice/services", "/sluice/service"), *row;
	size_t i;

	(void)argc;
	(void)argv;
	/* What goes past sockets, as a load balancer's, is not counted in bytes. */
	json_array_foreach(rows, i, row)
	{
		if (json_integer_value(json_object_get(row, "sockets")) == 0)
			json_object_set_new(row, "bytes", json_null());
	}
	return ctl_print_rows(rows, columns);
}

static int
do_sockets(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"SERVICE", "service", false},
		{"ADDRESS", "address", false}, {"UDP", "udp_port", true}, {"LCORE", "lcore", true},
		{"QUEUED", "queued", true}, {"RECEIVED", "received", true}, {"HELD", "held", true},
		{"NO-ROOM", "udp_rcvbuf", true}, {"NO-SLOT", "udp_slots", true},
		{NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_list(fd, "/sluice/sockets", "/sluice/socket", columns);
}

static int
do_lcores(int fd, int argc, char **argv)
{
	static const struct ctl_column columns[] = {{"LCORE", "lcore", true},
		{"RECEIVED", "received", true}, {"IDLE", "idle", false}, {"SLEEPS", "sleeps", true},
		{"INTR", "interrupts", true}, {"WAKES", "wakes", true},
		{"TIMEOUTS", "timeouts", true}, {"MAX-US", "longest_sleep_us", true},
		{"LIM-US", "sleep_limit_us", true}, {NULL, NULL, false}};

	(void)argc;
	(void)argv;
	return ctl_print_list(fd, "/sluice/lcores", "/sluice/lcore", columns);
}

static int
print_object(int fd, const char *endpoint, bool zeros)
{
	json_t *o = ctl_ask(fd, endpoint, NULL);

	if (!json_is_object(o))
		ctl_fail(
			"bad_answer", "%s is answered by something else than an object.", endpoint);
	if (ctl_json)
		ctl_print(o);
	else
		ctl_pairs(o, zeros);
	json_decref(o);
	return 0;
}

static int
do_info(int fd, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return print_object(fd, "/sluice/info", true);
}

static int
do_drops(int fd, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return print_object(fd, "/sluice/drops", false);
}

static int
do_outcomes(int fd, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return print_object(fd, "/sluice/outcomes", false);
}

const struct ctl_command ctl_show_commands[] = {
	{"info", "", "the daemon: version, configuration, uptime", do_info},
	{"ports", "", "ports: link, addresses, packets", do_ports},
	{"services", "", "services: what they received and what became of it", do_services},
	{"sockets", "", "sockets of services: what is queued, and refused", do_sockets},
	{"lcores", "", "workers: what they received, sleeps", do_lcores},
	{"drops", "", "packets that were lost, by cause", do_drops},
	{"outcomes", "", "what became of every packet, by name", do_outcomes},
	{NULL, NULL, NULL, NULL},
};
