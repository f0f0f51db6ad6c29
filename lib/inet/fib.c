/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_fib.h>
#include <rte_fib6.h>

#include "fib.h"
#include "sl_dpdk.h"
#include "sl_errno.h"

#define NO_ROUTE UINT64_MAX

struct inet_fib {
	struct rte_fib *fib4; /* either */
	struct rte_fib6 *fib6;
	uint32_t n;
	struct inet_next_hop hop[];
};

int
inet_fib_create(bool v4, uint32_t n, struct inet_fib **out)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	struct rte_fib_conf conf4 = {.type = RTE_FIB_DUMMY, .default_nh = NO_ROUTE};
	struct rte_fib6_conf conf6 = {.type = RTE_FIB6_DUMMY, .default_nh = NO_ROUTE};
	struct inet_fib *fib = inet_alloc(sizeof(*fib) + n * sizeof(fib->hop[0]));
	char name[32];
	int ret;

	if (fib == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "sl_fib_%u", sl_fetch_add_relaxed(&serial, 1u));
	conf4.max_routes = (int)n + 1;
	conf6.max_routes = (int)n + 1;
	if (v4)
		fib->fib4 = rte_fib_create(name, SOCKET_ID_ANY, &conf4);
	else
		fib->fib6 = rte_fib6_create(name, SOCKET_ID_ANY, &conf6);
	if (fib->fib4 == NULL && fib->fib6 == NULL) {
		ret = sl_rte_error();
		free(fib);
		return ret;
	}
	*out = fib;
	return 0;
}

void
inet_fib_destroy(struct inet_fib *fib)
{
	if (fib == NULL)
		return;
	rte_fib_free(fib->fib4);
	rte_fib6_free(fib->fib6);
	free(fib);
}

int
inet_fib_add(struct inet_fib *fib, const struct sl_addr *dst, uint8_t prefix,
	const struct inet_next_hop *hop)
{
	uint32_t ip = rte_be_to_cpu_32(inet_to_v4(dst));
	int ret;

	fib->hop[fib->n] = *hop;
	if (fib->fib4 != NULL)
		ret = rte_fib_add(fib->fib4, ip, prefix, fib->n);
	else
		ret = rte_fib6_add(fib->fib6, sl_fib6_addr(dst->b), prefix, fib->n);
	if (ret == 0)
		fib->n++;
	return ret;
}

const struct inet_next_hop *
inet_fib_find(const struct inet_fib *fib, const struct sl_addr *dst)
{
	uint64_t value = NO_ROUTE;
	uint32_t ip;
	struct sl_addr key = *dst;

	if (fib == NULL)
		return NULL;
	if (fib->fib4 != NULL) {
		ip = rte_be_to_cpu_32(inet_to_v4(dst));
		rte_fib_lookup_bulk(fib->fib4, &ip, &value, 1);
	} else {
		rte_fib6_lookup_bulk(fib->fib6, sl_fib6_addrs(key.b), &value, 1);
	}
	return value == NO_ROUTE ? NULL : &fib->hop[value];
}
