/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Endpoints that start a trace or a capture. Their parameters are words, and then the filter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../common/app.h"
#include "capture.h"
#include "conf_priv.h"
#include "session.h"
#include "telemetry.h"
#include "trace.h"

#define ALL_PORTS "*"

/* What clients are told: a code that does not change. */
static const char *
code_of(int ret)
{
	switch (ret) {
	case 0:
		return "started";
	case -EINVAL:
	case -ENOENT:
		return "usage";
	case -EBUSY:
		return "busy";
	default:
		return "failed";
	}
}

static void
answer(struct rte_tel_data *t, int ret, const char *why)
{
	rte_tel_data_start_dict(t);
	telemetry_text(t, "result", code_of(ret));
	if (ret != 0)
		telemetry_text(t, "message", why);
}

/* The next word, that ends at a blank. *text moves behind it. */
static bool
next_word(const char **text, char *word, size_t size)
{
	size_t len = strcspn(*text, " ");

	if (len == 0 || len >= size)
		return false;
	snprintf(word, size, "%.*s", (int)len, *text);
	*text += len;
	*text += strspn(*text, " ");
	return true;
}

/* "SOCKET COUNT "; the socket's name has no folder in it. */
static bool
common_words(const char **param, char *name, size_t size, uint64_t *count)
{
	char number[24];

	return *param != NULL && next_word(param, name, size) && conf_name_good(name) &&
	       next_word(param, number, sizeof(number)) && app_parse_number(number, count) == 0;
}

static int
on_trace_start(const char *cmd, const char *param, struct rte_tel_data *t)
{
	char name[CONF_NAME_LEN], why[256];
	struct daemon *d;
	uint64_t count;
	int ret;

	(void)cmd;
	if (!common_words(&param, name, sizeof(name), &count))
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	ret = trace_start(d, name, count, param, why, sizeof(why));
	telemetry_leave(d);
	answer(t, ret, why);
	return 0;
}

static int
on_capture_start(const char *cmd, const char *param, struct rte_tel_data *t)
{
	char name[CONF_NAME_LEN], port[CONF_NAME_LEN], why[256];
	struct capture_request r = {.name = name, .port = port};
	struct daemon *d;
	int ret;

	(void)cmd;
	if (!common_words(&param, name, sizeof(name), &r.count) ||
		!next_word(&param, port, sizeof(port)))
		return -EINVAL;
	if (strcmp(port, ALL_PORTS) == 0)
		port[0] = '\0';
	r.filter = param;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	ret = capture_start(d, &r, why, sizeof(why));
	telemetry_leave(d);
	answer(t, ret, why);
	return 0;
}

static int
on_trace(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	struct trace_stats stats;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	trace_stats(&stats);
	telemetry_leave(d);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "running", stats.running ? "yes" : "no");
	telemetry_u64(t, "followed", stats.followed);
	telemetry_u64(t, "lost", stats.lost);
	return 0;
}

static int
on_capture(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	struct capture_stats stats;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	capture_stats(&stats);
	telemetry_leave(d);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "running", stats.running ? "yes" : "no");
	telemetry_u64(t, "captured", stats.captured);
	telemetry_u64(t, "lost", stats.lost);
	return 0;
}

bool
session_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/trace", on_trace, "State of the last trace. No parameter"},
		{"/sluice/trace_start", on_trace_start,
			"Trace packets. Parameter: SOCKET COUNT FILTER"},
		{"/sluice/capture", on_capture, "State of the last capture. No parameter"},
		{"/sluice/capture_start", on_capture_start,
			"Capture packets. Parameter: SOCKET COUNT PORT FILTER"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
