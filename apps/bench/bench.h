/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * What the subcommands of sluice-bench share. A subcommand is one file: it defines a struct
 * bench_command and gets one line in the table in main.c.
 *
 * A *row* is one result, a JSON object with at least the members bench, case, value and unit, in
 * this order; it is printed as one line of JSON or one line of a table. A *slice* is a short
 * measurement of one side; the sides of a comparison run in turn, slice by slice, so that a
 * machine that gets slower or faster meanwhile does so for all of them.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct bench_opts {
	bool json;
	bool flood;	    /**< producers never back off (udpq) */
	double seconds;	    /**< budget for the whole run */
	const char *filter; /**< run only cases whose name contains this; NULL for all */
};

struct bench_command {
	const char *name;
	const char *what; /**< one line for the help text */
	/** @return 0; -errno after a sentence on standard error; -EPROTO when a check failed */
	int (*run)(const struct bench_opts *opts);
};

extern const struct bench_command bench_bind;
extern const struct bench_command bench_pending;
extern const struct bench_command bench_txring;
extern const struct bench_command bench_frag;
extern const struct bench_command bench_tap;
extern const struct bench_command bench_udpq;
extern const struct bench_command bench_wire;

/* eal.c */

/**
 * Start EAL: with the arguments given, else with one lcore for each CPU that we may run on (8 at
 * most), hugepages if there are free ones, no PCI devices.
 *
 * @param argc   arguments up to and without "--"; 1 means none were given
 * @return       0; below 0 after a sentence on standard error
 */
int bench_eal_start(int argc, char **argv);

/** How EAL's memory is backed, for the rows: "hugepages" or "4k pages". */
const char *bench_eal_memory(void);

/* report.c */

/** Print a row and free it. NULL (no memory) ends the program: no row may be lost silently. */
void bench_emit(const struct bench_opts *opts, json_t *row);

/** Show on a terminal what runs now; prints nothing into a pipe. */
void bench_progress(const char *what, unsigned int done, unsigned int of);

/** Has the user asked us to stop (SIGINT, SIGTERM)? The rows so far are printed. */
bool bench_stopped(void);

/** Make SIGINT and SIGTERM set what bench_stopped reads. */
void bench_catch_signals(void);

/** Does the case take part, given --filter? */
bool bench_wanted(const struct bench_opts *opts, const char *name);
/** Has bench_wanted said no of every case? */
bool bench_none_wanted(void);

/* slices.c */

#define BENCH_SLICES_MAX 256

/** What one side did, slice by slice. */
struct bench_series {
	unsigned int n;
	double v[BENCH_SLICES_MAX];
};

/** Slices of each side, and the length of one in seconds, for a case that may take that long. */
struct bench_plan {
	unsigned int slices;
	double seconds;
};

struct bench_plan bench_plan(double seconds, unsigned int sides);

struct bench_spread {
	double median;
	double min;
	double max;
};

/** Median and range of a series; all 0 if it is empty. */
struct bench_spread bench_spread(const struct bench_series *s);

/** Median and range of a[i] / b[i]: slices that ran next to each other are compared. */
struct bench_spread bench_ratio(const struct bench_series *a, const struct bench_series *b);

#endif
