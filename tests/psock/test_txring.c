/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Sending the transmit ring: states, byte counts, waiting and not waiting, lending and copying. */
#include <poll.h>

#include "psock_help.h"

#define NONE SL_PSOCK_NO_WORKER
#define EACH_VERSION(v) for (int v = TPACKET_V1; v <= TPACKET_V3; v++)

/* A socket with a mapped transmit ring. */
struct ring {
	struct sl_psock *s;
	uint8_t *map;
	int version;
};

static struct ring
ring_open(int type, int version)
{
	struct ring r = {.s = sock_bound(type, 0), .version = version};

	REQUIRE(sock_ring(r.s, PACKET_TX_RING, version) == 0);
	r.map = sock_map(r.s, FRAME * FRAMES);
	return r;
}

static void
ring_end(struct ring *r)
{
	sl_psock_munmap(r->s, r->map, FRAME * FRAMES);
	sl_psock_close(r->s, NONE);
}

static uint8_t *
slot(const struct ring *r, uint32_t n)
{
	return r->map + (size_t)n * FRAME;
}

/* Fill a slot with a frame whose bytes are `fill`, and ask for it. */
static void
request(const struct ring *r, uint32_t n, uint32_t len, uint8_t fill)
{
	uint8_t *data = slot(r, n) + sl_pktring_data(r->version);

	memset(data, fill, RTE_MIN(len, FRAME - sl_pktring_data(r->version)));
	sl_pktring_request(r->version, slot(r, n), len);
}

static uint64_t
status(const struct ring *r, uint32_t n)
{
	return sl_pktring_status(r->version, slot(r, n));
}

static uint16_t
take(struct rte_mbuf **m, uint16_t n)
{
	return rte_eth_rx_burst(PORT, 0, m, n);
}

static void
dontwait_lends_and_returns(void)
{
	EACH_VERSION(v)
	{
		struct ring r = ring_open(SOCK_RAW, v);
		struct rte_mbuf *m[8];

		for (uint32_t i = 0; i < 3; i++)
			request(&r, i, 60 + i, (uint8_t)(i + 1));
		CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60 + 61 + 62);
		CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 0); /* nothing ready, though three pending */
		for (uint32_t i = 0; i < 3; i++)
			CHECK_EQ(status(&r, i), TP_STATUS_SENDING);
		REQUIRE(take(m, 8) == 3);
		for (uint32_t i = 0; i < 3; i++) {
			const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

			CHECK(RTE_MBUF_HAS_EXTBUF(m[i]));
			CHECK_EQ(m[i]->pkt_len, 60 + i);
			CHECK_EQ(p[59], i + 1);
		}
		rte_pktmbuf_free(m[1]); /* any order */
		CHECK_EQ(status(&r, 1), TP_STATUS_AVAILABLE);
		CHECK_EQ(status(&r, 0), TP_STATUS_SENDING);
		rte_pktmbuf_free(m[0]);
		rte_pktmbuf_free(m[2]);
		for (uint32_t i = 0; i < 3; i++)
			CHECK_EQ(status(&r, i), TP_STATUS_AVAILABLE);
		ring_end(&r);
	}
}

/* One lcore sends, and completes what it has sent from within the send: the port's other end is
 * polled by the progress call. More requests than the port's ring would be no different. */
static void
blocking_send_completes_itself(void)
{
	struct ring r;

	net_close();
	net_open(help_progress, SL_PSOCK_LEND_ALWAYS);
	r = ring_open(SOCK_RAW, TPACKET_V2);
	for (uint32_t i = 0; i < FRAMES; i++)
		request(&r, i, 100, 1);
	CHECK_EQ(sock_kick(r.s, 0), 100 * FRAMES);
	for (uint32_t i = 0; i < FRAMES; i++)
		CHECK_EQ(status(&r, i), TP_STATUS_AVAILABLE);
	CHECK_EQ(sock_kick(r.s, 0), 0);
	ring_end(&r);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

static void
blocking_send_is_bounded(void)
{
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct timeval tv = {.tv_usec = 20000};
	uint64_t before, took;

	REQUIRE(sl_psock_setsockopt(r.s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv), NONE) == 0);
	request(&r, 0, 60, 1);
	before = psock_now_ns();
	CHECK_EQ(sock_kick(r.s, 0), -ETIMEDOUT);
	took = psock_now_ns() - before;
	CHECK(took >= 19000000);
	CHECK_EQ(drain(), 1);
	CHECK_EQ(status(&r, 0), TP_STATUS_AVAILABLE);
	ring_end(&r);
}

static struct ring *refilled;

/* A slot comes back, and is a request again at once: there is always something pending. */
static void
refill_progress(void *arg, uint16_t worker)
{
	static uint32_t next;
	struct rte_mbuf *m[1];

	(void)arg;
	(void)worker;
	if (take(m, 1) != 1)
		return;
	rte_pktmbuf_free(m[0]);
	CHECK_EQ(status(refilled, next), TP_STATUS_AVAILABLE);
	request(refilled, next, 60, 1);
	next = (next + 1) % FRAMES;
}

/* The limit is the call's, not that of each wait: else this one would never return. */
static void
one_limit_for_all_waits(void)
{
	struct timeval tv = {.tv_usec = 5000};
	struct ring r;

	net_close();
	net_open(refill_progress, SL_PSOCK_LEND_ALWAYS);
	r = ring_open(SOCK_RAW, TPACKET_V2);
	refilled = &r;
	REQUIRE(sl_psock_setsockopt(r.s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv), NONE) == 0);
	for (uint32_t i = 0; i < FRAMES; i++)
		request(&r, i, 60, 1);
	CHECK_EQ(sock_kick(r.s, 0), -ETIMEDOUT);
	CHECK(r.s->tx_packets > FRAMES);
	drain();
	ring_end(&r);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

static void
port_full_keeps_requests(void)
{
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct rte_mbuf *m[1];
	uint32_t stuffed = 0;

	m[0] = frame(0x0800, 60);
	while (rte_eth_tx_burst(PORT, 0, m, 1) == 1) {
		m[0] = frame(0x0800, 60);
		stuffed++;
	}
	rte_pktmbuf_free(m[0]);
	request(&r, 0, 60, 1);
	request(&r, 1, 61, 2);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), -ENOBUFS);
	CHECK_EQ(status(&r, 0), TP_STATUS_SEND_REQUEST);
	REQUIRE(take(m, 1) == 1);
	rte_pktmbuf_free(m[0]);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60); /* as far as it went */
	CHECK_EQ(status(&r, 0), TP_STATUS_SENDING);
	CHECK_EQ(status(&r, 1), TP_STATUS_SEND_REQUEST);
	CHECK_EQ(drain(), stuffed);
	CHECK_EQ(status(&r, 0), TP_STATUS_AVAILABLE);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 61);
	CHECK_EQ(drain(), 1);
	ring_end(&r);
}

static void
copies_complete_at_once(void)
{
	struct rte_mbuf *m[2];
	struct ring r;

	net_close();
	net_open(NULL, SL_PSOCK_LEND_NEVER);
	r = ring_open(SOCK_RAW, TPACKET_V3);
	request(&r, 0, 60, 7);
	CHECK_EQ(sock_kick(r.s, 0), 60); /* blocking, and there is nothing to wait for */
	CHECK_EQ(status(&r, 0), TP_STATUS_AVAILABLE);
	REQUIRE(take(m, 2) == 1);
	CHECK(!RTE_MBUF_HAS_EXTBUF(m[0]));
	CHECK_EQ(rte_pktmbuf_mtod(m[0], uint8_t *)[59], 7);
	rte_pktmbuf_free(m[0]);
	ring_end(&r);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

/* Left to itself, the library lends what is long and copies what is short: those slots come back
 * with the call. Order is that of the ring, also over its end. */
static void
short_frames_are_copied(void)
{
	static const uint32_t len[FRAMES] = {60, 256, 257, 14, 1514, 300, 64, 65};

	net_close();
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	EACH_VERSION(v)
	{
		struct ring r = ring_open(SOCK_RAW, v);

		for (uint32_t first = 0; first < 3 * FRAMES; first += 7) {
			struct rte_mbuf *m[FRAMES];
			ssize_t bytes = 0;

			for (uint32_t i = 0; i < 7; i++) {
				uint32_t n = (first + i) % FRAMES;

				request(&r, n, len[n], (uint8_t)(first + i));
				bytes += len[n];
			}
			CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), bytes);
			REQUIRE(take(m, FRAMES) == 7);
			for (uint32_t i = 0; i < 7; i++) {
				uint32_t n = (first + i) % FRAMES;
				const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

				CHECK_EQ(m[i]->pkt_len, len[n]);
				CHECK_EQ(p[0], (uint8_t)(first + i));
				CHECK_EQ(p[len[n] - 1], (uint8_t)(first + i));
				CHECK_EQ(RTE_MBUF_HAS_EXTBUF(m[i]) != 0, len[n] > 256);
				CHECK_EQ(rte_mbuf_check(m[i], 1, &(const char *){0}), 0);
				CHECK_EQ(status(&r, n),
					len[n] > 256 ? TP_STATUS_SENDING : TP_STATUS_AVAILABLE);
			}
			rte_pktmbuf_free_bulk(m, 7);
			for (uint32_t i = 0; i < FRAMES; i++)
				CHECK_EQ(status(&r, i), TP_STATUS_AVAILABLE);
		}
		CHECK_EQ(sl_pktring_tx_pending(r.s->tx), 0);
		ring_end(&r);
	}
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

/* A full port leaves copied slots what they were: requests, the first of them head. */
static void
short_frames_wait_for_room(void)
{
	struct rte_mbuf *m;
	struct ring r;

	net_close();
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	m = frame(0x0800, 60);
	r = ring_open(SOCK_RAW, TPACKET_V2);
	CHECK_EQ(sock_set(r.s, PACKET_TIMESTAMP, 1 << 4), 0);
	while (rte_eth_tx_burst(PORT, 0, &m, 1) == 1)
		m = frame(0x0800, 60);
	rte_pktmbuf_free(m);
	for (int i = 0; i < 3; i++) {
		REQUIRE(take(&m, 1) == 1);
		rte_pktmbuf_free(m);
	}
	for (uint32_t i = 0; i < 6; i++)
		request(&r, i, i % 2 ? 300 : 60, (uint8_t)i);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60 + 300 + 60);
	CHECK_EQ(status(&r, 0), TP_STATUS_AVAILABLE | TP_STATUS_TS_SOFTWARE);
	CHECK_EQ(status(&r, 1), TP_STATUS_SENDING);
	CHECK_EQ(status(&r, 2), TP_STATUS_AVAILABLE | TP_STATUS_TS_SOFTWARE);
	for (uint32_t i = 3; i < 6; i++)
		CHECK_EQ(status(&r, i), TP_STATUS_SEND_REQUEST);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), -ENOBUFS);
	drain();
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 300 + 60 + 300);
	CHECK_EQ(drain(), 3);
	ring_end(&r);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

static void
no_mbuf_is_not_a_bad_request(void)
{
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct rte_mbuf **all = calloc(2047, sizeof(*all));
	uint32_t n = 0;

	REQUIRE(all != NULL);
	while (n < 2047 && (all[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	request(&r, 0, 60, 1);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), -EAGAIN);
	CHECK_EQ(status(&r, 0), TP_STATUS_SEND_REQUEST);
	CHECK_EQ(sock_kick(r.s, 0), -ENOBUFS);
	CHECK_EQ(status(&r, 0), TP_STATUS_SEND_REQUEST);
	rte_pktmbuf_free_bulk(all, n);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60);
	CHECK_EQ(drain(), 1);
	free(all);
	ring_end(&r);
}

static void
cooked_frames_get_a_header(void)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_ifindex = IFINDEX,
		.sll_protocol = htons(0x88b5),
		.sll_halen = 6,
		.sll_addr = {2, 0, 0, 0, 0, 9}};
	struct msghdr msg = {.msg_name = &to, .msg_namelen = sizeof(to)};

	EACH_VERSION(v)
	{
		struct ring r = ring_open(SOCK_DGRAM, v);
		struct rte_ether_addr mac;
		struct rte_mbuf *m[2];
		const uint8_t *p;

		rte_eth_macaddr_get(PORT, &mac);
		request(&r, 0, 50, 3);
		CHECK_EQ(sl_psock_sendmsg(r.s, &msg, MSG_DONTWAIT, NONE), 50);
		REQUIRE(take(m, 2) == 1);
		CHECK_EQ(m[0]->pkt_len, 64);
		p = rte_pktmbuf_mtod(m[0], const uint8_t *);
		CHECK(memcmp(p, to.sll_addr, 6) == 0);
		CHECK(memcmp(p + 6, &mac, 6) == 0);
		CHECK_EQ(p[12] << 8 | p[13], 0x88b5);
		CHECK_EQ(p[14], 3);
		rte_pktmbuf_free(m[0]);
		ring_end(&r);
	}
}

static void
others_see_what_is_sent(void)
{
	struct sl_psock *all = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct sl_psock *ip = sock_bound(SOCK_RAW, 0x0101);
	struct sl_psock *deaf = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct sockaddr_ll from;
	uint8_t buf[100];

	REQUIRE(sock_bind(r.s, IFINDEX, ETH_P_ALL, NONE) == 0);
	CHECK_EQ(sock_set(deaf, PACKET_IGNORE_OUTGOING, 1), 0);
	request(&r, 0, 60, 1);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60);
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, &from), 60);
	CHECK_EQ(from.sll_pkttype, PACKET_OUTGOING);
	CHECK_EQ(buf[20], 1);
	CHECK_EQ(sock_recv(ip, buf, sizeof(buf), 0, NULL), -EAGAIN); /* everything or nothing */
	CHECK_EQ(sock_recv(deaf, buf, sizeof(buf), 0, NULL), -EAGAIN);
	CHECK_EQ(sock_recv(r.s, buf, sizeof(buf), 0, NULL), -EAGAIN); /* not the sender itself */
	drain();
	ring_end(&r);
	sl_psock_close(all, NONE);
	sl_psock_close(ip, NONE);
	sl_psock_close(deaf, NONE);
}

/* What a full port gave back is not shown twice. */
static void
others_see_it_once(void)
{
	struct sl_psock *all = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct rte_mbuf *m[1];
	uint8_t buf[100];

	m[0] = frame(0x0800, 60);
	while (rte_eth_tx_burst(PORT, 0, m, 1) == 1)
		m[0] = frame(0x0800, 60);
	rte_pktmbuf_free(m[0]);
	request(&r, 0, 60, 1);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), -ENOBUFS);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), -ENOBUFS);
	drain();
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60);
	drain();
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, NULL), 60);
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, NULL), -EAGAIN);
	ring_end(&r);
	sl_psock_close(all, NONE);
}

static void
pending_slots_keep_the_ring(void)
{
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);
	struct tpacket_req none = {0};
	struct rte_mbuf *m[1];

	request(&r, 0, 60, 9);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60);
	CHECK_EQ(sl_psock_setsockopt(r.s, SOL_PACKET, PACKET_TX_RING, &none, sizeof(none), NONE),
		-EBUSY); /* mapped */
	sl_psock_munmap(r.s, r.map, FRAME * FRAMES);
	CHECK_EQ(sl_psock_setsockopt(r.s, SOL_PACKET, PACKET_TX_RING, &none, sizeof(none), NONE),
		-EBUSY); /* pending */
	REQUIRE(take(m, 1) == 1);
	/* Closed in flight: the mbuf's bytes are there until it is freed. */
	sl_psock_close(r.s, NONE);
	CHECK_EQ(sl_psock_net_destroy(net), -EBUSY);
	CHECK_EQ(rte_pktmbuf_mtod(m[0], uint8_t *)[59], 9);
	rte_pktmbuf_free(m[0]);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
}

static void
stamped_when_asked(void)
{
	struct ring r = ring_open(SOCK_RAW, TPACKET_V2);

	CHECK_EQ(sock_set(r.s, PACKET_TIMESTAMP, 1 << 4), 0);
	request(&r, 0, 60, 9);
	CHECK_EQ(sock_kick(r.s, MSG_DONTWAIT), 60);
	drain();
	CHECK_EQ(status(&r, 0), TP_STATUS_AVAILABLE | TP_STATUS_TS_SOFTWARE);
	ring_end(&r);
}

static void
mapping_both_rings(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct tpacket2_hdr *rx, *tx;
	size_t half = FRAME * FRAMES;
	void *p = NULL;

	CHECK_EQ(sl_psock_mmap(s, half, &p), -EINVAL); /* no ring */
	REQUIRE(sock_ring(s, PACKET_TX_RING, TPACKET_V2) == 0);
	CHECK_EQ(sock_set(s, PACKET_VERSION, TPACKET_V1), -EBUSY);
	REQUIRE(sock_ring(s, PACKET_RX_RING, TPACKET_V2) == -EBUSY); /* its version call */
	{
		struct tpacket_req req = {2 * FRAME, FRAMES / 2, FRAME, FRAMES};

		REQUIRE(sl_psock_setsockopt(
				s, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req), NONE) == 0);
	}
	CHECK_EQ(sl_psock_mmap(s, half, &p), -EINVAL);
	CHECK_EQ(sl_psock_mmap(s, 3 * half, &p), -EINVAL);
	REQUIRE(sl_psock_mmap(s, 2 * half, &p) == 0);
	rx = p;
	tx = (void *)((uint8_t *)p + half);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(rx->tp_status, TP_STATUS_USER);
	CHECK_EQ(sl_psock_events(s) & POLLIN, POLLIN);
	sl_pktring_request(TPACKET_V2, tx, 60);
	CHECK_EQ(sock_kick(s, MSG_DONTWAIT), 60);
	drain();
	CHECK_EQ(tx->tp_status, TP_STATUS_AVAILABLE);
	sl_psock_munmap(s, p, 2 * half);
	sl_psock_close(s, NONE);
}

int
main(void)
{
	help_init("txring");
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
	SL_TEST_RUN(dontwait_lends_and_returns);
	SL_TEST_RUN(blocking_send_completes_itself);
	SL_TEST_RUN(blocking_send_is_bounded);
	SL_TEST_RUN(one_limit_for_all_waits);
	SL_TEST_RUN(port_full_keeps_requests);
	SL_TEST_RUN(copies_complete_at_once);
	SL_TEST_RUN(short_frames_are_copied);
	SL_TEST_RUN(short_frames_wait_for_room);
	SL_TEST_RUN(no_mbuf_is_not_a_bad_request);
	SL_TEST_RUN(cooked_frames_get_a_header);
	SL_TEST_RUN(others_see_what_is_sent);
	SL_TEST_RUN(others_see_it_once);
	SL_TEST_RUN(pending_slots_keep_the_ring);
	SL_TEST_RUN(stamped_when_asked);
	SL_TEST_RUN(mapping_both_rings);
	net_close();
	return help_end();
}
