/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the receive path does that a comparison with the kernel cannot show. One thread. */
#include <time.h>

#include "udp_priv.h"
#include "udp_msgs.h"

static void
test_demux_keeps_order(void)
{
	struct sl_udp_sock *s[3];
	uint64_t queued = tu_outcome(SL_RX_UDP_QUEUED), lost = tu_outcome(SL_RX_UDP_NO_SOCKET);
	uint32_t seed = 12345, count[4] = {0};
	struct rte_mbuf *m[SL_INET_BURST];

	for (uint16_t i = 0; i < 3; i++)
		s[i] = plain_socket((uint16_t)(PORT + i));
	for (int burst = 0; burst < 20; burst++) {
		for (int i = 0; i < SL_INET_BURST; i++) {
			uint32_t to;

			seed = seed * 1103515245 + 12345;
			to = seed >> 16 & 3;
			m[i] = numbered(TU_US, 7777, (uint16_t)(PORT + to), count[to]++);
		}
		tu_input(m, SL_INET_BURST);
		tu_drain();
	}
	for (int i = 0; i < 3; i++) {
		uint32_t at = 0;
		int n;

		reset();
		while ((n = sl_udp_recvmmsg(s[i], msgs, VLEN, MSG_DONTWAIT, NULL)) > 0) {
			for (int k = 0; k < n; k++)
				CHECK_EQ(number_in(k), at++);
		}
		CHECK_EQ(n, -EAGAIN);
		CHECK_EQ(at, count[i]);
		sl_udp_close(s[i], 0);
	}
	CHECK_EQ(tu_outcome(SL_RX_UDP_QUEUED) - queued, count[0] + count[1] + count[2]);
	CHECK_EQ(tu_outcome(SL_RX_UDP_NO_SOCKET) - lost, count[3]);
}

/* More than a burst in one call, and more than once around the queue. */
static void
test_long_call(void)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .slots = 256};
	struct sl_udp_sock *s = tu_bound(&conf, "0.0.0.0", PORT);
	uint32_t fed = 0, at = 0;

	for (int round = 0; round < 10; round++) {
		int n;

		feed(PORT, fed, 200);
		fed += 200;
		reset();
		n = sl_udp_recvmmsg(s, msgs, 190, MSG_DONTWAIT, NULL);
		CHECK_EQ(n, 190);
		for (int k = 0; k < n; k++) {
			CHECK_EQ(number_in(k), at++);
			CHECK_EQ(msgs[k].msg_len, 4);
			CHECK(names[k].sin_port == htons(7777));
		}
		reset();
		n = sl_udp_recvmmsg(s, msgs, VLEN, MSG_DONTWAIT, NULL);
		CHECK_EQ(n, 10);
		for (int k = 0; k < n; k++)
			CHECK_EQ(number_in(k), at++);
		CHECK_EQ(msgs[n].msg_len, 0);
	}
	sl_udp_close(s, 0);
}

static void
test_reuse_port_spreads(void)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .reuse_port = true};
	struct sl_udp_sock *s[4];
	int owner[256], sum[4] = {0};

	for (int i = 0; i < 4; i++)
		s[i] = tu_bound(&conf, "0.0.0.0", PORT);
	for (int round = 0; round < 3; round++) {
		for (int flow = 0; flow < 256; flow++) {
			struct rte_mbuf *m = numbered(TU_US, (uint16_t)(1000 + flow), PORT, 0);
			int got = -1;

			tu_input(&m, 1);
			for (int i = 0; i < 4; i++) {
				if (sl_udp_recvfrom(s[i], bufs[0], 4, MSG_DONTWAIT, NULL, NULL) == 4)
					got = i;
			}
			CHECK(got >= 0);
			if (round == 0)
				owner[flow] = got;
			CHECK_EQ(owner[flow], got);
			sum[got < 0 ? 0 : got]++;
		}
	}
	for (int i = 0; i < 4; i++)
		CHECK(sum[i] > 3 * 20); /* of 3 * 256 */
	/* The others take over what the closed one had; its place is filled again. */
	sl_udp_close(s[1], 0);
	for (int flow = 0; flow < 256; flow++) {
		struct rte_mbuf *m = numbered(TU_US, (uint16_t)(1000 + flow), PORT, 0);
		uint64_t before = tu_outcome(SL_RX_UDP_QUEUED);

		tu_input(&m, 1);
		CHECK_EQ(tu_outcome(SL_RX_UDP_QUEUED), before + 1);
	}
	s[1] = tu_bound(&conf, "0.0.0.0", PORT);
	for (int i = 0; i < 4; i++)
		sl_udp_close(s[i], 0);
}

static void
test_rcvbuf_edges(void)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .rcvbuf = 1};
	struct sl_udp_sock *s = tu_bound(&conf, "0.0.0.0", PORT);
	uint64_t lost = tu_outcome(SL_RX_UDP_RCVBUF);
	struct sl_udp_sock_stats stats;
	uint64_t size;

	/* Nothing queued: one is taken, whatever its size. */
	feed(PORT, 0, 3);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.queue.appended, 1);
	CHECK_EQ(stats.queue.drops[SL_UDPQ_DROP_RCVBUF], 2);
	CHECK_EQ(tu_outcome(SL_RX_UDP_RCVBUF) - lost, 2);
	size = stats.queue.rmem;
	CHECK(size > 2048);
	/* Room for three exactly, then for one byte less. */
	sl_udp_set_rcvbuf(s, 3 * size);
	feed(PORT, 1, 5);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.queue.appended, 3);
	sl_udp_set_rcvbuf(s, 3 * size - 1);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 4, 0, NULL, NULL), 4);
	feed(PORT, 9, 1);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.queue.appended, 3);
	reset();
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, VLEN, MSG_DONTWAIT, NULL), 2);
	CHECK_EQ(number_in(0), 1);
	CHECK_EQ(number_in(1), 2);
	sl_udp_close(s, 0);
}

static void
test_slots(void)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .slots = 4};
	struct sl_udp_sock *s = tu_bound(&conf, "0.0.0.0", PORT);
	uint64_t lost = tu_outcome(SL_RX_UDP_SLOTS);
	struct rte_mbuf *m[7];

	for (uint32_t i = 0; i < 7; i++)
		m[i] = numbered(TU_US, 7777, PORT, i);
	tu_input(m, 7);
	CHECK_EQ(tu_outcome(SL_RX_UDP_SLOTS) - lost, 3);
	reset();
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, VLEN, MSG_DONTWAIT, NULL), 4);
	CHECK_EQ(number_in(3), 3);
	sl_udp_close(s, 0);
}

/* A worker's loop: what the receive calls do when the queue is empty. */
static struct {
	struct sl_udp_sock *sock;
	int turns;
	int feed_at; /* turn in which a datagram comes */
	int inner;   /* what a second receive call gets, and one with MSG_DONTWAIT */
	int inner_dontwait;
} loop;

static void
turn(void *arg)
{
	uint8_t b[4];

	(void)arg;
	loop.turns++;
	if (loop.turns == loop.feed_at)
		feed(PORT, 77, 1);
	if (loop.sock != NULL) {
		loop.inner = (int)sl_udp_recvfrom(loop.sock, b, 4, 0, NULL, NULL);
		loop.inner_dontwait =
			(int)sl_udp_recvfrom(loop.sock, b, 4, MSG_DONTWAIT, NULL, NULL);
	}
}

static void
test_polls_while_waiting(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);
	struct timespec zero = {0};

	reset();
	memset(&loop, 0, sizeof(loop));
	sl_udp_set_poll(tu_udp, 0, turn, NULL);
	/* Blocking: as many turns as it takes. */
	loop.feed_at = 5;
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 64, 0, NULL, NULL), 4);
	CHECK_EQ(loop.turns, 5);
	CHECK_EQ(number_in(0), 77);
	/* Not blocking: one turn. */
	loop.turns = 0;
	loop.feed_at = 2;
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, MSG_DONTWAIT, NULL), -EAGAIN);
	CHECK_EQ(loop.turns, 1);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, MSG_DONTWAIT, NULL), 1);
	/* With something there, none. */
	loop.turns = 0;
	feed(PORT, 1, 2);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, 0, NULL), 2);
	CHECK_EQ(loop.turns, 0);
	feed(PORT, 1, 1);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, MSG_DONTWAIT, NULL), 1);
	CHECK_EQ(loop.turns, 0);
	/* {0, 0}: once. */
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, 0, &zero), -EAGAIN);
	CHECK_EQ(loop.turns, 1);
	/* Waits for one only. */
	loop.turns = 0;
	loop.feed_at = 3;
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, MSG_WAITFORONE, NULL), 1);
	CHECK_EQ(loop.turns, 3);
	sl_udp_set_poll(tu_udp, 0, NULL, NULL);
	sl_udp_close(s, 0);
}

static void
test_timeout_bounds_the_wait(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);
	struct timespec ts = {.tv_nsec = 2000000};

	reset();
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, 0, &ts), -EAGAIN);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 2000000); /* nothing received: not written */
	feed(PORT, 3, 1);
	/* The kernel would wait for the second without limit. */
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, 0, &ts), 1);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 0);
	feed(PORT, 3, 2);
	ts = (struct timespec){.tv_sec = 100};
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 2, 0, &ts), 2);
	CHECK(ts.tv_sec <= 100 && ts.tv_sec > 0);
	sl_udp_close(s, 0);
}

static void
test_second_reader(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);

	memset(&loop, 0, sizeof(loop));
	loop.feed_at = 2;
	loop.sock = s;
	sl_udp_set_poll(tu_udp, 0, turn, NULL);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 64, 0, NULL, NULL), 4);
	CHECK_EQ(loop.inner, -EBUSY);
	CHECK_EQ(loop.inner_dontwait, -EAGAIN);
	sl_udp_set_poll(tu_udp, 0, NULL, NULL);
	sl_udp_close(s, 0);
}

static void
test_recv_burst(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);
	struct sl_udp_sock_stats stats;
	struct sl_dgram d[100];
	int sum = 0, n;

	CHECK_EQ(sl_udp_recv_burst(s, d, 100), 0);
	feed(PORT, 0, 150);
	while ((n = sl_udp_recv_burst(s, d, 100)) > 0) {
		CHECK(n <= SL_UDPQ_BURST_MAX);
		for (int i = 0; i < n; i++) {
			const struct rte_mbuf *m = d[i].buf;
			uint32_t number;

			CHECK_EQ(d[i].len, 4);
			CHECK_EQ(rte_pktmbuf_pkt_len(m), 4);
			memcpy(&number, rte_pktmbuf_mtod(m, void *), sizeof(number));
			CHECK_EQ(number, sum + i);
			CHECK(d[i].sport == htons(7777) && d[i].dport == htons(PORT));
			CHECK(d[i].ttl == 64 && d[i].tos == 0x10);
			rte_pktmbuf_free(d[i].buf);
		}
		sum += n;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(sum, 150);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.datagrams, 150);
	CHECK_EQ(stats.bytes, 600);
	sl_udp_close(s, 0);
}

static void
test_close(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);
	struct sl_udp_sock_stats stats;
	uint64_t lost = tu_outcome(SL_RX_UDP_NO_SOCKET);
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	feed(PORT, 0, 100);
	sl_udp_close(s, 0);
	/* A late call finds a closed socket, not freed memory. */
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 1, 0, NULL), -EBADF);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 1, MSG_DONTWAIT, NULL), -EBADF);
	CHECK_EQ(sl_udp_recv_burst(s, &(struct sl_dgram){0}, 1), -EBADF);
	CHECK_EQ(sl_udp_sendto(s, 0, "x", 1, 0, NULL, 0), -EBADF);
	CHECK_EQ(sl_udp_bind(s, (struct sockaddr *)&any, sizeof(any)), -EBADF);
	CHECK_EQ(sl_udp_connect(s, (struct sockaddr *)&any, sizeof(any)), -EBADF);
	sl_udp_set_rcvbuf(s, 1);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.purged, 100);
	CHECK_EQ(rte_mempool_avail_count(tu_pool), TU_MBUFS);
	feed(PORT, 0, 1);
	CHECK_EQ(tu_outcome(SL_RX_UDP_NO_SOCKET) - lost, 1);
	tu_drain();
	/* The port can be had again at once. */
	s = plain_socket(PORT);
	feed(PORT, 4, 1);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 4, 0, NULL, NULL), 4);
	sl_udp_close(s, 0);
}

/* Payloads in several segments, as drivers with small buffers deliver them. */
static void
segmented(bool guarded)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .guarded = guarded};
	struct sl_udp_sock *s = tu_bound(&conf, "0.0.0.0", PORT);
	struct sl_addr src = tu_addr(TU_PEER), dst = tu_addr(TU_US);
	uint8_t out[3][40], expect[90];
	struct iovec iov[3] = {{out[0], 7}, {out[1], 40}, {out[2], 40}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 3};
	struct rte_mbuf *chain = NULL;
	struct sl_dgram d = {.len = 90, .truesize = 9000, .dport = htons(PORT), .sport = 1};
	uint8_t outcome, *at;

	memset(out, 0, sizeof(out));
	for (int i = 0; i < 90; i++)
		expect[i] = (uint8_t)(i + 1);
	for (int i = 2; i >= 0; i--) {
		struct rte_mbuf *seg = rte_pktmbuf_alloc(tu_pool);

		memcpy(rte_pktmbuf_append(seg, 30), expect + 30 * i, 30);
		if (chain != NULL)
			REQUIRE(rte_pktmbuf_chain(seg, chain) == 0);
		chain = seg;
	}
	memcpy(d.src, src.b, 16);
	memcpy(d.dst, dst.b, 16);
	d.buf = chain;
	udp_inet_ops.input(tu_udp, 0, &d, 1, &outcome);
	CHECK_EQ(outcome, SL_RX_UDP_QUEUED);
	CHECK_EQ(sl_udp_recvmsg(s, &m, MSG_PEEK), 87);
	CHECK_EQ(m.msg_flags, MSG_TRUNC);
	CHECK_EQ(sl_udp_recvmsg(s, &m, MSG_TRUNC), 90);
	at = expect;
	for (int i = 0; i < 3; at += iov[i++].iov_len)
		CHECK(memcmp(out[i], at, iov[i].iov_len) == 0);
	sl_udp_close(s, 0);
}

static void
test_segments(void)
{
	segmented(false);
	segmented(true);
}

static void
test_flags(void)
{
	struct sl_udp_sock *s = plain_socket(PORT);

	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 1, MSG_ERRQUEUE, NULL), -EINVAL);
	CHECK_EQ(sl_udp_recvmsg(s, &msgs[0].msg_hdr, MSG_OOB), -EINVAL);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 4, 1 << 30, NULL, NULL), -EINVAL);
	sl_udp_close(s, 0);
}

static void
all(uint16_t workers)
{
	tu_stack(workers, tu_pool);
	SL_TEST_RUN(test_demux_keeps_order);
	SL_TEST_RUN(test_long_call);
	SL_TEST_RUN(test_reuse_port_spreads);
	SL_TEST_RUN(test_rcvbuf_edges);
	SL_TEST_RUN(test_slots);
	SL_TEST_RUN(test_polls_while_waiting);
	SL_TEST_RUN(test_timeout_bounds_the_wait);
	SL_TEST_RUN(test_second_reader);
	SL_TEST_RUN(test_recv_burst);
	SL_TEST_RUN(test_close);
	SL_TEST_RUN(test_segments);
	SL_TEST_RUN(test_flags);
	SL_TEST_RUN(tu_stack_end);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tu_eal(argv[0]);
	tu_port();
	all(1); /* SL_UDPQ_LOCAL */
	all(2); /* SL_UDPQ_SPLIT */
	return test_end();
}
