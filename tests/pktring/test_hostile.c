/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A client, a process of its own, that changes everything it can reach while the server works:
 * status words, lengths, offsets, vnet headers, block headers. The server must keep inside the
 * ring, tell good from bad by the copy that it uses, and end with nothing pending.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring_help.h"
#include "sl_pktring_mbuf.h"
#include "sl_vnet.h"

#define TURNS 300000u

struct victim {
	uint8_t *mem;
	size_t bytes;
	unsigned int seed;
	pid_t pid;
};

/* Words that a check on one reading passes and a use of another one would break on. */
static void
flip(struct victim *v)
{
	static const uint32_t bad[] = {0, 1, 2, 4, 60, 1500, 2016, 2017, 0x7fffffff, 0x80000000,
		0xffffffff, 48, 32, 10, 12, 0xffff, 1u << 29 | 1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		size_t frame = (size_t)rand_r(&v->seed) % (v->bytes / FRAME) * FRAME;
		size_t word = (size_t)rand_r(&v->seed) % 24 * 4;
		uint32_t value = bad[(size_t)rand_r(&v->seed) % SL_COUNT_OF(bad)];

		sl_store_relaxed((uint32_t *)(v->mem + frame + word), value);
	}
}

static void
attack(struct victim *v)
{
	v->pid = fork();
	REQUIRE(v->pid >= 0);
	if (v->pid == 0)
		flip(v);
}

static void
attack_end(struct victim *v)
{
	int status;

	CHECK(kill(v->pid, SIGKILL) == 0);
	CHECK(waitpid(v->pid, &status, 0) == v->pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it did not fall over itself */
}

static void
send_turn(struct sl_pktring_tx *ring, const struct sl_pktring_tx_conf *conf, uint32_t *pending,
	uint32_t *held)
{
	struct sl_pktring_frame f;
	int ret = sl_pktring_tx_peek(ring, 1514, &f);
	const uint8_t *bytes;
	uint8_t head[SL_VNET_HEAD];
	struct sl_vnet v;

	if (ret < 0) {
		sl_pktring_tx_drop(ring);
	} else if (ret == 1) {
		bytes = sl_pktring_tx_bytes(ring, &f);
		REQUIRE(bytes >= tx_slot(ring, f.slot) + sl_pktring_data(TPACKET_V2));
		REQUIRE(bytes + f.len <= tx_slot(ring, f.slot) + FRAME);
		REQUIRE(conf->vnet_size != 0 || f.len <= 1514);
		for (uint32_t i = 0; i < f.len && i < sizeof(head); i++)
			head[i] = sl_load_relaxed(bytes + i);
		if (conf->vnet_size != 0 && sl_vnet_check(f.vnet, head, f.len, &v) == 0)
			REQUIRE(!v.csum || v.csum_start + v.csum_offset + 2u <= f.len);
		sl_pktring_tx_take(ring, 0);
		held[(*pending)++] = f.slot;
	}
	if (*pending == 4)
		while (*pending > 0)
			sl_pktring_tx_complete(ring, held[--*pending], 1);
}

static void
transmit_ring(bool has_off, uint8_t vnet_size)
{
	struct sl_pktring_tx_conf conf = {.has_off = has_off, .vnet_size = vnet_size};
	struct sl_pktring_tx *ring = ring_tx(TPACKET_V2, conf);
	struct victim v = {.mem = sl_pktring_tx_mem(ring)->addr,
		.bytes = sl_pktring_tx_mem(ring)->bytes,
		.seed = 4711};
	uint32_t pending = 0, held[4];

	attack(&v);
	for (uint32_t i = 0; i < TURNS; i++)
		send_turn(ring, &conf, &pending, held);
	attack_end(&v);
	while (pending > 0)
		sl_pktring_tx_complete(ring, held[--pending], 1);
	CHECK_EQ(sl_pktring_tx_pending(ring), 0);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

static void
transmit_plain(void)
{
	transmit_ring(false, 0);
}

static void
transmit_offsets(void)
{
	transmit_ring(true, 0);
}

static void
transmit_vnet(void)
{
	transmit_ring(true, 12);
}

/* The burst: whatever it lends lies within its slot and between the bounds; whatever stops it is
 * dropped, if it is a request at all. The mbufs are the test's own and freed as the library would.
 */
static void
transmit_burst(void)
{
	struct sl_pktring_tx *ring = ring_tx(TPACKET_V2, (struct sl_pktring_tx_conf){0});
	struct victim v = {.mem = sl_pktring_tx_mem(ring)->addr,
		.bytes = sl_pktring_tx_mem(ring)->bytes,
		.seed = 4712};
	struct sl_pktring_lend want = {.least = 14, .most = UINT16_MAX};
	static struct rte_mbuf raw[4];
	struct rte_mbuf *m[4] = {&raw[0], &raw[1], &raw[2], &raw[3]};
	struct sl_pktring_frame f;
	uint64_t lent = 0;
	uint32_t len[4];

	attack(&v);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint16_t n;

		/* Half a client here too, a good one, or there would be few requests. */
		for (uint32_t k = 0; k < FRAMES; k++)
			if (sl_pktring_is_available(TPACKET_V2, tx_slot(ring, k)))
				sl_pktring_request(TPACKET_V2, tx_slot(ring, k), 60);
		n = sl_pktring_mbuf_lend(ring, &want, m, len, 4);
		for (uint16_t k = 0; k < n; k++) {
			const uint8_t *bytes = m[k]->buf_addr;
			size_t at = (size_t)(bytes - v.mem) % FRAME;

			REQUIRE(bytes >= v.mem && bytes + len[k] <= v.mem + v.bytes);
			REQUIRE(at == sl_pktring_data(TPACKET_V2) && at + len[k] <= FRAME);
			REQUIRE(len[k] >= 14 && m[k]->data_len == len[k] &&
				m[k]->pkt_len == len[k]);
			m[k]->shinfo->free_cb(NULL, m[k]->shinfo->fcb_opaque);
		}
		lent += n;
		if (n < 4 && sl_pktring_tx_peek(ring, UINT32_MAX, &f) != 0)
			sl_pktring_tx_drop(ring);
	}
	attack_end(&v);
	CHECK(lent > 0);
	CHECK_EQ(sl_pktring_tx_pending(ring), 0);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

/* The same for copies: as long as was said and no longer, in buffers with a guard behind them. */
static void
transmit_copies(void)
{
	struct sl_pktring_tx *ring = ring_tx(TPACKET_V3, (struct sl_pktring_tx_conf){0});
	struct victim v = {.mem = sl_pktring_tx_mem(ring)->addr,
		.bytes = sl_pktring_tx_mem(ring)->bytes,
		.seed = 4713};
	struct sl_pktring_lend want = {.least = 14, .most = 200};
	static uint8_t buf[4][RTE_PKTMBUF_HEADROOM + 200 + 1];
	static struct rte_mbuf raw[4];
	struct rte_mbuf *m[4];
	struct sl_pktring_frame f;
	uint64_t fetched = 0;
	uint32_t len[4], first;

	for (int k = 0; k < 4; k++) {
		m[k] = &raw[k];
		raw[k].buf_addr = buf[k];
		raw[k].buf_len = sizeof(buf[k]) - 1;
		buf[k][sizeof(buf[k]) - 1] = 0xa5;
	}
	attack(&v);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint16_t n;

		for (uint32_t k = 0; k < FRAMES; k++)
			if (sl_pktring_is_available(TPACKET_V3, tx_slot(ring, k)))
				sl_pktring_request(TPACKET_V3, tx_slot(ring, k), 200 - i % 190);
		n = sl_pktring_mbuf_fetch(ring, &want, m, len, 4, &first);
		for (uint16_t k = 0; k < n; k++)
			REQUIRE(len[k] >= 14 && len[k] <= 200 && m[k]->data_len == len[k] &&
				m[k]->pkt_len == len[k] && buf[k][sizeof(buf[k]) - 1] == 0xa5);
		if (n > 1 && i % 2) {
			sl_pktring_tx_back(ring);
			n--;
		}
		sl_pktring_tx_give(ring, first, n);
		fetched += n;
		if (n == 0 && sl_pktring_tx_peek(ring, UINT32_MAX, &f) != 0)
			sl_pktring_tx_drop(ring);
	}
	attack_end(&v);
	CHECK(fetched > 0);
	CHECK_EQ(sl_pktring_tx_pending(ring), 0);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

static void
receive_ring(int version)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, version, FRAME);
	struct sl_pktring_rx_stats stats;
	struct sl_pktring_rx *ring;
	struct victim v = {.seed = 42};
	uint64_t stored = 0;

	REQUIRE(sl_pktring_rx_create(&geo, SEC, &ring) == 0);
	v.mem = sl_pktring_rx_mem(ring)->addr;
	v.bytes = sl_pktring_rx_mem(ring)->bytes;
	attack(&v);
	for (uint32_t i = 0; i < TURNS; i++) {
		struct sl_pktring_meta meta = {.len = i % 3000, .maclen = 14, .ns = SEC + i * 1000};
		struct sl_pktring_room room;

		if (sl_pktring_rx_reserve(ring, &meta, &room) == 0) {
			REQUIRE(room.data >= v.mem);
			REQUIRE(room.data + room.snaplen <= v.mem + v.bytes);
			for (uint32_t k = 0; k < room.snaplen; k += 64)
				sl_store_relaxed(room.data + k, 1);
			sl_pktring_rx_commit(ring, &room, 0);
			stored++;
		}
		sl_pktring_rx_tick(ring, meta.ns);
	}
	attack_end(&v);
	sl_pktring_rx_stats(ring, &stats);
	CHECK_EQ(stats.packets, TURNS);
	CHECK_EQ(stats.drops, TURNS - stored);
	sl_pktring_rx_destroy(ring);
}

static void
receive_v2(void)
{
	receive_ring(TPACKET_V2);
}

static void
receive_v3(void)
{
	receive_ring(TPACKET_V3);
}

static void
memory_cannot_be_truncated(void)
{
	struct sl_pktring_mem mem = {0};

	REQUIRE(sl_pktring_mem_alloc(8192, &mem) == 0);
	CHECK(ftruncate(mem.fd, 0) != 0);
	CHECK(ftruncate(mem.fd, 1 << 20) != 0);
	mem.addr[8191] = 1;
	sl_pktring_mem_free(&mem);
	CHECK(mem.addr == NULL);
	sl_pktring_mem_free(&mem);
}

int
main(void)
{
	SL_TEST_RUN(transmit_plain);
	SL_TEST_RUN(transmit_offsets);
	SL_TEST_RUN(transmit_vnet);
	SL_TEST_RUN(transmit_burst);
	SL_TEST_RUN(transmit_copies);
	SL_TEST_RUN(receive_v2);
	SL_TEST_RUN(receive_v3);
	SL_TEST_RUN(memory_cannot_be_truncated);
	return test_end();
}
