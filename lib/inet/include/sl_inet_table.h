/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_INET_TABLE_H
#define SL_INET_TABLE_H

/**
 * @file
 * What an operator sees of a stack: routes, addresses and neighbours, to change and to list.
 *
 * A *route* says where packets to a prefix go: to a next hop on a port, or (via unspecified) straight
 * to hosts on its link. The longest prefix that covers a destination decides, then the lowest metric,
 * then who was there first. Each address brings a route of metric 0 for its own prefix
 * (*connected*), and sl_inet_gateway_set one of prefix length 0.
 *
 * A route whose next hop is on none of its port's prefixes is *not usable*: it stays in the table, and
 * comes into use when such an address is added. So a better route that goes away, or comes back,
 * changes at once what the others are worth, and nothing has to be said twice.
 *
 * A change builds the table of its family anew (DPDK's rte_fib) and publishes it; workers finish what
 * they do with the old one, which is freed after a grace period (IN1). Nobody waits for workers, and
 * packets go by the old routes or by the new ones.
 *
 *     call           beside add, del     beside itself, other listings     beside workers
 *     *_add, *_del   no (one thread)     yes, they wait for each other      yes
 *     *_foreach      yes, they wait      yes                                yes
 *
 * Stability: stable (doc/api.md).
 */

#include "sl_inet.h"

SL_BEGIN_DECLS

/** Metric of the default route that sl_inet_gateway_set makes, plus the port's place in the stack. */
#define SL_INET_GATEWAY_METRIC 1024u

struct sl_inet_route {
	struct sl_addr dst; /**< host bits are 0 */
	struct sl_addr via; /**< next hop, of dst's family; unspecified (either family's) for on link */
	uint32_t metric;    /**< lower is better */
	uint16_t port;      /**< handle of the port */
	uint8_t prefix;     /**< 0..32 or 0..128 */
};

enum sl_inet_route_kind {
	SL_INET_ROUTE_CONNECTED, /**< of an address's prefix */
	SL_INET_ROUTE_STATIC,    /**< sl_inet_route_add's */
	SL_INET_ROUTE_GATEWAY,   /**< sl_inet_gateway_set's */
};

struct sl_inet_route_info {
	struct sl_inet_route route;
	enum sl_inet_route_kind kind;
	bool usable; /**< on link, or its next hop is */
	bool best;   /**< the one of its prefix that packets go by */
};

/**
 * Add a route.
 *
 * @return   0; -ENODEV no such port; -EEXIST there is one of that prefix and metric; -EINVAL a prefix
 *           length out of range, host bits in dst, a group, a next hop that no host has, that is ours, or of
 *           the other family; -ENETUNREACH a next hop that is in none of the port's prefixes nor
 *           link-local; -ENOSPC more than conf.routes; -ENOMEM; -EBUSY former tables are still in use,
 *           because some worker that is online has not ended its turn since many changes ago
 * Caller: control path. A thread that is a worker as well must be offline, or end its turn (sl_inet_poll)
 *         between changes.
 */
int sl_inet_route_add(struct sl_inet *inet, const struct sl_inet_route *route) SL_MUST_CHECK;

/**
 * Delete the route that has all these members.
 *
 * @return   0; -ESRCH there is none; -EINVAL it is connected (delete the address); -ENOMEM, -EBUSY as for
 *           sl_inet_route_add, and the route stays
 * Caller: control path.
 */
int sl_inet_route_del(struct sl_inet *inet, const struct sl_inet_route *route) SL_MUST_CHECK;

/**
 * Call visit for each route, IPv4 first, in the order of prefixes, best first.
 *
 * Caller: any thread; visit must not change the stack.
 */
void sl_inet_route_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_route_info *route), void *arg);

/**
 * Which way do packets to dst go?
 *
 * @param route   dst itself with its whole length, the next hop (dst if it is on link) and the port
 * @return        0; -ENETUNREACH
 * Caller: any thread; may wait for a control call.
 */
int sl_inet_route_get(const struct sl_inet *inet, const struct sl_addr *dst,
	struct sl_inet_route *route) SL_MUST_CHECK;

/**
 * Take an address from a port. Workers stop to receive for it and to send from it by the end of
 * their turn; its prefix's route goes with the last address that has it. Sockets stay bound.
 *
 * @return   0; -ENODEV; -EADDRNOTAVAIL the port does not have it; -ENOMEM, -EBUSY as for
 *           sl_inet_route_add, and the address stays
 * Caller: control path.
 */
int sl_inet_addr_del(struct sl_inet *inet, uint16_t port, const struct sl_addr *addr) SL_MUST_CHECK;

enum sl_inet_addr_state {
	SL_INET_ADDR_TENTATIVE, /**< duplicate detection is on */
	SL_INET_ADDR_READY,
	SL_INET_ADDR_DUPLICATE, /**< another host has it: not used */
};

struct sl_inet_addr_info {
	struct sl_addr addr;
	uint16_t port; /**< handle */
	uint8_t prefix;
	enum sl_inet_addr_state state;
};

/** Call visit for each address, port by port. As sl_inet_route_foreach otherwise. */
void sl_inet_addr_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_addr_info *addr), void *arg);

enum sl_inet_neigh_state {
	SL_INET_NEIGH_INCOMPLETE, /**< asked for, no answer yet */
	SL_INET_NEIGH_REACHABLE,  /**< has answered of late */
	SL_INET_NEIGH_STALE,      /**< usable, and asked again when used */
	SL_INET_NEIGH_PROBE,      /**< usable, being asked */
};

struct sl_inet_neigh_info {
	struct sl_addr addr;
	uint16_t port; /**< handle */
	uint8_t mac[6]; /**< zeros while incomplete */
	enum sl_inet_neigh_state state;
	uint16_t waiting; /**< packets that wait for the answer */
	uint64_t age_ns;  /**< in this state for so long */
	/** Since a packet went there, to a tenth of a second; one to which none ever did starts at 30 s. */
	uint64_t idle_ns;
};

/**
 * Call visit for each neighbour. One that comes or goes meanwhile may be left out.
 *
 * Caller: any thread; holds no lock while visit runs.
 */
void sl_inet_neigh_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_neigh_info *neigh), void *arg);

SL_END_DECLS

#endif
