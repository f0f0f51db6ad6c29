/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TAPVU_ARGS_H
#define TAPVU_ARGS_H

/* What --vdev=net_tapvu0,... says. */

#include <rte_log.h>

#include "sl_frag.h"

#define TAPVU_QUEUES_MAX 32u
#define TAPVU_PATH_MAX 108 /* of a Unix socket */
#define TAPVU_NAME_MAX 16

extern int tapvu_logtype;

#define TAPVU_LOG(level, ...) rte_log(RTE_LOG_##level, tapvu_logtype, "tapvu: " __VA_ARGS__)

struct tapvu_args {
	char path[TAPVU_PATH_MAX];
	char tap[TAPVU_NAME_MAX]; /* "": no bridge */
	uint32_t queues;	  /* virtqueue pairs of a frontend */
	uint32_t taps;		  /* receive queues of the port */
	uint32_t client;
	enum sl_frag_mode frag;
	uint32_t uring; /* 0: the bridge makes plain calls */
};

/**
 * Read the device's arguments.
 *
 * @return   0; -EINVAL after a log line that says what is wrong and what would be right; -ENOMEM
 */
int tapvu_args_parse(const char *text, struct tapvu_args *out) SL_MUST_CHECK;

#endif
