/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>
#include <strings.h>

#include "dns.h"

enum { HEADER = 12, IN = 1, TYPE_A = 1, TYPE_AAAA = 28 };
enum { NOERROR = 0, FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5 };

/* Names are as on the wire. One record of a name and type, so that no answer grows beyond DNS_GROWTH. */
#define APEX "\7example\4test"
static const struct record {
	const char *name;
	uint8_t type, len, data[16];
} zone[] = {
	{APEX, TYPE_A, 4, {192, 0, 2, 1}},
	{"\3www" APEX, TYPE_A, 4, {192, 0, 2, 80}},
	{"\3www" APEX, TYPE_AAAA, 16, {0x20, 0x01, 0x0d, 0xb8, [15] = 0x80}},
	{"\2v6" APEX, TYPE_AAAA, 16, {0x20, 0x01, 0x0d, 0xb8, [15] = 0x06}},
};

static unsigned
get16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

/* Where the one question ends. What is behind it (EDNS) is neither looked at nor in the answer. 0 for a
 * pointer, a name above 255 octets, an end behind the query, and for records where a query has none. */
static size_t
question_end(const uint8_t *m, size_t len)
{
	size_t at = HEADER;

	while (at < len && m[at] > 0 && m[at] < 64)
		at += m[at] + 1u;
	if (len < 5 || at > len - 5 || m[at] != 0 || at - HEADER > 254 || get16(m + 4) != 1 ||
		get16(m + 6) != 0 || get16(m + 8) != 0 || (get16(m + 10) == 0 && len != at + 5))
		return 0;
	return at + 5;
}

/* What the zone says of a name: its code, and the record if there is one of that type. */
static unsigned
look_up(const uint8_t *name, unsigned type, const struct record **found)
{
	unsigned code = REFUSED;

	for (const uint8_t *rest = name; *rest != 0; rest += *rest + 1)
		if (strcasecmp((const char *)rest, APEX) == 0)
			code = NXDOMAIN;
	for (size_t i = 0; i < sizeof(zone) / sizeof(zone[0]); i++) {
		if (strcasecmp((const char *)name, zone[i].name) != 0)
			continue;
		code = NOERROR;
		if (type == zone[i].type)
			*found = &zone[i];
	}
	return code;
}

size_t
dns_answer(uint8_t *m, size_t len)
{
	const struct record *r = NULL;
	unsigned code = NOTIMP;
	size_t end = 0;

	if (len < HEADER || (m[2] & 0x80) != 0)
		return 0; /* who answers answers does so for ever */
	if ((m[2] & 0x78) == 0) {
		end = question_end(m, len);
		code = end == 0 ? FORMERR : get16(m + end - 2) != IN ? REFUSED : NOERROR;
	}
	if (code == NOERROR)
		code = look_up(m + HEADER, get16(m + end - 4), &r);
	m[2] = (uint8_t)(0x80 | (m[2] & 0x79) | (code % NXDOMAIN == 0 ? 4 : 0)); /* authoritative */
	m[3] = (uint8_t)code;
	memcpy(m + 4, (uint8_t[8]){0, end != 0, 0, r != NULL}, 8);
	if (r == NULL)
		return end != 0 ? end : HEADER;
	/* The question's name and class; 300 s to live. */
	memcpy(m + end, (uint8_t[12]){0xc0, HEADER, 0, r->type, 0, IN, 0, 0, 1, 44, 0, r->len}, 12);
	memcpy(m + end + 12, r->data, r->len);
	return end + 12 + r->len;
}
