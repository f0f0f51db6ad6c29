/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Endpoints of bridges. Stations come in pages, since an answer has a bound and a table may be
 * larger. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry.h"

#define PAGE 100

static int
on_bridges(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	rte_tel_data_start_array(t, RTE_TEL_STRING_VAL);
	for (uint16_t i = 0; i < d->conf.nbridges; i++)
		rte_tel_data_add_array_string(t, d->conf.bridge[i].name);
	telemetry_leave(d);
	return 0;
}

/* The index of the bridge whose name is the first len characters, or how many there are. */
static uint16_t
find(const struct daemon *d, const char *name, size_t len)
{
	uint16_t i = 0;

	while (i < d->conf.nbridges && (strlen(d->conf.bridge[i].name) != len ||
					       memcmp(d->conf.bridge[i].name, name, len) != 0))
		i++;
	return i;
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

static int
on_bridge(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d;
	uint16_t i;

	(void)cmd;
	if (param == NULL)
		return -EINVAL;
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	i = find(d, param, strlen(param));
	if (i < d->conf.nbridges) {
		const struct conf_bridge *c = &d->conf.bridge[i];

		rte_tel_data_start_dict(t);
		telemetry_text(t, "name", c->name);
		add_members(d, i, t);
		telemetry_u64(t, "entries", c->entries);
		telemetry_u64(t, "port_entries", c->port_entries);
		telemetry_u64(t, "age_s", c->age_s);
		add_counts(d, i, t);
	}
	telemetry_leave(d);
	return i < d->conf.nbridges ? 0 : -ENOENT;
}

static void
add_page(const struct daemon *d, uint16_t index, uint32_t from, struct rte_tel_data *t)
{
	const struct conf_bridge *c = &d->conf.bridge[index];
	struct rte_tel_data *stations = rte_tel_data_alloc();
	struct bridge_row row[PAGE];
	char text[CONF_NAME_LEN + 48];
	uint32_t n, next;

	rte_tel_data_start_dict(t);
	if (stations == NULL)
		return;
	n = bridge_table_list(
		bridge_stations(d->bridge[index]), from, bridge_now_s(), row, PAGE, &next);
	rte_tel_data_start_array(stations, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t mac = row[i].mac;

		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x %s %" PRIu32,
			(unsigned int)(mac >> 40 & 0xff), (unsigned int)(mac >> 32 & 0xff),
			(unsigned int)(mac >> 24 & 0xff), (unsigned int)(mac >> 16 & 0xff),
			(unsigned int)(mac >> 8 & 0xff), (unsigned int)(mac & 0xff),
			d->conf.port[c->port[row[i].member]].name, row[i].age_s);
		rte_tel_data_add_array_string(stations, text);
	}
	rte_tel_data_add_dict_container(t, "stations", stations, 0);
	if (next != BRIDGE_ENTRIES_MAX)
		telemetry_u64(t, "next", next);
}

/* "NAME" or "NAME,FROM". */
static int
on_stations(const char *cmd, const char *param, struct rte_tel_data *t)
{
	const char *comma = param != NULL ? strchr(param, ',') : NULL;
	struct daemon *d;
	uint32_t from = 0;
	uint16_t i;

	(void)cmd;
	if (param == NULL)
		return -EINVAL;
	if (comma != NULL)
		from = (uint32_t)strtoul(comma + 1, NULL, 10);
	d = telemetry_enter();
	if (d == NULL)
		return -EAGAIN;
	i = find(d, param, strcspn(param, ","));
	if (i < d->conf.nbridges)
		add_page(d, i, from, t);
	telemetry_leave(d);
	return i < d->conf.nbridges ? 0 : -ENOENT;
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
		{"/sluice/bridges", on_bridges, "Names of bridges. No parameter"},
		{"/sluice/bridge", on_bridge, "Counters of a bridge. Parameter: its name"},
		{"/sluice/bridge_stations", on_stations,
			"A page of a bridge's stations. Parameters: its name, \"next\" of the page before"},
	};

	return telemetry_add(endpoints, SL_COUNT_OF(endpoints));
}
