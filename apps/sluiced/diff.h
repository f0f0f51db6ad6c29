/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_DIFF_H
#define SLUICED_DIFF_H

/**
 * @file
 * What a reload of another file would change, with nothing changed.
 *
 * *Slots moved* are those of a load balancer's Maglev table whose back end would be another one, as
 * things are now (who is down, or drained, is so in both tables): new flows are hashed by them.
 * *Flows moved* are those that are known now and could not stay with their back end.
 */

#include "conf.h"

struct daemon;

/** Keys of a service with their values, or most of them. */
#define DIFF_DETAIL_LEN 760

struct diff_row {
	const char *what;   /**< "setting", "route", "bridge", "service" or "backend" */
	const char *change; /**< "added", "removed", "changed", or "remade": with new sockets or
				 tables, so that what waits, or is known of flows, is gone */
	char service[CONF_NAME_LEN]; /**< or "" */
	char name[CONF_NAME_LEN];
	char detail[DIFF_DETAIL_LEN]; /**< what of it: "weight 1 -> 2, udp-port 53 -> 54"; all of a
					 route that comes or goes. Ends in "..." if cut off */
	uint64_t slots;		      /**< of the table; of a back end: its slots afterwards */
	uint64_t slots_moved;
	uint64_t flows; /**< known now */
	uint64_t flows_moved;
};

struct diff {
	uint32_t n;
	uint32_t room;
	struct diff_row *row;
};

/**
 * Compare the configuration in force with another one.
 *
 * @param diff  zeroed, or of an earlier call; freed by diff_free
 * @return      0; -ENOMEM
 * Locked.
 */
int diff_make(const struct daemon *d, const struct conf *next, struct diff *diff) SL_MUST_CHECK;

void diff_free(struct diff *diff);

#endif
