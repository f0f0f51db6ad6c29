/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_BACKENDS_H
#define SLUICED_BACKENDS_H

/**
 * @file
 * The control side of a service of kind = forward: in which state each of its back ends is, and
 * why. forward.h does as it is told.
 *
 *   what is known                          state       why
 *   its check says down                    down        as the check says ("silent", "hint", ...)
 *   drained, and the time for that over    down        "drained"
 *   drained                                draining    "drained"
 *   weight 0                               draining    "weight"
 *   else                                   up          as the check says, or "unchecked"
 *
 * A drain is the operator's: it lasts until it is taken back, over reloads and whatever the checks
 * say, as long as the back end keeps name, address and UDP port; a restart forgets it.
 *
 * One struct backends is constant for its worker; a reload makes another one, which takes over
 * probes:
 *
 *     control thread, d->lock held                       the service's worker
 *     backends_make, forward_prepare, claims (may fail; nothing has changed)
 *     forward_commit
 *     backends_bind, backends_publish                    backends_turn: the one it finds
 *     grace period, backends_drop of the former one
 *
 * backends_turn says by d->event_fd that something has changed; the main thread then calls
 * backends_update, which waits for a grace period for each change.
 */

#include "balancer.h"
#include "conf.h"

struct daemon;
struct forward;
struct probe;
struct service_sums;
struct worker;

/** A back end of a service. All under d->lock but what `probe` points to. */
struct backend {
	struct conf_backend conf;
	uint16_t index;		   /**< in the forward */
	enum balancer_state state; /**< in force */
	bool drained;
	bool cut;	     /**< drained, and known flows may stay no longer */
	uint64_t cut_ms;     /**< drained: when that is; 0: never */
	struct probe *probe; /**< NULL: not checked */
};

struct backends {
	struct conf_check check;
	struct sl_addr from; /**< of requests */
	char service[CONF_NAME_LEN];
	struct forward *forward; /**< set by backends_bind */
	uint64_t turn_ms;	 /**< the worker's: when it was here last */
	uint16_t n;
	struct backend backend[CONF_FORWARD_BACKENDS_MAX];
};

/**
 * Make the back ends of a service.
 *
 * @param former   those that it had, or NULL: drains go on, and who was down is so until it has
 *                 risen
 * @param share    probes go on, too; else they are new ones (former has another worker)
 * @param out      set on success only
 * @return         0; -ENOMEM; as probe_open
 * Caller: control thread, d->lock held.
 */
int backends_make(struct daemon *d, const struct conf *conf, const struct conf_service *s,
	const struct backends *former, bool share, struct backends **out) SL_MUST_CHECK;

/** Say which forward they belong to: it has them all, in states of its own, which are taken for
 * those in force. Caller: as backends_make. */
void backends_bind(struct backends *b, struct forward *f);

/** Put them in place. Returns the former ones. Ordering: BE1, release. */
struct backends *backends_publish(struct backends **place, struct backends *b);

/** Free them, with the probes that `other` (or NULL) does not share. NULL is allowed. Caller: as
 * backends_make, after a grace period. */
void backends_drop(struct daemon *d, struct backends *b, const struct backends *other);

/** Find one by name. NULL: there is none. Caller: d->lock held. */
struct backend *backends_find(struct backends *b, const char *name);

/** Drain one, for ms or (0) for as long as it takes; or take that back. backends_update follows.
 * Caller: d->lock held. */
void backend_drain(struct backend *b, uint64_t now_ms, uint64_t ms);
void backend_undrain(struct backend *b);

/** Which state a back end is to have. Caller: d->lock held. */
enum balancer_state backend_wanted(const struct backend *b);

/** The state that it shows: as balancer.h has it, "up", "draining" or "down". */
const char *backend_state_name(const struct backend *b);
/** Why it has that state: a word as in the table above. */
const char *backend_why_name(const struct backend *b);

/**
 * Tell the forward what has changed since the last call, and the log.
 *
 * @return   number of states that changed; what failed for lack of memory changes with a later call
 * Caller: control thread, d->lock held; waits for a grace period for each.
 */
uint32_t backends_update(struct backends *b, uint64_t now_ms);

/** Check them. Caller: the service's worker, each turn. Ordering: BE1, acquire. */
void backends_turn(struct worker *w, struct backends *const *place, uint64_t now_ms);

/** Add the sums of their probes' sockets. Caller: d->lock held. */
void backends_sums(const struct backends *b, struct service_sums *sums);

#endif
