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
	uint16_t lost;

	if (size < 6)
		return 0;
	in = (struct fuzz_input){data + 6, size - 6};
	conf.features = (data[0] & SL_VRING_F_ALL) | SL_VRING_F_PACKED;
	conf.size = (uint16_t)(1 + data[1] % 17);
	conf.next_avail = (uint16_t)(data[2] % conf.size | (data[3] & 1) << 15);
	conf.next_used = (uint16_t)(data[4] % conf.size | (data[5] & 1) << 15);
	conf.packed = fuzz_take(&in, conf.size * sizeof(struct vring_packed_desc));
	conf.driver_event = fuzz_take(&in, sizeof(struct vring_packed_desc_event));
	conf.device_event = fuzz_take(&in, sizeof(struct vring_packed_desc_event));
	fuzz_memory(&in, &mem);
	if (sl_vmem_check(&mem) != 0 || sl_vring_init(&r, &conf) != 0)
		abort();
	if ((data[3] & 2) != 0 && !sl_vring_recover(&r, &lost) && lost > 0)
		abort();
	fuzz_serve(&r, &mem);
	fuzz_memory_free(&mem);
	free(conf.packed);
	free(conf.driver_event);
	free(conf.device_event);
	return 0;
}
