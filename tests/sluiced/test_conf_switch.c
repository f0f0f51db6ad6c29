/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the file says about bridges: mistakes, values, and what a reload may change. */
#include <string.h>

#include "bad_switch.h"
#include "conf_help.h"

#define C "[port c]\ndevargs = net_tpacket2,iface=vc\naddress = 198.18.0.2/24\n"

static void
bad_files_are_told(void)
{
	check_files(bad_switch, SL_COUNT_OF(bad_switch));
}

static void
more_bridges_than_there_may_be(void)
{
	char text[1024];
	size_t at = (size_t)snprintf(text, sizeof(text), G M);

	for (unsigned int i = 1; i <= CONF_BRIDGES_MAX + 1; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[bridge b%u]\n", i);
	CHECK(read_string(text, &conf) > 0);
	CHECK(strstr(said, "t.conf:15: [bridge b9]: more than 8 bridges; leave some out.\n") !=
		NULL);
}

static void
bridges_are_read(void)
{
	CHECK_EQ(read_string(G M "[bridge b0]\nports = b, a\n", &conf), 0);
	CHECK_EQ(conf.nbridges, 1);
	CHECK_EQ(strcmp(conf.bridge[0].name, "b0"), 0);
	CHECK(conf.bridge[0].nports == 2 && conf.bridge[0].port[0] == 1);
	CHECK(conf.bridge[0].entries == 4096 && conf.bridge[0].port_entries == 2048);
	CHECK_EQ(conf.bridge[0].age_s, 300);
	CHECK(conf.port[0].bridge == 1 && conf.port[1].bridge == 1);
	CHECK_EQ(read_string(G M C "[bridge b0]\nports = a b\nentries = 65536\nport-entries = 9\n"
				 "age = 1\n" S,
			 &other),
		0);
	CHECK(other.bridge[0].entries == 65536 && other.bridge[0].port_entries == 9);
	CHECK(other.bridge[0].age_s == 1 && other.port[2].bridge == 0);
	CHECK(conf_memory_needed_mb(&other) > conf_memory_needed_mb(&conf) + 14);
}

static void
what_a_reload_changes(void)
{
	static const struct {
		const char *text;
		const char *said;
	} cases[] = {
		{G M "[bridge b0]\nports = b a\n", ""},
		{G M "[bridge b0]\nports = a b\nage = 7\nport-entries = 3\n", ""},
		{G M "[bridge b0]\nports = a b\nentries = 64\n",
			"t.conf:9: [bridge b0] entries: changes with a restart only; restart, or "
			"take the change back.\n"},
		{G M "[bridge b1]\nports = a b\n",
			"t.conf: [bridge b0]: is gone, and changes with a restart only; restart, "
			"or take the change back.\n"
			"t.conf:7: [bridge b1]: is new, and changes with a restart only; restart, "
			"or take the change back.\n"},
		{G M "[port c]\ndevargs = net_tpacket2,iface=vc\n[bridge b0]\nports = a b c\n",
			"t.conf:7: [port c]: is new, and changes with a restart only; restart, or "
			"take the change back.\n"
			"t.conf:10: [bridge b0] ports: changes with a restart only; restart, or "
			"take the change back.\n"},
	};

	CHECK_EQ(read_string(G M "[bridge b0]\nports = a b\n", &conf), 0);
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct mistakes *m = mistakes_create("t.conf");

		REQUIRE(m != NULL);
		CHECK_EQ(read_string(cases[i].text, &other), 0);
		conf_restart_only(&conf, &other, m);
		mistakes_join(m, said, sizeof(said));
		check_said(cases[i].text, cases[i].said);
		mistakes_free(m);
	}
}

int
main(void)
{
	SL_TEST_RUN(bad_files_are_told);
	SL_TEST_RUN(more_bridges_than_there_may_be);
	SL_TEST_RUN(bridges_are_read);
	SL_TEST_RUN(what_a_reload_changes);
	return test_end();
}
