/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_HEALTH_H
#define SLUICED_HEALTH_H

/**
 * @file
 * The health of one back end, without packets and without a clock: its user says what time it is,
 * what was sent and what came.
 *
 * A *request* is a datagram with a payload of the file; a good *answer* begins with what the file
 * expects. One request is open at a time: it ends with an answer, with an error, or when its time
 * is over. A *hint* is an ICMP port unreachable for a client's datagram.
 *
 *                 `fall` failures in a row, or a hint
 *         +---------------------------------------------------+
 *         |                                                   v
 *         up <----------------------------------------------- down
 *                 `rise` good answers in a row, or the
 *                 first one after a hint
 *
 * - A back end begins as up, on trial: its first failure takes it down.
 * - A hint may be forged by whoever knows the addresses, so the next request is asked about it at
 * once. If that one is answered well, the back end is up again and hints are not believed for
 * HEALTH_DISTRUST intervals. So a forger takes a back end away for one round trip, seldom.
 * - Requests are a tenth of the interval early or late, at random, so that checks of many back ends
 * do not come to beat together.
 * - An answer to a request whose time is over is counted and believed no more. One that is later
 * than the next request is taken for the answer to that.
 *
 * Every call belongs to one thread; others may read counters and words by relaxed loads.
 */

#include "sl_base.h"

/** Intervals for which hints are not believed after one that was wrong. */
#define HEALTH_DISTRUST 10u

enum health_why {
	HEALTH_NEW,	    /**< on trial: not asked yet, or no answer yet */
	HEALTH_ANSWERS,	    /**< the last request was answered well */
	HEALTH_SILENT,	    /**< no answer in time */
	HEALTH_WRONG,	    /**< another answer than expected */
	HEALTH_UNREACHABLE, /**< port or host unreachable, as the answer to a request */
	HEALTH_HINT,	    /**< port unreachable, as the answer to a client */
	HEALTH_UNSENT,	    /**< the request could not be sent */
	HEALTH_WHYS
};

/** How to check; may be another one with each call. */
struct health_conf {
	uint32_t interval_ms;  /**< 10 at least */
	uint32_t timeout_ms;   /**< 1..interval_ms */
	uint32_t rise;	       /**< 1 at least */
	uint32_t fall;	       /**< likewise */
	const uint8_t *expect; /**< may be NULL if expect_len is 0: then any answer is good */
	uint16_t expect_len;
};

/** One back end. Read members, never write. */
struct health {
	bool up;	 /**< (relaxed) */
	uint8_t why;	 /**< (relaxed) enum health_why, of the last request or hint */
	bool trial;	 /**< the first failure counts as `fall` */
	bool open;	 /**< a request is */
	bool hinted;	 /**< down by a hint that no request has confirmed */
	bool was_hinted; /**< that, when the open request was sent */
	uint32_t row;	 /**< good answers in a row when down, failures in a row when up */
	uint32_t random; /**< state of the generator for early and late */
	uint64_t sent_ms;
	uint64_t next_ms;  /**< when the next request is due */
	uint64_t trust_ms; /**< until then hints are not believed */
	uint64_t sent;	   /**< (relaxed) requests, those that could not be sent included */
	uint64_t good;	   /**< (relaxed) of these, answered well */
	uint64_t failed;   /**< (relaxed) of these, not */
	uint64_t late;	   /**< (relaxed) answers without an open request */
	uint64_t hints;	   /**< (relaxed) believed */
	uint64_t changes;  /**< (relaxed) of `up` */
};

/** How a cause reads in tables and JSON: "new", "answers", "silent", ... Caller: any thread. */
const char *health_why_name(enum health_why why);

/**
 * Begin: up, on trial, its first request due within a tenth of the interval.
 *
 * @param seed   any; two back ends have different ones
 */
void health_begin(struct health *h, const struct health_conf *conf, uint64_t now_ms, uint32_t seed);

/** Right after health_begin: it is down until it has risen. */
void health_doubt(struct health *h);

/**
 * See whether time is over for the open request, and whether the next one is due.
 *
 * @return   true: send a request now, and say so by health_sent
 */
bool health_turn(struct health *h, const struct health_conf *conf, uint64_t now_ms);

/** A request left, or could not be sent (ok is false). */
void health_sent(struct health *h, const struct health_conf *conf, uint64_t now_ms, bool ok);

/** A datagram came from the back end to where requests are sent from. */
void health_answer(struct health *h, const struct health_conf *conf, uint64_t now_ms,
	const uint8_t *payload, size_t len);

/** The open request found nobody: port or host unreachable. */
void health_unreachable(struct health *h, const struct health_conf *conf, uint64_t now_ms);

/** A client's datagram found nobody: port unreachable. */
void health_hint(struct health *h, const struct health_conf *conf, uint64_t now_ms);

/** Which call is due next at the latest, if nothing comes: a time for health_turn. */
uint64_t health_next(const struct health *h, const struct health_conf *conf);

#endif
