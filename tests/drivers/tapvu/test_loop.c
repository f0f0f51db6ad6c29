/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The driver against the stock virtio-user driver in one process: signed packets both ways,
 * contents, order and counters; stops and starts; nothing left in any pool.
 *
 * usage: test_loop PLUGIN QUEUES "virtio-user options" "net_tapvu options"
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "cpus.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define BURST 32u
#define NUMBER_AT 14u
#define SHARED_PACKETS 20000u /* through queues that two lcores share */

static uint16_t ours, peer; /* ports */
static uint16_t queues;
static uint32_t longest; /* frame */
static struct rte_mempool *pool;
static uint64_t sequence; /* of the next packet */

static void
port_setup(uint16_t port)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t rx;

	REQUIRE(rte_eth_dev_info_get(port, &info) == 0);
	rx = RTE_MIN(queues, info.max_rx_queues);
	if (port == peer)
		conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (port == peer && longest > 1518)
		conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	REQUIRE(rte_eth_dev_configure(port, rx, queues, &conf) == 0);
	for (uint16_t q = 0; q < rx; q++)
		REQUIRE(rte_eth_rx_queue_setup(port, q, 256, 0, NULL, pool) == 0);
	for (uint16_t q = 0; q < queues; q++)
		REQUIRE(rte_eth_tx_queue_setup(port, q, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
}

static uint32_t
length_of(uint64_t seq)
{
	return 60 + (uint32_t)(seq * 37 % (longest - 60));
}

/* Byte b of packet seq; eight of them say its number. */
static uint8_t
content(uint64_t seq, uint32_t b)
{
	if (b >= NUMBER_AT && b < NUMBER_AT + 8)
		return (uint8_t)(seq >> 8 * (b - NUMBER_AT));
	return b < 14 ? 0xee : (uint8_t)(seq * 31 + b + (b >> 8));
}

static struct rte_mbuf *
packet_make(uint64_t seq)
{
	uint32_t len = length_of(seq), done = 0;
	struct rte_mbuf *first = NULL, **link = &first;

	while (done < len) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		uint8_t *to;

		REQUIRE(m != NULL);
		m->data_len = (uint16_t)RTE_MIN(len - done, (uint32_t)rte_pktmbuf_tailroom(m));
		to = rte_pktmbuf_mtod(m, uint8_t *);
		for (uint32_t i = 0; i < m->data_len; i++)
			to[i] = content(seq, done + i);
		done += m->data_len;
		*link = m;
		link = &m->next;
		first->nb_segs += m != first;
	}
	first->pkt_len = len;
	return first;
}

static bool
packet_holds(const struct rte_mbuf *m, uint64_t seq)
{
	uint32_t done = 0;

	if (m->pkt_len != length_of(seq))
		return false;
	for (; m != NULL; m = m->next) {
		const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

		for (uint32_t i = 0; i < m->data_len; i++)
			if (at[i] != content(seq, done + i))
				return false;
		done += m->data_len;
	}
	return true;
}

static uint16_t
receive(uint16_t port, struct rte_mbuf **m, uint16_t n)
{
	struct rte_eth_dev_info info;
	uint16_t got = 0;

	REQUIRE(rte_eth_dev_info_get(port, &info) == 0);
	for (uint16_t q = 0; q < info.nb_rx_queues && got < n; q++)
		got += rte_eth_rx_burst(port, q, m + got, (uint16_t)(n - got));
	return got;
}

/* What the driver has to say when something is missing. */
static void
print_counters(void)
{
	struct rte_eth_xstat_name names[128];
	struct rte_eth_xstat x[128];
	int n = rte_eth_xstats_get(ours, x, 128);

	REQUIRE(n > 0 && n <= 128 && rte_eth_xstats_get_names(ours, names, 128) == n);
	for (int i = 0; i < n; i++)
		if (x[i].value != 0)
			fprintf(stderr, "%s %llu\n", names[i].name, (unsigned long long)x[i].value);
}

/* n packets over one transmit queue, which arrive in order. Returns those that arrived whole. */
static uint64_t
transfer(uint16_t from, uint16_t to, uint16_t queue, uint64_t n)
{
	uint64_t first = sequence, good = 0, got = 0;
	struct test_wait w = {0};

	while (got < n && test_patience(&w)) {
		struct rte_mbuf *m[BURST];
		uint16_t taken;

		if (sequence < first + n && sequence - first < got + BURST) {
			m[0] = packet_make(sequence);
			if (rte_eth_tx_burst(from, queue, m, 1) == 1)
				sequence++;
			else
				rte_pktmbuf_free(m[0]);
		}
		taken = receive(to, m, BURST);
		for (uint16_t i = 0; i < taken; i++)
			good += packet_holds(m[i], first + got + i);
		rte_pktmbuf_free_bulk(m, taken);
		got += taken;
		if (taken > 0)
			w = (struct test_wait){0};
	}
	if (got != n)
		print_counters();
	CHECK_EQ(got, n);
	return good;
}

static void
both_ways_on_every_queue(void)
{
	struct rte_eth_stats a, b;

	CHECK_EQ(rte_eth_stats_reset(ours), 0);
	CHECK_EQ(rte_eth_stats_reset(peer), 0);
	for (uint16_t q = 0; q < queues; q++) {
		CHECK_EQ(transfer(peer, ours, q, 2000), 2000);
		CHECK_EQ(transfer(ours, peer, q, 2000), 2000);
	}
	REQUIRE(rte_eth_stats_get(ours, &a) == 0 && rte_eth_stats_get(peer, &b) == 0);
	CHECK_EQ(a.ipackets, 2000 * queues);
	CHECK_EQ(a.opackets, 2000 * queues);
	CHECK_EQ(a.ipackets, b.opackets);
	CHECK_EQ(a.opackets, b.ipackets);
	CHECK_EQ(a.ibytes, b.obytes);
	CHECK_EQ(a.obytes, b.ibytes);
	CHECK_EQ(a.ierrors + a.oerrors, 0);
}

/* What two lcores saw of each packet that they received or sent from the same queue. */
struct shared {
	uint16_t port;
	bool sending;
	uint64_t first;
	uint64_t next;		      /* (a) to be sent */
	uint64_t done;		      /* (a) received */
	uint8_t seen[SHARED_PACKETS]; /* (a) times */
	uint64_t spoilt;
};

static uint64_t
number_of(const struct rte_mbuf *m)
{
	uint64_t n;

	memcpy(&n, rte_pktmbuf_mtod_offset(m, const void *, NUMBER_AT), sizeof(n));
	return n;
}

static void
shared_receive(struct shared *s)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(s->port, 0, m, BURST);

	for (uint16_t i = 0; i < n; i++) {
		uint64_t seq = number_of(m[i]);

		if (seq - s->first < SHARED_PACKETS && packet_holds(m[i], seq))
			sl_fetch_add_relaxed(&s->seen[seq - s->first], (uint8_t)1);
		else
			sl_fetch_add_relaxed(&s->spoilt, UINT64_C(1));
	}
	rte_pktmbuf_free_bulk(m, n);
	sl_fetch_add_relaxed(&s->done, (uint64_t)n);
}

static void
shared_send(struct shared *s)
{
	uint64_t n = sl_fetch_add_relaxed(&s->next, UINT64_C(1));
	struct test_wait w = {0};
	struct rte_mbuf *m;

	if (n >= SHARED_PACKETS)
		return;
	m = packet_make(s->first + n);
	while (rte_eth_tx_burst(s->port, 0, &m, 1) == 0 && test_patience(&w))
		rte_pause();
}

static int
shared_loop(void *arg)
{
	struct shared *s = arg;
	struct test_wait w = {0};

	while (sl_load_relaxed(&s->done) < SHARED_PACKETS && test_patience(&w)) {
		if (!s->sending)
			shared_receive(s);
		else if (sl_load_relaxed(&s->next) < SHARED_PACKETS)
			shared_send(s);
		else
			break;
	}
	return 0;
}

static void
shared_check(const struct shared *s)
{
	uint64_t once = 0;

	for (uint32_t i = 0; i < SHARED_PACKETS; i++)
		once += s->seen[i] == 1;
	CHECK_EQ(once, SHARED_PACKETS);
	CHECK_EQ(s->spoilt, 0);
}

/* The main lcore sends from the peer on every queue; two others poll our receive queue 0. */
static void
two_lcores_poll_one_queue(void)
{
	static struct shared s;
	struct rte_eth_dev_info info;
	struct test_wait w = {0};

	REQUIRE(rte_eth_dev_info_get(ours, &info) == 0);
	if (info.nb_rx_queues > 1)
		SKIP("the packets would go to several receive queues");
	memset(&s, 0, sizeof(s));
	s.port = ours;
	s.first = sequence;
	REQUIRE(rte_eal_mp_remote_launch(shared_loop, &s, SKIP_MAIN) == 0);
	for (uint32_t i = 0; i < SHARED_PACKETS && test_patience(&w); i++) {
		struct rte_mbuf *m = packet_make(sequence++);

		while (rte_eth_tx_burst(peer, (uint16_t)(i % queues), &m, 1) == 0 &&
			test_patience(&w))
			sched_yield();
	}
	rte_eal_mp_wait_lcore();
	shared_check(&s);
}

/* Two lcores transmit on our queue 0; the main one receives what the peer got. */
static void
two_lcores_send_on_one_queue(void)
{
	static struct shared s, got;

	memset(&s, 0, sizeof(s));
	memset(&got, 0, sizeof(got));
	s.port = ours;
	s.sending = true;
	got.port = peer;
	s.first = got.first = sequence;
	sequence += SHARED_PACKETS;
	REQUIRE(rte_eal_mp_remote_launch(shared_loop, &s, SKIP_MAIN) == 0);
	shared_loop(&got);
	rte_eal_mp_wait_lcore();
	shared_check(&got);
}

static int
link_up(uint16_t port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static void
link_wait(void)
{
	struct test_wait w = {0};

	while (!link_up(ours)) {
		REQUIRE(test_patience(&w));
		usleep(10);
	}
}

/* The peer's driver stops and starts: rings are taken away and come anew. */
static void
peer_stops_and_starts(void)
{
	for (int i = 0; i < 100; i++) {
		REQUIRE(rte_eth_dev_stop(peer) == 0);
		REQUIRE(rte_eth_dev_start(peer) == 0);
		link_wait();
		if (transfer(peer, ours, 0, 40) != 40 || transfer(ours, peer, 0, 40) != 40) {
			fprintf(stderr, "in cycle %d\n", i);
			CHECK(!"traffic resumes");
			break;
		}
	}
}

static void
we_stop_and_start(void)
{
	for (int i = 0; i < 100; i++) {
		REQUIRE(rte_eth_dev_stop(ours) == 0);
		CHECK(!link_up(ours));
		REQUIRE(rte_eth_dev_start(ours) == 0);
		CHECK(link_up(ours));
		CHECK_EQ(transfer(peer, ours, 0, 40), 40);
		CHECK_EQ(transfer(ours, peer, 0, 40), 40);
	}
}

/* By name, so that a script can rely on it. */
static uint64_t
xstat(const char *name)
{
	uint64_t id, value = UINT64_MAX;

	CHECK_EQ(rte_eth_xstats_get_id_by_name(ours, name, &id), 0);
	CHECK_EQ(rte_eth_xstats_get_by_id(ours, &id, &value, 1), 1);
	return value;
}

static void
xstats_by_cause(void)
{
	struct rte_eth_stats s;

	REQUIRE(rte_eth_stats_get(ours, &s) == 0);
	CHECK_EQ(xstat("rx_chain_built"), s.ipackets);
	CHECK_EQ(xstat("rx_chain_bad_vnet"), 0);
	CHECK_EQ(xstat("ring_bad_address"), 0);
	CHECK(xstat("frag_bytes_carved") > 0);
	CHECK_EQ(rte_eth_xstats_reset(ours), 0);
	CHECK_EQ(xstat("rx_chain_built"), 0);
}

static void
counters_outlive_a_queue(void)
{
	struct rte_eth_stats s;

	CHECK_EQ(rte_eth_stats_reset(ours), 0);
	CHECK_EQ(transfer(peer, ours, 0, 100), 100);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	port_setup(ours);
	REQUIRE(rte_eth_stats_get(ours, &s) == 0);
	CHECK_EQ(s.ipackets, 100);
	CHECK_EQ(rte_eth_stats_reset(ours), 0);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	port_setup(ours);
	REQUIRE(rte_eth_stats_get(ours, &s) == 0);
	CHECK_EQ(s.ipackets, 0);
	CHECK_EQ(transfer(peer, ours, 0, 40), 40);
	REQUIRE(rte_eth_stats_get(ours, &s) == 0);
	CHECK_EQ(s.ipackets, 40);
}

/* Packets that the application keeps survive the port. */
static void
packets_outlive_the_port(void)
{
	struct rte_mbuf *m[BURST];
	uint64_t first = sequence;
	struct test_wait w = {0};
	uint16_t got = 0;

	for (uint16_t i = 0; i < BURST; i++) {
		m[0] = packet_make(sequence++);
		REQUIRE(rte_eth_tx_burst(peer, 0, m, 1) == 1);
	}
	while (got < BURST && test_patience(&w))
		got += receive(ours, m + got, (uint16_t)(BURST - got));
	CHECK_EQ(got, BURST);
	CHECK_EQ(rte_eth_dev_stop(peer), 0);
	CHECK_EQ(rte_eth_dev_close(peer), 0);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	CHECK_EQ(rte_eth_dev_close(ours), 0);
	for (uint16_t i = 0; i < got; i++)
		CHECK(packet_holds(m[i], first + i));
	rte_pktmbuf_free_bulk(m, got);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static void
ports_create(char **argv, const char *socket)
{
	char args[256];

	snprintf(args, sizeof(args), "path=%s,queues=%s,%s", socket, argv[2], argv[4]);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_tapvu0", args) == 0);
	snprintf(args, sizeof(args), "path=%s,queues=%s,%s", socket, argv[2], argv[3]);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_virtio_user0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_tapvu0", &ours) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_virtio_user0", &peer) == 0);
	port_setup(ours);
	port_setup(peer);
	link_wait();
}

int
main(int argc, char **argv)
{
	char args[512], socket[64];

	if (argc != 5) {
		fprintf(stderr,
			"usage: test_loop PLUGIN QUEUES VIRTIO_USER_OPTIONS TAPVU_OPTIONS\n");
		return 2;
	}
	queues = (uint16_t)atoi(argv[2]);
	longest = strstr(argv[3], "mrg_rxbuf=0") != NULL ? 1514 : 9000;
	snprintf(socket, sizeof(socket), "/tmp/sl_tapvu_%d.sock", (int)getpid());
	/* Three lcores, over what CPUs there are. */
	snprintf(args, sizeof(args), "--lcores (0-2)@(%u,%u) -d %s --log-level=3", cpu_nth(0),
		cpu_nth(1), argv[1]);
	REQUIRE(test_eal_start(argv[0], args) >= 0);
	REQUIRE(rte_lcore_count() == 3);
	pool = rte_pktmbuf_pool_create("packets", 16383, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	ports_create(argv, socket);
	SL_TEST_RUN(both_ways_on_every_queue);
	SL_TEST_RUN(xstats_by_cause);
	SL_TEST_RUN(two_lcores_poll_one_queue);
	SL_TEST_RUN(two_lcores_send_on_one_queue);
	SL_TEST_RUN(peer_stops_and_starts);
	SL_TEST_RUN(we_stop_and_start);
	SL_TEST_RUN(counters_outlive_a_queue);
	SL_TEST_RUN(packets_outlive_the_port);
	unlink(socket);
	rte_eal_cleanup();
	return test_end();
}
