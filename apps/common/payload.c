/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <arpa/inet.h>
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "payload.h"

struct header {
	uint16_t magic;
	uint16_t flow;
	uint32_t sequence;
	uint64_t sent_ns;
};

_Static_assert(sizeof(struct header) == PAYLOAD_HEADER, "payload header has no padding");

/* Byte i is i mod 256: filler of any sequence number starts somewhere in the first 256. */
static uint8_t pattern[256 + PAYLOAD_MAX];
static pthread_once_t pattern_once = PTHREAD_ONCE_INIT;

static void
pattern_fill(void)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)i;
}

static const uint8_t *
filler(uint32_t sequence)
{
	return pattern + (uint8_t)(sequence + PAYLOAD_HEADER);
}

void
payload_write(uint8_t *data, size_t len, uint16_t flow, uint32_t sequence, uint64_t now_ns)
{
	struct header h = {htons(PAYLOAD_MAGIC), htons(flow), htonl(sequence), htobe64(now_ns)};

	pthread_once(&pattern_once, pattern_fill);
	memcpy(data, &h, sizeof(h));
	memcpy(data + PAYLOAD_HEADER, filler(sequence), len - PAYLOAD_HEADER);
}

struct payload_check *
payload_check_create(void)
{
	pthread_once(&pattern_once, pattern_fill);
	return calloc(1, sizeof(struct payload_check));
}

void
payload_check_free(struct payload_check *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < PAYLOAD_FLOWS; i++)
		free(c->flows[i]);
	free(c);
}

static bool
seen_get(const struct payload_flow *f, uint32_t sequence)
{
	return f->seen[sequence % PAYLOAD_WINDOW / 64] >> (sequence % 64) & 1;
}

static void
seen_set(struct payload_flow *f, uint32_t sequence, bool value)
{
	uint64_t bit = 1ull << (sequence % 64);

	if (value)
		f->seen[sequence % PAYLOAD_WINDOW / 64] |= bit;
	else
		f->seen[sequence % PAYLOAD_WINDOW / 64] &= ~bit;
}

/* A number above all before it: what it skips has not been seen, in the part the window holds. */
static void
flow_advance(struct payload_flow *f, uint32_t sequence)
{
	uint32_t skipped = sequence - f->next;

	if (skipped >= PAYLOAD_WINDOW)
		memset(f->seen, 0, sizeof(f->seen));
	else
		for (uint32_t s = f->next; s != sequence; s++)
			seen_set(f, s, false);
	seen_set(f, sequence, true);
	f->next = sequence + 1;
	f->span += skipped + 1ull;
	f->received++;
}

static void
flow_number(struct payload_flow *f, uint32_t sequence)
{
	uint32_t back;

	/* A low first number: the flow has just begun, and what is below it was lost. */
	if (f->span == 0)
		f->next = sequence < PAYLOAD_WINDOW ? 0 : sequence;
	/* Compared modulo 2^32, as the numbers wrap. */
	if ((int32_t)(sequence - f->next) >= 0) {
		flow_advance(f, sequence);
		return;
	}
	back = f->next - sequence;
	if (back <= PAYLOAD_WINDOW && seen_get(f, sequence)) {
		f->duplicated++;
		return;
	}
	f->reordered++;
	f->received++;
	if (back <= PAYLOAD_WINDOW)
		seen_set(f, sequence, true);
	/* Late ones from before the flow's start widen the span. */
	if (back > f->span)
		f->span = back;
}

void
payload_check_one(struct payload_check *c, const uint8_t *data, size_t len)
{
	struct header h;
	uint16_t flow;
	uint32_t sequence;

	if (len < PAYLOAD_HEADER) {
		c->foreign++;
		return;
	}
	memcpy(&h, data, sizeof(h));
	if (h.magic != htons(PAYLOAD_MAGIC)) {
		c->foreign++;
		return;
	}
	flow = ntohs(h.flow);
	sequence = ntohl(h.sequence);
	if (memcmp(data + PAYLOAD_HEADER, filler(sequence), len - PAYLOAD_HEADER) != 0) {
		c->corrupt++;
		return;
	}
	if (c->flows[flow] == NULL) {
		c->flows[flow] = calloc(1, sizeof(struct payload_flow));
		if (c->flows[flow] == NULL) {
			c->foreign++;
			return;
		}
		c->nflows++;
	}
	flow_number(c->flows[flow], sequence);
}

uint64_t
payload_flow_lost(const struct payload_flow *f)
{
	return f->span > f->received ? f->span - f->received : 0;
}

void
payload_check_totals(const struct payload_check *c, struct payload_totals *t)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < PAYLOAD_FLOWS; i++) {
		const struct payload_flow *f = c->flows[i];

		if (f == NULL)
			continue;
		t->received += f->received;
		t->lost += payload_flow_lost(f);
		t->reordered += f->reordered;
		t->duplicated += f->duplicated;
	}
}
