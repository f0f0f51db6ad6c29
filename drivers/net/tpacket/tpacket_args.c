/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#include "tpacket_priv.h"

/** One numeric option: where it goes and what it may be. */
struct number {
	const char *key;
	size_t offset;
	uint32_t low, high;
};

#define NUMBER(key, member, low, high)                                                             \
	{                                                                                          \
		key, offsetof(struct tpacket_args, member), low, high                              \
	}

static const struct number numbers[] = {
	NUMBER("qpairs", qpairs, 1, TPACKET_QUEUES_MAX),
	NUMBER("tpver", version, 2, 3),
	NUMBER("blocksz", block_size, 4096, TPACKET_BLOCK_MAX),
	NUMBER("framesz", frame_size, 128, TPACKET_FRAME_MAX),
	NUMBER("framecnt", frame_nr, 2, 1u << 20),
	NUMBER("qdisc_bypass", qdisc_bypass, 0, 1),
	NUMBER("fanout_group", fanout_group, 0, UINT16_MAX),
	NUMBER("vnet_hdr", vnet_hdr, 0, 1),
	NUMBER("ignore_outgoing", ignore_outgoing, 0, 1),
	NUMBER("promisc", promisc, 0, 1),
	NUMBER("busy_poll", busy_poll_us, 0, 1000000),
};

static const struct {
	const char *name;
	uint32_t mode;
} modes[] = {
	{"hash", PACKET_FANOUT_HASH},
	{"lb", PACKET_FANOUT_LB},
	{"cpu", PACKET_FANOUT_CPU},
	{"rollover", PACKET_FANOUT_ROLLOVER},
	{"rnd", PACKET_FANOUT_RND},
	{"qm", PACKET_FANOUT_QM},
};

const char *
tpacket_fanout_name(uint32_t mode)
{
	size_t i;

	for (i = 0; i < SL_COUNT_OF(modes); i++)
		if (modes[i].mode == mode)
			return modes[i].name;
	return "?";
}

static int
parse_number(const char *key, const char *value, void *opaque)
{
	const struct number *number = NULL;
	unsigned long n;
	uint32_t n32;
	char *end;
	size_t i;

	for (i = 0; i < SL_COUNT_OF(numbers); i++)
		if (strcmp(numbers[i].key, key) == 0)
			number = &numbers[i];
	if (number == NULL)
		return -EINVAL;
	n = value == NULL ? 0 : strtoul(value, &end, 0);
	if (value == NULL || end == value || *end != '\0' || value[0] == '-' || n < number->low ||
		n > number->high) {
		TPACKET_LOG(ERR, "%s=%s: must be a number from %u to %u", key,
			value == NULL ? "" : value, number->low, number->high);
		return -EINVAL;
	}
	n32 = (uint32_t)n;
	memcpy((char *)opaque + number->offset, &n32, sizeof(n32));
	return 0;
}

static int
parse_mode(const char *key, const char *value, void *opaque)
{
	struct tpacket_args *args = opaque;
	size_t i;

	for (i = 0; value != NULL && i < SL_COUNT_OF(modes); i++) {
		if (strcmp(modes[i].name, value) == 0) {
			args->fanout_mode = modes[i].mode;
			return 0;
		}
	}
	TPACKET_LOG(ERR, "%s=%s: must be hash, lb, cpu, rollover, rnd or qm", key,
		value == NULL ? "" : value);
	return -EINVAL;
}

static int
parse_iface(const char *key, const char *value, void *opaque)
{
	struct tpacket_args *args = opaque;

	if (value == NULL || value[0] == '\0' || strlen(value) >= sizeof(args->iface)) {
		TPACKET_LOG(ERR, "%s=%s: must be an interface name of 1 to %zu characters", key,
			value == NULL ? "" : value, sizeof(args->iface) - 1);
		return -EINVAL;
	}
	memcpy(args->iface, value, strlen(value) + 1);
	return 0;
}

static void
set_defaults(struct tpacket_args *out)
{
	memset(out, 0, sizeof(*out));
	out->qpairs = 1;
	out->version = 2;
	out->qdisc_bypass = 1;
	out->fanout_mode = PACKET_FANOUT_HASH;
	out->fanout_group = -1;
	out->vnet_hdr = 1;
	out->ignore_outgoing = 1;
}

static int
process_all(struct rte_kvargs *kv, struct tpacket_args *out)
{
	size_t i;
	int ret;

	if (rte_kvargs_count(kv, "iface") != 1) {
		TPACKET_LOG(ERR, "iface=NAME must be given, once");
		return -EINVAL;
	}
	ret = rte_kvargs_process(kv, "iface", parse_iface, out);
	if (ret == 0)
		ret = rte_kvargs_process(kv, "fanout_mode", parse_mode, out);
	for (i = 0; ret == 0 && i < SL_COUNT_OF(numbers); i++)
		ret = rte_kvargs_process(kv, numbers[i].key, parse_number, out);
	return ret == 0 ? 0 : -EINVAL;
}

int
tpacket_args_parse(const char *text, struct tpacket_args *out)
{
	static const char *const keys[] = {
		"iface",
		"qpairs",
		"tpver",
		"blocksz",
		"framesz",
		"framecnt",
		"qdisc_bypass",
		"fanout_mode",
		"fanout_group",
		"vnet_hdr",
		"ignore_outgoing",
		"promisc",
		"busy_poll",
		NULL,
	};
	struct rte_kvargs *kv;
	int ret;

	set_defaults(out);
	kv = rte_kvargs_parse(text, keys);
	if (kv == NULL) {
		TPACKET_LOG(ERR,
			"cannot read the arguments '%s': known are iface, qpairs, tpver, "
			"blocksz, framesz, framecnt, qdisc_bypass, fanout_mode, fanout_group, "
			"vnet_hdr, ignore_outgoing, promisc and busy_poll, as key=value",
			text);
		return -EINVAL;
	}
	ret = process_all(kv, out);
	rte_kvargs_free(kv);
	return ret;
}
