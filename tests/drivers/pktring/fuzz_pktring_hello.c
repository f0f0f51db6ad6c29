/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Messages from clients: whatever is taken for a hello describes rings that can be made. */
#include <string.h>

#include "hello.h"
#include "sl_assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pktring_wish wish;
	const char *why = NULL;
	int ret = pktring_hello_check(data, size, 4, 1 << 20, &wish, &why);

	SL_ASSERT(ret <= 0);
	if (ret != 0) {
		SL_ASSERT(why != NULL && strlen(why) < 96);
		return 0;
	}
	SL_ASSERT(wish.queue < 4 || wish.queue == SL_PKTRING_ANY_QUEUE);
	SL_ASSERT(wish.tx.bytes + wish.rx.bytes > 0);
	SL_ASSERT(wish.tx.bytes <= 1 << 20 && wish.rx.bytes <= 1 << 20);
	return 0;
}
