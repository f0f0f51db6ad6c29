/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Hash tables whose keys strangers choose are seeded by the kernel, each stack anew, and made
 * without it, too. */
#include <errno.h>
#include <sys/random.h>

#include <rte_hash.h>

#include "claim.h"
#include "neigh_priv.h"
#include "reasm.h"
#include "seed.h"
#include "sl_test.h"
#include "sl_test_eal.h"

/* What the kernel gives out: `next`, which grows, or nothing. */
static uint32_t next;
static bool refuses;
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

ssize_t
__wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	(void)flags;
	REQUIRE(len == sizeof(next));
	if (refuses) {
		errno = EAGAIN;
		return -1;
	}
	next++;
	memcpy(buf, &next, sizeof(next));
	return (ssize_t)len;
}

static struct sl_inet *
stack_create(void)
{
	struct sl_inet_conf conf = {.workers = 1};
	struct sl_inet *inet = NULL;

	REQUIRE(sl_inet_create(&conf, &inet) == 0);
	return inet;
}

static struct sl_inet_claims *
claims_create(struct sl_inet *inet)
{
	static const struct sl_inet_claim_ops ops;
	uint8_t prefix;
	struct sl_inet_claim claim = {.kind = SL_CLAIM_TO, .udp_port = 53};
	struct sl_inet_claims *claims = NULL;

	REQUIRE(sl_addr_parse("198.18.0.2", &claim.addr, &prefix) == 0);
	REQUIRE(sl_inet_claims_create(inet, &claim, 1, &ops, NULL, &claims) == 0);
	return claims;
}

/* Where each table puts a key of zeros. */
struct places {
	uint32_t neigh, claim, fragment;
};

static struct places
look(void)
{
	static const uint8_t zeros[64];
	struct sl_inet *inet = stack_create();
	struct sl_inet_claims *claims = claims_create(inet);
	struct rte_hash *fragments = inet_frag_hash_create("t", 8, 16);
	struct places p;

	REQUIRE(fragments != NULL);
	p.neigh = rte_hash_hash(inet->neigh->hash, zeros);
	p.claim = rte_hash_hash(claims->hash, zeros);
	p.fragment = rte_hash_hash(fragments, zeros);
	rte_hash_free(fragments);
	sl_inet_claims_destroy(claims);
	sl_inet_destroy(inet);
	return p;
}

static void
each_stack_has_seeds_of_its_own(void)
{
	struct places a = look(), b = look();

	CHECK(a.neigh != b.neigh);
	CHECK(a.claim != b.claim);
	CHECK(a.fragment != b.fragment);
}

static void
one_seed_makes_one_table(void)
{
	struct places a, b;

	next = 100;
	a = look();
	next = 100;
	b = look();
	CHECK(a.neigh == b.neigh && a.claim == b.claim && a.fragment == b.fragment);
}

static void
a_kernel_that_refuses_is_no_obstacle(void)
{
	struct places a, b;

	refuses = true;
	a = look();
	b = look();
	refuses = false;
	CHECK(a.neigh != b.neigh);
	CHECK(a.claim != b.claim);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=error") >= 0);
	SL_TEST_RUN(each_stack_has_seeds_of_its_own);
	SL_TEST_RUN(one_seed_makes_one_table);
	SL_TEST_RUN(a_kernel_that_refuses_is_no_obstacle);
	return test_end();
}
