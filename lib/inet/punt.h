/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_PUNT_H
#define INET_PUNT_H

#include "inet_priv.h"
#include "sl_inet_punt.h"

struct inet_punt {
	const struct sl_inet_punt_ops *ops;
	void *arg;
};

/** Has the port of what is being received a taker? Then no ICMP error says that nobody wants it. */
static inline bool
inet_punts(const struct inet_rx *rx)
{
	return sl_load_relaxed(&rx->port->punt) != NULL;
}

/** A frame has got this result on the general path: offer or show it to the port's taker. Its
 * result from then on. */
unsigned int inet_punt_frame(struct inet_rx *rx, const struct inet_pkt *p, unsigned int result);

static inline unsigned int
inet_punt_result(struct inet_rx *rx, const struct inet_pkt *p, unsigned int result)
{
	return inet_punts(rx) ? inet_punt_frame(rx, p, result) : result;
}

/** The burst's datagram i has no socket: offer it. Its outcome; SL_RX_UDP_NO_SOCKET without a
 * taker. */
enum sl_outcome inet_punt_datagram(struct inet_rx *rx, uint16_t i);

#endif
