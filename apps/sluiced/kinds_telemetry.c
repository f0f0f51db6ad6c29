/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What all answers that are lists share: names and what belongs to each, and pages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry.h"

#define NAME_ROOM (CONF_NAME_LEN + 8)

static const struct telemetry_kind *const kinds[] = {
	&port_kind, &service_kind, &socket_kind, &lcore_kind, &bridge_kind, &exception_kind};

/* There is one: telemetry knows only endpoints that were registered. */
static const struct telemetry_kind *
find_kind(const char *cmd)
{
	size_t i = 0;

	while (strcmp(kinds[i]->list.cmd, cmd) != 0 && strcmp(kinds[i]->one.cmd, cmd) != 0)
		i++;
	return kinds[i];
}

int
telemetry_on_list(const char *cmd, const char *param, struct rte_tel_data *t)
{
	const struct telemetry_kind *kind = find_kind(cmd);
	struct daemon *d = telemetry_enter();
	char room[NAME_ROOM];
	const char *name;

	(void)param;
	if (d == NULL)
		return -EAGAIN;
	rte_tel_data_start_array(t, RTE_TEL_STRING_VAL);
	for (uint16_t i = 0; (name = kind->name(d, i, room, sizeof(room))) != NULL; i++)
		rte_tel_data_add_array_string(t, name);
	telemetry_leave(d);
	return 0;
}

int
telemetry_on_one(const char *cmd, const char *param, struct rte_tel_data *t)
{
	const struct telemetry_kind *kind = find_kind(cmd);
	char room[NAME_ROOM];
	struct daemon *d;
	const char *name;
	uint16_t i = 0;

	if (param == NULL)
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	while ((name = kind->name(d, i, room, sizeof(room))) != NULL && strcmp(name, param) != 0)
		i++;
	if (name != NULL)
		kind->fill(d, i, t);
	telemetry_leave(d);
	return name != NULL ? 0 : -ENOENT;
}

bool
kinds_telemetry_open(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(kinds); i++)
		if (!telemetry_add(&kinds[i]->list, 1) || !telemetry_add(&kinds[i]->one, 1))
			return false;
	return true;
}

bool
telemetry_page_begin(
	struct telemetry_page *p, const struct daemon *d, const char *from, struct rte_tel_data *t)
{
	char *end = NULL;

	*p = (struct telemetry_page){.d = d, .t = t};
	if (from != NULL)
		p->first = strtoull(from, &end, 10);
	rte_tel_data_start_dict(t);
	return from == NULL || (end != from && *end == '\0');
}

struct rte_tel_data *
telemetry_page_entry(const struct telemetry_page *p)
{
	struct rte_tel_data *one = p->n < TELEMETRY_PAGE ? rte_tel_data_alloc() : NULL;

	if (one != NULL)
		rte_tel_data_start_dict(one);
	return one;
}

void
telemetry_page_add(struct telemetry_page *p, struct rte_tel_data *one)
{
	char key[24];

	snprintf(key, sizeof(key), "entry_%02u", p->n++);
	rte_tel_data_add_dict_container(p->t, key, one, 0);
}

void
telemetry_page_end(struct telemetry_page *p, uint64_t next, uint64_t total)
{
	telemetry_u64(p->t, "next", next);
	telemetry_u64(p->t, "total", total);
}
