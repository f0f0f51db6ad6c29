/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pktring_priv.h"
#include "sl_errno.h"

/* A client that could truncate the file would make the next access here a SIGBUS. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Populating more than there is would end other programs before it failed here. */
static bool
fits_machine(size_t bytes)
{
	return bytes / (size_t)sysconf(_SC_PAGESIZE) <= (size_t)sysconf(_SC_PHYS_PAGES) / 2;
}

static int
sized_memfd(size_t bytes)
{
	int fd = sl_sys(memfd_create("sluice-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	int ret;

	if (fd < 0)
		return fd;
	/* Whatever keeps a file from having that size is want of memory to the caller. */
	ret = ftruncate(fd, (off_t)bytes) == 0 ? sl_sys(fcntl(fd, F_ADD_SEALS, SEALS)) : -ENOMEM;
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}

int
sl_pktring_mem_alloc(size_t bytes, struct sl_pktring_mem *mem)
{
	int fd = fits_machine(bytes) ? sized_memfd(bytes) : -ENOMEM;
	void *addr;

	if (fd < 0)
		return fd;
	/* Populated now: no burst shall meet a page fault, and want of memory shows here. */
	addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (addr == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	*mem = (struct sl_pktring_mem){.addr = addr, .bytes = bytes, .fd = fd};
	return 0;
}

void
sl_pktring_mem_free(struct sl_pktring_mem *mem)
{
	if (mem->addr == NULL)
		return;
	munmap(mem->addr, mem->bytes);
	close(mem->fd);
	mem->addr = NULL;
}
