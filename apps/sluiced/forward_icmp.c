/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * ICMP errors about what was sent on or brought back. Whoever gets one must find a datagram quoted
 * in it that he has sent himself:
 *
 *     on the way to a back end    error to C quotes C -> B     the client sees C -> V, from V if B
 * sent it on the way to the client    error to V quotes V -> C     the back end sees B -> C
 *
 * They are seldom, so they are copied, and their checksum is computed over all of them.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "forward_priv.h"
#include "sl_dpdk.h"

#define UDP_LEN 8u

enum {
	UNREACH4 = 3,
	UNREACH4_PORT = 3,
	UNREACH6 = 1,
	UNREACH6_PORT = 4,
};

static bool
is_port_unreachable(const struct sl_inet_claimed *c)
{
	const uint8_t *icmp = c->head + c->l4_off;

	return c->v4 ? icmp[0] == UNREACH4 && icmp[1] == UNREACH4_PORT
		     : icmp[0] == UNREACH6 && icmp[1] == UNREACH6_PORT;
}

/* The copy, from the IP header on, with the rewritten headers and a checksum. */
static struct rte_mbuf *
make(const struct forward_pkt *p)
{
	const struct sl_inet_claimed *c = p->c;
	uint32_t headers = c->quote_l4 + UDP_LEN - c->l2_len, off = c->l4_off - c->l2_len;
	struct rte_mbuf *m = rte_pktmbuf_copy(c->m, p->f->d->pool, c->l2_len, c->end - c->l2_len);
	uint64_t pseudo = 0;
	uint16_t raw, sum;
	uint8_t *ip;

	if (m == NULL || m->data_len < headers) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	ip = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(ip, c->head + c->l2_len, headers);
	memset(ip + off + 2, 0, 2);
	if (sl_raw_cksum_mbuf(m, off, m->pkt_len - off, &raw) != 0)
		raw = 0; /* cannot be: there is as much */
	if (!c->v4)
		pseudo = forward_pseudo(ip, false, IPPROTO_ICMPV6, m->pkt_len - off);
	sum = (uint16_t)~forward_fold(pseudo + raw);
	memcpy(ip + off + 2, &sum, sizeof(sum));
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
	m->tx_offload = 0;
	return m;
}

static void
send_on(const struct forward_pkt *p, const struct sl_addr *dst)
{
	struct sl_inet_claimed *c = p->c;
	enum service_outcome what = SERVICE_FORWARD_ERROR;
	struct rte_mbuf *m = NULL;
	struct sl_inet_way way;

	if (!forward_hop(c->head + c->l2_len, c->v4))
		what = SERVICE_FORWARD_TTL;
	else if (sl_inet_way_find(p->f->d->inet, p->worker, dst, &way) != 0)
		what = SERVICE_FORWARD_UNREACHABLE;
	else if (c->end - c->l2_len > way.mtu)
		what = SERVICE_FORWARD_TOO_BIG;
	if (what == SERVICE_FORWARD_ERROR) {
		m = make(p);
		what = m != NULL ? what : SERVICE_FORWARD_NO_MBUF;
	}
	if (m != NULL)
		sl_inet_way_output(p->f->d->inet, p->worker, &way, m);
	forward_drop(p, what);
}

/* Outer addresses; the ports of the ends are no part of it. */
static void
edit_outer(struct sl_inet_claimed *c, const struct forward_end *src, const struct forward_end *dst)
{
	forward_edit(c->head + c->l2_len, NULL, c->v4, src, dst);
}

/* From the way to a back end, for the client. */
static void
to_client(const struct forward_pkt *p, uint16_t backend)
{
	const struct forward_end *end = &p->view->end[backend], *self = &p->f->self;
	struct sl_inet_claimed *c = p->c;
	bool own = memcmp(&c->src, &end->addr, sizeof(c->src)) == 0;

	if (own && is_port_unreachable(c) && sl_load_relaxed(&p->f->unreachable[backend]) == 0)
		sl_store_release(&p->f->unreachable[backend], 1u); /* FW1 */
	forward_edit(c->head + c->quote_off, c->head + c->quote_l4, c->v4, NULL, self);
	if (own)
		edit_outer(c, self, NULL);
	send_on(p, &c->dst);
}

/* From the way to the client, for the back end that its datagram came from: the one that the
 * client's flow is bound to here, else whose slot it is. Deals out in turn know neither. */
static void
to_backend(const struct forward_pkt *p)
{
	struct sl_inet_claimed *c = p->c;
	const uint8_t *quote = c->head + c->quote_off;
	struct flow_key key = {.sport = c->dport, .dport = c->sport, .proto = IPPROTO_UDP};
	struct balancer_explanation e;
	const struct forward_end *end;

	memcpy(key.dst, &c->dst, sizeof(key.dst));
	if (c->v4) {
		memset(key.src + 10, 0xff, 2);
		memcpy(key.src + 12, quote + 16, 4);
	} else {
		memcpy(key.src, quote + 24, 16);
	}
	balancer_explain(p->fw->balancer, p->view->balancer, &key, &e);
	if (e.pick.backend == MAGLEV_NONE || e.pick.reason == BALANCER_TURN) {
		forward_drop(p, SERVICE_FORWARD_NO_FLOW);
		return;
	}
	end = &p->view->end[e.pick.backend];
	forward_edit(c->head + c->quote_off, c->head + c->quote_l4, c->v4, end, NULL);
	edit_outer(c, NULL, end);
	send_on(p, &end->addr);
}

void
forward_error(const struct forward_pkt *p, uint16_t backend)
{
	if (p->c->kind == SL_CLAIMED_ERROR_FROM)
		to_client(p, backend);
	else
		to_backend(p);
}
