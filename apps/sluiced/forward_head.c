/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include "forward_priv.h"

#define IP4_DF 0x40 /* in octet 6 */

static uint64_t
load(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Put new octets, of which there are a multiple of 4; what that adds to a sum (RFC 1624). */
static inline uint64_t
put(uint8_t *at, const uint8_t *new, size_t octets)
{
	uint64_t delta = 0;

	for (size_t i = 0; i < octets; i += 4)
		delta += load(new + i) + (~load(at + i) & UINT32_MAX);
	memcpy(at, new, octets);
	return delta;
}

static uint64_t
put_port(uint8_t *at, uint16_t new)
{
	uint16_t old;

	memcpy(&old, at, sizeof(old));
	memcpy(at, &new, sizeof(new));
	return (uint64_t) new + (uint16_t)~old;
}

static void
adjust(uint8_t *at, uint64_t delta)
{
	uint16_t sum;

	memcpy(&sum, at, sizeof(sum));
	sum = forward_sum(sum, delta);
	memcpy(at, &sum, sizeof(sum));
}

static void
adjust_udp(uint8_t *at, uint64_t delta)
{
	uint16_t sum;

	memcpy(&sum, at, sizeof(sum));
	sum = forward_udp_sum(sum, delta);
	memcpy(at, &sum, sizeof(sum));
}

/* With a family that the compiler knows. */
static inline __attribute__((always_inline)) void
edit(uint8_t *ip, uint8_t *udp, bool v4, const struct forward_end *src,
	const struct forward_end *dst)
{
	size_t octets = v4 ? 4 : 16, skip = 16 - octets;
	uint64_t addrs = 0, ports = 0;

	if (src != NULL) {
		addrs += put(ip + (v4 ? 12 : 8), src->addr.b + skip, octets);
		ports += udp != NULL ? put_port(udp, src->port) : 0;
	}
	if (dst != NULL) {
		addrs += put(ip + (v4 ? 16 : 24), dst->addr.b + skip, octets);
		ports += udp != NULL ? put_port(udp + 2, dst->port) : 0;
	}
	if (v4)
		adjust(ip + 10, addrs);
	if (udp != NULL)
		adjust_udp(udp + 6, addrs + ports);
}

void
forward_edit(uint8_t *ip, uint8_t *udp, bool v4, const struct forward_end *src,
	const struct forward_end *dst)
{
	if (v4)
		edit(ip, udp, true, src, dst);
	else
		edit(ip, udp, false, src, dst);
}

bool
forward_hop(uint8_t *ip, bool v4)
{
	uint8_t word[4];

	if (ip[v4 ? 8 : 7] <= 1)
		return false;
	if (!v4) {
		ip[7]--;
		return true;
	}
	/* With the protocol, but without the checksum, which is not in its own sum. */
	memcpy(word, ip + 8, sizeof(word));
	word[0]--;
	adjust(ip + 10, load(word) + (~load(ip + 8) & UINT32_MAX));
	ip[8]--;
	return true;
}

bool
forward_whole(const uint8_t *ip, bool v4)
{
	return !v4 || (ip[6] & IP4_DF) != 0;
}

uint16_t
forward_pseudo(const uint8_t *ip, bool v4, uint8_t proto, uint32_t len)
{
	const uint8_t *addr = ip + (v4 ? 12 : 8);
	uint64_t sum = (uint64_t)rte_cpu_to_be_32(len) + rte_cpu_to_be_32(proto);

	for (size_t i = 0; i < (v4 ? 8u : 32u); i += 4)
		sum += load(addr + i);
	return forward_fold(sum);
}
