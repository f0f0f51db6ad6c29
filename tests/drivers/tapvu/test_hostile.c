/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A hostile frontend beside a good one, on the same port: whatever the one writes into its rings
 * and says on its socket, it is named and counted, and the other's packets go on.
 *
 * usage: test_hostile PLUGIN
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>

#include "hostile_peer.h"
#include "sl_test_eal.h"

#define BURST 32u
#define GOOD 40u /* packets of the good frontend after each misdeed */
#define SCRIBBLES 400u
#define NEXT VRING_DESC_F_NEXT
#define WRITE VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT
#define FRAME_AT (GUEST + DATA)
#define HEADER 12u

static uint16_t ours, good; /* ports */
static struct rte_mempool *pool;
static char path[64];

static uint64_t
xstat(const char *name)
{
	uint64_t id, value = UINT64_MAX;

	REQUIRE(rte_eth_xstats_get_id_by_name(ours, name, &id) == 0);
	REQUIRE(rte_eth_xstats_get_by_id(ours, &id, &value, 1) == 1);
	return value;
}

/* Poll, and give away what comes, until a counter has moved that far. */
static void
poll_until(const char *name, uint64_t value)
{
	struct test_wait w = {0};

	while (xstat(name) < value && test_patience(&w)) {
		struct rte_mbuf *m[BURST];

		rte_pktmbuf_free_bulk(m, rte_eth_rx_burst(ours, 0, m, BURST));
	}
	if (xstat(name) < value)
		fprintf(stderr, "%s is not counted\n", name);
	CHECK(xstat(name) >= value);
}

static void
poll_some(uint32_t times)
{
	for (uint32_t k = 0; k < times; k++) {
		struct rte_mbuf *m[BURST];

		rte_pktmbuf_free_bulk(m, rte_eth_rx_burst(ours, 0, m, BURST));
	}
}

static bool
is_good(const struct rte_mbuf *m, uint8_t mark)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	for (uint32_t i = 0; i < 100; i++)
		if (m->pkt_len != 100 || at[i] != (uint8_t)(mark + i))
			return false;
	return true;
}

static void
good_send(uint16_t port, uint8_t mark)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct test_wait w = {0};
	uint8_t *at;

	REQUIRE(m != NULL);
	at = (uint8_t *)rte_pktmbuf_append(m, 100);
	for (uint32_t i = 0; i < 100; i++)
		at[i] = (uint8_t)(mark + i);
	while (test_patience(&w))
		if (rte_eth_tx_burst(port, 0, &m, 1) == 1)
			return;
	rte_pktmbuf_free(m);
}

/* From one port to the other, each packet whole. */
static void
good_transfer(uint16_t from, uint16_t to)
{
	for (uint32_t i = 0; i < GOOD; i++) {
		struct rte_mbuf *m[BURST];
		struct test_wait w = {0};
		bool arrived = false;

		good_send(from, (uint8_t)(i + 1));
		while (!arrived && test_patience(&w)) {
			uint16_t n = rte_eth_rx_burst(to, 0, m, BURST);

			for (uint16_t j = 0; j < n; j++)
				arrived |= is_good(m[j], (uint8_t)(i + 1));
			rte_pktmbuf_free_bulk(m, n);
		}
		CHECK(arrived);
		if (!arrived)
			return;
	}
}

static void
good_both_ways(void)
{
	good_transfer(good, ours);
	good_transfer(ours, good);
}

/* ---- what is written into the ring that we read ---- */

struct descriptor {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};

struct misdeed {
	const char *counter;
	struct descriptor d[3];
	uint32_t count;
	uint16_t head, index; /* split */
	int only;	      /* 0: both layouts, 1: split, 2: packed */
};

static const struct misdeed misdeeds[] = {
	{"ring_bad_address", {{0, 100, 0, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{GUEST - 1, 100, 0, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{GUEST + 2 * REGION - 50, 100, 0, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{UINT64_MAX - 10, 100, 0, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{GUEST, UINT32_MAX, 0, 0}}, 1, 0, 1, 0},
	{"ring_zero_length", {{FRAME_AT, 0, 0, 0}}, 1, 0, 1, 0},
	{"ring_zero_length", {{0, 0, 0, 0}}, 1, 0, 1, 0},
	{"rx_chain_too_long", {{GUEST, REGION, NEXT, 1}, {GUEST, REGION, 0, 1}}, 2, 0, 1, 0},
	{"rx_chain_too_long", {{GUEST, 2 * REGION, 0, 0}}, 1, 0, 1, 0},
	{"ring_bad_next", {{FRAME_AT, 100, NEXT, RING_SIZE}}, 1, 0, 1, 1},
	{"ring_bad_next", {{FRAME_AT, 100, NEXT, UINT16_MAX}}, 1, 0, 1, 1},
	{"ring_loop", {{FRAME_AT, 1, NEXT, 0}}, 1, 0, 1, 1},
	{"ring_loop", {{FRAME_AT, 1, NEXT, 1}, {FRAME_AT, 1, NEXT, 0}}, 2, 0, 1, 1},
	{"ring_bad_head", {{FRAME_AT, 100, 0, 0}}, 1, RING_SIZE, 1, 1},
	{"ring_bad_head", {{FRAME_AT, 100, 0, 0}}, 1, UINT16_MAX, 1, 1},
	{"ring_bad_index", {{FRAME_AT, 100, 0, 0}}, 1, 0, RING_SIZE + 1, 1},
	{"ring_bad_index", {{FRAME_AT, 100, 0, 0}}, 1, 0, UINT16_MAX, 1},
	{"ring_bad_id", {{FRAME_AT, 100, 0, RING_SIZE}}, 1, 0, 1, 2},
	{"ring_bad_id", {{FRAME_AT, 100, 0, UINT16_MAX}}, 1, 0, 1, 2},
	{"ring_bad_indirect", {{FRAME_AT, 0, INDIRECT, 0}}, 1, 0, 1, 0},
	{"ring_bad_indirect", {{FRAME_AT, 17, INDIRECT, 0}}, 1, 0, 1, 0},
	{"ring_bad_indirect", {{FRAME_AT, 16 * (RING_SIZE + 1), INDIRECT, 0}}, 1, 0, 1, 0},
	{"ring_bad_indirect", {{0, 32, INDIRECT, 0}}, 1, 0, 1, 0},
	{"ring_bad_indirect", {{GUEST + 2 * REGION - 16, 32, INDIRECT, 0}}, 1, 0, 1, 2},
	{"ring_bad_indirect", {{FRAME_AT, 32, INDIRECT | NEXT, 1}, {FRAME_AT, 1, 0, 1}}, 2, 0, 1,
		0},
	/* A table of zeros: one entry without a byte. */
	{"ring_zero_length", {{FRAME_AT, 16, INDIRECT, 0}}, 1, 0, 1, 0},
};

static void
misdeeds_in(bool packed)
{
	for (size_t i = 0; i < SL_COUNT_OF(misdeeds); i++) {
		const struct misdeed *x = &misdeeds[i];
		uint64_t before = xstat(x->counter);
		struct peer p;

		if (x->only == (packed ? 1 : 2))
			continue;
		peer_start(&p, path, packed);
		/* Backwards: a packed chain is available when its first descriptor is. */
		for (uint32_t k = x->count; k-- > 0;)
			peer_desc(&p, 1, k, x->d[k].addr, x->d[k].len, x->d[k].flags, x->d[k].next);
		peer_avail(&p, 1, x->head, x->index);
		poll_until(x->counter, before + 1);
		good_both_ways();
		peer_close(&p);
	}
	good_both_ways();
}

static void
split_rings(void)
{
	misdeeds_in(false);
}

static void
packed_rings(void)
{
	misdeeds_in(true);
}

/* A packed chain that goes round the whole ring. */
static void
packed_loop(void)
{
	uint64_t before = xstat("ring_loop");
	struct peer p;

	peer_start(&p, path, true);
	for (uint32_t k = RING_SIZE; k-- > 0;)
		peer_desc(&p, 1, k, FRAME_AT, 1, NEXT, (uint16_t)k);
	poll_until("ring_loop", before + 1);
	good_both_ways();
	peer_close(&p);
}

static void
frame_put(struct peer *p, uint32_t at, const struct virtio_net_hdr_mrg_rxbuf *hdr, uint32_t len)
{
	uint32_t where = DATA + at % 64 * 256;

	memset(p->memory[0] + where, 0, 256);
	memcpy(p->memory[0] + where, hdr, sizeof(*hdr));
	peer_desc(p, 1, at, GUEST + where, HEADER + len, 0, (uint16_t)at);
}

/* Frames of 0 to 13 bytes have no Ethernet header; also less than a virtio-net header. */
static void
tiny_frames(void)
{
	static const struct virtio_net_hdr_mrg_rxbuf none;

	for (uint32_t len = 0; len < 14; len++) {
		for (int packed = 0; packed < 2; packed++) {
			const char *name = len == 0 ? "rx_chain_no_header" : "rx_chain_short";
			uint64_t before = xstat(name);
			struct peer p;

			peer_start(&p, path, packed);
			frame_put(&p, 0, &none, len);
			peer_avail(&p, 1, 0, 1);
			poll_until(name, before + 1);
			peer_close(&p);
		}
	}
	for (uint32_t len = 1; len <= HEADER; len++) {
		uint64_t before = xstat("rx_chain_no_header");
		struct peer p;

		peer_start(&p, path, false);
		peer_desc(&p, 1, 0, FRAME_AT, len, 0, 0);
		peer_avail(&p, 1, 0, 1);
		poll_until("rx_chain_no_header", before + 1);
		peer_close(&p);
	}
	good_both_ways();
}

/* Headers that contradict the frame of 60 bytes behind them. */
static void
lying_headers(void)
{
	static const struct {
		const char *counter;
		struct virtio_net_hdr_mrg_rxbuf hdr;
	} lies[] = {
		{"rx_vnet_bad_gso_type", {.hdr = {.gso_type = 2, .gso_size = 100}}},
		{"rx_vnet_bad_gso_type", {.hdr = {.gso_type = 0x7f, .gso_size = 100}}},
		{"rx_vnet_bad_gso_type", {.hdr = {.gso_type = 0x83, .gso_size = 100}}},
		{"rx_vnet_bad_gso_size", {.hdr = {.gso_type = 1, .gso_size = 0}}},
		{"rx_vnet_bad_gso_size", {.hdr = {.gso_type = 1, .gso_size = 0xffff}}},
		{"rx_vnet_bad_hdr_len", {.hdr = {.hdr_len = 61}}},
		{"rx_vnet_bad_hdr_len", {.hdr = {.hdr_len = 13}}},
		{"rx_vnet_bad_csum", {.hdr = {.flags = 1, .csum_start = 34, .csum_offset = 25}}},
		{"rx_vnet_bad_csum",
			{.hdr = {.flags = 1, .csum_start = 65535, .csum_offset = 65535}}},
		{"rx_vnet_bad_csum", {.hdr = {.flags = 1, .csum_start = 0, .csum_offset = 65535}}},
		{"rx_vnet_bad_csum", {.hdr = {.gso_type = 5, .gso_size = 8}}},
		{"rx_vnet_bad_protocol", {.hdr = {.gso_type = 1, .gso_size = 100}}},
	};

	for (size_t i = 0; i < 2 * SL_COUNT_OF(lies); i++) {
		uint64_t before = xstat(lies[i / 2].counter);
		struct peer p;

		peer_start(&p, path, i % 2);
		frame_put(&p, 0, &lies[i / 2].hdr, 60);
		peer_avail(&p, 1, 0, 1);
		poll_until(lies[i / 2].counter, before + 1);
		peer_close(&p);
	}
	good_both_ways();
}

/* ---- what changes while it is looked at ---- */

struct scribbler {
	struct peer *p;
	uint32_t from, bytes;
	uint32_t stop; /* (a) relaxed */
	unsigned int seed;
};

static void *
scribble(void *arg)
{
	struct scribbler *s = arg;

	while (sl_load_relaxed(&s->stop) == 0) {
		uint32_t at = (uint32_t)rand_r(&s->seed) % s->bytes;

		sl_store_relaxed(s->p->memory[0] + s->from + at, (uint8_t)rand_r(&s->seed));
	}
	return NULL;
}

static void
under_scribbling(struct peer *p, uint32_t from, uint32_t bytes, void (*deed)(struct peer *))
{
	struct scribbler s = {p, from, bytes, 0, (unsigned int)getpid()};
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, scribble, &s) == 0);
	deed(p);
	sl_store_relaxed(&s.stop, 1u);
	pthread_join(thread, NULL);
}

/* Sixteen frames again and again while their headers change; each chain ends in one outcome. */
static void
send_rounds(struct peer *p)
{
	uint64_t before = 0, after = 0;
	static const char *const ends[] = {"rx_chain_built", "rx_chain_bad_vnet"};
	struct vring_avail *a = peer_part(p, 1, 1);
	const struct vring_used *u = peer_part(p, 1, 2);
	uint16_t sent = 0;

	for (size_t i = 0; i < SL_COUNT_OF(ends); i++)
		before += xstat(ends[i]);
	for (uint16_t i = 0; i < RING_SIZE; i++) {
		peer_desc(p, 1, i, FRAME_AT, HEADER + 60, 0, 0);
		a->ring[i] = i;
	}
	for (uint32_t round = 0; round < 2000; round++) {
		struct test_wait w = {0};

		sent += RING_SIZE;
		sl_store_release(&a->idx, sent); /* VR1 */
		while (sl_load_acquire(&u->idx) != sent && test_patience(&w))
			poll_some(1);
	}
	CHECK_EQ(sl_load_acquire(&u->idx), sent);
	for (size_t i = 0; i < SL_COUNT_OF(ends); i++)
		after += xstat(ends[i]);
	CHECK_EQ(after - before, 2000 * RING_SIZE);
}

static void
headers_that_change(void)
{
	struct peer p;

	peer_start(&p, path, false);
	under_scribbling(&p, DATA, HEADER + 60, send_rounds);
	good_both_ways();
	peer_close(&p);
}

/* A packet for whoever is there, taken back if nobody has room. */
static void
try_send(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	REQUIRE(m != NULL);
	memset(rte_pktmbuf_append(m, 100), 7, 100);
	if (rte_eth_tx_burst(ours, 0, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

static void
serve_some(struct peer *p)
{
	(void)p;
	for (int i = 0; i < 100; i++) {
		poll_some(3);
		try_send();
	}
}

static void
port_start(uint16_t port)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = port == ours}};

	REQUIRE(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
}

/* The good one leaves: what we transmit goes to the hostile one then. Its driver's stop alone would
 * leave its rings running. */
static void
good_leave(void)
{
	REQUIRE(rte_eth_dev_stop(good) == 0);
	REQUIRE(rte_eth_dev_close(good) == 0);
	REQUIRE(rte_eal_hotplug_remove("vdev", "net_virtio_user0") == 0);
}

/* What we transmit goes to the frontend that came first: so the last hostile one has to be gone. */
static void
good_come(void)
{
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_UP};
	struct test_wait w = {0};
	char args[128];

	while (link.link_status == RTE_ETH_LINK_UP && test_patience(&w)) {
		REQUIRE(rte_eth_link_get_nowait(ours, &link) == 0);
		usleep(1000);
	}
	REQUIRE(link.link_status == RTE_ETH_LINK_DOWN);

	snprintf(args, sizeof(args), "path=%s", path);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_virtio_user0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_virtio_user0", &good) == 0);
	port_start(good);
	good_both_ways();
}

/* ---- what is written into the ring that we write to ---- */

static const struct misdeed buffers[] = {
	{"ring_bad_address", {{0, 2000, WRITE, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{GUEST + 2 * REGION - 1, 2000, WRITE, 0}}, 1, 0, 1, 0},
	{"ring_bad_address", {{UINT64_MAX - 1, UINT32_MAX, WRITE, 0}}, 1, 0, 1, 0},
	{"ring_zero_length", {{FRAME_AT, 0, WRITE, 0}}, 1, 0, 1, 0},
	{"tx_bad_chains", {{FRAME_AT, 2000, 0, 0}}, 1, 0, 1, 0}, /* not to be written to */
	{"tx_bad_chains", {{FRAME_AT, HEADER - 1, WRITE, 0}}, 1, 0, 1,
		0}, /* no room for a header */
	{"ring_direction", {{FRAME_AT, 20, WRITE | NEXT, 1}, {FRAME_AT, 20, 0, 1}}, 2, 0, 1, 0},
	{"ring_bad_next", {{FRAME_AT, 2000, WRITE | NEXT, RING_SIZE}}, 1, 0, 1, 1},
	{"ring_loop", {{FRAME_AT, 2000, WRITE | NEXT, 0}}, 1, 0, 1, 1},
	{"ring_bad_head", {{FRAME_AT, 2000, WRITE, 0}}, 1, RING_SIZE, 1, 1},
	{"ring_bad_index", {{FRAME_AT, 2000, WRITE, 0}}, 1, 0, RING_SIZE + 1, 1},
	{"ring_bad_id", {{FRAME_AT, 2000, WRITE, RING_SIZE}}, 1, 0, 1, 2},
	{"ring_bad_indirect", {{FRAME_AT, 17, INDIRECT, 0}}, 1, 0, 1, 0},
	{"ring_bad_indirect", {{1, 32, INDIRECT, 0}}, 1, 0, 1, 0},
};

static void
buffers_in(bool packed)
{
	good_leave();
	for (size_t i = 0; i < SL_COUNT_OF(buffers); i++) {
		const struct misdeed *x = &buffers[i];
		uint64_t before = xstat(x->counter);
		struct test_wait w = {0};
		struct peer p;

		if (x->only == (packed ? 1 : 2))
			continue;
		peer_start(&p, path, packed);
		for (uint32_t k = x->count; k-- > 0;)
			peer_desc(&p, 0, k, x->d[k].addr, x->d[k].len, x->d[k].flags, x->d[k].next);
		peer_avail(&p, 0, x->head, x->index);
		while (xstat(x->counter) == before && test_patience(&w))
			try_send();
		if (xstat(x->counter) == before)
			fprintf(stderr, "%s is not counted, %zu\n", x->counter, i);
		CHECK(xstat(x->counter) > before);
		peer_close(&p);
	}
	good_come();
}

static void
split_buffers(void)
{
	buffers_in(false);
}

static void
packed_buffers(void)
{
	buffers_in(true);
}

/* Both rings and the data full of noise that goes on changing, in both layouts. */
static void
rings_of_noise(void)
{
	unsigned int seed = (unsigned int)getpid();

	printf("     seed %u\n", seed);
	good_leave();
	for (uint32_t i = 0; i < SCRIBBLES; i++) {
		struct peer p;

		peer_start(&p, path, i % 2);
		for (uint32_t at = 0; at < DATA + 4096; at += 2)
			if (rand_r(&seed) % 3 == 0)
				p.memory[0][at] = (uint8_t)rand_r(&seed);
		under_scribbling(&p, 0, DATA + 4096, serve_some);
		peer_close(&p);
	}
	good_come();
}

/* ---- what is said on the socket ---- */

static void
said_memory(struct peer *p, uint32_t count, uint64_t guest, uint64_t size, uint64_t offset, int fds)
{
	struct peer_message m = {.memory = {.count = count}};
	int fd[10];

	for (uint32_t i = 0; i < 10; i++) {
		m.memory.region[i].guest = guest + i * REGION / 2; /* they overlap */
		m.memory.region[i].size = size;
		m.memory.region[i].user = guest;
		m.memory.region[i].offset = offset;
		fd[i] = p->memory_fd[0];
	}
	(void)!peer_say(p, &m, REQ_SET_MEM_TABLE, 8 + 32 * RTE_MIN(count, 10u), fd, fds);
}

static void
memory_lies(void)
{
	static const struct {
		uint32_t count;
		uint64_t guest, size, offset;
		int fds;
	} lies[] = {
		{1, GUEST, 0, 0, 1},
		{2, GUEST, REGION, 0, 2},
		{1, UINT64_MAX - 10, REGION, 0, 1},
		{1, GUEST, UINT64_MAX, 0, 1},
		{1, GUEST, REGION, UINT64_MAX - 100, 1},
		{2, GUEST, REGION, 0, 1},
		{1, GUEST, REGION, 0, 8},
		{9, GUEST, REGION, 0, 8},
		{UINT32_MAX, GUEST, REGION, 0, 1},
		{0, GUEST, REGION, 0, 0},
	};

	for (size_t i = 0; i < SL_COUNT_OF(lies); i++) {
		struct peer p;

		peer_open(&p, path, false);
		REQUIRE(peer_features(&p));
		said_memory(&p, lies[i].count, lies[i].guest, lies[i].size, lies[i].offset,
			lies[i].fds);
		(void)!peer_rings(&p);
		poll_some(100);
		good_both_ways();
		peer_close(&p);
	}
}

/* While the rings run: sizes, places and positions that cannot be. */
static void
ring_lies(void)
{
	static const struct {
		uint32_t request, index, value;
	} lies[] = {
		{REQ_SET_VRING_NUM, 1, 0},
		{REQ_SET_VRING_NUM, 1, 7},
		{REQ_SET_VRING_NUM, 1, UINT32_MAX},
		{REQ_SET_VRING_NUM, 1, 32768},
		{REQ_SET_VRING_NUM, UINT32_MAX, 8},
		{REQ_SET_VRING_BASE, 1, UINT32_MAX},
		{REQ_SET_VRING_BASE, 77, 0},
		{REQ_SET_VRING_ENABLE, 200, 1},
		{REQ_SET_VRING_ENABLE, 1, 0},
		{99, 1, 1},
	};

	for (size_t i = 0; i < 2 * SL_COUNT_OF(lies); i++) {
		struct peer p;

		peer_start(&p, path, i % 2);
		/* Where it is told to be does not lie in a ring of the size that was told before.
		 */
		if (lies[i / 2].value > RING_SIZE)
			(void)!peer_state(&p, REQ_SET_VRING_BASE, 1, 0x8000u | 20000u);
		(void)!peer_state(&p, lies[i / 2].request, lies[i / 2].index, lies[i / 2].value);
		(void)!peer_settled(&p);
		peer_desc(&p, 1, 0, FRAME_AT, HEADER + 60, 0, 0);
		peer_avail(&p, 1, 0, 1);
		poll_some(100);
		good_both_ways();
		peer_close(&p);
	}
}

static void
places_of_rings(void)
{
	static const uint64_t places[] = {0, 1, GUEST - 1, GUEST + 2 * REGION - 8,
		GUEST + REGION - 20, UINT64_MAX, UINT64_MAX - 4096, GUEST + 1};

	for (size_t i = 0; i < 3 * SL_COUNT_OF(places); i++) {
		uint64_t at = GUEST + 3 * PART, bad = places[i / 3];
		struct peer_message m = {.addr = {1, 0, at, at + 2 * PART, at + PART, 0}};
		struct peer p;

		if (i % 3 == 0)
			m.addr.desc = bad;
		else if (i % 3 == 1)
			m.addr.used = bad;
		else
			m.addr.avail = bad;
		peer_start(&p, path, i % 2);
		(void)!peer_say(&p, &m, REQ_SET_VRING_ADDR, 40, NULL, 0);
		(void)!peer_settled(&p);
		poll_some(100);
		good_both_ways();
		peer_close(&p);
	}
}

/* Frontends that leave in the middle of a sentence, and noise in place of sentences. */
static void
sentences_cut_short(void)
{
	unsigned int seed = (unsigned int)getpid();

	for (uint32_t i = 0; i < 60; i++) {
		struct peer_message m = {0};
		struct peer p;

		peer_open(&p, path, i % 2);
		if (i % 3 > 0)
			(void)!peer_features(&p);
		if (i % 3 > 1)
			(void)!peer_memory(&p);
		for (size_t k = 0; k < sizeof(m); k++)
			((uint8_t *)&m)[k] = (uint8_t)rand_r(&seed);
		(void)!peer_say(&p, &m, (uint32_t)rand_r(&seed) % 45, (uint32_t)rand_r(&seed) % 300,
			NULL, 0);
		peer_close(&p);
	}
	good_both_ways();
}

/* Whoever sleeps on the queue wakes for the good one, whatever the other one kicks with. */
static void
sleep_beside(struct peer *p, int kick)
{
	struct rte_epoll_event event;

	REQUIRE(peer_fd(p, REQ_SET_VRING_KICK, 1, kick) && peer_settled(p));
	CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
	for (uint32_t k = 0; k < 100 && rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 0) > 0; k++)
		CHECK_EQ(rte_eth_dev_rx_intr_enable(ours, 0), 0);
	good_send(good, 1);
	CHECK_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 20000), 1);
	CHECK_EQ(rte_eth_dev_rx_intr_disable(ours, 0), 0);
	good_both_ways();
}

static void
kicks_that_are_none(void)
{
	int ends[2], odd[5];

	REQUIRE(pipe(ends) == 0);
	odd[0] = memfd_create("kick", MFD_CLOEXEC);
	odd[1] = epoll_create1(EPOLL_CLOEXEC);
	odd[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
	odd[3] = ends[0];
	odd[4] = ends[1]; /* always ready, but not to be read */
	REQUIRE(rte_eth_dev_rx_intr_ctl_q(
			ours, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL) == 0);
	for (size_t i = 0; i < 2 * SL_COUNT_OF(odd); i++) {
		struct peer p;

		peer_start(&p, path, i % 2);
		sleep_beside(&p, odd[i / 2]);
		peer_close(&p);
	}
	CHECK_EQ(rte_eth_dev_rx_intr_ctl_q(ours, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL),
		0);
	for (size_t i = 0; i < SL_COUNT_OF(odd); i++)
		close(odd[i]);
}

static void
ports_create(void)
{
	char args[128];

	snprintf(args, sizeof(args), "path=%s", path);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_tapvu0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_tapvu0", &ours) == 0);
	port_start(ours);
	good_come();
}

static void
packets_are_back(void)
{
	CHECK_EQ(rte_eth_dev_stop(good), 0);
	CHECK_EQ(rte_eth_dev_close(good), 0);
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	CHECK_EQ(rte_eth_dev_close(ours), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

int
main(int argc, char **argv)
{
	char args[512];

	if (argc != 2) {
		fprintf(stderr, "usage: test_hostile PLUGIN\n");
		return 2;
	}
	snprintf(path, sizeof(path), "/tmp/sl_tapvuh_%d.sock", (int)getpid());
	snprintf(args, sizeof(args), "--lcores 0 -d %s --log-level=*:1", argv[1]);
	REQUIRE(test_eal_start(argv[0], args) >= 0);
	pool = rte_pktmbuf_pool_create("packets", 8191, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	ports_create();
	SL_TEST_RUN(split_rings);
	SL_TEST_RUN(packed_rings);
	SL_TEST_RUN(packed_loop);
	SL_TEST_RUN(tiny_frames);
	SL_TEST_RUN(lying_headers);
	SL_TEST_RUN(headers_that_change);
	SL_TEST_RUN(split_buffers);
	SL_TEST_RUN(packed_buffers);
	SL_TEST_RUN(rings_of_noise);
	SL_TEST_RUN(memory_lies);
	SL_TEST_RUN(ring_lies);
	SL_TEST_RUN(places_of_rings);
	SL_TEST_RUN(sentences_cut_short);
	SL_TEST_RUN(kicks_that_are_none);
	SL_TEST_RUN(packets_are_back);
	unlink(path);
	rte_eal_cleanup();
	return test_end();
}
