/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef CLAIM_TEST_H
#define CLAIM_TEST_H

/*
 * One who claims: datagrams to port 9 of our addresses, and from port 4000 of the peer's.
 */
#include <errno.h>

#include "reasm_test.h"
#include "sl_inet_claim.h"

#define CLAIMED_MAX 256

/* What was handed over since the last c_drop; the mbufs are the test's. */
static struct sl_inet_claimed c_got[CLAIMED_MAX];
static uint8_t c_head[CLAIMED_MAX][SL_INET_CLAIM_HEAD];
static uint64_t c_follow[CLAIMED_MAX];
static unsigned int c_n;
static int c_arg;

static inline void
c_take(void *arg, uint16_t worker, uint64_t now_ns, struct sl_inet_claimed *c, uint16_t n)
{
	REQUIRE(arg == &c_arg && worker == 0 && now_ns == t_now);
	REQUIRE(n >= 1 && n <= SL_INET_BURST && c_n + n <= CLAIMED_MAX);
	for (uint16_t i = 0; i < n; i++, c_n++) {
		c_got[c_n] = c[i];
		memcpy(c_head[c_n], c[i].head, c[i].head_len);
		c_follow[c_n] = c[i].follow != NULL ? *c[i].follow : 0;
		/* The first one leaves word for those that follow. */
		if (c[i].follow != NULL && !c[i].later)
			*c[i].follow = 77;
	}
}

static const struct sl_inet_claim_ops c_ops = {.input = c_take};

static inline void
c_drop(void)
{
	for (unsigned int i = 0; i < c_n; i++)
		rte_pktmbuf_free(c_got[i].m);
	c_n = 0;
}

static inline struct sl_inet_claim
c_claim(enum sl_inet_claim_kind kind, const char *addr, uint16_t port)
{
	return (struct sl_inet_claim){.kind = kind,
		.addr = t_addr(addr),
		.udp_port = rte_cpu_to_be_16(port),
		.owner = &c_head[port % 100]};
}

static inline void
c_set(const struct sl_inet_claim *claims, uint32_t n)
{
	struct sl_inet_claims *set = NULL;

	REQUIRE(sl_inet_claims_create(t_inet, claims, n, &c_ops, &c_arg, &set) == 0);
	sl_inet_claims_destroy(sl_inet_claims_publish(t_inet, set));
}

/* In a VLAN, or 0 for none. */
static inline void
c_open_in(uint16_t vlan)
{
	struct sl_inet_claim claims[] = {c_claim(SL_CLAIM_TO, "198.18.0.2", 9),
		c_claim(SL_CLAIM_TO, "2001:db8::2", 9), c_claim(SL_CLAIM_FROM, "198.18.0.1", 4000),
		c_claim(SL_CLAIM_FROM, "2001:db8::1", 4000)};

	t_open(&(struct sl_inet_port_conf){.vlan = vlan});
	c_set(claims, SL_COUNT_OF(claims));
}

static inline void
c_open(void)
{
	c_open_in(0);
}

static inline void
c_close(void)
{
	c_drop();
	t_close();
}

#endif
