/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PSOCK_PRIV_H
#define PSOCK_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_spinlock.h>

#include "sl_assert.h"
#include "sl_lcount.h"
#include "sl_pktring_mbuf.h"
#include "sl_psock.h"
#include "sl_shared.h"
#include "sl_udpq.h"
#include "sl_vnet.h"

#define PROTO_ALL RTE_BE16(0x0003) /* ETH_P_ALL */
#define MAC_LEN RTE_ETHER_ADDR_LEN
#define HEADER_LEN RTE_ETHER_HDR_LEN
#define QUEUES_MAX 64
#define TX_BURST 32

struct psock_fanout;
struct sl_bpf;

/* A row of a port's table: a socket, or a fanout group's members that are hooked on the port. */
struct psock_hook {
	uint16_t proto;		    /* network order */
	struct psock_fanout *group; /* NULL: one member */
	uint32_t members;
	struct sl_psock **member;
};

/* What workers see of a port's sockets. (c) once published; replaced as a whole. */
struct psock_table {
	uint32_t hooks;
	struct psock_hook *hook;
	struct sl_psock **member; /* the array that the rows point into */
	/* Retired ones wait here for workers to pass. */
	struct psock_table *next;
	uint64_t token;
};

struct psock_port {
	bool used;			/* (a) PS2 */
	bool up;			/* (a) relaxed */
	bool lend;			/* (c) */
	uint32_t small;			/* (c) frames up to this many bytes are copied all the same */
	struct sl_psock_port_conf conf; /* (c) */
	struct psock_table *table;	/* (a) PS1; written under net->lock */
	uint32_t mtu;			/* (a) relaxed */
	struct rte_ether_addr mac;	/* (c) */
	uint32_t promisc, allmulti;	/* (l) net->lock: memberships that ask for it */
	rte_spinlock_t tx_lock[QUEUES_MAX];
};

struct sl_psock_net {
	struct sl_psock_net_conf conf; /* (c) */
	struct rte_rcu_qsbr *rcu;      /* (c) */
	bool *online;		       /* (o) each its worker */
	pthread_mutex_t control; /* one control call that may wait at a time; taken before lock */
	pthread_mutex_t lock;	 /* short: lists and tables */
	/* (l) lock */
	TAILQ_HEAD(, sl_psock) sockets;
	TAILQ_HEAD(, psock_fanout) groups;
	struct psock_table *retired;
	struct psock_dead *dead; /* transmit rings in flight */
	uint32_t next_id;
	struct psock_port port[SL_PSOCK_PORTS_MAX];
	struct sl_psock_net *next; /* of all nets, for telemetry */
};

/* A closed socket's ring, until the last mbuf over it is freed. */
struct psock_dead {
	struct sl_pktring_tx *ring;
	struct psock_dead *next;
};

struct psock_member {
	int ifindex;
	uint16_t type;
	uint16_t alen;
	uint8_t address[8];
	uint32_t count;
	struct psock_member *next;
};

/* Receive counters beside a ring's own: (a) relaxed adds by workers. */
struct psock_stats {
	uint64_t packets, drops;
};

/* A packet that is sent in segments that are made here. */
struct psock_cut {
	struct rte_mbuf *whole; /* a private copy; NULL: there is none */
	struct psock_port *port;
	uint32_t slot, len; /* of a ring's request */
	uint32_t next;	    /* segment to be sent next */
	uint32_t shown;	    /* segments that other sockets have seen */
	struct sl_vnet_cut cut;
};

struct sl_psock {
	struct sl_psock_net *net;   /* (c) */
	int type;		    /* (c) */
	uint32_t id;		    /* (c) for telemetry */
	uint64_t bound;		    /* (a) what bind compares with, in one word; hook.c, PS6 */
	TAILQ_ENTRY(sl_psock) link; /* (l) net->lock */

	/* (l) net->control to write, net->lock as well for the first three; read by senders and
	 * workers as (a) relaxed */
	uint16_t proto;
	int ifindex;
	bool hooked;
	int version;
	uint32_t reserve;
	bool loss, has_off, qdisc_bypass;
	bool auxdata, origdev, ignore_outgoing;
	uint8_t vnet_size;
	int copy_thresh, timestamp;
	uint32_t mapped;		  /* mappings of the rings */
	int64_t sndtimeo_ns, rcvtimeo_ns; /* 0: no limit */
	uint64_t rcvbuf;
	struct psock_member *members;

	int error;		     /* (a) pending, 0 or positive as SO_ERROR has it; PS3 */
	struct sl_bpf *filter; /* (a) PS4 */
	struct psock_fanout *group;  /* (l) net->lock */

	struct sl_pktring_rx *rx; /* changed while unhooked only */
	struct psock_dead *dead;  /* there is one when there is a transmit ring; for close */
	struct sl_udpq *queue;	  /* (c) */
	struct psock_stats stats, taken;

	rte_spinlock_t tx_lock SL_CACHE_ALIGNED;
	struct sl_pktring_tx *tx;	  /* (l) tx_lock; PS5 */
	struct rte_mbuf *spare[TX_BURST]; /* (l) tx_lock: allocated ahead, in bulk */
	uint16_t spares;
	uint16_t shown;	      /* requests at the head that other sockets have seen already */
	struct psock_cut cut; /* (l) tx_lock: what a full port has left of a request */
	uint64_t tx_packets, tx_bytes, tx_bad; /* (l) tx_lock, read by telemetry */
	uint64_t tx_segments, tx_dropped;      /* (a) relaxed: made here, and lost of those */
};

/* net.c */
struct psock_port *psock_port(struct sl_psock_net *net, int ifindex);
/** Build and publish the table of one port, or of every port for ifindex 0. */
int psock_rehook_locked(struct sl_psock_net *net, int ifindex);
/** Begin and end a control call. A worker is offline in between: it holds nothing, and whoever has
 * the lock may be waiting for it to pass. */
void psock_control(struct sl_psock_net *net, uint16_t worker);
void psock_control_end(struct sl_psock_net *net, uint16_t worker);
/** Wait until every online worker has passed. Caller: in a control call. */
void psock_synchronize(struct sl_psock_net *net);
void psock_reap_locked(struct sl_psock_net *net);

/* hook.c */
int psock_hook(struct sl_psock *s);
/** Take the socket out of every table; wait until no worker can be in it any more. */
void psock_unhook(struct sl_psock *s);
void psock_set_error(struct sl_psock *s, int error);
/** Tell bind of the protocol, port and group as they are now. Caller: in a control call that
 * changed one of them, after all that belongs to the change is done. */
void psock_bound_publish(struct sl_psock *s);

/* What recvmsg tells of a queued packet, in its descriptor's address fields with the sender's. */
struct psock_note {
	uint32_t wire_len;
	uint32_t status;
	uint16_t vlan_tci, vlan_tpid;
	uint16_t net;
	bool csum_good;
};
void psock_note_put(
	struct sl_dgram *d, const struct sockaddr_ll *from, const struct psock_note *note);
void psock_note_get(const struct sl_dgram *d, struct sockaddr_ll *from, struct psock_note *note);

/* input.c */
uint64_t psock_now_ns(void);
struct psock_packet {
	struct rte_mbuf *m;
	struct rte_ether_hdr eth; /* private copy */
	uint16_t port_id, queue, worker;
	uint16_t proto; /* network order, as sockets see it */
	uint8_t pkttype;
	uint64_t ns;
};
void psock_deliver(struct sl_psock *s, struct psock_packet *p);
bool psock_has_room(struct sl_psock *s);
void psock_show(struct sl_psock_net *net, uint16_t worker, uint16_t port_id, uint16_t queue,
	struct rte_mbuf **pkts, uint16_t n, bool outgoing, const struct sl_psock *except);

/* fanout.c */
struct sl_psock *psock_fanout_pick(const struct psock_hook *hook, struct psock_packet *p);
int psock_fanout_set(struct sl_psock *s, const void *value, socklen_t len);
int psock_fanout_data(struct sl_psock *s, const void *value, socklen_t len);
int psock_fanout_get(struct sl_psock *s, int *value);
int psock_rollover_get(struct sl_psock *s, struct tpacket_rollover_stats *stats);
void psock_fanout_leave(struct sl_psock *s);
void psock_fanout_describe(const struct sl_psock *s, uint32_t *id, uint32_t *type);

/* filter.c */
/** Of what setsockopt was given; freed by sl_bpf_free. Linux' errors. */
int psock_filter_load(const void *value, socklen_t len, struct sl_bpf **out);

/* member.c */
int psock_member_add(struct sl_psock *s, const void *value, socklen_t len);
int psock_member_drop(struct sl_psock *s, const void *value, socklen_t len);
void psock_members_undo(struct sl_psock *s, int ifindex);

/* ring.c */
int psock_ring_set(struct sl_psock *s, enum sl_pktring_dir dir, const void *value, socklen_t len);
void psock_ring_close(struct sl_psock *s);
void psock_tx_conf(const struct sl_psock *s, struct sl_pktring_tx_conf *conf);

/* send.c, offload.c, txring.c */
struct psock_dest {
	struct psock_port *port;
	uint16_t proto;
	bool has_addr;
	uint8_t addr[8];
};
/** What Linux looks at before it looks at anything else: 0; -EFAULT; -EINVAL; -EMSGSIZE. */
int psock_msg_check(const struct msghdr *msg);
int psock_dest(struct sl_psock *s, const struct msghdr *msg, struct psock_dest *dest);
/** Room that a packet may have at the port, vlan tag included. */
uint32_t psock_tx_cap(const struct sl_psock *s, const struct psock_dest *dest);
bool psock_longer_than_mtu(const struct sl_psock *s, const struct psock_dest *dest, uint32_t len,
	const uint8_t *front);
/** Do what a vnet header asks for, or have the port do it. 1: m is to be cut, as *cut says. */
int psock_offload(const struct psock_dest *dest, struct rte_mbuf *m, const uint8_t *vnet,
	struct sl_vnet_cut *cut);
/** Send a burst of segments; how many went, 0 when the port is full. -ENOBUFS. `whole` is NULL
 * after the last. */
int psock_cut_send(struct sl_psock *s, struct psock_cut *c, uint16_t worker);
void psock_cut_end(struct sl_psock *s, struct psock_cut *c);
/** Put a link header in front (SOCK_DGRAM). -EINVAL, -ENOBUFS. */
int psock_header(const struct psock_dest *dest, uint8_t *header);
uint16_t psock_tx_burst(
	const struct psock_dest *dest, uint16_t worker, struct rte_mbuf **pkts, uint16_t n);
ssize_t psock_ring_send(struct sl_psock *s, const struct msghdr *msg, int flags, uint16_t worker);
void psock_show_sent(struct sl_psock *s, const struct psock_dest *dest, uint16_t worker,
	struct rte_mbuf **pkts, uint16_t n);

/* diag.c */
void psock_diag_add(struct sl_psock_net *net);
void psock_diag_remove(struct sl_psock_net *net);

#endif
