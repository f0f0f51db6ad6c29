/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What sluicectl top makes of two samples, and how it fits into a window. */
#include <math.h>
#include <string.h>

#include "sl_test.h"
#include "top.h"

/* The daemon, as the test plays it: the nth sample. */
static int nth;

static const char *
played(const char *what)
{
	static const char *const answers[][3] = {
		{"/sluice/info", "{\"uptime_s\":10,\"idle\":\"poll\"}",
			"{\"uptime_s\":3661,\"idle\":\"poll\"}"},
		{"/sluice/lcores",
			"[{\"lcore\":1,\"received\":100,\"served\":50,\"busy_turns\":10,"
			"\"busy_cycles\":1000,\"idle_cycles\":1000,\"sleep_cycles\":0,"
			"\"drops\":{\"udp_no_socket\":1}},{\"lcore\":2}]",
			"[{\"lcore\":1,\"received\":300,\"served\":250,\"busy_turns\":30,"
			"\"busy_cycles\":3000,\"idle_cycles\":2000,\"sleep_cycles\":1000,"
			"\"drops\":{\"udp_no_socket\":5,\"ip_csum\":1}},{\"lcore\":2}]"},
		{"/sluice/ports",
			"[{\"name\":\"wan\",\"link\":\"up\",\"rx_queues\":2,\"ring\":1024,"
			"\"rx_packets\":5,\"rx_bytes\":500,\"rx_missed\":7}]",
			"[{\"name\":\"wan\",\"link\":\"up\",\"rx_queues\":2,\"ring\":1024,"
			"\"rx_packets\":9,\"rx_bytes\":900,\"rx_missed\":27},"
			"{\"name\":\"wan2\",\"link\":\"down\",\"rx_queues\":1,\"ring\":64}]"},
		{"/sluice/services",
			"[{\"name\":\"echo\",\"kind\":\"echo\",\"lcore\":1,\"received\":1000,"
			"\"sockets\":1,\"rcvbuf\":4000}]",
			/* Made anew in between: it counts from 0 again. */
			"[{\"name\":\"echo\",\"kind\":\"echo\",\"lcore\":1,\"received\":10,"
			"\"sockets\":1,\"rcvbuf\":4000,\"held\":3,\"held_bytes\":1000,"
			"\"drops\":{\"udp_rcvbuf\":0,\"echo_group\":2}}]"},
		{"/sluice/rings", "{}", "{\"wan/0\":3,\"wan/1\":4}"},
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strcmp(answers[i][0], what) == 0)
			return answers[i][1 + nth];
	REQUIRE(!"an endpoint that is not there");
	return NULL;
}

json_t *
ctl_ask(int fd, const char *endpoint, const char *param)
{
	json_t *o = json_loads(played(endpoint), JSON_DECODE_ANY, NULL);

	(void)fd;
	REQUIRE(param == NULL && o != NULL);
	return o;
}

json_t *
ctl_collect(int fd, const char *list, const char *one)
{
	REQUIRE(strncmp(list, one, strlen(one)) == 0);
	return ctl_ask(fd, list, NULL);
}

static json_t *
rates(void)
{
	json_t *a, *b, *r;

	nth = 0;
	a = top_sample(0);
	nth = 1;
	b = top_sample(0);
	/* Two seconds apart. */
	json_object_set_new(
		b, "at", json_integer(json_integer_value(json_object_get(a, "at")) + 2000000000));
	r = top_rates(a, b);
	json_decref(a);
	json_decref(b);
	return r;
}

static json_t *
row(const json_t *r, const char *list, size_t i)
{
	json_t *o = json_array_get(json_object_get(r, list), i);

	REQUIRE(o != NULL);
	return o;
}

static void
is(const json_t *o, const char *key, double want)
{
	double got = json_number_value(json_object_get(o, key));

	if (fabs(got - want) < 1e-6)
		return;
	test_bad++;
	fprintf(stderr, "%s is %f, not %f\n", key, got, want);
}

static void
rates_are_by_the_second(void)
{
	json_t *r = rates(), *lcore = row(r, "lcores", 0), *port = row(r, "ports", 0);

	is(r, "interval_s", 2);
	is(lcore, "rx_pps", 100);
	is(lcore, "served_pps", 100);
	is(lcore, "cycles_per_packet", 10);
	is(lcore, "busy", 50);
	is(lcore, "idle", 25);
	is(lcore, "asleep", 25);
	is(lcore, "burst", 10);
	is(lcore, "lost_pps", 2.5);
	is(port, "rx_pps", 2);
	is(port, "rx_bps", 1600);
	is(port, "lost_pps", 10);
	is(port, "ring_used", 7);
	is(port, "ring", 2048);
	json_decref(r);
}

static void
what_is_not_known_is_null(void)
{
	json_t *r = rates();

	CHECK(json_is_null(json_object_get(row(r, "lcores", 1), "cycles_per_packet")));
	CHECK(json_is_null(json_object_get(row(r, "lcores", 1), "busy")));
	CHECK(json_is_null(json_object_get(row(r, "ports", 1), "ring_used")));
	json_decref(r);
}

static void
counters_may_begin_anew(void)
{
	json_t *r = rates(), *service = row(r, "services", 0);

	is(service, "pps", 5);
	is(service, "held", 3);
	is(service, "queue", 25);
	is(service, "lost_pps", 1);
	json_decref(r);
}

static void
drops_are_sorted(void)
{
	json_t *r = rates();
	static const char *const causes[] = {"rx_missed", "udp_no_socket", "echo_group", "ip_csum"};

	CHECK_EQ(json_array_size(json_object_get(r, "drops")), 4);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		CHECK(strcmp(json_string_value(json_object_get(row(r, "drops", i), "cause")),
			      causes[i]) == 0);
	is(row(r, "drops", 0), "total", 27);
	json_decref(r);
}

static void
numbers_are_short(void)
{
	static const struct {
		double n;
		const char *want;
	} cases[] = {{0, "0"}, {0.25, "0.2"}, {9.94, "9.9"}, {9.96, "10"}, {9999, "9999"},
		{9999.6, "10.0k"}, {999949, "999.9k"}, {999951, "1.0M"}, {1e18, "1.0E"},
		{1.8e19, "18.0E"}};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *n = json_real(cases[i].n);

		CHECK(strcmp(top_number(n, text, sizeof(text)), cases[i].want) == 0);
		CHECK(strlen(text) <= 6);
		json_decref(n);
	}
	CHECK(strcmp(top_number(NULL, text, sizeof(text)), "-") == 0);
}

/* Lines of a text, none longer than the width. */
static unsigned int
lines(const char *text, size_t width)
{
	unsigned int n = 0;

	for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
		CHECK((size_t)(end - text) <= width);
		n++;
	}
	CHECK(*text == '\0');
	return n;
}

static void
text_fits_the_window(void)
{
	json_t *r = rates();
	char *whole = top_text(r, 80, 0), *text;
	unsigned int all = lines(whole, 80);

	CHECK(strstr(whole, "up 1:01:01") != NULL);
	CHECK(strstr(whole, "udp_no_socket") != NULL && strstr(whole, " more line") == NULL);
	for (unsigned int height = 1; height <= all + 2; height++) {
		text = top_text(r, 80, height);
		CHECK(lines(text, 80) <= height);
		CHECK((strstr(text, " more line") != NULL) == (height < all + 1));
		free(text);
	}
	for (unsigned int width = 1; width <= 90; width++) {
		text = top_text(r, width, 0);
		lines(text, width);
		free(text);
		/* What says that lines are left out is one. */
		text = top_text(r, width, 4);
		CHECK_EQ(lines(text, width), 4);
		free(text);
	}
	free(whole);
	json_decref(r);
}

/* The line on top has all of it in 80 columns, also with numbers as long as they get. */
static void
head_fits_a_terminal(void)
{
	static const char head[] = "sluiced up 1000:00:00, idle = interrupt; pps: 999.9k in, "
				   "999.9k out, 999.9k lost\n";
	json_t *r = json_pack("{s:i, s:s, s:[{s:f, s:f}], s:[{s:f}]}", "uptime_s", 3600000, "idle",
		"interrupt", "ports", "rx_pps", 999900.0, "tx_pps", 999900.0, "drops", "pps",
		999900.0);
	char *text = top_text(r, 80, 0);

	CHECK_EQ(strncmp(text, head, strlen(head)), 0);
	free(text);
	json_decref(r);
}

int
main(void)
{
	SL_TEST_RUN(rates_are_by_the_second);
	SL_TEST_RUN(what_is_not_known_is_null);
	SL_TEST_RUN(counters_may_begin_anew);
	SL_TEST_RUN(drops_are_sorted);
	SL_TEST_RUN(numbers_are_short);
	SL_TEST_RUN(text_fits_the_window);
	SL_TEST_RUN(head_fits_a_terminal);
	return test_end();
}
