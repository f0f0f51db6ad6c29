/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Which lcore a packet goes to, and that none is lost on the way there. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "sl_test.h"
#include "sl_test_eal.h"
#include "spread.h"

#define TARGETS 4u
#define MBUFS 4095u

static struct rte_mempool *pool;
static struct spread *spread;

static void
setup(uint32_t seed)
{
	REQUIRE(spread_create(TARGETS, seed, &spread) == 0);
}

static void
teardown(void)
{
	spread_destroy(spread);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

struct like {
	uint16_t tags;
	bool ipv6;
	uint16_t fragment; /* IPv4: flags and offset */
	uint8_t proto;
	uint8_t options; /* words of IPv4 */
	uint32_t host;
	uint16_t sport;
};

static struct rte_mbuf *
packet(const struct like *l)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p, *at;

	REQUIRE(m != NULL);
	p = at = (uint8_t *)rte_pktmbuf_append(m, 128);
	memset(p, 0, 128);
	at += 12;
	for (uint16_t i = 0; i < l->tags; i++, at += 4)
		memcpy(at, "\x81\0\0\7", 4);
	memcpy(at, l->ipv6 ? "\x86\xdd" : "\x08\0", 2);
	at += 2;
	if (l->ipv6) {
		at[0] = 0x60;
		at[6] = l->proto;
		memcpy(at + 8, &l->host, 4);
		at += 40;
	} else {
		at[0] = (uint8_t)(0x45 + l->options);
		at[6] = (uint8_t)(l->fragment >> 8);
		at[7] = (uint8_t)l->fragment;
		at[9] = l->proto;
		memcpy(at + 12, &l->host, 4);
		at += 20 + 4 * l->options;
	}
	memcpy(at, &l->sport, 2);
	at[40] = (uint8_t)l->sport; /* payload, which does not count */
	return m;
}

static uint16_t
target(const struct like *l)
{
	struct rte_mbuf *m = packet(l);
	uint16_t t = spread_pick(spread, m);

	rte_pktmbuf_free(m);
	return t;
}

static void
flows_are_spread_evenly(void)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t n[TARGETS] = {0};

		setup(7);
		for (uint32_t i = 0; i < 4000; i++) {
			const struct like l = {.ipv6 = ipv6 != 0,
				.proto = i % 2 != 0 ? 17 : 6,
				.host = 5,
				.sport = (uint16_t)i};

			n[target(&l)]++;
			CHECK_EQ(target(&l), target(&l));
		}
		for (uint32_t i = 0; i < TARGETS; i++)
			CHECK(n[i] > 800 && n[i] < 1200);
		teardown();
	}
}

/* Tags and options do not part a flow. */
static void
a_flow_is_one_whatever_is_around_it(void)
{
	setup(9);
	for (uint32_t i = 0; i < 200; i++) {
		const struct like plain = {.proto = 17, .host = i, .sport = 77};
		const struct like tagged = {.proto = 17, .host = i, .sport = 77, .tags = 2};
		const struct like options = {.proto = 17, .host = i, .sport = 77, .options = 10};
		const struct like df = {.proto = 17, .host = i, .sport = 77, .fragment = 0x4000};

		CHECK_EQ(target(&plain), target(&tagged));
		CHECK_EQ(target(&plain), target(&options));
		CHECK_EQ(target(&plain), target(&df));
	}
	teardown();
}

/* The first fragment has ports, the others have payload in their place. */
static void
fragments_of_a_datagram_meet(void)
{
	setup(11);
	for (uint32_t i = 0; i < 200; i++) {
		const struct like first = {.proto = 17, .host = i, .sport = 77, .fragment = 0x2000};
		const struct like next = {.proto = 17, .host = i, .sport = 3, .fragment = 0x2001};
		const struct like last = {.proto = 17, .host = i, .sport = 9, .fragment = 2};
		const struct like first6 = {.ipv6 = true, .proto = 44, .host = i, .sport = 1};
		const struct like last6 = {.ipv6 = true, .proto = 44, .host = i, .sport = 2};

		CHECK_EQ(target(&first), target(&next));
		CHECK_EQ(target(&first), target(&last));
		CHECK_EQ(target(&first6), target(&last6));
	}
	teardown();
}

static void
what_is_no_ip_stays(void)
{
	const struct like l = {.proto = 17, .host = 3, .sport = 77};
	struct rte_mbuf *m;

	for (uint32_t seed = 0; seed < 20; seed++) {
		setup(seed);
		m = packet(&l);
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), "\x08\6", 2); /* ARP */
		CHECK_EQ(spread_pick(spread, m), 0);
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), "\x08\0\x65", 3); /* version 6 */
		CHECK_EQ(spread_pick(spread, m), 0);
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 14), "\x44", 1); /* a short header */
		CHECK_EQ(spread_pick(spread, m), 0);
		rte_pktmbuf_free(m);
		teardown();
	}
}

/* Any length, down to nothing. */
static void
short_packets_are_read_within_their_bounds(void)
{
	setup(3);
	for (uint16_t len = 0; len < 128; len++) {
		for (uint8_t kind = 0; kind < 6; kind++) {
			const struct like l = {.ipv6 = kind % 2 != 0,
				.tags = kind / 2,
				.proto = 17,
				.host = 3,
				.sport = len};
			struct rte_mbuf *m = packet(&l);

			REQUIRE(rte_pktmbuf_trim(m, (uint16_t)(128 - len)) == 0);
			CHECK(spread_pick(spread, m) < TARGETS);
			rte_pktmbuf_free(m);
		}
	}
	teardown();
}

static void
every_packet_is_somewhere(void)
{
	uint64_t touched, all = 0, own = 0, taken = 0;
	struct rte_mbuf *pkts[SPREAD_BURST];
	struct spread_counts c;
	uint16_t n;

	setup(5);
	for (uint32_t round = 0; round < 60; round++) {
		for (uint16_t i = 0; i < SPREAD_BURST; i++) {
			const struct like l = {.proto = 17, .host = 1, .sport = i};

			pkts[i] = packet(&l);
		}
		n = spread_burst(spread, pkts, SPREAD_BURST, &touched);
		CHECK((touched & 1) == 0 && touched < UINT64_C(1) << TARGETS);
		rte_pktmbuf_free_bulk(pkts, n);
		all += SPREAD_BURST;
		own += n;
		/* One target falls behind, and its ring fills up; the others go on. */
		for (uint16_t t = 1; t < TARGETS - 1; t++) {
			n = spread_take(spread, t, pkts);
			CHECK_EQ(n > 0, touched >> t & 1);
			rte_pktmbuf_free_bulk(pkts, n);
			taken += n;
		}
	}
	spread_counts(spread, &c);
	CHECK_EQ(c.passed + own, all);
	CHECK_EQ(c.taken, taken);
	CHECK_EQ(c.taken + c.full + c.held, c.passed);
	CHECK(c.held > 0 && own > 0);
	teardown();
}

static void
a_full_ring_drops(void)
{
	struct rte_mbuf *pkts[SPREAD_BURST];
	struct like l = {.proto = 17, .host = 1, .sport = 1};
	struct spread_counts c;
	uint64_t touched;

	setup(5);
	while (target(&l) == 0)
		l.sport++;
	for (uint32_t round = 0; round < 40; round++) {
		for (uint16_t i = 0; i < SPREAD_BURST; i++) {
			pkts[i] = packet(&l);
		}
		rte_pktmbuf_free_bulk(pkts, spread_burst(spread, pkts, SPREAD_BURST, &touched));
	}
	spread_counts(spread, &c);
	CHECK_EQ(c.held, SPREAD_RING);
	CHECK_EQ(c.full, 40 * SPREAD_BURST - SPREAD_RING);
	teardown();
}

static void
bad_arguments_are_refused(void)
{
	struct spread *s = NULL;

	CHECK_EQ(spread_create(1, 0, &s), -EINVAL);
	CHECK_EQ(spread_create(SPREAD_TARGETS_MAX + 1, 0, &s), -EINVAL);
	CHECK(s == NULL);
	spread_destroy(NULL);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=error") >= 0);
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(flows_are_spread_evenly);
	SL_TEST_RUN(a_flow_is_one_whatever_is_around_it);
	SL_TEST_RUN(fragments_of_a_datagram_meet);
	SL_TEST_RUN(what_is_no_ip_stays);
	SL_TEST_RUN(short_packets_are_read_within_their_bounds);
	SL_TEST_RUN(every_packet_is_somewhere);
	SL_TEST_RUN(a_full_ring_drops);
	SL_TEST_RUN(bad_arguments_are_refused);
	return test_end();
}
