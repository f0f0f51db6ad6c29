/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openmetrics.h"

#define FIRST_SIZE 16384u
#define NANO UINT64_C(1000000000)

static const char *const types[] = {"counter", "gauge", "info"};
static const char *const suffixes[] = {"_total", "", "_info"};

/* Room for that many bytes more, and a terminating zero. */
static bool
room(struct openmetrics *o, size_t bytes)
{
	size_t size = o->size != 0 ? o->size : FIRST_SIZE;
	char *text;

	if (o->bad || bytes >= OPENMETRICS_MAX - o->len) {
		o->bad = true;
		return false;
	}
	while (size - o->len <= bytes)
		size *= 2;
	if (size == o->size)
		return true;
	text = realloc(o->text, size);
	if (text == NULL) {
		o->bad = true;
		return false;
	}
	o->text = text;
	o->size = size;
	return true;
}

static void
put(struct openmetrics *o, const char *text)
{
	size_t len = strlen(text);

	if (!room(o, len))
		return;
	memcpy(o->text + o->len, text, len);
	o->len += len;
}

static void __attribute__((format(printf, 2, 3)))
put_number(struct openmetrics *o, const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(o, text);
}

/* One character, as a text of the format has it. */
static const char *
escaped(char c, char *one)
{
	switch (c) {
	case '\\':
		return "\\\\";
	case '"':
		return "\\\"";
	case '\n':
		return "\\n";
	default:
		/* A byte that is no UTF-8 would cost the whole scrape. */
		one[0] = (unsigned char)c < 0x80 ? c : '?';
		return one;
	}
}

static void
put_escaped(struct openmetrics *o, const char *text)
{
	char one[2] = {0};

	for (; *text != '\0'; text++)
		put(o, escaped(*text, one));
}

static bool
ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* A name of letters, digits and underscores, that does not end as samples' names do. */
static bool
name_good(const char *name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	size_t len = strlen(name);

	if (len == 0 || (name[0] >= '0' && name[0] <= '9') || strspn(name, good) != len)
		return false;
	return !ends_with(name, "_total") && !ends_with(name, "_info");
}

static bool
unit_good(const char *name, const char *unit, enum openmetrics_type type)
{
	size_t len = strlen(name), unit_len = unit != NULL ? strlen(unit) : 0;

	if (unit == NULL)
		return true;
	return type != OPENMETRICS_INFO && len > unit_len + 1 && ends_with(name, unit) &&
	       name[len - unit_len - 1] == '_';
}

static bool
is_new(const struct openmetrics *o, const char *name)
{
	for (uint16_t i = 0; i < o->families; i++)
		if (strcmp(o->family[i], name) == 0)
			return false;
	return o->families < OPENMETRICS_FAMILIES_MAX;
}

void
openmetrics_family(struct openmetrics *o, const char *name, enum openmetrics_type type,
	const char *unit, const char *help)
{
	if (!name_good(name) || !unit_good(name, unit, type) || !is_new(o, name)) {
		o->bad = true;
		return;
	}
	o->family[o->families++] = name;
	o->type = type;
	put(o, "# TYPE ");
	put(o, name);
	put(o, " ");
	put(o, types[type]);
	if (unit != NULL) {
		put(o, "\n# UNIT ");
		put(o, name);
		put(o, " ");
		put(o, unit);
	}
	put(o, "\n# HELP ");
	put(o, name);
	put(o, " ");
	put_escaped(o, help);
	put(o, "\n");
}

/* Everything of a sample but its value. */
static void
put_sample(struct openmetrics *o, const struct openmetrics_label *labels, size_t n)
{
	if (o->families == 0) {
		o->bad = true;
		return;
	}
	put(o, o->family[o->families - 1]);
	put(o, suffixes[o->type]);
	for (size_t i = 0; i < n; i++) {
		put(o, i == 0 ? "{" : ",");
		put(o, labels[i].name);
		put(o, "=\"");
		put_escaped(o, labels[i].value);
		put(o, "\"");
	}
	put(o, n > 0 ? "} " : " ");
}

void
openmetrics_u64(
	struct openmetrics *o, const struct openmetrics_label *labels, size_t n, uint64_t value)
{
	put_sample(o, labels, n);
	put_number(o, "%" PRIu64 "\n", value);
}

void
openmetrics_ratio(struct openmetrics *o, const struct openmetrics_label *labels, size_t n,
	uint64_t parts, uint64_t per)
{
	__extension__ unsigned __int128 rest = parts % per;

	put_sample(o, labels, n);
	put_number(o, "%" PRIu64 ".%09" PRIu64 "\n", parts / per, (uint64_t)(rest * NANO / per));
}

char *
openmetrics_end(struct openmetrics *o, size_t *len)
{
	put(o, "# EOF\n");
	if (o->bad) {
		free(o->text);
		o->text = NULL;
		return NULL;
	}
	o->text[o->len] = '\0';
	*len = o->len;
	return o->text;
}
