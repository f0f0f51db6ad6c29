/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PKTRING_PRIV_H
#define PKTRING_PRIV_H

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "sl_assert.h"
#include "sl_pktring.h"

/* A V3 block starts with its descriptor, 48 bytes, then the private area, rounded up to 8. */
#define BLOCK_HEADER RTE_ALIGN_CEIL(sizeof(struct tpacket_block_desc), 8)

/* What a free callback must know of a slot. In this process's memory: the client's is not to be
 * trusted with pointers. (o) of who holds the slot, from take to complete. A line of its own: slots
 * next to each other are completed by different lcores. */
struct tx_record {
	struct rte_mbuf_ext_shared_info shinfo SL_CACHE_ALIGNED; /* but for its count: (c) */
	struct sl_pktring_tx *ring;				 /* (c) */
	uint8_t *slot;						 /* (c) */
	bool unsent; /* freed by the sender itself: not a completion */
};

struct sl_pktring_tx {
	struct sl_pktring_geo geo; /* (c) */
	struct sl_pktring_tx_conf
		conf;		   /* (o) sender; timestamp is read by completers: (a) relaxed */
	struct sl_pktring_mem mem; /* (c) */
	struct sl_lcount *pending; /* (c) */
	struct tx_record *record;  /* (c) one a slot */
	uint8_t **slot;		   /* (c) where each is: for loops over slots, which spares them the
				      records' lines */
	uint32_t head SL_CACHE_ALIGNED; /* (o) sender, read by anyone: (a) relaxed */
};

/* V3: the block that is being filled. Under the ring's lock. */
struct rx_block {
	uint32_t number;
	uint32_t packets;
	uint32_t used; /* bytes from the block's start, the last packet's padding included */
	uint32_t last; /* offset of the last packet */
	uint64_t opened_ns;
	uint64_t last_ns; /* time of the last packet */
	bool open;	  /* false: frozen, waiting for `number` to come back */
};

/* V3: a block that is full or over time, or open, and still has writers in it. */
struct rx_fill {
	uint32_t writers;
	bool closing;
	uint32_t status; /* to be published by the last writer */
};

struct sl_pktring_rx {
	struct sl_pktring_geo geo; /* (c) */
	struct sl_pktring_mem mem; /* (c) */
	rte_spinlock_t lock SL_CACHE_ALIGNED;
	/* (l) lock, from here on */
	uint32_t head;	       /* V1, V2: next slot */
	uint8_t *busy;	       /* V1, V2: (a) one a slot: reserved, not yet committed */
	struct rx_block block; /* V3 */
	struct rx_fill *fill;  /* V3: one a block */
	uint64_t sequence;     /* V3: of the block opened last */
	uint64_t due_ns;       /* (a) relaxed for readers: when a tick has something to do */
	bool losing;	       /* drops since the last stats_take */
	struct sl_pktring_rx_stats stats; /* (a) relaxed for readers */
	struct sl_pktring_rx_stats taken; /* stats at the last stats_take */
};

static inline uint8_t *
pktring_slot(const struct sl_pktring_geo *geo, const struct sl_pktring_mem *mem, uint32_t n)
{
	return mem->addr + sl_pktring_offset(geo, n);
}

/** Bytes of a V3 block before its first packet. */
static inline uint32_t
pktring_block_front(const struct sl_pktring_geo *geo)
{
	return BLOCK_HEADER + RTE_ALIGN_CEIL(geo->priv_size, 8u);
}

/** What is called when an mbuf whose buffer is a slot is freed: in every record from the start. */
rte_mbuf_extbuf_free_callback_t pktring_slot_freed(int version);

/** Write time into a slot's header, micro- or nanoseconds by version. */
void pktring_stamp(int version, uint8_t *slot, uint64_t ns);
void pktring_stamp_now(int version, uint8_t *slot);

/** sl_pktring_tx_complete, for callers that know the version and where the slot is. */
static inline void
pktring_complete(int version, struct sl_pktring_tx *ring, uint8_t *slot, uint32_t worker)
{
	uint32_t status = TP_STATUS_AVAILABLE;

	if (SL_UNLIKELY(sl_load_relaxed(&ring->conf.timestamp))) {
		pktring_stamp_now(version, slot);
		status |= TP_STATUS_TS_SOFTWARE;
	}
	sl_pktring_status_set(version, slot, status); /* PR2 */
	/* Last: as soon as the sum is 0, the ring and its memory may go. */
	sl_lcount_give(ring->pending, worker, 1);
}

/** Header of a received packet, but for its status; `room` has data and snaplen. */
void pktring_rx_header(const struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	const struct sl_pktring_room *room);

/** V3's half of open, reserve, commit and tick, under the lock. */
void pktring_block_open(struct sl_pktring_rx *ring, uint64_t now_ns);
int pktring_block_reserve(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	uint32_t macoff, struct sl_pktring_room *room);
bool pktring_block_commit(
	struct sl_pktring_rx *ring, const struct sl_pktring_room *room, uint32_t status);
bool pktring_block_tick(struct sl_pktring_rx *ring, uint64_t now_ns);
bool pktring_block_has_room(const struct sl_pktring_rx *ring);

#endif
