/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The load balancer when things change: ICMP errors, states of back ends, reloads, no memory. */
#include "forward_test.h"

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
	SL_TEST_RUN(errors);
	SL_TEST_RUN(changes);
	SL_TEST_RUN(reloads);
	SL_TEST_RUN(no_mbufs);
	return test_end();
}
