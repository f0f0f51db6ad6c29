/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Neighbours, with a clock of our own: resolving, ageing, ARP, floods. */
#include <errno.h>

#include "peer_test.h"

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

/* Confirmed for 30 s; then asked again at its address if in use, else only remembered for a while.
 */
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
	{"request for another", 1, "198.18.0.1", "198.18.0.3", t_peer_mac, -1, 0, 0, SL_RX_ARP,
		false, -ENOENT},
	{"probe for our address", 1, "0.0.0.0", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP, true,
		-ENOENT},
	{"gratuitous", 1, "198.18.0.1", "198.18.0.1", t_peer_mac, -1, 0, 0, SL_RX_ARP, false,
		-ENOENT},
	{"reply nobody asked for", 2, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP,
		false, -ENOENT},
	{"claim to our address", 1, "198.18.0.2", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP,
		true, -ENOENT},
	{"our own announcement, come back", 1, "198.18.0.2", "198.18.0.2", t_our_mac, -1, 0, 0,
		SL_RX_ARP, false, -ENOENT},
	{"without padding", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 42, SL_RX_ARP, true,
		0},
	{"one byte short", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 41, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"empty", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 14, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"hardware type", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 1, 6, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"protocol type", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 3, 1, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"hardware length", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 4, 8, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"protocol length", 1, "198.18.0.1", "198.18.0.2", t_peer_mac, 5, 16, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"operation 0", 0, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"operation 3", 3, "198.18.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD, false,
		-ENOENT},
	{"sender with a group MAC address", 1, "198.18.0.1", "198.18.0.2", t_any_mac, -1, 0, 0,
		SL_RX_ARP_BAD, false, -ENOENT},
	{"sender without a MAC address", 1, "198.18.0.1", "198.18.0.2", nobody, -1, 0, 0,
		SL_RX_ARP_BAD, false, -ENOENT},
	{"sender is a group", 1, "224.0.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"sender is our broadcast address", 1, "198.18.0.255", "198.18.0.2", t_peer_mac, -1, 0, 0,
		SL_RX_ARP_BAD, false, -ENOENT},
	{"sender is loopback", 1, "127.0.0.1", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
	{"reply from nobody", 2, "0.0.0.0", "198.18.0.2", t_peer_mac, -1, 0, 0, SL_RX_ARP_BAD,
		false, -ENOENT},
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
		if (outcome != c->outcome || t_outs != c->reply ||
			lookup(c->sender, mac) != c->known)
			fprintf(stderr, "ARP %s\n", c->what);
		CHECK_EQ(outcome, c->outcome);
		CHECK_EQ(lookup(c->sender, mac), c->known);
		CHECK_EQ(t_outs, c->reply);
		if (t_outs == 1) {
			const uint8_t *p = t_out_data(0, NULL);

			CHECK(memcmp(p, c->mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
			CHECK_EQ(get16(p + 20), 2);
			CHECK(memcmp(p + 22, t_our_mac, 6) == 0 &&
				memcmp(p + 28, ours.b + 12, 4) == 0);
			CHECK(memcmp(p + 32, c->mac, 6) == 0 &&
				memcmp(p + 38, sender.b + 12, 4) == 0);
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

/* Everybody is told again once the link is there again: IPv4 by gratuitous ARP, IPv6 by an advertisement. */
static void
announced_again(void)
{
	unsigned int arp = 0, nd = 0;
	const uint8_t *p;
	size_t len;

	t_open(NULL);
	sl_inet_announce(t_inet, (uint16_t)(t_port + 1)); /* nobody's */
	t_pass(20 * T_MS);
	CHECK_EQ(t_outs, 0);
	sl_inet_announce(t_inet, t_port);
	t_pass(20 * T_MS);
	CHECK_EQ(t_outs, 3); /* both addresses, and the link-local one */
	for (unsigned int i = 0; i < t_outs; i++) {
		p = t_out_data(i, &len);
		if (len >= 42 && p[12] == 0x08 && p[13] == 0x06) {
			CHECK(memcmp(p + 28, p + 38, 4) == 0);
			arp++;
			continue;
		}
		REQUIRE(len >= 86);
		/* To all nodes, with override, of the sender's own address, with our MAC address. */
		CHECK(memcmp(p, "\x33\x33\0\0\0\1", 6) == 0);
		CHECK_EQ(p[54], 136);
		CHECK_EQ(p[58], 0x20);
		CHECK(memcmp(p + 22, p + 62, 16) == 0);
		CHECK(p[78] == 2 && p[79] == 1 && memcmp(p + 80, t_our_mac, 6) == 0);
		nd++;
	}
	CHECK_EQ(arp, 1);
	CHECK_EQ(nd, 2);
	t_drop_out();
	t_pass(1 * T_S);
	CHECK_EQ(t_outs, 0); /* once */
	t_close();
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
	SL_TEST_RUN(announced_again);
	SL_TEST_RUN(floods_do_not_evict);
	SL_TEST_RUN(waiting_packets_of_all_are_bounded);
	return test_end();
}
