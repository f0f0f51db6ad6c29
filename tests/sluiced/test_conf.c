/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The configuration file: every mistake is told with line, key and remedy, and what is right is
 * read. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_log.h>
#include <rte_mbuf.h>

#include "bad_links.h"
#include "conf_help.h"
#include "lines.h"
#include "sleep.h"

static const char *sample; /* path of the sample configuration */

static void
bad_files_are_told(void)
{
	check_files(bad_files, SL_COUNT_OF(bad_files));
	CHECK(SL_COUNT_OF(bad_files) >= 100);
}

static void
bad_links_are_told(void)
{
	check_files(bad_links, SL_COUNT_OF(bad_links));
}

/* VLANs, routes, and ports of our drivers; a route finds its port, and a device its arguments. */
static void
links_are_read(void)
{
	static const char text[] = G P "exception = k0\n" V "exception = lab0\n" T
				       "client = yes\npairs = 4\nfrag = lcore\n" R
				       "[route a]\nprefix = 0.0.0.0/0\nvia = 198.18.7.1\nmetric = 7\n"
				       "[route b]\nprefix = 2001:db8:9::/48\nvia = fe80::1\nport = wan\n"
				       "[route c]\nprefix = 198.51.100.0/24\nport = ring\n";
	char devargs[512];

	CHECK_EQ(read_string(text, &conf), 0);
	if (said[0] != '\0')
		fprintf(stderr, "%s", said);
	CHECK_EQ(conf.nports, 3);
	CHECK_EQ(conf.nvlans, 1);
	CHECK_EQ(conf.nroutes, 3);
	CHECK(strcmp(conf.port[0].exception, "k0") == 0);
	CHECK(strcmp(conf.vlan[0].exception, "lab0") == 0 && conf.vlan[0].vlan == 7);
	CHECK(strcmp(conf.route[0].port, "lab") == 0 && conf.route[0].metric == 7);
	CHECK(strcmp(conf.route[1].port, "wan") == 0 && conf.route[1].metric == 100);
	CHECK(strcmp(conf.route[2].port, "ring") == 0 && sl_addr_is_any(&conf.route[2].via));
	conf_devargs(&conf, &conf.port[1], devargs, sizeof(devargs));
	CHECK(strcmp(devargs, "net_tapvu101,path=/run/vm,queues=4,taps=1,client=1,frag=lcore") == 0);
	conf_devargs(&conf, &conf.port[2], devargs, sizeof(devargs));
	CHECK(strcmp(devargs, "net_pktring102,path=/run/ring,queues=1,copy=1") == 0);
	CHECK(conf_find_port(&conf, "lab") == &conf.vlan[0]);
	CHECK(conf_find_port(&conf, "none") == NULL);
}

/* A text of n pieces, each written by its number. */
static char *
repeat(const char *head, unsigned int n, const char *piece)
{
	size_t size = strlen(head) + n * (strlen(piece) + 64) + 1;
	char *text = malloc(size);
	size_t at;

	REQUIRE(text != NULL);
	at = (size_t)snprintf(text, size, "%s", head);
	for (unsigned int i = 0; i < n; i++) {
		for (const char *p = piece; *p != '\0'; p++)
			at += *p == '%' ? (size_t)snprintf(text + at, size - at, "%u", i + 1)
					: (size_t)snprintf(text + at, size - at, "%c", *p);
	}
	return text;
}

static void
told(const char *name, char *text, const char *want)
{
	CHECK(read_string(text, &conf) > 0);
	check_said(name, want);
	free(text);
}

static void
limits_are_told(void)
{
	told("ports",
		repeat(G, 17,
			"[port p%]\ndevargs = net_tpacket%,iface=v%\naddress = 10.0.%.2/24\n"),
		"t.conf:51: [port p17]: more than 16 ports; leave some out.\n");
	told("services", repeat(G P, 65, "[service s%]\nkind = sink\nudp-port = %\n"),
		"t.conf:198: [service s65]: more than 64 services; leave some out.\n");
	told("back ends", repeat(G P, 257, "[backend b%]\naddress = 10.0.0.1\nudp-port = %\n"),
		"t.conf:774: [backend b257]: more than 256 back ends; leave some out.\n");
	told("back ends of a service",
		repeat(G P "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\n"
			   "backends = b*\n",
			65, "[backend b%]\naddress = 10.0.0.1\nudp-port = %\n"),
		"t.conf:10: [service lb] backends: names more than 64 back ends; leave some "
		"out.\n");
}

static void
long_words_are_told(void)
{
	char word[400];
	char text[600];

	memset(word, 'k', sizeof(word));
	snprintf(text, sizeof(text), G "%.63s = 1\n" P, word);
	CHECK_EQ(read_string(text, &conf), 1);
	CHECK(strstr(said, "no such key here") != NULL);
	snprintf(text, sizeof(text), G "%.64s = 1\n" P, word);
	CHECK_EQ(read_string(text, &conf), 1);
	check_said("key",
		"t.conf:3: kkkkkkkkkkkkkkkkkkkk...: the key is longer than 63 characters; "
		"none is.\n");
	snprintf(text, sizeof(text), G "driver = /%.254s\n" P, word);
	CHECK_EQ(read_string(text, &conf), 0);
	CHECK_EQ(strlen(conf.driver[0]), 255);
	snprintf(text, sizeof(text), G "driver = /%.255s\n" P, word);
	CHECK_EQ(read_string(text, &conf), 1);
	check_said("value",
		"t.conf:3: driver: the value is longer than 255 characters; shorten it.\n");
	snprintf(text, sizeof(text), G P "[service %.60s]\n", word);
	CHECK_EQ(read_string(text, &conf), 1);
	check_said("section", "t.conf:6: [service kkkkkkkkkkkk...]: the name is longer than 63 "
			      "characters; shorten it.\n");
}

static void
more_than_can_be_kept(void)
{
	char *text = repeat(G P, 300, "odd\n");

	CHECK_EQ(read_string(text, &conf), 300);
	CHECK(strstr(said, "\nand 100 more\n") != NULL);
	free(text);
	text = calloc(1, LINES_FILE_MAX + 1);
	REQUIRE(text != NULL);
	CHECK_EQ(read_text(text, LINES_FILE_MAX + 1, &conf), 1);
	check_said("file", "t.conf: is longer than 1048576 bytes; is it the right file?\n");
	free(text);
}

static void
values_are_read(void)
{
	static const char text[] =
		"# comment, caf\xc3\xa9\r\n"
		"  [ sluiced ]  # the daemon\r\n"
		"\tname=edge.1\n"
		"lcores = 2, 4-5\n"
		"memory = 300\nhugepages = no\nlog = debug\nidle = backoff\n"
		"driver = /opt/a.so /opt/b.so\n"
		"[port\twan]\n"
		"devargs = net_tpacket0,iface=v1,qdisc_bypass=1\n"
		"address = 198.18.0.2/24, 2001:db8::2/64\n"
		"gateway = 198.18.0.1 fe80::1\n"
		"lcores = 4,2\nqueues = 3\nring = 4096\nmtu = 1600\nvlan = 7\npromiscuous = yes\n"
		"[port lan]\n"
		"devargs = 0000:03:00.0,x=1\n"
		"address = 198.19.0.2/31\n"
		"[service all]\nkind = echo\nudp-port = 7\nrcvbuf = 1M\n"
		"[service one]\nkind = drop\nudp-port = 9\naddress = 2001:db8::2\n"
		"[service two]\nkind = sink\nudp-port = 9\nport = lan\n"
		"[service r]\nkind = reflect\nudp-port = 862\n"
		"[service q]\nkind = reflect\nudp-port = 863\nsequence = stateful\nformat = ptp";
	const struct conf_port *p = conf.port;

	CHECK_EQ(read_text(text, sizeof(text) - 1, &conf), 0);
	check_said("good", "");
	CHECK(strcmp(conf.name, "edge.1") == 0);
	CHECK(conf.lcores.n == 3 && conf.lcores.cpu[0] == 2 && conf.lcores.cpu[2] == 5);
	CHECK(conf.memory_mb == 300 && conf.hugepages == CONF_HUGE_NO);
	CHECK(conf.log_level == RTE_LOG_DEBUG && conf.idle == CONF_IDLE_BACKOFF);
	CHECK(conf.ndrivers == 2 && strcmp(conf.driver[1], "/opt/b.so") == 0);
	REQUIRE(conf.nports == 2 && conf.nservices == 5);
	CHECK(strcmp(p->name, "wan") == 0 && strcmp(p->device, "net_tpacket0") == 0);
	CHECK(strcmp(p->iface, "v1") == 0 && p->vdev && p->naddrs == 2 && p->addrs[1].prefix == 64);
	CHECK(p->lcores.n == 2 && p->lcores.cpu[0] == 4 && p->queues == 3 && p->ring == 4096);
	CHECK(p->mtu == 1600 && p->vlan == 7 && p->promiscuous);
	CHECK(!sl_addr_is_any(&p->gateway) && !sl_addr_is_any(&p->gateway6));
	CHECK_EQ(conf_tx_queues(&conf, p), 4); /* three it receives on, and one for lcore 5 */
	CHECK(conf_mbuf_size(&conf) >= RTE_MBUF_DEFAULT_BUF_SIZE);
	/* What was left out. */
	p++;
	CHECK(!p->vdev && p->iface[0] == '\0' && p->lcores.n == 3 && p->queues == 3 &&
		p->vlan == 0);
	CHECK_EQ(conf_ring(p), 1024);
	CHECK(conf.service[0].kind == CONF_ECHO && conf.service[0].rcvbuf == 1000000);
	CHECK(conf.service[1].has_address && conf.service[1].rcvbuf == 4000000);
	CHECK(strcmp(conf.service[2].port, "lan") == 0 && !conf.service[2].has_address);
	CHECK(conf.service[3].kind == CONF_REFLECT && conf.service[3].format == STAMP_SENDER);
	CHECK(conf.service[3].sequence == STAMP_STATELESS);
	CHECK(conf.service[4].sequence == STAMP_STATEFUL && conf.service[4].format == STAMP_PTP);
}

static void
balancers_are_read(void)
{
	static const char text[] = G P
		"[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\n"
		"backends = web2 dns*\naffinity = source\ndrain = move\nsource = keep\nslots = "
		"251\n"
		"seed = 7\nflows = 1000\nflow-timeout = 2m\nnew-flows = 500\ncheck = udp\n"
		"check-interval = 200ms\ncheck-timeout = 100ms\ncheck-rise = 3\ncheck-fall = 4\n"
		"check-send = a\\x00\\x23 \\x20\ncheck-expect = ok\n"
		"[backend dns1]\naddress = 198.18.0.11\nudp-port = 53\nweight = 0\n"
		"[backend web2]\naddress = 198.18.0.12\nudp-port = 80\n"
		"[backend web4]\naddress = 198.18.0.12\nudp-port = 81\n"
		"[backend dns2]\naddress = 198.18.0.13\nudp-port = 53\nweight = 1000\n"
		"[service six]\nkind = forward\nudp-port = 54\naddress = 198.18.0.2\n"
		"backends = web4\n";
	const struct conf_forward *f = &conf.service[0].forward;

	CHECK_EQ(read_text(text, sizeof(text) - 1, &conf), 0);
	check_said("good", "");
	REQUIRE(conf.nbackends == 4 && conf.nservices == 2 && f->nbackends == 3);
	CHECK(f->backend[0] == 1 && f->backend[1] == 0 && f->backend[2] == 3);
	CHECK(f->affinity == BALANCER_SOURCE && f->drain == BALANCER_MOVE);
	CHECK(f->source == CONF_SOURCE_KEEP && f->slots == 251 && f->seed == 7);
	CHECK(f->flows == 1000 && f->idle_ms == 120000 && f->inserts_per_s == 500);
	CHECK(f->check.kind == CONF_CHECK_UDP && f->check.interval_ms == 200);
	CHECK(f->check.timeout_ms == 100 && f->check.rise == 3 && f->check.fall == 4);
	CHECK(f->check.send.len == 5 && memcmp(f->check.send.octet, "a\0#  ", 5) == 0);
	CHECK(f->check.expect.len == 2 && memcmp(f->check.expect.octet, "ok", 2) == 0);
	CHECK(conf.backend[0].weight == 0 && conf.backend[1].weight == 1);
	CHECK(conf.backend[1].udp_port == 80 && conf.backend[3].weight == 1000);
	/* What was left out. */
	f = &conf.service[1].forward;
	CHECK(f->affinity == BALANCER_FLOW && f->drain == BALANCER_KEEP);
	CHECK(f->source == CONF_SOURCE_KEEP && f->slots == MAGLEV_SLOTS && f->seed == 0);
	CHECK(f->flows == 65536 && f->idle_ms == 30000 && f->inserts_per_s == 100000);
	CHECK(f->check.kind == CONF_CHECK_NONE && f->check.interval_ms == 1000);
	CHECK(f->check.timeout_ms == 500 && f->check.rise == 2 && f->check.fall == 3);
	CHECK(conf.nservices == 2 && conf.service[1].forward.check.expect.len == 0);
}

/* An interval that is shorter than the usual timeout shortens it, and a longer timeout lengthens
 * the interval. */
static void
times_of_checks_fit(void)
{
	static const char head[] = G P B L "check = udp\ncheck-send = x\n";
	char text[1024];

	snprintf(text, sizeof(text), "%scheck-interval = 300ms\n", head);
	CHECK_EQ(read_string(text, &conf), 0);
	CHECK_EQ(conf.service[0].forward.check.timeout_ms, 300);
	snprintf(text, sizeof(text), "%scheck-timeout = 5s\n", head);
	CHECK_EQ(read_string(text, &conf), 0);
	CHECK_EQ(conf.service[0].forward.check.interval_ms, 5000);
}

/* Load balancers are the same if all settings and back ends are, in any order. */
static void
balancers_are_compared(void)
{
	static const struct {
		const char *text;
		bool equal;
	} cases[] = {
		{G P B L, true},
		{G P L B, true},
		{G P "[backend b2]\naddress = 198.18.0.12\nudp-port = 53\n"
		     "[backend b1]\naddress = 198.18.0.11\nudp-port = 53\n" L,
			true},
		{G P B L "slots = 65537\naffinity = flow\n", true},
		{G P B L "slots = 251\n", false},
		{G P B L "drain = move\n", false},
		{G P B L "flows = 9\n", false},
		{G P B L "check = udp\ncheck-send = x\n", false},
		{G P B "weight = 2\n" L, false},
		{G P B "[backend b3]\naddress = 198.18.0.13\nudp-port = 53\n"
		       "[service lb]\nkind = forward\nudp-port = 53\naddress = 198.18.0.2\n"
		       "backends = b1 b3\n",
			false},
	};

	CHECK_EQ(read_text(G P B L, strlen(G P B L), &conf), 0);
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		CHECK_EQ(read_text(cases[i].text, strlen(cases[i].text), &other), 0);
		if (conf_forward_equal(&conf, &conf.service[0], &other, &other.service[0]) ==
			cases[i].equal)
			continue;
		test_bad++;
		fprintf(stderr, "case %zu\n", i);
	}
}

/* Two services are the same only if their reflectors are, and sessions need memory. */
static void
reflectors_are_compared(void)
{
	static const char head[] = G P "[service r]\nkind = reflect\nudp-port = 862\n";
	static const char *const more[] = {"", "format = sender\nsequence = stateless\n",
		"sequence = stateful\n", "format = ntp\n"};
	uint32_t need;

	CHECK_EQ(read_string(head, &conf), 0);
	need = conf_memory_needed_mb(&conf);
	for (size_t i = 0; i < SL_COUNT_OF(more); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s", head, more[i]);
		CHECK_EQ(read_string(text, &other), 0);
		CHECK(conf_service_equal(&conf.service[0], &other.service[0]) == (i < 2));
		CHECK_EQ(conf_memory_needed_mb(&other), need + (i == 2 ? 10 : 0));
	}
}

static void
sample_has_no_mistake(void)
{
	struct mistakes *m = mistakes_create("sample");

	REQUIRE(m != NULL);
	conf_read_file(sample, &conf, m);
	CHECK_EQ(mistakes_count(m), 0);
	CHECK(conf.nports == 1 && conf.nservices >= 3 && strcmp(conf.port[0].iface, "v1") == 0);
	conf_read_file("/nonexistent/sluiced.conf", &conf, m);
	mistakes_join(m, said, sizeof(said));
	check_said("no file", "sample: cannot be opened: No such file or directory.\n");
	mistakes_free(m);
}

/* A running daemon would wait for a pipe, and everybody for the daemon. */
static void
odd_files_are_refused(void)
{
	static const char said_odd[] =
		"odd: is no regular file; write the configuration into one.\n";
	char folder[] = "/tmp/sl-conf-XXXXXX", pipe_path[64];
	const char *const paths[] = {pipe_path, folder, "/dev/zero", "/dev/null"};

	REQUIRE(mkdtemp(folder) != NULL);
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	REQUIRE(mkfifo(pipe_path, 0600) == 0);
	for (size_t i = 0; i < SL_COUNT_OF(paths); i++) {
		struct mistakes *m = mistakes_create("odd");

		REQUIRE(m != NULL);
		conf_read_file(paths[i], &conf, m);
		mistakes_join(m, said, sizeof(said));
		check_said(paths[i], said_odd);
		mistakes_free(m);
	}
	unlink(pipe_path);
	rmdir(folder);
}

/* What a reload refuses. */
static void
changes_that_need_a_restart(void)
{
	static const struct {
		const char *text;
		const char *said;
	} cases[] = {
		{G P S, ""},
		{G P, ""},
		{G "idle = backoff\nlog = info\n" P S "[service b]\nkind = drop\nudp-port = 8\n",
			""},
		{"[sluiced]\nlcores = 2\n" P S, "t.conf:2: [sluiced] lcores: changes with a "
						"restart only; restart, or take the "
						"change back.\n"
						"t.conf:3: [port wan] lcores: changes with a "
						"restart only; restart, or take "
						"the change back.\n"},
		{G "name = b\n" P,
			"t.conf: [sluiced] name: changes with a restart only; restart, or "
			"take the change back.\n"},
		{G "memory = 512\n" P, "t.conf:3: [sluiced] memory: changes with a restart only; "
				       "restart, or take the "
				       "change back.\n"},
		{G "hugepages = no\n" P, "t.conf:3: [sluiced] hugepages: changes with a restart "
					 "only; restart, or take the "
					 "change back.\n"},
		{G "driver = /x\n" P, "t.conf:3: [sluiced] driver: changes with a restart only; "
				      "restart, or take the "
				      "change back.\n"},
		{G P "vlan = 3\n", "t.conf:6: [port wan] vlan: changes with a restart "
				   "only; restart, or take "
				   "the change back.\n"},
		{G "[port b]\ndevargs = net_null0\naddress = 10.0.0.1/8\n",
			"t.conf: [port wan]: is gone, and changes with a restart only; restart, or "
			"take "
			"the change back.\n"
			"t.conf:3: [port b]: is new, and changes with a restart only; restart, or "
			"take "
			"the change back.\n"},
	};

	CHECK_EQ(read_text(G P S, strlen(G P S), &conf), 0);
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct mistakes *m = mistakes_create("t.conf");

		REQUIRE(m != NULL);
		CHECK_EQ(read_text(cases[i].text, strlen(cases[i].text), &other), 0);
		conf_restart_only(&conf, &other, m);
		mistakes_join(m, said, sizeof(said));
		check_said(cases[i].text, cases[i].said);
		mistakes_free(m);
	}
}

static void
sleeps_end_before_a_ring_is_full(void)
{
	/* A gigabit brings 1.488 packets a microsecond, not one. */
	CHECK_EQ(sleep_max_ns(512, 1000), 172032);
	CHECK_EQ(sleep_max_ns(1024, 10000), 34406);
	CHECK_EQ(sleep_max_ns(8192, 0), 275251);
	CHECK_EQ(sleep_max_ns(64, 100000), 215);
	CHECK_EQ(sleep_max_ns(32768, 10), 1000000);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	sample = argv[1];
	SL_TEST_RUN(bad_files_are_told);
	SL_TEST_RUN(bad_links_are_told);
	SL_TEST_RUN(links_are_read);
	SL_TEST_RUN(limits_are_told);
	SL_TEST_RUN(long_words_are_told);
	SL_TEST_RUN(more_than_can_be_kept);
	SL_TEST_RUN(values_are_read);
	SL_TEST_RUN(balancers_are_read);
	SL_TEST_RUN(times_of_checks_fit);
	SL_TEST_RUN(balancers_are_compared);
	SL_TEST_RUN(reflectors_are_compared);
	SL_TEST_RUN(sample_has_no_mistake);
	SL_TEST_RUN(odd_files_are_refused);
	SL_TEST_RUN(changes_that_need_a_restart);
	SL_TEST_RUN(sleeps_end_before_a_ring_is_full);
	return test_end();
}
