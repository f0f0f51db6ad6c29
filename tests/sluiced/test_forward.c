/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Datagrams through the load balancer: what leaves, in which shape, and what is refused. */
#include "forward_test.h"

/* Both ways, all shapes; also in memory that is not ours to write. */
static void
both_ways(void)
{
	static const uint8_t nops[4] = {1, 1, 1, 1};
	static const struct t_udp cases[] = {{.payload = 18}, {.payload = 0}, {.payload = 1},
		{.payload = 1472}, {.payload = 2, .padding = 16}, {.payload = 18, .no_csum = true},
		{.payload = 18, .options = nops, .options_len = 4}, {.payload = 18, .ttl = 2},
		{.v6 = true, .payload = 18}, {.v6 = true, .payload = 0},
		{.v6 = true, .payload = 1452}};

	f_open();
	for (size_t i = 0; i < SL_COUNT_OF(cases) * 3; i++) {
		struct t_udp u = cases[i / 3], back;
		const char *client = u.v6 ? "2001:db8::1" : "198.18.0.1";
		const char *self = u.v6 ? "2001:db8::2" : "198.18.0.2";
		struct rte_mbuf *m, *whole;
		struct t_frame f;
		size_t len;
		int k;

		for (uint16_t flow = 0; flow < 40; flow++) {
			u.sport = (uint16_t)(4000 + flow);
			t_udp_frame(&f, &u);
			whole = i % 3 == 1 ? t_mbuf_split(f.b, f.len, RTE_MIN(5u + flow, f.len - 1))
					   : t_mbuf(f.b, f.len);
			m = i % 3 == 2 ? rte_pktmbuf_clone(whole, t_pool) : whole;
			CHECK_EQ(t_feed_mbuf(m), SL_RX_CLAIMED);
			t_flush();
			REQUIRE(t_outs == 1);
			k = backend_of(t_out_data(0, &len), u.v6);
			REQUIRE(k >= 0);
			check_out(&f, &u, client, u.sport, f_backend(u.v6, (unsigned int)k),
				(uint16_t)(7000 + k));
			t_drop_out();
			if (m != whole) { /* who else sees it sees no change */
				CHECK(memcmp(rte_pktmbuf_mtod(whole, void *), f.b, f.len) == 0);
				rte_pktmbuf_free(whole);
			}
			back = u;
			back.src = f_backend(u.v6, (unsigned int)k);
			back.dst = client;
			back.sport = (uint16_t)(7000 + k);
			back.dport = u.sport;
			t_udp_frame(&f, &back);
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
			check_out(&f, &back, self, 9, client, u.sport);
			t_drop_out();
		}
	}
	CHECK_EQ(outcome(SERVICE_FORWARDED), SL_COUNT_OF(cases) * 3 * 40);
	CHECK_EQ(outcome(SERVICE_FORWARD_RETURNED), SL_COUNT_OF(cases) * 3 * 40);
	f_close();
}

/* A sum that comes out as zero leaves as 0xffff: every value of two octets of payload. */
static void
sums(void)
{
	unsigned int ones = 0;

	f_open();
	for (int v6 = 0; v6 < 2; v6++) {
		for (uint32_t value = 0; value < 65536; value += 1) {
			struct t_udp u = {.v6 = v6, .payload = 2};
			struct t_frame f;
			size_t len, l4 = 14 + (v6 ? 40 : 20);
			const uint8_t *p;
			struct rte_mbuf *m;
			uint16_t sum;

			if (value == 0)
				t_udp_frame(&f, &u);
			put16(f.b + l4 + 8, value);
			put16(f.b + l4 + 6, 0);
			sum = (uint16_t)~t_sum(
				f.b + l4, 10, t_pseudo(src_of(&u), dst_of(&u), IPPROTO_UDP, 10));
			put16(f.b + l4 + 6, sum != 0 ? sum : 0xffff);
			m = t_mbuf(f.b, f.len);
			sl_inet_input_burst(t_inet, 0, t_port, &m, 1);
			t_flush();
			p = t_out_data(0, &len) + l4;
			sum = get16(p + 6);
			REQUIRE(sum != 0);
			ones += sum == 0xffff;
			if (value % 257 == 0 || sum == 0xffff)
				check_sums(p - l4, len, v6, src_of(&u),
					f_backend(v6, (unsigned int)backend_of(p - l4, v6)));
			t_drop_out();
		}
	}
	CHECK_EQ(ones, 2);
	f_close();
}

/* What the sender has left to hardware is done here, the port having none. */
static void
partial(void)
{
	f_open();
	for (int v6 = 0; v6 < 2; v6++) {
		struct t_udp u = {.v6 = v6, .payload = 301};
		size_t l4 = 14 + (v6 ? 40 : 20);
		struct rte_mbuf *m;
		struct t_frame f;
		int k;

		t_udp_frame(&f, &u);
		put16(f.b + l4 + 6,
			t_sum(NULL, 0, t_pseudo(src_of(&u), dst_of(&u), IPPROTO_UDP, 309)));
		m = t_mbuf(f.b, f.len);
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
		CHECK_EQ(t_feed_mbuf(m), SL_RX_CLAIMED);
		t_flush();
		k = backend_of(t_out_data(0, NULL), v6);
		REQUIRE(k >= 0);
		CHECK_EQ(t_out[0]->ol_flags, 0);
		check_out(&f, &u, src_of(&u), 4000, f_backend(v6, (unsigned int)k),
			(uint16_t)(7000 + k));
		t_drop_out();
	}
	f_close();
}

/* The ICMP error that was sent is of that type and quotes the frame. */
static void
check_error(const struct t_frame *f, bool v6, uint8_t type, uint8_t code, uint16_t mtu)
{
	size_t len, hdr = v6 ? 40 : 20;
	const uint8_t *p;

	t_flush();
	REQUIRE(t_outs == 1);
	p = t_out_data(0, &len) + 14;
	CHECK_EQ(p[hdr], type);
	CHECK_EQ(p[hdr + 1], code);
	CHECK_EQ(get16(p + hdr + 6), mtu);
	CHECK(memcmp(p + hdr + 8, f->b + 14, RTE_MIN(len - 14 - hdr - 8, f->len - 14)) == 0);
	t_drop_out();
}

static void
refused(void)
{
	struct t_frame f;

	f_open();
	for (int v6 = 0; v6 < 2; v6++) {
		struct t_udp u = {.v6 = v6, .payload = 18, .ttl = 1};
		struct t_udp far = {.v6 = v6,
			.payload = 18,
			.src = f_backend(v6, 0),
			.sport = 7000,
			.dst = v6 ? "2001:db9::1" : "203.0.113.9"};
		struct t_udp big = {.v6 = v6, .payload = 1600, .frag = 0x4000};

		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_error(&f, v6, v6 ? 3 : 11, 0, 0);
		t_udp_frame(&f, &far);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_error(&f, v6, v6 ? 1 : 3, 0, 0);
		t_udp_frame(&f, &big);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_error(&f, v6, v6 ? 2 : 3, v6 ? 0 : 4, 1500);
	}
	CHECK_EQ(outcome(SERVICE_FORWARD_TTL), 2);
	CHECK_EQ(outcome(SERVICE_FORWARD_UNREACHABLE), 2);
	CHECK_EQ(outcome(SERVICE_FORWARD_TOO_BIG), 2);
	f_close();
}

/* One that may be cut goes out in pieces that make the datagram again. */
static void
split(void)
{
	struct t_udp u = {.payload = 1801};
	uint8_t all[4096] = {0};
	struct t_frame f;
	size_t end = 0;
	int k = -1;

	f_open();
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
	t_flush();
	REQUIRE(t_outs == 2);
	for (unsigned int i = 0; i < 2; i++) {
		size_t len, off;
		const uint8_t *p = t_out_data(i, &len);

		CHECK(len <= 1514);
		CHECK_EQ(t_sum(p + 14, 20, 0), 0xffff);
		CHECK(k < 0 || k == backend_of(p, false));
		k = backend_of(p, false);
		off = (get16(p + 20) & 0x1fffu) * 8u;
		CHECK_EQ((get16(p + 20) & 0x2000) != 0, i == 0);
		memcpy(all + off, p + 34, len - 34);
		end = RTE_MAX(end, off + len - 34);
	}
	REQUIRE(k >= 0);
	CHECK_EQ(end, 1809);
	CHECK_EQ(t_sum(all, end,
			 t_pseudo("198.18.0.1", f_backend(false, (unsigned int)k), IPPROTO_UDP,
				 end)),
		0xffff);
	CHECK(memcmp(all + 8, f.b + 42, 1801) == 0);
	f_close();
}

/* Fragments in every order go to one back end, and make the datagram again there. */
static void
fragments(bool v6)
{
	static const uint8_t order[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	f_open();
	for (uint32_t n = 0; n < SL_COUNT_OF(order) * 8; n++) {
		uint8_t all[4096] = {0};
		int k = -1;

		r_udp(v6, 2992);
		for (size_t i = 0; i < 3; i++)
			r_nth(n, order[n / 8][i], 3);
		t_flush();
		REQUIRE(t_outs == 3);
		for (unsigned int i = 0; i < 3; i++) {
			size_t len, off, hdr = v6 ? 62 : 34;
			const uint8_t *p = t_out_data(i, &len);

			CHECK(k < 0 || k == backend_of(p, v6));
			k = backend_of(p, v6);
			if (!v6)
				CHECK_EQ(t_sum(p + 14, 20, 0), 0xffff);
			off = v6 ? get16(p + 56) & 0xfff8u : (get16(p + 20) & 0x1fffu) * 8u;
			memcpy(all + off, p + hdr, len - hdr);
		}
		REQUIRE(k >= 0);
		CHECK_EQ(get16(all + 2), 7000 + k);
		CHECK_EQ(t_sum(all, 3000,
				 t_pseudo(r_src(), f_backend(v6, (unsigned int)k), IPPROTO_UDP,
					 3000)),
			0xffff);
		CHECK(memcmp(all + 8, r_data + 8, 2992) == 0);
		t_drop_out();
	}
	f_close();
}

static void
fragments4(void)
{
	fragments(false);
}

static void
fragments6(void)
{
	fragments(true);
}

/* Without a back end none of a datagram's fragments gets anywhere, and the sender hears it once. */
static void
nobody(void)
{
	struct t_frame f;

	f_open();
	for (unsigned int i = 0; i < BACKENDS; i++) {
		CHECK_EQ(set_state(f_fwd, f_conf.backend[i].name, BALANCER_DOWN), 0);
		CHECK_EQ(set_state(f_fwd6, f_conf.backend[i].name, BALANCER_DOWN), 0);
	}
	CHECK_EQ(set_state(f_fwd, "nobody", BALANCER_DOWN), -ENOENT);
	for (int v6 = 0; v6 < 2; v6++) {
		t_udp_frame(&f, &(struct t_udp){.v6 = v6, .payload = 18});
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_error(&f, v6, v6 ? 1 : 3, v6 ? 4 : 3, 0);
		r_udp(v6, 2992);
		for (size_t i = 0; i < 3; i++)
			r_nth(5, i, 3);
		t_flush();
		CHECK_EQ(t_outs, 1);
		t_drop_out();
	}
	CHECK_EQ(outcome(SERVICE_FORWARD_NO_BACKEND), 8);
	/* They are back, and a fragment that is late still finds that its first one went nowhere.
	 */
	CHECK_EQ(set_state(f_fwd6, "b0", BALANCER_UP), 0);
	r_nth(5, 1, 3);
	CHECK_EQ(outcome(SERVICE_FORWARD_NO_BACKEND), 9);
	f_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(both_ways);
	SL_TEST_RUN(sums);
	SL_TEST_RUN(partial);
	SL_TEST_RUN(refused);
	SL_TEST_RUN(split);
	SL_TEST_RUN(fragments4);
	SL_TEST_RUN(fragments6);
	SL_TEST_RUN(nobody);
	return test_end();
}
