/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A receiver that sleeps on the receive interrupt, with the stock virtio-user driver as frontend:
 * on a port that hands packets out, and on one that is bridged to a kernel tap, in a network
 * namespace of its own.
 *
 * usage: test_sleep PLUGIN "virtio-user options"
 */
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "cpus.h"
#include "sl_base.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_leak.h"

#define BURST 32u
#define LENGTH 80u
#define ROUNDS 200u
#define PACKETS 6000u
#define FLOOD 400u /* more than the peer's ring holds */
#define PATIENCE_MS 20000 /* only ever waited out when something is broken */
#define TAP "slsleep0"

static uint16_t ours, peer;
static struct rte_mempool *pool;
static const char *options;
static char path[64];
static uint64_t sequence;
static uint32_t at_ease; /* (a) the receiver has all, or has given up */

static void
port_setup(uint16_t port, bool intr)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = intr}};

	REQUIRE(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
}

static void
link_wait(void)
{
	struct rte_eth_link link = {0};
	struct test_wait w = {0};

	while (link.link_status != RTE_ETH_LINK_UP && test_patience(&w)) {
		REQUIRE(rte_eth_link_get_nowait(ours, &link) == 0);
		usleep(10);
	}
	REQUIRE(link.link_status == RTE_ETH_LINK_UP);
}

static void
ports_open(const char *more)
{
	char args[256];

	snprintf(args, sizeof(args), "path=%s%s", path, more);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_tapvu0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_tapvu0", &ours) == 0);
	port_setup(ours, true);
	snprintf(args, sizeof(args), "path=%s,%s", path, options);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_virtio_user0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_virtio_user0", &peer) == 0);
	port_setup(peer, false);
	link_wait();
	REQUIRE(rte_eth_dev_rx_intr_ctl_q(
			ours, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL) == 0);
}

static void
ports_close(void)
{
	CHECK_EQ(rte_eth_dev_rx_intr_ctl_q(ours, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL),
		0);
	CHECK_EQ(rte_eth_dev_stop(peer), 0);
	CHECK_EQ(rte_eal_hotplug_remove("vdev", "net_virtio_user0"), 0);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	CHECK_EQ(rte_eal_hotplug_remove("vdev", "net_tapvu0"), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

/* Sleeps that long at most; true if something woke us. */
static bool
asleep_until_woken(int ms)
{
	struct rte_epoll_event event;

	return rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, ms) == 1;
}

static void
forget_events(void)
{
	for (uint32_t k = 0; k < 100 && asleep_until_woken(0); k++)
		;
}

static void
frame_fill(uint8_t *at, uint64_t seq)
{
	memset(at, 0xee, 12);
	at[12] = 0x88;
	at[13] = 0xb5;
	for (uint32_t i = 14; i < LENGTH; i++)
		at[i] = (uint8_t)(i < 22 ? seq >> 8 * (i - 14) : seq * 31 + i);
}

static bool
frame_holds(const uint8_t *at, uint32_t len, uint64_t seq)
{
	uint8_t wanted[LENGTH];

	frame_fill(wanted, seq);
	return len == LENGTH && memcmp(at, wanted, LENGTH) == 0;
}

static void
peer_sends(uint64_t seq)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct test_wait w = {0};

	REQUIRE(m != NULL);
	frame_fill((uint8_t *)rte_pktmbuf_append(m, LENGTH), seq);
	while (sl_load_relaxed(&at_ease) == 0 && test_patience(&w)) {
		if (rte_eth_tx_burst(peer, 0, &m, 1) == 1)
			return;
		sched_yield();
	}
	rte_pktmbuf_free(m);
}

/* Packets that are there, from `next` on. */
static uint16_t
receive(uint16_t port, uint64_t next)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(port, 0, m, BURST);

	for (uint16_t i = 0; i < n; i++)
		CHECK(frame_holds(
			rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->pkt_len, next + i));
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* ---- packets that are handed out ---- */

static void
each_packet_wakes(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		CHECK(!asleep_until_woken(0));
		peer_sends(sequence);
		CHECK(asleep_until_woken(PATIENCE_MS));
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
		CHECK_EQ(receive(ours, sequence++), 1);
		forget_events();
	}
}

static void
what_is_there_already_wakes_at_once(void)
{
	peer_sends(sequence);
	CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
	CHECK(asleep_until_woken(PATIENCE_MS));
	CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
	CHECK_EQ(receive(ours, sequence++), 1);
	forget_events();
}

static void
who_polls_is_not_woken(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		peer_sends(sequence);
		CHECK_EQ(receive(ours, sequence++), 1);
		CHECK(!asleep_until_woken(0));
	}
}

/* A peer that starts anew brings its descriptors anew, behind the same registration. */
static void
a_restart_of_the_peer_under_a_sleeper(void)
{
	for (uint32_t i = 0; i < 20; i++) {
		struct test_wait w = {0};

		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		REQUIRE(rte_eth_dev_stop(peer) == 0);
		REQUIRE(rte_eth_dev_start(peer) == 0);
		link_wait();
		peer_sends(sequence);
		CHECK(asleep_until_woken(PATIENCE_MS));
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
		while (receive(ours, sequence) == 0 && test_patience(&w))
			;
		sequence++;
		forget_events();
	}
}

static int
send_all(void *arg)
{
	uint64_t first = *(const uint64_t *)arg;

	for (uint32_t i = 0; i < PACKETS && sl_load_relaxed(&at_ease) == 0; i++) {
		peer_sends(first + i);
		/* Pauses of many lengths, so that some end when the receiver is about to sleep. */
		for (uint32_t k = i * 7919 % 3000; k > 0; k--)
			rte_pause();
	}
	return 0;
}

/* Sleeps whenever nothing is there. A wake-up that is lost would end in an empty wait. */
static void
no_wake_up_is_lost(void)
{
	uint64_t first = sequence, got = 0;
	uint32_t slept = 0, lost = 0;

	REQUIRE(rte_eal_mp_remote_launch(send_all, &first, SKIP_MAIN) == 0);
	while (got < PACKETS && lost == 0) {
		uint16_t n = receive(ours, first + got);

		got += n;
		if (n > 0 || got == PACKETS)
			continue;
		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		lost += !asleep_until_woken(PATIENCE_MS);
		slept++;
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
	}
	sl_store_relaxed(&at_ease, 1u);
	rte_eal_mp_wait_lcore();
	sl_store_relaxed(&at_ease, 0u);
	sequence += PACKETS;
	CHECK_EQ(lost, 0);
	CHECK_EQ(got, PACKETS);
	CHECK(slept > 0);
	printf("     slept %u times\n", slept);
	forget_events();
}

static void
without_interrupts_it_says_so(void)
{
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	port_setup(ours, false);
	CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), -ENOTSUP);
	CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), -ENOTSUP);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	port_setup(ours, true);
	/* The frontend was there all the time. */
	REQUIRE(rte_eth_dev_rx_intr_ctl_q(
			ours, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL) == 0);
	link_wait();
	forget_events();
	each_packet_wakes();
}

static void
port_that_hands_out(void)
{
	ports_open("");
	SL_TEST_RUN(each_packet_wakes);
	SL_TEST_RUN(what_is_there_already_wakes_at_once);
	SL_TEST_RUN(who_polls_is_not_woken);
	SL_TEST_RUN(a_restart_of_the_peer_under_a_sleeper);
	SL_TEST_RUN(no_wake_up_is_lost);
	SL_TEST_RUN(without_interrupts_it_says_so);
	ports_close();
}

/* ---- the bridge ---- */

static int kernel = -1; /* packet socket on the tap */

/* A namespace of our own, where the kernel says nothing of its own accord. */
static void
namespace_make(void)
{
	int fd;

	REQUIRE(unshare(CLONE_NEWNET) == 0);
	fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);
	if (fd < 0) /* no IPv6 at all */
		return;
	REQUIRE(write(fd, "1", 1) == 1);
	close(fd);
}

static void
kernel_open(void)
{
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = 0xb588};
	int one = 1;

	kernel = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	REQUIRE(kernel >= 0);
	at.sll_ifindex = (int)if_nametoindex(TAP);
	REQUIRE(at.sll_ifindex > 0);
	REQUIRE(setsockopt(kernel, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	REQUIRE(setsockopt(kernel, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) == 0);
	REQUIRE(bind(kernel, (struct sockaddr *)&at, sizeof(at)) == 0);
}

static void
kernel_sends(uint64_t seq)
{
	uint8_t frame[LENGTH];

	frame_fill(frame, seq);
	CHECK_EQ(send(kernel, frame, sizeof(frame), 0), sizeof(frame));
}

/* Move frames over the bridge until the peer has another one. */
static bool
peer_receives(uint64_t seq)
{
	struct test_wait w = {0};

	while (test_patience(&w)) {
		CHECK_EQ(receive(ours, 0), 0);
		if (receive(peer, seq) == 1)
			return true;
	}
	return false;
}

static void
frames_of_the_peer_wake(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint8_t got[LENGTH + 1];

		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		peer_sends(sequence);
		CHECK(asleep_until_woken(PATIENCE_MS));
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
		CHECK_EQ(receive(ours, 0), 0);
		CHECK_EQ(recv(kernel, got, sizeof(got), 0), LENGTH);
		CHECK(frame_holds(got, LENGTH, sequence++));
		forget_events();
	}
}

static void
frames_of_the_kernel_wake(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		kernel_sends(sequence);
		CHECK(asleep_until_woken(PATIENCE_MS));
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
		CHECK(peer_receives(sequence++));
		forget_events();
	}
}

static uint64_t
bridged(void)
{
	uint64_t id, value = 0;

	REQUIRE(rte_eth_xstats_get_id_by_name(ours, "bridge_to_peer_frames", &id) == 0);
	REQUIRE(rte_eth_xstats_get_by_id(ours, &id, &value, 1) == 1);
	return value;
}

/* Frames wait in the kernel for buffers of the peer: sleep until there are some. */
static void
buffers_of_the_peer_wake(void)
{
	uint64_t before = bridged(), got = 0;
	uint32_t lost = 0;

	for (uint32_t i = 0; i < FLOOD; i++)
		kernel_sends(sequence + i);
	for (uint32_t k = 0; k < 1000; k++)
		CHECK_EQ(receive(ours, 0), 0);
	CHECK(bridged() - before < FLOOD);
	forget_events();
	while (got < FLOOD && lost == 0) {
		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
		for (uint16_t n = 1; n > 0; got += n)
			n = receive(peer, sequence + got);
		if (got < FLOOD)
			lost += !asleep_until_woken(PATIENCE_MS);
		CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
		CHECK_EQ(receive(ours, 0), 0);
	}
	CHECK_EQ(lost, 0);
	CHECK_EQ(got, FLOOD);
	CHECK_EQ(bridged() - before, FLOOD);
	sequence += FLOOD;
	forget_events();
}

static void
port_with_a_tap(void)
{
	ports_open(",tap=" TAP);
	kernel_open();
	SL_TEST_RUN(frames_of_the_peer_wake);
	SL_TEST_RUN(frames_of_the_kernel_wake);
	SL_TEST_RUN(buffers_of_the_peer_wake);
	close(kernel);
	ports_close();
}

static unsigned int descriptors;

static void
no_descriptor_is_left(void)
{
	CHECK_EQ(test_descriptors(), descriptors);
}

static void
needs_a_tap(void)
{
	SKIP("needs root, for a network namespace and /dev/net/tun");
}

int
main(int argc, char **argv)
{
	char args[512];
	bool taps = geteuid() == 0 && access("/dev/net/tun", W_OK) == 0;

	if (argc != 3) {
		fprintf(stderr, "usage: test_sleep PLUGIN VIRTIO_USER_OPTIONS\n");
		return 2;
	}
	if (taps)
		namespace_make();
	snprintf(args, sizeof(args), "--lcores (0,1)@(%u,%u) -d %s --log-level=*:1", cpu_nth(0),
		cpu_nth(1), argv[1]);
	options = argv[2];
	snprintf(path, sizeof(path), "/tmp/sl_tapvus_%d.sock", (int)getpid());
	REQUIRE(test_eal_start("tapvu_sleep", args) >= 0);
	pool = rte_pktmbuf_pool_create("packets", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	port_that_hands_out(); /* also what EAL and rte_vhost open once */
	descriptors = test_descriptors();
	port_that_hands_out();
	SL_TEST_RUN(no_descriptor_is_left);
	if (taps)
		port_with_a_tap();
	else
		SL_TEST_RUN(needs_a_tap);
	unlink(path);
	rte_eal_cleanup();
	return test_end();
}
