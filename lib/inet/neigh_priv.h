/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_NEIGH_PRIV_H
#define INET_NEIGH_PRIV_H

#include <rte_hash.h>
#include <rte_spinlock.h>

#include "neigh.h"

/* RFC 4861's RETRANS_TIMER, MAX_*CAST_SOLICIT and REACHABLE_TIME. */
#define NEIGH_RETRANS_NS NSEC_PER_SEC
#define NEIGH_SOLICITS 3
#define NEIGH_REACHABLE_NS (30 * NSEC_PER_SEC)
/* An unused entry is forgotten after this long, and may be evicted after the shorter time. */
#define NEIGH_STALE_NS (60 * NSEC_PER_SEC)
#define NEIGH_LIVE_NS (30 * NSEC_PER_SEC)
/* Packets that wait: for one neighbour, and for all. */
#define NEIGH_PENDING 32
#define NEIGH_PENDING_ALL 1024u
/* Marks the end of a list of waiting packets. */
#define NEIGH_NONE UINT16_MAX

/* Word of an entry: MAC address in bits 0-47, usable in 48, generation above. */
#define NEIGH_USABLE (UINT64_C(1) << 48)
#define NEIGH_GENERATION_SHIFT 49
#define NEIGH_GENERATIONS 0x7fffu

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, /* asked for, no answer yet: packets wait */
	NEIGH_REACHABLE,  /* confirmed less than 30 s ago */
	NEIGH_STALE,	  /* usable, but unconfirmed: asked again once it is used */
	NEIGH_PROBE,	  /* usable while it is asked, at its address alone */
};

struct neigh_key {
	struct sl_addr addr;
	uint32_t port; /* index */
};

struct neigh {
	uint64_t word;	  /* (a) relaxed; see neigh.h */
	uint64_t used_ns; /* (a) relaxed: written by workers, ten times a second at most */
	/* (l) */
	struct neigh_key key;
	enum neigh_state state;
	uint8_t solicits; /* sent without an answer */
	uint16_t generation;
	uint16_t first; /* waiting packets, oldest first */
	uint16_t last;
	uint16_t pending;
	uint64_t since_ns; /* when it got into this state */
	uint64_t due_ns;   /* when something happens if nothing is heard */
};

struct neigh_wait {
	struct rte_mbuf *m;
	uint16_t next;
};

struct inet_neigh_table {
	uint32_t entries; /* (c) */
	/* (a) relaxed: counts entries given up. A worker's memory of older entries is void. */
	uint32_t epoch SL_CACHE_ALIGNED;
	uint8_t guard_epoch[SL_CACHE_GUARD];
	rte_spinlock_t lock SL_CACHE_ALIGNED;
	/* (l) */
	uint32_t used;	    /* entries never used lie from here on */
	uint32_t free_head; /* index + 1 of those given back; 0 for none; linked by key.port */
	uint32_t hand;	    /* where the next eviction starts to look */
	uint16_t wait_free;
	struct rte_hash *hash; /* key -> index */
	struct neigh *entry;
	struct neigh_wait wait[NEIGH_PENDING_ALL];
	uint8_t guard[SL_CACHE_GUARD];
};

static inline void
neigh_mac(uint64_t word, uint8_t *mac)
{
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)(word >> (40 - 8 * i));
}

static inline uint16_t
neigh_generation(uint64_t word)
{
	return (uint16_t)(word >> NEIGH_GENERATION_SHIFT);
}

struct neigh *neigh_find_locked(
	struct inet_neigh_table *t, const struct inet_port *port, const struct sl_addr *addr);
/** Set the MAC address; NULL takes it away. */
void neigh_set_mac_locked(struct neigh *e, const uint8_t *mac);
void neigh_set_state_locked(struct neigh *e, enum neigh_state state, uint64_t now_ns);
/** Forget an entry; waiting packets are dropped and counted. */
void neigh_forget_locked(struct inet_neigh_table *t, struct neigh *e, struct inet_worker *w);

#endif
