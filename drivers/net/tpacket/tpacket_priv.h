/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TPACKET_PRIV_H
#define TPACKET_PRIV_H

/**
 * @file
 * Driver over the kernel's own packet rings (AF_PACKET): what its files share.
 *
 * A *port* is one interface. Each queue has a socket of its own while it is started, and none while
 * it is stopped, so nothing is received that nobody asked for. A *ring* is such a socket with its
 * mapped memory; it can be replaced under a polling lcore (MTU change, interface made anew) through
 * the queue's *gate*:
 *
 *   lcore                                   control
 *     busy = 1                                ring = NULL
 *     (compiler barrier)                      membarrier()
 *     r = ring          TP1                   wait until busy == 0        TP1
 *     ... use r ...                           destroy the old ring
 *     busy = 0          TP1                   ring = the new one          TP1
 *
 * The barrier on the control side makes a plain store enough on the polling side: after it, a burst
 * has either seen NULL or its busy mark is visible.
 *
 * Fields: (c) constant after setup, (o) owner lcore only, (a) atomic, (k) shared with the kernel,
 * (l) under the port's lock.
 */

#include <net/if.h>
#include <pthread.h>

#include <linux/if_packet.h>

#include <ethdev_driver.h>

#include "sl_base.h"
#include "sl_lcount.h"
#include "sl_shared.h"
#include "tpacket_wire.h"

#define TPACKET_QUEUES_MAX 64
#define TPACKET_MACS_MAX 32
#define TPACKET_MCAST_MAX 64
#define TPACKET_STASH 64
#define TPACKET_RX_DESC_DEFAULT 1024
#define TPACKET_TX_DESC_DEFAULT 256

extern int tpacket_logtype;
#define TPACKET_LOG(level, ...)                                                                    \
	rte_log(RTE_LOG_##level, tpacket_logtype,                                                  \
		RTE_FMT("net_tpacket: " RTE_FMT_HEAD(__VA_ARGS__, ) "\n",                          \
			RTE_FMT_TAIL(__VA_ARGS__, )))

/** Device arguments as given; -1 or 0 where the driver chooses. */
struct tpacket_args {
	char iface[IFNAMSIZ];
	uint32_t qpairs;
	uint32_t version; /* of receive rings: 2 or 3 */
	uint32_t block_size;
	uint32_t frame_size;
	uint32_t frame_nr;
	uint32_t qdisc_bypass;
	uint32_t fanout_mode;
	int32_t fanout_group; /* -1: the kernel picks one that is free */
	uint32_t vnet_hdr;
	uint32_t ignore_outgoing;
	uint32_t promisc;
	uint32_t busy_poll_us;
};

/** A socket with a mapped ring. */
struct tpacket_ring {
	int fd;
	int super_fd; /* transmit: socket without a ring for super-frames, or -1 */
	uint8_t *map;
	size_t map_len;
	struct tpacket_geom geom;
	uint32_t vnet_len; /* bytes of vnet header before each frame: 0 or 10 */
	uint32_t version;
};

/** Let a ring be taken away under a polling lcore. */
struct tpacket_gate {
	struct tpacket_ring *ring; /* (a) NULL while stopped */
	uint32_t busy;		   /* (a) written by the owner lcore */
};

/** Causes that the port counts for one receive queue; the order is that of the xstats names. */
enum tpacket_rx_stat {
	TPACKET_RX_PACKETS,
	TPACKET_RX_BYTES,
	TPACKET_RX_NO_MBUF,
	TPACKET_RX_TRUNCATED,
	TPACKET_RX_NO_ROOM,
	TPACKET_RX_BAD_SLOT,
	TPACKET_RX_BAD_VNET,
	TPACKET_RX_GSO_UNSUPPORTED,
	TPACKET_RX_OTHER_HOST,
	TPACKET_RX_CSUM_COMPLETED,
	TPACKET_RX_LRO,
	TPACKET_RX_SEGMENTED,
	TPACKET_RX_QUEUED_COPY,
	TPACKET_RX_VLAN_REINSERTED,
	TPACKET_RX_STATS
};

enum tpacket_tx_stat {
	TPACKET_TX_PACKETS,
	TPACKET_TX_BYTES,
	TPACKET_TX_KICKS,
	TPACKET_TX_TOO_SHORT,
	TPACKET_TX_TOO_LONG,
	TPACKET_TX_BAD_OFFLOAD,
	TPACKET_TX_WRONG_FORMAT,
	TPACKET_TX_RING_FULL,
	TPACKET_TX_AGAIN,
	TPACKET_TX_NOBUFS,
	TPACKET_TX_DOWN,
	TPACKET_TX_OTHER_ERROR,
	TPACKET_TX_SUPER,
	TPACKET_TX_RELAYED,
	TPACKET_TX_STATS
};

/** A place in a ring of fixed frames (or, for version 3, of blocks). */
struct tpacket_cursor {
	uint8_t *slot;
	uint32_t block;	   /* index of the block */
	uint32_t in_block; /* frames of the block already passed; unused by version 3 */
};

struct tpacket_port;

struct tpacket_rxq {
	struct tpacket_gate gate;
	struct tpacket_cursor cur; /* (o) next frame to read */
	uint32_t v3_left;	   /* (o) frames of the open block still to read, 0: none open */
	uint32_t v3_room;	   /* (o) bytes from cur.slot to the end of the block */
	struct rte_mempool *pool;  /* (c) */
	struct tpacket_port *port; /* (c) */
	uint64_t offloads;	   /* (c) */
	uint32_t ptypes;	   /* (a) mask of the packet types that are wanted, 0: none */
	uint16_t port_id;	   /* (c) */
	uint16_t queue_id;	   /* (c) */
	uint16_t room;		   /* (c) bytes an mbuf holds */
	uint16_t stashed;	   /* (o) */
	bool scatter;		   /* (c) */
	bool lro;		   /* (c) */
	bool deferred;		   /* (c) not started with the port */
	bool behind;		   /* (o) the last burst did not take all that was there */
	bool strip;		   /* (a) tags are taken out */
	uint16_t desc;		   /* (c) as asked in the setup */
	uint32_t socket_id;	   /* (c) */
	struct tpacket_gso gso;	   /* (o) super-frame being cut, in `staging` */
	bool cutting;		   /* (o) */
	uint64_t cut_flags;	   /* (o) mbuf flags of the segments */
	uint64_t cut_ns;	   /* (o) their timestamp */
	uint32_t cut_ptype;	   /* (o) */
	uint16_t cut_tci;	   /* (o) */
	uint8_t *staging;	   /* (c) TPACKET_SUPER_MAX bytes and room for one segment */
	struct rte_mbuf *stash[TPACKET_STASH];		   /* (o) */
	uint64_t stats[TPACKET_RX_STATS] SL_CACHE_ALIGNED; /* owner writes, anyone reads */
	uint64_t baseline[TPACKET_RX_STATS];		   /* (l) */
	uint64_t kernel_drops;	   /* (l) summed from the socket, which forgets them */
	uint64_t kernel_freezes;   /* (l) */
	uint64_t drops_baseline;   /* (l) */
	uint64_t freezes_baseline; /* (l) */
} SL_CACHE_ALIGNED;

struct tpacket_txq {
	struct tpacket_gate gate;
	struct tpacket_cursor head; /* (o) next slot to fill */
	struct tpacket_cursor tail; /* (o) oldest slot that the kernel has not given back */
	uint32_t filled;	    /* (o) slots between tail and head */
	struct tpacket_port *port;  /* (c) */
	uint64_t offloads;	    /* (c) */
	uint16_t port_id;	    /* (c) */
	uint16_t queue_id;	    /* (c) */
	uint16_t desc;		    /* (c) */
	uint16_t free_thresh;	    /* (c) */
	bool deferred;		    /* (c) not started with the port */
	uint32_t socket_id;	    /* (c) */
	uint64_t stats[TPACKET_TX_STATS] SL_CACHE_ALIGNED; /* owner writes, anyone reads */
	uint64_t in_flight;		     /* (a) owner writes: `filled` for readers */
	uint64_t baseline[TPACKET_TX_STATS]; /* (l) */
} SL_CACHE_ALIGNED;

/** dev_private: in memory that a secondary process sees too. */
struct tpacket_port {
	struct rte_eth_dev_data *data;	   /* (c) */
	struct tpacket_args args;	   /* (c) */
	struct rte_intr_handle *link_intr; /* (c) netlink socket, primary only */
	struct sl_lcount *pending;	   /* (c) transmit slots in flight; primary only */
	pthread_mutex_t lock;		   /* the control path against the netlink callback */
	int control_fd;			   /* (c) memberships and interface requests */
	int netlink_fd;			   /* (c) */
	int ifindex;			   /* (a) 0 while the interface is gone */
	uint32_t kernel_mtu;		   /* (a) of the interface, for the transmit length check */
	uint32_t link_speed;		   /* (l) */
	bool started;			   /* (l) */
	bool mute_other_host;	 /* (a) drop unicast for other addresses: not promiscuous */
	bool device_tso;	 /* (l) the interface segments by itself */
	uint32_t fanout_id;	 /* (l) */
	uint32_t fanout_members; /* (l) */
	uint32_t mcast_nr;	 /* (l) */
	uint32_t remakes;	 /* (l) rings made anew after the interface came back */
	struct rte_ether_addr mcast[TPACKET_MCAST_MAX]; /* (l) */
	uint64_t extra_mac[TPACKET_MACS_MAX];		/* (a) unicast besides the first, 0: free */
	bool promisc_on, allmulti_on;			/* (l) as the application wants it */
	bool warned_vnet, warned_bypass, warned_buffer; /* (l) each fallback is told once */
	int epoll_fd[TPACKET_QUEUES_MAX];		/* (c) interrupt mode, else -1 */
	int timestamp_offset;	 /* (c) dynamic mbuf field, -1: not registered */
	uint64_t timestamp_flag; /* (c) */
};

/* ---- the gate ---------------------------------------------------------------------------- */

/** Enter a burst. Returns the ring, or NULL while there is none; leave in both cases. */
static inline struct tpacket_ring *
tpacket_gate_enter(struct tpacket_gate *g)
{
	sl_store_relaxed(&g->busy, 1);
	/* Only the compiler is held here: the other side issues the barrier for both (TP1). */
	sl_snapshot_barrier();
	return sl_load_acquire(&g->ring); /* TP1: cursor and mapping of a new ring */
}

static inline void
tpacket_gate_leave(struct tpacket_gate *g)
{
	sl_store_release(&g->busy, 0); /* TP1: all use of the ring is over */
}

/** Take the ring away; returns it when no burst uses it any more. May sleep. */
struct tpacket_ring *tpacket_gate_close(struct tpacket_gate *g);

/** Give a ring to the owner's next burst. */
void tpacket_gate_open(struct tpacket_gate *g, struct tpacket_ring *ring);

/* ---- walking over slots ------------------------------------------------------------------- */

/** The slot after the cursor, without moving it. */
static inline uint8_t *
tpacket_cursor_following(const struct tpacket_cursor *c, const struct tpacket_ring *ring)
{
	if (c->in_block + 1 < ring->geom.per_block)
		return c->slot + ring->geom.frame_size;
	if (c->block + 1 < ring->geom.block_nr)
		return ring->map + (size_t)(c->block + 1) * ring->geom.block_size;
	return ring->map;
}

static inline void
tpacket_cursor_advance(struct tpacket_cursor *c, const struct tpacket_ring *ring)
{
	c->slot = tpacket_cursor_following(c, ring);
	if (++c->in_block < ring->geom.per_block)
		return;
	c->in_block = 0;
	if (++c->block == ring->geom.block_nr)
		c->block = 0;
}

static inline struct tpacket2_hdr *
tpacket_slot_header(uint8_t *slot)
{
	return (struct tpacket2_hdr *)__builtin_assume_aligned(slot, TPACKET_ALIGNMENT);
}

/* ---- tpacket_args.c ---------------------------------------------------------------------- */

/** Parse device arguments; each error is one log line that names option, value and range. */
int tpacket_args_parse(const char *text, struct tpacket_args *out) SL_MUST_CHECK;

/** Name of a fan-out mode for logs. */
const char *tpacket_fanout_name(uint32_t mode);

/* ---- tpacket_sock.c ---------------------------------------------------------------------- */

/** Make a receive ring and join the fan-out if the port has several queues. */
int tpacket_sock_rx(
	struct tpacket_port *port, struct tpacket_rxq *q, struct tpacket_ring **out) SL_MUST_CHECK;

/** Make a transmit ring. */
int tpacket_sock_tx(
	struct tpacket_port *port, struct tpacket_txq *q, struct tpacket_ring **out) SL_MUST_CHECK;

/** Unmap and close; NULL is allowed. */
void tpacket_ring_destroy(struct tpacket_ring *ring);

/** Bytes that one receive slot needs for an MTU. */
uint32_t tpacket_slot_bytes(uint32_t mtu, uint32_t vnet_len);

/* ---- tpacket_queue.c --------------------------------------------------------------------- */

int tpacket_rx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int tpacket_tx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t desc, unsigned int socket,
	const struct rte_eth_txconf *conf);
void tpacket_rx_release(struct rte_eth_dev *dev, uint16_t id);
void tpacket_tx_release(struct rte_eth_dev *dev, uint16_t id);
int tpacket_rx_start(struct rte_eth_dev *dev, uint16_t id);
int tpacket_rx_stop(struct rte_eth_dev *dev, uint16_t id);
int tpacket_tx_start(struct rte_eth_dev *dev, uint16_t id);
int tpacket_tx_stop(struct rte_eth_dev *dev, uint16_t id);
void tpacket_rxq_info(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_rxq_info *info);
void tpacket_txq_info(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_txq_info *info);
int tpacket_vlan_offload_set(struct rte_eth_dev *dev, int mask);
void tpacket_vlan_strip_set(struct rte_eth_dev *dev, uint16_t id, int on);
int tpacket_rx_burst_mode(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_burst_mode *mode);
int tpacket_tx_burst_mode(struct rte_eth_dev *dev, uint16_t id, struct rte_eth_burst_mode *mode);

/** Replace the rings of all started queues. Caller holds the lock. */
int tpacket_queues_remake_locked(struct tpacket_port *port);

/* ---- tpacket_rx*.c ----------------------------------------------------------------------- */

uint16_t tpacket_rx2_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n);
uint16_t tpacket_rx3_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n);

/** Put the cursor on the first frame of a new ring; no burst runs. */
void tpacket_rx_reset(struct tpacket_rxq *q, struct tpacket_ring *ring);
/** Drop what a queue holds of its own: stash and a super-frame half cut. No burst runs. */
void tpacket_rx_purge(struct tpacket_rxq *q);

uint32_t tpacket_rx_count(void *rxq);
int tpacket_rx_status(void *rxq, uint16_t offset);
int tpacket_rx_monitor(void *rxq, struct rte_power_monitor_cond *cond);

/** One received frame, fields copied out of the ring and checked against its slot. */
struct tpacket_frame {
	const uint8_t *data; /* in the ring */
	uint32_t caught;     /* bytes that are there */
	uint32_t wire;	     /* bytes the packet has */
	uint32_t status;
	uint32_t hash;
	uint16_t tci;
	uint16_t tpid;
	uint8_t packet_type;
	bool keep_tag; /* the tag goes into the frame again */
	uint64_t ns;
	struct tpacket_vnet vnet; /* zero where the ring has none */
};

/**
 * Turn a frame into mbufs.
 *
 * @return  mbufs put into pkts (0: counted as dropped), or -1: no mbuf was free, try again later
 */
int tpacket_rx_frame(struct tpacket_rxq *q, const struct tpacket_ring *ring,
	struct tpacket_frame *f, struct rte_mbuf **pkts, uint16_t n);

/** Go on with a super-frame that is being cut. Returns mbufs put into pkts. */
uint16_t tpacket_rx_cut(struct tpacket_rxq *q, struct rte_mbuf **pkts, uint16_t n);

/* ---- tpacket_rxmbuf.c -------------------------------------------------------------------- */

/** An mbuf from the queue's stash, NULL when the pool is empty. */
struct rte_mbuf *tpacket_stash_get(struct tpacket_rxq *q);
/** A chain with `len` bytes of data room set and nothing written; NULL when the pool is short. */
struct rte_mbuf *tpacket_chain_get(struct tpacket_rxq *q, uint32_t len);
/** Copy bytes into a chain at an offset. */
void tpacket_chain_write(struct rte_mbuf *m, uint32_t at, const uint8_t *from, uint32_t len);

/* ---- tpacket_tx.c ------------------------------------------------------------------------ */

uint16_t tpacket_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t n);
uint16_t tpacket_tx_prepare(void *txq, struct rte_mbuf **pkts, uint16_t n);
int tpacket_tx_cleanup(void *txq, uint32_t n);
int tpacket_tx_status(void *txq, uint16_t offset);
/** Take back what the kernel has finished, at most n slots. Returns how many. */
uint32_t tpacket_tx_reap(struct tpacket_txq *q, const struct tpacket_ring *ring, uint32_t n);
/** Put head and tail on the first slot of a new ring; no burst runs. */
void tpacket_tx_reset(struct tpacket_txq *q, struct tpacket_ring *ring);

/** A frame's place in a vnet header and what has to be written into its headers. */
struct tpacket_txmeta {
	struct tpacket_vnet vnet; /* zero: nothing is asked of the kernel */
	struct tpacket_headers h;
	uint32_t l4_bytes; /* of the transport header and its payload */
	bool csum;	   /* layer 4 checksum to make */
	bool ip_csum;
	bool gso;
};

/** Bytes of VLAN tag that the driver inserts, 0 or 4. */
static inline uint32_t
tpacket_tx_tag(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0 ? 4 : 0;
}

/** Derive offloads from an mbuf; `frame` are its first `there` bytes, private, tag included. */
int tpacket_tx_meta(const struct rte_mbuf *m, const uint8_t *frame, uint32_t there, uint32_t len,
	struct tpacket_txmeta *meta) SL_MUST_CHECK;
/**
 * Make the checksums that were asked for, in the frame or by a request to the kernel.
 *
 * @param frame  the headers, private; the whole frame unless meta->gso
 * @param vnet   the kernel completes layer 4 if it is asked to
 */
void tpacket_tx_fix(uint8_t *frame, uint32_t len, struct tpacket_txmeta *meta, bool vnet);
/** Has this mbuf offload work, or came it in with a checksum that is still partial? */
static inline bool
tpacket_tx_has_work(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IP_CKSUM |
				      RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)) != 0 ||
	       (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}
/** Copy the first bytes of an mbuf with the tag inserted; returns bytes written. */
uint32_t tpacket_tx_copy(const struct rte_mbuf *m, uint8_t *out, uint32_t max);
/** Send a super-frame through the socket without a ring: 0, -EAGAIN (keep), or -errno (bad). */
int tpacket_tx_super(struct tpacket_txq *q, const struct tpacket_ring *ring, struct rte_mbuf *m);
/** Does this mbuf go through tpacket_tx_super? */
bool tpacket_tx_is_super(const struct tpacket_txq *q, const struct rte_mbuf *m);

/* ---- tpacket_link.c ---------------------------------------------------------------------- */

int tpacket_link_open(struct rte_eth_dev *dev) SL_MUST_CHECK;
void tpacket_link_close(struct rte_eth_dev *dev);
int tpacket_link_update(struct rte_eth_dev *dev, int wait);
int tpacket_link_set_up(struct rte_eth_dev *dev);
int tpacket_link_set_down(struct rte_eth_dev *dev);
int tpacket_mtu_set(struct rte_eth_dev *dev, uint16_t mtu);

/* ---- tpacket_if.c: requests about the interface -------------------------------------------- */

int tpacket_if_index(int fd, const char *name) SL_MUST_CHECK;
int tpacket_if_flags(int fd, const char *name, uint32_t *flags) SL_MUST_CHECK;
int tpacket_if_set_up(int fd, const char *name, bool up) SL_MUST_CHECK;
int tpacket_if_mtu(int fd, const char *name, uint32_t *mtu) SL_MUST_CHECK;
int tpacket_if_set_mtu(int fd, const char *name, uint32_t mtu) SL_MUST_CHECK;
int tpacket_if_mac(int fd, const char *name, struct rte_ether_addr *mac) SL_MUST_CHECK;
int tpacket_if_set_mac(int fd, const char *name, const struct rte_ether_addr *mac) SL_MUST_CHECK;
/** Speed in Mbit/s (RTE_ETH_SPEED_NUM_UNKNOWN if the driver does not tell) and duplex. */
void tpacket_if_speed(int fd, const char *name, uint32_t *mbps, bool *full);
bool tpacket_if_tso(int fd, const char *name);

/* ---- tpacket_filter.c: what the interface lets through ------------------------------------- */

int tpacket_promisc_on(struct rte_eth_dev *dev);
int tpacket_promisc_off(struct rte_eth_dev *dev);
int tpacket_allmulti_on(struct rte_eth_dev *dev);
int tpacket_allmulti_off(struct rte_eth_dev *dev);
int tpacket_mac_add(struct rte_eth_dev *dev, struct rte_ether_addr *mac, uint32_t i, uint32_t vmdq);
void tpacket_mac_remove(struct rte_eth_dev *dev, uint32_t i);
int tpacket_mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac);
int tpacket_mcast_set(struct rte_eth_dev *dev, struct rte_ether_addr *list, uint32_t n);
/** Ask for all memberships again, for an interface that was made anew. Lock held. */
void tpacket_filter_restore_locked(struct tpacket_port *port);
/** Is a unicast frame for another host's address meant for one of ours? */
bool tpacket_filter_ours(const struct tpacket_port *port, const uint8_t *dst);

/* ---- tpacket_stats.c ----------------------------------------------------------------------- */

int tpacket_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *out);
int tpacket_stats_reset(struct rte_eth_dev *dev);
int tpacket_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *out, unsigned int n);
int tpacket_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *out, unsigned int n);
/** Read the kernel's drop counter of a queue, which reading clears. Lock held. */
void tpacket_stats_drops_locked(struct tpacket_rxq *q);

#endif
