/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mempool.h>
#include <rte_random.h>

#include "udp_priv.h"

#define SOCKETS_DEFAULT 1024u
#define SOCKETS_MAX 65536u
/* Slots of the flow table that wait for a grace period, on top of one for each socket. */
#define POSITIONS_SPARE 1024u

static pthread_mutex_t layers_lock = PTHREAD_MUTEX_INITIALIZER;
static SLIST_HEAD(, sl_udp) layers = SLIST_HEAD_INITIALIZER(layers);

static void
layer_free(struct sl_udp *udp)
{
	rte_hash_free(udp->flows);
	free(udp->port);
	free(udp->worker);
	free(udp->position);
	pthread_mutex_destroy(&udp->lock);
	free(udp);
}

static struct rte_hash *
flows_create(const struct sl_udp *udp)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {
		.name = name,
		.entries = udp->sockets_max + udp->positions_max,
		.key_len = sizeof(struct udp_key),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag =
			RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF | RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};

	snprintf(name, sizeof(name), "sl_udp_%p", (const void *)udp);
	return rte_hash_create(&params);
}

static int
tables_create(struct sl_udp *udp)
{
	size_t bytes = udp->workers * sizeof(*udp->worker);

	udp->port = calloc(UDP_PORTS, sizeof(*udp->port));
	udp->position = calloc(udp->positions_max, sizeof(*udp->position));
	udp->worker = aligned_alloc(SL_CACHE_LINE, bytes);
	udp->flows = flows_create(udp);
	if (udp->port == NULL || udp->position == NULL || udp->worker == NULL || udp->flows == NULL)
		return -ENOMEM;
	memset(udp->worker, 0, bytes);
	return 0;
}

/* Put the layer on the list, unless the stack has one there. */
static int
layer_register(struct sl_udp *udp)
{
	struct sl_udp *other;
	int ret = 0;

	pthread_mutex_lock(&layers_lock);
	SLIST_FOREACH(other, &layers, next)
	ret = other->inet == udp->inet ? -EBUSY : ret;
	if (ret == 0)
		SLIST_INSERT_HEAD(&layers, udp, next);
	pthread_mutex_unlock(&layers_lock);
	return ret;
}

int
sl_udp_create(struct sl_inet *inet, const struct sl_udp_conf *conf, struct sl_udp **out)
{
	struct sl_udp *udp;
	int ret;

	if (inet == NULL || conf->sockets > SOCKETS_MAX)
		return -EINVAL;
	udp = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*udp), (size_t)SL_CACHE_LINE));
	if (udp == NULL)
		return -ENOMEM;
	memset(udp, 0, sizeof(*udp));
	pthread_mutex_init(&udp->lock, NULL);
	TAILQ_INIT(&udp->closed);
	STAILQ_INIT(&udp->retired_vecs);
	udp->inet = inet;
	udp->pool = conf->pool;
	udp->workers = sl_inet_workers(inet);
	udp->sockets_max = conf->sockets != 0 ? conf->sockets : SOCKETS_DEFAULT;
	udp->positions_max = udp->sockets_max + POSITIONS_SPARE;
	udp->next_port = (uint32_t)rte_rand();
	ret = tables_create(udp);
	if (ret == 0)
		ret = layer_register(udp);
	if (ret != 0) {
		layer_free(udp);
		return ret;
	}
	sl_inet_set_udp(inet, &udp_inet_ops, udp);
	*out = udp;
	return 0;
}

void
sl_udp_destroy(struct sl_udp *udp)
{
	if (udp == NULL)
		return;
	SL_ASSERT(udp->open == 0);
	pthread_mutex_lock(&layers_lock);
	SLIST_REMOVE(&layers, udp, sl_udp, next);
	pthread_mutex_unlock(&layers_lock);
	udp_retired_free(udp, &udp->retired);
	for (uint32_t i = 0; i < UDP_PORTS; i++)
		free(udp->port[i].vec);
	udp_socks_free(udp);
	layer_free(udp);
}

void
sl_udp_set_poll(struct sl_udp *udp, uint16_t worker, void (*poll)(void *arg), void *arg)
{
	SL_ASSERT(worker < udp->workers);
	udp->worker[worker].poll = poll;
	udp->worker[worker].arg = arg;
}
