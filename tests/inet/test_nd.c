/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Neighbour discovery: what is valid, what changes what, and duplicate addresses. */
#include <errno.h>

#include "peer_test.h"

/* RFC 4862: silence for a second makes an address ours. */
static void
duplicate_detection_passes(void)
{
	struct sl_addr a = t_addr("2001:db8::2"), local = t_addr("fe80::ff:fe00:2");
	struct t_udp u = {.v6 = true, .payload = 3};
	static const uint8_t any6[16];
	struct t_frame f;
	const uint8_t *p;

	t_open_bare(NULL, 0, 0);
	t_udp_frame(&f, &u);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &a, 64) == 0);
	t_pass(20 * T_MS);
	CHECK_EQ(t_outs, 2);
	CHECK(is_question(0, "fe80::ff:fe00:2", NULL));
	CHECK(is_question(1, "2001:db8::2", NULL));
	p = t_out_data(1, NULL);
	CHECK(memcmp(p + 22, any6, 16) == 0); /* from nobody */
	CHECK(!sl_inet_addr_is_local(t_inet, &a));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	CHECK_EQ(send_to("2001:db8::1", 10), -ENETUNREACH); /* no source yet */
	t_pass(900 * T_MS);
	CHECK(!sl_inet_addr_is_local(t_inet, &a));
	t_pass(200 * T_MS);
	CHECK(sl_inet_addr_is_local(t_inet, &a));
	CHECK(sl_inet_addr_is_local(t_inet, &local));
	CHECK(!sl_inet_addr_is_duplicate(t_inet, &a));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	CHECK_EQ(t_outs, 2);
	t_close();
}

/* Another host has the address, or wants it at the same time; or only our own probe comes back. */
static void
duplicate_detection_fails(void)
{
	struct sl_addr a = t_addr("2001:db8::2");
	struct t_frame f;
	uint8_t msg[32];

	for (int kind = 0; kind < 4; kind++) {
		bool ours = kind >= 2;

		t_open_bare(NULL, 0, 0);
		REQUIRE(sl_inet_addr_add(t_inet, t_port, &a, 64) == 0);
		t_pass(20 * T_MS);
		if (kind == 0) /* has it */
			t_icmp6_frame(&f, "2001:db8::2", "ff02::1", t_any_mac, 255, msg,
				t_nd(msg, NA, OVERRIDE, "2001:db8::2", t_peer_mac));
		else if (kind == 1) /* wants it */
			t_icmp6_frame(&f, "::", "ff02::1:ff00:2", t_any_mac, 255, msg,
				t_nd(msg, NS, 0, "2001:db8::2", NULL));
		else if (kind == 2) /* somebody looks for it */
			t_icmp6_frame(&f, "2001:db8::1", "ff02::1:ff00:2", t_any_mac, 255, msg,
				t_nd(msg, NS, 0, "2001:db8::2", t_peer_mac));
		if (kind < 3)
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
		else
			CHECK_EQ(t_feed(t_out_data(1, NULL), rte_pktmbuf_pkt_len(t_out[1])),
				SL_RX_ND);
		t_pass(1100 * T_MS);
		CHECK_EQ(sl_inet_addr_is_local(t_inet, &a), ours);
		CHECK_EQ(sl_inet_addr_is_duplicate(t_inet, &a), !ours);
		CHECK_EQ(t_outs, 2); /* no answer about an address that is not ours yet */
		t_close();
	}
	/* Afterwards it stays ours, whatever anybody says. */
	t_open(NULL);
	t_icmp6_frame(&f, "2001:db8::2", "ff02::1", t_any_mac, 255, msg,
		t_nd(msg, NA, OVERRIDE, "2001:db8::2", t_peer_mac));
	t_feed(f.b, f.len);
	CHECK(sl_inet_addr_is_local(t_inet, &a));
	t_close();
}

struct nd_case {
	const char *what;
	uint8_t type, flags;
	const char *src, *dst, *target;
	const uint8_t *lla;
	uint8_t ttl;
	int off; /* byte of the message to overwrite, -1 for none */
	uint8_t value;
	size_t len; /* of the message, 0 for as made */
	int outcome;
	bool reply;
};

#define OURS "2001:db8::2"
#define PEER "2001:db8::1"
#define GROUP "ff02::1:ff00:2"

static const struct nd_case nds[] = {
	{"solicitation", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, -1, 0, 0, SL_RX_ND, true},
	{"unicast solicitation", NS, 0, PEER, OURS, OURS, NULL, 255, -1, 0, 0, SL_RX_ND, true},
	{"probe", NS, 0, "::", GROUP, OURS, NULL, 255, -1, 0, 0, SL_RX_ND, true},
	{"for another", NS, 0, PEER, GROUP, "2001:db8::3", t_peer_mac, 255, -1, 0, 0, SL_RX_ND,
		false},
	{"hop limit 254", NS, 0, PEER, GROUP, OURS, t_peer_mac, 254, -1, 0, 0, SL_RX_ND_BAD, false},
	{"code 1", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, 1, 1, 0, SL_RX_ND_BAD, false},
	{"23 bytes", NS, 0, PEER, GROUP, OURS, NULL, 255, -1, 0, 23, SL_RX_ND_BAD, false},
	{"8 bytes", NS, 0, PEER, GROUP, OURS, NULL, 255, -1, 0, 8, SL_RX_ND_BAD, false},
	{"7 bytes", NS, 0, PEER, GROUP, OURS, NULL, 255, -1, 0, 7, SL_RX_ICMP_BAD, false},
	{"group as target", NS, 0, PEER, GROUP, "ff02::1", t_peer_mac, 255, -1, 0, 0, SL_RX_ND_BAD,
		false},
	{"option of length 0", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, 25, 0, 0, SL_RX_ND_BAD,
		false},
	{"option beyond the end", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, 25, 2, 0, SL_RX_ND_BAD,
		false},
	{"half an option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, -1, 0, 28, SL_RX_ND_BAD,
		false},
	{"one byte of option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, -1, 0, 25, SL_RX_ND_BAD,
		false},
	{"unknown option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, 24, 77, 0, SL_RX_ND, true},
	{"probe with an address", NS, 0, "::", GROUP, OURS, t_peer_mac, 255, -1, 0, 0, SL_RX_ND_BAD,
		false},
	{"probe sent to us alone", NS, 0, "::", OURS, OURS, NULL, 255, -1, 0, 0, SL_RX_ND_BAD,
		false},
	{"advertisement", NA, SOLICITED | OVERRIDE, PEER, OURS, PEER, t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND, false},
	{"advertisement, hop limit 64", NA, SOLICITED, PEER, OURS, PEER, t_peer_mac, 64, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"advertisement of a group", NA, 0, PEER, OURS, "ff02::1", t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"solicited to a group", NA, SOLICITED, PEER, "ff02::1", PEER, t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"unsolicited to a group", NA, 0, PEER, "ff02::1", PEER, t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND, false},
	{"advertisement, option of length 0", NA, 0, PEER, OURS, PEER, t_peer_mac, 255, 25, 0, 0,
		SL_RX_ND_BAD, false},
	{"advertisement of 20 bytes", NA, 0, PEER, OURS, PEER, NULL, 255, -1, 0, 20, SL_RX_ND_BAD,
		false},
	{"router solicitation", 133, 0, PEER, OURS, PEER, NULL, 255, -1, 0, 8, SL_RX_ICMP_IGNORED,
		false},
	{"router advertisement", 134, 0, PEER, OURS, "::", NULL, 255, -1, 0, 16, SL_RX_ICMP_IGNORED,
		false},
	{"router advertisement from afar", 134, 0, PEER, OURS, "::", NULL, 64, -1, 0, 16,
		SL_RX_ND_BAD, false},
	{"router advertisement of 12 bytes", 134, 0, PEER, OURS, "::", NULL, 255, -1, 0, 12,
		SL_RX_ND_BAD, false},
	{"redirect of 32 bytes", 137, 0, PEER, OURS, PEER, t_peer_mac, 255, -1, 0, 32, SL_RX_ND_BAD,
		false},
};

static void
nd_packets(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(nds); i++) {
		const struct nd_case *c = &nds[i];
		struct t_frame f;
		uint8_t msg[64];
		size_t len;
		int outcome;

		t_open(NULL);
		len = t_nd(msg, c->type, c->flags, c->target, c->lla);
		if (c->off >= 0)
			msg[c->off] = c->value;
		t_icmp6_frame(
			&f, c->src, c->dst, t_any_mac, c->ttl, msg, c->len != 0 ? c->len : len);
		outcome = t_feed(f.b, f.len);
		t_flush();
		if (outcome != c->outcome || t_outs != c->reply)
			fprintf(stderr, "ND %s\n", c->what);
		CHECK_EQ(outcome, c->outcome);
		CHECK_EQ(t_outs, c->reply);
		if (t_outs == 1) {
			bool probe = strcmp(c->src, "::") == 0;
			struct sl_addr to = t_addr(probe ? "ff02::1" : c->src), ours = t_addr(OURS);
			const uint8_t *p = t_out_data(0, &len);

			CHECK_EQ(len, 14 + 40 + 32);
			CHECK(memcmp(p + 22, ours.b, 16) == 0 && memcmp(p + 38, to.b, 16) == 0);
			CHECK_EQ(p[21], 255);
			CHECK_EQ(p[54], NA);
			CHECK_EQ(p[58], probe ? OVERRIDE : SOLICITED | OVERRIDE);
			CHECK(memcmp(p + 62, ours.b, 16) == 0 && memcmp(p + 80, t_our_mac, 6) == 0);
			CHECK_EQ(t_sum(p + 54, 32,
					 t_pseudo(OURS, probe ? "ff02::1" : c->src, 58, 32)),
				0xffff);
			CHECK(probe || memcmp(p, t_peer_mac, 6) == 0);
		}
		t_close();
	}
}

static void
nd_with_a_wrong_checksum(void)
{
	struct t_frame f;
	uint8_t msg[32];

	t_open(NULL);
	t_icmp6_frame(&f, PEER, GROUP, t_any_mac, 255, msg, t_nd(msg, NS, 0, OURS, t_peer_mac));
	f.b[56] ^= 1;
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ICMP_BAD);
	t_close();
}

/* RFC 4861, 7.2.5: what an advertisement may change, by its flags. */
static void
advertisement_flags(void)
{
	static const struct {
		uint8_t flags;
		const uint8_t *lla;
		const uint8_t *then;
	} cases[] = {
		{SOLICITED | OVERRIDE, mac_b, mac_b},
		{OVERRIDE, mac_b, mac_b},
		{SOLICITED, mac_b, t_peer_mac}, /* no override: another address is not taken */
		{0, mac_b, t_peer_mac},
		{SOLICITED, NULL, t_peer_mac},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct t_frame f;
		uint8_t msg[32], mac[6];

		t_open(NULL);
		CHECK_EQ(send_to(PEER, 10), 0);
		answer(PEER, t_peer_mac);
		t_icmp6_frame(&f, PEER, OURS, t_our_mac, 255, msg,
			t_nd(msg, NA, cases[i].flags, PEER, cases[i].lla));
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
		CHECK_EQ(lookup(PEER, mac), 0);
		CHECK(memcmp(mac, cases[i].then, 6) == 0);
		t_close();
	}
	/* The first answer needs an address in it. */
	for (int with = 0; with < 2; with++) {
		struct t_frame f;
		uint8_t msg[32], mac[6];

		t_open(NULL);
		CHECK_EQ(send_to(PEER, 10), 0);
		t_icmp6_frame(&f, PEER, OURS, t_our_mac, 255, msg,
			t_nd(msg, NA, SOLICITED, PEER, with ? t_peer_mac : NULL));
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
		CHECK_EQ(lookup(PEER, mac), with ? 0 : -EAGAIN);
		t_close();
	}
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(duplicate_detection_passes);
	SL_TEST_RUN(duplicate_detection_fails);
	SL_TEST_RUN(nd_packets);
	SL_TEST_RUN(nd_with_a_wrong_checksum);
	SL_TEST_RUN(advertisement_flags);
	return test_end();
}
