/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The exception path: what is offered to a port's taker, what is shown to it, and what is neither.
 */
#include <errno.h>

#include "reasm_test.h"
#include "sl_inet_punt.h"
#include "sl_inet_table.h"

#define T_VLAN 7

/* What the taker got last, joined. */
static struct {
	unsigned int taken, shown;
	bool refuse;
	uint8_t b[70000];
	size_t len;
	uint16_t l2_len, port;
	uint64_t flags;
} p_got;

static void
p_copy(const struct sl_inet_frame *f)
{
	uint32_t off = f->off, len = f->len;

	CHECK(f->head_len >= f->l2_len && f->head_len <= 128 && f->l2_len >= 14);
	memcpy(p_got.b, f->head, f->head_len);
	p_got.len = f->head_len;
	for (const struct rte_mbuf *m = f->m; m != NULL && len > 0; m = m->next) {
		uint32_t skip = RTE_MIN(off, (uint32_t)m->data_len);
		uint32_t part = RTE_MIN(len, m->data_len - skip);

		memcpy(p_got.b + p_got.len, rte_pktmbuf_mtod_offset(m, char *, skip), part);
		p_got.len += part;
		off -= skip;
		len -= part;
	}
	CHECK_EQ(len, 0);
	p_got.l2_len = f->l2_len;
	p_got.port = f->port;
	p_got.flags = f->m->ol_flags;
}

static bool
p_take(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	CHECK(arg == &p_got && worker == 0);
	p_got.taken++;
	p_copy(f);
	return !p_got.refuse;
}

static void
p_show(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	CHECK(arg == &p_got && worker == 0);
	p_got.shown++;
	p_copy(f);
}

static const struct sl_inet_punt_ops p_ops = {.take = p_take, .show = p_show};

static void
p_open(const struct sl_inet_port_conf *conf)
{
	memset(&p_got, 0, sizeof(p_got));
	t_open(conf);
	REQUIRE(sl_inet_punt_set(t_inet, t_port, &p_ops, &p_got) == 0);
}

/* Fed, it becomes `outcome`, and the taker was offered or shown it (0 and 1, or 1 and 0), as it is.
 */
static void
p_check_mbuf(const char *name, const struct t_frame *f, struct rte_mbuf *m, int outcome,
	unsigned int taken, unsigned int shown)
{
	int got;

	p_got.taken = p_got.shown = 0;
	got = t_feed_mbuf(m);
	if (got != outcome || p_got.taken != taken || p_got.shown != shown)
		fprintf(stderr, "%s: outcome %d for %d, taken %u, shown %u\n", name, got, outcome,
			p_got.taken, p_got.shown);
	CHECK_EQ(got, outcome);
	CHECK_EQ(p_got.taken, taken);
	CHECK_EQ(p_got.shown, shown);
	if (taken + shown > 0)
		CHECK(p_got.len == f->len && memcmp(p_got.b, f->b, f->len) == 0);
}

static void
p_check(const char *name, const struct t_frame *f, int outcome, unsigned int taken,
	unsigned int shown)
{
	p_check_mbuf(name, f, t_mbuf(f->b, f->len), outcome, taken, shown);
	/* In two pieces, of which the first ends in the headers, or behind what is copied of them.
	 */
	p_check_mbuf(name, f, t_mbuf_split(f->b, f->len, 20), outcome, taken, shown);
	if (f->len > 140)
		p_check_mbuf(name, f, t_mbuf_split(f->b, f->len, 135), outcome, taken, shown);
}

static void
unclaimed_is_offered(void)
{
	static const uint8_t group4[6] = {1, 0, 0x5e, 0, 0, 5}, other[6] = {2, 0, 0, 0, 0, 9};
	uint8_t l4[400] = {0x12, 0x34, 0, 179};
	struct t_frame f;

	p_open(NULL);
	for (int v6 = 0; v6 < 2; v6++) {
		struct t_udp tcp = {.v6 = v6, .proto = IPPROTO_TCP};
		struct t_udp away = {.v6 = v6, .dst = v6 ? "2001:db8::77" : "198.18.0.77"};
		struct t_udp group = {.v6 = v6,
			.proto = 89,
			.dst = v6 ? "ff02::5" : "224.0.0.5",
			.dst_mac = group4};

		t_ip_frame(&f, &tcp, l4, 20);
		p_check("tcp", &f, SL_RX_PUNTED, 1, 0);
		t_ip_frame(&f, &tcp, l4, sizeof(l4));
		p_check("long tcp", &f, SL_RX_PUNTED, 1, 0);
		t_udp_frame(&f, &away);
		p_check("another address", &f, SL_RX_PUNTED, 1, 0);
		t_ip_frame(&f, &group, l4, 44);
		p_check("ospf", &f, SL_RX_PUNTED, 1, 0);
	}
	memcpy(f.b, t_our_mac, 6);
	put16(f.b + 12, 0x88cc);
	p_check("another ethertype", &f, SL_RX_PUNTED, 1, 0);
	memcpy(f.b, other, 6);
	p_check("another host", &f, SL_RX_ETH_OTHERHOST, 0, 0);
	t_udp_frame(&f, &(struct t_udp){.src = "0.0.0.0",
				.dst = "255.255.255.255",
				.dst_mac = t_any_mac,
				.sport = 68,
				.dport = 67,
				.payload = 300});
	p_check("dhcp", &f, SL_RX_PUNTED, 1, 0);
	CHECK_EQ(t_outs, 0);
	t_close();
}

/* What only has to be cut off is: padding behind the packet. */
static void
padding_is_left_out(void)
{
	struct t_udp u = {.proto = IPPROTO_TCP, .padding = 6};
	uint8_t l4[20] = {0};
	struct t_frame f;

	p_open(NULL);
	t_ip_frame(&f, &u, l4, sizeof(l4));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_PUNTED);
	CHECK_EQ(p_got.len, f.len - 6);
	t_close();
}

/* On the fast path and off it; flags of the port stay with the packet. */
static void
datagrams_without_a_socket(void)
{
	static const uint8_t options[8] = {1, 1, 1, 1, 1, 1, 1, 0};
	struct rte_mbuf *m;
	struct t_frame f;

	p_open(NULL);
	for (int v6 = 0; v6 < 2; v6++) {
		struct t_udp u = {.v6 = v6, .payload = 200};

		t_udp_frame(&f, &u);
		t_udp_answer = SL_RX_UDP_QUEUED;
		p_check("with a socket", &f, SL_RX_UDP_QUEUED, 0, 0);
		t_udp_answer = SL_RX_UDP_NO_SOCKET;
		for (int i = 0; i < 2; i++)
			p_check("without a socket", &f, SL_RX_PUNTED, 1, 0);
		t_udp_answer = SL_RX_UDP_RCVBUF;
		p_check("full", &f, SL_RX_UDP_RCVBUF, 0, 0);
		t_udp_answer = SL_RX_UDP_NO_SOCKET;
		m = t_mbuf(f.b, f.len);
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		p_check_mbuf("verified", &f, m, SL_RX_PUNTED, 1, 0);
		CHECK((p_got.flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD);
		f.b[f.len - 1] ^= 1;
		p_check("spoilt", &f, SL_RX_UDP_CSUM, 0, 0);
	}
	t_udp_frame(&f, &(struct t_udp){.payload = 30, .options = options, .options_len = 8});
	p_check("with options", &f, SL_RX_PUNTED, 1, 0);
	t_flush();
	CHECK_EQ(t_outs, 0); /* no error is sent: that is for whoever took it */
	t_drop_in();
	t_close();
}

static void
a_refusal_is_counted(void)
{
	struct t_udp u = {.payload = 20};
	struct t_frame f;

	p_open(NULL);
	p_got.refuse = true;
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	t_udp_frame(&f, &u);
	p_check("refused datagram", &f, SL_RX_PUNT_FAILED, 1, 0);
	u.proto = IPPROTO_TCP;
	t_udp_frame(&f, &u);
	p_check("refused segment", &f, SL_RX_PUNT_FAILED, 1, 0);
	t_flush();
	CHECK_EQ(t_outs, 0);
	t_drop_in();
	t_close();
}

static void
who_answers_arp(void)
{
	struct t_frame f;

	p_open(NULL);
	t_arp_frame(&f, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	p_check("for us", &f, SL_RX_ARP, 0, 0);
	t_flush();
	CHECK(t_outs > 0); /* answered here */
	t_drop_out();
	t_arp_frame(&f, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.9");
	p_check("for another", &f, SL_RX_ARP, 0, 1);
	t_arp_frame(&f, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.1");
	p_check("announcement", &f, SL_RX_ARP, 0, 1);
	t_arp_frame(&f, 2, t_our_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	p_check("reply", &f, SL_RX_ARP, 0, 1);
	put16(f.b + 20, 7);
	p_check("malformed", &f, SL_RX_ARP_BAD, 0, 0);
	t_flush();
	CHECK_EQ(t_outs, 0);
	t_close();
}

static void
who_answers_nd(void)
{
	uint8_t msg[32], ra[16] = {134};
	struct t_frame f;
	size_t len;

	p_open(NULL);
	len = t_nd(msg, 135, 0, "2001:db8::2", t_peer_mac);
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 255, msg, len);
	p_check("solicitation for us", &f, SL_RX_ND, 0, 0);
	t_flush();
	CHECK(t_outs > 0);
	t_drop_out();
	len = t_nd(msg, 136, 0x60, "2001:db8::1", t_peer_mac);
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 255, msg, len);
	p_check("advertisement", &f, SL_RX_ND, 0, 1);
	t_icmp6_frame(&f, "fe80::1", "ff02::1", (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}, 255, ra,
		sizeof(ra));
	p_check("router", &f, SL_RX_PUNTED, 1, 0);
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 64, msg, len);
	p_check("from off the link", &f, SL_RX_ND_BAD, 0, 0);
	t_close();
}

static void
who_answers_icmp(void)
{
	uint8_t echo[64] = {8, 0, 0, 0, 0, 1}, quote[8 + 28] = {3, 3};
	struct sl_addr ours = t_addr("198.18.0.2"), peer = t_addr("198.18.0.1");
	struct t_frame f;

	p_open(NULL);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", echo, sizeof(echo));
	p_check("ping", &f, SL_RX_ECHO, 0, 0);
	echo[0] = 0;
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", echo, sizeof(echo));
	p_check("pong", &f, SL_RX_PUNTED, 1, 0);
	f.b[f.len - 1] ^= 1;
	p_check("spoilt", &f, SL_RX_ICMP_BAD, 0, 0);
	quote[8] = 0x45;
	memcpy(quote + 8 + 12, ours.b + 12, 4);
	memcpy(quote + 8 + 16, peer.b + 12, 4);
	quote[8 + 9] = IPPROTO_UDP;
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", quote, sizeof(quote));
	p_check("error about UDP", &f, SL_RX_ICMP_ERROR, 0, 1);
	CHECK(t_errors > 0);
	quote[8 + 9] = IPPROTO_TCP;
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", quote, sizeof(quote));
	p_check("error about TCP", &f, SL_RX_PUNTED, 1, 0);
	t_close();
}

/* Fragments of what nobody claims come joined. */
static void
fragments_come_joined(void)
{
	p_open(NULL);
	for (int v6 = 0; v6 < 2; v6++) {
		p_got.taken = 0;
		r_fill(v6, IPPROTO_TCP, 5000);
		for (size_t k = 0; k < 4; k++)
			r_nth(70 + (uint32_t)v6, 3 - k, 4);
		CHECK_EQ(p_got.taken, 1);
		CHECK_EQ(p_got.len, 14 + (v6 ? 40u : 20u) + r_len);
		CHECK(memcmp(p_got.b + p_got.len - r_len, r_data, r_len) == 0);
		t_udp_answer = SL_RX_UDP_NO_SOCKET;
		r_udp(v6, 3000);
		for (size_t k = 0; k < 3; k++)
			r_nth(80 + (uint32_t)v6, k, 3);
		CHECK_EQ(p_got.taken, 2);
		CHECK_EQ(p_got.len, 14 + (v6 ? 40u : 20u) + r_len);
		CHECK(memcmp(p_got.b + p_got.len - r_len, r_data, r_len) == 0);
		if (!v6) /* a header of a datagram, not of a fragment */
			CHECK(t_sum(p_got.b + 14, 20, 0) == 0xffff && p_got.b[20] == 0 &&
				p_got.b[21] == 0);
	}
	CHECK_EQ(t_count(SL_RX_PUNTED), 4);
	CHECK_EQ(r_held(), 0);
	t_drop_in();
	t_close();
}

/* A port has a taker of its own; frames have the tags that they came with. */
static void
each_port_its_taker(void)
{
	struct sl_inet_port_conf conf = {.port_id = t_port, .pool = t_pool, .vlan = T_VLAN};
	struct t_udp u = {.proto = IPPROTO_TCP, .payload = 40};
	struct sl_addr a = t_addr("198.18.7.2");
	struct t_frame f;
	uint16_t handle;

	p_open(NULL);
	REQUIRE(sl_inet_port_add(t_inet, &conf) == 0);
	REQUIRE(sl_inet_port_find(t_inet, t_port, 0, T_VLAN, &handle) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, handle, &a, 24) == 0);
	t_flush();
	t_drop_out();
	u.vlan = T_VLAN;
	u.dst = "198.18.7.2";
	u.src = "198.18.7.1";
	t_udp_frame(&f, &u);
	p_check("no taker", &f, SL_RX_IP_PROTO, 0, 0);
	t_flush();
	CHECK(t_outs > 0); /* protocol unreachable */
	t_drop_out();
	CHECK_EQ(sl_inet_punt_set(t_inet, handle, &p_ops, &p_got), 0);
	p_check("its taker", &f, SL_RX_PUNTED, 1, 0);
	CHECK(p_got.port == handle && p_got.l2_len == 18);
	sl_inet_worker_offline(t_inet, 0); /* it waits for those that are online */
	CHECK_EQ(sl_inet_punt_set(t_inet, handle, NULL, NULL), 0);
	p_check("taken away", &f, SL_RX_IP_PROTO, 0, 0);
	CHECK_EQ(sl_inet_punt_set(t_inet, 77, &p_ops, &p_got), -ENODEV);
	t_drop_out();
	t_close();
}

/* What the other stack sends leaves with the tags of the port, and counts as sent. */
static void
frames_leave_as_they_are(void)
{
	struct sl_inet_port_conf conf = {.vlan = T_VLAN, .svlan = 9};
	struct t_udp u = {.payload = 40};
	const uint8_t *p;
	struct t_frame f;
	uint64_t sent;
	size_t len;

	t_udp_frame(&f, &u);
	p_open(NULL);
	sent = t_count(SL_TX_SENT);
	sl_inet_frame_output(t_inet, 0, t_port, t_mbuf(f.b, f.len));
	t_flush();
	p = t_out_data(0, &len);
	CHECK(len == f.len && memcmp(p, f.b, len) == 0);
	CHECK_EQ(t_count(SL_TX_SENT), sent + 1);
	t_close();
	p_open(&conf);
	sl_inet_frame_output(t_inet, 0, t_port, t_mbuf(f.b, f.len));
	t_flush();
	p = t_out_data(0, &len);
	CHECK(len == f.len + 8 && memcmp(p, f.b, 12) == 0);
	CHECK(memcmp(p + 12, (const uint8_t[]){0x88, 0xa8, 0, 9, 0x81, 0, 0, T_VLAN}, 8) == 0);
	CHECK(memcmp(p + 20, f.b + 12, f.len - 12) == 0);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(unclaimed_is_offered);
	SL_TEST_RUN(padding_is_left_out);
	SL_TEST_RUN(datagrams_without_a_socket);
	SL_TEST_RUN(a_refusal_is_counted);
	SL_TEST_RUN(who_answers_arp);
	SL_TEST_RUN(who_answers_nd);
	SL_TEST_RUN(who_answers_icmp);
	SL_TEST_RUN(fragments_come_joined);
	SL_TEST_RUN(each_port_its_taker);
	SL_TEST_RUN(frames_leave_as_they_are);
	return test_end();
}
