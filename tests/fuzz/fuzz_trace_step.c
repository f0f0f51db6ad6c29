/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any frame as a trace takes it down and tells it: nothing beyond it is read, and what is told is
 * JSON that reads back.
 *
 * Input: where it is cut into two segments, then the frame.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "sl_assert.h"
#include "trace_step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own, so that what is read beyond it is seen. */
static uint8_t *
segment(struct rte_mbuf *m, const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	SL_ASSERT(copy != NULL);
	memcpy(copy, data, len);
	m->buf_addr = copy;
	m->data_len = (uint16_t)len;
	return copy;
}

static void
check_step(const struct trace_step *s)
{
	json_t *o = trace_step_json(s, "wan", 0, 1), *back;
	char *text;

	SL_ASSERT(o != NULL);
	text = json_dumps(o, JSON_COMPACT);
	SL_ASSERT(text != NULL && strlen(text) < 512);
	back = json_loads(text, 0, NULL);
	SL_ASSERT(json_equal(o, back));
	free(text);
	json_decref(back);
	json_decref(o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf first = {.nb_segs = 2}, second = {.nb_segs = 1};
	struct trace_step s = {.kind = TRACE_RECEIVED};
	uint8_t *a, *b;
	size_t cut;

	if (size == 0 || size > 4096)
		return 0;
	size--;
	cut = RTE_MIN((size_t)data[0], size);
	first.next = &second;
	first.pkt_len = (uint32_t)size;
	a = segment(&first, data + 1, cut);
	b = segment(&second, data + 1 + cut, size - cut);
	trace_step_describe(&s, &first);
	SL_ASSERT(s.head_len == RTE_MIN(size, sizeof(s.head)));
	check_step(&s);
	free(a);
	free(b);
	return 0;
}
