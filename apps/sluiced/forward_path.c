/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What becomes of a claimed packet:
 *
 *     to the service ----> decided in bursts --> no back end: port unreachable
 *       later fragment --> as its first one          |
 *     from a back end -> the client is in it         v
 *     ICMP error ------> forward_icmp.c         hop limit, way, MTU --> ICMP error back
 *                                                    |
 *                                                    v
 *                                     headers rewritten, next hop, sent
 *
 * Everything is decided from the private copy of the headers, which is also what is rewritten; then
 * it is written over the packet's own, or over those of a copy if others can see that memory.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_mbuf.h>

#include "forward_plain.h"
#include "forward_priv.h"

#define UDP_LEN 8u
/* In front of the packet, for the longest link header. */
#define LINK_ROOM 32u

/* In a fragment's word: its datagram goes nowhere, or to this back end. */
#define FOLLOW_NOBODY (UINT64_C(1) << 63)
#define FOLLOW_SET (UINT64_C(1) << 62)
#define FOLLOW(backend, generation) (FOLLOW_SET | (uint64_t)(generation) << 16 | (backend))

/* First fragments and whole datagrams to one service, until they are decided. Of a flow's run there
 * is one key. */
struct batch {
	uint16_t n;
	struct sl_inet_claimed *c[SL_INET_BURST];
	const struct flow_key *of[SL_INET_BURST];
	struct flow_key key[SL_INET_BURST];
};

/* Frames that are finished: they leave together, before any that leaves another way. */
struct frames {
	struct sl_inet_way way; /* all go by the port of that */
	uint16_t n;
	struct rte_mbuf *m[SL_INET_BURST];
};

/* A burst of claimed packets; lives on the stack. */
struct burst {
	struct forward_pkt p; /* of the service and packet that it is at */
	uint64_t entered;     /* of that service's, not counted yet */
	uint64_t octets;
	uint64_t forwarded; /* plain ones, not counted yet */
	uint64_t returned;
	struct forward_ways ways;
	struct frames out;
	struct batch batch;
};

static void
count(const struct forward_pkt *p, enum service_outcome what)
{
	sl_counter_add(&p->fw->cell.outcome[what], 1);
}

void
forward_drop(const struct forward_pkt *p, enum service_outcome why)
{
	rte_pktmbuf_free(p->c->m);
	count(p, why);
}

/* The packet from its IP header on, in memory that is ours as far as headers go, without padding;
 * NULL, and the packet is gone, if there is no room for a copy. */
static struct rte_mbuf *
take_over(const struct forward_pkt *p, uint32_t headers)
{
	const struct sl_inet_claimed *c = p->c;
	struct rte_mbuf *m = c->m, *copy;

	if (SL_LIKELY(RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
		      m->data_len >= c->l2_len + headers &&
		      rte_pktmbuf_headroom(m) + c->l2_len >= LINK_ROOM)) {
		m->data_off = (uint16_t)(m->data_off + c->l2_len);
		m->data_len = (uint16_t)(c->end - c->l2_len);
		m->pkt_len = m->data_len;
		return m;
	}
	copy = rte_pktmbuf_copy(m, p->f->d->pool, c->l2_len, c->end - c->l2_len);
	rte_pktmbuf_free(m);
	if (copy != NULL && copy->data_len < headers) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	return copy;
}

/* What the sender left to hardware is for our port's to do: the sum starts anew. */
static void
leave_sum(const struct sl_inet_claimed *c, struct rte_mbuf *m, uint8_t *ip, uint8_t *udp)
{
	uint32_t len = m->pkt_len - (uint32_t)(udp - ip);
	uint16_t sum = forward_pseudo(ip, c->v4, IPPROTO_UDP, len);

	memcpy(udp + 6, &sum, sizeof(sum));
	m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | (c->v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
}

static bool
sum_is_left(const struct sl_inet_claimed *c, const uint8_t *udp)
{
	return (c->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE &&
	       c->follow == NULL && udp != NULL && (udp[6] | udp[7]) != 0;
}

/* Of lengths that the compiler knows, mostly. */
static inline void
put_headers(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (SL_LIKELY(len == 20 + UDP_LEN))
		memcpy(to, from, 20 + UDP_LEN);
	else if (SL_LIKELY(len == 40 + UDP_LEN))
		memcpy(to, from, 40 + UDP_LEN);
	else
		memcpy(to, from, len);
}

/* No way, or too long for it: tell the sender. */
static void
refuse(const struct forward_pkt *p, enum sl_inet_claim_error error, uint16_t mtu,
	enum service_outcome why)
{
	sl_inet_claim_answer(p->f->d->inet, p->worker, p->c, error, mtu);
	forward_drop(p, why);
}

void
forward_send(const struct forward_pkt *p, const struct sl_inet_way *way,
	const struct forward_end *src, const struct forward_end *to, enum service_outcome sent)
{
	struct sl_inet_claimed *c = p->c;
	uint8_t *ip = c->head + c->l2_len, *udp = c->later ? NULL : c->head + c->l4_off;
	uint32_t headers = c->l4_off - c->l2_len + (c->later ? 0 : UDP_LEN);
	bool left, long_one;
	struct rte_mbuf *m;

	if (SL_UNLIKELY(ip[c->v4 ? 8 : 7] <= 1)) {
		refuse(p, SL_CLAIM_ERROR_TIME, 0, SERVICE_FORWARD_TTL);
		return;
	}
	if (SL_UNLIKELY(way == NULL)) {
		refuse(p, SL_CLAIM_ERROR_NO_WAY, 0, SERVICE_FORWARD_UNREACHABLE);
		return;
	}
	long_one = c->end - c->l2_len > way->mtu;
	if (SL_UNLIKELY(long_one && forward_whole(ip, c->v4))) {
		refuse(p, SL_CLAIM_ERROR_TOO_BIG, way->mtu, SERVICE_FORWARD_TOO_BIG);
		return;
	}
	left = sum_is_left(c, udp);
	forward_hop(ip, c->v4);
	forward_edit(ip, udp, c->v4, src, to);
	m = take_over(p, headers);
	if (SL_UNLIKELY(m == NULL)) {
		count(p, SERVICE_FORWARD_NO_MBUF);
		return;
	}
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
	m->tx_offload = 0;
	m->l3_len = c->l4_off - c->l2_len;
	if (SL_UNLIKELY(left))
		leave_sum(c, m, ip, udp);
	put_headers(rte_pktmbuf_mtod(m, uint8_t *), ip, headers);
	if (SL_UNLIKELY(long_one)) {
		count(p, forward_split(p->f->d, p->worker, way, m, sent));
		return;
	}
	sl_inet_way_output(p->f->d->inet, p->worker, way, m);
	count(p, sent);
}

static void
frames_flush(struct burst *b)
{
	struct frames *out = &b->out;

	if (out->n > 0)
		sl_inet_way_frames(b->p.f->d->inet, b->p.worker, &out->way, out->m, out->n);
	out->n = 0;
}

/* Room for n frames of that way behind those of the same port. */
static inline struct rte_mbuf **
frames_room(struct burst *b, const struct sl_inet_way *way, uint16_t n)
{
	struct frames *out = &b->out;

	if (SL_UNLIKELY(out->n == 0 || out->way.port != way->port || out->n + n > SL_INET_BURST)) {
		frames_flush(b);
		out->way = *way;
	}
	return out->m + out->n;
}

/* Any packet: those that are finished go first, so that none overtakes another of its flow. */
static __attribute__((noinline)) void
send_general(struct burst *b, const struct sl_inet_way *way, const struct forward_end *src,
	const struct forward_end *to, enum service_outcome sent)
{
	frames_flush(b);
	forward_send(&b->p, way, src, to, sent);
}

static bool
find_way(const struct forward_pkt *p, const struct sl_addr *dst, struct sl_inet_way *way)
{
	if (sl_inet_way_find(p->f->d->inet, p->worker, dst, way) != 0)
		return false;
	/* If it is not known, sending asks for it. */
	(void)sl_inet_way_link(p->f->d->inet, p->worker, way);
	return true;
}

/* Found once a burst. */
static inline const struct sl_inet_way *
way_to(const struct forward_pkt *p, uint16_t backend)
{
	struct forward_ways *ways = p->ways;

	if (SL_UNLIKELY(ways->view != p->view)) {
		ways->view = p->view;
		ways->known = 0;
	}
	if (SL_LIKELY((ways->known >> backend & 1) != 0))
		return &ways->way[backend];
	if (!find_way(p, &p->view->end[backend].addr, &ways->way[backend]))
		return NULL;
	ways->known |= UINT64_C(1) << backend;
	return &ways->way[backend];
}

/* Where packets go: looked at anew when the back end is another one. */
struct aim {
	uint16_t backend;
	bool plain; /* the plain way of sending leads there */
	struct forward_plain_end end;
	const struct sl_inet_way *way;
};

/* Take aim at a back end, or MAGLEV_NONE, with room for n frames. */
static inline void
aim_at(struct burst *b, struct aim *a, uint16_t backend, uint16_t n)
{
	a->backend = backend;
	a->plain = false;
	if (SL_UNLIKELY(backend == MAGLEV_NONE))
		return;
	a->way = way_to(&b->p, backend);
	a->end = forward_plain_end(&b->p.view->end[backend]);
	a->plain = a->way != NULL && forward_plain_way(a->way);
	if (SL_LIKELY(a->plain))
		(void)frames_room(b, a->way, n);
}

/* One that is not plain, or goes nowhere. */
static __attribute__((noinline)) void
send_odd(struct burst *b, const struct aim *a, struct sl_inet_claimed *c)
{
	b->p.c = c;
	if (a->backend == MAGLEV_NONE) {
		refuse(&b->p, SL_CLAIM_ERROR_NOBODY, 0, SERVICE_FORWARD_NO_BACKEND);
		return;
	}
	sl_counter_add(&b->p.fw->picked[a->backend], 1);
	send_general(b, a->way, NULL, &b->p.view->end[a->backend], SERVICE_FORWARDED);
}

/* A first fragment's word says where the others go. */
static inline void
note_follow(const struct burst *b, const struct sl_inet_claimed *c, uint16_t backend)
{
	if (SL_LIKELY(c->follow == NULL))
		return;
	*c->follow = backend == MAGLEV_NONE ? FOLLOW_NOBODY
					    : FOLLOW(backend, b->p.view->generation[backend]);
}

static inline void
send_aimed(struct burst *b, const struct aim *a, struct sl_inet_claimed *c)
{
	if (SL_UNLIKELY(!a->plain || !forward_plain_may(c, a->way))) {
		note_follow(b, c, a->backend);
		send_odd(b, a, c);
		return;
	}
	forward_plain(c, a->way, &a->end, true);
	b->out.m[b->out.n++] = c->m;
	b->forwarded++;
	sl_counter_add(&b->p.fw->picked[a->backend], 1);
}

/* Decide about the batch, and send it. */
static void
decide(struct burst *b)
{
	struct balancer_pick picks[SL_INET_BURST];
	uint16_t n = b->batch.n;
	struct aim a;

	if (n == 0)
		return;
	balancer_pick_burst(b->p.fw->balancer, b->p.view->balancer, b->batch.of, n, picks);
	aim_at(b, &a, picks[0].backend, n);
	for (uint16_t i = 0; i < n; i++) {
		if (picks[i].backend != a.backend)
			aim_at(b, &a, picks[i].backend, (uint16_t)(n - i));
		send_aimed(b, &a, b->batch.c[i]);
	}
	b->batch.n = 0;
}

/* Are they of one flow? */
static inline bool
same_flow(const struct sl_inet_claimed *a, const struct sl_inet_claimed *b)
{
	return a->sport == b->sport && a->dport == b->dport &&
	       memcmp(&a->src, &b->src, sizeof(a->src)) == 0 &&
	       memcmp(&a->dst, &b->dst, sizeof(a->dst)) == 0;
}

static inline void
batch_add(struct batch *b, struct sl_inet_claimed *c)
{
	uint16_t n = b->n++;
	struct flow_key *key = &b->key[n];

	b->c[n] = c;
	if (n > 0 && same_flow(c, b->c[n - 1])) {
		b->of[n] = b->of[n - 1];
		return;
	}
	b->of[n] = key;
	memset(key, 0, sizeof(*key));
	memcpy(key->src, c->src.b, sizeof(key->src));
	memcpy(key->dst, c->dst.b, sizeof(key->dst));
	key->sport = c->sport;
	key->dport = c->dport;
	key->proto = IPPROTO_UDP;
}

/* A later fragment goes where its first one went. False: that is not known any more. */
static bool
follow(struct burst *b, struct sl_inet_claimed *c)
{
	uint64_t word = *c->follow;
	uint16_t backend = word == FOLLOW_NOBODY ? MAGLEV_NONE : (uint16_t)word;
	struct aim a;

	if (backend != MAGLEV_NONE &&
		((word & FOLLOW_SET) == 0 || backend >= FORWARD_BACKENDS ||
			b->p.view->generation[backend] != (uint32_t)(word >> 16)))
		return false;
	aim_at(b, &a, backend, 1);
	send_odd(b, &a, c);
	return true;
}

static inline void
to_service(struct burst *b, struct sl_inet_claimed *c)
{
	if (SL_UNLIKELY(c->later)) {
		decide(b);
		if (follow(b, c))
			return;
	}
	batch_add(&b->batch, c);
}

/* Found once for each client's run. */
static const struct sl_inet_way *
way_back(const struct forward_pkt *p)
{
	struct forward_ways *ways = p->ways;

	if (SL_LIKELY(memcmp(&ways->client, &p->c->dst, sizeof(ways->client)) == 0))
		return &ways->back;
	if (!find_way(p, &p->c->dst, &ways->back)) {
		ways->client = (struct sl_addr){0};
		return NULL;
	}
	ways->client = p->c->dst;
	return &ways->back;
}

static inline void
from_backend(struct burst *b, uint16_t backend)
{
	const struct forward_pkt *p = &b->p;
	const struct sl_inet_way *way = way_back(p);
	struct forward_plain_end end;

	sl_counter_add(&p->fw->replies[backend], 1);
	if (SL_UNLIKELY(way == NULL || !forward_plain_way(way) || !forward_plain_may(p->c, way))) {
		send_general(b, way, &p->f->self, NULL, SERVICE_FORWARD_RETURNED);
		return;
	}
	end = forward_plain_end(&p->f->self);
	forward_plain(p->c, way, &end, false);
	*frames_room(b, way, 1) = p->c->m;
	b->out.n++;
	b->returned++;
}

static void
error(struct burst *b, uint16_t backend)
{
	frames_flush(b);
	forward_error(&b->p, backend);
}

/* What the burst has for the service that it is at comes to its end. */
static void
leave(struct burst *b)
{
	struct forward_worker *fw = b->p.fw;

	decide(b);
	frames_flush(b);
	sl_counter_add(&fw->entered, b->entered);
	sl_counter_add(&fw->cell.bytes, b->octets);
	sl_counter_add(&fw->cell.outcome[SERVICE_FORWARDED], b->forwarded);
	sl_counter_add(&fw->cell.outcome[SERVICE_FORWARD_RETURNED], b->returned);
}

static void
enter(struct burst *b, struct forward *f)
{
	if (b->p.f != NULL)
		leave(b);
	b->p.f = f;
	b->p.fw = &f->worker[b->p.worker];
	b->p.view = sl_load_acquire(&f->view); /* LB1 */
	b->entered = 0;
	b->octets = 0;
	b->forwarded = 0;
	b->returned = 0;
}

static void
input(void *arg, uint16_t worker, uint64_t now_ns, struct sl_inet_claimed *c, uint16_t n)
{
	struct burst b;

	(void)arg, (void)now_ns;
	/* The arrays are written before they are read: clearing them would show. */
	b.p = (struct forward_pkt){.worker = worker, .ways = &b.ways};
	b.ways.view = NULL;
	b.ways.client = (struct sl_addr){0};
	b.out.n = 0;
	b.batch.n = 0;
	for (struct sl_inet_claimed *end = c + n; c != end; c++) {
		const struct forward_owner *owner = c->owner;

		if (SL_UNLIKELY(b.p.f != owner->f))
			enter(&b, owner->f);
		b.p.c = c;
		b.entered++;
		b.octets += c->end - c->l4_off;
		if (SL_LIKELY(c->kind == SL_CLAIMED_TO))
			to_service(&b, c);
		else if (c->kind == SL_CLAIMED_FROM)
			from_backend(&b, owner->backend);
		else
			error(&b, owner->backend);
	}
	leave(&b);
}

const struct sl_inet_claim_ops forward_ops = {.input = input};

void
forward_turn(struct forward *f, uint16_t worker, uint64_t now_ms)
{
	struct forward_worker *fw = &f->worker[worker];

	if (now_ms == fw->turn_ms)
		return;
	fw->turn_ms = now_ms;
	balancer_turn(fw->balancer, now_ms);
}
