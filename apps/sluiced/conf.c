/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
	char names[MISTAKE_LEN / 2];

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

/* The name in "port NAME", or NULL with the mistake told. */
static const char *
name_of(struct conf_at *at, const char *section, size_t skip, uint32_t line)
{
	const char *name = section + skip;

	while (*name == ' ' || *name == '\t')
		name++;
	if (conf_name_good(name))
		return name;
	mistake(at->m, line,
		"[%s]: \"%s\" is no name; it has 1 to %d letters, digits, \"-\", \"_\" or \".\".",
		section, name, CONF_NAME_LEN - 1);
	return NULL;
}

static const struct conf_key *
begin_port(struct conf_at *at, const char *section, uint32_t line)
{
	struct conf *conf = at->conf;
	const char *name = name_of(at, section, 4, line);

	if (name == NULL)
		return NULL;
	if (conf->nports == CONF_PORTS_MAX) {
		mistake(at->m, line, "[%s]: more than %d ports; leave some out.", section,
			CONF_PORTS_MAX);
		return NULL;
	}
	at->port = &conf->port[conf->nports++];
	at->port->line = line;
	snprintf(at->port->name, sizeof(at->port->name), "%s", name);
	return conf_port_keys;
}

static const struct conf_key *
begin_service(struct conf_at *at, const char *section, uint32_t line)
{
	struct conf *conf = at->conf;
	const char *name = name_of(at, section, 7, line);

	if (name == NULL)
		return NULL;
	if (conf->nservices == CONF_SERVICES_MAX) {
		mistake(at->m, line, "[%s]: more than %d services; leave some out.", section,
			CONF_SERVICES_MAX);
		return NULL;
	}
	at->service = &conf->service[conf->nservices++];
	at->service->line = line;
	snprintf(at->service->name, sizeof(at->service->name), "%s", name);
	return conf_service_keys;
}

static bool
begins_with(const char *section, const char *word)
{
	size_t len = strlen(word);

	return strncmp(section, word, len) == 0 && (section[len] == ' ' || section[len] == '\t');
}

/* Which keys a section has; NULL, with the mistake told, if it is not known. */
static const struct conf_key *
begin_section(struct conf_at *at, const char *section, uint32_t line)
{
	if (strcmp(section, "sluiced") == 0)
		return conf_sluiced_keys;
	if (begins_with(section, "port"))
		return begin_port(at, section, line);
	if (begins_with(section, "service"))
		return begin_service(at, section, line);
	mistake(at->m, line,
		"[%s]: no such section here; there are [sluiced], [port NAME] and [service NAME].",
		section);
	return NULL;
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
		struct conf_at at = {.conf = conf, .m = m, .section = names[i]};
		const struct conf_key *keys = NULL;
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
			keys = begin_section(&at, names[i], s->line);
		if (keys == conf_sluiced_keys)
			*has_sluiced = true;
		if (keys != NULL)
			take_keys(&at, keys, s->line, entries, &l->key_line[s->first], s->keys);
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

void
conf_read_file(const char *path, struct conf *conf, struct mistakes *m)
{
	int fd = sl_sys(open(path, O_RDONLY | O_CLOEXEC));
	size_t len = 0;
	ssize_t n = 0;
	char *text;

	memset(conf, 0, sizeof(*conf));
	if (fd < 0) {
		mistake(m, 0, "cannot be opened: %s.", sl_strerror(fd));
		return;
	}
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
