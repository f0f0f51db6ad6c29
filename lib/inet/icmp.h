/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_ICMP_H
#define INET_ICMP_H

#include "inet_priv.h"

enum {
	ICMP4_ECHO_REPLY = 0,
	ICMP4_UNREACH = 3,
	ICMP4_UNREACH_PROTO = 2,
	ICMP4_UNREACH_PORT = 3,
	ICMP4_UNREACH_TOO_BIG = 4,
	ICMP4_UNREACH_NET = 0,
	ICMP4_ECHO = 8,
	ICMP4_TIME = 11,
	ICMP4_PARAM = 12,

	ICMP6_UNREACH = 1,
	ICMP6_UNREACH_ROUTE = 0,
	ICMP6_UNREACH_PORT = 4,
	ICMP6_TOO_BIG = 2,
	ICMP6_TIME = 3,
	ICMP6_PARAM = 4,
	ICMP6_PARAM_FIELD = 0,
	ICMP6_PARAM_NEXT = 1,
	ICMP6_PARAM_OPTION = 2,
	ICMP6_ECHO = 128,
	ICMP6_ECHO_REPLY = 129,
	ICMP6_RS = 133,
	ICMP6_RA = 134,
	ICMP6_NS = 135,
	ICMP6_NA = 136,
	ICMP6_REDIRECT = 137,
};

extern const struct sl_addr inet_all_nodes; /* ff02::1 */

/** ff02::1:ffXX:XXXX, where an address's owner listens for solicitations. */
struct sl_addr inet_solicited_node(const struct sl_addr *a);

unsigned int inet_icmp4_input(struct inet_rx *rx, struct inet_pkt *p);
unsigned int inet_icmp6_input(struct inet_rx *rx, struct inet_pkt *p);
unsigned int inet_nd_input(
	struct inet_rx *rx, struct inet_pkt *p, const uint8_t *icmp, uint32_t len);

/**
 * Answer a packet with an ICMP error of its family, if RFC 1122, 1812 or 4443 allow one and the
 * worker's rate does.
 *
 * @param word   the header's second word, host order: pointer, MTU or 0
 */
void inet_icmp_error(
	struct inet_rx *rx, const struct inet_pkt *p, uint8_t type, uint8_t code, uint32_t word);

/** Answer the burst's datagram i, which no socket wanted. */
void inet_icmp_port_unreachable(struct inet_rx *rx, uint16_t i);

#endif
