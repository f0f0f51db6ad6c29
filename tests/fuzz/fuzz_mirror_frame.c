/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any octets in front of a datagram: they are its headers only if they say what the datagram does;
 * else it gets consistent ones. None in front of the buffer is read.
 *
 * Input: flags, how many octets are in front, TOS, TTL, ports (4), addresses (IPv4: 8, IPv6: 32),
 * then the octets in front, then the payload.
 */
#include "fuzz_frames.h"

#include <rte_ip.h>

#include "mirror.h"

enum {
	F_V6 = 1,
	F_SPLIT = 2, /* the payload is in two pieces */
};

#define HEAD 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t
read_dgram(const uint8_t *data, size_t size, struct sl_dgram *g)
{
	size_t addrs = (data[0] & F_V6) != 0 ? 32 : 8;

	memset(g, 0, sizeof(*g));
	if (size < HEAD + addrs)
		return 0;
	g->tos = data[2];
	g->ttl = data[3];
	memcpy(&g->sport, data + 4, 2);
	memcpy(&g->dport, data + 6, 2);
	if (addrs == 32) {
		memcpy(g->src, data + HEAD, 16);
		memcpy(g->dst, data + HEAD + 16, 16);
	} else {
		memset(g->src + 10, 0xff, 2);
		memset(g->dst + 10, 0xff, 2);
		memcpy(g->src + 12, data + HEAD, 4);
		memcpy(g->dst + 12, data + HEAD + 4, 4);
	}
	return HEAD + addrs;
}

/* What is in front is outside of the packet, as the stack leaves it. */
static struct rte_mbuf *
make_payload(const uint8_t *data, size_t front, size_t len, bool split)
{
	size_t first = split ? len / 2 : len;
	struct rte_mbuf *m = exact_mbuf(data, front + first);

	m->data_off = (uint16_t)front;
	m->data_len = (uint16_t)first;
	m->pkt_len = (uint32_t)first;
	if (split)
		REQUIRE(rte_pktmbuf_chain(m, exact_mbuf(data + front + first, len - first)) == 0);
	return m;
}

static void
check_made(const struct sl_dgram *g, const uint8_t *headers, uint32_t n, const uint8_t *payload)
{
	bool v6 = headers[0] >> 4 == 6;
	uint8_t *p = malloc(n + g->len);

	REQUIRE(p != NULL && n == (v6 ? 48 : 28));
	memcpy(p, headers, n);
	memcpy(p + n, payload, g->len);
	REQUIRE(memcmp(p + n - 8, &g->sport, 2) == 0 && memcmp(p + n - 6, &g->dport, 2) == 0);
	if (v6)
		REQUIRE(rte_ipv6_udptcp_cksum_verify((struct rte_ipv6_hdr *)p, p + 40) == 0);
	else
		REQUIRE(rte_raw_cksum(p, 20) == 0xffff && memcmp(p + 12, g->src + 12, 4) == 0 &&
			memcmp(p + 16, g->dst + 12, 4) == 0);
	free(p);
}

/* They are those of the octets in front, and the length that IP names is the frame's. */
static void
check_found(const struct sl_dgram *g, const uint8_t *headers, uint32_t n, const uint8_t *end)
{
	uint32_t l2 = 14;

	REQUIRE(n <= MIRROR_HEADERS_MAX && memcmp(headers, end - n, n) == 0);
	while (headers[l2 - 2] == 0x81 || headers[l2 - 2] == 0x88)
		l2 += 4;
	REQUIRE(l2 <= 22);
	if (headers[l2 - 2] == 0x86)
		REQUIRE((uint32_t)(headers[l2 + 4] << 8 | headers[l2 + 5]) == 8 + g->len);
	else
		REQUIRE((uint32_t)(headers[l2 + 2] << 8 | headers[l2 + 3]) == n - l2 + g->len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t headers[MIRROR_HEADERS_MAX];
	static bool ready;
	struct sl_dgram g;
	size_t at, front;
	bool whole;
	uint32_t n;

	if (!ready)
		t_init("fuzz_mirror_frame");
	ready = true;
	if (size < HEAD || size > 4000)
		return 0;
	at = read_dgram(data, size, &g);
	if (at == 0)
		return 0;
	front = RTE_MIN((size_t)data[1], size - at);
	g.len = (uint32_t)(size - at - front);
	g.buf = make_payload(data + at, front, g.len, (data[0] & F_SPLIT) != 0);
	n = mirror_headers(&g, headers, &whole);
	if (whole)
		check_found(&g, headers, n, data + at + front);
	else
		check_made(&g, headers, n, data + at + front);
	rte_pktmbuf_free(g.buf);
	REQUIRE(rte_mempool_avail_count(t_pool) == T_POOL);
	return 0;
}
