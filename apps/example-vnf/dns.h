/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stddef.h>
#include <stdint.h>

enum { DNS_QUERY_MAX = 512, DNS_GROWTH = 28 };

/* Turn a query into its answer, in place, at most DNS_GROWTH octets longer: one AAAA record. The octets
 * are the caller's own. Returns the answer's length, or 0: none at all. */
size_t dns_answer(uint8_t *m, size_t len);
