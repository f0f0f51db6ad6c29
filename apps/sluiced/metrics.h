/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_METRICS_H
#define SLUICED_METRICS_H

/**
 * @file
 * The daemon's counters as families of metrics, and where scrapers get them.
 *
 * A module that has something to count has a table of families, ended by a row without a name, and
 * a line in metrics.c that names the table. A family's collect writes all samples of it, so each
 * family is written in one piece. Names begin with "sluice_"; counters' end with what they count.
 *
 * A scrape takes the daemon's lock while the text is made, never while it is sent.
 */

#include <rte_ethdev.h>

#include "daemon.h"
#include "openmetrics.h"

/** What the families of one scrape share. */
struct metrics_scrape {
	struct daemon *d; /**< running, and locked */
	struct openmetrics *out;
	struct rte_eth_stats port[CONF_PORTS_MAX]; /**< read once */
};

struct metrics_family {
	const char *name;
	enum openmetrics_type type;
	const char *unit; /**< the last word of the name, or NULL */
	const char *help;
	/** Write the samples: openmetrics_u64(s->out, ...). Caller: a control thread. */
	void (*collect)(struct metrics_scrape *s, const struct metrics_family *f);
	size_t at; /**< for collect: which member, of what it says */
};

/* Tables of families. */
extern const struct metrics_family metrics_daemon_families[];	 /* metrics_daemon.c */
extern const struct metrics_family metrics_audit_families[];	 /* likewise */
extern const struct metrics_family metrics_port_families[];	 /* metrics_port.c */
extern const struct metrics_family metrics_lcore_families[];	 /* likewise */
extern const struct metrics_family metrics_service_families[];	 /* metrics_service.c */
extern const struct metrics_family metrics_socket_families[];	 /* likewise */
extern const struct metrics_family metrics_forward_families[];	 /* metrics_forward.c */
extern const struct metrics_family metrics_bridge_families[];	 /* metrics_switch.c */
extern const struct metrics_family metrics_mirror_families[];	 /* likewise */
extern const struct metrics_family metrics_exception_families[]; /* likewise */
extern const struct metrics_family metrics_table_families[];	 /* metrics_table.c */

/** A sample with one label. */
void metrics_sample(struct metrics_scrape *s, const char *label, const char *text, uint64_t value);

/** With two. */
void metrics_sample2(struct metrics_scrape *s, const char *label, const char *text,
	const char *label2, const char *text2, uint64_t value);

/**
 * Make the text of all families.
 *
 * @param len   its length
 * @return      to be freed with free(); NULL when the daemon does not run, or there is no memory
 * Caller: a control thread; takes the daemon's lock.
 */
char *metrics_text(struct daemon *d, size_t *len);

struct metrics_server;

/**
 * Serve the text over HTTP, from a thread of its own, where d->conf.metrics says.
 *
 * @param out   NULL when nothing is configured
 * @return      0; -errno of what failed, with a sentence in why
 * Caller: main thread.
 */
int metrics_serve(
	struct daemon *d, struct metrics_server **out, char *why, size_t size) SL_MUST_CHECK;

/** End it; NULL is allowed. Caller: main thread, without the daemon's lock. */
void metrics_server_close(struct metrics_server *s);

#endif
