/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FORWARD_TEST_H
#define FORWARD_TEST_H

/*
 * The load balancer with packets: what leaves, octet by octet, and what becomes of all that enters.
 *
 *     client 198.18.0.1:4000 ---> service 198.18.0.2:9 ---> back ends 198.18.0.11.. :7000..
 */
#include <errno.h>

#include "forward_priv.h"
#include "inet_test.h"
#include "reasm_test.h"

#define BACKENDS 3

static struct daemon f_daemon;
static struct conf f_conf, f_conf6;
static struct forward *f_fwd, *f_fwd6;
static uint16_t f_vlan; /* of the port; 0 for none */

static const uint8_t f_mac[6] = {2, 0, 0, 0, 0, 0x10};

static inline const char *
f_backend(bool v6, unsigned int i)
{
	static const char *const v4s[] = {"198.18.0.11", "198.18.0.12", "198.18.0.13"};
	static const char *const v6s[] = {"2001:db8::11", "2001:db8::12", "2001:db8::13"};

	return v6 ? v6s[i] : v4s[i];
}

static inline void
fill(struct conf *conf, bool v6)
{
	struct conf_service *s = &conf->service[0];

	memset(conf, 0, sizeof(*conf));
	conf->nbackends = BACKENDS;
	conf->nservices = 1;
	for (uint16_t i = 0; i < BACKENDS; i++) {
		snprintf(conf->backend[i].name, CONF_NAME_LEN, "b%u", i);
		conf->backend[i].addr = t_addr(f_backend(v6, i));
		conf->backend[i].udp_port = (uint16_t)(7000 + i);
		conf->backend[i].weight = 1;
		s->forward.backend[i] = i;
	}
	snprintf(s->name, CONF_NAME_LEN, v6 ? "six" : "four");
	s->kind = CONF_FORWARD;
	s->udp_port = 9;
	s->address = t_addr(v6 ? "2001:db8::2" : "198.18.0.2");
	s->forward.nbackends = BACKENDS;
	s->forward.slots = 251;
	s->forward.flows = 64;
	s->forward.idle_ms = 1000;
	s->forward.inserts_per_s = 100000;
}

/* This thread is the worker, too, and control calls wait for workers. */
static inline void
rest(void)
{
	sl_inet_worker_offline(t_inet, 0);
}

static inline int
set_state(struct forward *f, const char *backend, enum balancer_state state)
{
	rest();
	return forward_set_state(f, backend, state);
}

static inline int
apply(const struct conf *conf)
{
	int ret;

	rest();
	ret = forward_prepare(f_fwd, conf, &conf->service[0]);
	if (ret == 0)
		forward_commit(f_fwd);
	return ret;
}

static inline void
publish(void)
{
	struct forward *all[] = {f_fwd, f_fwd6};
	struct sl_inet_claims *claims;

	REQUIRE(forward_claims_make(&f_daemon, all, 2, &claims) == 0);
	rest();
	forward_claims_publish(&f_daemon, claims);
}

/* Everybody on the link has the same MAC address, which is known. */
static inline void
know(bool v6, const char *addr)
{
	struct t_frame f;

	if (v6) {
		uint8_t msg[64];
		size_t len = t_nd(msg, 136, 0x60, addr, f_mac);

		t_icmp6_frame(&f, addr, "2001:db8::2", t_our_mac, 255, msg, len);
	} else {
		t_arp_frame(&f, 1, t_our_mac, f_mac, addr, "198.18.0.2");
	}
	t_tag(&f, f_vlan);
	t_feed(f.b, f.len);
}

/* Packets for it have gone out once, so that IPv6's answer finds a question. */
static inline void
ask(bool v6, const char *addr)
{
	struct sl_addr dst = t_addr(addr);
	struct sl_inet_way way;
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);

	REQUIRE(m != NULL && sl_inet_way_find(t_inet, 0, &dst, &way) == 0);
	rte_pktmbuf_append(m, v6 ? 40 : 20);
	sl_inet_way_output(t_inet, 0, &way, m);
	know(v6, addr);
}

static inline void
f_open(void)
{
	t_open(&(struct sl_inet_port_conf){.vlan = f_vlan});
	memset(&f_daemon, 0, sizeof(f_daemon));
	f_daemon.inet = t_inet;
	f_daemon.pool = t_pool;
	f_daemon.nworkers = 2;
	fill(&f_conf, false);
	fill(&f_conf6, true);
	REQUIRE(forward_open(&f_daemon, &f_conf, &f_conf.service[0], &f_fwd) == 0);
	REQUIRE(forward_open(&f_daemon, &f_conf6, &f_conf6.service[0], &f_fwd6) == 0);
	publish();
	for (int v6 = 0; v6 < 2; v6++) {
		for (unsigned int i = 0; i < BACKENDS; i++)
			ask(v6, f_backend(v6, i));
		ask(v6, v6 ? "2001:db8::1" : "198.18.0.1");
	}
	t_flush();
	t_drop_out();
}

static inline uint64_t
outcome(enum service_outcome what)
{
	uint64_t sums[SERVICE_OUTCOMES] = {0};

	forward_outcomes(f_fwd, sums);
	forward_outcomes(f_fwd6, sums);
	return sums[what];
}

/* All that was claimed has an outcome of the services'. */
static inline void
f_check(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		sum += outcome((enum service_outcome)i);
	CHECK_EQ(sum, forward_entered(f_fwd) + forward_entered(f_fwd6));
	CHECK_EQ(sum, t_count(SL_RX_CLAIMED));
}

static inline void
f_close(void)
{
	f_check();
	rest();
	forward_claims_publish(&f_daemon, NULL);
	forward_close(&f_daemon, f_fwd);
	forward_close(&f_daemon, f_fwd6);
	CHECK_EQ(f_daemon.gone_claimed, t_count(SL_RX_CLAIMED));
	t_close();
}

static inline uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Which back end a packet that was sent goes to; -1: none of them. */
static inline int
backend_of(const uint8_t *frame, bool v6)
{
	for (unsigned int i = 0; i < BACKENDS; i++) {
		struct sl_addr a = t_addr(f_backend(v6, i));

		if (memcmp(frame + (v6 ? 38 : 30), a.b + (v6 ? 0 : 12), v6 ? 16 : 4) == 0)
			return (int)i;
	}
	return -1;
}

/* Checksums of a UDP packet are right; one that is zero is not there. */
static inline void
check_sums(const uint8_t *frame, size_t len, bool v6, const char *src, const char *dst)
{
	size_t hdr = 14 + (v6 ? 40u : (frame[14] & 15u) * 4u), l4 = len - hdr;
	const uint8_t *udp = frame + hdr;

	if (!v6)
		CHECK_EQ(t_sum(frame + 14, hdr - 14, 0), 0xffff);
	if (get16(udp + 6) != 0)
		CHECK_EQ(t_sum(udp, l4, t_pseudo(src, dst, IPPROTO_UDP, l4)), 0xffff);
}

/* The one packet that was sent is that of in, from src:sport to dst:dport, with a hop less. */
static inline void
check_out(const struct t_frame *in, const struct t_udp *u, const char *src, uint16_t sport,
	const char *dst, uint16_t dport)
{
	size_t len, hdr = (u->v6 ? 40u : 20u) + u->options_len;
	struct sl_addr s = t_addr(src), d = t_addr(dst);
	const uint8_t *p, *ip;

	t_flush();
	REQUIRE(t_outs == 1);
	REQUIRE(rte_pktmbuf_pkt_len(t_out[0]) == in->len - u->padding);
	p = t_out_data(0, &len);
	ip = p + 14;
	CHECK(memcmp(p, f_mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
	CHECK(memcmp(ip + (u->v6 ? 8 : 12), s.b + (u->v6 ? 0 : 12), u->v6 ? 16 : 4) == 0);
	CHECK(memcmp(ip + (u->v6 ? 24 : 16), d.b + (u->v6 ? 0 : 12), u->v6 ? 16 : 4) == 0);
	CHECK_EQ(ip[u->v6 ? 7 : 8], in->b[14 + (u->v6 ? 7 : 8)] - 1);
	CHECK_EQ(get16(ip + hdr), sport);
	CHECK_EQ(get16(ip + hdr + 2), dport);
	CHECK_EQ(get16(ip + hdr + 6) == 0, u->no_csum);
	CHECK(memcmp(ip + hdr + 8, in->b + 14 + hdr + 8, len - 14 - hdr - 8) == 0);
	check_sums(p, len, u->v6, src, dst);
}

#endif
