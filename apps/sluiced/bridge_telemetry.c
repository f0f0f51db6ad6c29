/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Endpoints of bridges. Pages of stations begin at places of the table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>

#include "telemetry.h"

static const char *
name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	(void)room;
	(void)size;
	return i < d->conf.nbridges ? d->conf.bridge[i].name : NULL;
}

/* "lan1:12": a member, and how many stations are behind it. */
static void
add_members(const struct daemon *d, uint16_t index, struct rte_tel_data *t)
{
	const struct conf_bridge *c = &d->conf.bridge[index];
	struct rte_tel_data *members = rte_tel_data_alloc();
	char text[CONF_NAME_LEN + 16];
	uint64_t stations = 0;

	if (members == NULL)
		return;
	rte_tel_data_start_array(members, RTE_TEL_STRING_VAL);
	for (uint16_t k = 0; k < c->nports; k++) {
		uint32_t held = bridge_table_held(bridge_stations(d->bridge[index]), k);

		snprintf(text, sizeof(text), "%s:%" PRIu32, d->conf.port[c->port[k]].name, held);
		rte_tel_data_add_array_string(members, text);
		stations += held;
	}
	rte_tel_data_add_dict_container(t, "ports", members, 0);
	telemetry_u64(t, "stations", stations);
}

static void
add_counts(const struct daemon *d, uint16_t index, struct rte_tel_data *t)
{
	struct rte_tel_data *outcomes = rte_tel_data_alloc(), *learn = rte_tel_data_alloc();
	struct bridge_counts c = {0};

	bridge_counts(d->bridge[index], &c);
	telemetry_u64(t, "received", c.received);
	telemetry_u64(t, "copies", c.copies);
	if (outcomes != NULL) {
		rte_tel_data_start_dict(outcomes);
		for (int i = 0; i < BRIDGE_OUTCOMES; i++)
			telemetry_u64(outcomes, bridge_outcome_info[i].name, c.outcome[i]);
		rte_tel_data_add_dict_container(t, "outcomes", outcomes, 0);
	}
	if (learn != NULL) {
		rte_tel_data_start_dict(learn);
		for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
			telemetry_u64(learn, bridge_learn_name[i], c.learn[i]);
		rte_tel_data_add_dict_container(t, "sources", learn, 0);
	}
}

static void
fill(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	const struct conf_bridge *c = &d->conf.bridge[i];

	rte_tel_data_start_dict(t);
	telemetry_text(t, "name", c->name);
	add_members(d, i, t);
	telemetry_u64(t, "entries", c->entries);
	telemetry_u64(t, "port_entries", c->port_entries);
	telemetry_u64(t, "age_s", c->age_s);
	add_counts(d, i, t);
}

const struct telemetry_kind bridge_kind = {
	.list = {"/sluice/bridges", telemetry_on_list, "Names of bridges. No parameter"},
	.one = {"/sluice/bridge", telemetry_on_one, "Counters of a bridge. Parameter: its name"},
	.name = name,
	.fill = fill,
};

/* The index of the bridge whose name is the first len characters, or how many there are. */
static uint16_t
find(const struct daemon *d, const char *text, size_t len)
{
	uint16_t i = 0;

	while (i < d->conf.nbridges && (strlen(d->conf.bridge[i].name) != len ||
					       memcmp(d->conf.bridge[i].name, text, len) != 0))
		i++;
	return i;
}

static void
add_station(struct telemetry_page *p, const struct conf_bridge *c, const struct bridge_row *row)
{
	struct rte_tel_data *one = telemetry_page_entry(p);
	uint64_t be = rte_cpu_to_be_64(row->mac << 16); /* six bytes, the first one first */
	char text[TELEMETRY_MAC_SIZE];

	if (one == NULL)
		return;
	telemetry_text(one, "mac", telemetry_mac((const uint8_t *)&be, text));
	telemetry_text(one, "port", p->d->conf.port[c->port[row->member]].name);
	telemetry_u64(one, "age_s", row->age_s);
	telemetry_page_add(p, one);
}

static void
add_page(struct telemetry_page *p, uint16_t index)
{
	const struct conf_bridge *c = &p->d->conf.bridge[index];
	struct bridge_table *table = bridge_stations(p->d->bridge[index]);
	uint32_t from = (uint32_t)RTE_MIN(p->first, (uint64_t)BRIDGE_ENTRIES_MAX), n, next;
	struct bridge_row row[TELEMETRY_PAGE];
	uint64_t held = 0;

	n = bridge_table_list(table, from, bridge_now_s(), row, TELEMETRY_PAGE, &next);
	for (uint32_t i = 0; i < n; i++)
		add_station(p, c, &row[i]);
	for (uint16_t k = 0; k < c->nports; k++)
		held += bridge_table_held(table, k);
	telemetry_page_end(p, next != BRIDGE_ENTRIES_MAX ? next : 0, held);
}

/* "NAME" or "NAME,PLACE". */
static int
on_stations(const char *cmd, const char *param, struct rte_tel_data *t)
{
	const char *comma = param != NULL ? strchr(param, ',') : NULL;
	struct telemetry_page p;
	int ret = -ENOENT;
	struct daemon *d;
	uint16_t i;

	(void)cmd;
	if (param == NULL)
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	i = find(d, param, strcspn(param, ","));
	if (i < d->conf.nbridges) {
		ret = telemetry_page_begin(&p, d, comma != NULL ? comma + 1 : NULL, t) ? 0
										       : -EINVAL;
		add_page(&p, i);
	}
	telemetry_leave(d);
	return ret;
}

void
bridge_outcomes(const struct daemon *d, bool drops, struct rte_tel_data *t)
{
	struct bridge_counts c = {0};

	bridges_counts(d, &c);
	for (int i = 0; i < BRIDGE_OUTCOMES && d->conf.nbridges > 0; i++)
		if (bridge_outcome_info[i].drop || !drops)
			telemetry_u64(t, bridge_outcome_info[i].name, c.outcome[i]);
}

bool
bridge_telemetry_open(void)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/bridge_stations", on_stations,
			"A page of a bridge's stations. Parameters: its name, \"next\" of the page "
			"before"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
