/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sl_assert.h"
#include "sl_inet.h"

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool
sl_addr_is_v4(const struct sl_addr *a)
{
	return memcmp(a->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

struct sl_addr
sl_addr_v4(uint32_t be)
{
	struct sl_addr a;

	memcpy(a.b, v4_prefix, sizeof(v4_prefix));
	memcpy(a.b + sizeof(v4_prefix), &be, sizeof(be));
	return a;
}

uint32_t
sl_addr_to_v4(const struct sl_addr *a)
{
	uint32_t be;

	memcpy(&be, a->b + sizeof(v4_prefix), sizeof(be));
	return be;
}

bool
sl_addr_is_any(const struct sl_addr *a)
{
	static const struct sl_addr any6;

	if (sl_addr_is_v4(a))
		return sl_addr_to_v4(a) == 0;
	return memcmp(a, &any6, sizeof(any6)) == 0;
}

bool
sl_addr_is_multicast(const struct sl_addr *a)
{
	if (sl_addr_is_v4(a))
		return (a->b[12] & 0xf0) == 0xe0;
	return a->b[0] == 0xff;
}

/* Decimal digits alone, 0..max. */
static int
parse_prefix(const char *text, unsigned int max, uint8_t *prefix)
{
	unsigned int value = 0;

	if (*text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned int)(*text - '0');
		if (value > max)
			return -EINVAL;
	}
	*prefix = (uint8_t)value;
	return 0;
}

int
sl_addr_parse(const char *text, struct sl_addr *addr, uint8_t *prefix)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct sl_addr parsed;
	uint8_t bits;
	uint32_t be;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, &be) == 1) {
		parsed = sl_addr_v4(be);
		bits = 32;
	} else if (inet_pton(AF_INET6, host, &parsed) == 1 && !sl_addr_is_v4(&parsed)) {
		bits = 128;
	} else {
		return -EINVAL;
	}
	if (slash != NULL && parse_prefix(slash + 1, bits, &bits) != 0)
		return -EINVAL;
	*addr = parsed;
	*prefix = bits;
	return 0;
}

const char *
sl_addr_format(const struct sl_addr *a, char *text, size_t size)
{
	const char *result;

	if (sl_addr_is_v4(a))
		result = inet_ntop(AF_INET, a->b + sizeof(v4_prefix), text, (socklen_t)size);
	else
		result = inet_ntop(AF_INET6, a->b, text, (socklen_t)size);
	SL_ASSERT(result != NULL); /* the caller's buffer is too small */
	return result;
}
