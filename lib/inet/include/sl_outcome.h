/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_OUTCOME_H
#define SL_OUTCOME_H

/**
 * @file
 * Outcomes: what became of a packet. Every packet that enters the stack ends in exactly one receive
 * outcome, and every packet that the stack sends in exactly one transmit outcome, so that the
 * outcomes sum to what came in. doc/outcomes.md has a row for each.
 *
 * A fragment is a packet. While it waits for the others it is *held* (sl_inet_held) and has no outcome
 * yet; of those that make a datagram, the one that completes it ends in the datagram's outcome, and
 * the others in SL_RX_IP_FRAG_MERGED. So, at any time: received = sum of receive outcomes + held.
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_base.h"

SL_BEGIN_DECLS

enum sl_outcome {
	/* receive: taken */
	SL_RX_UDP_QUEUED,    /**< in a socket's receive queue */
	SL_RX_ARP,           /**< ARP, used */
	SL_RX_ND,            /**< IPv6 neighbour discovery, used */
	SL_RX_ECHO,          /**< ICMP or ICMPv6 echo request, answered */
	SL_RX_ICMP_ERROR,    /**< ICMP or ICMPv6 error, handed to the protocol that it is about */
	SL_RX_ICMP_IGNORED,  /**< well-formed ICMP of a kind that needs no action */
	SL_RX_IP_FRAG_MERGED, /**< a fragment, now part of a datagram: see above */
	SL_RX_IP_FRAG_DUPLICATE, /**< a fragment of the same place and length as one that is held */
	SL_RX_PUNTED,        /**< claimed by nobody here, taken by the port's taker (sl_inet_punt.h) */
	SL_RX_CLAIMED, /**< taken whole by who has claimed it (sl_inet_claim.h) */
	/* receive: Ethernet */
	SL_RX_ETH_SHORT,     /**< frame shorter than its link header */
	SL_RX_ETH_OTHERHOST, /**< unicast to another MAC address */
	SL_RX_ETH_TYPE,      /**< ethertype that nobody here handles */
	SL_RX_VLAN_OTHER,    /**< tagged for a VLAN that the port is not in, or untagged where it is */
	SL_RX_ARP_BAD,       /**< malformed ARP */
	/* receive: IP */
	SL_RX_IP_VERSION,    /**< version field does not fit the ethertype */
	SL_RX_IP_LENGTH,     /**< header or total length does not fit the frame */
	SL_RX_IP_CSUM,       /**< IPv4 header checksum wrong */
	SL_RX_IP_OPTION,     /**< IPv4 option that runs out of its header, or a source route */
	SL_RX_IP_EXTENSION,  /**< IPv6 extension headers malformed, too many, or not understood */
	SL_RX_IP_SOURCE,     /**< source address that nothing may send from */
	SL_RX_IP_NOT_LOCAL,  /**< destination address is not ours */
	SL_RX_IP_FRAG_BAD,   /**< a fragment that no datagram can have */
	SL_RX_IP_FRAG_OVERLAP, /**< fragments that overlap, and all others of their datagram */
	SL_RX_IP_FRAG_MANY,  /**< of a datagram in more fragments than can be joined */
	SL_RX_IP_FRAG_FULL,  /**< gave way to newer ones: as much is held as may be */
	SL_RX_IP_FRAG_TIMEOUT, /**< the rest of the datagram did not come in time */
	SL_RX_IP_PROTO,      /**< protocol that nobody here handles */
	SL_RX_ICMP_BAD,      /**< ICMP or ICMPv6 with a wrong length or checksum */
	SL_RX_ND_BAD,        /**< neighbour discovery that breaks RFC 4861's validity rules */
	/* receive: UDP */
	SL_RX_UDP_LENGTH,    /**< UDP length does not fit the packet */
	SL_RX_UDP_CSUM,      /**< UDP checksum wrong */
	SL_RX_UDP_CSUM_PARTIAL, /**< field holds just the pseudo-header sum: sender left it to hardware */
	SL_RX_UDP_CSUM_ZERO6, /**< UDP over IPv6 without a checksum */
	SL_RX_UDP_NO_SOCKET, /**< no socket for the destination port */
	SL_RX_UDP_RCVBUF,    /**< socket's receive buffer is full */
	SL_RX_UDP_SLOTS,     /**< socket's intake has no free slot */
	SL_RX_PUNT_FAILED,   /**< claimed by nobody here, and the port's taker did not take it */
	/* transmit */
	SL_TX_SENT,          /**< taken by the port */
	SL_TX_NO_ROUTE,      /**< no port or gateway for the destination */
	SL_TX_NEIGH_FAILED,  /**< the next hop did not answer */
	SL_TX_NEIGH_FULL,    /**< too many packets already wait for the next hop, or table full */
	SL_TX_PORT_FULL,     /**< the port did not take it */
	SL_TX_NO_MBUF,       /**< no mbuf for a packet of the stack's own */
	SL_OUTCOME_COUNT
};

/** First transmit outcome: those below are receive outcomes. */
#define SL_OUTCOME_TX_FIRST SL_TX_SENT

/** How the outcomes read in tables, JSON, telemetry and doc/outcomes.md. */
struct sl_outcome_info {
	const char *name;     /**< lower case with underscores, e.g. "udp_csum_partial" */
	const char *sentence; /**< what happened, and what to do about it where something helps */
	bool drop;            /**< the packet was lost to its receiver */
};

/**
 * Describe an outcome.
 *
 * @param outcome   below SL_OUTCOME_COUNT
 * @return          a constant
 * Caller: any thread.
 */
const struct sl_outcome_info *sl_outcome_info(enum sl_outcome outcome);

SL_END_DECLS

#endif
