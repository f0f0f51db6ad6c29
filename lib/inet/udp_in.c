/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include "cksum.h"
#include "icmp.h"
#include "punt.h"
#include "sl_udpq_mbuf.h"

#define UDP_LEN 8u

/* Addresses, protocol and length, as both families' pseudo headers add up. */
static uint64_t
pseudo_sum(const struct inet_pkt *p, uint16_t len)
{
	uint32_t words[4];
	uint64_t sum = rte_cpu_to_be_32(IPPROTO_UDP << 16 | (uint32_t)len);

	/* IPv4 addresses bring ::ffff: along, which does not belong to the sum: twice 0xffff is
	 * zero in one's complement. */
	memcpy(words, p->src.b, sizeof(words));
	sum += (uint64_t)words[0] + words[1] + words[2] + words[3];
	memcpy(words, p->dst.b, sizeof(words));
	return sum + words[0] + words[1] + words[2] + words[3];
}

/* INET_PASS if the checksum lets the datagram pass. */
static enum sl_outcome
check_sum(const struct inet_pkt *p, const uint8_t *udp, uint16_t len)
{
	uint64_t known = p->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	uint64_t sum, pseudo;
	uint32_t words[2];
	uint16_t field;

	memcpy(words, udp, sizeof(words));
	memcpy(&field, udp + 6, sizeof(field));
	if (field == 0)
		return inet_is_v4(&p->src) ? INET_PASS : SL_RX_UDP_CSUM_ZERO6;
	/* NONE: the field is not filled in, but the data is known to be right (virtio). */
	if (known == RTE_MBUF_F_RX_L4_CKSUM_GOOD || known == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		return INET_PASS;
	pseudo = pseudo_sum(p, len);
	if (known != RTE_MBUF_F_RX_L4_CKSUM_BAD) {
		sum = pseudo + words[0] + words[1];
		sum += inet_sum_mbuf(p->m, p->l4_off + UDP_LEN, len - UDP_LEN);
		if (inet_fold(sum) == UINT16_MAX)
			return INET_PASS;
	}
	return field == inet_fold(pseudo) ? SL_RX_UDP_CSUM_PARTIAL : SL_RX_UDP_CSUM;
}

unsigned int
inet_udp_input(struct inet_rx *rx, struct inet_pkt *p)
{
	uint8_t udp[UDP_LEN];
	enum sl_outcome outcome;
	uint16_t i, len;
	struct sl_dgram *d;

	if (p->end - p->l4_off < UDP_LEN)
		return SL_RX_UDP_LENGTH;
	/* Only extension headers are that long. */
	if (p->l4_off + UDP_LEN > p->head_len)
		return SL_RX_IP_EXTENSION;
	memcpy(udp, p->head + p->l4_off, sizeof(udp));
	len = inet_get16(udp + 4);
	if (len < UDP_LEN || len > p->end - p->l4_off)
		return SL_RX_UDP_LENGTH;
	outcome = check_sum(p, udp, len);
	if (outcome != INET_PASS)
		return outcome;
	inet_mbuf_window(p->m, p->l4_off + UDP_LEN, len - UDP_LEN);
	i = rx->dgrams++; /* and with it goes the private copy of the headers */
	rx->in_head |= UINT64_C(1) << i;
	rx->l2_group |= (uint64_t)p->l2_group << i;
	rx->l2_len[i] = p->l2_len;
	rx->l3_len[i] = (uint16_t)(p->l4_off - p->l2_len);
	d = &rx->dgram[i];
	d->buf = p->m;
	d->truesize = sl_mbuf_truesize(p->m);
	d->len = len - UDP_LEN;
	memcpy(&d->sport, udp, 2);
	memcpy(&d->dport, udp + 2, 2);
	d->port = rx->port->id;
	d->aux = p->m->nb_segs == 1 ? (uintptr_t)rte_pktmbuf_mtod(p->m, void *) : 0;
	d->ttl = p->ttl;
	d->tos = p->tos;
	memcpy(d->src, p->src.b, sizeof(d->src));
	memcpy(d->dst, p->dst.b, sizeof(d->dst));
	return SL_RX_UDP_QUEUED | INET_KEPT;
}

/* Settle what the UDP layer did not take. Returns how many it took. */
static uint16_t
settle(struct inet_rx *rx, uint16_t n)
{
	uint16_t queued = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (rx->outcome[i] == SL_RX_UDP_QUEUED) {
			queued++;
			continue;
		}
		if (rx->outcome[i] == SL_RX_UDP_NO_SOCKET)
			rx->outcome[i] = (uint8_t)inet_punt_datagram(rx, i);
		if (rx->outcome[i] == SL_RX_UDP_NO_SOCKET)
			inet_icmp_port_unreachable(rx, i);
		rx->counts[rx->outcome[i]]++;
		rx->losses = true;
		rx->free[rx->frees++] = rx->dgram[i].buf;
	}
	return queued;
}

void
inet_udp_deliver(struct inet_rx *rx)
{
	static const uint8_t all_queued[SL_INET_BURST] = {SL_RX_UDP_QUEUED};
	const struct sl_inet *inet = rx->inet;
	uint16_t queued, n = rx->dgrams;

	_Static_assert(SL_RX_UDP_QUEUED == 0, "the rest of all_queued is 0");
	if (SL_LIKELY(inet->udp != NULL))
		rx->dgram = inet->udp->input(inet->udp_arg, rx->worker, rx->dgram, n, rx->outcome);
	else
		memset(rx->outcome, SL_RX_UDP_NO_SOCKET, n);
	queued = SL_LIKELY(memcmp(rx->outcome, all_queued, n) == 0) ? n : settle(rx, n);
	sl_counter_add(&rx->w->outcome[SL_RX_UDP_QUEUED], queued);
}
