/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "app.h"

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
app_runtime_dir_remove(void)
{
	const char *dir = rte_eal_get_runtime_dir();

	/* The name ends in our process id, or sluiced holds it with a lock: nobody else's files are in it. */
	if (dir != NULL &&
		(strstr(dir, "/sluice-") != NULL || strstr(dir, "/sluiced") != NULL))
		nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
