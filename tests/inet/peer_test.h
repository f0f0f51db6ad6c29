/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

#ifndef PEER_TEST_H
#define PEER_TEST_H

/**
 * @file
 * A neighbour of either family: what it is asked, and what it answers.
 */
#include "inet_test.h"

#define ETH_ARP 0x0806
#define NS 135
#define NA 136
#define SOLICITED 0x40
#define OVERRIDE 0x20

static const uint8_t mac_b[6] T_UNUSED = {2, 0, 0, 0, 0, 0xb};
static const uint8_t nobody[6] T_UNUSED;

static inline uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* A datagram of `len` bytes to dst; returns what output returned. */
static inline int
send_to(const char *dst, uint16_t len)
{
	struct sl_inet_flow flow = {
		.dst = t_addr(dst), .sport = rte_cpu_to_be_16(9), .dport = rte_cpu_to_be_16(10)};
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	int ret;

	REQUIRE(m != NULL && rte_pktmbuf_append(m, len) != NULL);
	memset(rte_pktmbuf_mtod(m, void *), 0, len);
	ret = sl_inet_source(t_inet, &flow.dst, &flow.src);
	if (ret == 0)
		ret = sl_inet_udp_output(t_inet, 0, &flow, m);
	if (ret != 0)
		rte_pktmbuf_free(m);
	t_flush();
	return ret;
}

static inline bool
v6(const char *addr)
{
	return strchr(addr, ':') != NULL;
}

/* Is packet i a question for addr? To mac alone, or to everybody (NULL). */
static inline bool
is_question(unsigned int i, const char *addr, const uint8_t *mac)
{
	static const uint8_t group[] = {0x33, 0x33, 0xff};
	struct sl_addr a = t_addr(addr);
	const uint8_t *p;
	size_t len;

	if (i >= t_outs)
		return false;
	p = t_out_data(i, &len);
	if (mac != NULL && memcmp(p, mac, 6) != 0)
		return false;
	if (!v6(addr))
		return (mac != NULL || memcmp(p, t_any_mac, 6) == 0) && get16(p + 12) == ETH_ARP &&
		       get16(p + 20) == 1 && memcmp(p + 38, a.b + 12, 4) == 0 && len == 42;
	return (mac != NULL || (memcmp(p, group, 3) == 0 && memcmp(p + 3, a.b + 13, 3) == 0)) &&
	       p[54] == NS && memcmp(p + 62, a.b, 16) == 0 && p[21] == 255;
}

/* The peer says that addr is at mac, as the answer to a question. */
static inline void
answer(const char *addr, const uint8_t *mac)
{
	struct t_frame f;
	uint8_t msg[32];

	if (!v6(addr)) {
		t_arp_frame(&f, 2, t_our_mac, mac, addr, "198.18.0.2");
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ARP);
	} else {
		t_icmp6_frame(&f, addr, "2001:db8::2", t_our_mac, 255, msg,
			t_nd(msg, NA, SOLICITED | OVERRIDE, addr, mac));
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
	}
	t_flush();
}

static inline int
lookup(const char *addr, uint8_t *mac)
{
	struct sl_addr a = t_addr(addr);

	return sl_inet_neighbour(t_inet, t_port, &a, mac);
}

#endif
