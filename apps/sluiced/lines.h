/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_LINES_H
#define SLUICED_LINES_H

/**
 * @file
 * The line index of a configuration file.
 *
 * rte_cfgfile reads the file, but forgets line numbers, stops at the first line that it does not
 * understand, and passes over some that it does not understand either. So each line is first told
 * apart - blank, section, key, or a mistake - and its number kept; what rte_cfgfile is given then
 * is a clean copy, without comments, in which lines with mistakes are empty. The nth section of the
 * one is the nth of the other, and so are the keys of a section.
 */

#include "mistakes.h"

/** Longest that rte_cfgfile keeps. */
#define LINES_NAME_MAX 63
#define LINES_VALUE_MAX 255
#define LINES_FILE_MAX (1u << 20)
#define LINES_SECTIONS_MAX 512
#define LINES_KEYS_MAX 4096

struct lines_section {
	uint32_t line;	/**< 0: its line is a mistake; pass over it */
	uint32_t first; /**< its keys are key_line[first .. first + keys - 1] */
	uint32_t keys;
};

struct lines {
	uint32_t nsections;
	uint32_t nkeys;
	struct lines_section section[LINES_SECTIONS_MAX];
	uint32_t key_line[LINES_KEYS_MAX];
	size_t clean_len;
	char clean[]; /**< what rte_cfgfile is to read */
};

/**
 * Index a text.
 *
 * @param text   len bytes, any
 * @param m      takes a mistake for each line that is none of blank, comment, section and key
 * @return       to be freed with free(); NULL when there is no memory, or (with a mistake) the text
 * is too long
 */
struct lines *lines_index(const char *text, size_t len, struct mistakes *m);

#endif
