/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cfgfile.h>
#include <rte_log.h>

#include "conf_priv.h"
#include "lines.h"
#include "sl_errno.h"

#define KEYS_MAX 32 /* of a section, more than there are */

void
conf_wrong(struct conf_at *at, const char *format, ...)
{
	char text[MISTAKE_LEN];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	mistake(at->m, at->line, "[%s] %s = %s: %s", at->section, at->key, at->value, text);
}

bool
conf_name_good(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-_.";
	size_t len = strlen(name);

	return len > 0 && len < CONF_NAME_LEN && strspn(name, good) == len;
}

static const struct conf_key *
find_key(const struct conf_key *keys, const char *name)
{
	for (; keys->name != NULL; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

/* "a, b and c" */
static void
key_names(const struct conf_key *keys, char *text, size_t size)
{
	size_t at = 0;

	for (; keys->name != NULL && at < size; keys++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", keys->name,
			keys[1].name == NULL   ? ""
			: keys[2].name == NULL ? " and "
					       : ", ");
}

/* What a section's entries say, key by key. */
static void
take_keys(struct conf_at *at, const struct conf_key *keys, uint32_t line,
	const struct rte_cfgfile_entry *entries, const uint32_t *key_line, uint32_t n)
{
	char names[MISTAKE_LEN * 3 / 4];

	for (uint32_t i = 0; i < n; i++) {
		const struct conf_key *key = find_key(keys, entries[i].name);
		uint32_t before = 0;

		at->key = entries[i].name;
		at->value = entries[i].value;
		at->line = key_line[i];
		while (before < i && strcmp(entries[before].name, entries[i].name) != 0)
			before++;
		if (key == NULL) {
			key_names(keys, names, sizeof(names));
			mistake(at->m, at->line, "[%s] %s: no such key here; there are %s.",
				at->section, at->key, names);
		} else if (before < i) {
			conf_wrong(at, "line %u has this key already; keep one of them.",
				key_line[before]);
		} else {
			key->take(at);
		}
	}
	for (; keys->name != NULL; keys++) {
		uint32_t i = 0;

		while (i < n && strcmp(entries[i].name, keys->name) != 0)
			i++;
		if (i == n && keys->example != NULL)
			mistake(at->m, line, "[%s]: lacks %s; add \"%s = %s\", for instance.",
				at->section, keys->name, keys->name, keys->example);
	}
}

const struct conf_section conf_sections[] = {
	{"sluiced", false, conf_sluiced_keys, NULL},
	{"metrics", false, conf_metrics_keys, conf_metrics_begin},
	{"port", true, conf_port_keys, conf_port_begin},
	{"vlan", true, conf_vlan_keys, conf_vlan_begin},
	{"tapvu", true, conf_tapvu_keys, conf_tapvu_begin},
	{"pktring", true, conf_pktring_keys, conf_pktring_begin},
	{"route", true, conf_route_keys, conf_route_begin},
	{"service", true, conf_service_keys, conf_service_begin},
	{"backend", true, conf_backend_keys, conf_backend_begin},
	{"bridge", true, conf_bridge_keys, conf_bridge_begin},
	{NULL, false, NULL, NULL},
};

void
conf_too_many(struct conf_at *at, unsigned int max, const char *what)
{
	mistake(at->m, at->line, "[%s]: more than %u %s; leave some out.", at->section, max, what);
}

/* Does a section's name begin with that word? Then *name is what follows it. */
static bool
is_section(const struct conf_section *s, const char *section, const char **name)
{
	size_t len = strlen(s->word);

	if (strncmp(section, s->word, len) != 0)
		return false;
	*name = section + len + strspn(section + len, " \t");
	return s->named ? *name != section + len : section[len] == '\0';
}

/* "[a], [b NAME] and [c NAME]" */
static void
section_names(char *text, size_t size)
{
	const struct conf_section *s = conf_sections;
	size_t at = 0;

	for (; s->word != NULL && at < size; s++)
		at += (size_t)snprintf(text + at, size - at, "[%s%s]%s", s->word,
			s->named ? " NAME" : "",
			s[1].word == NULL   ? ""
			: s[2].word == NULL ? " and "
					    : ", ");
}

/* Which kind a section is of, with at->item for its keys; NULL, with the mistake told, if it cannot
 * be taken. */
static const struct conf_section *
begin_section(struct conf_at *at)
{
	const struct conf_section *s = conf_sections;
	char names[MISTAKE_LEN / 2];
	const char *name = "";

	while (s->word != NULL && !is_section(s, at->section, &name))
		s++;
	if (s->word == NULL) {
		section_names(names, sizeof(names));
		mistake(at->m, at->line, "[%s]: no such section here; there are %s.", at->section,
			names);
		return NULL;
	}
	if (s->named && !conf_name_good(name)) {
		mistake(at->m, at->line,
			"[%s]: \"%s\" is no name; it has 1 to %d letters, digits, \"-\", \"_\" or "
			"\".\".",
			at->section, name, CONF_NAME_LEN - 1);
		return NULL;
	}
	if (s->begin != NULL) {
		at->item = s->begin(at, name);
		if (at->item == NULL)
			return NULL;
	}
	return s;
}

/* Two sections whose names differ in blanks alone are the same. */
static bool
same_section(const char *a, const char *b)
{
	const char *x = strpbrk(a, " \t"), *y = strpbrk(b, " \t");

	if (x == NULL || y == NULL)
		return x == y && strcmp(a, b) == 0;
	return x - a == y - b && strncmp(a, b, (size_t)(x - a)) == 0 &&
	       strcmp(x + strspn(x, " \t"), y + strspn(y, " \t")) == 0;
}

static void
take_sections(struct rte_cfgfile *file, const struct lines *l, struct conf *conf,
	struct mistakes *m, bool *has_sluiced)
{
	static char names[LINES_SECTIONS_MAX][CFG_NAME_LEN];
	static struct rte_cfgfile_entry entries[LINES_KEYS_MAX];

	for (uint32_t i = 0; i < l->nsections; i++) {
		const struct lines_section *s = &l->section[i];
		struct conf_at at = {.conf = conf, .m = m, .section = names[i], .line = s->line};
		const struct conf_section *kind = NULL;
		uint32_t before = 0;
		int n = rte_cfgfile_section_entries_by_index(
			file, (int)i, names[i], entries, LINES_KEYS_MAX);

		if (n < 0 || (uint32_t)n != s->keys) {
			mistake(m, s->line, "[%s]: cannot be read; please report it.", names[i]);
			continue;
		}
		if (s->line == 0)
			continue;
		while (before < i &&
			(l->section[before].line == 0 || !same_section(names[before], names[i])))
			before++;
		if (before < i)
			mistake(m, s->line, "[%s]: line %u has this section already; keep one.",
				names[i], l->section[before].line);
		else
			kind = begin_section(&at);
		if (kind == NULL)
			continue;
		*has_sluiced |= kind->keys == conf_sluiced_keys;
		take_keys(&at, kind->keys, s->line, entries, &l->key_line[s->first], s->keys);
	}
}

/* Give the clean copy to rte_cfgfile, as a file that is nowhere. */
static struct rte_cfgfile *
load(const struct lines *l)
{
	struct rte_cfgfile_parameters params = {.comment_character = '#'};
	struct rte_cfgfile *file = NULL;
	int fd = memfd_create("sluiced.conf", MFD_CLOEXEC);
	char path[64];
	size_t at = 0;

	if (fd < 0)
		return NULL;
	while (at < l->clean_len) {
		ssize_t n = write(fd, l->clean + at, l->clean_len - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (at == l->clean_len)
		file = rte_cfgfile_load_with_params(path, 0, &params);
	close(fd);
	return file;
}

void
conf_read_text(const char *text, size_t len, struct conf *conf, struct mistakes *m)
{
	struct rte_cfgfile *file = NULL;
	bool has_sluiced = false;
	struct lines *l;

	memset(conf, 0, sizeof(*conf));
	conf->log_level = RTE_LOG_NOTICE;
	l = lines_index(text, len, m);
	if (l != NULL)
		file = load(l);
	if (file != NULL && rte_cfgfile_num_sections(file, NULL, 0) == (int)l->nsections) {
		take_sections(file, l, conf, m, &has_sluiced);
		if (!has_sluiced)
			mistake(m, 0, "lacks the section [sluiced]; add it, with \"lcores = 1\".");
		conf_cross(conf, m);
	} else if (mistakes_count(m) == 0) {
		mistake(m, 0, "cannot be read: no memory.");
	}
	if (file != NULL)
		rte_cfgfile_close(file);
	free(l);
}

/* A pipe could keep a running daemon waiting for ever, even to be opened. -1: told as a mistake. */
static int
open_file(const char *path, struct mistakes *m)
{
	int fd = sl_sys(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	struct stat st;

	if (fd < 0) {
		mistake(m, 0, "cannot be opened: %s.", sl_strerror(fd));
		return -1;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	mistake(m, 0, "is no regular file; write the configuration into one.");
	close(fd);
	return -1;
}

void
conf_read_file(const char *path, struct conf *conf, struct mistakes *m)
{
	int fd = open_file(path, m);
	size_t len = 0;
	ssize_t n = 0;
	char *text;

	memset(conf, 0, sizeof(*conf));
	if (fd < 0)
		return;
	text = malloc(LINES_FILE_MAX + 1);
	while (text != NULL && len <= LINES_FILE_MAX) {
		n = sl_sys((int)read(fd, text + len, LINES_FILE_MAX + 1 - len));
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	if (text == NULL)
		mistake(m, 0, "cannot be read: no memory.");
	else if (n < 0)
		mistake(m, 0, "cannot be read: %s.", sl_strerror((int)n));
	else
		conf_read_text(text, len, conf, m);
	free(text);
}
