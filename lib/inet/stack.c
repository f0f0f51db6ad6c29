/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "claim.h"
#include "inet_priv.h"
#include "neigh.h"
#include "reasm.h"
#include "table.h"

#define NEIGHBOURS_DEFAULT 1024u
#define NEIGHBOURS_MIN 8u
#define NEIGHBOURS_MAX 65536u
#define ICMP_ERRORS_DEFAULT 1000u

/* Zeroed, and starting on a cache line. */
void *
inet_alloc(size_t bytes)
{
	size_t whole = RTE_ALIGN_CEIL(bytes, (size_t)SL_CACHE_LINE);
	void *p = aligned_alloc(SL_CACHE_LINE, whole);

	if (p != NULL)
		memset(p, 0, whole);
	return p;
}

static int
rcu_create(uint16_t workers, struct rte_rcu_qsbr **out)
{
	struct rte_rcu_qsbr *rcu = inet_alloc(rte_rcu_qsbr_get_memsize(workers));

	if (rcu == NULL)
		return -ENOMEM;
	if (rte_rcu_qsbr_init(rcu, workers) != 0) {
		free(rcu);
		return -EINVAL;
	}
	/* Registered but offline: only those that poll take part in grace periods. */
	for (uint16_t i = 0; i < workers; i++)
		SL_ASSERT(rte_rcu_qsbr_thread_register(rcu, i) == 0);
	*out = rcu;
	return 0;
}

static void
workers_destroy(struct sl_inet *inet)
{
	for (uint16_t i = 0; i < inet->workers; i++)
		inet_reasm_destroy(inet->worker[i].reasm);
	free(inet->worker);
}

static int
workers_create(struct sl_inet *inet, const struct sl_inet_conf *conf)
{
	int ret = 0;

	inet->worker = inet_alloc(inet->workers * sizeof(*inet->worker));
	if (inet->worker == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < inet->workers && ret == 0; i++) {
		inet->worker[i].tokens = UINT64_MAX / 2; /* start with a full bucket */
		inet->worker[i].reasm_due_ns = UINT64_MAX;
		ret = inet_reasm_create(conf, &inet->worker[i].reasm);
	}
	if (ret != 0)
		workers_destroy(inet);
	return ret;
}

int
sl_inet_create(const struct sl_inet_conf *conf, struct sl_inet **out)
{
	uint32_t neighbours = conf->neighbours != 0 ? conf->neighbours : NEIGHBOURS_DEFAULT;
	struct sl_inet *inet;
	int ret;

	if (conf->workers == 0 || conf->workers > SL_INET_WORKERS_MAX)
		return -EINVAL;
	if (neighbours < NEIGHBOURS_MIN || neighbours > NEIGHBOURS_MAX)
		return -EINVAL;
	inet = inet_alloc(sizeof(*inet));
	if (inet == NULL)
		return -ENOMEM;
	inet->workers = conf->workers;
	inet->now_ns = conf->now_ns;
	inet->now_arg = conf->now_arg;
	inet->ns_per_tick_q32 = (uint64_t)(((inet_u128)NSEC_PER_SEC << 32) / rte_get_tsc_hz());
	inet->icmp_errors_per_s =
		conf->icmp_errors_per_s != 0 ? conf->icmp_errors_per_s : ICMP_ERRORS_DEFAULT;
	ret = workers_create(inet, conf);
	if (ret != 0)
		goto free_inet;
	ret = rcu_create(inet->workers, &inet->rcu);
	if (ret != 0)
		goto free_workers;
	ret = inet_table_create(conf, &inet->table);
	if (ret != 0)
		goto free_rcu;
	ret = inet_neigh_create(neighbours, &inet->neigh);
	if (ret != 0)
		goto free_table;
	*out = inet;
	return 0;

free_table:
	inet_table_destroy(inet);
free_rcu:
	free(inet->rcu);
free_workers:
	workers_destroy(inet);
free_inet:
	free(inet);
	return ret;
}

void
sl_inet_destroy(struct sl_inet *inet)
{
	if (inet == NULL)
		return;
	sl_inet_claims_destroy(inet->claims);
	inet_claim_workers_destroy(inet);
	inet_neigh_destroy(inet->neigh);
	for (uint32_t i = 0; i < inet->port_count; i++)
		inet_port_free(inet->port[i], inet->workers);
	inet_table_destroy(inet);
	free(inet->rcu);
	workers_destroy(inet);
	free(inet);
}

void
sl_inet_set_udp(struct sl_inet *inet, const struct sl_inet_udp_ops *ops, void *arg)
{
	inet->udp = ops;
	inet->udp_arg = arg;
}

uint16_t
sl_inet_workers(const struct sl_inet *inet)
{
	return inet->workers;
}

void
sl_inet_outcomes(const struct sl_inet *inet, uint16_t worker, uint64_t *counts)
{
	memset(counts, 0, SL_OUTCOME_COUNT * sizeof(*counts));
	for (uint16_t i = 0; i < inet->workers; i++) {
		if (worker != SL_INET_NO_WORKER && worker != i)
			continue;
		for (int k = 0; k < SL_OUTCOME_COUNT; k++)
			counts[k] += sl_load_relaxed(&inet->worker[i].outcome[k]);
	}
}

uint64_t
sl_inet_received(const struct sl_inet *inet, uint16_t worker)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < inet->workers; i++) {
		if (worker == SL_INET_NO_WORKER || worker == i)
			sum += sl_load_relaxed(&inet->worker[i].received);
	}
	return sum;
}

uint64_t
sl_inet_held(const struct sl_inet *inet, uint16_t worker)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < inet->workers; i++) {
		if (worker == SL_INET_NO_WORKER || worker == i)
			sum += sl_load_relaxed(&inet->worker[i].held);
	}
	return sum;
}

void
sl_inet_worker_online(struct sl_inet *inet, uint16_t worker)
{
	struct inet_worker *w = &inet->worker[worker];

	SL_ASSERT(worker < inet->workers);
	if (w->online)
		return;
	w->online = true;
	rte_rcu_qsbr_thread_online(inet->rcu, worker);
}

void
sl_inet_worker_offline(struct sl_inet *inet, uint16_t worker)
{
	struct inet_worker *w = &inet->worker[worker];

	SL_ASSERT(worker < inet->workers);
	if (!w->online)
		return;
	w->online = false;
	rte_rcu_qsbr_thread_offline(inet->rcu, worker);
}

void
sl_inet_synchronize(struct sl_inet *inet, uint16_t worker)
{
	/* The inlined halves of rte_rcu_qsbr_synchronize: ThreadSanitizer sees their ordering, and
	 * not that of the library's. */
	uint64_t token = rte_rcu_qsbr_start(inet->rcu);

	/* A worker that is not online must not be reported quiescent: that would put it online. */
	if (worker != SL_INET_NO_WORKER && inet->worker[worker].online)
		rte_rcu_qsbr_quiescent(inet->rcu, worker);
	rte_rcu_qsbr_check(inet->rcu, token, true);
}
