/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Fragments: what is joined, what is refused, what is held and for how long. */
#include "reasm_test.h"

#define PARTS 4

/* Calls visit with each order of 0..n-1. */
static void
permute(uint8_t *order, size_t n, size_t fixed, void (*visit)(const uint8_t *order))
{
	if (fixed == n) {
		visit(order);
		return;
	}
	for (size_t i = fixed; i < n; i++) {
		uint8_t t = order[i];

		order[i] = order[fixed];
		order[fixed] = t;
		permute(order, n, fixed + 1, visit);
		order[fixed] = order[i];
		order[i] = t;
	}
}

static void
one_order(const uint8_t *order)
{
	static uint32_t id = 1;
	uint64_t merged = t_count(SL_RX_IP_FRAG_MERGED), queued = t_count(SL_RX_UDP_QUEUED);

	id++;
	for (size_t i = 0; i < PARTS; i++) {
		CHECK_EQ(r_held(), i);
		CHECK_EQ(t_ins, 0);
		r_nth(id, order[i], PARTS);
	}
	CHECK_EQ(r_held(), 0);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_MERGED) - merged, PARTS - 1);
	CHECK_EQ(t_count(SL_RX_UDP_QUEUED) - queued, 1);
	r_check_udp();
}

static void
every_order(void)
{
	uint8_t order[PARTS] = {0, 1, 2, 3};

	for (int v6 = 0; v6 < 2; v6++) {
		for (int shared = 0; shared < 2; shared++) {
			t_open(NULL);
			for (size_t payload = 97; payload < 1000; payload += 301) {
				r_udp(v6, payload);
				r_how.shared = shared;
				permute(order, PARTS, 0, one_order);
			}
			t_close();
		}
	}
}

/* Cut where the headers are, and behind: also in shared memory. */
static void
parts_in_segments(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		for (size_t at = 1; at < 100; at++) {
			for (int shared = 0; shared < 2; shared++) {
				r_udp(v6, 200);
				r_how.split = at;
				r_how.shared = shared;
				r_nth((uint32_t)at, 1, 3);
				r_nth((uint32_t)at, 2, 3);
				r_nth((uint32_t)at, 0, 3);
				r_check_udp();
			}
		}
		t_close();
	}
}

/* As large as the library can join: eight parts of a full frame. */
static void
largest(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		for (size_t n = 2; n <= RTE_LIBRTE_IP_FRAG_MAX_FRAG; n++) {
			r_udp(v6, n * 1440 - 8);
			for (size_t k = 0; k < n; k++)
				r_nth((uint32_t)n, k, n);
			r_check_udp();
		}
		/* One more is refused when it comes, and so is all that comes later. */
		r_udp(v6, 9 * 1440 - 8);
		for (size_t k = 0; k < 9; k++) {
			r_nth(99, k, 9);
			CHECK_EQ(r_held(), k < 7 ? k + 1 : 0);
		}
		CHECK_EQ(t_count(SL_RX_IP_FRAG_MANY), 9);
		CHECK_EQ(t_ins, 0);
		t_close();
	}
}

/* 65535 bytes in frames that only a jumbo link has. */
static void
longest_datagram(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		size_t whole = v6 ? 65535 : 65515;
		struct rte_mbuf *m[8], *tail;
		struct t_frame f;

		t_open(NULL);
		r_udp(v6, whole - 8);
		for (size_t k = 0; k < 8; k++) {
			size_t start = k * 8192, len = RTE_MIN(whole - start, (size_t)8192), done;

			/* The headers with 8 bytes of data, then the rest. */
			r_frame(&f, 1, start, 8, k < 7);
			m[k] = t_mbuf(f.b, f.len);
			for (done = 8; done < len; done += rte_pktmbuf_pkt_len(tail)) {
				tail = t_mbuf(
					r_data + start + done, RTE_MIN(len - done, (size_t)2000));
				REQUIRE(rte_pktmbuf_chain(m[k], tail) == 0);
			}
			if (v6) {
				put16(rte_pktmbuf_mtod_offset(m[k], uint8_t *, 18), len + 8);
				continue;
			}
			put16(rte_pktmbuf_mtod_offset(m[k], uint8_t *, 16), len + 20);
			memset(rte_pktmbuf_mtod_offset(m[k], uint8_t *, 24), 0, 2);
			put16(rte_pktmbuf_mtod_offset(m[k], uint8_t *, 24),
				(uint16_t)~t_sum(
					rte_pktmbuf_mtod_offset(m[k], uint8_t *, 14), 20, 0));
		}
		sl_inet_input_burst(t_inet, 0, t_port, m, 8);
		CHECK_EQ(t_count(SL_RX_UDP_QUEUED), 1);
		r_check_udp();
		t_close();
	}
}

static void
duplicates(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		r_udp(v6, 300);
		for (size_t k = 0; k < 3; k++) {
			r_nth(5, k, 4);
			r_nth(5, 0, 4);
			CHECK_EQ(r_held(), k + 1);
		}
		CHECK_EQ(t_count(SL_RX_IP_FRAG_DUPLICATE), 3);
		r_nth(5, 3, 4);
		r_check_udp();
		/* Too late, it begins a datagram that nobody completes. */
		r_nth(5, 3, 4);
		CHECK_EQ(r_held(), 1);
		t_close();
	}
}

/* Parts in units of 8 bytes; those of one case end when len is 0. */
struct overlap {
	const char *what;
	struct {
		uint8_t start, len, more;
	} part[5];
};

static const struct overlap overlaps[] = {
	{"the first one twice, the second time longer", {{0, 2, 1}, {0, 3, 1}}},
	{"the first one twice, the second time shorter", {{0, 2, 1}, {0, 1, 1}}},
	{"into the first one", {{0, 4, 1}, {3, 2, 1}}},
	{"into the next one", {{4, 4, 1}, {2, 3, 1}}},
	{"inside", {{0, 9, 1}, {3, 2, 1}}},
	{"around", {{3, 2, 1}, {2, 4, 1}}},
	{"the same place as the last one, but not the last", {{6, 2, 0}, {6, 2, 1}}},
	{"the same place, but the last", {{6, 2, 1}, {6, 2, 0}}},
	{"beyond the end", {{6, 2, 0}, {8, 2, 1}}},
	{"two ends", {{6, 2, 0}, {9, 2, 0}}},
	{"an end below what is there", {{6, 2, 1}, {2, 2, 0}}},
	{"a hole of the size of the overlap", {{0, 2, 1}, {6, 2, 0}, {2, 2, 1}, {3, 2, 1}}},
	{"a whole but for one byte group twice", {{0, 2, 1}, {4, 2, 0}, {1, 3, 1}}},
};

static void
overlaps_are_refused(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t i = 0; i < SL_COUNT_OF(overlaps); i++) {
			const struct overlap *o = &overlaps[i];
			size_t n = 0;

			t_open(NULL);
			r_udp(v6, 200);
			r_part(8, 0, 64, true); /* another datagram, which is not concerned */
			for (; n < 5 && o->part[n].len != 0; n++) {
				CHECK_EQ(t_count(SL_RX_IP_FRAG_OVERLAP), 0);
				r_part(7, o->part[n].start * 8u, o->part[n].len * 8u,
					o->part[n].more != 0);
			}
			if (t_count(SL_RX_IP_FRAG_OVERLAP) != n)
				fprintf(stderr, "%s\n", o->what);
			CHECK_EQ(t_count(SL_RX_IP_FRAG_OVERLAP), n);
			CHECK_EQ(r_held(), 1);
			/* What comes later has no chance, whatever it is, until the time is up. */
			r_part(7, 80, 8, true);
			r_part(7, 0, 8, true);
			CHECK_EQ(t_count(SL_RX_IP_FRAG_OVERLAP), n + 2);
			r_part(8, 64, r_len - 64, false);
			r_check_udp();
			t_pass(31 * T_S);
			r_part(7, 0, 64, true);
			r_part(7, 64, r_len - 64, false);
			r_check_udp();
			t_close();
		}
	}
}

static void
shapes(void)
{
	size_t len;
	const uint8_t *p;

	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		r_udp(v6, 1000);
		r_part(1, 0, 12, true);
		r_part(1, 16, 0, true);
		r_part(1, 65528, 16, true);
		r_part(1, 65528, 16, false);
		r_part(1, 65528, 8, false);
		CHECK_EQ(t_count(SL_RX_IP_FRAG_BAD), 5);
		CHECK_EQ(r_held(), 0);
		t_flush();
		/* RFC 8200, 4.5: which field is to blame. IPv4 says nothing. */
		CHECK_EQ(t_outs, v6 ? 4 : 0);
		for (unsigned int i = 0; i < t_outs; i++) {
			p = t_out_data(i, &len);
			CHECK_EQ(p[54], 4);
			CHECK_EQ(p[55], 0);
			CHECK_EQ(p[61], i == 0 ? 4 : 42);
		}
		t_close();
	}
	/* IPv4 counts the header: 20 bytes of it fit, and the first one brings more. */
	t_open(NULL);
	r_udp(false, 1000);
	r_part(1, 65512, 3, false);
	CHECK_EQ(r_held(), 1);
	r_how.before = (const uint8_t[]){1, 1, 1, 0};
	r_how.before_len = 4;
	r_part(1, 0, 64, true);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_BAD), 2);
	CHECK_EQ(r_held(), 0);
	t_close();
}

static void
too_late(void)
{
	static const uint32_t timeouts_ms[] = {0, 5, 120000};

	for (size_t i = 0; i < SL_COUNT_OF(timeouts_ms); i++) {
		uint64_t ns = (timeouts_ms[i] != 0 ? timeouts_ms[i] : 30000) * T_MS;

		t_frag_timeout_ms = timeouts_ms[i];
		t_open(NULL);
		r_udp(false, 300);
		r_nth(1, 0, 4);
		t_pass(ns / 2);
		r_nth(1, 1, 4); /* does not make it last longer */
		r_nth(2, 0, 4);
		t_pass(ns / 2 - 1);
		t_check_sums();
		CHECK_EQ(r_held(), 3);
		t_pass(1);
		t_check_sums();
		CHECK_EQ(r_held(), 1);
		CHECK_EQ(t_count(SL_RX_IP_FRAG_TIMEOUT), 2);
		/* The rest does not make a datagram of it. */
		r_nth(1, 2, 4);
		r_nth(1, 3, 4);
		CHECK_EQ(t_ins, 0);
		t_pass(ns);
		CHECK_EQ(r_held(), 0);
		CHECK_EQ(t_count(SL_RX_IP_FRAG_TIMEOUT), 5);
		/* A fragment that comes before any timer has run is judged by its time as well. */
		r_nth(3, 0, 2);
		t_now += ns;
		r_nth(3, 1, 2);
		CHECK_EQ(t_count(SL_RX_IP_FRAG_TIMEOUT), 6);
		CHECK_EQ(r_held(), 1);
		t_close();
	}
	t_frag_timeout_ms = 0;
}

static void
as_many_as_may_be(void)
{
	t_frag_packets = 6;
	t_open(NULL);
	r_udp(false, 300);
	r_nth(1, 0, 4);
	r_nth(1, 1, 4);
	for (uint32_t id = 2; id <= 5; id++)
		r_nth(id, 0, 4);
	CHECK_EQ(r_held(), 6);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 0);
	r_nth(6, 0, 4); /* the oldest goes, whole */
	CHECK_EQ(r_held(), 5);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 2);
	/* A flood of first parts, and a datagram in the midst of it. */
	for (uint32_t id = 100; id < 200; id++)
		r_nth(id, 0, 4);
	CHECK_EQ(r_held(), 6);
	for (size_t k = 0; k < 4; k++) {
		r_nth(7, k, 4);
		CHECK(r_held() <= 6);
	}
	r_check_udp();
	t_close();
	/* When a datagram needs more than there may be, it is itself the oldest. */
	t_frag_packets = 2;
	t_open(NULL);
	r_udp(false, 300);
	for (size_t k = 0; k < 4; k++)
		r_nth(1, k, 4);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 3);
	CHECK_EQ(r_held(), 1);
	t_close();
	t_frag_packets = 0;
}

static void
as_much_as_may_be(void)
{
	uint32_t one = sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE;

	t_frag_bytes = 3 * one;
	t_open(NULL);
	r_udp(true, 300);
	for (uint32_t id = 1; id <= 3; id++)
		r_nth(id, 0, 4);
	CHECK_EQ(r_held(), 3);
	r_nth(4, 0, 4);
	CHECK_EQ(r_held(), 3);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 1);
	r_how.split = 70; /* two buffers: two go */
	r_nth(5, 0, 4);
	CHECK_EQ(r_held(), 2);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 3);
	t_close();
	/* What is alone too much sends nobody away. */
	t_frag_bytes = 2 * one - 1;
	t_open(NULL);
	r_udp(true, 300);
	r_nth(1, 0, 4);
	r_how.split = 70;
	r_nth(2, 0, 4);
	CHECK_EQ(r_held(), 1);
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 1);
	t_close();
	t_frag_bytes = 0;
}

static void
settings(void)
{
	static const struct sl_inet_conf bad[] = {
		{.workers = 1, .frag_packets = 65537}, {.workers = 1, .frag_timeout_ms = 120001}};
	struct sl_inet *inet;

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++)
		CHECK_EQ(sl_inet_create(&bad[i], &inet), -EINVAL);
}

static void
destroyed_while_it_holds(void)
{
	t_open(NULL);
	r_udp(false, 300);
	r_nth(1, 0, 4);
	r_nth(1, 2, 4);
	r_how.worker = 1;
	r_nth(1, 1, 4); /* another worker's: not joined */
	CHECK_EQ(sl_inet_held(t_inet, 0), 2);
	CHECK_EQ(sl_inet_held(t_inet, 1), 1);
	t_close(); /* checks the sums, and that all mbufs are back */
}

/* What the datagram is found to be counts for the part that completed it. */
static void
outcomes_of_the_whole(void)
{
	static const uint8_t refusals[] = {SL_RX_UDP_RCVBUF, SL_RX_UDP_NO_SOCKET};

	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		r_udp(v6, 300);
		r_data[100] ^= 1;
		for (size_t k = 0; k < 3; k++)
			r_nth(1, k, 3);
		CHECK_EQ(t_count(SL_RX_UDP_CSUM), 1);
		r_udp(v6, 300);
		put16(r_data + 4, 600);
		for (size_t k = 0; k < 3; k++)
			r_nth(2, k, 3);
		CHECK_EQ(t_count(SL_RX_UDP_LENGTH), 1);
		r_udp(v6, 300);
		r_proto = 6;
		for (size_t k = 0; k < 3; k++)
			r_nth(3, k, 3);
		CHECK_EQ(t_count(SL_RX_IP_PROTO), 1);
		t_close();
	}
	for (size_t i = 0; i < SL_COUNT_OF(refusals); i++) {
		for (int v6 = 0; v6 < 2; v6++) {
			size_t at = v6 ? 14 + 40 + 8 : 14 + 20 + 8, len;
			const uint8_t *p;

			t_open(NULL);
			t_udp_answer = refusals[i];
			r_udp(v6, 400);
			for (size_t k = 3; k > 0; k--)
				r_nth(1, k - 1, 3);
			CHECK_EQ(t_count(refusals[i]), 1);
			CHECK_EQ(t_count(SL_RX_IP_FRAG_MERGED), 2);
			t_flush();
			CHECK_EQ(t_outs, refusals[i] == SL_RX_UDP_NO_SOCKET);
			if (t_outs == 1) { /* it quotes the datagram as it was before it was cut */
				p = t_out_data(0, &len);
				CHECK_EQ(p[at - 8], v6 ? 1 : 3);
				CHECK_EQ(len, RTE_MIN(at + (v6 ? 40u : 20u) + r_len,
						      14 + 576u + v6 * 704u));
				if (!v6)
					CHECK_EQ(t_sum(p + at, 20, 0), 0xffff);
				at += v6 ? 40 : 20;
				CHECK(memcmp(p + at, r_data, len - at) == 0);
			}
			t_close();
		}
	}
}

static void
headers_around_it(void)
{
	static const uint8_t options[] = {7, 7, 4, 0, 0, 0, 0, 0};
	static const uint8_t hop[] = {60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0};

	t_open(NULL);
	r_udp(false, 300);
	r_how.before = options;
	r_how.before_len = sizeof(options);
	r_nth(1, 1, 2);
	r_nth(1, 0, 2);
	r_check_udp();
	r_udp(true, 300);
	r_how.before = hop;
	r_how.before_len = sizeof(hop);
	r_nth(2, 0, 2);
	r_how.before_len = 0; /* the parts need not agree about them */
	r_nth(2, 1, 2);
	r_check_udp();
	t_close();
	/* Extension headers, and another fragment header, in what was cut. */
	for (int again = 0; again < 2; again++) {
		t_open(NULL);
		r_udp(true, 300);
		memmove(r_data + 8, r_data, r_len);
		memset(r_data, 0, 8);
		r_data[0] = IPPROTO_UDP;
		if (!again)
			memcpy(r_data + 2, (const uint8_t[]){1, 4}, 2);
		r_proto = again ? 44 : 60;
		r_len += 8;
		r_nth(3, 0, 2);
		r_nth(3, 1, 2);
		CHECK_EQ(t_count(SL_RX_UDP_QUEUED), !again);
		CHECK_EQ(t_count(SL_RX_IP_EXTENSION), again);
		t_close();
	}
}

static void
atomic_fragments(void)
{
	t_open(NULL);
	r_udp(true, 300);
	r_nth(9, 1, 2);
	/* Whole in itself, and not part of what waits under the same id. */
	r_part(9, 0, r_len, false);
	r_check_udp();
	CHECK_EQ(r_held(), 1);
	r_nth(9, 0, 2);
	r_check_udp();
	CHECK_EQ(t_count(SL_RX_UDP_QUEUED), 2);
	t_close();
}

static void
congestion(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		t_open(NULL);
		r_udp(v6, 300);
		for (uint8_t marked = 0; marked < 3; marked++) {
			for (uint8_t k = 0; k < 2; k++) {
				r_how.tos = k == marked ? 0xb8 | 3 : 0xb8 | 2;
				r_nth(marked, k, 2);
			}
			CHECK_EQ(t_in[0].tos, marked < 2 ? 0xbb : 0xba);
			r_check_udp();
		}
		t_close();
	}
}

/* The pool is empty when a head is needed: all parts are lost, none of the mbufs is. */
static void
no_mbuf_for_the_head(void)
{
	struct rte_mbuf *all[T_POOL], *last;
	struct t_frame f;
	unsigned int n = 0;

	t_open(NULL);
	r_udp(false, 300);
	r_how.shared = true;
	r_nth(1, 0, 3);
	r_nth(1, 1, 3);
	r_frame(&f, 1, 208, r_len - 208, false);
	last = r_mbuf(&f);
	while (n < T_POOL && (all[n] = rte_pktmbuf_alloc(t_pool)) != NULL)
		n++;
	sl_inet_input_burst(t_inet, 0, t_port, &last, 1);
	t_check_sums();
	CHECK_EQ(t_count(SL_RX_IP_FRAG_FULL), 3);
	CHECK_EQ(r_held(), 0);
	rte_pktmbuf_free_bulk(all, n);
	t_close();
}

/* A ping that came in fragments is answered in fragments: the reply, sent back to us, is whole. */
static void
large_pings(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		size_t l3 = v6 ? 48 : 20, len, off;
		static uint8_t reply[sizeof(r_data)];

		t_open(NULL);
		r_echo(v6, 4000);
		for (size_t k = 0; k < 3; k++)
			r_nth(1, k, 3);
		CHECK_EQ(t_count(SL_RX_ECHO), 1);
		t_flush();
		CHECK_EQ(t_outs, 3);
		off = 0;
		for (unsigned int i = 0; i < t_outs; i++) {
			const uint8_t *p = t_out_data(i, &len), *ip = p + 14;
			size_t word = (size_t)(v6 ? ip[42] << 8 | ip[43] : ip[6] << 8 | ip[7]);

			CHECK(memcmp(p, t_peer_mac, 6) == 0 && len <= 1514);
			CHECK_EQ(v6 ? word & 0xfff8 : (word & 0x1fff) * 8, off);
			CHECK_EQ((word & (v6 ? 1 : 0x2000)) != 0, i < 2);
			CHECK(memcmp(v6 ? ip + 44 : ip + 4,
				      t_out_data(0, NULL) + (v6 ? 14 + 44 : 14 + 4),
				      v6 ? 4 : 2) == 0);
			if (!v6)
				CHECK_EQ(t_sum(ip, 20, 0), 0xffff);
			memcpy(reply + off, ip + l3, len - 14 - l3);
			off += len - 14 - l3;
		}
		CHECK_EQ(off, r_len);
		CHECK_EQ(reply[0], v6 ? 129 : 0);
		CHECK_EQ(t_sum(reply, off, v6 ? t_pseudo(r_src(), r_dst(), 58, off) : 0), 0xffff);
		CHECK(memcmp(reply + 4, r_data + 4, r_len - 4) == 0);
		t_close();
	}
}

static void
tagged(void)
{
	struct sl_inet_port_conf conf = {.vlan = 7};

	for (int v6 = 0; v6 < 2; v6++) {
		t_open(&conf);
		r_udp(v6, 300);
		r_how.vlan = 7;
		for (size_t k = 0; k < 3; k++)
			r_nth(1, k, 3);
		r_check_udp();
		t_close();
	}
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(every_order);
	SL_TEST_RUN(parts_in_segments);
	SL_TEST_RUN(largest);
	SL_TEST_RUN(longest_datagram);
	SL_TEST_RUN(duplicates);
	SL_TEST_RUN(overlaps_are_refused);
	SL_TEST_RUN(shapes);
	SL_TEST_RUN(too_late);
	SL_TEST_RUN(as_many_as_may_be);
	SL_TEST_RUN(as_much_as_may_be);
	SL_TEST_RUN(settings);
	SL_TEST_RUN(destroyed_while_it_holds);
	SL_TEST_RUN(outcomes_of_the_whole);
	SL_TEST_RUN(headers_around_it);
	SL_TEST_RUN(atomic_fragments);
	SL_TEST_RUN(congestion);
	SL_TEST_RUN(no_mbuf_for_the_head);
	SL_TEST_RUN(large_pings);
	SL_TEST_RUN(tagged);
	return test_end();
}
