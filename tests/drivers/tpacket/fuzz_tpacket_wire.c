/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Input: a mode byte, a vnet header, a frame. The frame is parsed; if its vnet header is accepted,
 * checksum and segmentation do what it asks, and what they wrote is checked. */
#include <stdlib.h>
#include <string.h>

#include "sl_assert.h"
#include "tpacket_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
cut(const uint8_t *frame, uint32_t len, const struct tpacket_offload *o, bool partial)
{
	uint32_t total = 0, segments = 0, n;
	struct tpacket_gso g;
	uint8_t *out;

	if (tpacket_gso_start(&g, frame, len, o, partial) != 0)
		return;
	while ((n = tpacket_gso_next(&g)) != 0) {
		SL_ASSERT(n > g.hdr_len && n <= g.hdr_len + o->gso_size);
		out = malloc(n); /* exactly, so that a sanitizer sees the byte behind it */
		if (out == NULL)
			return;
		tpacket_gso_emit(&g, out);
		total += n - g.hdr_len;
		segments++;
		free(out);
	}
	SL_ASSERT(total == len - g.hdr_len && segments == g.index);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tpacket_headers h;
	struct tpacket_offload o;
	struct tpacket_vnet vnet;
	uint8_t *frame;
	uint32_t len;

	if (size < 1 + sizeof(vnet))
		return 0;
	memcpy(&vnet, data + 1, sizeof(vnet));
	len = (uint32_t)(size - 1 - sizeof(vnet));
	frame = malloc(len > 0 ? len : 1);
	if (frame == NULL)
		return 0;
	memcpy(frame, data + 1 + sizeof(vnet), len);
	tpacket_parse(frame, len, &h);
	SL_ASSERT((uint32_t)h.l2_len + h.l3_len + h.l4_len <= len || len < 14);
	if (tpacket_vnet_check(&vnet, len, &o) == 0) {
		if (o.gso_size != 0)
			cut(frame, len, &o, (data[0] & 1) != 0);
		if (o.csum_partial)
			tpacket_csum_complete(frame, len, o.csum_start, o.csum_offset);
	}
	free(frame);
	return 0;
}
