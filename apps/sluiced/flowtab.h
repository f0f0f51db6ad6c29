/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FLOWTAB_H
#define SLUICED_FLOWTAB_H

/**
 * @file
 * Flow table of one lcore: what a flow was bound to, for as long as it is used.
 *
 * A *flow* is what has one key (addresses, ports, protocol). Its *state* is eight bytes of the
 * user's: the balancer keeps a back end and its generation there, the reflector the next sequence
 * number. A flow has an *id*, an index that stays its own until it is removed.
 *
 * All bounds are fixed at create and no call but create takes memory:
 * - The table holds `flows` flows and refuses more (counted: full). Known flows are never pushed
 * out by new ones.
 * - The *guard* bounds new flows to `inserts_per_s`, with a reserve of a tenth of a second's worth:
 *   in any T seconds at most inserts_per_s x (T + 0.1) are added (counted: guarded). Who floods
 * with new flows thus fills a table slowly, and costs no more than a lookup each.
 * - A flow that was not looked up for `idle_ms` is gone, at the next lookup or when the table's
 * *hand* comes by. The hand visits FLOWTAB_STEP flows a turn at most and goes round in a quarter of
 *   idle_ms if turns are frequent enough.
 *
 * A refused flow is no error: its user works without state (the balancer by hash alone).
 *
 * Every call but flowtab_stats_get belongs to the lcore that owns the table (and to the control
 * thread before it starts and after it has stopped); none blocks. rte_hash does the hashing, on a
 * seed of the table's own, so that nobody outside can choose keys that meet in one bucket.
 */

#include "sl_base.h"

/** Most keys of one lookup. */
#define FLOWTAB_BURST 64u
/** Most flows that one turn looks at for their age. */
#define FLOWTAB_STEP 64u
#define FLOWTAB_FLOWS_MAX 4194304u
#define FLOWTAB_IDLE_MS_MAX 86400000u
#define FLOWTAB_INSERTS_MAX 10000000u
/** In place of an id: no such flow. */
#define FLOWTAB_NONE UINT32_MAX

/** What a flow is known by. All bytes are compared: zero what is not used. */
struct flow_key {
	uint8_t src[16]; /**< struct sl_addr's form: IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t sport; /**< network order */
	uint16_t dport;
	uint16_t session; /**< reflector: session identifier; else 0 */
	uint8_t proto;
	uint8_t zero[9]; /**< with it a key and what rte_hash adds fill one cache line */
} __attribute__((aligned(8)));

/** What a flow is bound to. */
union flow_state {
	struct {
		uint16_t backend;    /**< balancer: index of the back end */
		uint32_t generation; /**< balancer: which of those that had this index; never 0 */
	};
	uint32_t sequence; /**< reflector: number of the next answer */
};

struct flowtab_conf {
	uint32_t flows;		/**< 8..FLOWTAB_FLOWS_MAX; 0 means 65536; about 150 bytes each */
	uint32_t idle_ms;	/**< 10..FLOWTAB_IDLE_MS_MAX; 0 means 30000 */
	uint32_t inserts_per_s; /**< 10..FLOWTAB_INSERTS_MAX; 0 means 100000 */
	uint32_t seed;		/**< random, not known outside */
	int socket;		/**< NUMA node, or -1 for any */
	/** Hears of each state that a flow is no longer bound to (aged, removed or rebound); may be
	 * NULL. */
	void (*gone)(void *arg, const union flow_state *state);
	void *gone_arg;
};

/** What became of a flow that was to be added. */
enum flowtab_added {
	FLOWTAB_ADDED,
	FLOWTAB_KNOWN,	 /**< it was there (an earlier packet of the same burst): not changed */
	FLOWTAB_GUARDED, /**< refused: too many new flows a second */
	FLOWTAB_FULL,	 /**< refused: as many flows as the table may hold */
	FLOWTAB_CROWDED, /**< refused: no room where this key's hash points to */
};

/** Counts since create. hits + misses = keys looked up; added = aged + removed + flows. */
struct flowtab_stats {
	uint64_t hits;
	uint64_t misses; /**< unknown, or just found too old */
	uint64_t added;
	uint64_t guarded; /**< refused by the guard */
	uint64_t full;	  /**< refused by the bound on flows */
	uint64_t crowded; /**< refused by the hash table */
	uint64_t moved;	  /**< bound to another state because they could not stay */
	uint64_t aged;
	uint64_t removed; /**< by flowtab_remove */
	uint64_t flows;	  /**< there now */
};

struct flowtab;

/**
 * Make an empty table.
 *
 * @param out   set on success only; freed by flowtab_destroy
 * @return      0; -EINVAL for a member out of range; -ENOMEM
 * Caller: control path; EAL is initialised.
 */
int flowtab_create(const struct flowtab_conf *conf, struct flowtab **out) SL_MUST_CHECK;

/** Free a table; gone is not called. NULL is allowed. Caller: when its lcore has stopped. */
void flowtab_destroy(struct flowtab *t);

/**
 * Once a turn of the lcore's loop: take the time, give the guard its due, let the hand go on.
 *
 * @param now_ms  monotonic; turns may be any time apart
 * @return        flows that aged
 */
uint32_t flowtab_turn(struct flowtab *t, uint64_t now_ms);

/**
 * Look flows up and note that they are in use.
 *
 * @param keys   n pointers; where they are the same one after another, it is looked up once
 * @param n      0..FLOWTAB_BURST
 * @param ids    set for each: its id, or FLOWTAB_NONE. An id is good until the next turn, removal
 * or end of the burst.
 */
void flowtab_lookup_burst(
	struct flowtab *t, const struct flow_key *const *keys, uint16_t n, uint32_t *ids);

/** Id of a flow, or FLOWTAB_NONE, without counting it or noting its use: for who only wants to
 * know. */
uint32_t flowtab_peek(const struct flowtab *t, const struct flow_key *key);

/**
 * Bind a flow that a lookup has not found.
 *
 * @param state  copied
 * @param id     set to the flow's id if the result is FLOWTAB_ADDED or FLOWTAB_KNOWN, else to
 * FLOWTAB_NONE
 */
enum flowtab_added flowtab_add(
	struct flowtab *t, const struct flow_key *key, const union flow_state *state, uint32_t *id);

/** What flowtab_add would say to a flow that is not known: FLOWTAB_ADDED, _GUARDED or _FULL. */
enum flowtab_added flowtab_would_add(const struct flowtab *t);

/** The state of a flow; it may be written through the pointer if `gone` need not hear of it. */
union flow_state *flowtab_state(struct flowtab *t, uint32_t id);

/** Bind a known flow to another state, because what it was bound to is no longer to be used. */
void flowtab_rebind(struct flowtab *t, uint32_t id, const union flow_state *state);

/** Forget a flow. */
void flowtab_remove(struct flowtab *t, uint32_t id);

/**
 * May a flow stay with its back end? This is where `drain = keep | move` takes effect: what the
 * caller lists decides, and one comparison sees a back end that is down, draining with `move`,
 * gone, or replaced by another one with the same index.
 *
 * @param follow  for each back end its generation if known flows may stay with it, else 0
 * @param n       entries of follow
 */
static inline bool
flow_may_stay(const union flow_state *state, const uint32_t *follow, uint32_t n)
{
	return state->backend < n && follow[state->backend] == state->generation;
}

/** Hears of a flow. */
typedef void (*flowtab_visit)(
	void *arg, const struct flow_key *key, const union flow_state *state, uint32_t idle_ms);

/**
 * Visit a part of the flows: for a list that is given out over several turns.
 *
 * @param cursor  0 to begin; then as the call left it
 * @param steps   places to look at, most of which may be empty
 * @return        true until all places have been looked at. A flow that stays from beginning to end
 * is visited once; one that comes or goes may be missed.
 */
bool flowtab_walk(
	struct flowtab *t, uint32_t *cursor, uint32_t steps, flowtab_visit visit, void *arg);

/** Read the counts. Caller: any thread; they fit each other once the owner has stopped. */
void flowtab_stats_get(const struct flowtab *t, struct flowtab_stats *stats);

/** Assert that counts, hash table and flows agree. Caller: as the owner; looks at every flow. */
void flowtab_check(const struct flowtab *t);

#endif
