/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_MISTAKES_H
#define SLUICED_MISTAKES_H

/**
 * @file
 * The mistakes of a configuration file: all of them, in the order of the file's lines.
 *
 * A mistake reads "FILE:LINE: [SECTION] KEY = VALUE: what is wrong; what to do.", and without the
 * parts that it does not concern.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Kept at most; further ones are counted. */
#define MISTAKES_MAX 200
#define MISTAKE_LEN 512

struct mistakes;

/**
 * @param file   name of the file for messages, copied
 * @return       NULL when there is no memory
 */
struct mistakes *mistakes_create(const char *file);
void mistakes_free(struct mistakes *m);

/** Add one. Line 0: it concerns the whole file. */
void mistake(struct mistakes *m, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** How many, those that were not kept included. */
size_t mistakes_count(const struct mistakes *m);

/** The text of one, without a newline; in the order of lines. i below what mistakes_kept returns.
 */
const char *mistakes_text(struct mistakes *m, size_t i);
size_t mistakes_kept(const struct mistakes *m);

/**
 * All that fits as lines of text, and a last line that says how many more there are.
 *
 * @param size   at least 64
 * @return       length of the text
 */
size_t mistakes_join(struct mistakes *m, char *text, size_t size);

#endif
