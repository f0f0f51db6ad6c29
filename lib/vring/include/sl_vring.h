/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_VRING_H
#define SL_VRING_H

/**
 * @file
 * The device side of a virtqueue, split or packed, over memory that the driver can change any time.
 *
 * The *driver* is the peer (a guest, a container, testpmd's virtio-user); the *device* is us. The
 * driver makes *descriptors* available: pieces of its memory, some for us to read and then some to
 * write. Descriptors that belong together form a *chain*; an *indirect* descriptor points to a
 * table of further ones. We *pop* a chain, use its memory, and *push* it back as used; the driver
 * sees the pushed ones when we *flush*. A *kick* is the driver's notification to us, a *call* ours
 * to it.
 *
 *     driver   --make available-->  [ ring ]  --pop-->   chain: spans of host memory
 *              <-----flush--------            <--push--
 *
 * Driver addresses are translated through a *memory table* (struct sl_vmem), with their length: a
 * piece that runs from one region into another that follows it in driver addresses becomes two
 * spans.
 *
 * What may be trusted: nothing in the ring. Each field is read once, into a local, and the local is
 * checked and used. All work is bounded by the ring size whatever the peer writes, also while it is
 * being read. Each pop ends in exactly one enum sl_vring_outcome, which is counted. Some outcomes
 * spoil a chain only: the chain is pushed back with length 0 and the ring goes on. Others mean that
 * the ring itself cannot be believed: it is *broken*, every further pop says so, until it is set up
 * anew. Other rings of the same peer are not concerned.
 *
 * A ring belongs to one thread at a time; who shares one brings a lock. The payload that the spans
 * point to stays the peer's: parse from a private copy.
 *
 * Machines are little-endian, as the rings of virtio 1 are.
 *
 * Stability: experimental (doc/api.md).
 */

#include "sl_assert.h"
#include "sl_base.h"
#include "sl_shared.h"

SL_BEGIN_DECLS

/* The ring's parts as <linux/virtio_ring.h> defines them; that header is not C++. */
struct vring_desc;
struct vring_avail;
struct vring_used;
struct vring_packed_desc;
struct vring_packed_desc_event;

#define SL_VMEM_REGIONS_MAX 64u
#define SL_VRING_SIZE_MAX 32768u

/** A contiguous piece of the driver's memory and where it is mapped here. */
struct sl_vmem_region {
	uint64_t guest; /**< first driver address */
	uint64_t size;	/**< bytes, at least 1; guest + size does not wrap */
	uint8_t *host;
};

/** The memory table. Constant while any ring uses it. */
struct sl_vmem {
	uint32_t count;
	struct sl_vmem_region region[SL_VMEM_REGIONS_MAX]; /**< by guest address, not overlapping */
};

/** A piece of host memory. */
struct sl_vring_span {
	uint8_t *addr;
	uint32_t len; /**< at least 1 */
};

/** How a pop ended. */
enum sl_vring_outcome {
	SL_VRING_OK,
	SL_VRING_EMPTY, /**< nothing is available; no chain */
	/* The chain is spoilt: push it with length 0. */
	SL_VRING_BAD_ADDRESS,	/**< not, or not wholly, inside the memory table */
	SL_VRING_ZERO_LENGTH,	/**< no descriptor of the chain has a byte */
	SL_VRING_OVERLONG,	/**< more bytes than the limit of the ring */
	SL_VRING_MANY_SPANS,	/**< more spans than the caller has room for */
	SL_VRING_DIRECTION,	/**< a readable descriptor behind a writable one */
	SL_VRING_BAD_INDIRECT,	/**< table empty, not a multiple of 16 bytes, longer than the ring,
				  outside the memory; nested, or not negotiated
				 */
	SL_VRING_INDIRECT_NEXT, /**< a link inside a table that leaves it or runs in circles */
	/* The ring is broken; no chain. */
	SL_VRING_BAD_INDEX, /**< the available index moved by more than the ring size */
	SL_VRING_BAD_HEAD,  /**< head not below the ring size */
	SL_VRING_BAD_NEXT,  /**< link not below the ring size */
	SL_VRING_LOOP,	    /**< chain longer than the ring */
	SL_VRING_BAD_ID,    /**< packed: buffer id not below the ring size */
	SL_VRING_BROKEN,    /**< popped again after one of these */
	SL_VRING_OUTCOME_COUNT
};

/** Does this outcome leave a chain that must be pushed? */
static inline bool
sl_vring_has_chain(enum sl_vring_outcome o)
{
	return o == SL_VRING_OK || (o > SL_VRING_EMPTY && o < SL_VRING_BAD_INDEX);
}

/** A chain that was popped. Spans for reading come first. */
struct sl_vring_chain {
	uint16_t id;	   /**< head index, or buffer id */
	uint16_t slots;	   /**< ring slots it occupies (packed; split: 1) */
	uint16_t readable; /**< spans to read */
	uint16_t writable; /**< spans to write, behind those */
	uint32_t readable_len;
	uint32_t writable_len;
};

enum sl_vring_features {
	SL_VRING_F_PACKED = 1 << 0,
	SL_VRING_F_INDIRECT = 1 << 1,
	SL_VRING_F_EVENT_IDX = 1 << 2,
	SL_VRING_F_IN_ORDER = 1 << 3,
	/** This side only reads: descriptors count as readable whatever they say. No feature of
	 * virtio: a widespread driver marks the header's entry in packed tables as writable. */
	SL_VRING_F_READ_ALL = 1 << 4,
	SL_VRING_F_ALL = (1 << 5) - 1,
};

struct sl_vring_conf {
	uint32_t features;  /**< enum sl_vring_features */
	uint16_t size;	    /**< 1..32768; split: a power of two */
	uint32_t chain_max; /**< bytes a chain may have; 0: 2^32 - 1 */
	/** Host addresses of the ring's parts, each wholly mapped, aligned as virtio has it:
	 * descriptors to 16, the used ring and both event areas to 4, the available ring to 2. */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_packed_desc *packed;
	struct vring_packed_desc_event *driver_event, *device_event;
	/** Where to start: index of the next available entry, and of the next used one. Packed: bit
	 * 15 is the wrap counter, and both are below the size. */
	uint16_t next_avail, next_used;
};

/** One ring: (o) whoever holds it at the moment; counters are read by anyone. Visible so that it
 * can be embedded; members are not for callers. */
struct sl_vring {
	struct sl_vring_conf conf SL_CACHE_ALIGNED;
	uint16_t next_avail; /* packed: without wrap counter */
	uint16_t next_used;
	uint16_t seen;	      /* split: available index as last read */
	uint16_t added;	      /* used entries written since the last call decision, at most size */
	uint16_t unflushed;   /* used entries written since the last flush */
	uint16_t first_flags; /* packed: of the first unflushed entry */
	uint16_t first_slot;  /* packed: where it is */
	bool avail_wrap, used_wrap;
	bool broken;
	uint32_t out;	  /* chains popped and not pushed */
	uint64_t popped;  /* chains */
	uint64_t pushed;  /* chains */
	uint64_t rewound; /* chains */
	uint64_t outcomes[SL_VRING_OUTCOME_COUNT];
};

/**
 * Check a memory table: sizes above 0, no wrap, ascending, not overlapping.
 *
 * @return   0; -EINVAL
 */
int sl_vmem_check(const struct sl_vmem *mem) SL_MUST_CHECK;

/**
 * Translate the front of a piece of driver memory.
 *
 * @param guest   driver address
 * @param len     in: bytes wanted, at least 1; out: bytes that are contiguous here, at least 1
 * @return        host address, or NULL when guest is in no region
 * Caller: any thread.
 */
uint8_t *sl_vmem_translate(const struct sl_vmem *mem, uint64_t guest, uint64_t *len);

/**
 * Does each part of a ring lie wholly in one region of the memory table, for the size that it has?
 *
 * A backend library checks that when it is told a place, and not again when it is told another
 * size.
 * Caller: any thread.
 */
bool sl_vring_is_mapped(const struct sl_vring_conf *conf, const struct sl_vmem *mem);

/**
 * Set up a ring.
 *
 * @param conf   copied
 * @return       0; -EINVAL for a size, feature, start or part that is not there
 * Caller: control path.
 */
int sl_vring_init(struct sl_vring *r, const struct sl_vring_conf *conf) SL_MUST_CHECK;

/**
 * Take the next available chain.
 *
 * @param chain   set if sl_vring_has_chain; spans and lengths only for SL_VRING_OK
 * @param span    room for max spans
 * @return        the outcome, counted in outcomes[]
 * Caller: the holder of the ring; lock-free; reads at most 2 x ring size descriptors.
 * Ordering: VR1: what the driver wrote before it made the chain available is visible.
 */
enum sl_vring_outcome sl_vring_pop(struct sl_vring *r, const struct sl_vmem *mem,
	struct sl_vring_chain *chain, struct sl_vring_span *span, uint16_t max);

/**
 * Take several of the next available chains, as long as each is the plain case: one descriptor that
 * lies in one piece. What stops it - nothing available, or any other chain - is for sl_vring_pop.
 *
 * @param chain   room for n chains
 * @param span    room for n spans, one for each chain
 * @return        chains taken, each with outcome SL_VRING_OK
 * Caller, Ordering: as sl_vring_pop.
 */
uint16_t sl_vring_pop_plain(struct sl_vring *r, const struct sl_vmem *mem,
	struct sl_vring_chain *chain, struct sl_vring_span *span, uint16_t n);

/**
 * Undo the last pops: the chains are available again, and will be popped in the same order.
 *
 * @param n      chains, the last popped ones, none of which was pushed
 * @param slots  sum of their slots
 * Caller: the holder of the ring.
 */
void sl_vring_rewind(struct sl_vring *r, uint16_t n, uint16_t slots);

/**
 * Hand a chain back, with the next flush. Chains are pushed in the order in which they were popped.
 *
 * @param len    bytes written to it
 * Caller: the holder of the ring.
 */
void sl_vring_push(struct sl_vring *r, const struct sl_vring_chain *chain, uint32_t len);

/** Hand n chains back with length 0, as sl_vring_push does with each. */
void sl_vring_push_unused(struct sl_vring *r, const struct sl_vring_chain *chain, uint16_t n);

/**
 * Show the driver what was pushed.
 *
 * @return   true if it wants a call
 * Caller: the holder of the ring; lock-free.
 * Ordering: VR2 publishes what was written to the chains; VR3 against the driver that goes to
 * sleep.
 */
bool sl_vring_flush(struct sl_vring *r) SL_MUST_CHECK;

/**
 * Ask for kicks, or say that none are needed.
 *
 * @return   true if something is available already (only with want): poll again
 * Caller: the holder of the ring.
 * Ordering: VR4: ask, then look; the driver makes available, then looks whether it must kick.
 */
bool sl_vring_want_kicks(struct sl_vring *r, bool want) SL_MUST_CHECK;

/**
 * Find where a packed ring stands whose device ended without telling anyone, and resume there.
 *
 * A split ring's used index lies in shared memory, a packed ring's position lies nowhere: when a
 * device is killed, a frontend can only repeat where the ring was when it was set up. But in each
 * slot the used bit is turned over by the device alone, once a round, because a driver that makes a
 * slot available leaves it as the device did in the round before (virtio 1.2, 2.8.1). So the slot
 * where that bit changes is the next one. For this every slot of a chain that is pushed gets it,
 * not only the first one, which is all that drivers look at.
 *
 * Entries that the device had pushed and not flushed, so that no driver has seen them, are handed
 * back with length 0: what was in them is lost. They must be less than half the ring. One that
 * another kind of device has left, with several chains that are marked in their first slot only,
 * cannot be read so: it stays where it is.
 *
 * @param lost   set to the slots that were handed back so
 * @return       true if the ring stands elsewhere than sl_vring_init was told, or slots were lost
 * Caller: the holder of the ring, before its first pop. Reads each slot's flags once; what a driver
 * does meanwhile, also an evil one, changes nothing but the place. Split: does nothing.
 * Ordering: VR2 publishes what is handed back.
 */
bool sl_vring_recover(struct sl_vring *r, uint16_t *lost);

/** Is anything available? Cheap; no outcome. Caller: the holder of the ring. */
bool sl_vring_ready(struct sl_vring *r);

/** Where to resume: as conf.next_avail and conf.next_used. Caller: the holder, nothing popped. */
void sl_vring_position(const struct sl_vring *r, uint16_t *next_avail, uint16_t *next_used);

/** Name of an outcome, for counters: a constant such as "bad_address". */
const char *sl_vring_outcome_name(enum sl_vring_outcome o);

/**
 * Check the invariant: chains popped = pushed + rewound + out, and = the outcomes that have one.
 *
 * @return   true if it holds
 * Caller: the holder of the ring.
 */
bool sl_vring_check(const struct sl_vring *r);

/**
 * Copy from spans into private memory.
 *
 * @param skip   bytes to pass over in the spans first
 * @return       bytes copied: less than len only when the spans end
 */
uint32_t sl_vring_copy_out(
	const struct sl_vring_span *span, uint16_t n, uint32_t skip, void *to, uint32_t len);

/** Copy private memory into spans. As sl_vring_copy_out. */
uint32_t sl_vring_copy_in(const struct sl_vring_span *span, uint16_t n, uint32_t skip,
	const void *from, uint32_t len);

SL_END_DECLS

#endif
