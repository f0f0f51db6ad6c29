/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PACKET_HELP_H
#define PACKET_HELP_H

/*
 * What pending, bind and txring share: sides that run in turn, slice by slice, a null port, and a
 * mapped ring to fill.
 */
#include <rte_mempool.h>

#include "bench.h"

#define PACKET_SIDES_MAX 4

struct packet_side {
	const char *name;
	/* One slice of about that long; the value, or below 0 when it failed. */
	double (*slice)(void *arg, double seconds);
	void *arg;
};

/* Run the sides in turn and print a row for each, then the ratio of the first to each other one. */
int packet_sides_run(const struct bench_opts *opts, const char *bench, const char *name,
	const char *unit, double seconds, const struct packet_side *side, unsigned int sides);

/* Print that a case does not run here, and why. */
void packet_skip(
	const struct bench_opts *opts, const char *bench, const char *name, const char *why);

/* A started port that swallows everything, and a pool for it; below 0 after a sentence. */
int packet_port_open(uint16_t *port_id, struct rte_mempool **pool, unsigned int mtu);
void packet_port_close(uint16_t port_id, struct rte_mempool *pool);

#endif
