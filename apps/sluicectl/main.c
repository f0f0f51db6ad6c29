/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

bool ctl_json;

static const char help[] =
	"sluicectl [--name NAME | --socket PATH] [--json] COMMAND\n"
	"  info       the daemon: version, configuration, uptime\n"
	"  ports      ports: link, addresses, packets\n"
	"  services   services: what they received and what became of it\n"
	"  sockets    sockets of services: what is queued, and refused\n"
	"  lcores     workers: turns, sleeps\n"
	"  drops      packets that were lost, by cause\n"
	"  outcomes   what became of every packet, by name\n"
	"  audit      does what entered equal what became of it? Status 1 if not\n"
	"  reload     read the configuration again; status 2 if it is refused\n"
	"  --name NAME     the daemon whose [sluiced] section has this name\n"
	"  --socket PATH   its control socket, as it says at start\n"
	"  --json          JSON; failures too: {\"error\": CODE, \"message\": ...}\n"
	"Exit status: 0; 1 the audit found a difference; 2 a failure.\n";

void
ctl_fail(const char *code, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fflush(stdout);
	if (ctl_json) {
		json_t *o = json_pack("{s:s, s:s}", "error", code, "message", text);

		if (o != NULL)
			json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	} else {
		fprintf(stderr, "sluicectl: %s\n", text);
	}
	exit(CTL_EXIT_FAILED);
}

static void
print_json(const json_t *value)
{
	json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
	putchar('\n');
}

/* An array of the objects that the names of a list stand for. One that has gone in between is left
 * out. */
static json_t *
collect(int fd, const char *list, const char *one)
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

static int
print_list(int fd, const char *list, const char *one, const struct ctl_column *columns)
{
	json_t *rows = collect(fd, list, one);

	if (ctl_json)
		print_json(rows);
	else
		ctl_table(rows, columns);
	json_decref(rows);
	return 0;
}

static int
do_ports(int fd)
{
	static const struct ctl_column columns[] = {{"PORT", "name", false},
		{"DEVICE", "device", false}, {"LINK", "link", false}, {"MAC", "mac", false},
		{"MTU", "mtu", true}, {"RXQ", "rx_queues", true}, {"TXQ", "tx_queues", true},
		{"RX", "rx_packets", true}, {"MISSED", "rx_missed", true},
		{"TX", "tx_packets", true}, {"ADDRESSES", "addresses", false}, {NULL, NULL, false}};

	return print_list(fd, "/sluice/ports", "/sluice/port", columns);
}

static int
do_services(int fd)
{
	static const struct ctl_column columns[] = {{"SERVICE", "name", false},
		{"KIND", "kind", false}, {"UDP", "udp_port", true}, {"ADDRESS", "address", false},
		{"PORT", "port", false}, {"LCORE", "lcore", true}, {"RECEIVED", "received", true},
		{"BYTES", "bytes", true}, {"HELD", "held", true}, {"OUTCOMES", "outcomes", false},
		{NULL, NULL, false}};

	return print_list(fd, "/sluice/services", "/sluice/service", columns);
}

static int
do_sockets(int fd)
{
	static const struct ctl_column columns[] = {{"SERVICE", "service", false},
		{"ADDRESS", "address", false}, {"UDP", "udp_port", true}, {"LCORE", "lcore", true},
		{"QUEUED", "queued", true}, {"RECEIVED", "received", true}, {"HELD", "held", true},
		{"NO-ROOM", "udp_rcvbuf", true}, {"NO-SLOT", "udp_slots", true},
		{NULL, NULL, false}};

	return print_list(fd, "/sluice/sockets", "/sluice/socket", columns);
}

static int
do_lcores(int fd)
{
	static const struct ctl_column columns[] = {{"LCORE", "lcore", true},
		{"QUEUES", "queues", true}, {"RECEIVED", "received", true},
		{"TURNS", "turns", true}, {"BUSY", "busy_turns", true}, {"SLEEPS", "sleeps", true},
		{"SLEPT-US", "slept_us", true}, {"LONGEST-US", "longest_sleep_us", true},
		{"LIMIT-US", "sleep_limit_us", true}, {NULL, NULL, false}};

	return print_list(fd, "/sluice/lcores", "/sluice/lcore", columns);
}

static int
print_object(int fd, const char *endpoint, bool zeros)
{
	json_t *o = ctl_ask(fd, endpoint, NULL);

	if (!json_is_object(o))
		ctl_fail(
			"bad_answer", "%s is answered by something else than an object.", endpoint);
	if (ctl_json)
		print_json(o);
	else
		ctl_pairs(o, zeros);
	json_decref(o);
	return 0;
}

static int
do_info(int fd)
{
	return print_object(fd, "/sluice/info", true);
}

static int
do_drops(int fd)
{
	return print_object(fd, "/sluice/drops", false);
}

static int
do_outcomes(int fd)
{
	return print_object(fd, "/sluice/outcomes", false);
}

static json_int_t
number(const json_t *o, const char *key)
{
	const json_t *n = json_object_get(o, key);

	if (!json_is_integer(n))
		ctl_fail("bad_answer", "a line of the audit lacks \"%s\".", key);
	return json_integer_value(n);
}

static int
do_audit(int fd)
{
	static const struct ctl_column columns[] = {{"WHERE", "name", false},
		{"ENTERED", "entered", true}, {"OUTCOMES", "outcomes", true},
		{"HELD", "held", true}, {"DIFFERENCE", "difference", true}, {NULL, NULL, false}};
	json_t *audit = ctl_ask(fd, "/sluice/audit", NULL), *lines = json_array(), *line;
	bool balanced = true;
	const char *key;

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
		print_json(o);
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
do_reload(int fd)
{
	json_t *o = ctl_ask(fd, "/sluice/reload", NULL);
	json_t *report = ctl_ask(fd, "/sluice/report", NULL);
	const char *result = json_string_value(json_object_get(o, "result"));
	const char *text = json_string_value(report);
	bool applied;

	if (result == NULL)
		ctl_fail("bad_answer", "the reload has no result.");
	applied = strcmp(result, "applied") == 0;
	if (ctl_json) {
		if (!applied)
			json_object_set_new(o, "error", json_string("refused"));
		json_object_set(o, "report", report);
		print_json(o);
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

static const struct {
	const char *name;
	int (*run)(int fd);
} commands[] = {
	{"info", do_info},
	{"ports", do_ports},
	{"services", do_services},
	{"sockets", do_sockets},
	{"lcores", do_lcores},
	{"drops", do_drops},
	{"outcomes", do_outcomes},
	{"audit", do_audit},
	{"reload", do_reload},
};

static int
run(const char *command, const char *path)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, command) == 0)
			return commands[i].run(ctl_connect(path));
	}
	ctl_fail("usage", "\"%s\" is not a command; --help lists them.", command);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"name", required_argument, NULL, 'n'},
		{"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	char path[512];
	int opt;

	/* So that a mistake in an option is told as asked for, whatever the order. */
	for (int i = 1; i < argc; i++)
		ctl_json |= strcmp(argv[i], "--json") == 0;
	ctl_path("", path, sizeof(path));
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'n')
			ctl_path(optarg, path, sizeof(path));
		else if (opt == 's')
			snprintf(path, sizeof(path), "%s", optarg);
		else if (opt == 'h')
			return fputs(help, stdout) < 0;
		else if (opt != 'j')
			ctl_fail("usage",
				"%s is not an option, or lacks its value; --help lists them.",
				argv[optind - 1]);
	}
	if (optind + 1 != argc)
		ctl_fail("usage", "takes one command; --help lists them.");
	return run(argv[optind], path);
}
