/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef REASM_TEST_H
#define REASM_TEST_H

/**
 * @file
 * Transport packets of either family, and any parts of them as fragments.
 */
#include "inet_test.h"

#define R_MORE 1

/* What is cut into fragments. */
static uint8_t r_data[70000];
static size_t r_len;
static bool r_v6;
static uint8_t r_proto;

/* How the fragments are made; cleared by r_udp and r_echo. */
static struct {
	const uint8_t *before; /* IPv4 options, or IPv6 headers in front of the fragment header */
	size_t before_len;
	uint8_t before_kind; /* IPv6: of the first of them */
	uint8_t tos;
	uint16_t vlan;
	bool shared;  /* in memory that somebody else sees too */
	size_t split; /* where the mbuf is cut in two; 0 for not */
	uint16_t worker;
} r_how;

static inline const char *
r_src(void)
{
	return r_v6 ? "2001:db8::1" : "198.18.0.1";
}

static inline const char *
r_dst(void)
{
	return r_v6 ? "2001:db8::2" : "198.18.0.2";
}

static inline void
r_sum(size_t at)
{
	uint32_t start =
		r_v6 || r_proto == IPPROTO_UDP ? t_pseudo(r_src(), r_dst(), r_proto, r_len) : 0;
	uint16_t sum = (uint16_t)~t_sum(r_data, r_len, start);

	put16(r_data + at, sum != 0 ? sum : 0xffff);
}

static inline void
r_fill(bool v6, uint8_t proto, size_t payload)
{
	memset(&r_how, 0, sizeof(r_how));
	memset(r_data, 0, 8);
	r_v6 = v6;
	r_proto = proto;
	r_len = 8 + payload;
	for (size_t i = 0; i < payload; i++)
		r_data[8 + i] = (uint8_t)(i * 7 + i / 251);
}

/** A datagram from port 4000 to port 9. */
static inline void
r_udp(bool v6, size_t payload)
{
	r_fill(v6, IPPROTO_UDP, payload);
	put16(r_data, 4000);
	put16(r_data + 2, 9);
	put16(r_data + 4, r_len);
	r_sum(6);
}

static inline void
r_echo(bool v6, size_t payload)
{
	r_fill(v6, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, payload);
	r_data[0] = v6 ? 128 : 8;
	put16(r_data + 4, 77);
	r_sum(2);
}

static inline void
r_frame(struct t_frame *f, uint32_t id, size_t start, size_t len, bool more)
{
	struct t_udp u = {.v6 = r_v6,
		.proto = r_proto,
		.tos = r_how.tos,
		.vlan = r_how.vlan,
		.options = r_how.before,
		.options_len = r_how.before_len};
	size_t l3 = t_l3(&u);
	uint8_t options[128];

	if (r_v6) {
		uint8_t *h = options + r_how.before_len;

		if (r_how.before_len > 0)
			memcpy(options, r_how.before, r_how.before_len);
		h[0] = r_proto;
		h[1] = 0;
		put16(h + 2, start | (more ? 1u : 0u));
		put16(h + 4, id >> 16);
		put16(h + 6, id);
		u.options = options;
		u.options_len += 8;
		u.next = r_how.before_len > 0 ? r_how.before_kind : 44;
	} else {
		u.frag = (uint16_t)(start / 8 | (more ? 0x2000 : 0));
	}
	t_ip_frame(f, &u, r_data + start, len);
	if (!r_v6) {
		put16(f->b + l3 + 4, id);
		t_fix_ip4(f, l3);
	}
}

static inline struct rte_mbuf *
r_mbuf(const struct t_frame *f)
{
	struct rte_mbuf *m = r_how.split > 0 && r_how.split < f->len
				     ? t_mbuf_split(f->b, f->len, r_how.split)
				     : t_mbuf(f->b, f->len);
	struct rte_mbuf *clone;

	if (!r_how.shared)
		return m;
	clone = rte_pktmbuf_clone(m, t_pool);
	REQUIRE(clone != NULL);
	rte_pktmbuf_free(
		m); /* what is shared lives on in the clone alone, which may not write there */
	return clone;
}

/** Feed bytes start..start+len as a fragment. */
static inline void
r_part(uint32_t id, size_t start, size_t len, bool more)
{
	struct rte_mbuf *m;
	struct t_frame f;

	r_frame(&f, id, start, len, more);
	m = r_mbuf(&f);
	sl_inet_input_burst(t_inet, r_how.worker, t_port, &m, 1);
	t_check_sums();
}

/** Part k of n of about equal size. */
static inline void
r_nth(uint32_t id, size_t k, size_t n)
{
	size_t each = (r_len / n + 7) & ~(size_t)7, start = k * each;

	REQUIRE(start < r_len && (n - 1) * each < r_len);
	r_part(id, start, k + 1 < n ? each : r_len - start, k + 1 < n);
}

static inline uint64_t
r_held(void)
{
	return sl_inet_held(t_inet, SL_INET_NO_WORKER);
}

/** The last datagram that went up is the one in r_data; frees it. */
static inline void
r_check_udp(void)
{
	static uint8_t flat[sizeof(r_data)];
	const struct sl_dgram *d = &t_in[0];
	const uint8_t *p;
	const char *why;

	REQUIRE(t_ins == 1);
	REQUIRE(rte_mbuf_check(d->buf, 1, &why) == 0);
	CHECK_EQ(d->len, r_len - 8);
	CHECK_EQ(rte_pktmbuf_pkt_len((struct rte_mbuf *)d->buf), r_len - 8);
	CHECK_EQ(rte_be_to_cpu_16(d->sport), 4000);
	CHECK_EQ(rte_be_to_cpu_16(d->dport), 9);
	p = rte_pktmbuf_read(d->buf, 0, d->len, flat);
	CHECK(p != NULL && memcmp(p, r_data + 8, d->len) == 0);
	t_drop_in();
}

#endif
