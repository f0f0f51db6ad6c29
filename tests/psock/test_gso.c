/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Segmentation requests at a port that cannot segment, on both backends: the library over a ring in
 * memory, the host kernel over a veth end whose offloads are off. Every byte of every segment is
 * checked, checksums by adding them up.
 */
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>

#include "backend.h"

#define NONE SL_PSOCK_NO_WORKER
#define BIG 16384u /* a slot */
#define SLOTS 8u
#define SEGMENTS_MAX 256
#define GSO_UDP_L4 5
#define NEEDS VIRTIO_NET_HDR_F_NEEDS_CSUM
#define ECN VIRTIO_NET_HDR_GSO_ECN
#define BASE_ID 0xfffe /* wraps */
#define BASE_SEQ 0xffffff00u

/* Flags of a TCP header. */
#define FIN 0x01
#define PSH 0x08
#define ACK 0x10
#define CWR 0x80

static const struct shape {
	const char *what;
	bool v6, udp, vlan;
	uint8_t options; /* bytes of TCP options */
	uint8_t flags;
	uint8_t gso;
	uint16_t size;
	uint16_t payload;
} shapes[] = {
	{"TCP4", false, false, false, 0, ACK | PSH, 1, 1000, 4500},
	{"TCP4 whole", false, false, false, 12, ACK | PSH | FIN, 1, 1448, 1448 * 6},
	{"TCP4 cwr", false, false, false, 0, ACK | CWR, 1 | ECN, 100, 250},
	{"TCP4 vlan", false, false, true, 12, ACK | PSH, 1, 1400, 3000},
	{"TCP4 large segments", false, false, false, 0, ACK, 1, 1460, 15000},
	{"TCP6", true, false, false, 12, ACK | PSH, 4, 1220, 5000},
	{"TCP6 vlan", true, false, true, 0, ACK, 4, 999, 2000},
	{"UDP4", false, true, false, 0, 0, GSO_UDP_L4, 1000, 4999},
	{"UDP4 many", false, true, false, 0, 0, GSO_UDP_L4, 100, 12800},
	{"UDP6", true, true, false, 0, 0, GSO_UDP_L4, 512, 1537},
	{"UDP6 vlan", true, true, true, 0, 0, GSO_UDP_L4, 1200, 2401},
};

/* A sent packet, and what is known of it. */
struct packet {
	uint8_t bytes[BIG];
	uint32_t l3, l4, front, len;
};

static struct segments {
	uint8_t bytes[SEGMENTS_MAX][2048];
	uint32_t len[SEGMENTS_MAX];
	uint32_t n;
} got;

static uint32_t
sum16(const uint8_t *p, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void
be16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
be32(uint8_t *p, uint32_t v)
{
	be16(p, v >> 16);
	be16(p + 2, v);
}

static uint32_t
pseudo(const struct shape *s, const uint8_t *ip, uint32_t l4_len)
{
	uint32_t sum = s->v6 ? sum16(ip + 8, 32, 0) : sum16(ip + 12, 8, 0);

	return sum16(NULL, 0, sum + (s->udp ? 17 : 6) + l4_len);
}

static void
set_lengths(const struct shape *s, struct packet *p, uint8_t *bytes, uint32_t len)
{
	uint8_t *ip = bytes + p->l3;

	if (s->v6)
		be16(ip + 4, len - p->l4);
	else
		be16(ip + 2, len - p->l3);
	if (s->udp)
		be16(bytes + p->l4 + 4, len - p->l4);
}

static void
make(const struct shape *s, struct packet *p)
{
	static const uint8_t to[6] = {2, 0, 0, 0, 0, 9}, from[6] = {2, 0, 0, 0, 0, 1};
	uint8_t *ip, *l4;

	memset(p, 0, sizeof(*p));
	p->l3 = s->vlan ? 18 : 14;
	p->l4 = p->l3 + (s->v6 ? 40 : 20);
	p->front = p->l4 + (s->udp ? 8 : 20 + s->options);
	p->len = p->front + s->payload;
	memcpy(p->bytes, to, 6);
	memcpy(p->bytes + 6, from, 6);
	be16(p->bytes + 12, 0x8100);
	p->bytes[15] = 7;
	be16(p->bytes + p->l3 - 2, s->v6 ? 0x86dd : 0x0800);
	ip = p->bytes + p->l3;
	l4 = p->bytes + p->l4;
	ip[0] = s->v6 ? 0x60 : 0x45;
	ip[s->v6 ? 6 : 9] = s->udp ? 17 : 6;
	ip[s->v6 ? 7 : 8] = 64;
	for (int i = 0; i < (s->v6 ? 32 : 8); i++)
		ip[(s->v6 ? 8 : 12) + i] = (uint8_t)(0xfd - i * 3);
	if (!s->v6)
		be16(ip + 4, BASE_ID);
	be16(l4, 1000);
	be16(l4 + 2, 2000);
	if (!s->udp) {
		be32(l4 + 4, BASE_SEQ);
		be32(l4 + 8, 0x01020304);
		l4[12] = (uint8_t)((20 + s->options) / 4 << 4);
		l4[13] = s->flags;
		be16(l4 + 14, 500);
		memset(l4 + 20, 1, s->options); /* no operation */
	}
	for (uint32_t i = 0; i < s->payload; i++)
		p->bytes[p->front + i] = (uint8_t)(i * 7 + (i >> 8));
	set_lengths(s, p, p->bytes, p->len);
	be16(l4 + (s->udp ? 6 : 16), pseudo(s, ip, p->len - p->l4));
}

static struct virtio_net_hdr
request_of(const struct shape *s, const struct packet *p)
{
	return (struct virtio_net_hdr){.flags = NEEDS,
		.gso_type = s->gso,
		.hdr_len = (uint16_t)p->front,
		.gso_size = s->size,
		.csum_start = (uint16_t)p->l4,
		.csum_offset = s->udp ? 6 : 16};
}

/* The headers of segment i as they must be, but for checksums, which are 0. */
static void
expected_front(const struct shape *s, struct packet *p, uint32_t i, uint32_t len, uint8_t *front)
{
	uint32_t last = (s->payload - 1u) / s->size;

	memcpy(front, p->bytes, p->front);
	set_lengths(s, p, front, len);
	be16(front + p->l4 + (s->udp ? 6 : 16), 0);
	if (!s->v6)
		be16(front + p->l3 + 4, (BASE_ID + i) & 0xffff);
	if (s->udp)
		return;
	be32(front + p->l4 + 4, BASE_SEQ + i * s->size);
	if (i != last)
		front[p->l4 + 13] &= (uint8_t) ~(FIN | PSH);
	if (i != 0)
		front[p->l4 + 13] &= (uint8_t)~CWR;
}

static void
check_segments(const struct shape *s, struct packet *p, uint32_t first)
{
	uint32_t count = (s->payload + s->size - 1u) / s->size;

	CHECK_EQ(got.n, count - first);
	for (uint32_t k = 0; k < got.n && k + first < count; k++) {
		uint32_t i = k + first, at = i * s->size;
		uint32_t part = RTE_MIN((uint32_t)s->size, s->payload - at), len = p->front + part;
		uint8_t *b = got.bytes[k], front[128];

		CHECK_EQ(got.len[k], len);
		CHECK(memcmp(b + p->front, p->bytes + p->front + at, part) == 0);
		/* Adding everything up, checksum included, gives all ones. */
		CHECK_EQ(sum16(b + p->l4, len - p->l4, pseudo(s, b + p->l3, len - p->l4)), 0xffff);
		if (!s->v6) {
			CHECK_EQ(sum16(b + p->l3, 20, 0), 0xffff);
			be16(b + p->l3 + 10, 0);
		}
		be16(b + p->l4 + (s->udp ? 6 : 16), 0);
		expected_front(s, p, i, len, front);
		CHECK(memcmp(b, front, p->front) == 0);
	}
}

static void
keep(const uint8_t *bytes, uint32_t len)
{
	REQUIRE(got.n < SEGMENTS_MAX && len <= sizeof(got.bytes[0]));
	memcpy(got.bytes[got.n], bytes, len);
	got.len[got.n++] = len;
}

/* What the port has sent, added to `got`, but for broadcasts, which only stuff it. */
static void
collect(void)
{
	struct rte_mbuf *m[32];
	uint8_t buf[2048];
	uint16_t n;

	while ((n = rte_eth_rx_burst(PORT, 0, m, 32)) > 0) {
		for (uint16_t i = 0; i < n; i++) {
			REQUIRE(m[i]->pkt_len <= sizeof(buf));
			sl_pktring_mbuf_read(m[i], 0, buf, m[i]->pkt_len);
			if (buf[0] != 0xff)
				keep(buf, m[i]->pkt_len);
		}
		rte_pktmbuf_free_bulk(m, n);
	}
}

static void
collect_progress(void *arg, uint16_t worker)
{
	(void)arg;
	(void)worker;
	collect();
}

static int far_end = -1; /* a packet socket at the other end of the kernel's cable */

static void
far_end_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex("cable1")};

	far_end = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	REQUIRE(far_end >= 0 && bind(far_end, (struct sockaddr *)&ll, sizeof(ll)) == 0);
}

/* A tag that the kernel has taken off comes with the auxiliary data; put it back. */
static void
collect_kernel(uint32_t count)
{
	int on = 1;

	REQUIRE(setsockopt(far_end, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) == 0);
	while (got.n < count) {
		uint8_t buf[2048], control[256];
		struct iovec v = {buf + 4, sizeof(buf) - 4};
		struct msghdr msg = {.msg_iov = &v,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		struct pollfd p = {.fd = far_end, .events = POLLIN};
		struct tpacket_auxdata aux;
		ssize_t n;

		if (poll(&p, 1, 5000) != 1)
			return;
		n = recvmsg(far_end, &msg, 0);
		REQUIRE(n > 14 && CMSG_FIRSTHDR(&msg) != NULL);
		memcpy(&aux, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(aux));
		if (buf[4 + 5] != 9 || buf[4 + 11] != 1) /* the host's own talk */
			continue;
		if (aux.tp_status & TP_STATUS_VLAN_VALID) {
			memmove(buf, buf + 4, 12);
			be16(buf + 12, aux.tp_vlan_tpid);
			be16(buf + 14, aux.tp_vlan_tci);
			keep(buf, (uint32_t)n + 4);
		} else {
			keep(buf + 4, (uint32_t)n);
		}
	}
}

static int
big_ring(struct sock *k, int version, uint8_t vnet)
{
	struct tpacket_req3 req = {BIG, SLOTS, BIG, SLOTS, 0, 0, 0};

	REQUIRE(b_set_int(k, 24 /* PACKET_VNET_HDR_SZ */, vnet) == 0);
	REQUIRE(b_set_int(k, PACKET_VERSION, version) == 0);
	return b_set(k, SOL_PACKET, PACKET_TX_RING, &req,
		version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req));
}

static void
put(uint8_t *slot, int version, uint8_t vnet, const struct virtio_net_hdr *h,
	const struct packet *p)
{
	uint8_t *at = slot + sl_pktring_data(version);

	memset(at, 0, vnet);
	memcpy(at, h, sizeof(*h));
	memcpy(at + vnet, p->bytes, p->len);
	sl_pktring_request(version, slot, vnet + p->len);
}

static struct packet packet;

/* Every shape in the ring. */
static void
ring_requests(bool kernel)
{
	struct msghdr none = {0};

	for (size_t i = 0; i < SL_COUNT_OF(shapes); i++) {
		const struct shape *s = &shapes[i];
		int version = (int)(i % 3);
		uint8_t vnet = i % 2 ? 12 : 10;
		struct virtio_net_hdr h;
		struct sock k;
		uint8_t *map;
		int before = test_bad;

		got.n = 0;
		make(s, &packet);
		h = request_of(s, &packet);
		REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
		REQUIRE(big_ring(&k, version, vnet) == 0);
		map = b_map(&k, BIG * SLOTS);
		REQUIRE(map != NULL && b_bind_port(&k, 0) == 0);
		put(map, version, vnet, &h, &packet);
		CHECK_EQ(b_send(&k, &none, 0), packet.len);
		CHECK_EQ(sl_pktring_status(version, map), TP_STATUS_AVAILABLE);
		if (kernel)
			collect_kernel((s->payload + s->size - 1u) / s->size);
		else
			collect();
		check_segments(s, &packet, 0);
		b_unmap(&k, map, BIG * SLOTS);
		b_close(&k);
		if (test_bad != before)
			fprintf(stderr, "%s\n", s->what);
	}
}

/* The way without a ring: the vnet header's bytes count. */
static void
plain_requests(bool kernel)
{
	for (size_t i = 0; i < SL_COUNT_OF(shapes); i++) {
		const struct shape *s = &shapes[i];
		struct virtio_net_hdr h;
		struct iovec v[2] = {{&h, sizeof(h)}, {packet.bytes, 0}};
		struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
		struct sock k;

		got.n = 0;
		make(s, &packet);
		h = request_of(s, &packet);
		v[1].iov_len = packet.len;
		REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
		REQUIRE(b_set_int(&k, PACKET_VNET_HDR, 1) == 0 && b_bind_port(&k, 0) == 0);
		CHECK_EQ(b_send(&k, &msg, 0), sizeof(h) + packet.len);
		if (kernel)
			collect_kernel((s->payload + s->size - 1u) / s->size);
		else
			collect();
		check_segments(s, &packet, 0);
		b_close(&k);
	}
}

ON_BOTH(ring_requests)
ON_BOTH(plain_requests)

/* A ring of the library with a request in each of its first slots. */
static uint8_t *
ring_with(struct sock *k, const struct shape *s, uint32_t requests)
{
	struct virtio_net_hdr h;
	uint8_t *map;

	got.n = 0;
	make(s, &packet);
	h = request_of(s, &packet);
	REQUIRE(b_open(false, SOCK_RAW, 0, k) == 0);
	REQUIRE(big_ring(k, TPACKET_V2, 10) == 0);
	map = b_map(k, BIG * SLOTS);
	REQUIRE(map != NULL && b_bind_port(k, 0) == 0);
	for (uint32_t i = 0; i < requests; i++)
		put(map + i * BIG, TPACKET_V2, 10, &h, &packet);
	return map;
}

/* Fill the port's ring but for `room` places. */
static void
stuff(uint32_t room)
{
	struct rte_mbuf *m = frame(0x0800, 60);
	uint32_t n = 0;

	while (rte_eth_tx_burst(PORT, 0, &m, 1) == 1) {
		m = frame(0x0800, 60);
		n++;
	}
	rte_pktmbuf_free(m);
	REQUIRE(n > room);
	while (room > 0 && rte_eth_rx_burst(PORT, 0, &m, 1) == 1) {
		rte_pktmbuf_free(m);
		room--;
	}
}

/* A full port keeps a request that it took nothing of, and gets the rest of one that it took a part
 * of before anything else. Whoever listens has seen each segment once. */
static void
a_full_port_gets_the_rest_later(void)
{
	struct sl_psock *tap = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct sock k;
	uint8_t *map = ring_with(&k, &shapes[0], 2), buf[2048];
	uint32_t seen = 0;

	stuff(0);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), -ENOBUFS);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map), TP_STATUS_SEND_REQUEST);
	drain();
	stuff(3);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), packet.len); /* three segments of five, then full */
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map), TP_STATUS_AVAILABLE);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map + BIG), TP_STATUS_SEND_REQUEST);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), -ENOBUFS);
	drain();
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), packet.len);
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map + BIG), TP_STATUS_AVAILABLE);
	collect();
	REQUIRE(got.n == 7);
	got.n = 2;
	check_segments(&shapes[0], &packet, 3);
	memmove(got.bytes[0], got.bytes[2], sizeof(got.bytes[0]) * 5);
	memmove(got.len, got.len + 2, sizeof(got.len[0]) * 5);
	got.n = 5;
	check_segments(&shapes[0], &packet, 0);
	while (sock_recv(tap, buf, sizeof(buf), 0, NULL) > 0)
		seen++;
	CHECK_EQ(seen, 10);
	CHECK_EQ(k.s->tx_segments, 10);
	CHECK_EQ(k.s->tx_dropped, 0);
	CHECK_EQ(k.s->tx_packets, 2);
	b_unmap(&k, map, BIG * SLOTS);
	b_close(&k);
	sl_psock_close(tap, NONE);
}

static void
a_blocking_send_sends_all(void)
{
	struct sock k;
	uint8_t *map;

	net_close();
	net_open(collect_progress, SL_PSOCK_LEND_AUTO);
	map = ring_with(&k, &shapes[8], 1); /* 128 segments */
	stuff(10);
	CHECK_EQ(sock_kick(k.s, 0), packet.len);
	collect();
	check_segments(&shapes[8], &packet, 0);
	b_unmap(&k, map, BIG * SLOTS);
	b_close(&k);
	net_close();
	net_open(NULL, SL_PSOCK_LEND_AUTO);
}

/* Plain frames in the same ring stay where they are in the order. */
static void
order_is_kept(void)
{
	struct virtio_net_hdr nothing = {0}, h;
	static struct packet small;
	struct sock k;
	uint8_t *map = ring_with(&k, &shapes[0], 0);

	h = request_of(&shapes[0], &packet);
	memcpy(small.bytes, packet.bytes, 14);
	small.len = 60;
	put(map, TPACKET_V2, 10, &nothing, &small);
	put(map + BIG, TPACKET_V2, 10, &h, &packet);
	put(map + 2 * BIG, TPACKET_V2, 10, &nothing, &small);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), 2 * 60 + packet.len);
	collect();
	REQUIRE(got.n == 7);
	CHECK_EQ(got.len[0], 60);
	CHECK_EQ(got.len[6], 60);
	memmove(got.bytes[0], got.bytes[1], sizeof(got.bytes[0]) * 5);
	memmove(got.len, got.len + 1, sizeof(got.len[0]) * 5);
	got.n = 5;
	check_segments(&shapes[0], &packet, 0);
	b_unmap(&k, map, BIG * SLOTS);
	b_close(&k);
}

static void
without_mbufs_the_request_stays(void)
{
	static struct rte_mbuf *all[2048];
	struct sock k;
	uint8_t *map = ring_with(&k, &shapes[0], 1);
	uint32_t n = 0, left;

	while (n < 2047 && (all[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	/* With 0.. mbufs the copy cannot be made, then no segment, then some. */
	for (left = 0; left < 8; left++) {
		ssize_t ret = sock_kick(k.s, MSG_DONTWAIT);

		if (ret != -EAGAIN)
			break;
		CHECK_EQ(sl_pktring_status(TPACKET_V2, map), TP_STATUS_SEND_REQUEST);
		rte_pktmbuf_free(all[--n]);
	}
	CHECK_EQ(left, 4); /* three for the copy, one for a segment */
	CHECK_EQ(sl_pktring_status(TPACKET_V2, map), TP_STATUS_AVAILABLE);
	rte_pktmbuf_free_bulk(all, n);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), 0); /* what was left of it, no request of its own */
	collect();
	check_segments(&shapes[0], &packet, 0);
	b_unmap(&k, map, BIG * SLOTS);
	b_close(&k);
}

/* Closing with a rest loses it, and says so; nothing else is lost. */
static void
a_closed_ring_drops_the_rest(void)
{
	struct tpacket_req none = {0};
	struct sock k;
	uint8_t *map = ring_with(&k, &shapes[0], 1);

	stuff(1);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), packet.len);
	b_unmap(&k, map, BIG * SLOTS);
	CHECK_EQ(b_set(&k, SOL_PACKET, PACKET_TX_RING, &none, sizeof(none)), 0);
	CHECK_EQ(k.s->tx_dropped, 4);
	CHECK_EQ(k.s->tx_segments, 1);
	b_close(&k);
	drain();
	map = ring_with(&k, &shapes[0], 1);
	stuff(1);
	CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), packet.len);
	b_unmap(&k, map, BIG * SLOTS);
	b_close(&k);
	drain();
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

/* Without a ring nothing keeps a rest either. */
static void
a_plain_send_takes_what_goes(void)
{
	struct virtio_net_hdr h;
	struct iovec v[2] = {{&h, sizeof(h)}, {packet.bytes, 0}};
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
	struct sl_psock *s = sock_bound(SOCK_RAW, 0);

	make(&shapes[0], &packet);
	h = request_of(&shapes[0], &packet);
	v[1].iov_len = packet.len;
	REQUIRE(sock_set(s, PACKET_VNET_HDR, 1) == 0);
	stuff(0);
	CHECK_EQ(sl_psock_sendmsg(s, &msg, 0, NONE), -ENOBUFS);
	drain();
	stuff(2);
	CHECK_EQ(sl_psock_sendmsg(s, &msg, 0, NONE), sizeof(h) + packet.len);
	CHECK_EQ(s->tx_segments, 2);
	CHECK_EQ(s->tx_dropped, 3);
	drain();
	sl_psock_close(s, NONE);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

/* What cannot be cut is refused, and the slot says so. */
static void
what_cannot_be_cut_is_refused(void)
{
	static const struct {
		int shape;
		uint8_t gso;
		int16_t start, offset; /* added to what is right */
	} rows[] = {{7, VIRTIO_NET_HDR_GSO_UDP, 0, 0}, {0, 4, 0, 0}, {5, 1, 0, 0},
		{0, GSO_UDP_L4, 0, -10}, {7, 1, 0, 10}, {0, 1, 2, 0}, {7, GSO_UDP_L4, 8, 0}};

	for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
		struct sock k;
		uint8_t *map = ring_with(&k, &shapes[rows[i].shape], 0);
		struct virtio_net_hdr h = request_of(&shapes[rows[i].shape], &packet);

		h.gso_type = rows[i].gso;
		h.csum_start = (uint16_t)(h.csum_start + rows[i].start);
		h.csum_offset = (uint16_t)(h.csum_offset + rows[i].offset);
		put(map, TPACKET_V2, 10, &h, &packet);
		CHECK_EQ(sock_kick(k.s, MSG_DONTWAIT), -EINVAL);
		CHECK_EQ(sl_pktring_status(TPACKET_V2, map), TP_STATUS_WRONG_FORMAT);
		CHECK_EQ(drain(), 0);
		b_unmap(&k, map, BIG * SLOTS);
		b_close(&k);
	}
}

int
main(void)
{
	kernel_init();
	if (kernel_ifindex != 0) {
		REQUIRE(system("ethtool -K cable0 tx off >/dev/null && "
			       "ethtool -K cable1 rxvlan off >/dev/null") == 0);
		far_end_open();
	}
	help_init("gso");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(library_ring_requests);
	SL_TEST_RUN(kernel_ring_requests);
	SL_TEST_RUN(library_plain_requests);
	SL_TEST_RUN(kernel_plain_requests);
	SL_TEST_RUN(a_full_port_gets_the_rest_later);
	SL_TEST_RUN(a_blocking_send_sends_all);
	SL_TEST_RUN(order_is_kept);
	SL_TEST_RUN(without_mbufs_the_request_stays);
	SL_TEST_RUN(a_closed_ring_drops_the_rest);
	SL_TEST_RUN(a_plain_send_takes_what_goes);
	SL_TEST_RUN(what_cannot_be_cut_is_refused);
	net_close();
	return help_end();
}
