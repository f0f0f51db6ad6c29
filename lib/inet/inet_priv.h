/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_PRIV_H
#define INET_PRIV_H

/*
 * The stack's insides. Letters on members: (c) constant after create or port_add, (o) owner worker
 * alone, (a) atomic, (l) under the neighbour table's lock.
 *
 * IN1: control calls fill a port or an address and then publish it by a count or a pointer; workers
 * acquire that and see it whole. Nothing published is ever changed in place except atomic words.
 */
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>

#include "sl_assert.h"
#include "sl_inet.h"
#include "sl_shared.h"

#define NSEC_PER_SEC UINT64_C(1000000000)
/* Headers are parsed from a copy of this many bytes. Extension headers that reach beyond are
 * refused; Ethernet, two tags, the longest IPv4 header and UDP need 90. */
#define INET_HEAD 128
#define INET_TAGS_MAX 2
#define INET_ETH_MAX (14 + 4 * INET_TAGS_MAX)
#define INET_TTL 64
#define INET_TX_BATCH 64

enum inet_addr_state {
	INET_ADDR_NONE,	     /* none is here, or no longer */
	INET_ADDR_TENTATIVE, /* duplicate detection is on: neither source nor destination */
	INET_ADDR_READY,
	INET_ADDR_DUPLICATE, /* another host has it: never used */
};

struct inet_addr {
	struct sl_addr addr; /* (c) while there is one */
	uint8_t prefix;	     /* (c) while there is one */
	uint32_t state;	     /* (a) IN1: that there is one */
	uint64_t token;	     /* control path: the grace period after which the place is free */
	bool announce;	     /* (l) a gratuitous ARP or a probe has still to be sent */
	uint64_t due_ns;     /* (l) end of duplicate detection */
};

/* What one worker keeps for one port: (o). */
struct inet_wport {
	/* Last local addresses hit, so that the common case is one comparison; of the time when the stack's
	 * routes were these. */
	uint32_t local4 SL_CACHE_ALIGNED;
	uint32_t bcast4; /* of local4's prefix; 0 for none */
	struct sl_addr local6;
	uint32_t routes;
	bool has_queue;
	uint16_t queue; /* that this worker uses on this port */
	uint16_t tx_count;
	struct rte_mbuf *tx[INET_TX_BATCH];
	uint8_t guard[SL_CACHE_GUARD];
};

struct inet_port {
	/* (c) */
	uint16_t id;	/* handle */
	uint16_t dev;	/* of DPDK */
	uint16_t index; /* in sl_inet.port */
	uint16_t mtu;
	bool promiscuous;
	bool any_dst;
	bool tx_udp_cksum;
	bool tx_ip_cksum;
	uint8_t vids_count; /* tags that its frames carry, outer first */
	uint16_t vids[INET_TAGS_MAX];
	uint8_t l2_len;
	uint8_t l2[INET_ETH_MAX]; /* link header to send: destination and type to be filled in */
	struct rte_ether_addr mac;
	/* A frame for us starts with 8 bytes that equal mac_want where mac_mask has ones: our MAC
	 * address, or when promiscuous any that is no group. */
	uint64_t mac_want;
	uint64_t mac_mask;
	struct rte_mempool *pool;
	struct inet_wport *workers;

	struct inet_port *next; /* (a) IN1; of the same DPDK port, with other tags */
	uint32_t addr_count; /* (a) IN1; of places in addr that were ever used */
	uint32_t count4;     /* (a) relaxed: of these, IPv4 */
	struct inet_addr addr[SL_INET_ADDRS_MAX];

	uint64_t tick_ns
		SL_CACHE_ALIGNED; /* (a) relaxed, written under the lock: next timer turn */
	uint32_t cursor;	  /* (l) neighbour that the next timer turn starts at */
	struct inet_punt *punt; /* (a) IN1; NULL: nobody takes what is not claimed */
	uint8_t guard[SL_CACHE_GUARD];
};

/* A next hop as a worker remembers it (o). Valid while the table's epoch stays. */
struct inet_hop {
	struct sl_addr addr;
	uint16_t port; /* index of the port */
	uint32_t entry;
	uint32_t epoch;
	uint16_t generation;
	bool set;
};

/* A destination's route as a worker remembers it (o). Valid while the stack's routes stay. */
struct inet_path {
	struct sl_addr dst;
	struct sl_addr hop;
	struct inet_port *port; /* NULL: nothing remembered */
	uint32_t routes;
	bool has_src;
	struct sl_addr src; /* our address that suits dst */
};

#define INET_HOPS 64u
#define INET_PATHS 64u

struct inet_worker {
	uint64_t received SL_CACHE_ALIGNED; /* (o), read by anyone */
	uint64_t outcome[SL_OUTCOME_COUNT]; /* (o), read by anyone */
	uint64_t held; /* (o), read by anyone: fragments that wait */
	/* (o) */
	bool online;
	uint16_t ip_id;
	uint64_t now_ns; /* as of the last poll, input or timer call */
	uint64_t tokens; /* ICMP errors that may be sent, in 1/NSEC_PER_SEC of one */
	uint64_t tokens_ns;
	struct inet_reasm *reasm;
	uint64_t reasm_due_ns; /* when the oldest of it is too old; UINT64_MAX if there is none */
	struct inet_hop hop[INET_HOPS];
	struct inet_path path[INET_PATHS];
	uint8_t guard[SL_CACHE_GUARD];
};

struct inet_neigh_table;
struct inet_punt;
struct inet_claim_rx;
struct inet_claim_worker;
struct inet_reasm;
struct sl_inet_claims;
struct inet_table;
struct inet_fib;

struct sl_inet {
	/* (c) */
	uint16_t workers;
	uint32_t icmp_errors_per_s;
	uint64_t (*now_ns)(void *arg);
	void *now_arg;
	uint64_t ns_per_tick_q32; /* nanoseconds in a TSC cycle, 32.32 fixed point */
	const struct sl_inet_udp_ops *udp;
	void *udp_arg;
	const struct sl_inet_tap *tap; /* (a) IN1; NULL for none */
	struct inet_worker *worker;
	struct rte_rcu_qsbr *rcu;
	struct inet_neigh_table *neigh;
	struct inet_table *table;

	uint32_t routes; /* (a) IN1; counts changes of routes and addresses */
	const struct inet_fib *fib4; /* (a) IN1; NULL for no routes */
	const struct inet_fib *fib6;
	struct sl_inet_claims *claims; /* (a) IN1; NULL for none */
	struct inet_claim_worker *claim_worker; /* (c) once there was a set */
	uint32_t port_count; /* (a) IN1 */
	struct inet_port *port[SL_INET_PORTS_MAX]; /* (c) once counted */
	/* (a) IN1; by DPDK port: the first one, whose handle that is, */
	struct inet_port *by_id[RTE_MAX_ETHPORTS];
	/* and the one without tags, if there is one, else the first: all others follow by next. */
	struct inet_port *by_dev[RTE_MAX_ETHPORTS];
};

/* Packets whose first lines are being fetched while one is parsed. */
#define INET_AHEAD 4u

/* Receive state of one burst; lives on the stack. */
struct inet_rx {
	struct sl_inet *inet;
	struct inet_port *port;
	struct inet_wport *wport;
	struct inet_worker *w;
	struct inet_claim_rx *claim; /* NULL: there are no claims */
	uint16_t worker;
	uint16_t dgrams;
	uint16_t frees;
	/* From here to local: of wport, as long as the general path leaves it. */
	uint32_t local4;
	uint32_t bcast4;
	uint64_t pseudo4;     /* sum of local4 and the protocol, as in a pseudo header */
	struct sl_addr local; /* local4, as descriptors have it */
	uint8_t want4[32];    /* frame from the IP header on, where fast_mask4 has ones */
	uint64_t mac_want;    /* of port, as are the next two */
	uint64_t mac_mask;
	uint16_t port_id;
	const struct rte_mempool *pool; /* that the burst's first packet is of */
	uint32_t overhead;		/* bytes that a packet of it holds besides its buffer */
	uint32_t fast_len;		/* shortest frame that the fast path takes */
	bool many4;			/* the port has several IPv4 addresses */
	bool losses;			/* counts holds something */
	uint64_t in_head;  /* bit i: datagram i's headers are in head[i], else before its payload */
	uint64_t l2_group; /* bit i: datagram i came in a group frame */
	uint8_t counts[SL_OUTCOME_COUNT]; /* a burst has no more packets than fit */
	/* Valid where in_head says so: offset of the IP header in the frame, and network headers.
	 */
	uint16_t l2_len[SL_INET_BURST];
	uint16_t l3_len[SL_INET_BURST];
	struct sl_dgram *dgram; /* own, or where the UDP layer wants them */
	struct sl_dgram own[SL_INET_BURST];
	struct rte_mbuf *free[SL_INET_BURST];
	uint8_t outcome[SL_INET_BURST];
	uint8_t head[SL_INET_BURST][INET_HEAD];
};

/* One packet on the general path. Offsets count from the start of the frame. */
struct inet_pkt {
	struct rte_mbuf *m;
	const uint8_t *head; /* private copy of the first head_len bytes */
	uint16_t head_len;
	uint16_t l2_len;  /* offset of the network header */
	uint16_t l4_off;  /* offset of the transport header */
	uint16_t next_at; /* IPv6: offset in the packet of the field that names the transport */
	uint32_t end;	  /* offset behind the network packet: padding starts here */
	bool l2_group;	  /* sent to a group MAC address */
	bool dst_group;	  /* destination is a group or broadcast address */
	bool whole;	  /* made of fragments */
	bool answered;	  /* a question about an address of ours: not for others to answer */
	uint8_t ttl;
	uint8_t tos;
	struct sl_addr src;
	struct sl_addr dst;
};

/* From a check that found nothing wrong. */
#define INET_PASS SL_RX_UDP_QUEUED

/* Result of a handler that kept the mbuf (for a reply, or as a datagram). */
#define INET_KEPT 0x100
#define INET_OUTCOME(r) ((r)&0xff)
/* Kept, and the outcome comes later: from the UDP layer, or when the datagram is whole. */
#define INET_HELD (SL_RX_UDP_QUEUED | INET_KEPT)

__extension__ typedef unsigned __int128 inet_u128;

static inline uint64_t
inet_now(const struct sl_inet *inet)
{
	if (SL_UNLIKELY(inet->now_ns != NULL))
		return inet->now_ns(inet->now_arg);
	return (uint64_t)(((inet_u128)rte_rdtsc() * inet->ns_per_tick_q32) >> 32);
}

/* Bytes that a packet of one segment holds besides its buffer. */
static inline uint32_t
inet_overhead(const struct rte_mbuf *m)
{
	return (uint32_t)sizeof(*m) + m->priv_size;
}

static inline uint16_t
inet_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void
inet_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* The same as their namesakes in sl_inet.h, without a call: the public ones may be interposed. */
static inline bool
inet_is_v4(const struct sl_addr *a)
{
	uint64_t high;
	uint32_t middle;

	memcpy(&high, a->b, sizeof(high));
	memcpy(&middle, a->b + 8, sizeof(middle));
	return high == 0 && middle == rte_cpu_to_be_32(0xffff);
}

static inline uint32_t
inet_to_v4(const struct sl_addr *a)
{
	uint32_t be;

	memcpy(&be, a->b + 12, sizeof(be));
	return be;
}

/* May a host have an IPv4 address that begins with this octet? Not in 0/8 or 127/8, no group nor
 * above. */
static inline bool
inet_is_host4(uint8_t first)
{
	return (uint8_t)(first - 1) < 223 && first != 127;
}

static inline bool
inet_is_multicast(const struct sl_addr *a)
{
	return inet_is_v4(a) ? (a->b[12] & 0xf0) == 0xe0 : a->b[0] == 0xff;
}

static inline bool
inet_is_link_local(const struct sl_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static inline bool
inet_addr_equal(const struct sl_addr *a, const struct sl_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/** State of the address in a place: what else it says holds for this turn, unless there is none. */
static inline uint32_t
inet_addr_state(const struct inet_addr *a)
{
	return sl_load_acquire(&a->state); /* IN1 */
}

static inline uint32_t
inet_prefix_mask4(uint8_t prefix)
{
	return rte_cpu_to_be_32(prefix == 0 ? 0 : UINT32_MAX << (32 - prefix));
}

/** An outcome of this worker's. */
static inline void
inet_count(struct inet_worker *w, enum sl_outcome outcome, uint64_t n)
{
	sl_counter_add(&w->outcome[outcome], n);
}

/* stack.c, port.c */
void *inet_alloc(size_t bytes);
void inet_port_free(struct inet_port *port, uint16_t workers);
bool inet_prefix_match(const struct sl_addr *a, const struct sl_addr *b, uint8_t prefix);
/** The address with all bits behind the prefix 0. */
struct sl_addr inet_prefix_of(const struct sl_addr *a, uint8_t prefix);
/** Forget the addresses hit last: they may be gone. */
void inet_wport_forget(struct inet_wport *wport);
/** Does what the worker remembers of the port's addresses still hold? */
static inline void
inet_wport_check(const struct sl_inet *inet, struct inet_wport *wport)
{
	uint32_t routes = sl_load_acquire(&inet->routes); /* IN1 */

	if (SL_LIKELY(wport->routes == routes))
		return;
	wport->routes = routes;
	inet_wport_forget(wport);
}
struct inet_addr *inet_port_addr(const struct inet_port *port, const struct sl_addr *addr);
/** Is addr one of the port's that may be used now? */
bool inet_port_is_local(const struct inet_port *port, const struct sl_addr *addr);
/** Is it the broadcast address of one of the port's prefixes? */
bool inet_port_is_broadcast4(const struct inet_port *port, uint32_t be);

/* eth_in.c */
/** Process a burst; sl_inet_input_burst without the bookkeeping. */
/** pkts has room for INET_AHEAD entries behind the n, which are written. */
void inet_input(struct sl_inet *inet, uint16_t worker, struct inet_port *port,
	struct rte_mbuf **pkts, uint16_t n);
/** Copy bytes off..off+len of a packet; fewer if it ends before. Returns how many. */
uint32_t inet_mbuf_read(const struct rte_mbuf *m, uint32_t off, void *to, uint32_t len);
/** Make a packet's data bytes off..off+len of it; they must be there. */
void inet_mbuf_window(struct rte_mbuf *m, uint32_t off, uint32_t len);

/* ip4_in.c, ip6_in.c, udp_in.c: outcome, or outcome | INET_KEPT */
unsigned int inet_ip4_input(struct inet_rx *rx, struct inet_pkt *p);
/** Is dst (network order) an address of the port's? Remembered with its broadcast address. */
bool inet_ip4_hit(const struct inet_port *port, struct inet_wport *wport, uint32_t dst);
unsigned int inet_ip6_input(struct inet_rx *rx, struct inet_pkt *p);
unsigned int inet_udp_input(struct inet_rx *rx, struct inet_pkt *p);
unsigned int inet_arp_input(struct inet_rx *rx, struct inet_pkt *p);
/** Give the burst's datagrams to the UDP layer and settle what it did not take. */
void inet_udp_deliver(struct inet_rx *rx);

/* output.c: w, wport and so on are the calling worker's */
struct inet_ip_out {
	struct sl_addr src;
	struct sl_addr dst;
	uint8_t proto;
	uint8_t ttl;
	uint8_t tos;
};

/** Sum of the pseudo header of either family. */
uint64_t inet_pseudo_sum(
	const struct sl_addr *src, const struct sl_addr *dst, uint8_t proto, uint32_t len);
/** Put an IP header of src's family in front of a packet. */
void inet_ip_prepend(struct inet_worker *w, const struct inet_port *port, struct rte_mbuf *m,
	const struct inet_ip_out *out);
/** Send an IP payload to a MAC address in as many fragments as it takes, copied: m stays the caller's. */
void inet_fragments_output(struct inet_rx *rx, const struct rte_mbuf *m,
	const struct inet_ip_out *out, const uint8_t *mac);
/** Put the link header in front and queue for transmit. type in host order. */
void inet_eth_output(struct inet_worker *w, struct inet_port *port, struct inet_wport *wport,
	struct rte_mbuf *m, const uint8_t *mac, uint16_t type);
/** Queue a whole frame for transmit. */
void inet_enqueue(struct inet_worker *w, const struct inet_port *port, struct inet_wport *wport,
	struct rte_mbuf *m);
/** Length of the longest of the port's prefixes that covers dst; -1 for none. */
int inet_on_link(const struct inet_port *port, const struct sl_addr *dst);
/** Port and next hop for dst. src narrows it down for link-local and group destinations. */
int inet_route(const struct sl_inet *inet, const struct sl_addr *dst, const struct sl_addr *src,
	struct inet_port **port, struct sl_addr *hop);
/** Route and source address for dst, into path: 0; -ENETUNREACH. */
int inet_source(const struct sl_inet *inet, const struct sl_addr *dst, struct inet_path *path);
/** A usable source address on a port, best for dst by way of hop; NULL for none. */
const struct inet_addr *inet_port_source(
	const struct inet_port *port, const struct sl_addr *dst, const struct sl_addr *hop);
/** An empty mbuf with headroom for all headers; NULL is counted. */
struct rte_mbuf *inet_own_mbuf(struct inet_worker *w, const struct inet_port *port);

#endif
