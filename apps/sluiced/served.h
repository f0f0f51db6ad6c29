/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_SERVED_H
#define SLUICED_SERVED_H

/**
 * @file
 * Sockets that a port's driver is to serve. A driver of this project's takes away what a killed
 * daemon has left at its path; DPDK's virtio-user and vhost do not, and would not start.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * The path at which DPDK's own driver of a virtual device will listen.
 *
 * @param devargs   "net_virtio_user0,path=/run/x,server=1": name and arguments
 * @param path      set on success, of size bytes
 * @return          false if it connects to others, is of another driver, or has a path too long
 */
bool served_path(const char *devargs, char *path, size_t size);

#endif
