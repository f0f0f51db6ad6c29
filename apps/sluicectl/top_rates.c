/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>
#include <time.h>

#include "top.h"

#define NANO 1e9
#define DROPS_MAX 512

json_t *
top_sample(int fd)
{
	struct timespec now;
	json_t *o = json_object();

	clock_gettime(CLOCK_MONOTONIC, &now);
	json_object_set_new(o, "at",
		json_integer((json_int_t)now.tv_sec * 1000000000 + (json_int_t)now.tv_nsec));
	json_object_set_new(o, "info", ctl_ask(fd, "/sluice/info", NULL));
	json_object_set_new(o, "lcores", ctl_collect(fd, "/sluice/lcores", "/sluice/lcore"));
	json_object_set_new(o, "ports", ctl_collect(fd, "/sluice/ports", "/sluice/port"));
	json_object_set_new(o, "services", ctl_collect(fd, "/sluice/services", "/sluice/service"));
	json_object_set_new(o, "rings", ctl_ask(fd, "/sluice/rings", NULL));
	return o;
}

/* A counter; 0 where there is none. */
static double
count(const json_t *o, const char *key)
{
	return (double)json_integer_value(json_object_get(o, key));
}

/* What it grew by. One that is smaller than before was begun anew. */
static double
grown(const json_t *before, const json_t *after, const char *key)
{
	double a = count(before, key), b = count(after, key);

	return b >= a ? b - a : b;
}

static double
seconds(const json_t *before, const json_t *after)
{
	double s = grown(before, after, "at") / NANO;

	return s > 0 ? s : 1;
}

/* The row of the list whose key has the same value, or NULL. */
static const json_t *
row_of(const json_t *list, const char *key, const json_t *like)
{
	const json_t *row, *value = json_object_get(like, key);
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (json_equal(json_object_get(row, key), value))
			return row;
	}
	return NULL;
}

static void
set(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, json_real(value));
}

/* a by b, or null. */
static void
set_ratio(json_t *o, const char *key, double a, double b)
{
	json_object_set_new(o, key, b > 0 ? json_real(a / b) : json_null());
}

static void
copy_value(json_t *o, const char *key, const json_t *from, const char *from_key)
{
	json_object_set(o, key, json_object_get(from, from_key));
}

/* Sum of what an object's counters grew by, each of which is a line of the table of drops. */
static double
add_drops(json_t *drops, const char *what, const json_t *name, const json_t *before,
	const json_t *after, double s)
{
	const char *cause;
	json_t *value;
	double sum = 0;

	json_object_foreach((json_t *)(uintptr_t)after, cause, value)
	{
		double by = grown(before, after, cause);

		sum += by;
		if (json_integer_value(value) == 0 || json_array_size(drops) >= DROPS_MAX)
			continue;
		json_array_append_new(
			drops, json_pack("{s:s, s:O, s:s, s:f, s:O}", "what", what, "where", name,
				       "cause", cause, "pps", by / s, "total", value));
	}
	return sum;
}

static json_t *
lcore_rates(const json_t *a, const json_t *b, double s, json_t *drops)
{
	double received = grown(a, b, "received"), served = grown(a, b, "served");
	double busy = grown(a, b, "busy_cycles"), idle = grown(a, b, "idle_cycles");
	double asleep = grown(a, b, "sleep_cycles"), all = busy + idle + asleep;
	double lost;
	json_t *o = json_object();

	copy_value(o, "lcore", b, "lcore");
	set(o, "rx_pps", received / s);
	set(o, "served_pps", served / s);
	/* One that serves what others receive has its work in services. */
	set_ratio(o, "cycles_per_packet", busy, received > 0 ? received : served);
	set_ratio(o, "busy", 100 * busy, all);
	set_ratio(o, "idle", 100 * idle, all);
	set_ratio(o, "asleep", 100 * asleep, all);
	set_ratio(o, "burst", received, grown(a, b, "busy_turns"));
	lost = add_drops(drops, "lcore", json_object_get(b, "lcore"), json_object_get(a, "drops"),
		json_object_get(b, "drops"), s);
	set(o, "lost_pps", lost / s);
	return o;
}

/* What is in the rings of a port, or null where its driver cannot tell. */
static void
add_ring(json_t *o, const json_t *port, const json_t *rings)
{
	const char *name = json_string_value(json_object_get(port, "name")), *ring;
	size_t len = name != NULL ? strlen(name) : 0;
	json_int_t used = -1;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)rings, ring, value)
	{
		if (strncmp(ring, name != NULL ? name : "", len) == 0 && ring[len] == '/')
			used = (used > 0 ? used : 0) + json_integer_value(value);
	}
	json_object_set_new(o, "ring_used", used >= 0 ? json_integer(used) : json_null());
	json_object_set_new(o, "ring",
		json_integer((json_int_t)(count(port, "ring") * count(port, "rx_queues"))));
}

static json_t *
port_rates(const json_t *a, const json_t *b, double s, json_t *drops)
{
	static const char *const causes[] = {"rx_missed", "rx_errors", "rx_no_mbuf", "tx_errors"};
	json_t *o = json_object(), *lost_a = json_object(), *lost_b = json_object();

	copy_value(o, "name", b, "name");
	copy_value(o, "link", b, "link");
	set(o, "rx_pps", grown(a, b, "rx_packets") / s);
	set(o, "rx_bps", 8 * grown(a, b, "rx_bytes") / s);
	set(o, "tx_pps", grown(a, b, "tx_packets") / s);
	set(o, "tx_bps", 8 * grown(a, b, "tx_bytes") / s);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		copy_value(lost_a, causes[i], a, causes[i]);
		copy_value(lost_b, causes[i], b, causes[i]);
	}
	set(o, "lost_pps",
		add_drops(drops, "port", json_object_get(b, "name"), lost_a, lost_b, s) / s);
	json_decref(lost_a);
	json_decref(lost_b);
	return o;
}

static json_t *
service_rates(const json_t *a, const json_t *b, double s, json_t *drops)
{
	json_t *o = json_object();
	double lost;

	copy_value(o, "name", b, "name");
	copy_value(o, "kind", b, "kind");
	copy_value(o, "lcore", b, "lcore");
	set(o, "pps", grown(a, b, "received") / s);
	/* What goes past sockets, as a load balancer's, is not counted in bytes. */
	if (count(b, "sockets") > 0)
		set(o, "bps", 8 * grown(a, b, "bytes") / s);
	else
		json_object_set_new(o, "bps", json_null());
	copy_value(o, "held", b, "held");
	set_ratio(
		o, "queue", 100 * count(b, "held_bytes"), count(b, "rcvbuf") * count(b, "sockets"));
	lost = add_drops(drops, "service", json_object_get(b, "name"), json_object_get(a, "drops"),
		json_object_get(b, "drops"), s);
	set(o, "lost_pps", lost / s);
	return o;
}

static json_t *
rows(const json_t *before, const json_t *after, const char *list, const char *key, json_t *drops,
	json_t *(*rate)(const json_t *a, const json_t *b, double s, json_t *drops))
{
	const json_t *was = json_object_get(before, list), *b;
	json_t *out = json_array();
	double s = seconds(before, after);
	size_t i;

	json_array_foreach(json_object_get(after, list), i, b)
		json_array_append_new(out, rate(row_of(was, key, b), b, s, drops));
	return out;
}

static double
pps_of(const json_t *row)
{
	return json_number_value(json_object_get(row, "pps"));
}

/* What happens most, and then what happened most, comes first. */
static void
sort_drops(json_t *drops)
{
	size_t n = json_array_size(drops);

	for (size_t i = 1; i < n; i++) {
		json_t *row = json_incref(json_array_get(drops, i));
		size_t k = i;

		for (; k > 0; k--) {
			const json_t *other = json_array_get(drops, k - 1);

			if (pps_of(other) > pps_of(row) ||
				(pps_of(other) >= pps_of(row) &&
					count(other, "total") >= count(row, "total")))
				break;
		}
		json_array_remove(drops, i);
		json_array_insert(drops, k, row);
		json_decref(row);
	}
}

json_t *
top_rates(const json_t *before, const json_t *after)
{
	const json_t *info = json_object_get(after, "info"), *port;
	json_t *o = json_object(), *drops = json_array(), *ports;
	size_t i;

	set(o, "interval_s", seconds(before, after));
	copy_value(o, "uptime_s", info, "uptime_s");
	copy_value(o, "idle", info, "idle");
	json_object_set_new(
		o, "lcores", rows(before, after, "lcores", "lcore", drops, lcore_rates));
	ports = rows(before, after, "ports", "name", drops, port_rates);
	json_array_foreach(json_object_get(after, "ports"), i, port)
		add_ring(json_array_get(ports, i), port, json_object_get(after, "rings"));
	json_object_set_new(o, "ports", ports);
	json_object_set_new(
		o, "services", rows(before, after, "services", "name", drops, service_rates));
	sort_drops(drops);
	json_object_set_new(o, "drops", drops);
	return o;
}
