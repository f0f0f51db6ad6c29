/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "fuzz_vring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in;
	struct sl_vring_conf conf = {.size = 1};
	static struct sl_vmem mem;
	struct sl_vring r;

	if (size < 6)
		return 0;
	in = (struct fuzz_input){data + 6, size - 6};
	conf.features = data[0] & (SL_VRING_F_ALL & ~(uint32_t)SL_VRING_F_PACKED);
	conf.size = (uint16_t)(1u << data[1] % 5);
	conf.next_avail = (uint16_t)(data[2] | data[3] << 8);
	conf.next_used = (uint16_t)(data[4] | data[5] << 8);
	conf.desc = fuzz_take(&in, conf.size * sizeof(struct vring_desc));
	conf.avail = fuzz_take(&in, 6 + 2 * (size_t)conf.size);
	conf.used = fuzz_take(&in, 6 + 8 * (size_t)conf.size);
	fuzz_memory(&in, &mem);
	if (sl_vmem_check(&mem) != 0 || sl_vring_init(&r, &conf) != 0)
		abort();
	fuzz_serve(&r, &mem);
	fuzz_memory_free(&mem);
	free(conf.desc);
	free(conf.avail);
	free(conf.used);
	return 0;
}
