/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>

#include <rte_ether.h>

#include "sl_tapq_vnet.h"

#define ETHER_LEN 14u
#define VLAN_LEN 4u
#define IPV4_LEN 20u
#define IPV6_LEN 40u
#define TCP_LEN 20u
#define UDP_LEN 8u
#define TCP_CSUM 16u /* offset of the checksum in the header */
#define UDP_CSUM 6u
#define SEGMENTS_MAX 128u
#define GSO_SIZE_MIN 8u /* of TCP */

/* Where a frame's transport header is, and what it is. */
struct layers {
	uint16_t ethertype;
	uint8_t protocol;
	uint32_t l4;
};

static uint16_t
read_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool
skip_vlans(const uint8_t *data, uint32_t have, struct layers *l)
{
	uint32_t at = ETHER_LEN;

	if (have < ETHER_LEN)
		return false;
	l->ethertype = read_be16(data + 12);
	for (int tags = 0; tags < 2; tags++) {
		if (l->ethertype != RTE_ETHER_TYPE_VLAN && l->ethertype != RTE_ETHER_TYPE_QINQ)
			break;
		if (have < at + VLAN_LEN)
			return false;
		l->ethertype = read_be16(data + at + 2);
		at += VLAN_LEN;
	}
	l->l4 = at;
	return true;
}

/* Extension headers are passed over up to the first that says it is none. */
static bool
skip_ipv6(const uint8_t *data, uint32_t have, struct layers *l)
{
	uint8_t next;

	if (have < l->l4 + IPV6_LEN)
		return false;
	next = data[l->l4 + 6];
	l->l4 += IPV6_LEN;
	for (int i = 0; i < 8; i++) {
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			break;
		if (have < l->l4 + 8)
			return false;
		next = data[l->l4];
		l->l4 += 8u * (data[l->l4 + 1] + 1u);
	}
	l->protocol = next;
	return true;
}

static bool
dissect(const uint8_t *data, uint32_t have, struct layers *l)
{
	if (!skip_vlans(data, have, l))
		return false;
	if (l->ethertype == RTE_ETHER_TYPE_IPV6)
		return skip_ipv6(data, have, l);
	if (l->ethertype != RTE_ETHER_TYPE_IPV4 || have < l->l4 + IPV4_LEN)
		return false;
	l->protocol = data[l->l4 + 9];
	l->l4 += 4u * (data[l->l4] & 15u);
	return true;
}

/* What each type of segmentation asks of the frame. */
struct gso_rule {
	uint8_t protocol;
	uint8_t csum_offset;
	uint16_t ethertype; /* 0: either */
	uint32_t l3_min, l4_len;
};

static bool
gso_rule_of(uint8_t type, struct gso_rule *rule)
{
	static const struct gso_rule rules[] = {
		[SL_TAPQ_VNET_GSO_TCPV4] = {IPPROTO_TCP, TCP_CSUM, RTE_ETHER_TYPE_IPV4, IPV4_LEN,
			TCP_LEN},
		[SL_TAPQ_VNET_GSO_UDP] = {IPPROTO_UDP, UDP_CSUM, 0, IPV4_LEN, UDP_LEN},
		[SL_TAPQ_VNET_GSO_TCPV6] = {IPPROTO_TCP, TCP_CSUM, RTE_ETHER_TYPE_IPV6, IPV6_LEN,
			TCP_LEN},
		[SL_TAPQ_VNET_GSO_UDP_L4] = {IPPROTO_UDP, UDP_CSUM, 0, IPV4_LEN, UDP_LEN},
	};

	if (type >= SL_COUNT_OF(rules) || rules[type].protocol == 0)
		return false;
	*rule = rules[type];
	return true;
}

static enum sl_tapq_vnet_error
check_csum(const struct sl_tapq_vnet_hdr *hdr, const struct gso_rule *rule, uint32_t len)
{
	uint32_t field_end = hdr->csum_offset + 2u;
	uint32_t l4 = rule->l4_len > field_end ? rule->l4_len : field_end;

	if ((hdr->flags & SL_TAPQ_VNET_NEEDS_CSUM) == 0)
		return SL_TAPQ_VNET_OK;
	if (hdr->csum_start < ETHER_LEN + rule->l3_min || hdr->csum_start + l4 > len)
		return SL_TAPQ_VNET_BAD_CSUM;
	if (rule->protocol != 0 && hdr->csum_offset != rule->csum_offset)
		return SL_TAPQ_VNET_BAD_CSUM;
	return SL_TAPQ_VNET_OK;
}

static enum sl_tapq_vnet_error
check_hdr_len(const struct sl_tapq_vnet_hdr *hdr, uint32_t len)
{
	uint32_t hdr_len = hdr->hdr_len;

	/* The headers reach at least over the checksum; in 32 bits this does not wrap. */
	if ((hdr->flags & SL_TAPQ_VNET_NEEDS_CSUM) != 0 &&
		hdr_len < (uint32_t)hdr->csum_start + hdr->csum_offset + 2)
		hdr_len = (uint32_t)hdr->csum_start + hdr->csum_offset + 2;
	if (hdr_len > len || (hdr_len > 0 && hdr_len < ETHER_LEN))
		return SL_TAPQ_VNET_BAD_HDR_LEN;
	return SL_TAPQ_VNET_OK;
}

/* Segmentation: the frame must be what the type says. */
static enum sl_tapq_vnet_error
check_gso(struct sl_tapq_vnet_hdr *hdr, const struct gso_rule *rule, const uint8_t *data,
	uint32_t have, uint32_t len)
{
	bool partial = (hdr->flags & SL_TAPQ_VNET_NEEDS_CSUM) != 0;
	uint8_t type = hdr->gso_type & (uint8_t)~SL_TAPQ_VNET_GSO_ECN;
	struct layers l;
	uint32_t headers;

	if (hdr->gso_size == 0 || hdr->gso_size == UINT16_MAX)
		return SL_TAPQ_VNET_BAD_GSO_SIZE;
	if (type == SL_TAPQ_VNET_GSO_UDP_L4 && !partial)
		return SL_TAPQ_VNET_BAD_CSUM;
	if (!dissect(data, have, &l) || l.protocol != rule->protocol ||
		(rule->ethertype != 0 && l.ethertype != rule->ethertype))
		return SL_TAPQ_VNET_BAD_PROTOCOL;
	/* With a checksum the peer said where the header is; it must be where it is. */
	if (partial && l.l4 != hdr->csum_start)
		return SL_TAPQ_VNET_BAD_PROTOCOL;
	headers = l.l4 + rule->l4_len;
	if (headers > len)
		return SL_TAPQ_VNET_BAD_PROTOCOL;
	if (rule->protocol == IPPROTO_TCP && hdr->gso_size < GSO_SIZE_MIN)
		hdr->gso_size = GSO_SIZE_MIN;
	if (type == SL_TAPQ_VNET_GSO_UDP_L4 &&
		len - headers > (uint32_t)hdr->gso_size * SEGMENTS_MAX)
		return SL_TAPQ_VNET_BAD_GSO_SIZE;
	if (len - headers <= hdr->gso_size) {
		hdr->gso_type = SL_TAPQ_VNET_GSO_NONE;
		hdr->gso_size = 0;
	}
	return SL_TAPQ_VNET_OK;
}

enum sl_tapq_vnet_error
sl_tapq_vnet_check(struct sl_tapq_vnet_hdr *hdr, const uint8_t *data, uint32_t have, uint32_t len)
{
	uint8_t type = hdr->gso_type & (uint8_t)~SL_TAPQ_VNET_GSO_ECN;
	bool ecn = (hdr->gso_type & SL_TAPQ_VNET_GSO_ECN) != 0;
	struct gso_rule rule = {.l3_min = IPV4_LEN};
	enum sl_tapq_vnet_error e;

	if (SL_LIKELY(hdr->flags == 0 && hdr->gso_type == 0 && hdr->hdr_len == 0))
		return SL_TAPQ_VNET_OK;
	if (type != SL_TAPQ_VNET_GSO_NONE && !gso_rule_of(type, &rule))
		return SL_TAPQ_VNET_BAD_GSO_TYPE;
	if (ecn && rule.protocol != IPPROTO_TCP)
		return SL_TAPQ_VNET_BAD_GSO_TYPE;
	e = check_csum(hdr, &rule, len);
	if (e == SL_TAPQ_VNET_OK)
		e = check_hdr_len(hdr, len);
	if (e == SL_TAPQ_VNET_OK && type != SL_TAPQ_VNET_GSO_NONE)
		e = check_gso(hdr, &rule, data, have, len);
	return e;
}

const char *
sl_tapq_vnet_error_name(enum sl_tapq_vnet_error e)
{
	static const char *const names[SL_TAPQ_VNET_ERROR_COUNT] = {
		[SL_TAPQ_VNET_OK] = "ok",
		[SL_TAPQ_VNET_BAD_GSO_TYPE] = "bad_gso_type",
		[SL_TAPQ_VNET_BAD_GSO_SIZE] = "bad_gso_size",
		[SL_TAPQ_VNET_BAD_HDR_LEN] = "bad_hdr_len",
		[SL_TAPQ_VNET_BAD_CSUM] = "bad_csum",
		[SL_TAPQ_VNET_BAD_PROTOCOL] = "bad_protocol",
	};

	return e < SL_TAPQ_VNET_ERROR_COUNT ? names[e] : "unknown";
}
