/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef RING_HELP_H
#define RING_HELP_H

#include <errno.h>
#include <string.h>

#include "pktring_priv.h"
#include "sl_test.h"

#define FRAME 2048u
#define FRAMES 8u
#define SEC UINT64_C(1000000000)

static inline struct sl_pktring_geo
ring_geo(enum sl_pktring_dir dir, int version, uint32_t frame)
{
	struct sl_pktring_req req = {.dir = dir, .version = version};
	struct sl_pktring_state none = {0};
	struct sl_pktring_geo geo;

	req.ask = (struct tpacket_req3){.tp_block_size = 2 * FRAME,
		.tp_block_nr = FRAMES / 2,
		.tp_frame_size = frame,
		.tp_frame_nr = 2 * FRAME / frame * (FRAMES / 2)};
	REQUIRE(sl_pktring_geometry(&req, &none, &geo) == 0);
	return geo;
}

static inline struct sl_pktring_tx *
ring_tx(int version, struct sl_pktring_tx_conf conf)
{
	struct sl_pktring_geo geo = ring_geo(SL_PKTRING_TX, version, FRAME);
	struct sl_pktring_tx *ring;

	REQUIRE(sl_pktring_tx_create(&geo, &conf, 2, &ring) == 0);
	return ring;
}

static inline uint8_t *
tx_slot(const struct sl_pktring_tx *ring, uint32_t n)
{
	return sl_pktring_tx_mem(ring)->addr + sl_pktring_offset(sl_pktring_tx_geo(ring), n);
}

static inline uint8_t *
rx_slot(const struct sl_pktring_rx *ring, uint32_t n)
{
	return sl_pktring_rx_mem(ring)->addr + sl_pktring_offset(sl_pktring_rx_geo(ring), n);
}

static inline struct tpacket_block_desc *
rx_block(const struct sl_pktring_rx *ring, uint32_t n)
{
	return (void *)(sl_pktring_rx_mem(ring)->addr +
		(size_t)n * sl_pktring_rx_geo(ring)->block_size);
}

/* Header fields by version, as the client sees them. */
static inline void
set_offsets(int version, void *slot, uint16_t mac, uint16_t net)
{
	switch (version) {
	case TPACKET_V1:
		((struct tpacket_hdr *)slot)->tp_mac = mac;
		((struct tpacket_hdr *)slot)->tp_net = net;
		break;
	case TPACKET_V2:
		((struct tpacket2_hdr *)slot)->tp_mac = mac;
		((struct tpacket2_hdr *)slot)->tp_net = net;
		break;
	default:
		((struct tpacket3_hdr *)slot)->tp_mac = mac;
		((struct tpacket3_hdr *)slot)->tp_net = net;
		break;
	}
}

#endif
