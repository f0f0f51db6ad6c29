/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "sl_assert.h"
#include "sl_errno.h"

int
sl_rte_error(void)
{
	return rte_errno > 0 ? -rte_errno : -EINVAL;
}

void
sl_set_rte_error(int error)
{
	rte_errno = error < 0 ? -error : error;
}

const char *
sl_strerror(int error)
{
	return rte_strerror(error < 0 ? -error : error);
}

void
sl_assert_fail(const char *expression, const char *file, int line)
{
	fprintf(stderr, "sluice: assertion failed: %s (%s:%d)\n", expression, file, line);
	abort();
}
