/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The byte level of the driver: ring geometry, header parsing, vnet header, segmentation. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_mbuf_ptype.h>

#include "sl_test.h"
#include "tpacket_wire.h"

#define NEEDS_CSUM 1
#define DATA_VALID 2

/* ---- geometry
 * ------------------------------------------------------------------------------------ */

static void
check_geometry(const struct tpacket_geom *g, const struct tpacket_geom_ask *ask)
{
	uint32_t n;
	size_t at;

	/* What the kernel demands. */
	CHECK(g->block_size % ask->page == 0 && g->block_size > 0);
	CHECK(g->frame_size % 16 == 0);
	CHECK_EQ(g->per_block, g->block_size / g->frame_size);
	CHECK_EQ(g->frame_nr, g->per_block * g->block_nr);
	CHECK(g->frame_nr >= ask->frame_nr);
	CHECK(g->frame_size >= ask->frame_size);
	/* No frame crosses a block, none overlaps the one before it, the last is inside the ring.
	 */
	for (n = 0; n < g->frame_nr && n < 5000; n++) {
		at = tpacket_geom_offset(g, n);
		CHECK(at % g->block_size + g->frame_size <= g->block_size);
		CHECK(n == 0 || at >= tpacket_geom_offset(g, n - 1) + g->frame_size);
		CHECK(at + g->frame_size <= (size_t)g->block_size * g->block_nr);
	}
}

static void
every_asked_geometry_is_one_that_the_kernel_takes(void)
{
	static const uint32_t frames[] = {
		0, 128, 130, 240, 256, 1600, 1616, 2048, 2050, 4096, 65552};
	static const uint32_t blocks[] = {0, 1, 4096, 5000, 8192, 65536, 1u << 20};
	static const uint32_t counts[] = {0, 1, 2, 33, 512, 1000};
	struct tpacket_geom_ask ask = {.slot = 1626, .page = 4096};
	struct tpacket_geom g;
	size_t f, b, c;
	bool changed;

	for (f = 0; f < SL_COUNT_OF(frames); f++)
		for (b = 0; b < SL_COUNT_OF(blocks); b++)
			for (c = 0; c < SL_COUNT_OF(counts); c++) {
				ask.frame_size = frames[f];
				ask.block_size = blocks[b];
				ask.frame_nr = counts[c];
				CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
				check_geometry(&g, &ask);
			}
}

static void
a_derived_block_wastes_little_and_rounding_is_told(void)
{
	struct tpacket_geom_ask ask = {.page = 4096, .frame_nr = 64};
	struct tpacket_geom g;
	uint32_t slot;
	bool changed;

	for (slot = 200; slot < 10000; slot += 7) {
		ask.slot = slot;
		CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
		CHECK(g.frame_size >= slot && g.frame_size < slot + 64);
		CHECK((g.block_size - g.per_block * g.frame_size) * 16 <= g.block_size);
		CHECK_EQ(changed, g.frame_nr != 64);
	}
	ask = (struct tpacket_geom_ask){.slot = 1600,
		.page = 4096,
		.frame_size = 2048,
		.block_size = 4096,
		.frame_nr = 512};
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
	CHECK(!changed && g.block_nr == 256 && g.per_block == 2);
	ask.block_size = 5000;
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
	CHECK(changed && g.block_size == 8192);
}

static void
version_3_blocks_hold_the_largest_frame(void)
{
	struct tpacket_geom_ask ask = {.slot = 1626,
		.page = 4096,
		.frame_nr = 100,
		.whole_blocks = true,
		.block_least = TPACKET_SUPER_MAX + 200};
	struct tpacket_geom g;
	bool changed;

	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
	CHECK(g.block_size >= ask.block_least && g.block_nr >= 4);
	ask.block_size = 4096; /* too small: raised, and told */
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), 0);
	CHECK(changed && g.block_size >= ask.block_least);
}

static void
impossible_geometries_are_refused(void)
{
	struct tpacket_geom_ask ask = {.slot = 1626, .page = 4096, .frame_size = 64};
	struct tpacket_geom g;
	bool changed;

	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), -EINVAL);
	ask.frame_size = TPACKET_FRAME_MAX + 16;
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), -EINVAL);
	ask = (struct tpacket_geom_ask){.slot = 1626, .page = 4096, .frame_nr = 1u << 20};
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), -EINVAL); /* above 1 GB */
	ask = (struct tpacket_geom_ask){
		.slot = 1626, .page = 4096, .block_size = TPACKET_BLOCK_MAX + 1};
	CHECK_EQ(tpacket_geom_derive(&ask, &g, &changed), -EINVAL);
}

/* ---- frames
 * -------------------------------------------------------------------------------------- */

struct packet {
	uint8_t bytes[70000];
	uint32_t len;
};

static void
put(struct packet *p, const void *from, uint32_t n)
{
	memcpy(p->bytes + p->len, from, n);
	p->len += n;
}

static void
put16(struct packet *p, uint32_t v)
{
	uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};

	put(p, b, 2);
}

static uint32_t
get(const uint8_t *p, int n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* The plain way: 16-bit words in network order, folded at the end. */
static uint32_t
sum(const uint8_t *p, uint32_t n)
{
	uint64_t s = 0;
	uint32_t i;

	for (i = 0; i + 1 < n; i += 2)
		s += (uint32_t)(p[i] << 8 | p[i + 1]);
	if (n % 2 != 0)
		s += (uint32_t)(p[n - 1] << 8);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint32_t)s;
}

static void
link_header(struct packet *p, int tags, uint32_t type)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	p->len = 0;
	put(p, macs, sizeof(macs));
	for (; tags > 0; tags--) {
		put16(p, tags == 2 ? 0x88a8 : 0x8100);
		put16(p, 5);
	}
	put16(p, type);
}

static void
ip_header(struct packet *p, bool six, uint32_t proto, uint32_t payload)
{
	uint8_t four[20] = {
		0x45, 0, 0, 0, 0, 9, 0, 0, 64, (uint8_t)proto, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2};
	uint8_t long_[40] = {0x60, 0, 0, 0, (uint8_t)(payload >> 8), (uint8_t)payload,
		(uint8_t)proto, 64, 0x20, 1, 0xd, 0xb8};

	four[2] = (uint8_t)((payload + 20) >> 8);
	four[3] = (uint8_t)(payload + 20);
	if (six)
		put(p, long_, sizeof(long_));
	else
		put(p, four, sizeof(four));
}

static void
tcp_packet(struct packet *p, int tags, bool six, uint32_t payload)
{
	static const uint8_t tcp[20] = {0, 80, 0, 90, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x50,
		0x80 | 0x19, 1, 0, 0, 0, 0, 0};
	uint32_t i;

	link_header(p, tags, six ? 0x86dd : 0x0800);
	ip_header(p, six, IPPROTO_TCP, payload + 20);
	put(p, tcp, sizeof(tcp));
	for (i = 0; i < payload; i++)
		p->bytes[p->len++] = (uint8_t)(i * 7 + i / 256);
}

static void
udp_packet(struct packet *p, bool six, uint32_t payload)
{
	uint32_t i;

	link_header(p, 0, six ? 0x86dd : 0x0800);
	ip_header(p, six, IPPROTO_UDP, payload + 8);
	put16(p, 1000);
	put16(p, 2000);
	put16(p, payload + 8);
	put16(p, 0);
	for (i = 0; i < payload; i++)
		p->bytes[p->len++] = (uint8_t)(i * 11);
}

static void
headers_are_found_behind_tags_and_options(void)
{
	static struct packet p;
	struct tpacket_headers h;
	int tags;

	for (tags = 0; tags <= 2; tags++) {
		tcp_packet(&p, tags, false, 10);
		tpacket_parse(p.bytes, p.len, &h);
		CHECK_EQ(h.l2_len, 14 + 4 * tags);
		CHECK(h.l3_len == 20 && h.l4_len == 20 && h.l4_proto == IPPROTO_TCP && !h.ipv6);
		tcp_packet(&p, tags, true, 10);
		tpacket_parse(p.bytes, p.len, &h);
		CHECK(h.l3_len == 40 && h.l4_len == 20 && h.ipv6);
	}
	CHECK_EQ(h.ptype, RTE_PTYPE_L2_ETHER_QINQ | RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_TCP);
	udp_packet(&p, false, 5);
	tpacket_parse(p.bytes, p.len, &h);
	CHECK_EQ(h.ptype, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP);
	CHECK_EQ(tpacket_csum_offset(&h), 6);
	p.bytes[20] = 0x20; /* more fragments follow */
	tpacket_parse(p.bytes, p.len, &h);
	CHECK(h.fragment && h.l4_len == 0);
	CHECK_EQ(h.ptype, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_FRAG);
}

static void
ipv6_extension_headers_are_walked(void)
{
	static struct packet p;
	struct tpacket_headers h;
	static const uint8_t hop[8] = {60, 0}, dest[16] = {17, 1}, udp[8] = {0, 1, 0, 2, 0, 8};

	link_header(&p, 0, 0x86dd);
	ip_header(&p, true, 0, 32);
	put(&p, hop, sizeof(hop));
	put(&p, dest, sizeof(dest));
	put(&p, udp, sizeof(udp));
	tpacket_parse(p.bytes, p.len, &h);
	CHECK(h.l3_len == 64 && h.l4_proto == IPPROTO_UDP && h.l4_len == 8);
	CHECK_EQ(h.ptype, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6_EXT | RTE_PTYPE_L4_UDP);
}

/* Whatever is cut off, no length reaches behind the bytes that are there. */
static void
short_frames_keep_lengths_inside(void)
{
	static struct packet p;
	struct tpacket_headers h;
	uint8_t *exact;
	uint32_t n;
	int kind;

	for (kind = 0; kind < 4; kind++) {
		tcp_packet(&p, kind / 2, kind % 2, 4);
		for (n = 0; n <= p.len; n++) {
			exact = malloc(n + 1);
			REQUIRE(exact != NULL);
			memcpy(exact, p.bytes, n);
			tpacket_parse(exact, n, &h);
			CHECK((uint32_t)h.l2_len + h.l3_len + h.l4_len <= n);
			free(exact);
		}
	}
}

static void
vnet_headers_that_lie_are_refused(void)
{
	struct tpacket_offload o;
	const struct {
		struct tpacket_vnet v;
		uint32_t len;
		int want;
	} cases[] = {
		{{0, 0, 0, 0, 0, 0}, 60, 0},
		{{DATA_VALID, 0, 0, 0, 9999, 9999}, 60, 0},
		{{NEEDS_CSUM, 0, 0, 0, 34, 6}, 42, 0},
		{{NEEDS_CSUM, 0, 0, 0, 34, 7}, 42, -EINVAL},
		{{NEEDS_CSUM, 0, 0, 0, 13, 6}, 60, -EINVAL}, /* inside the link header */
		{{NEEDS_CSUM, 0, 0, 0, 65535, 65535}, 60, -EINVAL},
		{{NEEDS_CSUM, 0, 0, 0, 65530, 6}, 60, -EINVAL},
		{{NEEDS_CSUM, 1, 0, 0, 34, 16}, 3000, -EINVAL}, /* cut every 0 bytes */
		{{NEEDS_CSUM, 1, 0, 65535, 34, 16}, 3000, -EINVAL},
		{{NEEDS_CSUM, 1, 0, 1448, 34, 16}, 3000, 0},
		{{NEEDS_CSUM, 0x81, 0, 1448, 34, 16}, 3000, 0}, /* with ECN */
		{{NEEDS_CSUM, 4, 0, 1448, 54, 16}, 3000, 0},
		{{NEEDS_CSUM, 5, 0, 1448, 34, 6}, 3000, 0},
		{{NEEDS_CSUM, 3, 0, 1448, 34, 6}, 3000, -EOPNOTSUPP}, /* UDP fragmentation */
		{{NEEDS_CSUM, 2, 0, 1448, 34, 6}, 3000, -EOPNOTSUPP},
		{{NEEDS_CSUM, 1, 0, 1448, 34, 16}, TPACKET_SUPER_MAX + 1, -EINVAL},
	};
	size_t i;

	for (i = 0; i < SL_COUNT_OF(cases); i++)
		CHECK_EQ(tpacket_vnet_check(&cases[i].v, cases[i].len, &o), cases[i].want);
}

static uint32_t
l4_sum(const uint8_t *f, const struct tpacket_headers *h, uint32_t l4)
{
	const uint8_t *ip = f + h->l2_len;
	uint32_t s = h->ipv6 ? sum(ip + 8, 32) : sum(ip + 12, 8);

	s += sum(f + h->l2_len + h->l3_len, l4) + h->l4_proto + l4;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void
completed_checksums_are_right(void)
{
	static struct packet p;
	struct tpacket_headers h;
	uint32_t payload;
	uint16_t pseudo;
	bool six = false;

	for (payload = 0; payload < 300; payload++, six = !six) {
		udp_packet(&p, six, payload);
		tpacket_parse(p.bytes, p.len, &h);
		pseudo = tpacket_pseudo_sum(p.bytes, &h, payload + 8);
		memcpy(p.bytes + h.l2_len + h.l3_len + 6, &pseudo, 2);
		tpacket_csum_complete(p.bytes, p.len, h.l2_len + h.l3_len, 6);
		CHECK_EQ(l4_sum(p.bytes, &h, payload + 8), 0xffff);
		CHECK(get(p.bytes + h.l2_len + h.l3_len + 6, 2) != 0);
	}
}

/* Cuts and checks each segment against the whole. */
static void
check_cut(const struct packet *p, const struct tpacket_offload *o, bool partial)
{
	static uint8_t out[70000];
	struct tpacket_gso g;
	uint32_t done = 0, n, l4, at, i = 0;
	uint16_t pseudo;

	CHECK_EQ(tpacket_gso_start(&g, p->bytes, p->len, o, partial), 0);
	while ((n = tpacket_gso_next(&g)) != 0) {
		tpacket_gso_emit(&g, out);
		at = (uint32_t)g.h.l2_len + g.h.l3_len;
		l4 = n - at;
		CHECK(memcmp(out + g.hdr_len, p->bytes + g.hdr_len + done, n - g.hdr_len) == 0);
		if (partial) {
			pseudo = tpacket_pseudo_sum(out, &g.h, l4);
			CHECK(memcmp(out + at + tpacket_csum_offset(&g.h), &pseudo, 2) == 0);
		} else {
			CHECK_EQ(l4_sum(out, &g.h, l4), 0xffff);
		}
		if (g.h.ipv6) {
			CHECK_EQ(get(out + g.h.l2_len + 4, 2), l4);
		} else {
			CHECK_EQ(sum(out + g.h.l2_len, 20), 0xffff);
			CHECK_EQ(get(out + g.h.l2_len + 2, 2), l4 + 20);
			CHECK_EQ(get(out + g.h.l2_len + 4, 2), 9 + i);
		}
		if (g.h.l4_proto == IPPROTO_TCP) {
			CHECK_EQ(get(out + at + 4, 4), (uint32_t)(0xfffffff0u + done)); /* wraps */
			CHECK_EQ(out[at + 13], 0x10 | (i == 0 ? 0x80 : 0) |
						       (tpacket_gso_next(&g) == 0 ? 0x09 : 0));
		} else {
			CHECK_EQ(get(out + at + 4, 2), l4);
		}
		done += n - g.hdr_len;
		i++;
	}
	CHECK_EQ(done, p->len - g.hdr_len);
	CHECK_EQ(i, (done + o->gso_size - 1) / o->gso_size);
}

static void
super_frames_are_cut_into_what_they_stand_for(void)
{
	static const uint32_t payloads[] = {1, 1447, 1448, 1449, 2896, 2897, 20000, 65000};
	static struct packet p;
	struct tpacket_offload o = {0};
	size_t i;
	int kind;

	for (i = 0; i < SL_COUNT_OF(payloads); i++)
		for (kind = 0; kind < 8; kind++) {
			o = (struct tpacket_offload){.gso_size = 1448, .gso_ipv6 = kind % 2 != 0};
			tcp_packet(&p, kind / 4, kind % 2 != 0, payloads[i]);
			check_cut(&p, &o, (kind & 2) != 0);
			o = (struct tpacket_offload){.gso_size = 1000, .gso_udp = true};
			udp_packet(&p, kind % 2 != 0, payloads[i]);
			check_cut(&p, &o, (kind & 2) != 0);
		}
}

static void
super_frames_that_are_not_what_they_say_are_refused(void)
{
	static struct packet p;
	struct tpacket_gso g;
	struct tpacket_offload tcp4 = {.gso_size = 1448};
	struct tpacket_offload tcp6 = {.gso_size = 1448, .gso_ipv6 = true};
	struct tpacket_offload udp = {.gso_size = 1448, .gso_udp = true};

	tcp_packet(&p, 0, false, 3000);
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, p.len, &tcp6, false), -EINVAL);
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, p.len, &udp, false), -EINVAL);
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, 54, &tcp4, false), -EINVAL); /* no payload */
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, 50, &tcp4, false), -EINVAL);
	udp_packet(&p, false, 3000);
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, p.len, &tcp4, false), -EINVAL);
	link_header(&p, 0, 0x88b5);
	p.len = 3000;
	CHECK_EQ(tpacket_gso_start(&g, p.bytes, p.len, &tcp4, false), -EINVAL);
}

int
main(void)
{
	SL_TEST_RUN(every_asked_geometry_is_one_that_the_kernel_takes);
	SL_TEST_RUN(a_derived_block_wastes_little_and_rounding_is_told);
	SL_TEST_RUN(version_3_blocks_hold_the_largest_frame);
	SL_TEST_RUN(impossible_geometries_are_refused);
	SL_TEST_RUN(headers_are_found_behind_tags_and_options);
	SL_TEST_RUN(ipv6_extension_headers_are_walked);
	SL_TEST_RUN(short_frames_keep_lengths_inside);
	SL_TEST_RUN(vnet_headers_that_lie_are_refused);
	SL_TEST_RUN(completed_checksums_are_right);
	SL_TEST_RUN(super_frames_are_cut_into_what_they_stand_for);
	SL_TEST_RUN(super_frames_that_are_not_what_they_say_are_refused);
	return test_end();
}
