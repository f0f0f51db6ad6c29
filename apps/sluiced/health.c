/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include "health.h"
#include "sl_shared.h"

/* Requests are this part of the interval early or late. */
#define JITTER 10u

const char *
health_why_name(enum health_why why)
{
	static const char *const names[HEALTH_WHYS] = {
		[HEALTH_NEW] = "new",
		[HEALTH_ANSWERS] = "answers",
		[HEALTH_SILENT] = "silent",
		[HEALTH_WRONG] = "wrong_answer",
		[HEALTH_UNREACHABLE] = "unreachable",
		[HEALTH_HINT] = "hint",
		[HEALTH_UNSENT] = "unsent",
	};

	return names[why];
}

/* 0..n - 1. Nobody gains from guessing it: Marsaglia's xorshift is enough. */
static uint32_t
draw(struct health *h, uint32_t n)
{
	h->random ^= h->random << 13;
	h->random ^= h->random >> 17;
	h->random ^= h->random << 5;
	return (uint32_t)(((uint64_t)h->random * n) >> 32);
}

static void
set_why(struct health *h, enum health_why why)
{
	sl_store_relaxed(&h->why, (uint8_t)why);
}

static void
set_up(struct health *h, bool up)
{
	h->row = 0;
	h->trial = false;
	h->hinted = false;
	sl_store_relaxed(&h->up, up);
	sl_counter_add(&h->changes, 1);
}

void
health_begin(struct health *h, const struct health_conf *conf, uint64_t now_ms, uint32_t seed)
{
	memset(h, 0, sizeof(*h));
	h->up = true;
	h->trial = true;
	h->random = seed != 0 ? seed : 1;
	/* Seeds that are near each other are not, after that. */
	for (int i = 0; i < 8; i++)
		draw(h, 1);
	h->next_ms = now_ms + draw(h, conf->interval_ms / JITTER + 1);
}

void
health_doubt(struct health *h)
{
	h->up = false;
	h->trial = false;
}

static void
good(struct health *h, const struct health_conf *conf, uint64_t now_ms)
{
	h->open = false;
	set_why(h, HEALTH_ANSWERS);
	sl_counter_add(&h->good, 1);
	if (h->was_hinted && h->hinted) {
		h->trust_ms = now_ms + (uint64_t)conf->interval_ms * HEALTH_DISTRUST;
		set_up(h, true);
	} else if (h->up) {
		h->row = 0;
		h->trial = false;
	} else if (++h->row >= conf->rise) {
		set_up(h, true);
	}
}

static void
failed(struct health *h, const struct health_conf *conf, enum health_why why)
{
	h->open = false;
	h->hinted = false;
	set_why(h, why);
	sl_counter_add(&h->failed, 1);
	if (!h->up)
		h->row = 0;
	else if (++h->row >= conf->fall || h->trial)
		set_up(h, false);
}

/* When the next request is, also if the interval was a longer one when the last was sent. */
static uint64_t
due(const struct health *h, const struct health_conf *conf)
{
	uint64_t last = h->sent_ms + conf->interval_ms + conf->interval_ms / JITTER;

	return h->sent != 0 && last < h->next_ms ? last : h->next_ms;
}

bool
health_turn(struct health *h, const struct health_conf *conf, uint64_t now_ms)
{
	if (h->open && now_ms - h->sent_ms >= conf->timeout_ms)
		failed(h, conf, HEALTH_SILENT);
	return !h->open && now_ms >= due(h, conf);
}

void
health_sent(struct health *h, const struct health_conf *conf, uint64_t now_ms, bool ok)
{
	uint32_t tenth = conf->interval_ms / JITTER;

	sl_counter_add(&h->sent, 1);
	h->sent_ms = now_ms;
	h->next_ms = now_ms + conf->interval_ms - tenth + draw(h, 2 * tenth + 1);
	h->was_hinted = h->hinted;
	h->open = true;
	if (!ok)
		failed(h, conf, HEALTH_UNSENT);
}

void
health_answer(struct health *h, const struct health_conf *conf, uint64_t now_ms,
	const uint8_t *payload, size_t len)
{
	if (!h->open || now_ms - h->sent_ms >= conf->timeout_ms) {
		sl_counter_add(&h->late, 1);
		return;
	}
	if (len < conf->expect_len ||
		(conf->expect_len != 0 && memcmp(payload, conf->expect, conf->expect_len) != 0))
		failed(h, conf, HEALTH_WRONG);
	else
		good(h, conf, now_ms);
}

void
health_unreachable(struct health *h, const struct health_conf *conf, uint64_t now_ms)
{
	if (h->open && now_ms - h->sent_ms < conf->timeout_ms)
		failed(h, conf, HEALTH_UNREACHABLE);
}

void
health_hint(struct health *h, const struct health_conf *conf, uint64_t now_ms)
{
	if (!h->up || now_ms < h->trust_ms)
		return;
	/* What was asked before proves nothing about now. */
	if (h->open)
		failed(h, conf, HEALTH_UNREACHABLE);
	if (h->up)
		set_up(h, false);
	h->hinted = true;
	h->next_ms = now_ms;
	set_why(h, HEALTH_HINT);
	sl_counter_add(&h->hints, 1);
}

uint64_t
health_next(const struct health *h, const struct health_conf *conf)
{
	return h->open ? h->sent_ms + conf->timeout_ms : due(h, conf);
}
