/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef CONF_HELP_H
#define CONF_HELP_H

/* Reading a text as the configuration file, and what is said about it. */
#include <string.h>

#include "bad_files.h"
#include "conf.h"
#include "sl_test.h"

static struct conf conf, other;
static char said[65536];

/* Read a text; what was said about it is in `said`. The number of mistakes. */
static inline size_t
read_text(const char *text, size_t len, struct conf *c)
{
	struct mistakes *m = mistakes_create("t.conf");
	size_t n;

	REQUIRE(m != NULL);
	conf_read_text(text, len, c, m);
	mistakes_join(m, said, sizeof(said));
	n = mistakes_count(m);
	mistakes_free(m);
	return n;
}

static inline size_t
read_string(const char *text, struct conf *c)
{
	return read_text(text, strlen(text), c);
}

static inline void
check_said(const char *name, const char *want)
{
	if (strcmp(said, want) == 0)
		return;
	test_bad++;
	fprintf(stderr, "%s: said:\n%swanted:\n%s", name, said, want);
}

/* Of each file, what is to be said. */
static inline void
check_files(const struct bad_file *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CHECK(read_string(b[i].text, &conf) > 0);
		check_said(b[i].name, b[i].said);
	}
}

#endif
