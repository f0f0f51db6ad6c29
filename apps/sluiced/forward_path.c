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

#include "forward_priv.h"

#define UDP_LEN 8u
/* In front of the packet, for the longest link header. */
#define LINK_ROOM 32u

/* In a fragment's word: its datagram goes nowhere, or to this back end. */
#define FOLLOW_NOBODY (UINT64_C(1) << 63)
#define FOLLOW_SET (UINT64_C(1) << 62)
#define FOLLOW(backend, generation) (FOLLOW_SET | (uint64_t)(generation) << 16 | (backend))

/* First fragments and whole datagrams to one service, until they are decided. */
struct batch {
	struct forward *f;
	const struct forward_view *view;
	uint16_t n;
	struct sl_inet_claimed *c[SL_INET_BURST];
	struct flow_key key[SL_INET_BURST];
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

/* No way, or too long for it: tell the sender. */
static void
refuse(const struct forward_pkt *p, enum sl_inet_claim_error error, uint16_t mtu,
	enum service_outcome why)
{
	sl_inet_claim_answer(p->f->d->inet, p->worker, p->c, error, mtu);
	forward_drop(p, why);
}

void
forward_send(const struct forward_pkt *p, const struct sl_addr *dst, const struct forward_end *src,
	const struct forward_end *to, enum service_outcome sent)
{
	struct sl_inet_claimed *c = p->c;
	uint8_t *ip = c->head + c->l2_len, *udp = c->later ? NULL : c->head + c->l4_off;
	uint32_t headers = c->l4_off - c->l2_len + (c->later ? 0 : UDP_LEN);
	struct sl_inet_way way;
	bool left, long_one;
	struct rte_mbuf *m;

	if (SL_UNLIKELY(ip[c->v4 ? 8 : 7] <= 1)) {
		refuse(p, SL_CLAIM_ERROR_TIME, 0, SERVICE_FORWARD_TTL);
		return;
	}
	if (SL_UNLIKELY(sl_inet_way_find(p->f->d->inet, p->worker, dst, &way) != 0)) {
		refuse(p, SL_CLAIM_ERROR_NO_WAY, 0, SERVICE_FORWARD_UNREACHABLE);
		return;
	}
	long_one = c->end - c->l2_len > way.mtu;
	if (SL_UNLIKELY(long_one && forward_whole(ip, c->v4))) {
		refuse(p, SL_CLAIM_ERROR_TOO_BIG, way.mtu, SERVICE_FORWARD_TOO_BIG);
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
	memcpy(rte_pktmbuf_mtod(m, void *), ip, headers);
	if (SL_UNLIKELY(long_one)) {
		count(p, forward_split(p->f->d, p->worker, &way, m, sent));
		return;
	}
	sl_inet_way_output(p->f->d->inet, p->worker, &way, m);
	count(p, sent);
}

static void
send_to(const struct forward_pkt *p, uint16_t backend)
{
	const struct forward_end *end = &p->view->end[backend];

	sl_counter_add(&p->fw->picked[backend], 1);
	forward_send(p, &end->addr, NULL, end, SERVICE_FORWARDED);
}

static void
send_to_nobody(const struct forward_pkt *p)
{
	refuse(p, SL_CLAIM_ERROR_NOBODY, 0, SERVICE_FORWARD_NO_BACKEND);
}

/* Decide about a batch, and send it. */
static void
decide(struct batch *b, uint16_t worker)
{
	struct forward_pkt p = {.f = b->f, .view = b->view, .worker = worker};
	const struct flow_key *keys[SL_INET_BURST];
	struct balancer_pick picks[SL_INET_BURST];

	if (b->n == 0)
		return;
	p.fw = &b->f->worker[worker];
	for (uint16_t i = 0; i < b->n; i++)
		keys[i] = &b->key[i];
	balancer_pick_burst(p.fw->balancer, b->view->balancer, keys, b->n, picks);
	for (uint16_t i = 0; i < b->n; i++) {
		uint16_t k = picks[i].backend;

		p.c = b->c[i];
		if (SL_UNLIKELY(p.c->follow != NULL))
			*p.c->follow = k == MAGLEV_NONE ? FOLLOW_NOBODY
							: FOLLOW(k, b->view->generation[k]);
		if (SL_UNLIKELY(k == MAGLEV_NONE))
			send_to_nobody(&p);
		else
			send_to(&p, k);
	}
	b->n = 0;
}

static void
batch_add(struct batch *b, struct forward *f, const struct forward_view *view,
	struct sl_inet_claimed *c, uint16_t worker)
{
	struct flow_key *key;

	if (b->f != f)
		decide(b, worker);
	b->f = f;
	b->view = view;
	b->c[b->n] = c;
	key = &b->key[b->n++];
	memset(key, 0, sizeof(*key));
	memcpy(key->src, c->src.b, sizeof(key->src));
	memcpy(key->dst, c->dst.b, sizeof(key->dst));
	key->sport = c->sport;
	key->dport = c->dport;
	key->proto = IPPROTO_UDP;
}

/* A later fragment goes where its first one went. False: that is not known any more. */
static bool
follow(const struct forward_pkt *p)
{
	uint64_t word = *p->c->follow;
	uint16_t backend = (uint16_t)word;

	if (word == FOLLOW_NOBODY) {
		send_to_nobody(p);
		return true;
	}
	if ((word & FOLLOW_SET) == 0 || backend >= FORWARD_BACKENDS ||
		p->view->generation[backend] != (uint32_t)(word >> 16))
		return false;
	send_to(p, backend);
	return true;
}

static void
to_service(const struct forward_pkt *p, struct batch *b)
{
	if (SL_UNLIKELY(p->c->later)) {
		decide(b, p->worker);
		if (follow(p))
			return;
	}
	batch_add(b, p->f, p->view, p->c, p->worker);
}

static void
from_backend(const struct forward_pkt *p, uint16_t backend)
{
	sl_counter_add(&p->fw->replies[backend], 1);
	forward_send(p, &p->c->dst, &p->f->self, NULL, SERVICE_FORWARD_RETURNED);
}

static void
input(void *arg, uint16_t worker, uint64_t now_ns, struct sl_inet_claimed *c, uint16_t n)
{
	struct batch b = {.f = NULL, .view = NULL, .n = 0};

	(void)arg, (void)now_ns;
	for (uint16_t i = 0; i < n; i++) {
		const struct forward_owner *owner = c[i].owner;
		struct forward *f = owner->f;
		struct forward_pkt p = {.f = f,
			.fw = &f->worker[worker],
			.view = sl_load_acquire(&f->view), /* LB1 */
			.worker = worker,
			.c = &c[i]};

		sl_counter_add(&p.fw->entered, 1);
		sl_counter_add(&p.fw->cell.bytes, c[i].end - c[i].l4_off);
		if (SL_LIKELY(c[i].kind == SL_CLAIMED_TO))
			to_service(&p, &b);
		else if (c[i].kind == SL_CLAIMED_FROM)
			from_backend(&p, owner->backend);
		else
			forward_error(&p, owner->backend);
	}
	decide(&b, worker);
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
