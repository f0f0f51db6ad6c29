/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include "tpacket_wire.h"

#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

static void
put16(uint8_t *p, uint16_t v)
{
	v = rte_cpu_to_be_16(v);
	memcpy(p, &v, sizeof(v));
}

static void
add32(uint8_t *p, uint32_t n)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	v = rte_cpu_to_be_32(rte_be_to_cpu_32(v) + n);
	memcpy(p, &v, sizeof(v));
}

int
tpacket_gso_start(struct tpacket_gso *g, const uint8_t *frame, uint32_t len,
	const struct tpacket_offload *o, bool partial)
{
	uint8_t want = o->gso_udp ? IPPROTO_UDP : IPPROTO_TCP;

	memset(g, 0, sizeof(*g));
	tpacket_parse(frame, len, &g->h);
	if (g->h.l4_len == 0 || g->h.l4_proto != want)
		return -EINVAL;
	if (!o->gso_udp && g->h.ipv6 != o->gso_ipv6)
		return -EINVAL;
	g->hdr_len = (uint32_t)g->h.l2_len + g->h.l3_len + g->h.l4_len;
	if (g->hdr_len >= len)
		return -EINVAL;
	g->frame = frame;
	g->len = len;
	g->size = o->gso_size;
	g->partial = partial;
	return 0;
}

static uint32_t
next_payload(const struct tpacket_gso *g)
{
	uint32_t left = g->len - g->hdr_len - g->done;

	return left < g->size ? left : g->size;
}

uint32_t
tpacket_gso_next(const struct tpacket_gso *g)
{
	uint32_t payload = next_payload(g);

	return payload == 0 ? 0 : g->hdr_len + payload;
}

static void
fix_l3(const struct tpacket_gso *g, uint8_t *out, uint32_t l4_bytes)
{
	uint8_t *ip = out + g->h.l2_len;

	if (g->h.ipv6) {
		put16(ip + 4, (uint16_t)(g->h.l3_len - 40 + l4_bytes));
		return;
	}
	put16(ip + 2, (uint16_t)(g->h.l3_len + l4_bytes));
	put16(ip + 4, (uint16_t)(tpacket_get16(ip + 4) + g->index));
	tpacket_ipv4_csum(ip, g->h.l3_len);
}

static void
fix_l4(const struct tpacket_gso *g, uint8_t *l4, uint32_t l4_bytes, bool last)
{
	if (g->h.l4_proto == IPPROTO_UDP) {
		put16(l4 + 4, (uint16_t)l4_bytes);
		return;
	}
	add32(l4 + 4, g->done);
	if (!last)
		l4[13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (g->index > 0)
		l4[13] &= (uint8_t)~TCP_CWR;
}

void
tpacket_gso_emit(struct tpacket_gso *g, uint8_t *out)
{
	uint32_t payload = next_payload(g);
	uint32_t l4_bytes = g->h.l4_len + payload;
	uint16_t start = (uint16_t)(g->h.l2_len + g->h.l3_len);
	uint16_t offset = tpacket_csum_offset(&g->h);
	uint16_t sum;

	memcpy(out, g->frame, g->hdr_len);
	memcpy(out + g->hdr_len, g->frame + g->hdr_len + g->done, payload);
	fix_l3(g, out, l4_bytes);
	fix_l4(g, out + start, l4_bytes, g->hdr_len + g->done + payload == g->len);
	sum = tpacket_pseudo_sum(out, &g->h, l4_bytes);
	memcpy(out + start + offset, &sum, sizeof(sum));
	if (!g->partial)
		tpacket_csum_complete(out, g->hdr_len + payload, start, offset);
	g->done += payload;
	g->index++;
}
