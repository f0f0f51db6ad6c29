/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_log.h>

#include "app.h"
#include "sl_errno.h"

void
app_eal_arg(struct app_eal_args *a, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (a->n == APP_EAL_ARGS_MAX || vasprintf(&a->v[a->n], format, list) < 0)
		app_fail("no memory for EAL's arguments.");
	va_end(list);
	a->v[++a->n] = NULL;
}

const char *
app_last_line(char *log)
{
	char *line = log;
	char *end;

	while ((end = strchr(line, '\n')) != NULL && end[1] != '\0')
		line = end + 1;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

void
app_log_keep(struct app_kept_log *k)
{
	k->stream = open_memstream(&k->text, &k->len);
	if (k->stream == NULL)
		app_fail("no memory for DPDK's messages.");
	rte_openlog_stream(k->stream);
}

void
app_log_release(struct app_kept_log *k)
{
	rte_openlog_stream(NULL);
	fclose(k->stream);
}

void
app_eal_init(struct app_eal_args *a, const char *failed)
{
	char *reordered[APP_EAL_ARGS_MAX + 1];
	struct app_kept_log log;
	int ret;

	memcpy(reordered, a->v, sizeof(reordered));
	app_log_keep(&log);
	ret = rte_eal_init(a->n, reordered);
	if (ret < 0) {
		ret = sl_rte_error();
		fclose(log.stream);
		app_fail("%s (%s): %s", failed, sl_strerror(ret), app_last_line(log.text));
	}
	app_log_release(&log);
	free(log.text);
	while (a->n > 0)
		free(a->v[--a->n]);
}
