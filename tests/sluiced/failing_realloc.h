/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FAILING_REALLOC_H
#define FAILING_REALLOC_H

/* realloc, which fails once after so many calls; below 0 never. For one file of a program that is
 * linked with --wrap=realloc. */
#include <stddef.h>

static int fail_after = -1;
void *__wrap_realloc(void *p, size_t size);
void *__real_realloc(void *p, size_t size);

void *
__wrap_realloc(void *p, size_t size)
{
	if (fail_after == 0)
		return NULL;
	fail_after -= fail_after > 0;
	return __real_realloc(p, size);
}

#endif
