/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_hash.h>
#include <rte_jhash.h>

#include "claim.h"
#include "seed.h"
#include "sl_errno.h"

struct claim_key {
	struct sl_addr addr;
	uint16_t udp_port; /* 0: any of the address */
	uint16_t kind;
};

static int
check(const struct sl_inet_claim *c)
{
	if ((unsigned int)c->kind > SL_CLAIM_FROM || c->udp_port == 0)
		return -EINVAL;
	if (inet_is_multicast(&c->addr) || sl_addr_is_any(&c->addr))
		return -EINVAL;
	return c->own_first > c->own_last ? -EINVAL : 0;
}

static int
add(struct sl_inet_claims *set, const struct sl_inet_claim *c)
{
	struct claim_key key = {
		.addr = c->addr, .udp_port = c->udp_port, .kind = (uint16_t)c->kind};
	int ret = check(c);
	void *found;

	if (ret != 0)
		return ret;
	if (rte_hash_lookup_data(set->hash, &key, &found) >= 0)
		return -EEXIST;
	ret = rte_hash_add_key_data(set->hash, &key, (void *)(uintptr_t)c);
	key.udp_port = 0;
	if (ret == 0)
		ret = rte_hash_add_key_data(set->hash, &key, (void *)(uintptr_t)c);
	set->ports[c->kind][c->udp_port / 64] |= UINT64_C(1) << c->udp_port % 64;
	return ret != 0 ? -ENOMEM : 0;
}

static struct rte_hash *
hash_create(uint32_t serial, uint32_t n)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {.name = name,
		.entries = RTE_MAX(2 * n, 8u),
		.key_len = sizeof(struct claim_key),
		.hash_func = rte_jhash,
		.hash_func_init_val = inet_seed(),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "sl_claim_%u", serial);
	return rte_hash_create(&params);
}

/* What workers have of their own, before the first set is in force. */
static int
workers_create(struct sl_inet *inet)
{
	struct inet_claim_worker *cw;
	int ret = 0;

	if (inet->claim_worker != NULL)
		return 0;
	cw = inet_alloc(inet->workers * sizeof(*cw));
	if (cw == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < inet->workers && ret == 0; i++)
		ret = inet_claim_frags_create(inet, &cw[i].frags);
	inet->claim_worker = cw;
	if (ret != 0)
		inet_claim_workers_destroy(inet);
	return ret;
}

void
inet_claim_workers_destroy(struct sl_inet *inet)
{
	for (uint16_t i = 0; i < inet->workers && inet->claim_worker != NULL; i++)
		inet_claim_frags_destroy(inet->claim_worker[i].frags);
	free(inet->claim_worker);
	inet->claim_worker = NULL;
}

int
sl_inet_claims_create(struct sl_inet *inet, const struct sl_inet_claim *claims, uint32_t n,
	const struct sl_inet_claim_ops *ops, void *arg, struct sl_inet_claims **out)
{
	static uint32_t serials; /* (a) relaxed: unique in the process */
	struct sl_inet_claims *set;
	int ret = -ENOMEM;

	if (n > SL_INET_CLAIMS_MAX)
		return -ENOSPC;
	set = inet_alloc(sizeof(*set));
	if (set == NULL)
		return ret;
	set->ops = ops;
	set->arg = arg;
	set->n = n;
	set->serial = sl_fetch_add_relaxed(&serials, 1u) + 1u;
	set->claim = inet_alloc((n + 1) * sizeof(*set->claim));
	set->hash = set->claim != NULL ? hash_create(set->serial, n) : NULL;
	if (set->hash != NULL)
		ret = workers_create(inet);
	for (uint32_t i = 0; i < n && ret == 0; i++) {
		set->claim[i] = claims[i];
		ret = add(set, &set->claim[i]);
	}
	if (ret != 0) {
		sl_inet_claims_destroy(set);
		return ret;
	}
	*out = set;
	return 0;
}

struct sl_inet_claims *
sl_inet_claims_publish(struct sl_inet *inet, struct sl_inet_claims *set)
{
	struct sl_inet_claims *old = inet->claims; /* control calls alone write it */

	sl_store_release(&inet->claims, set); /* IN1 */
	return old;
}

void
sl_inet_claims_destroy(struct sl_inet_claims *set)
{
	if (set == NULL)
		return;
	rte_hash_free(set->hash);
	free(set->claim);
	free(set);
}

const struct sl_inet_claim *
inet_claim_find_slow(struct inet_claim_rx *crx, enum sl_inet_claim_kind kind,
	const struct sl_addr *addr, uint16_t udp_port, struct claim_memo *memo)
{
	struct claim_key key = {.addr = *addr, .udp_port = udp_port, .kind = (uint16_t)kind};
	void *found;

	if (rte_hash_lookup_data(crx->set->hash, &key, &found) < 0)
		return NULL;
	*memo = (struct claim_memo){.addr = key.addr,
		.udp_port = key.udp_port,
		.kind = key.kind,
		.serial = crx->set->serial,
		.claim = found};
	return found;
}

bool
inet_claim_has_addr(
	const struct sl_inet_claims *set, enum sl_inet_claim_kind kind, const struct sl_addr *addr)
{
	struct claim_key key = {.addr = *addr, .kind = (uint16_t)kind};
	void *found;

	return rte_hash_lookup_data(set->hash, &key, &found) >= 0;
}
