/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TEST_POOL_H
#define SL_TEST_POOL_H

/**
 * @file
 * A mempool whose free objects lie on a stack under a mutex. ThreadSanitizer does not see the ordering
 * inside of DPDK's own mempool drivers, which come compiled, and takes an mbuf that one thread frees
 * and another allocates for a race; a mutex it understands. Name the operations to
 * rte_pktmbuf_pool_create_by_ops.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <rte_malloc.h>
#include <rte_mempool.h>

#include "sl_shared.h"

#define TEST_POOL_OPS "test_mutex"

/* For tests that want DPDK's own pool wherever that is no trouble. */
#ifdef SL_TSAN
#define TEST_POOL_OPS_TSAN TEST_POOL_OPS
#else
#define TEST_POOL_OPS_TSAN NULL
#endif

struct test_pool {
	pthread_mutex_t lock;
	unsigned int n;
	void *object[];
};

static int
test_pool_alloc(struct rte_mempool *mp)
{
	/* From EAL, as the pool itself: LeakSanitizer does not look for pointers there. */
	struct test_pool *p = rte_zmalloc(
		NULL, sizeof(*p) + mp->size * sizeof(p->object[0]), 0);

	if (p == NULL)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	mp->pool_data = p;
	return 0;
}

static void
test_pool_free(struct rte_mempool *mp)
{
	rte_free(mp->pool_data);
}

static int
test_pool_put(struct rte_mempool *mp, void *const *objects, unsigned int n)
{
	struct test_pool *p = mp->pool_data;

	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; i < n; i++)
		p->object[p->n++] = objects[i];
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int
test_pool_get(struct rte_mempool *mp, void **objects, unsigned int n)
{
	struct test_pool *p = mp->pool_data;
	int ret = -ENOBUFS;

	pthread_mutex_lock(&p->lock);
	if (p->n >= n) {
		for (unsigned int i = 0; i < n; i++)
			objects[i] = p->object[--p->n];
		ret = 0;
	}
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static unsigned int
test_pool_count(const struct rte_mempool *mp)
{
	struct test_pool *p = mp->pool_data;
	unsigned int n;

	pthread_mutex_lock(&p->lock);
	n = p->n;
	pthread_mutex_unlock(&p->lock);
	return n;
}

static const struct rte_mempool_ops test_pool_ops = {
	.name = TEST_POOL_OPS,
	.alloc = test_pool_alloc,
	.free = test_pool_free,
	.enqueue = test_pool_put,
	.dequeue = test_pool_get,
	.get_count = test_pool_count,
};

RTE_MEMPOOL_REGISTER_OPS(test_pool_ops)

#endif
