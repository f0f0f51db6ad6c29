/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define COLUMNS_MAX 24
#define CELL_MAX 256

/* "echoed:12 echo_group:1", "198.18.0.2/24 2001:db8::2/64", a number or a text. */
static void
cell_text(const json_t *value, char *text, size_t size)
{
	size_t at = 0, i;
	json_t *item;
	const char *key;

	text[0] = '\0';
	if (json_is_string(value)) {
		snprintf(text, size, "%s", json_string_value(value));
	} else if (json_is_integer(value)) {
		snprintf(text, size, "%lld", (long long)json_integer_value(value));
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, item)
		{
			if (at < size)
				at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "",
					json_is_string(item) ? json_string_value(item) : "?");
		}
	} else if (json_is_object(value)) {
		/* The library's loop is not made for constants, and changes nothing. */
		json_object_foreach((json_t *)(uintptr_t)value, key, item)
		{
			if (json_integer_value(item) != 0 && at < size)
				at += (size_t)snprintf(text + at, size - at, "%s%s:%lld",
					at ? " " : "", key, (long long)json_integer_value(item));
		}
	}
	if (text[0] == '\0')
		snprintf(text, size, "-");
}

static void
print_cell(const char *text, size_t width, bool right, bool last)
{
	if (last && !right)
		printf("%s\n", text);
	else
		printf(right ? "%*s%s" : "%-*s%s", (int)width, text, last ? "\n" : "  ");
}

void
ctl_table(const json_t *rows, const struct ctl_column *columns)
{
	size_t width[COLUMNS_MAX], n = 0, i;
	char text[CELL_MAX];
	json_t *row;

	for (; columns[n].title != NULL && n < COLUMNS_MAX; n++)
		width[n] = strlen(columns[n].title);
	json_array_foreach(rows, i, row)
	{
		for (size_t c = 0; c < n; c++) {
			cell_text(json_object_get(row, columns[c].key), text, sizeof(text));
			if (strlen(text) > width[c])
				width[c] = strlen(text);
		}
	}
	for (size_t c = 0; c < n; c++)
		print_cell(columns[c].title, width[c], columns[c].right, c + 1 == n);
	json_array_foreach(rows, i, row)
	{
		for (size_t c = 0; c < n; c++) {
			cell_text(json_object_get(row, columns[c].key), text, sizeof(text));
			print_cell(text, width[c], columns[c].right, c + 1 == n);
		}
	}
}

void
ctl_pairs(const json_t *object, bool zeros)
{
	char text[CELL_MAX];
	const char *key;
	json_t *value;
	bool any = false;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!zeros && json_is_integer(value) && json_integer_value(value) == 0)
			continue;
		cell_text(value, text, sizeof(text));
		printf("%-20s %s\n", key, text);
		any = true;
	}
	if (!any)
		printf("none\n");
}
