/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any bytes as the daemon's configuration: the line index and rte_cfgfile must agree on what is a section
 * and what a key, mistakes must be at lines that there are, and reading twice must say the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct conf conf;

/* A broken promise is a crash that the fuzzer sees. */
#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static void
check_index(const char *text, size_t size)
{
	struct mistakes *m = mistakes_create("f");
	struct lines *l = lines_index(text, size, m);
	uint32_t keys = 0, line = 0;

	MUST(m != NULL);
	if (l == NULL) {
		MUST(mistakes_count(m) == 1);
	} else {
		MUST(l->clean_len <= 3 * size + 4);
		for (uint32_t i = 0; i < l->nsections; i++) {
			MUST(l->section[i].first == keys);
			keys += l->section[i].keys;
		}
		MUST(keys == l->nkeys);
		for (uint32_t i = 0; i < keys; i++) {
			MUST(l->key_line[i] > line);
			line = l->key_line[i];
		}
	}
	free(l);
	mistakes_free(m);
}

/* The file's own words may be anywhere in a message but at its end. */
static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

static void
read_once(const char *text, size_t size, char *said, size_t said_size)
{
	struct mistakes *m = mistakes_create("f");
	unsigned long lines = 1;

	MUST(m != NULL);
	conf_read_text(text, size, &conf, m);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	for (size_t i = 0; i < mistakes_kept(m); i++) {
		unsigned int line = 0;

		sscanf(mistakes_text(m, i), "f:%u:", &line);
		MUST(line <= lines);
		MUST(!ends_with(mistakes_text(m, i), "cannot be read; please report it."));
	}
	mistakes_join(m, said, said_size);
	MUST(conf.nports <= CONF_PORTS_MAX && conf.nservices <= CONF_SERVICES_MAX);
	if (mistakes_count(m) == 0)
		MUST(conf.nports > 0 && conf.lcores.n > 0 && conf.port[0].queues > 0 &&
			conf.memory_mb >= conf_memory_needed_mb(&conf));
	mistakes_free(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char first[16384], second[16384];

	check_index((const char *)data, size);
	read_once((const char *)data, size, first, sizeof(first));
	read_once((const char *)data, size, second, sizeof(second));
	MUST(strcmp(first, second) == 0);
	return 0;
}
