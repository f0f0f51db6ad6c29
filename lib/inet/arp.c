/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_ether.h>

#include "inet_priv.h"
#include "neigh.h"

/* RFC 826 for IPv4 over Ethernet: offsets in the packet. */
#define ARP_LEN 28u
#define ARP_HEAD UINT64_C(0x0001080006040000) /* Ethernet, IPv4, lengths 6 and 4, operation 0 */
#define ARP_SENDER_MAC 8
#define ARP_SENDER_IP 14
#define ARP_TARGET_MAC 18
#define ARP_TARGET_IP 24

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

static const uint8_t broadcast_mac[RTE_ETHER_ADDR_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct arp {
	uint16_t op;
	const uint8_t *sender_mac; /* received ones only: what we send has our own */
	uint32_t sender_ip;
	const uint8_t *target_mac; /* NULL for zeros */
	uint32_t target_ip;
};

static void
arp_output(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct arp *arp, const uint8_t *to)
{
	static const uint8_t nobody[RTE_ETHER_ADDR_LEN];
	const uint8_t *target = arp->target_mac != NULL ? arp->target_mac : nobody;
	uint64_t head = rte_cpu_to_be_64(ARP_HEAD | arp->op);
	struct rte_mbuf *m = inet_own_mbuf(w, port);
	uint8_t *p;

	if (m == NULL)
		return;
	p = (uint8_t *)rte_pktmbuf_append(m, ARP_LEN);
	if (p == NULL) {
		inet_count(w, SL_TX_NO_MBUF, 1); /* a pool with buffers too small for anything */
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(p, &head, sizeof(head));
	memcpy(p + ARP_SENDER_MAC, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	memcpy(p + ARP_SENDER_IP, &arp->sender_ip, 4);
	memcpy(p + ARP_TARGET_MAC, target, RTE_ETHER_ADDR_LEN);
	memcpy(p + ARP_TARGET_IP, &arp->target_ip, 4);
	inet_eth_output(w, port, wport, m, to, RTE_ETHER_TYPE_ARP);
}

void
inet_arp_ask(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr, const uint8_t *mac)
{
	const struct inet_addr *src = inet_port_source(port, addr, addr);
	struct arp arp = {.op = ARP_REQUEST, .target_ip = inet_to_v4(addr)};

	if (src == NULL)
		return; /* the addresses of the port are all IPv6: there is nobody to ask as */
	arp.sender_ip = inet_to_v4(&src->addr);
	arp_output(w, port, wport, &arp, mac != NULL ? mac : broadcast_mac);
}

void
inet_arp_announce(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	const struct sl_addr *addr)
{
	uint32_t ip = inet_to_v4(addr);
	struct arp arp = {.op = ARP_REQUEST, .sender_ip = ip, .target_ip = ip};

	arp_output(w, port, wport, &arp, broadcast_mac);
}

/* Could a host with this address have sent it? 0.0.0.0 asks whether an address is free (RFC 5227).
 */
static bool
sender_ok(const struct inet_port *port, const struct arp *arp)
{
	uint32_t host = rte_be_to_cpu_32(arp->sender_ip);
	static const uint8_t nobody[RTE_ETHER_ADDR_LEN];

	if ((arp->sender_mac[0] & 1) != 0 || memcmp(arp->sender_mac, nobody, sizeof(nobody)) == 0)
		return false;
	if (host >> 24 == 127 || host >> 28 >= 0xe || inet_port_is_broadcast4(port, arp->sender_ip))
		return false;
	return host != 0 || arp->op == ARP_REQUEST;
}

static void
learn(struct inet_rx *rx, const struct arp *arp, bool for_us, bool l2_group)
{
	struct sl_addr sender = sl_addr_v4(arp->sender_ip);
	unsigned int flags = INET_HEAR_OVERRIDE;

	/* Somebody claims an address of ours: not a neighbour. */
	if (arp->sender_ip == 0 || inet_port_addr(rx->port, &sender) != NULL)
		return;
	if (for_us && arp->op == ARP_REQUEST)
		flags |= INET_HEAR_CREATE;
	if (for_us && arp->op == ARP_REPLY && !l2_group)
		flags |= INET_HEAR_SOLICITED;
	inet_neigh_hear(rx->inet, rx->worker, rx->port, &sender, arp->sender_mac, flags);
}

unsigned int
inet_arp_input(struct inet_rx *rx, struct inet_pkt *p)
{
	const uint8_t *packet = p->head + p->l2_len;
	struct sl_addr target;
	struct arp arp, reply;
	uint64_t head;
	bool for_us, own;

	if (p->head_len < p->l2_len + ARP_LEN)
		return SL_RX_ARP_BAD;
	memcpy(&head, packet, sizeof(head));
	head = rte_be_to_cpu_64(head);
	arp.op = (uint16_t)head;
	arp.sender_mac = packet + ARP_SENDER_MAC;
	memcpy(&arp.sender_ip, packet + ARP_SENDER_IP, 4);
	memcpy(&arp.target_ip, packet + ARP_TARGET_IP, 4);
	if ((head & ~UINT64_C(0xffff)) != ARP_HEAD ||
		(arp.op != ARP_REQUEST && arp.op != ARP_REPLY))
		return SL_RX_ARP_BAD;
	if (!sender_ok(rx->port, &arp))
		return SL_RX_ARP_BAD;
	target = sl_addr_v4(arp.target_ip);
	for_us = inet_port_is_local(rx->port, &target);
	learn(rx, &arp, for_us, p->l2_group);
	/* A switch may send our own announcement back: no answer to that. */
	p->answered = for_us && arp.op == ARP_REQUEST;
	own = memcmp(arp.sender_mac, rx->port->mac.addr_bytes, RTE_ETHER_ADDR_LEN) == 0;
	if (for_us && arp.op == ARP_REQUEST && !own) {
		reply = (struct arp){.op = ARP_REPLY,
			.sender_ip = arp.target_ip,
			.target_mac = arp.sender_mac,
			.target_ip = arp.sender_ip};
		arp_output(rx->w, rx->port, rx->wport, &reply, arp.sender_mac);
	}
	return SL_RX_ARP;
}
