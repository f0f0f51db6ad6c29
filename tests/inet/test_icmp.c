/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* ICMP of both families: echo, errors heard, errors sent, and when none may be sent. */
#include <errno.h>

#include "inet_test.h"

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
make_icmp(struct t_frame *f, bool v6, const uint8_t *msg, size_t len)
{
	if (v6)
		t_icmp6_frame(f, "2001:db8::1", "2001:db8::2", t_our_mac, 64, msg, len);
	else
		t_icmp4_frame(f, "198.18.0.1", "198.18.0.2", msg, len);
}

/* A packet from us to the peer, well formed to its last checksum, with `len` bytes behind IP. */
static const uint8_t *
check_packet(unsigned int i, bool v6, uint8_t proto, size_t len)
{
	const char *ours = v6 ? "2001:db8::2" : "198.18.0.2",
		   *peer = v6 ? "2001:db8::1" : "198.18.0.1";
	size_t hdr = v6 ? 40 : 20, all;
	const uint8_t *p = t_out_data(i, &all), *l4 = p + 14 + hdr;
	struct sl_addr s = t_addr(ours), d = t_addr(peer);

	CHECK_EQ(all, 14 + hdr + len);
	CHECK(memcmp(p, t_peer_mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
	if (v6) {
		CHECK_EQ(p[20], proto);
		CHECK_EQ(get16(p + 18), len);
		CHECK(memcmp(p + 22, s.b, 16) == 0 && memcmp(p + 38, d.b, 16) == 0);
		CHECK_EQ(t_sum(l4, len, t_pseudo(ours, peer, proto, len)), 0xffff);
	} else {
		CHECK_EQ(p[23], proto);
		CHECK_EQ(get16(p + 16), len + 20);
		CHECK_EQ(t_sum(p + 14, 20, 0), 0xffff);
		CHECK(memcmp(p + 26, s.b + 12, 4) == 0 && memcmp(p + 30, d.b + 12, 4) == 0);
		CHECK_EQ(t_sum(l4, len, 0), 0xffff);
	}
	return l4;
}

/* Echo of any size, in one segment or two cut anywhere; the payload comes back. */
static void
echo(void)
{
	uint8_t msg[1480] = {0, 0, 0, 0, 0x12, 0x34, 0, 1};
	struct t_frame f;

	for (size_t i = 8; i < sizeof(msg); i++)
		msg[i] = (uint8_t)(i * 7);
	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		msg[0] = v6 ? 128 : 8;
		for (size_t len = 8; len <= 1460; len += len < 80 ? 1 : 69) {
			make_icmp(&f, v6 != 0, msg, len);
			for (size_t at = 0; at <= f.len; at += len < 80 ? 1 : 200) {
				const uint8_t *l4;

				CHECK_EQ(t_feed_mbuf(t_mbuf_split(f.b, f.len, at)), SL_RX_ECHO);
				t_flush();
				CHECK_EQ(t_outs, 1);
				/* A reply may lie in two segments, as the request did. */
				if (t_outs == 1 && t_out[0]->nb_segs > 1)
					REQUIRE(rte_pktmbuf_linearize(t_out[0]) == 0);
				l4 = check_packet(0, v6 != 0, v6 ? 58 : 1, len);
				CHECK_EQ(l4[0], v6 ? 129 : 0);
				CHECK(memcmp(l4 + 4, msg + 4, len - 4) == 0);
				t_drop_out();
			}
		}
		t_close();
	}
}

static void
echo_that_is_not_answered(void)
{
	static const uint8_t msg[] = {8, 0, 0, 0, 1, 2, 3, 4, 5};
	static const uint8_t reply[] = {0, 0, 0, 0, 1, 2, 3, 4, 5};
	uint8_t icmp[64];
	struct t_frame f;

	t_open(NULL);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.255", msg, sizeof(msg));
	memcpy(f.b, t_any_mac, 6);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", msg, sizeof(msg));
	memcpy(f.b, t_any_mac, 6);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", reply, sizeof(reply));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
	/* Wrong in some way. */
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", msg, sizeof(msg));
	f.b[36] ^= 1;
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", msg, 7);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	memcpy(icmp, msg, sizeof(msg));
	icmp[0] = 128;
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 64, icmp, sizeof(msg));
	f.b[56] ^= 1;
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 64, icmp, 7);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	t_icmp6_frame(&f, "::", "2001:db8::2", t_our_mac, 64, icmp, sizeof(msg));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_SOURCE);
	t_flush();
	CHECK_EQ(t_outs, 0);
	t_close();
}

/* IPv6 answers a ping to all nodes, from an address of its own. */
static void
echo_to_all_nodes(void)
{
	static const uint8_t msg[] = {128, 0, 0, 0, 1, 2, 3, 4, 5};
	struct t_frame f;

	t_open(NULL);
	t_icmp6_frame(&f, "2001:db8::1", "ff02::1", t_any_mac, 64, msg, sizeof(msg));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ECHO);
	t_flush();
	CHECK_EQ(t_outs, 1);
	check_packet(0, true, 58, sizeof(msg));
	t_close();
}

/* The request lies in memory that is not ours to write to: answered all the same. */
static void
echo_from_shared_memory(void)
{
	static const uint8_t msg[] = {8, 0, 0, 0, 1, 2, 3, 4, 5};
	struct rte_mbuf *m, *other;
	uint8_t before[64];
	struct t_frame f;

	t_open(NULL);
	t_icmp4_frame(&f, "198.18.0.1", "198.18.0.2", msg, sizeof(msg));
	m = t_mbuf(f.b, f.len);
	other = rte_pktmbuf_clone(m, t_pool);
	REQUIRE(other != NULL);
	memcpy(before, rte_pktmbuf_mtod(m, void *), f.len);
	CHECK_EQ(t_feed_mbuf(other), SL_RX_ECHO);
	t_flush();
	CHECK_EQ(t_outs, 1);
	check_packet(0, false, 1, sizeof(msg));
	CHECK(memcmp(before, rte_pktmbuf_mtod(m, void *), f.len) == 0);
	rte_pktmbuf_free(m);
	t_close();
}

/* Type and code of an error, and what a socket hears of it. */
struct error_case {
	bool v6;
	uint8_t type, code;
	int error; /* 0: ignored */
	bool hard;
};

static const struct error_case errors[] = {
	{false, 3, 0, -ENETUNREACH, false},
	{false, 3, 1, -EHOSTUNREACH, false},
	{false, 3, 2, -ENOPROTOOPT, true},
	{false, 3, 3, -ECONNREFUSED, true},
	{false, 3, 4, -EMSGSIZE, true},
	{false, 3, 5, -EOPNOTSUPP, false},
	{false, 3, 6, -ENETUNREACH, true},
	{false, 3, 7, -EHOSTDOWN, true},
	{false, 3, 8, -ENONET, true},
	{false, 3, 9, -ENETUNREACH, true},
	{false, 3, 10, -EHOSTUNREACH, true},
	{false, 3, 11, -ENETUNREACH, false},
	{false, 3, 12, -EHOSTUNREACH, false},
	{false, 3, 13, -EHOSTUNREACH, true},
	{false, 3, 14, -EHOSTUNREACH, true},
	{false, 3, 15, -EHOSTUNREACH, true},
	{false, 3, 16, -EHOSTUNREACH, false},
	{false, 11, 0, -EHOSTUNREACH, false},
	{false, 12, 0, -EPROTO, true},
	{false, 4, 0, 0, false}, /* source quench */
	{false, 5, 0, 0, false}, /* redirect */
	{false, 13, 0, 0, false},
	{true, 1, 0, -ENETUNREACH, false},
	{true, 1, 1, -EACCES, true},
	{true, 1, 2, -EHOSTUNREACH, false},
	{true, 1, 3, -EHOSTUNREACH, false},
	{true, 1, 4, -ECONNREFUSED, true},
	{true, 1, 5, -EACCES, true},
	{true, 1, 6, -EACCES, true},
	{true, 1, 7, -EPROTO, true},
	{true, 2, 0, -EMSGSIZE, true},
	{true, 3, 0, -EHOSTUNREACH, false},
	{true, 4, 1, -EPROTO, true},
	{true, 100, 0, 0, false},
	{true, 130, 0, 0, false}, /* MLD */
	{true, 143, 0, 0, false},
};

/* A datagram of ours, quoted: from `len` bytes of it on, the error is of use. */
static size_t
quote(uint8_t *msg, bool v6, const char *src, uint8_t proto, uint16_t frag)
{
	struct t_udp u = {.v6 = v6,
		.src = src,
		.dst = v6 ? "2001:db8::1" : "198.18.0.1",
		.payload = 6,
		.sport = 1000,
		.dport = 2000,
		.ttl = 61,
		.tos = 8,
		.proto = proto,
		.frag = frag};
	struct t_frame f;

	if (src == NULL)
		u.src = v6 ? "2001:db8::2" : "198.18.0.2";
	t_udp_frame(&f, &u);
	memset(msg, 0, 8);
	memcpy(msg + 8, f.b + 14, f.len - 14);
	return 8 + f.len - 14;
}

static void
errors_heard(void)
{
	struct t_frame f;
	uint8_t msg[256];

	t_open(NULL);
	for (size_t i = 0; i < SL_COUNT_OF(errors); i++) {
		const struct error_case *c = &errors[i];
		struct sl_addr src = t_addr(c->v6 ? "2001:db8::2" : "198.18.0.2");
		struct sl_addr dst = t_addr(c->v6 ? "2001:db8::1" : "198.18.0.1");
		size_t len = quote(msg, c->v6, NULL, 0, 0);

		t_errors = 0;
		msg[0] = c->type;
		msg[1] = c->code;
		make_icmp(&f, c->v6, msg, len);
		CHECK_EQ(t_feed(f.b, f.len), c->error != 0 ? SL_RX_ICMP_ERROR : SL_RX_ICMP_IGNORED);
		CHECK_EQ(t_errors, c->error != 0);
		if (c->error == 0)
			continue;
		CHECK_EQ(t_error.error, c->error);
		CHECK_EQ(t_error.hard, c->hard);
		CHECK(memcmp(&t_error.flow.src, &src, 16) == 0 &&
			memcmp(&t_error.flow.dst, &dst, 16) == 0);
		CHECK_EQ(rte_be_to_cpu_16(t_error.flow.sport), 1000);
		CHECK_EQ(rte_be_to_cpu_16(t_error.flow.dport), 2000);
		CHECK_EQ(t_error.flow.ttl, 61);
		CHECK_EQ(t_error.flow.tos, 8);
	}
	t_close();
}

/* Quotes cut at every length, and quotes of what is not ours. */
static void
quotes(void)
{
	struct t_frame f;
	uint8_t msg[256];

	t_open(NULL);
	for (int v6 = 0; v6 < 2; v6++) {
		size_t need = 8 + (v6 ? 40 : 20) + 4, all = quote(msg, v6 != 0, NULL, 0, 0);

		for (size_t len = 8; len <= all; len++) {
			msg[0] = v6 ? 1 : 3;
			msg[1] = v6 ? 4 : 3;
			make_icmp(&f, v6 != 0, msg, len);
			CHECK_EQ(
				t_feed(f.b, f.len), len < need ? SL_RX_ICMP_BAD : SL_RX_ICMP_ERROR);
			/* However it is cut into segments. */
			CHECK_EQ(t_feed_mbuf(t_mbuf_split(f.b, f.len, f.len / 2)),
				len < need ? SL_RX_ICMP_BAD : SL_RX_ICMP_ERROR);
		}
		msg[8] = 0x55; /* version */
		make_icmp(&f, v6 != 0, msg, all);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
		quote(msg, v6 != 0, v6 ? "2001:db8::77" : "198.18.0.77", 0, 0);
		msg[0] = v6 ? 1 : 3;
		make_icmp(&f, v6 != 0, msg, all);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
		quote(msg, v6 != 0, NULL, 6, 0);
		msg[0] = v6 ? 1 : 3;
		make_icmp(&f, v6 != 0, msg, all);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
	}
	t_errors = 0;
	quote(msg, false, NULL, 0, 3);
	msg[0] = 3;
	make_icmp(&f, false, msg, 8 + 34);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_IGNORED);
	quote(msg, false, NULL, 0, 0);
	msg[0] = 3;
	msg[8] = 0x44; /* header length */
	make_icmp(&f, false, msg, 8 + 34);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	msg[8] = 0x4f;
	make_icmp(&f, false, msg, 8 + 34);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	CHECK_EQ(t_errors, 0);
	t_close();
}

static const uint8_t nops[] = {1, 1, 1, 0};
static const uint8_t hop_pad[] = {17, 0, 1, 4, 0, 0, 0, 0};

/* Whatever way a datagram took through the stack, the error quotes it as it came. */
static void
port_unreachable(void)
{
	static const size_t payloads[] = {0, 1, 22, 500, 600, 1200, 1400};
	struct t_frame f;

	for (int kind = 0; kind < 4; kind++) {
		for (size_t k = 0; k < SL_COUNT_OF(payloads); k++) {
			struct t_udp u = {.v6 = kind >= 2, .payload = payloads[k]};
			size_t most = u.v6 ? 1280 - 40 : 576 - 20, want;

			if (kind % 2 == 1) {
				u.options = u.v6 ? hop_pad : nops;
				u.options_len = u.v6 ? sizeof(hop_pad) : sizeof(nops);
			}
			t_open(NULL);
			t_udp_answer = SL_RX_UDP_NO_SOCKET;
			t_udp_frame(&f, &u);
			want = RTE_MIN(8 + f.len - 14, most);
			for (size_t at = 0; at <= f.len; at += 37) {
				const uint8_t *l4;

				t_now += T_S; /* the limit is not the point here */
				CHECK_EQ(t_feed_mbuf(at == 0 ? t_mbuf(f.b, f.len)
							     : t_mbuf_split(f.b, f.len, at)),
					SL_RX_UDP_NO_SOCKET);
				t_flush();
				CHECK_EQ(t_outs, 1);
				l4 = check_packet(0, u.v6, u.v6 ? 58 : 1, want);
				CHECK_EQ(l4[0], u.v6 ? 1 : 3);
				CHECK_EQ(l4[1], u.v6 ? 4 : 3);
				CHECK(memcmp(l4 + 4, "\0\0\0\0", 4) == 0);
				CHECK(memcmp(l4 + 8, f.b + 14, want - 8) == 0);
				t_drop_out();
			}
			t_close();
		}
	}
}

/* In a VLAN the error carries the tags, though hardware may have taken those of the request. */
static void
port_unreachable_in_a_vlan(void)
{
	struct sl_inet_port_conf conf = {.svlan = 9, .vlan = 7};
	struct t_udp u = {.payload = 5, .svlan = 9, .vlan = 7};
	struct t_frame f;
	const uint8_t *p;
	size_t len;

	t_open(&conf);
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_NO_SOCKET);
	t_flush();
	p = t_out_data(0, &len);
	CHECK_EQ(len, 22 + 20 + 8 + 33);
	CHECK(memcmp(p + 12, "\x88\xa8\0\x09\x81\0\0\x07\x08\0", 10) == 0);
	CHECK(memcmp(p + 22 + 28, f.b + 22, 33) == 0);
	t_close();
}

static void
no_error_for_groups(void)
{
	static const struct t_udp us[] = {
		{.payload = 5, .dst = "255.255.255.255", .dst_mac = t_any_mac},
		{.payload = 5, .dst = "198.18.0.255", .dst_mac = t_any_mac},
		{.payload = 5, .dst = "198.18.0.255"},
		{.payload = 5, .dst = "224.0.0.1", .dst_mac = t_any_mac},
		{.payload = 5, .dst = "224.0.0.1"},
		{.payload = 5, .dst_mac = t_any_mac},
		{.payload = 5, .src_mac = t_any_mac},
		{.v6 = true, .payload = 5, .dst = "ff02::1", .dst_mac = t_any_mac},
		{.v6 = true, .payload = 5, .dst = "ff02::1"},
		{.v6 = true, .payload = 5, .dst_mac = t_any_mac},
		/* Protocols that nobody handles, likewise. */
		{.payload = 20, .proto = 6, .dst = "198.18.0.255"},
		{.payload = 20, .proto = 6, .dst_mac = t_any_mac},
		{.v6 = true, .payload = 20, .proto = 6, .dst = "ff02::1"},
		{.v6 = true, .payload = 20, .proto = 59},
	};
	struct t_frame f;

	t_open(NULL);
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	for (size_t i = 0; i < SL_COUNT_OF(us); i++) {
		t_udp_frame(&f, &us[i]);
		CHECK_EQ(t_feed(f.b, f.len),
			us[i].proto != 0 ? SL_RX_IP_PROTO : SL_RX_UDP_NO_SOCKET);
		t_flush();
		CHECK_EQ(t_outs, 0);
		t_drop_out();
	}
	t_close();
}

struct problem_case {
	const char *what;
	struct t_udp u;
	uint8_t type, code;
	uint32_t pointer;
};

static const uint8_t option_report[] = {17, 0, 0xbe, 4, 0, 0, 0, 0};
static const uint8_t option_unless_group[] = {17, 0, 1, 0, 0xfe, 2, 0, 0};
static const uint8_t option_quiet[] = {17, 0, 0x7e, 4, 0, 0, 0, 0};
static const uint8_t routing_left[] = {17, 0, 0, 1, 0, 0, 0, 0};
static const uint8_t hop_second[] = {0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0};

static const struct problem_case problems[] = {
	{"TCP", {.payload = 20, .proto = 6}, 3, 2, 0},
	{"TCP over IPv6", {.v6 = true, .payload = 20, .proto = 6}, 4, 1, 6},
	{"TCP behind an extension header",
		{.v6 = true,
			.payload = 20,
			.options = (const uint8_t[]){6, 0, 1, 4, 0, 0, 0, 0},
			.options_len = 8},
		4, 1, 40},
	{"unknown option", {.v6 = true, .payload = 5, .options = option_report, .options_len = 8},
		4, 2, 42},
	{"unknown option, unless to a group",
		{.v6 = true, .payload = 5, .options = option_unless_group, .options_len = 8}, 4, 2,
		44},
	{"routing",
		{.v6 = true, .payload = 5, .options = routing_left, .options_len = 8, .next = 43},
		4, 0, 42},
	{"hop-by-hop second",
		{.v6 = true, .payload = 5, .options = hop_second, .options_len = 16, .next = 60}, 4,
		1, 40},
};

static void
parameter_problems(void)
{
	struct t_frame f;

	for (size_t i = 0; i < SL_COUNT_OF(problems); i++) {
		const struct problem_case *c = &problems[i];
		const uint8_t *l4;

		t_open(NULL);
		t_udp_frame(&f, &c->u);
		t_feed(f.b, f.len);
		t_flush();
		if (t_outs != 1)
			fprintf(stderr, "%s\n", c->what);
		CHECK_EQ(t_outs, 1);
		if (t_outs == 1) {
			l4 = check_packet(0, c->u.v6, c->u.v6 ? 58 : 1, 8 + f.len - 14);
			CHECK_EQ(l4[0], c->type);
			CHECK_EQ(l4[1], c->code);
			CHECK_EQ((uint32_t)get16(l4 + 4) << 16 | get16(l4 + 6), c->pointer);
			CHECK(memcmp(l4 + 8, f.b + 14, f.len - 14) == 0);
		}
		t_close();
	}
}

/* About an ICMPv6 error or redirect no parameter problem is sent, whatever hides it; about an echo one
 * is. The first byte of t_udp_frame's ports is the ICMPv6 type here. */
static void
problems_about_errors(void)
{
	static const struct {
		uint8_t type;
		unsigned int errors;
	} cases[] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {127, 0}, {128, 1}, {137, 0}};
	static const uint8_t option[] = {58, 0, 0xbe, 4, 0, 0, 0, 0};
	static const uint8_t routing[] = {58, 0, 0, 1, 0, 0, 0, 0};
	static const uint8_t two[] = {60, 0, 0, 1, 0, 0, 0, 0, 58, 0, 1, 4, 0, 0, 0, 0};
	static const struct t_udp ways[] = {
		{.options = option, .options_len = sizeof(option)},
		{.options = routing, .options_len = sizeof(routing), .next = 43},
		{.options = two, .options_len = sizeof(two), .next = 43},
	};
	struct t_frame f;

	for (size_t i = 0; i < SL_COUNT_OF(cases) * SL_COUNT_OF(ways); i++) {
		struct t_udp u = ways[i % SL_COUNT_OF(ways)];

		u.v6 = true;
		u.proto = IPPROTO_ICMPV6;
		u.sport = (uint16_t)(cases[i / SL_COUNT_OF(ways)].type << 8);
		u.payload = 40;
		t_open(NULL);
		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_EXTENSION);
		t_flush();
		CHECK_EQ(t_outs, cases[i / SL_COUNT_OF(ways)].errors);
		t_close();
	}
}

/* The two kinds of options that are dropped without a word, and the one that speaks to groups. */
static void
options_to_groups(void)
{
	static const struct {
		const uint8_t *options;
		const char *dst;
		unsigned int errors;
	} cases[] = {
		{option_quiet, NULL, 0},
		{option_unless_group, "ff02::1", 0},
		{option_report, "ff02::1", 1},
	};
	struct t_frame f;

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct t_udp u = {.v6 = true,
			.payload = 5,
			.dst = cases[i].dst,
			.options = cases[i].options,
			.options_len = 8};

		t_open(NULL);
		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_EXTENSION);
		t_flush();
		CHECK_EQ(t_outs, cases[i].errors);
		t_close();
	}
}

/* Ten a second: a burst of ten, then one each tenth of a second, never more than ten at once. */
static void
rate_limit(void)
{
	struct sl_addr v4 = t_addr("198.18.0.2");
	struct t_udp u = {.payload = 5};
	struct t_frame f;

	t_open_bare(NULL, 0, 10);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &v4, 24) == 0);
	t_pass(20 * T_MS);
	t_drop_out();
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	t_udp_frame(&f, &u);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_NO_SOCKET);
	t_flush();
	CHECK_EQ(t_outs, 10);
	t_drop_out();
	for (int i = 0; i < 10; i++) {
		t_now += 100 * T_MS;
		t_feed(f.b, f.len);
		t_feed(f.b, f.len);
		t_flush();
		CHECK_EQ(t_outs, i + 1);
	}
	t_drop_out();
	t_now += 3600 * T_S;
	for (int i = 0; i < 100; i++)
		t_feed(f.b, f.len);
	t_flush();
	CHECK_EQ(t_outs, 10);
	t_close();
}

/* Nothing left in the pool for what we want to say: counted, and nothing else happens. */
static void
no_mbuf_for_errors(void)
{
	struct t_udp u = {.payload = 5};
	struct rte_mbuf *all[T_POOL], *m;
	struct t_frame f;
	unsigned int n = 0;

	t_open(NULL);
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	t_udp_frame(&f, &u);
	m = t_mbuf(f.b, f.len);
	while (n < T_POOL && (all[n] = rte_pktmbuf_alloc(t_pool)) != NULL)
		n++;
	CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_NO_SOCKET);
	CHECK_EQ(t_count(SL_TX_NO_MBUF), 1);
	/* It has just freed one; take that too, and the request for an address has none. */
	all[n] = rte_pktmbuf_alloc(t_pool);
	REQUIRE(all[n] != NULL);
	t_arp_frame(&f, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	memcpy(rte_pktmbuf_append(all[n], (uint16_t)f.len), f.b, f.len);
	CHECK_EQ(t_feed_mbuf(all[n]), SL_RX_ARP);
	CHECK_EQ(t_count(SL_TX_NO_MBUF), 2);
	t_flush();
	CHECK_EQ(t_outs, 0);
	rte_pktmbuf_free_bulk(all, n);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(echo);
	SL_TEST_RUN(echo_that_is_not_answered);
	SL_TEST_RUN(echo_to_all_nodes);
	SL_TEST_RUN(echo_from_shared_memory);
	SL_TEST_RUN(errors_heard);
	SL_TEST_RUN(quotes);
	SL_TEST_RUN(port_unreachable);
	SL_TEST_RUN(port_unreachable_in_a_vlan);
	SL_TEST_RUN(no_error_for_groups);
	SL_TEST_RUN(parameter_problems);
	SL_TEST_RUN(problems_about_errors);
	SL_TEST_RUN(options_to_groups);
	SL_TEST_RUN(rate_limit);
	SL_TEST_RUN(no_mbuf_for_errors);
	return test_end();
}
