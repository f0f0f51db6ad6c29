/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Vnet headers: 10 bytes, then the packet. An accepted one never points out of its packet. */
#include <stdlib.h>
#include <string.h>

#include "sl_assert.h"
#include "sl_vnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *packet;
	struct sl_vnet v;
	uint32_t len;

	if (size < 10 || size > 1 << 16)
		return 0;
	len = (uint32_t)size - 10;
	packet = malloc(len + 1);
	if (packet == NULL)
		return 0;
	memcpy(packet, data + 10, len);
	if (sl_vnet_check(data, packet, len, &v) == 0) {
		SL_ASSERT((uint32_t)v.l2_len + v.l3_len <= len);
		SL_ASSERT(v.gso == SL_VNET_GSO_NONE || v.gso_size > 0);
		if (v.csum) {
			SL_ASSERT(v.csum_start + v.csum_offset + 2u <= len);
			sl_vnet_complete(packet, len, &v);
		}
	}
	free(packet);
	return 0;
}
