/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The endpoints below /sluice/. Lists are arrays of names; what belongs to a name is asked for with
 * the name behind a comma, so that no answer outgrows what telemetry sends. Every endpoint takes
 * the daemon's lock, and answers nothing unless it is running.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "../common/app.h"
#include "forward.h"
#include "session.h"
#include "sl_errno.h"
#include "telemetry.h"

/* Telemetry calls back without an argument of ours. */
static struct daemon *the_daemon;

struct daemon *
telemetry_enter(void)
{
	struct daemon *d = the_daemon;

	pthread_mutex_lock(&d->lock);
	if (d->state == DAEMON_RUNNING)
		return d;
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

void
telemetry_leave(struct daemon *d)
{
	pthread_mutex_unlock(&d->lock);
}

void
telemetry_text(struct rte_tel_data *t, const char *name, const char *text)
{
	char fits[RTE_TEL_MAX_STRING_LEN];

	snprintf(fits, sizeof(fits), "%.*s", (int)sizeof(fits) - 1, text);
	rte_tel_data_add_dict_string(t, name, fits);
}

const char *
telemetry_mac(const uint8_t *mac, char *text)
{
	snprintf(text, TELEMETRY_MAC_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return text;
}

void
telemetry_u64(struct rte_tel_data *t, const char *name, uint64_t n)
{
	rte_tel_data_add_dict_u64(t, name, n);
}

bool
telemetry_add(const struct telemetry_endpoint *endpoints, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int ret = rte_telemetry_register_cmd(
			endpoints[i].cmd, endpoints[i].call, endpoints[i].help);

		if (ret == 0)
			continue;
		app_note("telemetry does not take the endpoint %.*s: %s", TELEMETRY_CMD_LEN,
			endpoints[i].cmd, sl_strerror(ret));
		return false;
	}
	return true;
}

static int
on_info(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	struct timespec now;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	clock_gettime(CLOCK_MONOTONIC, &now);
	rte_tel_data_start_dict(t);
	telemetry_u64(t, "protocol", DAEMON_PROTOCOL);
	telemetry_text(t, "version", DAEMON_VERSION);
	telemetry_u64(t, "pid", (uint64_t)getpid());
	telemetry_text(t, "config", d->path);
	telemetry_u64(t, "uptime_s", (uint64_t)now.tv_sec - d->started_s);
	telemetry_u64(t, "reloads", d->reloads);
	telemetry_u64(t, "reloads_refused", d->refused);
	telemetry_u64(t, "lcores", d->nworkers);
	telemetry_u64(t, "ports", d->conf.nports);
	telemetry_u64(t, "services", d->table != NULL ? d->table->n : 0);
	telemetry_text(t, "hugepages", daemon_hugepages(&d->conf) ? "yes" : "no");
	telemetry_text(t, "idle", conf_idle_name(d->conf.idle));
	telemetry_u64(t, "tsc_hz", rte_get_tsc_hz());
	telemetry_text(t, "log", conf_log_name(d->conf.log_level));
	telemetry_leave(d);
	return 0;
}

static const char *
port_name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	(void)room;
	(void)size;
	return i < d->conf.nports ? d->conf.port[i].name : NULL;
}

static void
port_dict(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	const struct conf_port *p = &d->conf.port[i];
	struct rte_tel_data *addrs = rte_tel_data_alloc();
	char text[RTE_ETHER_ADDR_FMT_SIZE + 64];
	struct rte_ether_addr mac = {{0}};
	struct rte_eth_stats s = {0};
	struct rte_eth_link link = {0};
	uint16_t mtu = 0;

	(void)rte_eth_stats_get(d->port_id[i], &s);
	(void)rte_eth_link_get_nowait(d->port_id[i], &link);
	(void)rte_eth_macaddr_get(d->port_id[i], &mac);
	(void)rte_eth_dev_get_mtu(d->port_id[i], &mtu);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "name", p->name);
	telemetry_text(t, "device", p->device);
	telemetry_text(t, "interface", p->iface);
	telemetry_text(t, "mac", telemetry_mac(mac.addr_bytes, text));
	telemetry_text(t, "link", link.link_status == RTE_ETH_LINK_UP ? "up" : "down");
	telemetry_u64(t, "mtu", mtu);
	telemetry_u64(t, "vlan", p->vlan);
	telemetry_u64(t, "rx_queues", p->queues);
	telemetry_u64(t, "tx_queues", conf_tx_queues(&d->conf, p));
	telemetry_u64(t, "ring", conf_ring(p));
	telemetry_u64(t, "rx_packets", s.ipackets);
	telemetry_u64(t, "rx_bytes", s.ibytes);
	telemetry_u64(t, "rx_missed", s.imissed);
	telemetry_u64(t, "rx_errors", s.ierrors);
	telemetry_u64(t, "rx_no_mbuf", s.rx_nombuf);
	telemetry_u64(t, "tx_packets", s.opackets);
	telemetry_u64(t, "tx_bytes", s.obytes);
	telemetry_u64(t, "tx_errors", s.oerrors);
	if (addrs == NULL)
		return;
	rte_tel_data_start_array(addrs, RTE_TEL_STRING_VAL);
	for (uint16_t k = 0; k < p->naddrs; k++) {
		size_t len = strlen(sl_addr_format(&p->addrs[k].addr, text, sizeof(text)));

		snprintf(text + len, sizeof(text) - len, "/%u", p->addrs[k].prefix);
		rte_tel_data_add_array_string(addrs, text);
	}
	rte_tel_data_add_dict_container(t, "addresses", addrs, 0);
}

static const char *
service_name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	(void)room;
	(void)size;
	return i < d->table->n ? d->table->service[i]->conf.name : NULL;
}

/* What the service or its queues lost, by cause. */
static void
service_drops(const struct service_sums *sums, const uint64_t *outcome, struct rte_tel_data *t)
{
	struct rte_tel_data *drops = rte_tel_data_alloc();

	if (drops == NULL)
		return;
	rte_tel_data_start_dict(drops);
	telemetry_u64(drops, "udp_rcvbuf", sums->rcvbuf);
	telemetry_u64(drops, "udp_slots", sums->slots);
	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		if (service_outcome_info[i].drop)
			telemetry_u64(drops, service_outcome_info[i].name, outcome[i]);
	rte_tel_data_add_dict_container(t, "drops", drops, 0);
}

static void
service_dict(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	const struct service *s = d->table->service[i];
	uint64_t outcome[SERVICE_OUTCOMES] = {0}, bytes = 0;
	struct rte_tel_data *outcomes = rte_tel_data_alloc();
	struct service_sums sums = {0};
	char text[64] = "any";

	service_sums(s, &sums);
	service_outcomes(d, s, outcome);
	for (uint16_t w = 0; w < d->nworkers; w++)
		bytes += sl_load_relaxed(&s->cell[w].bytes);
	if (s->conf.has_address)
		sl_addr_format(&s->conf.address, text, sizeof(text));
	rte_tel_data_start_dict(t);
	telemetry_text(t, "name", s->conf.name);
	telemetry_text(t, "kind", conf_kind_name(s->conf.kind));
	telemetry_u64(t, "udp_port", s->conf.udp_port);
	telemetry_text(t, "address", text);
	telemetry_text(t, "port", s->conf.port[0] != '\0' ? s->conf.port : "any");
	telemetry_u64(t, "lcore", d->worker[s->worker].cpu);
	telemetry_u64(t, "sockets", s->nsocks);
	telemetry_u64(t, "rcvbuf", s->conf.rcvbuf);
	telemetry_u64(
		t, "received", s->forward != NULL ? forward_entered(s->forward) : sums.handed);
	telemetry_u64(t, "bytes", bytes);
	telemetry_u64(t, "held", sums.held);
	telemetry_u64(t, "held_bytes", sums.held_bytes);
	telemetry_u64(t, "udp_rcvbuf", sums.rcvbuf);
	telemetry_u64(t, "udp_slots", sums.slots);
	service_drops(&sums, outcome, t);
	if (outcomes == NULL)
		return;
	rte_tel_data_start_dict(outcomes);
	for (int k = 0; k < SERVICE_OUTCOMES; k++)
		telemetry_u64(outcomes, service_outcome_info[k].name, outcome[k]);
	rte_tel_data_add_dict_container(t, "outcomes", outcomes, 0);
}

/* The ith socket of all services: its service, and which of its sockets it is; NULL: there are not
 * so many. */
static const struct service *
nth_socket(const struct daemon *d, uint16_t i, uint16_t *k)
{
	for (uint16_t n = 0; n < d->table->n; n++) {
		const struct service *s = d->table->service[n];

		*k = i;
		if (i < s->nsocks)
			return s;
		i -= s->nsocks;
	}
	return NULL;
}

static const char *
socket_name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	uint16_t k = 0;
	const struct service *s = nth_socket(d, i, &k);

	if (s != NULL)
		snprintf(room, size, "%s/%u", s->conf.name, k);
	return s != NULL ? room : NULL;
}

static void
socket_dict(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	uint16_t k = 0;
	const struct service *s = nth_socket(d, i, &k);
	struct sl_udp_sock_stats st;
	char text[64];

	sl_udp_sock_stats(s->sock[k], &st);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "service", s->conf.name);
	telemetry_text(t, "address",
		sl_addr_is_any(&s->bound[k]) ? "any"
					     : sl_addr_format(&s->bound[k], text, sizeof(text)));
	telemetry_u64(t, "udp_port", s->conf.udp_port);
	telemetry_u64(t, "lcore", d->worker[s->worker].cpu);
	telemetry_u64(t, "queued", st.queue.appended);
	telemetry_u64(t, "received", st.datagrams);
	telemetry_u64(t, "held", st.queue.appended - st.queue.released);
	telemetry_u64(t, "held_bytes", st.queue.rmem);
	telemetry_u64(t, "udp_rcvbuf", st.queue.drops[SL_UDPQ_DROP_RCVBUF]);
	telemetry_u64(t, "udp_slots", st.queue.drops[SL_UDPQ_DROP_SLOTS]);
}

static const char *
lcore_name(const struct daemon *d, uint16_t i, char *room, size_t size)
{
	if (i < d->nworkers)
		snprintf(room, size, "%u", d->worker[i].cpu);
	return i < d->nworkers ? room : NULL;
}

/* What the worker lost, by cause; causes that did not happen are left out. */
static void
lcore_drops(const struct daemon *d, const struct worker *w, struct rte_tel_data *t)
{
	struct rte_tel_data *drops = rte_tel_data_alloc();
	uint64_t counts[SL_OUTCOME_COUNT];

	if (drops == NULL)
		return;
	rte_tel_data_start_dict(drops);
	sl_inet_outcomes(d->inet, w->index, counts);
	for (int i = 0; i < SL_OUTCOME_COUNT; i++)
		if (sl_outcome_info((enum sl_outcome)i)->drop && counts[i] != 0)
			telemetry_u64(drops, sl_outcome_info((enum sl_outcome)i)->name, counts[i]);
	rte_tel_data_add_dict_container(t, "drops", drops, 0);
}

static void
lcore_dict(const struct daemon *d, uint16_t i, struct rte_tel_data *t)
{
	const struct worker *w = &d->worker[i];
	uint64_t received = 0;

	for (uint16_t k = 0; k < d->conf.nports; k++)
		received += sl_load_relaxed(&w->received[k]);
	rte_tel_data_start_dict(t);
	telemetry_u64(t, "lcore", w->cpu);
	telemetry_u64(t, "queues", w->npairs);
	telemetry_u64(t, "received", received);
	telemetry_u64(t, "turns", sl_load_relaxed(&w->turns));
	telemetry_u64(t, "busy_turns", sl_load_relaxed(&w->busy_turns));
	telemetry_u64(t, "served", sl_load_relaxed(&w->served));
	telemetry_u64(t, "busy_cycles", sl_load_relaxed(&w->busy_cycles));
	telemetry_u64(t, "idle_cycles", sl_load_relaxed(&w->idle_cycles));
	telemetry_u64(t, "sleep_cycles", sl_load_relaxed(&w->sleep_cycles));
	telemetry_text(t, "idle", conf_idle_name(d->conf.idle));
	telemetry_u64(t, "sleeps", sl_load_relaxed(&w->sleeps));
	telemetry_u64(t, "interrupts", sl_load_relaxed(&w->interrupts));
	telemetry_u64(t, "wakes", sl_load_relaxed(&w->wakes));
	telemetry_u64(t, "timeouts", sl_load_relaxed(&w->timeouts));
	telemetry_u64(t, "slept_us", sl_load_relaxed(&w->slept_ns) / 1000);
	telemetry_u64(t, "longest_sleep_us", sl_load_relaxed(&w->longest_ns) / 1000);
	telemetry_u64(t, "sleep_limit_us", w->sleep_max_ns / 1000);
	lcore_drops(d, w, t);
}

static void
mirror_outcomes(const struct daemon *d, bool drops, struct rte_tel_data *t)
{
	uint64_t counts[MIRROR_OUTCOMES] = {0};

	mirrors_counts(d, counts);
	for (size_t i = 0; i < MIRROR_ENDS; i++)
		if (mirror_end[i].lost || !drops)
			telemetry_u64(t, mirror_end[i].name, counts[mirror_end[i].outcome]);
}

/* Outcomes of the stack, of services, bridges and ports; drops alone, or all. */
static void
outcomes_dict(const struct daemon *d, bool drops, struct rte_tel_data *t)
{
	uint64_t counts[SL_OUTCOME_COUNT], outcome[SERVICE_OUTCOMES], missed = 0, lost = 0;
	struct rte_eth_stats s;

	rte_tel_data_start_dict(t);
	sl_inet_outcomes(d->inet, SL_INET_NO_WORKER, counts);
	for (int i = 0; i < SL_OUTCOME_COUNT; i++) {
		const struct sl_outcome_info *info = sl_outcome_info((enum sl_outcome)i);

		if (info->drop || !drops)
			telemetry_u64(t, info->name, counts[i]);
	}
	memcpy(outcome, d->gone_outcome, sizeof(outcome));
	for (uint16_t i = 0; i < d->table->n; i++)
		service_outcomes(d, d->table->service[i], outcome);
	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		if (service_outcome_info[i].drop || !drops)
			telemetry_u64(t, service_outcome_info[i].name, outcome[i]);
	mirror_outcomes(d, drops, t);
	bridge_outcomes(d, drops, t);
	telemetry_u64(t, "purged", d->gone.purged);
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (rte_eth_stats_get(d->port_id[i], &s) == 0) {
			missed += s.imissed;
			lost += s.oerrors;
		}
	telemetry_u64(t, "spread_full", spreads_full(d));
	telemetry_u64(t, "port_missed", missed);
	telemetry_u64(t, "port_gave_up", lost);
	exception_drops(d, t);
}

static int
on_drops(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();

	(void)param;
	if (d == NULL)
		return -EAGAIN;
	outcomes_dict(d, strcmp(cmd, "/sluice/drops") == 0, t);
	telemetry_leave(d);
	return 0;
}

static int
on_audit(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	struct audit_line lines[AUDIT_LINES_MAX];
	uint16_t n;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	n = daemon_audit(d, lines);
	telemetry_leave(d);
	/* Arrays cannot have objects in them, and an object's names no blanks. */
	rte_tel_data_start_dict(t);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_tel_data *one = rte_tel_data_alloc();
		char key[16];

		if (one == NULL)
			return -ENOMEM;
		snprintf(key, sizeof(key), "line_%02u", i);
		rte_tel_data_start_dict(one);
		telemetry_text(one, "name", lines[i].name);
		telemetry_u64(one, "entered", lines[i].entered);
		telemetry_u64(one, "outcomes", lines[i].outcomes);
		telemetry_u64(one, "held", lines[i].held);
		rte_tel_data_add_dict_container(t, key, one, 0);
	}
	return 0;
}

static int
on_reload(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct reload_result r;

	(void)cmd;
	(void)param;
	daemon_reload(the_daemon, &r);
	rte_tel_data_start_dict(t);
	telemetry_text(t, "result", r.applied ? "applied" : "refused");
	telemetry_u64(t, "added", r.added);
	telemetry_u64(t, "removed", r.removed);
	telemetry_u64(t, "changed", r.changed);
	telemetry_u64(t, "kept", r.kept);
	telemetry_u64(t, "mistakes", r.mistakes);
	return 0;
}

static int
on_report(const char *cmd, const char *param, struct rte_tel_data *t)
{
	struct daemon *d = telemetry_enter();
	int ret;

	(void)cmd;
	(void)param;
	if (d == NULL)
		return -EAGAIN;
	ret = rte_tel_data_string(t, d->report);
	telemetry_leave(d);
	return ret;
}

const struct telemetry_kind port_kind = {
	.list = {"/sluice/ports", telemetry_on_list, "Names of ports. No parameter"},
	.one = {"/sluice/port", telemetry_on_one,
		"State and counters of a port. Parameter: its name"},
	.name = port_name,
	.fill = port_dict,
};
const struct telemetry_kind service_kind = {
	.list = {"/sluice/services", telemetry_on_list, "Names of services. No parameter"},
	.one = {"/sluice/service", telemetry_on_one, "Counters of a service. Parameter: its name"},
	.name = service_name,
	.fill = service_dict,
};
const struct telemetry_kind socket_kind = {
	.list = {"/sluice/sockets", telemetry_on_list, "Names of sockets. No parameter"},
	.one = {"/sluice/socket", telemetry_on_one, "Counters of a socket. Parameter: its name"},
	.name = socket_name,
	.fill = socket_dict,
};
const struct telemetry_kind lcore_kind = {
	.list = {"/sluice/lcores", telemetry_on_list, "Processors of the workers. No parameter"},
	.one = {"/sluice/lcore", telemetry_on_one,
		"Counters of a worker. Parameter: its processor"},
	.name = lcore_name,
	.fill = lcore_dict,
};

bool
telemetry_open(struct daemon *d)
{
	static const struct telemetry_endpoint endpoints[] = {
		{"/sluice/info", on_info,
			"The daemon: version, configuration, uptime. No parameter"},
		{"/sluice/outcomes", on_drops, "What became of every packet. No parameter"},
		{"/sluice/drops", on_drops, "Packets that were lost, by cause. No parameter"},
		{"/sluice/audit", on_audit, "What entered against what became of it. No parameter"},
		{"/sluice/reload", on_reload, "Read the configuration again. No parameter"},
		{"/sluice/report", on_report, "What the last reload found. No parameter"},
	};

	the_daemon = d;
	return telemetry_add(endpoints, SL_COUNT_OF(endpoints)) && kinds_telemetry_open() &&
	       routes_telemetry_open() && backends_telemetry_open() && bridge_telemetry_open() &&
	       diff_telemetry_open() && explain_telemetry_open() && session_telemetry_open() &&
	       occupancy_telemetry_open();
}
