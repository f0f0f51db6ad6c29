/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "top.h"

#define INTERVAL_MS 1000u
#define LONGEST_MS 3600000.0
#define PLAIN_WIDTH 80

struct top_options {
	bool once;
	unsigned int interval_ms;
};

static void
read_options(int argc, char **argv, struct top_options *o)
{
	static const struct option options[] = {{"once", no_argument, NULL, 'o'},
		{"interval", required_argument, NULL, 'i'}, {NULL, 0, NULL, 0}};
	int opt;

	*o = (struct top_options){.interval_ms = INTERVAL_MS};
	optind = 0;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		char *end = NULL;
		double ms = opt == 'i' ? 1000 * strtod(optarg, &end) : 0;

		if (opt == 'o') {
			o->once = true;
			continue;
		}
		if (opt != 'i')
			ctl_fail("usage", "top takes --once and --interval SECONDS.");
		if (end == optarg || *end != '\0' || !(ms >= 100 && ms <= LONGEST_MS))
			ctl_fail("usage", "--interval %s: write seconds, 0.1 to 3600.", optarg);
		o->interval_ms = (unsigned int)ms;
	}
	if (optind != argc)
		ctl_fail("usage", "top takes --once and --interval SECONDS.");
}

static void
show(const json_t *rates, bool screen)
{
	unsigned int width = PLAIN_WIDTH, height = 0;
	char *text;

	if (ctl_json) {
		ctl_print(rates);
		ctl_flush();
		return;
	}
	if (screen)
		screen_size(&width, &height);
	text = top_text(rates, width, height);
	if (text == NULL)
		ctl_fail("failed", "no memory.");
	if (screen) {
		screen_show(text);
	} else {
		fputs(text, stdout);
		ctl_flush();
	}
	free(text);
}

static int
do_top(int fd, int argc, char **argv)
{
	struct top_options o;
	json_t *before, *after, *rates;
	bool screen;

	read_options(argc, argv, &o);
	screen = !o.once && !ctl_json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	before = top_sample(fd);
	if (screen)
		screen_open();
	for (bool first = true; !screen_wait(o.interval_ms); first = false) {
		after = top_sample(fd);
		rates = top_rates(before, after);
		if (!first && !screen && !ctl_json)
			putchar('\n');
		show(rates, screen);
		json_decref(rates);
		json_decref(before);
		before = after;
		if (o.once)
			break;
	}
	json_decref(before);
	return 0;
}

const struct ctl_command ctl_top_commands[] = {
	{"top", "[--once] [--interval S]", "rates and occupancy, refreshed each second; q ends it",
		do_top},
	{NULL, NULL, NULL, NULL},
};
