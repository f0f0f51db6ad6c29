/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Keys of kind = mirror. */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "../common/iface.h"
#include "conf_priv.h"

#define FILE_SIZE_DEFAULT 100000000
#define FILE_SIZE_MAX UINT64_C(1000000000000)

static struct conf_mirror *
mirror_of(struct conf_at *at)
{
	return &((struct conf_service *)at->item)->mirror;
}

void
conf_mirror_take_file(struct conf_at *at)
{
	struct conf_mirror *c = mirror_of(at);

	c->file_line = at->line;
	if (at->value[0] != '/')
		conf_wrong(at, "is no whole path; begin it with \"/\".");
	else
		snprintf(c->file, sizeof(c->file), "%s", at->value);
}

void
conf_mirror_take_file_size(struct conf_at *at)
{
	mirror_of(at)->file_size_line = at->line;
	(void)conf_number(at, MIRROR_FILE_MIN, FILE_SIZE_MAX, &mirror_of(at)->file_size);
}

void
conf_mirror_take_files(struct conf_at *at)
{
	uint64_t n;

	mirror_of(at)->files_line = at->line;
	if (conf_number(at, 1, MIRROR_FILES_MAX, &n))
		mirror_of(at)->files = (uint32_t)n;
}

void
conf_mirror_take_interface(struct conf_at *at)
{
	struct conf_mirror *c = mirror_of(at);

	c->interface_line = at->line;
	if (strlen(at->value) >= IF_NAMESIZE || strpbrk(at->value, " \t/") != NULL)
		conf_wrong(at, "is no name of an interface; write eth1, for instance.");
	else
		snprintf(c->interface, sizeof(c->interface), "%s", at->value);
}

/* Keys that only a mirror has. */
static void
check_other(const struct conf_service *s, struct mistakes *m)
{
	const struct conf_mirror *c = &s->mirror;
	const struct {
		uint32_t line;
		const char *key;
	} keys[] = {{c->file_line, "file"}, {c->file_size_line, "file-size"},
		{c->files_line, "files"}, {c->interface_line, "interface"}};

	for (size_t i = 0; i < SL_COUNT_OF(keys); i++)
		if (keys[i].line != 0)
			mistake(m, keys[i].line,
				"[service %s] %s: is for kind = mirror alone; leave it out.",
				s->name, keys[i].key);
}

static void
check_mirror(const struct conf *conf, const struct conf_service *s, struct mistakes *m)
{
	const struct conf_mirror *c = &s->mirror;

	if (c->file_line == 0 && c->interface_line == 0)
		mistake(m, s->line,
			"[service %s]: lacks file or interface; add \"file = "
			"/var/tmp/mirror.pcapng\", for instance.",
			s->name);
	if (c->file_line != 0 && c->interface_line != 0)
		mistake(m, c->interface_line,
			"[service %s] interface: line %u has a file already; keep one of them.",
			s->name, c->file_line);
	if (c->file_line == 0 && (c->file_size_line != 0 || c->files_line != 0))
		mistake(m, c->file_size_line != 0 ? c->file_size_line : c->files_line,
			"[service %s] file-size and files: are for a \"file\"; leave them out.",
			s->name);
	for (uint16_t i = 0; c->interface[0] != '\0' && i < conf->nports; i++)
		if (strcmp(conf->port[i].iface, c->interface) == 0)
			mistake(m, c->interface_line,
				"[service %s] interface = %s: is that of [port %s]; name another.",
				s->name, c->interface, conf->port[i].name);
}

void
conf_mirror_cross(struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->nservices; i++) {
		struct conf_service *s = &conf->service[i];
		struct conf_mirror *c = &s->mirror;

		if (!s->has_kind)
			continue;
		if (s->kind != CONF_MIRROR) {
			check_other(s, m);
			continue;
		}
		check_mirror(conf, s, m);
		c->file_size = c->file_size_line != 0 ? c->file_size : FILE_SIZE_DEFAULT;
		c->files = c->files_line != 0 ? c->files : 1;
		for (uint16_t k = 0; k < i; k++)
			if (c->file[0] != '\0' &&
				strcmp(conf->service[k].mirror.file, c->file) == 0)
				mistake(m, c->file_line,
					"[service %s] file = %s: [service %s] writes there "
					"already; "
					"choose another.",
					s->name, c->file, conf->service[k].name);
	}
}

bool
conf_mirror_equal(const struct conf_service *a, const struct conf_service *b)
{
	const struct conf_mirror *x = &a->mirror, *y = &b->mirror;

	if (a->kind != CONF_MIRROR && b->kind != CONF_MIRROR)
		return true;
	return a->kind == b->kind && strcmp(x->file, y->file) == 0 &&
	       strcmp(x->interface, y->interface) == 0 && x->file_size == y->file_size &&
	       x->files == y->files;
}

void
conf_mirror_machine(const struct conf *conf, struct mistakes *m)
{
	char text[256];

	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *s = &conf->service[i];

		if (s->kind == CONF_MIRROR && s->mirror.interface[0] != '\0' &&
			iface_fault(s->mirror.interface, text, sizeof(text)))
			mistake(m, s->mirror.interface_line, "[service %s] interface = %s: %s.",
				s->name, s->mirror.interface, text);
	}
}
