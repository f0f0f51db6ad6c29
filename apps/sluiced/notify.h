/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_NOTIFY_H
#define SLUICED_NOTIFY_H

/**
 * @file
 * Messages to the init system that started us: datagrams of KEY=VALUE lines to the unix socket that
 * $NOTIFY_SOCKET names. Without the variable they go nowhere.
 */

#include <stdbool.h>
#include <stdint.h>

/** Ready, or ready again after a reload; what `status` shows. */
void notify_ready(const char *status);
/** A reload has begun. */
void notify_reloading(void);
/** The end has begun. */
void notify_stopping(void);
/** Still alive. */
void notify_watchdog(void);
/** Time between two signs of life that the init system wants at least, in ms; 0: none. */
uint64_t notify_watchdog_ms(void);

#endif
