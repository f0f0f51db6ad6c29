/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Sockets under load. Two workers send on one ring that a client fills, a third thread receives and
 * frees: every frame once, in order, whole, nothing pending at the end. Then everything that can
 * change does so at once: rings come and go, binds, links, fanout, closes in flight.
 *
 * SL_STRESS_FRAMES sets how many frames the first one sends. DPDK's libraries are not built for
 * ThreadSanitizer, which would take their hand-overs for races.
 */
#include <pthread.h>
#include <sched.h>

#include <rte_pause.h>

#include "psock_help.h"
#include "sl_test_leak.h"

#define NONE SL_PSOCK_NO_WORKER

#ifdef SL_TSAN
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

struct traffic {
	struct sl_psock *s;
	uint8_t *map;
	uint64_t frames;
	uint64_t sent[2]; /* bytes, by sender */
	uint64_t wrong;
	uint32_t done;
};

struct worker {
	struct traffic *t;
	uint16_t index;
	pthread_t thread;
};

static void *
fill(void *arg)
{
	struct traffic *t = ((struct worker *)arg)->t;

	for (uint64_t seq = 0; seq < t->frames; seq++) {
		uint8_t *slot = t->map + seq % FRAMES * FRAME;
		uint64_t *data = (uint64_t *)(slot + sl_pktring_data(TPACKET_V2));

		while (!sl_pktring_is_available(TPACKET_V2, slot))
			sched_yield();
		for (int i = 0; i < 8; i++)
			data[i] = seq;
		sl_pktring_request(TPACKET_V2, slot, 64);
	}
	return NULL;
}

static void *
send_all(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->t;

	REQUIRE(rte_thread_register() == 0);
	sl_psock_worker_online(net, w->index);
	while (!sl_load_acquire(&t->done)) {
		struct msghdr msg = {0};
		ssize_t ret = sl_psock_sendmsg(t->s, &msg, MSG_DONTWAIT, w->index);

		sl_psock_quiescent(net, w->index);
		if (ret > 0)
			t->sent[w->index] += (uint64_t)ret;
		else if (ret == 0 || ret == -EAGAIN || ret == -ENOBUFS)
			sched_yield();
		else
			sl_fetch_add_relaxed(&t->wrong, 1);
	}
	sl_psock_worker_offline(net, w->index);
	rte_thread_unregister();
	return NULL;
}

static void *
receive_all(void *arg)
{
	struct traffic *t = ((struct worker *)arg)->t;
	struct rte_mbuf *m[32];

	REQUIRE(rte_thread_register() == 0);
	for (uint64_t seq = 0; seq < t->frames;) {
		uint16_t n = rte_eth_rx_burst(PORT, 0, m, 32);

		for (uint16_t i = 0; i < n; i++, seq++) {
			const uint64_t *data = rte_pktmbuf_mtod(m[i], const uint64_t *);

			t->wrong += data[0] != seq || data[7] != seq || m[i]->pkt_len != 64;
			rte_pktmbuf_free(m[i]);
		}
		if (n == 0)
			sched_yield();
	}
	sl_store_release(&t->done, 1);
	rte_thread_unregister();
	return NULL;
}

static void
start(struct worker *w, struct traffic *t, uint16_t index, void *(*body)(void *))
{
	w->t = t;
	w->index = index;
	REQUIRE(pthread_create(&w->thread, NULL, body, w) == 0);
}

static void
two_senders_one_ring(void)
{
	const char *frames = getenv("SL_STRESS_FRAMES");
	struct traffic t = {.frames = frames != NULL ? strtoull(frames, NULL, 0) : 60000};
	struct worker w[4];

	if (UNDER_TSAN)
		SKIP("DPDK's libraries are not instrumented");
	t.s = sock_bound(SOCK_RAW, 0);
	REQUIRE(sock_ring(t.s, PACKET_TX_RING, TPACKET_V2) == 0);
	t.map = sock_map(t.s, FRAME * FRAMES);
	start(&w[0], &t, 0, send_all);
	start(&w[1], &t, 1, send_all);
	start(&w[2], &t, 2, receive_all);
	start(&w[3], &t, 3, fill);
	for (size_t i = 0; i < SL_COUNT_OF(w); i++)
		pthread_join(w[i].thread, NULL);
	CHECK_EQ(t.wrong, 0);
	CHECK_EQ(t.sent[0] + t.sent[1], t.frames * 64);
	CHECK_EQ(sl_pktring_tx_pending(t.s->tx), 0);
	sl_psock_munmap(t.s, t.map, FRAME * FRAMES);
	sl_psock_close(t.s, NONE);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

#define REMADE 2000
#define IN_A_ROW 5u

/* Rings are closed in flight and made anew, one after the other: whoever receives gets every frame
 * once, in order, whole, from memory whose socket is gone. */
static void *
remake(void *arg)
{
	struct traffic *t = ((struct worker *)arg)->t;
	uint64_t seq = 0;

	for (int turn = 0; turn < REMADE; turn++) {
		struct sl_psock *s = sock_bound(SOCK_RAW, 0);
		int version = turn % 3;
		uint8_t *map;

		REQUIRE(sock_ring(s, PACKET_TX_RING, version) == 0);
		map = sock_map(s, FRAME * FRAMES);
		for (uint32_t i = 0; i < IN_A_ROW; i++, seq++) {
			uint8_t *slot = map + i * FRAME;
			uint64_t *data = (uint64_t *)(slot + sl_pktring_data(version));

			for (int k = 0; k < 8; k++)
				data[k] = seq;
			sl_pktring_request(version, slot, 64);
		}
		t->sent[0] += IN_A_ROW * 64;
		for (ssize_t left = IN_A_ROW * 64, ret; left > 0; left -= ret > 0 ? ret : 0) {
			ret = sock_kick(s, MSG_DONTWAIT);
			t->wrong += ret < 0 && ret != -ENOBUFS && ret != -EAGAIN;
			if (ret <= 0)
				sched_yield();
		}
		sl_psock_munmap(s, map, FRAME * FRAMES);
		sl_psock_close(s, NONE);
	}
	return NULL;
}

static void
rings_remade_in_flight(void)
{
	struct traffic t = {.frames = (uint64_t)REMADE * IN_A_ROW};
	struct worker w[2];

	if (UNDER_TSAN)
		SKIP("DPDK's libraries are not instrumented");
	start(&w[0], &t, 0, receive_all);
	start(&w[1], &t, 1, remake);
	for (size_t i = 0; i < SL_COUNT_OF(w); i++)
		pthread_join(w[i].thread, NULL);
	CHECK_EQ(t.wrong, 0);
	/* The next control call frees what was in flight. */
	sl_psock_close(sock_open(SOCK_RAW, 0), NONE);
	CHECK(net->dead == NULL);
	CHECK_EQ(test_mappings("sluice-ring"), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static struct storm {
	uint32_t done;
	uint64_t bad;
} storm;

/* Receives, shows, sends back; frees late now and then, so that closes find slots in flight. */
static void *
storm_worker(void *arg)
{
	struct worker *w = arg;
	struct rte_mbuf *late[64];
	uint32_t n_late = 0;

	REQUIRE(rte_thread_register() == 0);
	sl_psock_worker_online(net, w->index);
	while (!sl_load_acquire(&storm.done)) {
		uint16_t n = rte_eth_rx_burst(PORT, 0, late + n_late, 16);

		sl_psock_input_burst(net, w->index, PORT, 0, late + n_late, n);
		n_late += n;
		if (n_late > 40 || n == 0) {
			rte_pktmbuf_free_bulk(late, n_late);
			n_late = 0;
		}
		show(frame(0x0800, 60), w->index);
		sl_psock_tick(net, w->index);
		sl_psock_quiescent(net, w->index);
		sched_yield();
	}
	rte_pktmbuf_free_bulk(late, n_late);
	sl_psock_worker_offline(net, w->index);
	rte_thread_unregister();
	return NULL;
}

static void *
storm_links(void *arg)
{
	(void)arg;
	while (!sl_load_acquire(&storm.done)) {
		sl_psock_port_event(net, PORT, SL_PSOCK_PORT_DOWN, NONE);
		sl_psock_port_event(net, PORT, SL_PSOCK_PORT_UP, NONE);
		sched_yield();
	}
	return NULL;
}

static void
storm_bad(bool bad)
{
	if (bad)
		sl_fetch_add_relaxed(&storm.bad, UINT64_C(1));
}

/* A socket's whole life, again and again. */
static void *
storm_sockets(void *arg)
{
	unsigned int seed = ((struct worker *)arg)->index;

	for (int turn = 0; turn < 400; turn++) {
		struct sl_psock *s = sock_open(SOCK_RAW, rand_r(&seed) % 2 ? ETH_P_ALL : 0);
		int version = rand_r(&seed) % 3;
		uint8_t buf[100];
		int ret;

		ret = sock_bind(s, rand_r(&seed) % 2, ETH_P_ALL, NONE);
		storm_bad(ret != 0);
		ret = sock_set(s, PACKET_FANOUT, 9);
		storm_bad(ret != 0 && ret != -EINVAL); /* down, or another port than the group */
		storm_bad(sock_ring(s, rand_r(&seed) % 2 ? PACKET_TX_RING : PACKET_RX_RING,
				  version) != 0);
		if (s->tx != NULL) {
			uint8_t *map = sock_map(s, FRAME * FRAMES);

			for (uint32_t i = 0; i < 3; i++)
				sl_pktring_request(version, map + i * FRAME, 60);
			(void)!sock_kick(s, MSG_DONTWAIT);
			sl_psock_munmap(s, map, FRAME * FRAMES);
		}
		(void)!sock_recv(s, buf, sizeof(buf), 0, NULL);
		sl_psock_close(s, NONE);
	}
	return NULL;
}

static void
everything_at_once(void)
{
	struct worker w[4];

	if (UNDER_TSAN)
		SKIP("DPDK's libraries are not instrumented");
	start(&w[0], NULL, 0, storm_worker);
	start(&w[1], NULL, 1, storm_links);
	start(&w[2], NULL, 2, storm_sockets);
	start(&w[3], NULL, 3, storm_sockets);
	pthread_join(w[2].thread, NULL);
	pthread_join(w[3].thread, NULL);
	sl_store_release(&storm.done, 1);
	pthread_join(w[0].thread, NULL);
	pthread_join(w[1].thread, NULL);
	CHECK_EQ(storm.bad, 0);
	CHECK(TAILQ_EMPTY(&net->groups));
}

static struct binders {
	struct sl_psock *s;
	uint32_t turn, answered;
	uint64_t wrong;
} binders;

#define BIND_TURNS 20000u

static void
bind_and_look(void)
{
	int ret = sock_bind(binders.s, IFINDEX, ETH_P_ARP, NONE);

	if (ret != 0 || sl_load_acquire(&net->port[PORT].table)->hooks != 1)
		sl_fetch_add_relaxed(&binders.wrong, UINT64_C(1));
}

/* A little later in each turn, so that all of the other's bind is met. */
static void *
late_binder(void *arg)
{
	(void)arg;
	for (uint32_t turn = 1; turn <= BIND_TURNS; turn++) {
		while (sl_load_acquire(&binders.turn) != turn)
			sched_yield();
		for (uint32_t i = 0; i < turn % 64; i++)
			rte_pause();
		bind_and_look();
		sl_store_release(&binders.answered, turn);
	}
	return NULL;
}

/* Two binds of one socket to the same target: whichever finds nothing left to change returns when
 * the socket is in the tables, not before. */
static void
binds_at_once(void)
{
	struct worker w;

	start(&w, NULL, 0, late_binder);
	for (uint32_t turn = 1; turn <= BIND_TURNS; turn++) {
		binders.s = sock_open(SOCK_RAW, 0);
		sl_store_release(&binders.turn, turn);
		bind_and_look();
		while (sl_load_acquire(&binders.answered) != turn)
			sched_yield();
		sl_psock_close(binders.s, NONE);
	}
	pthread_join(w.thread, NULL);
	CHECK_EQ(binders.wrong, 0);
}

int
main(void)
{
	help_init("load");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(two_senders_one_ring); /* copied */
	net_close();
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
	SL_TEST_RUN(two_senders_one_ring); /* lent */
	SL_TEST_RUN(rings_remade_in_flight);
	SL_TEST_RUN(everything_at_once);
	SL_TEST_RUN(binds_at_once);
	net_close();
	return help_end();
}
