/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A net_pktring port, driven through ethdev's calls with the built plugin; its clients are forked
 * processes and the client library. Everything is counted: frames, mbufs, descriptors, mappings.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>

#include "sl_client.h"
#include "sl_pktring_slot.h"
#include "sl_pktring_wire.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_leak.h"

#define PORT 0
#define SECOND 1 /* of two queues */
#define POOL 2047
#define PATIENCE_MS 20000 /* only ever waited out when something is broken */

static struct rte_mempool *pool;
static char path[64], second_path[64];
static unsigned int descriptors_idle; /* with no client */

/* Rings and pages of clients. One with a slot still pending would not be unmapped. */
static unsigned int
mappings(void)
{
	return test_mappings("sluice-ring");
}

static struct sl_client *
client_open(int version, uint32_t tx, uint32_t rx)
{
	struct sl_client_conf conf = {
		.path = path, .queue = 0, .version = version, .tx_frames = tx, .rx_frames = rx};
	struct sl_client *c = NULL;
	const char *why;
	int ret = sl_client_connect(&conf, &c, &why);

	if (ret != 0)
		fprintf(stderr, "connect: %d %s\n", ret, why != NULL ? why : "");
	REQUIRE(ret == 0);
	return c;
}

static void
link_wait(bool up)
{
	struct rte_eth_link link;

	do {
		REQUIRE(rte_eth_link_get_nowait(PORT, &link) == 0);
		usleep(100);
	} while ((link.link_status == RTE_ETH_LINK_UP) != up);
}

static uint64_t
xstat(const char *name)
{
	uint64_t id, value = UINT64_MAX;

	REQUIRE(rte_eth_xstats_get_id_by_name(PORT, name, &id) == 0);
	REQUIRE(rte_eth_xstats_get_by_id(PORT, &id, &value, 1) == 1);
	return value;
}

static void
put(struct sl_client *c, uint32_t len, uint8_t fill)
{
	uint8_t *slot = sl_client_tx_next(c);

	REQUIRE(slot != NULL);
	memset(slot, fill, len);
	sl_client_tx_submit(c, len);
	sl_client_tx_submit(c, len); /* a slot that was not given: nothing */
	sl_client_kick(c);
}

static void
frames_arrive_and_slots_come_back(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_client *c = client_open(v, 32, 0);
		struct rte_mbuf *m[64];

		link_wait(true);
		for (uint32_t i = 0; i < 10; i++)
			put(c, 60 + i, (uint8_t)(i + 1));
		sl_client_rx_done(c); /* no such ring: nothing */
		CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 4);
		CHECK_EQ(rte_eth_rx_burst(PORT, 0, m + 4, 60), 6);
		for (uint32_t i = 0; i < 10; i++) {
			CHECK_EQ(m[i]->pkt_len, 60 + i);
			CHECK_EQ(m[i]->port, PORT);
			CHECK_EQ(rte_pktmbuf_mtod(m[i], uint8_t *)[59 + i], i + 1);
		}
		CHECK_EQ(sl_client_tx_busy(c), 10);
		rte_pktmbuf_free_bulk(m, 10);
		CHECK_EQ(sl_client_tx_busy(c), 0);
		sl_client_close(c);
		link_wait(false);
	}
}

static void
frames_are_found_in_the_receive_ring(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_client *a = client_open(v, 0, 32), *b = client_open(v, 32, 32);
		struct sl_client *both[2] = {a, b};

		for (uint32_t i = 0; i < 5; i++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

			REQUIRE(m != NULL);
			memset(rte_pktmbuf_append(m, (uint16_t)(100 + i)), (int)i, 100 + i);
			REQUIRE(rte_eth_tx_burst(PORT, 0, &m, 1) == 1);
		}
		/* Every client of the queue has each of them. */
		for (int k = 0; k < 2; k++) {
			for (uint32_t i = 0; i < 5; i++) {
				struct sl_client_frame f;

				while (sl_client_rx_next(both[k], &f) == 0) {
					struct rte_mbuf *none[1]; /* a turn retires V3 blocks */

					CHECK_EQ(rte_eth_rx_burst(PORT, 0, none, 1), 0);
				}
				CHECK_EQ(f.len, 100 + i);
				CHECK_EQ(f.wire_len, 100 + i);
				CHECK_EQ(f.data[99], i);
				sl_client_rx_done(both[k]);
				sl_client_rx_done(both[k]); /* nothing: the next is not shown */
			}
		}
		sl_client_tx_submit(a, 60); /* no such ring */
		sl_client_close(a);
		sl_client_close(b);
		link_wait(false);
	}
}

static void
counters_have_causes(void)
{
	struct rte_eth_stats stats;
	struct sl_client *c;
	struct rte_mbuf *m[64];
	int n = 0;

	REQUIRE(rte_eth_stats_reset(PORT) == 0);
	m[0] = rte_pktmbuf_alloc(pool);
	rte_pktmbuf_append(m[0], 60);
	CHECK_EQ(rte_eth_tx_burst(PORT, 0, m, 1), 1);
	CHECK_EQ(xstat("tx_no_client"), 1);
	c = client_open(TPACKET_V2, 32, 32);
	put(c, 13, 0); /* no header */
	put(c, 60, 0);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 64), 0); /* the bad one stays in front */
	CHECK_EQ(xstat("rx_bad_slots"), 1);
	CHECK_EQ(sl_client_tx_refused(c), 1);
	do { /* the receive ring runs full */
		m[0] = rte_pktmbuf_alloc(pool);
		rte_pktmbuf_append(m[0], 60);
		CHECK_EQ(rte_eth_tx_burst(PORT, 0, m, 1), 1);
		n++;
	} while (xstat("tx_client_ring_full") == 0);
	CHECK_EQ(n, 33);
	REQUIRE(rte_eth_stats_get(PORT, &stats) == 0);
	CHECK_EQ(stats.opackets, 32);
	CHECK_EQ(stats.oerrors, 2);
	CHECK_EQ(stats.ierrors, 1);
	CHECK_EQ(stats.ipackets, 0);
	REQUIRE(rte_eth_stats_reset(PORT) == 0);
	REQUIRE(rte_eth_stats_get(PORT, &stats) == 0);
	CHECK_EQ(stats.opackets + stats.oerrors + stats.ierrors, 0);
	sl_client_close(c);
	link_wait(false);
}

/* Each frame is sent or lost, once, however many clients had it or had no room. */
static void
a_frame_counts_once(void)
{
	struct sl_client *small = client_open(TPACKET_V2, 32, 32), *large;
	struct rte_eth_stats stats;

	large = client_open(TPACKET_V2, 32, 64);
	REQUIRE(rte_eth_stats_reset(PORT) == 0);
	for (int i = 0; i < 70; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		REQUIRE(m != NULL && rte_pktmbuf_append(m, 60) != NULL);
		REQUIRE(rte_eth_tx_burst(PORT, 0, &m, 1) == 1);
	}
	CHECK_EQ(xstat("tx_client_ring_full"), 38 + 6);
	REQUIRE(rte_eth_stats_get(PORT, &stats) == 0);
	CHECK_EQ(stats.opackets, 64);
	CHECK_EQ(stats.oerrors, 6);
	sl_client_close(small);
	sl_client_close(large);
	link_wait(false);
}

/* Until the process sleeps in a system call. */
static void
sleep_wait(pid_t pid)
{
	char name[32], line[256], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	while (state != 'S') {
		f = fopen(name, "r");
		REQUIRE(f != NULL && fgets(line, sizeof(line), f) != NULL);
		fclose(f);
		state = strrchr(line, ')')[2];
		usleep(100);
	}
}

static void
a_waiting_client_is_woken(void)
{
	struct sl_client *c = client_open(TPACKET_V2, 0, 32);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	pid_t child;
	int status;

	CHECK_EQ(sl_client_wait(c, 0), -EAGAIN);
	REQUIRE(rte_eth_stats_reset(PORT) == 0);
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0)
		_exit(sl_client_wait(c, -1) == 0 ? 0 : 1);
	sleep_wait(child);
	rte_pktmbuf_append(m, 60);
	REQUIRE(rte_eth_tx_burst(PORT, 0, &m, 1) == 1);
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
	CHECK_EQ(xstat("tx_bells"), 1);
	sl_client_close(c);
	link_wait(false);
}

static void
a_sleeping_port_is_woken(void)
{
	struct sl_client *c = client_open(TPACKET_V2, 32, 0);
	struct rte_epoll_event e;
	struct rte_mbuf *m[4];

	REQUIRE(rte_eth_dev_rx_intr_ctl_q(
			PORT, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL) == 0);
	REQUIRE(rte_eth_dev_rx_intr_enable(PORT, 0) == 0);
	put(c, 60, 1);
	CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &e, 1, -1), 1);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 1);
	rte_pktmbuf_free(m[0]);
	REQUIRE(rte_eth_dev_rx_intr_disable(PORT, 0) == 0);
	put(c, 60, 1);
	/* What came before the port went to sleep wakes it too. */
	REQUIRE(rte_eth_dev_rx_intr_enable(PORT, 0) == 0);
	CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &e, 1, -1), 1);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 1);
	rte_pktmbuf_free(m[0]);
	REQUIRE(rte_eth_dev_rx_intr_disable(PORT, 0) == 0);
	rte_eth_dev_rx_intr_ctl_q(PORT, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL);
	sl_client_close(c);
	link_wait(false);
}

/* A queue that is stopped gives and takes nothing. */
static void
queues_stop_and_start(void)
{
	struct sl_client *c = client_open(TPACKET_V2, 32, 32);
	struct rte_mbuf *m[4], *out = rte_pktmbuf_alloc(pool);

	rte_pktmbuf_append(out, 60);
	put(c, 60, 1);
	CHECK_EQ(rte_eth_dev_rx_queue_stop(PORT, 0), 0);
	CHECK_EQ(rte_eth_dev_tx_queue_stop(PORT, 0), 0);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 0);
	CHECK_EQ(rte_eth_tx_burst(PORT, 0, &out, 1), 0);
	CHECK_EQ(rte_eth_dev_rx_queue_start(PORT, 0), 0);
	CHECK_EQ(rte_eth_dev_tx_queue_start(PORT, 0), 0);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 1);
	CHECK_EQ(rte_eth_tx_burst(PORT, 0, &out, 1), 1);
	rte_pktmbuf_free(m[0]);
	sl_client_close(c);
	link_wait(false);
}

static int
dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	REQUIRE(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

/* The rings are laid out as <linux/if_packet.h> says: without another call of the library. */
static void
rings_are_what_the_headers_say(void)
{
	struct sl_client *c = client_open(TPACKET_V2, 32, 32);
	struct sl_client_ring tx, rx;
	struct tpacket2_hdr *h;
	struct rte_mbuf *m[2];

	sl_client_tx_ring(c, &tx);
	sl_client_rx_ring(c, &rx);
	REQUIRE(tx.addr != NULL && rx.addr != NULL && tx.frames == 32);
	CHECK_EQ(tx.bytes, (size_t)tx.frames * tx.frame_size);
	for (uint32_t i = 0; i < 2; i++) {
		h = (void *)(tx.addr + i * tx.frame_size);
		memset((uint8_t *)h + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll), (int)i + 1, 60);
		h->tp_len = 60;
		sl_store_release(&h->tp_status, TP_STATUS_SEND_REQUEST); /* PR1 */
	}
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 2), 2);
	CHECK_EQ(rte_pktmbuf_mtod(m[1], uint8_t *)[59], 2);
	CHECK_EQ(rte_eth_tx_burst(PORT, 0, m, 2), 2);
	h = (void *)(rx.addr + rx.frame_size);
	CHECK_EQ(sl_load_acquire(&h->tp_status) & TP_STATUS_USER, TP_STATUS_USER); /* PR3 */
	CHECK_EQ(h->tp_snaplen, 60);
	CHECK_EQ(((uint8_t *)h)[h->tp_mac + 59], 2);
	sl_client_close(c);
	link_wait(false);
}

static uint32_t link_events;

static int
link_changed(uint16_t port, enum rte_eth_event_type type, void *arg, void *out)
{
	(void)port;
	(void)type;
	(void)arg;
	(void)out;
	sl_fetch_add_relaxed(&link_events, 1u);
	return 0;
}

static void
second_start(void)
{
	struct rte_eth_conf conf = {.intr_conf = {.lsc = 1}};

	REQUIRE(rte_eth_dev_configure(SECOND, 2, 2, &conf) == 0);
	for (uint16_t i = 0; i < 2; i++) {
		REQUIRE(rte_eth_rx_queue_setup(SECOND, i, 0, SOCKET_ID_ANY, NULL, pool) == 0);
		REQUIRE(rte_eth_tx_queue_setup(SECOND, i, 0, SOCKET_ID_ANY, NULL) == 0);
	}
	REQUIRE(rte_eth_dev_start(SECOND) == 0);
}

static int
second_client(uint16_t queue, struct sl_client **c, const char **why)
{
	struct sl_client_conf conf = {.path = second_path,
		.queue = queue,
		.version = TPACKET_V3,
		.tx_frames = 32,
		.rx_frames = 32};

	return sl_client_connect(&conf, c, why);
}

/* Two queues: clients are on the one that they asked for, or on the emptier; each counts its own.
 */
static void
queues_are_apart(void)
{
	struct sl_client *c[3], *none;
	struct sl_client_info info;
	struct rte_eth_stats stats;
	struct rte_mbuf *m[4];
	const char *why;

	second_start();
	CHECK_EQ(second_client(2, &none, &why), -EINVAL);
	CHECK(why != NULL && strstr(why, "queue") != NULL);
	REQUIRE(second_client(1, &c[0], &why) == 0);
	REQUIRE(second_client(SL_CLIENT_ANY_QUEUE, &c[1], &why) == 0);
	sl_client_info(c[1], &info);
	CHECK_EQ(info.queue, 0);
	REQUIRE(second_client(0, &c[2], &why) == 0);
	put(c[0], 60, 1);
	put(c[1], 61, 2);
	put(c[2], 62, 3);
	CHECK_EQ(rte_eth_rx_burst(SECOND, 1, m, 4), 1);
	CHECK_EQ(m[0]->pkt_len, 60);
	rte_pktmbuf_free(m[0]);
	CHECK_EQ(rte_eth_rx_burst(SECOND, 0, m, 4), 2); /* both clients of it */
	CHECK_EQ(m[0]->pkt_len + m[1]->pkt_len, 61 + 62);
	rte_pktmbuf_free_bulk(m, 2);
	REQUIRE(rte_eth_stats_get(SECOND, &stats) == 0);
	CHECK_EQ(stats.q_ipackets[0], 2);
	CHECK_EQ(stats.q_ipackets[1], 1);
	CHECK_EQ(stats.q_ibytes[1], 60);
	CHECK_EQ(stats.ipackets, 3);
	for (int i = 0; i < 3; i++)
		sl_client_close(c[i]);
}

/* Sixteen clients share a queue; the next one is told why not. */
static void
a_queue_has_a_limit(void)
{
	struct sl_client *c[16], *none;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	const char *why;

	for (int i = 0; i < 16; i++)
		while (second_client(0, &c[i], &why) != 0)
			usleep(1000); /* those of the last case are going */
	CHECK_EQ(second_client(0, &none, &why), -EUSERS);
	CHECK(why != NULL && strstr(why, "as many clients") != NULL);
	memset(rte_pktmbuf_append(m, 60), 1, 60);
	CHECK_EQ(rte_eth_tx_burst(SECOND, 0, &m, 1), 1);
	for (int i = 0; i < 16; i++) {
		struct sl_client_frame f;

		while (sl_client_rx_next(c[i], &f) == 0) /* a turn retires V3 blocks */
			CHECK_EQ(rte_eth_rx_burst(SECOND, 0, &m, 1), 0);
		CHECK_EQ(f.len, 60);
		sl_client_close(c[i]);
	}
}

static void
settings_of_a_port(void)
{
	struct rte_eth_dev_info info;
	struct rte_eth_stats stats;
	struct rte_eth_link link;
	struct sl_client *c;
	struct rte_mbuf *m[2];
	const char *why;

	CHECK_EQ(rte_eth_dev_callback_register(SECOND, RTE_ETH_EVENT_INTR_LSC, link_changed, NULL),
		0);
	do {
		REQUIRE(rte_eth_link_get_nowait(SECOND, &link) == 0);
	} while (link.link_status == RTE_ETH_LINK_UP);
	sl_store_relaxed(&link_events, 0u);
	REQUIRE(rte_eth_dev_info_get(SECOND, &info) == 0);
	CHECK_EQ(info.max_rx_queues, 2);
	CHECK_EQ(rte_eth_dev_set_mtu(SECOND, (uint16_t)(info.min_mtu - 1)), -EINVAL);
	CHECK_EQ(rte_eth_dev_set_mtu(SECOND, 500), 0);
	CHECK_EQ(rte_eth_promiscuous_enable(SECOND), 0);
	CHECK_EQ(rte_eth_promiscuous_get(SECOND), 1);
	CHECK_EQ(rte_eth_allmulticast_enable(SECOND), 0);
	while (second_client(1, &c, &why) != 0)
		usleep(1000);
	while (sl_load_relaxed(&link_events) == 0)
		usleep(1000);
	REQUIRE(rte_eth_stats_reset(SECOND) == 0);
	put(c, 500 + 14 + 8, 1); /* header and two tags */
	put(c, 500 + 14 + 8 + 1, 1);
	CHECK_EQ(rte_eth_rx_burst(SECOND, 1, m, 2), 1);
	rte_pktmbuf_free(m[0]);
	REQUIRE(rte_eth_stats_get(SECOND, &stats) == 0);
	CHECK_EQ(stats.ierrors, 1);
	CHECK_EQ(sl_client_tx_refused(c), 1);
	sl_client_close(c);
	while (sl_load_relaxed(&link_events) < 2)
		usleep(1000);
	REQUIRE(rte_eth_dev_stop(SECOND) == 0);
	REQUIRE(rte_eth_dev_close(SECOND) == 0);
	CHECK(access(second_path, F_OK) != 0);
}

/* Garbage, and hellos with every field spoiled in turn: refused or cut off, and others go on. */
static void
nonsense_is_refused(void)
{
	struct sl_client *other = client_open(TPACKET_V2, 32, 0);
	struct sl_pktring_hello good = {.magic = SL_PKTRING_MAGIC,
		.type = SL_PKTRING_HELLO,
		.oldest = 1,
		.newest = 1,
		.version = TPACKET_V2,
		.tx = {4096, 1, 2048, 2, 0, 0, 0}};
	struct rte_mbuf *m[4];
	unsigned int seed = 7;

	for (size_t i = 0; i < 400; i++) {
		uint8_t bytes[sizeof(good) + 8];
		size_t len = i < 300 ? sizeof(good) : (size_t)rand_r(&seed) % sizeof(bytes);
		struct sl_pktring_answer a;
		int fd = dial();

		memcpy(bytes, &good, sizeof(good));
		for (int k = 0; k < 1 + (int)i % 8; k++)
			bytes[(size_t)rand_r(&seed) % sizeof(good)] = (uint8_t)rand_r(&seed);
		if (send(fd, bytes, len, MSG_NOSIGNAL) > 0 && len > 0) {
			ssize_t n = recv(fd, &a, sizeof(a), 0);

			/* Now and then the dice leave a good one. */
			CHECK(n == 0 || (n == sizeof(a) && a.magic == SL_PKTRING_MAGIC &&
						(a.error == 0 || a.text[0] != '\0')));
		}
		close(fd);
	}
	put(other, 60, 3);
	CHECK_EQ(rte_eth_rx_burst(PORT, 0, m, 4), 1);
	rte_pktmbuf_free(m[0]);
	sl_client_close(other);
	link_wait(false);
}

/* Strangers who say nothing are not many. */
static void
silence_has_a_limit(void)
{
	struct sl_client *c;
	int fd[100];

	for (int i = 0; i < 100; i++)
		fd[i] = dial();
	for (int i = 0; i < 100; i++)
		close(fd[i]);
	c = client_open(TPACKET_V2, 32, 0);
	sl_client_close(c);
	link_wait(false);
}

/* A client in a process of its own that sends until it is killed, through everything that it may
 * write to: every second one spoils headers as well. */
static void
wild_client(bool spoil, unsigned int seed)
{
	struct sl_client_conf conf = {.path = path,
		.version = (int)(seed % 3),
		.tx_frames = 64,
		.rx_frames = 64,
		.loss = true};
	struct sl_client_frame f;
	struct sl_client *c;

	if (sl_client_connect(&conf, &c, NULL) != 0)
		_exit(1);
	for (;;) {
		uint8_t *slot = sl_client_tx_next(c);

		if (slot != NULL) {
			memset(slot, (int)seed, 64);
			if (spoil)
				for (int i = 0; i < 8; i++)
					slot[-(int)(rand_r(&seed) % 48) - 1 + 0] =
						(uint8_t)rand_r(&seed);
			sl_client_tx_submit(c, spoil ? (uint32_t)rand_r(&seed) % 3000 : 64);
			sl_client_kick(c);
		}
		if (!spoil && sl_client_rx_next(c, &f) == 1)
			sl_client_rx_done(c);
	}
}

static void
serve_until(uint32_t turns)
{
	for (uint32_t i = 0; i < turns; i++) {
		struct rte_mbuf *m[32];
		uint16_t n = rte_eth_rx_burst(PORT, 0, m, 32), sent;

		for (uint16_t k = 0; k < n; k++) {
			REQUIRE(m[k]->pkt_len >= 14 && m[k]->pkt_len <= 1522);
		}
		sent = rte_eth_tx_burst(PORT, 0, m, n);
		rte_pktmbuf_free_bulk(m + sent, n - sent);
	}
}

static void
killed_clients_cost_nothing(void)
{
	unsigned int seed = 99;

	for (int i = 0; i < 200; i++) {
		pid_t child = fork();
		int status;

		REQUIRE(child >= 0);
		if (child == 0)
			wild_client(i % 2, (unsigned int)i);
		if (i % 4 != 0) /* a quarter dies before, or while, it says hello */
			link_wait(true);
		serve_until((uint32_t)rand_r(&seed) % 500);
		REQUIRE(kill(child, SIGKILL) == 0);
		REQUIRE(waitpid(child, &status, 0) == child);
		CHECK(WIFSIGNALED(status));
		serve_until(2);
	}
	link_wait(false);
	REQUIRE(rte_eth_dev_stop(PORT) == 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
	/* Rings that were in flight are freed by the control thread, a little later. */
	for (int i = 0; i < PATIENCE_MS && test_descriptors() + mappings() > descriptors_idle; i++)
		usleep(1000);
	CHECK_EQ(test_descriptors(), descriptors_idle);
	CHECK_EQ(mappings(), 0);
	REQUIRE(rte_eth_dev_start(PORT) == 0);
}

/* The application holds mbufs of a client that has gone: their bytes stay. */
static void
frames_outlive_their_client(void)
{
	struct sl_client *c = client_open(TPACKET_V2, 32, 0);
	struct rte_mbuf *m[4];

	put(c, 60, 0x5a);
	REQUIRE(rte_eth_rx_burst(PORT, 0, m, 4) == 1);
	sl_client_close(c);
	link_wait(false);
	CHECK_EQ(rte_pktmbuf_mtod(m[0], uint8_t *)[59], 0x5a);
	rte_pktmbuf_free(m[0]);
}

static void
port_start(void)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = 1}};

	REQUIRE(rte_eth_dev_configure(PORT, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(PORT, 0, 0, SOCKET_ID_ANY, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(PORT, 0, 0, SOCKET_ID_ANY, NULL) == 0);
	REQUIRE(rte_eth_dev_start(PORT) == 0);
}

int
main(int argc, char **argv)
{
	char vdev[128], second[160], prefix[64];
	const char *eal[] = {"test", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "-l",
		"0", "--log-level=error", "-d", argc > 1 ? argv[1] : "", vdev, second, prefix};

	REQUIRE(argc == 2);
	snprintf(path, sizeof(path), "/tmp/sluice-pktring-%d.sock", getpid());
	snprintf(second_path, sizeof(second_path), "/tmp/sluice-pktring-%d-2.sock", getpid());
	snprintf(vdev, sizeof(vdev), "--vdev=net_pktring0,path=%s", path);
	snprintf(second, sizeof(second), "--vdev=net_pktring1,path=%s,queues=2", second_path);
	snprintf(prefix, sizeof(prefix), "--file-prefix=pktring_api_%d", getpid());
	REQUIRE(test_eal_init((int)SL_COUNT_OF(eal), (char **)(uintptr_t)eal) >= 0);
	pool = rte_pktmbuf_pool_create(
		"pool", POOL, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	REQUIRE(pool != NULL);
	port_start();
	SL_TEST_RUN(frames_arrive_and_slots_come_back);
	SL_TEST_RUN(frames_are_found_in_the_receive_ring);
	SL_TEST_RUN(counters_have_causes);
	SL_TEST_RUN(a_frame_counts_once);
	SL_TEST_RUN(a_waiting_client_is_woken);
	SL_TEST_RUN(a_sleeping_port_is_woken);
	SL_TEST_RUN(queues_stop_and_start);
	SL_TEST_RUN(rings_are_what_the_headers_say);
	SL_TEST_RUN(queues_are_apart);
	SL_TEST_RUN(a_queue_has_a_limit);
	SL_TEST_RUN(settings_of_a_port);
	SL_TEST_RUN(nonsense_is_refused);
	SL_TEST_RUN(silence_has_a_limit);
	/* After whatever the library opens once, and before anything is left in flight. */
	descriptors_idle = test_descriptors();
	SL_TEST_RUN(frames_outlive_their_client);
	SL_TEST_RUN(killed_clients_cost_nothing);
	REQUIRE(rte_eth_dev_stop(PORT) == 0);
	REQUIRE(rte_eth_dev_close(PORT) == 0);
	CHECK(access(path, F_OK) != 0);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}
