/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Which of a port's addresses a packet leaves with. IPv4: the one whose prefix covers the next hop
 * best, or the first one. IPv6: RFC 6724, chapter 5, as far as its rules go here, where addresses
 * are neither deprecated nor temporary and a port's are those of the outgoing interface: scope (2),
 * label (6), longest matching prefix (8), and who was there first.
 */
#include "inet_priv.h"

#define SCOPE_LINK 2
#define SCOPE_SITE 5
#define SCOPE_GLOBAL 14

/* In the numbers that multicast addresses have for theirs (RFC 6724, 3.1). */
static int
scope_of(const struct sl_addr *a)
{
	if (a->b[0] == 0xff)
		return a->b[1] & 0xf;
	if (inet_is_link_local(a))
		return SCOPE_LINK;
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0xc0 ? SCOPE_SITE : SCOPE_GLOBAL;
}

/* The default policy table (RFC 6724, 2.1), without the prefixes that are not on any wire here. */
static int
label_of(const struct sl_addr *a)
{
	static const struct {
		struct sl_addr prefix;
		uint8_t len;
		uint8_t label;
	} policy[] = {
		{{{0x20, 0x01}}, 32, 5},
		{{{0x20, 0x02}}, 16, 2},
		{{{0xfc}}, 7, 13},
		{{{0xfe, 0xc0}}, 10, 11},
		{{{0x3f, 0xfe}}, 16, 12},
	};

	for (size_t i = 0; i < SL_COUNT_OF(policy); i++) {
		if (inet_prefix_match(a, &policy[i].prefix, policy[i].len))
			return policy[i].label;
	}
	return 1;
}

/* Bits that both have from the start, at most those of a's prefix. */
static int
matching(const struct inet_addr *a, const struct sl_addr *dst)
{
	int n = 0;

	while (n < a->prefix && ((a->addr.b[n / 8] ^ dst->b[n / 8]) >> (7 - n % 8) & 1) == 0)
		n++;
	return n;
}

/* Is a better than b, which came first? */
static bool
better6(const struct inet_addr *a, const struct inet_addr *b, const struct sl_addr *dst)
{
	int sa = scope_of(&a->addr), sb = scope_of(&b->addr), sd = scope_of(dst);
	bool la, lb;

	if (sa != sb)
		return sa < sb ? sa >= sd : sb < sd;
	la = label_of(&a->addr) == label_of(dst);
	lb = label_of(&b->addr) == label_of(dst);
	if (la != lb)
		return la;
	return matching(a, dst) > matching(b, dst);
}

/* Length of a's prefix if hop is in it. */
static int
covers(const struct inet_addr *a, const struct sl_addr *hop)
{
	return inet_prefix_match(&a->addr, hop, a->prefix) ? a->prefix : -1;
}

const struct inet_addr *
inet_port_source(const struct inet_port *port, const struct sl_addr *dst, const struct sl_addr *hop)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */
	const struct inet_addr *best = NULL;
	bool v4 = inet_is_v4(dst);

	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *a = &port->addr[i];

		if (inet_addr_state(a) != INET_ADDR_READY || inet_is_v4(&a->addr) != v4)
			continue;
		if (best == NULL ||
			(v4 ? covers(a, hop) > covers(best, hop) : better6(a, best, dst)))
			best = a;
	}
	return best;
}
