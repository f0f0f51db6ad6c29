/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_EARLY_H
#define SLUICED_EARLY_H

/**
 * @file
 * SIGTERM and SIGINT while ports are made. A driver may wait there for its peer without end
 * (net_virtio_user as server does), and the main thread, which reads signals otherwise, with it.
 */

#include <pthread.h>
#include <stdbool.h>

struct early {
	pthread_t thread;
	bool running;
	int signals; /**< descriptor that has SIGTERM and SIGINT */
	int done;    /**< descriptor that says that the ports are there */
};

/**
 * From now on these signals end the process at once, with exit status 0. All threads block them.
 * What drivers have made by then stays as after SIGKILL. Without descriptors or threads it does
 * nothing.
 */
void early_begin(struct early *e);

/** Not any more: who reads signals later gets those that come from now on. */
void early_end(struct early *e);

#endif
