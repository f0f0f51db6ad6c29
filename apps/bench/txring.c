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
#define FRAMES 128u
#define FRAME_SIZE 16384u
#define VERSION TPACKET_V2

static uint8_t frame[FRAME_SIZE];

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
	uint32_t len;
} tx = {.fd = -1};

static const struct tpacket_req request = {FRAME_SIZE * 4, FRAMES / 4, FRAME_SIZE, FRAMES};

/* Fill up to BURST free slots. */
static uint32_t
fill(struct ring *r)
{
	uint32_t n = 0;

	for (; n < BURST; n++) {
		uint8_t *slot = r->addr + (size_t)r->next * FRAME_SIZE;

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
		ret = sl_psock_setsockopt(tx.s, SOL_PACKET, PACKET_TX_RING, &request,
			sizeof(request), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_mmap(tx.s, (size_t)FRAMES * FRAME_SIZE, &addr);
	tx.ours = (struct ring){.addr = addr};
	if (ret == 0)
		sl_psock_worker_online(tx.net, 0);
	return ret;
}

/* In a network namespace of this thread's own, which ends with it. Without the right to make one,
 * the side is left out. */
static void
kernels_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET};
	int version = VERSION;
	void *addr;

	if (unshare(CLONE_NEWNET) != 0 ||
		system("ip link add b0 mtu 9000 type veth peer name b1 mtu 9000 && "
		       "ip link set b0 up && ip link set b1 up") != 0)
		return;
	tx.fd = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));
	ll.sll_ifindex = (int)if_nametoindex("b0");
	if (tx.fd < 0 || bind(tx.fd, (struct sockaddr *)&ll, sizeof(ll)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_TX_RING, &request, sizeof(request)) != 0)
		return;
	addr = mmap(
		NULL, (size_t)FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tx.fd, 0);
	if (addr != MAP_FAILED)
		tx.kernels = (struct ring){.addr = addr};
}

static int
measure(const struct bench_opts *opts)
{
	static const struct packet_side side[] = {{"ring", from_ring, NULL},
		{"mbuf_copy", from_mbufs, NULL}, {"kernel_ring", from_kernels_ring, NULL}};
	static const struct {
		const char *name;
		uint32_t len;
	} sizes[] = {{"64", 64}, {"1500", 1500}, {"9000", 9000}};
	int ret = 0;

	for (size_t i = 0; i < RTE_DIM(sizes) && ret == 0; i++) {
		if (!bench_wanted(opts, sizes[i].name))
			continue;
		tx.len = sizes[i].len;
		ret = packet_sides_run(opts, "txring", sizes[i].name, "pps",
			opts->seconds / RTE_DIM(sizes), side, tx.kernels.addr != NULL ? 3 : 2);
	}
	if (tx.kernels.addr == NULL)
		packet_skip(opts, "txring", "kernel_ring", "needs CAP_NET_ADMIN and CAP_NET_RAW");
	return ret;
}

static int
run(const struct bench_opts *opts)
{
	int ret = packet_port_open(&tx.port_id, &tx.pool, MTU);

	if (ret != 0)
		return ret;
	memset(frame, 0xff, 12);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	ret = ours_open();
	if (ret == 0) {
		kernels_open();
		ret = measure(opts);
		sl_psock_worker_offline(tx.net, 0);
		sl_psock_munmap(tx.s, tx.ours.addr, (size_t)FRAMES * FRAME_SIZE);
	}
	sl_psock_close(tx.s, SL_PSOCK_NO_WORKER);
	if (sl_psock_net_destroy(tx.net) != 0)
		ret = -EPROTO;
	packet_port_close(tx.port_id, tx.pool);
	if (tx.fd >= 0)
		close(tx.fd);
	return ret;
}

const struct bench_command bench_txring = {"txring",
	"a transmit ring into a null port, against mbufs and against the kernel's ring", run};
