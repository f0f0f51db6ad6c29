/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "pcapng.h"
#include "sl_assert.h"

#define SECTION 0x0a0d0d0au
#define INTERFACE 1u
#define PACKET 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET 1u
#define OPTION_RESOLUTION 9u
#define NANOSECONDS 9u

static uint8_t *
put16(uint8_t *to, uint32_t v)
{
	uint16_t n = (uint16_t)v;

	memcpy(to, &n, sizeof(n));
	return to + sizeof(n);
}

static uint8_t *
put32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

uint32_t
pcapng_block_len(uint32_t packet)
{
	return PCAPNG_BLOCK + RTE_ALIGN_CEIL(packet, 4u);
}

static uint8_t *
interface(uint8_t *to)
{
	const uint32_t len = 32;

	to = put32(to, INTERFACE);
	to = put32(to, len);
	to = put16(to, LINK_ETHERNET);
	to = put16(to, 0);
	to = put32(to, 0); /* packets are not cut */
	to = put16(to, OPTION_RESOLUTION);
	to = put16(to, 1);
	to = put32(to, 0);
	to[-4] = NANOSECONDS;
	to = put32(to, 0); /* no more options */
	return put32(to, len);
}

uint32_t
pcapng_head(uint8_t *to)
{
	const uint32_t len = 28;
	uint8_t *at = to;

	at = put32(at, SECTION);
	at = put32(at, len);
	at = put32(at, BYTE_ORDER_MAGIC);
	at = put16(at, 1);
	at = put16(at, 0);
	at = put32(at, UINT32_MAX); /* its length is not said: it grows */
	at = put32(at, UINT32_MAX);
	at = put32(at, len);
	at = interface(at);
	SL_DEBUG_ASSERT(at - to <= PCAPNG_HEAD_MAX);
	return (uint32_t)(at - to);
}

uint32_t
pcapng_block(uint8_t *to, const struct rte_mbuf *m, uint64_t ns)
{
	uint32_t len = pcapng_block_len(m->pkt_len), pad = len - PCAPNG_BLOCK - m->pkt_len;
	uint8_t *at = to;

	at = put32(at, PACKET);
	at = put32(at, len);
	at = put32(at, 0); /* the interface */
	at = put32(at, (uint32_t)(ns >> 32));
	at = put32(at, (uint32_t)ns);
	at = put32(at, m->pkt_len);
	at = put32(at, m->pkt_len);
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next) {
		memcpy(at, rte_pktmbuf_mtod(s, const void *), s->data_len);
		at += s->data_len;
	}
	memset(at, 0, pad);
	put32(at + pad, len);
	return len;
}
