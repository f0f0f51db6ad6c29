/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Frames through a bridge whose members are rings in a loop: what a member sends is there to be
 * received from it. */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "bridge.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define PORTS 3u
#define RING 1024u /* what net_ring makes */
#define MBUFS 4095u
#define AGE_S 10u

static const uint8_t station[3][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}};
static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};

static struct rte_mempool *pool;
static uint16_t port[PORTS];
static struct bridge *bridge;

static void
setup(uint16_t members)
{
	struct bridge_conf conf = {.name = "test",
		.members = members,
		.workers = 1,
		.pool = pool,
		.table = {.entries = 64, .per_port = 32, .age_s = AGE_S, .seed = 1, .socket = -1}};

	memcpy(conf.port_id, port, sizeof(port));
	REQUIRE(bridge_create(&conf, &bridge) == 0);
}

/* The next frame that has left by a member, or NULL. */
static struct rte_mbuf *
next(unsigned int member)
{
	struct rte_mbuf *m;

	return rte_eth_rx_burst(port[member], 0, &m, 1) == 1 ? m : NULL;
}

/* Frames that have left by a member since, freed. */
static unsigned int
sent(unsigned int member)
{
	struct rte_mbuf *m;
	unsigned int n = 0;

	for (; (m = next(member)) != NULL; n++)
		rte_pktmbuf_free(m);
	return n;
}

/* All counts add up, and no packet is missing. */
static void
teardown(void)
{
	struct bridge_counts c = {0};
	uint64_t frames = 0, copies = 0;

	for (unsigned int i = 0; i < PORTS; i++)
		(void)sent(i);
	bridge_counts(bridge, &c);
	for (int i = 0; i < BRIDGE_COPY_FIRST; i++)
		frames += c.outcome[i];
	for (int i = BRIDGE_COPY_FIRST; i < BRIDGE_OUTCOMES; i++)
		copies += c.outcome[i];
	CHECK_EQ(frames, c.received);
	CHECK_EQ(copies, c.copies);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
	bridge_destroy(bridge);
}

static struct rte_mbuf *
frame(const uint8_t *dst, const uint8_t *src, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p;

	REQUIRE(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, len);
	REQUIRE(p != NULL);
	memset(p, 0x5a, len);
	if (len >= 14) {
		memcpy(p, dst, 6);
		memcpy(p + 6, src, 6);
		p[12] = 0x88;
		p[13] = 0xb5;
	}
	return m;
}

static void
input(uint16_t from, struct rte_mbuf *m, uint32_t now_s)
{
	bridge_input(bridge, 0, from, &m, 1, now_s);
}

static uint64_t
outcome(enum bridge_outcome which)
{
	struct bridge_counts c = {0};

	bridge_counts(bridge, &c);
	return c.outcome[which];
}

static void
bad_arguments_are_refused(void)
{
	struct bridge_conf conf = {.name = "bad",
		.members = 1,
		.workers = 1,
		.table = {.entries = 64, .per_port = 32, .age_s = AGE_S}};
	struct bridge *b;

	CHECK_EQ(bridge_create(&conf, &b), -EINVAL);
	conf.members = 2;
	conf.port_id[1] = 77;
	CHECK_EQ(bridge_create(&conf, &b), -ENODEV);
	conf.port_id[1] = port[1];
	conf.table.entries = 1;
	CHECK_EQ(bridge_create(&conf, &b), -EINVAL);
	bridge_destroy(NULL);
}

static void
unknown_is_flooded_known_is_forwarded(void)
{
	setup(3);
	input(0, frame(station[1], station[0], 60), 0);
	CHECK_EQ(sent(0), 0);
	CHECK_EQ(sent(1), 1);
	CHECK_EQ(sent(2), 1);
	input(1, frame(station[0], station[1], 60), 0);
	CHECK_EQ(sent(0), 1);
	CHECK_EQ(sent(1) + sent(2), 0);
	/* Now both are known. */
	input(0, frame(station[1], station[0], 60), 0);
	CHECK_EQ(sent(1), 1);
	CHECK_EQ(sent(0) + sent(2), 0);
	input(2, frame(broadcast, station[2], 60), 0);
	CHECK_EQ(sent(0), 1);
	CHECK_EQ(sent(1), 1);
	CHECK_EQ(sent(2), 0);
	CHECK_EQ(outcome(BRIDGE_FLOODED), 2);
	CHECK_EQ(outcome(BRIDGE_FORWARDED), 2);
	teardown();
}

static void
a_station_moves_and_ages(void)
{
	setup(3);
	input(0, frame(broadcast, station[0], 60), 0);
	input(1, frame(station[0], station[1], 60), 0);
	CHECK_EQ(sent(0), 1);
	(void)sent(1);
	(void)sent(2);
	input(2, frame(broadcast, station[0], 60), 1);
	(void)sent(0);
	(void)sent(1);
	input(1, frame(station[0], station[1], 60), 1);
	CHECK_EQ(sent(2), 1);
	CHECK_EQ(sent(0), 0);
	input(1, frame(station[0], station[1], 60), 2 + AGE_S);
	CHECK_EQ(sent(0), 1);
	CHECK_EQ(sent(2), 1);
	teardown();
}

static void
nothing_goes_back_or_beyond(void)
{
	static const uint8_t pause[6] = {1, 0x80, 0xc2, 0, 0, 1}, none[6],
			     group[6] = {3, 0, 0, 0, 0, 1};
	static const uint8_t beyond[6] = {1, 0x80, 0xc2, 0, 0, 0x10};

	setup(3);
	input(0, frame(broadcast, station[0], 60), 0);
	input(0, frame(broadcast, station[1], 60), 0);
	CHECK_EQ(sent(1), 2);
	CHECK_EQ(sent(2), 2);
	input(0, frame(station[1], station[0], 60), 0);
	input(1, frame(pause, station[2], 60), 0);
	input(1, frame(station[0], none, 60), 0);
	input(1, frame(station[0], group, 60), 0);
	input(1, frame(NULL, NULL, 13), 0);
	input(1, frame(NULL, NULL, 0), 0);
	CHECK_EQ(sent(0) + sent(1) + sent(2), 0);
	CHECK_EQ(outcome(BRIDGE_SAME_PORT), 1);
	CHECK_EQ(outcome(BRIDGE_RESERVED), 1);
	CHECK_EQ(outcome(BRIDGE_SOURCE), 2);
	CHECK_EQ(outcome(BRIDGE_SHORT), 2);
	input(1, frame(beyond, station[2], 60), 0);
	CHECK_EQ(sent(0), 1);
	CHECK_EQ(sent(2), 1);
	teardown();
}

static void
what_is_too_long_or_too_much_is_counted(void)
{
	struct rte_mbuf *burst[BRIDGE_BURST], *m;

	setup(2);
	m = frame(station[1], station[0], 1514);
	input(0, m, 0);
	CHECK_EQ(sent(1), 1);
	input(0, frame(station[1], station[0], 1515), 0);
	CHECK_EQ(outcome(BRIDGE_MTU), 1);
	/* Tags do not count. */
	m = frame(station[1], station[0], 1522);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), "\x88\xa8\0\1\x81\0\0\2", 8);
	input(0, m, 0);
	CHECK_EQ(sent(1), 1);
	for (unsigned int k = 0; k < RING / BRIDGE_BURST + 1; k++) {
		for (uint16_t i = 0; i < BRIDGE_BURST; i++)
			burst[i] = frame(station[1], station[0], 60);
		bridge_input(bridge, 0, 0, burst, BRIDGE_BURST, 0);
	}
	CHECK_EQ(outcome(BRIDGE_TX_FULL), BRIDGE_BURST + 1);
	CHECK_EQ(sent(1), RING - 1);
	teardown();
}

static void
polling_takes_what_came(void)
{
	struct rte_mbuf *m;

	setup(2);
	for (int i = 0; i < 5; i++) {
		m = frame(station[1], station[0], 60);
		REQUIRE(rte_eth_tx_burst(port[0], 0, &m, 1) == 1);
	}
	CHECK_EQ(bridge_poll(bridge, 0, 0, 0), 5);
	CHECK_EQ(bridge_poll(bridge, 0, 0, 0), 0);
	CHECK_EQ(sent(1), 5);
	teardown();
}

/* ---- what frames ask for ---- */

/* A UDP datagram whose checksum is not filled in, padded behind it. */
static struct rte_mbuf *
datagram(const uint8_t *dst, const uint8_t *src, uint16_t payload, uint16_t pad)
{
	struct rte_mbuf *m = frame(dst, src, (uint16_t)(14 + 28 + payload + pad));
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), "\x08\0", 2);
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
		.total_length = rte_cpu_to_be_16((uint16_t)(28 + payload)),
		.time_to_live = 9,
		.next_proto_id = 17,
		.src_addr = rte_cpu_to_be_32(0x0a000001),
		.dst_addr = rte_cpu_to_be_32(0x0a000002)};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	*udp = (struct rte_udp_hdr){.src_port = 1,
		.dst_port = 2,
		.dgram_len = rte_cpu_to_be_16((uint16_t)(8 + payload))};
	udp->dgram_cksum = rte_ipv4_phdr_cksum(ip, 0);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	return m;
}

static bool
checksum_good(const struct rte_mbuf *m, uint32_t at)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, at);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);

	return udp->dgram_cksum != 0 && rte_ipv4_udptcp_cksum_verify(ip, udp) == 0;
}

static void
checksums_are_finished_for_ports_that_cannot(void)
{
	struct rte_mbuf *m;

	setup(3);
	for (uint16_t payload = 0; payload < 40; payload++) {
		input(0, datagram(station[1], station[0], payload, payload % 3), 0);
		for (unsigned int to = 1; to < 3; to++) {
			m = next(to);
			REQUIRE(m != NULL);
			CHECK(checksum_good(m, 14));
			CHECK((m->ol_flags & ~(RTE_MBUF_F_INDIRECT)) == 0);
			rte_pktmbuf_free(m);
		}
	}
	/* Shared with somebody: it is not written. */
	m = datagram(station[1], station[0], 8, 0);
	rte_mbuf_refcnt_update(m, 1);
	input(0, m, 0);
	CHECK(!checksum_good(m, 14));
	CHECK_EQ(sent(1), 1);
	CHECK_EQ(sent(2), 1);
	rte_pktmbuf_free(m);
	teardown();
}

static void
requests_go_to_ports_that_can(void)
{
	struct rte_mbuf *m = datagram(station[1], station[0], 20, 0);

	CHECK_EQ(bridge_frame_finish(&m, RTE_ETH_TX_OFFLOAD_UDP_CKSUM, pool), 0);
	CHECK((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM);
	CHECK((m->ol_flags & RTE_MBUF_F_TX_IPV4) != 0);
	CHECK(m->l2_len == 14 && m->l3_len == 20);
	CHECK(!checksum_good(m, 14));
	/* One that does TCP alone. */
	CHECK(bridge_frame_asks(m));
	CHECK_EQ(bridge_frame_finish(&m, RTE_ETH_TX_OFFLOAD_TCP_CKSUM, pool), 0);
	CHECK((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == 0);
	CHECK(checksum_good(m, 14));
	CHECK(!bridge_frame_asks(m));
	rte_pktmbuf_free(m);
}

static void
a_tag_that_was_taken_off_comes_back(void)
{
	struct rte_mbuf *m = datagram(station[1], station[0], 20, 0);

	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0x6005;
	CHECK_EQ(bridge_frame_finish(&m, 0, pool), 0);
	CHECK(memcmp(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), "\x81\0\x60\x05\x08\0", 6) == 0);
	CHECK(memcmp(rte_pktmbuf_mtod(m, uint8_t *), station[1], 6) == 0);
	CHECK(checksum_good(m, 18));
	CHECK_EQ(m->ol_flags, 0);
	CHECK_EQ(bridge_frame_payload(m), 48);
	rte_pktmbuf_free(m);
}

/* Headers that do not say where the checksum is, and what is to be cut, are not passed on wrong. */
static void
what_cannot_be_done_is_counted(void)
{
	struct rte_mbuf *m;

	setup(3);
	m = datagram(station[1], station[0], 20, 0);
	m->ol_flags |= RTE_MBUF_F_RX_LRO;
	m->tso_segsz = 1000;
	input(0, m, 0);
	m = datagram(station[1], station[0], 20, 0);
	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[9] = 132; /* SCTP */
	input(0, m, 0);
	m = datagram(station[1], station[0], 20, 0);
	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[3] = 255; /* longer than the frame */
	input(0, m, 0);
	m = datagram(station[1], station[0], 20, 0);
	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[3] = 22; /* shorter than its header */
	input(0, m, 0);
	m = datagram(station[1], station[0], 20, 0);
	REQUIRE(rte_pktmbuf_trim(m, 60 - 40) == 0);
	input(0, m, 0);
	m = frame(station[1], station[0], 14);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	input(0, m, 0);
	m = frame(station[1], station[0], 60);
	m->ol_flags |= RTE_MBUF_F_RX_QINQ_STRIPPED;
	input(0, m, 0);
	CHECK_EQ(outcome(BRIDGE_OFFLOAD), 14);
	CHECK_EQ(sent(1) + sent(2), 0);
	teardown();
}

static void
without_packets_the_copies_are_lost_and_counted(void)
{
	struct rte_mbuf *all[MBUFS], *m;
	unsigned int n = 0;

	setup(3);
	m = frame(broadcast, station[0], 60);
	while (n < MBUFS && (all[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	input(0, m, 0);
	CHECK_EQ(outcome(BRIDGE_NO_MBUF), 1);
	CHECK_EQ(sent(1), 0);
	CHECK_EQ(sent(2), 1);
	rte_pktmbuf_free_bulk(all, n);
	teardown();
}

static void
ports_create(void)
{
	struct rte_eth_conf conf = {0};

	for (unsigned int i = 0; i < PORTS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "net_ring%u", i);
		REQUIRE(rte_eth_dev_get_port_by_name(name, &port[i]) == 0);
		REQUIRE(rte_eth_dev_configure(port[i], 1, 1, &conf) == 0);
		REQUIRE(rte_eth_rx_queue_setup(port[i], 0, RING, 0, NULL, pool) == 0);
		REQUIRE(rte_eth_tx_queue_setup(port[i], 0, RING, 0, NULL) == 0);
		REQUIRE(rte_eth_dev_start(port[i]) == 0);
	}
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --vdev=net_ring0 --vdev=net_ring1 --vdev=net_ring2 "
					"--log-level=error") >= 0);
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	ports_create();
	SL_TEST_RUN(bad_arguments_are_refused);
	SL_TEST_RUN(unknown_is_flooded_known_is_forwarded);
	SL_TEST_RUN(a_station_moves_and_ages);
	SL_TEST_RUN(nothing_goes_back_or_beyond);
	SL_TEST_RUN(what_is_too_long_or_too_much_is_counted);
	SL_TEST_RUN(polling_takes_what_came);
	SL_TEST_RUN(checksums_are_finished_for_ports_that_cannot);
	SL_TEST_RUN(requests_go_to_ports_that_can);
	SL_TEST_RUN(a_tag_that_was_taken_off_comes_back);
	SL_TEST_RUN(what_cannot_be_done_is_counted);
	SL_TEST_RUN(without_packets_the_copies_are_lost_and_counted);
	return test_end();
}
