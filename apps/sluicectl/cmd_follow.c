/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Commands that follow packets: trace and capture. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed.h"

#define LINE_MAX_BYTES 4096

static const char *
text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}

static long long
number_of(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void
print_received(const json_t *o)
{
	const char *from = text_of(o, "source"), *to = text_of(o, "destination");

	printf("port %s queue %lld lcore %lld: %s%s%s%s%s, %lld bytes\n", text_of(o, "port"),
		number_of(o, "queue"), number_of(o, "lcore"), text_of(o, "protocol"),
		from[0] != '\0' ? " " : "", from, to[0] != '\0' ? " > " : "", to,
		number_of(o, "length"));
}

/* "udp_queued, tx_sent 2" */
static void
print_counters(const json_t *o, const char *key)
{
	json_t *counters = json_object_get(o, key), *by;
	const char *name, *between = "";

	json_object_foreach(counters, name, by)
	{
		printf("%s%s", between, name);
		if (json_integer_value(by) != 1)
			printf(" %lld", (long long)json_integer_value(by));
		between = ", ";
	}
}

static void
print_stack(const json_t *o)
{
	printf("stack: ");
	print_counters(o, "stack");
	if (json_is_true(json_object_get(o, "held")))
		printf("held, a fragment");
	if (json_object_get(o, "service") != NULL)
		printf(", for service %s", text_of(o, "service"));
	putchar('\n');
}

static void
print_service(const json_t *o)
{
	printf("service %s lcore %lld: %s", text_of(o, "service"), number_of(o, "lcore"),
		text_of(o, "outcome"));
	if (json_object_size(json_object_get(o, "stack")) > 0) {
		printf("; stack: ");
		print_counters(o, "stack");
	}
	putchar('\n');
}

/* A name with something in front of it and behind it, if there is one. */
static void
print_named(const json_t *o, const char *key, const char *before, const char *behind)
{
	if (json_object_get(o, key) != NULL)
		printf("%s%s%s", before, text_of(o, key), behind);
}

static void
print_forward(const json_t *o)
{
	printf("balancer %s lcore %lld: ", text_of(o, "service"), number_of(o, "lcore"));
	print_named(o, "reason", "flow ", ", ");
	if (json_object_get(o, "slot") != NULL)
		printf("slot %lld, ", number_of(o, "slot"));
	print_named(o, "backend", "to back end ", ": ");
	print_named(o, "from", "from back end ", ": ");
	printf("%s", text_of(o, "outcome"));
	if (json_object_get(o, "packets") != NULL)
		printf(", %lld packets", number_of(o, "packets"));
	if (json_is_true(json_object_get(o, "waits")))
		printf(", waits for the neighbour's MAC address");
	putchar('\n');
}

static void
print_bridge(const json_t *o)
{
	printf("bridge %s lcore %lld: %s", text_of(o, "bridge"), number_of(o, "lcore"),
		text_of(o, "outcome"));
	print_named(o, "to", " to port ", "");
	if (json_object_size(json_object_get(o, "copies")) > 0) {
		printf("; copies: ");
		print_counters(o, "copies");
	}
	print_named(o, "source", "; source ", "");
	putchar('\n');
}

static void
print_kernel(const json_t *o)
{
	printf("kernel's %s lcore %lld: %s\n", text_of(o, "interface"), number_of(o, "lcore"),
		text_of(o, "outcome"));
}

/* One step, as a line for people. */
static void
print_step(const json_t *o)
{
	const char *step = text_of(o, "step");

	if (strcmp(step, "end") == 0) {
		printf("%lld packet%s followed, %lld step%s lost\n", number_of(o, "followed"),
			number_of(o, "followed") == 1 ? "" : "s", number_of(o, "lost"),
			number_of(o, "lost") == 1 ? "" : "s");
		return;
	}
	printf("%4lld %12.6f  ", number_of(o, "packet"), (double)number_of(o, "time_us") / 1e6);
	if (strcmp(step, "received") == 0)
		print_received(o);
	else if (strcmp(step, "stack") == 0)
		print_stack(o);
	else if (strcmp(step, "forward") == 0)
		print_forward(o);
	else if (strcmp(step, "bridge") == 0)
		print_bridge(o);
	else if (strcmp(step, "kernel") == 0)
		print_kernel(o);
	else
		print_service(o);
}

static void
take_line(const char *line)
{
	json_t *o = json_loads(line, 0, NULL);

	if (!json_is_object(o))
		ctl_fail("bad_answer", "a step that is no JSON object.");
	if (ctl_json)
		puts(line);
	else
		print_step(o);
	json_decref(o);
}

/* Steps until the end, each as soon as it comes. */
static void
follow_steps(int feed)
{
	char line[LINE_MAX_BYTES];
	size_t len = 0, n;

	while ((n = feed_read(feed, line + len, sizeof(line) - 1 - len)) > 0) {
		char *begin = line, *end;

		len += n;
		line[len] = '\0';
		while ((end = strchr(begin, '\n')) != NULL) {
			*end = '\0';
			take_line(begin);
			begin = end + 1;
		}
		len -= (size_t)(begin - line);
		memmove(line, begin, len);
		if (len == sizeof(line) - 1)
			ctl_fail("bad_answer", "a step longer than %d bytes.", LINE_MAX_BYTES);
		ctl_flush();
	}
}

static int
do_trace(int fd, int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
	char filter[CTL_QUESTION_MAX / 2], words[CTL_QUESTION_MAX - 100];
	unsigned long long count = 0;
	int opt;

	optind = 0;
	while ((opt = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		if (opt != 'c')
			ctl_fail("usage", "trace takes -c N and a filter.");
		count = feed_count("-c", optarg);
	}
	feed_filter(argv + optind, argc - optind, filter, sizeof(filter));
	snprintf(words, sizeof(words), "%llu %s", count, filter);
	follow_steps(feed_open(fd, "/sluice/trace_start", words));
	return 0;
}

/* Where a capture goes to. */
static int
open_file(const char *path)
{
	int out = STDOUT_FILENO;

	if (strcmp(path, "-") != 0)
		out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		ctl_fail("failed", "%s: %s.", path, strerror(errno));
	return out;
}

static void
write_all(int out, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(out, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			ctl_fail("failed", "the capture cannot be written: %s.", strerror(errno));
		data += n;
		len -= (size_t)n;
	}
}

static void
say_end(int fd)
{
	json_t *o = ctl_ask(fd, "/sluice/capture", NULL);

	fprintf(stderr, "sluicectl: %lld packet%s captured, %lld lost\n", number_of(o, "captured"),
		number_of(o, "captured") == 1 ? "" : "s", number_of(o, "lost"));
	json_decref(o);
}

struct capture_options {
	const char *path;
	const char *port;
	unsigned long long count;
};

static void
capture_options(int argc, char **argv, struct capture_options *o)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'c'},
		{"port", required_argument, NULL, 'p'}, {"write", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0}};
	int opt;

	*o = (struct capture_options){.port = "*"};
	optind = 0;
	while ((opt = getopt_long(argc, argv, "c:p:w:", options, NULL)) != -1) {
		if (opt == 'c')
			o->count = feed_count("-c", optarg);
		else if (opt == 'p')
			o->port = optarg;
		else if (opt == 'w')
			o->path = optarg;
		else
			ctl_fail("usage", "capture takes -w FILE, --port NAME, -c N and a filter.");
	}
	if (o->path == NULL)
		ctl_fail("usage", "capture lacks -w FILE; \"-\" is standard output.");
	if (strlen(o->port) > 31 || o->port[0] == '\0' || strchr(o->port, ' ') != NULL)
		ctl_fail("usage", "--port %s: is no name of a port.", o->port);
	if (strcmp(o->path, "-") == 0 && isatty(STDOUT_FILENO))
		ctl_fail("usage", "-w -: standard output is a terminal; name a file.");
}

static int
do_capture(int fd, int argc, char **argv)
{
	char filter[CTL_QUESTION_MAX / 2], words[CTL_QUESTION_MAX - 100];
	static char data[65536];
	struct capture_options o;
	int feed, out;
	size_t n;

	capture_options(argc, argv, &o);
	feed_filter(argv + optind, argc - optind, filter, sizeof(filter));
	snprintf(words, sizeof(words), "%llu %s %s", o.count, o.port, filter);
	feed = feed_open(fd, "/sluice/capture_start", words);
	out = open_file(o.path); /* now that nothing is wrong with the request */
	while ((n = feed_read(feed, data, sizeof(data))) > 0)
		write_all(out, data, n);
	if (close(out) != 0)
		ctl_fail("failed", "%s: %s.", o.path, strerror(errno));
	say_end(fd);
	return 0;
}

const struct ctl_command ctl_follow_commands[] = {
	{"trace", "[-c N] [FILTER]", "follow packets: each step, and the outcome", do_trace},
	{"capture", "-w FILE|- [-c N] [--port PORT] [FILTER]", "write packets as pcapng",
		do_capture},
	{NULL, NULL, NULL, NULL},
};
