/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_PKTRING_H
#define SL_PKTRING_H

/**
 * @file
 * Packet rings in shared memory, in the layouts of <linux/if_packet.h> (TPACKET_V1, V2 and V3): the
 * side that the kernel has there, called the *server* here. The other side, the *client*, is
 * another process or the user of a packet socket; sl_pktring_slot.h has what it needs.
 *
 * The *geometry* says how a ring lies in its memory: blocks of whole pages, frames that never
 * straddle a block, the tail of a block unused. A *slot* is a frame with its status word. A
 * transmit ring has a *head*: the only slot that the server looks at. A *pending* slot is one whose
 * packet is on its way, so that its bytes are still being read.
 *
 *     memory   | block 0: slot 0 | slot 1 | .. | tail | block 1: slot f | slot f+1 | ...
 *                 V3 receive:  block header | private area | packet | packet | ...
 *
 *     server process only: head, pending count, one record a slot, block fill state
 *
 * The client can write everything in the memory at any time. Each field that the server needs is
 * read once into a local, checked there and used from there; what the server must remember it keeps
 * in memory of its own. So a bad client spoils its own packets and nothing else.
 *
 * A transmit ring counts pending slots per worker (sl_lcount.h). They are taken under the sender's
 * exclusion alone and given back by whoever completes the slot; the ring and its memory live until
 * the last of them is given back: sl_pktring_tx_destroy refuses before that.
 *
 * Who may call what at the same time as what, on one ring:
 *
 *     transmit                 peek..untake   complete   pending   destroy
 *       peek, take, untake,
 *       give, back,
 *       reject, drop           no             yes        no*       no
 *       complete (other slot)  yes            yes        yes       no
 *     receive                  reserve, commit, tick: any number of threads, a spinlock inside
 *
 *     * from another thread the sum may be anything, see sl_lcount.h.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_lcount.h"
#include "sl_pktring_slot.h"

SL_BEGIN_DECLS

enum sl_pktring_dir {
	SL_PKTRING_RX,
	SL_PKTRING_TX,
};

/** What a program asks for: setsockopt's request and the options that its checks depend on. */
struct sl_pktring_req {
	enum sl_pktring_dir dir;
	int version;             /**< TPACKET_V1, TPACKET_V2 or TPACKET_V3 */
	uint32_t reserve;        /**< PACKET_RESERVE, at most INT_MAX */
	struct tpacket_req3 ask; /**< V1 and V2: the first four members count */
};

/** What the socket's rings are doing, for the checks that come first. */
struct sl_pktring_state {
	bool mapped;  /**< somebody has a mapping of the rings */
	bool pending; /**< transmit slots are on their way */
	bool exists;  /**< there is a ring of this direction */
};

/** A checked request. */
struct sl_pktring_geo {
	enum sl_pktring_dir dir;
	int version;
	uint32_t reserve;
	uint32_t block_size, block_nr, frame_size, frame_nr;
	uint32_t frames_per_block;
	uint32_t retire_ms, priv_size, features; /**< V3 */
	size_t bytes;                            /**< block_size * block_nr */
};

/**
 * Check a request as Linux does, in its order.
 *
 * @param geo   set on success; bytes is 0 when the request frees the ring
 * @return      0; -EBUSY mapped or pending, or the ring exists and the request does not free it;
 *              -EINVAL for everything that does not fit, see doc/pktring.md
 * Caller: any thread.
 */
int sl_pktring_geometry(const struct sl_pktring_req *req, const struct sl_pktring_state *state,
	struct sl_pktring_geo *geo) SL_MUST_CHECK;

/** Offset of slot n (below frame_nr) in the ring's memory. */
static inline size_t
sl_pktring_offset(const struct sl_pktring_geo *geo, uint32_t n)
{
	return (size_t)(n / geo->frames_per_block) * geo->block_size +
		(size_t)(n % geo->frames_per_block) * geo->frame_size;
}

/** Memory of one ring. The descriptor is sealed against resizing, so that no client can make an
 * access here fail by truncating it. */
struct sl_pktring_mem {
	uint8_t *addr;
	size_t bytes;
	int fd;
};

/**
 * Get zeroed memory that can be shared, mapped here.
 *
 * @param bytes   a multiple of the page size, not 0
 * @return        0; -ENOMEM, also for more than half of the machine's memory; -EMFILE, -ENFILE
 * Caller: control path; unmapped and closed with sl_pktring_mem_free.
 */
int sl_pktring_mem_alloc(size_t bytes, struct sl_pktring_mem *mem) SL_MUST_CHECK;

/** Undo sl_pktring_mem_alloc; mem->addr NULL is allowed. Mappings of others stay valid. */
void sl_pktring_mem_free(struct sl_pktring_mem *mem);

/** Largest vnet header in a slot. */
#define SL_PKTRING_VNET_MAX 12

struct sl_pktring_tx;

/** A transmit slot's request, copied out of shared memory and checked. */
struct sl_pktring_frame {
	uint32_t slot;                      /**< slot number */
	uint32_t offset;                    /**< where the packet starts, from the slot's start */
	uint32_t len;                       /**< packet bytes, vnet header not included */
	uint8_t vnet[SL_PKTRING_VNET_MAX];  /**< copy of the vnet header, zero beyond its size */
};

/** Options of a transmit ring. */
struct sl_pktring_tx_conf {
	bool has_off;      /**< PACKET_TX_HAS_OFF: the client says where the packet starts */
	bool dgram;        /**< with has_off: tp_net says it, not tp_mac */
	bool timestamp;    /**< completion writes the time and TP_STATUS_TS_SOFTWARE */
	uint8_t vnet_size; /**< 0, 10 or 12 bytes in front of the packet */
};

/**
 * Make a transmit ring with its memory.
 *
 * @param geo      a checked transmit geometry with bytes > 0
 * @param conf     copied
 * @param workers  worker indexes of those that send and complete are below this
 * @param out      set on success only
 * @return         0; -ENOMEM; -EINVAL: V3 with retire time, private area or features (checked after
 *                 the allocation, as Linux does); -EMFILE, -ENFILE
 * Caller: control path.
 */
int sl_pktring_tx_create(const struct sl_pktring_geo *geo, const struct sl_pktring_tx_conf *conf,
	uint32_t workers, struct sl_pktring_tx **out) SL_MUST_CHECK;

/**
 * Free a ring and its memory.
 *
 * @param ring   NULL is allowed
 * @return       0; -EBUSY: slots are pending, nothing was freed, try again later
 * Caller: control path, when nobody sends on the ring any more.
 */
int sl_pktring_tx_destroy(struct sl_pktring_tx *ring) SL_MUST_CHECK;

/** The ring's memory (fd for clients, addr in this process) and geometry. Constants. */
const struct sl_pktring_mem *sl_pktring_tx_mem(const struct sl_pktring_tx *ring);
const struct sl_pktring_geo *sl_pktring_tx_geo(const struct sl_pktring_tx *ring);

/** Change the options. Caller: as peek. */
void sl_pktring_tx_set(struct sl_pktring_tx *ring, const struct sl_pktring_tx_conf *conf);

/**
 * Look at the head slot.
 *
 * @param cap     most bytes of a packet that the port takes; UINT32_MAX for no limit. Ignored when
 *                there is a vnet header.
 * @param frame   set when the result is 1
 * @return        1: a request; 0: the head slot is not a request; -EMSGSIZE or -EINVAL: a request
 *                that breaks the rules (then sl_pktring_tx_reject or _drop)
 * Caller: the sender; lock-free, never blocks.
 * Ordering: PR1
 */
int sl_pktring_tx_peek(struct sl_pktring_tx *ring, uint32_t cap, struct sl_pktring_frame *frame);

/** Where a peeked packet starts in this process. Its bytes can change until it is copied. */
uint8_t *sl_pktring_tx_bytes(const struct sl_pktring_tx *ring,
	const struct sl_pktring_frame *frame);

/**
 * Take the head slot: it is SENDING and pending, and the next one is head.
 *
 * @param worker   the caller's index, or SL_LCOUNT_SHARED
 * Caller: the sender, after a peek that returned 1.
 */
void sl_pktring_tx_take(struct sl_pktring_tx *ring, uint32_t worker);

/**
 * Give back the slot before the head that was taken last: it is a request again, and head.
 * Several are given back last first. Caller: the sender, which still holds the slot.
 */
void sl_pktring_tx_untake(struct sl_pktring_tx *ring, uint32_t worker);

/**
 * Fetched slots (sl_pktring_mbuf_fetch) are the client's again: AVAILABLE.
 *
 * @param first   number of the first of n slots that follow each other in the ring
 * Caller: the sender.
 * Ordering: PR2
 */
void sl_pktring_tx_give(struct sl_pktring_tx *ring, uint32_t first, uint32_t n);

/** The slot before the head, which was fetched last, is a request again, and head. Caller: the
 * sender. */
void sl_pktring_tx_back(struct sl_pktring_tx *ring);

/** The head slot is WRONG_FORMAT and stays head. Caller: the sender, after a peek. */
void sl_pktring_tx_reject(struct sl_pktring_tx *ring);

/** The head slot is AVAILABLE, unsent, and the next one is head. Caller: the sender. */
void sl_pktring_tx_drop(struct sl_pktring_tx *ring);

/**
 * Nobody reads the slot any more: it is AVAILABLE and no longer pending.
 *
 * @param slot     number of a taken slot
 * @param worker   the caller's index, or SL_LCOUNT_SHARED
 * Caller: any thread, once for each taken slot. The ring may be gone when this returns.
 * Ordering: PR2; LC1 afterwards.
 */
void sl_pktring_tx_complete(struct sl_pktring_tx *ring, uint32_t slot, uint32_t worker);

/** Pending slots. Exact to the sender, who alone takes: never too low. Caller: the sender. */
uint32_t sl_pktring_tx_pending(const struct sl_pktring_tx *ring);

/** Is the head slot a request, good or bad? For who wants to get nothing ready for nothing. Caller:
 * the sender. */
bool sl_pktring_tx_requested(const struct sl_pktring_tx *ring);

/** Is the head slot the client's to fill (poll's POLLOUT)? Caller: any thread. */
bool sl_pktring_tx_writable(const struct sl_pktring_tx *ring);

struct sl_pktring_rx;

/** What is known of a received packet. */
struct sl_pktring_meta {
	uint32_t len;           /**< packet bytes that there are to store */
	uint32_t wire_len;      /**< what the header says as its length; 0 means len */
	uint32_t maclen;        /**< link header bytes at the front; 0 when it was removed (dgram) */
	uint32_t status;        /**< TP_STATUS_ bits to add (CSUM_VALID, VLAN_VALID, ...) */
	uint32_t rxhash;        /**< V3 with TP_FT_REQ_FILL_RXHASH */
	uint64_t ns;            /**< time of reception, since the epoch */
	uint16_t vlan_tci;      /**< with TP_STATUS_VLAN_VALID */
	uint16_t vlan_tpid;     /**< with TP_STATUS_VLAN_TPID_VALID */
	uint8_t vnet_size;      /**< 0, 10 or 12 */
	const void *vnet;       /**< that many bytes to put in front of the packet */
	struct sockaddr_ll from;
};

/** Room for one packet in a receive ring, between reserve and commit. */
struct sl_pktring_room {
	uint8_t *data;          /**< the caller copies `snaplen` bytes to here */
	uint32_t snaplen;       /**< what fits; less than the packet when it is clipped */
	uint32_t slot;          /**< slot or block number; the rest is the ring's own */
	uint32_t status;
	uint8_t *header;
};

struct sl_pktring_rx_stats {
	uint64_t packets; /**< offered, drops included, as PACKET_STATISTICS counts */
	uint64_t drops;   /**< not stored: ring full, queue frozen, or offsets beyond 16 bits */
	uint64_t freezes; /**< V3: times that the queue froze */
};

/**
 * Make a receive ring with its memory.
 *
 * @param geo      a checked receive geometry with bytes > 0
 * @param now_ns   time since the epoch: V3 opens its first block
 * @param out      set on success only; freed with sl_pktring_rx_destroy
 * @return         0; -ENOMEM, -EMFILE, -ENFILE
 * Caller: control path.
 */
int sl_pktring_rx_create(const struct sl_pktring_geo *geo, uint64_t now_ns,
	struct sl_pktring_rx **out) SL_MUST_CHECK;

/** Free a ring. NULL is allowed. Caller: control path, nobody is between reserve and commit. */
void sl_pktring_rx_destroy(struct sl_pktring_rx *ring);

const struct sl_pktring_mem *sl_pktring_rx_mem(const struct sl_pktring_rx *ring);
const struct sl_pktring_geo *sl_pktring_rx_geo(const struct sl_pktring_rx *ring);

/**
 * Get room for a packet and fill in its header and address.
 *
 * @param room   set on success; its slot stays this caller's until sl_pktring_rx_commit
 * @return       0; -ENOBUFS no free slot, or frozen; -EMSGSIZE offsets do not fit 16 bits
 * Caller: any thread; a spinlock for some tens of instructions; never sleeps.
 * Ordering: PR4
 * Counts: one packet; a failure one drop.
 */
int sl_pktring_rx_reserve(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	struct sl_pktring_room *room) SL_MUST_CHECK;

/**
 * The bytes are in: hand the slot to the client; V3 hands over the block when it is full and the
 * last of its writers has come here.
 *
 * @param status   TP_STATUS_ bits to add, e.g. COPY
 * @return         true when the client has something new to look at (a slot, or a closed block)
 * Caller: who reserved.
 * Ordering: PR3
 */
bool sl_pktring_rx_commit(struct sl_pktring_rx *ring, const struct sl_pktring_room *room,
	uint32_t status);

/**
 * V3: close a block that has held packets for longer than the retire time, thaw the queue when the
 * next block has come back. Nothing to do in V1 and V2.
 *
 * @return   true when a block was handed to the client
 * Caller: any thread, often (a polling lcore once a turn); takes the spinlock only when due.
 * Ordering: PR3, PR4
 */
bool sl_pktring_rx_tick(struct sl_pktring_rx *ring, uint64_t now_ns);

/** Read the counters since the last call and clear them (PACKET_STATISTICS). Any thread. */
void sl_pktring_rx_stats_take(struct sl_pktring_rx *ring, struct sl_pktring_rx_stats *stats);

/** Read the counters since creation (telemetry). Any thread. */
void sl_pktring_rx_stats(const struct sl_pktring_rx *ring, struct sl_pktring_rx_stats *stats);

/** Would the next packet find room (fanout's rollover)? A guess while others write. Any thread. */
bool sl_pktring_rx_has_room(struct sl_pktring_rx *ring);

/** Is the slot or block before the next one the client's to read (poll's POLLIN)? Any thread. */
bool sl_pktring_rx_readable(struct sl_pktring_rx *ring);

SL_END_DECLS

#endif
