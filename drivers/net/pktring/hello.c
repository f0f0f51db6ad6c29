/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "hello.h"

static int
check_ring(const struct sl_pktring_hello *h, enum sl_pktring_dir dir, size_t most,
	struct sl_pktring_geo *geo)
{
	struct sl_pktring_req req = {.dir = dir,
		.version = (int)h->version,
		.reserve = dir == SL_PKTRING_RX ? h->reserve : 0,
		.ask = dir == SL_PKTRING_TX ? h->tx : h->rx};
	struct sl_pktring_state none = {0};
	int ret = sl_pktring_geometry(&req, &none, geo);

	if (ret == 0 && geo->bytes > most)
		return -ENOMEM;
	return ret;
}

static int
check_rings(
	const struct sl_pktring_hello *h, size_t most, struct pktring_wish *wish, const char **why)
{
	int ret = check_ring(h, SL_PKTRING_TX, most, &wish->tx);

	*why = ret == -ENOMEM ? "the transmit ring is too large"
			      : "the transmit ring's geometry breaks the rules of PACKET_TX_RING";
	if (ret != 0)
		return ret;
	ret = check_ring(h, SL_PKTRING_RX, most, &wish->rx);
	*why = ret == -ENOMEM ? "the receive ring is too large"
			      : "the receive ring's geometry breaks the rules of PACKET_RX_RING";
	if (ret != 0)
		return ret;
	*why = "neither a transmit nor a receive ring was asked for";
	return wish->tx.bytes == 0 && wish->rx.bytes == 0 ? -EINVAL : 0;
}

int
pktring_hello_check(const void *message, size_t len, uint16_t queues, size_t most,
	struct pktring_wish *wish, const char **why)
{
	struct sl_pktring_hello h;

	*why = "not a hello of this protocol";
	if (len != sizeof(h))
		return -EPROTO;
	memcpy(&h, message, sizeof(h));
	if (h.magic != SL_PKTRING_MAGIC || h.type != SL_PKTRING_HELLO)
		return -EPROTO;
	*why = "no version of the protocol in common";
	if (h.oldest > SL_PKTRING_PROTOCOL || h.newest < SL_PKTRING_PROTOCOL)
		return -EPROTO;
	*why = "ring version, flags or reserve out of range";
	if (h.version > TPACKET_V3 || h.reserve > INT_MAX ||
		(h.flags & ~(SL_PKTRING_LOSS | SL_PKTRING_HAS_OFF)) != 0)
		return -EINVAL;
	*why = "no such queue";
	if (h.queue != SL_PKTRING_ANY_QUEUE && h.queue >= queues)
		return -EINVAL;
	*wish = (struct pktring_wish){.queue = h.queue,
		.protocol = SL_PKTRING_PROTOCOL,
		.loss = h.flags & SL_PKTRING_LOSS,
		.has_off = h.flags & SL_PKTRING_HAS_OFF};
	return check_rings(&h, most, wish, why);
}
