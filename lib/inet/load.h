/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_LOAD_H
#define INET_LOAD_H

/*
 * Words of a packet whose memory others may change, read once: the compiler takes the result for
 * changed and so cannot read it from the packet again.
 */
#include <stdint.h>
#include <string.h>

static inline uint16_t
load16(const char *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	__asm__("" : "+r"(v));
	return v;
}

static inline uint32_t
load32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	__asm__("" : "+r"(v));
	return v;
}

static inline uint64_t
load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	__asm__("" : "+r"(v));
	return v;
}

#endif
