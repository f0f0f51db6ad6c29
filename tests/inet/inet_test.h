/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_TEST_H
#define INET_TEST_H

/**
 * @file
 * A stack on a null port whose transmitted packets can be looked at, a clock that the test sets, a
 * UDP layer that keeps or refuses what it gets, and a frame writer.
 *
 *     frame bytes -> mbuf -> sl_inet_input_burst -> stack -> tx callback -> out[]
 *                                                     |-> UDP layer       -> in[]
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sl_inet.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_pool.h"

#define T_UNUSED __attribute__((unused))
#define T_MS UINT64_C(1000000)
#define T_S (1000 * T_MS)
#define T_OUT_MAX 512
#define T_POOL 2047u
#define T_TX_QUEUES 3 /* the first one is captured */

/* We are 198.18.0.2/24, 2001:db8::2/64 with MAC 02:00:00:00:00:02; the peer has .1, ::1, ..:01. */
static const uint8_t t_our_mac[6] T_UNUSED = {2, 0, 0, 0, 0, 2};
static const uint8_t t_peer_mac[6] T_UNUSED = {2, 0, 0, 0, 0, 1};
static const uint8_t t_any_mac[6] T_UNUSED = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static struct rte_mempool *t_pool;
static uint16_t t_port;
static struct sl_inet *t_inet;
static uint64_t t_now; /* the stack's clock, ns */
/* For the stacks opened next: bounds of reassembly; 0 for the usual. */
static uint32_t t_frag_packets, t_frag_bytes, t_frag_timeout_ms;

/* What the stack sent, oldest first, and how many packets the port takes yet. */
static struct rte_mbuf *t_out[T_OUT_MAX];
static unsigned int t_outs;
static unsigned int t_tx_room;

/* What the UDP layer got. `t_udp_answer` is the outcome it gives. */
static struct sl_dgram t_in[1024];
static unsigned int t_ins;
static uint8_t t_udp_answer;
static struct sl_inet_error t_error;
static unsigned int t_errors;

/* Keeps a reference to each packet that the port is about to take; the null port then drops its. */
static inline uint16_t
capture(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	(void)port, (void)queue, (void)arg;
	n = (uint16_t)RTE_MIN(n, t_tx_room);
	t_tx_room -= n;
	for (uint16_t i = 0; i < n; i++) {
		REQUIRE(t_outs < T_OUT_MAX);
		rte_pktmbuf_refcnt_update(pkts[i], 1);
		t_out[t_outs++] = pkts[i];
	}
	return n;
}

static inline struct sl_dgram *
udp_input(void *arg, uint16_t worker, struct sl_dgram *d, uint16_t n, uint8_t *outcome)
{
	(void)arg, (void)worker;
	for (uint16_t i = 0; i < n; i++) {
		REQUIRE(t_ins < SL_COUNT_OF(t_in));
		outcome[i] = t_udp_answer;
		t_in[t_ins] = d[i];
		if (t_udp_answer != SL_RX_UDP_QUEUED)
			t_in[t_ins].buf = NULL;
		t_ins++;
	}
	return d;
}

static inline void
udp_error(void *arg, uint16_t worker, const struct sl_inet_error *e)
{
	(void)arg, (void)worker;
	t_error = *e;
	t_errors++;
}

static const struct sl_inet_udp_ops t_ops = {.input = udp_input, .error = udp_error};

static inline uint64_t
clock_ns(void *arg)
{
	(void)arg;
	return t_now;
}

/** EAL, pool, port. Call once, first. `argv0` names the program; returns 0. */
static inline int
t_init(const char *argv0)
{
	struct rte_ether_addr mac;
	struct rte_eth_conf conf = {0};

	REQUIRE(test_eal_start(argv0, "-l 0 --vdev=net_null0 --vdev=net_ring0 --log-level=error") >= 0);
	t_pool = rte_pktmbuf_pool_create_by_ops(
		"test", T_POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0, TEST_POOL_OPS_TSAN);
	REQUIRE(t_pool != NULL);
	REQUIRE(rte_eth_dev_get_port_by_name("net_null0", &t_port) == 0);
	REQUIRE(rte_eth_dev_configure(t_port, 1, T_TX_QUEUES, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(t_port, 0, 64, 0, NULL, t_pool) == 0);
	for (uint16_t i = 0; i < T_TX_QUEUES; i++)
		REQUIRE(rte_eth_tx_queue_setup(t_port, i, 64, 0, NULL) == 0);
	memcpy(&mac, t_our_mac, sizeof(mac));
	REQUIRE(rte_eth_dev_default_mac_addr_set(t_port, &mac) == 0);
	REQUIRE(rte_eth_dev_start(t_port) == 0);
	REQUIRE(rte_eth_add_tx_callback(t_port, 0, capture, NULL) != NULL);
	return 0;
}

static inline struct sl_addr
t_addr(const char *text)
{
	struct sl_addr a;
	uint8_t prefix;

	REQUIRE(sl_addr_parse(text, &a, &prefix) == 0);
	return a;
}

static inline void
t_flush(void)
{
	sl_inet_flush(t_inet, 0, t_port, 0);
}

static inline void
t_pass(uint64_t ns)
{
	t_now += ns;
	sl_inet_timers(t_inet, 0);
	t_flush();
}

static inline void
t_drop_out(void)
{
	rte_pktmbuf_free_bulk(t_out, t_outs);
	t_outs = 0;
}

static inline void
t_drop_in(void)
{
	for (unsigned int i = 0; i < t_ins; i++)
		rte_pktmbuf_free(t_in[i].buf);
	t_ins = 0;
}

/** As t_open, but with an empty port: no address is added, no time passes. */
static inline void
t_open_bare(const struct sl_inet_port_conf *conf, uint32_t neighbours, uint32_t icmp_rate)
{
	struct sl_inet_conf inet_conf = {.workers = 2,
		.neighbours = neighbours,
		.icmp_errors_per_s = icmp_rate,
		.frag_packets = t_frag_packets,
		.frag_bytes = t_frag_bytes,
		.frag_timeout_ms = t_frag_timeout_ms,
		.now_ns = clock_ns};
	struct sl_inet_port_conf port_conf = {0};

	if (conf != NULL)
		port_conf = *conf;
	port_conf.port_id = t_port;
	port_conf.pool = t_pool;
	t_now = 1000 * T_S;
	t_tx_room = UINT32_MAX;
	t_udp_answer = SL_RX_UDP_QUEUED;
	t_errors = 0;
	REQUIRE(sl_inet_create(&inet_conf, &t_inet) == 0);
	REQUIRE(sl_inet_port_add(t_inet, &port_conf) == 0);
	sl_inet_set_udp(t_inet, &t_ops, NULL);
}

/** A fresh stack; conf's port_id and pool are filled in. NULL means no VLAN, nothing special. With
 * IPv4 and IPv6 addresses that are ready, and nothing in out[]. */
static inline void
t_open(const struct sl_inet_port_conf *conf)
{
	struct sl_addr v4 = t_addr("198.18.0.2"), v6 = t_addr("2001:db8::2");

	t_open_bare(conf, 0, 0);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &v4, 24) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &v6, 64) == 0);
	t_pass(0);
	t_pass(1 * T_S);
	t_pass(1 * T_S);
	REQUIRE(sl_inet_addr_is_local(t_inet, &v6));
	t_drop_out();
}

/** What came in has an outcome, or is held. */
static inline void
t_check_sums(void)
{
	uint64_t counts[SL_OUTCOME_COUNT], sum = sl_inet_held(t_inet, SL_INET_NO_WORKER);

	sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, counts);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++)
		sum += counts[i];
	CHECK_EQ(sum, sl_inet_received(t_inet, SL_INET_NO_WORKER));
}

/** Check the sums, free everything, check that no mbuf is missing. */
static inline void
t_close(void)
{
	t_flush();
	t_drop_out();
	t_drop_in();
	t_check_sums();
	sl_inet_destroy(t_inet);
	CHECK_EQ(rte_mempool_avail_count(t_pool), T_POOL);
}

static inline uint64_t
t_count(enum sl_outcome outcome)
{
	uint64_t counts[SL_OUTCOME_COUNT];

	sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, counts);
	return counts[outcome];
}

static inline struct rte_mbuf *
t_mbuf(const uint8_t *frame, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	char *p;

	REQUIRE(m != NULL);
	p = rte_pktmbuf_append(m, (uint16_t)len);
	REQUIRE(p != NULL);
	memcpy(p, frame, len);
	return m;
}

/** The same in segments cut at `at`. */
static inline struct rte_mbuf *
t_mbuf_split(const uint8_t *frame, size_t len, size_t at)
{
	struct rte_mbuf *m = t_mbuf(frame, at), *tail = t_mbuf(frame + at, len - at);

	REQUIRE(rte_pktmbuf_chain(m, tail) == 0);
	return m;
}

/** Feed one packet; returns the one outcome that moved by one, or -1 if that is not what happened.
 */
static inline int
t_feed_mbuf(struct rte_mbuf *m)
{
	uint64_t before[SL_OUTCOME_COUNT], after[SL_OUTCOME_COUNT];
	int found = -1, moved = 0;

	sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, before);
	sl_inet_input_burst(t_inet, 0, t_port, &m, 1);
	sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, after);
	for (int i = 0; i < SL_OUTCOME_TX_FIRST; i++) {
		if (after[i] == before[i])
			continue;
		found = i;
		moved += (int)(after[i] - before[i]);
	}
	return moved == 1 ? found : -1;
}

static inline int
t_feed(const uint8_t *frame, size_t len)
{
	return t_feed_mbuf(t_mbuf(frame, len));
}

/** Bytes of a packet that was sent. */
static inline const uint8_t *
t_out_data(unsigned int i, size_t *len)
{
	REQUIRE(i < t_outs);
	REQUIRE(t_out[i]->nb_segs == 1);
	if (len != NULL)
		*len = rte_pktmbuf_pkt_len(t_out[i]);
	return rte_pktmbuf_mtod(t_out[i], const uint8_t *);
}

/* --- frames --- */
struct t_frame {
	uint8_t b[4096];
	size_t len;
};

/* What a UDP frame is made of; all that is zero or NULL takes the usual value. */
struct t_udp {
	bool v6;
	const char *src, *dst;
	const uint8_t *dst_mac, *src_mac;
	uint16_t sport, dport; /* host order */
	size_t payload;	       /* bytes, counting up from 1 */
	uint8_t ttl, tos, proto;
	const uint8_t *options; /* IPv4 options or IPv6 extension headers */
	size_t options_len;	/* multiple of 4 or 8 */
	uint8_t next;		/* IPv6: what the fixed header's next header says; 0 means proto */
	int udp_len;		/* in the UDP header; 0 means right */
	uint16_t frag;		/* IPv4 flags and offset */
	uint16_t vlan, svlan;
	size_t padding; /* behind the packet */
	bool no_csum;
};

static inline void
put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
put(struct t_frame *f, const void *data, size_t len)
{
	if (len > 0)
		memcpy(f->b + f->len, data, len);
	f->len += len;
}

static inline void
put_u16(struct t_frame *f, size_t v)
{
	put16(f->b + f->len, v);
	f->len += 2;
}

/** Internet checksum, the slow and simple way, of data and a start sum; not complemented. */
static inline uint16_t
t_sum(const uint8_t *data, size_t len, uint32_t start)
{
	uint64_t sum = start;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint64_t)data[i] << 8 : data[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/** Pseudo header sum of either family, for t_sum's start. */
static inline uint32_t
t_pseudo(const char *src, const char *dst, uint8_t proto, size_t len)
{
	struct sl_addr s = t_addr(src), d = t_addr(dst);
	size_t from = sl_addr_is_v4(&s) ? 12 : 0;

	return (uint32_t)(t_sum(s.b + from, 16 - from, 0) + t_sum(d.b + from, 16 - from, 0) +
			  proto + len);
}

static inline const char *
src_of(const struct t_udp *u)
{
	return u->src != NULL ? u->src : u->v6 ? "2001:db8::1" : "198.18.0.1";
}

static inline const char *
dst_of(const struct t_udp *u)
{
	return u->dst != NULL ? u->dst : u->v6 ? "2001:db8::2" : "198.18.0.2";
}

/** Offset of the IP header of a frame made here. */
static inline size_t
t_l3(const struct t_udp *u)
{
	return 14u + (u->vlan != 0 ? 4u : 0u) + (u->svlan != 0 ? 4u : 0u);
}

static inline void
t_fix_ip4(struct t_frame *f, size_t l3)
{
	put16(f->b + l3 + 10, 0);
	put16(f->b + l3 + 10, (uint16_t)~t_sum(f->b + l3, (f->b[l3] & 0xfu) * 4u, 0));
}

static inline void
put_ip4(struct t_frame *f, const struct t_udp *u, size_t l4_len)
{
	struct sl_addr s = t_addr(src_of(u)), d = t_addr(dst_of(u));
	size_t l3 = f->len;
	uint8_t ip[20] = {0};

	ip[0] = (uint8_t)(0x45 + u->options_len / 4);
	ip[1] = u->tos;
	put16(ip + 2, 20 + u->options_len + l4_len);
	put16(ip + 6, u->frag);
	ip[8] = u->ttl != 0 ? u->ttl : 64;
	ip[9] = u->proto != 0 ? u->proto : IPPROTO_UDP;
	memcpy(ip + 12, s.b + 12, 4);
	memcpy(ip + 16, d.b + 12, 4);
	put(f, ip, sizeof(ip));
	put(f, u->options, u->options_len);
	t_fix_ip4(f, l3);
}

static inline void
put_ip6(struct t_frame *f, const struct t_udp *u, size_t l4_len)
{
	struct sl_addr s = t_addr(src_of(u)), d = t_addr(dst_of(u));
	uint8_t proto = u->proto != 0 ? u->proto : IPPROTO_UDP;
	uint8_t ip[8] = {0};

	put16(ip, 0x6000u | (unsigned int)u->tos << 4);
	put16(ip + 4, u->options_len + l4_len);
	ip[6] = u->options_len != 0 ? u->next : proto;
	ip[7] = u->ttl != 0 ? u->ttl : 64;
	put(f, ip, sizeof(ip));
	put(f, s.b, 16);
	put(f, d.b, 16);
	put(f, u->options, u->options_len);
}

/* Put a tag into a frame that has none; a VLAN of 0: leave it without. */
static inline void
t_tag(struct t_frame *f, uint16_t vlan)
{
	if (vlan == 0)
		return;
	memmove(f->b + 16, f->b + 12, f->len - 12);
	put16(f->b + 12, 0x8100);
	put16(f->b + 14, vlan);
	f->len += 4;
}

/** An IP packet with any transport bytes; l4 checksum is the caller's. Uses u's IP members. */
static inline void
t_ip_frame(struct t_frame *f, const struct t_udp *u, const uint8_t *l4, size_t l4_len)
{
	static const uint8_t zeros[64];

	f->len = 0;
	put(f, u->dst_mac != NULL ? u->dst_mac : t_our_mac, 6);
	put(f, u->src_mac != NULL ? u->src_mac : t_peer_mac, 6);
	if (u->svlan != 0) {
		put_u16(f, 0x88a8);
		put_u16(f, u->svlan);
	}
	if (u->vlan != 0) {
		put_u16(f, 0x8100);
		put_u16(f, u->vlan);
	}
	put_u16(f, u->v6 ? 0x86dd : 0x0800);
	if (u->v6)
		put_ip6(f, u, l4_len);
	else
		put_ip4(f, u, l4_len);
	put(f, l4, l4_len);
	put(f, zeros, u->padding);
}

static inline void
t_udp_frame(struct t_frame *f, const struct t_udp *u)
{
	uint8_t l4[2048];
	size_t len = 8 + u->payload;
	uint16_t sum;

	put16(l4, u->sport != 0 ? u->sport : 4000);
	put16(l4 + 2, u->dport != 0 ? u->dport : 9);
	put16(l4 + 4, u->udp_len != 0 ? (size_t)u->udp_len : len);
	put16(l4 + 6, 0);
	for (size_t i = 0; i < u->payload; i++)
		l4[8 + i] = (uint8_t)(i + 1);
	if (!u->no_csum) {
		sum = (uint16_t)~t_sum(l4, len, t_pseudo(src_of(u), dst_of(u), IPPROTO_UDP, len));
		put16(l4 + 6, sum != 0 ? sum : 0xffff);
	}
	t_ip_frame(f, u, l4, len);
}

static inline void
t_arp_frame(struct t_frame *f, uint16_t op, const uint8_t *eth_dst, const uint8_t *sender_mac,
	const char *sender, const char *target)
{
	static const uint8_t head[] = {0, 1, 8, 0, 6, 4}, zeros[18];
	struct sl_addr s = t_addr(sender), t = t_addr(target);

	f->len = 0;
	put(f, eth_dst, 6);
	put(f, sender_mac, 6);
	put_u16(f, 0x0806);
	put(f, head, sizeof(head));
	put_u16(f, op);
	put(f, sender_mac, 6);
	put(f, s.b + 12, 4);
	put(f, op == 2 ? t_our_mac : zeros, 6);
	put(f, t.b + 12, 4);
	put(f, zeros, sizeof(zeros));
}

/** ICMPv6 message with a right checksum. */
static inline void
t_icmp6_frame(struct t_frame *f, const char *src, const char *dst, const uint8_t *dst_mac,
	uint8_t ttl, const uint8_t *msg, size_t len)
{
	struct t_udp u = {.v6 = true,
		.src = src,
		.dst = dst,
		.dst_mac = dst_mac,
		.ttl = ttl,
		.proto = IPPROTO_ICMPV6};
	uint8_t l4[2048];

	memcpy(l4, msg, len);
	put16(l4 + 2, 0);
	put16(l4 + 2, (uint16_t)~t_sum(l4, len, t_pseudo(src, dst, IPPROTO_ICMPV6, len)));
	t_ip_frame(f, &u, l4, len);
}

static inline void
t_icmp4_frame(struct t_frame *f, const char *src, const char *dst, const uint8_t *msg, size_t len)
{
	struct t_udp u = {.src = src, .dst = dst, .proto = IPPROTO_ICMP};
	uint8_t l4[2048];

	memcpy(l4, msg, len);
	put16(l4 + 2, 0);
	put16(l4 + 2, (uint16_t)~t_sum(l4, len, 0));
	t_ip_frame(f, &u, l4, len);
}

/** Neighbour solicitation or advertisement body in msg (at least 32 bytes); lla NULL for no option.
 * Returns its length. */
static inline size_t
t_nd(uint8_t *msg, uint8_t type, uint8_t flags, const char *target, const uint8_t *lla)
{
	struct sl_addr t = t_addr(target);

	memset(msg, 0, 32);
	msg[0] = type;
	msg[4] = flags;
	memcpy(msg + 8, t.b, 16);
	if (lla == NULL)
		return 24;
	msg[24] = type == 135 ? 1 : 2;
	msg[25] = 1;
	memcpy(msg + 26, lla, 6);
	return 32;
}

#endif
