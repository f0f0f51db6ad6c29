/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_BRIDGE_TABLE_H
#define SLUICED_BRIDGE_TABLE_H

/**
 * @file
 * Which member of a bridge a station is behind: learned from source addresses, shared by all
 * lcores.
 *
 * A *station* is a MAC address. A *member* is a port of the bridge, by its index. An *entry* binds
 * a station to a member and says when it was last heard, in one word, so that an lcore sees both or
 * neither.
 *
 *   lookup, refresh   many lcores at once; no lock, no wait. A refresh writes at most once a second
 *                     for each station, so that lcores do not fight for its cache line
 *   new, moved        under a lock that an lcore only tries to take: when another one is inside,
 *                     the frame goes on without being learned (counted: busy), and the next frame
 * of the station tries again ageing, listing   control threads, under the lock for a few entries at
 * a time
 *
 * rte_hash finds entries (its lookups run while one writer changes it); what ageing has unlinked is
 * used again only after a grace period, since an lcore may still look at it.
 *
 * Bounds, fixed at create: `entries` in all, and `per_port` behind one member. A station that is
 * heard is never pushed out: where there is no room, new ones are not learned, and frames to them
 * are flooded. So whoever forges source addresses fills the share of their own member, and no
 * more. A station may move to another member at any time, as bridges have it, unless that member's
 * share is full.
 */

#include "sl_base.h"

/** Most frames of one call. */
#define BRIDGE_BURST 64u
#define BRIDGE_MEMBERS_MAX 16u
#define BRIDGE_ENTRIES_MIN 16u
#define BRIDGE_ENTRIES_MAX 65536u
#define BRIDGE_AGE_MAX_S 1000000u
/** In place of a member: the station is not known. */
#define BRIDGE_UNKNOWN UINT16_MAX

/** What became of a source address. */
enum bridge_learn {
	BRIDGE_KNOWN,	/**< it was there, behind that member */
	BRIDGE_LEARNED, /**< it is there now */
	BRIDGE_MOVED,	/**< it was behind another member */
	BRIDGE_LIMIT,	/**< not learned: the member's share is used up */
	BRIDGE_FULL,	/**< not learned: no entry is free */
	BRIDGE_BUSY,	/**< not learned now: another thread changes the table */
	BRIDGE_LEARN_RESULTS
};

struct bridge_table_conf {
	uint32_t entries;  /**< BRIDGE_ENTRIES_MIN..BRIDGE_ENTRIES_MAX */
	uint32_t per_port; /**< 1..entries */
	uint32_t age_s;	   /**< 1..BRIDGE_AGE_MAX_S: forgotten when not heard for that long */
	uint32_t seed;	   /**< of the hash: nobody outside must know it */
	int socket;	   /**< NUMA node of the memory, -1 for any */
};

/** One entry, for a listing. */
struct bridge_row {
	uint64_t mac; /**< see bridge_mac */
	uint16_t member;
	uint32_t age_s;
};

struct bridge_table;

/** A MAC address as the number that the table knows it by. */
static inline uint64_t
bridge_mac(const uint8_t *bytes)
{
	uint64_t mac = 0;

	for (int i = 0; i < 6; i++)
		mac = mac << 8 | bytes[i];
	return mac;
}

/**
 * Create an empty table.
 *
 * @param out   set on success only
 * @return      0; -EINVAL for a member out of range; -ENOMEM
 * Caller: control path; EAL is initialised.
 */
int bridge_table_create(
	const struct bridge_table_conf *conf, struct bridge_table **out) SL_MUST_CHECK;

/** Free it. NULL is allowed. Caller: control path, when no other thread uses it any more. */
void bridge_table_destroy(struct bridge_table *t);

/**
 * Look destinations up.
 *
 * @param mac      n addresses
 * @param n        0..BRIDGE_BURST
 * @param now_s    seconds of any clock that does not step, the same for all calls; wraps
 * @param member   set for each: its member, or BRIDGE_UNKNOWN
 * Caller: any lcore that takes part in the grace periods of bridge_table_age, between two of its
 *         quiescent states; lock-free.
 */
void bridge_table_find_burst(
	struct bridge_table *t, const uint64_t *mac, uint16_t n, uint32_t now_s, uint16_t *member);

/**
 * Learn source addresses, or see that they are still there.
 *
 * @param mac      n addresses of stations (no groups)
 * @param member   that they were heard from, below BRIDGE_MEMBERS_MAX
 * @param counts   BRIDGE_LEARN_RESULTS counts of the caller, added to
 * Caller: as bridge_table_find_burst; tries the lock, never waits for it.
 * Ordering: BR1 (the lock), BR2 publishes a new entry to lookups.
 */
void bridge_table_learn_burst(struct bridge_table *t, const uint64_t *mac, uint16_t n,
	uint16_t member, uint32_t now_s, uint64_t *counts);

/**
 * Forget stations that were not heard for age_s.
 *
 * @param wait   called without the lock: returns when every lcore has passed a quiescent state
 * @return       how many were forgotten
 * Caller: one control thread at a time; takes the lock for some hundred entries at a time.
 */
uint32_t bridge_table_age(
	struct bridge_table *t, uint32_t now_s, void (*wait)(void *arg), void *arg);

/** Change what an operator may change while it is in use. Caller: control path. */
void bridge_table_set(struct bridge_table *t, uint32_t per_port, uint32_t age_s);

/**
 * List entries in the order of their places, which stay as they are while a station is known.
 *
 * @param from    place to begin at: 0, or what *next was
 * @param rows    takes max at most
 * @param next    set to the place to go on at; BRIDGE_ENTRIES_MAX when there are no more
 * @return        rows written
 * Caller: control path; takes the lock.
 */
uint32_t bridge_table_list(struct bridge_table *t, uint32_t from, uint32_t now_s,
	struct bridge_row *rows, uint32_t max, uint32_t *next);

/** Stations known behind a member; those not yet forgotten included. Caller: any thread. */
uint32_t bridge_table_held(const struct bridge_table *t, uint16_t member);

#endif
