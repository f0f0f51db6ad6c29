/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "sl_base.h"

#include "udpq_loop.h"

#define AHEAD 4
#define OFFSET_IP 14
#define OFFSET_UDP 34
#define OFFSET_PAYLOAD 42

static inline uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint16_t
load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* One's complement addition: the carry out of the top comes in again at the bottom. */
static inline uint64_t
add_carry(uint64_t a, uint64_t b)
{
	uint64_t sum;
	bool carry = __builtin_add_overflow(a, b, &sum);

	return sum + carry;
}

/* Is a sum that has a checksum field in it right, that is 0xffff when folded? Then it is a multiple
 * of 0xffff (and not 0: no header is all zeros), which the compiler tests by one multiplication. */
static inline bool
sum_right(uint64_t sum)
{
	return sum % 0xffff == 0;
}

/* One's complement sum of n bytes, not folded. */
static inline uint64_t
sum_bytes(const uint8_t *p, uint32_t n)
{
	uint64_t sum = 0;

	for (; n >= 8; n -= 8, p += 8)
		sum = add_carry(sum, load64(p));
	if (n & 4) {
		sum = add_carry(sum, load32(p));
		p += 4;
	}
	if (n & 2) {
		sum = add_carry(sum, load16(p));
		p += 2;
	}
	if (n & 1)
		sum = add_carry(sum, rte_cpu_to_le_16(*p));
	return sum;
}

/* Payload bytes of a good packet, else UINT32_MAX. */
static inline uint32_t
verify(const uint8_t *p, uint32_t frame, uint16_t dport)
{
	uint32_t total, udp_len;
	uint64_t sum;

	if (SL_UNLIKELY(frame < OFFSET_PAYLOAD))
		return UINT32_MAX;
	/* Ethertype, version and header length, no fragment, protocol, port. */
	if (SL_UNLIKELY(load16(p + 12) != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
			p[OFFSET_IP] != RTE_IPV4_VHL_DEF ||
			(load16(p + OFFSET_IP + 6) & RTE_BE16(0x3fff)) != 0 ||
			p[OFFSET_IP + 9] != IPPROTO_UDP || load16(p + OFFSET_UDP + 2) != dport))
		return UINT32_MAX;
	total = rte_be_to_cpu_16(load16(p + OFFSET_IP + 2));
	udp_len = rte_be_to_cpu_16(load16(p + OFFSET_UDP + 4));
	if (SL_UNLIKELY(
		    total > frame - OFFSET_IP || udp_len < 8 || udp_len > total - 20 || total < 28))
		return UINT32_MAX;
	sum = add_carry(load64(p + OFFSET_IP), load64(p + OFFSET_IP + 8));
	if (SL_UNLIKELY(!sum_right(add_carry(sum, load32(p + OFFSET_IP + 16)))))
		return UINT32_MAX;
	if (load16(p + OFFSET_UDP + 6) != 0) {
		/* Pseudo-header: both addresses, protocol, UDP length. */
		sum = add_carry(load64(p + OFFSET_IP + 12),
			(uint64_t)RTE_BE16(IPPROTO_UDP) + load16(p + OFFSET_UDP + 4));
		if (SL_UNLIKELY(!sum_right(add_carry(sum, sum_bytes(p + OFFSET_UDP, udp_len)))))
			return UINT32_MAX;
	}
	return udp_len - 8;
}

int
loop_port_start(uint16_t port, uint16_t descriptors, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};
	int ret = rte_eth_dev_configure(port, 1, 1, &conf);

	if (ret == 0)
		ret = rte_eth_rx_queue_setup(port, 0, descriptors, SOCKET_ID_ANY, NULL, pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(port, 0, descriptors, SOCKET_ID_ANY, NULL);
	return ret == 0 ? rte_eth_dev_start(port) : ret;
}

uint8_t *
loop_buffers_make(struct loop_buffer *buffer)
{
	uint8_t *memory = aligned_alloc(SL_CACHE_LINE, LOOP_BURST * LOOP_STRIDE);

	if (memory == NULL)
		return NULL;
	memset(memory, 0, LOOP_BURST * LOOP_STRIDE);
	for (int i = 0; i < LOOP_BURST; i++)
		buffer[i] = (struct loop_buffer){
			.data = memory + (size_t)i * LOOP_STRIDE, .size = LOOP_STRIDE};
	return memory;
}

void
loop_free(struct rte_mbuf **pkts, uint16_t n)
{
	bool plain = true;

	for (uint16_t i = 0; i < n; i++)
		plain = plain && pkts[i]->pool == pkts[0]->pool && pkts[i]->next == NULL &&
			RTE_MBUF_DIRECT(pkts[i]) && rte_mbuf_refcnt_read(pkts[i]) == 1;
	if (SL_LIKELY(plain && n > 0))
		rte_mempool_put_bulk(pkts[0]->pool, (void *const *)pkts, n);
	else
		rte_pktmbuf_free_bulk(pkts, n);
}

uint16_t
loop_take(struct rte_mbuf **pkts, uint16_t n, uint16_t dport, struct loop_buffer *out)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < n && i < AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const void *));
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		uint32_t len;

		if (i + AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + AHEAD], const void *));
		len = verify(p, rte_pktmbuf_data_len(pkts[i]), dport);
		if (SL_UNLIKELY(len == UINT32_MAX))
			continue;
		out[good].len = RTE_MIN(len, out[good].size);
		rte_memcpy(out[good].data, p + OFFSET_PAYLOAD, out[good].len);
		good++;
	}
	loop_free(pkts, n);
	return good;
}
