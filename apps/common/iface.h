/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef APP_IFACE_H
#define APP_IFACE_H

#include <stdbool.h>

/**
 * Exit with a sentence unless the interface exists, is up, carries Ethernet and may be opened.
 * From then until the process ends the interface hands up what the two flags ask for.
 */
void iface_check(const char *iface, bool promiscuous, bool group);

/** Find the ring sockets that the driver opened on the interface: app_iface_missed asks them. */
void iface_opened(const char *iface);

#endif
