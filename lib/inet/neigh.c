/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_jhash.h>

#include "neigh_priv.h"
#include "seed.h"
#include "sl_errno.h"
#include "sl_inet_claim.h"
#include "table.h"

/* How many entries an eviction looks at: it happens inside a burst. */
#define EVICT_LOOK 64u
#define USED_NOTE_NS (NSEC_PER_SEC / 10)

int
inet_neigh_create(uint32_t entries, struct inet_neigh_table **out)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	struct rte_hash_parameters params = {.entries = entries,
		.key_len = sizeof(struct neigh_key),
		.hash_func = rte_jhash,
		.hash_func_init_val = inet_seed(),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};
	char name[RTE_HASH_NAMESIZE];
	struct inet_neigh_table *t = inet_alloc(sizeof(*t));
	int ret = -ENOMEM;

	if (t == NULL)
		return ret;
	snprintf(name, sizeof(name), "sl_neigh_%u", sl_fetch_add_relaxed(&serial, 1u));
	params.name = name;
	t->entries = entries;
	rte_spinlock_init(&t->lock);
	t->entry = inet_alloc(entries * sizeof(*t->entry));
	if (t->entry == NULL)
		goto free_table;
	t->hash = rte_hash_create(&params);
	if (t->hash == NULL) {
		ret = sl_rte_error();
		goto free_entries;
	}
	for (uint32_t i = 0; i < NEIGH_PENDING_ALL; i++)
		t->wait[i].next = (uint16_t)(i + 1 < NEIGH_PENDING_ALL ? i + 1 : NEIGH_NONE);
	*out = t;
	return 0;

free_entries:
	free(t->entry);
free_table:
	free(t);
	return ret;
}

void
inet_neigh_destroy(struct inet_neigh_table *t)
{
	for (uint32_t i = 0; i < t->used; i++) {
		struct neigh *e = &t->entry[i];

		for (uint16_t k = e->first; e->pending > 0; k = t->wait[k].next, e->pending--)
			rte_pktmbuf_free(t->wait[k].m);
	}
	rte_hash_free(t->hash);
	free(t->entry);
	free(t);
}

static void
make_key(struct neigh_key *key, const struct inet_port *port, const struct sl_addr *addr)
{
	key->addr = *addr;
	key->port = port->index;
}

struct neigh *
neigh_find_locked(
	struct inet_neigh_table *t, const struct inet_port *port, const struct sl_addr *addr)
{
	struct neigh_key key;
	void *index;

	make_key(&key, port, addr);
	if (rte_hash_lookup_data(t->hash, &key, &index) < 0)
		return NULL;
	return &t->entry[(uintptr_t)index];
}

void
neigh_set_mac_locked(struct neigh *e, const uint8_t *mac)
{
	uint64_t word = (uint64_t)e->generation << NEIGH_GENERATION_SHIFT;

	for (int i = 0; mac != NULL && i < RTE_ETHER_ADDR_LEN; i++)
		word |= (uint64_t)mac[i] << (40 - 8 * i);
	sl_store_relaxed(&e->word, mac != NULL ? word | NEIGH_USABLE : word);
}

void
neigh_set_state_locked(struct neigh *e, enum neigh_state state, uint64_t now_ns)
{
	static const uint64_t last_ns[] = {
		[NEIGH_INCOMPLETE] = NEIGH_RETRANS_NS,
		[NEIGH_REACHABLE] = NEIGH_REACHABLE_NS,
		[NEIGH_STALE] = NEIGH_STALE_NS,
		[NEIGH_PROBE] = NEIGH_RETRANS_NS,
	};

	e->state = state;
	e->since_ns = now_ns;
	e->due_ns = now_ns + last_ns[state];
	e->solicits = 0;
}

/* The oldest waiting packet. */
static struct rte_mbuf *
unwait_locked(struct inet_neigh_table *t, struct neigh *e)
{
	uint16_t k = e->first;
	struct rte_mbuf *m = t->wait[k].m;

	e->first = t->wait[k].next;
	e->pending--;
	t->wait[k].next = t->wait_free;
	t->wait_free = k;
	return m;
}

/* False if no more packets can wait. Past the limit of one neighbour its oldest packet gives way.
 */
static bool
wait_locked(struct inet_neigh_table *t, struct neigh *e, struct rte_mbuf *m, struct inet_worker *w)
{
	uint16_t k;

	if (e->pending == NEIGH_PENDING) {
		rte_pktmbuf_free(unwait_locked(t, e));
		inet_count(w, SL_TX_NEIGH_FULL, 1);
	}
	if (t->wait_free == NEIGH_NONE)
		return false;
	k = t->wait_free;
	t->wait_free = t->wait[k].next;
	t->wait[k] = (struct neigh_wait){.m = m, .next = NEIGH_NONE};
	if (e->pending++ == 0)
		e->first = k;
	else
		t->wait[e->last].next = k;
	e->last = k;
	return true;
}

void
neigh_forget_locked(struct inet_neigh_table *t, struct neigh *e, struct inet_worker *w)
{
	if (e->pending > 0)
		inet_count(w, SL_TX_NEIGH_FAILED, e->pending);
	while (e->pending > 0)
		rte_pktmbuf_free(unwait_locked(t, e));
	rte_hash_del_key(t->hash, &e->key);
	/* Both, so that a worker which has just compared the epoch still sees another generation.
	 */
	e->generation = (e->generation + 1) & NEIGH_GENERATIONS;
	neigh_set_mac_locked(e, NULL);
	sl_store_relaxed(&t->epoch, t->epoch + 1);
	e->state = NEIGH_FREE;
	e->key.port = t->free_head;
	t->free_head = (uint32_t)(e - t->entry) + 1;
}

/* Make room: only what nobody has used for a while goes, never a neighbour in use or being asked.
 */
static void
evict_locked(struct inet_neigh_table *t, struct inet_worker *w)
{
	for (uint32_t i = 0; i < RTE_MIN(EVICT_LOOK, t->entries); i++) {
		struct neigh *e = &t->entry[t->hand];

		t->hand = t->hand + 1 < t->entries ? t->hand + 1 : 0;
		if (e->state == NEIGH_STALE &&
			w->now_ns >= sl_load_relaxed(&e->used_ns) + NEIGH_LIVE_NS) {
			neigh_forget_locked(t, e, w);
			return;
		}
	}
}

/* A new entry, or NULL if the table is full of live ones. */
static struct neigh *
add_locked(struct inet_neigh_table *t, const struct inet_port *port, const struct sl_addr *addr,
	struct inet_worker *w)
{
	struct neigh_key key;
	struct neigh *e;

	if (t->free_head == 0 && t->used == t->entries)
		evict_locked(t, w);
	if (t->free_head != 0)
		e = &t->entry[t->free_head - 1];
	else if (t->used < t->entries)
		e = &t->entry[t->used];
	else
		return NULL;
	make_key(&key, port, addr);
	if (rte_hash_add_key_data(t->hash, &key, (void *)(uintptr_t)(e - t->entry)) != 0)
		return NULL;
	if (t->free_head != 0)
		t->free_head = e->key.port;
	else
		t->used++;
	e->key = key;
	e->first = NEIGH_NONE;
	e->last = NEIGH_NONE;
	/* Never used: an entry made because somebody spoke to us can be evicted at once. */
	sl_store_relaxed(&e->used_ns, w->now_ns - RTE_MIN(w->now_ns, NEIGH_LIVE_NS));
	return e;
}

static void
note_use(struct neigh *e, uint64_t now_ns)
{
	uint64_t used = sl_load_relaxed(&e->used_ns);

	if (now_ns >= used + USED_NOTE_NS)
		sl_store_relaxed(&e->used_ns, now_ns);
}

/* One that can be used, and is. */
static void
remember_locked(const struct inet_neigh_table *t, const struct inet_worker *w, struct inet_hop *h,
	const struct inet_port *port, struct neigh *e)
{
	note_use(e, w->now_ns);
	*h = (struct inet_hop){.addr = e->key.addr,
		.port = port->index,
		.set = true,
		.entry = (uint32_t)(e - t->entry),
		.epoch = t->epoch,
		.generation = neigh_generation(sl_load_relaxed(&e->word))};
}

static void
send_to(struct sl_inet *inet, uint16_t worker, struct inet_port *port, const struct sl_addr *hop,
	struct rte_mbuf *m, uint64_t word)
{
	uint8_t mac[RTE_ETHER_ADDR_LEN];

	neigh_mac(word, mac);
	inet_eth_output(&inet->worker[worker], port, &port->workers[worker], m, mac,
		inet_is_v4(hop) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
}

static void
ask(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr, const uint8_t *mac)
{
	if (inet_is_v4(addr))
		inet_arp_ask(w, port, wport, addr, mac);
	else
		inet_nd_ask(w, port, wport, addr, mac);
}

/* Not remembered by the worker: look in the table, and ask if it is not there either. */
static void
output_slow(struct sl_inet *inet, uint16_t worker, struct inet_port *port, struct inet_hop *h,
	const struct sl_addr *hop, struct rte_mbuf *m)
{
	struct inet_neigh_table *t = inet->neigh;
	struct inet_worker *w = &inet->worker[worker];
	bool waits = false, is_new = false;
	uint64_t word = 0;
	struct neigh *e;

	rte_spinlock_lock(&t->lock);
	e = neigh_find_locked(t, port, hop);
	if (e == NULL) {
		e = add_locked(t, port, hop, w);
		if (e != NULL) {
			neigh_set_state_locked(e, NEIGH_INCOMPLETE, w->now_ns);
			e->solicits = 1;
			is_new = true;
		}
	}
	if (e != NULL) {
		word = sl_load_relaxed(&e->word);
		if ((word & NEIGH_USABLE) == 0) {
			note_use(e, w->now_ns);
			waits = wait_locked(t, e, m, w);
		} else {
			remember_locked(t, w, h, port, e);
		}
	}
	rte_spinlock_unlock(&t->lock);
	if (is_new)
		ask(w, port, &port->workers[worker], hop, NULL);
	if ((word & NEIGH_USABLE) != 0) {
		send_to(inet, worker, port, hop, m, word);
	} else if (!waits) {
		inet_count(w, SL_TX_NEIGH_FULL, 1);
		rte_pktmbuf_free(m);
	}
}

static inline struct inet_hop *
hop_place(struct inet_worker *w, const struct sl_addr *hop)
{
	return &w->hop[(hop->b[15] ^ hop->b[14]) % INET_HOPS];
}

/* Word of the neighbour, which is noted as used, if the worker remembers it; else 0. */
static inline uint64_t
recall(struct inet_neigh_table *t, const struct inet_worker *w, const struct inet_hop *h,
	const struct inet_port *port, const struct sl_addr *hop)
{
	struct neigh *e;
	uint64_t word;

	if (!h->set || h->port != port->index || h->epoch != sl_load_relaxed(&t->epoch) ||
		!inet_addr_equal(&h->addr, hop))
		return 0;
	e = &t->entry[h->entry];
	word = sl_load_relaxed(&e->word);
	if ((word & NEIGH_USABLE) == 0 || neigh_generation(word) != h->generation)
		return 0;
	note_use(e, w->now_ns);
	return word;
}

void
inet_neigh_output(struct sl_inet *inet, uint16_t worker, struct inet_port *port,
	const struct sl_addr *hop, struct rte_mbuf *m)
{
	struct inet_worker *w = &inet->worker[worker];
	struct inet_hop *h = hop_place(w, hop);
	uint64_t word = recall(inet->neigh, w, h, port, hop);

	if (SL_LIKELY(word != 0))
		send_to(inet, worker, port, hop, m, word);
	else
		output_slow(inet, worker, port, h, hop, m);
}

/* From the table, for whom the worker does not remember it: then one that is known is remembered.
 */
static uint64_t
look_up(struct inet_neigh_table *t, struct inet_worker *w, struct inet_hop *h,
	const struct inet_port *port, const struct sl_addr *hop)
{
	uint64_t word = 0;
	struct neigh *e;

	rte_spinlock_lock(&t->lock);
	e = neigh_find_locked(t, port, hop);
	if (e != NULL)
		word = sl_load_relaxed(&e->word);
	if ((word & NEIGH_USABLE) != 0)
		remember_locked(t, w, h, port, e);
	rte_spinlock_unlock(&t->lock);
	return (word & NEIGH_USABLE) != 0 ? word : 0;
}

bool
sl_inet_way_link(struct sl_inet *inet, uint16_t worker, struct sl_inet_way *way)
{
	struct inet_port *port = way->port;
	struct inet_worker *w = &inet->worker[worker];
	struct inet_hop *h = hop_place(w, &way->hop);
	uint64_t word = recall(inet->neigh, w, h, port, &way->hop);

	if (SL_UNLIKELY(word == 0))
		word = look_up(inet->neigh, w, h, port, &way->hop);
	way->link_len = word != 0 ? port->l2_len : 0;
	if (SL_UNLIKELY(word == 0))
		return false;
	memcpy(way->link, port->l2, sizeof(port->l2));
	neigh_mac(word, way->link);
	inet_put16(way->link + port->l2_len - 2,
		inet_is_v4(&way->hop) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	return true;
}

/* RFC 4861, 7.2.3 and 7.2.5; ARP is the same with the override flag always set. */
static void
update_locked(struct neigh *e, const uint8_t *mac, unsigned int flags, uint64_t now_ns)
{
	bool solicited = (flags & INET_HEAR_SOLICITED) != 0;
	uint8_t old[RTE_ETHER_ADDR_LEN];
	bool differs;

	if (e->state == NEIGH_INCOMPLETE) {
		if (mac == NULL)
			return;
		neigh_set_mac_locked(e, mac);
		neigh_set_state_locked(e, solicited ? NEIGH_REACHABLE : NEIGH_STALE, now_ns);
		return;
	}
	neigh_mac(e->word, old);
	differs = mac != NULL && memcmp(mac, old, sizeof(old)) != 0;
	if (differs && (flags & INET_HEAR_OVERRIDE) == 0) {
		if (e->state == NEIGH_REACHABLE)
			neigh_set_state_locked(e, NEIGH_STALE, now_ns);
		return;
	}
	if (differs)
		neigh_set_mac_locked(e, mac);
	if (solicited)
		neigh_set_state_locked(e, NEIGH_REACHABLE, now_ns);
	else if (differs)
		neigh_set_state_locked(e, NEIGH_STALE, now_ns);
}

void
inet_neigh_hear(struct sl_inet *inet, uint16_t worker, struct inet_port *port,
	const struct sl_addr *addr, const uint8_t *mac, unsigned int flags)
{
	struct inet_neigh_table *t = inet->neigh;
	struct inet_worker *w = &inet->worker[worker];
	struct rte_mbuf *ready[NEIGH_PENDING];
	uint64_t word = 0;
	uint16_t n = 0;
	struct neigh *e;

	rte_spinlock_lock(&t->lock);
	e = neigh_find_locked(t, port, addr);
	if (e == NULL && (flags & INET_HEAR_CREATE) != 0 && mac != NULL) {
		e = add_locked(t, port, addr, w);
		if (e != NULL) {
			neigh_set_mac_locked(e, mac);
			neigh_set_state_locked(e, NEIGH_STALE, w->now_ns);
		}
	} else if (e != NULL) {
		update_locked(e, mac, flags, w->now_ns);
		word = e->word;
		while ((word & NEIGH_USABLE) != 0 && e->pending > 0)
			ready[n++] = unwait_locked(t, e);
	}
	rte_spinlock_unlock(&t->lock);
	for (uint16_t i = 0; i < n; i++)
		send_to(inet, worker, port, addr, ready[i], word);
}

int
sl_inet_neighbour(
	const struct sl_inet *inet, uint16_t port_id, const struct sl_addr *addr, uint8_t mac[6])
{
	struct inet_port *port = inet_port_find(inet, port_id);
	struct inet_neigh_table *t = inet->neigh;
	struct neigh *e;
	int ret = -ENOENT;

	if (port == NULL)
		return ret;
	rte_spinlock_lock(&t->lock);
	e = neigh_find_locked(t, port, addr);
	if (e != NULL) {
		ret = (e->word & NEIGH_USABLE) != 0 ? 0 : -EAGAIN;
		if (ret == 0)
			neigh_mac(e->word, mac);
	}
	rte_spinlock_unlock(&t->lock);
	return ret;
}

/* How many entries are copied at a time: no worker waits for long. */
#define LIST_CHUNK 32u

static void
describe_locked(const struct sl_inet *inet, const struct neigh *e, uint64_t now_ns,
	struct sl_inet_neigh_info *info)
{
	static const enum sl_inet_neigh_state states[] = {
		[NEIGH_INCOMPLETE] = SL_INET_NEIGH_INCOMPLETE,
		[NEIGH_REACHABLE] = SL_INET_NEIGH_REACHABLE,
		[NEIGH_STALE] = SL_INET_NEIGH_STALE,
		[NEIGH_PROBE] = SL_INET_NEIGH_PROBE,
	};
	uint64_t used = sl_load_relaxed(&e->used_ns);

	*info = (struct sl_inet_neigh_info){.addr = e->key.addr,
		.port = inet->port[e->key.port]->id,
		.state = states[e->state],
		.waiting = e->pending,
		/* A worker's time may be a little behind. */
		.age_ns = now_ns - RTE_MIN(now_ns, e->since_ns),
		.idle_ns = now_ns - RTE_MIN(now_ns, used)};
	if ((e->word & NEIGH_USABLE) != 0)
		neigh_mac(e->word, info->mac);
}

void
sl_inet_neigh_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_neigh_info *neigh), void *arg)
{
	struct sl_inet_neigh_info info[LIST_CHUNK];
	struct inet_neigh_table *t = inet->neigh;
	uint64_t now_ns = inet_now(inet);
	uint32_t i = 0, n;

	do {
		n = 0;
		rte_spinlock_lock(&t->lock);
		for (; i < t->used && n < LIST_CHUNK; i++) {
			if (t->entry[i].state != NEIGH_FREE)
				describe_locked(inet, &t->entry[i], now_ns, &info[n++]);
		}
		rte_spinlock_unlock(&t->lock);
		for (uint32_t k = 0; k < n; k++)
			visit(arg, &info[k]);
	} while (n == LIST_CHUNK);
}
