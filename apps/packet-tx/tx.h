/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TX_H
#define TX_H

/*
 * sluice-packet-tx: a generator that fills a transmit ring. Where the ring lives is a backend.
 */
#include <stdbool.h>
#include <stdint.h>

struct tx_conf {
	int version; /* TPACKET_V1.. */
	uint32_t size, frames;
	uint64_t count;
	bool loss, dontwait, json;
	const char *server, *iface;
	int eal_argc;
	char **eal_argv;
};

struct tx_backend {
	const char *name;
	/* Exits with a sentence when it cannot. Returns slots granted. */
	uint32_t (*open)(const struct tx_conf *conf);
	/* The next slot's bytes, NULL while it is not free. */
	uint8_t *(*next)(void);
	void (*submit)(uint32_t len);
	/* Have requests sent. 0 or -errno; -EAGAIN and -ENOBUFS: try again. */
	int (*flush)(const struct tx_conf *conf);
	/* Slots that have been refused since the last flush. */
	uint32_t (*refused)(void);
	bool (*idle)(void); /* all slots are free again */
	void (*close)(void);
};

extern const struct tx_backend tx_server, tx_kernel, tx_port;

/* A mapped ring of slots, filled in order: what kernel and port have in common. */
struct tx_ring {
	uint8_t *addr;
	int version;
	uint32_t frames, frame_size, next;
};
void tx_ring_geometry(
	const struct tx_conf *conf, uint32_t *frame_size, uint32_t *blocks, uint32_t *block_size);
uint8_t *tx_ring_next(struct tx_ring *r);
void tx_ring_submit(struct tx_ring *r, uint32_t len);
uint32_t tx_ring_refused(const struct tx_ring *r);
bool tx_ring_idle(const struct tx_ring *r);

#endif
