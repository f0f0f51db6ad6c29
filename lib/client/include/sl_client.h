/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_CLIENT_H
#define SL_CLIENT_H

/**
 * @file
 * A client of a net_pktring port: connect, put frames into slots, find frames in slots. Needs no
 * DPDK. The rings are mapped here; programs that know AF_PACKET's rings may as well use them
 * directly (sl_client_tx_ring, sl_client_rx_ring).
 *
 *     connect -> tx_next, fill, tx_submit (often) -> kick (once a burst) -> close
 *                rx_next, look, rx_done (often)   -> wait (nothing there)
 *
 * A client is used by one thread at a time; its transmit and its receive half may be two threads'.
 *
 * Stability: stable (doc/api.md).
 */

#include <linux/if_packet.h>

#include "sl_base.h"

SL_BEGIN_DECLS

#define SL_CLIENT_ANY_QUEUE UINT16_MAX

struct sl_client_conf {
	const char *path;   /**< the port's socket */
	uint16_t queue;     /**< or SL_CLIENT_ANY_QUEUE */
	int version;        /**< TPACKET_V1, V2 or V3 */
	bool loss;          /**< bad slots are passed over */
	uint32_t frame_size; /**< of both rings; 0: 2048. A multiple of 16 that divides a block */
	uint32_t tx_frames, rx_frames; /**< 0: no such ring; rounded up to whole blocks */
};

struct sl_client_info {
	uint16_t queue;
	uint16_t mtu;
	uint8_t mac[6];     /**< of the port */
	uint32_t tx_frames, rx_frames; /**< as granted */
	uint32_t tx_room;   /**< bytes that a transmit slot holds */
};

/** A ring as <linux/if_packet.h> has it, mapped here. */
struct sl_client_ring {
	uint8_t *addr;      /**< NULL: there is no such ring */
	size_t bytes;
	uint32_t block_size, frame_size, frames;
};

/** A received frame, in place. */
struct sl_client_frame {
	const uint8_t *data;
	uint32_t len;       /**< bytes there */
	uint32_t wire_len;  /**< bytes that it had; more than len when it was clipped */
	uint32_t status;    /**< TP_STATUS_ bits */
};

struct sl_client;

/**
 * Connect and get rings.
 *
 * @param why    set to a sentence on failure, if the server gave one, else to NULL; a static buffer
 *               of the calling thread. May be NULL.
 * @return       0; -EINVAL; -ENAMETOOLONG a path that no socket has; -ENOENT, -ECONNREFUSED no server
 *               there; -EPROTO it speaks something else; -ENOMEM; or what it refused with
 */
int sl_client_connect(const struct sl_client_conf *conf, struct sl_client **out, const char **why)
	SL_MUST_CHECK;

/** Hang up and unmap. NULL is allowed. Frames requested and not yet taken may be lost. */
void sl_client_close(struct sl_client *c);

void sl_client_info(const struct sl_client *c, struct sl_client_info *info);

/** The rings themselves, for programs that know AF_PACKET's. Who fills slots directly does not use
 * sl_client_tx_next and _submit as well, and who empties them not sl_client_rx_next and _done. */
void sl_client_tx_ring(const struct sl_client *c, struct sl_client_ring *ring);
void sl_client_rx_ring(const struct sl_client *c, struct sl_client_ring *ring);

/** The next transmit slot's bytes (info.tx_room of them), or NULL while it is not free: the same ones until
 * sl_client_tx_submit. */
uint8_t *sl_client_tx_next(struct sl_client *c);

/** Ask for that slot to be sent, `len` bytes; the next one is next. Nothing happens unless
 * sl_client_tx_next gave it since the last time. PR1. */
void sl_client_tx_submit(struct sl_client *c, uint32_t len);

/** Tell the server that there are requests, if it sleeps: once a burst. PR6. */
void sl_client_kick(struct sl_client *c);

/** Transmit slots that the server has not given back. Looks at every slot. */
uint32_t sl_client_tx_busy(const struct sl_client *c);

/** Slots that the server refused (WRONG_FORMAT); the first of them, if any, holds the ring up. */
uint32_t sl_client_tx_refused(const struct sl_client *c);

/** Look at the next received frame, the same one until sl_client_rx_done. @return 1, or 0 when there is
 * none. PR3. */
int sl_client_rx_next(struct sl_client *c, struct sl_client_frame *frame);

/** Done with that frame: its bytes are the server's again. Nothing happens unless sl_client_rx_next showed
 * it since the last time. PR4. */
void sl_client_rx_done(struct sl_client *c);

/**
 * Sleep until there is a frame.
 *
 * @param timeout_ms   below 0: without limit
 * @return             0 there is one; -EAGAIN time over, also without a receive ring; -EINTR; -EPIPE the
 *                     server has hung up
 */
int sl_client_wait(struct sl_client *c, int timeout_ms) SL_MUST_CHECK;

/** Has the server hung up? */
bool sl_client_gone(struct sl_client *c);

SL_END_DECLS

#endif
