/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* In which state back ends are, and what of them outlives a reload. The data path and the probes
 * are stood in for by what records their calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "daemon.h"
#include "forward.h"
#include "probe.h"
#include "sl_test.h"

static struct conf conf;
static struct conf_service *const service = &conf.service[0];
static struct daemon the_daemon;
static enum balancer_state told[CONF_FORWARD_BACKENDS_MAX]; /* by the number in the name */
static int tells, tell_fails;
static int probes, opens, open_fails_at;
static bool opened_up;
static uint16_t hinted = UINT16_MAX;
static uint32_t probe_turns, hints, events;
static bool probe_changes;

static uint16_t
number(const char *name)
{
	return (uint16_t)atoi(name + 1);
}

uint16_t
forward_find(const struct forward *f, const char *backend)
{
	(void)f;
	return (uint16_t)(10 + number(backend));
}

int
forward_set_state(struct forward *f, const char *backend, enum balancer_state state)
{
	(void)f;
	if (tell_fails > 0) {
		tell_fails--;
		return -ENOMEM;
	}
	tells++;
	told[number(backend)] = state;
	return 0;
}

int
forward_backend_stats(
	const struct forward *f, uint16_t backend, struct forward_backend_stats *stats)
{
	(void)f;
	stats->state = told[backend - 10];
	return 0;
}

bool
forward_unreachable_take(struct forward *f, uint16_t backend)
{
	(void)f;
	return backend == hinted;
}

int
probe_open(struct daemon *d, const struct sl_addr *from, const struct conf_backend *to,
	const struct conf_check *check, bool up, struct probe **out)
{
	(void)d, (void)from, (void)to, (void)check;
	if (++opens == open_fails_at)
		return -ENFILE;
	*out = calloc(1, sizeof(**out));
	REQUIRE(*out != NULL);
	(*out)->health.up = up;
	opened_up = up;
	probes++;
	return 0;
}

void
probe_close(struct daemon *d, struct probe *p)
{
	(void)d;
	probes -= p != NULL;
	free(p);
}

bool
probe_turn(struct probe *p, uint16_t worker, const struct conf_check *check, bool hint,
	uint64_t now_ms)
{
	(void)p, (void)check, (void)now_ms;
	CHECK_EQ(worker, 3);
	probe_turns++;
	hints += hint;
	return probe_changes;
}

void
probe_sums(const struct probe *p, struct service_sums *sums)
{
	(void)p;
	sums->handed++;
}

void
daemon_event(struct daemon *d)
{
	CHECK(d == &the_daemon);
	events++;
}

/* A service with n back ends b0, b1, ... of weight 1. */
static void
configure(uint16_t n, enum conf_check_kind kind)
{
	memset(&conf, 0, sizeof(conf));
	snprintf(service->name, sizeof(service->name), "lb");
	service->kind = CONF_FORWARD;
	service->forward.check.kind = kind;
	service->forward.nbackends = conf.nbackends = n;
	for (uint16_t i = 0; i < n; i++) {
		struct conf_backend *b = &conf.backend[i];

		snprintf(b->name, sizeof(b->name), "b%u", i);
		b->addr.b[15] = (uint8_t)(i + 1);
		b->udp_port = 53;
		b->weight = 1;
		service->forward.backend[i] = i;
	}
}

static struct backends *
make(const struct backends *former, bool share)
{
	struct backends *b = NULL;

	REQUIRE(backends_make(&the_daemon, &conf, service, former, share, &b) == 0);
	backends_bind(b, NULL);
	return b;
}

static struct backends *
begin(uint16_t n, enum conf_check_kind kind)
{
	memset(told, 0, sizeof(told));
	tells = 0;
	configure(n, kind);
	return make(NULL, false);
}

static bool
shows(const struct backends *b, uint16_t i, const char *state, const char *why)
{
	const struct backend *e = &b->backend[i];

	if (strcmp(backend_state_name(e), state) == 0 && strcmp(backend_why_name(e), why) == 0)
		return true;
	fprintf(stderr, "%s %s\n", backend_state_name(e), backend_why_name(e));
	return false;
}

static void
states_follow_checks_and_drains(void)
{
	struct backends *b = begin(3, CONF_CHECK_UDP);
	struct health *h = &b->backend[1].probe->health;

	CHECK_EQ(b->backend[1].index, 11);
	CHECK_EQ(backends_update(b, 0), 0);
	CHECK(shows(b, 1, "up", "new"));
	h->why = HEALTH_SILENT;
	h->up = false;
	CHECK_EQ(backends_update(b, 0), 1);
	CHECK(shows(b, 1, "down", "silent") && told[1] == BALANCER_DOWN);
	CHECK(told[0] == BALANCER_UP && told[2] == BALANCER_UP && tells == 1);
	/* Drained while down, it is draining as soon as it is back. */
	backend_drain(&b->backend[1], 0, 0);
	CHECK_EQ(backends_update(b, 0), 0);
	CHECK(shows(b, 1, "down", "silent"));
	h->up = true;
	h->why = HEALTH_ANSWERS;
	CHECK_EQ(backends_update(b, 1u << 30), 1);
	CHECK(shows(b, 1, "draining", "drained") && told[1] == BALANCER_DRAINING);
	backend_undrain(&b->backend[1]);
	CHECK_EQ(backends_update(b, 0), 1);
	CHECK(shows(b, 1, "up", "answers") && told[1] == BALANCER_UP);
	backends_drop(&the_daemon, b, NULL);
	CHECK_EQ(probes, 0);
}

static void
a_drain_may_have_an_end(void)
{
	struct backends *b = begin(2, CONF_CHECK_NONE);

	CHECK(shows(b, 0, "up", "unchecked") && probes == 0);
	backend_drain(&b->backend[0], 1000, 500);
	CHECK_EQ(backends_update(b, 1000), 1);
	CHECK_EQ(backends_update(b, 1499), 0);
	CHECK(shows(b, 0, "draining", "drained"));
	CHECK_EQ(backends_update(b, 1500), 1);
	CHECK(shows(b, 0, "down", "drained") && told[0] == BALANCER_DOWN);
	CHECK_EQ(backends_update(b, 5000), 0);
	/* Another one is a new time. */
	backend_drain(&b->backend[0], 5000, 0);
	CHECK_EQ(backends_update(b, 5000), 1);
	CHECK(shows(b, 0, "draining", "drained"));
	CHECK_EQ(backends_update(b, UINT64_MAX), 0);
	backend_undrain(&b->backend[0]);
	CHECK_EQ(backends_update(b, 5000), 1);
	CHECK(shows(b, 0, "up", "unchecked"));
	backends_drop(&the_daemon, b, NULL);
}

static void
weight_0_shows_as_draining(void)
{
	struct backends *b;

	configure(1, CONF_CHECK_NONE);
	conf.backend[0].weight = 0;
	b = make(NULL, false);
	CHECK(shows(b, 0, "draining", "weight"));
	backends_drop(&the_daemon, b, NULL);
}

static void
a_change_that_fails_is_tried_again(void)
{
	struct backends *b = begin(1, CONF_CHECK_UDP);

	tell_fails = 2;
	b->backend[0].probe->health.up = false;
	CHECK_EQ(backends_update(b, 0), 0);
	CHECK_EQ(backends_update(b, 0), 0);
	CHECK(shows(b, 0, "up", "new"));
	CHECK_EQ(backends_update(b, 0), 1);
	CHECK(told[0] == BALANCER_DOWN);
	backends_drop(&the_daemon, b, NULL);
}

/* A reload that takes b1 away, gives b2 another address and adds b3. */
static void
what_stays_the_same_goes_on(void)
{
	struct backends *b = begin(3, CONF_CHECK_UDP), *next, *place;
	struct probe *kept = b->backend[0].probe;

	for (uint16_t i = 0; i < 3; i++)
		backend_drain(&b->backend[i], 0, 100);
	b->backend[0].probe->health.up = false;
	CHECK_EQ(backends_update(b, 200), 3);
	configure(4, CONF_CHECK_UDP);
	conf.backend[2].addr.b[0] = 1;
	conf.backend[0].weight = 7;
	service->forward.nbackends = 3;
	service->forward.backend[1] = 3;
	told[2] = told[3] = BALANCER_UP; /* as forward_commit leaves new ones */
	next = make(b, true);
	place = b;
	CHECK(backends_publish(&place, next) == b && place == next);
	CHECK_EQ(probes, 5);
	backends_drop(&the_daemon, b, next);
	CHECK_EQ(probes, 3);
	CHECK(next->backend[0].probe == kept && next->backend[0].conf.weight == 7);
	CHECK(next->backend[0].drained && next->backend[0].cut);
	CHECK(!next->backend[1].drained && !next->backend[2].drained);
	CHECK_EQ(backends_update(next, 200), 0);
	CHECK(shows(next, 0, "down", "new") && shows(next, 1, "up", "new"));
	/* Without checks nothing is down but by a drain. */
	service->forward.check.kind = CONF_CHECK_NONE;
	b = make(next, true);
	backends_drop(&the_daemon, next, b);
	CHECK_EQ(probes, 0);
	CHECK(shows(b, 0, "down", "drained"));
	backends_drop(&the_daemon, b, NULL);
}

/* A service that is made anew: drains are remembered, and who was down is asked first. */
static void
a_new_service_knows_what_the_old_one_knew(void)
{
	struct backends *b = begin(1, CONF_CHECK_UDP), *next;

	backend_drain(&b->backend[0], 0, 0);
	b->backend[0].probe->health.up = false;
	CHECK_EQ(backends_update(b, 0), 1);
	told[0] = BALANCER_UP; /* in the new one's forward */
	next = make(b, false);
	CHECK(next->backend[0].probe != b->backend[0].probe && !opened_up);
	CHECK(next->backend[0].drained && probes == 2);
	CHECK_EQ(backends_update(next, 0), 1);
	CHECK(told[0] == BALANCER_DOWN);
	backends_drop(&the_daemon, b, NULL);
	backends_drop(&the_daemon, next, NULL);
	CHECK_EQ(probes, 0);
}

static void
a_failure_leaves_nothing(void)
{
	struct backends *b = begin(2, CONF_CHECK_UDP), *next = NULL;

	configure(5, CONF_CHECK_UDP);
	for (int k = 1; k <= 3; k++) {
		opens = 0;
		open_fails_at = k;
		CHECK_EQ(backends_make(&the_daemon, &conf, service, b, true, &next), -ENFILE);
		CHECK(next == NULL && probes == 2);
	}
	open_fails_at = 0;
	next = make(b, true);
	CHECK_EQ(probes, 5);
	/* Not taken after all: the former ones go on. */
	backends_drop(&the_daemon, next, b);
	CHECK_EQ(probes, 2);
	backends_drop(&the_daemon, b, NULL);
	CHECK_EQ(probes, 0);
}

static void
probes_have_their_turn_once_a_millisecond(void)
{
	struct backends *b = begin(3, CONF_CHECK_UDP);
	struct worker w = {.d = &the_daemon, .index = 3};
	struct service_sums sums = {0};
	struct backends *none = NULL;

	probe_turns = hints = events = 0;
	backends_turn(&w, &none, 1);
	backends_turn(&w, &b, 1);
	backends_turn(&w, &b, 1);
	CHECK(probe_turns == 3 && hints == 0 && events == 0);
	hinted = 12;
	probe_changes = true;
	backends_turn(&w, &b, 2);
	CHECK(probe_turns == 6 && hints == 1 && events == 1);
	hinted = UINT16_MAX;
	probe_changes = false;
	backends_sums(b, &sums);
	CHECK_EQ(sums.handed, 3);
	CHECK(backends_find(b, "b2") == &b->backend[2] && backends_find(b, "b3") == NULL);
	backends_drop(&the_daemon, b, NULL);
}

int
main(void)
{
	SL_TEST_RUN(states_follow_checks_and_drains);
	SL_TEST_RUN(a_drain_may_have_an_end);
	SL_TEST_RUN(weight_0_shows_as_draining);
	SL_TEST_RUN(a_change_that_fails_is_tried_again);
	SL_TEST_RUN(what_stays_the_same_goes_on);
	SL_TEST_RUN(a_new_service_knows_what_the_old_one_knew);
	SL_TEST_RUN(a_failure_leaves_nothing);
	SL_TEST_RUN(probes_have_their_turn_once_a_millisecond);
	return test_end();
}
