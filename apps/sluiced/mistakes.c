/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

#define MORE_LEN 40

struct one {
	uint32_t line;
	uint32_t nth; /* keeps the order of those of one line */
	char text[MISTAKE_LEN];
};

struct mistakes {
	char *file;
	size_t kept;
	size_t count;
	bool sorted;
	struct one one[MISTAKES_MAX];
};

struct mistakes *
mistakes_create(const char *file)
{
	struct mistakes *m = calloc(1, sizeof(*m));

	if (m != NULL)
		m->file = strdup(file);
	if (m == NULL || m->file != NULL)
		return m;
	free(m);
	return NULL;
}

void
mistakes_free(struct mistakes *m)
{
	if (m != NULL)
		free(m->file);
	free(m);
}

void
mistake(struct mistakes *m, uint32_t line, const char *format, ...)
{
	struct one *one;
	va_list args;
	int at;

	m->count++;
	if (m->kept == MISTAKES_MAX)
		return;
	one = &m->one[m->kept];
	one->line = line;
	one->nth = (uint32_t)m->kept++;
	m->sorted = false;
	if (line != 0)
		at = snprintf(one->text, sizeof(one->text), "%s:%u: ", m->file, line);
	else
		at = snprintf(one->text, sizeof(one->text), "%s: ", m->file);
	if (at >= (int)sizeof(one->text))
		return;
	va_start(args, format);
	vsnprintf(one->text + at, sizeof(one->text) - (size_t)at, format, args);
	va_end(args);
}

size_t
mistakes_count(const struct mistakes *m)
{
	return m->count;
}

size_t
mistakes_kept(const struct mistakes *m)
{
	return m->kept;
}

static int
by_line(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->nth < y->nth ? -1 : 1;
}

const char *
mistakes_text(struct mistakes *m, size_t i)
{
	if (!m->sorted)
		qsort(m->one, m->kept, sizeof(m->one[0]), by_line);
	m->sorted = true;
	return i < m->kept ? m->one[i].text : "";
}

size_t
mistakes_join(struct mistakes *m, char *text, size_t size)
{
	size_t at = 0, shown = 0;

	text[0] = '\0';
	for (; shown < m->kept; shown++) {
		const char *one = mistakes_text(m, shown);
		size_t len = strlen(one) + 1;

		if (at + len + MORE_LEN > size)
			break;
		memcpy(text + at, one, len - 1);
		text[at + len - 1] = '\n';
		at += len;
		text[at] = '\0';
	}
	if (shown < m->count)
		at += (size_t)snprintf(text + at, size - at, "and %zu more\n", m->count - shown);
	return at;
}
