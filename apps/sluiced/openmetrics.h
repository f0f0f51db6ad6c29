/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_OPENMETRICS_H
#define SLUICED_OPENMETRICS_H

/**
 * @file
 * Writes text in the OpenMetrics format, version 1.0.
 *
 * A *family* is a metric with its type, unit and help; a *sample* is one value of it, told apart
 * from the others by labels. Samples belong to the family that was begun last, so families cannot
 * interleave; a family that comes a second time, or a name that the format does not allow, makes
 * the text bad, and openmetrics_end says so. Names, units and labels' names are the caller's
 * constants; help and labels' values may be any text and are escaped.
 *
 * One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest text: load balancers with all the back ends that a file can give them fit. */
#define OPENMETRICS_MAX (16u << 20)
#define OPENMETRICS_FAMILIES_MAX 256

/** What scrapers are told that the text is. */
#define OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum openmetrics_type {
	OPENMETRICS_COUNTER, /**< only ever grows; samples are NAME_total */
	OPENMETRICS_GAUGE,
	OPENMETRICS_INFO, /**< constant 1 whose labels say something; samples are NAME_info */
};

struct openmetrics {
	char *text; /**< NULL until something is written */
	size_t len;
	size_t size;
	bool bad; /**< no memory, too long, or against the format */
	enum openmetrics_type type;
	uint16_t families;
	const char *family[OPENMETRICS_FAMILIES_MAX]; /**< names so far, the callers' */
};

struct openmetrics_label {
	const char *name;
	const char *value; /**< any bytes; those that are not ASCII become "?" */
};

/**
 * Begin a family.
 *
 * @param name   without _total or _info; kept until openmetrics_end
 * @param unit   the name's last word, "seconds" or "bytes"; NULL for none
 * @param help   one sentence
 */
void openmetrics_family(struct openmetrics *o, const char *name, enum openmetrics_type type,
	const char *unit, const char *help);

/** A sample of the family; n labels, no name twice. */
void openmetrics_u64(
	struct openmetrics *o, const struct openmetrics_label *labels, size_t n, uint64_t value);

/** The same with a fraction: parts / per, exact to nine digits behind the point. per at least 1. */
void openmetrics_ratio(struct openmetrics *o, const struct openmetrics_label *labels, size_t n,
	uint64_t parts, uint64_t per);

/**
 * End the text.
 *
 * @param len   its length
 * @return      the text, to be freed with free(); NULL if it is bad, then nothing is to be freed
 */
char *openmetrics_end(struct openmetrics *o, size_t *len);

#endif
