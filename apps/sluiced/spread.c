/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_jhash.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "sl_assert.h"
#include "sl_shared.h"
#include "spread.h"

#define TAG_LEN 4u
/* Ethernet, two tags, IPv4 with all options or IPv6, ports. */
#define HEAD_MAX (RTE_ETHER_HDR_LEN + 2 * TAG_LEN + 60u + 4u)
#define IP4_LEN 20u
#define IP6_LEN 40u
#define IP4_FRAGMENT 0x3fffu /* more fragments, or not the first */

struct target {
	struct rte_ring *ring;		 /* (c) */
	SL_CACHE_ALIGNED uint64_t taken; /* the target's */
};

struct spread {
	uint16_t targets;		  /* (c) */
	uint32_t seed;			  /* (c) */
	SL_CACHE_ALIGNED uint64_t passed; /* target 0's */
	uint64_t full;			  /* target 0's */
	struct target target[SPREAD_TARGETS_MAX];
};

int
spread_create(uint16_t targets, uint32_t seed, struct spread **out)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	struct spread *s;
	char name[32];

	if (targets < 2 || targets > SPREAD_TARGETS_MAX)
		return -EINVAL;
	s = aligned_alloc(SL_CACHE_LINE, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->targets = targets;
	s->seed = seed;
	for (uint16_t i = 1; i < targets; i++) {
		snprintf(
			name, sizeof(name), "sluiced_spread_%u", sl_fetch_add_relaxed(&serial, 1u));
		s->target[i].ring = rte_ring_create(name, SPREAD_RING, (int)rte_socket_id(),
			RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
		if (s->target[i].ring == NULL) {
			spread_destroy(s);
			return -ENOMEM;
		}
	}
	*out = s;
	return 0;
}

void
spread_destroy(struct spread *s)
{
	struct rte_mbuf *m;

	for (uint16_t i = 1; s != NULL && i < s->targets; i++) {
		struct rte_ring *ring = s->target[i].ring;

		while (ring != NULL && rte_ring_dequeue(ring, (void **)&m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(ring);
	}
	free(s);
}

/* ---- the hash ---- */

static uint32_t
get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Both addresses, protocol and ports; what does not count is zero. */
struct flow_words {
	uint8_t addrs[32];
	uint8_t ports[4];
	uint32_t proto;
};

static bool
has_ports(uint32_t proto)
{
	return proto == IPPROTO_UDP || proto == IPPROTO_TCP;
}

static bool
read_ip4(const uint8_t *p, uint32_t n, struct flow_words *f)
{
	uint32_t len = n >= IP4_LEN ? (p[0] & 0xfu) * 4 : 0;

	if (len < IP4_LEN || p[0] >> 4 != 4)
		return false;
	memcpy(f->addrs, p + 12, 8);
	if ((get16(p + 6) & IP4_FRAGMENT) != 0 || !has_ports(p[9]) || n < len + 4)
		return true;
	f->proto = p[9];
	memcpy(f->ports, p + len, 4);
	return true;
}

static bool
read_ip6(const uint8_t *p, uint32_t n, struct flow_words *f)
{
	if (n < IP6_LEN || p[0] >> 4 != 6)
		return false;
	memcpy(f->addrs, p + 8, 32);
	/* Behind other headers there may be a fragment's, so addresses must do. */
	if (!has_ports(p[6]) || n < IP6_LEN + 4)
		return true;
	f->proto = p[6];
	memcpy(f->ports, p + IP6_LEN, 4);
	return true;
}

/* False if it is no IP packet. */
static bool
read_flow(const uint8_t *p, uint32_t n, struct flow_words *f)
{
	uint32_t at = RTE_ETHER_HDR_LEN;
	uint32_t type = n >= at ? get16(p + at - 2) : 0;

	for (int tags = 0; tags < 2 && n >= at + TAG_LEN; tags++) {
		if (type != RTE_ETHER_TYPE_VLAN && type != RTE_ETHER_TYPE_QINQ)
			break;
		at += TAG_LEN;
		type = get16(p + at - 2);
	}
	if (type == RTE_ETHER_TYPE_IPV4)
		return read_ip4(p + at, n - at, f);
	return type == RTE_ETHER_TYPE_IPV6 && read_ip6(p + at, n - at, f);
}

uint16_t
spread_pick(const struct spread *s, const struct rte_mbuf *m)
{
	struct flow_words f = {.proto = 0};
	uint8_t head[HEAD_MAX];
	uint32_t n = RTE_MIN(m->pkt_len, (uint32_t)HEAD_MAX);
	const uint8_t *p = rte_pktmbuf_read(m, 0, n, head);

	if (p == NULL || !read_flow(p, n, &f))
		return 0;
	/* By the high bits of a product: no division, and all targets alike. */
	return (uint16_t)((uint64_t)rte_jhash(&f, sizeof(f), s->seed) * s->targets >> 32);
}

/* ---- passing on ---- */

uint16_t
spread_burst(struct spread *s, struct rte_mbuf **pkts, uint16_t n, uint64_t *touched)
{
	uint16_t own = 0;
	uint64_t passed = 0, full = 0;

	SL_DEBUG_ASSERT(n <= SPREAD_BURST);
	*touched = 0;
	for (uint16_t i = 0; i < n; i++) {
		uint16_t to = spread_pick(s, pkts[i]);

		if (to == 0) {
			pkts[own++] = pkts[i];
			continue;
		}
		passed++;
		if (rte_ring_enqueue(s->target[to].ring, pkts[i]) == 0) {
			*touched |= UINT64_C(1) << to;
			continue;
		}
		full++;
		rte_pktmbuf_free(pkts[i]);
	}
	sl_counter_add(&s->passed, passed);
	sl_counter_add(&s->full, full);
	return own;
}

uint16_t
spread_take(struct spread *s, uint16_t target, struct rte_mbuf **pkts)
{
	struct target *t = &s->target[target];
	unsigned int n = rte_ring_dequeue_burst(t->ring, (void **)pkts, SPREAD_BURST, NULL);

	if (n > 0)
		sl_counter_add(&t->taken, n);
	return (uint16_t)n;
}

void
spread_counts(const struct spread *s, struct spread_counts *c)
{
	memset(c, 0, sizeof(*c));
	c->passed = sl_load_relaxed(&s->passed);
	c->full = sl_load_relaxed(&s->full);
	for (uint16_t i = 1; i < s->targets; i++) {
		c->taken += sl_load_relaxed(&s->target[i].taken);
		c->held += rte_ring_count(s->target[i].ring);
	}
}
