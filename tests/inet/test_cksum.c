/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Checksums against the slow and simple way, at every length and every cut. */
#include "cksum.h"
#include "inet_test.h"
#include "sl_dpdk.h"

#define LENGTHS 1501

static uint32_t seed = 12345;

static uint8_t
random_byte(void)
{
	return (uint8_t)(test_random(&seed) >> 24);
}

static void
fold_all_carries(void)
{
	static const uint64_t values[] = {0, 1, 0xfffe0001, 0x1fffe, 0xffff, 0x10000, 0xffffffff,
		0x100000000, 0xffffffffffffffff, 0xfffffffffffffffe, 0xffff0000ffff0000,
		0x123456789abcdef0};

	for (size_t i = 0; i < SL_COUNT_OF(values); i++) {
		/* Sum to 16 bits: 0 only for 0, else congruent modulo 65535. */
		uint64_t v = values[i], rest = v % 0xffff;
		uint16_t want = v == 0 ? 0 : rest == 0 ? 0xffff : (uint16_t)rest;

		CHECK_EQ(inet_fold(v), want);
		CHECK_EQ(inet_sum_right(v), v == 0 || want == 0xffff);
		if (v != 0)
			CHECK_EQ(inet_sum_right(v), want == 0xffff);
	}
}

static void
sums_of_every_length(void)
{
	static uint8_t data[32 + LENGTHS + 16];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = random_byte();
	/* inet_sum_short may read 32 bytes before. */
	for (size_t off = 32; off < 48; off++) {
		for (size_t len = 0; len < LENGTHS; len++) {
			uint16_t want = t_sum(data + off, len, 0);

			REQUIRE(rte_be_to_cpu_16(inet_fold(inet_sum(data + off, len))) == want);
			if (len <= INET_SHORT)
				REQUIRE(rte_be_to_cpu_16(inet_fold(
						inet_sum_short(data + off, len))) == want);
		}
	}
	memset(data, 0xff, sizeof(data));
	for (size_t len = 1; len < LENGTHS; len++) {
		CHECK_EQ(rte_be_to_cpu_16(inet_fold(inet_sum(data, len))), t_sum(data, len, 0));
		if (len <= INET_SHORT)
			CHECK_EQ(rte_be_to_cpu_16(inet_fold(inet_sum_short(data + 32, len))),
				t_sum(data, len, 0));
	}
}

/* Datagrams of each length and both families: accepted as they are, refused with any bit flipped.
 */
static void
datagrams_of_every_length(void)
{
	struct t_frame f;

	t_open(NULL);
	for (size_t len = 0; len < LENGTHS; len++) {
		for (int v6 = 0; v6 < 2; v6++) {
			struct t_udp u = {.v6 = v6 != 0, .payload = len};
			size_t at;

			t_udp_frame(&f, &u);
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
			t_drop_in();
			/* Anything from the source port on but the length field and the checksum
			 * itself, which have rules of their own. */
			at = f.len - (seed % (len + 1));
			at = len == 0 ? f.len - 8 : RTE_MIN(at, f.len - 1);
			f.b[at] ^= (uint8_t)(1u << (random_byte() % 8));
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_CSUM);
		}
	}
	t_close();
}

static void
segments_cut_anywhere(void)
{
	struct t_udp u = {.payload = 301};
	struct t_frame f;

	t_open(NULL);
	t_udp_frame(&f, &u);
	for (size_t a = 0; a <= f.len; a += 3) {
		for (size_t b = a; b <= f.len; b += 5) {
			struct rte_mbuf *m = t_mbuf(f.b, a),
					*tail = t_mbuf_split(f.b + a, f.len - a, b - a);

			REQUIRE(rte_pktmbuf_chain(m, tail) == 0);
			CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_QUEUED);
			CHECK_EQ(rte_pktmbuf_pkt_len((struct rte_mbuf *)t_in[0].buf), 301);
			t_drop_in();
		}
	}
	t_close();
}

/* Pieces of odd lengths begin at odd bytes of the sum, and all ones make it carry. */
static void
sums_of_chains_cut_anywhere(void)
{
	static uint8_t data[301];

	for (int ones = 0; ones < 2; ones++) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = ones != 0 ? 0xff : random_byte();
		for (size_t a = 0; a <= sizeof(data); a += 7) {
			for (size_t b = a; b <= sizeof(data); b += 5) {
				struct rte_mbuf *m = t_mbuf(data, a), *tail;
				size_t off = seed % 40, len = seed % (sizeof(data) - off);
				uint16_t sum = 0;

				tail = t_mbuf_split(data + a, sizeof(data) - a, b - a);
				REQUIRE(rte_pktmbuf_chain(m, tail) == 0);
				CHECK_EQ(sl_raw_cksum_mbuf(m, (uint32_t)off, (uint32_t)len, &sum),
					0);
				CHECK_EQ(rte_be_to_cpu_16(sum), t_sum(data + off, len, 0));
				CHECK_EQ(sl_raw_cksum_mbuf(m, 100, sizeof(data) - 99, &sum), -1);
				CHECK_EQ(sl_raw_cksum_mbuf(m, sizeof(data) + 1, 0, &sum), -1);
				rte_pktmbuf_free(m);
				(void)random_byte();
			}
		}
	}
}

struct flag_case {
	const char *what;
	uint64_t flags;
	bool wrong_l4, wrong_ip, no_csum;
	int outcome4, outcome6;
};

static const struct flag_case flag_cases[] = {
	{"nothing known, right", 0, false, false, false, SL_RX_UDP_QUEUED, SL_RX_UDP_QUEUED},
	{"nothing known, wrong", 0, true, false, false, SL_RX_UDP_CSUM, SL_RX_UDP_CSUM},
	{"good, right", RTE_MBUF_F_RX_L4_CKSUM_GOOD, false, false, false, SL_RX_UDP_QUEUED,
		SL_RX_UDP_QUEUED},
	{"good, filled in by nobody", RTE_MBUF_F_RX_L4_CKSUM_GOOD, true, false, false,
		SL_RX_UDP_QUEUED, SL_RX_UDP_QUEUED},
	{"none: data known to be right", RTE_MBUF_F_RX_L4_CKSUM_NONE, true, false, false,
		SL_RX_UDP_QUEUED, SL_RX_UDP_QUEUED},
	{"bad", RTE_MBUF_F_RX_L4_CKSUM_BAD, true, false, false, SL_RX_UDP_CSUM, SL_RX_UDP_CSUM},
	{"bad by the port's word", RTE_MBUF_F_RX_L4_CKSUM_BAD, false, false, false, SL_RX_UDP_CSUM,
		SL_RX_UDP_CSUM},
	{"good, but zero", RTE_MBUF_F_RX_L4_CKSUM_GOOD, false, false, true, SL_RX_UDP_QUEUED,
		SL_RX_UDP_CSUM_ZERO6},
	{"IP good, filled in by nobody", RTE_MBUF_F_RX_IP_CKSUM_GOOD, false, true, false,
		SL_RX_UDP_QUEUED, SL_RX_UDP_QUEUED},
	{"IP none", RTE_MBUF_F_RX_IP_CKSUM_NONE, false, true, false, SL_RX_UDP_QUEUED,
		SL_RX_UDP_QUEUED},
	{"IP wrong", 0, false, true, false, SL_RX_IP_CSUM, SL_RX_UDP_QUEUED},
	{"IP bad by the port's word", RTE_MBUF_F_RX_IP_CKSUM_BAD, false, false, false,
		SL_RX_IP_CSUM, SL_RX_UDP_QUEUED},
};

static void
hardware_flags(void)
{
	struct t_frame f;

	for (size_t i = 0; i < SL_COUNT_OF(flag_cases) * 2; i++) {
		const struct flag_case *c = &flag_cases[i / 2];
		struct t_udp u = {.v6 = i % 2 != 0, .payload = 22, .no_csum = c->no_csum};
		size_t l3 = t_l3(&u);

		t_udp_frame(&f, &u);
		if (c->wrong_l4)
			f.b[l3 + (u.v6 ? 46 : 26)] ^= 0x55;
		if (c->wrong_ip && !u.v6)
			f.b[l3 + 10] ^= 0x55;
		t_open(NULL);
		for (int round = 0; round < 2; round++) {
			for (int split = 0; split < 2; split++) {
				struct rte_mbuf *m = split ? t_mbuf_split(f.b, f.len, f.len - 9)
							   : t_mbuf(f.b, f.len);
				int outcome;

				m->ol_flags |= c->flags;
				outcome = t_feed_mbuf(m);
				if (outcome != (u.v6 ? c->outcome6 : c->outcome4))
					fprintf(stderr, "%s\n", c->what);
				CHECK_EQ(outcome, u.v6 ? c->outcome6 : c->outcome4);
			}
		}
		t_close();
	}
}

/* A sender that leaves the checksum to hardware puts the pseudo header's sum there. */
static void
partial_checksums(void)
{
	struct t_frame f;

	t_open(NULL);
	for (size_t len = 0; len < 200; len++) {
		for (int v6 = 0; v6 < 2; v6++) {
			struct t_udp u = {.v6 = v6 != 0, .payload = len};
			const char *src = v6 ? "2001:db8::1" : "198.18.0.1";
			const char *dst = v6 ? "2001:db8::2" : "198.18.0.2";
			uint16_t sum = t_sum(NULL, 0, t_pseudo(src, dst, IPPROTO_UDP, len + 8));
			size_t at = t_l3(&u) + (v6 ? 46 : 26);
			struct rte_mbuf *m;

			t_udp_frame(&f, &u);
			f.b[at] = (uint8_t)(sum >> 8);
			f.b[at + 1] = (uint8_t)sum;
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_CSUM_PARTIAL);
			/* The same from a port that says the data is right, as virtio does. */
			m = t_mbuf(f.b, f.len);
			m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
			CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_QUEUED);
			t_drop_in();
		}
	}
	t_close();
}

/* A buffer that ends with the payload: nothing behind it may be read, not even to be thrown away.
 */
static void
payload_at_the_buffers_end(void)
{
	struct t_frame f;

	t_open(NULL);
	for (size_t len = 0; len < 200; len++) {
		struct t_udp u = {.v6 = len % 2 != 0, .payload = len};
		struct rte_mbuf_ext_shared_info shared = {0};
		struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
		uint8_t *exact;

		t_udp_frame(&f, &u);
		exact = malloc(f.len);
		REQUIRE(m != NULL && exact != NULL);
		memcpy(exact, f.b, f.len);
		rte_mbuf_ext_refcnt_set(&shared, 2); /* it stays ours */
		rte_pktmbuf_attach_extbuf(m, exact, RTE_BAD_IOVA, (uint16_t)f.len, &shared);
		m->data_off = 0;
		m->data_len = (uint16_t)f.len;
		m->pkt_len = (uint32_t)f.len;
		CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_QUEUED);
		t_drop_in();
		CHECK_EQ(rte_mbuf_ext_refcnt_read(&shared), 1);
		free(exact);
	}
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(fold_all_carries);
	SL_TEST_RUN(sums_of_every_length);
	SL_TEST_RUN(datagrams_of_every_length);
	SL_TEST_RUN(segments_cut_anywhere);
	SL_TEST_RUN(sums_of_chains_cut_anywhere);
	SL_TEST_RUN(hardware_flags);
	SL_TEST_RUN(partial_checksums);
	SL_TEST_RUN(payload_at_the_buffers_end);
	return test_end();
}
