/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Receive rings: where packets lie, what is clipped, what is dropped, when blocks change hands. */
#include "ring_help.h"

#define EACH_FLAT_VERSION(v) for (int v = TPACKET_V1; v <= TPACKET_V2; v++)

static struct sl_pktring_rx *
ring_rx(int version, struct sl_pktring_geo geo)
{
	struct sl_pktring_rx *ring;

	geo.version = version;
	REQUIRE(sl_pktring_rx_create(&geo, 5 * SEC, &ring) == 0);
	return ring;
}

static struct sl_pktring_meta
packet(uint32_t len)
{
	return (struct sl_pktring_meta){.len = len,
		.maclen = 14,
		.ns = 7 * SEC + 123456789,
		.from = {.sll_family = 17, .sll_ifindex = 3, .sll_halen = 6}};
}

/* Store a packet whose bytes are all `fill`. */
static int
store(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta, uint8_t fill, bool *visible)
{
	struct sl_pktring_room room;
	int ret = sl_pktring_rx_reserve(ring, meta, &room);

	if (ret != 0)
		return ret;
	memset(room.data, fill, room.snaplen);
	*visible = sl_pktring_rx_commit(ring, &room, 0);
	return 0;
}

static void
layout_v2(void)
{
	struct sl_pktring_rx *ring = ring_rx(TPACKET_V2, ring_geo(SL_PKTRING_RX, TPACKET_V2, FRAME));
	struct sl_pktring_meta meta = packet(100);
	const struct tpacket2_hdr *h = (void *)rx_slot(ring, 0);
	const struct sockaddr_ll *from;
	bool visible = false;

	meta.status = TP_STATUS_VLAN_VALID | TP_STATUS_CSUM_VALID;
	meta.vlan_tci = 77;
	memset(rx_slot(ring, 0) + 4, 0xee, FRAME - 4);
	CHECK(!sl_pktring_rx_readable(ring));
	CHECK_EQ(store(ring, &meta, 0xab, &visible), 0);
	CHECK(visible);
	CHECK(sl_pktring_rx_readable(ring));
	CHECK_EQ(h->tp_status, TP_STATUS_USER | TP_STATUS_VLAN_VALID | TP_STATUS_CSUM_VALID);
	CHECK_EQ(h->tp_len, 100);
	CHECK_EQ(h->tp_snaplen, 100);
	CHECK_EQ(h->tp_net, 80); /* 52 of header and address, 16 of link header, on a 16 byte step */
	CHECK_EQ(h->tp_mac, 66);
	CHECK_EQ(h->tp_sec, 7);
	CHECK_EQ(h->tp_nsec, 123456789);
	CHECK_EQ(h->tp_vlan_tci, 77);
	CHECK_EQ(h->tp_padding[0] | h->tp_padding[1] | h->tp_padding[2] | h->tp_padding[3], 0);
	from = (const void *)(rx_slot(ring, 0) + 32);
	CHECK_EQ(from->sll_ifindex, 3);
	CHECK_EQ(rx_slot(ring, 0)[66], 0xab);
	CHECK_EQ(rx_slot(ring, 0)[165], 0xab);
	CHECK_EQ(rx_slot(ring, 0)[166], 0xee);
	sl_pktring_rx_destroy(ring);
}

static void
layout_v1_has_microseconds(void)
{
	struct sl_pktring_rx *ring = ring_rx(TPACKET_V1, ring_geo(SL_PKTRING_RX, TPACKET_V1, FRAME));
	struct sl_pktring_meta meta = packet(60);
	const struct tpacket_hdr *h = (void *)rx_slot(ring, 0);
	bool visible;

	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK_EQ(h->tp_status, TP_STATUS_USER);
	CHECK_EQ(h->tp_usec, 123456);
	CHECK_EQ(h->tp_mac, 66);
	sl_pktring_rx_destroy(ring);
}

static void
offsets_by_type_reserve_and_vnet(void)
{
	static const struct {
		int version;
		uint32_t maclen, reserve;
		uint8_t vnet;
		uint16_t mac, net;
	} rows[] = {
		{TPACKET_V2, 14, 0, 0, 66, 80},
		{TPACKET_V2, 0, 0, 0, 80, 80}, /* no link header: it starts with the network one */
		{TPACKET_V2, 18, 0, 0, 62, 80},
		{TPACKET_V2, 14, 5, 0, 71, 85},
		{TPACKET_V2, 14, 0, 10, 76, 90},
		{TPACKET_V2, 14, 0, 12, 78, 92},
		{TPACKET_V2, 30, 0, 0, 66, 96},
		{TPACKET_V1, 14, 0, 0, 66, 80},
		{TPACKET_V3, 14, 0, 0, 82, 96},
		{TPACKET_V3, 0, 0, 0, 96, 96},
	};
	uint8_t header[12] = {9, 8, 7};

	for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
		int v = rows[i].version;
		struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, v, FRAME);
		struct sl_pktring_meta meta = packet(60);
		struct sl_pktring_rx *ring;
		struct sl_pktring_room room;
		const uint16_t *mac;

		geo.reserve = rows[i].reserve;
		ring = ring_rx(v, geo);
		meta.maclen = rows[i].maclen;
		meta.vnet_size = rows[i].vnet;
		meta.vnet = header;
		REQUIRE(sl_pktring_rx_reserve(ring, &meta, &room) == 0);
		mac = v == TPACKET_V1 ? &((struct tpacket_hdr *)room.header)->tp_mac :
			v == TPACKET_V2 ? &((struct tpacket2_hdr *)room.header)->tp_mac :
					  &((struct tpacket3_hdr *)room.header)->tp_mac;
		CHECK_EQ(mac[0], rows[i].mac);
		CHECK_EQ(mac[1], rows[i].net);
		CHECK_EQ(room.data - room.header, rows[i].mac);
		if (rows[i].vnet != 0)
			CHECK(memcmp(room.data - rows[i].vnet, header, rows[i].vnet) == 0);
		sl_pktring_rx_commit(ring, &room, 0);
		sl_pktring_rx_destroy(ring);
	}
}

static void
long_packets_are_clipped(void)
{
	EACH_FLAT_VERSION(v)
	{
		struct sl_pktring_rx *ring = ring_rx(v, ring_geo(SL_PKTRING_RX, v, FRAME));
		struct sl_pktring_meta meta = packet(3000);
		struct sl_pktring_room room;

		REQUIRE(sl_pktring_rx_reserve(ring, &meta, &room) == 0);
		CHECK_EQ(room.snaplen, FRAME - 66);
		CHECK(sl_pktring_rx_commit(ring, &room, TP_STATUS_COPY));
		CHECK_EQ(sl_pktring_status(v, room.header), TP_STATUS_USER | TP_STATUS_COPY);
		sl_pktring_rx_destroy(ring);
	}
}

static void
frames_too_small_for_the_offset_hold_nothing(void)
{
	struct sl_pktring_rx *ring = ring_rx(TPACKET_V2, ring_geo(SL_PKTRING_RX, TPACKET_V2, 64));
	struct sl_pktring_meta meta = packet(60);
	const struct tpacket2_hdr *h = (void *)rx_slot(ring, 0);
	bool visible;

	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK_EQ(h->tp_snaplen, 0);
	CHECK_EQ(h->tp_len, 60);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, rx_slot(ring, 1)), TP_STATUS_KERNEL);
	sl_pktring_rx_destroy(ring);
}

/* CVE-2020-14386: a reserve near 64 KiB must not wrap the 16-bit offset. */
static void
offsets_beyond_16_bits_drop(void)
{
	static const uint32_t reserve[] = {65535 - 80, 65536 - 80, 65535, 65536, 0x7fffffff};

	for (size_t i = 0; i < SL_COUNT_OF(reserve); i++) {
		struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, TPACKET_V2, FRAME);
		struct sl_pktring_meta meta = packet(60);
		struct sl_pktring_rx_stats stats;
		struct sl_pktring_rx *ring;
		bool visible;

		geo.reserve = reserve[i];
		ring = ring_rx(TPACKET_V2, geo);
		CHECK_EQ(store(ring, &meta, 1, &visible), i == 0 ? 0 : -EMSGSIZE);
		sl_pktring_rx_stats(ring, &stats);
		CHECK_EQ(stats.packets, 1);
		CHECK_EQ(stats.drops, i == 0 ? 0 : 1);
		sl_pktring_rx_destroy(ring);
	}
}

static void
full_ring_drops_and_says_so(void)
{
	EACH_FLAT_VERSION(v)
	{
		struct sl_pktring_rx *ring = ring_rx(v, ring_geo(SL_PKTRING_RX, v, FRAME));
		struct sl_pktring_meta meta = packet(60);
		struct sl_pktring_rx_stats stats;
		bool visible;

		for (uint32_t i = 0; i < FRAMES; i++)
			CHECK_EQ(store(ring, &meta, 1, &visible), 0);
		CHECK_EQ(store(ring, &meta, 1, &visible), -ENOBUFS);
		/* A slot that is not the next one does not help. */
		sl_pktring_status_set(v, rx_slot(ring, 1), TP_STATUS_KERNEL);
		CHECK_EQ(store(ring, &meta, 1, &visible), -ENOBUFS);
		sl_pktring_status_set(v, rx_slot(ring, 0), TP_STATUS_KERNEL);
		CHECK_EQ(store(ring, &meta, 1, &visible), 0);
		CHECK_EQ(sl_pktring_status(v, rx_slot(ring, 0)), TP_STATUS_USER | TP_STATUS_LOSING);
		sl_pktring_rx_stats_take(ring, &stats);
		CHECK_EQ(stats.packets, FRAMES + 3);
		CHECK_EQ(stats.drops, 2);
		CHECK_EQ(store(ring, &meta, 1, &visible), 0);
		CHECK_EQ(sl_pktring_status(v, rx_slot(ring, 1)), TP_STATUS_USER);
		sl_pktring_rx_stats_take(ring, &stats);
		CHECK_EQ(stats.packets, 1);
		CHECK_EQ(stats.drops, 0);
		sl_pktring_rx_stats(ring, &stats);
		CHECK_EQ(stats.packets, FRAMES + 4);
		sl_pktring_rx_destroy(ring);
	}
}

/* A slow writer's slot is not handed to another one a lap later, though its status is KERNEL. */
static void
slots_being_written_are_not_reserved_again(void)
{
	struct sl_pktring_rx *ring = ring_rx(TPACKET_V2, ring_geo(SL_PKTRING_RX, TPACKET_V2, FRAME));
	struct sl_pktring_meta meta = packet(60);
	struct sl_pktring_room slow, room;

	REQUIRE(sl_pktring_rx_reserve(ring, &meta, &slow) == 0);
	for (uint32_t i = 1; i < FRAMES; i++) {
		REQUIRE(sl_pktring_rx_reserve(ring, &meta, &room) == 0);
		sl_pktring_rx_commit(ring, &room, 0);
	}
	CHECK_EQ(sl_pktring_status(TPACKET_V2, rx_slot(ring, 0)), TP_STATUS_KERNEL);
	CHECK_EQ(sl_pktring_rx_reserve(ring, &meta, &room), -ENOBUFS);
	sl_pktring_rx_commit(ring, &slow, 0);
	CHECK_EQ(sl_pktring_rx_reserve(ring, &meta, &room), -ENOBUFS);
	sl_pktring_status_set(TPACKET_V2, rx_slot(ring, 0), TP_STATUS_KERNEL);
	CHECK_EQ(sl_pktring_rx_reserve(ring, &meta, &room), 0);
	sl_pktring_rx_commit(ring, &room, 0);
	sl_pktring_rx_destroy(ring);
}

static struct sl_pktring_rx *
ring_v3(uint32_t retire_ms, uint32_t priv, uint32_t features)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_RX, TPACKET_V3, FRAME);

	geo.retire_ms = retire_ms;
	geo.priv_size = priv;
	geo.features = features;
	return ring_rx(TPACKET_V3, geo);
}

/* Walk a block as a client does; returns the number of packets, all `len` bytes long. */
static uint32_t
walk_block(const struct tpacket_block_desc *b, uint32_t block_size, uint32_t len)
{
	const uint8_t *p = (const uint8_t *)b + b->hdr.bh1.offset_to_first_pkt;
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *h = (const void *)p;

		REQUIRE(p + h->tp_mac + h->tp_snaplen <= (const uint8_t *)b + block_size);
		CHECK_EQ(h->tp_len, len);
		CHECK_EQ(p[h->tp_mac], n + 1);
		CHECK_EQ(p[h->tp_mac + h->tp_snaplen - 1], n + 1);
		CHECK_EQ(h->tp_next_offset % 8, 0);
		CHECK_EQ(h->tp_next_offset == 0, i + 1 == b->hdr.bh1.num_pkts);
		p += h->tp_next_offset;
		n++;
	}
	return n;
}

static void
v3_blocks_fill_up(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 20, TP_FT_REQ_FILL_RXHASH);
	struct sl_pktring_meta meta = packet(1001);
	const struct tpacket_block_desc *b = rx_block(ring, 0);
	const struct tpacket3_hdr *first;
	bool visible = false;

	meta.rxhash = 0xcafe;
	for (uint8_t i = 1; i <= 3; i++) {
		CHECK_EQ(store(ring, &meta, i, &visible), 0);
		CHECK(!visible);
	}
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_KERNEL);
	CHECK(!sl_pktring_rx_readable(ring));
	CHECK_EQ(store(ring, &meta, 1, &visible), 0); /* does not fit: closes the block */
	CHECK(sl_pktring_rx_readable(ring));
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_USER);
	CHECK_EQ(b->version, TPACKET_V3);
	CHECK_EQ(b->offset_to_priv, 48);
	CHECK_EQ(b->hdr.bh1.offset_to_first_pkt, 48 + 24);
	CHECK_EQ(b->hdr.bh1.num_pkts, 3);
	CHECK_EQ(b->hdr.bh1.blk_len, 72 + 3 * 1088); /* 82 + 1001, in steps of 8 */
	CHECK_EQ(b->hdr.bh1.seq_num, 1);
	CHECK_EQ(b->hdr.bh1.ts_first_pkt.ts_sec, 5);
	CHECK_EQ(b->hdr.bh1.ts_last_pkt.ts_sec, 7);
	CHECK_EQ(walk_block(b, 2 * FRAME, 1001), 3);
	first = (const void *)((const uint8_t *)b + 72);
	CHECK_EQ(first->hv1.tp_rxhash, 0xcafe);
	CHECK_EQ(first->tp_status, TP_STATUS_USER);
	sl_pktring_rx_destroy(ring);
}

static void
v3_hash_only_when_asked(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 0, 0);
	struct sl_pktring_meta meta = packet(60);
	const struct tpacket3_hdr *h = (void *)((uint8_t *)rx_block(ring, 0) + 48);
	bool visible;

	meta.rxhash = 0xcafe;
	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK_EQ(h->hv1.tp_rxhash, 0);
	sl_pktring_rx_destroy(ring);
}

static void
v3_blocks_retire(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 0, 0);
	struct sl_pktring_meta meta = packet(60);
	const struct tpacket_block_desc *b = rx_block(ring, 0);
	bool visible;

	/* An empty block is never handed over. */
	CHECK(!sl_pktring_rx_tick(ring, 60 * SEC));
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_KERNEL);
	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + 10000000 - 1));
	CHECK(sl_pktring_rx_tick(ring, meta.ns + 10000000));
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_USER | TP_STATUS_BLK_TMO);
	CHECK_EQ(walk_block(b, 2 * FRAME, 60), 1);
	CHECK_EQ(b->hdr.bh1.ts_last_pkt.ts_nsec, 123456789);
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + 90 * SEC));
	/* A clock that was set back an hour does not keep a block for an hour. */
	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK(sl_pktring_rx_tick(ring, 1 * SEC));
	CHECK_EQ(rx_block(ring, 1)->hdr.bh1.block_status, TP_STATUS_USER | TP_STATUS_BLK_TMO);
	sl_pktring_rx_destroy(ring);
}

static void
v3_default_retire_time(void)
{
	struct sl_pktring_rx *ring = ring_v3(0, 0, 0);
	struct sl_pktring_meta meta = packet(60);
	bool visible;

	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + 7999999));
	CHECK(sl_pktring_rx_tick(ring, meta.ns + 8000000));
	sl_pktring_rx_destroy(ring);
}

static void
v3_queue_freezes_and_thaws(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 0, 0);
	struct sl_pktring_meta meta = packet(2000);
	struct sl_pktring_rx_stats stats;
	uint32_t stored = 0;
	bool visible;

	while (store(ring, &meta, 1, &visible) == 0)
		stored++;
	CHECK_EQ(stored, 4); /* one a block */
	CHECK_EQ(store(ring, &meta, 1, &visible), -ENOBUFS);
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + SEC));
	sl_pktring_rx_stats(ring, &stats);
	CHECK_EQ(stats.drops, 2);
	CHECK_EQ(stats.freezes, 1);
	/* Another block than the next one does not thaw it. */
	sl_store_release(&rx_block(ring, 1)->hdr.bh1.block_status, TP_STATUS_KERNEL);
	CHECK_EQ(store(ring, &meta, 1, &visible), -ENOBUFS);
	sl_store_release(&rx_block(ring, 0)->hdr.bh1.block_status, TP_STATUS_KERNEL);
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + SEC));
	CHECK_EQ(rx_block(ring, 0)->hdr.bh1.seq_num, 5);
	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK(sl_pktring_rx_tick(ring, meta.ns + SEC));
	CHECK_EQ(rx_block(ring, 0)->hdr.bh1.block_status,
		TP_STATUS_USER | TP_STATUS_BLK_TMO | TP_STATUS_LOSING);
	sl_pktring_rx_stats_take(ring, &stats);
	CHECK_EQ(stats.freezes, 1);
	CHECK_EQ(stats.packets, 4 + 3 + 1);
	sl_pktring_rx_destroy(ring);
}

static void
v3_last_writer_hands_the_block_over(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 0, 0);
	struct sl_pktring_meta meta = packet(60);
	struct sl_pktring_room slow, room;
	const struct tpacket_block_desc *b = rx_block(ring, 0);

	REQUIRE(sl_pktring_rx_reserve(ring, &meta, &slow) == 0);
	REQUIRE(sl_pktring_rx_reserve(ring, &meta, &room) == 0);
	CHECK(!sl_pktring_rx_commit(ring, &room, 0));
	CHECK(!sl_pktring_rx_tick(ring, meta.ns + SEC)); /* closed, but a writer is in it */
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_KERNEL);
	REQUIRE(sl_pktring_rx_reserve(ring, &meta, &room) == 0);
	CHECK_EQ(room.slot, 1);
	CHECK(!sl_pktring_rx_commit(ring, &room, 0));
	CHECK(sl_pktring_rx_commit(ring, &slow, 0));
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_USER | TP_STATUS_BLK_TMO);
	CHECK_EQ(b->hdr.bh1.num_pkts, 2);
	sl_pktring_rx_destroy(ring);
}

/* A whole lap while one writer is slow: its block looks like the server's, and is not reused. */
static void
v3_unfinished_block_freezes_the_queue(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 0, 0);
	struct sl_pktring_meta meta = packet(2000);
	struct sl_pktring_room slow;
	bool visible;

	REQUIRE(sl_pktring_rx_reserve(ring, &meta, &slow) == 0);
	for (int i = 1; i < 4; i++)
		CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	CHECK_EQ(store(ring, &meta, 1, &visible), -ENOBUFS);
	CHECK(sl_pktring_rx_commit(ring, &slow, 0));
	sl_store_release(&rx_block(ring, 0)->hdr.bh1.block_status, TP_STATUS_KERNEL);
	CHECK_EQ(store(ring, &meta, 1, &visible), 0);
	sl_pktring_rx_destroy(ring);
}

static void
v3_packets_longer_than_a_block_are_clipped(void)
{
	struct sl_pktring_rx *ring = ring_v3(10, 100, 0);
	struct sl_pktring_meta meta = packet(9000);
	const struct tpacket3_hdr *h = (void *)((uint8_t *)rx_block(ring, 0) + 48 + 104);
	uint8_t *end = (uint8_t *)rx_block(ring, 1);
	bool visible;

	end[0] = TPACKET_V3;
	CHECK_EQ(store(ring, &meta, 0xff, &visible), 0);
	CHECK_EQ(h->tp_len, 9000);
	CHECK_EQ(h->tp_snaplen, 2 * FRAME - 152 - 82);
	CHECK_EQ(end[0], TPACKET_V3);
	CHECK_EQ(store(ring, &meta, 0xff, &visible), 0); /* each one fills a block */
	CHECK_EQ(rx_block(ring, 0)->hdr.bh1.blk_len, 2 * FRAME);
	sl_pktring_rx_destroy(ring);
}

int
main(void)
{
	SL_TEST_RUN(layout_v2);
	SL_TEST_RUN(layout_v1_has_microseconds);
	SL_TEST_RUN(offsets_by_type_reserve_and_vnet);
	SL_TEST_RUN(long_packets_are_clipped);
	SL_TEST_RUN(frames_too_small_for_the_offset_hold_nothing);
	SL_TEST_RUN(offsets_beyond_16_bits_drop);
	SL_TEST_RUN(full_ring_drops_and_says_so);
	SL_TEST_RUN(slots_being_written_are_not_reserved_again);
	SL_TEST_RUN(v3_blocks_fill_up);
	SL_TEST_RUN(v3_hash_only_when_asked);
	SL_TEST_RUN(v3_blocks_retire);
	SL_TEST_RUN(v3_default_retire_time);
	SL_TEST_RUN(v3_queue_freezes_and_thaws);
	SL_TEST_RUN(v3_last_writer_hands_the_block_over);
	SL_TEST_RUN(v3_unfinished_block_freezes_the_queue);
	SL_TEST_RUN(v3_packets_longer_than_a_block_are_clipped);
	return test_end();
}
