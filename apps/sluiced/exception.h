/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_EXCEPTION_H
#define SLUICED_EXCEPTION_H

/**
 * @file
 * The exception path of a port: a kernel tap that has the port's MAC address, MTU and addresses.
 * What nobody claims here is written to it (sl_inet_punt.h), and what the kernel sends is read from
 * it and leaves by the port as it is.
 *
 *     port -> stack --unclaimed--> write (one system call a frame, within the burst)  -> tap
 *     port <- stack's transmit <- checksum, segments <- read, up to 32 a turn <--------- tap
 *
 * The tap has a queue for each worker that receives from the port. The kernel answers a flow on the
 * queue that it came in by, so a flow stays on one lcore both ways. Nothing is held here between
 * turns: frames are copied by the kernel on their way in, and into packets of their own on their
 * way out, so that a kernel that is slow holds no packet of the pool.
 *
 * Reads and writes never wait. A worker looks at its queue in every turn while frames come, and
 * less and less often while none do, up to EXCEPTION_WAIT_MAX_US apart; an idle worker that sleeps
 * looks when it wakes.
 */

#include "daemon.h"

#define EXCEPTION_WAIT_MAX_US 32
/** Frames that a turn reads from one queue. */
#define EXCEPTION_BURST 32

/** What became of frames; each is counted by the worker that handled it. */
enum exception_count {
	EXCEPTION_OFFERED, /**< claimed by nobody here: as many as the next three */
	EXCEPTION_TAKEN,   /**< written to the kernel */
	EXCEPTION_DOWN,	   /**< lost: the tap is down */
	EXCEPTION_REFUSED, /**< lost: the kernel did not take it */
	EXCEPTION_SHOWN,   /**< copies written of what has found its use here */
	EXCEPTION_SHOW_LOST,
	EXCEPTION_READ,	   /**< from the kernel: as many as the next three */
	EXCEPTION_SENT,	   /**< handed to the port */
	EXCEPTION_BAD,	   /**< lost: shorter than a header, or one that contradicts the frame */
	EXCEPTION_NO_MBUF, /**< lost, some or all of its segments: no packet for them */
	EXCEPTION_PACKETS, /**< what those that were handed on became: segments count each */
	EXCEPTION_COUNTS
};

/** How they read. */
extern const char *const exception_count_name[EXCEPTION_COUNTS];

/**
 * Open the tap of a port that has one in the configuration, and connect it; mistakes end the
 * program. Before the workers start, and after the port's addresses are given.
 *
 * @param handle   the stack's, of the port
 */
void exception_open(struct daemon *d, const struct conf_port *p, uint16_t port_id, uint16_t handle);

/** Close all. No worker runs. */
void exceptions_close(struct daemon *d);

/** Give each worker its queues; after the deal of the ports' queues. */
void exceptions_deal(struct daemon *d);

/**
 * Read what the kernel has for the worker's ports.
 *
 * @return   frames
 */
uint32_t exceptions_turn(struct worker *w);

/** Name of its port or VLAN. */
const char *exception_name(const struct exception *e);

/** Has its tap a carrier, as the port has a link? Caller: any thread. */
bool exception_carrier(const struct exception *e);

/** Name of its tap. */
const char *exception_interface(const struct exception *e);

/** What one worker has counted. Caller: that worker. */
void exception_worker_counts(const struct exception *e, uint16_t worker, uint64_t *counts);

/** Sums over workers, added up. */
void exception_sums(const struct daemon *d, const struct exception *e, uint64_t *counts);

/** Follow the ports' links with the taps' carriers. Caller: main thread; may wait for the kernel.
 */
void exceptions_watch(struct daemon *d);

#endif
