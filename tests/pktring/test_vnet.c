/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The vnet header's rules, one row each. */
#include <errno.h>
#include <string.h>

#include <linux/virtio_net.h>

#include "sl_test.h"
#include "sl_vnet.h"

#define UDP_L4 5
#define ECN VIRTIO_NET_HDR_GSO_ECN
#define NEEDS VIRTIO_NET_HDR_F_NEEDS_CSUM

enum kind { TCP4, TCP6, UDP4, UDP6, TCP4_VLAN, ARP, RUNT };

/* A packet of `len` bytes whose headers are those of its kind. */
static uint32_t
make(enum kind kind, uint8_t *p)
{
	uint32_t l3 = kind == TCP4_VLAN ? 18 : 14;
	bool v6 = kind == TCP6 || kind == UDP6;
	bool udp = kind == UDP4 || kind == UDP6;
	uint32_t l4 = l3 + (v6 ? 40 : 20);
	uint16_t type = kind == ARP ? 0x0608 : v6 ? 0xdd86 : 0x0008;

	memset(p, 0, 4000);
	memcpy(p + l3 - 2, &type, 2);
	if (kind == TCP4_VLAN)
		p[12] = 0x81;
	p[l3] = v6 ? 0x60 : 0x45;
	p[l3 + (v6 ? 6 : 9)] = udp ? 17 : 6;
	if (!udp)
		p[l4 + 12] = 0x50;
	return l4;
}

static const struct row {
	enum kind kind;
	uint32_t len;
	struct virtio_net_hdr h; /* flags, gso_type, hdr_len, gso_size, csum_start, csum_offset */
	int expect;
	enum sl_vnet_gso gso;
} rows[] = {
	{TCP4, 1000, {0, 0, 0, 0, 0, 0}, 0, SL_VNET_GSO_NONE},
	{ARP, 60, {0, 0, 0, 0, 0, 0}, 0, SL_VNET_GSO_NONE},
	{RUNT, 5, {0, 0, 0, 0, 0, 0}, 0, SL_VNET_GSO_NONE},
	/* header length */
	{TCP4, 1000, {0, 0, 1000, 0, 0, 0}, 0, SL_VNET_GSO_NONE},
	{TCP4, 1000, {0, 0, 1001, 0, 0, 0}, -EINVAL, 0},
	/* checksum: inside of the packet, and nothing wraps */
	{TCP4, 1000, {NEEDS, 0, 0, 0, 34, 16}, 0, SL_VNET_GSO_NONE},
	{TCP4, 1000, {NEEDS, 0, 0, 0, 982, 16}, 0, SL_VNET_GSO_NONE},
	{TCP4, 1000, {NEEDS, 0, 0, 0, 983, 16}, -EINVAL, 0},
	{TCP4, 1000, {NEEDS, 0, 0, 0, 0xffff, 0xffff}, -EINVAL, 0},
	{TCP4, 1000, {NEEDS, 0, 0, 0, 0xfff0, 0x10}, -EINVAL, 0},
	{TCP4, 1000, {NEEDS, 0, 0, 0, 0x10, 0xfff0}, -EINVAL, 0},
	{RUNT, 5, {NEEDS, 0, 0, 0, 3, 0}, 0, SL_VNET_GSO_NONE},
	{RUNT, 5, {NEEDS, 0, 0, 0, 4, 0}, -EINVAL, 0},
	/* types */
	{TCP4, 3000, {NEEDS, 1, 54, 1000, 34, 16}, 0, SL_VNET_GSO_TCP4},
	{TCP4, 3000, {NEEDS, 1 | ECN, 54, 1000, 34, 16}, 0, SL_VNET_GSO_TCP4},
	{TCP6, 3000, {NEEDS, 4, 74, 1000, 54, 16}, 0, SL_VNET_GSO_TCP6},
	{UDP4, 3000, {NEEDS, UDP_L4, 42, 1000, 34, 6}, 0, SL_VNET_GSO_UDP_L4},
	{UDP6, 3000, {NEEDS, UDP_L4, 62, 1000, 54, 6}, 0, SL_VNET_GSO_UDP_L4},
	{UDP4, 3000, {NEEDS, 3, 42, 1000, 34, 6}, 0, SL_VNET_GSO_UFO},
	{TCP4, 3000, {NEEDS, 2, 54, 1000, 34, 16}, -EINVAL, 0},
	{TCP4, 3000, {NEEDS, 6, 54, 1000, 34, 16}, -EINVAL, 0},
	{TCP4, 3000, {NEEDS, 0x7f, 54, 1000, 34, 16}, -EINVAL, 0},
	/* segment size */
	{TCP4, 3000, {NEEDS, 1, 54, 0, 34, 16}, -EINVAL, 0},
	{TCP4, 3000, {NEEDS, 1, 54, 0xffff, 34, 16}, -EINVAL, 0},
	{TCP4, 1000, {NEEDS, 1, 54, 1000, 34, 16}, 0, SL_VNET_GSO_NONE},
	{TCP4, 1001, {NEEDS, 1, 54, 1000, 34, 16}, 0, SL_VNET_GSO_TCP4},
	/* transport header where the type says */
	{TCP4, 3000, {NEEDS, 1, 0, 1000, 19, 16}, -EINVAL, 0},
	{TCP6, 3000, {NEEDS, 4, 0, 1000, 39, 16}, -EINVAL, 0},
	{TCP4, 3000, {NEEDS, 1, 0, 1000, 2981, 16}, -EINVAL, 0},
	{TCP4, 3000, {NEEDS, 1, 54, 1000, 34, 6}, -EINVAL, 0},
	/* UDP segments: checksum asked for, at its place, no ECN, 128 at most */
	{UDP4, 3000, {0, UDP_L4, 42, 1000, 0, 0}, -EINVAL, 0},
	{UDP4, 3000, {NEEDS, UDP_L4, 42, 1000, 34, 16}, -EINVAL, 0},
	{UDP4, 3000, {NEEDS, UDP_L4 | ECN, 42, 1000, 34, 6}, -EINVAL, 0},
	{UDP4, 34 + 8 + 128, {NEEDS, UDP_L4, 42, 1, 34, 6}, 0, SL_VNET_GSO_UDP_L4},
	{UDP4, 34 + 8 + 129, {NEEDS, UDP_L4, 42, 1, 34, 6}, -EINVAL, 0},
	/* without a checksum request the packet's own headers must fit the type */
	{TCP4, 3000, {0, 1, 54, 1000, 0, 0}, 0, SL_VNET_GSO_TCP4},
	{TCP4_VLAN, 3000, {0, 1, 58, 1000, 0, 0}, 0, SL_VNET_GSO_TCP4},
	{TCP6, 3000, {0, 4, 74, 1000, 0, 0}, 0, SL_VNET_GSO_TCP6},
	{TCP6, 3000, {0, 1, 74, 1000, 0, 0}, -EINVAL, 0},
	{TCP4, 3000, {0, 4, 54, 1000, 0, 0}, -EINVAL, 0},
	{UDP4, 3000, {0, 1, 42, 1000, 0, 0}, -EINVAL, 0},
	{TCP4, 3000, {0, 3, 54, 1000, 0, 0}, -EINVAL, 0},
	{ARP, 3000, {0, 1, 54, 1000, 0, 0}, -EINVAL, 0},
};

static void
rules(void)
{
	uint8_t p[4000];

	for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
		const struct row *r = &rows[i];
		struct sl_vnet v;
		int ret;

		make(r->kind, p);
		ret = sl_vnet_check(&r->h, p, r->len, &v);
		if (ret != r->expect)
			fprintf(stderr, "row %zu\n", i);
		CHECK_EQ(ret, r->expect);
		if (ret == 0)
			CHECK_EQ(v.gso, r->gso);
	}
}

static void
headers_are_measured(void)
{
	static const struct {
		enum kind kind;
		uint16_t l2, l3, l4;
	} want[] = {{TCP4, 14, 20, 20}, {TCP6, 14, 40, 20}, {UDP4, 14, 20, 8}, {UDP6, 14, 40, 8},
		{TCP4_VLAN, 18, 20, 20}, {ARP, 14, 0, 0}};
	struct virtio_net_hdr h = {0};
	uint8_t p[4000];
	struct sl_vnet v;

	for (size_t i = 0; i < SL_COUNT_OF(want); i++) {
		make(want[i].kind, p);
		REQUIRE(sl_vnet_check(&h, p, 200, &v) == 0);
		CHECK_EQ(v.l2_len, want[i].l2);
		CHECK_EQ(v.l3_len, want[i].l3);
		CHECK_EQ(v.l4_len, want[i].l4);
	}
}

/* A TCP segment size below what TCP can work with is raised, not refused. */
static void
tiny_tcp_segments_are_raised(void)
{
	struct virtio_net_hdr h = {NEEDS, 1, 54, 1, 34, 16};
	uint8_t p[4000];
	struct sl_vnet v;

	make(TCP4, p);
	REQUIRE(sl_vnet_check(&h, p, 3000, &v) == 0);
	CHECK_EQ(v.gso_size, 48);
}

static void
checksum_is_completed(void)
{
	struct virtio_net_hdr h = {NEEDS, 0, 0, 0, 34, 6};
	/* UDP 1 -> 2, 9 bytes long, payload 0xff; the field holds the pseudo header's sum 0x1234 */
	static const uint8_t udp[] = {0, 1, 0, 2, 0, 9, 0x12, 0x34, 0xff};
	uint8_t p[4000];
	struct sl_vnet v;

	make(UDP4, p);
	memcpy(p + 34, udp, sizeof(udp));
	REQUIRE(sl_vnet_check(&h, p, 34 + sizeof(udp), &v) == 0);
	sl_vnet_complete(p, 34 + sizeof(udp), &v);
	/* 1 + 2 + 9 + 0x1234 + 0xff00 = 0x11140 -> 0x1141, complemented */
	CHECK_EQ(p[40], 0xee);
	CHECK_EQ(p[41], 0xbe);
	/* A sum of zero is written as all ones. */
	memset(p + 34, 0, 9);
	p[40] = 0xff;
	p[41] = 0xff;
	sl_vnet_complete(p, 43, &v);
	CHECK_EQ(p[40] & p[41], 0xff);
}

/* What can be cut, and into how many; tests/psock/test_gso.c looks at the bytes. */
static void
cuts(void)
{
	static const struct {
		enum kind kind;
		uint32_t len;
		struct virtio_net_hdr h;
		uint8_t header; /* the byte that says how long TCP's header is; 0: as it is */
		int expect;
		uint32_t segments, last;
	} table[] = {
		{TCP4, 54 + 2000, {NEEDS, 1, 54, 1000, 34, 16}, 0, 0, 2, 1000},
		{TCP4, 54 + 2001, {NEEDS, 1, 54, 1000, 34, 16}, 0, 0, 3, 1},
		{TCP4, 54 + 1, {NEEDS, 1, 54, 48, 34, 16}, 0, 0, 1, 1},
		{TCP4, 54, {NEEDS, 1, 54, 48, 34, 16}, 0, 0, 1, 0},
		{TCP4, 3000, {0, 1, 54, 1000, 0, 0}, 0, 0, 3, 946},
		{TCP6, 3000, {NEEDS, 4, 74, 1000, 54, 16}, 0, 0, 3, 926},
		{UDP4, 42 + 300, {NEEDS, UDP_L4, 42, 100, 34, 6}, 0, 0, 3, 100},
		{TCP4_VLAN, 3000, {NEEDS, 1, 58, 1000, 38, 16}, 0, 0, 3, 942},
		/* an option-laden header, one that is too short, one that is longer than the packet
		 */
		{TCP4, 94 + 100, {NEEDS, 1, 54, 50, 34, 16}, 0xf0, 0, 2, 50},
		{TCP4, 3000, {NEEDS, 1, 54, 1000, 34, 16}, 0x40, -EINVAL, 0, 0},
		{TCP4, 60, {NEEDS, 1, 54, 48, 34, 16}, 0x60, 0, 1, 2},
		{TCP4, 60, {NEEDS, 1, 54, 48, 34, 16}, 0x80, -EINVAL, 0, 0},
		/* another field, another protocol, fragments */
		{TCP4, 3000, {NEEDS, 1, 54, 1000, 35, 16}, 0, -EINVAL, 0, 0},
		{UDP4, 3000, {NEEDS, 1, 54, 1000, 34, 16}, 0, -EINVAL, 0, 0},
		{TCP4, 3000, {NEEDS, 4, 54, 1000, 54, 16}, 0, -EINVAL, 0, 0},
		{ARP, 3000, {NEEDS, 1, 54, 1000, 34, 16}, 0, -EINVAL, 0, 0},
		{UDP4, 3000, {NEEDS, 3, 42, 1000, 34, 6}, 0, -EINVAL, 0, 0},
	};
	uint8_t p[4000], front[SL_VNET_HEAD];

	for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
		struct sl_vnet_cut cut;
		struct sl_vnet v;
		int ret;

		make(table[i].kind, p);
		if (table[i].header != 0)
			p[34 + 12] = table[i].header;
		REQUIRE(sl_vnet_check(&table[i].h, p, table[i].len, &v) == 0);
		REQUIRE(v.gso != SL_VNET_GSO_NONE);
		ret = sl_vnet_cut(&v, p, table[i].len, &cut);
		if (ret != table[i].expect)
			fprintf(stderr, "row %zu\n", i);
		CHECK_EQ(ret, table[i].expect);
		if (ret != 0)
			continue;
		CHECK_EQ(cut.segments, table[i].segments);
		CHECK_EQ(sl_vnet_cut_payload(&cut, cut.segments - 1), table[i].last);
		sl_vnet_cut_front(&cut, cut.segments - 1, front);
		CHECK_EQ(memcmp(front, p, 12), 0);
	}
}

static void
received_headers(void)
{
	uint8_t h[12];

	memset(h, 0xee, sizeof(h));
	sl_vnet_fill(h, 10, true);
	CHECK_EQ(h[0], VIRTIO_NET_HDR_F_DATA_VALID);
	CHECK_EQ(h[9], 0);
	CHECK_EQ(h[10], 0xee);
	sl_vnet_fill(h, 12, false);
	CHECK_EQ(h[0] | h[11], 0);
}

int
main(void)
{
	SL_TEST_RUN(rules);
	SL_TEST_RUN(headers_are_measured);
	SL_TEST_RUN(tiny_tcp_segments_are_raised);
	SL_TEST_RUN(checksum_is_completed);
	SL_TEST_RUN(cuts);
	SL_TEST_RUN(received_headers);
	return test_end();
}
