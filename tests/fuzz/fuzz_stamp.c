/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any request to the reflector: no octet behind it is touched, a refused one stays as it is, an
 * answer holds what it must, and an answer that comes back gets none.
 *
 * Input: flags (format, session ids, synchronised), TTL, source port (16 bits), then the request.
 */
#include <stdlib.h>
#include <string.h>

#include "sl_assert.h"
#include "stamp.h"

#define HEAD 4
#define NOW_NS 1796083200500000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_answer(const struct stamp_how *how, const struct stamp_seen *seen, const uint8_t *request,
	const uint8_t *answer, size_t len)
{
	SL_ASSERT(memcmp(answer + 24, request, 4) == 0);
	SL_ASSERT(memcmp(answer + 28, request + 4, 8) == 0);
	SL_ASSERT(memcmp(answer + 36, request + 12, 2) == 0);
	SL_ASSERT(answer[40] == seen->ttl && answer[13] != 0);
	SL_ASSERT(((answer[12] & 0x80) != 0) == how->clock.synchronised);
	for (size_t i = 41; i < len; i++)
		SL_ASSERT(answer[i] == (i < STAMP_LENGTH_BASE ? 0 : request[i]));
	SL_ASSERT(stamp_judge(how, seen, answer, len) == STAMP_REFLECTED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stamp_how how = {.clock = {.error_ns = 1000, .tai_s = 37}};
	struct stamp_seen seen = {.rx_ns = NOW_NS, .tx_ns = NOW_NS + 5000};
	enum stamp_outcome outcome;
	uint8_t *answer;
	size_t len;

	if (size < HEAD)
		return 0;
	how.format = data[0] % 3;
	how.session_id = (data[0] & 4) != 0;
	how.clock.synchronised = (data[0] & 8) != 0;
	seen.ttl = data[1];
	memcpy(&seen.sport, data + 2, sizeof(seen.sport));
	len = size - HEAD;
	answer = malloc(len > 0 ? len : 1);
	if (answer == NULL)
		return 0;
	memcpy(answer, data + HEAD, len);
	outcome = stamp_judge(&how, &seen, answer, len);
	SL_ASSERT(memcmp(answer, data + HEAD, len) == 0);
	SL_ASSERT(outcome != STAMP_ANSWERED || len >= STAMP_LENGTH_MIN);
	if (outcome == STAMP_ANSWERED) {
		stamp_answer(&how, &seen, NULL, answer, len);
		check_answer(&how, &seen, data + HEAD, answer, len);
		stamp_set_transmit(&how, NOW_NS + 7000, answer);
		check_answer(&how, &seen, data + HEAD, answer, len);
	}
	free(answer);
	return 0;
}
