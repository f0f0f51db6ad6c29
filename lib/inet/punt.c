/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Frames that nobody here claims, to the port's taker. It is looked for where such a frame has got
 * its outcome; the way of a datagram that has a socket does not come by. */
#include <errno.h>
#include <string.h>

#include <rte_ether.h>

#include "icmp.h"
#include "punt.h"
#include "table.h"

#define UDP_LEN 8u
#define MACS_LEN (2u * RTE_ETHER_ADDR_LEN)

/* Was it sent to us, or to a group? When promiscuous, we see what was not. */
static bool
to_us(const struct inet_rx *rx, const struct inet_pkt *p)
{
	return p->l2_group || memcmp(p->head, rx->port->mac.addr_bytes, RTE_ETHER_ADDR_LEN) == 0;
}

/* Would this outcome mean that nobody wants it? */
static bool
unclaimed(const struct inet_rx *rx, const struct inet_pkt *p, unsigned int outcome)
{
	switch (outcome) {
	case SL_RX_ETH_TYPE:
	case SL_RX_IP_PROTO:
	case SL_RX_IP_NOT_LOCAL:
	case SL_RX_ICMP_IGNORED:
		return to_us(rx, p);
	case SL_RX_IP_SOURCE: /* hosts that have no address yet: DHCP, listener reports */
		return sl_addr_is_any(&p->src) && to_us(rx, p);
	default:
		return false;
	}
}

unsigned int
inet_punt_frame(struct inet_rx *rx, const struct inet_pkt *p, unsigned int result)
{
	const struct inet_punt *punt = sl_load_acquire(&rx->port->punt); /* IN1 */
	uint32_t head_len = RTE_MIN(p->end, (uint32_t)p->head_len);
	struct sl_inet_frame f = {.head = p->head,
		.head_len = head_len,
		.m = p->m,
		.off = head_len,
		.len = p->end - head_len,
		.l2_len = p->l2_len,
		.port = rx->port->id};

	if (punt == NULL || (result & INET_KEPT) != 0)
		return result;
	if (unclaimed(rx, p, result))
		return punt->ops->take(punt->arg, rx->worker, &f) ? SL_RX_PUNTED
								  : SL_RX_PUNT_FAILED;
	if (!p->answered &&
		(result == SL_RX_ARP || result == SL_RX_ND || result == SL_RX_ICMP_ERROR))
		punt->ops->show(punt->arg, rx->worker, &f);
	return result;
}

/* Its headers are in a private copy, or, from the fast path, before its payload. */
enum sl_outcome
inet_punt_datagram(struct inet_rx *rx, uint16_t i)
{
	const struct sl_dgram *d = &rx->dgram[i];
	const struct inet_port *port = inet_port_find(rx->inet, d->port);
	const struct inet_punt *punt = sl_load_acquire(&port->punt); /* IN1 */
	struct sl_inet_frame f = {
		.m = d->buf, .len = d->len, .l2_len = RTE_ETHER_HDR_LEN, .port = d->port};
	struct sl_addr src;

	if (punt == NULL)
		return SL_RX_UDP_NO_SOCKET;
	if ((rx->in_head >> i & 1) != 0) {
		f.l2_len = rx->l2_len[i];
		f.head = rx->head[i];
		f.head_len = f.l2_len + rx->l3_len[i] + UDP_LEN;
	} else {
		memcpy(src.b, d->src, sizeof(src.b));
		f.head_len = RTE_ETHER_HDR_LEN + (inet_is_v4(&src) ? 20u : 40u) + UDP_LEN;
		f.head = rte_pktmbuf_mtod(f.m, const uint8_t *) - f.head_len;
	}
	return punt->ops->take(punt->arg, rx->worker, &f) ? SL_RX_PUNTED : SL_RX_PUNT_FAILED;
}

int
sl_inet_punt_set(
	struct sl_inet *inet, uint16_t handle, const struct sl_inet_punt_ops *ops, void *arg)
{
	struct inet_port *port = inet_port_find(inet, handle);
	struct inet_punt *now, *next = NULL;

	if (port == NULL)
		return -ENODEV;
	if (ops != NULL) {
		next = inet_alloc(sizeof(*next));
		if (next == NULL)
			return -ENOMEM;
		next->ops = ops;
		next->arg = arg;
	}
	now = sl_load_relaxed(&port->punt);
	sl_store_release(&port->punt, next); /* IN1 */
	if (now != NULL)
		sl_inet_synchronize(inet, SL_INET_NO_WORKER);
	free(now);
	return 0;
}

/* Make room behind the MAC addresses, and put the port's tags there. */
static bool
put_tags(const struct inet_port *port, struct rte_mbuf *m)
{
	uint16_t tags = (uint16_t)(port->l2_len - RTE_ETHER_HDR_LEN);
	uint8_t *frame = (uint8_t *)rte_pktmbuf_prepend(m, tags);

	if (frame == NULL)
		return false;
	memmove(frame, frame + tags, MACS_LEN);
	memcpy(frame + MACS_LEN, port->l2 + MACS_LEN, tags);
	if (m->l2_len != 0)
		m->l2_len = port->l2_len;
	return true;
}

void
sl_inet_frame_output(struct sl_inet *inet, uint16_t worker, uint16_t handle, struct rte_mbuf *m)
{
	struct inet_port *port = inet_port_find(inet, handle);

	SL_DEBUG_ASSERT(port != NULL && m->data_len >= RTE_ETHER_HDR_LEN);
	if (port->l2_len != RTE_ETHER_HDR_LEN && !put_tags(port, m)) {
		inet_count(&inet->worker[worker], SL_TX_NO_MBUF, 1);
		rte_pktmbuf_free(m);
		return;
	}
	inet_enqueue(&inet->worker[worker], port, &port->workers[worker], m);
}
