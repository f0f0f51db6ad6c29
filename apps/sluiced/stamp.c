/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#include <rte_byteorder.h>

#include "sl_errno.h"
#include "sl_shared.h"
#include "stamp.h"

#define NS_PER_S 1000000000ull
#define NS_PER_US 1000ull
/* From 1900, where NTP's seconds begin, to 1970. */
#define NTP_1970_S 2208988800u
#define LENGTH_SENDER 14u
#define ERROR_SYNCHRONISED 0x8000u
#define ERROR_PTP 0x4000u
#define MULTIPLIER_MAX 255u
/* No clock is trusted less than this, and none more. */
#define ERROR_UNKNOWN_NS (16 * NS_PER_S)
#define PORT_PRIVILEGED 1024u
#define PORT_TWAMP 862u

/* A request or answer as far as we write it; nothing in it is aligned to more than one octet. */
struct message {
	uint8_t sequence[4];
	uint8_t time[8];
	uint8_t error[2];
	uint8_t session[2];
	uint8_t receive_time[8];
	uint8_t sender_sequence[4];
	uint8_t sender_time[8];
	uint8_t sender_error[2];
	uint8_t zero1[2];
	uint8_t sender_ttl;
	uint8_t zero2[3];
};

_Static_assert(sizeof(struct message) == STAMP_LENGTH_BASE, "RFC 8762, 4.3");
_Static_assert(offsetof(struct message, zero2) == STAMP_LENGTH_MIN, "RFC 5357, 4.2.1");

struct stamp {
	struct stamp_how how;
	struct flowtab *sessions; /* NULL if stateless */
	uint64_t counts[STAMP_OUTCOMES];
};

static void
put16(uint8_t *p, uint16_t v)
{
	v = rte_cpu_to_be_16(v);
	memcpy(p, &v, sizeof(v));
}

static void
put32(uint8_t *p, uint32_t v)
{
	v = rte_cpu_to_be_32(v);
	memcpy(p, &v, sizeof(v));
}

static void
put64(uint8_t *p, uint64_t v)
{
	v = rte_cpu_to_be_64(v);
	memcpy(p, &v, sizeof(v));
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
}

const char *
stamp_outcome_name(enum stamp_outcome outcome)
{
	static const char *const names[STAMP_OUTCOMES] = {
		[STAMP_ANSWERED] = "answered",
		[STAMP_SHORT] = "short",
		[STAMP_UNPADDED] = "unpadded",
		[STAMP_REFLECTED] = "reflected",
		[STAMP_PORT] = "source_port",
		[STAMP_SESSIONS] = "sessions",
	};

	return names[outcome];
}

uint64_t
stamp_time(uint64_t ns, bool ptp, const struct stamp_clock *clock)
{
	uint64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;

	if (ptp)
		return (uint64_t)(uint32_t)(s + (uint64_t)(int64_t)clock->tai_s) << 32 | rest;
	return (uint64_t)(uint32_t)(s + NTP_1970_S) << 32 | (rest << 32) / NS_PER_S;
}

uint16_t
stamp_error_estimate(const struct stamp_clock *clock, bool ptp)
{
	uint64_t ns = clock->error_ns < ERROR_UNKNOWN_NS ? clock->error_ns : ERROR_UNKNOWN_NS;
	/* In 2^-32 s, rounded up: 16 s are 2^36 of them, so nothing here overflows. */
	uint64_t units =
		(ns / NS_PER_S << 32) + (((ns % NS_PER_S) << 32) + NS_PER_S - 1) / NS_PER_S;
	uint16_t scale = 0;

	if (units == 0)
		units = 1;
	while (units > MULTIPLIER_MAX) {
		units = (units + 1) / 2;
		scale++;
	}
	return (uint16_t)((clock->synchronised ? ERROR_SYNCHRONISED : 0) | (ptp ? ERROR_PTP : 0) |
			  scale << 8 | units);
}

void
stamp_clock_read(struct stamp_clock *clock)
{
	struct timex t = {.modes = 0};
	int state = sl_sys(adjtimex(&t));

	*clock = (struct stamp_clock){.error_ns = ERROR_UNKNOWN_NS};
	if (state < 0)
		return;
	clock->tai_s = t.tai;
	clock->synchronised = state != TIME_ERROR && (t.status & STA_UNSYNC) == 0;
	if (clock->synchronised && t.maxerror >= 0)
		clock->error_ns = (uint64_t)t.maxerror * NS_PER_US;
}

/* Is it a time of our clock, and now or a moment ago, in either format? */
static bool
is_ours(const uint8_t *time, uint64_t now_ns, const struct stamp_clock *clock)
{
	for (int ptp = 0; ptp <= 1; ptp++) {
		uint32_t now = (uint32_t)(stamp_time(now_ns, ptp != 0, clock) >> 32);

		if (get32(time) - now + STAMP_OURS_S <= 2 * STAMP_OURS_S)
			return true;
	}
	return false;
}

enum stamp_outcome
stamp_judge(
	const struct stamp_how *how, const struct stamp_seen *seen, const uint8_t *data, size_t len)
{
	const struct message *m = (const struct message *)data;
	uint16_t port = rte_be_to_cpu_16(seen->sport);

	if (len < LENGTH_SENDER)
		return STAMP_SHORT;
	if (len < STAMP_LENGTH_MIN)
		return STAMP_UNPADDED;
	if (port < PORT_PRIVILEGED && port != PORT_TWAMP)
		return STAMP_PORT;
	if (is_ours(m->receive_time, seen->rx_ns, &how->clock) ||
		is_ours(m->sender_time, seen->rx_ns, &how->clock))
		return STAMP_REFLECTED;
	return STAMP_ANSWERED;
}

static bool
is_ptp(const struct stamp_how *how, const uint8_t *error)
{
	if (how->format == STAMP_SENDER)
		return (error[0] & ERROR_PTP >> 8) != 0;
	return how->format == STAMP_PTP;
}

void
stamp_answer(const struct stamp_how *how, const struct stamp_seen *seen, const uint32_t *sequence,
	uint8_t *data, size_t len)
{
	struct message *m = (struct message *)data;
	bool ptp = is_ptp(how, m->error);

	memcpy(m->sender_sequence, m->sequence, sizeof(m->sequence));
	memcpy(m->sender_time, m->time, sizeof(m->time));
	memcpy(m->sender_error, m->error, sizeof(m->error));
	memset(m->zero1, 0, sizeof(m->zero1));
	m->sender_ttl = seen->ttl;
	memset(m->zero2, 0, len < sizeof(*m) ? len - STAMP_LENGTH_MIN : sizeof(m->zero2));
	if (sequence != NULL)
		put32(m->sequence, *sequence);
	put64(m->time, stamp_time(seen->tx_ns, ptp, &how->clock));
	put16(m->error, stamp_error_estimate(&how->clock, ptp));
	if (!how->session_id)
		memset(m->session, 0, sizeof(m->session));
	put64(m->receive_time, stamp_time(seen->rx_ns, ptp, &how->clock));
}

void
stamp_set_transmit(const struct stamp_how *how, uint64_t tx_ns, uint8_t *data)
{
	struct message *m = (struct message *)data;

	/* The answer's own error estimate says in which format it is. */
	put64(m->time, stamp_time(tx_ns, (m->error[0] & ERROR_PTP >> 8) != 0, &how->clock));
}

int
stamp_create(const struct stamp_conf *conf, struct stamp **out)
{
	struct stamp *s;
	int ret;

	if (conf->authenticated)
		return -ENOTSUP;
	if ((unsigned int)conf->sequence > STAMP_STATEFUL ||
		(unsigned int)conf->format > STAMP_SENDER)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->how.format = conf->format;
	s->how.session_id = conf->session_id;
	s->how.clock.error_ns = ERROR_UNKNOWN_NS;
	if (conf->sequence == STAMP_STATEFUL) {
		ret = flowtab_create(&conf->sessions, &s->sessions);
		if (ret != 0) {
			free(s);
			return ret;
		}
	}
	*out = s;
	return 0;
}

void
stamp_destroy(struct stamp *s)
{
	if (s == NULL)
		return;
	flowtab_destroy(s->sessions);
	free(s);
}

void
stamp_set_clock(struct stamp *s, const struct stamp_clock *clock)
{
	s->how.clock = *clock;
}

void
stamp_turn(struct stamp *s, uint64_t now_ms)
{
	if (s->sessions != NULL)
		flowtab_turn(s->sessions, now_ms);
}

/* The next number of a request's session. False if it has none and cannot have one. */
static bool
take_number(
	struct stamp *s, const struct stamp_seen *seen, const struct message *m, uint32_t *sequence)
{
	struct flow_key key = {.sport = seen->sport, .dport = seen->dport, .proto = IPPROTO_UDP};
	const struct flow_key *keys = &key;
	union flow_state first = {.sequence = 0};
	uint32_t id;

	memcpy(key.src, seen->src.b, sizeof(key.src));
	memcpy(key.dst, seen->dst.b, sizeof(key.dst));
	if (s->how.session_id)
		memcpy(&key.session, m->session, sizeof(key.session));
	flowtab_lookup_burst(s->sessions, &keys, 1, &id);
	if (id == FLOWTAB_NONE)
		flowtab_add(s->sessions, &key, &first, &id);
	if (id == FLOWTAB_NONE)
		return false;
	*sequence = flowtab_state(s->sessions, id)->sequence++;
	return true;
}

enum stamp_outcome
stamp_reflect(struct stamp *s, const struct stamp_seen *seen, uint8_t *data, size_t len)
{
	enum stamp_outcome outcome = stamp_judge(&s->how, seen, data, len);
	uint32_t sequence;

	if (outcome == STAMP_ANSWERED) {
		if (s->sessions == NULL)
			stamp_answer(&s->how, seen, NULL, data, len);
		else if (take_number(s, seen, (const struct message *)data, &sequence))
			stamp_answer(&s->how, seen, &sequence, data, len);
		else
			outcome = STAMP_SESSIONS;
	}
	sl_counter_add(&s->counts[outcome], 1);
	return outcome;
}

const struct stamp_how *
stamp_how_of(const struct stamp *s)
{
	return &s->how;
}

void
stamp_counts(const struct stamp *s, uint64_t *counts)
{
	for (int i = 0; i < STAMP_OUTCOMES; i++)
		counts[i] = sl_load_relaxed(&s->counts[i]);
}

struct flowtab *
stamp_sessions(struct stamp *s)
{
	return s->sessions;
}
