/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_INET_CLAIM_H
#define SL_INET_CLAIM_H

/**
 * @file
 * Claims: packets that somebody takes whole, before the network layer delivers or refuses them. A
 * load balancer is made of these: it claims what clients send to its address, and what its back
 * ends answer to clients who are elsewhere.
 *
 * A *claim* names a UDP port of an address, as the destination or as the source of datagrams:
 *
 *     SL_CLAIM_TO     to one of our addresses and that port
 *     SL_CLAIM_FROM   from that address and port, to an address that is not ours
 *
 * With it come the fragments of such datagrams and the ICMP errors that quote one:
 *
 *     claim   datagram          fragment            ICMP error that quotes
 *     TO      SL_CLAIMED_TO     as its first one    a datagram from there: SL_CLAIMED_ERROR_TO
 *     FROM    SL_CLAIMED_FROM   likewise            a datagram to there:   SL_CLAIMED_ERROR_FROM
 *
 * Errors are claimed whether they are sent to us or to the one whose datagram they quote. All other
 * packets go their usual way: to sockets of the same address, say.
 *
 * *Fragments.* The first one has the ports. A later one is known by source, destination,
 * identification and protocol, and follows. One that comes before its first waits for it, for as
 * long and as many as the stack's bounds of reassembly say, then ends in ip_frag_timeout or
 * ip_frag_full; while it waits it is held (sl_inet_held). So all fragments of a datagram get to the
 * one owner, in whatever order they come, if they come to one worker.
 *
 * All claims of a stack are one *set*, which is replaced as a whole (IN1):
 *
 *     control path                                 workers
 *     sl_inet_claims_create(set)                   polls: claimed packets go to ops->input,
 *     old = sl_inet_claims_publish(set)            by the set of the moment
 *     sl_inet_synchronize
 *     sl_inet_claims_destroy(old), owners of it
 *
 * A stack without a set pays one branch a burst for all this.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_inet.h"

SL_BEGIN_DECLS

/** Claims of a set. */
#define SL_INET_CLAIMS_MAX 4096u
/** Bytes of a frame that are copied before they are looked at, at most. */
#define SL_INET_CLAIM_HEAD 128u

enum sl_inet_claim_kind { SL_CLAIM_TO, SL_CLAIM_FROM };

struct sl_inet_claim {
	enum sl_inet_claim_kind kind;
	struct sl_addr addr;
	uint16_t udp_port; /**< network order; not 0 */
	/**
	 * FROM: datagrams to our own addresses are claimed as well if their destination port is one
	 * of these (host order). 0, 0: none is, and they go to sockets.
	 */
	uint16_t own_first;
	uint16_t own_last;
	void *owner; /**< for the one who claims; comes back with each packet */
};

enum sl_inet_claimed_kind {
	SL_CLAIMED_TO,
	SL_CLAIMED_FROM,
	SL_CLAIMED_ERROR_TO,
	SL_CLAIMED_ERROR_FROM,
};

/**
 * A packet that was claimed. Offsets count from the start of the frame. What the headers say was
 * checked as for packets that are delivered, but for the UDP checksum: who sends a datagram on need
 * not know.
 */
struct sl_inet_claimed {
	struct rte_mbuf *m; /**< the whole frame, as the port gave it */
	/**
	 * Private copy of the first head_len bytes, to be read instead of m's, and free to be
	 * written: packets may lie in memory that a peer can change.
	 */
	uint8_t *head;
	uint16_t head_len; /**< headers are whole in it */
	uint16_t port;	   /**< handle of the port that it came by */
	uint16_t l2_len;   /**< offset of the IP header */
	uint16_t l4_off;   /**< of the UDP or ICMP header; of a later fragment: of its data */
	uint32_t end;	   /**< behind the IP packet; what follows is padding */
	uint8_t kind;	   /**< enum sl_inet_claimed_kind */
	bool v4;
	bool later; /**< a fragment without the UDP header */
	/** A datagram, neither fragment nor error, without options or extension headers, in one
	 * segment: l2_len is 14, or 18 with a tag, l4_off 20 (IPv4) or 40 more. Such a one may lack
	 * the mark. */
	bool plain;
	uint16_t sport; /**< network order; of an error: of the datagram that it quotes */
	uint16_t dport;
	struct sl_addr src; /**< of the packet, also of an error */
	struct sl_addr dst;
	/** Errors: offsets of the quoted IP header and of the UDP header behind it, of which 8
	 * bytes are there. */
	uint16_t quote_off;
	uint16_t quote_l4;
	/**
	 * NULL unless the packet is a fragment: a word for the owner, 0 at first, which all
	 * fragments of the datagram share. Good during the call. The first one comes before the
	 * others.
	 */
	uint64_t *follow;
	void *owner;
};

/** Who takes claimed packets. Called on workers; must not block. */
struct sl_inet_claim_ops {
	/**
	 * Take packets.
	 *
	 * @param now_ns   the stack's time
	 * @param c        n packets, of any owners; good during the call, but for the mbufs, which
	 * are the callee's from now on
	 * @param n        1..SL_INET_BURST
	 */
	void (*input)(
		void *arg, uint16_t worker, uint64_t now_ns, struct sl_inet_claimed *c, uint16_t n);
};

struct sl_inet_claims;

/**
 * Make a set.
 *
 * @param claims  n of them, copied
 * @param ops     lives as long as the set
 * @param out     set on success only; for sl_inet_claims_publish or sl_inet_claims_destroy
 * @return        0; -EINVAL for a port 0, a group address or own_first above own_last; -ENOSPC for
 * more than SL_INET_CLAIMS_MAX; -EEXIST for two claims of one kind, address and port; -ENOMEM
 * Caller: control path.
 */
int sl_inet_claims_create(struct sl_inet *inet, const struct sl_inet_claim *claims, uint32_t n,
	const struct sl_inet_claim_ops *ops, void *arg, struct sl_inet_claims **out) SL_MUST_CHECK;

/**
 * Put a set in force, or none (NULL).
 *
 * @return   the one before, or NULL: workers may use it until a grace period has passed
 * Caller: control path. Ordering: IN1, release.
 */
struct sl_inet_claims *sl_inet_claims_publish(struct sl_inet *inet, struct sl_inet_claims *set);

/** Free a set that no worker uses. NULL is allowed. Caller: control path. */
void sl_inet_claims_destroy(struct sl_inet_claims *set);

/** Longest link header: two tags. */
#define SL_INET_LINK_MAX 22u

/** Which way packets to a destination go. */
struct sl_inet_way {
	void *port; /**< the stack's own */
	struct sl_addr hop;
	uint16_t mtu; /**< bytes of an IP packet that go out in one frame */
	/** After sl_inet_way_link: bytes of link; 0: the next hop is not known now. */
	uint16_t link_len;
	uint8_t link[SL_INET_LINK_MAX]; /**< link header of frames that go that way */
};

/**
 * Find the way to a unicast destination.
 *
 * @return   0, and *way is good until the worker's turn ends; -ENETUNREACH; -EACCES a broadcast
 * address Caller: the worker; remembered by destination, as for sl_inet_udp_output.
 */
int sl_inet_way_find(struct sl_inet *inet, uint16_t worker, const struct sl_addr *dst,
	struct sl_inet_way *way) SL_MUST_CHECK;

/**
 * Send a packet that is finished from the IP header on: put the link header in front, resolve the
 * next hop if need be.
 *
 * @param m      no longer than way->mtu, with 32 bytes of headroom, in memory that is ours alone;
 * its ol_flags and lengths say what is left to hardware: nothing, or the UDP checksum
 *               (RTE_MBUF_F_TX_UDP_CKSUM and the family, l3_len; the field holds the pseudo
 * header's sum), which is computed here if the port cannot Caller: the worker; never blocks.
 * Counts: it ends in a transmit outcome.
 */
void sl_inet_way_output(
	struct sl_inet *inet, uint16_t worker, const struct sl_inet_way *way, struct rte_mbuf *m);

/**
 * Make a way's link header, for who sends many packets that way and writes it himself.
 *
 * @param way    from sl_inet_way_find; link and link_len are set
 * @return       true; false if the next hop is not known: sl_inet_way_output asks for it
 * Caller: the worker; the link header is good until its turn ends. Counts as use of the neighbour.
 */
bool sl_inet_way_link(struct sl_inet *inet, uint16_t worker, struct sl_inet_way *way);

/**
 * Send frames that are finished, with the link header of a way.
 *
 * @param way    of any of them: all go by its port
 * @param m      n frames, no longer than its MTU allows, in memory that is ours alone; nothing is
 * left to hardware
 * Caller: the worker; never blocks. Counts: each ends in a transmit outcome.
 */
void sl_inet_way_frames(struct sl_inet *inet, uint16_t worker, const struct sl_inet_way *way,
	struct rte_mbuf **m, uint16_t n);

/** Why a claimed packet goes no further. */
enum sl_inet_claim_error {
	SL_CLAIM_ERROR_TIME,	/**< its hop limit is used up */
	SL_CLAIM_ERROR_TOO_BIG, /**< longer than the next link takes */
	SL_CLAIM_ERROR_NOBODY,	/**< nobody serves the port */
	SL_CLAIM_ERROR_NO_WAY,	/**< there is no way to the destination */
};

/**
 * Tell the sender of a claimed datagram by an ICMP error, if one may be sent about it and the
 * worker's rate allows it. Errors are not answered, nor are later fragments.
 *
 * @param c     as it was handed over: neither head nor m have been written to
 * @param mtu   of SL_CLAIM_ERROR_TOO_BIG
 * Caller: the worker, in ops->input. The packet stays the caller's.
 */
void sl_inet_claim_answer(struct sl_inet *inet, uint16_t worker, const struct sl_inet_claimed *c,
	enum sl_inet_claim_error error, uint16_t mtu);

SL_END_DECLS

#endif
