/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Every outcome has a name of its own, and a row in the document named on the command line. */
#include <string.h>

#include "sl_outcome.h"
#include "sl_test.h"

static const char *path;
static char text[1 << 16];

static void
read_document(void)
{
	FILE *f = fopen(path, "r");
	size_t n;

	REQUIRE(f != NULL);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	REQUIRE(n > 0 && n < sizeof(text) - 1);
}

/* How many rows start with the name. */
static int
rows_of(const char *name)
{
	char start[64];
	int rows = 0;

	snprintf(start, sizeof(start), "\n| `%s` |", name);
	for (const char *p = text; (p = strstr(p, start)) != NULL; p++)
		rows++;
	return rows;
}

static void
one_row_each(void)
{
	int all = 0;

	for (int i = 0; i < SL_OUTCOME_COUNT; i++) {
		const char *name = sl_outcome_info((enum sl_outcome)i)->name;

		if (rows_of(name) != 1)
			fprintf(stderr, "%s: %d rows in %s\n", name, rows_of(name), path);
		CHECK_EQ(rows_of(name), 1);
	}
	/* And no row for what does not exist. */
	for (const char *p = text; (p = strstr(p, "\n| `")) != NULL; p++)
		all++;
	CHECK_EQ(all, SL_OUTCOME_COUNT);
}

static void
names_and_sentences(void)
{
	for (int i = 0; i < SL_OUTCOME_COUNT; i++) {
		const struct sl_outcome_info *info = sl_outcome_info((enum sl_outcome)i);

		REQUIRE(info->name != NULL && info->sentence != NULL);
		CHECK(strspn(info->name, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
			strlen(info->name));
		CHECK((i >= SL_OUTCOME_TX_FIRST) == (strncmp(info->name, "tx_", 3) == 0));
		for (int k = 0; k < i; k++)
			CHECK(strcmp(info->name, sl_outcome_info((enum sl_outcome)k)->name) != 0);
	}
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s outcomes.md\n", argv[0]);
		return 2;
	}
	path = argv[1];
	read_document();
	SL_TEST_RUN(one_row_each);
	SL_TEST_RUN(names_and_sentences);
	return test_end();
}
