/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_log.h>

#include "../common/app.h"
#include "conf_priv.h"

#define CPU_MAX 1023

static const char *const idle_names[] = {"poll", "backoff", "interrupt", "monitor"};
static const char *const log_names[] = {"error", "warning", "notice", "info", "debug"};
static const int log_levels[] = {
	RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_NOTICE, RTE_LOG_INFO, RTE_LOG_DEBUG};

const char *
conf_idle_name(enum conf_idle idle)
{
	return idle_names[idle];
}

const char *
conf_log_name(int level)
{
	for (size_t i = 0; i < SL_COUNT_OF(log_levels); i++)
		if (log_levels[i] == level)
			return log_names[i];
	return "notice";
}

bool
conf_number(struct conf_at *at, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t v;

	if (app_parse_number(at->value, &v) != 0)
		conf_wrong(at, "is no whole number; write one of %llu to %llu.",
			(unsigned long long)min, (unsigned long long)max);
	else if (v < min || v > max)
		conf_wrong(at, "is out of range; write one of %llu to %llu.",
			(unsigned long long)min, (unsigned long long)max);
	else
		*value = v;
	return app_parse_number(at->value, &v) == 0 && v >= min && v <= max;
}

bool
conf_word(struct conf_at *at, const char *const *words, size_t n, const char *choices,
	unsigned int *value)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(words[i], at->value) == 0) {
			*value = i;
			return true;
		}
	}
	conf_wrong(at, "is not known; write %s.", choices);
	return false;
}

bool
conf_next(const char **text, char *word, size_t size)
{
	static const char between[] = " \t,";
	size_t len;

	*text += strspn(*text, between);
	len = strcspn(*text, between);
	if (len == 0)
		return false;
	snprintf(word, size, "%.*s", (int)len, *text);
	*text += len;
	return true;
}

bool
conf_lcores_have(const struct conf_lcores *lcores, uint16_t cpu)
{
	for (uint16_t i = 0; i < lcores->n; i++)
		if (lcores->cpu[i] == cpu)
			return true;
	return false;
}

/* "3" or "3-5". */
static bool
cpu_range(const char *word, uint64_t *first, uint64_t *last)
{
	const char *dash = strchr(word, '-');
	char left[32];

	snprintf(left, sizeof(left), "%.*s", dash != NULL ? (int)(dash - word) : (int)strlen(word),
		word);
	if (app_parse_number(left, first) != 0)
		return false;
	*last = *first;
	if (dash != NULL && app_parse_number(dash + 1, last) != 0)
		return false;
	return *first <= *last && *last <= CPU_MAX;
}

void
conf_lcores(struct conf_at *at, struct conf_lcores *lcores)
{
	const char *text = at->value;
	char word[32];

	lcores->n = 0;
	while (conf_next(&text, word, sizeof(word))) {
		uint64_t first, last;

		if (!cpu_range(word, &first, &last)) {
			conf_wrong(
				at, "\"%s\" names no processor; write \"1\" or \"1-3,5\".", word);
			lcores->n = 0;
			return;
		}
		for (; first <= last; first++) {
			if (conf_lcores_have(lcores, (uint16_t)first)) {
				conf_wrong(at, "names processor %u twice; once is enough.",
					(unsigned int)first);
				continue;
			}
			if (lcores->n == CONF_LCORES_MAX) {
				conf_wrong(at, "names more than %d processors; leave some out.",
					CONF_LCORES_MAX);
				lcores->n = 0;
				return;
			}
			lcores->cpu[lcores->n++] = (uint16_t)first;
		}
	}
}

static void
take_name(struct conf_at *at)
{
	if (conf_name_good(at->value))
		snprintf(at->conf->name, sizeof(at->conf->name), "%s", at->value);
	else
		conf_wrong(at, "is no name; it has 1 to %d letters, digits, \"-\", \"_\" or \".\".",
			CONF_NAME_LEN - 1);
}

static void
take_lcores(struct conf_at *at)
{
	at->conf->lcores_line = at->line;
	conf_lcores(at, &at->conf->lcores);
}

static void
take_memory(struct conf_at *at)
{
	uint64_t mb;

	at->conf->memory_line = at->line;
	if (conf_number(at, 64, 65536, &mb))
		at->conf->memory_mb = (uint32_t)mb;
}

static void
take_hugepages(struct conf_at *at)
{
	static const char *const words[] = {"auto", "yes", "no"};
	unsigned int i;

	at->conf->hugepages_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "yes, no or auto", &i))
		at->conf->hugepages = (enum conf_hugepages)i;
}

static void
take_log(struct conf_at *at)
{
	unsigned int i;

	if (conf_word(at, log_names, SL_COUNT_OF(log_names),
		    "error, warning, notice, info or debug", &i))
		at->conf->log_level = log_levels[i];
}

static void
take_idle(struct conf_at *at)
{
	unsigned int i;

	at->conf->idle_line = at->line;
	if (conf_word(at, idle_names, SL_COUNT_OF(idle_names),
		    "poll, backoff, interrupt or monitor", &i))
		at->conf->idle = (enum conf_idle)i;
}

static void
take_secondary(struct conf_at *at)
{
	static const char *const yes_no[] = {"no", "yes"};
	unsigned int i;

	at->conf->secondary_line = at->line;
	if (conf_word(at, yes_no, SL_COUNT_OF(yes_no), "yes or no", &i))
		at->conf->secondary = i == 1;
}

static void
take_driver(struct conf_at *at)
{
	struct conf *conf = at->conf;
	const char *text = at->value;
	char word[CONF_VALUE_LEN];

	conf->driver_line = at->line;
	while (conf_next(&text, word, sizeof(word))) {
		if (word[0] != '/') {
			conf_wrong(at, "\"%s\" is no whole path; begin it with \"/\".", word);
		} else if (conf->ndrivers == CONF_DRIVERS_MAX) {
			conf_wrong(at, "names more than %d plugins; leave some out.",
				CONF_DRIVERS_MAX);
			return;
		} else {
			snprintf(conf->driver[conf->ndrivers++], sizeof(conf->driver[0]), "%s",
				word);
		}
	}
}

const struct conf_key conf_sluiced_keys[] = {
	{"name", NULL, take_name},
	{"lcores", "1", take_lcores},
	{"memory", NULL, take_memory},
	{"hugepages", NULL, take_hugepages},
	{"log", NULL, take_log},
	{"idle", NULL, take_idle},
	{"driver", NULL, take_driver},
	{"secondary", NULL, take_secondary},
	{NULL, NULL, NULL},
};
