/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * txring: frames from a transmit ring into a null port, against the plain way (take an mbuf, copy
 * the frame, rte_eth_tx_burst), and against the host kernel's ring on a veth pair of its own.
 * Packets in a second. In the cases named by a size alone every side copies each frame once, the
 * ring's client into its slot. In "/in-place" frames are made in the slots once, and requested
 * again and again, as generators do; an mbuf is another one each time, so that side copies all the
 * same.
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
#define FRAMES 64u
#define VERSION TPACKET_V2
#define PAGE 4096u

static uint8_t frame[MTU];

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
	bool in_place;
	struct tpacket_req req;
} tx = {.fd = -1};

/* One block of frames that are as large as they must be: with a power of two all headers would fall
 * into a few sets of the caches. */
static void
geometry(void)
{
	uint32_t size = RTE_ALIGN_CEIL(sl_pktring_hdrlen(VERSION) + tx.len, 64u) | 64;

	tx.req = (struct tpacket_req){RTE_ALIGN_CEIL(size * FRAMES, PAGE), 1, size, 0};
	tx.req.tp_frame_nr = tx.req.tp_block_size / size;
}

/* Fill up to BURST free slots. The ring is one block. */
static uint32_t
fill(struct ring *r)
{
	const uint32_t size = tx.req.tp_frame_size, len = tx.len;
	const bool in_place = tx.in_place;
	uint8_t *slot = r->addr + (size_t)r->next * size;
	uint8_t *end = r->addr + (size_t)tx.req.tp_frame_nr * size;
	uint32_t n = 0;

	for (; n < BURST && sl_pktring_is_available(VERSION, slot); n++) {
		if (!in_place)
			memcpy(slot + sl_pktring_data(VERSION), frame, len);
		sl_pktring_request(VERSION, slot, len);
		slot = slot + size < end ? slot + size : r->addr;
	}
	r->next = (uint32_t)((size_t)(slot - r->addr) / size);
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
net_open(void)
{
	struct sl_psock_net_conf conf = {.workers = 1, .pool = tx.pool};
	struct sl_psock_port_conf port = {.port_id = tx.port_id, .tx_queues = 1};
	int ret = sl_psock_net_create(&conf, &tx.net);

	if (ret == 0)
		ret = sl_psock_port_add(tx.net, &port);
	return ret;
}

static size_t
ring_bytes(void)
{
	return (size_t)tx.req.tp_block_size * tx.req.tp_block_nr;
}

static int
ours_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_ifindex = tx.port_id + 1};
	int version = VERSION, ret = sl_psock_create(tx.net, SOCK_RAW, 0, &tx.s);
	void *addr = NULL;

	if (ret == 0)
		ret = sl_psock_bind(tx.s, &ll, sizeof(ll), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_setsockopt(tx.s, SOL_PACKET, PACKET_VERSION, &version,
			sizeof(version), SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_setsockopt(tx.s, SOL_PACKET, PACKET_TX_RING, &tx.req, sizeof(tx.req),
			SL_PSOCK_NO_WORKER);
	if (ret == 0)
		ret = sl_psock_mmap(tx.s, ring_bytes(), &addr);
	tx.ours = (struct ring){.addr = addr};
	return ret;
}

static void
ours_close(void)
{
	if (tx.ours.addr != NULL)
		sl_psock_munmap(tx.s, tx.ours.addr, ring_bytes());
	sl_psock_close(tx.s, SL_PSOCK_NO_WORKER);
	tx.s = NULL;
}

/* A veth pair in a network namespace of this thread's own, which ends with it. */
static bool
veth_open(void)
{
	return unshare(CLONE_NEWNET) == 0 &&
	       system("ip link add b0 mtu 9000 type veth peer name b1 mtu 9000 && "
		      "ip link set b0 up && ip link set b1 up") == 0;
}

static void
kernels_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET};
	int version = VERSION;
	void *addr;

	tx.kernels = (struct ring){0};
	tx.fd = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));
	ll.sll_ifindex = (int)if_nametoindex("b0");
	if (tx.fd < 0 || bind(tx.fd, (struct sockaddr *)&ll, sizeof(ll)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
		setsockopt(tx.fd, SOL_PACKET, PACKET_TX_RING, &tx.req, sizeof(tx.req)) != 0)
		return;
	addr = mmap(NULL, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, tx.fd, 0);
	if (addr != MAP_FAILED)
		tx.kernels.addr = addr;
}

static void
kernels_close(void)
{
	if (tx.kernels.addr != NULL)
		munmap(tx.kernels.addr, ring_bytes());
	if (tx.fd >= 0)
		close(tx.fd);
	tx.fd = -1;
}

/* Frames that stay where they are are made now. */
static void
make_in_place(struct ring *r)
{
	for (uint32_t i = 0; r->addr != NULL && i < tx.req.tp_frame_nr; i++)
		memcpy(r->addr + (size_t)i * tx.req.tp_frame_size + sl_pktring_data(VERSION), frame,
			tx.len);
}

static int
size_run(const struct bench_opts *opts, const char *name, double seconds, bool veth)
{
	static const struct packet_side side[] = {{"ring", from_ring, NULL},
		{"mbuf_copy", from_mbufs, NULL}, {"kernel_ring", from_kernels_ring, NULL}};
	int ret;

	geometry();
	ret = ours_open();
	if (veth && ret == 0)
		kernels_open();
	if (veth && ret == 0 && tx.kernels.addr == NULL)
		ret = -EPERM;
	if (ret == 0) {
		make_in_place(&tx.ours);
		make_in_place(&tx.kernels);
		sl_psock_worker_online(tx.net, 0);
		ret = packet_sides_run(opts, "txring", name, "pps", seconds, side, veth ? 3 : 2);
		sl_psock_worker_offline(tx.net, 0);
	}
	kernels_close();
	ours_close();
	return ret;
}

static int
measure(const struct bench_opts *opts)
{
	static const struct {
		const char *name;
		uint32_t len;
		bool in_place;
	} cases[] = {{"64", 64, false}, {"1500", 1500, false}, {"9000", 9000, false},
		{"64/in-place", 64, true}, {"1500/in-place", 1500, true},
		{"9000/in-place", 9000, true}};
	bool veth = veth_open();
	int ret = 0;

	for (size_t i = 0; i < RTE_DIM(cases) && ret == 0; i++) {
		if (!bench_wanted(opts, cases[i].name))
			continue;
		tx.len = cases[i].len;
		tx.in_place = cases[i].in_place;
		ret = size_run(opts, cases[i].name, opts->seconds / RTE_DIM(cases), veth);
	}
	if (!veth)
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
	ret = net_open();
	if (ret == 0)
		ret = measure(opts);
	if (sl_psock_net_destroy(tx.net) != 0)
		ret = -EPROTO;
	packet_port_close(tx.port_id, tx.pool);
	return ret;
}

const struct bench_command bench_txring = {"txring",
	"a transmit ring into a null port, against mbufs and against the kernel's ring", run};
