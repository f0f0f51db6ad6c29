/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_STAMP_H
#define SLUICED_STAMP_H

/**
 * @file
 * Two-way measurement reflector: STAMP (RFC 8762, session identifiers of RFC 8972) and TWAMP light
 * (RFC 5357, appendix I), unauthenticated.
 *
 * A *sender* sends requests; the *reflector* turns each into an answer in the same buffer, of the
 * same length. T1 is when the sender sent, *T2* when we received, *T3* when we answer. A *session*
 * is what one sender's socket sends to one of ours.
 *
 *     octet  request                answer
 *         0  sequence number        sequence number: the sender's (stateless) or ours (stateful)
 *         4  T1                     T3
 *        12  error estimate         our error estimate
 *        14  session id, or zero    the same, or zero
 *        16  (zero or padding)      T2
 *        24                         sequence number of the request
 *        28                         T1, as it came
 *        36                         error estimate, as it came
 *        38                         zero
 *        40                         TTL or hop limit with which the request arrived
 *        41                         zero
 *        44  options, padding       the same
 *
 * What the answer is by the length of the request:
 *
 *     0..13    none, "short": not even a sender's header
 *     14..40   none, "unpadded": a TWAMP sender whose answer would be longer than its request
 *     41..43   41..43 octets, all of TWAMP light's fields
 *     44..     as long as the request; what is behind octet 43 stays as it came
 *
 * So no answer is longer than its request. And no exchange goes on for ever, whoever forged the
 * first request: an answer of ours that comes back (from an echo service T2's place holds our T2,
 * from another reflector T1's place holds our T3) is known by that time, which was now a moment
 * ago, and gets none; and no answer goes to a port below 1024 but 862, where other services sit
 * that answer anything. A sender that leaves such a time in its padding is refused; padding at
 * random has it once in tens of millions of requests.
 */

#include "flowtab.h"
#include "sl_base.h"
#include "sl_inet.h"

/** The shortest request that gets an answer. */
#define STAMP_LENGTH_MIN 41u
/** Octets from the start that an answer may change. */
#define STAMP_LENGTH_BASE 44u
/** A time in a request's padding is taken for one of our own if it is no more than this from now.
 */
#define STAMP_OURS_S 10

enum stamp_sequence {
	STAMP_STATELESS, /**< answers bear the request's number */
	STAMP_STATEFUL,	 /**< answers are numbered per session from 0: losses can be told by
			    direction */
};

enum stamp_format {
	STAMP_NTP, /**< seconds since 1900, 2^-32 seconds; UTC */
	STAMP_PTP, /**< seconds since 1970, nanoseconds; TAI, as far as the clock knows its offset
		    */
	STAMP_SENDER, /**< that of the request */
};

/** What is known of the clock that T2 and T3 come from. */
struct stamp_clock {
	bool synchronised; /**< to UTC by somebody outside: the S bit */
	uint64_t error_ns; /**< no stamp is further from the truth, as far as known */
	int32_t tai_s;	   /**< TAI - UTC; 0 if the system was not told */
};

/** How to answer. */
struct stamp_how {
	enum stamp_format format;
	bool session_id; /**< octets 14 and 15 of requests are a session identifier (RFC 8972) */
	struct stamp_clock clock;
};

/** What is known of a request beside its octets. Times: nanoseconds since 1970, UTC. */
struct stamp_seen {
	struct sl_addr src, dst; /**< the sender's address, and ours */
	uint16_t sport, dport;	 /**< network order */
	uint8_t ttl;		 /**< 255 if not known, as RFC 8762 wants it */
	uint64_t rx_ns;		 /**< T2 */
	uint64_t tx_ns;		 /**< T3; stamp_set_transmit can put a later one */
};

/** What became of a request. */
enum stamp_outcome {
	STAMP_ANSWERED,
	STAMP_SHORT,	 /**< below 14 octets */
	STAMP_UNPADDED,	 /**< below 41 octets */
	STAMP_REFLECTED, /**< is an answer itself */
	STAMP_PORT,	 /**< from a port where a service may sit that answers anything */
	STAMP_SESSIONS,	 /**< stateful, and there is no room for one session more, or too many a
			    second */
	STAMP_OUTCOMES
};

/** Name of an outcome in tables, JSON and telemetry: "answered", "short", ... Caller: any thread.
 */
const char *stamp_outcome_name(enum stamp_outcome outcome);

/**
 * Say what a request deserves, without changing it.
 *
 * @param data   its first octets, min(len, STAMP_LENGTH_BASE) in one piece; a private copy, or
 * memory that nobody else writes
 * @param len    its whole length
 * @return       STAMP_ANSWERED if stamp_answer may be called
 */
enum stamp_outcome stamp_judge(const struct stamp_how *how, const struct stamp_seen *seen,
	const uint8_t *data, size_t len);

/**
 * Turn a request into its answer; its length stays.
 *
 * @param sequence   number of the answer; NULL takes the request's
 * @param data       as for stamp_judge, which has said STAMP_ANSWERED
 * Caller: any thread; a pure function.
 */
void stamp_answer(const struct stamp_how *how, const struct stamp_seen *seen,
	const uint32_t *sequence, uint8_t *data, size_t len);

/** Put a later T3 into an answer: as late as the checksum allows. */
void stamp_set_transmit(const struct stamp_how *how, uint64_t tx_ns, uint8_t *data);

/**
 * The error estimate of RFC 4656, 4.1.2.
 *
 * @param ptp   the Z bit
 * @return      host order; the error is rounded up and never below 2^-32 s, so the multiplier is
 * not 0
 */
uint16_t stamp_error_estimate(const struct stamp_clock *clock, bool ptp);

/** A time in wire form, host order. */
uint64_t stamp_time(uint64_t ns, bool ptp, const struct stamp_clock *clock);

/**
 * Ask the kernel what it knows of CLOCK_REALTIME: synchronised, its bound on the error, TAI's
 * offset. Where the answer is not to be had, the clock is not synchronised and off by up to 16 s,
 * the kernel's own largest figure.
 *
 * Caller: any thread; one system call that does not sleep, so about once a second.
 */
void stamp_clock_read(struct stamp_clock *clock);

/* A reflector: the functions above with an lcore's sessions and counts. */

struct stamp_conf {
	enum stamp_sequence sequence;
	enum stamp_format format;
	bool session_id;    /**< as in stamp_how; also tells sessions apart */
	bool authenticated; /**< asked for; refused */
	/** Of the sessions, if stateful: how many, how long idle, how many new ones a second. */
	struct flowtab_conf sessions;
};

struct stamp;

/**
 * Make one lcore's reflector. Its clock is unsynchronised until stamp_set_clock.
 *
 * @param out   set on success only; freed by stamp_destroy
 * @return      0; -ENOTSUP for the authenticated mode; -EINVAL for a member out of range; -ENOMEM
 * Caller: control path; EAL is initialised if stateful.
 */
int stamp_create(const struct stamp_conf *conf, struct stamp **out) SL_MUST_CHECK;

/** Free it. NULL is allowed. Caller: when its lcore has stopped. */
void stamp_destroy(struct stamp *s);

/** Take what is known of the clock from now on. Caller: the lcore. */
void stamp_set_clock(struct stamp *s, const struct stamp_clock *clock);

/** Once a turn: sessions age. Caller: the lcore. */
void stamp_turn(struct stamp *s, uint64_t now_ms);

/**
 * Answer a request.
 *
 * @param data   as for stamp_judge; holds the answer afterwards if the result is STAMP_ANSWERED,
 * else it is unchanged Caller: the lcore; never blocks. Counts: the outcome.
 */
enum stamp_outcome stamp_reflect(
	struct stamp *s, const struct stamp_seen *seen, uint8_t *data, size_t len);

/** How it answers, for stamp_set_transmit. */
const struct stamp_how *stamp_how_of(const struct stamp *s);

/** Requests by outcome (STAMP_OUTCOMES values); they sum to the requests. Caller: any thread. */
void stamp_counts(const struct stamp *s, uint64_t *counts);

/** The sessions' table, or NULL if stateless: for statistics (any thread) and lists (the lcore). */
struct flowtab *stamp_sessions(struct stamp *s);

#endif
