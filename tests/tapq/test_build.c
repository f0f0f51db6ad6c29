/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Chains to packets and back: contents, offload flags, every outcome, and shortages that lose
 * nothing. */
#include <errno.h>

#include <rte_ip.h>
#include <rte_net.h>

#include "eal_help.h"

static uint8_t frame[70000];

static void
fill_frame(void)
{
	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7 + i / 251);
}

static uint64_t
outcome(const struct sl_tapq *q, enum sl_tapq_outcome o)
{
	struct sl_tapq_stats s;

	sl_tapq_stats(q, UINT32_MAX, &s);
	return s.outcomes[o];
}

static bool
same(const struct rte_mbuf *m, const uint8_t *bytes, uint32_t len)
{
	if (rte_pktmbuf_pkt_len(m) != len)
		return false;
	for (; m != NULL; bytes += m->data_len, m = m->next)
		if (memcmp(rte_pktmbuf_mtod(m, void *), bytes, m->data_len) != 0)
			return false;
	return true;
}

static void
sizes_and_layouts(void)
{
	static const uint32_t sizes[] = {14, 60, 64, 1514, 3968, 3969, 9000, 30000};

	for (int packed = 0; packed < 2; packed++) {
		struct sl_tapq *q = tapq_open(SL_FRAG_LOCK, 1, 8, 0);
		struct sl_tapq_ring r;
		struct driver d;

		driver_open(&d, packed, 16, 0);
		r = ring_of(&d);
		for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
			struct sl_tapq_vnet_hdr h = {0};
			struct rte_mbuf *m = NULL;
			const char *why = NULL;
			bool call = false;
			uint16_t id;
			uint32_t len;

			driver_send(&d, BASE + 3, &h, frame, sizes[i]);
			REQUIRE(sl_tapq_build_burst(q, 0, &r, &m, 1, &call) == 1);
			CHECK(call && driver_used(&d, &id, &len) && len == 0);
			CHECK(same(m, frame, sizes[i]));
			CHECK_EQ(rte_mbuf_check(m, 1, &why), 0);
			CHECK_EQ(RTE_MBUF_HAS_EXTBUF(m) != 0, sizes[i] + 128 <= 4096);
			CHECK_EQ(rte_pktmbuf_headroom(m), 128);
			CHECK_EQ(m->ol_flags & ~RTE_MBUF_F_EXTERNAL, 0);
			rte_pktmbuf_free(m);
		}
		CHECK_EQ(outcome(q, SL_TAPQ_BUILT), SL_COUNT_OF(sizes));
		driver_close(&d);
		tapq_close(q);
	}
}

/* Frames of 0..13 bytes, no header, too long, a lie in the header, a bad chain: named, and used up.
 */
static void
every_drop_has_a_name(void)
{
	struct sl_tapq *q = tapq_open(SL_FRAG_LOCK, 1, 8, 0);
	struct sl_tapq_vnet_hdr good = {0},
				lie = {SL_TAPQ_VNET_NEEDS_CSUM, 0, 0, 0, 65535, 65535, 0};
	struct rte_mbuf *m[8];
	struct sl_tapq_ring r;
	struct sl_tapq_stats s;
	bool call = false;
	struct driver d;

	driver_open(&d, false, 64, 0);
	r = ring_of(&d);
	driver_send(&d, BASE, &good, frame, 0);
	for (uint32_t len = 1; len < 14; len++)
		driver_send(&d, BASE, &good, frame, len);
	driver_put(&d, &(struct piece){BASE, 11, false}, 1);
	driver_put(&d, &(struct piece){BASE, 100, true}, 1); /* nothing to read at all */
	driver_put(&d, &(struct piece){BASE, 12 + SL_TAPQ_FRAME_MAX + 1, false}, 1);
	driver_send(&d, BASE + 1000, &lie, frame, 60);
	driver_put(&d, &(struct piece){0, 100, false}, 1);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(sl_tapq_build_burst(q, 0, &r, m, 8, &call), 0);
	sl_tapq_stats(q, UINT32_MAX, &s);
	CHECK_EQ(s.outcomes[SL_TAPQ_NO_HEADER], 3);
	CHECK_EQ(s.outcomes[SL_TAPQ_SHORT], 13);
	CHECK_EQ(s.outcomes[SL_TAPQ_TOO_LONG], 1);
	CHECK_EQ(s.outcomes[SL_TAPQ_BAD_VNET], 1);
	CHECK_EQ(s.vnet[SL_TAPQ_VNET_BAD_CSUM], 1);
	CHECK_EQ(s.outcomes[SL_TAPQ_BAD_CHAIN], 1);
	CHECK_EQ(s.outcomes[SL_TAPQ_BUILT], 0);
	CHECK_EQ(d.ring.pushed, 19);
	driver_close(&d);
	tapq_close(q);
}

/* A TCP or UDP frame over IPv4 with a partial checksum, as a peer leaves it. */
static uint32_t
make_partial(uint8_t *b, uint8_t protocol, uint32_t payload)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(b + 14);
	uint32_t l4 = protocol == 6 ? 20 : 8;
	uint16_t sum;

	memset(b, 0, 14 + 20 + l4);
	b[12] = 8;
	ip->version_ihl = 0x45;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(20 + l4 + payload));
	ip->next_proto_id = protocol;
	ip->src_addr = rte_cpu_to_be_32(0xc6120001);
	ip->dst_addr = rte_cpu_to_be_32(0xc6120002);
	if (protocol == 6)
		b[34 + 12] = 0x50;
	else
		b[34 + 5] = (uint8_t)(8 + payload), b[34 + 4] = (uint8_t)((8 + payload) >> 8);
	memcpy(b + 34 + l4, frame, payload);
	sum = rte_ipv4_phdr_cksum(ip, 0);
	memcpy(b + 34 + (protocol == 6 ? 16 : 6), &sum, 2);
	return 34 + l4 + payload;
}

static void
header_to_flags(void)
{
	struct sl_tapq *q = tapq_open(SL_FRAG_LOCK, 1, 8, 0);
	uint8_t b[4096];
	struct sl_tapq_vnet_hdr h = {
		SL_TAPQ_VNET_NEEDS_CSUM, SL_TAPQ_VNET_GSO_TCPV4, 54, 500, 34, 16, 0};
	struct rte_mbuf *m;
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	driver_open(&d, true, 8, 0);
	r = ring_of(&d);
	driver_send(&d, BASE, &h, b, make_partial(b, 6, 2000));
	REQUIRE(sl_tapq_build_burst(q, 0, &r, &m, 1, &call) == 1);
	CHECK((m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE);
	CHECK((m->ol_flags & RTE_MBUF_F_RX_LRO) != 0);
	CHECK_EQ(m->tso_segsz, 500);
	CHECK(m->l2_len == 14 && m->l3_len == 20 && m->l4_len == 20);
	CHECK_EQ(m->packet_type & RTE_PTYPE_L4_MASK, RTE_PTYPE_L4_TCP);
	rte_pktmbuf_free(m);
	h = (struct sl_tapq_vnet_hdr){.flags = SL_TAPQ_VNET_DATA_VALID};
	driver_send(&d, BASE, &h, b, make_partial(b, 17, 20));
	REQUIRE(sl_tapq_build_burst(q, 0, &r, &m, 1, &call) == 1);
	CHECK((m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	rte_pktmbuf_free(m);
	driver_close(&d);
	tapq_close(q);
}

/* For an application without checksum offload the partial one is completed: right for every length.
 */
static void
partial_sums_are_completed(void)
{
	struct sl_tapq *q = tapq_open(SL_FRAG_LCORE, 1, 8, 0);
	uint8_t b[12000];
	struct sl_tapq_ring r;
	struct driver d;

	driver_open(&d, false, 8, 0);
	r = ring_of(&d);
	r.complete = true;
	for (int protocol = 6; protocol <= 17; protocol += 11) {
		for (uint32_t payload = 0; payload < 10000; payload = payload * 2 + 1) {
			struct sl_tapq_vnet_hdr h = {
				SL_TAPQ_VNET_NEEDS_CSUM, 0, 0, 0, 34, protocol == 6 ? 16 : 6, 0};
			uint32_t len = make_partial(b, (uint8_t)protocol, payload);
			struct rte_mbuf *m;
			bool call = false;
			uint16_t id;
			uint32_t used;

			driver_send(&d, BASE, &h, b, len);
			REQUIRE(sl_tapq_build_burst(q, 0, &r, &m, 1, &call) == 1);
			CHECK((m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) ==
				RTE_MBUF_F_RX_L4_CKSUM_GOOD);
			CHECK_EQ(rte_ipv4_udptcp_cksum_mbuf_verify(m,
					 rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14), 34),
				0);
			rte_pktmbuf_free(m);
			CHECK(driver_used(&d, &id, &used));
		}
	}
	driver_close(&d);
	tapq_close(q);
}

/* No slice, no mbuf, no room in the queue: chains stay in the ring and come later, none lost. */
static void
shortages_lose_nothing(void)
{
	struct sl_tapq *q = tapq_open(SL_FRAG_LOCK, 1, 1, 4);
	struct sl_tapq_vnet_hdr h = {0};
	struct rte_mbuf *m[64], *all[512];
	struct sl_tapq_ring r;
	struct sl_tapq_stats s;
	bool call = false;
	struct driver d;
	uint16_t n;

	driver_open(&d, true, 64, 0);
	r = ring_of(&d);
	for (int i = 0; i < 30; i++)
		driver_send(&d, BASE + 2000u * (uint32_t)i, &h, frame + i, 1500);
	n = sl_tapq_build_burst(q, 0, &r, m, 64, &call); /* a chunk has room for 19 */
	CHECK_EQ(n, 19);
	CHECK_EQ(sl_tapq_build_burst(q, 0, &r, m + n, 64, &call), 0);
	sl_tapq_stats(q, 0, &s);
	CHECK_EQ(s.no_frag, 2);
	rte_pktmbuf_free_bulk(m, n);
	CHECK_EQ(sl_tapq_feed_burst(q, 0, &r, 64, &call), 4); /* as many as the queue holds */
	CHECK_EQ(sl_tapq_feed_burst(q, 0, &r, 64, &call), 0);
	CHECK_EQ(sl_tapq_take_burst(q, m, 64), 4);
	CHECK(same(m[0], frame + 19, 1500) && same(m[3], frame + 22, 1500));
	rte_pktmbuf_free_bulk(m, 4);
	for (n = 0; n < 512 && (all[n] = rte_pktmbuf_alloc(large)) != NULL; n++)
		;
	driver_send(&d, BASE, &h, frame, 9000);
	CHECK_EQ(sl_tapq_build_burst(q, 0, &r, m, 7, &call), 7);
	rte_pktmbuf_free_bulk(m, 7);
	CHECK_EQ(sl_tapq_build_burst(q, 0, &r, m, 7, &call), 0);
	sl_tapq_stats(q, 0, &s);
	CHECK_EQ(s.no_mbuf, 1);
	rte_pktmbuf_free_bulk(all, n);
	CHECK_EQ(sl_tapq_build_burst(q, 0, &r, m, 7, &call), 1);
	CHECK(same(m[0], frame, 9000));
	rte_pktmbuf_free(m[0]);
	CHECK_EQ(outcome(q, SL_TAPQ_BUILT), 31);
	driver_close(&d);
	tapq_close(q);
}

enum odd_kind { ODD_NONE, ODD_HEADER, ODD_LONG, ODD_SHORT, ODD_PIECES, ODD_KINDS };

static void
send_one(struct driver *d, uint32_t i, enum odd_kind kind, bool noise)
{
	struct sl_tapq_vnet_hdr h = {.flags = kind == ODD_HEADER ? SL_TAPQ_VNET_DATA_VALID : 0};
	uint32_t len = kind == ODD_LONG ? 5000 : kind == ODD_SHORT ? 10 : 60 + i;
	uint64_t at = BASE + 6000u * i;

	if (noise)
		memset(&h, 0xa5, sizeof(h));
	if (kind == ODD_PIECES) {
		driver_send(d, at, &h, frame + i, len);
		return;
	}
	memcpy(driver_host(d, at), &h, sizeof(h));
	memcpy(driver_host(d, at + sizeof(h)), frame + i, len);
	driver_put(d, &(struct piece){at, (uint32_t)sizeof(h) + len, false}, 1);
}

static void
check_one(const struct rte_mbuf *m, uint32_t i, enum odd_kind kind, bool bare)
{
	bool valid = (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;

	CHECK(same(m, frame + i, kind == ODD_LONG ? 5000 : 60 + i));
	CHECK_EQ(valid, kind == ODD_HEADER && !bare);
	CHECK_EQ(m->port, 7);
}

/* Eight frames, of which the k-th is of another kind, in one burst, with slices for some of them:
 * each in order, whole, and with its own flags. What a bare peer's headers hold does not matter. */
static void
run_mixed(bool packed, bool bare, uint32_t odd, enum odd_kind kind, bool scarce)
{
	struct sl_tapq *q = tapq_open(SL_FRAG_LOCK, 1, scarce ? 1 : 8, 0);
	struct sl_frag_slice held;
	struct rte_mbuf *m[8];
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;
	uint32_t i = 0;

	/* Room for four slices is left: the first burst ends in the middle. */
	if (scarce)
		REQUIRE(sl_frag_carve(q->conf.frag, 0, q->conf.frag->chunk_size - 4 * 256, &held) ==
			0);

	driver_open(&d, packed, 64, 0);
	r = ring_of(&d);
	r.bare = bare;
	r.port = 7;
	for (uint32_t k = 0; k < 8; k++)
		send_one(&d, k, k == odd ? kind : ODD_NONE, bare);
	for (uint32_t turn = 0; i < 8 && turn < 8; turn++) {
		uint16_t n = sl_tapq_build_burst(q, 0, &r, m, 8, &call);

		for (uint16_t k = 0; k < n; k++, i++) {
			i += i == odd && kind == ODD_SHORT;
			check_one(m[k], i, i == odd ? kind : ODD_NONE, bare);
		}
		i += i == odd && i == 7 && kind == ODD_SHORT;
		rte_pktmbuf_free_bulk(m, n);
		CHECK(!scarce || turn > 0 || n < 7);
		if (scarce && turn == 0)
			sl_frag_put(q->conf.frag, &held);
	}
	CHECK_EQ(i, 8);
	CHECK_EQ(outcome(q, SL_TAPQ_BUILT), kind == ODD_SHORT ? 7 : 8);
	CHECK_EQ(outcome(q, SL_TAPQ_SHORT), kind == ODD_SHORT);
	driver_close(&d);
	tapq_close(q);
}

static void
bursts_of_every_mix(void)
{
	for (int bits = 0; bits < 4; bits++) {
		for (uint32_t odd = 0; odd < 8; odd++) {
			for (int kind = 0; kind < ODD_KINDS; kind++) {
				run_mixed(bits & 1, bits >> 1, odd, (enum odd_kind)kind, false);
				run_mixed(bits & 1, bits >> 1, odd, (enum odd_kind)kind, true);
			}
		}
	}
}

static struct rte_mbuf *
packet(const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *first = NULL, **link = &first;

	for (uint32_t at = 0; at < len;) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(large);
		uint16_t piece = (uint16_t)(len - at < 2048 ? len - at : 2048);

		REQUIRE(m != NULL);
		memcpy(rte_pktmbuf_mtod(m, void *), bytes + at, piece);
		m->data_len = piece;
		*link = m;
		link = &m->next;
		first->nb_segs += m != first;
		first->pkt_len = len;
		at += piece;
	}
	return first;
}

/* What the driver finds over its used buffers, one behind the other. */
static uint32_t
driver_collect(struct driver *d, struct sl_tapq_vnet_hdr *h, uint8_t *to, uint32_t buffer)
{
	uint16_t id, buffers = 1;
	uint32_t len, total = 0;

	for (uint16_t i = 0; i < buffers; i++) {
		if (!driver_used(d, &id, &len))
			return 0;
		memcpy(to + total, driver_host(d, BASE + (uint64_t)id * buffer), len);
		total += len;
		if (i == 0) {
			memcpy(h, to, SL_TAPQ_VNET_LONG);
			buffers = h->num_buffers;
		}
	}
	memmove(to, to + SL_TAPQ_VNET_LONG, total - SL_TAPQ_VNET_LONG);
	return total - SL_TAPQ_VNET_LONG;
}

static void
packets_into_merged_buffers(void)
{
	static const uint32_t sizes[] = {60, 1500, 1501, 4000, 9000};
	static uint8_t got[70000];

	for (int packed = 0; packed < 2; packed++) {
		struct sl_tapq_write_stats s = {0};
		struct sl_tapq_ring r;
		struct driver d;

		driver_open(&d, packed, 32, 0);
		r = ring_of(&d);
		for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
			struct sl_tapq_vnet_hdr h = {0};
			struct rte_mbuf *m[3];
			bool call = false;
			uint16_t n;

			while (d.free_count > 0) {
				uint16_t id = d.free[d.free_count - 1];

				driver_put(&d, &(struct piece){BASE + id * 1512u, 1512, true}, 1);
			}
			for (int k = 0; k < 3; k++)
				m[k] = packet(frame + k, sizes[i]);
			n = sl_tapq_write_burst(&r, m, 3, &s, &call);
			CHECK_EQ(n, 3);
			CHECK(call);
			for (uint16_t k = 0; k < n; k++) {
				CHECK_EQ(driver_collect(&d, &h, got, 1512), sizes[i]);
				CHECK_EQ(h.num_buffers, (sizes[i] + 12 + 1511) / 1512);
				CHECK(memcmp(got, frame + k, sizes[i]) == 0);
			}
		}
		CHECK_EQ(s.sent, 15);
		driver_close(&d);
	}
}

static void
no_room_and_never_room(void)
{
	struct sl_tapq_write_stats s = {0};
	struct rte_mbuf *m[3];
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	driver_open(&d, false, 8, 0);
	r = ring_of(&d);
	for (int i = 0; i < 3; i++)
		m[i] = packet(frame, 1000);
	CHECK_EQ(sl_tapq_write_burst(&r, m, 3, &s, &call), 0);
	driver_put(&d, &(struct piece){BASE, 1012, true}, 1);
	driver_put(&d, &(struct piece){BASE + 2000, 500, true}, 1);
	CHECK_EQ(sl_tapq_write_burst(&r, m, 3, &s, &call), 1); /* half a packet's room is none */
	CHECK_EQ(s.full, 2);
	CHECK(call);
	r.mergeable = false;
	CHECK_EQ(sl_tapq_write_burst(&r, m + 1, 2, &s, &call), 2);
	CHECK_EQ(s.too_big, 2);
	CHECK_EQ(s.sent, 1);
	CHECK_EQ(d.ring.pushed, 1);
	driver_close(&d);
}

static void
spoilt_receive_buffers(void)
{
	struct sl_tapq_write_stats s = {0};
	struct rte_mbuf *m[1] = {packet(frame, 100)};
	struct sl_tapq_vnet_hdr h = {0};
	uint8_t got[2000];
	struct sl_tapq_ring r;
	bool call = false;
	uint16_t id;
	uint32_t len;
	struct driver d;

	driver_open(&d, false, 8, 0);
	r = ring_of(&d);
	driver_put(&d, &(struct piece){0, 1512, true}, 1);	      /* outside */
	driver_put(&d, &(struct piece){BASE + 5000, 1512, false}, 1); /* for reading */
	driver_put(&d, &(struct piece){BASE + 5000, 11, true}, 1);    /* smaller than a header */
	driver_put(&d, &(struct piece){BASE + 3 * 1512, 1512, true}, 1);
	CHECK_EQ(sl_tapq_write_burst(&r, m, 1, &s, &call), 1);
	CHECK_EQ(s.bad_chain, 3);
	for (int i = 0; i < 3; i++)
		CHECK(driver_used(&d, &id, &len) && len == 0);
	CHECK_EQ(driver_collect(&d, &h, got, 1512), 100);
	driver_close(&d);
}

static void
flags_to_header(void)
{
	uint8_t b[4096];
	uint32_t len = make_partial(b, 6, 2000);
	struct rte_mbuf *m = packet(b, len);
	struct sl_tapq_vnet_hdr h = {0};

	m->l2_len = 14;
	m->l3_len = 20;
	m->l4_len = 20;
	m->tso_segsz = 500;
	m->ol_flags = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	CHECK_EQ(sl_tapq_vnet_from_mbuf(m, SL_TAPQ_VNET_ACCEPT_CSUM, &h), -EOPNOTSUPP);
	CHECK_EQ(sl_tapq_vnet_from_mbuf(m, SL_TAPQ_VNET_ACCEPT_CSUM | SL_TAPQ_VNET_ACCEPT_TSO4, &h),
		0);
	CHECK(h.flags == SL_TAPQ_VNET_NEEDS_CSUM && h.csum_start == 34 && h.csum_offset == 16);
	CHECK(h.gso_type == SL_TAPQ_VNET_GSO_TCPV4 && h.gso_size == 500 && h.hdr_len == 54);
	/* What we write is what we accept. */
	CHECK_EQ(sl_tapq_vnet_check(&h, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, len),
		SL_TAPQ_VNET_OK);
	CHECK_EQ(rte_raw_cksum(rte_pktmbuf_mtod_offset(m, void *, 14), 20), 0xffff);
	/* The peer cannot: complete here. */
	m->ol_flags = RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV4;
	CHECK_EQ(sl_tapq_vnet_from_mbuf(m, 0, &h), 0);
	CHECK_EQ(h.flags, 0);
	CHECK_EQ(rte_ipv4_udptcp_cksum_mbuf_verify(
			 m, rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14), 34),
		0);
	m->l2_len = 0; /* lengths that were not set */
	CHECK_EQ(sl_tapq_vnet_from_mbuf(m, 0, &h), -EINVAL);
	rte_pktmbuf_free(m);
}

int
main(void)
{
	eal_start();
	fill_frame();
	SL_TEST_RUN(sizes_and_layouts);
	SL_TEST_RUN(every_drop_has_a_name);
	SL_TEST_RUN(header_to_flags);
	SL_TEST_RUN(partial_sums_are_completed);
	SL_TEST_RUN(shortages_lose_nothing);
	SL_TEST_RUN(bursts_of_every_mix);
	SL_TEST_RUN(packets_into_merged_buffers);
	SL_TEST_RUN(no_room_and_never_room);
	SL_TEST_RUN(spoilt_receive_buffers);
	SL_TEST_RUN(flags_to_header);
	return eal_end();
}
