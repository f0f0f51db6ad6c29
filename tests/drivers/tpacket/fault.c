/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Socket calls of the program's own, which the plugin finds before the C library's: they fail on
 * demand. They stand alone because the C library declares some with a union for an address. */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "fault.h"

int fault_calls;
int fault_errno;
int fault_option;
int fault_nth;

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const void *to, unsigned int len);
int setsockopt(int fd, int level, int option, const void *value, unsigned int len);
int socket(int domain, int type, int protocol);
int bind(int fd, const void *address, unsigned int len);

/* Counts calls that set up a port; the chosen one fails. */
static int
is_nth(void)
{
	if (fault_nth == 0 || --fault_nth != 0)
		return 0;
	errno = ENOMEM;
	return 1;
}

int
setsockopt(int fd, int level, int option, const void *value, unsigned int len)
{
	if (is_nth())
		return -1;
	if (fault_option != 0 && option == fault_option) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, option, value, len);
}

int
socket(int domain, int type, int protocol)
{
	return is_nth() ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int
bind(int fd, const void *address, unsigned int len)
{
	return is_nth() ? -1 : (int)syscall(SYS_bind, fd, address, len);
}

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
