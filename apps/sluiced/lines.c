/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

/* Part of a line. */
struct span {
	const char *at;
	size_t len;
};

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct span
strip(struct span s)
{
	while (s.len > 0 && is_space(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && is_space(s.at[s.len - 1]))
		s.len--;
	return s;
}

static struct span
without_comment(struct span s)
{
	const char *hash = memchr(s.at, '#', s.len);

	if (hash != NULL)
		s.len = (size_t)(hash - s.at);
	return strip(s);
}

/* Does a backslash begin \xNN, an octet? */
static bool
is_escape(const char *at, size_t len)
{
	static const char hex[] = "0123456789abcdefABCDEF";

	return len >= 4 && at[1] == 'x' && memchr(hex, at[2], sizeof(hex) - 1) != NULL &&
	       memchr(hex, at[3], sizeof(hex) - 1) != NULL;
}

/* The first byte that is no text, or -1. */
static int
odd_byte(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];

		if ((c < ' ' && c != '\t') || c >= 0x7f)
			return c;
		if (c == '\\' && !is_escape(s.at + i, s.len - i))
			return c;
	}
	return -1;
}

static void
copy(struct lines *l, struct span s)
{
	memcpy(l->clean + l->clean_len, s.at, s.len);
	l->clean_len += s.len;
}

/* The name of a section line, or why it has none: then the mistake is told, and false returned. */
static bool
section_name(struct span s, uint32_t line, struct mistakes *m, struct span *name)
{
	const char *end = memchr(s.at, ']', s.len);
	struct span rest;

	if (end == NULL) {
		mistake(m, line, "%.*s: lacks the \"]\" at its end.",
			(int)(s.len > 60 ? 60 : s.len), s.at);
		return false;
	}
	*name = strip((struct span){s.at + 1, (size_t)(end - s.at) - 1});
	rest = strip((struct span){end + 1, s.len - (size_t)(end - s.at) - 1});
	if (name->len > LINES_NAME_MAX)
		mistake(m, line, "[%.*s...]: the name is longer than %d characters; shorten it.",
			20, name->at, LINES_NAME_MAX);
	else if (name->len == 0)
		mistake(m, line, "[]: a section has a name; [sluiced], for instance.");
	else if (rest.len != 0)
		mistake(m, line,
			"[%.*s]: \"%.*s\" follows the \"]\"; a key is on a line of its own.",
			(int)name->len, name->at, (int)(rest.len > 60 ? 60 : rest.len), rest.at);
	else
		return true;
	return false;
}

static void
take_section(struct lines *l, struct span s, uint32_t line, struct mistakes *m)
{
	struct span name;
	bool good = section_name(s, line, m, &name);

	if (l->nsections == LINES_SECTIONS_MAX) {
		if (good)
			mistake(m, line, "[%.*s]: more than %d sections; leave some out.",
				(int)name.len, name.at, LINES_SECTIONS_MAX);
		return;
	}
	/* The keys of one that has no name must not end up in the section before it. */
	if (!good)
		name = (struct span){"?", 1};
	l->section[l->nsections++] =
		(struct lines_section){.line = good ? line : 0, .first = l->nkeys};
	copy(l, (struct span){"[", 1});
	copy(l, name);
	copy(l, (struct span){"]", 1});
}

static void
take_key(struct lines *l, struct span s, uint32_t line, struct mistakes *m)
{
	const char *sign = memchr(s.at, '=', s.len);
	struct span key, value;

	if (sign == NULL) {
		mistake(m, line,
			"\"%.*s\" is neither [SECTION] nor KEY = VALUE; comments begin with #.",
			(int)(s.len > 60 ? 60 : s.len), s.at);
		return;
	}
	key = strip((struct span){s.at, (size_t)(sign - s.at)});
	value = strip((struct span){sign + 1, s.len - (size_t)(sign - s.at) - 1});
	if (key.len == 0)
		mistake(m, line, "= %.*s: lacks the key before the \"=\".",
			(int)(value.len > 60 ? 60 : value.len), value.at);
	else if (key.len > LINES_NAME_MAX)
		mistake(m, line, "%.*s...: the key is longer than %d characters; none is.", 20,
			key.at, LINES_NAME_MAX);
	else if (value.len == 0)
		mistake(m, line, "%.*s: has no value; give it one, or leave the line out.",
			(int)key.len, key.at);
	else if (value.len > LINES_VALUE_MAX)
		mistake(m, line, "%.*s: the value is longer than %d characters; shorten it.",
			(int)key.len, key.at, LINES_VALUE_MAX);
	else if (l->nsections == 0)
		mistake(m, line, "%.*s: stands before the first section; begin with [sluiced].",
			(int)key.len, key.at);
	else if (l->nkeys == LINES_KEYS_MAX)
		mistake(m, line, "%.*s: more than %d keys; leave some out.", (int)key.len, key.at,
			LINES_KEYS_MAX);
	else {
		l->key_line[l->nkeys++] = line;
		l->section[l->nsections - 1].keys++;
		copy(l, key);
		copy(l, (struct span){" = ", 3});
		copy(l, value);
	}
}

static void
take_line(struct lines *l, struct span s, uint32_t line, struct mistakes *m)
{
	int odd;

	s = without_comment(s);
	if (s.len == 0)
		return;
	odd = odd_byte(s);
	if (odd == '\\')
		mistake(m, line,
			"a backslash begins \\xNN, an octet, and nothing else; leave it out.");
	else if (odd >= 0)
		mistake(m, line, "the byte 0x%02x is no text outside of comments; leave it out.",
			odd);
	else if (s.at[0] == '[')
		take_section(l, s, line, m);
	else
		take_key(l, s, line, m);
}

struct lines *
lines_index(const char *text, size_t len, struct mistakes *m)
{
	struct lines *l;
	uint32_t line = 0;

	if (len > LINES_FILE_MAX) {
		mistake(m, 0, "is longer than %u bytes; is it the right file?", LINES_FILE_MAX);
		return NULL;
	}
	/* A line grows by two blanks around its "=", or becomes "[?]". */
	l = malloc(sizeof(*l) + 3 * len + 4);
	if (l == NULL)
		return NULL;
	l->nsections = l->nkeys = 0;
	l->clean_len = 0;
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end != NULL ? (size_t)(end - text) : len;

		take_line(l, (struct span){text, n}, ++line, m);
		l->clean[l->clean_len++] = '\n';
		n += end != NULL;
		text += n;
		len -= n;
	}
	return l;
}
