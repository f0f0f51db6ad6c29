/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_TELEMETRY_H
#define SLUICED_TELEMETRY_H

/**
 * @file
 * What modules that have endpoints below /sluice/ share.
 *
 * A module's endpoints are in a file of their own, NAME_telemetry.c, with a function that adds them
 * by telemetry_add; telemetry_open calls it. Lists are arrays of names; what belongs to a name is
 * asked for with the name behind a comma, so that no answer outgrows what telemetry sends.
 */

#include <rte_telemetry.h>

#include "daemon.h"

/** What telemetry takes of a path and of a help text, with their ends. */
#define TELEMETRY_CMD_LEN 56
#define TELEMETRY_HELP_LEN 128

/** An endpoint. The texts have a size, so that the compiler refuses what telemetry would at the start. */
struct telemetry_endpoint {
	char cmd[TELEMETRY_CMD_LEN];
	telemetry_cb call;
	char help[TELEMETRY_HELP_LEN];
};

/** Register endpoints; false when telemetry does not take one of them, which is told. Caller: main
 * thread, once. */
bool telemetry_add(const struct telemetry_endpoint *endpoints, size_t n);

/* What the modules' files have for telemetry_open. */
bool backends_telemetry_open(void);
bool diff_telemetry_open(void);
bool explain_telemetry_open(void);

/**
 * An answer begins: the daemon, locked, or NULL when it does not run (then answer -EAGAIN).
 * Caller: a telemetry thread.
 */
struct daemon *telemetry_enter(void);

/** It ends: unlock. */
void telemetry_leave(struct daemon *d);

/** A name with a text in an object; what is too long for telemetry is cut off. */
void telemetry_text(struct rte_tel_data *t, const char *name, const char *text);

/** A name with a number. */
void telemetry_u64(struct rte_tel_data *t, const char *name, uint64_t n);

/** Register the endpoint of occupancy_telemetry.c. Caller: main thread, once. */
bool occupancy_telemetry_open(void);
/** Endpoints of modules, each in its file: NAME_telemetry.c. */
bool routes_telemetry_open(void);
bool exception_telemetry_open(void);
/** What exception paths lost, into an object. */
void exception_drops(const struct daemon *d, struct rte_tel_data *t);

#endif
