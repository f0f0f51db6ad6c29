/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Several VLANs on one DPDK port: each a port of its own, and nothing of one gets into another. */
#include <errno.h>

#include "reasm_test.h"
#include "sl_inet_table.h"

/* Tags of the ports, their addresses and handles; the first has none of the former. */
struct lan {
	uint16_t svlan, vlan;
	const char *v4, *v6, *peer;
	uint16_t handle;
};

static struct lan lans[] = {
	{0, 0, "198.18.0.2", "2001:db8::2", "198.18.0.1", 0},
	{0, 7, "198.18.7.2", "2001:db8:7::2", "198.18.7.1", 0},
	{0, 8, "198.18.8.2", "2001:db8:8::2", "198.18.8.1", 0},
	{9, 7, "198.18.97.2", "2001:db8:97::2", "198.18.97.1", 0},
};

#define LANS SL_COUNT_OF(lans)

/* The ports in that order; duplicate detection is over, nothing is in out[]. */
static void
open_lans(const uint8_t *order)
{
	t_open_bare(&(struct sl_inet_port_conf){.svlan = lans[order[0]].svlan,
			    .vlan = lans[order[0]].vlan},
		0, 0);
	for (size_t k = 0; k < LANS; k++) {
		struct lan *l = &lans[order[k]];
		struct sl_inet_port_conf conf = {
			.port_id = t_port, .pool = t_pool, .svlan = l->svlan, .vlan = l->vlan};
		struct sl_addr v4 = t_addr(l->v4), v6 = t_addr(l->v6);

		CHECK_EQ(sl_inet_port_add(t_inet, &conf), k == 0 ? -EEXIST : 0);
		REQUIRE(sl_inet_port_find(t_inet, t_port, l->svlan, l->vlan, &l->handle) == 0);
		CHECK_EQ(l->handle == t_port, k == 0);
		REQUIRE(sl_inet_addr_add(t_inet, l->handle, &v4, 24) == 0);
		REQUIRE(sl_inet_addr_add(t_inet, l->handle, &v6, 64) == 0);
	}
	for (int i = 0; i < 4; i++)
		t_pass(1 * T_S);
	for (size_t k = 0; k < LANS; k++) {
		struct sl_addr v6 = t_addr(lans[k].v6);

		CHECK(sl_inet_addr_is_local(t_inet, &v6));
	}
	t_drop_out();
}

static const uint8_t in_order[] = {0, 1, 2, 3}, tagged_first[] = {2, 3, 0, 1};

/* Does packet i carry these tags? Returns where its type is. */
static size_t
check_tags(unsigned int i, const struct lan *l)
{
	const uint8_t *p = t_out_data(i, NULL);
	size_t at = 12;

	if (l->svlan != 0) {
		CHECK(p[at] == 0x88 && p[at + 1] == 0xa8 && p[at + 3] == l->svlan);
		at += 4;
	}
	if (l->vlan != 0) {
		CHECK(p[at] == 0x81 && p[at + 1] == 0 && p[at + 3] == l->vlan);
		at += 4;
	}
	CHECK(p[at] != 0x81 && p[at] != 0x88);
	return at;
}

static void
make(struct t_frame *f, const struct lan *l, const struct lan *to, bool v6)
{
	struct t_udp u = {.v6 = v6,
		.payload = 20,
		.svlan = l->svlan,
		.vlan = l->vlan,
		.src = v6 ? "2001:db8:5::1" : "203.0.113.1",
		.dst = v6 ? to->v6 : to->v4};

	t_udp_frame(f, &u);
}

/* Each frame reaches the port with its tags, which has its own addresses alone. */
static void
tags_decide(void)
{
	static const uint8_t *const orders[] = {in_order, tagged_first};
	struct t_frame f;

	for (size_t o = 0; o < SL_COUNT_OF(orders); o++) {
		open_lans(orders[o]);
		for (int round = 0; round < 2; round++) {
			for (size_t from = 0; from < LANS; from++) {
				for (size_t to = 0; to < 2 * LANS; to++) {
					const struct lan *l = &lans[from], *d = &lans[to / 2];

					make(&f, l, d, to % 2);
					t_drop_in();
					CHECK_EQ(t_feed(f.b, f.len),
						l == d ? SL_RX_UDP_QUEUED : SL_RX_IP_NOT_LOCAL);
					if (t_ins == 1)
						CHECK_EQ(t_in[0].port, l->handle);
				}
			}
		}
		make(&f, &(struct lan){.vlan = 6}, &lans[0], false);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_VLAN_OTHER);
		make(&f, &(struct lan){.svlan = 9, .vlan = 8}, &lans[2], false);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_VLAN_OTHER);
		make(&f, &(struct lan){.svlan = 7, .vlan = 9}, &lans[3], false);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_VLAN_OTHER);
		t_close();
	}
}

/* All in one burst, to ports that nobody listens on: each error goes back where its datagram came
 * from, and so does each echo. */
static void
replies_keep_their_tags(void)
{
	static const uint8_t echo[12] = {8, 0, 0, 0, 0, 1, 0, 1, 'p', 'i', 'n', 'g'};
	struct rte_mbuf *m[3 * LANS];
	unsigned int first;
	struct t_frame f;

	open_lans(in_order);
	t_udp_answer = SL_RX_UDP_NO_SOCKET;
	for (size_t k = 0; k < LANS; k++) {
		struct t_udp u = {.src = "203.0.113.1",
			.dst = lans[k].v4,
			.svlan = lans[k].svlan,
			.vlan = lans[k].vlan,
			.proto = IPPROTO_ICMP};
		uint8_t l4[12];

		make(&f, &lans[k], &lans[k], false);
		m[3 * k] = t_mbuf(f.b, f.len);
		make(&f, &lans[k], &lans[k], true);
		m[3 * k + 1] = t_mbuf(f.b, f.len);
		memcpy(l4, echo, sizeof(l4));
		put16(l4 + 2, (uint16_t)~t_sum(l4, sizeof(l4), 0));
		t_ip_frame(&f, &u, l4, sizeof(l4));
		m[3 * k + 2] = t_mbuf(f.b, f.len);
	}
	sl_inet_input_burst(t_inet, 0, t_port, m, SL_COUNT_OF(m));
	t_flush();
	REQUIRE(t_outs == SL_COUNT_OF(m));
	for (size_t k = 0; k < LANS; k++) {
		struct sl_addr v4 = t_addr(lans[k].v4), v6 = t_addr(lans[k].v6);
		unsigned int mine = 0;

		for (first = 0; first < t_outs; first++) {
			const uint8_t *p = t_out_data(first, NULL);
			size_t at = 12 + (p[12] == 0x88 ? 8u : p[12] == 0x81 ? 4u : 0u);

			if (memcmp(p + at + 2 + 12, v4.b + 12, 4) != 0 &&
				memcmp(p + at + 2 + 8, v6.b, 16) != 0)
				continue;
			CHECK_EQ(check_tags(first, &lans[k]), at);
			mine++;
		}
		CHECK_EQ(mine, 3);
	}
	CHECK_EQ(t_count(SL_RX_ECHO), LANS);
	CHECK_EQ(t_count(SL_RX_UDP_NO_SOCKET), 2 * LANS);
	t_close();
}

/* The route says which VLAN, and each has neighbours of its own. */
static void
sending(void)
{
	struct sl_inet_route far = {.prefix = 24};
	struct t_frame f;

	open_lans(in_order);
	far.dst = t_addr("192.0.2.0");
	far.via = t_addr(lans[3].peer);
	far.port = lans[3].handle;
	CHECK_EQ(sl_inet_route_add(t_inet, &far), 0);
	for (size_t k = 0; k < LANS + 1; k++) {
		const struct lan *l = &lans[k < LANS ? k : 3];
		struct sl_inet_flow flow = {
			.dst = t_addr(k < LANS ? l->peer : "192.0.2.9"), .sport = 1, .dport = 2};
		struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
		struct sl_addr peer = t_addr(l->peer);
		uint8_t mac[6] = {2, 0, 0, 0, 9, (uint8_t)k}, found[6];
		size_t at;

		REQUIRE(m != NULL);
		CHECK_EQ(sl_inet_source(t_inet, &flow.dst, &flow.src), 0);
		CHECK(memcmp(flow.src.b, t_addr(l->v4).b, 16) == 0);
		CHECK_EQ(sl_inet_udp_output(t_inet, 0, &flow, m), 0);
		t_flush();
		if (k < LANS) {
			uint8_t tags[8], n = 0;

			REQUIRE(t_outs == 1);
			at = check_tags(0, l);
			CHECK(t_out_data(0, NULL)[at + 1] == 6); /* ARP */
			t_drop_out();
			CHECK_EQ(sl_inet_neighbour(t_inet, l->handle, &peer, found), -EAGAIN);
			/* The answer, with its tags. */
			t_arp_frame(&f, 2, t_our_mac, mac, l->peer, l->v4);
			if (l->svlan != 0) {
				memcpy(tags, (const uint8_t[]){0x88, 0xa8, 0, 9}, 4);
				n = 4;
			}
			if (l->vlan != 0) {
				memcpy(tags + n, (const uint8_t[]){0x81, 0, 0, (uint8_t)l->vlan},
					4);
				n = (uint8_t)(n + 4);
			}
			memmove(f.b + 12 + n, f.b + 12, f.len - 12);
			memcpy(f.b + 12, tags, n);
			CHECK_EQ(t_feed(f.b, f.len + n), SL_RX_ARP);
			t_flush();
			CHECK_EQ(sl_inet_neighbour(t_inet, l->handle, &peer, found), 0);
			CHECK(memcmp(mac, found, 6) == 0);
		}
		REQUIRE(t_outs == 1);
		check_tags(0, l);
		CHECK_EQ(t_out_data(0, NULL)[5], RTE_MIN(k, LANS - 1));
		t_drop_out();
	}
	t_close();
}

static void
fragments_stay_apart(void)
{
	struct sl_inet_port_conf any = {.any_dst = true};

	t_open(&any);
	any.port_id = t_port;
	any.pool = t_pool;
	any.vlan = 7;
	REQUIRE(sl_inet_port_add(t_inet, &any) == 0);
	r_udp(false, 300);
	r_nth(1, 0, 2);
	r_how.vlan = 7;
	r_nth(1, 1, 2);
	CHECK_EQ(r_held(), 2);
	r_nth(1, 0, 2);
	r_check_udp();
	r_how.vlan = 0;
	r_nth(1, 1, 2);
	r_check_udp();
	t_close();
}

static void
mistakes(void)
{
	struct sl_inet_port_conf conf = {.port_id = t_port, .pool = t_pool, .vlan = 4095};
	struct sl_addr v4 = t_addr("198.18.0.2"), another = t_addr("198.18.50.2");
	uint16_t handle = 77;
	int ret = 0;

	open_lans(in_order);
	CHECK_EQ(sl_inet_port_add(t_inet, &conf), -EINVAL);
	conf.vlan = 0;
	conf.svlan = 3;
	CHECK_EQ(sl_inet_port_add(t_inet, &conf), -EINVAL);
	CHECK_EQ(sl_inet_port_find(t_inet, t_port, 0, 6, &handle), -ENODEV);
	CHECK_EQ(sl_inet_port_find(t_inet, 99, 0, 0, &handle), -ENODEV);
	CHECK_EQ(handle, 77);
	/* An address is on one port; handles that nobody has. */
	CHECK_EQ(sl_inet_addr_add(t_inet, lans[1].handle, &v4, 24), -EEXIST);
	CHECK_EQ(sl_inet_addr_add(t_inet, 0x8000, &another, 24), -ENODEV);
	CHECK_EQ(sl_inet_addr_add(t_inet, 0x8000 + LANS, &another, 24), -ENODEV);
	conf.svlan = 0;
	for (conf.vlan = 100; ret == 0 && conf.vlan < 300; conf.vlan++)
		ret = sl_inet_port_add(t_inet, &conf);
	CHECK_EQ(ret, -ENOSPC);
	CHECK_EQ(conf.vlan - 101, SL_INET_PORTS_MAX - LANS);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(tags_decide);
	SL_TEST_RUN(replies_keep_their_tags);
	SL_TEST_RUN(sending);
	SL_TEST_RUN(fragments_stay_apart);
	SL_TEST_RUN(mistakes);
	return test_end();
}
