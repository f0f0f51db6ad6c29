/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A sendto() of the program's own, which the plugin finds before the C library's: it fails on
 * demand. It stands alone because the C library declares the call with a union for an address. */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "fault.h"

int fault_calls;
int fault_errno;

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const void *to, unsigned int len);

ssize_t
sendto(int fd, const void *buf, size_t n, int flags, const void *to, unsigned int len)
{
	if (fault_calls > 0) {
		fault_calls--;
		errno = fault_errno;
		return -1;
	}
	return syscall(SYS_sendto, fd, buf, n, flags, to, len);
}
