/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Vnet headers: 10 bytes, then the packet. An accepted one never points out of its packet, and the
 * segments of one that can be cut have all of its payload, and no more. */
#include <stdlib.h>
#include <string.h>

#include "sl_assert.h"
#include "sl_vnet.h"

static void
cut(const struct sl_vnet *v, const uint8_t *packet, uint32_t len)
{
	struct sl_vnet_cut c;
	uint32_t payload = 0;
	uint8_t *front;

	if (sl_vnet_cut(v, packet, len, &c) != 0)
		return;
	SL_ASSERT(c.front_len + c.payload == len && c.segments > 0);
	front = malloc(c.front_len); /* just as large, so that sanitizers see what is beyond */
	for (uint32_t i = 0; front != NULL && i < c.segments; i++) {
		uint32_t part = sl_vnet_cut_payload(&c, i);

		SL_ASSERT(part <= v->gso_size && (part > 0 || c.payload == 0));
		sl_vnet_cut_front(&c, i, front);
		payload += part;
	}
	SL_ASSERT(front == NULL || payload == c.payload);
	free(front);
}

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
		if (v.gso != SL_VNET_GSO_NONE)
			cut(&v, packet, len);
		if (v.csum) {
			SL_ASSERT(v.csum_start + v.csum_offset + 2u <= len);
			sl_vnet_complete(packet, len, &v);
		}
	}
	free(packet);
	return 0;
}
