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
 *   refused      the reload was, or would be, refused
 *   no_backend   no load balancer has a back end of that name
 *   undrained    somebody took back the drain that was waited for
 *   busy         somebody else asks for the same at the same time, there is a trace already, or the
 *                daemon has as many clients as it serves
 *   failed       the daemon could not do it
 *   unbalanced   the audit found a difference (status 1)
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CTL_PROTOCOL 1
#define CTL_EXIT_UNBALANCED 1
#define CTL_EXIT_DIFFERS 1
#define CTL_EXIT_FAILED 2
/** Longest answer taken; telemetry itself sends 16 KiB at most. */
#define CTL_ANSWER_MAX 65536
/** Telemetry takes no longer question. */
#define CTL_QUESTION_MAX 1024

/** Set once, by the options. */
extern bool ctl_json;

/** Called once, before a failure is told; NULL for nothing. */
extern void (*ctl_before_fail)(void);

/** Print the failure in the way that was asked for, and end. */
void ctl_fail(const char *code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/** Write what was printed; if that cannot be done, a full disk say, tell so and end. */
void ctl_flush(void);

/** A command. */
struct ctl_command {
	const char *name;
	const char *args; /**< as --help shows them: "FILE", "NAME [--wait]"; "" for none */
	const char *help;
	/**
	 * Do it. getopt_long may be used on argc and argv after optind is set to 0.
	 *
	 * @param fd     connected to the daemon
	 * @param argv   the command's name and what follows it
	 * @return       exit status
	 */
	int (*run)(int fd, int argc, char **argv);
};

/** Groups of commands, each a file cmd_GROUP.c; the last one has no name. */
extern const struct ctl_command ctl_show_commands[];
extern const struct ctl_command ctl_net_commands[];
extern const struct ctl_command ctl_backend_commands[];
extern const struct ctl_command ctl_bridge_commands[];
extern const struct ctl_command ctl_daemon_commands[];
extern const struct ctl_command ctl_diff_commands[];
extern const struct ctl_command ctl_follow_commands[];
extern const struct ctl_command ctl_top_commands[];

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

/* ---- cmd_show.c ---- */

struct ctl_column {
	const char *title;
	const char *key;
	bool right; /**< numbers */
};

/** Print a value as JSON, on one line. */
void ctl_print(const json_t *value);

/**
 * Ask for a list of names, and for what belongs to each.
 *
 * @param list   endpoint that is answered by an array of names
 * @param one    endpoint that takes such a name, and is answered by an object
 * @return       array of the objects, to be released by the caller; one that has gone in between is
 * left out
 */
json_t *ctl_collect(int fd, const char *list, const char *one);

/**
 * Ask for a list that comes in pages.
 *
 * @param of   what the list belongs to; NULL for nothing
 * @return     array of its objects, to be released by the caller; NULL: `of` is not there
 */
json_t *ctl_collect_pages(int fd, const char *endpoint, const char *of);

/** Print an array of objects as a table, or as JSON, and release it. Returns the exit status. */
int ctl_print_rows(json_t *rows, const struct ctl_column *columns);

/** What ctl_collect finds, printed. Returns the exit status. */
int ctl_print_list(int fd, const char *list, const char *one, const struct ctl_column *columns);

/* ---- table.c ---- */

/** A table of an array of objects; columns end with one without title. */
void ctl_table(const json_t *rows, const struct ctl_column *columns);

/** Names and numbers of an object, one a line; zeros only if wanted. */
void ctl_pairs(const json_t *object, bool zeros);

#endif
