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
	{"vnet lossy", VNET | LOSS, 9, REQUEST, 0, 0, 0x0800, {0}, GOOD, {0, 0, 0}},
	{"vnet one segment", VNET, 90, REQUEST, 0, 0, 0x0800, {1, 1, 54, 500, 34, 16}, GOOD + 80,
		{0, 0, 0}},
};

static void
put_frame(uint8_t *p, const struct row *r, uint32_t len, const struct virtio_net_hdr *h)
{
	static const uint8_t ip[] = {
		0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};

	if (r->options & VNET) {
		memcpy(p, h, sizeof(*h));
		p += sizeof(*h);
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
	uint32_t len = good ? LEN + (r->options & VNET ? 10 : 0) : r->len;
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
		REQUIRE(b_set_int(&k, PACKET_VNET_HDR, 1) == 0);
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

static void
library_requests(void)
{
	try_all(false);
}

static void
kernel_requests(void)
{
	if (kernel_ifindex == 0)
		SKIP("packet sockets on the host kernel need CAP_NET_ADMIN and CAP_NET_RAW");
	try_all(true);
}

static void
library_call_errors(void)
{
	call_errors(false);
}

static void
kernel_call_errors(void)
{
	if (kernel_ifindex == 0)
		SKIP("packet sockets on the host kernel need CAP_NET_ADMIN and CAP_NET_RAW");
	call_errors(true);
}

static void
library_plain_sends(void)
{
	plain_sends(false);
}

static void
kernel_plain_sends(void)
{
	if (kernel_ifindex == 0)
		SKIP("packet sockets on the host kernel need CAP_NET_ADMIN and CAP_NET_RAW");
	plain_sends(true);
}

int
main(void)
{
	kernel_init();
	help_init("requests");
	net_open(help_progress, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(library_requests);
	SL_TEST_RUN(kernel_requests);
	SL_TEST_RUN(library_call_errors);
	SL_TEST_RUN(kernel_call_errors);
	SL_TEST_RUN(library_plain_sends);
	SL_TEST_RUN(kernel_plain_sends);
	net_close();
	return help_end();
}
