/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Requests in a transmit ring, on both backends: two good slots with one of each kind of bad, or
 * odd, between them. Compared are what the call returns and what becomes of the slots.
 */
#include <linux/virtio_net.h>

#include "backend.h"

#define AVAILABLE TP_STATUS_AVAILABLE
#define REQUEST TP_STATUS_SEND_REQUEST
#define WRONG TP_STATUS_WRONG_FORMAT
#define LEN 100u /* of the good ones */

static struct sockaddr_ll to = {
	.sll_family = AF_PACKET, .sll_halen = 6, .sll_addr = {2, 0, 0, 0, 0, 9}};

/* Options of a row. */
#define LOSS 1
#define OFF 2
#define VNET 4
#define DGRAM 8
#define BY_BIND 16 /* no address with the call */
#define VNET12 32  /* with VNET: 12 bytes */
#define NEXT 64	   /* tp_next_offset, in V3 alone */

#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ 24
#endif

static const struct row {
	const char *what;
	int options;
	uint32_t len; /* tp_len of the slot between */
	uint32_t status;
	uint16_t mac, net;
	uint16_t type; /* ethertype in the frame */
	struct virtio_net_hdr h;
	int expect; /* of the call; GOOD means as many bytes as were good */
	uint32_t after[3];
} rows[] = {
#define GOOD 1000000
	{"plain", 0, 60, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"bound", BY_BIND, 60, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"smallest", 0, 14, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 14, {0, 0, 0}},
	{"no header", 0, 13, REQUEST, 0, 0, 0, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"empty", 0, 0, REQUEST, 0, 0, 0, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"mtu", 0, 1514, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 1514, {0, 0, 0}},
	{"above mtu", 0, 1515, REQUEST, 0, 0, 0x88b5, {0}, -EMSGSIZE, {0, WRONG, REQUEST}},
	{"above mtu, tagged", 0, 1518, REQUEST, 0, 0, 0x8100, {0}, GOOD + 1518, {0, 0, 0}},
	{"above mtu, other tag", 0, 1518, REQUEST, 0, 0, 0x88a8, {0}, -EMSGSIZE,
		{0, WRONG, REQUEST}},
	{"above tag", 0, 1519, REQUEST, 0, 0, 0x8100, {0}, -EMSGSIZE, {0, WRONG, REQUEST}},
	{"huge", 0, 0x7fffffff, REQUEST, 0, 0, 0, {0}, -EMSGSIZE, {0, WRONG, REQUEST}},
	{"not asked", 0, 60, AVAILABLE, 0, 0, 0, {0}, LEN, {0, 0, REQUEST}},
	{"stale stamp", 0, 60, REQUEST | TP_STATUS_TS_SOFTWARE, 0, 0, 0, {0}, LEN,
		{0, REQUEST | TP_STATUS_TS_SOFTWARE, REQUEST}},
	{"lossy above mtu", LOSS, 1515, REQUEST, 0, 0, 0x88b5, {0}, GOOD, {0, 0, 0}},
	{"lossy no header", LOSS, 13, REQUEST, 0, 0, 0, {0}, GOOD, {0, 0, 0}},
	{"lossy huge", LOSS, 0xffffffff, REQUEST, 0, 0, 0, {0}, GOOD, {0, 0, 0}},
	{"offset", OFF, 60, REQUEST, 200, 0, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"offset low", OFF, 60, REQUEST, 31, 0, 0x88b5, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"offset last", OFF, 60, REQUEST, FRAME - 60, 0, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"offset high", OFF, 60, REQUEST, FRAME - 59, 0, 0x88b5, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"dgram", DGRAM, 60, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"dgram mtu", DGRAM, 1500, REQUEST, 0, 0, 0x88b5, {0}, GOOD + 1500, {0, 0, 0}},
	{"dgram above mtu", DGRAM, 1501, REQUEST, 0, 0, 0x88b5, {0}, -EMSGSIZE,
		{0, WRONG, REQUEST}},
	{"dgram offset", DGRAM | OFF, 60, REQUEST, 0, 200, 0x88b5, {0}, GOOD + 60, {0, 0, 0}},
	{"dgram offset low", DGRAM | OFF, 60, REQUEST, 200, 31, 0x88b5, {0}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"vnet", VNET, 70, REQUEST, 0, 0, 0x0800, {0}, GOOD + 60, {0, 0, 0}},
	{"vnet short", VNET, 9, REQUEST, 0, 0, 0x0800, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"vnet header length", VNET, 70, REQUEST, 0, 0, 0x0800, {0, 0, 61, 0, 0, 0}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"vnet checksum", VNET, 70, REQUEST, 0, 0, 0x0800, {1, 0, 0, 0, 34, 6}, GOOD + 60,
		{0, 0, 0}},
	{"vnet checksum outside", VNET, 70, REQUEST, 0, 0, 0x0800, {1, 0, 0, 0, 54, 6}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"vnet unknown type", VNET, 70, REQUEST, 0, 0, 0x0800, {0, 2, 0, 10, 0, 0}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"vnet no segment size", VNET, 70, REQUEST, 0, 0, 0x0800, {1, 1, 0, 0, 34, 16}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"vnet of 12", VNET | VNET12, 72, REQUEST, 0, 0, 0x0800, {0}, GOOD + 60, {0, 0, 0}},
	{"vnet of 12 checksum", VNET | VNET12, 72, REQUEST, 0, 0, 0x0800, {1, 0, 0, 0, 34, 6},
		GOOD + 60, {0, 0, 0}},
	{"vnet of 12 short", VNET | VNET12, 11, REQUEST, 0, 0, 0x0800, {0}, -EINVAL,
		{0, WRONG, REQUEST}},
	{"dgram to nobody", DGRAM | BY_BIND, 60, REQUEST, 0, 0, 0x88b5, {0}, -EINVAL,
		{WRONG, REQUEST, REQUEST}},
	{"next offset", NEXT, 60, REQUEST, 0, 0, 0x88b5, {0}, -EINVAL, {0, WRONG, REQUEST}},
	{"vnet lossy", VNET | LOSS, 9, REQUEST, 0, 0, 0x0800, {0}, GOOD, {0, 0, 0}},
	{"vnet one segment", VNET, 90, REQUEST, 0, 0, 0x0800, {1, 1, 54, 500, 34, 16}, GOOD + 80,
		{0, 0, 0}},
};

static uint32_t
vnet_bytes(const struct row *r)
{
	return !(r->options & VNET) ? 0 : r->options & VNET12 ? 12 : 10;
}

static void
put_frame(uint8_t *p, const struct row *r, uint32_t len, const struct virtio_net_hdr *h)
{
	static const uint8_t ip[] = {
		0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};

	if (r->options & VNET) {
		memset(p, 0, vnet_bytes(r));
		memcpy(p, h, sizeof(*h));
		p += vnet_bytes(r);
	}
	if (len > 1600)
		len = 1600;
	memset(p, 0, len);
	if (r->options & DGRAM)
		return;
	memcpy(p, to.sll_addr, 6);
	p[6] = 2;
	p[12] = (uint8_t)(r->type >> 8);
	p[13] = (uint8_t)r->type;
	memcpy(p + 14, ip, sizeof(ip));
	p[46] = 0x50;
}

static void
put_slot(uint8_t *slot, int version, const struct row *r, bool good)
{
	static const struct virtio_net_hdr nothing;
	uint32_t at = sl_pktring_data(version);
	uint32_t len = good ? LEN + vnet_bytes(r) : r->len;
	uint16_t mac = good ? 64 : r->mac, off;
	uint16_t pair[2] = {mac, good ? 64 : r->net};

	off = r->options & DGRAM ? pair[1] : pair[0];
	if (version == TPACKET_V3 && off == 31)
		off = pair[r->options & DGRAM ? 1 : 0] = 47;
	if ((r->options & OFF) && off >= at && off < FRAME)
		at = off;
	put_frame(slot + at, r, len, good ? &nothing : &r->h);
	switch (version) {
	case TPACKET_V1:
		memcpy(&((struct tpacket_hdr *)slot)->tp_mac, pair, sizeof(pair));
		break;
	case TPACKET_V2:
		memcpy(&((struct tpacket2_hdr *)slot)->tp_mac, pair, sizeof(pair));
		break;
	default:
		memcpy(&((struct tpacket3_hdr *)slot)->tp_mac, pair, sizeof(pair));
		break;
	}
	sl_pktring_request(version, slot, len);
	if (!good && (r->options & NEXT))
		((struct tpacket3_hdr *)slot)->tp_next_offset = FRAME;
	if (!good)
		sl_pktring_status_set(version, slot, r->status);
}

static void
try_row(bool kernel, const struct row *r, int version)
{
	struct msghdr msg = {.msg_name = &to, .msg_namelen = sizeof(to)};
	int expect = r->expect, ret;
	struct sock k;
	uint8_t *map;

	REQUIRE(b_open(kernel, r->options & DGRAM ? SOCK_DGRAM : SOCK_RAW, 0, &k) == 0);
	if (r->options & LOSS)
		REQUIRE(b_set_int(&k, PACKET_LOSS, 1) == 0);
	if (r->options & OFF)
		REQUIRE(b_set_int(&k, PACKET_TX_HAS_OFF, 1) == 0);
	if (r->options & VNET)
		REQUIRE(b_set_int(&k, PACKET_VNET_HDR_SZ, (int)vnet_bytes(r)) == 0);
	REQUIRE(b_ring(&k, PACKET_TX_RING, version) == 0);
	map = b_map(&k, FRAME * FRAMES);
	REQUIRE(map != NULL);
	REQUIRE(b_bind_port(&k, 0) == 0);
	to.sll_ifindex = b_ifindex(&k);
	to.sll_protocol = htons(r->type);
	put_slot(map, version, r, true);
	put_slot(map + FRAME, version, r, false);
	put_slot(map + 2 * FRAME, version, r, true);
	if (r->options & BY_BIND)
		msg = (struct msghdr){0};
	ret = b_send(&k, &msg, 0);
	if (expect >= GOOD)
		expect = expect - GOOD + 2 * (int)LEN;
	if (ret != expect)
		fprintf(stderr, "%s, v%d\n", r->what, version + 1);
	CHECK_EQ(ret, expect);
	if (!kernel)
		drain(); /* what an error left pending */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t status = sl_pktring_status(version, map + i * FRAME);

		while (kernel && status == TP_STATUS_SENDING) /* a softirq may have it still */
			status = sl_pktring_status(version, map + i * FRAME);
		if (status != r->after[i])
			fprintf(stderr, "%s, v%d, slot %u\n", r->what, version + 1, i);
		CHECK_EQ(status, r->after[i]);
	}
	b_unmap(&k, map, FRAME * FRAMES);
	b_close(&k);
}

static void
try_all(bool kernel)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++)
		for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
			if (!(rows[i].options & NEXT) || v == TPACKET_V3)
				try_row(kernel, &rows[i], v);
}

/* What is wrong with the call itself, in the order in which it is found out. */
static void
call_errors(bool kernel)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_halen = 6};
	struct msghdr msg = {.msg_name = &ll, .msg_namelen = sizeof(ll)};
	struct msghdr none = {0};
	struct sock k;

	REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
	REQUIRE(b_ring(&k, PACKET_TX_RING, TPACKET_V2) == 0);
	CHECK_EQ(b_send(&k, &none, 0), -ENXIO); /* bound to nothing */
	ll.sll_ifindex = 999;
	msg.msg_namelen = sizeof(ll) - 1;
	CHECK_EQ(b_send(&k, &msg, 0), -EINVAL);
	msg.msg_namelen = sizeof(ll);
	ll.sll_halen = 9;
	CHECK_EQ(b_send(&k, &msg, 0), -EINVAL);
	ll.sll_halen = 6;
	CHECK_EQ(b_send(&k, &msg, 0), -ENXIO);
	ll.sll_ifindex = b_ifindex(&k);
	ll.sll_family = 77; /* not looked at */
	CHECK_EQ(b_send(&k, &msg, 0), 0);
	CHECK_EQ(b_send(&k, &msg, MSG_DONTWAIT), 0);
	b_close(&k);
}

static void
put_link(bool kernel, bool up)
{
	if (kernel)
		REQUIRE(system(up ? "ip link set cable0 up" : "ip link set cable0 down") == 0);
	else
		sl_psock_port_event(
			net, PORT, up ? SL_PSOCK_PORT_UP : SL_PSOCK_PORT_DOWN, SL_PSOCK_NO_WORKER);
}

/* A port that is down comes behind a bad address and before bad control data. */
static void
down_ports(bool kernel)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_halen = 9};
	struct msghdr msg = {.msg_name = &ll, .msg_namelen = sizeof(ll)};
	union {
		struct cmsghdr c;
		uint8_t bytes[CMSG_SPACE(4)];
	} bad = {.c = {.cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_SOCKET, .cmsg_type = 999}};
	struct sock k;
	uint8_t *map;

	REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
	REQUIRE(b_ring(&k, PACKET_TX_RING, TPACKET_V2) == 0);
	map = b_map(&k, FRAME * FRAMES);
	REQUIRE(map != NULL && b_bind_port(&k, 0) == 0);
	put_slot(map, TPACKET_V2, &rows[0], true);
	ll.sll_ifindex = b_ifindex(&k);
	msg.msg_control = &bad;
	msg.msg_controllen = sizeof(bad);
	put_link(kernel, false);
	CHECK_EQ(b_send(&k, &msg, 0), -EINVAL);
	ll.sll_halen = 6;
	CHECK_EQ(b_send(&k, &msg, 0), -ENETDOWN);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map), REQUEST);
	put_link(kernel, true);
	CHECK_EQ(b_send(&k, &msg, 0), -EINVAL);
	msg.msg_control = NULL;
	msg.msg_controllen = 0;
	CHECK_EQ(b_send(&k, &msg, 0), LEN);
	b_unmap(&k, map, FRAME * FRAMES);
	b_close(&k);
}

/* Control data: lengths, and types that mean something to every socket. */
static void
control_data(bool kernel)
{
	static const struct {
		int level, type;
		size_t len;
		int value, expect;
	} data[] = {{SOL_SOCKET, SO_MARK, CMSG_LEN(4), 0, LEN},
		{SOL_SOCKET, SO_MARK, CMSG_LEN(3), 0, -EINVAL},
		{SOL_SOCKET, SO_TIMESTAMPING, CMSG_LEN(4), 2, LEN},
		{SOL_SOCKET, SO_TIMESTAMPING, CMSG_LEN(4), 16, -EINVAL}, /* reports, no recording */
		{SOL_SOCKET, SO_TIMESTAMPING, CMSG_LEN(8), 2, -EINVAL},
		{SOL_SOCKET, SCM_TXTIME, CMSG_LEN(8), 0, -EINVAL}, /* not asked for */
		{SOL_SOCKET, 999, CMSG_LEN(4), 0, -EINVAL}, {IPPROTO_IP, 999, CMSG_LEN(4), 0, LEN},
		{SOL_PACKET, PACKET_AUXDATA, CMSG_LEN(4), 0, LEN},
		{SOL_SOCKET, SO_MARK, CMSG_LEN(0) - 1, 0, -EINVAL},
		{SOL_SOCKET, SO_MARK, CMSG_LEN(4000), 0, -EINVAL}};

	for (size_t i = 0; i < SL_COUNT_OF(data); i++) {
		union {
			struct cmsghdr c;
			uint8_t bytes[CMSG_SPACE(8)];
		} control = {.bytes = {0}};
		struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof(control)};
		struct sock k;
		uint8_t *map;
		int ret;

		control.c.cmsg_len = data[i].len;
		control.c.cmsg_level = data[i].level;
		control.c.cmsg_type = data[i].type;
		memcpy(CMSG_DATA(&control.c), &data[i].value, sizeof(data[i].value));
		REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
		REQUIRE(b_ring(&k, PACKET_TX_RING, TPACKET_V2) == 0);
		map = b_map(&k, FRAME * FRAMES);
		REQUIRE(map != NULL && b_bind_port(&k, 0) == 0);
		put_slot(map, TPACKET_V2, &rows[0], true);
		ret = b_send(&k, &msg, 0);
		if (ret != data[i].expect)
			fprintf(stderr, "row %zu\n", i);
		CHECK_EQ(ret, data[i].expect);
		b_unmap(&k, map, FRAME * FRAMES);
		b_close(&k);
	}
}

/* A ring's socket sends what is in the ring, whatever the call brings along. */
static void
data_is_ignored(bool kernel)
{
	uint8_t buf[1000] = {0};
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
	struct sock k;
	uint8_t *map;

	REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
	REQUIRE(b_ring(&k, PACKET_TX_RING, TPACKET_V2) == 0);
	map = b_map(&k, FRAME * FRAMES);
	REQUIRE(map != NULL && b_bind_port(&k, 0) == 0);
	CHECK_EQ(b_send(&k, &msg, 0), 0);
	put_slot(map, TPACKET_V2, &rows[0], true);
	CHECK_EQ(b_send(&k, &msg, 0), LEN);
	CHECK_EQ(b_send(&k, &msg, 0), 0);
	b_unmap(&k, map, FRAME * FRAMES);
	b_close(&k);
}

static struct virtio_net_hdr no_vnet;

/* The way without a ring. */
static void
plain_sends(bool kernel)
{
	static const struct {
		int type;
		bool vnet, named;
		uint32_t len;
		uint16_t proto;
		int expect;
	} plain[] = {
		{SOCK_RAW, false, true, 60, 0x88b5, 60}, {SOCK_RAW, false, false, 60, 0x88b5, 60},
		{SOCK_RAW, false, true, 1514, 0x88b5, 1514},
		{SOCK_RAW, false, true, 1515, 0x88b5, -EMSGSIZE},
		{SOCK_RAW, false, true, 1518, 0x8100, 1518},
		{SOCK_RAW, false, true, 1519, 0x8100, -EMSGSIZE},
		{SOCK_RAW, false, true, 13, 0, -EINVAL},
		{SOCK_RAW, true, true, 70, 0x88b5, 70}, /* the vnet header counts */
		{SOCK_RAW, true, true, 9, 0x88b5, -EINVAL},
		{SOCK_DGRAM, false, true, 60, 0x88b5, 60},
		{SOCK_DGRAM, false, true, 1500, 0x88b5, 1500},
		{SOCK_DGRAM, false, true, 1501, 0x88b5, -EMSGSIZE},
		{SOCK_DGRAM, false, false, 60, 0x88b5, -EINVAL}, /* to whom? */
	};
	uint8_t buf[2000];

	for (size_t i = 0; i < SL_COUNT_OF(plain); i++) {
		struct row r = {.type = plain[i].proto};
		struct iovec v[2] = {{buf, 7}, {buf + 7, plain[i].len - 7}};
		struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
		struct sock k;

		r.options = (plain[i].vnet ? VNET : 0) | (plain[i].type == SOCK_DGRAM ? DGRAM : 0);
		REQUIRE(b_open(kernel, plain[i].type, 0, &k) == 0);
		if (plain[i].vnet)
			REQUIRE(b_set_int(&k, PACKET_VNET_HDR, 1) == 0);
		REQUIRE(b_bind_port(&k, 0) == 0);
		put_frame(buf, &r, plain[i].len, &no_vnet);
		to.sll_ifindex = b_ifindex(&k);
		to.sll_protocol = htons(plain[i].proto);
		if (plain[i].named) {
			msg.msg_name = &to;
			msg.msg_namelen = sizeof(to);
		}
		CHECK_EQ(b_send(&k, &msg, 0), plain[i].expect);
		b_close(&k);
	}
	drain();
}

ON_BOTH(try_all)
ON_BOTH(call_errors)
ON_BOTH(down_ports)
ON_BOTH(control_data)
ON_BOTH(data_is_ignored)
ON_BOTH(plain_sends)

int
main(void)
{
	kernel_init();
	help_init("requests");
	net_open(help_progress, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(library_try_all);
	SL_TEST_RUN(kernel_try_all);
	SL_TEST_RUN(library_call_errors);
	SL_TEST_RUN(kernel_call_errors);
	SL_TEST_RUN(library_down_ports);
	SL_TEST_RUN(kernel_down_ports);
	SL_TEST_RUN(library_control_data);
	SL_TEST_RUN(kernel_control_data);
	SL_TEST_RUN(library_data_is_ignored);
	SL_TEST_RUN(kernel_data_is_ignored);
	SL_TEST_RUN(library_plain_sends);
	SL_TEST_RUN(kernel_plain_sends);
	net_close();
	net_open(help_progress, SL_PSOCK_LEND_ALWAYS);
	SL_TEST_RUN(library_try_all); /* the short ones lent, too */
	net_close();
	net_open(help_progress, SL_PSOCK_LEND_NEVER);
	SL_TEST_RUN(library_try_all);
	net_close();
	return help_end();
}
