/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * From a burst of datagrams to sockets. A lookup goes from the most to the least specific: the flow
 * table if the port has connected sockets, then the port's bindings, where an exact address beats
 * "any" and AF_INET beats AF_INET6; several that share address and port by SO_REUSEPORT are chosen
 * among by a hash of the flow. The last answer is kept for the next datagram, also across bursts,
 * until the generation changes: for the same address and port, and where connected or sharing
 * sockets make it depend on the sender, for the same flow.
 */
#include <string.h>

#include <rte_hash_crc.h>
#include <rte_mbuf.h>

#include "udp_priv.h"

/* How well a binding fits; 0 not at all. */
static inline unsigned int
score(const struct udp_entry *e, const struct sl_addr *dst, bool v4)
{
	if (sl_load_acquire(&e->live) == 0) /* UD1 */
		return 0;
	if (udp_addr_equal(&e->addr, dst))
		return 5u - e->inet6;
	if (!sl_addr_is_any(&e->addr))
		return 0;
	if (sl_addr_is_v4(&e->addr))
		return v4 ? 3u - e->inet6 : 0;
	return v4 && e->v6only ? 0 : 2;
}

static uint32_t
flow_hash(const struct sl_dgram *d)
{
	uint32_t ports = (uint32_t)d->sport << 16 | d->dport;

	return rte_hash_crc(d->dst, sizeof(d->dst), rte_hash_crc(d->src, sizeof(d->src), ports));
}

/* The one of `same` equal bindings that the flow belongs to. */
static struct sl_udp_sock *
pick(const struct udp_vec *vec, uint32_t n, unsigned int best, uint32_t same,
	const struct sl_dgram *d)
{
	uint32_t skip = (uint32_t)((uint64_t)flow_hash(d) * same >> 32);
	struct sl_addr dst;
	bool v4;

	memcpy(&dst, d->dst, sizeof(dst));
	v4 = sl_addr_is_v4(&dst);
	for (uint32_t i = 0; i < n; i++) {
		if (score(&vec->e[i], &dst, v4) == best && skip-- == 0)
			return vec->e[i].sock;
	}
	return NULL; /* it went since: as if it had gone before */
}

/* Look among the bindings of a port. *same: how many fit equally well. */
static struct sl_udp_sock *
find_bound(const struct udp_port *port, const struct sl_dgram *d, uint32_t *same)
{
	const struct udp_vec *vec = sl_load_acquire(&port->vec); /* UD1 */
	uint32_t n = vec != NULL ? sl_load_acquire(&vec->n) : 0; /* UD1 */
	struct sl_udp_sock *sock = NULL;
	unsigned int best = 0;
	struct sl_addr dst;
	bool v4;

	memcpy(&dst, d->dst, sizeof(dst));
	v4 = sl_addr_is_v4(&dst);
	*same = 0;
	for (uint32_t i = 0; i < n; i++) {
		unsigned int fit = score(&vec->e[i], &dst, v4);

		if (fit > best) {
			best = fit;
			sock = vec->e[i].sock;
			*same = 1;
		} else if (fit != 0 && fit == best) {
			++*same;
		}
	}
	return *same > 1 ? pick(vec, n, best, *same, d) : sock;
}

static struct sl_udp_sock *
find_connected(const struct sl_udp *udp, const struct sl_dgram *d)
{
	struct udp_key key = {.lport = d->dport, .rport = d->sport};

	memcpy(&key.local, d->dst, sizeof(key.local));
	memcpy(&key.remote, d->src, sizeof(key.remote));
	return udp_flow_find(udp, &key);
}

static struct sl_udp_sock *
find(const struct sl_udp *udp, struct udp_worker *w, const struct sl_dgram *d)
{
	const struct udp_port *port = &udp->port[d->dport];
	bool connected = sl_load_relaxed(&port->connected) != 0;
	struct sl_udp_sock *sock = connected ? find_connected(udp, d) : NULL;
	uint32_t same = 0;

	if (sock == NULL)
		sock = find_bound(port, d, &same);
	w->valid = true;
	w->by_flow = connected || same > 1;
	w->sock = sock;
	w->dport = d->dport;
	w->sport = d->sport;
	memcpy(&w->dst, d->dst, sizeof(w->dst));
	memcpy(&w->src, d->src, sizeof(w->src));
	return sock;
}

static inline bool
is_last(const struct udp_worker *w, const struct sl_dgram *d)
{
	if (!w->valid || w->dport != d->dport || !udp_addr_equal(&w->dst, d->dst))
		return false;
	return !w->by_flow || (w->sport == d->sport && udp_addr_equal(&w->src, d->src));
}

static inline struct sl_udp_sock *
lookup(const struct sl_udp *udp, struct udp_worker *w, const struct sl_dgram *d)
{
	return SL_LIKELY(is_last(w, d)) ? w->sock : find(udp, w, d);
}

/* Append to one socket. Returns how many were taken; *outcome: what becomes of the rest. */
static uint16_t
append(struct sl_udp_sock *sock, uint16_t worker, const struct sl_dgram *d, uint16_t n,
	uint8_t *outcome)
{
	enum sl_udpq_drop why;
	uint16_t taken;

	if (sock == NULL) {
		*outcome = SL_RX_UDP_NO_SOCKET;
		return 0;
	}
	taken = sl_udpq_append_burst(sock->queue, worker, d, n, &why);
	*outcome = why == SL_UDPQ_DROP_RCVBUF ? SL_RX_UDP_RCVBUF : SL_RX_UDP_SLOTS;
	return taken;
}

/* Datagrams for several sockets: those of each are gathered, in order, and appended at once. */
static void
deliver_mixed(struct udp_worker *w, uint16_t worker, const struct sl_dgram *d, uint16_t n,
	struct sl_udp_sock *const *sock, uint8_t *outcome)
{
	uint8_t index[SL_INET_BURST];
	uint64_t done = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint16_t share = 0, taken;
		uint8_t rest;

		if (done >> i & 1)
			continue;
		for (uint16_t k = i; k < n; k++) {
			if (sock[k] != sock[i])
				continue;
			w->gather[share] = d[k];
			index[share++] = (uint8_t)k;
			done |= UINT64_C(1) << k;
		}
		taken = append(sock[i], worker, w->gather, share, &rest);
		for (uint16_t k = 0; k < share; k++)
			outcome[index[k]] = k < taken ? SL_RX_UDP_QUEUED : rest;
	}
}

/* How many from the front go where the last lookup went, if that did not depend on the sender:
 * nearly always all. */
static uint16_t
run_of_last(const struct udp_worker *w, struct sl_dgram *d, uint16_t n)
{
	const struct sl_addr dst = w->dst;
	const uint16_t dport = w->dport;
	uint16_t i;

	if (SL_UNLIKELY(!w->valid || w->by_flow))
		return 0;
	for (i = 0; i < n; i++) {
		if (SL_UNLIKELY(d[i].dport != dport || !udp_addr_equal(&dst, d[i].dst)))
			break;
	}
	return i;
}

/* Look up those from `run` on. Are there several sockets? */
static bool
lookup_rest(const struct sl_udp *udp, struct udp_worker *w, struct sl_dgram *d, uint16_t run,
	uint16_t n, struct sl_udp_sock **sock)
{
	bool mixed = false;

	for (uint16_t i = 0; i < run; i++)
		sock[i] = w->sock;
	for (uint16_t i = run; i < n; i++) {
		sock[i] = lookup(udp, w, &d[i]);
		mixed |= sock[i] != sock[0];
	}
	return mixed;
}

/* Has anything been bound or closed since the worker's last lookup? Then that is void. */
static inline void
check_last(const struct sl_udp *udp, struct udp_worker *w)
{
	uint32_t generation = sl_load_acquire(&udp->generation); /* UD2 */

	if (SL_UNLIKELY(w->generation != generation)) {
		w->generation = generation;
		w->valid = false;
	}
}

/* In the queue of the socket that the last datagram was for: nearly always it is the next one's,
 * too. */
static struct sl_dgram *
udp_room(void *arg, uint16_t worker)
{
	struct sl_udp *udp = arg;
	struct udp_worker *w = &udp->worker[worker];

	check_last(udp, w);
	if (SL_UNLIKELY(!w->valid || w->sock == NULL))
		return NULL;
	return sl_udpq_room(w->sock->queue, SL_INET_BURST);
}

static struct sl_dgram *
udp_input(void *arg, uint16_t worker, struct sl_dgram *d, uint16_t n, uint8_t *outcome)
{
	struct sl_udp_sock *sock[SL_INET_BURST];
	struct sl_udp *udp = arg;
	struct udp_worker *w = &udp->worker[worker];
	uint16_t taken, run;
	uint8_t rest;

	SL_DEBUG_ASSERT(n <= SL_INET_BURST);
	check_last(udp, w);
	if (n == 0)
		return d;
	run = run_of_last(w, d, n);
	sock[0] = w->sock;
	if (SL_UNLIKELY(run < n) && lookup_rest(udp, w, d, run, n, sock)) {
		/* They may lie in a queue, where one socket's share is about to be put. */
		memcpy(w->mixed, d, n * sizeof(*d));
		deliver_mixed(w, worker, w->mixed, n, sock, outcome);
		return w->mixed;
	}
	taken = append(sock[0], worker, d, n, &rest);
	memset(outcome, SL_RX_UDP_QUEUED, taken);
	memset(outcome + taken, rest, (size_t)(n - taken));
	return d;
}

static void
udp_error(void *arg, uint16_t worker, const struct sl_inet_error *e)
{
	struct udp_key key = {
		.local = e->flow.src,
		.remote = e->flow.dst,
		.lport = e->flow.sport,
		.rport = e->flow.dport,
	};
	struct sl_udp *udp = arg;
	struct sl_udp_sock *s;

	(void)worker;
	/* As without IP_RECVERR: what may pass, and what concerns no connection, is not reported.
	 */
	if (!e->hard || sl_load_relaxed(&udp->port[key.lport].connected) == 0)
		return;
	s = udp_flow_find(udp, &key);
	if (s == NULL)
		return;
	sl_store_relaxed(&s->error, e->error);
	if (s->sleeps)
		sl_udpq_wake(s->queue); /* UQ4 orders the store before it */
}

const struct sl_inet_udp_ops udp_inet_ops = {
	.input = udp_input,
	.room = udp_room,
	.error = udp_error,
};
