/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_ether.h>

#include "neigh_priv.h"

/*
 * Timers run a hundred times a second a port, on whichever of its workers comes first, and look at
 * a tenth of the table each: so a turn is short, and nothing is more than 100 ms late. Packets are
 * collected under the lock and sent after it.
 */
#define TICK_NS (NSEC_PER_SEC / 100)
#define TURNS 10u
#define ASKS 32u
#define DAD_NS NSEC_PER_SEC

enum ask_kind {
	ASK_ALL,      /* multicast or broadcast */
	ASK_ONE,      /* at the address known */
	ASK_ANNOUNCE, /* an address of ours: gratuitous ARP, or a neighbour advertisement */
	ASK_PROBE,    /* an IPv6 address that is to be ours: the probe for duplicates */
};

struct asks {
	uint32_t n;
	struct {
		enum ask_kind kind;
		struct sl_addr addr;
		uint8_t mac[RTE_ETHER_ADDR_LEN];
	} a[ASKS + SL_INET_ADDRS_MAX];
};

static void
add_ask(struct asks *asks, enum ask_kind kind, const struct sl_addr *addr, uint64_t word)
{
	asks->a[asks->n].kind = kind;
	asks->a[asks->n].addr = *addr;
	neigh_mac(word, asks->a[asks->n].mac);
	asks->n++;
}

/* Ask again, or give up after the third time. */
static void
solicit_locked(
	struct inet_neigh_table *t, struct neigh *e, struct inet_worker *w, struct asks *asks)
{
	if (e->solicits >= NEIGH_SOLICITS) {
		neigh_forget_locked(t, e, w);
		return;
	}
	e->solicits++;
	e->due_ns = w->now_ns + NEIGH_RETRANS_NS;
	add_ask(asks, e->state == NEIGH_PROBE ? ASK_ONE : ASK_ALL, &e->key.addr, e->word);
}

static void
age_locked(struct inet_neigh_table *t, struct neigh *e, struct inet_worker *w, struct asks *asks)
{
	uint64_t used = sl_load_relaxed(&e->used_ns);

	switch (e->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		if (w->now_ns >= e->due_ns)
			solicit_locked(t, e, w, asks);
		break;
	case NEIGH_REACHABLE:
		if (w->now_ns < e->due_ns)
			break;
		/* In use all the time: ask at once, so that a dead one is noticed. */
		if (used > e->since_ns) {
			neigh_set_state_locked(e, NEIGH_PROBE, w->now_ns);
			solicit_locked(t, e, w, asks);
		} else {
			neigh_set_state_locked(e, NEIGH_STALE, w->now_ns);
		}
		break;
	case NEIGH_STALE:
		if (used > e->since_ns) {
			neigh_set_state_locked(e, NEIGH_PROBE, w->now_ns);
			solicit_locked(t, e, w, asks);
		} else if (w->now_ns >= e->due_ns) {
			neigh_forget_locked(t, e, w);
		}
		break;
	case NEIGH_FREE:
		break;
	}
}

static void
scan_locked(struct inet_neigh_table *t, struct inet_port *port, uint32_t look,
	struct inet_worker *w, struct asks *asks)
{
	if (port->cursor >= t->used)
		port->cursor = 0;
	look = RTE_MIN(look, t->used);
	while (look-- > 0 && asks->n < ASKS) {
		struct neigh *e = &t->entry[port->cursor];

		port->cursor = port->cursor + 1 < t->used ? port->cursor + 1 : 0;
		if (e->state != NEIGH_FREE && e->key.port == port->index)
			age_locked(t, e, w, asks);
	}
}

static void
addresses_locked(
	struct sl_inet *inet, struct inet_port *port, uint64_t now_ns, struct asks *asks)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */

	for (uint32_t i = 0; i < n; i++) {
		struct inet_addr *a = &port->addr[i];

		if (inet_addr_state(a) == INET_ADDR_NONE)
			continue;
		if (a->announce) {
			a->announce = false;
			a->due_ns = now_ns + DAD_NS;
			add_ask(asks, a->state == INET_ADDR_READY ? ASK_ANNOUNCE : ASK_PROBE,
				&a->addr, 0);
		} else if (a->state == INET_ADDR_TENTATIVE && now_ns >= a->due_ns) {
			sl_store_relaxed(&a->state, (uint32_t)INET_ADDR_READY);
			/* It may suit better than what workers remember as source. */
			sl_fetch_add_release(&inet->routes, 1u); /* IN1 */
		}
	}
}

static void
send_asks(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct asks *asks)
{
	for (uint32_t i = 0; i < asks->n; i++) {
		const struct sl_addr *addr = &asks->a[i].addr;
		const uint8_t *mac = asks->a[i].kind == ASK_ONE ? asks->a[i].mac : NULL;
		bool v4 = inet_is_v4(addr);

		if (asks->a[i].kind == ASK_ANNOUNCE && v4)
			inet_arp_announce(w, port, wport, addr);
		else if (asks->a[i].kind == ASK_ANNOUNCE)
			inet_nd_announce(w, port, wport, addr);
		else if (asks->a[i].kind == ASK_PROBE)
			inet_nd_probe(w, port, wport, addr);
		else if (v4)
			inet_arp_ask(w, port, wport, addr, mac);
		else
			inet_nd_ask(w, port, wport, addr, mac);
	}
}

void
inet_timers_port(struct sl_inet *inet, uint16_t worker, struct inet_port *port, uint64_t now_ns)
{
	struct inet_neigh_table *t = inet->neigh;
	uint32_t turn = t->entries / TURNS + 1;
	uint64_t late, look;
	struct asks asks;

	/* Whoever holds it does the work, or will be done in a moment. */
	if (!rte_spinlock_trylock(&t->lock))
		return;
	asks.n = 0;
	if (now_ns >= port->tick_ns) {
		late = (now_ns - port->tick_ns) / TICK_NS;
		look = (1 + RTE_MIN(late, (uint64_t)TURNS)) * turn;
		scan_locked(t, port, (uint32_t)look, &inet->worker[worker], &asks);
		addresses_locked(inet, port, now_ns, &asks);
		sl_store_relaxed(&port->tick_ns, now_ns + TICK_NS);
	}
	rte_spinlock_unlock(&t->lock);
	send_asks(&inet->worker[worker], port, &port->workers[worker], &asks);
}

void
inet_timers_dev(struct sl_inet *inet, uint16_t worker, struct inet_port *port, uint64_t now_ns)
{
	do {
		if (now_ns >= sl_load_relaxed(&port->tick_ns))
			inet_timers_port(inet, worker, port, now_ns);
		port = sl_load_acquire(&port->next); /* IN1 */
	} while (port != NULL);
}

void
inet_addr_conflict(struct sl_inet *inet, struct inet_addr *a)
{
	rte_spinlock_lock(&inet->neigh->lock);
	/* Only while in doubt: later claims are somebody else's mistake, or an attack. */
	if (a->state == INET_ADDR_TENTATIVE)
		sl_store_relaxed(&a->state, (uint32_t)INET_ADDR_DUPLICATE);
	rte_spinlock_unlock(&inet->neigh->lock);
}

void
inet_addr_set_state(struct sl_inet *inet, struct inet_addr *a, uint32_t state)
{
	rte_spinlock_lock(&inet->neigh->lock);
	a->announce = state != INET_ADDR_NONE;
	sl_store_release(&a->state, state); /* IN1 */
	rte_spinlock_unlock(&inet->neigh->lock);
}

void
inet_addrs_announce(struct sl_inet *inet, struct inet_port *port)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */

	rte_spinlock_lock(&inet->neigh->lock);
	for (uint32_t i = 0; i < n; i++)
		if (inet_addr_state(&port->addr[i]) == INET_ADDR_READY)
			port->addr[i].announce = true;
	rte_spinlock_unlock(&inet->neigh->lock);
}
