/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDP_PRIV_H
#define UDP_PRIV_H

/*
 * Inside of the UDP layer.
 *
 * Who sees what: demux runs on workers, in bursts, without a lock. What it reaches - a port's
 * vector of bindings, the table of connected flows, a socket - is changed under the layer's lock,
 * unlinked first and freed after a grace period (sl_inet_synchronize). Sockets are never returned
 * to the heap while the layer lives, so that a call that comes too late finds a closed one.
 */

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <rte_common.h>
#include <rte_hash.h>
#include <rte_memcpy.h>
#include <rte_seqcount.h>

#include "sl_assert.h"
#include "sl_shared.h"
#include "sl_udp.h"

#define UDP_PORTS 65536u
#define NSEC_PER_SEC INT64_C(1000000000)
/** The longest payload of an IPv4 datagram: 65535 less 20 and 8 bytes of header. */
#define UDP_PAYLOAD_MAX 65507u

/** A socket bound to a port. Constant while `live`. */
struct udp_entry {
	struct sl_addr addr;	  /* as bound: "any" of either family, or one of ours */
	struct sl_udp_sock *sock; /* NULL: a hole */
	uint8_t live; /* (a) UD1: 0 while connected (the flow table alone finds it), closing, a hole
		       */
	uint8_t inet6;
	uint8_t v6only;
	uint8_t reuse_port;
};

/** The bindings of one port. */
struct udp_vec {
	uint32_t n; /* (a) UD1 */
	uint32_t cap;
	uint64_t retired;	    /* (l) how many were retired before it */
	STAILQ_ENTRY(udp_vec) link; /* (l) */
	struct udp_entry e[];
};

struct udp_port {
	struct udp_vec *vec; /* (a) UD1; NULL when nothing is bound */
	uint32_t connected;  /* (a) relaxed: sockets of this port in the flow table */
};

/** Key of the flow table. 48 bytes, for which rte_hash has a comparison of its own. */
struct udp_key {
	struct sl_addr local;
	struct sl_addr remote;
	uint16_t lport; /* network order, as are all ports here */
	uint16_t rport;
	uint8_t zero[12];
};

/** (o) one worker's: the last lookup, which holds while the generation does, and its poll. */
struct udp_worker {
	struct sl_udp_sock *sock SL_CACHE_ALIGNED; /* NULL: nobody is bound there */
	struct sl_addr dst;
	struct sl_addr src;
	uint16_t dport;
	uint16_t sport;
	bool valid;
	bool by_flow; /* the answer holds for that sender only */
	uint32_t generation;
	void (*poll)(void *arg);
	void *arg;
	struct sl_dgram gather[SL_INET_BURST]; /* one socket's share of a mixed burst */
	struct sl_dgram mixed[SL_INET_BURST];  /* all of it, if it was built in a queue */
	uint8_t guard[SL_CACHE_GUARD];
};

TAILQ_HEAD(udp_sock_list, sl_udp_sock);

/** How many of each kind were ever unlinked: a mark for what a grace period covers. */
struct udp_retired {
	uint64_t vecs;
	uint64_t positions; /* slots of the flow table */
};

struct sl_udp {
	/* (c) */
	struct sl_inet *inet;
	struct rte_mempool *pool;
	struct udp_port *port; /* UDP_PORTS, by port in network order */
	struct rte_hash *flows;
	struct udp_worker *worker;
	uint32_t workers;
	uint32_t sockets_max;
	uint32_t positions_max;
	SLIST_ENTRY(sl_udp) next; /* under the list's lock */

	/* (l) */
	pthread_mutex_t lock SL_CACHE_ALIGNED;
	uint32_t open; /* sockets handed out */
	uint32_t made; /* sockets that exist */
	struct udp_sock_list closed;
	struct udp_retired retired;
	STAILQ_HEAD(, udp_vec) retired_vecs; /* out of use after a grace period, oldest first */
	int32_t *position;		     /* ring of retired slots of the flow table */
	uint64_t freed_positions;	     /* of retired.positions */
	uint32_t next_port;		     /* where the search for a free port goes on */
	uint8_t guard[SL_CACHE_GUARD];

	/* (a) UD2: bumped after each change that a worker's cached lookup may contradict. */
	uint32_t generation SL_CACHE_ALIGNED;
	uint8_t guard_generation[SL_CACHE_GUARD];
};

/** Where a socket is bound and connected to. */
struct udp_names {
	struct sl_addr bound; /* what bind said: "any" or an address */
	struct sl_addr local; /* the same, or what connect chose */
	struct sl_addr remote;
	uint16_t lport; /* 0: unbound */
	uint16_t rport;
	bool connected;
	bool no_source; /* local is nothing to send from: the route says what is */
};

struct sl_udp_sock {
	/* (c) while open */
	struct sl_udp *udp;
	struct sl_udpq *queue;
	struct sl_udp_sock_conf conf;
	bool plain;		       /* neither guarded nor with control messages */
	bool sleeps;		       /* a waiting reader sleeps on the queue */
	pid_t pid;		       /* guarded: whose memory we copy to */
	struct udp_worker *worker;     /* the reader's, or NULL */
	TAILQ_ENTRY(sl_udp_sock) link; /* (l) in the list of closed ones */

	/* (l), read by senders under the sequence count */
	struct udp_names names SL_CACHE_ALIGNED;
	rte_seqcount_t names_seq;

	/* (a) */
	uint32_t reader
		SL_CACHE_ALIGNED; /* UD3: 1 while a receive call is inside, and when closed */
	uint32_t closing;	  /* UD4 */
	int error;		  /* ICMP's slot, as SO_ERROR: 0 or -errno */

	/* (o) whoever holds the reader's token */
	int fault; /* what stopped an earlier call after k good datagrams: 0 or -errno */
	uint64_t datagrams;
	uint64_t bytes;
	uint64_t truncated;
	uint64_t faults;
	uint64_t purged;
	uint8_t guard[SL_CACHE_GUARD];
};

/* addr.c */
/**
 * Copy a socket address that a caller names, as Linux does before it looks at one.
 *
 * @param sa   zeros behind what was there
 * @return     0; -EINVAL a length that no socket address has; -EFAULT NULL, or bad and guarded
 */
int udp_name_get(const struct sl_udp_sock *s, const void *name, socklen_t len,
	struct sockaddr_storage *sa);
/** The address and port in a socket address. 0; -EINVAL too short; -EAFNOSUPPORT. */
int udp_addr_get(const struct sl_udp_sock *s, const struct sockaddr *sa, socklen_t len,
	struct sl_addr *addr, uint16_t *port);
/** "Any" address of the socket's family. */
struct sl_addr udp_addr_any(const struct sl_udp_sock *s);
/** The socket address that the socket's family has for addr; returns its length. */
socklen_t udp_addr_put(const struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port,
	uint16_t scope, struct sockaddr_storage *sa);

static inline bool
udp_addr_equal(const struct sl_addr *a, const void *b)
{
	return __builtin_memcmp(a->b, b, sizeof(a->b)) == 0;
}

/* port.c: all under the layer's lock */
/** May the socket have this address and port, as Linux sees it? */
bool udp_port_free(
	const struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port, bool share);
/** Publish a binding. 0; -ENOMEM. */
int udp_port_add(struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port);
/** Hide a closing socket from workers; it keeps its port until udp_port_forget. */
void udp_port_unlink(struct sl_udp_sock *s);
/** After a grace period: let others use the entry. */
void udp_port_forget(struct sl_udp_sock *s);
/** Connected sockets are found through the flow table only. */
void udp_port_set_live(struct sl_udp_sock *s, bool live);
/** Make workers forget their last lookup. */
void udp_port_changed(struct sl_udp *udp);

/* bind.c */
/** Bind to "any" and a free port if unbound. Takes the layer's lock. */
int udp_autobind(struct sl_udp_sock *s);
int udp_bind_locked(struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port);
/** Copy the names so that they fit together, without the lock. */
void udp_names_read(const struct sl_udp_sock *s, struct udp_names *names);
void udp_names_write(struct sl_udp_sock *s, const struct udp_names *names);

/* connect.c */
/** Take a connected socket out of the flow table. Under the layer's lock. */
void udp_flow_remove(struct sl_udp_sock *s);
/** The socket connected to the other end of this datagram, or NULL. Workers. */
struct sl_udp_sock *udp_flow_find(const struct sl_udp *udp, const struct udp_key *key);

/* demux.c */
extern const struct sl_inet_udp_ops udp_inet_ops;

/* sock.c */
/** Free the closed sockets, at the end of the layer. */
void udp_socks_free(struct sl_udp *udp);
/** Free what was unlinked before that mark, which a grace period has covered. Layer's lock. */
void udp_retired_free(struct sl_udp *udp, const struct udp_retired *until);

/** copyout.c: more than 64 bytes. */
void udp_copy_long(uint8_t *to, const uint8_t *from, size_t n);

/**
 * Copy a payload. Most are short: up to 64 bytes are two fixed-size copies, from either end, which
 * overlap in the middle.
 */
static __rte_always_inline void
udp_copy(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n > 64) {
		udp_copy_long(to, from, n);
	} else if (n > 32) {
		rte_mov32(to, from);
		rte_mov32(to + n - 32, from + n - 32);
	} else if (n >= 16) {
		rte_mov16(to, from);
		rte_mov16(to + n - 16, from + n - 16);
	} else if (n >= 8) {
		__builtin_memcpy(to, from, 8);
		__builtin_memcpy(to + n - 8, from + n - 8, 8);
	} else {
		while (n-- > 0)
			to[n] = from[n];
	}
}

/** Under the layer's lock, for calls that give a socket a place where workers find it: closing is said
 * before that lock is taken, so no such call comes behind the close. */
static inline bool
udp_closed_locked(const struct sl_udp_sock *s)
{
	return sl_load_relaxed(&s->closing) != 0;
}

/* copyout.c */
/** Copy to, or from, the caller's memory: 0, or -EFAULT if the socket is guarded. */
int udp_put(const struct sl_udp_sock *s, void *user, const void *from, size_t n);
int udp_get(const struct sl_udp_sock *s, void *to, const void *user, size_t n);
/** Several at once, in order, up to the first that faults. `to` is the caller's memory. */
int udp_put_all(
	const struct sl_udp_sock *s, const struct iovec *to, const struct iovec *from, size_t n);
/** Does a copy between our own buffers work at all here? 0 or -errno. */
int udp_guard_probe(pid_t pid);
/** Take the iovec array in and check it. `room` has 1024 entries. 0; -EMSGSIZE; -EINVAL; -EFAULT.
 */
int udp_iov_get(const struct sl_udp_sock *s, const struct msghdr *m, struct iovec *room,
	const struct iovec **iov);
/** Could [base, base+len) be memory of a program at all? */
bool udp_user_range(const void *base, size_t len);
/** Scatter a payload: *copied bytes fitted. 0; -EFAULT. */
int udp_scatter(const struct sl_udp_sock *s, const struct sl_dgram *d, const struct iovec *iov,
	size_t iovlen, size_t *copied);
/** The sender's address, as recvmsg gives it. 0; -EFAULT; -EINVAL for a negative length. */
int udp_put_name(
	const struct sl_udp_sock *s, const struct sl_dgram *d, void *name, socklen_t *namelen);

/* msg.c */
#define UDP_IOV_MAX 1024
/** Check a message header as recvmsg does before it looks for a datagram. */
int udp_msg_check(const struct sl_udp_sock *s, const struct msghdr *user);
/** What became of a datagram on its way to the caller. */
struct udp_filled {
	size_t len; /* recvmsg's result */
	bool truncated;
	bool lost; /* on an error: the caller's memory failed and the datagram is gone with it */
};
/** Deliver a datagram into a message, and recvmsg's result to *len if that is not NULL. 0; -errno.
 */
int udp_msg_fill(const struct sl_udp_sock *s, const struct sl_dgram *d, struct msghdr *user,
	unsigned int *len, int flags, struct udp_filled *out);

/* wait.c */
/** Nanoseconds on the monotonic clock. */
int64_t udp_now_ns(void);
/** Become the reader: 0; -EBADF; -EAGAIN or -EBUSY when another thread is. */
int udp_reader_enter(struct sl_udp_sock *s, int flags);
void udp_reader_leave(struct sl_udp_sock *s);
/** Take the pending error: the fault's slot first, then ICMP's. 0 or -errno. Reader. */
int udp_pending(struct sl_udp_sock *s);
/**
 * Wait until something is queued.
 *
 * @param deadline  on the monotonic clock, below 0 for none
 * @param first     nothing was received yet: a pending error is taken and returned
 * @return          0; -EAGAIN; -EINTR; -EBADF; a pending error
 */
int udp_wait(struct sl_udp_sock *s, int flags, int64_t deadline, bool first);

#endif
