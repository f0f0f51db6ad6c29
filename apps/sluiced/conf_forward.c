/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Keys of kind = forward. */
#include <stdio.h>
#include <string.h>

#include "conf_priv.h"

#define SECOND_MS 1000u
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define CHECKS_MAX 100

static struct conf_forward *
forward_of(struct conf_at *at)
{
	struct conf_service *s = at->item;

	return &s->forward;
}

/* A time as one would write it. */
static const char *
time_text(uint32_t ms, char *text, size_t size)
{
	static const struct {
		uint32_t ms;
		const char *unit;
	} units[] = {{HOUR_MS, "h"}, {MINUTE_MS, "m"}, {SECOND_MS, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms != 0)
		i++;
	snprintf(text, size, "%u%s", ms / units[i].ms, units[i].unit);
	return text;
}

/* "30s" in milliseconds; false when it is none. What is longer than 49 days is 49 days. */
static bool
parse_time(const char *text, uint32_t *ms)
{
	static const char digits[] = "0123456789";
	size_t len = strspn(text, digits);
	const char *unit = text + len;
	uint64_t n = 0, by;

	if (strcmp(unit, "ms") == 0)
		by = 1;
	else if (strcmp(unit, "s") == 0)
		by = SECOND_MS;
	else if (strcmp(unit, "m") == 0)
		by = MINUTE_MS;
	else if (strcmp(unit, "h") == 0)
		by = HOUR_MS;
	else
		return false;
	for (size_t i = 0; i < len && n <= UINT32_MAX; i++)
		n = n * 10 + (uint64_t)(text[i] - '0');
	n *= by;
	*ms = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	return len > 0;
}

static void
take_time(struct conf_at *at, uint32_t min, uint32_t max, uint32_t *value)
{
	char least[16], most[16];
	uint32_t ms;

	if (!parse_time(at->value, &ms))
		conf_wrong(at, "is no time; write a whole number with its unit: ms, s, m or h.");
	else if (ms < min || ms > max)
		conf_wrong(at, "is out of range; write %s to %s.",
			time_text(min, least, sizeof(least)), time_text(max, most, sizeof(most)));
	else
		*value = ms;
}

static int
hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c);

	return c != '\0' && at != NULL ? (int)(at - digits) : -1;
}

/* Every backslash begins \xNN: lines_index has seen to it. */
static void
take_bytes(struct conf_at *at, struct conf_bytes *bytes)
{
	const char *text = at->value;

	bytes->len = 0;
	while (*text != '\0') {
		if (*text == '\\') {
			bytes->octet[bytes->len++] = (uint8_t)(hex(text[2]) << 4 | hex(text[3]));
			text += 4;
		} else {
			bytes->octet[bytes->len++] = (uint8_t)*text++;
		}
	}
}

static void
take_backends(struct conf_at *at)
{
	snprintf(forward_of(at)->names, sizeof(forward_of(at)->names), "%s", at->value);
}

static void
take_affinity(struct conf_at *at)
{
	static const char *const words[] = {
		[BALANCER_FLOW] = "flow", [BALANCER_SOURCE] = "source", [BALANCER_NONE] = "none"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "flow, source or none", &i))
		forward_of(at)->affinity = (enum balancer_affinity)i;
}

static void
take_drain(struct conf_at *at)
{
	static const char *const words[] = {[BALANCER_KEEP] = "keep", [BALANCER_MOVE] = "move"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "keep or move", &i))
		forward_of(at)->drain = (enum balancer_drain)i;
}

static void
take_source(struct conf_at *at)
{
	static const char *const words[] = {[CONF_SOURCE_KEEP] = "keep", [CONF_SOURCE_OWN] = "own"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "keep or own", &i))
		forward_of(at)->source = (enum conf_source)i;
}

static void
take_slots(struct conf_at *at)
{
	uint64_t n;

	if (!conf_number(at, MAGLEV_SLOTS_MIN, MAGLEV_SLOTS_MAX, &n))
		return;
	forward_of(at)->slots = (uint32_t)n;
	if (!maglev_slots_valid((uint32_t)n))
		conf_wrong(at, "is not prime; write %u.", maglev_slots_next((uint32_t)n));
}

static void
take_number(struct conf_at *at, uint64_t min, uint64_t max, uint32_t *value)
{
	uint64_t n;

	if (conf_number(at, min, max, &n))
		*value = (uint32_t)n;
}

static void
take_seed(struct conf_at *at)
{
	take_number(at, 0, UINT32_MAX, &forward_of(at)->seed);
}

static void
take_flows(struct conf_at *at)
{
	take_number(at, 8, FLOWTAB_FLOWS_MAX, &forward_of(at)->flows);
}

static void
take_flow_timeout(struct conf_at *at)
{
	take_time(at, 10, FLOWTAB_IDLE_MS_MAX, &forward_of(at)->idle_ms);
}

static void
take_new_flows(struct conf_at *at)
{
	take_number(at, 10, FLOWTAB_INSERTS_MAX, &forward_of(at)->inserts_per_s);
}

static void
take_check(struct conf_at *at)
{
	static const char *const words[] = {[CONF_CHECK_NONE] = "none", [CONF_CHECK_UDP] = "udp"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "none or udp", &i))
		forward_of(at)->check.kind = (enum conf_check_kind)i;
}

static void
take_check_interval(struct conf_at *at)
{
	take_time(at, 20, HOUR_MS, &forward_of(at)->check.interval_ms);
}

static void
take_check_timeout(struct conf_at *at)
{
	take_time(at, 10, HOUR_MS, &forward_of(at)->check.timeout_ms);
}

static void
take_check_rise(struct conf_at *at)
{
	take_number(at, 1, CHECKS_MAX, &forward_of(at)->check.rise);
}

static void
take_check_fall(struct conf_at *at)
{
	take_number(at, 1, CHECKS_MAX, &forward_of(at)->check.fall);
}

static void
take_check_send(struct conf_at *at)
{
	take_bytes(at, &forward_of(at)->check.send);
}

static void
take_check_expect(struct conf_at *at)
{
	take_bytes(at, &forward_of(at)->check.expect);
}

const struct conf_key conf_forward_keys[CONF_FORWARD_KEYS] = {
	[CONF_FORWARD_BACKENDS] = {"backends", "b1 b2", take_backends},
	[CONF_FORWARD_AFFINITY] = {"affinity", NULL, take_affinity},
	[CONF_FORWARD_DRAIN] = {"drain", NULL, take_drain},
	[CONF_FORWARD_SOURCE] = {"source", NULL, take_source},
	[CONF_FORWARD_SLOTS] = {"slots", NULL, take_slots},
	[CONF_FORWARD_SEED] = {"seed", NULL, take_seed},
	[CONF_FORWARD_FLOWS] = {"flows", NULL, take_flows},
	[CONF_FORWARD_FLOW_TIMEOUT] = {"flow-timeout", NULL, take_flow_timeout},
	[CONF_FORWARD_NEW_FLOWS] = {"new-flows", NULL, take_new_flows},
	[CONF_FORWARD_CHECK] = {"check", NULL, take_check},
	[CONF_FORWARD_CHECK_INTERVAL] = {"check-interval", NULL, take_check_interval},
	[CONF_FORWARD_CHECK_TIMEOUT] = {"check-timeout", NULL, take_check_timeout},
	[CONF_FORWARD_CHECK_RISE] = {"check-rise", NULL, take_check_rise},
	[CONF_FORWARD_CHECK_FALL] = {"check-fall", NULL, take_check_fall},
	[CONF_FORWARD_CHECK_SEND] = {"check-send", "ping", take_check_send},
	[CONF_FORWARD_CHECK_EXPECT] = {"check-expect", NULL, take_check_expect},
};

void
conf_forward_take(struct conf_at *at)
{
	for (int i = 0; i < CONF_FORWARD_KEYS; i++) {
		if (strcmp(conf_forward_keys[i].name, at->key) != 0)
			continue;
		forward_of(at)->line[i] = at->line;
		conf_forward_keys[i].take(at);
		return;
	}
}
