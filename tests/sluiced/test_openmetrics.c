/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The writer of the OpenMetrics format: what it writes, and what it refuses to. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "failing_realloc.h"
#include "openmetrics.h"
#include "sl_test.h"

static void
ends_as(struct openmetrics *o, const char *want)
{
	size_t len = 0;
	char *text = openmetrics_end(o, &len);

	REQUIRE(text != NULL);
	if (strcmp(text, want) != 0) {
		test_bad++;
		fprintf(stderr, "written:\n%swanted:\n%s", text, want);
	}
	CHECK_EQ(len, strlen(want));
	free(text);
}

static void
refused(struct openmetrics *o)
{
	size_t len = 0;

	CHECK(openmetrics_end(o, &len) == NULL);
	CHECK_EQ(len, 0);
}

static void
nothing_is_a_text_too(void)
{
	struct openmetrics o = {0};

	ends_as(&o, "# EOF\n");
}

static void
each_type_has_its_suffix(void)
{
	struct openmetrics_label label = {"port", "wan"};
	struct openmetrics o = {0};

	openmetrics_family(&o, "a_packets", OPENMETRICS_COUNTER, "packets", "Packets.");
	openmetrics_u64(&o, &label, 1, UINT64_MAX);
	openmetrics_family(&o, "b", OPENMETRICS_GAUGE, NULL, "A state.");
	openmetrics_u64(&o, NULL, 0, 0);
	openmetrics_family(&o, "c", OPENMETRICS_INFO, NULL, "A text.");
	openmetrics_u64(&o, (struct openmetrics_label[]){{"x", "1"}, {"y", ""}}, 2, 1);
	ends_as(&o, "# TYPE a_packets counter\n# UNIT a_packets packets\n"
		    "# HELP a_packets Packets.\n"
		    "a_packets_total{port=\"wan\"} 18446744073709551615\n"
		    "# TYPE b gauge\n# HELP b A state.\nb 0\n"
		    "# TYPE c info\n# HELP c A text.\nc_info{x=\"1\",y=\"\"} 1\n# EOF\n");
}

static void
texts_are_escaped(void)
{
	struct openmetrics_label label = {"name", "a\"b\\c\nd{}, e=\xc3\xa4\xff"};
	struct openmetrics o = {0};

	openmetrics_family(&o, "a", OPENMETRICS_GAUGE, NULL, "A \"b\" or\n\\c.");
	openmetrics_u64(&o, &label, 1, 7);
	ends_as(&o, "# TYPE a gauge\n# HELP a A \\\"b\\\" or\\n\\\\c.\n"
		    "a{name=\"a\\\"b\\\\c\\nd{}, e=???\"} 7\n# EOF\n");
}

static void
fractions_are_exact(void)
{
	static const struct {
		uint64_t parts, per;
		const char *want;
	} cases[] = {{0, 1, "0.000000000"}, {1, 3, "0.333333333"}, {7, 2, "3.500000000"},
		{UINT64_MAX, 1, "18446744073709551615.000000000"},
		{UINT64_MAX - 1, UINT64_MAX, "0.999999999"},
		{1234567890123, 1000000000, "1234.567890123"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct openmetrics o = {0};
		char want[128];

		openmetrics_family(&o, "t_seconds", OPENMETRICS_COUNTER, "seconds", "T.");
		openmetrics_ratio(&o, NULL, 0, cases[i].parts, cases[i].per);
		snprintf(want, sizeof(want),
			"# TYPE t_seconds counter\n# UNIT t_seconds seconds\n# HELP t_seconds T.\n"
			"t_seconds_total %s\n# EOF\n",
			cases[i].want);
		ends_as(&o, want);
	}
}

static void
families_do_not_come_twice(void)
{
	struct openmetrics o = {0};

	openmetrics_family(&o, "a", OPENMETRICS_GAUGE, NULL, "A.");
	openmetrics_family(&o, "b", OPENMETRICS_GAUGE, NULL, "B.");
	openmetrics_family(&o, "a", OPENMETRICS_GAUGE, NULL, "A.");
	refused(&o);
}

static void
what_the_format_does_not_allow_is_refused(void)
{
	static const struct {
		const char *name, *unit;
		enum openmetrics_type type;
	} bad[] = {{"", NULL, OPENMETRICS_GAUGE}, {"1a", NULL, OPENMETRICS_GAUGE},
		{"a-b", NULL, OPENMETRICS_GAUGE}, {"a_total", NULL, OPENMETRICS_COUNTER},
		{"a_info", NULL, OPENMETRICS_INFO}, {"a", "bytes", OPENMETRICS_GAUGE},
		{"bytes", "bytes", OPENMETRICS_GAUGE}, {"abytes", "bytes", OPENMETRICS_GAUGE},
		{"_bytes", "bytes", OPENMETRICS_GAUGE}, {"a_bytes", "bytes", OPENMETRICS_INFO}};
	struct openmetrics o = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&o, 0, sizeof(o));
		openmetrics_family(&o, bad[i].name, bad[i].type, bad[i].unit, "A.");
		refused(&o);
	}
	memset(&o, 0, sizeof(o));
	openmetrics_u64(&o, NULL, 0, 1); /* of no family */
	refused(&o);
}

static void
a_text_has_an_end(void)
{
	static char help[1u << 20];
	struct openmetrics o = {0};
	char name[20][4];

	memset(help, 'h', sizeof(help) - 1);
	for (int i = 0; i < 20; i++) {
		snprintf(name[i], sizeof(name[i]), "f%d", i);
		openmetrics_family(&o, name[i], OPENMETRICS_GAUGE, NULL, help);
	}
	CHECK(o.size <= OPENMETRICS_MAX);
	refused(&o);
}

static void
memory_may_fail(void)
{
	static char help[100000];

	memset(help, 'h', sizeof(help) - 1);
	for (int k = 0; k < 10; k++) {
		struct openmetrics o = {0};
		size_t len;
		char *text;

		fail_after = k;
		openmetrics_family(&o, "a", OPENMETRICS_GAUGE, NULL, help);
		openmetrics_u64(&o, NULL, 0, 1);
		text = openmetrics_end(&o, &len);
		fail_after = -1;
		if (text != NULL) {
			CHECK(k > 0 && len > sizeof(help));
			free(text);
			return;
		}
	}
	CHECK(!"it never passed");
}

int
main(void)
{
	SL_TEST_RUN(nothing_is_a_text_too);
	SL_TEST_RUN(each_type_has_its_suffix);
	SL_TEST_RUN(texts_are_escaped);
	SL_TEST_RUN(fractions_are_exact);
	SL_TEST_RUN(families_do_not_come_twice);
	SL_TEST_RUN(what_the_format_does_not_allow_is_refused);
	SL_TEST_RUN(a_text_has_an_end);
	SL_TEST_RUN(memory_may_fail);
	return test_end();
}
