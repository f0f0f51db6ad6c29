/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_pdump.h>

#include "../common/app.h"
#include "secondary.h"
#include "sl_errno.h"

void
secondary_open(const struct conf *conf)
{
	if (conf->secondary && rte_pdump_init() != 0)
		app_fail("secondary = yes: packets cannot be captured by others: %s.",
			sl_strerror(sl_rte_error()));
}

/* Remove our files from one file system; nobody else's begin with our prefix. */
static void
remove_files(const struct conf *conf, const char *folder)
{
	char pattern[PATH_MAX];
	glob_t g;

	/* A name has no character that a pattern takes for more than itself. */
	snprintf(pattern, sizeof(pattern), "%s/sluiced%s%smap_*", folder,
		conf->name[0] != '\0' ? "-" : "", conf->name);
	if (glob(pattern, 0, NULL, &g) != 0)
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		unlink(g.gl_pathv[i]);
	globfree(&g);
}

void
secondary_close(const struct conf *conf)
{
	FILE *f = conf->secondary ? setmntent("/proc/self/mounts", "r") : NULL;
	const struct mntent *e;

	if (f == NULL)
		return;
	(void)rte_pdump_uninit();
	while ((e = getmntent(f)) != NULL)
		if (strcmp(e->mnt_type, "hugetlbfs") == 0)
			remove_files(conf, e->mnt_dir);
	endmntent(f);
}
