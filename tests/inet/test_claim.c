/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Claims: what is handed over whole, with what is said of it, and what goes its usual way. */
#include "claim_test.h"

/* The packet i is u's frame f, taken for what it is. */
static void
check_claimed(unsigned int i, const struct t_udp *u, const struct t_frame *f, uint8_t kind)
{
	const struct sl_inet_claimed *c = &c_got[i];
	struct sl_addr s = t_addr(src_of(u)), d = t_addr(dst_of(u));
	size_t hdr = (u->v6 ? 40u : 20u) + u->options_len;
	uint8_t all[4096];

	REQUIRE(i < c_n);
	CHECK_EQ(c->kind, kind);
	CHECK_EQ(c->v4, !u->v6);
	CHECK_EQ(c->l2_len, t_l3(u));
	CHECK_EQ(c->l4_off, t_l3(u) + hdr);
	CHECK_EQ(c->end, f->len - u->padding);
	CHECK_EQ(c->sport, rte_cpu_to_be_16(u->sport != 0 ? u->sport : 4000));
	CHECK_EQ(c->dport, rte_cpu_to_be_16(u->dport != 0 ? u->dport : 9));
	CHECK(memcmp(&c->src, &s, 16) == 0 && memcmp(&c->dst, &d, 16) == 0);
	CHECK(c->head_len >= c->l4_off + (c->later ? 0u : 8u));
	CHECK(memcmp(c_head[i], f->b, RTE_MIN(c->head_len, f->len)) == 0);
	REQUIRE(rte_pktmbuf_pkt_len(c->m) == f->len);
	CHECK(memcmp(rte_pktmbuf_read(c->m, 0, (uint32_t)f->len, all), f->b, f->len) == 0);
}

/* In one segment, and cut at every offset; with and without what keeps it from being plain. */
static void
datagrams(void)
{
	static const uint8_t nops[4] = {1, 1, 1, 1}, pad[8] = {17, 0, 1, 4, 0, 0, 0, 0};
	static const struct t_udp cases[] = {
		{.payload = 18},
		{.payload = 0},
		{.payload = 1400},
		{.payload = 3, .padding = 15},
		{.payload = 18, .no_csum = true},
		{.payload = 18, .options = nops, .options_len = 4},
		{.v6 = true, .payload = 18},
		{.v6 = true, .payload = 0},
		{.v6 = true, .payload = 1300},
		{.v6 = true, .payload = 18, .options = pad, .options_len = 8, .next = 60},
	};
	struct t_frame f;

	c_open();
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct t_udp u = cases[i], back = u;

		t_udp_frame(&f, &u);
		for (size_t cut = 0; cut < RTE_MIN(f.len, 100u); cut++) {
			CHECK_EQ(t_feed_mbuf(cut == 0 ? t_mbuf(f.b, f.len)
						      : t_mbuf_split(f.b, f.len, cut)),
				SL_RX_CLAIMED);
			check_claimed(0, &u, &f, SL_CLAIMED_TO);
			CHECK(c_got[0].owner == &c_head[9] && c_got[0].follow == NULL);
			c_drop();
		}
		/* An answer to somebody elsewhere. */
		back.dst = u.v6 ? "2001:db8:9::7" : "203.0.113.7";
		back.dport = 5000;
		t_udp_frame(&f, &back);
		if (u.v6 && u.options_len > 0) {
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
			continue;
		}
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_claimed(0, &back, &f, SL_CLAIMED_FROM);
		CHECK(c_got[0].owner == &c_head[0]);
		c_drop();
	}
	c_close();
}

/* What no claim names. */
static void
others(void)
{
	static const struct {
		struct t_udp u;
		int outcome;
	} cases[] = {
		{{.dport = 10}, SL_RX_UDP_QUEUED},
		{{.v6 = true, .dport = 10}, SL_RX_UDP_QUEUED},
		{{.dport = 10, .dst = "198.18.0.3", .sport = 4001}, SL_RX_IP_NOT_LOCAL},
		{{.dst = "198.18.0.3", .sport = 4001}, SL_RX_IP_NOT_LOCAL},
		{{.dst = "198.18.0.3", .src = "198.18.0.7"}, SL_RX_IP_NOT_LOCAL},
		{{.dst = "198.18.0.255"}, SL_RX_UDP_QUEUED},
		{{.dst = "198.18.0.2", .dst_mac = t_peer_mac}, SL_RX_ETH_OTHERHOST},
		{{.vlan = 5}, SL_RX_VLAN_OTHER},
		{{.v6 = true, .dst = "fe80::7"}, SL_RX_IP_NOT_LOCAL},
		/* Of IPv6, to ::ffff:198.18.0.2 and so on. */
		{{.v6 = true, .dst = "198.18.0.2"}, SL_RX_IP_NOT_LOCAL},
		{{.v6 = true, .dst = "203.0.113.7"}, SL_RX_IP_NOT_LOCAL},
		{{.v6 = true, .dst = "198.18.0.2", .dport = 10}, SL_RX_IP_NOT_LOCAL},
		{{.dst = "224.0.0.9"}, SL_RX_IP_NOT_LOCAL},
		{{.src = "224.0.0.9"}, SL_RX_IP_SOURCE},
		{{.src = "127.0.0.1"}, SL_RX_IP_SOURCE},
		{{.src = "198.18.0.255"}, SL_RX_IP_SOURCE},
		{{.src = "198.18.0.2"}, SL_RX_IP_SOURCE},
		{{.v6 = true, .src = "2001:db8::2"}, SL_RX_IP_SOURCE},
		{{.v6 = true, .no_csum = true}, SL_RX_UDP_CSUM_ZERO6},
		{{.udp_len = 4}, SL_RX_UDP_LENGTH},
		{{.udp_len = 900}, SL_RX_UDP_LENGTH},
	};
	struct t_frame f;

	c_open();
	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		t_udp_frame(&f, &cases[i].u);
		CHECK_EQ(t_feed(f.b, f.len), cases[i].outcome);
		CHECK_EQ(c_n, 0);
	}
	t_udp_frame(&f, &(struct t_udp){.payload = 18});
	f.b[24] ^= 1;
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_CSUM);
	/* A wrong UDP checksum is for who receives it in the end, unless hardware has found it. */
	t_udp_frame(&f, &(struct t_udp){.payload = 18});
	f.b[45] ^= 1;
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
	for (size_t len = 14; len < 42; len++)
		CHECK(t_feed(f.b, len) != SL_RX_CLAIMED);
	struct rte_mbuf *m = t_mbuf(f.b, f.len);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_BAD;
	CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_CSUM);
	c_close();
}

/* Claimed and others in one burst, and more than a burst of fragments that were waiting. */
static void
bursts(void)
{
	struct rte_mbuf *pkts[SL_INET_BURST];
	struct t_frame f;

	c_open();
	for (uint16_t i = 0; i < SL_INET_BURST; i++) {
		static const uint8_t nops[4] = {1, 1, 1, 1};
		struct t_udp u = {.dport = i % 3 == 0 ? 10 : 9,
			.payload = i,
			.options = nops,
			.options_len = i % 5 == 0 ? 4 : 0};

		t_udp_frame(&f, &u);
		pkts[i] = t_mbuf(f.b, f.len);
	}
	sl_inet_input_burst(t_inet, 0, t_port, pkts, SL_INET_BURST);
	CHECK_EQ(c_n, 42);
	CHECK_EQ(t_ins, 22);
	CHECK_EQ(t_count(SL_RX_CLAIMED), 42);
	t_check_sums();
	c_close();
}

static void
orders(bool v6)
{
	static const uint8_t order[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (uint32_t k = 0; k < SL_COUNT_OF(order); k++) {
		unsigned int first = 0;

		r_udp(v6, 2992);
		for (size_t i = 0; i < 3; i++) {
			r_nth(100 + k, order[k][i], 3);
			if (order[k][i] == 0)
				first = (unsigned int)i;
			CHECK_EQ(c_n, i < first || (first == 0 && order[k][0] != 0) ? 0 : i + 1);
			CHECK_EQ(r_held() + c_n, i + 1);
		}
		REQUIRE(c_n == 3);
		CHECK(!c_got[0].later && c_got[1].later && c_got[2].later);
		for (size_t i = 0; i < 3; i++) {
			CHECK_EQ(c_got[i].kind, SL_CLAIMED_TO);
			CHECK_EQ(c_got[i].sport, rte_cpu_to_be_16(4000));
			CHECK_EQ(c_got[i].dport, rte_cpu_to_be_16(9));
			CHECK_EQ(c_got[i].l4_off, v6 ? 14 + 40 + 8 : 14 + 20);
			/* Word of the first one, once it is through. */
			CHECK(c_got[i].follow == c_got[0].follow && c_got[i].follow != NULL);
		}
		c_drop();
	}
}

static void
fragments(void)
{
	c_open();
	orders(false);
	orders(true);
	CHECK_EQ(t_count(SL_RX_CLAIMED), 36);
	/* Another one whose first has been, and one that follows later finds its word. */
	r_udp(false, 2992);
	r_nth(7, 0, 3);
	r_nth(7, 1, 3);
	CHECK_EQ(c_follow[1], 77);
	c_close();
}

/* Those of a socket of the same address: reassembled in every order, as without claims. */
static void
fragments_of_sockets(void)
{
	struct sl_inet_claim claim = c_claim(SL_CLAIM_TO, "198.18.0.2", 10);

	for (size_t k = 0; k < 3; k++) {
		t_open(NULL);
		c_set(&claim, 1);
		r_udp(false, 2992);
		for (size_t i = 0; i < 3; i++)
			r_nth(5, (k + i) % 3, 3);
		CHECK_EQ(c_n, 0);
		CHECK_EQ(r_held(), 0);
		r_check_udp();
		c_close();
	}
}

/* What waits in vain ends in a drop with a name, and so does what there is no room for. */
static void
bounds(void)
{
	t_frag_packets = 16;
	t_frag_timeout_ms = 100;
	c_open();
	r_udp(false, 2992);
	r_nth(1, 1, 3);
	r_nth(1, 2, 3);
	CHECK_EQ(r_held(), 2);
	t_pass(101 * T_MS);
	CHECK_EQ(r_held(), 0);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_TIMEOUT), 2);
	for (uint32_t id = 0; id < 40; id++)
		r_nth(id, 1, 3);
	CHECK_EQ(r_held(), 16);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 24);
	/* The newest are there. */
	r_nth(39, 0, 3);
	CHECK_EQ(c_n, 2);
	c_drop();
	/* Also first ones push out the oldest. */
	for (uint32_t id = 100; id < 140; id++)
		r_nth(id, 0, 3);
	CHECK_EQ(r_held(), 0);
	CHECK_EQ(c_n, 40);
	/* Too many of one datagram, and none that can be. */
	c_drop();
	r_part(200, 13, 8, true);
	c_close();
	t_frag_packets = 0;
	t_frag_timeout_ms = 0;
}

/* An ICMP error of either family from `from` to `to` that quotes len bytes of a UDP frame. */
static void
icmp_frame(
	struct t_frame *f, const struct t_udp *quoted, const char *from, const char *to, size_t len)
{
	uint8_t msg[600] = {quoted->v6 ? 1 : 3, quoted->v6 ? 4 : 3};
	struct t_udp u = {.v6 = quoted->v6,
		.src = from,
		.dst = to,
		.proto = quoted->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP};
	struct t_frame q;
	size_t at;

	t_udp_frame(&q, quoted);
	memcpy(msg + 8, q.b + 14, len);
	at = 8 + len;
	put16(msg + 2,
		(uint16_t)~t_sum(msg, at, u.v6 ? t_pseudo(from, to, IPPROTO_ICMPV6, at) : 0));
	t_ip_frame(f, &u, msg, at);
}

static void
errors(void)
{
	struct t_frame f;

	c_open();
	for (int v6 = 0; v6 < 2; v6++) {
		const char *client = v6 ? "2001:db8:9::7" : "203.0.113.7";
		const char *us = v6 ? "2001:db8::2" : "198.18.0.2";
		const char *backend = v6 ? "2001:db8::1" : "198.18.0.1";
		size_t hdr = v6 ? 40 : 20;
		/* What we sent on, and what we sent back. */
		struct t_udp on = {.v6 = v6,
			.src = client,
			.dst = backend,
			.sport = 5000,
			.dport = 4000,
			.payload = 100};
		struct t_udp back = {.v6 = v6,
			.src = us,
			.dst = client,
			.sport = 9,
			.dport = 5000,
			.payload = 100};
		struct t_udp probe = {
			.v6 = v6, .src = us, .dst = backend, .sport = 6000, .dport = 4000};

		icmp_frame(&f, &on, backend, client, hdr + 8);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		REQUIRE(c_n == 1);
		CHECK_EQ(c_got[0].kind, SL_CLAIMED_ERROR_FROM);
		CHECK_EQ(c_got[0].sport, rte_cpu_to_be_16(5000));
		CHECK_EQ(c_got[0].dport, rte_cpu_to_be_16(4000));
		CHECK_EQ(c_got[0].quote_off, 14 + hdr + 8);
		CHECK_EQ(c_got[0].quote_l4, 14 + hdr + 8 + hdr);
		c_drop();
		icmp_frame(&f, &back, v6 ? "2001:db8:9::1" : "203.0.113.1", us, hdr + 108);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		CHECK_EQ(c_got[0].kind, SL_CLAIMED_ERROR_TO);
		c_drop();
		/* About a datagram of a socket of ours. */
		icmp_frame(&f, &probe, backend, us, hdr + 8);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_ERROR);
		/* Not enough of it, not to whom it quotes, a wrong sum. */
		icmp_frame(&f, &on, backend, client, hdr + 7);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
		icmp_frame(&f, &on, backend, v6 ? "2001:db8:9::8" : "203.0.113.8", hdr + 8);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
		icmp_frame(&f, &on, backend, client, hdr + 8);
		f.b[f.len - 1] ^= 1;
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
		CHECK_EQ(c_n, 0);
		CHECK_EQ(t_errors, v6 + 1);
	}
	c_close();
}

/* Ports of ours that a claim has, as destinations of answers and in errors. */
static void
own_ports(void)
{
	struct sl_inet_claim claim = c_claim(SL_CLAIM_FROM, "198.18.0.1", 4000);
	struct t_udp on = {.src = "198.18.0.2", .dst = "198.18.0.1", .sport = 20001, .dport = 4000};
	struct t_frame f;

	claim.own_first = 20000;
	claim.own_last = 20009;
	t_open(NULL);
	c_set(&claim, 1);
	for (uint16_t port = 19998; port < 20013; port++) {
		bool ours = port >= 20000 && port <= 20009;

		t_udp_frame(&f, &(struct t_udp){.dport = port});
		CHECK_EQ(t_feed(f.b, f.len), ours ? SL_RX_CLAIMED : SL_RX_UDP_QUEUED);
		on.sport = port;
		icmp_frame(&f, &on, "198.18.0.1", "198.18.0.2", 28);
		CHECK_EQ(t_feed(f.b, f.len), ours ? SL_RX_CLAIMED : SL_RX_ICMP_ERROR);
	}
	CHECK_EQ(c_n, 20);
	c_close();
}

/* Sets replace each other, and what was remembered with them. */
static void
sets(void)
{
	struct sl_inet_claim a = c_claim(SL_CLAIM_TO, "198.18.0.2", 9), many[2] = {a, a};
	struct sl_inet_claims *set = NULL;
	struct t_frame f;

	t_open(NULL);
	t_udp_frame(&f, &(struct t_udp){.payload = 18});
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	c_set(&a, 1);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
	a.owner = &c_arg;
	c_set(&a, 1);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
	CHECK(c_n == 2 && c_got[0].owner == &c_head[9] && c_got[1].owner == &c_arg);
	c_set(NULL, 0);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	sl_inet_claims_destroy(sl_inet_claims_publish(t_inet, NULL));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	CHECK_EQ(sl_inet_claims_create(t_inet, many, 2, &c_ops, NULL, &set), -EEXIST);
	many[1].udp_port = 0;
	CHECK_EQ(sl_inet_claims_create(t_inet, many, 2, &c_ops, NULL, &set), -EINVAL);
	many[1] = c_claim(SL_CLAIM_TO, "224.0.0.1", 9);
	CHECK_EQ(sl_inet_claims_create(t_inet, many, 2, &c_ops, NULL, &set), -EINVAL);
	many[1] = c_claim(SL_CLAIM_FROM, "198.18.0.7", 9);
	many[1].own_first = 2;
	many[1].own_last = 1;
	CHECK_EQ(sl_inet_claims_create(t_inet, many, 2, &c_ops, NULL, &set), -EINVAL);
	CHECK_EQ(sl_inet_claims_create(t_inet, many, SL_INET_CLAIMS_MAX + 1, &c_ops, NULL, &set),
		-ENOSPC);
	CHECK(set == NULL);
	c_close();
}

/* Errors about claimed datagrams, from an address of ours. */
static void
answers(void)
{
	static const uint8_t type4[] = {11, 3, 3, 3}, code4[] = {0, 4, 3, 0},
			     type6[] = {3, 2, 1, 1}, code6[] = {0, 0, 4, 0};
	struct t_frame f;

	c_open();
	for (int k = 0; k < 16; k++) {
		bool v6 = k & 1, back = k & 2;
		enum sl_inet_claim_error why = (enum sl_inet_claim_error)(k >> 2);
		struct t_udp u = {.v6 = v6, .payload = 30};
		size_t hdr = v6 ? 40 : 20, len;
		struct sl_addr us = t_addr(v6 ? "2001:db8::2" : "198.18.0.2");
		const uint8_t *p;

		if (back)
			u.dst = v6 ? "2001:db8:9::7" : "203.0.113.7";
		t_udp_frame(&f, &u);
		REQUIRE(t_feed(f.b, f.len) == SL_RX_CLAIMED);
		c_got[0].head = c_head[0];
		sl_inet_claim_answer(t_inet, 0, &c_got[0], why, 1400);
		t_flush();
		REQUIRE(t_outs == 1);
		p = t_out_data(0, &len) + 14;
		CHECK(memcmp(p + (v6 ? 8 : 12), us.b + (v6 ? 0 : 12), v6 ? 16 : 4) == 0);
		CHECK_EQ(p[hdr], v6 ? type6[why] : type4[why]);
		CHECK_EQ(p[hdr + 1], v6 ? code6[why] : code4[why]);
		CHECK_EQ(p[hdr + 6] << 8 | p[hdr + 7], 1400);
		CHECK(memcmp(p + hdr + 8, f.b + 14, f.len - 14) == 0);
		t_drop_out();
		c_drop();
	}
	c_close();
}

/* Packets of ours that are finished but for the link header, and perhaps the sum. */
static void
ways(void)
{
	struct sl_addr peer = t_addr("198.18.0.1"), far = t_addr("203.0.113.7"),
		       group = t_addr("224.0.0.9");
	struct sl_inet_way way;
	struct t_frame f, arp;
	size_t len;
	const uint8_t *p;

	c_open();
	CHECK_EQ(sl_inet_way_find(t_inet, 0, &far, &way), -ENETUNREACH);
	CHECK_EQ(sl_inet_way_find(t_inet, 0, &group, &way), -EACCES);
	REQUIRE(sl_inet_way_find(t_inet, 0, &peer, &way) == 0);
	CHECK_EQ(way.mtu, 1500);
	t_arp_frame(&arp, 2, t_our_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	t_udp_frame(&f, &(struct t_udp){.src = "198.18.0.2", .dst = "198.18.0.1", .payload = 33});
	for (int partial = 0; partial < 2; partial++) {
		struct rte_mbuf *m = t_mbuf(f.b + 14, f.len - 14);

		if (partial) {
			m->l3_len = 20;
			m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4;
			put16(rte_pktmbuf_mtod(m, uint8_t *) + 26,
				t_sum(NULL, 0,
					t_pseudo("198.18.0.2", "198.18.0.1", IPPROTO_UDP, 41)));
		}
		sl_inet_way_output(t_inet, 0, &way, m);
		if (!partial) {
			/* It waits for the neighbour. */
			t_flush();
			t_drop_out();
			CHECK_EQ(t_feed(arp.b, arp.len), SL_RX_ARP);
		}
		t_flush();
		REQUIRE(t_outs == 1);
		p = t_out_data(0, &len);
		CHECK_EQ(len, f.len);
		CHECK(memcmp(p, t_peer_mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
		CHECK(memcmp(p + 12, f.b + 12, len - 12) == 0);
		t_drop_out();
	}
	c_close();
}

/* Frames that the test has made itself, with the link header that it was given. */
static void
way_frames(void)
{
	struct sl_addr peer = t_addr("198.18.0.1");
	struct rte_mbuf *m[SL_INET_BURST];
	struct sl_inet_way way;
	struct t_frame f, arp;
	uint64_t sent;
	size_t len;

	c_open();
	REQUIRE(sl_inet_way_find(t_inet, 0, &peer, &way) == 0);
	CHECK(!sl_inet_way_link(t_inet, 0, &way) && way.link_len == 0);
	t_flush();
	CHECK_EQ(t_outs, 0); /* nobody was asked */
	t_arp_frame(&arp, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	CHECK_EQ(t_feed(arp.b, arp.len), SL_RX_ARP);
	t_flush();
	t_drop_out();
	t_udp_frame(
		&f, &(struct t_udp){.src_mac = t_our_mac, .dst_mac = t_peer_mac, .payload = 33});
	for (int again = 0; again < 2; again++) { /* from the table, and from memory */
		CHECK(sl_inet_way_link(t_inet, 0, &way));
		REQUIRE(way.link_len == 14);
		CHECK(memcmp(way.link, f.b, 14) == 0);
	}
	sent = t_count(SL_TX_SENT);
	/* More than a batch of the port holds, in two calls. */
	for (uint16_t n = 40; n <= SL_INET_BURST; n += 24) {
		for (uint16_t i = 0; i < n; i++)
			m[i] = t_mbuf(f.b, f.len);
		sl_inet_way_frames(t_inet, 0, &way, m, n);
	}
	t_flush();
	CHECK_EQ(t_outs, 40 + SL_INET_BURST);
	CHECK_EQ(t_count(SL_TX_SENT), sent + t_outs);
	for (unsigned int i = 0; i < t_outs; i++) {
		const uint8_t *p = t_out_data(i, &len);

		CHECK(len == f.len && memcmp(p, f.b, len) == 0);
	}
	t_drop_out();
	c_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(datagrams);
	SL_TEST_RUN(others);
	SL_TEST_RUN(bursts);
	SL_TEST_RUN(fragments);
	SL_TEST_RUN(fragments_of_sockets);
	SL_TEST_RUN(bounds);
	SL_TEST_RUN(errors);
	SL_TEST_RUN(own_ports);
	SL_TEST_RUN(sets);
	SL_TEST_RUN(answers);
	SL_TEST_RUN(ways);
	SL_TEST_RUN(way_frames);
	return test_end();
}
