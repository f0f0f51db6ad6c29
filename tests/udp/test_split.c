/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Split mode on threads: workers feed, another thread reads, sleeping or polling; sockets open, bind,
 * connect and close while datagrams come in. Every datagram ends in one place, in order per flow.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "sl_test_pool.h"
#include "udp_priv.h"
#include "udp_test.h"

#define PORT 5000
#define WORKERS 2
#define PER_WORKER 20000u

static struct sl_udp_sock *sock;
static uint32_t stop;
static uint64_t queued[WORKERS], refused[WORKERS];
static uint32_t seed;

static uint32_t
rnd(uint32_t *state)
{
	return test_random(state) >> 16;
}

/* As lib/inet hands them over; the payload says who sent it and which it is. */
static uint16_t
make_burst(uint16_t worker, uint32_t *number, uint16_t n, uint16_t port, struct sl_dgram *d)
{
	struct sl_addr src = tu_addr(TU_PEER), dst = tu_addr(TU_US);

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(tu_pool);

		if (m == NULL)
			return i;
		memcpy(rte_pktmbuf_append(m, 4), number, 4);
		memset(&d[i], 0, sizeof(d[i]));
		d[i].buf = m;
		d[i].truesize = 2048;
		d[i].len = 4;
		d[i].sport = htons((uint16_t)(1000 + worker));
		d[i].dport = htons(port);
		memcpy(d[i].src, src.b, 16);
		memcpy(d[i].dst, dst.b, 16);
		++*number;
	}
	return n;
}

/* A worker: bursts of random length, a quiescent state after each. */
static void *
feeder(void *arg)
{
	uint16_t worker = (uint16_t)(uintptr_t)arg;
	uint32_t number = 0, state = seed + worker;
	struct sl_dgram d[SL_INET_BURST];
	uint8_t outcome[SL_INET_BURST];

	sl_inet_worker_online(tu_inet, worker);
	while (number < PER_WORKER) {
		uint16_t n = (uint16_t)(1 + rnd(&state) % SL_INET_BURST);

		n = make_burst(worker, &number, n, PORT, d);
		udp_inet_ops.input(tu_udp, worker, d, n, outcome);
		for (uint16_t i = 0; i < n; i++) {
			if (outcome[i] == SL_RX_UDP_QUEUED) {
				queued[worker]++;
				continue;
			}
			refused[worker]++;
			rte_pktmbuf_free(d[i].buf);
		}
		/* An empty burst is a turn of the loop, with its quiescent state. */
		if (n == 0 || rnd(&state) % 8 == 0)
			sched_yield();
		sl_inet_worker_offline(tu_inet, worker);
		sl_inet_worker_online(tu_inet, worker);
	}
	sl_inet_worker_offline(tu_inet, worker);
	return NULL;
}

static void
start(pthread_t *t)
{
	memset(queued, 0, sizeof(queued));
	memset(refused, 0, sizeof(refused));
	for (uintptr_t i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&t[i], NULL, feeder, (void *)i) == 0);
}

static void
join(pthread_t *t)
{
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
}

/* Read until both workers have ended and the queue is empty. */
static uint64_t
read_all(unsigned int vlen, struct timespec *timeout)
{
	struct mmsghdr msgs[64];
	struct iovec iov[64];
	struct sockaddr_in name[64];
	uint32_t bufs[64];
	int64_t last[WORKERS] = {-1, -1};
	uint64_t sum = 0;
	bool ended = false;

	for (;;) {
		struct timespec ts = *timeout;
		bool last_look = ended;
		int n;

		ended = sl_load_acquire(&stop) != 0;
		for (unsigned int i = 0; i < vlen; i++) {
			iov[i] = (struct iovec){&bufs[i], 4};
			msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1,
				.msg_name = &name[i], .msg_namelen = sizeof(name[i])};
		}
		n = sl_udp_recvmmsg(sock, msgs, vlen, MSG_WAITFORONE, &ts);
		if (n < 0) {
			CHECK_EQ(n, -EAGAIN);
			if (last_look)
				return sum;
			continue;
		}
		for (int i = 0; i < n; i++) {
			int from = ntohs(name[i].sin_port) - 1000;

			CHECK(from >= 0 && from < WORKERS);
			CHECK(from >= 0 && from < WORKERS && (int64_t)bufs[i] > last[from]);
			last[from] = bufs[i];
		}
		sum += (uint64_t)n;
	}
}

static void *
joiner(void *arg)
{
	join(arg);
	sl_store_release(&stop, 1u);
	return NULL;
}

static void
reader_gets_all(const struct sl_udp_sock_conf *conf, unsigned int vlen)
{
	struct timespec timeout = {.tv_nsec = 1000000};
	struct sl_udp_sock_stats stats;
	pthread_t t[WORKERS], j;
	uint64_t got;

	sock = tu_bound(conf, "0.0.0.0", PORT);
	sl_store_relaxed(&stop, 0u);
	start(t);
	REQUIRE(pthread_create(&j, NULL, joiner, t) == 0);
	got = read_all(vlen, &timeout);
	pthread_join(j, NULL);
	sl_udp_sock_stats(sock, &stats);
	CHECK_EQ(got, queued[0] + queued[1]);
	CHECK_EQ(stats.datagrams, got);
	CHECK_EQ(stats.queue.appended, got);
	CHECK_EQ(stats.queue.drops[SL_UDPQ_DROP_RCVBUF] + stats.queue.drops[SL_UDPQ_DROP_SLOTS],
		refused[0] + refused[1]);
	CHECK(got + refused[0] + refused[1] >= WORKERS * PER_WORKER);
	CHECK_EQ(stats.queue.rmem, 0);
	sl_udp_close(sock, SL_INET_NO_WORKER);
	CHECK_EQ(rte_mempool_avail_count(tu_pool), TU_MBUFS);
}

static void
test_sleeping_reader(void)
{
	reader_gets_all(&(struct sl_udp_sock_conf){.worker = SL_INET_NO_WORKER}, 64);
}

static void
test_sleeping_reader_of_one(void)
{
	reader_gets_all(&(struct sl_udp_sock_conf){.worker = SL_INET_NO_WORKER, .slots = 32}, 1);
}

static void
test_busy_reader(void)
{
	reader_gets_all(
		&(struct sl_udp_sock_conf){.worker = SL_INET_NO_WORKER, .busy = true}, 32);
}

static void
test_small_rcvbuf(void)
{
	reader_gets_all(&(struct sl_udp_sock_conf){.worker = SL_INET_NO_WORKER, .rcvbuf = 100000}, 64);
}

/* A reader that sleeps without a limit is woken by a close, and by an ICMP error. */
static int blocked_result;
static uint32_t blocked;

static void *
block(void *arg)
{
	uint8_t b[4];

	(void)arg;
	sl_store_release(&blocked, 1u);
	blocked_result = (int)sl_udp_recvfrom(sock, b, 4, 0, NULL, NULL);
	return NULL;
}

static void
let_block(void)
{
	/* Whether it sleeps already is not knowable; both orders must work, so both are had. */
	while (sl_load_acquire(&blocked) == 0)
		sched_yield();
	if (rnd(&seed) & 1)
		usleep(500);
}

static void
test_close_wakes_reader(void)
{
	for (int i = 0; i < 200; i++) {
		struct sl_udp_sock_conf conf = {.worker = SL_INET_NO_WORKER, .busy = i & 1,
			.slots = 16};
		pthread_t t;

		sock = tu_bound(&conf, "0.0.0.0", PORT);
		sl_store_relaxed(&blocked, 0u);
		REQUIRE(pthread_create(&t, NULL, block, NULL) == 0);
		let_block();
		sl_udp_close(sock, SL_INET_NO_WORKER);
		pthread_join(t, NULL);
		CHECK_EQ(blocked_result, -EBADF);
	}
}

static void
test_icmp_wakes_reader(void)
{
	for (int i = 0; i < 200; i++) {
		struct sl_udp_sock_conf conf = {.worker = SL_INET_NO_WORKER, .slots = 16};
		struct sl_inet_error e = {.error = -ECONNREFUSED, .hard = true,
			.flow = {.src = tu_addr(TU_US), .dst = tu_addr(TU_PEER),
				.sport = htons(PORT), .dport = htons(7777)}};
		pthread_t t;

		sock = tu_bound(&conf, TU_US, PORT);
		REQUIRE(tu_connect(sock, TU_PEER, 7777) == 0);
		sl_store_relaxed(&blocked, 0u);
		REQUIRE(pthread_create(&t, NULL, block, NULL) == 0);
		let_block();
		udp_inet_ops.error(tu_udp, 0, &e);
		pthread_join(t, NULL);
		CHECK_EQ(blocked_result, -ECONNREFUSED);
		sl_udp_close(sock, SL_INET_NO_WORKER);
	}
}

/* A signal ends a sleep: -EINTR with nothing received, else what was. */
static struct {
	int vlen, result, second;
} sleeper;

static void
on_signal(int number)
{
	(void)number;
}

static void *
sleep_in_recvmmsg(void *arg)
{
	struct mmsghdr msgs[2];
	uint32_t bufs[2];
	struct iovec iov[2] = {{&bufs[0], 4}, {&bufs[1], 4}};

	(void)arg;
	memset(msgs, 0, sizeof(msgs));
	for (int i = 0; i < 2; i++)
		msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	sleeper.result = sl_udp_recvmmsg(sock, msgs, (unsigned int)sleeper.vlen, 0, NULL);
	sleeper.second = sl_udp_recvmmsg(sock, msgs, 1, MSG_DONTWAIT, NULL);
	sl_store_release(&stop, 1u);
	return NULL;
}

static void
test_signal(void)
{
	struct sl_udp_sock_conf conf = {.worker = SL_INET_NO_WORKER, .slots = 16};
	struct sigaction sa = {.sa_handler = on_signal};
	pthread_t t;

	REQUIRE(sigaction(SIGUSR1, &sa, NULL) == 0);
	for (int queued_first = 0; queued_first < 2; queued_first++) {
		sock = tu_bound(&conf, TU_US, PORT);
		if (queued_first)
			tu_datagram(TU_US, PORT, "abcd", 4);
		sl_inet_worker_offline(tu_inet, 0); /* which that made it */
		sleeper.vlen = 2;
		sl_store_relaxed(&stop, 0u);
		REQUIRE(pthread_create(&t, NULL, sleep_in_recvmmsg, NULL) == 0);
		/* One that comes before it sleeps changes nothing, so again and again. */
		while (sl_load_acquire(&stop) == 0) {
			pthread_kill(t, SIGUSR1);
			usleep(200);
		}
		pthread_join(t, NULL);
		CHECK_EQ(sleeper.result, queued_first ? 1 : -EINTR);
		CHECK_EQ(sleeper.second, -EAGAIN);
		sl_udp_close(sock, SL_INET_NO_WORKER);
	}
}

/* Sockets come and go on the port that the workers feed: nothing is lost, and nothing that is freed
 * is touched (the sanitizers watch). */
static void
test_churn(void)
{
	uint64_t taken = 0, purged = 0;
	uint32_t state = seed;
	pthread_t t[WORKERS], j;
	int rounds = 0;

	sl_store_relaxed(&stop, 0u);
	start(t);
	REQUIRE(pthread_create(&j, NULL, joiner, t) == 0);
	while (sl_load_acquire(&stop) == 0 || rounds < 50) {
		struct sl_udp_sock_conf conf = {.worker = SL_INET_NO_WORKER, .reuse_port = true,
			.slots = 256};
		struct sl_udp_sock *s[4];
		struct sl_udp_sock_stats stats;
		struct sl_dgram d[64];
		int n = 1 + (int)(rnd(&state) % 4);

		for (int i = 0; i < n; i++)
			s[i] = tu_bound(&conf, i & 1 ? TU_US : "0.0.0.0", PORT);
		for (int i = 0; i < n; i++) {
			if (rnd(&state) & 1)
				(void)!tu_connect(s[i], TU_PEER, (uint16_t)(1000 + rnd(&state) % 3));
		}
		for (int i = 0; i < n; i++) {
			int k = sl_udp_recv_burst(s[i], d, 64);

			for (int b = 0; b < k; b++)
				rte_pktmbuf_free(d[b].buf);
			taken += k > 0 ? (uint64_t)k : 0;
		}
		for (int i = 0; i < n; i++) {
			sl_udp_close(s[i], SL_INET_NO_WORKER);
			sl_udp_sock_stats(s[i], &stats);
			purged += stats.purged;
		}
		rounds++;
	}
	pthread_join(j, NULL);
	CHECK_EQ(taken + purged, queued[0] + queued[1]);
	CHECK_EQ(rte_mempool_avail_count(tu_pool), TU_MBUFS);
}

int
main(int argc, char **argv)
{
	seed = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)time(NULL);
	printf("seed %u\n", seed);
	tu_eal(argv[0]);
	rte_mempool_free(tu_pool);
	tu_pool = rte_pktmbuf_pool_create_by_ops("tu_mutex", TU_MBUFS, 0, 0,
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, TEST_POOL_OPS);
	REQUIRE(tu_pool != NULL);
	tu_port();
	tu_stack(WORKERS, tu_pool);
	sl_inet_worker_offline(tu_inet, 0); /* the main thread is none of the workers */
	SL_TEST_RUN(test_sleeping_reader);
	SL_TEST_RUN(test_sleeping_reader_of_one);
	SL_TEST_RUN(test_busy_reader);
	SL_TEST_RUN(test_small_rcvbuf);
	SL_TEST_RUN(test_close_wakes_reader);
	SL_TEST_RUN(test_icmp_wakes_reader);
	SL_TEST_RUN(test_signal);
	SL_TEST_RUN(test_churn);
	SL_TEST_RUN(tu_stack_end);
	rte_mempool_free(tu_pool);
	return test_end();
}
