/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* ARP and neighbour discovery with a clock of our own: resolving, ageing, duplicates, floods. */
#include <errno.h>

#include "inet_test.h"

#define ETH_ARP 0x0806
#define NS 135
#define NA 136
#define SOLICITED 0x40
#define OVERRIDE 0x20

static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t nobody[6];

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* A datagram of `len` bytes to dst; returns what output returned. */
static int
send_to(const char *dst, uint16_t len)
{
	struct sl_inet_flow flow = {.dst = t_addr(dst), .sport = rte_cpu_to_be_16(9),
		.dport = rte_cpu_to_be_16(10)};
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	int ret;

	REQUIRE(m != NULL && rte_pktmbuf_append(m, len) != NULL);
	memset(rte_pktmbuf_mtod(m, void *), 0, len);
	ret = sl_inet_source(t_inet, &flow.dst, &flow.src);
	if (ret == 0)
		ret = sl_inet_udp_output(t_inet, 0, &flow, m);
	if (ret != 0)
		rte_pktmbuf_free(m);
	t_flush();
	return ret;
}

static bool
v6(const char *addr)
{
	return strchr(addr, ':') != NULL;
}

/* Is packet i a question for addr? To mac alone, or to everybody (NULL). */
static bool
is_question(unsigned int i, const char *addr, const uint8_t *mac)
{
	static const uint8_t group[] = {0x33, 0x33, 0xff};
	struct sl_addr a = t_addr(addr);
	const uint8_t *p;
	size_t len;

	if (i >= t_outs)
		return false;
	p = t_out_data(i, &len);
	if (mac != NULL && memcmp(p, mac, 6) != 0)
		return false;
	if (!v6(addr))
		return (mac != NULL || memcmp(p, t_any_mac, 6) == 0) && get16(p + 12) == ETH_ARP &&
			get16(p + 20) == 1 && memcmp(p + 38, a.b + 12, 4) == 0 && len == 42;
	return (mac != NULL || (memcmp(p, group, 3) == 0 && memcmp(p + 3, a.b + 13, 3) == 0)) &&
		p[54] == NS && memcmp(p + 62, a.b, 16) == 0 && p[21] == 255;
}

/* The peer says that addr is at mac, as the answer to a question. */
static void
answer(const char *addr, const uint8_t *mac)
{
	struct t_frame f;
	uint8_t msg[32];

	if (!v6(addr)) {
		t_arp_frame(&f, 2, t_our_mac, mac, addr, "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
	} else {
		t_icmp6_frame(&f, addr, "2001:db8::2", t_our_mac, 255, msg,
			t_nd(msg, NA, SOLICITED | OVERRIDE, addr, mac));
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
	}
	t_flush();
}

static int
lookup(const char *addr, uint8_t *mac)
{
	struct sl_addr a = t_addr(addr);

	return sl_inet_neighbour(t_inet, t_port, &a, mac);
}

static const char *const peers[] = {"198.18.0.1", "2001:db8::1"};

static void
resolve_and_send(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		const char *peer = peers[i];
		uint8_t mac[6];

		t_open(NULL);
		CHECK_EQ(lookup(peer, mac), -ENOENT);
		CHECK_EQ(send_to(peer, 10), 0);
		CHECK_EQ(t_outs, 1);
		CHECK(is_question(0, peer, NULL));
		CHECK_EQ(lookup(peer, mac), -EAGAIN);
		CHECK_EQ(send_to(peer, 11), 0);
		CHECK_EQ(t_outs, 1); /* one question is enough */
		answer(peer, t_peer_mac);
		CHECK_EQ(t_outs, 3);
		/* Both packets, in order. */
		for (unsigned int k = 1; k < t_outs; k++) {
			size_t len;
			const uint8_t *p = t_out_data(k, &len);

			CHECK(memcmp(p, t_peer_mac, 6) == 0);
			CHECK_EQ(len, 14 + (v6(peer) ? 40 : 20) + 8 + 9 + k);
		}
		CHECK_EQ(lookup(peer, mac), 0);
		CHECK(memcmp(mac, t_peer_mac, 6) == 0);
		t_drop_out();
		CHECK_EQ(send_to(peer, 12), 0);
		CHECK_EQ(send_to(peer, 12), 0); /* now remembered by the worker */
		CHECK_EQ(t_outs, 2);
		CHECK_EQ(t_count(SL_TX_SENT), t_outs + 3 + 3); /* 3: our addresses, at first */
		t_close();
	}
}

static void
no_answer(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		uint8_t mac[6];

		t_open(NULL);
		CHECK_EQ(send_to(peers[i], 10), 0);
		for (int second = 1; second < 3; second++) {
			t_pass(999 * T_MS);
			CHECK_EQ(t_outs, second); /* not yet */
			t_pass(2 * T_MS + 100 * T_MS);
			CHECK_EQ(t_outs, second + 1);
			CHECK(is_question((unsigned int)second, peers[i], NULL));
			CHECK_EQ(lookup(peers[i], mac), -EAGAIN);
		}
		t_pass(1100 * T_MS);
		CHECK_EQ(t_outs, 3); /* three times, then it is over */
		CHECK_EQ(lookup(peers[i], mac), -ENOENT);
		CHECK_EQ(t_count(SL_TX_NEIGH_FAILED), 1);
		/* And the next packet starts anew. */
		CHECK_EQ(send_to(peers[i], 10), 0);
		CHECK_EQ(t_outs, 4);
		t_close();
	}
}

static void
waiting_packets_are_bounded(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		t_open(NULL);
		for (uint16_t k = 0; k < 40; k++)
			CHECK_EQ(send_to(peers[i], (uint16_t)(k + 1)), 0);
		CHECK_EQ(t_count(SL_TX_NEIGH_FULL), 8);
		t_drop_out();
		answer(peers[i], t_peer_mac);
		CHECK_EQ(t_outs, 32);
		for (unsigned int k = 0; k < t_outs; k++) {
			size_t len;

			t_out_data(k, &len); /* the oldest gave way */
			CHECK_EQ(len, 14 + (v6(peers[i]) ? 40 : 20) + 8 + k + 9);
		}
		t_close();
	}
}

/* Confirmed for 30 s; then asked again at its address if in use, else only remembered for a while. */
static void
ageing(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		const char *peer = peers[i];
		uint8_t mac[6];

		t_open(NULL);
		CHECK_EQ(send_to(peer, 10), 0);
		answer(peer, t_peer_mac);
		t_pass(10 * T_S);
		CHECK_EQ(send_to(peer, 10), 0);
		t_drop_out();
		t_pass(19 * T_S);
		CHECK_EQ(t_outs, 0);
		t_pass(1100 * T_MS); /* 30 s after the answer, and used */
		CHECK_EQ(t_outs, 1);
		CHECK(is_question(0, peer, t_peer_mac));
		t_drop_out();
		CHECK_EQ(send_to(peer, 10), 0);
		CHECK_EQ(t_outs, 1); /* still goes out meanwhile */
		answer(peer, mac_b);
		CHECK_EQ(lookup(peer, mac), 0);
		CHECK(memcmp(mac, mac_b, 6) == 0);
		/* Now nobody uses it: stale, then forgotten. */
		t_drop_out();
		t_pass(31 * T_S);
		CHECK_EQ(t_outs, 0);
		t_pass(50 * T_S);
		CHECK_EQ(lookup(peer, mac), 0);
		t_pass(11 * T_S);
		CHECK_EQ(lookup(peer, mac), -ENOENT);
		CHECK_EQ(t_outs, 0);
		t_close();
	}
}

static void
stale_and_used_again(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		const char *peer = peers[i];
		uint8_t mac[6];

		t_open(NULL);
		CHECK_EQ(send_to(peer, 10), 0);
		answer(peer, t_peer_mac);
		t_pass(40 * T_S);
		t_drop_out();
		t_pass(1 * T_S);
		CHECK_EQ(send_to(peer, 10), 0);
		CHECK_EQ(t_outs, 1);
		t_pass(200 * T_MS);
		CHECK_EQ(t_outs, 2);
		CHECK(is_question(1, peer, t_peer_mac));
		/* It has died: two more questions, then its packets wait again. */
		t_pass(1100 * T_MS);
		t_pass(1100 * T_MS);
		CHECK_EQ(t_outs, 4);
		t_pass(1100 * T_MS);
		CHECK_EQ(lookup(peer, mac), -ENOENT);
		t_drop_out();
		CHECK_EQ(send_to(peer, 10), 0);
		CHECK_EQ(t_outs, 1);
		CHECK(is_question(0, peer, NULL));
		t_close();
	}
}

struct arp_case {
	const char *what;
	uint16_t op;
	const char *sender, *target;
	const uint8_t *mac;
	int off; /* byte of the ARP packet to overwrite, -1 for none */
	uint8_t value;
	int cut; /* frame length, 0 for as made */
	int outcome;
	bool reply;
	int known; /* afterwards, for sender */
};

static const struct arp_case arps[] = {
	{"request for us", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP, true, 0},
	{"request for another", 1, "198.18.0.1", "198.18.0.3", t_peer_mac, -1, 0, 0, SL_RX_ARP, false,
		-ENOENT},
	{"probe for our address", 1, "0.0.0.0", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP, true,
		-ENOENT},
	{"gratuitous", 1, "198.18.0.1", "198.18.0.1", t_peer_mac, -1, 0, 0, SL_RX_ARP, false, -ENOENT},
	{"reply nobody asked for", 2, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP, false,
		-ENOENT},
	{"claim to our address", 1, "198.18.0.2", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP, true,
		-ENOENT},
	{"without padding", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 42, SL_RX_ARP, true, 0},
	{"one byte short", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 41, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"empty", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 14, SL_RX_ARP_BAD, false, -ENOENT},
	{"hardware type", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 1, 6, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"protocol type", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 3, 1, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"hardware length", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 4, 8, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"protocol length", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 5, 16, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"operation 0", 0, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"operation 3", 3, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"sender with a group MAC address", 1, "198.18.0.1", "198.18.0.2", t_any_mac, -1, 0, 0,
		SL_RX_ARP_BAD, false, -ENOENT},
	{"sender without a MAC address", 1, "198.18.0.1", "198.18.0.2", nobody, -1, 0, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"sender is a group", 1, "224.0.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"sender is our broadcast address", 1, "198.18.0.255", "198.18.0.2", t_peer_mac, -1, 0, 0,
		SL_RX_ARP_BAD, false, -ENOENT},
	{"sender is loopback", 1, "127.0.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"reply from nobody", 2, "0.0.0.0", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
};

static void
arp_packets(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(arps); i++) {
		const struct arp_case *c = &arps[i];
		struct sl_addr ours = t_addr("198.18.0.2"), sender = t_addr(c->sender);
		struct t_frame f;
		uint8_t mac[6];
		int outcome;

		t_open(NULL);
		t_arp_frame(&f, c->op, t_any_mac, c->mac, c->sender, c->target);
		if (c->off >= 0)
			f.b[14 + c->off] = c->value;
		outcome = t_feed(f.b, c->cut != 0 ? (size_t)c->cut : f.len);
		t_flush();
		if (outcome != c->outcome || t_outs != c->reply || lookup(c->sender, mac) != c->known)
			fprintf(stderr, "ARP %s\n", c->what);
		CHECK_EQ(outcome, c->outcome);
		CHECK_EQ(lookup(c->sender, mac), c->known);
		CHECK_EQ(t_outs, c->reply);
		if (t_outs == 1) {
			const uint8_t *p = t_out_data(0, NULL);

			CHECK(memcmp(p, c->mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
			CHECK_EQ(get16(p + 20), 2);
			CHECK(memcmp(p + 22, t_our_mac, 6) == 0 && memcmp(p + 28, ours.b + 12, 4) == 0);
			CHECK(memcmp(p + 32, c->mac, 6) == 0 && memcmp(p + 38, sender.b + 12, 4) == 0);
		}
		t_close();
	}
}

/* Gratuitous ARP moves a neighbour that is known. */
static void
gratuitous_arp_updates(void)
{
	struct t_frame f;
	uint8_t mac[6];

	t_open(NULL);
	CHECK_EQ(send_to("198.18.0.1", 10), 0);
	answer("198.18.0.1", t_peer_mac);
	t_arp_frame(&f, 1, t_any_mac, mac_b, "198.18.0.1", "198.18.0.1");
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
	CHECK_EQ(lookup("198.18.0.1", mac), 0);
	CHECK(memcmp(mac, mac_b, 6) == 0);
	t_drop_out();
	CHECK_EQ(send_to("198.18.0.1", 10), 0); /* the worker's memory follows */
	CHECK(memcmp(t_out_data(0, NULL), mac_b, 6) == 0);
	t_close();
}

static void
announcements(void)
{
	struct sl_addr v4 = t_addr("198.18.0.2");
	const uint8_t *p;

	t_open_bare(NULL, 0, 0);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &v4, 24) == 0);
	t_pass(20 * T_MS);
	CHECK_EQ(t_outs, 2); /* the probe for the link-local address, and this */
	CHECK(is_question(1, "198.18.0.2", NULL));
	p = t_out_data(1, NULL);
	CHECK(memcmp(p + 28, v4.b + 12, 4) == 0);
	t_close();
}

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
			CHECK_EQ(t_feed(t_out_data(1, NULL), rte_pktmbuf_pkt_len(t_out[1])), SL_RX_ND);
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
	{"for another", NS, 0, PEER, GROUP, "2001:db8::3", t_peer_mac, 255, -1, 0, 0, SL_RX_ND, false},
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
	{"half an option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, -1, 0, 28, SL_RX_ND_BAD, false},
	{"one byte of option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, -1, 0, 25, SL_RX_ND_BAD,
		false},
	{"unknown option", NS, 0, PEER, GROUP, OURS, t_peer_mac, 255, 24, 77, 0, SL_RX_ND, true},
	{"probe with an address", NS, 0, "::", GROUP, OURS, t_peer_mac, 255, -1, 0, 0, SL_RX_ND_BAD,
		false},
	{"probe sent to us alone", NS, 0, "::", OURS, OURS, NULL, 255, -1, 0, 0, SL_RX_ND_BAD, false},
	{"advertisement", NA, SOLICITED | OVERRIDE, PEER, OURS, PEER, t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND, false},
	{"advertisement, hop limit 64", NA, SOLICITED, PEER, OURS, PEER, t_peer_mac, 64, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"advertisement of a group", NA, 0, PEER, OURS, "ff02::1", t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"solicited to a group", NA, SOLICITED, PEER, "ff02::1", PEER, t_peer_mac, 255, -1, 0, 0,
		SL_RX_ND_BAD, false},
	{"unsolicited to a group", NA, 0, PEER, "ff02::1", PEER, t_peer_mac, 255, -1, 0, 0, SL_RX_ND,
		false},
	{"advertisement, option of length 0", NA, 0, PEER, OURS, PEER, t_peer_mac, 255, 25, 0, 0,
		SL_RX_ND_BAD, false},
	{"advertisement of 20 bytes", NA, 0, PEER, OURS, PEER, NULL, 255, -1, 0, 20, SL_RX_ND_BAD,
		false},
	{"router solicitation", 133, 0, PEER, OURS, PEER, NULL, 255, -1, 0, 8, SL_RX_ICMP_IGNORED,
		false},
	{"router advertisement", 134, 0, PEER, OURS, "::", NULL, 255, -1, 0, 16, SL_RX_ICMP_IGNORED,
		false},
	{"router advertisement from afar", 134, 0, PEER, OURS, "::", NULL, 64, -1, 0, 16, SL_RX_ND_BAD,
		false},
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
		t_icmp6_frame(&f, c->src, c->dst, t_any_mac, c->ttl, msg, c->len != 0 ? c->len : len);
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
			CHECK_EQ(t_sum(p + 54, 32, t_pseudo(OURS, probe ? "ff02::1" : c->src, 58, 32)),
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

/* A full table: those in use stay, whoever asks for more. */
static void
floods_do_not_evict(void)
{
	struct sl_addr ours = t_addr("198.18.0.2");
	char text[46];
	uint8_t mac[6];

	t_open_bare(NULL, 8, 0);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &ours, 16) == 0);
	t_pass(1 * T_S);
	/* Four neighbours in use. */
	for (int i = 10; i < 14; i++) {
		snprintf(text, sizeof(text), "198.18.0.%d", i);
		CHECK_EQ(send_to(text, 10), 0);
		answer(text, t_peer_mac);
	}
	t_drop_out();
	/* A scan of a hundred addresses finds the table full. */
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "198.18.1.%d", i);
		CHECK_EQ(send_to(text, 10), 0);
	}
	CHECK_EQ(t_outs, 4);
	CHECK_EQ(t_count(SL_TX_NEIGH_FULL), 96);
	for (int i = 10; i < 14; i++) {
		snprintf(text, sizeof(text), "198.18.0.%d", i);
		CHECK_EQ(lookup(text, mac), 0);
	}
	/* So does a flood of requests from made-up senders, once there is room for no more. */
	for (int i = 0; i < 100; i++) {
		struct t_frame f;

		snprintf(text, sizeof(text), "198.18.2.%d", i);
		t_arp_frame(&f, 1, t_any_mac, mac_b, text, "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
		t_flush();
		t_drop_out();
	}
	for (int i = 10; i < 14; i++) {
		snprintf(text, sizeof(text), "198.18.0.%d", i);
		CHECK_EQ(lookup(text, mac), 0);
	}
	t_pass(3500 * T_MS);
	t_pass(1100 * T_MS);
	t_pass(1100 * T_MS);
	CHECK_EQ(t_count(SL_TX_NEIGH_FAILED), 4);
	/* Strangers that spoke to us give way to somebody we want to talk to. */
	for (int i = 0; i < 100; i++) {
		struct t_frame f;

		snprintf(text, sizeof(text), "198.18.2.%d", i);
		t_arp_frame(&f, 1, t_any_mac, mac_b, text, "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
		t_flush();
		t_drop_out();
	}
	CHECK_EQ(send_to("198.18.0.14", 10), 0);
	answer("198.18.0.14", t_peer_mac);
	CHECK_EQ(lookup("198.18.0.14", mac), 0);
	t_close();
}

/* Many neighbours that never answer: all waiting packets together are bounded too. */
static void
waiting_packets_of_all_are_bounded(void)
{
	char text[46];

	t_open(NULL);
	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "198.18.0.%d", i + 10);
		for (int k = 0; k < 30; k++)
			CHECK_EQ(send_to(text, 10), 0);
	}
	CHECK_EQ(t_count(SL_TX_NEIGH_FULL), 50 * 30 - 1024);
	t_drop_out();
	for (int i = 0; i < 4; i++) {
		t_pass(1200 * T_MS);
		t_pass(10 * T_MS);
		t_drop_out();
	}
	CHECK_EQ(t_count(SL_TX_NEIGH_FAILED), 1024);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(resolve_and_send);
	SL_TEST_RUN(no_answer);
	SL_TEST_RUN(waiting_packets_are_bounded);
	SL_TEST_RUN(ageing);
	SL_TEST_RUN(stale_and_used_again);
	SL_TEST_RUN(arp_packets);
	SL_TEST_RUN(gratuitous_arp_updates);
	SL_TEST_RUN(announcements);
	SL_TEST_RUN(duplicate_detection_passes);
	SL_TEST_RUN(duplicate_detection_fails);
	SL_TEST_RUN(nd_packets);
	SL_TEST_RUN(nd_with_a_wrong_checksum);
	SL_TEST_RUN(advertisement_flags);
	SL_TEST_RUN(floods_do_not_evict);
	SL_TEST_RUN(waiting_packets_of_all_are_bounded);
	return test_end();
}
