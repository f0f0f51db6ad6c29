/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The load balancer with packets: what leaves, octet by octet, and what becomes of all that enters.
 *
 *     client 198.18.0.1:4000 ---> service 198.18.0.2:9 ---> back ends 198.18.0.11.. :7000..
 */
#include <errno.h>

#include "forward_priv.h"
#include "inet_test.h"
#include "reasm_test.h"

#define BACKENDS 3

static struct daemon f_daemon;
static struct conf f_conf, f_conf6;
static struct forward *f_fwd, *f_fwd6;

static const uint8_t f_mac[6] = {2, 0, 0, 0, 0, 0x10};

static const char *
f_backend(bool v6, unsigned int i)
{
	static const char *const v4s[] = {"198.18.0.11", "198.18.0.12", "198.18.0.13"};
	static const char *const v6s[] = {"2001:db8::11", "2001:db8::12", "2001:db8::13"};

	return v6 ? v6s[i] : v4s[i];
}

static void
fill(struct conf *conf, bool v6)
{
	struct conf_service *s = &conf->service[0];

	memset(conf, 0, sizeof(*conf));
	conf->nbackends = BACKENDS;
	conf->nservices = 1;
	for (uint16_t i = 0; i < BACKENDS; i++) {
		snprintf(conf->backend[i].name, CONF_NAME_LEN, "b%u", i);
		conf->backend[i].addr = t_addr(f_backend(v6, i));
		conf->backend[i].udp_port = (uint16_t)(7000 + i);
		conf->backend[i].weight = 1;
		s->forward.backend[i] = i;
	}
	snprintf(s->name, CONF_NAME_LEN, v6 ? "six" : "four");
	s->kind = CONF_FORWARD;
	s->udp_port = 9;
	s->address = t_addr(v6 ? "2001:db8::2" : "198.18.0.2");
	s->forward.nbackends = BACKENDS;
	s->forward.slots = 251;
	s->forward.flows = 64;
	s->forward.idle_ms = 1000;
	s->forward.inserts_per_s = 100000;
}

/* This thread is the worker, too, and control calls wait for workers. */
static void
rest(void)
{
	sl_inet_worker_offline(t_inet, 0);
}

static int
set_state(struct forward *f, const char *backend, enum balancer_state state)
{
	rest();
	return forward_set_state(f, backend, state);
}

static int
apply(const struct conf *conf)
{
	int ret;

	rest();
	ret = forward_prepare(f_fwd, conf, &conf->service[0]);
	if (ret == 0)
		forward_commit(f_fwd);
	return ret;
}

static void
publish(void)
{
	struct forward *all[] = {f_fwd, f_fwd6};
	struct sl_inet_claims *claims;

	REQUIRE(forward_claims_make(&f_daemon, all, 2, &claims) == 0);
	rest();
	forward_claims_publish(&f_daemon, claims);
}

/* Everybody on the link has the same MAC address, which is known. */
static void
know(bool v6, const char *addr)
{
	struct t_frame f;

	if (v6) {
		uint8_t msg[64];
		size_t len = t_nd(msg, 136, 0x60, addr, f_mac);

		t_icmp6_frame(&f, addr, "2001:db8::2", t_our_mac, 255, msg, len);
	} else {
		t_arp_frame(&f, 1, t_our_mac, f_mac, addr, "198.18.0.2");
	}
	t_feed(f.b, f.len);
}

/* Packets for it have gone out once, so that IPv6's answer finds a question. */
static void
ask(bool v6, const char *addr)
{
	struct sl_addr dst = t_addr(addr);
	struct sl_inet_way way;
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);

	REQUIRE(m != NULL && sl_inet_way_find(t_inet, 0, &dst, &way) == 0);
	rte_pktmbuf_append(m, v6 ? 40 : 20);
	sl_inet_way_output(t_inet, 0, &way, m);
	know(v6, addr);
}

static void
f_open(void)
{
	t_open(NULL);
	memset(&f_daemon, 0, sizeof(f_daemon));
	f_daemon.inet = t_inet;
	f_daemon.pool = t_pool;
	f_daemon.nworkers = 2;
	fill(&f_conf, false);
	fill(&f_conf6, true);
	REQUIRE(forward_open(&f_daemon, &f_conf, &f_conf.service[0], &f_fwd) == 0);
	REQUIRE(forward_open(&f_daemon, &f_conf6, &f_conf6.service[0], &f_fwd6) == 0);
	publish();
	for (int v6 = 0; v6 < 2; v6++) {
		for (unsigned int i = 0; i < BACKENDS; i++)
			ask(v6, f_backend(v6, i));
		ask(v6, v6 ? "2001:db8::1" : "198.18.0.1");
	}
	t_flush();
	t_drop_out();
}

static uint64_t
outcome(enum service_outcome what)
{
	uint64_t sums[SERVICE_OUTCOMES] = {0};

	forward_outcomes(f_fwd, sums);
	forward_outcomes(f_fwd6, sums);
	return sums[what];
}

/* All that was claimed has an outcome of the services'. */
static void
f_check(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		sum += outcome((enum service_outcome)i);
	CHECK_EQ(sum, forward_entered(f_fwd) + forward_entered(f_fwd6));
	CHECK_EQ(sum, t_count(SL_RX_CLAIMED));
}

static void
f_close(void)
{
	f_check();
	rest();
	forward_claims_publish(&f_daemon, NULL);
	forward_close(&f_daemon, f_fwd);
	forward_close(&f_daemon, f_fwd6);
	CHECK_EQ(f_daemon.gone_claimed, t_count(SL_RX_CLAIMED));
	t_close();
}

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Which back end a packet that was sent goes to; -1: none of them. */
static int
backend_of(const uint8_t *frame, bool v6)
{
	for (unsigned int i = 0; i < BACKENDS; i++) {
		struct sl_addr a = t_addr(f_backend(v6, i));

		if (memcmp(frame + (v6 ? 38 : 30), a.b + (v6 ? 0 : 12), v6 ? 16 : 4) == 0)
			return (int)i;
	}
	return -1;
}

/* Checksums of a UDP packet are right; one that is zero is not there. */
static void
check_sums(const uint8_t *frame, size_t len, bool v6, const char *src, const char *dst)
{
	size_t hdr = 14 + (v6 ? 40u : (frame[14] & 15u) * 4u), l4 = len - hdr;
	const uint8_t *udp = frame + hdr;

	if (!v6)
		CHECK_EQ(t_sum(frame + 14, hdr - 14, 0), 0xffff);
	if (get16(udp + 6) != 0)
		CHECK_EQ(t_sum(udp, l4, t_pseudo(src, dst, IPPROTO_UDP, l4)), 0xffff);
}

/* The one packet that was sent is that of in, from src:sport to dst:dport, with a hop less. */
static void
check_out(const struct t_frame *in, const struct t_udp *u, const char *src, uint16_t sport,
	const char *dst, uint16_t dport)
{
	size_t len, hdr = (u->v6 ? 40u : 20u) + u->options_len;
	struct sl_addr s = t_addr(src), d = t_addr(dst);
	const uint8_t *p, *ip;

	t_flush();
	REQUIRE(t_outs == 1);
	REQUIRE(rte_pktmbuf_pkt_len(t_out[0]) == in->len - u->padding);
	p = t_out_data(0, &len);
	ip = p + 14;
	CHECK(memcmp(p, f_mac, 6) == 0 && memcmp(p + 6, t_our_mac, 6) == 0);
	CHECK(memcmp(ip + (u->v6 ? 8 : 12), s.b + (u->v6 ? 0 : 12), u->v6 ? 16 : 4) == 0);
	CHECK(memcmp(ip + (u->v6 ? 24 : 16), d.b + (u->v6 ? 0 : 12), u->v6 ? 16 : 4) == 0);
	CHECK_EQ(ip[u->v6 ? 7 : 8], in->b[14 + (u->v6 ? 7 : 8)] - 1);
	CHECK_EQ(get16(ip + hdr), sport);
	CHECK_EQ(get16(ip + hdr + 2), dport);
	CHECK_EQ(get16(ip + hdr + 6) == 0, u->no_csum);
	CHECK(memcmp(ip + hdr + 8, in->b + 14 + hdr + 8, len - 14 - hdr - 8) == 0);
	check_sums(p, len, u->v6, src, dst);
}

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

/* An ICMP error of either family that quotes len bytes of a UDP frame. */
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
	size_t at = 8 + len;

	t_udp_frame(&q, quoted);
	memcpy(msg + 8, q.b + 14, len);
	put16(msg + 2,
		(uint16_t)~t_sum(msg, at, u.v6 ? t_pseudo(from, to, IPPROTO_ICMPV6, at) : 0));
	t_ip_frame(f, &u, msg, at);
}

/* What was sent is the error that quotes `quoted`, from `from` to `to`. */
static void
check_icmp(const struct t_udp *quoted, const char *from, const char *to, size_t len)
{
	struct t_frame want;
	const uint8_t *p;
	size_t got, hop = quoted->v6 ? 21 : 22;

	icmp_frame(&want, quoted, from, to, len);
	want.b[hop]--;
	if (!quoted->v6)
		t_fix_ip4(&want, 14);
	t_flush();
	REQUIRE(t_outs == 1);
	p = t_out_data(0, &got);
	CHECK_EQ(got, want.len);
	CHECK(memcmp(p + 14, want.b + 14, want.len - 14) == 0);
	t_drop_out();
}

static void
errors(void)
{
	f_open();
	for (int n = 0; n < 4; n++) {
		bool v6 = n & 1;
		struct forward *fwd = v6 ? f_fwd6 : f_fwd;
		const char *client = v6 ? "2001:db8::1" : "198.18.0.1";
		const char *self = v6 ? "2001:db8::2" : "198.18.0.2";
		const char *router = v6 ? "2001:db8::77" : "198.18.0.77";
		/* All of it, or the UDP header at the end. */
		size_t len = (v6 ? 40u : 20u) + (n & 2 ? 8u : 26u);
		struct t_udp u = {.v6 = v6, .payload = 18};
		struct t_udp on = u, back = u, returned = u;
		const char *backend;
		struct t_frame f;
		uint16_t k;

		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		t_flush();
		k = (uint16_t)backend_of(t_out_data(0, NULL), v6);
		t_drop_out();
		backend = f_backend(v6, k);
		on.dst = backend;
		on.dport = (uint16_t)(7000 + k);
		CHECK(!forward_unreachable_take(fwd, k));
		/* A router on the way keeps its address; a back end's is not shown. */
		icmp_frame(&f, &on, router, client, len);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_icmp(&u, router, client, len);
		CHECK(!forward_unreachable_take(fwd, k));
		icmp_frame(&f, &on, backend, client, len);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_icmp(&u, self, client, len);
		CHECK(forward_unreachable_take(fwd, k));
		CHECK(!forward_unreachable_take(fwd, k));
		/* About an answer. */
		back.src = self;
		back.sport = 9;
		back.dst = client;
		back.dport = 4000;
		returned = back;
		returned.src = backend;
		returned.sport = (uint16_t)(7000 + k);
		icmp_frame(&f, &back, router, self, len);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
		check_icmp(&returned, router, backend, len);
	}
	CHECK_EQ(outcome(SERVICE_FORWARD_ERROR), 12);
	f_close();
}

/* Views: a drain, a down, a reload; flows stay or move as they should, with their counts. */
static void
changes(void)
{
	struct forward_backend_stats stats;
	struct forward_explanation e;
	struct flow_key key = {.sport = rte_cpu_to_be_16(4000),
		.dport = rte_cpu_to_be_16(9),
		.proto = IPPROTO_UDP};
	struct sl_addr client = t_addr("198.18.0.1"), self = t_addr("198.18.0.2");
	struct t_frame f;
	uint64_t flows = 0, slots = 0;
	uint16_t k;

	f_open();
	memcpy(key.src, client.b, 16);
	memcpy(key.dst, self.b, 16);
	for (uint16_t flow = 0; flow < 50; flow++) {
		t_udp_frame(&f, &(struct t_udp){.sport = (uint16_t)(4000 + flow), .payload = 18});
		t_feed(f.b, f.len);
	}
	t_flush();
	for (uint16_t i = 0; i < BACKENDS; i++) {
		REQUIRE(forward_backend_stats(f_fwd, i, &stats) == 0);
		CHECK(stats.flows > 0 && stats.state == BALANCER_UP);
		CHECK_EQ(stats.picked, stats.flows);
		flows += stats.flows;
		slots += stats.slots;
	}
	CHECK_EQ(flows, 50);
	CHECK_EQ(slots, 251);
	CHECK_EQ(forward_backend_stats(f_fwd, BACKENDS, &stats), -ENOENT);
	k = (uint16_t)backend_of(t_out_data(0, NULL), false);
	t_drop_out();
	forward_explain(f_fwd, &key, &e);
	CHECK_EQ(e.e.pick.backend, k);
	CHECK_EQ(e.e.pick.reason, BALANCER_KNOWN);
	REQUIRE(e.backend != NULL);
	CHECK(strcmp(e.backend, f_conf.backend[k].name) == 0);
	/* Draining with keep: it stays. Down: it moves. */
	CHECK_EQ(set_state(f_fwd, e.backend, BALANCER_DRAINING), 0);
	t_udp_frame(&f, &(struct t_udp){.payload = 18});
	for (int down = 0; down < 2; down++) {
		t_feed(f.b, f.len);
		t_flush();
		CHECK_EQ(backend_of(t_out_data(0, NULL), false) == k, !down);
		t_drop_out();
		CHECK_EQ(set_state(f_fwd, f_conf.backend[k].name, BALANCER_DOWN), 0);
	}
	/* Flows age. */
	for (uint64_t ms = 1; ms < 3000; ms += 10)
		forward_turn(f_fwd, 0, t_now / T_MS + ms);
	flows = 0;
	for (uint16_t i = 0; i < BACKENDS; i++)
		flows += forward_flows(f_fwd, i);
	CHECK_EQ(flows, 0);
	f_close();
}

/* Reloads without a back end and with it again: others keep index and flows; its answers are
 * nobody's any more meanwhile. */
static void
reloads(void)
{
	struct forward_backend_stats stats;
	struct conf next;
	struct t_frame f;
	uint16_t k = 1;

	f_open();
	next = f_conf;
	next.service[0].forward.nbackends = 0;
	for (uint16_t i = BACKENDS; i-- > 0;)
		if (i != k)
			next.service[0].forward.backend[next.service[0].forward.nbackends++] = i;
	REQUIRE(apply(&next) == 0);
	publish();
	CHECK_EQ(forward_find(f_fwd, f_conf.backend[k].name), MAGLEV_NONE);
	for (uint16_t i = 0; i < BACKENDS; i++)
		CHECK(i == k || forward_find(f_fwd, f_conf.backend[i].name) == i);
	t_udp_frame(&f, &(struct t_udp){.src = f_backend(false, k),
				.sport = (uint16_t)(7000 + k),
				.dst = "198.18.0.1",
				.dport = 4000});
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	/* And with it again: up, with a generation of its own. */
	REQUIRE(forward_prepare(f_fwd, &f_conf, &f_conf.service[0]) == 0);
	CHECK_EQ(forward_find(f_fwd, f_conf.backend[k].name), MAGLEV_NONE);
	/* Not after all; and then it is claimed for before anything is sent to it. */
	forward_abandon(f_fwd);
	publish();
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	REQUIRE(forward_prepare(f_fwd, &f_conf, &f_conf.service[0]) == 0);
	publish();
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_CLAIMED);
	rest();
	forward_commit(f_fwd);
	CHECK_EQ(forward_find(f_fwd, f_conf.backend[k].name), k);
	REQUIRE(forward_backend_stats(f_fwd, k, &stats) == 0);
	CHECK_EQ(stats.state, BALANCER_UP);
	f_close();
}

/* No packet for a copy: counted. */
static void
no_mbufs(void)
{
	static struct rte_mbuf *all[T_POOL];
	struct rte_mbuf *m, *clone;
	unsigned int n = 0;
	struct t_frame f;

	f_open();
	t_udp_frame(&f, &(struct t_udp){.payload = 18});
	m = t_mbuf(f.b, f.len);
	clone = rte_pktmbuf_clone(m, t_pool);
	while (n < T_POOL && (all[n] = rte_pktmbuf_alloc(t_pool)) != NULL)
		n++;
	CHECK_EQ(t_feed_mbuf(clone), SL_RX_CLAIMED);
	CHECK_EQ(outcome(SERVICE_FORWARD_NO_MBUF), 1);
	rte_pktmbuf_free_bulk(all, n);
	rte_pktmbuf_free(m);
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
	SL_TEST_RUN(errors);
	SL_TEST_RUN(changes);
	SL_TEST_RUN(reloads);
	SL_TEST_RUN(no_mbufs);
	return test_end();
}
