/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_UDP_H
#define SL_UDP_H

/**
 * @file
 * UDP sockets on lcores: the calls of a BSD socket over lib/inet and the batched receive queue.
 *
 * A *socket* belongs to a *UDP layer* (struct sl_udp), which sits on one stack. Receive calls return
 * what Linux returns, with -errno in place of -1 and errno, and differ where doc/udp.md says so:
 *  - the timeout of sl_udp_recvmmsg bounds the wait itself;
 *  - an error after k good datagrams waits in a slot of its own (not SO_ERROR's), from which the
 *    next receive call returns it; an ICMP error cannot overwrite it, and nothing behind it is lost.
 *
 * Where the datagrams come from:
 *
 *     conf.worker = w           the socket's reader is worker w itself: a receive call that finds the
 *                               queue empty polls w's ports (sl_udp_set_poll) until something comes
 *     conf.worker = NO_WORKER   split: workers receive, some other thread reads; a receive call that
 *                               must wait sleeps on the queue, or polls it if conf.busy is set
 *
 * One reader at a time: a receive call that finds another thread inside one returns at once,
 * -EAGAIN with MSG_DONTWAIT (the other thread has, or waits for, whatever there is) and -EBUSY
 * without.
 *
 * Stability: stable (doc/api.md).
 */

#include <sys/socket.h>
#include <time.h>

#include "sl_base.h"
#include "sl_inet.h"
#include "sl_udpq.h"

struct rte_mbuf;
struct mmsghdr; /* in sys/socket.h with _GNU_SOURCE */

SL_BEGIN_DECLS

struct sl_udp;
struct sl_udp_sock;

struct sl_udp_conf {
	uint32_t sockets;      /**< most sockets, 1..65536; 0 means 1024 */
	struct rte_mempool *pool; /**< packets that send calls build; NULL: they end in -ENOBUFS */
};

/** Socket options at creation. */
struct sl_udp_sock_conf {
	int family;            /**< AF_INET or AF_INET6 */
	bool v6only;           /**< AF_INET6: refuse IPv4 datagrams */
	bool reuse_port;       /**< may share address and port with others of the kind (SO_REUSEPORT) */
	bool guarded;          /**< user memory may be bad: copies end in -EFAULT, not in a signal */
	bool busy;             /**< split: waiting calls poll the queue and never sleep */
	bool recv_ttl;         /**< IP_RECVTTL / IPV6_RECVHOPLIMIT */
	bool recv_pktinfo;     /**< IP_PKTINFO / IPV6_RECVPKTINFO; the interface index is the port's handle */
	bool recv_tos;         /**< IP_RECVTOS / IPV6_RECVTCLASS */
	uint16_t worker;       /**< reader's worker index, or SL_INET_NO_WORKER for split */
	uint32_t slots;        /**< per intake; 0 means 8192 */
	uint64_t rcvbuf;       /**< bytes of true size; 0 means 32 MiB */
	int64_t rcvtimeo_ns;   /**< SO_RCVTIMEO in ns; 0 means no limit */
};

struct sl_udp_sock_stats {
	struct sl_udpq_stats queue;
	uint64_t datagrams; /**< handed to the caller */
	uint64_t bytes;     /**< their payload */
	uint64_t truncated; /**< of these, longer than the caller's buffer */
	uint64_t faults;    /**< datagrams lost to -EFAULT, as Linux loses them */
	uint64_t purged;    /**< in the queue at close */
};

/**
 * Create the UDP layer of a stack and connect it.
 *
 * @return   0; -EINVAL; -ENOMEM; -EBUSY when the stack has one
 * Caller: control path, before workers poll.
 */
int sl_udp_create(struct sl_inet *inet, const struct sl_udp_conf *conf, struct sl_udp **out)
	SL_MUST_CHECK;

/** Free the layer; all sockets must be closed. NULL is allowed. Caller: when no worker polls any more. */
void sl_udp_destroy(struct sl_udp *udp);

/**
 * Say how a worker polls while a receive call of its waits: poll(arg) is one turn of its loop.
 *
 * Caller: control path or that worker, before its first receive call.
 */
void sl_udp_set_poll(struct sl_udp *udp, uint16_t worker, void (*poll)(void *arg), void *arg);

/**
 * Create a socket, unbound.
 *
 * @return   0; -EINVAL; -EAFNOSUPPORT; -ENFILE beyond conf.sockets; -ENOMEM; -EMFILE
 * Caller: any thread; takes the layer's lock.
 */
int sl_udp_socket(struct sl_udp *udp, const struct sl_udp_sock_conf *conf,
	struct sl_udp_sock **out) SL_MUST_CHECK;

/**
 * Close: no datagram is delivered after it returns, what is queued is freed and counted as purged,
 * and a receive call of another thread returns -EBADF.
 *
 * @param s        NULL, or a socket that is closed or being closed, is passed over; but whose memory
 *                 serves another socket by then is that socket
 * @param worker   the caller's worker index, or SL_INET_NO_WORKER
 * Caller: any thread outside a burst; waits for a grace period and for a reader to leave.
 */
void sl_udp_close(struct sl_udp_sock *s, uint16_t worker);

/**
 * Bind, as bind(2): a port of 0 picks a free one from 32768..60999.
 *
 * @return   0; -EINVAL already bound or bad length; -EFAULT NULL; -EBADF closed; -EAFNOSUPPORT;
 *           -EADDRNOTAVAIL neither a local nor a group or broadcast address (IPv6 addresses are local
 *           once duplicate detection is over); -EADDRINUSE
 * Caller: any thread; takes the layer's lock.
 */
int sl_udp_bind(struct sl_udp_sock *s, const struct sockaddr *addr, socklen_t len) SL_MUST_CHECK;

/**
 * Connect, as connect(2): only datagrams from that peer are received from now on; what is queued
 * stays. AF_UNSPEC disconnects. Binds first if need be.
 *
 * @return   0; -EINVAL bad length; -EFAULT NULL; -EBADF closed; -EAFNOSUPPORT; -ENETUNREACH;
 *           -EACCES a broadcast address; -EADDRINUSE the 4-tuple is taken; -ENOSPC
 * Caller: any thread; takes the layer's lock.
 */
int sl_udp_connect(struct sl_udp_sock *s, const struct sockaddr *addr, socklen_t len)
	SL_MUST_CHECK;

/** Local address, as getsockname(2). 0; -EINVAL *len below 0; -EFAULT NULL; -EBADF closed. */
int sl_udp_getsockname(const struct sl_udp_sock *s, struct sockaddr *addr, socklen_t *len)
	SL_MUST_CHECK;

/** Pending ICMP error, as SO_ERROR: 0 or -errno, cleared by reading. Caller: any thread. */
int sl_udp_take_error(struct sl_udp_sock *s);

/** Change the receive buffer's limit, bytes of true size; 0 means 32 MiB. Caller: any thread. */
void sl_udp_set_rcvbuf(struct sl_udp_sock *s, uint64_t bytes);

/**
 * Receive without copying: mbufs whose data is the payload.
 *
 * @param dgrams  n descriptors, filled; the caller owns d->buf (an mbuf) and frees it
 * @return        0..n (0: nothing there), at most SL_UDPQ_BURST_MAX; -EBUSY; a pending error
 * Caller: the reader; never blocks, never polls.
 */
int sl_udp_recv_burst(struct sl_udp_sock *s, struct sl_dgram *dgrams, uint16_t n) SL_MUST_CHECK;

/**
 * Receive several datagrams, as recvmmsg(2).
 *
 * @param msgs     vlen entries; entries at and beyond the result are untouched
 * @param flags    MSG_DONTWAIT, MSG_WAITFORONE, MSG_TRUNC, MSG_PEEK; others are -EINVAL
 * @param timeout  longest time the whole call takes, or NULL; time left is written back when
 *                 something was received; {0,0} polls once
 * @return         1..vlen; 0 for vlen 0; -EAGAIN nothing within the time (also SO_RCVTIMEO);
 *                 -EINVAL bad timeout or flags; -EINTR; -EFAULT; -EBADF closed; -EBUSY; a pending error
 * Caller: the reader.
 */
int sl_udp_recvmmsg(struct sl_udp_sock *s, struct mmsghdr *msgs, unsigned int vlen, int flags,
	struct timespec *timeout) SL_MUST_CHECK;

/** As recvmsg(2): bytes copied (the full length with MSG_TRUNC), or -errno as above. */
ssize_t sl_udp_recvmsg(struct sl_udp_sock *s, struct msghdr *msg, int flags) SL_MUST_CHECK;

/** As recvfrom(2). addr and addrlen may be NULL. */
ssize_t sl_udp_recvfrom(struct sl_udp_sock *s, void *buf, size_t len, int flags,
	struct sockaddr *addr, socklen_t *addrlen) SL_MUST_CHECK;

/** As read(2). */
ssize_t sl_udp_read(struct sl_udp_sock *s, void *buf, size_t len) SL_MUST_CHECK;

/**
 * Send one datagram, as sendto(2).
 *
 * @param worker  the caller's worker index; the datagram leaves with that worker's next flush
 * @param flags   MSG_DONTWAIT, MSG_NOSIGNAL and MSG_CONFIRM, which change nothing: no call waits
 * @param addr    NULL for the peer of a connected socket
 * @return        len; -EDESTADDRREQ; -EINVAL port 0, bad length, other flags, or no such worker
 *                (SL_INET_NO_WORKER); -EOPNOTSUPP MSG_OOB; -EMSGSIZE more than the port's MTU holds;
 *                -ENETUNREACH; -EACCES a broadcast address; -ENOBUFS; -EAFNOSUPPORT; -EFAULT (a
 *                guarded socket); -EBADF closed; -EAGAIN no port is left to bind to; a pending error
 * Caller: a worker; the threads of several workers may send on one socket.
 */
ssize_t sl_udp_sendto(struct sl_udp_sock *s, uint16_t worker, const void *buf, size_t len,
	int flags, const struct sockaddr *addr, socklen_t addrlen) SL_MUST_CHECK;

/** As sendmmsg(2): number sent (vlen is capped at 1024), or the first one's error. */
int sl_udp_sendmmsg(struct sl_udp_sock *s, uint16_t worker, struct mmsghdr *msgs,
	unsigned int vlen, int flags) SL_MUST_CHECK;

/** Read the counters. Caller: any thread. */
void sl_udp_sock_stats(const struct sl_udp_sock *s, struct sl_udp_sock_stats *stats);

SL_END_DECLS

#endif
