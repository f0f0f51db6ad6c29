/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TAPVU_PRIV_H
#define TAPVU_PRIV_H

/**
 * @file
 * The driver's parts. A *port* serves *frontends* that connect to one socket. A frontend's *pair* k
 * is its virtqueues 2k (we write) and 2k + 1 (we read). Receive queue t of the port is fed by the
 * pairs k with k % taps = t; transmit queue q writes to pair q % queues.
 *
 * One lock a virtqueue. Any lcore may poll any receive queue: it takes what locks are free and
 * passes over virtqueues that another lcore is emptying. The control thread of rte_vhost takes the
 * same lock to bring a virtqueue down before it changes memory, addresses or descriptors: whoever
 * holds it has the burst to itself, so holding it is the grace period. The data path calls no
 * function of rte_vhost, so neither side can wait for the other in a circle.
 *
 *     message arrives -> pre: all virtqueues of the frontend down  (each lock taken once)
 *                        rte_vhost handles it: unmaps, maps, moves
 *                        post: memory table and rings read anew, those that may run are up
 */

#include <pthread.h>

#include <ethdev_driver.h>
#include <rte_spinlock.h>

#include "sl_frag_mbuf.h"
#include "sl_tap.h"
#include "sl_tapq.h"
#include "tapvu_args.h"

#define TAPVU_FRONTENDS_MAX 4u
#define TAPVU_TXQ_MAX 128u
#define TAPVU_MTU_MIN 68u
#define TAPVU_MTU_MAX 65500u

/* Threads without an lcore id share the last worker index, under a lock. */
#define TAPVU_WORKERS (RTE_MAX_LCORE + 1u)

/* One virtqueue. (l): under lock, by whoever holds it. */
struct tapvu_ring {
	rte_spinlock_t lock SL_CACHE_ALIGNED;
	uint32_t up;	/* (a) written under lock; read without it as a hint only (relaxed) */
	int call_fd;	/* (l) -1: the peer has none */
	int kick_fd;	/* (l) likewise */
	int kick_epoll; /* (l) where it is waited for; -1: nowhere */
	uint32_t index; /* (c) of the virtqueue in its frontend */
	struct tapvu_frontend *frontend;	/* (c) */
	struct sl_tapq_ring view;		/* (l) */
	struct sl_vring ring;			/* (l) */
	struct sl_tapq_write_stats written;	/* (l), read by anyone */
	struct sl_tap_stats bridged;		/* (l), read by anyone */
	uint64_t calls;				/* (l), read by anyone */
	uint64_t ended[SL_VRING_OUTCOME_COUNT]; /* (l) outcomes of earlier lives of the ring */
	bool enabled; /* control thread: as rte_vhost said last; read by anyone (relaxed) */
};

/* A slot for one connection: control thread, but for mem, which is constant while a ring is up.
 * (a): for telemetry, which reads at any time, relaxed; the control thread alone writes. */
struct tapvu_frontend {
	struct tapvu_port *port; /* (c) */
	int vid;		 /* (a) -1: free */
	bool running;		 /* (a) between new_device and destroy_device */
	uint64_t features;	 /* (a) */
	uint32_t regions;	 /* (a) of mem */
	struct sl_vmem mem;
	struct tapvu_ring *ring; /* (c) 2 * queues */
};

struct tapvu_rxq {
	struct tapvu_port *port;
	uint16_t id;
	struct sl_frag *frag;
	struct sl_tapq *tapq;
	struct rte_mempool *headers; /* NULL: the application's pool, which has private data */
	bool complete;		     /* the application does not know partial checksums */
	uint32_t next;		     /* (a) ring to begin with; relaxed, below rings */
	uint32_t rings;		     /* (c) */
	rte_spinlock_t stranger;     /* threads without an lcore id, one at a time */
	struct tapvu_ring *ring[];   /* (c) those that feed it, of every frontend */
};

/* What an application sleeps on, a receive queue. */
struct tapvu_intr {
	int epoll_fd;	/* (a) -1: interrupts are not configured */
	int wake_fd;	/* constant while epoll_fd is there */
	uint32_t armed; /* (a) somebody sleeps, or is about to; relaxed, under each virtqueue's lock
			 */
};

struct tapvu_txq {
	struct tapvu_port *port;
	uint16_t id;
};

struct tapvu_port {
	struct rte_eth_dev_data *data; /* (c) */
	struct tapvu_args args;	       /* (c) */
	struct tapvu_frontend frontend[TAPVU_FRONTENDS_MAX];
	struct tapvu_intr intr[TAPVU_QUEUES_MAX];
	struct sl_tap tap;			 /* (c) while the port is there */
	uint32_t bridge_max;			 /* (a) longest frame from the kernel; relaxed */
	bool registered;			 /* the socket */
	bool started;				 /* (a) */
	pthread_mutex_t lock;			 /* link state, rxq; control path */
	struct tapvu_rxq *rxq[TAPVU_QUEUES_MAX]; /* (l) under lock */
	struct rte_ether_addr mac;
	struct tapvu_port *next_port;
	uint64_t *base; /* xstats at the last reset */
	uint64_t *gone; /* (l) under lock: of queues that were there before */
};

/** Names that rte_vhost is given at most once: open the socket. */
int tapvu_frontend_open(struct tapvu_port *port);
/** Close the socket; no frontend is left. */
void tapvu_frontend_close(struct tapvu_port *port);
/** Call f with every port whose socket is open; none goes meanwhile. */
void tapvu_ports_each(void (*f)(struct tapvu_port *port, void *arg), void *arg);
/** Link state from frontends and start; tells the application when it changed. */
void tapvu_link_refresh(struct tapvu_port *port);

/** Receive interrupts for all queues that are configured; -ENOMEM, -EMFILE. */
int tapvu_intr_open(struct rte_eth_dev *dev) SL_MUST_CHECK;
/** None any more. Idempotent. */
void tapvu_intr_close(struct rte_eth_dev *dev);
/** Wake who sleeps on the queue when something comes, or at once when it is there; -ENOTSUP. */
int tapvu_intr_enable(struct rte_eth_dev *dev, uint16_t queue);
/** Nobody sleeps: no kicks are wanted. */
int tapvu_intr_disable(struct rte_eth_dev *dev, uint16_t queue);
/** A virtqueue is up, or about to go down. Caller: the holder of its lock. */
void tapvu_intr_ring_up(struct tapvu_ring *r, int kick_fd);
void tapvu_intr_ring_down(struct tapvu_ring *r);

/** Tell the peer to look at the virtqueue, if it can be told. Caller: the holder of its lock. */
void tapvu_call_peer(struct tapvu_ring *r);

uint16_t tapvu_rx_burst(void *queue, struct rte_mbuf **m, uint16_t n);
uint16_t tapvu_bridge_burst(void *queue, struct rte_mbuf **m, uint16_t n);
uint16_t tapvu_tx_burst(void *queue, struct rte_mbuf **m, uint16_t n);

int tapvu_rx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int tapvu_tx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_txconf *conf);
void tapvu_rx_release(struct rte_eth_dev *dev, uint16_t id);
void tapvu_tx_release(struct rte_eth_dev *dev, uint16_t id);

/** Call f with every counter of a port: its name among the xstats, its value since the reset. */
void tapvu_port_counters(
	struct tapvu_port *port, void (*f)(const char *name, uint64_t value, void *arg), void *arg);
/** The same for one virtqueue, since the port was made. */
void tapvu_ring_counters(const struct tapvu_ring *r,
	void (*f)(const char *name, uint64_t value, void *arg), void *arg);

/** Register what telemetry is to know. Once a process. */
void tapvu_telemetry_init(void);

/** Remember what a queue has counted that is about to go. Caller: holds the port's lock. */
void tapvu_stats_keep(struct tapvu_port *port, const struct tapvu_rxq *q);
int tapvu_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int tapvu_stats_reset(struct rte_eth_dev *dev);
int tapvu_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *x, unsigned int n);
int tapvu_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n);

#endif
