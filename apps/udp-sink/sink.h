/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SINK_H
#define SINK_H

/**
 * @file
 * sluice-udp-sink: receives UDP with one receive call after the other and prints what it measured.
 *
 * A *row* is one run of one call. Its timed part goes from the first datagram to the last; its
 * drops are all those since the row before, so that the rows of a program add up.
 */

#include "../common/app.h"
#include "../common/payload.h"

#define SINK_BATCH_MAX 1024
/** Bytes of a buffer, more than a frame can hold. */
#define SINK_BUF 2048
/** From one buffer to the next: an odd number of cache lines, or they would share cache sets. */
#define SINK_STRIDE (SINK_BUF + 64)
#define SINK_CONTROL 128
#define SINK_SOCKS_MAX 16

enum sink_call { SINK_RECVMMSG, SINK_RECVMSG, SINK_RECVFROM, SINK_READ, SINK_BURST, SINK_CALLS };

struct sink_options {
	const char *iface;
	bool calls[SINK_CALLS];
	bool batch_given;
	bool ipv6;
	bool connect;
	bool connect_any; /**< to whoever sends first */
	bool dontwait;
	bool waitforone;
	bool touch;
	bool check;
	bool recv_ttl;
	bool recv_pktinfo;
	bool json;
	bool split;
	bool busy;
	bool kernel; /**< receive on the host's own sockets */
	struct sl_addr peer;
	uint16_t peer_port;
	uint16_t port;
	uint16_t socks; /**< 0: one, not shared; else this many share the port */
	uint16_t batch;
	uint32_t bad_ptr;
	uint32_t repeat;
	uint64_t count;
	uint64_t duration_s;
	int64_t timeout_ms; /**< below 0: none */
	uint64_t rcvbuf;
	struct app_stack_conf stack;
};

/** What a row counts. */
struct sink_row {
	uint64_t count; /**< datagrams handed to us */
	uint64_t bytes;
	uint64_t calls;	 /**< calls that received something */
	uint64_t faults; /**< datagrams lost to a bad pointer */
	uint64_t timed;	 /**< datagrams received after the first call that received any, so far */
	uint64_t first_tsc;
	uint64_t last_tsc;
	uint64_t first_count;
	uint64_t sum; /**< of the bytes that --touch has read */
	uint64_t with_ttl;
	uint64_t with_pktinfo;
	int ttl_min;
	int ttl_max;
};

struct sink;

/**
 * Whose sockets the calls go to: ours (receive.c) or the host kernel's (kernel.c). Each call takes
 * its messages and buffers from the sink, and returns what Linux's does, -errno for an error.
 */
struct sink_sockets {
	int (*recvmmsg)(struct sink *s, unsigned int n, int flags, struct timespec *timeout);
	ssize_t (*recvmsg)(struct sink *s, int flags);
	ssize_t (*recvfrom)(struct sink *s, int flags);
	ssize_t (*read)(struct sink *s);
	void (*idle)(struct sink *s); /**< nothing was there */
};

extern const struct sink_sockets sink_sockets_own;
extern const struct sink_sockets sink_sockets_kernel;

struct sink {
	const struct sink_options *opt;
	const struct sink_sockets *via;
	uint64_t tsc_hz;
	struct app_stack *stack; /**< NULL with --kernel */
	int fd;			 /**< the kernel's socket with --kernel */
	struct sl_udp_sock *socks[SINK_SOCKS_MAX];
	uint16_t nsocks;
	uint16_t turn;		  /**< socket whose turn it is */
	struct sl_udp_sock *sock; /**< socks[turn] */
	bool drained;		  /**< the queue was found empty since this was last cleared */
	bool wait;		  /**< calls may wait */
	uint64_t position; /**< datagrams taken or lost to a fault: places the bad pointers */
	struct sink_row row;
	struct payload_check *check;
	uint64_t outcomes[SL_OUTCOME_COUNT]; /**< at the end of the row before */
	uint64_t missed;
	uint32_t rows; /**< printed so far */
	bool partial_said;
	bool network_said;
	void *bad; /**< memory that may not be touched */
	struct mmsghdr msgs[SINK_BATCH_MAX];
	struct iovec iov[SINK_BATCH_MAX];
	struct sockaddr_storage name; /**< recvfrom: who sent it */
	uint8_t (*control)[SINK_CONTROL];
	uint8_t *bufs; /**< SINK_BATCH_MAX of SINK_STRIDE bytes */
};

/** Open the kernel's socket as the options say; mistakes end the program. */
void sink_kernel_open(struct sink *s, int eal_argc);
/** Datagrams that the kernel's socket dropped so far: no room, or a bad checksum. */
uint64_t sink_kernel_drops(const struct sink *s);

/** Read the options; mistakes end the program. */
void sink_options_read(int argc, char **argv, struct sink_options *opt);

/** Name of a call as the table has it, e.g. "recvmmsg". */
const char *sink_call_name(enum sink_call call);

/** Prepare buffers and messages; false when there is no memory. */
bool sink_buffers_create(struct sink *s);
void sink_buffers_free(struct sink *s);

/**
 * Receive once and count what came into the row.
 *
 * @param max   most datagrams to take, at least 1
 * @return      0 or more taken (0: nothing there in time); -EFAULT for a datagram lost to a bad
 *              pointer; another error as the call returned it
 */
int sink_receive(struct sink *s, enum sink_call call, uint64_t max);

/** The row of one run, below headings if it is the first, and its drops since the row before. */
void sink_print_row(struct sink *s, enum sink_call call, uint32_t run);
/** After the workers have stopped: what entered the stack and what became of it. */
void sink_print_end(struct sink *s);
void sink_print_progress(const struct sink *s, enum sink_call call, uint32_t run, bool last);

#endif
