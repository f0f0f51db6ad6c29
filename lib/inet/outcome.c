/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "sl_assert.h"
#include "sl_outcome.h"

#define TAKEN false
#define LOST true

static const struct sl_outcome_info infos[SL_OUTCOME_COUNT] = {
	[SL_RX_UDP_QUEUED] = {"udp_queued", "Placed in a socket's receive queue.", TAKEN},
	[SL_RX_ARP] = {"arp", "ARP, answered or learnt from.", TAKEN},
	[SL_RX_ND] = {"nd", "IPv6 neighbour discovery, answered or learnt from.", TAKEN},
	[SL_RX_ECHO] = {"echo", "Echo request, answered.", TAKEN},
	[SL_RX_ICMP_ERROR] = {"icmp_error", "ICMP error about a datagram of ours, reported to UDP.",
		TAKEN},
	[SL_RX_ICMP_IGNORED] = {"icmp_ignored", "Well-formed ICMP that asks for nothing.", TAKEN},
	[SL_RX_IP_FRAG_MERGED] = {"ip_frag_merged",
		"Fragment joined with others; the datagram counts where its last one to come does.",
		TAKEN},
	[SL_RX_IP_FRAG_DUPLICATE] = {"ip_frag_duplicate",
		"Fragment that is there already, at the same place and as long.", TAKEN},
	[SL_RX_PUNTED] = {"punted", "Claimed by nobody here, handed to the exception path.", TAKEN},
	[SL_RX_CLAIMED] = {"claimed",
		"Handed over whole to a service that claims it, which counts what became of it.",
		TAKEN},
	[SL_RX_ETH_SHORT] = {"eth_short",
		"Frame ends inside its link header; the sender or the wire is at fault.", LOST},
	[SL_RX_ETH_OTHERHOST] = {"eth_otherhost",
		"Sent to another MAC address; set promiscuous if such frames are wanted.", LOST},
	[SL_RX_ETH_TYPE] = {"eth_type", "Ethertype that is neither ARP nor IP.", LOST},
	[SL_RX_VLAN_OTHER] = {"vlan_other",
		"Tags differ from those of the port; compare them with the port's VLAN settings.",
		LOST},
	[SL_RX_ARP_BAD] = {"arp_bad", "ARP with a wrong length, type or sender.", LOST},
	[SL_RX_IP_VERSION] = {"ip_version", "IP version differs from what the ethertype says.",
		LOST},
	[SL_RX_IP_LENGTH] = {"ip_length",
		"IP lengths exceed the frame; look for truncation (MTU, snap length).", LOST},
	[SL_RX_IP_CSUM] = {"ip_csum", "IPv4 header checksum is wrong.", LOST},
	[SL_RX_IP_OPTION] = {"ip_option", "IPv4 options are malformed or ask for source routing.",
		LOST},
	[SL_RX_IP_EXTENSION] = {"ip_extension",
		"IPv6 extension headers are malformed, too many, or unknown.", LOST},
	[SL_RX_IP_SOURCE] = {"ip_source",
		"Source address is a group, loopback or unspecified; likely forged.", LOST},
	[SL_RX_IP_NOT_LOCAL] = {"ip_not_local",
		"Destination address is none of the port's; check the address given to the port.",
		LOST},
	[SL_RX_IP_FRAG_BAD] = {"ip_frag_bad",
		"Fragment whose length or place no datagram can have.", LOST},
	[SL_RX_IP_FRAG_OVERLAP] = {"ip_frag_overlap",
		"Fragments of one datagram overlap; likely an attack.", LOST},
	[SL_RX_IP_FRAG_MANY] = {"ip_frag_many",
		"Datagram in more fragments than can be joined; send smaller ones.", LOST},
	[SL_RX_IP_FRAG_FULL] = {"ip_frag_full",
		"Oldest fragments gave way: raise the bounds on what a worker holds, or the "
		"port's pool.",
		LOST},
	[SL_RX_IP_FRAG_TIMEOUT] = {"ip_frag_timeout",
		"Rest of the datagram did not come in time; look for loss on the path.", LOST},
	[SL_RX_IP_PROTO] = {"ip_proto", "Protocol other than UDP and ICMP.", LOST},
	[SL_RX_ICMP_BAD] = {"icmp_bad", "ICMP with a wrong length or checksum.", LOST},
	[SL_RX_ND_BAD] = {"nd_bad",
		"Neighbour discovery that breaks RFC 4861; may be an attempt from off the link.",
		LOST},
	[SL_RX_UDP_LENGTH] = {"udp_length", "UDP length is below 8 or exceeds the packet.", LOST},
	[SL_RX_UDP_CSUM] = {"udp_csum", "UDP checksum is wrong.", LOST},
	[SL_RX_UDP_CSUM_PARTIAL] = {"udp_csum_partial",
		"Sender left the UDP checksum to hardware that never filled it in; turn its "
		"transmit "
		"checksum offload off (ethtool -K DEV tx off).",
		LOST},
	[SL_RX_UDP_CSUM_ZERO6] = {"udp_csum_zero6",
		"UDP over IPv6 without the checksum that IPv6 requires.", LOST},
	[SL_RX_UDP_NO_SOCKET] = {"udp_no_socket",
		"No socket is bound to the destination port; answered with port unreachable.",
		LOST},
	[SL_RX_UDP_RCVBUF] = {"udp_rcvbuf",
		"Receive buffer is full; read faster or raise the socket's rcvbuf.", LOST},
	[SL_RX_UDP_SLOTS] = {"udp_slots",
		"Intake has no free slot; read faster or give the socket more slots.", LOST},
	[SL_RX_PUNT_FAILED] = {"punt_failed",
		"Claimed by nobody here, and the exception path did not take it; is its interface up?",
		LOST},
	[SL_TX_SENT] = {"tx_sent", "Taken by the port.", TAKEN},
	[SL_TX_NO_ROUTE] = {"tx_no_route",
		"No prefix or gateway covers the destination; set a gateway.", LOST},
	[SL_TX_NEIGH_FAILED] = {"tx_neigh_failed",
		"Next hop did not answer ARP or neighbour discovery.", LOST},
	[SL_TX_NEIGH_FULL] = {"tx_neigh_full",
		"Too many packets wait for next hops, or the neighbour table is full.", LOST},
	[SL_TX_PORT_FULL] = {"tx_port_full",
		"Port did not take it: its transmit queue is full or it refused the packet.", LOST},
	[SL_TX_NO_MBUF] = {"tx_no_mbuf",
		"No free mbuf for a packet of the stack's own; enlarge the port's pool.", LOST},
};

const struct sl_outcome_info *
sl_outcome_info(enum sl_outcome outcome)
{
	SL_ASSERT(outcome < SL_OUTCOME_COUNT);
	return &infos[outcome];
}
