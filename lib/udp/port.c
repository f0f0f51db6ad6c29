/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The bindings of a port, as workers see them. An entry is filled in first and then switched on,
 * and an appended one counted (UD1), so a worker sees a whole entry or none. A socket that closes
 * is switched off; after a grace period its entry is a hole (sock NULL) that the next binding
 * fills. Growing copies into a larger vector and publishes that; the old one is read by workers
 * until the next grace period and is freed after one. Growth doubles, so what is retired is never
 * more than what is in use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "udp_priv.h"

#define VEC_CAP_MIN 4u

void
udp_port_changed(struct sl_udp *udp)
{
	/* UD2: whoever acquires this generation sees the change before it. */
	sl_fetch_add_release(&udp->generation, 1u);
}

/* Does "any", as this socket is bound to it, include the address? */
static bool
covers(const struct sl_addr *bound, bool v6only, const struct sl_addr *addr)
{
	if (!sl_addr_is_any(bound))
		return udp_addr_equal(bound, addr);
	if (sl_addr_is_v4(bound))
		return sl_addr_is_v4(addr);
	return !(v6only && sl_addr_is_v4(addr));
}

bool
udp_port_free(const struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port, bool share)
{
	const struct udp_vec *vec = s->udp->port[port].vec;

	for (uint32_t i = 0; vec != NULL && i < vec->n; i++) {
		const struct sl_udp_sock *other = vec->e[i].sock;

		if (other == NULL || other == s)
			continue;
		if (share && s->conf.reuse_port && other->conf.reuse_port)
			continue;
		/* A connected socket occupies the address that connect chose, not "any". */
		if (covers(addr, s->conf.v6only, &other->names.local) ||
			covers(&other->names.local, other->conf.v6only, addr))
			return false;
	}
	return true;
}

static struct udp_vec *
vec_alloc(uint32_t cap)
{
	struct udp_vec *vec = calloc(1, sizeof(*vec) + cap * sizeof(vec->e[0]));

	if (vec != NULL)
		vec->cap = cap;
	return vec;
}

/* Put a vector, or none, in place of the port's. */
static void
vec_replace(struct sl_udp *udp, uint16_t port, struct udp_vec *vec)
{
	struct udp_vec *old = udp->port[port].vec;

	sl_store_release(&udp->port[port].vec, vec); /* UD1 */
	if (old != NULL) {
		old->retired = udp->retired.vecs++;
		STAILQ_INSERT_TAIL(&udp->retired_vecs, old, link);
	}
}

static struct udp_vec *
vec_grow(struct sl_udp *udp, uint16_t port)
{
	struct udp_vec *old = udp->port[port].vec, *vec;

	vec = vec_alloc(old != NULL ? old->cap * 2 : VEC_CAP_MIN);
	if (vec == NULL)
		return NULL;
	if (old != NULL) {
		memcpy(vec->e, old->e, old->n * sizeof(old->e[0]));
		vec->n = old->n;
	}
	vec_replace(udp, port, vec);
	return vec;
}

/* A hole, or the place behind the last entry; NULL when the vector is full. */
static struct udp_entry *
free_entry(struct udp_vec *vec)
{
	for (uint32_t i = 0; vec != NULL && i < vec->n; i++) {
		if (vec->e[i].sock == NULL)
			return &vec->e[i];
	}
	return vec != NULL && vec->n < vec->cap ? &vec->e[vec->n] : NULL;
}

int
udp_port_add(struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port)
{
	struct udp_entry *e = free_entry(s->udp->port[port].vec);
	struct udp_vec *vec;

	if (e == NULL) {
		e = free_entry(vec_grow(s->udp, port));
		if (e == NULL)
			return -ENOMEM;
	}
	vec = s->udp->port[port].vec;
	e->addr = *addr;
	e->sock = s;
	e->inet6 = s->conf.family == AF_INET6;
	e->v6only = s->conf.v6only;
	e->reuse_port = s->conf.reuse_port;
	sl_store_release(&e->live, (uint8_t)1); /* UD1 */
	if (e == &vec->e[vec->n])
		sl_store_release(&vec->n, vec->n + 1); /* UD1 */
	udp_port_changed(s->udp);
	return 0;
}

static struct udp_entry *
entry_of(const struct sl_udp_sock *s)
{
	struct udp_vec *vec = s->udp->port[s->names.lport].vec;

	for (uint32_t i = 0; vec != NULL && i < vec->n; i++) {
		if (vec->e[i].sock == s)
			return &vec->e[i];
	}
	return NULL;
}

void
udp_port_set_live(struct sl_udp_sock *s, bool live)
{
	struct udp_entry *e = entry_of(s);

	SL_ASSERT(e != NULL);
	sl_store_release(&e->live, (uint8_t)live); /* UD1 */
	udp_port_changed(s->udp);
}

void
udp_port_unlink(struct sl_udp_sock *s)
{
	struct udp_vec *vec = s->udp->port[s->names.lport].vec;
	bool alone = true;

	udp_port_set_live(s, false);
	for (uint32_t i = 0; i < vec->n; i++)
		alone = alone && (vec->e[i].sock == NULL || vec->e[i].sock == s);
	if (alone)
		vec_replace(s->udp, s->names.lport, NULL);
}

void
udp_port_forget(struct sl_udp_sock *s)
{
	struct udp_entry *e = entry_of(s);

	if (e != NULL) /* else it left together with the vector */
		e->sock = NULL;
}
