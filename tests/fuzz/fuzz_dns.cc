/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any query to the two DNS responders of apps/example-vnf: both answer the same, at most DNS_GROWTH
 * octets longer than the query, and never an answer. Input: the query. Nothing behind it but that room is
 * touched: it lies at the end of a block from the heap.
 */
#include <cstdlib>
#include <cstring>
#include <memory>

#include "dns.hh"
extern "C" {
#include "dns.h"
#include "sl_assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
}

static void
check_answer(const uint8_t *query, size_t size, uint8_t *answer, size_t len)
{
	SL_ASSERT(len >= dns::header && len <= size + DNS_GROWTH && len < 3 * size);
	SL_ASSERT(std::memcmp(query, answer, 2) == 0 && (answer[2] & 0x80) != 0);
	SL_ASSERT((answer[2] & 0x79) == (query[2] & 0x79) && (answer[3] & 0xf0) == 0);
	SL_ASSERT(dns_answer(answer, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > DNS_QUERY_MAX)
		return 0;
	auto c = std::make_unique<uint8_t[]>(size + DNS_GROWTH);
	auto cxx = std::make_unique<char[]>(size + DNS_GROWTH);

	std::copy_n(data, size, c.get());
	std::copy_n(data, size, cxx.get());
	const size_t len = dns_answer(c.get(), size);

	SL_ASSERT(dns::answer(std::span(cxx.get(), size + DNS_GROWTH), size) == len);
	SL_ASSERT(std::memcmp(c.get(), cxx.get(), size + DNS_GROWTH) == 0);
	if (len > 0)
		check_answer(data, size, c.get(), len);
	return 0;
}
