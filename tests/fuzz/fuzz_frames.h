/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FUZZ_FRAMES_H
#define FUZZ_FRAMES_H

/**
 * @file
 * Any octets as frames in a burst, in memory of many kinds, and what must hold of what leaves.
 */
#include "inet/inet_test.h"

/* How the frames lie in memory and what hardware says of them. */
enum {
	M_SPLIT = 1,	/* two segments */
	M_EXACT = 2,	/* a buffer that ends where the frame does */
	M_STRIPPED = 4, /* the VLAN tag was taken off */
	M_L4_NONE = 8,
	M_L4_BAD = 16,
	M_IP_NONE = 32,
};

static inline void
free_exact(void *addr, void *arg)
{
	free(addr);
	free(arg);
}

static inline struct rte_mbuf *
exact_mbuf(const uint8_t *frame, size_t len)
{
	struct rte_mbuf_ext_shared_info *shared = malloc(sizeof(*shared));
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	uint8_t *copy = malloc(len > 0 ? len : 1);

	REQUIRE(m != NULL && shared != NULL && copy != NULL);
	memcpy(copy, frame, len);
	shared->free_cb = free_exact;
	shared->fcb_opaque = shared;
	rte_mbuf_ext_refcnt_set(shared, 1);
	rte_pktmbuf_attach_extbuf(m, copy, RTE_BAD_IOVA, (uint16_t)len, shared);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	return m;
}

static inline struct rte_mbuf *
make_mbuf(const uint8_t *frame, size_t len, uint8_t memory)
{
	struct rte_mbuf *m;

	if ((memory & M_EXACT) != 0) {
		m = exact_mbuf(frame, (memory & M_SPLIT) != 0 ? len / 2 : len);
		if ((memory & M_SPLIT) != 0)
			REQUIRE(rte_pktmbuf_chain(m, exact_mbuf(frame + len / 2, len - len / 2)) ==
				0);
	} else {
		m = (memory & M_SPLIT) != 0 ? t_mbuf_split(frame, len, len / 3)
					    : t_mbuf(frame, len);
	}
	if ((memory & M_STRIPPED) != 0) {
		m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		m->vlan_tci = 7;
	}
	if ((memory & M_L4_NONE) != 0)
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	else if ((memory & M_L4_BAD) != 0)
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_BAD;
	if ((memory & M_IP_NONE) != 0)
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_NONE;
	return m;
}

static inline void
check_out(void)
{
	const char *why;

	for (unsigned int i = 0; i < t_outs; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(t_out[i], const uint8_t *);
		size_t l2 = t_out[i]->l2_len, len = t_out[i]->pkt_len - l2;

		REQUIRE(rte_mbuf_check(t_out[i], 1, &why) == 0);
		REQUIRE(memcmp(p + 6, t_our_mac, 6) == 0);
		if (p[l2 - 2] == 0x08 && p[l2 - 1] == 0)
			REQUIRE((size_t)(p[l2 + 2] << 8 | p[l2 + 3]) == len &&
				t_sum(p + l2, (p[l2] & 15u) * 4u, 0) == 0xffff);
		else if (p[l2 - 2] == 0x86)
			REQUIRE((size_t)(p[l2 + 4] << 8 | p[l2 + 5]) + 40 == len);
		else
			REQUIRE(p[l2 - 2] == 0x08 && p[l2 - 1] == 6 && len == 28);
		REQUIRE(len <= 1500);
	}
}

/** Frames from data: each a length (16 bits, big endian) and its octets. */
static inline uint16_t
make_burst(const uint8_t *data, size_t size, uint8_t memory, struct rte_mbuf **pkts)
{
	uint16_t n = 0;

	while (size >= 2 && n < SL_INET_BURST) {
		size_t len = (size_t)(data[0] << 8 | data[1]);

		len = RTE_MIN(RTE_MIN(len, size - 2), (size_t)2000);
		pkts[n++] = make_mbuf(data + 2, len, memory);
		data += 2 + len;
		size -= 2 + len;
	}
	return n;
}

#endif
