/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Load balancers: their back ends, drains, and where a datagram would go. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"

#define WAIT_STEP_MS 100

static const char *
text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "?";
}

static json_int_t
number_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* What belongs to each back end of a service, into rows. */
static void
collect_service(int fd, const char *service, const char *only, json_t *rows)
{
	json_t *names = ctl_ask(fd, "/sluice/backends", service), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		const char *slash = text != NULL ? strchr(text, '/') : NULL;
		json_t *row;

		if (slash == NULL)
			ctl_fail("bad_answer", "a back end's name has no service before it.");
		if (only != NULL && strcmp(slash + 1, only) != 0)
			continue;
		row = ctl_ask(fd, "/sluice/backend", text);
		if (json_is_object(row))
			json_array_append(rows, row);
		json_decref(row);
	}
	json_decref(names);
}

/* All of them, or those of one name. One that has gone in between is left out. */
static json_t *
collect(int fd, const char *only)
{
	json_t *services = ctl_ask(fd, "/sluice/backends", NULL), *service, *rows = json_array();
	size_t i;

	if (!json_is_array(services))
		ctl_fail("bad_answer", "the load balancers are something else than a list.");
	json_array_foreach(services, i, service)
	{
		if (!json_is_string(service))
			ctl_fail("bad_answer", "a load balancer has a name that is no text.");
		collect_service(fd, json_string_value(service), only, rows);
	}
	json_decref(services);
	return rows;
}

static int
list_backends(int fd)
{
	static const struct ctl_column columns[] = {{"SERVICE", "service", false},
		{"BACKEND", "name", false}, {"ADDRESS", "address", false},
		{"UDP", "udp_port", true}, {"STATE", "state", false}, {"WHY", "why", false},
		{"WEIGHT", "weight", true}, {"SLOTS", "slots", true}, {"FLOWS", "flows", true},
		{"PICKED", "picked", true}, {"REPLIES", "replies", true}, {"OK", "checks_ok", true},
		{"FAILED", "checks_failed", true}, {NULL, NULL, false}};

	return ctl_print_rows(collect(fd, NULL), columns);
}

/* "60s" in milliseconds. */
static unsigned long long
parse_time(const char *text)
{
	static const struct {
		const char *unit;
		unsigned long long ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	unsigned long long n;
	char *end;

	n = strtoull(text, &end, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text[0] >= '0' && text[0] <= '9' && n > 0 && n <= 604800000 &&
			strcmp(end, units[i].unit) == 0)
			return n * units[i].ms;
	ctl_fail("usage", "\"%s\" is no time; write a whole number with its unit: ms, s, m or h.",
		text);
}

static void
nap(void)
{
	struct timespec ts = {.tv_nsec = WAIT_STEP_MS * 1000000L};

	nanosleep(&ts, NULL);
}

/* Until no flow is left, or the time for them is over, in all services. The flows that were left
 * then. */
static json_int_t
wait_drained(int fd, const char *name)
{
	for (;; nap()) {
		json_t *rows = collect(fd, name), *row;
		json_int_t flows = 0, left = 0;
		bool drained = true;
		size_t i;

		json_array_foreach(rows, i, row)
		{
			bool cut = strcmp(text_of(row, "state"), "down") == 0;

			drained &= strcmp(text_of(row, "drained"), "yes") == 0;
			flows += number_of(row, "flows");
			left += cut ? 0 : number_of(row, "flows");
		}
		if (json_array_size(rows) == 0)
			ctl_fail("no_backend", "%s has gone while it was drained.", name);
		if (!drained)
			ctl_fail("undrained", "the drain of %s was taken back.", name);
		json_decref(rows);
		if (left == 0)
			return flows;
	}
}

struct drain_args {
	const char *name;
	unsigned long long ms;
	bool wait;
};

static struct drain_args
read_drain(int argc, char **argv)
{
	struct drain_args a = {.name = NULL};

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--wait") == 0)
			a.wait = true;
		else if (strcmp(argv[i], "--for") == 0)
			a.ms = parse_time(i + 1 < argc ? argv[++i] : "");
		else if (argv[i][0] == '-' || a.name != NULL)
			ctl_fail("usage", "drain takes NAME, --for TIME and --wait, not \"%s\".",
				argv[i]);
		else
			a.name = argv[i];
	}
	if (a.name == NULL)
		ctl_fail("usage", "drain takes the NAME of a [backend NAME].");
	return a;
}

static json_t *
change(int fd, const char *endpoint, const char *name, unsigned long long ms)
{
	char param[NAME_MAX];
	json_t *o;

	snprintf(param, sizeof(param), ms != 0 ? "%s,%llu" : "%s", name, ms);
	o = ctl_ask(fd, endpoint, param);
	if (!json_is_object(o))
		ctl_fail("no_backend", "no load balancer has a back end %s.", name);
	return o;
}

static int
drain(int fd, int argc, char **argv)
{
	struct drain_args a = read_drain(argc, argv);
	json_t *o = change(fd, "/sluice/backend_drain", a.name, a.ms);
	json_int_t flows = number_of(o, "flows");

	if (!ctl_json)
		printf("%s takes no new flows; it has %lld\n", a.name, (long long)flows);
	if (a.wait) {
		fflush(stdout);
		flows = wait_drained(fd, a.name);
		json_object_set_new(o, "left", json_integer(flows));
		if (!ctl_json && flows == 0)
			printf("%s has no flow any more\n", a.name);
		else if (!ctl_json)
			printf("%s gets nothing any more; %lld flows were left\n", a.name,
				(long long)flows);
	}
	if (ctl_json)
		ctl_print(o);
	json_decref(o);
	return 0;
}

static int
undrain(int fd, int argc, char **argv)
{
	json_t *o;

	if (argc != 3 || argv[2][0] == '-')
		ctl_fail("usage", "undrain takes the NAME of a [backend NAME].");
	o = change(fd, "/sluice/backend_undrain", argv[2], 0);
	if (ctl_json)
		ctl_print(o);
	else
		printf("%s takes new flows\n", argv[2]);
	json_decref(o);
	return 0;
}

static int
do_backend(int fd, int argc, char **argv)
{
	if (argc == 1)
		return list_backends(fd);
	if (strcmp(argv[1], "drain") == 0)
		return drain(fd, argc, argv);
	if (strcmp(argv[1], "undrain") == 0)
		return undrain(fd, argc, argv);
	ctl_fail("usage", "backend takes nothing, \"drain\" or \"undrain\", not \"%s\".", argv[1]);
}

static bool
is(const json_t *o, const char *key, const char *text)
{
	return strcmp(text_of(o, key), text) == 0;
}

static void
say_reason(const json_t *o)
{
	static const struct {
		const char *reason, *sentence;
	} sentences[] = {
		{"known", "the flow is known"},
		{"new", "the flow is new: by its slot, and remembered"},
		{"guarded", "the flow is new: by its slot, and not remembered, as there are too "
			    "many new ones a second"},
		{"full", "the flow is new: by its slot, and not remembered, as the table is full"},
		{"turn", "affinity = none: it has the next turn"},
		{"no_backend", "no back end is up or draining"},
	};

	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (is(o, "reason", sentences[i].reason))
			printf("why: %s\n", sentences[i].sentence);
	if (is(o, "reason", "moved"))
		printf("why: the flow is known, but %s, where it was, %s: by its slot\n",
			text_of(o, "was"),
			is(o, "moves", "gone")	 ? "is gone"
			: is(o, "moves", "down") ? "is down"
						 : "is draining with drain = move");
	if (is(o, "last_resort", "yes"))
		printf("only back ends that are draining are left\n");
}

static void
say_forward(const json_t *o)
{
	if (is(o, "backend", "none"))
		printf("to nobody: service %s has no back end\n", text_of(o, "service"));
	else
		printf("to back end %s of service %s: %s, UDP port %lld\n", text_of(o, "backend"),
			text_of(o, "service"), text_of(o, "address"),
			(long long)number_of(o, "udp_port"));
	say_reason(o);
	if (is(o, "reason", "turn"))
		printf("turn: %lld of %lld\n", (long long)number_of(o, "slot"),
			(long long)number_of(o, "slots"));
	else
		printf("slot: %lld of %lld, of %s; hash 0x%08llx\n",
			(long long)number_of(o, "slot"), (long long)number_of(o, "slots"),
			text_of(o, "slot_backend"), (unsigned long long)number_of(o, "hash"));
	printf("lcore: %lld\n", (long long)number_of(o, "lcore"));
}

static void
say(const json_t *o)
{
	if (is(o, "verdict", "forward"))
		say_forward(o);
	else if (is(o, "verdict", "socket"))
		printf("to socket %s: service %s, kind = %s\nlcore: %lld\n", text_of(o, "socket"),
			text_of(o, "service"), text_of(o, "kind"),
			(long long)number_of(o, "lcore"));
	else if (is(o, "verdict", "answer"))
		printf("to the client: an answer of back end %s, from the address of service %s\n",
			text_of(o, "backend"), text_of(o, "service"));
	else if (is(o, "verdict", "kernel"))
		printf("to the kernel, by its interface %s: no service has that UDP port at that "
		       "address\n",
			text_of(o, "interface"));
	else if (is(o, "verdict", "closed"))
		printf("to nobody: no service has that UDP port at that address\n");
	else
		printf("to nobody: the address is not this appliance's\n");
}

static int
do_explain(int fd, int argc, char **argv)
{
	char param[512];
	json_t *o;

	if (argc != 6 || strcmp(argv[1], "udp") != 0)
		ctl_fail("usage", "explain takes \"udp\", a source address and port, a destination "
				  "address and port.");
	if (snprintf(param, sizeof(param), "udp,%s,%s,%s,%s", argv[2], argv[3], argv[4], argv[5]) >=
		(int)sizeof(param))
		ctl_fail("usage", "an address is longer than any.");
	o = ctl_ask(fd, "/sluice/explain", param);
	if (!json_is_object(o))
		ctl_fail("usage",
			"%s, %s, %s, %s: are not two addresses of one family with their ports.",
			argv[2], argv[3], argv[4], argv[5]);
	if (ctl_json)
		ctl_print(o);
	else
		say(o);
	json_decref(o);
	return 0;
}

const struct ctl_command ctl_backend_commands[] = {
	{"backend", "[drain NAME [--for TIME] [--wait] | undrain NAME]",
		"back ends of load balancers; take one out, and back in", do_backend},
	{"explain", "udp SRC SPORT DST DPORT", "where a datagram would go, and why", do_explain},
	{NULL, NULL, NULL, NULL},
};
