/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_UDPQ_H
#define SL_UDPQ_H

/**
 * @file
 * The batched UDP receive queue: producers append bursts, one reader takes whole intakes.
 *
 * A *datagram* (struct sl_dgram) is one cache line that describes a received payload. A *producer*
 * is an lcore that receives packets. An *intake* is the bounded queue that a producer appends to.
 * The *private queue* belongs to the reader alone and lies on other cache lines. The reader takes
 * an intake whole, in one step, only when its private queue is empty, and then hands out
 * datagrams from there; so producers and the reader meet once per intake, not once per datagram,
 * and a failure at datagram k leaves k+1.. where they are, in order.
 *
 *     producer 0 --append--> [ intake 0 ] --\                    (take whole, in turn)
 *     producer 1 --append--> [ intake 1 ] ---+--> [ private queue ] --peek, release--> reader
 *
 *       rmem: one word, charged once per appended burst, given back once per released burst
 *
 * Modes, chosen at creation:
 *   SL_UDPQ_LOCAL      producer and reader are one lcore: appends go straight into the private
 *                      queue, nothing is shared, nothing is atomic
 *   SL_UDPQ_SPLIT      one intake per producer, each written by its producer alone
 *   SL_UDPQ_SHARED     one intake, any thread appends, under a spinlock once per burst
 *
 * Order: what one producer appends is handed out in the order in which it was appended. Between
 * producers there is no order, so a flow belongs on one producer (RSS does that).
 *
 * Receive-buffer accounting follows Linux's newer rule: a datagram is refused when what is queued
 * plus its true size exceeds rcvbuf, but one is always accepted when nothing is queued. The true
 * size is the memory held (buffers and their headers), not the payload. Memory counts as queued
 * until it is released, so a reader in the middle of a burst holds up to SL_UDPQ_BURST_MAX
 * datagrams more than it has still to read: that is the only slack.
 *
 * Who may call what at the same time as what (append: A of the same producer, A' of another):
 *
 *                       A     A'    peek/release   wait   wake   stats   destroy
 *     append            no*   yes   yes (LOCAL no) yes    yes    yes     no
 *     peek/release      yes   yes   no             no     yes    yes     no
 *     wait              yes   yes   no             no     yes    yes     no
 *     wake              yes   yes   yes            yes    yes    yes     no
 *
 *     * yes in SL_UDPQ_SHARED.
 *
 * Several readers are not supported: entering peek, release or wait while another thread is inside
 * one of them fails an assertion in debug builds. lib/udp admits one reader at a time.
 */

#include "sl_base.h"

SL_BEGIN_DECLS

/** Most datagrams that one peek shows, whatever is asked: keeps the time between two looks at the
 * intakes, and thus the producers' latency, bounded. */
#define SL_UDPQ_BURST_MAX 64

/** One received datagram. Whoever holds the descriptor owns the buffer. */
struct sl_dgram {
	void *buf;         /**< the payload's buffer (an mbuf in lib/udp); opaque here */
	uint32_t truesize; /**< bytes of memory the buffer holds, header included; at least 1 */
	uint32_t len;      /**< payload bytes */
	uint16_t sport;    /**< source port, network order */
	uint16_t dport;    /**< destination port, network order */
	uint16_t port;     /**< handle of the port that it arrived on */
	uint8_t ttl;       /**< TTL or hop limit as received */
	uint8_t tos;       /**< TOS or traffic class as received */
	uint64_t aux;      /**< for the producer's use until appended, for the reader's afterwards */
	uint8_t src[16];   /**< source address; IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16];   /**< destination address, likewise */
} SL_CACHE_ALIGNED;

enum sl_udpq_mode {
	SL_UDPQ_LOCAL,
	SL_UDPQ_SPLIT,
	SL_UDPQ_SHARED,
};

/** Why datagrams were not taken. */
enum sl_udpq_drop {
	SL_UDPQ_DROP_NONE,
	SL_UDPQ_DROP_RCVBUF, /**< rcvbuf has no room for the true size */
	SL_UDPQ_DROP_SLOTS,  /**< the intake has no free slot */
	SL_UDPQ_DROP_COUNT
};

struct sl_udpq_conf {
	enum sl_udpq_mode mode;
	uint32_t producers; /**< 1..1024; worker indexes below this may append */
	uint32_t slots;     /**< datagrams an intake holds, 2..2^20; rounded up to a power of two */
	uint64_t rcvbuf;    /**< bytes of true size, at least 1 */
	/** Frees buffers that are queued when the queue is destroyed. Called by destroy alone. */
	void (*free_burst)(void **bufs, uint16_t n);
};

struct sl_udpq_stats {
	uint64_t appended;                  /**< datagrams taken from producers */
	uint64_t drops[SL_UDPQ_DROP_COUNT]; /**< datagrams refused, by cause */
	uint64_t released;                  /**< datagrams handed out */
	uint64_t takes;                     /**< intakes taken whole */
	uint64_t wakeups;                   /**< eventfd writes by producers */
	uint64_t rmem;                      /**< bytes of true size queued now */
};

struct sl_udpq;

/**
 * Create an empty queue.
 *
 * @param conf    copied
 * @param out     set on success only; freed by sl_udpq_destroy
 * @return        0; -EINVAL for a member out of range or free_burst NULL; -ENOMEM; -EMFILE or
 *                -ENFILE when no eventfd can be had (LOCAL needs none)
 * Caller: control path.
 */
int sl_udpq_create(const struct sl_udpq_conf *conf, struct sl_udpq **out) SL_MUST_CHECK;

/**
 * Free a queue and, through free_burst, every buffer still in it.
 *
 * @param q       NULL is allowed
 * Caller: control path, when no producer and no reader can reach the queue any more.
 */
void sl_udpq_destroy(struct sl_udpq *q);

/**
 * Append datagrams, as many from the front of the array as fit.
 *
 * @param producer  worker index of the caller, below conf.producers
 * @param d         descriptors, copied unless they lie in sl_udpq_room; the queue owns the buffers of
 *                  those taken
 * @param n         0..65535
 * @param why       set to the cause if fewer than n were taken, else to SL_UDPQ_DROP_NONE
 * @return          number taken; the rest stays the caller's and is counted as dropped for *why
 * Caller: that producer (LOCAL: the reader's lcore; SHARED: any thread); lock-free but for SHARED,
 *         which takes the intake's spinlock for one burst; never sleeps.
 *         Writes the eventfd (one system call) only if the reader has said that it sleeps.
 * Ordering: UQ1 publishes the datagrams to the reader; UQ3 against the sleep announcement.
 * Counts: what is not taken, in drops[*why] of this producer.
 */
uint16_t sl_udpq_append_burst(struct sl_udpq *q, uint32_t producer, const struct sl_dgram *d,
	uint16_t n, enum sl_udpq_drop *why);

/**
 * Where a producer may build the descriptors of its next append, to save the copy.
 *
 * @param n    1..65535 of them
 * @return     room for n in the queue itself; sl_udpq_append_burst takes them from there if it is
 *             given this address, and may as well be given another, or nothing. NULL: there is none,
 *             as always but in SL_UDPQ_LOCAL
 * Caller: the reader's lcore; good until its next append.
 */
struct sl_dgram *sl_udpq_room(struct sl_udpq *q, uint16_t n);

/**
 * Show the datagrams at the head of the private queue; if it is empty, first take the next
 * intake that holds anything, whole.
 *
 * @param max     how many the caller can use; more than SL_UDPQ_BURST_MAX counts as that
 * @param first   set to the first descriptor when the result is not 0; valid, with the n-1 that
 *                follow it in memory, until the next release
 * @return        number shown; 0 means that the private queue and all intakes were empty
 * Caller: the reader; lock-free; never blocks.
 * Ordering: UQ1 acquires what producers appended.
 */
uint16_t sl_udpq_peek_burst(struct sl_udpq *q, uint16_t max, struct sl_dgram **first);

/**
 * Take the first n of the datagrams shown by the last peek: they leave the queue, their buffers
 * are the caller's, and their memory is given back to the accounting in one step.
 *
 * @param n       0..what the last peek returned
 * Caller: the reader; lock-free; never blocks.
 * Ordering: UQ2, so that a producer that finds room may reuse it.
 */
void sl_udpq_release_burst(struct sl_udpq *q, uint16_t n);

/**
 * Sleep until something is queued, sl_udpq_wake is called, or the time is over.
 *
 * @param timeout_ns  longest wait in nanoseconds; 0 only looks, below 0 waits without limit
 * @return            0 when something is queued; -EAGAIN when the time is over; -EINTR for a
 *                    signal; -ECANCELED after sl_udpq_wake; -EOPNOTSUPP in LOCAL mode, where the
 *                    only producer is the caller
 * Caller: the reader; blocks; not for an lcore that must also receive.
 * Ordering: UQ3: announce, then look once more; the producer appends, then looks for sleepers.
 */
int sl_udpq_wait(struct sl_udpq *q, int64_t timeout_ns) SL_MUST_CHECK;

/**
 * Make a present or the next sl_udpq_wait return -ECANCELED.
 *
 * Caller: any thread; one system call.
 */
void sl_udpq_wake(struct sl_udpq *q);

/** Change rcvbuf; what is queued stays, as on Linux. Caller: any thread. bytes: at least 1. */
void sl_udpq_set_rcvbuf(struct sl_udpq *q, uint64_t bytes);

/**
 * Read the counters.
 *
 * @param producer   one producer's appended, drops and wakeups; UINT32_MAX for the sum over all
 * Caller: any thread; exact once producers and reader have stopped, else each counter is some
 *         recent value.
 */
void sl_udpq_stats(const struct sl_udpq *q, uint32_t producer, struct sl_udpq_stats *stats);

/**
 * Check the invariant: appended = released + queued, and rmem = the true size of what is queued.
 *
 * @return   true if it holds
 * Caller: when neither producers nor reader run (tests, debug builds).
 */
bool sl_udpq_check(struct sl_udpq *q);

SL_END_DECLS

#endif
