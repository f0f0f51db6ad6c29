/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef PKTRING_HELLO_H
#define PKTRING_HELLO_H

#include "sl_pktring.h"
#include "sl_pktring_wire.h"

/* A client's wish, checked. bytes of a geometry are 0 for a ring that it does not want. */
struct pktring_wish {
	uint16_t queue;
	uint16_t protocol;
	bool loss, has_off;
	struct sl_pktring_geo tx, rx;
};

/**
 * Check a message that came as a hello.
 *
 * @param message   len bytes, a private copy
 * @param queues    queue numbers are below this
 * @param most      most bytes that a ring may have
 * @param why       set to a sentence when the result is not 0
 * @return          0; -EPROTO no hello, or no version in common; -EINVAL; -ENOMEM beyond `most`
 */
int pktring_hello_check(const void *message, size_t len, uint16_t queues, size_t most,
	struct pktring_wish *wish, const char **why);

#endif
