/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PKTRING_PORT_H
#define PKTRING_PORT_H

#include <pthread.h>

#include <ethdev_driver.h>
#include <rte_log.h>
#include <rte_spinlock.h>

#include "hello.h"
#include "sl_pktring_mbuf.h"

#define QUEUES_MAX 64
#define CLIENTS_MAX 16 /* of a queue */
#define PATH_LEN 108   /* sockaddr_un's */
#define STASH 32

extern int pktring_logtype;
#define PKTRING_LOG(level, ...)                                                                    \
	rte_log(RTE_LOG_##level, pktring_logtype, "net_pktring: " __VA_ARGS__)

/* Why frames went no further, and what went: (o) the queue's bursts, read by anyone. */
enum pktring_count {
	RX_PACKETS,
	RX_BYTES,
	RX_BAD, /* slots that break the rules */
	RX_NO_MBUF,
	TX_PACKETS, /* frames handed to at least one client */
	TX_BYTES,
	TX_NO_CLIENT, /* nobody with a receive ring there */
	TX_FULL,      /* a client's ring had no room: once a client */
	TX_BELLS,     /* clients woken */
	TX_LOST,      /* frames that went to nobody, for whichever of these reasons */
	COUNT_MAX
};

struct pktring_client {
	int fd;
	int kick_fd; /* -1 before the hello */
	uint16_t queue;
	bool loss;
	struct sl_pktring_tx *tx; /* may be NULL, as rx */
	struct pktring_grave *grave;
	struct sl_pktring_rx *rx;
	struct sl_pktring_mem page_mem;
	struct sl_pktring_page *page;
	struct pktring_client *next;
};

/* Both directions of a queue number. In memory that secondary processes see; they look at the
 * counters alone. Bursts hold their lock by trying: they meet nobody but the control thread, for
 * some instructions, when a client comes or goes. */
struct pktring_queue {
	rte_spinlock_t rx_lock SL_CACHE_ALIGNED;
	struct pktring_client *rx_client[CLIENTS_MAX]; /* (l) rx_lock */
	uint32_t rx_clients;
	uint32_t turn;
	uint64_t tick_tsc; /* when V3 blocks are looked at next */
	struct rte_mempool *pool;
	struct rte_mbuf *stash[STASH];
	uint16_t stashed;
	uint16_t port_id;
	bool copy; /* (c) */
	bool rx_on;
	bool sleeping; /* receive interrupt armed */
	uint32_t cap;  /* largest frame */
	uint32_t room; /* of a mbuf, for copies; UINT32_MAX when they may be chains */
	int event_fd;  /* receive interrupt; -1 without */
	uint64_t rx_count[COUNT_MAX];

	rte_spinlock_t tx_lock SL_CACHE_ALIGNED;
	struct pktring_client *tx_client[CLIENTS_MAX]; /* (l) tx_lock */
	uint32_t tx_clients;
	bool tx_on;
	uint64_t tx_count[COUNT_MAX];
};

struct pktring_port {
	char path[PATH_LEN];
	uint16_t queues;
	uint16_t port_id;
	uint16_t mtu;
	bool copy;
	size_t most; /* bytes of a ring */
	struct rte_ether_addr mac;
	struct pktring_queue *queue;	      /* one block, QUEUES_MAX of them */
	uint64_t base[QUEUES_MAX][COUNT_MAX]; /* counters at the last reset */
	uint32_t connected;		      /* (a) relaxed */
	uint64_t accepted, refused;	      /* (a) relaxed */

	/* The control thread's. */
	pthread_t thread;
	bool running;
	int listen_fd, epoll_fd, stop_fd;
	struct pktring_client *clients;
	uint32_t strangers; /* connected, no hello yet */
};

/* burst.c */
uint16_t pktring_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t pktring_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);
void pktring_sleep(struct pktring_queue *q, bool sleeping);
void pktring_stash_free(struct pktring_queue *q);

/* client.c */
int pktring_client_open(struct pktring_port *port, struct pktring_client *c,
	const struct pktring_wish *wish, const char **why);
void pktring_client_close(struct pktring_port *port, struct pktring_client *c);
/** Free rings of clients that are gone as far as nothing of them is in flight; how many are left.
 */
uint32_t pktring_graves_reap(void);

/* server.c */
int pktring_server_start(struct pktring_port *port);
void pktring_server_stop(struct pktring_port *port);

/* stats.c */
uint64_t pktring_count(const struct pktring_port *port, uint16_t queue, enum pktring_count what);
int pktring_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int pktring_stats_reset(struct rte_eth_dev *dev);
int pktring_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n);
int pktring_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n);
void pktring_telemetry_init(void);

#endif
