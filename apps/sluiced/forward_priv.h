/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FORWARD_PRIV_H
#define SLUICED_FORWARD_PRIV_H

/**
 * @file
 * The load balancer's insides: what workers see of a service, and headers rewritten.
 *
 * Letters: (c) constant after open, (v) constant in a view, (o) owner worker alone, (l) d->lock.
 */

#include "daemon.h"
#include "forward.h"
#include "sl_inet_claim.h"

#define FORWARD_BACKENDS CONF_FORWARD_BACKENDS_MAX
/** In place of a back end: packets to the service. */
#define FORWARD_SERVICE UINT16_MAX

/** An address and a UDP port, network order. */
struct forward_end {
	struct sl_addr addr;
	uint16_t port;
};

/** What a claim's owner points to. */
struct forward_owner {
	struct forward *f;
	uint16_t backend; /**< or FORWARD_SERVICE */
};

/** All that decisions of a moment rest on (v). */
struct forward_view {
	struct balancer_view *balancer;
	struct forward_end end[FORWARD_BACKENDS];
	uint32_t generation[FORWARD_BACKENDS]; /**< 0: nobody has the index */
};

/** A worker's part (o). */
struct forward_worker {
	struct balancer *balancer;
	uint64_t turn_ms; /**< of the last one */
	uint64_t entered;
	uint64_t picked[FORWARD_BACKENDS];
	uint64_t replies[FORWARD_BACKENDS];
	struct service_cell cell;
} SL_CACHE_ALIGNED;

/** A back end as control sees it (l). */
struct forward_backend {
	char name[CONF_NAME_LEN]; /**< "": nobody has the index */
	struct forward_end end;
	uint32_t weight;
	uint32_t generation;
	enum balancer_state state;
};

/** A configuration that is made ready (l). */
struct forward_next {
	struct forward_view *view;
	struct conf_forward conf;
	uint32_t generations;
	struct forward_backend backend[FORWARD_BACKENDS];
};

struct forward {
	/* (c) */
	struct daemon *d;
	struct forward_end self;
	uint16_t nworkers;
	struct forward_worker *worker;
	struct forward_owner to;
	struct forward_owner from[FORWARD_BACKENDS];

	struct forward_view *view; /**< LB1: control publishes, workers acquire */
	/* (l) */
	struct conf_forward conf; /**< settings of the view */
	uint32_t generations;	  /**< given so far */
	struct forward_backend backend[FORWARD_BACKENDS];
	struct forward_next *next; /**< or NULL */

	/** FW1: a worker releases 1, the control thread takes it. */
	uint32_t unreachable[FORWARD_BACKENDS];
};

/* ---- headers (forward_head.c): private copies, in place ---- */

/**
 * Give a UDP datagram's headers another source or destination. Checksums change by the difference:
 * what was wrong stays wrong; a zero UDP checksum of IPv4 stays zero; one that comes out as zero
 * becomes 0xffff.
 *
 * @param ip     IPv4 or IPv6 header, as v4 says
 * @param udp    UDP header; NULL for a later fragment
 * @param src    new source, or NULL to leave it
 * @param dst    likewise
 */
void forward_edit(uint8_t *ip, uint8_t *udp, bool v4, const struct forward_end *src,
	const struct forward_end *dst);
/** Take one off the hop limit; false, and nothing has changed, if that leaves none. */
bool forward_hop(uint8_t *ip, bool v4);
/** May the packet not be cut into fragments on its way? */
bool forward_whole(const uint8_t *ip, bool v4);
/** Sum of the pseudo header as a partial checksum has it: folded, not complemented. */
uint16_t forward_pseudo(const uint8_t *ip, bool v4, uint8_t proto, uint32_t len);

/* ---- checksums: sums are of words in memory order ---- */

/** Fold a sum to 16 bits. */
static inline uint16_t
forward_fold(uint64_t sum)
{
	/* Added to itself with its halves exchanged, a sum has the carry that goes around above the
	 * middle. */
	uint32_t half = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);

	return (uint16_t)((half + (half << 16 | half >> 16)) >> 16);
}

/** What becomes of a checksum when the sum of what it covers grows by delta (RFC 1624). */
static inline uint16_t
forward_sum(uint16_t old, uint64_t delta)
{
	return (uint16_t)~forward_fold((uint16_t)~old + delta);
}

/** The same for UDP: 0 stays, for there is none; what comes out as 0 is 0xffff. */
static inline uint16_t
forward_udp_sum(uint16_t old, uint64_t delta)
{
	uint16_t sum = forward_sum(old, delta);

	if (SL_UNLIKELY(old == 0))
		return 0;
	return sum != 0 ? sum : UINT16_MAX;
}

/* ---- packets on workers ---- */

/** A packet that is being dealt with. */
struct forward_pkt {
	struct forward *f;
	struct forward_worker *fw;
	const struct forward_view *view;
	uint16_t worker;
	struct sl_inet_claimed *c;
	struct forward_ways *ways;
};

/** Ways to back ends that were found in this burst, by index in view; and the last one to a client.
 */
struct forward_ways {
	const struct forward_view *view;
	uint64_t known;
	struct sl_inet_way way[FORWARD_BACKENDS];
	struct sl_addr client; /**< any: none is known */
	struct sl_inet_way back;
};
_Static_assert(FORWARD_BACKENDS <= 64, "known has a bit for each");

/** How claimed packets reach their services (forward_path.c). */
extern const struct sl_inet_claim_ops forward_ops;

/**
 * Send c's packet on with the headers of its private copy, and count what became of it.
 *
 * @param way      of where it goes; NULL: there is none
 * @param src, to  what changes in it, as for forward_edit
 * @param sent     outcome if it was sent
 */
void forward_send(const struct forward_pkt *p, const struct sl_inet_way *way,
	const struct forward_end *src, const struct forward_end *to, enum service_outcome sent);
/** Count it, free it. */
void forward_drop(const struct forward_pkt *p, enum service_outcome why);
/** Send a packet that is longer than the way takes in pieces; frees it (forward_split.c). */
enum service_outcome forward_split(struct daemon *d, uint16_t worker, const struct sl_inet_way *way,
	struct rte_mbuf *m, enum service_outcome sent);

/** An ICMP error (forward_icmp.c). */
void forward_error(const struct forward_pkt *p, uint16_t backend);

#endif
