/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

#define COLUMNS_MAX 12
#define CELL 32

/* How a value is shown. */
enum shape { SHAPE_TEXT, SHAPE_NUMBER, SHAPE_PERCENT };

struct column {
	const char *title;
	const char *key;
	enum shape shape;
	unsigned int width;
};

/* Lines as they are written: `left` of them may still be, if there is a limit. */
struct page {
	FILE *out;
	unsigned int width;
	unsigned int left;
	bool limited;
	unsigned int hidden; /* rows that had no room */
};

const char *
top_number(const json_t *value, char *text, size_t size)
{
	static const char units[] = "kMGTPE";
	double n = json_number_value(value);
	int unit = -1;

	if (!json_is_number(value)) {
		snprintf(text, size, "-");
		return text;
	}
	while (n >= (unit < 0 ? 9999.5 : 999.95) && unit < (int)sizeof(units) - 2) {
		n /= 1000;
		unit++;
	}
	if (unit >= 0)
		snprintf(text, size, "%.1f%c", n, units[unit]);
	else if (!json_is_integer(value) && n > 0 && n < 9.95)
		snprintf(text, size, "%.1f", n);
	else
		snprintf(text, size, "%.0f", n);
	return text;
}

static const char *
cell(const json_t *row, const struct column *c, char *text)
{
	const json_t *value = json_object_get(row, c->key);

	if (c->shape == SHAPE_TEXT && json_is_string(value))
		snprintf(text, CELL, "%s", json_string_value(value));
	else if (c->shape == SHAPE_TEXT && json_is_integer(value))
		snprintf(text, CELL, "%lld", (long long)json_integer_value(value));
	else if (c->shape == SHAPE_PERCENT && json_is_number(value))
		snprintf(text, CELL, "%.1f", json_number_value(value));
	else
		top_number(value, text, CELL);
	/* One that is too long is cut, so that columns stay where they are. */
	if (strlen(text) > c->width) {
		text[c->width - 1] = '~';
		text[c->width] = '\0';
	}
	return text;
}

/* Write a line, cut to the page's width, if there is room for one. */
static bool
put_line(struct page *p, const char *text)
{
	if (p->limited && p->left == 0)
		return false;
	p->left -= p->limited;
	fprintf(p->out, "%.*s\n", (int)p->width, text);
	return true;
}

static void
put_row(struct page *p, const struct column *columns, const json_t *row)
{
	char line[256], text[CELL];
	size_t at = 0;

	for (size_t i = 0; columns[i].title != NULL && at < sizeof(line); i++) {
		const struct column *c = &columns[i];
		const char *value = row != NULL ? cell(row, c, text) : c->title;

		at += (size_t)snprintf(line + at, sizeof(line) - at,
			c->shape == SHAPE_TEXT ? "%s%-*s" : "%s%*s", i > 0 ? " " : "",
			(int)c->width, value);
	}
	while (at > 0 && at < sizeof(line) && line[at - 1] == ' ')
		line[--at] = '\0';
	p->hidden += !put_line(p, line) && row != NULL;
}

static void
put_table(struct page *p, const struct column *columns, const json_t *list)
{
	const json_t *row;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	put_line(p, "");
	put_row(p, columns, NULL);
	json_array_foreach(list, i, row) put_row(p, columns, row);
}

static double
sum(const json_t *list, const char *key)
{
	const json_t *row;
	double n = 0;
	size_t i;

	json_array_foreach(list, i, row) n += json_number_value(json_object_get(row, key));
	return n;
}

static void
put_head(struct page *p, const json_t *rates)
{
	long long up = (long long)json_integer_value(json_object_get(rates, "uptime_s"));
	const json_t *ports = json_object_get(rates, "ports");
	json_t *rx = json_real(sum(ports, "rx_pps")), *tx = json_real(sum(ports, "tx_pps"));
	json_t *lost = json_real(sum(json_object_get(rates, "drops"), "pps"));
	char line[160], a[CELL], b[CELL], c[CELL];

	snprintf(line, sizeof(line),
		"sluiced up %lld:%02lld:%02lld, idle = %s; pps: %s in, %s out, %s lost", up / 3600,
		up / 60 % 60, up % 60, json_string_value(json_object_get(rates, "idle")),
		top_number(rx, a, sizeof(a)), top_number(tx, b, sizeof(b)),
		top_number(lost, c, sizeof(c)));
	json_decref(rx);
	json_decref(tx);
	json_decref(lost);
	put_line(p, line);
}

static void
put_tables(struct page *p, const json_t *rates)
{
	static const struct column lcores[] = {{"LCORE", "lcore", SHAPE_TEXT, 5},
		{"RX-PPS", "rx_pps", SHAPE_NUMBER, 7}, {"SERVED", "served_pps", SHAPE_NUMBER, 7},
		{"CYC/PKT", "cycles_per_packet", SHAPE_NUMBER, 7},
		{"BUSY%", "busy", SHAPE_PERCENT, 6}, {"IDLE%", "idle", SHAPE_PERCENT, 6},
		{"ASLEEP%", "asleep", SHAPE_PERCENT, 7}, {"PKT/TURN", "burst", SHAPE_NUMBER, 8},
		{"LOST", "lost_pps", SHAPE_NUMBER, 6}, {NULL, NULL, SHAPE_TEXT, 0}};
	static const struct column ports[] = {{"PORT", "name", SHAPE_TEXT, 12},
		{"LINK", "link", SHAPE_TEXT, 4}, {"RX-PPS", "rx_pps", SHAPE_NUMBER, 7},
		{"RX-BIT/S", "rx_bps", SHAPE_NUMBER, 8}, {"TX-PPS", "tx_pps", SHAPE_NUMBER, 7},
		{"TX-BIT/S", "tx_bps", SHAPE_NUMBER, 8}, {"IN-RING", "ring_used", SHAPE_NUMBER, 7},
		{"OF", "ring", SHAPE_NUMBER, 6}, {"LOST", "lost_pps", SHAPE_NUMBER, 6},
		{NULL, NULL, SHAPE_TEXT, 0}};
	static const struct column services[] = {{"SERVICE", "name", SHAPE_TEXT, 16},
		{"KIND", "kind", SHAPE_TEXT, 8}, {"LCORE", "lcore", SHAPE_TEXT, 5},
		{"PPS", "pps", SHAPE_NUMBER, 7}, {"BIT/S", "bps", SHAPE_NUMBER, 7},
		{"WAITING", "held", SHAPE_NUMBER, 7}, {"QUEUE%", "queue", SHAPE_PERCENT, 6},
		{"LOST", "lost_pps", SHAPE_NUMBER, 6}, {NULL, NULL, SHAPE_TEXT, 0}};
	static const struct column drops[] = {{"LOST-BY", "what", SHAPE_TEXT, 8},
		{"WHICH", "where", SHAPE_TEXT, 16}, {"CAUSE", "cause", SHAPE_TEXT, 20},
		{"A-SECOND", "pps", SHAPE_NUMBER, 8}, {"TOTAL", "total", SHAPE_NUMBER, 8},
		{NULL, NULL, SHAPE_TEXT, 0}};

	put_table(p, lcores, json_object_get(rates, "lcores"));
	put_table(p, ports, json_object_get(rates, "ports"));
	put_table(p, services, json_object_get(rates, "services"));
	put_table(p, drops, json_object_get(rates, "drops"));
}

char *
top_text(const json_t *rates, unsigned int width, unsigned int height)
{
	/* The last line is for what is left out. */
	struct page p = {
		.width = width, .limited = height > 0, .left = height > 0 ? height - 1 : 0};
	char *text = NULL;
	size_t len;

	p.out = open_memstream(&text, &len);
	if (p.out == NULL)
		return NULL;
	put_head(&p, rates);
	put_tables(&p, rates);
	if (p.hidden > 0) {
		char line[64];

		snprintf(line, sizeof(line), "%u more line%s; a larger window shows them", p.hidden,
			p.hidden == 1 ? "" : "s");
		fprintf(p.out, "%.*s\n", (int)width, line);
	}
	fclose(p.out);
	return text;
}
