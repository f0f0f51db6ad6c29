/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Bursts through the load balancer: what leaves does not depend on what stands next to it, nor on
 * which of its two ways of sending a packet takes; and none overtakes another of its flow.
 */
#include "forward_test.h"

#define ROUNDS 40u
#define FLOWS 5u
/* Errors may be sent again; all rounds together are over before neighbours are asked in vain. */
#define PAUSE_NS (NS_PER_S / 40)

static uint32_t state = 4711;

static uint32_t
draw(uint32_t n)
{
	return (test_random(&state) >> 8) % n;
}

/* A frame with its number in the identification or the flow label; both directions, both families.
 */
static void
make(struct t_frame *f, uint16_t number)
{
	static const uint8_t nops[4] = {1, 1, 1, 1};
	static const size_t payloads[] = {22, 22, 22, 0, 1, 300, 1452};
	struct t_udp u = {.v6 = draw(4) == 0, .payload = payloads[draw(SL_COUNT_OF(payloads))]};

	u.sport = (uint16_t)(4000 + draw(FLOWS));
	u.no_csum = !u.v6 && draw(4) == 0;
	u.ttl = draw(8) == 0 ? 1 : 64;
	if (draw(3) == 0) {
		unsigned int k = draw(BACKENDS);

		u.dst = u.v6 ? "2001:db8::1" : "198.18.0.1";
		u.src = f_backend(u.v6, k);
		u.dport = u.sport;
		u.sport = (uint16_t)(7000 + k);
	} else if (!u.v6 && draw(8) == 0) {
		u.options = nops;
		u.options_len = 4;
	}
	t_udp_frame(f, &u);
	put16(f->b + (u.v6 ? 16 : 18), number);
	if (!u.v6)
		t_fix_ip4(f, 14);
	t_tag(f, f_vlan);
}

/* What was sent as the i-th, without the tag that it must have. */
static const uint8_t *
sent_data(unsigned int i, size_t *len)
{
	static uint8_t frame[2048];
	const uint8_t *p = t_out_data(i, len);

	if (f_vlan == 0)
		return p;
	REQUIRE(*len > 18 && *len <= sizeof(frame) && get16(p + 12) == 0x8100);
	CHECK_EQ(get16(p + 14), f_vlan);
	*len -= 4;
	memcpy(frame, p, 12);
	memcpy(frame + 12, p + 16, *len - 12);
	return frame;
}

/* In one segment or two, or in memory that others see. */
static struct rte_mbuf *
pack(const struct t_frame *f, uint32_t how)
{
	struct rte_mbuf *m, *copy;

	if (how == 0)
		return t_mbuf_split(f->b, f->len, 17);
	m = t_mbuf(f->b, f->len);
	if (how != 1)
		return m;
	copy = rte_pktmbuf_clone(m, t_pool);
	rte_pktmbuf_free(m);
	return copy;
}

static uint16_t
number_of(const uint8_t *frame)
{
	return get16(frame + (frame[12] == 8 ? 18 : 16));
}

static bool
is_error(const uint8_t *frame)
{
	return frame[frame[12] == 8 ? 23 : 20] != IPPROTO_UDP;
}

/* What was sent, by number; errors are counted. Numbers of a flow must rise, for those that are
 * alike: what is odd is claimed later. */
static unsigned int
collect(struct t_frame *sent, const bool *odd)
{
	unsigned int errors = 0, last[1024] = {0};

	for (unsigned int i = 0; i < t_outs; i++) {
		size_t len;
		const uint8_t *p = sent_data(i, &len);
		bool v6 = p[12] != 8;
		size_t l4 = 14 + (v6 ? 40u : (p[14] & 15u) * 4u);
		unsigned int number = number_of(p), flow;

		if (is_error(p)) {
			errors++;
			continue;
		}
		REQUIRE(number < SL_INET_BURST && sent[number].len == 0);
		sent[number].len = len;
		memcpy(sent[number].b, p, len);
		flow = ((unsigned int)v6 * 512 + (get16(p + l4) * 7u + get16(p + l4 + 2)) % 512);
		if (odd[number])
			continue;
		CHECK(number + 1 > last[flow]);
		last[flow] = number + 1;
	}
	t_drop_out();
	return errors;
}

static void
outcomes(uint64_t *counts)
{
	memset(counts, 0, SERVICE_OUTCOMES * sizeof(*counts));
	forward_outcomes(f_fwd, counts);
	forward_outcomes(f_fwd6, counts);
}

/* One by one, then in a burst: the same leaves, and the same is counted. */
static void
neighbours(void)
{
	static struct t_frame in[SL_INET_BURST], single[SL_INET_BURST], burst[SL_INET_BURST];
	uint64_t counts[3][SERVICE_OUTCOMES];
	struct rte_mbuf *pkts[SL_INET_BURST];
	uint32_t how[SL_INET_BURST];
	bool odd[SL_INET_BURST];
	unsigned int errors, total = 0;

	f_open();
	for (unsigned int r = 0; r < ROUNDS; r++) {
		memset(single, 0, sizeof(single));
		memset(burst, 0, sizeof(burst));
		t_pass(PAUSE_NS);
		t_drop_out();
		outcomes(counts[0]);
		for (uint16_t i = 0; i < SL_INET_BURST; i++) {
			make(&in[i], i);
			how[i] = draw(12);
			odd[i] = how[i] == 0 || in[i].b[f_vlan != 0 ? 18 : 14] == 0x46;
			/* None of them goes the way of plain ones. */
			CHECK_EQ(t_feed_mbuf(pack(&in[i], how[i] == 0 ? 0 : 1)), SL_RX_CLAIMED);
		}
		t_flush();
		errors = collect(single, odd);
		t_pass(PAUSE_NS);
		t_drop_out();
		outcomes(counts[1]);
		for (uint16_t i = 0; i < SL_INET_BURST; i++)
			pkts[i] = pack(&in[i], how[i]);
		sl_inet_input_burst(t_inet, 0, t_port, pkts, SL_INET_BURST);
		t_flush();
		CHECK_EQ(collect(burst, odd), errors);
		outcomes(counts[2]);
		for (int k = 0; k < SERVICE_OUTCOMES; k++)
			CHECK_EQ(counts[2][k] - counts[1][k], counts[1][k] - counts[0][k]);
		for (unsigned int i = 0; i < SL_INET_BURST; i++) {
			CHECK_EQ(burst[i].len, single[i].len);
			CHECK(memcmp(burst[i].b, single[i].b, single[i].len) == 0);
			total += single[i].len != 0;
		}
	}
	CHECK(total > ROUNDS * SL_INET_BURST / 2);
	f_close();
}

static void
tagged(void)
{
	f_vlan = 5;
	neighbours();
	f_vlan = 0;
}

/* A VLAN on the same wire, where all three back ends are. */
static void
open_lan(uint16_t vlan)
{
	struct sl_inet_port_conf conf = {.port_id = t_port, .pool = t_pool, .vlan = vlan};
	struct sl_addr ours = t_addr("198.18.0.14");
	uint16_t handle;

	REQUIRE(sl_inet_port_add(t_inet, &conf) == 0);
	REQUIRE(sl_inet_port_find(t_inet, t_port, 0, vlan, &handle) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, handle, &ours, 29) == 0);
	for (int i = 0; i < 3; i++)
		t_pass(1 * T_S);
}

static void
clients(void)
{
	struct rte_mbuf *pkts[SL_INET_BURST];
	struct t_frame f;

	for (uint16_t i = 0; i < SL_INET_BURST; i++) {
		t_udp_frame(&f, &(struct t_udp){.sport = (uint16_t)(4000 + i), .payload = 18});
		pkts[i] = t_mbuf(f.b, f.len);
	}
	sl_inet_input_burst(t_inet, 0, t_port, pkts, SL_INET_BURST);
	t_flush();
}

/* From a link without tags to one with: headers get longer. */
static void
between(void)
{
	unsigned int to[BACKENDS] = {0};
	struct t_frame f;

	f_open();
	open_lan(8);
	clients(); /* the stack asks for them */
	f_vlan = 8;
	for (unsigned int i = 0; i < BACKENDS; i++) {
		t_arp_frame(&f, 1, t_our_mac, f_mac, f_backend(false, i), "198.18.0.14");
		t_tag(&f, f_vlan);
		t_feed(f.b, f.len);
	}
	t_flush();
	t_drop_out();
	clients();
	REQUIRE(t_outs == SL_INET_BURST);
	for (unsigned int i = 0; i < t_outs; i++) {
		size_t len;
		const uint8_t *p = sent_data(i, &len);
		int k = backend_of(p, false);

		REQUIRE(k >= 0 && len == 60 && memcmp(p, f_mac, 6) == 0);
		check_sums(p, len, false, "198.18.0.1", f_backend(false, (unsigned int)k));
		to[k]++;
	}
	for (unsigned int i = 0; i < BACKENDS; i++)
		CHECK(to[i] > 0);
	f_vlan = 0;
	t_drop_out();
	f_close();
}

/* To a client whose address nobody has asked for: they wait, and leave as they came. */
static void
unknown(void)
{
	struct rte_mbuf *pkts[20];
	unsigned int next = 0;
	struct t_frame f;
	const uint8_t *p;
	size_t len;

	f_open();
	for (uint16_t i = 0; i < SL_COUNT_OF(pkts); i++) {
		t_udp_frame(&f, &(struct t_udp){.src = f_backend(false, 1),
					.dst = "198.18.0.99",
					.sport = 7001,
					.dport = 5000,
					.payload = 18});
		put16(f.b + 18, i);
		t_fix_ip4(&f, 14);
		pkts[i] = t_mbuf(f.b, f.len);
	}
	sl_inet_input_burst(t_inet, 0, t_port, pkts, SL_COUNT_OF(pkts));
	t_flush();
	REQUIRE(t_outs == 1); /* the question */
	CHECK_EQ(t_out_data(0, &len)[13], 6);
	t_drop_out();
	know(false, "198.18.0.99");
	t_flush();
	REQUIRE(t_outs == SL_COUNT_OF(pkts) + 1); /* and an answer */
	for (unsigned int i = 0; i < t_outs; i++) {
		p = t_out_data(i, &len);
		if (p[13] == 0)
			CHECK_EQ(number_of(p), next++);
	}
	CHECK_EQ(next, SL_COUNT_OF(pkts));
	t_drop_out();
	CHECK_EQ(outcome(SERVICE_FORWARD_RETURNED), SL_COUNT_OF(pkts));
	f_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(neighbours);
	SL_TEST_RUN(tagged);
	SL_TEST_RUN(between);
	SL_TEST_RUN(unknown);
	return test_end();
}
