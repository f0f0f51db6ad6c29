/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "app.h"

uint64_t
app_huge_free_mb(void)
{
	uint64_t most = 0;
	glob_t g;

	if (glob("/sys/kernel/mm/hugepages/hugepages-*kB", GLOB_ONLYDIR, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		char path[256];
		unsigned long long pages = 0;
		unsigned long long kb = 0;
		FILE *f;

		snprintf(path, sizeof(path), "%s/free_hugepages", g.gl_pathv[i]);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%llu", &pages) == 1 &&
			sscanf(strrchr(g.gl_pathv[i], '-') + 1, "%llu", &kb) == 1)
			most = RTE_MAX(most, (uint64_t)(pages * kb >> 10));
		fclose(f);
	}
	globfree(&g);
	return most;
}
