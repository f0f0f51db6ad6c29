/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What a comparison of two files says: of every key that a file may have, either what a reload
 * makes of it, or that it needs a restart. Keys are taken from the tables that files are read by,
 * so that one that is new is missed here. */
#include <errno.h>
#include <stdio.h>

#include "conf_help.h"
#include "conf_priv.h"
#include "diff_priv.h"
#include "failing_realloc.h"

#define ADDRESS3 "address = 198.18.9.2/24\n"
#define OTHER "[port lan3]\ndevargs = net_tpacket3,iface=v4\n" ADDRESS3
#define LAN                                                                                        \
	"[port lan1]\ndevargs = net_tpacket1,iface=v2\n"                                           \
	"[port lan2]\ndevargs = net_tpacket2,iface=v3\n" OTHER
#define LB "[service lb]\nkind = forward\nudp-port = 53\n"
#define VIP "address = 198.18.0.2\n"
#define CHECK_UDP "check = udp\n"
#define SEND "check-send = ping\n"
#define REFLECT "[service r]\nkind = reflect\nudp-port = 862\n"
#define MIRROR "[service m]\nkind = mirror\nudp-port = 9\n"
#define VM "[tapvu vm]\n"
#define RING "[pktring ring]\n"
#define NET1 "address = 198.18.1.1/24\n"
/* Two lcores with work, whatever others do. */
#define TWO "[sluiced]\nlcores = 1 2\n[port all]\ndevargs = net_null9\naddress = 198.18.8.2/24\n"

/* Two files that differ in one key. */
static const struct {
	const char *section, *key;
	const char *file;      /* its last section has the key */
	const char *from, *to; /* values; NULL: the key is not there */
} cases[] = {
	{"sluiced", "name", P G, NULL, "x"},
	{"sluiced", "lcores", P "[sluiced]\n", "1", "2"},
	{"sluiced", "memory", P G, "300", "400"},
	{"sluiced", "hugepages", P G, "auto", "no"},
	{"sluiced", "log", P G, "info", "debug"},
	{"sluiced", "idle", P G, "poll", "backoff"},
	{"sluiced", "driver", P G, "/a.so", "/b.so"},
	{"sluiced", "secondary", P G, "no", "yes"},
	{"metrics", "listen", G P "[metrics]\n", "127.0.0.1:1", "127.0.0.1:2"},
	{"port", "devargs", G "[port wan]\naddress = 198.18.0.2/24\n", "net_null0", "net_null1"},
	{"port", "address", G "[port wan]\ndevargs = net_null0\n", "198.18.0.2/24",
		"198.18.0.3/24"},
	{"port", "gateway", G P, NULL, "198.18.0.1"},
	{"port", "lcores", TWO P, "1", "2"},
	{"port", "queues", TWO P, "1", "2"},
	{"port", "ring", G P, "512", "1024"},
	{"port", "mtu", G P, "1500", "1400"},
	{"port", "vlan", G P, "3", "4"},
	{"port", "promiscuous", G P, "no", "yes"},
	{"port", "exception", G P, NULL, "k0"},
	{"vlan", "port", G P OTHER "[vlan lab]\nvlan = 7\naddress = 198.18.7.2/24\n", "wan",
		"lan3"},
	{"vlan", "vlan", G P "[vlan lab]\nport = wan\naddress = 198.18.7.2/24\n", "7", "8"},
	{"vlan", "address", G P "[vlan lab]\nport = wan\nvlan = 7\n", "198.18.7.2/24",
		"198.18.7.3/24"},
	{"vlan", "gateway", G P "[vlan lab]\nport = wan\nvlan = 7\naddress = 198.18.7.2/24\n", NULL,
		"198.18.7.1"},
	{"vlan", "exception", G P "[vlan lab]\nport = wan\nvlan = 7\naddress = 198.18.7.2/24\n",
		"k1", "k2"},
	{"tapvu", "path", G VM NET1, "/run/a", "/run/b"},
	{"tapvu", "address", G VM "path = /run/a\n", "198.18.1.1/24", "198.18.1.2/24"},
	{"tapvu", "gateway", G VM NET1 "path = /run/a\n", "198.18.1.8", "198.18.1.9"},
	{"tapvu", "mac", G VM NET1 "path = /run/a\n", NULL, "02:00:00:00:00:01"},
	{"tapvu", "client", G VM NET1 "path = /run/a\n", "no", "yes"},
	{"tapvu", "pairs", G VM NET1 "path = /run/a\n", NULL, "4"},
	{"tapvu", "frag", G VM NET1 "path = /run/a\n", NULL, "lcore"},
	{"tapvu", "lcores", TWO VM NET1 "path = /run/a\n", "1", "2"},
	{"tapvu", "queues", TWO VM NET1 "path = /run/a\n", "1", "2"},
	{"tapvu", "mtu", G VM NET1 "path = /run/a\n", "1500", "1400"},
	{"tapvu", "vlan", G VM NET1 "path = /run/a\n", "3", "4"},
	{"tapvu", "promiscuous", G VM NET1 "path = /run/a\n", "no", "yes"},
	{"tapvu", "exception", G VM NET1 "path = /run/a\n", NULL, "k0"},
	{"pktring", "path", G RING NET1, "/run/a", "/run/b"},
	{"pktring", "address", G RING "path = /run/a\n", "198.18.1.1/24", "198.18.1.2/24"},
	{"pktring", "gateway", G RING NET1 "path = /run/a\n", "198.18.1.8", "198.18.1.9"},
	{"pktring", "mac", G RING NET1 "path = /run/a\n", NULL, "02:00:00:00:00:01"},
	{"pktring", "lend", G RING NET1 "path = /run/a\n", "no", "yes"},
	{"pktring", "lcores", TWO RING NET1 "path = /run/a\n", "1", "2"},
	{"pktring", "queues", TWO RING NET1 "path = /run/a\n", "1", "2"},
	{"pktring", "mtu", G RING NET1 "path = /run/a\n", "1500", "1400"},
	{"pktring", "vlan", G RING NET1 "path = /run/a\n", "3", "4"},
	{"pktring", "promiscuous", G RING NET1 "path = /run/a\n", "no", "yes"},
	{"pktring", "exception", G RING NET1 "path = /run/a\n", NULL, "k0"},
	{"route", "prefix", G P "[route far]\nvia = 198.18.0.9\n", "198.51.100.0/24",
		"198.51.100.0/25"},
	{"route", "via", G P "[route far]\nprefix = 198.51.100.0/24\n", "198.18.0.8", "198.18.0.9"},
	{"route", "port", G P OTHER "[route far]\nprefix = 198.51.100.0/24\n", "wan", "lan3"},
	{"route", "metric", G P "[route far]\nprefix = 198.51.100.0/24\nvia = 198.18.0.9\n", "1",
		"2"},
	{"service", "kind", G P "[service s]\nudp-port = 7\n", "echo", "sink"},
	{"service", "udp-port", G P "[service s]\nkind = echo\n", "7", "8"},
	{"service", "address", G P S, NULL, "198.18.0.2"},
	{"service", "port", G P S, NULL, "wan"},
	{"service", "rcvbuf", G P S, "100000", "200000"},
	{"service", "sequence", G P REFLECT, "stateless", "stateful"},
	{"service", "format", G P REFLECT, "ntp", "ptp"},
	{"service", "backends", G P B LB VIP, "b1", "b1 b2"},
	{"service", "affinity", G P B L, "flow", "source"},
	{"service", "drain", G P B L, "keep", "move"},
	{"service", "source", G P B L, "keep", "own"},
	{"service", "slots", G P B L, "251", "65537"},
	{"service", "seed", G P B L, "1", "2"},
	{"service", "flows", G P B L, "1024", "2048"},
	{"service", "flow-timeout", G P B L, "10s", "20s"},
	{"service", "new-flows", G P B L, "1000", "2000"},
	{"service", "check", G P B L SEND, "none", "udp"},
	{"service", "check-interval", G P B L CHECK_UDP SEND, "2s", "3s"},
	{"service", "check-timeout", G P B L CHECK_UDP SEND, "100ms", "200ms"},
	{"service", "check-rise", G P B L CHECK_UDP SEND, "2", "3"},
	{"service", "check-fall", G P B L CHECK_UDP SEND, "2", "3"},
	{"service", "check-send", G P B L CHECK_UDP, "a", "b"},
	{"service", "check-expect", G P B L CHECK_UDP SEND, "a", "b"},
	{"service", "file", G P MIRROR, "/run/a.pcapng", "/run/b.pcapng"},
	{"service", "file-size", G P MIRROR "file = /run/a.pcapng\n", "1M", "2M"},
	{"service", "files", G P MIRROR "file = /run/a.pcapng\n", "2", "3"},
	{"service", "interface", G P MIRROR, "m0", "m1"},
	{"backend", "address",
		G P L "[backend b2]\naddress = 198.18.0.12\nudp-port = 1\n"
		      "[backend b1]\nudp-port = 53\n",
		"198.18.0.11", "198.18.0.13"},
	{"backend", "udp-port",
		G P L "[backend b2]\naddress = 198.18.0.12\nudp-port = 1\n"
		      "[backend b1]\naddress = 198.18.0.11\n",
		"53", "54"},
	{"backend", "weight",
		G P L "[backend b2]\naddress = 198.18.0.12\nudp-port = 1\n"
		      "[backend b1]\naddress = 198.18.0.11\nudp-port = 53\n",
		"1", "2"},
	{"bridge", "ports", G P LAN "[bridge b0]\nport-entries = 9\n", "lan1 lan2",
		"lan1 lan2 lan3"},
	{"bridge", "entries", G P LAN "[bridge b0]\nports = lan1 lan2\nport-entries = 9\n", "64",
		"128"},
	{"bridge", "port-entries", G P LAN "[bridge b0]\nports = lan1 lan2\n", "9", "10"},
	{"bridge", "age", G P LAN "[bridge b0]\nports = lan1 lan2\n", "8", "9"},
};

/* Blank out what one of the files cannot have: a port in a bridge has no address, and only what is
 * checked has something to send. */
static void
leave_out(char *text, const char *what)
{
	char *at = strstr(text, what);

	REQUIRE(at != NULL);
	memset(at, '\n', strlen(what));
}

static void
read_case(size_t i, bool second, struct conf *c)
{
	const char *value = second ? cases[i].to : cases[i].from, *key = cases[i].key;
	char text[1024];

	if (value != NULL)
		snprintf(text, sizeof(text), "%s%s = %s\n", cases[i].file, key, value);
	else
		snprintf(text, sizeof(text), "%s", cases[i].file);
	if (second && strcmp(key, "ports") == 0)
		leave_out(text, ADDRESS3);
	if (!second && strcmp(key, "check") == 0)
		leave_out(text, SEND);
	/* A value that is for a later version is read. */
	if (read_string(text, c) == 0 || strcmp(key, "source") == 0)
		return;
	test_bad++;
	fprintf(stderr, "[%s] %s: %s", cases[i].section, key, said);
}

/* Does the report say that the key needs a restart? */
static bool
needs_restart(size_t i)
{
	struct mistakes *m = mistakes_create("t.conf");
	char want[128], section[64];

	REQUIRE(m != NULL);
	conf_restart_only(&conf, &other, m);
	mistakes_join(m, said, sizeof(said));
	mistakes_free(m);
	snprintf(section, sizeof(section), "[%s", cases[i].section);
	snprintf(want, sizeof(want), "] %s: changes with a restart only; ", cases[i].key);
	return strstr(said, section) != NULL && strstr(said, want) != NULL;
}

/* All rows that need no daemon: of its own are slots and flows alone. */
static int
compare(struct diff *diff)
{
	int ret = diff_settings(&conf, &other, diff);

	if (ret == 0)
		ret = diff_routes(&conf, &other, diff);
	if (ret == 0)
		ret = diff_bridges(&conf, &other, diff);
	for (uint16_t i = 0; i < conf.nservices && ret == 0; i++) {
		const struct conf_service *a = &conf.service[i], *b = &other.service[i];
		struct diff_row *r;

		if (conf_service_equal(a, b) &&
			(a->kind != CONF_FORWARD || conf_forward_equal(&conf, a, &other, b)))
			continue;
		r = diff_add(diff, "service", "changed", a->name, a->name);
		if (r == NULL)
			return -ENOMEM;
		diff_service_keys(r, a, b);
		for (uint16_t k = 0; k < conf.nbackends; k++) {
			r = diff_add(diff, "backend", "changed", a->name, conf.backend[k].name);
			if (r == NULL)
				return -ENOMEM;
			diff_backend_keys(r, &conf.backend[k], &other.backend[k]);
		}
	}
	return ret;
}

/* Is there a row that names the key? */
static bool
is_told(size_t i, const struct diff *diff)
{
	const char *what = strcmp(cases[i].section, "sluiced") == 0 ? "setting" : cases[i].section;
	size_t len = strlen(cases[i].key);

	for (uint32_t k = 0; k < diff->n; k++)
		if (strcmp(diff->row[k].what, what) == 0 &&
			strncmp(diff->row[k].detail, cases[i].key, len) == 0 &&
			(diff->row[k].detail[len] == ' ' || diff->row[k].detail[len] == '\0'))
			return true;
	return false;
}

static void
each_key_has_its_say(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct diff diff = {0};
		bool restart, told;

		read_case(i, false, &conf);
		read_case(i, true, &other);
		restart = needs_restart(i);
		CHECK_EQ(compare(&diff), 0);
		told = is_told(i, &diff);
		if (restart == told) {
			test_bad++;
			fprintf(stderr, "[%s] %s: %s\n%s", cases[i].section, cases[i].key,
				told ? "applied, and needs a restart" : "is not told", said);
		}
		/* What needs a restart alone changes nothing else, and the other way round. */
		if (restart ? diff.n != 0 : said[0] != '\0') {
			test_bad++;
			fprintf(stderr, "[%s] %s: %u rows, and:\n%s", cases[i].section,
				cases[i].key, diff.n, said);
		}
		diff_free(&diff);
	}
}

static bool
has_case(const char *section, const char *key)
{
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++)
		if (strcmp(cases[i].section, section) == 0 && strcmp(cases[i].key, key) == 0)
			return true;
	return false;
}

static void
no_key_is_forgotten(void)
{
	for (const struct conf_section *s = conf_sections; s->word != NULL; s++) {
		for (const struct conf_key *key = s->keys; key->name != NULL; key++) {
			if (has_case(s->word, key->name))
				continue;
			test_bad++;
			fprintf(stderr, "[%s] %s: has no case here\n", s->word, key->name);
		}
	}
}

static void
same_files_do_not_differ(void)
{
	struct diff diff = {0};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		read_case(i, false, &conf);
		read_case(i, false, &other);
		CHECK_EQ(compare(&diff), 0);
		CHECK(!needs_restart(i) && diff.n == 0);
		check_said(cases[i].key, "");
	}
	diff_free(&diff);
}

#define ROUTE(name, net, metric)                                                                   \
	"[route " name "]\nprefix = " net "\nvia = 198.18.0.9\nmetric = " metric "\n"

static void
routes_come_go_and_change(void)
{
	static const struct {
		const char *from, *to;
		const char *rows;
	} files[] = {
		{"", ROUTE("a", "10.0.0.0/8", "1"),
			"added a: prefix 10.0.0.0/8, via 198.18.0.9, port wan, metric 1\n"},
		{ROUTE("a", "10.0.0.0/8", "1"), "",
			"removed a: prefix 10.0.0.0/8, via 198.18.0.9, port wan, metric 1\n"},
		{ROUTE("a", "10.0.0.0/8", "1"), ROUTE("a", "11.0.0.0/8", "2"),
			"changed a: prefix 10.0.0.0/8 -> 11.0.0.0/8, metric 1 -> 2\n"},
		/* Names are the file's alone. */
		{ROUTE("a", "10.0.0.0/8", "1"), ROUTE("b", "10.0.0.0/8", "1"), ""},
		{ROUTE("a", "10.0.0.0/8", "1") ROUTE("b", "11.0.0.0/8", "1"),
			ROUTE("a", "11.0.0.0/8", "1") ROUTE("b", "10.0.0.0/8", "1"), ""},
		/* The former b is a now, and there is another b. */
		{ROUTE("a", "10.0.0.0/8", "1") ROUTE("b", "11.0.0.0/8", "1"),
			ROUTE("a", "11.0.0.0/8", "1") ROUTE("b", "12.0.0.0/8", "1"),
			"removed a: prefix 10.0.0.0/8, via 198.18.0.9, port wan, metric 1\n"
			"added b: prefix 12.0.0.0/8, via 198.18.0.9, port wan, metric 1\n"},
	};

	for (size_t i = 0; i < SL_COUNT_OF(files); i++) {
		struct diff diff = {0};
		char text[512], rows[4096] = "";

		snprintf(text, sizeof(text), "%s%s", G P, files[i].from);
		CHECK_EQ(read_string(text, &conf), 0);
		snprintf(text, sizeof(text), "%s%s", G P, files[i].to);
		CHECK_EQ(read_string(text, &other), 0);
		CHECK_EQ(compare(&diff), 0);
		for (uint32_t k = 0; k < diff.n; k++) {
			size_t at = strlen(rows);

			snprintf(rows + at, sizeof(rows) - at, "%s %s: %s\n", diff.row[k].change,
				diff.row[k].name, diff.row[k].detail);
		}
		if (strcmp(rows, files[i].rows) != 0) {
			test_bad++;
			fprintf(stderr, "%zu: %s", i, rows);
		}
		diff_free(&diff);
	}
}

static void
long_details_say_that_they_are_cut_off(void)
{
	struct conf_service a = {.kind = CONF_MIRROR}, b = {.kind = CONF_MIRROR};
	struct diff diff = {0};
	struct diff_row *r;

	for (int i = 0; i < 3; i++) {
		r = diff_add(&diff, "service", "changed", "m", "m");
		REQUIRE(r != NULL);
		memset(a.mirror.file, 'a', sizeof(a.mirror.file) - 1);
		memset(b.mirror.file, 'b', sizeof(b.mirror.file) - 1);
		for (int k = 0; k <= 2 * i; k++)
			diff_service_keys(r, &a, &b);
		CHECK(strlen(r->detail) < sizeof(r->detail));
		CHECK((strstr(r->detail, "...") != NULL) ==
			(strlen(r->detail) == sizeof(r->detail) - 1));
	}
	CHECK(strstr(diff.row[0].detail, "...") == NULL);
	CHECK(strstr(diff.row[2].detail, "...") != NULL);
	diff_free(&diff);
}

static void
memory_may_fail(void)
{
	static const char more[] = G P LAN LB VIP "backends = b1\n" B ROUTE(
		"a", "10.0.0.0/8", "1") "[bridge b0]\nports = lan1 lan2\nage = 1\n";
	static const char less[] = G "log = debug\n" P LAN LB VIP "backends = b1 b2\n" B
				     "[bridge b0]\nports = lan1 lan2\nage = 2\n";

	CHECK_EQ(read_string(more, &conf), 0);
	CHECK_EQ(read_string(less, &other), 0);
	for (int k = 0;; k++) {
		struct diff diff = {0};
		int ret;

		fail_after = k;
		ret = compare(&diff);
		fail_after = -1;
		CHECK(ret == 0 || ret == -ENOMEM);
		CHECK(ret != 0 || diff.n == 6);
		diff_free(&diff);
		if (ret == 0)
			break;
	}
}

int
main(void)
{
	SL_TEST_RUN(each_key_has_its_say);
	SL_TEST_RUN(no_key_is_forgotten);
	SL_TEST_RUN(same_files_do_not_differ);
	SL_TEST_RUN(routes_come_go_and_change);
	SL_TEST_RUN(long_details_say_that_they_are_cut_off);
	SL_TEST_RUN(memory_may_fail);
	return test_end();
}
