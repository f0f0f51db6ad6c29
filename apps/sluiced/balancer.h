/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_BALANCER_H
#define SLUICED_BALANCER_H

/**
 * @file
 * The load balancer's decisions, without packets: which back end does a datagram go to, and why.
 *
 * A *view* is all that the decisions of a moment rest on: back ends with their states, the Maglev
 * table made of those that take new flows, and who may keep the flows it has. It never changes; a
 * change of any of it (health, drain, weight, reload) makes the next view. A *balancer* is one
 * lcore's part: its flow table and its counts.
 *
 *     control thread                              lcore, each turn
 *     balancer_view_create(new)                   view = balancer_view_get(&place)
 *     old = balancer_view_publish(&place, new)    balancer_turn, balancer_pick_burst ...
 *     wait for a grace period                     report a quiescent state
 *     balancer_view_destroy(old)
 *
 * States of a back end:
 *
 *     up        takes new flows and keeps known ones
 *     draining  takes no new flows; known ones stay (drain = keep) or move on (drain = move). So
 * does one that is up with weight 0. While nothing else is left, draining ones are used as if they
 * were up. down      gets nothing; its flows move on with their next datagram
 *
 * A back end is known by its index and its *generation*. Whoever gives an index to another back end
 * gives it a new generation, and flows of the old one move on.
 */

#include "flowtab.h"
#include "maglev.h"
#include "sl_base.h"

enum balancer_affinity {
	BALANCER_FLOW,	 /**< datagrams of one flow go to one back end */
	BALANCER_SOURCE, /**< all datagrams of one source address do */
	BALANCER_NONE,	 /**< none do: they are dealt out in turn, by weight */
};

enum balancer_drain {
	BALANCER_KEEP, /**< known flows stay with a draining back end */
	BALANCER_MOVE, /**< they move on with their next datagram */
};

enum balancer_state {
	BALANCER_UP,
	BALANCER_DRAINING,
	BALANCER_DOWN,
};

/** A back end; its index is its place in the array. */
struct balancer_backend {
	const char *name;    /**< NULL: nobody has this index; else as for struct maglev_backend */
	uint32_t weight;     /**< 0..MAGLEV_WEIGHT_MAX */
	uint32_t generation; /**< not 0 */
	enum balancer_state state;
};

struct balancer_view_conf {
	const struct balancer_backend *backends; /**< may be NULL if count is 0 */
	uint32_t count;				 /**< 0..MAGLEV_BACKENDS_MAX */
	uint32_t slots;				 /**< as for struct maglev_conf */
	uint32_t seed; /**< of names and flows; equal where tables are to agree */
	enum balancer_affinity affinity;
	enum balancer_drain drain;
};

/** Why a datagram goes where it goes. */
enum balancer_reason {
	BALANCER_KNOWN,	  /**< the flow is known, and its back end may keep it */
	BALANCER_NEW,	  /**< hashed, and remembered */
	BALANCER_MOVED,	  /**< the flow is known, but its back end may not keep it: hashed again */
	BALANCER_GUARDED, /**< hashed only: too many new flows a second to remember */
	BALANCER_FULL,	  /**< hashed only: no room to remember */
	BALANCER_TURN,	  /**< affinity none: whose turn it was */
	BALANCER_NO_BACKEND, /**< to nobody: none is up or draining */
	BALANCER_REASONS
};

/** A decision. */
struct balancer_pick {
	uint16_t backend; /**< index, or MAGLEV_NONE */
	uint8_t reason;	  /**< enum balancer_reason */
};

/** Why a known flow could not stay. */
enum balancer_why {
	BALANCER_WHY_NOT,  /**< it can, or is not known */
	BALANCER_WHY_GONE, /**< its back end was removed, or its index is another one's now */
	BALANCER_WHY_DOWN,
	BALANCER_WHY_DRAINING, /**< with drain = move */
};

/** A decision explained. */
struct balancer_explanation {
	struct balancer_pick pick;
	uint32_t hash;
	uint32_t slot;	       /**< of the Maglev table; with affinity none the turn */
	uint16_t slot_backend; /**< whose the slot is: where the flow would go if it were new */
	uint16_t was;	       /**< the back end that a known flow is bound to, else MAGLEV_NONE */
	enum balancer_why why; /**< why it cannot stay there */
	bool last_resort;      /**< only draining back ends are left */
};

struct balancer_view;
struct balancer;

/** Names of reasons and causes in tables and JSON: "known", "new", ... Caller: any thread. */
const char *balancer_reason_name(enum balancer_reason reason);
const char *balancer_why_name(enum balancer_why why);

/**
 * Make a view.
 *
 * @param out   set on success only; freed by balancer_view_destroy
 * @return      0; -EINVAL for a member out of range; else as maglev_create
 * Caller: control path.
 */
int balancer_view_create(
	const struct balancer_view_conf *conf, struct balancer_view **out) SL_MUST_CHECK;

/** Free a view. NULL is allowed. Caller: control path, when no lcore uses it any more. */
void balancer_view_destroy(struct balancer_view *view);

/**
 * Put a view in place of another.
 *
 * @return   the old one, or NULL; to be destroyed after a grace period
 * Caller: one control thread. Ordering: LB1, release: who reads the pointer reads a finished view.
 */
struct balancer_view *balancer_view_publish(
	struct balancer_view **place, struct balancer_view *view);

/** The view in force. Caller: any lcore, again each turn. Ordering: LB1, acquire. */
const struct balancer_view *balancer_view_get(struct balancer_view *const *place);

/** The view's table: for shares and maglev_diff. Lives as long as the view. */
const struct maglev *balancer_view_table(const struct balancer_view *view);

/**
 * Make one lcore's part.
 *
 * @param flows  of its flow table; gone and gone_arg are taken by the balancer and must be NULL
 * @param out    set on success only; freed by balancer_destroy
 * @return       0; -EINVAL; -ENOMEM
 * Caller: control path; EAL is initialised.
 */
int balancer_create(const struct flowtab_conf *flows, struct balancer **out) SL_MUST_CHECK;

/** Free it. NULL is allowed. Caller: when its lcore has stopped. */
void balancer_destroy(struct balancer *b);

/** Once a turn: flows age. Returns how many. Caller: the lcore. */
uint32_t balancer_turn(struct balancer *b, uint64_t now_ms);

/**
 * Decide for a burst.
 *
 * @param keys   n pointers to the datagrams' keys, all fields as received
 * @param n      0..FLOWTAB_BURST
 * @param picks  set for each
 * Caller: the lcore; never blocks, takes no memory.
 * Counts: the reason of each.
 */
void balancer_pick_burst(struct balancer *b, const struct balancer_view *view,
	const struct flow_key *const *keys, uint16_t n, struct balancer_pick *picks);

/**
 * Say what the next datagram with that key would get, and why, and change nothing.
 *
 * Caller: the lcore.
 */
void balancer_explain(const struct balancer *b, const struct balancer_view *view,
	const struct flow_key *key, struct balancer_explanation *e);

/** Datagrams by reason (BALANCER_REASONS values); they sum to the datagrams. Caller: any thread. */
void balancer_counts(const struct balancer *b, uint64_t *counts);

/**
 * Flows that are bound to an index now, those of an older generation included: a drain with
 * drain = keep is over when the sum over the lcores is 0. Caller: any thread.
 */
uint64_t balancer_flows(const struct balancer *b, uint16_t backend);

/** The flow table: for statistics (any thread) and lists (the lcore). */
struct flowtab *balancer_flowtab(struct balancer *b);

#endif
