/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any frame on its way out of a bridge, with any work that is left to do: what is sent is the frame
 * that came, but for its checksum and its tag, in a shape that the port takes; and bytes that
 * others hold, too, stay as they are.
 *
 * Input: how it lies in memory (fuzz_frames.h), what the port can do (below), then the frame.
 */
#include "fuzz_frames.h"

#include <rte_ip.h>

#include "bridge.h"

enum {
	F_UDP = 1,
	F_TCP = 2,
	F_PIECES = 4,
	F_SHARED = 8,  /* somebody else holds the frame */
	F_JOINED = 16, /* it came joined */
	F_TX = 32,     /* a port that loops back what was sent: its flags ask, too */
};

#define TAG_LEN 4u
#define ASKS                                                                                       \
	(RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV4 |                  \
		RTE_MBUF_F_TX_IPV6)
#define KEPT (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t
offloads(uint8_t flags)
{
	return ((flags & F_UDP) != 0 ? RTE_ETH_TX_OFFLOAD_UDP_CKSUM : 0) |
	       ((flags & F_TCP) != 0 ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : 0) |
	       ((flags & F_PIECES) != 0 ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0);
}

static void
check_same(const struct rte_mbuf *m, const uint8_t *frame, size_t len)
{
	uint8_t copy[2100];

	REQUIRE(m->pkt_len == len && len <= sizeof(copy));
	REQUIRE(len == 0 || memcmp(rte_pktmbuf_read(m, 0, (uint32_t)len, copy), frame, len) == 0);
}

/* Without the tag that was put in. */
static const uint8_t *
untagged(const struct rte_mbuf *m, bool tagged, size_t len)
{
	static uint8_t copy[2100];
	const uint8_t *p;

	REQUIRE(m->pkt_len == len + (tagged ? TAG_LEN : 0) && m->pkt_len <= sizeof(copy));
	p = rte_pktmbuf_read(m, 0, m->pkt_len, copy);
	if (!tagged)
		return p;
	REQUIRE(memcmp(p + 12, "\x81\0\0\7", TAG_LEN) == 0);
	if (p != copy)
		memcpy(copy, p, m->pkt_len);
	memmove(copy + TAG_LEN, copy, 12);
	return copy + TAG_LEN;
}

/* A checksum that was made is the sum of the transport part with the field as it came. `at` is of
 * an octet of it, in the frame. */
static void
check_sum(const struct rte_mbuf *m, const uint8_t *frame, size_t at, bool tagged)
{
	size_t ip = m->l2_len, l4 = ip + m->l3_len, tag = tagged ? TAG_LEN : 0, end, field;
	uint8_t copy[2100], made[2];
	const uint8_t *bytes;
	uint16_t sum;

	REQUIRE(m->pkt_len <= sizeof(copy) && l4 + 8 <= m->pkt_len);
	bytes = rte_pktmbuf_read(m, 0, m->pkt_len, copy);
	if (bytes != copy)
		memcpy(copy, bytes, m->pkt_len);
	end = ip + (copy[ip - 2] == 0x86 ? 40u + (size_t)(copy[ip + 4] << 8 | copy[ip + 5])
					 : (size_t)(copy[ip + 2] << 8 | copy[ip + 3]));
	field = at + tag < l4 + 8 ? l4 + 6 : l4 + 16;
	REQUIRE(at + tag - field <= 1 && field + 2 <= end && end <= m->pkt_len);
	memcpy(made, copy + field, sizeof(made));
	memcpy(copy + field, frame + field - tag, sizeof(made));
	sum = (uint16_t)~rte_raw_cksum(copy + l4, end - l4);
	if (sum == 0 && field == l4 + 6)
		sum = UINT16_MAX;
	REQUIRE(memcmp(made, &sum, sizeof(made)) == 0);
}

/* All of the frame but two octets of a checksum, and these only if nobody else is to make it. */
static void
check_sent(
	const struct rte_mbuf *m, const uint8_t *frame, size_t len, uint8_t memory, uint8_t flags)
{
	const uint8_t *p = untagged(m, (memory & M_STRIPPED) != 0, len);
	bool asked = (m->ol_flags & ASKS) != 0;
	size_t first = len, last = 0;
	const char *why;

	REQUIRE(rte_mbuf_check(m, 1, &why) == 0);
	REQUIRE((m->ol_flags & ~(ASKS | KEPT)) == 0 && !bridge_frame_asks(m) == !asked);
	REQUIRE(m->nb_segs == 1 || (flags & F_PIECES) != 0);
	REQUIRE(!asked || (uint32_t)m->l2_len + m->l3_len < m->pkt_len);
	for (size_t i = 0; i < len; i++) {
		if (p[i] == frame[i])
			continue;
		first = RTE_MIN(first, i);
		last = i;
	}
	if (first == len)
		return;
	REQUIRE(last - first <= 1 && !asked && (memory & M_L4_NONE) + (flags & F_TX) != 0);
	check_sum(m, frame, first, (memory & M_STRIPPED) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf *m, *other = NULL;
	uint8_t memory, flags;
	static bool ready;
	int ret;

	if (!ready)
		t_init("fuzz_bridge_frame");
	ready = true;
	if (size < 2 + RTE_ETHER_HDR_LEN || size > 2000)
		return 0;
	memory = data[0];
	flags = data[1];
	data += 2;
	size -= 2;
	m = make_mbuf(data, size, memory);
	if ((flags & F_JOINED) != 0)
		m->ol_flags |= RTE_MBUF_F_RX_LRO;
	if ((flags & F_TX) != 0)
		m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4;
	if ((flags & F_SHARED) != 0)
		other = rte_pktmbuf_clone(m, t_pool);
	REQUIRE(bridge_frame_payload(m) <= size - RTE_ETHER_HDR_LEN);
	ret = bridge_frame_finish(&m, offloads(flags), t_pool);
	REQUIRE(ret == 0 || ret == -EOPNOTSUPP);
	REQUIRE(ret != 0 || (flags & F_JOINED) == 0);
	if (ret == 0)
		check_sent(m, data, size, memory, flags);
	if (other != NULL)
		check_same(other, data, size);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(other);
	REQUIRE(rte_mempool_avail_count(t_pool) == T_POOL);
	return 0;
}
