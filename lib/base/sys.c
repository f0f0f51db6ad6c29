/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* By itself, because the client library has it too and links no DPDK. */
#include <errno.h>

#include "sl_errno.h"

int
sl_sys(int result)
{
	return result < 0 ? -errno : result;
}
