/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_EXCEPTION_PRIV_H
#define SLUICED_EXCEPTION_PRIV_H

/**
 * @file
 * Inside the exception path: one port's tap, the making of that tap, and frames of either side as
 * the other has them.
 */

#include "exception.h"
#include "sl_inet_punt.h"
#include "sl_tap.h"
#include "sl_vnet.h"

/** Longest frame that is read. */
#define EXCEPTION_FRAME_MAX SL_TAPQ_FRAME_MAX

struct exception_cell {
	uint64_t n[EXCEPTION_COUNTS];
} SL_CACHE_ALIGNED;

/** Settings of the kernel for an interface, as they were. */
struct exception_quiet {
	char iface[CONF_NAME_LEN]; /**< "" for none */
	int before[3];		   /**< -1: was left as it is */
};

/** What the port does itself. */
struct exception_port {
	uint16_t handle;
	struct rte_mempool *pool;
	bool tcp_cksum, udp_cksum, tso;
};

struct exception {
	char name[CONF_NAME_LEN];  /**< of the port */
	char owner[CONF_NAME_LEN]; /**< of the [port] whose queues its packets come by */
	uint16_t port_id;
	struct exception_port port;
	struct sl_tap tap;
	struct exception_quiet quiet;
	bool up;		     /**< (relaxed) main thread: what the carrier was set to */
	int fd[CONF_LCORES_MAX];     /**< the queue that a worker writes to */
	struct exception_cell *cell; /**< one a worker, written by it alone */
};

/** What the stack calls (exception.c); the argument is a struct exception. */
extern const struct sl_inet_punt_ops exception_ops;

/* ---- exception_link.c: interface requests; each 0 or -errno ---- */

int exception_link_mac(const struct sl_tap *t, const uint8_t *mac);
/** Give an interface an address, with the route to its prefix. One that it has is right. */
int exception_link_addr(const char *name, const struct conf_cidr *a);

/* ---- exception_quiet.c ---- */

/**
 * Keep the kernel from receiving on the interface that a port is over: it has the port's addresses
 * now, and would get everything twice. Strict reverse path filtering drops IPv4, since no route
 * leads out there; ARP for addresses of others is not answered; IPv6 is off.
 *
 * @return   0; -errno of the setting that cannot be made, `what` says which
 */
int exception_quiet(struct exception_quiet *q, const char *iface, const char **what);
/** Set them as they were. */
void exception_unquiet(const struct exception_quiet *q);

/* ---- exception_vnet.c: frames; no system calls ---- */

/**
 * What the port says of a frame, as the kernel is told: checksum left to be made, or verified, and
 * segments.
 */
void exception_to_kernel(const struct sl_inet_frame *f, struct sl_tapq_vnet_hdr *h);

/** Packets of one frame of the kernel's. */
struct exception_packets {
	const struct exception_port *port;
	uint8_t *frame; /**< len bytes; a checksum may be completed in it */
	uint32_t len;
	struct sl_vnet v;
	struct sl_vnet_cut cut;
	uint32_t next, segments;
};

/**
 * Begin with a frame that was read.
 *
 * @param header  as the kernel wrote it
 * @return        0; -EINVAL: too short, or a header that contradicts the frame
 */
int exception_begin(struct exception_packets *p, const void *header) SL_MUST_CHECK;

/** The next packet, with its transmit flags; NULL at the end (p->next == p->segments), or when
 * there is none in the pool. */
struct rte_mbuf *exception_next(struct exception_packets *p);

#endif
