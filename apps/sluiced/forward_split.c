/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * IPv4 packets that may be cut into fragments, and must be, because the next link takes less than
 * the one that they came by. Pieces are copies: it is seldom, and the packet may be a fragment
 * itself.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "forward_priv.h"
#include "sl_dpdk.h"

#define IP4_HDR 20u
#define UDP_LEN 8u
#define MORE 0x2000u
#define OFFSET 0x1fffu
#define LINK_ROOM 32u

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Octets off..off+len behind m's header as a packet of its own; NULL: no mbuf. */
static struct rte_mbuf *
piece(struct daemon *d, const struct rte_mbuf *m, uint32_t off, uint32_t len, bool more)
{
	struct rte_mbuf *out = rte_pktmbuf_alloc(d->pool);
	const uint8_t *from;
	uint32_t word;
	uint16_t sum;
	uint8_t *ip;

	if (out == NULL)
		return NULL;
	if (rte_pktmbuf_headroom(out) < LINK_ROOM || rte_pktmbuf_tailroom(out) < IP4_HDR + len) {
		rte_pktmbuf_free(out);
		return NULL;
	}
	ip = (uint8_t *)rte_pktmbuf_append(out, (uint16_t)(IP4_HDR + len));
	memcpy(ip, rte_pktmbuf_mtod(m, const void *), IP4_HDR);
	from = rte_pktmbuf_read(m, IP4_HDR + off, len, ip + IP4_HDR);
	if (from != NULL && from != ip + IP4_HDR)
		memcpy(ip + IP4_HDR, from, len);
	word = get16(ip + 6);
	put16(ip + 2, IP4_HDR + len);
	put16(ip + 6, ((word & OFFSET) + off / 8) | (word & MORE) | (more ? MORE : 0));
	memset(ip + 10, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(ip, IP4_HDR);
	memcpy(ip + 10, &sum, sizeof(sum));
	return out;
}

/* The sum cannot be left to a port that sees parts. */
static void
finish_sum(struct rte_mbuf *m)
{
	uint8_t *udp = rte_pktmbuf_mtod_offset(m, uint8_t *, IP4_HDR);
	uint16_t raw, sum;

	if ((m->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) == 0 || m->data_len < IP4_HDR + UDP_LEN ||
		sl_raw_cksum_mbuf(m, IP4_HDR, m->pkt_len - IP4_HDR, &raw) != 0)
		return;
	sum = (uint16_t)~raw;
	if (sum == 0)
		sum = UINT16_MAX;
	memcpy(udp + 6, &sum, sizeof(sum));
}

enum service_outcome
forward_split(struct daemon *d, uint16_t worker, const struct sl_inet_way *way, struct rte_mbuf *m,
	enum service_outcome sent)
{
	uint32_t room = (way->mtu - IP4_HDR) & ~7u, all = m->pkt_len - IP4_HDR, n = 0, i;
	struct rte_mbuf *pieces[UINT16_MAX / 512];

	/* Options would have to be looked at: which of them go into each piece. */
	if (m->l3_len != IP4_HDR || way->mtu < 576 || all / room >= SL_COUNT_OF(pieces)) {
		rte_pktmbuf_free(m);
		return SERVICE_FORWARD_TOO_BIG;
	}
	finish_sum(m);
	for (uint32_t off = 0; off < all; off += room, n++) {
		uint32_t len = RTE_MIN(room, all - off);

		pieces[n] = piece(d, m, off, len, off + len < all);
		if (pieces[n] == NULL)
			break;
	}
	rte_pktmbuf_free(m);
	/* All or none. */
	if (n * room < all) {
		rte_pktmbuf_free_bulk(pieces, n);
		return SERVICE_FORWARD_NO_MBUF;
	}
	for (i = 0; i < n; i++)
		sl_inet_way_output(d->inet, worker, way, pieces[i]);
	return sent;
}
