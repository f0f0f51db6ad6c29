/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_random.h>

#include "cksum.h"
#include "inet_priv.h"
#include "neigh.h"
#include "sl_inet_claim.h"
#include "table.h"

#define IP4_HDR 20u
#define IP6_HDR 40u
#define UDP_HDR 8u
#define IP4_DF 0x4000u
#define IP4_MORE 0x2000u
#define FRAGMENT_HDR 8u

/* Let the driver check and complete the packets' offloads; what it refuses is lost. Returns how
 * many are left. */
static uint16_t
prepare(struct inet_worker *w, const struct inet_port *port, struct inet_wport *wport, uint16_t n)
{
	struct rte_mbuf **tx = wport->tx;
	uint16_t good = 0;

	for (;;) {
		good = (uint16_t)(good + rte_eth_tx_prepare(port->dev, wport->queue, tx + good,
						 (uint16_t)(n - good)));
		if (good >= n)
			return n;
		rte_pktmbuf_free(tx[good]);
		inet_count(w, SL_TX_PORT_FULL, 1);
		n--;
		memmove(&tx[good], &tx[good + 1], (size_t)(n - good) * sizeof(tx[0]));
	}
}

static void
flush(struct inet_worker *w, const struct inet_port *port, struct inet_wport *wport)
{
	uint16_t n = wport->tx_count, sent = 0, k;

	wport->tx_count = 0;
	if (port->tx_udp_cksum || port->tx_ip_cksum)
		n = prepare(w, port, wport, n);
	do {
		k = rte_eth_tx_burst(
			port->dev, wport->queue, wport->tx + sent, (uint16_t)(n - sent));
		sent = (uint16_t)(sent + k);
	} while (k > 0 && sent < n);
	inet_count(w, SL_TX_SENT, sent);
	if (SL_UNLIKELY(sent < n)) {
		rte_pktmbuf_free_bulk(wport->tx + sent, n - sent);
		inet_count(w, SL_TX_PORT_FULL, (uint64_t)(n - sent));
	}
}

void
sl_inet_flush(struct sl_inet *inet, uint16_t worker, uint16_t port_id, uint16_t queue)
{
	struct inet_port *port = sl_load_acquire(&inet->by_dev[port_id]); /* IN1 */

	do {
		struct inet_wport *wport = &port->workers[worker];

		wport->queue = queue;
		wport->has_queue = true;
		if (wport->tx_count > 0)
			flush(&inet->worker[worker], port, wport);
		port = sl_load_acquire(&port->next); /* IN1 */
	} while (SL_UNLIKELY(port != NULL));
}

static void
enqueue(struct inet_worker *w, const struct inet_port *port, struct inet_wport *wport,
	struct rte_mbuf *m)
{
	if (SL_UNLIKELY(wport->tx_count == INET_TX_BATCH)) {
		if (!wport->has_queue) {
			/* This worker has never flushed that port and may never do so. */
			inet_count(w, SL_TX_PORT_FULL, 1);
			rte_pktmbuf_free(m);
			return;
		}
		flush(w, port, wport);
	}
	wport->tx[wport->tx_count++] = m;
}

void
inet_enqueue(struct inet_worker *w, const struct inet_port *port, struct inet_wport *wport,
	struct rte_mbuf *m)
{
	enqueue(w, port, wport, m);
}

void
inet_eth_output(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	struct rte_mbuf *m, const uint8_t *mac, uint16_t type)
{
	uint8_t *h = (uint8_t *)rte_pktmbuf_prepend(m, port->l2_len);

	SL_DEBUG_ASSERT(h != NULL);
	if (SL_LIKELY(port->l2_len == RTE_ETHER_HDR_LEN))
		memcpy(h, port->l2, RTE_ETHER_HDR_LEN); /* of a length that the compiler knows */
	else
		memcpy(h, port->l2, port->l2_len);
	memcpy(h, mac, RTE_ETHER_ADDR_LEN);
	inet_put16(h + port->l2_len - 2, type);
	m->l2_len = port->l2_len;
	enqueue(w, port, wport, m);
}

struct rte_mbuf *
inet_own_mbuf(struct inet_worker *w, const struct inet_port *port)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool);

	if (m == NULL)
		inet_count(w, SL_TX_NO_MBUF, 1);
	return m;
}

uint64_t
inet_pseudo_sum(const struct sl_addr *src, const struct sl_addr *dst, uint8_t proto, uint32_t len)
{
	uint32_t words[4];
	uint64_t sum = (uint64_t)rte_cpu_to_be_32(len) + rte_cpu_to_be_32(proto);

	/* IPv4 addresses bring ::ffff: along, which does not belong to the sum: twice 0xffff is
	 * zero in one's complement. */
	memcpy(words, src->b, sizeof(words));
	sum += (uint64_t)words[0] + words[1] + words[2] + words[3];
	memcpy(words, dst->b, sizeof(words));
	return sum + words[0] + words[1] + words[2] + words[3];
}

/* Words are summed before they are stored: a load that spans several fresh stores would wait.
 * fragment: identification, flags and offset. */
static inline void
ip4_prepend(const struct inet_port *port, struct rte_mbuf *m, const struct inet_ip_out *out,
	uint32_t fragment)
{
	uint32_t len = m->pkt_len + IP4_HDR, word[5];
	char *h = rte_pktmbuf_prepend(m, IP4_HDR);
	uint16_t sum;

	SL_DEBUG_ASSERT(h != NULL);
	word[0] = rte_cpu_to_be_32(UINT32_C(0x45000000) | (uint32_t)out->tos << 16 | len);
	word[1] = rte_cpu_to_be_32(fragment);
	word[2] = rte_cpu_to_be_32((uint32_t)out->ttl << 24 | (uint32_t)out->proto << 16);
	word[3] = inet_to_v4(&out->src);
	word[4] = inet_to_v4(&out->dst);
	m->l3_len = IP4_HDR;
	if (port->tx_ip_cksum) {
		m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	} else {
		sum = (uint16_t)~inet_fold(
			(uint64_t)word[0] + word[1] + word[2] + word[3] + word[4]);
		word[2] |= rte_cpu_to_be_32(rte_be_to_cpu_16(sum));
	}
	memcpy(h, word, sizeof(word));
}

static void
ip6_prepend(struct rte_mbuf *m, const struct inet_ip_out *out)
{
	uint16_t len = (uint16_t)m->pkt_len;
	uint8_t *h = (uint8_t *)rte_pktmbuf_prepend(m, IP6_HDR);

	SL_DEBUG_ASSERT(h != NULL);
	inet_put16(h, (uint16_t)(0x6000 | out->tos << 4));
	inet_put16(h + 2, 0);
	inet_put16(h + 4, len);
	h[6] = out->proto;
	h[7] = out->ttl;
	memcpy(h + 8, out->src.b, 16);
	memcpy(h + 24, out->dst.b, 16);
	m->l3_len = IP6_HDR;
}

void
inet_ip_prepend(struct inet_worker *w, const struct inet_port *port, struct rte_mbuf *m,
	const struct inet_ip_out *out)
{
	if (inet_is_v4(&out->dst))
		ip4_prepend(port, m, out, (uint32_t)w->ip_id++ << 16 | IP4_DF);
	else
		ip6_prepend(m, out);
}

/* Put the headers of one fragment in front: offset in bytes, a multiple of 8. */
static void
fragment_prepend(const struct inet_port *port, struct rte_mbuf *m, const struct inet_ip_out *out,
	uint32_t id, uint32_t offset, bool more)
{
	struct inet_ip_out last = *out;
	uint8_t *h;

	if (inet_is_v4(&out->dst)) {
		ip4_prepend(port, m, out, id << 16 | (more ? IP4_MORE : 0) | offset / 8);
		return;
	}
	h = (uint8_t *)rte_pktmbuf_prepend(m, FRAGMENT_HDR);
	SL_DEBUG_ASSERT(h != NULL);
	h[0] = out->proto;
	h[1] = 0;
	inet_put16(h + 2, (uint16_t)(offset | more));
	memcpy(h + 4, &id, sizeof(id));
	last.proto = IPPROTO_FRAGMENT;
	ip6_prepend(m, &last);
}

void
inet_fragments_output(struct inet_rx *rx, const struct rte_mbuf *m, const struct inet_ip_out *out,
	const uint8_t *mac)
{
	bool v4 = inet_is_v4(&out->dst);
	uint32_t headers = v4 ? IP4_HDR : IP6_HDR + FRAGMENT_HDR, len, off;
	/* Workers have the same addresses and must not have the same identifications. */
	uint32_t id = (uint32_t)rte_rand();

	for (off = 0; off < m->pkt_len; off += len) {
		struct rte_mbuf *piece = inet_own_mbuf(rx->w, rx->port);

		if (piece == NULL)
			return;
		len = RTE_MIN(rx->port->mtu - headers, rte_pktmbuf_tailroom(piece));
		len = m->pkt_len - off > len ? len & ~7u : m->pkt_len - off;
		if (len == 0) {
			inet_count(rx->w, SL_TX_NO_MBUF, 1); /* buffers too small for any */
			rte_pktmbuf_free(piece);
			return;
		}
		inet_mbuf_read(m, off, rte_pktmbuf_append(piece, (uint16_t)len), len);
		fragment_prepend(rx->port, piece, out, id, off, off + len < m->pkt_len);
		inet_eth_output(rx->w, rx->port, rx->wport, piece, mac,
			v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	}
}

static uint64_t
payload_sum(const struct rte_mbuf *m)
{
	/* There is headroom in front, as the short sum needs. */
	if (SL_LIKELY(m->nb_segs == 1 && m->data_len <= INET_SHORT))
		return inet_sum_short(rte_pktmbuf_mtod(m, const char *), m->data_len);
	return inet_sum_mbuf(m, 0, m->pkt_len);
}

static void
udp_prepend(const struct inet_port *port, struct rte_mbuf *m, const struct sl_inet_flow *flow)
{
	uint32_t len = m->pkt_len + UDP_HDR, word[2];
	uint64_t pseudo = inet_pseudo_sum(&flow->src, &flow->dst, IPPROTO_UDP, len);
	uint16_t sum;
	char *h;

	memcpy(&word[0], &flow->sport, 4); /* dport follows */
	word[1] = rte_cpu_to_be_32(len << 16);
	if (port->tx_udp_cksum) {
		/* The hardware adds the rest to what the field holds. */
		m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
		m->ol_flags |= inet_is_v4(&flow->dst) ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
		sum = inet_fold(pseudo);
	} else {
		pseudo = inet_add64(pseudo + word[0] + word[1], payload_sum(m));
		sum = (uint16_t)~inet_fold(pseudo);
		if (sum == 0)
			sum = UINT16_MAX; /* zero would say: no checksum */
	}
	word[1] |= rte_cpu_to_be_32(rte_be_to_cpu_16(sum));
	h = rte_pktmbuf_prepend(m, UDP_HDR);
	SL_DEBUG_ASSERT(h != NULL);
	memcpy(h, word, sizeof(word));
}

static void
group_mac(const struct sl_addr *dst, uint8_t *mac)
{
	if (inet_is_v4(dst)) {
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e}, 3);
		mac[3] = dst->b[13] & 0x7f;
		memcpy(mac + 4, dst->b + 14, 2);
	} else {
		memcpy(mac, (const uint8_t[]){0x33, 0x33}, 2);
		memcpy(mac + 2, dst->b + 12, 4);
	}
}

/* May nothing be sent to dst on that port? */
static bool
is_broadcast(const struct inet_port *port, const struct sl_addr *dst)
{
	uint32_t be = inet_to_v4(dst);

	return inet_is_v4(dst) && (be == UINT32_MAX || inet_port_is_broadcast4(port, be));
}

/* A worker that is offline may look at routes like any other thread. */
static int
find_route(struct sl_inet *inet, const struct inet_worker *w, const struct sl_inet_flow *flow,
	struct inet_path *path)
{
	int ret;

	if (SL_LIKELY(w->online))
		return inet_route(inet, &flow->dst, &flow->src, &path->port, &path->hop);
	inet_table_read(inet);
	ret = inet_route(inet, &flow->dst, &flow->src, &path->port, &path->hop);
	inet_table_unlock(inet);
	return ret;
}

static int
find_path(struct sl_inet *inet, const struct inet_worker *w, const struct sl_inet_flow *flow,
	struct inet_path *path)
{
	int ret;

	if (inet_is_v4(&flow->dst) && inet_to_v4(&flow->dst) == UINT32_MAX)
		return -EACCES; /* whatever the routes say */
	/* Read first: a change from here on makes what is found out of date, not wrong. */
	path->routes = sl_load_acquire(&inet->routes); /* IN1 */
	ret = find_route(inet, w, flow, path);
	if (ret == 0 && is_broadcast(path->port, &flow->dst))
		ret = -EACCES;
	path->dst = flow->dst;
	path->has_src = false;
	return ret;
}

static struct inet_path *
path_place(struct inet_worker *w, const struct sl_addr *dst)
{
	return &w->path[(dst->b[15] ^ dst->b[14] ^ dst->b[13]) % INET_PATHS];
}

int
sl_inet_worker_source(
	struct sl_inet *inet, uint16_t worker, const struct sl_addr *dst, struct sl_addr *src)
{
	struct inet_worker *w = &inet->worker[worker];
	struct inet_path *p = path_place(w, dst), path;
	int ret;

	if (SL_LIKELY(p->port != NULL && p->has_src && inet_addr_equal(&p->dst, dst) &&
		      p->routes == sl_load_acquire(&inet->routes))) { /* IN1 */
		*src = p->src;
		return 0;
	}
	if (!w->online)
		return sl_inet_source(inet, dst, src);
	ret = inet_source(inet, dst, &path);
	if (ret != 0)
		return ret;
	*src = path.src;
	/* Not where the source address decides about the route, or where nothing may be sent. */
	if (!inet_is_multicast(dst) && !inet_is_link_local(dst) && !is_broadcast(path.port, dst))
		*p = path;
	return 0;
}

/* Route of a flow, remembered by destination. Those that depend on the source address as well are
 * looked up each time. */
static inline __attribute__((always_inline)) int
recall_path(struct sl_inet *inet, struct inet_worker *w, const struct sl_inet_flow *flow,
	struct inet_path *path)
{
	struct inet_path *p = path_place(w, &flow->dst);
	int ret;

	if (SL_LIKELY(p->port != NULL && inet_addr_equal(&p->dst, &flow->dst) &&
		      p->routes == sl_load_acquire(&inet->routes))) { /* IN1 */
		*path = *p;
		return 0;
	}
	ret = find_path(inet, w, flow, path);
	if (ret == 0 && !inet_is_multicast(&flow->dst) && !inet_is_link_local(&flow->dst))
		*p = *path;
	return ret;
}

int
sl_inet_udp_output(
	struct sl_inet *inet, uint16_t worker, const struct sl_inet_flow *flow, struct rte_mbuf *m)
{
	struct inet_worker *w = &inet->worker[worker];
	bool v4 = inet_is_v4(&flow->dst);
	struct inet_ip_out out;
	struct inet_path path;
	uint8_t mac[6];
	int ret;

	if (flow->dport == 0)
		return -EINVAL;
	ret = recall_path(inet, w, flow, &path);
	if (SL_UNLIKELY(ret != 0)) {
		inet_count(w, SL_TX_NO_ROUTE, ret == -ENETUNREACH);
		return ret;
	}
	if (m->pkt_len + UDP_HDR + (v4 ? IP4_HDR : IP6_HDR) > path.port->mtu)
		return -EMSGSIZE;
	out = (struct inet_ip_out){.src = flow->src,
		.dst = flow->dst,
		.proto = IPPROTO_UDP,
		.ttl = flow->ttl != 0 ? flow->ttl : INET_TTL,
		.tos = flow->tos};
	udp_prepend(path.port, m, flow);
	inet_ip_prepend(w, path.port, m, &out);
	if (SL_UNLIKELY(inet_is_multicast(&flow->dst))) {
		group_mac(&flow->dst, mac);
		inet_eth_output(w, path.port, &path.port->workers[worker], m, mac,
			v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	} else {
		inet_neigh_output(inet, worker, path.port, &path.hop, m);
	}
	return 0;
}

int
sl_inet_way_find(
	struct sl_inet *inet, uint16_t worker, const struct sl_addr *dst, struct sl_inet_way *way)
{
	struct sl_inet_flow flow = {.dst = *dst};
	struct inet_path path;
	int ret;

	if (inet_is_multicast(dst))
		return -EACCES;
	ret = recall_path(inet, &inet->worker[worker], &flow, &path);
	if (SL_UNLIKELY(ret != 0))
		return ret;
	*way = (struct sl_inet_way){.port = path.port, .hop = path.hop, .mtu = path.port->mtu};
	return 0;
}

/* Do what the packet leaves to hardware that is not there: the field holds the pseudo header's sum.
 */
static void
finish_udp_sum(struct rte_mbuf *m)
{
	uint32_t off = m->l3_len;
	uint16_t sum = (uint16_t)~inet_sum_mbuf(m, off, m->pkt_len - off);

	if (sum == 0)
		sum = UINT16_MAX;
	memcpy(rte_pktmbuf_mtod_offset(m, char *, off + 6), &sum, sizeof(sum));
	m->ol_flags &= ~(RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6);
}

void
sl_inet_way_output(
	struct sl_inet *inet, uint16_t worker, const struct sl_inet_way *way, struct rte_mbuf *m)
{
	struct inet_port *port = way->port;

	if (SL_UNLIKELY((m->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) != 0 && !port->tx_udp_cksum))
		finish_udp_sum(m);
	inet_neigh_output(inet, worker, port, &way->hop, m);
}

void
sl_inet_way_frames(struct sl_inet *inet, uint16_t worker, const struct sl_inet_way *way,
	struct rte_mbuf **m, uint16_t n)
{
	struct inet_port *port = way->port;
	struct inet_wport *wport = &port->workers[worker];
	struct inet_worker *w = &inet->worker[worker];

	if (SL_LIKELY(wport->tx_count + n <= INET_TX_BATCH)) {
		memcpy(&wport->tx[wport->tx_count], m, n * sizeof(*m));
		wport->tx_count = (uint16_t)(wport->tx_count + n);
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		enqueue(w, port, wport, m[i]);
}
