/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What the kernel is told of a port's frame, and what packets become of the kernel's, by what the
 * port can do itself. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "exception_priv.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define MBUFS 127u
#define ROOM 1024u /* of data, in an mbuf */
#define FRAME_MAX 65000u
#define MSS 500u

static struct rte_mempool *pool;
static uint8_t frame[FRAME_MAX];

struct like {
	bool v6, udp;
	uint32_t tags;	  /* of the port's frames; the tap's have none */
	uint32_t options; /* bytes of TCP's */
	uint32_t payload;
};

static uint32_t
l3_len(const struct like *l)
{
	return l->v6 ? 40 : 20;
}

static uint32_t
l4_len(const struct like *l)
{
	return l->udp ? 8 : 20 + l->options;
}

static uint32_t
l4_at(const struct like *l)
{
	return 14 + 4 * l->tags + l3_len(l);
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
build_ip(uint8_t *p, const struct like *l)
{
	uint32_t len = l4_len(l) + l->payload;
	uint16_t sum;

	memset(p, 0, l3_len(l));
	if (l->v6) {
		p[0] = 0x60;
		put16(p + 4, len);
		p[6] = l->udp ? IPPROTO_UDP : IPPROTO_TCP;
		memset(p + 8, 0x20, 32);
		return;
	}
	p[0] = 0x45;
	put16(p + 2, 20 + len);
	put16(p + 4, 0xfffe); /* the identification wraps */
	p[8] = 64;
	p[9] = l->udp ? IPPROTO_UDP : IPPROTO_TCP;
	memcpy(p + 12, "\x0a\0\0\1\x0a\0\0\2", 8);
	sum = rte_ipv4_cksum((struct rte_ipv4_hdr *)p);
	memcpy(p + 10, &sum, 2);
}

/* The pseudo header's sum is in the checksum's field, as the kernel leaves it. Returns its length.
 */
static uint32_t
build(const struct like *l)
{
	uint8_t *ip = frame + 14 + 4 * l->tags, *l4 = ip + l3_len(l);
	uint16_t sum;

	memcpy(frame, "\2\0\0\0\0\2\2\0\0\0\0\1", 12);
	for (uint32_t i = 0; i < l->tags; i++)
		memcpy(frame + 12 + 4 * i, "\x81\0\0\7", 4);
	memcpy(ip - 2, l->v6 ? "\x86\xdd" : "\x08\0", 2);
	build_ip(ip, l);
	memset(l4, 0, l4_len(l));
	memcpy(l4, "\0\1\0\2", 4);
	if (l->udp) {
		put16(l4 + 4, 8 + l->payload);
	} else {
		memcpy(l4 + 4, "\xff\xff\xff\xf0", 4); /* so does the sequence number */
		l4[12] = (uint8_t)(l4_len(l) / 4 << 4);
		l4[13] = 0x99; /* CWR, ACK, PSH, FIN */
	}
	sum = l->v6 ? rte_ipv6_phdr_cksum((struct rte_ipv6_hdr *)ip, 0)
		    : rte_ipv4_phdr_cksum((struct rte_ipv4_hdr *)ip, 0);
	memcpy(l4 + (l->udp ? 6 : 16), &sum, 2);
	for (uint32_t i = 0; i < l->payload; i++)
		l4[l4_len(l) + i] = (uint8_t)(i * 7 + (i >> 8));
	return l4_at(l) + l4_len(l) + l->payload;
}

static struct sl_tapq_vnet_hdr
asks(const struct like *l)
{
	return (struct sl_tapq_vnet_hdr){.flags = SL_TAPQ_VNET_NEEDS_CSUM,
		.csum_start = (uint16_t)l4_at(l),
		.csum_offset = l->udp ? 6 : 16};
}

static struct sl_tapq_vnet_hdr
asks_segments(const struct like *l)
{
	struct sl_tapq_vnet_hdr h = asks(l);

	h.gso_type = l->v6 ? SL_TAPQ_VNET_GSO_TCPV6 : SL_TAPQ_VNET_GSO_TCPV4;
	h.gso_size = MSS;
	h.hdr_len = (uint16_t)(l4_at(l) + l4_len(l));
	return h;
}

/* ---- to the kernel ---- */

static struct sl_tapq_vnet_hdr
told(const struct like *l, uint64_t flags, uint16_t segment)
{
	struct rte_mbuf m = {.ol_flags = flags, .tso_segsz = segment};
	uint32_t len = build(l), head = RTE_MIN(len, 128u);
	struct sl_inet_frame f = {.head = frame,
		.head_len = head,
		.m = &m,
		.off = head,
		.len = len - head,
		.l2_len = (uint16_t)(14 + 4 * l->tags)};
	struct sl_tapq_vnet_hdr h;

	memset(&h, 0xff, sizeof(h));
	exception_to_kernel(&f, &h);
	return h;
}

static bool
same(struct sl_tapq_vnet_hdr a, struct sl_tapq_vnet_hdr b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static const struct like all[] = {{.payload = 700}, {.v6 = true, .payload = 700},
	{.udp = true, .payload = 700}, {.udp = true, .v6 = true, .payload = 700},
	{.tags = 1, .payload = 3}, {.tags = 2, .v6 = true, .options = 12, .payload = 0},
	{.options = 40, .payload = 5000}};

static void
a_checksum_is_as_the_port_says(void)
{
	const struct sl_tapq_vnet_hdr none = {0}, good = {.flags = SL_TAPQ_VNET_DATA_VALID};

	for (size_t i = 0; i < SL_COUNT_OF(all); i++) {
		const struct like *l = &all[i];
		struct like bare = *l;

		bare.tags = 0; /* the kernel gets the frame without */
		CHECK(same(told(l, 0, 0), none));
		CHECK(same(told(l, RTE_MBUF_F_RX_L4_CKSUM_BAD, 0), none));
		CHECK(same(told(l, RTE_MBUF_F_RX_L4_CKSUM_GOOD, 0), good));
		CHECK(same(told(l, RTE_MBUF_F_RX_L4_CKSUM_NONE, 0), asks(&bare)));
	}
}

static void
a_frame_that_came_joined_goes_so(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(all); i++) {
		struct like bare = all[i];
		struct sl_tapq_vnet_hdr want, got;

		bare.tags = 0;
		want = bare.udp ? asks(&bare) : asks_segments(&bare);
		got = told(&all[i], RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE, MSS);
		CHECK(same(got, want));
		/* Verified ones are so in each segment. */
		want = bare.udp ? (struct sl_tapq_vnet_hdr){0} : asks_segments(&bare);
		want.flags = SL_TAPQ_VNET_DATA_VALID;
		want.csum_start = want.csum_offset = 0;
		got = told(&all[i], RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_GOOD, MSS);
		CHECK(same(got, want));
	}
}

/* Nothing is said of headers that are not there, whatever the frame says of itself. */
static void
nothing_is_said_of_what_is_not_seen(void)
{
	struct rte_mbuf m = {
		.ol_flags = RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE, .tso_segsz = MSS};
	const struct sl_tapq_vnet_hdr none = {0};
	struct sl_tapq_vnet_hdr h;

	for (size_t i = 0; i < SL_COUNT_OF(all); i++) {
		const struct like *l = &all[i];
		uint32_t headers = l4_at(l) + (l->udp ? 8u : 20u);
		struct sl_inet_frame f = {
			.head = frame, .m = &m, .l2_len = (uint16_t)(14 + 4 * l->tags)};

		(void)build(l);
		for (f.head_len = f.l2_len; f.head_len <= headers; f.head_len++) {
			exception_to_kernel(&f, &h);
			CHECK(same(h, none) == (f.head_len < headers));
		}
		if (l->v6)
			continue;
		for (uint32_t words = 0; words < 5; words++) {
			frame[f.l2_len] = (uint8_t)(0x40 | words);
			exception_to_kernel(&f, &h);
			CHECK(same(h, none));
		}
	}
}

/* ---- from the kernel ---- */

static const struct exception_port plain = {.pool = NULL};
static const struct exception_port sums = {.tcp_cksum = true, .udp_cksum = true};
static const struct exception_port cuts = {.tcp_cksum = true, .udp_cksum = true, .tso = true};

struct packets {
	int ret; /* of exception_begin */
	bool all;
	uint32_t n;
	struct rte_mbuf *m[MBUFS];
};

static struct packets
take(const struct exception_port *port, struct sl_tapq_vnet_hdr h, uint32_t len)
{
	struct exception_port with_pool = *port;
	struct exception_packets p = {.port = &with_pool, .frame = frame, .len = len};
	struct packets out = {.n = 0};

	with_pool.pool = pool;
	out.ret = exception_begin(&p, &h);
	if (out.ret != 0)
		return out;
	while ((out.m[out.n] = exception_next(&p)) != NULL)
		out.n++;
	out.all = p.next == p.segments;
	return out;
}

static void
give_back(struct packets *p)
{
	rte_pktmbuf_free_bulk(p->m, p->n);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

/* In one piece. */
static const uint8_t *
flat(const struct rte_mbuf *m)
{
	static uint8_t copy[FRAME_MAX];
	const char *why;

	REQUIRE(m->pkt_len <= sizeof(copy));
	CHECK(rte_mbuf_check(m, 1, &why) == 0);
	return rte_pktmbuf_read(m, 0, m->pkt_len, copy);
}

static bool
l4_sum_right(const struct like *l, const uint8_t *p)
{
	const uint8_t *ip = p + 14, *l4 = p + l4_at(l);

	return l->v6 ? rte_ipv6_udptcp_cksum_verify((const struct rte_ipv6_hdr *)ip, l4) == 0
		     : rte_ipv4_udptcp_cksum_verify((const struct rte_ipv4_hdr *)ip, l4) == 0;
}

static void
check_asked(const struct like *l, const struct rte_mbuf *m, uint64_t more)
{
	uint64_t sum = l->udp ? RTE_MBUF_F_TX_UDP_CKSUM : RTE_MBUF_F_TX_TCP_CKSUM;

	CHECK(m->ol_flags == (sum | (l->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4) | more));
	CHECK(m->l2_len == 14 && m->l3_len == l3_len(l) && m->l4_len == l4_len(l));
}

static void
a_frame_that_asks_for_nothing_goes_as_it_is(void)
{
	for (uint32_t len = 14; len < 4 * ROOM; len += 101) {
		const struct sl_tapq_vnet_hdr h = {0};
		struct packets p;

		(void)build(&all[6]);
		p = take(&cuts, h, len);
		CHECK(p.ret == 0 && p.all && p.n == 1);
		CHECK(p.m[0]->pkt_len == len && p.m[0]->ol_flags == 0);
		CHECK(memcmp(flat(p.m[0]), frame, len) == 0);
		give_back(&p);
	}
}

static void
a_checksum_is_the_ports_if_it_makes_such(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(all); i++) {
		struct like l = all[i];
		uint32_t len;
		struct packets p;

		l.tags = 0;
		len = build(&l);
		p = take(&sums, asks(&l), len);
		CHECK(p.ret == 0 && p.all && p.n == 1);
		check_asked(&l, p.m[0], 0);
		CHECK(memcmp(flat(p.m[0]), frame, len) == 0);
		give_back(&p);
		p = take(&plain, asks(&l), len);
		CHECK(p.ret == 0 && p.all && p.n == 1 && p.m[0]->ol_flags == 0);
		CHECK(p.m[0]->pkt_len == len && l4_sum_right(&l, flat(p.m[0])));
		give_back(&p);
	}
}

/* One that a port would look for elsewhere is made here. */
static void
a_checksum_of_another_place_is_made_here(void)
{
	static const struct {
		uint16_t start, offset;
	} places[] = {{34, 6}, {34, 18}, {36, 16}, {14, 16}, {0, 100}};
	const struct like l = {.payload = 301};

	for (size_t i = 0; i < SL_COUNT_OF(places); i++) {
		struct sl_tapq_vnet_hdr h = asks(&l);
		uint32_t len = build(&l), start = places[i].start;
		/* Whatever is in the field is part of the sum. */
		uint16_t sum = (uint16_t)~rte_raw_cksum(frame + start, len - start);
		struct packets p;

		h.csum_start = places[i].start;
		h.csum_offset = places[i].offset;
		p = take(&cuts, h, len);
		CHECK(p.ret == 0 && p.all && p.n == 1 && p.m[0]->ol_flags == 0);
		CHECK(memcmp(flat(p.m[0]) + start + h.csum_offset, &sum, 2) == 0);
		(void)build(&l);
		memcpy(frame + start + h.csum_offset, &sum, 2);
		CHECK(memcmp(flat(p.m[0]), frame, len) == 0);
		give_back(&p);
	}
}

static void
check_segment(const struct like *l, const uint8_t *p, uint32_t i, uint32_t n, uint32_t len)
{
	uint32_t headers = l4_at(l) + l4_len(l), at = i * MSS;
	uint32_t want = RTE_MIN(l->payload - at, MSS);
	const uint8_t *l4 = p + l4_at(l);
	uint8_t flags = (uint8_t)(0x10 | (i == 0 ? 0x80 : 0) | (i + 1 == n ? 9 : 0));

	CHECK_EQ(len, headers + want);
	CHECK_EQ((uint32_t)(p[14 + (l->v6 ? 4 : 2)] << 8 | p[14 + (l->v6 ? 5 : 3)]),
		len - 14 - (l->v6 ? 40 : 0));
	CHECK_EQ((uint32_t)l4[4] << 24 | l4[5] << 16 | l4[6] << 8 | l4[7], 0xfffffff0u + at);
	CHECK_EQ(l4[13], flags);
	CHECK(memcmp(p + headers, frame + headers + at, want) == 0);
	if (l->v6)
		return;
	CHECK_EQ((uint32_t)(p[18] << 8 | p[19]), (0xfffeu + i) & 0xffff);
	CHECK_EQ(rte_raw_cksum(p + 14, 20), 0xffff);
}

static void
segments_are_made_for_a_port_that_cannot(void)
{
	static const uint32_t payloads[] = {MSS + 1, 2 * MSS, 2 * MSS + 1, 40 * MSS - 1};

	for (size_t i = 0; i < 2 * SL_COUNT_OF(payloads); i++) {
		const struct like l = {.v6 = i % 2 != 0, .options = 12, .payload = payloads[i / 2]};
		const struct exception_port *port = i % 3 != 0 ? &plain : &sums;
		uint32_t len = build(&l);
		struct packets p = take(port, asks_segments(&l), len);

		CHECK(p.ret == 0 && p.all);
		CHECK_EQ(p.n, (l.payload + MSS - 1) / MSS);
		for (uint32_t k = 0; k < p.n; k++) {
			check_segment(&l, flat(p.m[k]), k, p.n, p.m[k]->pkt_len);
			if (port == &plain)
				CHECK(p.m[k]->ol_flags == 0 && l4_sum_right(&l, flat(p.m[k])));
			else
				check_asked(&l, p.m[k], 0);
		}
		give_back(&p);
	}
}

static void
a_port_that_segments_gets_all_in_one(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		const struct like l = {.v6 = v6 != 0, .options = 12, .payload = 20000};
		uint32_t len = build(&l);
		struct packets p = take(&cuts, asks_segments(&l), len);

		CHECK(p.ret == 0 && p.all && p.n == 1 && p.m[0]->pkt_len == len);
		check_asked(
			&l, p.m[0], RTE_MBUF_F_TX_TCP_SEG | (l.v6 ? 0 : RTE_MBUF_F_TX_IP_CKSUM));
		CHECK_EQ(p.m[0]->tso_segsz, MSS);
		CHECK(memcmp(flat(p.m[0]), frame, len) == 0);
		give_back(&p);
	}
}

/* CWR with the first segment alone; and a checksum that nobody asked for, which each segment needs
 * all the same. */
static void
what_flags_cannot_say_is_cut_here(void)
{
	const struct like l = {.payload = 3 * MSS};
	struct sl_tapq_vnet_hdr h = asks_segments(&l);
	uint32_t len = build(&l);
	struct packets p;

	h.gso_type |= SL_TAPQ_VNET_GSO_ECN;
	p = take(&cuts, h, len);
	CHECK(p.ret == 0 && p.all && p.n == 3);
	check_asked(&l, p.m[1], 0);
	give_back(&p);
	h = asks_segments(&l);
	h.flags = 0;
	h.csum_start = h.csum_offset = 0;
	p = take(&cuts, h, len);
	CHECK(p.ret == 0 && p.all && p.n == 3);
	check_asked(&l, p.m[2], 0);
	give_back(&p);
}

static void
headers_that_contradict_the_frame_are_refused(void)
{
	const struct like l = {.payload = 3 * MSS};
	uint32_t len = build(&l);
	struct sl_tapq_vnet_hdr h[] = {asks(&l), asks(&l), asks_segments(&l), asks_segments(&l),
		asks_segments(&l), asks_segments(&l), asks_segments(&l)};

	h[0].csum_start = (uint16_t)len;
	h[1].csum_offset = UINT16_MAX;
	h[2].gso_size = 0;
	h[3].gso_type = 77;
	h[4].gso_type = SL_TAPQ_VNET_GSO_TCPV6;
	h[5].csum_start = 38; /* not where TCP is, which matters for segments */
	h[6].hdr_len = (uint16_t)(len + 1);
	for (size_t i = 0; i < SL_COUNT_OF(h); i++) {
		CHECK_EQ(take(&cuts, h[i], len).ret, -EINVAL);
		CHECK_EQ(take(&plain, h[i], len).ret, -EINVAL);
	}
	for (uint32_t n = 0; n < 14; n++)
		CHECK_EQ(take(&plain, (struct sl_tapq_vnet_hdr){0}, n).ret, -EINVAL);
}

static void
without_packets_the_rest_is_lost(void)
{
	const struct like l = {.payload = 40 * MSS};
	struct rte_mbuf *held[MBUFS];
	struct packets p;
	uint32_t len = build(&l);

	REQUIRE(rte_pktmbuf_alloc_bulk(pool, held, MBUFS - 10) == 0);
	p = take(&plain, asks_segments(&l), len);
	CHECK(p.ret == 0 && !p.all && p.n == 10);
	rte_pktmbuf_free_bulk(p.m, p.n);
	/* In one chain it takes twenty. */
	p = take(&cuts, asks_segments(&l), len);
	CHECK(p.ret == 0 && !p.all && p.n == 0);
	CHECK_EQ(rte_mempool_avail_count(pool), 10);
	rte_pktmbuf_free_bulk(held, MBUFS - 10);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=error") >= 0);
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + ROOM, 0);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(a_checksum_is_as_the_port_says);
	SL_TEST_RUN(a_frame_that_came_joined_goes_so);
	SL_TEST_RUN(nothing_is_said_of_what_is_not_seen);
	SL_TEST_RUN(a_frame_that_asks_for_nothing_goes_as_it_is);
	SL_TEST_RUN(a_checksum_is_the_ports_if_it_makes_such);
	SL_TEST_RUN(a_checksum_of_another_place_is_made_here);
	SL_TEST_RUN(segments_are_made_for_a_port_that_cannot);
	SL_TEST_RUN(a_port_that_segments_gets_all_in_one);
	SL_TEST_RUN(what_flags_cannot_say_is_cut_here);
	SL_TEST_RUN(headers_that_contradict_the_frame_are_refused);
	SL_TEST_RUN(without_packets_the_rest_is_lost);
	return test_end();
}
