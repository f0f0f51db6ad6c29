/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_SLICE_H
#define UDPQ_SLICE_H

/**
 * @file
 * One slice of a load on EAL's lcores. The reader is the main lcore. "Other": producers are spread
 * over the worker lcores; "same": over all, the main one included, which then produces and reads in
 * turn. An lcore with several producers serves them in turn, as one that polls several receive
 * queues does; so no thread is ever scheduled away in favour of another one of the bench, and a
 * spinlock's holder keeps running.
 */

#include "udpq_load.h"

struct slice_result {
	uint64_t read;	 /**< datagrams within the slice */
	uint64_t cycles; /**< TSC cycles of it that the reader's thread ran */
	uint64_t busy;	 /**< of these, in turns of the reader that found something */
	/** Share of the slice that every thread ran, 0 to 1: else something else had its core. */
	double ran;
};

/** lcores that a load may use for producers: 0 means that the shape cannot run here. */
unsigned int slice_producer_lcores(const struct load_shape *shape);

/** Run producers and reader for that many TSC cycles, then drain. */
void slice_run(struct load *l, uint64_t cycles, struct slice_result *result);

#endif
