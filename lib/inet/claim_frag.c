/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Fragments of claimed datagrams follow their first one.
 *
 *                 first, claimed
 *        +----------------------------> CLAIMED   later ones are claimed, too
 *        |                                 ^
 *     (none) ----later----> WAITING -------+ first, claimed: those that wait are claimed
 *        |                     |
 *        |                     +---------- first, not claimed: they go the usual way
 *        |                                 v
 *        +----------------------------> PASSED    later ones go the usual way
 *                 first, not claimed
 *
 * An entry goes when its time is up, or when it is the oldest and there is no room. Later ones
 * without an entry are looked at only if some claim has their address.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_hash.h>

#include "claim.h"
#include "reasm.h"
#include "sl_errno.h"

#define UDP_LEN 8u
/* Of one datagram: at the least MTU of IPv6 more than any datagram has at that of Ethernet. */
#define WAITING_MAX 48u

enum state { WAITING, CLAIMED, PASSED };

struct frag_key {
	struct sl_addr src;
	struct sl_addr dst;
	uint32_t id;
	uint16_t port; /* index */
	uint16_t family;
};

/* A fragment that waits. */
struct wait {
	STAILQ_ENTRY(wait) link;
	struct inet_pkt p; /* but for head, which is: */
	struct inet_fragment f;
	uint8_t head[INET_HEAD];
};

STAILQ_HEAD(wait_list, wait);

/* A datagram. */
struct frag {
	struct frag_key key;
	TAILQ_ENTRY(frag) link;
	uint64_t due_ns;
	enum state state;
	bool local;
	uint16_t sport; /* CLAIMED */
	uint16_t dport;
	uint32_t serial; /* of the set when follow was last 0 */
	uint64_t follow;
	uint16_t waits;
	struct wait_list waiting;
};

TAILQ_HEAD(frag_list, frag);

struct claim_frags {
	uint32_t max; /* datagrams, and fragments that wait */
	uint64_t timeout_ns;
	uint32_t waits;
	struct rte_hash *hash;
	struct frag *entry;
	struct frag_list used; /* oldest first */
	struct frag_list free;
	struct wait *wait;
	struct wait_list room;
};

int
inet_claim_frags_create(const struct sl_inet *inet, struct claim_frags **out)
{
	struct claim_frags *t = inet_alloc(sizeof(*t));
	uint32_t max;

	if (t == NULL)
		return -ENOMEM;
	inet_reasm_bounds(inet->worker[0].reasm, &max, &t->timeout_ns);
	t->max = max;
	TAILQ_INIT(&t->used);
	TAILQ_INIT(&t->free);
	STAILQ_INIT(&t->room);
	t->entry = inet_alloc(max * sizeof(*t->entry));
	t->wait = inet_alloc(max * sizeof(*t->wait));
	t->hash = inet_frag_hash_create("cfrag", max, sizeof(struct frag_key));
	if (t->entry == NULL || t->wait == NULL || t->hash == NULL) {
		inet_claim_frags_destroy(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < max; i++) {
		TAILQ_INSERT_TAIL(&t->free, &t->entry[i], link);
		STAILQ_INSERT_TAIL(&t->room, &t->wait[i], link);
	}
	*out = t;
	return 0;
}

void
inet_claim_frags_destroy(struct claim_frags *t)
{
	struct frag *e;
	struct wait *k;

	if (t == NULL)
		return;
	TAILQ_FOREACH(e, &t->used, link)
	{
		STAILQ_FOREACH(k, &e->waiting, link)
		rte_pktmbuf_free(k->p.m);
	}
	rte_hash_free(t->hash);
	free(t->entry);
	free(t->wait);
	free(t);
}

/* The oldest that waits for an entry's first one; it is the caller's until it gives it back. */
static struct wait *
unwait(struct claim_frags *t, struct frag *e, struct inet_worker *w)
{
	struct wait *k = STAILQ_FIRST(&e->waiting);

	if (k == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&e->waiting, link);
	e->waits--;
	t->waits--;
	sl_store_relaxed(&w->held, w->held - 1);
	return k;
}

static void
give_back(struct claim_frags *t, struct wait *k)
{
	STAILQ_INSERT_HEAD(&t->room, k, link);
}

static void
drop_waiting(struct claim_frags *t, struct frag *e, struct inet_worker *w, enum sl_outcome why)
{
	struct wait *k;

	while ((k = unwait(t, e, w)) != NULL) {
		rte_pktmbuf_free(k->p.m);
		inet_count(w, why, 1);
		give_back(t, k);
	}
}

static void
forget(struct claim_frags *t, struct frag *e, struct inet_worker *w, enum sl_outcome why)
{
	drop_waiting(t, e, w, why);
	rte_hash_del_key(t->hash, &e->key);
	TAILQ_REMOVE(&t->used, e, link);
	TAILQ_INSERT_HEAD(&t->free, e, link);
}

uint64_t
inet_claim_frags_expire(struct claim_frags *t, struct inet_worker *w)
{
	struct frag *e;

	while ((e = TAILQ_FIRST(&t->used)) != NULL && w->now_ns >= e->due_ns)
		forget(t, e, w, SL_RX_IP_FRAG_TIMEOUT);
	return e != NULL ? e->due_ns : UINT64_MAX;
}

static struct frag *
add(struct claim_frags *t, const struct frag_key *key, enum state state, bool local,
	struct inet_worker *w)
{
	struct frag *e;

	if (TAILQ_EMPTY(&t->free))
		forget(t, TAILQ_FIRST(&t->used), w, SL_RX_IP_FRAG_FULL);
	e = TAILQ_FIRST(&t->free);
	if (rte_hash_add_key_data(t->hash, key, e) != 0)
		return NULL;
	TAILQ_REMOVE(&t->free, e, link);
	memset(e, 0, sizeof(*e));
	STAILQ_INIT(&e->waiting);
	e->key = *key;
	e->state = state;
	e->local = local;
	e->due_ns = w->now_ns + t->timeout_ns;
	w->reasm_due_ns = RTE_MIN(w->reasm_due_ns, e->due_ns);
	TAILQ_INSERT_TAIL(&t->used, e, link);
	return e;
}

/* Make p wait: INET_HELD, or what it is dropped for. */
static unsigned int
wait_for_first(struct claim_frags *t, struct frag *e, const struct inet_pkt *p,
	const struct inet_fragment *f, struct inet_worker *w)
{
	struct wait *k;

	if (e->waits == WAITING_MAX)
		return SL_RX_IP_FRAG_FULL;
	while (STAILQ_EMPTY(&t->room)) {
		struct frag *oldest = TAILQ_FIRST(&t->used);

		if (oldest == e) {
			forget(t, e, w, SL_RX_IP_FRAG_FULL);
			return SL_RX_IP_FRAG_FULL;
		}
		forget(t, oldest, w, SL_RX_IP_FRAG_FULL);
	}
	k = STAILQ_FIRST(&t->room);
	STAILQ_REMOVE_HEAD(&t->room, link);
	k->p = *p;
	k->f = *f;
	memcpy(k->head, p->head, p->head_len);
	STAILQ_INSERT_TAIL(&e->waiting, k, link);
	e->waits++;
	t->waits++;
	sl_counter_add(&w->held, 1);
	return INET_HELD;
}

/* A fragment of a datagram whose ports are known: claimed now, or by nobody any more. */
static unsigned int
follow(struct inet_rx *rx, struct frag *e, const struct inet_pkt *p, bool later)
{
	const struct sl_inet_claim *claim =
		inet_claim_match(rx->claim, &p->src, &p->dst, e->sport, e->dport, e->local);
	struct sl_inet_claimed *c;

	if (claim == NULL)
		return INET_PASS;
	if (e->serial != rx->claim->set->serial) {
		e->serial = rx->claim->set->serial;
		e->follow = 0;
	}
	c = inet_claim_add(rx, p, claim);
	c->sport = e->sport;
	c->dport = e->dport;
	c->later = later;
	c->follow = &e->follow;
	return SL_RX_CLAIMED | INET_KEPT;
}

/* Those that have waited go where the first one goes. */
static void
release(struct inet_rx *rx, struct claim_frags *t, struct frag *e)
{
	struct inet_worker *w = rx->w;
	struct wait *k;

	while ((k = unwait(t, e, w)) != NULL) {
		unsigned int result = INET_PASS;

		k->p.head = k->head;
		if (e->state == CLAIMED)
			result = follow(rx, e, &k->p, true);
		if (result == INET_PASS)
			result = e->local ? inet_reasm_input(rx, &k->p, &k->f)
					  : (unsigned int)SL_RX_IP_NOT_LOCAL;
		if (result != INET_HELD)
			inet_count(w, (enum sl_outcome)INET_OUTCOME(result), 1);
		if ((result & INET_KEPT) == 0)
			rte_pktmbuf_free(k->p.m);
		give_back(t, k);
	}
}

static unsigned int
first(struct inet_rx *rx, struct claim_frags *t, struct frag *e, const struct frag_key *key,
	const struct inet_pkt *p, bool local)
{
	const struct sl_inet_claim *claim = NULL;
	uint16_t sport = 0, dport = 0;
	unsigned int result;

	if (p->end - p->l4_off >= UDP_LEN && p->l4_off + UDP_LEN <= p->head_len) {
		memcpy(&sport, p->head + p->l4_off, 2);
		memcpy(&dport, p->head + p->l4_off + 2, 2);
		claim = inet_claim_match(rx->claim, &p->src, &p->dst, sport, dport, local);
	}
	if (e == NULL)
		e = add(t, key, claim != NULL ? CLAIMED : PASSED, local, rx->w);
	if (e == NULL)
		return SL_RX_IP_FRAG_FULL;
	e->state = claim != NULL ? CLAIMED : PASSED;
	e->sport = sport;
	e->dport = dport;
	result = claim != NULL ? follow(rx, e, p, false) : INET_PASS;
	release(rx, t, e);
	return result;
}

/* Could a datagram with these addresses be claimed? */
static bool
concerned(const struct inet_rx *rx, const struct inet_pkt *p, bool local)
{
	const struct sl_inet_claims *set = rx->claim->set;

	return (local && inet_claim_has_addr(set, SL_CLAIM_TO, &p->dst)) ||
	       inet_claim_has_addr(set, SL_CLAIM_FROM, &p->src);
}

unsigned int
inet_claim_fragment(
	struct inet_rx *rx, const struct inet_pkt *p, const struct inet_fragment *f, bool local)
{
	struct claim_frags *t = rx->claim->cw->frags;
	struct frag_key key = {.src = p->src,
		.dst = p->dst,
		.id = f->id,
		.port = rx->port->index,
		.family = inet_is_v4(&p->dst)};
	struct frag *e = NULL;
	void *found;

	if (!concerned(rx, p, local))
		return INET_PASS;
	/* Reassembly refuses it in the same way, and tells the sender. */
	if (p->end == p->l4_off || (f->more && (p->end - p->l4_off) % 8 != 0) ||
		f->start + (p->end - p->l4_off) > UINT16_MAX)
		return local ? INET_PASS : (unsigned int)SL_RX_IP_FRAG_BAD;
	inet_claim_frags_expire(t, rx->w);
	if (rte_hash_lookup_data(t->hash, &key, &found) >= 0)
		e = found;
	if (f->start == 0)
		return first(rx, t, e, &key, p, local);
	if (e == NULL)
		e = add(t, &key, WAITING, local, rx->w);
	if (e == NULL)
		return SL_RX_IP_FRAG_FULL;
	if (e->state == WAITING)
		return wait_for_first(t, e, p, f, rx->w);
	return e->state == CLAIMED ? follow(rx, e, p, true) : INET_PASS;
}
