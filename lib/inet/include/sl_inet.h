/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_INET_H
#define SL_INET_H

/**
 * @file
 * The network layer on lcores: Ethernet, VLAN, ARP, neighbour discovery, IPv4, IPv6, ICMP and the
 * UDP header, in bursts.
 *
 * A *stack* (struct sl_inet) has *ports* (with addresses) and *workers*. A port is what a DPDK port
 * has without tags, or with those of one VLAN; its *handle* names it in calls. A worker is an
 * lcore, or any thread, with an index below conf.workers; it alone polls its (port, queue) pairs.
 * A *neighbour* is a next hop on the link with its MAC address.
 *
 *     rx burst -> Ethernet/VLAN -> IPv4 | IPv6 -> UDP header -> sl_inet_udp_ops.input (lib/udp)
 *                     |               |
 *                    ARP         ICMP, ND         every other packet: freed, one outcome
 *
 * Headers are parsed from a private copy: packets may lie in memory that a peer can change.
 *
 * Each worker counts outcomes on cache lines of its own, once per burst. Control calls (create,
 * *_add, set_udp, destroy) come from one thread at a time; those that workers must notice publish
 * with release (IN1) or wait for a grace period.
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_base.h"
#include "sl_outcome.h"
#include "sl_udpq.h"

struct rte_mbuf;
struct rte_mempool;

SL_BEGIN_DECLS

#define SL_INET_WORKERS_MAX 128
/** Ports of a stack, those of VLANs included. */
#define SL_INET_PORTS_MAX 64
/** Addresses of one port, the link-local one included. */
#define SL_INET_ADDRS_MAX 16
/** Most packets that one poll receives. */
#define SL_INET_BURST 64
/** Worker index of a thread that is no worker. */
#define SL_INET_NO_WORKER UINT16_MAX

/** An address of either family: IPv6, or IPv4 as ::ffff:a.b.c.d. */
struct sl_addr {
	uint8_t b[16];
};

/** Is it an IPv4 address (::ffff:0:0/96)? */
bool sl_addr_is_v4(const struct sl_addr *a);
/** IPv4 address, network order, as an sl_addr. */
struct sl_addr sl_addr_v4(uint32_t be);
/** The IPv4 half, network order. */
uint32_t sl_addr_to_v4(const struct sl_addr *a);
/** Is it 0.0.0.0 or ::? */
bool sl_addr_is_any(const struct sl_addr *a);
/** Is it a group address of its family? */
bool sl_addr_is_multicast(const struct sl_addr *a);

/**
 * Parse "198.18.0.2/24", "2001:db8::1/64" or an address alone (then *prefix is 32 or 128).
 *
 * @return   0; -EINVAL for anything else
 */
int sl_addr_parse(const char *text, struct sl_addr *addr, uint8_t *prefix) SL_MUST_CHECK;

/** Write an address as text; size at least 46 (INET6_ADDRSTRLEN). Returns text. */
const char *sl_addr_format(const struct sl_addr *a, char *text, size_t size);

struct sl_inet_conf {
	uint16_t workers;       /**< 1..SL_INET_WORKERS_MAX */
	uint32_t neighbours;    /**< entries in the neighbour table, 8..65536; 0 means 1024 */
	uint32_t icmp_errors_per_s; /**< ICMP errors sent per second and worker; 0 means 1000 */
	uint32_t routes; /**< routes and gateways, 1..4096, connected ones not counted; 0 means 256 */
	/**
	 * Fragments that wait for the rest of their datagram, for each worker: how many at most
	 * (1..65536; 0 means 256), how much memory their packets take at most (true size in bytes; 0
	 * means 1 MiB), and how long (1..120000 ms; 0 means 30000). The oldest datagrams give way to
	 * newer ones. All fragments of a datagram must come to one worker, as NICs, fanouts and the
	 * like have it, which spread fragments by their addresses.
	 */
	uint32_t frag_packets;
	uint32_t frag_bytes;
	uint32_t frag_timeout_ms;
	/** Time in nanoseconds, monotonic; NULL takes the TSC. Tests set their own. */
	uint64_t (*now_ns)(void *arg);
	void *now_arg;
};

struct sl_inet_port_conf {
	uint16_t port_id;         /**< a configured, started DPDK port; may be added once for each VLAN */
	struct rte_mempool *pool; /**< packets of the stack's own (ARP, ND, ICMP errors) */
	uint16_t svlan;           /**< outer VLAN id (802.1ad) that the port is in; 0 for none */
	uint16_t vlan;            /**< VLAN id (802.1Q) that the port is in; 0 for untagged */
	bool promiscuous;         /**< accept frames to other MAC addresses (testpmd txonly sends such) */
	bool any_dst;             /**< accept any unicast destination address as local */
};

/** Where a datagram goes, for output. Ports in network order; 0 hop limit means 64. */
struct sl_inet_flow {
	struct sl_addr src; /**< a local address of dst's family */
	struct sl_addr dst;
	uint16_t sport;
	uint16_t dport;
	uint8_t ttl;
	uint8_t tos;
};

/** An ICMP error about a datagram that we sent. */
struct sl_inet_error {
	struct sl_inet_flow flow; /**< of the datagram quoted: src is ours */
	int error;                /**< -ECONNREFUSED, -EHOSTUNREACH, ... as Linux maps the code */
	bool hard;                /**< reaches a connected socket without IP_RECVERR */
};

/** What the UDP layer gives to the network layer. Called on workers; must not block. */
struct sl_inet_udp_ops {
	/**
	 * Take verified datagrams.
	 *
	 * @param d        descriptors; d[i].buf is an mbuf whose data is the payload, len bytes; truesize,
	 *                 addresses, ports, ttl, tos and port (its handle) are set; aux is the address of the
	 *                 payload, or 0 if it lies in several segments
	 * @param n        1..SL_INET_BURST
	 * @param outcome  to be set for each i: SL_RX_UDP_QUEUED means the mbuf was taken, any other
	 *                 leaves it to the caller
	 * @return         descriptors of those that were not taken, at their places: d, or a copy of it
	 *                 that is good until the next call
	 */
	struct sl_dgram *(*input)(void *arg, uint16_t worker, struct sl_dgram *d, uint16_t n,
		uint8_t *outcome);
	/**
	 * Where the descriptors of the worker's next burst are best built: room for SL_INET_BURST of
	 * them, which input is then given, or NULL if there is none. May be NULL itself.
	 */
	struct sl_dgram *(*room)(void *arg, uint16_t worker);
	/** Hear of an ICMP error. */
	void (*error)(void *arg, uint16_t worker, const struct sl_inet_error *e);
};

struct sl_inet;

/**
 * Create a stack without ports.
 *
 * @param out   set on success only; freed by sl_inet_destroy
 * @return      0; -EINVAL for a member out of range; -ENOMEM
 * Caller: control path; EAL is initialised.
 */
int sl_inet_create(const struct sl_inet_conf *conf, struct sl_inet **out) SL_MUST_CHECK;

/** Free a stack and the packets in it, fragments too; NULL is allowed. Caller: when no worker polls. */
void sl_inet_destroy(struct sl_inet *inet);

/**
 * Add a port. Its link-local IPv6 address is made from its MAC address and checked for duplicates.
 *
 * A DPDK port may be added once without a VLAN and once for each VLAN: frames go to the port whose
 * tags they carry, and to nobody else. Each is a port of its own, with addresses, routes, neighbours and
 * settings of its own. The handle of the first one is the number of the DPDK port; sl_inet_port_find
 * says those of the others.
 *
 * @return   0; -ENODEV when DPDK has no such port; -EEXIST with these tags; -ENOSPC beyond
 *           SL_INET_PORTS_MAX; -EINVAL for a VLAN id above 4094 or svlan without vlan; -ENOMEM, -EBUSY
 *           as for sl_inet_route_add: the port is there then, without a link-local address
 * Caller: control path; the first one of a DPDK port before the first poll of that.
 */
int sl_inet_port_add(struct sl_inet *inet, const struct sl_inet_port_conf *conf) SL_MUST_CHECK;

/**
 * Find the port that a DPDK port has with these tags (0 for none).
 *
 * @param handle   set on success
 * @return         0; -ENODEV
 * Caller: any thread; may wait for a control call.
 */
int sl_inet_port_find(const struct sl_inet *inet, uint16_t port_id, uint16_t svlan, uint16_t vlan,
	uint16_t *handle) SL_MUST_CHECK;

/**
 * Give a port an address. IPv4 is announced (gratuitous ARP) and usable at once; IPv6 is usable when
 * duplicate address detection (one probe, one second, RFC 4862) has heard no objection.
 *
 * @param prefix  on-link prefix length, 0..32 or 0..128
 * @return        0; -ENODEV; -EEXIST; -ENOSPC beyond SL_INET_ADDRS_MAX; -EINVAL for an address that no
 *                host has on a link: multicast, unspecified, loopback, 0/8, the broadcast address
 *                of its own prefix; -ENOMEM, -EBUSY as for sl_inet_route_add
 * Caller: control path. sl_inet_table.h has the calls that delete and list.
 */
int sl_inet_addr_add(struct sl_inet *inet, uint16_t port_id, const struct sl_addr *addr,
	uint8_t prefix) SL_MUST_CHECK;

/**
 * Tell the hosts on a link which MAC address a port's usable addresses have (gratuitous ARP,
 * unsolicited neighbour advertisements), by the port's next timer turn; for links that come up: a host
 * may remember another one. Its ports with tags, too.
 *
 * @param port_id   of the DPDK port; one that is not in the stack is passed over
 * Caller: any thread; may wait for a control call.
 */
void sl_inet_announce(struct sl_inet *inet, uint16_t port_id);

/** Is addr one of ours and usable (not in duplicate detection)? Caller: any thread; may wait for a
 * control call, as the next two. */
bool sl_inet_addr_is_local(const struct sl_inet *inet, const struct sl_addr *addr);

/** Is addr an IPv4 broadcast address: 255.255.255.255, or that of a port's prefix? Caller: any thread. */
bool sl_inet_addr_is_broadcast(const struct sl_inet *inet, const struct sl_addr *addr);

/** Did duplicate detection find addr in use by another host? Caller: any thread. */
bool sl_inet_addr_is_duplicate(const struct sl_inet *inet, const struct sl_addr *addr);

/**
 * Send what no other route covers to `gateway` on that port: a default route of metric
 * SL_INET_GATEWAY_METRIC plus the port's place in the stack, so that the first port's is the best. It takes
 * the place of the port's former gateway of that family.
 *
 * @return   0; -ENODEV; -EINVAL for an address that no host has, or that is ours; -ENETUNREACH if it
 *           is in none of the port's prefixes, nor link-local; -EEXIST there is a default route of that
 *           metric; -ENOSPC, -ENOMEM, -EBUSY as for sl_inet_route_add
 * Caller: control path, after the addresses are added.
 */
int sl_inet_gateway_set(struct sl_inet *inet, uint16_t port_id, const struct sl_addr *gateway)
	SL_MUST_CHECK;

/** Connect the UDP layer; ops and arg live until destroy. Caller: before the first poll. */
void sl_inet_set_udp(struct sl_inet *inet, const struct sl_inet_udp_ops *ops, void *arg);

/**
 * One turn of a worker's loop: receive a burst, process it, run due timers, send what became due,
 * report a quiescent state.
 *
 * @param worker   this thread's index
 * @param port_id  DPDK port, whose tags say which of the stack's ports a packet is for
 * @param queue    receive and transmit queue of the port that belong to this worker
 * @return         packets received
 * Caller: the worker; never blocks.
 */
uint16_t sl_inet_poll(struct sl_inet *inet, uint16_t worker, uint16_t port_id, uint16_t queue);

/** Takes what a poll received in the stack's place, to look at it. */
struct sl_inet_tap {
	/**
	 * @param pkts   the burst as received; to be handed to sl_inet_input_burst, whole or in parts, or
	 *               to be freed
	 * @param n      1..SL_INET_BURST
	 * Caller: the worker, in its poll; must not block.
	 */
	void (*input)(void *arg, uint16_t worker, uint16_t port_id, uint16_t queue,
		struct rte_mbuf **pkts, uint16_t n);
	void *arg;
};

/**
 * Set the tap of all workers, or take it away with NULL. Without one, polls pay a branch for a burst.
 * A former tap is out of use after sl_inet_synchronize.
 *
 * @param tap   lives until then
 * Caller: control path. Ordering: IN1 publishes the tap.
 */
void sl_inet_set_tap(struct sl_inet *inet, const struct sl_inet_tap *tap);

/**
 * Process packets as if the DPDK port had just received them.
 *
 * @param pkts   owned by the stack afterwards
 * @param n      0..SL_INET_BURST
 * Caller: the worker; never blocks. Replies leave with the next sl_inet_flush.
 */
void sl_inet_input_burst(struct sl_inet *inet, uint16_t worker, uint16_t port_id,
	struct rte_mbuf **pkts, uint16_t n);

/**
 * Send a UDP datagram: add UDP, IP and Ethernet headers, resolve the next hop if need be.
 *
 * @param m      data is the payload, with at least 128 bytes of headroom; owned by the stack unless
 *               the result is an error
 * @return       0 (sent with the next flush, or waiting for the neighbour); -ENETUNREACH no route;
 *               -EMSGSIZE larger than the port's MTU; -EINVAL port 0; -EACCES broadcast destination
 * Caller: the worker; never blocks.
 * Counts: what it takes ends in a transmit outcome.
 */
int sl_inet_udp_output(struct sl_inet *inet, uint16_t worker, const struct sl_inet_flow *flow,
	struct rte_mbuf *m) SL_MUST_CHECK;

/**
 * Pick our source address for dst: of the port that the route goes by; IPv4: the one whose prefix
 * covers the next hop best, IPv6: as RFC 6724 orders them.
 *
 * @return   0; -ENETUNREACH
 * Caller: any thread; may wait for a control call.
 */
int sl_inet_source(const struct sl_inet *inet, const struct sl_addr *dst, struct sl_addr *src)
	SL_MUST_CHECK;

/** The same from what the worker remembers of dst, mostly. Caller: the worker; never blocks while it is
 * online. */
int sl_inet_worker_source(struct sl_inet *inet, uint16_t worker, const struct sl_addr *dst,
	struct sl_addr *src) SL_MUST_CHECK;

/** Hand what is queued for transmit to the DPDK port, with whatever tags. Caller: the worker. */
void sl_inet_flush(struct sl_inet *inet, uint16_t worker, uint16_t port_id, uint16_t queue);

/** Run ARP, ND, DAD and ageing timers that are due. sl_inet_poll does it. Caller: the worker. */
void sl_inet_timers(struct sl_inet *inet, uint16_t worker);

/**
 * A worker starts, or stops, taking part in grace periods: it must poll in between, and must be
 * offline while it sleeps. Caller: that worker.
 */
void sl_inet_worker_online(struct sl_inet *inet, uint16_t worker);
void sl_inet_worker_offline(struct sl_inet *inet, uint16_t worker);

/** Say that a worker holds on to nothing of the stack. sl_inet_poll does it; for a turn that polls no port
 * of the stack. Caller: that worker, online. */
void sl_inet_worker_quiescent(struct sl_inet *inet, uint16_t worker);

/**
 * Wait until every online worker has passed a quiescent state: what was unlinked before is out of
 * use afterwards.
 *
 * @param worker   the caller's index if it is a worker (which then counts as quiescent), else
 *                 SL_INET_NO_WORKER
 * Caller: control path, or a worker outside of its bursts; blocks while others finish their turn.
 */
void sl_inet_synchronize(struct sl_inet *inet, uint16_t worker);

/**
 * Read outcome counters.
 *
 * @param worker   one worker, or SL_INET_NO_WORKER for the sum
 * @param counts   SL_OUTCOME_COUNT values
 * Caller: any thread; exact once workers have stopped.
 */
void sl_inet_outcomes(const struct sl_inet *inet, uint16_t worker, uint64_t *counts);

/** Packets that entered: as many as have receive outcomes, and are held. As sl_inet_outcomes otherwise. */
uint64_t sl_inet_received(const struct sl_inet *inet, uint16_t worker);

/** Fragments held: they have entered, and wait for the rest of their datagram. As sl_inet_outcomes. */
uint64_t sl_inet_held(const struct sl_inet *inet, uint16_t worker);

/** Number of worker indexes. */
uint16_t sl_inet_workers(const struct sl_inet *inet);

/** State of a neighbour: 0 and its MAC address; -ENOENT unknown; -EAGAIN being resolved. */
int sl_inet_neighbour(const struct sl_inet *inet, uint16_t port_id, const struct sl_addr *addr,
	uint8_t mac[6]) SL_MUST_CHECK;

SL_END_DECLS

#endif
