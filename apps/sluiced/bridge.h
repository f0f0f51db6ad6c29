/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_BRIDGE_H
#define SLUICED_BRIDGE_H

/**
 * @file
 * A learning bridge between DPDK ports.
 *
 * A frame goes to the member that its destination was heard from (bridge_table.h), never back to
 * where it came from; what is not known, and groups and broadcasts, go to all other members
 * (*flooding*). Frames are passed on as they came, VLAN tags included: one table serves all VLANs.
 * There is no spanning tree: loops between members are not broken, and what bridges must not pass
 * on (01:80:c2:00:00:00 to 0f) is dropped.
 *
 *     lcore: rx burst -> addresses -> learn sources, look destinations up -> member's tx queue of
 *                                                                            this lcore
 *
 * Every received frame ends in one *frame outcome*. One that is forwarded or flooded becomes as
 * many *copies* as there are members to send it to, and every copy ends in one *copy outcome*. So
 *
 *     received = sum of frame outcomes     copies = sum of copy outcomes
 *
 * and a forwarded frame is one copy.
 *
 * Checksums that a port was promised to be filled in later (partial, from a virtual port) are
 * requested from the out port, or computed here when it cannot, or when the frame is flooded.
 * Frames that are to be segmented are not passed on; the ports of a bridge are not asked to receive
 * such, so that they cut them themselves.
 */

#include "bridge_table.h"

struct rte_mbuf;
struct rte_mempool;

#define BRIDGE_NAME_LEN 32

enum bridge_outcome {
	BRIDGE_FORWARDED, /**< to the member of its destination */
	BRIDGE_FLOODED,	  /**< to all other members */
	BRIDGE_SHORT,	  /**< no Ethernet header */
	BRIDGE_SOURCE,	  /**< source address of a group, or none */
	BRIDGE_RESERVED,  /**< to a group that bridges keep to themselves */
	BRIDGE_SAME_PORT, /**< its destination is where it came from */
	BRIDGE_COPY_FIRST,
	BRIDGE_SENT = BRIDGE_COPY_FIRST, /**< taken by the port */
	BRIDGE_TX_FULL,			 /**< the port took no more */
	BRIDGE_MTU,			 /**< longer than the member's MTU */
	BRIDGE_OFFLOAD,			 /**< asks for what neither port nor bridge can do */
	BRIDGE_NO_MBUF,			 /**< no packet for the copy */
	BRIDGE_OUTCOMES
};

struct bridge_outcome_info {
	const char *name;
	bool drop;
};
extern const struct bridge_outcome_info bridge_outcome_info[BRIDGE_OUTCOMES];
/** Names of what became of source addresses. */
extern const char *const bridge_learn_name[BRIDGE_LEARN_RESULTS];

struct bridge_conf {
	const char *name;		      /**< copied */
	uint16_t members;		      /**< 2..BRIDGE_MEMBERS_MAX */
	uint16_t port_id[BRIDGE_MEMBERS_MAX]; /**< started, promiscuous DPDK ports */
	uint16_t workers;
	struct rte_mempool *pool; /**< of copies */
	struct bridge_table_conf table;
};

struct bridge_counts {
	uint64_t received; /**< frames */
	uint64_t copies;
	uint64_t outcome[BRIDGE_OUTCOMES];
	uint64_t learn[BRIDGE_LEARN_RESULTS];
};

struct bridge;

/**
 * Create a bridge without stations.
 *
 * @param out   set on success only
 * @return      0; -EINVAL; -ENODEV for a port that is none; -ENOMEM
 * Caller: control path.
 */
int bridge_create(const struct bridge_conf *conf, struct bridge **out) SL_MUST_CHECK;

/** Free it. NULL is allowed. Caller: control path, when no worker polls it any more. */
void bridge_destroy(struct bridge *b);

/** Say which transmit queue of a member belongs to a worker. Caller: control path, before its first
 * poll. */
void bridge_set_tx_queue(struct bridge *b, uint16_t worker, uint16_t member, uint16_t queue);

/**
 * Receive a burst of a member and pass it on.
 *
 * @param queue   receive queue that belongs to this worker
 * @return        frames received
 * Caller: that worker; never blocks. It passes a quiescent state between two calls now and then.
 */
uint16_t bridge_poll(struct bridge *b, uint16_t worker, uint16_t member, uint16_t queue);

/** Pass frames on as if the member had just received them at that time. n: 0..BRIDGE_BURST. */
void bridge_input(struct bridge *b, uint16_t worker, uint16_t member, struct rte_mbuf **pkts,
	uint16_t n, uint32_t now_s);

/** Seconds of the clock that bridge_poll takes. */
uint32_t bridge_now_s(void);

/** The table of its stations. */
struct bridge_table *bridge_stations(struct bridge *b);

/** Counters of all workers, added to *sum. Caller: any thread; exact once workers have stopped. */
void bridge_counts(const struct bridge *b, struct bridge_counts *sum);

/** Counters of one worker. Caller: that worker. */
void bridge_worker_counts(const struct bridge *b, uint16_t worker, struct bridge_counts *counts);

/* ---- bridge_frame.c ---- */

/** Does a frame ask for work on its way out? */
bool bridge_frame_asks(const struct rte_mbuf *m);

/**
 * Make a received frame fit to be sent: what it says of its way in goes, and what it asks for is
 * requested from the port or done here.
 *
 * @param m         the frame; another one afterwards if it had to be copied. Stays the caller's.
 * @param offloads  RTE_ETH_TX_OFFLOAD_... that the port was configured with
 * @param pool      of a copy
 * @return          0; -ENOMEM; -EOPNOTSUPP
 * Caller: the owner of the frame.
 */
int bridge_frame_finish(
	struct rte_mbuf **m, uint64_t offloads, struct rte_mempool *pool) SL_MUST_CHECK;

/** Bytes of a frame behind its Ethernet header and tags (two at most), which the MTU bounds. */
uint32_t bridge_frame_payload(const struct rte_mbuf *m);

#endif
