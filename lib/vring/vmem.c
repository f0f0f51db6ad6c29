/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "vring_priv.h"

int
sl_vmem_check(const struct sl_vmem *mem)
{
	uint64_t end = 0;

	if (mem->count > SL_VMEM_REGIONS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < mem->count; i++) {
		const struct sl_vmem_region *g = &mem->region[i];

		if (g->size == 0 || g->guest + g->size < g->guest || g->guest < end)
			return -EINVAL;
		end = g->guest + g->size;
	}
	return 0;
}

uint8_t *
sl_vmem_translate(const struct sl_vmem *mem, uint64_t guest, uint64_t *len)
{
	for (uint32_t i = 0; i < mem->count; i++) {
		const struct sl_vmem_region *g = &mem->region[i];
		uint64_t offset = guest - g->guest; /* huge when guest lies before the region */

		if (offset >= g->size)
			continue;
		*len = RTE_MIN(*len, g->size - offset);
		return g->host + offset;
	}
	return NULL;
}

static bool
is_mapped(const struct sl_vmem *mem, const void *part, uint64_t bytes)
{
	for (uint32_t i = 0; i < mem->count; i++) {
		const struct sl_vmem_region *g = &mem->region[i];
		uint64_t offset = (uintptr_t)part - (uintptr_t)g->host;

		if (offset < g->size)
			return bytes <= g->size - offset;
	}
	return false;
}

bool
sl_vring_is_mapped(const struct sl_vring_conf *conf, const struct sl_vmem *mem)
{
	uint64_t size = conf->size;

	if ((conf->features & SL_VRING_F_PACKED) != 0)
		return is_mapped(mem, conf->packed, size * sizeof(*conf->packed)) &&
		       is_mapped(mem, conf->driver_event, sizeof(*conf->driver_event)) &&
		       is_mapped(mem, conf->device_event, sizeof(*conf->device_event));
	/* Flags and index before the entries, an event index behind them. */
	return is_mapped(mem, conf->desc, size * sizeof(*conf->desc)) &&
	       is_mapped(mem, conf->avail, (3 + size) * sizeof(uint16_t)) &&
	       is_mapped(mem, conf->used,
		       3 * sizeof(uint16_t) + size * sizeof(struct vring_used_elem));
}

bool
vring_table_read(const struct sl_vmem *mem, uint64_t table, uint32_t index, struct vring_desc *copy)
{
	uint64_t guest = table + index * sizeof(*copy);
	uint8_t *to = (uint8_t *)copy;
	uint64_t left = sizeof(*copy);

	/* An entry may lie across two regions, so it may take several pieces. */
	while (left > 0) {
		uint64_t piece = left;
		const uint8_t *from = sl_vmem_translate(mem, guest, &piece);

		if (from == NULL)
			return false;
		memcpy(to, from, piece);
		to += piece;
		guest += piece;
		left -= piece;
	}
	sl_snapshot_barrier();
	return true;
}

uint32_t
sl_vring_copy_out(
	const struct sl_vring_span *span, uint16_t n, uint32_t skip, void *to, uint32_t len)
{
	uint32_t done = 0;

	for (uint16_t i = 0; i < n && done < len; i++) {
		uint32_t piece;

		if (skip >= span[i].len) {
			skip -= span[i].len;
			continue;
		}
		piece = RTE_MIN(span[i].len - skip, len - done);
		memcpy((uint8_t *)to + done, span[i].addr + skip, piece);
		done += piece;
		skip = 0;
	}
	return done;
}

uint32_t
sl_vring_copy_in(
	const struct sl_vring_span *span, uint16_t n, uint32_t skip, const void *from, uint32_t len)
{
	uint32_t done = 0;

	for (uint16_t i = 0; i < n && done < len; i++) {
		uint32_t piece;

		if (skip >= span[i].len) {
			skip -= span[i].len;
			continue;
		}
		piece = RTE_MIN(span[i].len - skip, len - done);
		memcpy(span[i].addr + skip, (const uint8_t *)from + done, piece);
		done += piece;
		skip = 0;
	}
	return done;
}
