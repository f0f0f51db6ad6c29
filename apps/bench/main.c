/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "sl_base.h"

#include "bench.h"

#define EXIT_USAGE 2

static const struct bench_command *const commands[] = {
	&bench_bind,
	&bench_pending,
	&bench_txring,
	&bench_frag,
	&bench_tap,
	&bench_udpq,
	&bench_wire,
};

static void
usage(FILE *to)
{
	fprintf(to, "Usage: sluice-bench [EAL arguments --] COMMAND [options]\n\nCommands:\n");
	for (size_t i = 0; i < SL_COUNT_OF(commands); i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->what);
	fprintf(to,
		"\nOptions:\n"
		"  --json          one JSON object per line and result\n"
		"  --seconds N     time for the whole run, 0.1 to 86400 (default 50)\n"
		"  --filter TEXT   only cases whose name contains TEXT\n"
		"  --flood         udpq: producers drop and go on at once when the queue is full,\n"
		"                  instead of backing off for some microseconds\n"
		"  --help          this text\n");
}

static const struct bench_command *
command_find(const char *name)
{
	for (size_t i = 0; i < SL_COUNT_OF(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static int
seconds_parse(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end != '\0' || !(*seconds >= 0.1 && *seconds <= 86400)) {
		fprintf(stderr, "sluice-bench: --seconds %s: give a number from 0.1 to 86400\n",
			text);
		return -EINVAL;
	}
	return 0;
}

/* 0 to run, 1 when help was asked for and given, -EINVAL after a sentence. */
static int
options_parse(int argc, char **argv, struct bench_opts *opts)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"seconds", required_argument, NULL, 's'},
		{"filter", required_argument, NULL, 'f'},
		{"flood", no_argument, NULL, 'F'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'j')
			opts->json = true;
		else if (c == 'f')
			opts->filter = optarg;
		else if (c == 'F')
			opts->flood = true;
		else if (c == 's' && seconds_parse(optarg, &opts->seconds) != 0)
			return -EINVAL;
		else if (c == 'h') {
			usage(stdout);
			return 1;
		} else if (c == '?') /* getopt has said which option */
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "sluice-bench: %s: no argument of this kind; see --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* Index of "--", or 0: with it, what stands before is EAL's. */
static int
separator_find(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return i;
	}
	return 0;
}

/* `word` stands where a command should; NULL: nothing does. */
static void
command_missing(const char *word, bool separated)
{
	if (word == NULL)
		fprintf(stderr, "sluice-bench: a command is missing; see --help\n");
	else if (word[0] == '-' && !separated)
		fprintf(stderr,
			"sluice-bench: %s: the command comes first, and EAL arguments before it end with "
			"\"--\"; see --help\n",
			word);
	else
		fprintf(stderr, "sluice-bench: %s: no such command; see --help\n", word);
}

int
main(int argc, char **argv)
{
	struct bench_opts opts = {.seconds = 50};
	int separator = separator_find(argc, argv);
	int first = separator + 1, ret;
	const struct bench_command *command;

	if (first < argc &&
		(strcmp(argv[first], "--help") == 0 || strcmp(argv[first], "-h") == 0)) {
		usage(stdout);
		return 0;
	}
	command = first < argc ? command_find(argv[first]) : NULL;
	if (command == NULL) {
		command_missing(first < argc ? argv[first] : NULL, separator > 0);
		return EXIT_USAGE;
	}
	ret = options_parse(argc - first, argv + first, &opts);
	if (ret != 0)
		return ret < 0 ? EXIT_USAGE : 0;
	if (bench_eal_start(separator > 0 ? separator : 1, argv) != 0)
		return EXIT_USAGE;
	bench_catch_signals();
	ret = command->run(&opts);
	rte_eal_cleanup();
	if (ret == 0 && bench_none_wanted()) {
		fprintf(stderr, "sluice-bench: --filter %s: no case of %s has that in its name\n",
			opts.filter, command->name);
		return EXIT_USAGE;
	}
	return ret == 0 ? 0 : 1;
}
