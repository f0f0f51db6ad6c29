/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sl_shared.h"

#include "bench.h"

#define CASE_WIDTH 42
#define VALUE_WIDTH 9
#define TEXT_WIDTH 24
#define HEADER_MAX 512

static int stopped; /* (a) relaxed: written by the signal handler, a plain flag */
static bool progress_shown;
static bool some_wanted, some_refused; /* by --filter */

static void
on_signal(int signal_number)
{
	(void)signal_number;
	sl_store_relaxed(&stopped, 1);
}

void
bench_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool
bench_stopped(void)
{
	return sl_load_relaxed(&stopped) != 0;
}

bool
bench_none_wanted(void)
{
	return some_refused && !some_wanted;
}

bool
bench_wanted(const struct bench_opts *opts, const char *name)
{
	bool wanted = opts->filter == NULL || strstr(name, opts->filter) != NULL;

	some_wanted |= wanted;
	some_refused |= !wanted;
	return wanted;
}

static void
progress_clear(void)
{
	if (progress_shown)
		fprintf(stderr, "\r\033[K");
	progress_shown = false;
}

void
bench_progress(const char *what, unsigned int done, unsigned int of)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%u of %u: %s", done + 1, of, what);
	fflush(stderr);
	progress_shown = true;
}

static int
column_width(const char *key)
{
	int width = (int)strlen(key);

	if (strcmp(key, "case") == 0)
		return CASE_WIDTH;
	if (strcmp(key, "drops") == 0 || strcmp(key, "side") == 0)
		return TEXT_WIDTH;
	return width < VALUE_WIDTH ? VALUE_WIDTH : width;
}

/* A cell: a number on the right, a text left, an object as name:value,... */
static void
cell_print(const char *key, const json_t *value)
{
	int width = column_width(key);
	char text[256] = "";
	size_t used = 0;
	const char *k;
	json_t *v;

	if (json_is_string(value))
		printf("%-*s ", width, json_string_value(value));
	else if (json_is_integer(value))
		printf("%*lld ", width, (long long)json_integer_value(value));
	else if (json_is_real(value))
		printf("%*.2f ", width, json_real_value(value));
	else if (json_is_object(value)) {
		json_object_foreach((json_t *)(uintptr_t)value, k, v)
		{
			if (used < sizeof(text))
				used += (size_t)snprintf(text + used, sizeof(text) - used,
					"%s%s:%lld", used ? "," : "", k,
					(long long)json_number_value(v));
		}
		printf("%-*s ", width, text);
	} else
		printf("%*s ", width, "-");
}

/* The header stands again wherever rows of another kind begin. */
static void
table_print(json_t *row)
{
	static char last[HEADER_MAX];
	char header[HEADER_MAX] = "";
	const char *key;
	json_t *value;
	size_t used = 0;

	json_object_del(
		row, "bench"); /* one command, one bench: only needed where lines are collected */
	json_object_foreach(row, key, value)
	{
		if (used < sizeof(header))
			used += (size_t)snprintf(header + used, sizeof(header) - used,
				json_is_number(value) ? "%*s " : "%-*s ", column_width(key), key);
	}
	if (strcmp(header, last) != 0)
		printf("%s%s\n", last[0] ? "\n" : "", header);
	memcpy(last, header, sizeof(last));
	json_object_foreach(row, key, value) cell_print(key, value);
	printf("\n");
}

void
bench_emit(const struct bench_opts *opts, json_t *row)
{
	progress_clear();
	if (row == NULL) {
		fprintf(stderr, "sluice-bench: no memory for a result\n");
		exit(1);
	}
	if (opts->json) {
		json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		printf("\n");
	} else {
		table_print(row);
	}
	fflush(stdout);
	json_decref(row);
}
