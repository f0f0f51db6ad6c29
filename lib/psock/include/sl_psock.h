/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_PSOCK_H
#define SL_PSOCK_H

/**
 * @file
 * Packet sockets over DPDK ports: AF_PACKET's calls, options, rings and errors, served by lcores.
 *
 * A *net* is a set of ports and of sockets on them. A port's *ifindex* is its DPDK port id plus
 * one; 0 means every port. A *worker* is a polling lcore (or thread) with an index; it reports a
 * quiescent state each turn. A *hook* is what makes a socket see a port's packets: a row in the
 * port's table, which workers read without a lock and control calls replace as a whole.
 *
 *     bind, close, setsockopt          worker
 *        |  new table, release            |  acquire table, once a burst (PS1)
 *        v                                v
 *     port -> [ proto, socket or fanout group ] [ ... ]        old table: freed after a grace period
 *
 * Protocol numbers are in network order, errors are those of Linux; doc/psock.md says what differs.
 *
 * Who may call what at the same time as what: calls on different sockets never exclude each other.
 * On one socket, any number of threads may send (the ring is sent by one at a time: others wait, or
 * get -EAGAIN with MSG_DONTWAIT), one may receive, and control calls exclude each other inside. No
 * call may run beside sl_psock_close of its socket. Bind, close and ring set-up may wait for a grace
 * period: a worker passes its own index, so that it is not waited for.
 *
 * Stability: experimental (doc/api.md).
 */

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "sl_base.h"

struct rte_mbuf;
struct rte_mempool;

SL_BEGIN_DECLS

/** Worker index of a thread that is no worker. */
#define SL_PSOCK_NO_WORKER UINT16_MAX
#define SL_PSOCK_PORTS_MAX 32
/** Most packets of one input burst. */
#define SL_PSOCK_BURST 64

struct sl_psock_net_conf {
	uint16_t workers;         /**< 1..1024 */
	struct rte_mempool *pool; /**< headers, and copies where memory cannot be lent */
	/** What a blocking send calls while it waits, besides polling its port for completions: for a
	 * program whose only lcore sends and must also receive. May be NULL; must not send. */
	void (*progress)(void *arg, uint16_t worker);
	void *progress_arg;
};

/** May transmit slots be lent to the port as they are? */
enum sl_psock_lend {
	/** To vdevs that read with the CPU; never with MBUF_FAST_FREE; and not frames so short that a
	 * copy costs less. */
	SL_PSOCK_LEND_AUTO,
	SL_PSOCK_LEND_NEVER,
	SL_PSOCK_LEND_ALWAYS, /**< whatever the length */
};

struct sl_psock_port_conf {
	uint16_t port_id;          /**< a configured DPDK port */
	uint16_t tx_queues;        /**< queues 0.. that sockets send on; worker w uses w % tx_queues */
	uint64_t tx_offloads;      /**< RTE_ETH_TX_OFFLOAD_ bits that the port was configured with */
	enum sl_psock_lend lend;
};

enum sl_psock_event {
	SL_PSOCK_PORT_UP,
	SL_PSOCK_PORT_DOWN,
};

struct sl_psock_net;
struct sl_psock;

/**
 * Create a net without ports.
 *
 * @return   0; -EINVAL; -ENOMEM
 * Caller: control path; EAL is initialised.
 */
int sl_psock_net_create(const struct sl_psock_net_conf *conf, struct sl_psock_net **out)
	SL_MUST_CHECK;

/**
 * Free a net, its ports' tables, and rings that closed sockets left in flight. NULL is allowed.
 *
 * @return   0; -EBUSY: sockets are open, or slots of closed ones are still in flight; nothing freed
 * Caller: control path, when no worker polls any more.
 */
int sl_psock_net_destroy(struct sl_psock_net *net) SL_MUST_CHECK;

/**
 * Add a port. It counts as up when its link is.
 *
 * @return   0; -ENODEV no such port; -EEXIST; -ENOSPC; -EINVAL tx_queues 0 or more than there are;
 *           -ENOMEM
 * Caller: control path.
 */
int sl_psock_port_add(struct sl_psock_net *net, const struct sl_psock_port_conf *conf)
	SL_MUST_CHECK;

/**
 * Take a port away: sockets on it are unhooked, get ENETDOWN, and are bound to no port (-1);
 * memberships on it are gone. When it returns, no worker and no sender uses the port.
 *
 * Caller: control path; waits for a grace period.
 */
void sl_psock_port_remove(struct sl_psock_net *net, uint16_t port_id, uint16_t worker);

/** Tell that a port went up or down: sockets are hooked again, or unhooked with ENETDOWN once. */
void sl_psock_port_event(struct sl_psock_net *net, uint16_t port_id, enum sl_psock_event event,
	uint16_t worker);

/** A worker starts, or stops, taking part in grace periods. Caller: that worker. */
void sl_psock_worker_online(struct sl_psock_net *net, uint16_t worker);
void sl_psock_worker_offline(struct sl_psock_net *net, uint16_t worker);
/** The worker holds no socket and no table: once a turn of its loop. Caller: that worker. */
void sl_psock_quiescent(struct sl_psock_net *net, uint16_t worker);

/**
 * Show received packets to the sockets that are hooked on the port.
 *
 * @param queue   receive queue that they came from (fanout by queue)
 * @param pkts    Ethernet frames, VLAN tags stripped into the mbuf or not; they stay the caller's
 *                and are not changed
 * @param n       0..SL_PSOCK_BURST
 * Caller: a worker that is online; never blocks.
 * Ordering: PS1
 * Counts: per socket, what it takes or drops (PACKET_STATISTICS).
 */
void sl_psock_input_burst(struct sl_psock_net *net, uint16_t worker, uint16_t port_id,
	uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

/** Show packets that somebody sends, as PACKET_OUTGOING. Sockets' own sends are shown by send. */
void sl_psock_output_burst(struct sl_psock_net *net, uint16_t worker, uint16_t port_id,
	struct rte_mbuf **pkts, uint16_t n);

/**
 * A turn of a worker that does nothing else: receive a burst, show it, free it, retire V3 blocks,
 * report a quiescent state.
 *
 * @return   packets received
 * Caller: the worker.
 */
uint16_t sl_psock_poll(struct sl_psock_net *net, uint16_t worker, uint16_t port_id,
	uint16_t queue);

/** Retire V3 blocks that are due, on every socket. sl_psock_poll does it. Caller: a worker. */
void sl_psock_tick(struct sl_psock_net *net, uint16_t worker);

/**
 * socket(2): type SOCK_RAW, SOCK_DGRAM or SOCK_PACKET. A protocol other than 0 receives from every
 * port at once.
 *
 * @return   0; -ESOCKTNOSUPPORT; -ENOMEM; -EMFILE, -ENFILE
 * Caller: control path; waits for nothing.
 */
int sl_psock_create(struct sl_psock_net *net, int type, uint16_t protocol, struct sl_psock **out)
	SL_MUST_CHECK;

/**
 * close(2); NULL is allowed. Transmit slots in flight keep the ring's memory until they are freed.
 *
 * Caller: control path; waits for a grace period if the socket was hooked.
 */
void sl_psock_close(struct sl_psock *s, uint16_t worker);

/**
 * bind(2) with struct sockaddr_ll (SOCK_PACKET: struct sockaddr_pkt's device as a port's name).
 * A bind that changes neither protocol nor port touches nothing and waits for nothing. A port that
 * is down, or goes away meanwhile, is no error: ENETDOWN is pending on the socket.
 *
 * @return   0; -EFAULT NULL; -EINVAL length, family, or member of a fanout group; -ENODEV
 * Caller: control path; waits for a grace period if it changes something and was hooked.
 */
int sl_psock_bind(struct sl_psock *s, const void *addr, socklen_t len, uint16_t worker)
	SL_MUST_CHECK;

/** getsockname(2). @return 0, with 12 bytes plus the hardware address in *addr; -EFAULT NULL; -EINVAL *len
 * below 0. SOCK_PACKET: struct sockaddr, with the port's name. */
int sl_psock_getsockname(struct sl_psock *s, struct sockaddr_ll *addr, socklen_t *len)
	SL_MUST_CHECK;

/**
 * setsockopt(2), getsockopt(2): all of SOL_PACKET, and of SOL_SOCKET what doc/psock.md lists.
 *
 * @return   0; -ENOPROTOOPT; -EFAULT for NULL; and each option's errors
 * Caller: control path; ring set-up waits for a grace period if the socket is hooked.
 */
int sl_psock_setsockopt(struct sl_psock *s, int level, int name, const void *value, socklen_t len,
	uint16_t worker) SL_MUST_CHECK;
int sl_psock_getsockopt(struct sl_psock *s, int level, int name, void *value, socklen_t *len)
	SL_MUST_CHECK;

/**
 * mmap(2) of the rings: receive ring first, transmit ring behind it, one mapping.
 *
 * @param len    exactly the size of both
 * @return       0; -EINVAL no ring, or another length; -ENOMEM
 * Caller: control path.
 */
int sl_psock_mmap(struct sl_psock *s, size_t len, void **addr) SL_MUST_CHECK;
void sl_psock_munmap(struct sl_psock *s, void *addr, size_t len);

/**
 * sendmsg(2). A socket with a transmit ring sends what is requested there, from the head slot on,
 * and ignores msg's data; without, one packet from msg's data.
 *
 * @param msg     its data and address are read in place: bad memory ends in a signal
 * @param flags   MSG_DONTWAIT: never waits and never yields, not even for another sender
 * @return        bytes (ring: without vnet headers); -EFAULT msg or its array is NULL; -EINVAL a length
 *                below 0, or a worker that there is not; -EMSGSIZE more than 1024 pieces; or the errors
 *                of doc/psock.md
 * Caller: any thread; a blocking ring send waits until nothing is pending, polling the port itself.
 * Ordering: PR1, PR2, LC1
 */
ssize_t sl_psock_sendmsg(struct sl_psock *s, const struct msghdr *msg, int flags, uint16_t worker)
	SL_MUST_CHECK;

/**
 * recvmsg(2) from the socket's queue (rings are read in place).
 *
 * @param flags   MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_ERRQUEUE
 * @return        bytes; -EFAULT, -EMSGSIZE as sl_psock_sendmsg; -EINVAL other flags, a length below 0, or
 *                too little room for the vnet header; -EAGAIN; the
 *                pending error of the socket; -EINTR
 * Caller: one thread at a time; blocks without MSG_DONTWAIT, so no worker.
 */
ssize_t sl_psock_recvmsg(struct sl_psock *s, struct msghdr *msg, int flags) SL_MUST_CHECK;

/** poll(2): POLLIN, POLLOUT, POLLERR as they are now. Caller: any thread. */
short sl_psock_events(struct sl_psock *s);

/** SIOCINQ (first packet's length) and SIOCOUTQ (pending slots' bytes). -EINVAL for others. */
int sl_psock_ioctl(struct sl_psock *s, unsigned long request, int *value) SL_MUST_CHECK;

SL_END_DECLS

#endif
