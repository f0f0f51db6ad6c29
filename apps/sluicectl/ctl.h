/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef CTL_H
#define CTL_H

/**
 * @file
 * sluicectl asks a running sluiced over DPDK's telemetry socket and prints tables or JSON.
 *
 * Every failure has a code that does not change, printed as {"error": CODE, "message": ...} with
 * --json, and ends the program with status 2:
 *   usage        the command line
 *   no_daemon    nobody listens there
 *   permission   the socket may not be opened
 *   protocol     what listens is no sluiced, or one of another protocol
 *   timeout      no answer in time
 *   bad_answer   an answer that is not what it should be
 *   refused      the reload was refused
 *   unbalanced   the audit found a difference (status 1)
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CTL_PROTOCOL 1
#define CTL_EXIT_UNBALANCED 1
#define CTL_EXIT_FAILED 2
/** Longest answer taken; telemetry itself sends 16 KiB at most. */
#define CTL_ANSWER_MAX 65536

/** Set once, by the options. */
extern bool ctl_json;

/** Print the failure in the way that was asked for, and end. */
void ctl_fail(const char *code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* ---- link.c ---- */

/** Path of the socket of a daemon of that name ("" for none). */
void ctl_path(const char *name, char *path, size_t size);

/** Connect, and make sure that it is a sluiced of our protocol. The descriptor. */
int ctl_connect(const char *path);

/**
 * Ask: "/sluice/ports", or with a parameter behind a comma.
 *
 * @return   the answer's value, to be released by the caller; JSON null when the daemon has no
 * answer
 */
json_t *ctl_ask(int fd, const char *endpoint, const char *param);

/* ---- table.c ---- */

struct ctl_column {
	const char *title;
	const char *key;
	bool right; /**< numbers */
};

/** A table of an array of objects; columns end with one without title. */
void ctl_table(const json_t *rows, const struct ctl_column *columns);

/** Names and numbers of an object, one a line; zeros only if wanted. */
void ctl_pairs(const json_t *object, bool zeros);

#endif
