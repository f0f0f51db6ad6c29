/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <numa.h>

#include "sl_lcount.h"

#define WORKERS_MAX 65536u

static size_t
cells_bytes(uint32_t workers)
{
	return ((size_t)workers + 1) * sizeof(struct sl_lcount_cell);
}

/* On the wanted node if the machine has nodes; a single-node machine takes the heap. */
static void *
cells_alloc(size_t bytes, bool on_node, int socket)
{
	if (on_node)
		return numa_alloc_onnode(bytes, socket);
	return aligned_alloc(SL_CACHE_LINE, bytes);
}

int
sl_lcount_create(uint32_t workers, int socket, struct sl_lcount **out)
{
	struct sl_lcount *c;
	size_t bytes;

	if (workers == 0 || workers > WORKERS_MAX)
		return -EINVAL;
	bytes = cells_bytes(workers);
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->on_node = socket >= 0 && numa_available() >= 0 && socket <= numa_max_node();
	c->cells = cells_alloc(bytes, c->on_node, socket);
	if (c->cells == NULL) {
		free(c);
		return -ENOMEM;
	}
	memset(c->cells, 0, bytes);
	c->workers = workers;
	*out = c;
	return 0;
}

void
sl_lcount_destroy(struct sl_lcount *c)
{
	if (c == NULL)
		return;
	if (c->on_node)
		numa_free(c->cells, cells_bytes(c->workers));
	else
		free(c->cells);
	free(c);
}

__attribute__((noinline)) void
sl_lcount_add_slow(struct sl_lcount *c, uint32_t n)
{
	/* An index that is neither a worker's nor SHARED would be a second writer in disguise. */
	sl_fetch_add_release(&c->cells[c->workers].value, n); /* LC1 */
}

uint32_t
sl_lcount_sum(const struct sl_lcount *c)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i <= c->workers; i++)
		sum += sl_load_acquire(&c->cells[i].value); /* LC1 */
	return sum;
}

size_t
sl_lcount_memory(const struct sl_lcount *c)
{
	return sizeof(*c) + cells_bytes(c->workers);
}

void
sl_lcount_preset(struct sl_lcount *c, uint32_t worker, uint32_t value)
{
	SL_ASSERT(worker < c->workers || worker == SL_LCOUNT_SHARED);
	sl_store_relaxed(&c->cells[worker < c->workers ? worker : c->workers].value, value);
}
