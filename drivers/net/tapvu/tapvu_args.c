/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#include "tapvu_args.h"

RTE_LOG_REGISTER(tapvu_logtype, pmd.net.tapvu, NOTICE)

static const char *const keys[] = {
	"path", "queues", "taps", "tap", "client", "frag", "uring", NULL};

static const char *
or_empty(const char *value)
{
	return value != NULL ? value : "";
}

static int
parse_number(const char *key, const char *value, uint32_t low, uint32_t high, uint32_t *out)
{
	char *end = NULL;
	unsigned long n = value != NULL ? strtoul(value, &end, 0) : 0;

	if (value == NULL || end == value || *end != '\0' || value[0] == '-' || n < low ||
		n > high) {
		TAPVU_LOG(ERR, "%s=%s: must be a number from %u to %u\n", key, or_empty(value), low,
			high);
		return -EINVAL;
	}
	*out = (uint32_t)n;
	return 0;
}

static int
parse_queues(const char *key, const char *value, void *out)
{
	return parse_number(key, value, 1, TAPVU_QUEUES_MAX, out);
}

static int
parse_switch(const char *key, const char *value, void *out)
{
	return parse_number(key, value, 0, 1, out);
}

static int
parse_text(const char *key, const char *value, char *out, size_t size)
{
	if (value == NULL || value[0] == '\0' || strlen(value) >= size) {
		TAPVU_LOG(ERR, "%s=%s: must have 1 to %zu characters\n", key, or_empty(value),
			size - 1);
		return -EINVAL;
	}
	memcpy(out, value, strlen(value) + 1);
	return 0;
}

static int
parse_path(const char *key, const char *value, void *out)
{
	return parse_text(key, value, out, TAPVU_PATH_MAX);
}

static int
parse_tap(const char *key, const char *value, void *out)
{
	return parse_text(key, value, out, TAPVU_NAME_MAX);
}

static int
parse_frag(const char *key, const char *value, void *out)
{
	static const struct {
		const char *name;
		enum sl_frag_mode mode;
	} modes[] = {{"lock", SL_FRAG_LOCK}, {"lcore", SL_FRAG_LCORE}, {"page", SL_FRAG_PAGE}};

	for (size_t i = 0; value != NULL && i < SL_COUNT_OF(modes); i++) {
		if (strcmp(modes[i].name, value) == 0) {
			*(enum sl_frag_mode *)out = modes[i].mode;
			return 0;
		}
	}
	TAPVU_LOG(ERR, "%s=%s: must be lock, lcore or page\n", key, or_empty(value));
	return -EINVAL;
}

static int
process_all(struct rte_kvargs *kv, struct tapvu_args *out)
{
	const struct {
		const char *key;
		arg_handler_t parse;
		void *to;
	} all[] = {
		{"path", parse_path, out->path},
		{"tap", parse_tap, out->tap},
		{"queues", parse_queues, &out->queues},
		{"taps", parse_queues, &out->taps},
		{"client", parse_switch, &out->client},
		{"frag", parse_frag, &out->frag},
		{"uring", parse_switch, &out->uring},
	};

	for (size_t i = 0; i < SL_COUNT_OF(all); i++) {
		if (rte_kvargs_count(kv, all[i].key) > 1) {
			TAPVU_LOG(ERR, "%s: given more than once\n", all[i].key);
			return -EINVAL;
		}
		if (rte_kvargs_process(kv, all[i].key, all[i].parse, all[i].to) != 0)
			return -EINVAL;
	}
	if (out->path[0] == '\0') {
		TAPVU_LOG(ERR, "path=SOCKET must be given\n");
		return -EINVAL;
	}
	if (out->taps > out->queues) {
		TAPVU_LOG(ERR, "taps=%u: must be at most queues=%u, so that each has a feeder\n",
			out->taps, out->queues);
		return -EINVAL;
	}
	return 0;
}

int
tapvu_args_parse(const char *text, struct tapvu_args *out)
{
	struct rte_kvargs *kv;
	int ret;

	memset(out, 0, sizeof(*out));
	out->queues = 1;
	out->taps = 1;
	out->frag = SL_FRAG_LOCK;
	out->uring = 1;
	kv = rte_kvargs_parse(text != NULL ? text : "", keys);
	if (kv == NULL) {
		TAPVU_LOG(ERR,
			"%s: must be key=value pairs of path, queues, taps, tap, client, frag, "
			"uring\n",
			or_empty(text));
		return -EINVAL;
	}
	ret = process_all(kv, out);
	rte_kvargs_free(kv);
	return ret;
}
