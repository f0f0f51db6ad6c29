/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_MAGLEV_H
#define SLUICED_MAGLEV_H

/**
 * @file
 * Maglev table: which back end a hash goes to.
 *
 * A *slot* is one of a prime number of equal parts of all hash values. A *table* says for each slot
 * which *back end* it belongs to; it never changes after it was made. Each back end has a
 * *permutation* of all slots, drawn from a hash of its name: its order of preference. Back ends
 * take *turns*, as often as their weights say, and each takes the first slot of its permutation
 * that is still free.
 *
 * What follows from that:
 * - Names decide, not positions: the same names, weights, size and seed give the same table in
 * every process (on machines of one byte order), whatever the order in the file and whatever the
 * indexes.
 * - A back end's number of slots is its share, slots x weight / sum of weights, rounded up or down;
 *   one with a weight, however small, has one slot at least.
 * - When a back end goes, its slots must move, and few others do (doc/balancer.md has the figures;
 *   maglev_diff counts them).
 *
 * A change makes a new table. Who shares tables between threads publishes the pointer, waits for a
 * grace period and destroys the old one (balancer.h).
 */

#include "sl_base.h"

/** Slots of a table unless the file says otherwise. */
#define MAGLEV_SLOTS 65537u
#define MAGLEV_SLOTS_MIN 251u
#define MAGLEV_SLOTS_MAX 1048573u
#define MAGLEV_BACKENDS_MAX 1024u
#define MAGLEV_WEIGHT_MAX 1000u
/** Room for a name and its final zero byte: as much as rte_cfgfile's section names have. */
#define MAGLEV_NAME_SIZE 64u
/** In place of a back end's index: there is none. */
#define MAGLEV_NONE UINT16_MAX

/** A back end as the caller names it. */
struct maglev_backend {
	const char *name; /**< 1..63 bytes, unique in a table; copied */
	uint32_t weight;  /**< 0..MAGLEV_WEIGHT_MAX; 0 gets no slot */
	uint16_t
		index; /**< what the caller wants to read from its slots; unique; not MAGLEV_NONE */
};

struct maglev_conf {
	const struct maglev_backend *backends; /**< may be NULL if count is 0 */
	uint32_t count;			       /**< 0..MAGLEV_BACKENDS_MAX */
	uint32_t slots; /**< a prime, MAGLEV_SLOTS_MIN..MAGLEV_SLOTS_MAX; 0 means MAGLEV_SLOTS */
	uint32_t seed;	/**< equal in all instances that are to agree */
};

/** What a table remembers of a back end. */
struct maglev_member {
	char name[MAGLEV_NAME_SIZE];
	uint32_t weight;
	uint32_t share; /**< slots that it has */
	uint16_t index;
};

/** Constant after create. Visible because the lookup is inline; read members, never write. */
struct maglev {
	uint32_t slots;
	uint32_t members;
	uint32_t seed;
	uint16_t *slot; /**< index of the back end of each slot, MAGLEV_NONE in an empty table */
	uint16_t *turn; /**< `slots` turns in the order in which they were taken */
	struct maglev_member *member; /**< sorted by name */
};

/** How two tables differ. */
struct maglev_diff {
	uint32_t moved; /**< slots whose back end (its name) is another one, or none, afterwards */
	uint32_t owed;	/**< of these, what the change of shares makes unavoidable */
	uint32_t disturbed; /**< moved - owed: what another way of hashing could have left in place
			     */
};

/** Can a table have that many slots: is it prime and in range? Caller: any thread. */
bool maglev_slots_valid(uint32_t slots);

/** The next valid number of slots at or above `slots`, or the largest: for messages. Caller: any
 * thread. */
uint32_t maglev_slots_next(uint32_t slots);

/**
 * Make a table.
 *
 * @param out   set on success only; the caller frees it with maglev_destroy
 * @return      0; -EINVAL for a number of slots that is not valid, a name, weight, index or count
 * out of range; -EEXIST for two back ends of one name or index; -ENOSPC for more weighted back ends
 * than slots; -ENOMEM Caller: control path; takes milliseconds with the default size.
 */
int maglev_create(const struct maglev_conf *conf, struct maglev **out) SL_MUST_CHECK;

/** Free a table. NULL is allowed. Caller: control path, when no thread reads it any more. */
void maglev_destroy(struct maglev *m);

/** The slot of a hash: any 32-bit hash whose upper bits are good. Caller: any thread. */
static inline uint32_t
maglev_slot(const struct maglev *m, uint32_t hash)
{
	return (uint32_t)(((uint64_t)hash * m->slots) >> 32);
}

/** The back end of a hash, MAGLEV_NONE in an empty table. Caller: any thread; one memory access. */
static inline uint16_t
maglev_lookup(const struct maglev *m, uint32_t hash)
{
	return m->slot[maglev_slot(m, hash)];
}

/**
 * The back end of the n-th turn, for who spreads without hashing: over any run of consecutive
 * turns each back end comes up in proportion to its share, to within 2 turns and 2 x share x number
 * of back ends more (equal weights: 4 turns).
 *
 * @param n    below m->slots
 */
static inline uint16_t
maglev_turn(const struct maglev *m, uint32_t n)
{
	return m->turn[n];
}

/**
 * Count the slots that move from one table to the next, by name.
 *
 * @return   0; -EINVAL if the tables differ in size or seed: then all that is hashed may move;
 * -ENOMEM Caller: control path.
 */
int maglev_diff(
	const struct maglev *from, const struct maglev *to, struct maglev_diff *diff) SL_MUST_CHECK;

#endif
