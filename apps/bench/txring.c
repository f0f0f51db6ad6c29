/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * txring: frames from a transmit ring into a null port, against the plain way (take an mbuf, copy
 * the frame, rte_eth_tx_burst), and against the host kernel's ring on a veth pair of its own. Each
 * side copies every frame once. Packets in a second.
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "packet_help.h"
#include "sl_errno.h"
#include "sl_pktring_slot.h"
#include "sl_psock.h"

#define BURST 32u
#define MTU 9000u
#define FRAMES 32u /* as much memory as the mbufs that the other side takes in turn */
#define FRAME_SIZE_MAX 16384u
#define VERSION TPACKET_V2

static uint8_t frame[FRAME_SIZE_MAX];

struct ring {
	uint8_t *addr;
	uint32_t next;
};

static struct txring {
	uint16_t port_id;
	struct rte_mempool *pool;
	struct sl_psock_net *net;
	struct sl_psock *s;
	struct ring ours, kernels;
	int fd; /* the kernel's socket, -1 for none */
	uint32_t len, frame_size;
} tx = {.fd = -1};

/* As small as the frames allow: slots that are far apart lie in the same few sets of the cache. */
static struct tpacket_req
request(void)
{
	uint32_t block = RTE_MAX(4096u, tx.frame_size), per_block = block / tx.frame_size;

	return (struct tpacket_req){block, FRAMES / per_block, tx.frame_size, FRAMES};
}

/* Fill up to BURST free slots. */
static uint32_t
fill(struct ring *r)
{
	uint32_t n = 0;

	for (; n < BURST; n++) {
		uint8_t *slot = r->addr + (size_t)r->next * tx.frame_size;

		if (!sl_pktring_is_available(VERSION, slot))
			break;
		memcpy(slot + sl_pktring_data(VERSION), frame, tx.len);
		sl_pktring_request(VERSION, slot, tx.len);
		r->next = (r->next + 1) % FRAMES;
	}
	return n;
}

static uint64_t
deadline(double seconds)
{
	return rte_get_tsc_cycles() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
}

static double
rate(uint64_t n, uint64_t start)
{
	return (double)n * (double)rte_get_tsc_hz() / (double)(rte_get_tsc_cycles() - start);
}

static double
from_ring(void *arg, double seconds)
{
	uint64_t start = rte_get_tsc_cycles(), end = deadline(seconds), n = 0;
	struct msghdr msg = {0};

	(void)arg;
	while (rte_get_tsc_cycles() < end) {
		n += fill(&tx.ours);
		if (sl_psock_sendmsg(tx.s, &msg, MSG_DONTWAIT, 0) < 0)
			return -1;
	}
	return rate(n, start);
}

static double
from_mbufs(void *arg, double seconds)
{
	uint64_t start = rte_get_tsc_cycles(), end = deadline(seconds), n = 0;

	(void)arg;
	while (rte_get_tsc_cycles() < end) {
		struct rte_mbuf *m[BURST];
		uint16_t sent;

		if (rte_pktmbuf_alloc_bulk(tx.pool, m, BURST) != 0)
			return -1;
		for (uint32_t i = 0; i < BURST; i++)
			memcpy(rte_pktmbuf_append(m[i], (uint16_t)tx.len), frame, tx.len);
		sent = rte_eth_tx_burst(tx.port_id, 0, m, BURST);
		if (sent < BURST)
			rte_pktmbuf_free_bulk(m + sent, BURST - sent);
		n += sent;
	}
	return rate(n, start);
}

static double
from_kernels_ring(void *arg, double seconds)
{
	uint64_t start = rte_get_tsc_cycles(), end = deadline(seconds), n = 0;

	(void)arg;
	while (rte_get_tsc_cycles() < end) {
		n += fill(&tx.kernels);
		if (sl_sys((int)send(tx.fd, NULL, 0, 0)) < 0)
			return -1;
	}
	return rate(n, start);
}

static int
ours_open(void)
{
	struct sl_psock_net_conf conf = {.workers = 1, .pool = tx.pool};
	struct sl_psock_port_conf port = {.port_id = tx.port_id, .tx_queues = 1};
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_ifindex = tx.port_id + 1};
	struct tpacket_req req = request();
	int version = VERSION, ret = sl_psock_net_create(&conf, &tx.net);
	void *addr = NULL;

	if (ret == 0)
		ret = sl_psock_port_add(tx.net, &port);
	if (ret == 0)
		ret = sl_psock_create(tx.net, SOCK_RAW, 0, &tx.s);
	if (ret == 0)
		ret = sl_psock_bind(tx.s, &ll, sizeof(ll), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_setsockopt(tx.s, SOL_PACKET, PACKET_VERSION, &version,
			sizeof(version), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_setsockopt(
			tx.s, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_mmap(tx.s, (size_t)FRAMES * tx.frame_size, &addr);
	tx.ours = (struct ring){.addr = addr};
	if (ret == 0)
		sl_psock_worker_online(tx.net, 0);
	return ret;
}

static int
ours_close(void)
{
	sl_psock_worker_offline(tx.net, 0);
	if (tx.ours.addr != NULL)
		sl_psock_munmap(tx.s, tx.ours.addr, (size_t)FRAMES * tx.frame_size);
	sl_psock_close(tx.s, SL_PSOCK_NO_WORKER);
	tx.s = NULL;
	return sl_psock_net_destroy(tx.net) != 0 ? -EPROTO : 0;
}

/* In a network namespace of this thread's own, which ends with it. Without the right to make one,
 * the side is left out. */
static bool
cable_make(void)
{
	return unshare(CLONE_NEWNET) == 0 &&
	       system("ip link add b0 mtu 9000 type veth peer name b1 mtu 9000 && "
		      "ip link set b0 up && ip link set b1 up") == 0;
}

static void
kernels_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET};
	struct tpacket_req req = request();
	int version = VERSION;
	void *addr;

	tx.fd = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));
	ll.sll_ifindex = (int)if_nametoindex("b0");
	if (tx.fd < 0 || bind(tx.fd, (struct sockaddr *)&ll, sizeof(ll)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) != 0)
		return;
	addr = mmap(
		NULL, (size_t)FRAMES * tx.frame_size, PROT_READ | PROT_WRITE, MAP_SHARED, tx.fd, 0);
	if (addr != MAP_FAILED)
		tx.kernels = (struct ring){.addr = addr};
}

static void
kernels_close(void)
{
	if (tx.kernels.addr != NULL)
		munmap(tx.kernels.addr, (size_t)FRAMES * tx.frame_size);
	if (tx.fd >= 0)
		close(tx.fd);
	tx.kernels.addr = NULL;
	tx.fd = -1;
}

static int
measure_size(const struct bench_opts *opts, const char *name, double seconds, bool cable)
{
	static const struct packet_side side[] = {{"ring", from_ring, NULL},
		{"mbuf_copy", from_mbufs, NULL}, {"kernel_ring", from_kernels_ring, NULL}};
	int ret = ours_open(), closed;

	if (ret == 0 && cable)
		kernels_open();
	if (ret == 0)
		ret = packet_sides_run(opts, "txring", name, "pps", seconds, side,
			tx.kernels.addr != NULL ? 3 : 2);
	kernels_close();
	closed = ours_close();
	return ret != 0 ? ret : closed;
}

static int
run(const struct bench_opts *opts)
{
	static const struct {
		const char *name;
		uint32_t len, frame_size;
	} sizes[] = {{"64", 64, 256}, {"1500", 1500, 2048}, {"9000", 9000, FRAME_SIZE_MAX}};
	int ret = packet_port_open(&tx.port_id, &tx.pool, MTU);
	bool cable;

	if (ret != 0)
		return ret;
	memset(frame, 0xff, 12);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	cable = cable_make();
	for (size_t i = 0; i < RTE_DIM(sizes) && ret == 0; i++) {
		tx.len = sizes[i].len;
		tx.frame_size = sizes[i].frame_size;
		if (bench_wanted(opts, sizes[i].name))
			ret = measure_size(
				opts, sizes[i].name, opts->seconds / RTE_DIM(sizes), cable);
	}
	if (!cable)
		packet_skip(opts, "txring", "kernel_ring", "needs CAP_NET_ADMIN and CAP_NET_RAW");
	packet_port_close(tx.port_id, tx.pool);
	return ret;
}

const struct bench_command bench_txring = {"txring",
	"a transmit ring into a null port, against mbufs and against the kernel's ring", run};
