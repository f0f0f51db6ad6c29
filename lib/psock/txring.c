/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Sending a transmit ring. Requests are gathered from the head into a burst of mbufs, which lend
 * their slots to the port or hold a copy; what the port does not take becomes a request again.
 *
 * The ring is sent under its lock, so nobody else takes slots: a pending sum of zero is true then,
 * and it is computed only when no slot is ready. A blocking send returns when nothing is pending.
 * It polls the port for completions itself while it waits, so that one lcore can be sender and
 * completer; it never sleeps. With MSG_DONTWAIT nothing is waited for, not even the lock.
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "psock_priv.h"

struct batch {
	struct rte_mbuf *m[TX_BURST];
	uint32_t len[TX_BURST];
	uint32_t slot[TX_BURST]; /* of copies; of fetched ones see runs */
	uint16_t n;
	uint64_t copied;  /* bit i: packet i is a copy of its slot, which is pending */
	uint64_t fetched; /* bit i: packet i is a copy of its slot, which is not */
	uint64_t runs;	  /* of those, bit i: a run starts here; slot[i] is its first one's */
	int error;	  /* why gathering stopped at a request: a bad one, or no mbuf */
};

struct send {
	struct sl_psock *s;
	struct sl_pktring_tx *ring;
	struct psock_dest dest;
	uint16_t worker;
	uint32_t lcore; /* under which slots in flight are counted */
	bool wait;
	uint64_t deadline; /* TSC, UINT64_MAX for none */
	uint64_t total;
};

/* Is there an mbuf in stock, raw as the pool has it? */
static bool
have_spare(struct sl_psock *s)
{
	if (s->spares == 0 &&
		rte_mempool_get_bulk(s->net->conf.pool, (void **)s->spare, TX_BURST) == 0)
		s->spares = TX_BURST;
	return s->spares > 0;
}

static struct rte_mbuf *
take_spare(struct sl_psock *s)
{
	struct rte_mbuf *m;

	if (!have_spare(s))
		return rte_pktmbuf_alloc(s->net->conf.pool);
	m = s->spare[--s->spares];
	rte_pktmbuf_reset(m);
	return m;
}

/* Errors of a request that its length and first bytes show. */
static int
check_request(const struct send *x, const struct sl_pktring_frame *f)
{
	uint8_t front[HEADER_LEN];

	if (f->len > UINT16_MAX)
		return -EMSGSIZE;
	if (x->s->type == SOCK_DGRAM)
		return x->s->vnet_size == 0 && psock_longer_than_mtu(x->s, &x->dest, f->len, front)
			       ? -EMSGSIZE
			       : 0;
	if (f->len < HEADER_LEN)
		return -EINVAL;
	if (x->s->vnet_size != 0 || f->len <= sl_load_relaxed(&x->dest.port->mtu) + HEADER_LEN)
		return 0;
	memcpy(front, sl_pktring_tx_bytes(x->ring, f), sizeof(front));
	return psock_longer_than_mtu(x->s, &x->dest, f->len, front) ? -EMSGSIZE : 0;
}

/* Does the vnet header ask for anything? Its copy is looked at, never the slot again. */
static bool
asks_offload(const struct send *x, const struct sl_pktring_frame *f)
{
	return x->s->vnet_size != 0 &&
	       (f->vnet[0] != 0 || f->vnet[1] != 0 || f->vnet[2] != 0 || f->vnet[3] != 0);
}

/* A copy of the request, in a chain whose first mbuf may hold a link header. 1: to be cut. */
static int
copy_request(const struct send *x, const struct sl_pktring_frame *f, struct rte_mbuf **m)
{
	int ret = 0;

	*m = sl_pktring_mbuf_copy(x->ring, f, x->s->net->conf.pool);
	if (*m == NULL)
		return -ENOBUFS;
	if (x->s->type == SOCK_DGRAM) {
		char *header = rte_pktmbuf_prepend(*m, HEADER_LEN);

		ret = header != NULL ? psock_header(&x->dest, (uint8_t *)header) : -EINVAL;
	}
	if (ret == 0 && asks_offload(x, f))
		ret = psock_offload(&x->dest, *m, f->vnet, &x->s->cut.cut);
	if (ret < 0)
		rte_pktmbuf_free(*m);
	return ret;
}

/* Take the slot and lend it; SOCK_DGRAM puts its header in an mbuf in front. */
static int
lend_request(const struct send *x, const struct sl_pktring_frame *f, struct rte_mbuf **m)
{
	struct rte_mbuf *body = take_spare(x->s), *head = body;

	if (body == NULL)
		return -ENOBUFS;
	if (x->s->type == SOCK_DGRAM) {
		head = take_spare(x->s);
		if (head == NULL || psock_header(&x->dest,
					    (uint8_t *)rte_pktmbuf_append(head, HEADER_LEN)) != 0) {
			rte_pktmbuf_free(head);
			rte_pktmbuf_free(body);
			return head == NULL ? -ENOBUFS : -EINVAL;
		}
	}
	sl_pktring_tx_take(x->ring, x->lcore);
	sl_pktring_mbuf_attach(x->ring, f, body);
	if (head != body) {
		head->next = body;
		head->nb_segs = 2;
		head->pkt_len += f->len;
	}
	*m = head;
	return 0;
}

/* Chains need a port that sends them. */
static bool
can_lend(const struct send *x, const struct sl_pktring_frame *f)
{
	const struct psock_port *port = x->dest.port;

	if (!port->lend || asks_offload(x, f) || f->len == 0)
		return false;
	return x->s->type != SOCK_DGRAM || (port->conf.tx_offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
}

/* A request to be cut goes alone: what was gathered before it goes first, and it is met again. */
static int
keep_cut(const struct send *x, const struct sl_pktring_frame *f, const struct batch *b,
	struct rte_mbuf *m)
{
	struct psock_cut *c = &x->s->cut;

	if (b->n > 0) {
		rte_pktmbuf_free(m);
		return 1;
	}
	c->whole = m;
	c->port = x->dest.port;
	c->slot = f->slot;
	c->len = f->len;
	return 1;
}

/* The request that was peeked as the batch's next packet. 1: the batch ends before it. */
static int
make_packet(const struct send *x, const struct sl_pktring_frame *f, struct batch *b)
{
	int ret = check_request(x, f);

	if (ret == 0 && can_lend(x, f)) {
		ret = lend_request(x, f, &b->m[b->n]);
	} else if (ret == 0) {
		ret = copy_request(x, f, &b->m[b->n]);
		if (ret == 1)
			return keep_cut(x, f, b, b->m[b->n]);
		if (ret == 0) {
			sl_pktring_tx_take(x->ring, x->lcore);
			b->copied |= UINT64_C(1) << b->n;
			b->slot[b->n] = f->slot;
		}
	}
	if (ret == 0)
		b->len[b->n++] = f->len;
	return ret;
}

/* A run of requests of one kind: those up to `small` bytes are copied, longer ones are lent. */
static uint16_t
gather_run(const struct send *x, struct batch *b, struct sl_pktring_lend *want, uint32_t small,
	uint16_t room)
{
	uint32_t most = want->most;
	uint16_t n = 0;

	if (small >= HEADER_LEN) {
		want->least = HEADER_LEN;
		want->most = RTE_MIN(most, small);
		n = sl_pktring_mbuf_fetch(
			x->ring, want, &b->m[b->n], &b->len[b->n], room, &b->slot[b->n]);
		b->fetched |= (RTE_BIT64(n) - 1) << b->n;
		b->runs |= RTE_BIT64(b->n);
	}
	if (n == 0 && x->dest.port->lend) {
		want->least = RTE_MAX(small + 1, (uint32_t)HEADER_LEN);
		want->most = most;
		n = sl_pktring_mbuf_lend(x->ring, want, &b->m[b->n], &b->len[b->n], room);
	}
	want->most = most;
	return n;
}

/* Whole frames within the MTU: nothing about them needs a second look. */
static void
gather_plain(const struct send *x, struct batch *b)
{
	struct sl_pktring_lend want = {.most = sl_load_relaxed(&x->dest.port->mtu) + HEADER_LEN,
		.worker = x->lcore,
		.port = RTE_MBUF_PORT_INVALID};
	struct sl_psock *s = x->s;
	uint16_t n, room;

	if (s->type == SOCK_DGRAM)
		return;
	while (b->n < TX_BURST && sl_pktring_tx_requested(x->ring) && have_spare(s)) {
		room = RTE_MIN((uint16_t)(TX_BURST - b->n), s->spares);
		memcpy(&b->m[b->n], &s->spare[s->spares - room], room * sizeof(b->m[0]));
		n = gather_run(x, b, &want, x->dest.port->small, room);
		/* Those that were not taken move to where the taken ones were. */
		s->spares -= n;
		memcpy(&s->spare[s->spares - (room - n)], &b->m[b->n + n],
			(size_t)(room - n) * sizeof(b->m[0]));
		b->n += n;
		if (n == 0)
			return;
	}
}

/* Is the mbuf, or the one behind a link header, a lent slot? */
static struct rte_mbuf *
lent(struct rte_mbuf *m)
{
	if (RTE_MBUF_HAS_EXTBUF(m))
		return m;
	return m->next != NULL && RTE_MBUF_HAS_EXTBUF(m->next) ? m->next : NULL;
}

static void
gather(const struct send *x, struct batch *b)
{
	struct sl_pktring_frame f;
	int ret;

	b->n = 0;
	b->copied = 0;
	b->fetched = 0;
	b->runs = 0;
	b->error = 0;
	for (;;) {
		gather_plain(x, b);
		if (b->n == TX_BURST || !sl_pktring_tx_requested(x->ring))
			return;
		ret = sl_pktring_tx_peek(x->ring, psock_tx_cap(x->s, &x->dest), &f);
		if (ret == 0)
			return;
		if (ret == 1)
			ret = make_packet(x, &f, b);
		if (ret == 1)
			return;
		if (ret == 0)
			continue;
		if (ret == -ENOBUFS || !sl_load_relaxed(&x->s->loss)) {
			b->error = ret;
			return;
		}
		x->s->tx_bad++;
		sl_pktring_tx_drop(x->ring);
	}
}

/* Requests again, last first. A lent slot must not be completed by the mbuf's end. */
static void
unsend(const struct send *x, struct batch *b, uint16_t sent)
{
	for (uint16_t i = b->n; i > sent; i--) {
		struct rte_mbuf *m = b->m[i - 1], *body = lent(m);

		if (body != NULL && body != m) {
			m->next = NULL;
			m->nb_segs = 1;
			rte_pktmbuf_free(m);
		}
		if (body != NULL) {
			sl_pktring_mbuf_cancel(x->ring, body, x->lcore);
			continue;
		}
		rte_pktmbuf_free(m);
		if (b->fetched >> (i - 1) & 1)
			sl_pktring_tx_back(x->ring);
		else
			sl_pktring_tx_untake(x->ring, x->lcore);
	}
}

/* Copies give their slots back at once: runs of them where they are small. */
static void
complete_copies(const struct send *x, const struct batch *b, uint16_t sent)
{
	uint64_t left = b->fetched & (RTE_BIT64(sent) - 1);

	while (left != 0) {
		uint32_t at = (uint32_t)__builtin_ctzll(left);
		uint64_t ends = ~(left >> at) | (b->runs >> at & ~UINT64_C(1));
		uint32_t n = (uint32_t)__builtin_ctzll(ends);

		sl_pktring_tx_give(x->ring, b->slot[at], n);
		left &= ~((RTE_BIT64(n) - 1) << at);
	}
	if (b->copied == 0)
		return;
	for (uint16_t i = 0; i < sent; i++)
		if (b->copied >> i & 1)
			sl_pktring_tx_complete(x->ring, b->slot[i], x->lcore);
}

/* Hand the batch to the port; false when it did not take all. */
static bool
transmit(struct send *x, struct batch *b)
{
	struct sl_psock *s = x->s;
	uint16_t seen = RTE_MIN(s->shown, b->n), sent;
	uint64_t bytes = 0;

	psock_show_sent(s, &x->dest, x->worker, b->m + seen, b->n - seen);
	sent = psock_tx_burst(&x->dest, x->worker, b->m, b->n);
	for (uint16_t i = 0; i < sent; i++)
		bytes += b->len[i];
	complete_copies(x, b, sent);
	x->total += bytes;
	s->tx_bytes += bytes;
	s->tx_packets += sent;
	unsend(x, b, sent);
	s->shown = b->n - sent;
	return sent == b->n;
}

/* Its bytes are in the copy: the slot is given back with the first segment that goes. */
static void
begin_cut(struct send *x, uint32_t slot, uint32_t len)
{
	struct sl_psock *s = x->s;

	sl_pktring_tx_take(x->ring, x->lcore);
	sl_pktring_tx_complete(x->ring, slot, x->lcore);
	x->total += len;
	s->tx_bytes += len;
	s->tx_packets++;
}

/* Send a request that is cut here, or what a full port has left of it. 0: all is sent. A request
 * that the port takes nothing of stays one. */
static int
transmit_cut(struct send *x)
{
	struct psock_cut *c = &x->s->cut;

	while (c->whole != NULL) {
		bool first = c->next == 0;
		uint32_t slot = c->slot, len = c->len;
		int n = psock_cut_send(x->s, c, x->worker);

		if (n > 0 && first)
			begin_cut(x, slot, len);
		if (n > 0)
			continue;
		/* A port that is gone takes no more. */
		if (first || !sl_load_acquire(&c->port->used)) /* PS2 */
			psock_cut_end(x->s, c);
		return n == 0 ? -EAGAIN : n;
	}
	return 0;
}

/* Make the port free what it has sent. Drivers without a call for it do so in their burst. */
static void
poll_completions(const struct send *x)
{
	struct psock_port *port = x->dest.port;
	uint16_t queue = x->worker == SL_PSOCK_NO_WORKER ? 0 : x->worker % port->conf.tx_queues;

	rte_spinlock_lock(&port->tx_lock[queue]);
	if (sl_load_acquire(&port->used) && /* PS2 */
		rte_eth_tx_done_cleanup(port->conf.port_id, queue, 0) == -ENOTSUP)
		rte_eth_tx_burst(port->conf.port_id, queue, NULL, 0);
	rte_spinlock_unlock(&port->tx_lock[queue]);
}

/* One turn of waiting; the caller looks again at what it waits for. */
static int
wait_turn(const struct send *x)
{
	struct sl_psock_net *net = x->s->net;

	if (rte_get_tsc_cycles() >= x->deadline)
		return -ETIMEDOUT;
	if (!sl_load_acquire(&x->dest.port->used)) /* PS2 */
		return -ENXIO;
	if (!sl_load_relaxed(&x->dest.port->up))
		return -ENETDOWN;
	poll_completions(x);
	if (net->conf.progress != NULL)
		net->conf.progress(net->conf.progress_arg, x->worker);
	/* No table is held here, and whoever changes one may be waiting for this worker. */
	if (x->worker != SL_PSOCK_NO_WORKER)
		sl_psock_quiescent(net, x->worker);
	rte_pause();
	return 0;
}

/* The port is full, or there is no mbuf: wait for room if that may help. */
static int
no_room(const struct send *x, int error)
{
	if (x->wait && (error == -EAGAIN || sl_pktring_tx_pending(x->ring) != 0))
		return wait_turn(x);
	return error;
}

/* Gather and send once; 0, or why not all went. */
static int
send_turn(struct send *x, struct batch *b)
{
	int ret;

	b->n = 0;
	ret = transmit_cut(x);
	if (ret != 0)
		return ret;
	gather(x, b);
	return b->n > 0 && !transmit(x, b) ? -EAGAIN : b->error;
}

static ssize_t
send_locked(struct send *x)
{
	struct batch b;
	int ret;

	for (;;) {
		ret = send_turn(x, &b);
		if (ret == -EAGAIN) {
			ret = no_room(x, -EAGAIN);
			if (ret == -EAGAIN)
				return x->total > 0 ? (ssize_t)x->total : -ENOBUFS;
		} else if (ret == -ENOBUFS) {
			ret = no_room(x, -ENOBUFS);
			if (ret == -ENOBUFS && x->total > 0)
				return (ssize_t)x->total;
			if (ret == -ENOBUFS && !x->wait)
				return -EAGAIN;
		} else if (ret != 0) {
			x->s->tx_bad++;
			sl_pktring_tx_reject(x->ring);
			return ret; /* what was sent before is not reported, as on Linux */
		} else if (b.n > 0 || x->s->cut.whole != NULL) {
			continue;
		} else if (!x->wait || sl_pktring_tx_pending(x->ring) == 0) {
			return (ssize_t)x->total;
		} else {
			ret = wait_turn(x);
		}
		if (ret != 0)
			return ret;
	}
}

/* Another sender may hold the lock for as long as it waits; who waits for it must let grace periods
 * pass. */
static int
lock_ring(struct sl_psock *s, bool wait, uint16_t worker)
{
	while (!rte_spinlock_trylock(&s->tx_lock)) {
		if (!wait)
			return -EAGAIN;
		if (worker != SL_PSOCK_NO_WORKER)
			sl_psock_quiescent(s->net, worker);
		rte_pause();
	}
	return 0;
}

ssize_t
psock_ring_send(struct sl_psock *s, const struct msghdr *msg, int flags, uint16_t worker)
{
	struct send x = {.s = s,
		.worker = worker,
		.lcore = rte_lcore_id(),
		.wait = !(flags & MSG_DONTWAIT),
		.deadline = UINT64_MAX};
	int64_t limit = sl_load_relaxed(&s->sndtimeo_ns); /* once: all waits share it */
	ssize_t ret = lock_ring(s, x.wait, worker);

	if (ret != 0)
		return ret;
	if (limit > 0)
		x.deadline = rte_get_tsc_cycles() +
			     (uint64_t)((double)limit * (double)rte_get_tsc_hz() / 1e9);
	x.ring = s->tx;
	ret = x.ring == NULL ? -EBUSY : psock_dest(s, msg, &x.dest);
	if (ret == 0)
		ret = send_locked(&x);
	rte_spinlock_unlock(&s->tx_lock);
	return ret;
}
