/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What a burst is taken for does not depend on what stands next to it: thousands of frames, most of
 * them alike, some bent, are fed in bursts to one stack, and one by one to another. All must end in
 * the same outcomes, and the same ones be claimed, with the same said of them.
 */
#include "claim_test.h"

#define ROUNDS 300u
#define VLAN 5u

/* One that was fed. */
struct fed {
	bool claimed;
	struct sl_inet_claimed c; /* without pointers */
};

static uint32_t state;
static uint16_t vlan; /* of the port and of most frames; 0 for none */
static size_t l3;     /* where IP begins in most frames */
static struct fed fed[SL_INET_BURST];
static struct rte_mbuf *pkts[SL_INET_BURST];
static uint64_t burst_outcomes[ROUNDS][SL_OUTCOME_COUNT];
static struct fed burst_fed[ROUNDS][SL_INET_BURST];

static uint32_t
draw(uint32_t n)
{
	return (test_random(&state) >> 8) % n;
}

/* Is there an IPv4 header where most have one? */
static bool
is_ip4(const struct t_frame *f)
{
	return f->b[l3 - 2] == 8 && f->b[l3 - 1] == 0;
}

static void
frame(struct t_frame *f, uint16_t id)
{
	static const uint8_t nops[4] = {1, 1, 1, 1}, pad[8] = {17, 0, 1, 4, 0, 0, 0, 0};
	static const struct t_udp cases[] = {{.payload = 22}, {.payload = 22}, {.payload = 22},
		{.payload = 300}, {.payload = 0}, {.payload = 5, .padding = 13},
		{.sport = 4001, .payload = 9}, {.src = "198.18.0.77", .payload = 18},
		{.dport = 10, .payload = 18}, {.no_csum = true, .payload = 18},
		{.options = nops, .options_len = 4, .payload = 18},
		{.dst = "203.0.113.9", .payload = 22}, {.dst = "203.0.113.9", .payload = 22},
		{.dst = "203.0.113.10", .payload = 22},
		{.dst = "203.0.113.9", .sport = 4002, .payload = 22},
		{.src = "198.18.0.2", .payload = 18}, {.src = "127.1.2.3", .payload = 18},
		{.src = "0.1.2.3", .payload = 18}, {.src = "224.0.0.1", .payload = 18},
		{.src = "198.18.0.255", .payload = 18}, {.udp_len = 60, .payload = 18},
		{.v6 = true, .payload = 18}, {.v6 = true, .payload = 18},
		{.v6 = true, .payload = 18}, {.v6 = true, .payload = 0},
		{.v6 = true, .payload = 300}, {.v6 = true, .payload = 5, .padding = 13},
		{.v6 = true, .sport = 4001, .payload = 9}, {.v6 = true, .src = "2001:db8::77"},
		{.v6 = true, .dport = 10, .payload = 18},
		{.v6 = true, .no_csum = true, .payload = 18},
		{.v6 = true, .options = pad, .options_len = 8, .next = 60, .payload = 18},
		{.v6 = true, .dst = "2001:db8:9::7", .payload = 22},
		{.v6 = true, .dst = "2001:db8:9::7", .payload = 22},
		{.v6 = true, .dst = "2001:db8:9::8", .payload = 22},
		{.v6 = true, .dst = "fe80::8", .payload = 22},
		{.v6 = true, .src = "2001:db8::2", .payload = 18},
		{.v6 = true, .src = "::1", .payload = 18},
		{.v6 = true, .src = "fe80::1", .payload = 18},
		{.v6 = true, .src = "febf::1", .payload = 18},
		{.v6 = true, .src = "fec0::1", .payload = 18},
		{.v6 = true, .src = "ff02::1", .payload = 18},
		{.v6 = true, .udp_len = 60, .payload = 18}};
	struct t_udp u = cases[draw(SL_COUNT_OF(cases))];

	/* Another one, none, one more, or another priority. */
	u.vlan = draw(24) == 0 ? 7 : vlan;
	if (vlan != 0 && draw(12) == 0)
		u.vlan = draw(2) == 0 ? 0 : vlan | 0x6000u;
	if (u.vlan != 0 && draw(24) == 0)
		u.svlan = 9;
	t_udp_frame(f, &u);
	if (!is_ip4(f))
		return;
	/* Fragments of bent ones are those of datagrams of their own. */
	put16(f->b + l3 + 4, id);
	t_fix_ip4(f, l3);
}

/* Lengths that agree with each other, but with no datagram. */
static void
shorten(struct t_frame *f)
{
	uint32_t total = draw(28);

	put16(f->b + l3 + 2, total);
	put16(f->b + l3 + 24, (uint16_t)(total - 20));
}

/* One octet of its headers is another, and the header's sum may be right all the same. */
static void
bend(struct t_frame *f)
{
	uint32_t at = draw((uint32_t)RTE_MIN(f->len, l3 + 50u));

	if (draw(8) == 0)
		shorten(f);
	else
		f->b[at] = (uint8_t)(draw(2) != 0 ? draw(256) : f->b[at] ^ 1u << draw(8));
	if (is_ip4(f) && (f->b[l3] & 15) >= 5 && draw(3) != 0)
		t_fix_ip4(f, l3);
}

static void
make(uint16_t round, uint16_t i)
{
	static const uint64_t flags[] = {RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD,
		RTE_MBUF_F_RX_L4_CKSUM_NONE, RTE_MBUF_F_RX_IP_CKSUM_BAD,
		RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED};
	struct t_frame f;
	size_t len;

	frame(&f, (uint16_t)(round * SL_INET_BURST + i));
	if (draw(4) == 0)
		bend(&f);
	len = draw(16) == 0 ? draw((uint32_t)f.len) + 1 : f.len;
	pkts[i] = draw(16) == 0 && len > 1 ? t_mbuf_split(f.b, len, draw((uint32_t)len - 1) + 1)
					   : t_mbuf(f.b, len);
	if (draw(8) == 0)
		pkts[i]->ol_flags |= flags[draw(SL_COUNT_OF(flags))];
}

static void
note(const struct rte_mbuf *const *all)
{
	memset(fed, 0, sizeof(fed));
	for (unsigned int k = 0; k < c_n; k++) {
		struct sl_inet_claimed c = c_got[k];
		unsigned int i = 0;

		while (i < SL_INET_BURST && all[i] != c.m)
			i++;
		if (i == SL_INET_BURST) /* a fragment that waited since an earlier burst */
			continue;
		CHECK(!fed[i].claimed);
		/* What was read is what the frame has. */
		REQUIRE(c.head_len >= (c.later ? c.l4_off : c.l4_off + 8u));
		for (uint16_t at = 0; at < c.head_len; at++)
			CHECK(c_head[k][at] ==
				*(const uint8_t *)rte_pktmbuf_read(c.m, at, 1, &(uint8_t){0}));
		c.m = NULL;
		c.head = NULL;
		c.head_len = 0;
		c.follow = c.follow != NULL ? &c_follow[0] : NULL;
		fed[i] = (struct fed){.claimed = true, .c = c};
	}
}

static void
round_of(uint16_t round, bool burst)
{
	const struct rte_mbuf *all[SL_INET_BURST];

	for (uint16_t i = 0; i < SL_INET_BURST; i++)
		make(round, i);
	memcpy(all, pkts, sizeof(all));
	if (burst)
		sl_inet_input_burst(t_inet, 0, t_port, pkts, SL_INET_BURST);
	for (uint16_t i = 0; !burst && i < SL_INET_BURST; i++)
		sl_inet_input_burst(t_inet, 0, t_port, &pkts[i], 1);
	note(all);
	c_drop();
	t_drop_in();
	t_flush();
	t_drop_out();
}

/* Members, for there may be anything between them. */
static void
check_same(const struct fed *a, const struct fed *b)
{
	REQUIRE(a->claimed == b->claimed);
	CHECK_EQ(a->c.port, b->c.port);
	CHECK_EQ(a->c.l2_len, b->c.l2_len);
	CHECK_EQ(a->c.l4_off, b->c.l4_off);
	CHECK_EQ(a->c.end, b->c.end);
	CHECK_EQ(a->c.kind, b->c.kind);
	CHECK_EQ(a->c.v4, b->c.v4);
	CHECK_EQ(a->c.later, b->c.later);
	CHECK_EQ(a->c.plain, b->c.plain);
	CHECK_EQ(a->c.sport, b->c.sport);
	CHECK_EQ(a->c.dport, b->c.dport);
	CHECK(memcmp(&a->c.src, &b->c.src, 16) == 0 && memcmp(&a->c.dst, &b->c.dst, 16) == 0);
	CHECK(a->c.owner == b->c.owner && a->c.follow == b->c.follow);
}

static void
neighbours(uint16_t port_vlan)
{
	uint64_t counts[SL_OUTCOME_COUNT];
	unsigned int claimed = 0;

	vlan = port_vlan;
	l3 = vlan != 0 ? 18 : 14;
	for (int burst = 1; burst >= 0; burst--) {
		c_open_in(vlan);
		state = 12345;
		for (uint16_t r = 0; r < ROUNDS; r++) {
			round_of(r, burst);
			sl_inet_outcomes(t_inet, SL_INET_NO_WORKER, counts);
			if (burst) {
				memcpy(burst_fed[r], fed, sizeof(fed));
				memcpy(burst_outcomes[r], counts, sizeof(counts));
				continue;
			}
			for (int k = 0; k < SL_OUTCOME_TX_FIRST; k++)
				CHECK_EQ(counts[k], burst_outcomes[r][k]);
			for (uint16_t i = 0; i < SL_INET_BURST; i++) {
				check_same(&fed[i], &burst_fed[r][i]);
				claimed += fed[i].claimed;
			}
		}
		t_check_sums();
		c_close();
	}
	/* Neither few nor all. */
	CHECK(claimed > ROUNDS * SL_INET_BURST / 3 && claimed < ROUNDS * SL_INET_BURST * 9 / 10);
}

static void
untagged(void)
{
	neighbours(0);
}

static void
tagged(void)
{
	neighbours(VLAN);
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(untagged);
	SL_TEST_RUN(tagged);
	return test_end();
}
