/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Socket options, a row a rule, on both backends: lengths, values, what a ring forbids, what is
 * read back. */
#include <linux/virtio_net.h>

#include "backend.h"

#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ 24
#endif

enum { ALONE, BOUND, RING };

static const struct row {
	int name, value;
	socklen_t len;
	int expect;
	int state;
} rows[] = {
	{PACKET_COPY_THRESH, 1, 4, 0, ALONE},
	{PACKET_COPY_THRESH, 1, 3, -EINVAL, ALONE},
	{PACKET_COPY_THRESH, 1, 8, -EINVAL, ALONE},
	{PACKET_COPY_THRESH, 1, 4, 0, RING},
	{PACKET_AUXDATA, 1, 3, -EINVAL, ALONE},
	{PACKET_AUXDATA, 1, 4, 0, RING},
	{PACKET_AUXDATA, 1, 8, 0, ALONE},
	{PACKET_ORIGDEV, 1, 3, -EINVAL, ALONE},
	{PACKET_ORIGDEV, 1, 8, 0, ALONE},
	{PACKET_VERSION, TPACKET_V1, 4, 0, ALONE},
	{PACKET_VERSION, TPACKET_V2, 4, 0, ALONE},
	{PACKET_VERSION, TPACKET_V3, 4, 0, ALONE},
	{PACKET_VERSION, 3, 4, -EINVAL, ALONE},
	{PACKET_VERSION, -1, 4, -EINVAL, ALONE},
	{PACKET_VERSION, 3, 4, -EINVAL, RING},
	{PACKET_VERSION, TPACKET_V2, 4, -EBUSY, RING},
	{PACKET_VERSION, TPACKET_V2, 5, -EINVAL, ALONE},
	{PACKET_RESERVE, 100, 4, 0, ALONE},
	{PACKET_RESERVE, 0x7fffffff, 4, 0, ALONE},
	{PACKET_RESERVE, -1, 4, -EINVAL, ALONE},
	{PACKET_RESERVE, 100, 4, -EBUSY, RING},
	{PACKET_RESERVE, 100, 2, -EINVAL, ALONE},
	{PACKET_LOSS, 1, 4, 0, ALONE},
	{PACKET_LOSS, 1, 4, -EBUSY, RING},
	{PACKET_LOSS, 1, 1, -EINVAL, ALONE},
	{PACKET_VNET_HDR, 1, 4, 0, ALONE},
	{PACKET_VNET_HDR, 1, 4, -EBUSY, RING},
	{PACKET_VNET_HDR, 1, 3, -EINVAL, ALONE},
	{PACKET_VNET_HDR_SZ, 10, 4, 0, ALONE},
	{PACKET_VNET_HDR_SZ, 12, 4, 0, ALONE},
	{PACKET_VNET_HDR_SZ, 0, 4, 0, ALONE},
	{PACKET_VNET_HDR_SZ, 11, 4, -EINVAL, ALONE},
	{PACKET_VNET_HDR_SZ, 12, 4, -EBUSY, RING},
	{PACKET_TIMESTAMP, 0, 4, 0, RING},
	{PACKET_TIMESTAMP, 0, 8, -EINVAL, ALONE},
	{PACKET_TX_HAS_OFF, 1, 4, 0, ALONE},
	{PACKET_TX_HAS_OFF, 1, 4, 0, RING},
	{PACKET_TX_HAS_OFF, 1, 2, -EINVAL, ALONE},
	{PACKET_QDISC_BYPASS, 1, 4, 0, RING},
	{PACKET_QDISC_BYPASS, 1, 2, -EINVAL, ALONE},
	{PACKET_IGNORE_OUTGOING, 1, 4, 0, RING},
	{PACKET_IGNORE_OUTGOING, 2, 4, -EINVAL, ALONE},
	{PACKET_IGNORE_OUTGOING, -1, 4, -EINVAL, ALONE},
	{PACKET_IGNORE_OUTGOING, 1, 2, -EINVAL, ALONE},
	{PACKET_FANOUT, 7, 4, -EINVAL, ALONE}, /* not bound */
	{PACKET_FANOUT, 7, 4, 0, BOUND},
	{PACKET_FANOUT, 7, 3, -EINVAL, BOUND},
	{PACKET_FANOUT, 7 | 9 << 16, 4, -EINVAL, BOUND},      /* no such type */
	{PACKET_FANOUT, 7 | 0x1003 << 16, 4, -EINVAL, BOUND}, /* rollover that rolls over */
	{PACKET_FANOUT, 7 | 0x2000 << 16, 4, -EINVAL, BOUND}, /* unique id with an id */
	{PACKET_FANOUT, 0x2000 << 16, 4, 0, BOUND},
	{PACKET_FANOUT_DATA, 0, 4, -EINVAL, BOUND},
	{PACKET_STATISTICS, 0, 4, -ENOPROTOOPT, ALONE},
	{4, 0, 4, -ENOPROTOOPT, ALONE},
	{99, 0, 4, -ENOPROTOOPT, ALONE},
};

static void
prepare(struct sock *k, bool kernel, int state)
{
	REQUIRE(b_open(kernel, SOCK_RAW, 0, k) == 0);
	if (state == BOUND)
		REQUIRE(b_bind_port(k, htons(ETH_P_ALL)) == 0);
	if (state == RING)
		REQUIRE(b_ring(k, PACKET_RX_RING, TPACKET_V2) == 0);
}

static void
set_rows(bool kernel)
{
	for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
		const struct row *r = &rows[i];
		int value[2] = {r->value, 0}, ret;
		struct sock k;

		prepare(&k, kernel, r->state);
		ret = b_set(&k, SOL_PACKET, r->name, value, r->len);
		if (ret != r->expect)
			fprintf(stderr, "row %zu: option %d\n", i, r->name);
		CHECK_EQ(ret, r->expect);
		b_close(&k);
	}
}

/* What was set is what is read; a short buffer gets the front, a negative length EINVAL. */
static void
read_back(bool kernel)
{
	static const struct {
		int name, value, expect;
	} words[] = {{PACKET_AUXDATA, 5, 1}, {PACKET_ORIGDEV, 1, 1}, {PACKET_VERSION, 2, 2},
		{PACKET_RESERVE, 77, 77}, {PACKET_LOSS, 9, 1}, {PACKET_VNET_HDR, 3, 1},
		{PACKET_TIMESTAMP, 16, 16}, {PACKET_TX_HAS_OFF, 2, 1}, {PACKET_QDISC_BYPASS, 1, 1},
		{PACKET_IGNORE_OUTGOING, 1, 1}};
	struct sock k;

	prepare(&k, kernel, ALONE);
	for (size_t i = 0; i < SL_COUNT_OF(words); i++) {
		int v = -1;
		socklen_t len = 8;
		int both[2] = {-1, -1};

		CHECK_EQ(b_set_int(&k, words[i].name, words[i].value), 0);
		CHECK_EQ(b_get(&k, SOL_PACKET, words[i].name, both, &len), 0);
		CHECK_EQ(both[0], words[i].expect);
		CHECK_EQ(both[1], -1);
		CHECK_EQ(len, 4);
		len = 1;
		CHECK_EQ(b_get(&k, SOL_PACKET, words[i].name, &v, &len), 0);
		CHECK_EQ(len, 1);
		len = (socklen_t)-1;
		CHECK_EQ(b_get(&k, SOL_PACKET, words[i].name, &v, &len), -EINVAL);
	}
	b_close(&k);
}

static void
header_lengths(bool kernel)
{
	static const int expect[] = {32, 32, 48};
	socklen_t len = 4;
	struct sock k;
	int v;

	prepare(&k, kernel, ALONE);
	for (int i = 0; i < 3; i++) {
		v = i;
		CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_HDRLEN, &v, &len), 0);
		CHECK_EQ(v, expect[i]);
	}
	v = 3;
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_HDRLEN, &v, &len), -EINVAL);
	len = 3;
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_HDRLEN, &v, &len), -EINVAL);
	b_close(&k);
}

static void
statistics_and_others(bool kernel)
{
	struct tpacket_stats_v3 stats = {9, 9, 9};
	struct tpacket_rollover_stats rolled;
	socklen_t len = sizeof(stats);
	struct sock k;
	int v = 0;

	prepare(&k, kernel, ALONE);
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(len, 8);
	CHECK_EQ(stats.tp_packets + stats.tp_drops, 0);
	CHECK_EQ(b_set_int(&k, PACKET_VERSION, TPACKET_V3), 0);
	len = sizeof(stats);
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(len, 12);
	len = 3;
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(len, 3);
	len = sizeof(rolled);
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_ROLLOVER_STATS, &rolled, &len), -EINVAL);
	len = 4;
	CHECK_EQ(b_get(&k, SOL_PACKET, 99, &v, &len), -ENOPROTOOPT);
	CHECK_EQ(b_get(&k, SOL_PACKET, PACKET_RX_RING, &v, &len), -ENOPROTOOPT);
	CHECK_EQ(b_set(&k, IPPROTO_IP, 1, &v, 4), -ENOPROTOOPT);
	b_close(&k);
}

static void
vnet_is_for_raw_sockets(bool kernel)
{
	struct sock k;

	REQUIRE(b_open(kernel, SOCK_DGRAM, 0, &k) == 0);
	CHECK_EQ(b_set_int(&k, PACKET_VNET_HDR, 1), -EINVAL);
	CHECK_EQ(b_set_int(&k, PACKET_VNET_HDR_SZ, 12), -EINVAL);
	b_close(&k);
}

static void
memberships(bool kernel)
{
	struct packet_mreq m = {.mr_type = PACKET_MR_PROMISC};
	struct sock k;

	prepare(&k, kernel, ALONE);
	m.mr_ifindex = b_ifindex(&k);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m) - 1), -EINVAL);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &m, sizeof(m)), 0); /* unknown */
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), 0);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), 0);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &m, sizeof(m)), 0);
	m.mr_alen = 7;
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), -EINVAL);
	m.mr_alen = 9;
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), -EINVAL);
	m = (struct packet_mreq){.mr_type = PACKET_MR_ALLMULTI, .mr_ifindex = 99};
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), -ENODEV);
	m = (struct packet_mreq){.mr_type = PACKET_MR_MULTICAST,
		.mr_ifindex = b_ifindex(&k),
		.mr_alen = 6,
		.mr_address = {1, 0, 0x5e, 0, 0, 1}};
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)), 0);
	b_close(&k);
}

/* Fanout: what a second member must have in common with the first. */
static void
fanout_members(bool kernel)
{
	struct sock a, b, c;
	int group = 77, lb = 77 | PACKET_FANOUT_LB << 16;
	struct fanout_args two = {.id = 78, .max_num_members = 2};
	struct fanout_args three = {.id = 78, .max_num_members = 3};
	struct fanout_args many = {.id = 79, .max_num_members = 65537};
	int v = 0;
	socklen_t len = 4;

	prepare(&a, kernel, BOUND);
	prepare(&b, kernel, BOUND);
	prepare(&c, kernel, ALONE);
	REQUIRE(b_bind_port(&c, htons(ETH_P_IP)) == 0);
	CHECK_EQ(b_set_int(&a, PACKET_FANOUT, group), 0);
	CHECK_EQ(b_set_int(&a, PACKET_FANOUT, group), -EALREADY);
	CHECK_EQ(b_set_int(&b, PACKET_FANOUT, lb), -EINVAL);
	CHECK_EQ(b_set_int(&b, PACKET_FANOUT, (int)(77u | 0x8000u << 16)), -EINVAL);
	CHECK_EQ(b_set_int(&c, PACKET_FANOUT, group), -EINVAL); /* another protocol */
	CHECK_EQ(b_set_int(&b, PACKET_FANOUT, group), 0);
	CHECK_EQ(b_get(&b, SOL_PACKET, PACKET_FANOUT, &v, &len), 0);
	CHECK_EQ(v, group);
	CHECK_EQ(b_bind_port(&a, htons(ETH_P_IP)), -EINVAL); /* a member stays where it is */
	b_close(&a);
	b_close(&b);
	prepare(&a, kernel, BOUND);
	prepare(&b, kernel, BOUND);
	CHECK_EQ(b_set(&a, SOL_PACKET, PACKET_FANOUT, &many, sizeof(many)), -EINVAL);
	two.max_num_members = 1;
	CHECK_EQ(b_set(&a, SOL_PACKET, PACKET_FANOUT, &two, sizeof(two)), 0);
	CHECK_EQ(b_set(&b, SOL_PACKET, PACKET_FANOUT, &three, sizeof(three)), -EINVAL);
	CHECK_EQ(b_set(&b, SOL_PACKET, PACKET_FANOUT, &two, sizeof(two)), -ENOSPC);
	b_close(&a);
	CHECK_EQ(b_set(&b, SOL_PACKET, PACKET_FANOUT, &three, sizeof(three)), 0); /* a new group */
	b_close(&b);
	b_close(&c);
}

/* One mapping, of both rings and nothing less; rings stay as they are while they are mapped. */
static void
mappings(bool kernel)
{
	struct tpacket_req req = {2 * FRAME, FRAMES / 2, FRAME, FRAMES}, none = {0};
	size_t half = FRAME * FRAMES;
	struct sock k;
	uint8_t *map;

	prepare(&k, kernel, ALONE);
	CHECK(b_map(&k, half) == NULL);
	REQUIRE(b_set(&k, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) == 0);
	map = b_map(&k, half);
	REQUIRE(map != NULL);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)), -EBUSY);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)), -EBUSY);
	b_unmap(&k, map, half);
	REQUIRE(b_set(&k, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) == 0);
	CHECK(b_map(&k, half) == NULL);
	CHECK(b_map(&k, 3 * half) == NULL);
	map = b_map(&k, 2 * half);
	REQUIRE(map != NULL);
	b_unmap(&k, map, 2 * half);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)), 0);
	CHECK_EQ(b_set_int(&k, PACKET_VERSION, TPACKET_V2), -EBUSY); /* of the other ring */
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_TX_RING, &none, sizeof(none)), 0);
	CHECK_EQ(b_set_int(&k, PACKET_VERSION, TPACKET_V2), 0);
	b_close(&k);
}

/* Without a number of its own, a group has room for 256. */
static void
groups_of_256(void)
{
	static struct sock k[257];
	int i;

	for (i = 0; i < 257; i++)
		prepare(&k[i], false, BOUND);
	for (i = 0; i < 256; i++)
		CHECK_EQ(b_set_int(&k[i], PACKET_FANOUT, 3), 0);
	CHECK_EQ(b_set_int(&k[256], PACKET_FANOUT, 3), -ENOSPC);
	for (i = 0; i < 257; i++)
		b_close(&k[i]);
}

static void
ring_requests(bool kernel)
{
	struct tpacket_req3 req = {8192, 2, 2048, 8, 0, 0, 0};
	struct sock k;

	for (int name = PACKET_RX_RING; name <= PACKET_TX_RING;
		name += PACKET_TX_RING - PACKET_RX_RING) {
		prepare(&k, kernel, BOUND);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 15), -EINVAL);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, NULL, 16), -EINVAL);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 16), 0);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 16), -EBUSY);
		req.tp_block_nr = 0;
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 16), -EINVAL);
		req.tp_frame_nr = 0;
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 16), 0);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 16), 0);
		CHECK_EQ(b_set_int(&k, PACKET_VERSION, TPACKET_V3), 0);
		req.tp_block_nr = 2;
		req.tp_frame_nr = 8;
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 27), -EINVAL);
		CHECK_EQ(b_set(&k, SOL_PACKET, name, &req, 28), 0);
		b_close(&k);
	}
}

ON_BOTH(set_rows)
ON_BOTH(read_back)
ON_BOTH(header_lengths)
ON_BOTH(statistics_and_others)
ON_BOTH(vnet_is_for_raw_sockets)
ON_BOTH(memberships)
ON_BOTH(fanout_members)
ON_BOTH(ring_requests)
ON_BOTH(mappings)

int
main(void)
{
	kernel_init();
	help_init("options");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(library_set_rows);
	SL_TEST_RUN(kernel_set_rows);
	SL_TEST_RUN(library_read_back);
	SL_TEST_RUN(kernel_read_back);
	SL_TEST_RUN(library_header_lengths);
	SL_TEST_RUN(kernel_header_lengths);
	SL_TEST_RUN(library_statistics_and_others);
	SL_TEST_RUN(kernel_statistics_and_others);
	SL_TEST_RUN(library_vnet_is_for_raw_sockets);
	SL_TEST_RUN(kernel_vnet_is_for_raw_sockets);
	SL_TEST_RUN(library_memberships);
	SL_TEST_RUN(kernel_memberships);
	SL_TEST_RUN(library_fanout_members);
	SL_TEST_RUN(kernel_fanout_members);
	SL_TEST_RUN(library_ring_requests);
	SL_TEST_RUN(kernel_ring_requests);
	SL_TEST_RUN(library_mappings);
	SL_TEST_RUN(kernel_mappings);
	SL_TEST_RUN(groups_of_256);
	net_close();
	return help_end();
}
