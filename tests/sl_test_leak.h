/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TEST_LEAK_H
#define SL_TEST_LEAK_H

/**
 * @file
 * Counts of what this process holds, to be equal before and after.
 */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "sl_test.h"

/** Open descriptors; the one that counting takes is among them, each time. */
static inline unsigned int
test_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	REQUIRE(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/** Mappings whose name contains `name`. */
static inline unsigned int
test_mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, name) != NULL;
	fclose(f);
	return n;
}

#endif
