/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A program that links EAL alone opens the plugin the way EAL does: at once, without making its
 * symbols global. What the plugin does not name itself is missing then. */
#include <dlfcn.h>
#include <stdio.h>

#include <rte_eal.h>

int
main(int argc, char **argv)
{
	void *handle;

	if (argc != 2) {
		fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
		return 2;
	}
	/* Keeps EAL linked although nothing of it is run. */
	if (rte_eal_process_type() == RTE_PROC_INVALID)
		fprintf(stderr, "no process type yet\n");
	handle = dlopen(argv[1], RTLD_NOW);
	if (handle == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		printf("0 passed, 1 failed, 0 skipped\n");
		return 1;
	}
	printf("1 passed, 0 failed, 0 skipped\n");
	return 0;
}
