/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

/* A burst is over in microseconds; this only keeps the waiter off the core meanwhile. */
#define WAIT_US 50

static int
membarrier(int command)
{
	return sl_sys((int)syscall(SYS_membarrier, command, 0, 0));
}

/* A full barrier on all cores that run a thread of this process. */
static void
barrier_everywhere(void)
{
	int ret;

	ret = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (ret == -EPERM) { /* this process has not announced yet that it uses it */
		ret = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
		if (ret == 0)
			ret = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	}
	if (ret != 0)
		ret = membarrier(MEMBARRIER_CMD_GLOBAL);
	/* A sandbox may refuse the call. Store buffers drain within microseconds; a sleep passes
	 * that many times over. */
	if (ret != 0)
		usleep(10000);
}

struct tpacket_ring *
tpacket_gate_close(struct tpacket_gate *g)
{
	/* TP1: bursts from now on find none. */
	struct tpacket_ring *ring = sl_exchange_acq_rel(&g->ring, NULL);

	if (ring == NULL)
		return NULL;
	barrier_everywhere();
	while (sl_load_acquire(&g->busy) != 0) /* TP1 */
		usleep(WAIT_US);
	return ring;
}

void
tpacket_gate_open(struct tpacket_gate *g, struct tpacket_ring *ring)
{
	sl_store_release(&g->ring, ring); /* TP1: ring and cursor before it */
}
