/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef APP_IFACE_H
#define APP_IFACE_H

#include <stdbool.h>
#include <stddef.h>

/** Is something wrong with the interface? The sentence, without its end, goes to text. */
bool iface_fault(const char *iface, char *text, size_t size);

/** Exit with a sentence unless the interface exists, is up, carries Ethernet and may be opened. */
void iface_check(const char *iface);

#endif
