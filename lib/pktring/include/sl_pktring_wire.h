/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_PKTRING_WIRE_H
#define SL_PKTRING_WIRE_H

/**
 * @file
 * What a net_pktring port and its clients say to each other. Needs no DPDK.
 *
 * The socket is AF_UNIX, SOCK_SEQPACKET: a message is a packet. Numbers are in host order, since both
 * ends are on one host.
 *
 *     client                                server
 *       | -- hello: versions, queue, rings --> |     checked; geometry as asked, or refused
 *       | <-- answer + 4 descriptors --------- |     transmit ring, receive ring, bell page, kick
 *       |          ... rings ...               |
 *       | <-- bell --------------------------- |     only when the client said that it sleeps
 *       | -- hangs up -----------------------> |     rings end, in flight or not
 *
 * Names are the client's: it puts frames into its transmit ring and finds what the port's
 * application sends in its receive ring.
 *
 * The *bell page* holds a word for each side: it sleeps. Who has put something into a ring looks at
 * the other's word, behind a full fence (PR6), and rings if it is set: the client writes the kick
 * eventfd, the server sends a bell message - a client could turn an eventfd that it shares into one
 * that blocks whoever writes it.
 *
 * Stability: stable (doc/api.md).
 */

#include <linux/if_packet.h>

#include "sl_base.h"

#define SL_PKTRING_MAGIC 0x534c5031u /* "SLP1" */
#define SL_PKTRING_PROTOCOL 1u
#define SL_PKTRING_ANY_QUEUE UINT16_MAX
#define SL_PKTRING_FDS 4

enum sl_pktring_message {
	SL_PKTRING_HELLO = 1, /* client to server */
	SL_PKTRING_ANSWER,    /* server to client */
	SL_PKTRING_BELL,      /* server to client */
};

/* Flags of a hello. */
#define SL_PKTRING_LOSS 1u    /**< bad slots are passed over, as PACKET_LOSS */
#define SL_PKTRING_HAS_OFF 2u /**< slots say where their frame starts, as PACKET_TX_HAS_OFF */

struct sl_pktring_hello {
	uint32_t magic;
	uint16_t type;
	uint16_t queue;             /**< or SL_PKTRING_ANY_QUEUE */
	uint16_t oldest, newest;    /**< protocol versions that the client speaks */
	uint32_t version;           /**< TPACKET_V1, V2 or V3 */
	uint32_t flags;
	uint32_t reserve;           /**< of receive slots */
	struct tpacket_req3 tx, rx; /**< no blocks: no such ring; not both */
};

struct sl_pktring_answer {
	uint32_t magic;
	uint16_t type;
	uint16_t protocol; /**< the newest that both speak */
	int32_t error;     /**< 0, or -errno and no descriptors come along */
	uint16_t queue;
	uint16_t mtu;
	uint8_t mac[6];    /**< the port's address */
	uint16_t pad;
	uint64_t tx_bytes, rx_bytes;
	char text[96];     /**< why not, for people */
};

struct sl_pktring_bell {
	uint32_t magic;
	uint16_t type;
	uint16_t pad;
};

/** The bell page, each side's word on a cache line of its own. */
struct sl_pktring_page {
	uint32_t server_sleeps SL_CACHE_ALIGNED;
	uint32_t client_sleeps SL_CACHE_ALIGNED;
};

#endif
