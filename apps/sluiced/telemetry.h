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

/** An endpoint. The texts have a size, so that the compiler refuses what telemetry would at the
 * start. */
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

#define TELEMETRY_MAC_SIZE 18

/** "02:00:00:00:00:01", as ip(8) has it, so that one finds in the other's output. Returns text. */
const char *telemetry_mac(const uint8_t *mac, char *text);

/** A name with a number. */
void telemetry_u64(struct rte_tel_data *t, const char *name, uint64_t n);

/** Register the endpoint of occupancy_telemetry.c. Caller: main thread, once. */
bool occupancy_telemetry_open(void);
/** Endpoints of modules, each in its file: NAME_telemetry.c. */
bool routes_telemetry_open(void);
bool kinds_telemetry_open(void);

/** A kind of things that have names: an endpoint with the names, and one that a name asks. */
struct telemetry_kind {
	struct telemetry_endpoint list, one; /**< called: telemetry_on_list, telemetry_on_one */
	/** Name of the ith, into room unless it is kept somewhere; NULL: there are not so many. */
	const char *(*name)(const struct daemon *d, uint16_t i, char *room, size_t size);
	/** The answer about the ith. */
	void (*fill)(const struct daemon *d, uint16_t i, struct rte_tel_data *t);
};

/** Answer for any kind, by the endpoint that is asked (kinds_telemetry.c). */
int telemetry_on_list(const char *cmd, const char *param, struct rte_tel_data *t);
int telemetry_on_one(const char *cmd, const char *param, struct rte_tel_data *t);

extern const struct telemetry_kind port_kind, service_kind, socket_kind, lcore_kind;
extern const struct telemetry_kind bridge_kind;	   /* bridge_telemetry.c */
extern const struct telemetry_kind exception_kind; /* exception_telemetry.c */

/**
 * Part of a list that may be longer than an answer: objects "entry_00", ... and "next", the number
 * or place that the next page begins at, 0 at the end.
 */
struct telemetry_page {
	const struct daemon *d;
	struct rte_tel_data *t;
	uint64_t first; /**< as the parameter says */
	uint32_t n;	/**< entries so far */
};
#define TELEMETRY_PAGE 32u

/** Begin, with the text of a number or NULL for 0; false when it is none. */
bool telemetry_page_begin(
	struct telemetry_page *p, const struct daemon *d, const char *from, struct rte_tel_data *t);
/** An object for the next entry, begun; NULL: the page is full, or no memory. */
struct rte_tel_data *telemetry_page_entry(const struct telemetry_page *p);
/** It has all members. */
void telemetry_page_add(struct telemetry_page *p, struct rte_tel_data *one);
/** The page is over. total: how many there are in all. */
void telemetry_page_end(struct telemetry_page *p, uint64_t next, uint64_t total);

/** What exception paths lost, into an object. */
void exception_drops(const struct daemon *d, struct rte_tel_data *t);
/** What became of bridges' frames, drops alone or all, into an object. */
void bridge_outcomes(const struct daemon *d, bool drops, struct rte_tel_data *t);

#endif
