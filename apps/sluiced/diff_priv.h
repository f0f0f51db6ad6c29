/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_DIFF_PRIV_H
#define SLUICED_DIFF_PRIV_H

/**
 * @file
 * Inside a comparison: rows, and what the two configurations alone say (diff_conf.c). What is known
 * of slots and flows comes from diff.c.
 *
 * Every key that a reload applies has a word here, every other one in conf_restart.c; test_diff.c
 * walks the tables of keys.
 */

#include "diff.h"

/**
 * Begin a row.
 *
 * @return   the row, good until there is another one; NULL without memory
 */
struct diff_row *diff_add(struct diff *diff, const char *what, const char *change,
	const char *service, const char *name);

/** What differs between the settings, routes or bridges that both, or one, have: 0; -ENOMEM. */
int diff_settings(const struct conf *now, const struct conf *next, struct diff *diff) SL_MUST_CHECK;
int diff_routes(const struct conf *now, const struct conf *next, struct diff *diff) SL_MUST_CHECK;
int diff_bridges(const struct conf *now, const struct conf *next, struct diff *diff) SL_MUST_CHECK;

/** Which keys of a service differ, into its row. */
void diff_service_keys(
	struct diff_row *r, const struct conf_service *a, const struct conf_service *b);

/** Which keys of a back end differ. */
void diff_backend_keys(
	struct diff_row *r, const struct conf_backend *a, const struct conf_backend *b);

#endif
